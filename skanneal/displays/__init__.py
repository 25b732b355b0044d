"""Pictures of fitted estimators, in scikit-learn's manner: compute once, draw as often as wanted.

The displays read public attributes only: ``trace_``, ``draws_``, ``labels_``, ``view_labels_``. One
file each; matplotlib is imported to draw, not before.
"""

# SPDX-License-Identifier: BSD-3-Clause

from .cluster import ClusterDisplay
from .coassignment import CoassignmentDisplay
from .dependence import DependenceDisplay
from .trace import TraceDisplay
from .views import ViewsDisplay

__all__ = [
    "ClusterDisplay",
    "CoassignmentDisplay",
    "DependenceDisplay",
    "TraceDisplay",
    "ViewsDisplay",
]
