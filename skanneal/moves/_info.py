"""What a move reports about a sweep."""

from typing import NamedTuple

# Work beside the scores, in scores of cells: of a row, which is read and drawn, of a call from
# Python, which makes arrays, and of a column's marginal likelihood in one cluster, which takes
# logarithms. By benchmarks/kernels/work_units.py a row is worth 57 to 71 cells, and a call of a
# move of rows 6,000 to 18,000; a call of a move of columns does more. A marginal likelihood is
# worth 12 to 15 cells of numbers there, where all is in the cache. In a fit it takes longer, and
# weighs more beside cells of levels, which are cheap.
ROW, CALL, MARGINAL = 50, 40_000, 100


class Polled:
    """Base of moves that may take long: `poll` is called between the steps of a sweep.

    A chain with a time limit sets a `poll` that raises an exception when the time is over. That
    leaves the state inconsistent, so the chain restores the state before the sweep.
    """

    @staticmethod
    def poll():
        """Do nothing."""


class MoveInfo(NamedTuple):
    """Proposals, acceptances, and the work they took.

    Work is counted, not timed, in scores of cells. A cell counts 1 for each tile of clusters, which
    are scored together; for each partition of the rows under which it is scored; and for being
    added to a cluster. The row of these cells counts ROW. Where a column is scored under
    partitions, each of their clusters counts MARGINAL; so does each cluster where a hyperparameter
    is drawn. A proposal made in Python, a table of columns' scores, a step of all columns on it,
    and a view that is drawn or built count CALL each.
    """

    proposed: int
    accepted: int
    work: int


def n_columns_of(view):
    """Return how many columns a mixture has."""
    return sum(len(block.columns) for block in view.blocks)


def row_work(n_columns):
    """Return the work of scoring a row of `n_columns` in one tile, or of adding it."""
    return ROW + n_columns
