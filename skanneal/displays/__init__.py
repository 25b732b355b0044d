"""Pictures of fitted estimators, in scikit-learn's manner: compute once, draw as often as wanted.

The displays read public attributes only: ``trace_``, ``draws_``, ``labels_``, ``features_``,
``view_labels_``, ``chain_weights_``, ``cluster_tree_``. One file each; matplotlib is imported to
draw, not before.
"""

# SPDX-License-Identifier: BSD-3-Clause

from .cluster import ClusterDisplay
from .cluster_tree import ClusterTreeDisplay
from .coassignment import CoassignmentDisplay
from .dependence import DependenceDisplay
from .features import FeatureDisplay
from .trace import TraceDisplay
from .views import ViewsDisplay

__all__ = [
    "ClusterDisplay",
    "ClusterTreeDisplay",
    "CoassignmentDisplay",
    "DependenceDisplay",
    "FeatureDisplay",
    "TraceDisplay",
    "ViewsDisplay",
]
