"""What a move reports about a sweep."""

from typing import NamedTuple

import numpy as np

SCORES = 1 << 24  # of cells under partitions, between two polls


class Polled:
    """Base of moves that may take long: `poll` is called between the steps of a sweep.

    A chain with a time limit sets a `poll` that raises an exception when the time is over. That
    leaves the state inconsistent, so the chain restores the state before the sweep.

    Attributes
    ----------
    only_while_growing : bool
        Whether chains make the move only before all rows are in.
    """

    only_while_growing = False

    @staticmethod
    def poll():
        """Do nothing."""

    def column_scores(self, state, columns, rows, labels, hyper=None):
        """Log marginal likelihood of columns under partitions: see `CrossCat.column_scores`."""
        batch = max(1, SCORES // max(1, labels.size))
        scores = []
        for start in range(0, len(columns), batch):
            self.poll()
            some = columns[start : start + batch]
            scores.append(state.column_scores(some, rows, labels, hyper))
        return np.concatenate(scores)


class MoveInfo(NamedTuple):
    """Proposals, acceptances, and the work they took.

    Work is counted, not timed: 1 for scoring a row in a tile of clusters, which are scored
    together, and 2 for adding a row to a cluster.
    """

    proposed: int
    accepted: int
    work: int
