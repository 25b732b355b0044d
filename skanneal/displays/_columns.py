"""The columns of a fitted CrossCat, named and in order."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..summary import rank_clusters


def columns_by_view(estimator):
    """Columns by the size of their view, in it those first that hold it together; dependence.

    Without the columns that are in no view."""
    views = np.asarray(estimator.view_labels_)
    columns = np.flatnonzero(views >= 0)
    if not len(columns):
        raise ValueError("Every column is constant: there is no view to draw.")
    ranks, _ = rank_clusters(views[columns])
    dependence = np.asarray(estimator.dependence_probability())
    within = (dependence[np.ix_(columns, columns)] * (ranks == ranks[:, None])).sum(axis=1)
    return columns[np.lexsort([-within, ranks])], dependence


def column_names(estimator):
    """The columns' names, or their positions."""
    names = getattr(estimator, "feature_names_in_", range(estimator.n_features_in_))
    return [str(name) for name in names]
