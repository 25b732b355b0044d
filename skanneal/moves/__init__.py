"""Markov moves: each leaves p(partition) p(x | partition)^beta over the rows of S invariant.

A move has sweep(state, bit_generator, *, beta) -> MoveInfo; `exact` is False for one that is meant
for burn-in only, and `tempered` says whether it takes beta != 1. One that users may name has a
`name` and says what it `acts_on`: "rows", of every mixture by itself, or "columns", of the views of
a CrossCat. How often chains make it is said in chains/_budget.py.

To add a move: one file with its class, and its import here. `MOVES`, `COLUMN_MOVES` and `__all__`
follow from the imports, whose form, ``X as X``, tells type checkers that X is public.
"""

import typing as _typing

from ._column_block import ColumnBlock as ColumnBlock
from ._column_gibbs import ColumnGibbs as ColumnGibbs
from ._column_sets import ColumnSets as ColumnSets
from ._gibbs import Gibbs as Gibbs
from ._gibbs import churn as churn
from ._gibbs import iterated_conditional_modes as iterated_conditional_modes
from ._gibbs import make_steps as make_steps
from ._hyperparameters import EachView as EachView
from ._hyperparameters import FeatureHyperparameters as FeatureHyperparameters
from ._hyperparameters import PartitionHyperparameters as PartitionHyperparameters
from ._hyperparameters import SharedHyperparameters as SharedHyperparameters
from ._info import CALL as CALL
from ._info import MoveInfo as MoveInfo
from ._info import n_columns_of as n_columns_of
from ._info import row_work as row_work
from ._linked_rows import move_linked_rows as move_linked_rows
from ._permutation import BEAM as BEAM
from ._permutation import EXACT_ROWS as EXACT_ROWS
from ._permutation import PERMUTATIONS as PERMUTATIONS
from ._permutation import PROGRAMS as PROGRAMS
from ._permutation import Permutation as Permutation
from ._split_merge import SplitMerge as SplitMerge
from ._split_sides import divide as divide
from ._view_annealing import ViewAnnealing as ViewAnnealing
from ._view_reallocation import ViewReallocation as ViewReallocation
from ._view_split_merge import ViewSplitMerge as ViewSplitMerge


def _acting_on(what):
    """The moves imported here that act on rows, or on columns, by their names."""
    moves = [member for member in globals().values() if getattr(member, "acts_on", None) == what]
    return {move.name: move for move in moves}


MOVES = _acting_on("rows")  # names that `moves` accepts in every estimator with moves
COLUMN_MOVES = _acting_on("columns")  # further names that it accepts where columns have views

if not _typing.TYPE_CHECKING:  # type checkers go by the form of the imports
    __all__ = sorted(name for name in globals() if not name.startswith("_"))
