"""What a chain is at one moment."""

from ._mixture import Mixture
from ._subsample import SELECTIONS, Subsample

__all__ = ["SELECTIONS", "Mixture", "Subsample"]
