"""The accelerated sampler: atoms drawn like everything else, on shards of the rows."""

from ._accelerated_stage import AcceleratedStage
from ._auxiliary import Auxiliary, Importance
from ._exact_stage import ExactStage
from ._row_source import RowSource
from ._shards import ShardPool, Shards
from ._slice_sampler import SliceSampler
from ._split_merge import split_and_merge
from ._uncollapsed import Uncollapsed

__all__ = [
    "AcceleratedStage",
    "Auxiliary",
    "ExactStage",
    "Importance",
    "RowSource",
    "ShardPool",
    "Shards",
    "SliceSampler",
    "Uncollapsed",
    "split_and_merge",
]
