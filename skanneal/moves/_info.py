"""What a move reports about a sweep."""

from typing import NamedTuple

# What else takes time, in scores of cells: of a row its memory and its draw, and a call from
# Python, which makes arrays. By benchmarks/kernels/work_units.py a row is worth 61 to 71 cells, and
# a call of a move of rows some 18,000; calls of moves of columns, which do more, take longer.
ROW, CALL = 50, 40_000


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

    Work is counted, not timed, in scores of cells: 1 for a cell in a tile of clusters, which are
    scored together, for one under a partition of the rows, or for one that is added to a cluster;
    ROW for each row that cells are of; CALL for each proposal that is made in Python, each table of
    columns' scores, and each view that is drawn or built.
    """

    proposed: int
    accepted: int
    work: int


def n_columns_of(view):
    """Return how many columns a mixture has."""
    return sum(len(block.columns) for block in view.blocks)


def row_work(n_columns):
    """Return the work of scoring a row of so many columns in a tile, or of adding it."""
    return ROW + n_columns
