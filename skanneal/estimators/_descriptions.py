"""What a fit's clusters, or its components, are, in the user's units."""

# SPDX-License-Identifier: BSD-3-Clause

from numbers import Integral
from typing import NamedTuple

import numpy as np
from sklearn.utils._optional_dependencies import check_pandas_support
from sklearn.utils.validation import check_is_fitted

from ..encoding import open_table
from ..encoding._dates import from_days
from ..predictive._clusters import labels_of_draws, some_draws
from ..summary._cut_tree import one_cluster
from ..summary._profiles import cells_of_columns, columns_of, feature_of
from ..summary._sides import probability_above

INTERVAL = (0.025, 0.975)  # of the sizes, over draws
LEVELS, FORMS = ("clusters", "components"), ("short", "long")


class Groups(NamedTuple):
    """The groups of rows that are described.

    Attributes
    ----------
    name : str
    labels : int array of shape (n_rows,)
        -1 for a row that is in none.
    n : int
    partitions : list of int arrays of shape (n_rows,)
        The group of each row in each draw.
    weights : float64 array of shape (n_draws,)
    """

    name: str
    labels: np.ndarray
    n: int
    partitions: list
    weights: np.ndarray

    @classmethod
    def of(cls, estimator, level):
        """Return an estimator's clusters, which may be its components, or its components."""
        clusters, point = estimator._clusters, estimator._point
        labels, of_components = estimator.component_labels_, np.arange(estimator.n_components_)
        if level == "clusters" and clusters is not None:
            labels, of_components = estimator.labels_, clusters.clusters
            draws, weights = clusters.draws, clusters.weights
        else:
            draws, weights = some_draws(*estimator._weighted_draws)
        partitions = list(labels_of_draws(draws, point, of_components))
        return cls(level[:-1], labels, int(of_components.max()) + 1, partitions, weights)


def describe(estimator, X, n_features, level, form):
    """The frame that `describe_clusters` returns."""
    pandas = check_pandas_support("describe_clusters")
    check_is_fitted(estimator)
    for name, value, known in (("level", level, LEVELS), ("form", form, FORMS)):
        if value not in known:
            raise ValueError(f"{name} must be {known[0]!r} or {known[1]!r}, got {value!r}.")
    if not isinstance(n_features, Integral) or n_features < 0:
        raise ValueError(f"n_features must be 0 or a positive integer, got {n_features!r}.")
    table, groups = open_table(X, "X"), Groups.of(estimator, level)
    if table.shape[0] != len(groups.labels):
        raise ValueError(
            f"X must be the training data: it has {table.shape[0]} rows, labels_ "
            f"{len(groups.labels)}."
        )
    if getattr(estimator, "_rows", None) is not None and estimator._training_table(X) is None:
        raise ValueError("X must be the training data: its cells are not those of the fit.")
    pairs = [*columns_of(table)]
    if estimator._encoder is not None:
        pairs += estimator._encoder.parts.columns(table)
    cells = cells_of_columns(pairs, as_levels(estimator))
    if form == "long":
        return _long(pandas, groups, cells)
    features = [feature_of(of, groups.labels, groups.n) for of in cells]
    apart = ["; ".join(_apart(features, c, n_features)) for c in range(groups.n)]
    sizes = [np.bincount(labels, minlength=groups.n) for labels in groups.partitions]
    low, high = np.quantile(sizes, INTERVAL, axis=0)
    return pandas.DataFrame(
        {
            "size": np.bincount(groups.labels[groups.labels >= 0], minlength=groups.n),
            "low": low.round().astype(np.int64),
            "high": high.round().astype(np.int64),
            "apart": apart if groups.n > 1 else [_whole(estimator)],
            "typical_row": _typical_rows(pandas, estimator, X, groups),
        },
        index=pandas.RangeIndex(groups.n, name=groups.name),
    )


def as_levels(estimator):
    """Positions of the columns that a fitted estimator has as levels; of one that reads no columns,
    and has all as numbers, there are none."""
    encoder = getattr(estimator, "_encoder", None)
    return () if encoder is None else [j for j, c in enumerate(encoder.codecs) if c.n_levels]


def _whole(estimator):
    """What there is to say of a cluster that has all rows."""
    asked = getattr(estimator, "n_clusters", None) is not None
    return one_cluster(estimator.n_components_, asked)


def _typical_rows(pandas, estimator, X, groups):
    """The position of the row that is most surely in each group; missing if it has none."""
    if groups.name == "cluster" and estimator._clusters is not None:
        sure = estimator.probabilities_
    else:
        sure = estimator._queries().cluster_probabilities(estimator._encoded(X)).max(axis=1)
    inside = groups.labels == np.arange(groups.n)[:, None]
    rows = pandas.Series(np.where(inside, sure, -1.0).argmax(axis=1))
    return rows if inside.any(axis=1).all() else rows.astype("Int64").where(inside.any(axis=1))


def _apart(features, c, n_features):
    """The features in which a group differs most from all rows, the largest difference first."""
    distances = [np.nan_to_num(abs(feature.differences[c])) for feature in features]
    for j in np.argsort(np.negative(distances), kind="stable")[:n_features]:
        if distances[j] == 0.0:
            return
        feature = features[j]
        name, mean, own = feature.name, feature.mean, feature.mean + feature.shifts[c]
        if feature.other is not None and own < mean:  # say which of two levels is the more frequent
            name, mean, own = f"{feature.column} = {feature.other}", 1.0 - mean, 1.0 - own
        yield f"{name} {_shown(feature, own)} (all: {_shown(feature, mean)})"


def _shown(feature, value):
    """A mean or a share; of dates and durations to the day, or to the second within one."""
    if feature.is_level:
        return format(max(value, 0.0), ".0%")  # without the sign of a rounded zero
    if feature.temporal is None:
        return format(value, ".4g")
    unit = "D" if feature.deviation >= 1.0 else "s"
    return str(from_days(np.array([value]), f"{feature.temporal[0]}8[{unit}]")[0])


def _long(pandas, groups, cells_of_features):
    """A line for each group and feature, in each group the largest difference first."""
    lines = []
    for cells in cells_of_features:
        feature = feature_of(cells, groups.labels, groups.n)
        above = probability_above(
            cells.values, cells.missing, groups.partitions, groups.weights, groups.n
        )
        differences = feature.differences
        side = np.where(differences < 0, 1.0 - above, above)
        values = [_in_units(pandas, feature, feature.mean + shift) for shift in feature.shifts]
        overall = _in_units(pandas, feature, feature.mean)
        named = feature.column, feature.level
        lines += [(c, *named, values[c], overall, differences[c], side[c]) for c in range(groups.n)]
    names = [groups.name, "column", "level", "value", "overall", "difference", "probability"]
    size = np.nan_to_num(np.abs([line[5] for line in lines]), nan=-1.0)
    order = np.lexsort([-size, [line[0] for line in lines]])
    return pandas.DataFrame([lines[i] for i in order], columns=names)


def _in_units(pandas, feature, value):
    """A mean as pandas holds it, dates and durations to the second; a share."""
    if feature.is_level:
        return float(np.clip(value, 0.0, 1.0))
    if feature.temporal is None or np.isnan(value):
        return float(value)
    make = pandas.Timestamp if feature.temporal[0] == "M" else pandas.Timedelta
    return make(from_days(np.array([value]), f"{feature.temporal[0]}8[s]")[0])
