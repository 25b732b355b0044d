"""Pictures of fitted estimators, in scikit-learn's manner: compute once, draw as often as wanted.

The displays read public attributes only: ``trace_``, ``draws_``, ``labels_``, ``features_``,
``view_labels_``, ``chain_weights_``, ``cluster_tree_``, ``r_hat_``, ``result_``, and methods that
predict. One file each; matplotlib is imported to draw, not before. Lines and points differ by their
style too, so that prints in grey can be read.
"""

# SPDX-License-Identifier: BSD-3-Clause

from .cluster import ClusterDisplay
from .cluster_tree import ClusterTreeDisplay
from .coassignment import CoassignmentDisplay
from .density import DensityDisplay
from .dependence import DependenceDisplay
from .features import FeatureDisplay
from .gaussian_process import GPDisplay
from .ladder import LadderDisplay
from .trace import TraceDisplay
from .views import ViewsDisplay

__all__ = [
    "ClusterDisplay",
    "ClusterTreeDisplay",
    "CoassignmentDisplay",
    "DensityDisplay",
    "DependenceDisplay",
    "FeatureDisplay",
    "GPDisplay",
    "LadderDisplay",
    "TraceDisplay",
    "ViewsDisplay",
]
