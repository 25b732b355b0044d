"""What a chain plans, runs, records and restores."""

from ._chain import Chain, run_chain
from ._plan import ChainPlan, first_state

__all__ = ["Chain", "ChainPlan", "first_state", "run_chain"]
