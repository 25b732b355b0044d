"""From draws to what they say: partitions that stand for them, and whether chains agree."""

from ._diagnostics import diagnose, drift, ess, r_hat, tail_ess
from ._losses import LOSSES, relabel
from ._partitions import (
    POINT_ESTIMATES,
    Profile,
    coclustering,
    expected_binder,
    expected_vi,
    point_estimate,
    profile_clusters,
    rank_clusters,
)
from ._settled import warn_unless_settled

__all__ = [
    "LOSSES",
    "POINT_ESTIMATES",
    "Profile",
    "coclustering",
    "diagnose",
    "drift",
    "ess",
    "expected_binder",
    "expected_vi",
    "point_estimate",
    "profile_clusters",
    "r_hat",
    "rank_clusters",
    "relabel",
    "tail_ess",
    "warn_unless_settled",
]
