"""What a move reports of a sweep."""

from typing import NamedTuple


class MoveInfo(NamedTuple):
    """Proposals, acceptances, and the work they took.

    Work is counted, not timed: 1 for scoring a row in a tile of clusters, which are scored
    together, and 2 for adding a row to a cluster.
    """

    proposed: int
    accepted: int
    work: int
