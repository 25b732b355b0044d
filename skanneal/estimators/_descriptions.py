"""What a fit's clusters are, in the user's units."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from sklearn.utils._optional_dependencies import check_pandas_support
from sklearn.utils.validation import check_is_fitted

from ..encoding import open_table
from ..encoding._dates import from_days
from ..summary._profiles import features_of_clusters, features_of_columns

INTERVAL = (0.025, 0.975)  # of the sizes, over draws


def describe(estimator, X, n_features):
    """The frame that `describe_clusters` returns."""
    pandas = check_pandas_support("describe_clusters")
    check_is_fitted(estimator)
    if estimator._clusters is None:
        raise ValueError("describe_clusters needs a fit with point_estimate='clusters'.")
    table, labels = open_table(X, "X"), estimator.labels_
    if table.shape[0] != len(labels):
        raise ValueError(
            f"X must be the training data: it has {table.shape[0]} rows, labels_ {len(labels)}."
        )
    n_clusters = estimator.n_clusters_
    low, high = np.quantile(estimator._clusters.sizes_of_draws(), INTERVAL, axis=0)
    features = features_of_clusters(table, labels, n_clusters)
    features += features_of_columns(estimator._encoder.parts.columns(table), labels, n_clusters)
    membership = np.where(labels == np.arange(n_clusters)[:, None], estimator.probabilities_, -1.0)
    return pandas.DataFrame(
        {
            "size": np.bincount(labels[labels >= 0], minlength=n_clusters),
            "low": low.round().astype(np.int64),
            "high": high.round().astype(np.int64),
            "apart": ["; ".join(_apart(features, c, n_features)) for c in range(n_clusters)],
            "typical_row": membership.argmax(axis=1),
        },
        index=pandas.RangeIndex(n_clusters, name="cluster"),
    )


def _apart(features, c, n_features):
    """The features in which a cluster differs most from all rows, the largest difference first."""
    distances = [
        abs(f.shifts[c]) / f.deviation if f.deviation > 0 and np.isfinite(f.shifts[c]) else 0.0
        for f in features
    ]
    for j in np.argsort(np.negative(distances), kind="stable")[:n_features]:
        if distances[j] == 0.0:
            return
        feature = features[j]
        own, overall = (
            _shown(feature, x) for x in (feature.mean + feature.shifts[c], feature.mean)
        )
        yield f"{feature.name} {own} (all: {overall})"


def _shown(feature, value):
    """A mean or a share; of dates and durations to the day, or to the second within one."""
    if feature.is_level:
        return format(max(value, 0.0), ".0%")  # without the sign of a rounded zero
    if feature.temporal is None:
        return format(value, ".4g")
    unit = "D" if feature.deviation >= 1.0 else "s"
    return str(from_days(np.array([value]), f"{feature.temporal[0]}8[{unit}]")[0])
