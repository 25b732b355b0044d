"""What a move reports of a sweep."""

from typing import NamedTuple


class MoveInfo(NamedTuple):
    """Proposals, acceptances, and the work in row scores (rows times clusters scored)."""

    proposed: int
    accepted: int
    work: int
