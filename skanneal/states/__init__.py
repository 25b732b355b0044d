"""What a chain is at one moment."""

from ._check import checked_blocks, recount
from ._left_out import logs_without
from ._links import draw_arrays
from ._mixture import Mixture
from ._subsample import SELECTIONS, Subsample
from .crosscat import CrossCat, FreshView


def state_from_arrays(arrays, table, subsample=None, trusted=False):
    """The Mixture or CrossCat whose to_arrays() gave `arrays`; `trusted` if they have been checked
    before."""
    cls = CrossCat if "view_of" in arrays else Mixture
    return cls.from_arrays(arrays, table, subsample, trusted)


__all__ = [
    "SELECTIONS",
    "CrossCat",
    "FreshView",
    "Mixture",
    "Subsample",
    "checked_blocks",
    "draw_arrays",
    "logs_without",
    "recount",
    "state_from_arrays",
]
