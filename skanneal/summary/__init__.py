"""From draws to what they say: partitions that stand for them, and whether chains agree."""

from ._alignment import align_labels
from ._cluster_tree import cluster_tree
from ._coclustering import coclustering
from ._convergence import agreeing_chains, convergence
from ._credible_ball import credible_ball
from ._cut_tree import cut_tree, valley_sureness
from ._diagnostics import diagnose, drift, ess, r_hat, tail_ess
from ._labels import rank_clusters, relabel
from ._losses import LOSSES
from ._number_of_clusters import n_clusters_proba
from ._point_estimates import POINT_ESTIMATES, expected_binder, expected_vi, point_estimate
from ._pool import pool
from ._profiles import Profile, profile_clusters
from ._settled import warn_unless_settled
from ._stacking import counted_chains, stacking_weights

__all__ = [
    "LOSSES",
    "POINT_ESTIMATES",
    "Profile",
    "agreeing_chains",
    "align_labels",
    "cluster_tree",
    "coclustering",
    "convergence",
    "counted_chains",
    "credible_ball",
    "cut_tree",
    "diagnose",
    "drift",
    "ess",
    "expected_binder",
    "expected_vi",
    "n_clusters_proba",
    "point_estimate",
    "pool",
    "profile_clusters",
    "r_hat",
    "rank_clusters",
    "relabel",
    "stacking_weights",
    "tail_ess",
    "valley_sureness",
    "warn_unless_settled",
]
