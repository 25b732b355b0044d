"""The columns of a fitted CrossCat, named and in order."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..summary import rank_clusters


def columns_by_view(estimator):
    """Columns by the size of their view, in it those first that hold it together; dependence."""
    ranks, _ = rank_clusters(estimator.view_labels_)
    dependence = estimator.dependence_probability()
    within = (dependence * (ranks == ranks[:, None])).sum(axis=1)
    return np.lexsort([-within, ranks]), dependence


def column_names(estimator):
    """The columns' names, or their positions."""
    names = getattr(estimator, "feature_names_in_", range(estimator.n_features_in_))
    return [str(name) for name in names]
