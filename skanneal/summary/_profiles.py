"""What sets clusters apart: their means and frequencies, column by column."""

# SPDX-License-Identifier: BSD-3-Clause

from typing import NamedTuple

import numpy as np

_MAX_LEVELS_OF_INTEGERS = 20


class Profile(NamedTuple):
    """What sets clusters apart, feature by feature.

    A feature is a column of numbers, or one level of another column.

    Attributes
    ----------
    values : ndarray of shape (n_clusters, n_features)
        A number's mean in the cluster, less its mean in all rows, in standard deviations of all
        rows; a level's share of the cluster. NaN where a cluster has no observed cell.
    spread : ndarray of shape (n_features,)
        Standard deviation between the clusters over that of all rows, from 0 to 1.
    is_level : ndarray of bool of shape (n_features,)
        Which features are levels.
    names : list of str
        The columns' names, for levels as in "colour = red".
    """

    values: np.ndarray
    spread: np.ndarray
    is_level: np.ndarray
    names: list


def profile_clusters(table, labels, n_clusters):
    """Return the means of numbers and the frequencies of levels in each cluster.

    Parameters
    ----------
    table : Array, PandasFrame, PolarsFrame or Rows
        The rows, as `open_table` gives them.
    labels : ndarray of int of shape (n_rows,)
        From 0 to n_clusters - 1.
    n_clusters : int
        Number of clusters.

    Returns
    -------
    profile : Profile
        One feature per column of numbers, one per level of the other columns, one for a boolean.
        Integers with up to 20 distinct values count as levels.
    """
    values, spread, is_level, names = [], [], [], []
    for j in range(table.shape[1]):
        column = table.column(j)
        name = str(j if table.names is None else table.names[j])
        codes, levels = _levels(column)
        features = [(name, column.values)]
        if levels is not None:
            features = [(f"{name} = {level}", codes == c) for c, level in enumerate(levels)]
        for feature_name, cells in features:
            shifts, mean, deviation = _moments(cells, column.missing, labels, n_clusters)
            scaled = shifts / deviation if deviation > 0 else 0.0 * shifts
            spread.append(_root_mean_square(scaled, labels))
            values.append(scaled if levels is None else np.clip(mean + shifts, 0.0, 1.0))
            is_level.append(levels is not None)
            names.append(feature_name)
    values = np.reshape(values, (len(names), n_clusters)).T
    return Profile(values, np.array(spread), np.array(is_level, dtype=bool), names)


def _levels(column):
    """Return the codes and levels of a column that is shown level by level, else two Nones."""
    if column.levels is not None:
        return column.values, column.levels
    if column.dtype == "float":
        return None, None
    if column.dtype == "boolean":
        return np.where(column.values, 0, 1), [True]  # one level says all: False has the rest
    present = column.values if column.missing is None else column.values[~column.missing]
    levels = np.unique(present)
    if len(levels) > _MAX_LEVELS_OF_INTEGERS:
        return None, None
    return np.searchsorted(levels, column.values), levels.tolist()


def _moments(cells, missing, labels, n_clusters):
    """Return the clusters' means less the overall mean, that mean, and the standard deviation.

    Missing cells are left out.
    """
    cells = cells.astype(np.float64)
    if missing is not None:
        cells, labels = cells[~missing], labels[~missing]
    if not len(cells):
        return np.full(n_clusters, np.nan), np.nan, np.nan
    mean = cells.mean()
    counts = np.bincount(labels, minlength=n_clusters)
    sums = np.bincount(labels, cells - mean, minlength=n_clusters)
    shifts = np.divide(sums, counts, out=np.full(n_clusters, np.nan), where=counts > 0)
    return shifts, mean, cells.std()


def _root_mean_square(shifts, labels):
    return np.sqrt(np.mean(np.nan_to_num(shifts)[labels] ** 2))
