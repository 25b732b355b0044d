"""Markov moves: each leaves p(partition) p(x | partition)^beta over the rows of S invariant.

A move has sweep(state, bit_generator, *, beta) -> MoveInfo; `exact` is False for one that is meant
for burn-in only, `tempered` says whether it takes beta != 1, and structure moves have a `weight`:
their share of the turns while S grows. To add one: one file with its class and one line in MOVES.
"""

from ._gibbs import Gibbs, churn, iterated_conditional_modes
from ._split_merge import SplitMerge
from .columns import ColumnBlock, ColumnGibbs, ColumnSets
from .hyperparameters import EachView, FeatureHyperparameters, PartitionHyperparameters
from .info import MoveInfo
from .permutation import EXACT_ROWS, PERMUTATIONS, PROGRAMS, Permutation
from .view_reallocation import ViewReallocation
from .view_split_merge import ViewSplitMerge

# What an estimator's `moves` may name, beside the hyperparameters that always follow.
MOVES = {move.name: move for move in (Gibbs, SplitMerge, Permutation)}
# Moves of features between views: made with the hyperprior of a view's own pair.
COLUMN_MOVES = {
    move.name: move
    for move in (ColumnBlock, ColumnGibbs, ColumnSets, ViewSplitMerge, ViewReallocation)
}

__all__ = [
    "COLUMN_MOVES",
    "EXACT_ROWS",
    "MOVES",
    "PERMUTATIONS",
    "PROGRAMS",
    "ColumnBlock",
    "ColumnGibbs",
    "ColumnSets",
    "EachView",
    "FeatureHyperparameters",
    "Gibbs",
    "MoveInfo",
    "PartitionHyperparameters",
    "Permutation",
    "SplitMerge",
    "ViewReallocation",
    "ViewSplitMerge",
    "churn",
    "iterated_conditional_modes",
]
