"""What a chain plans, runs, records and restores."""

from ._chain import Chain
from ._first_state import first_state
from ._plan import ChainPlan
from ._run import run_chain
from ._snapshot import read_snapshot, write_snapshot
from ._starts import STARTS
from ._trace import Trace, side_by_side

__all__ = [
    "STARTS",
    "Chain",
    "ChainPlan",
    "Trace",
    "first_state",
    "read_snapshot",
    "run_chain",
    "side_by_side",
    "write_snapshot",
]
