"""What sets clusters apart: their means and frequencies, column by column."""

# SPDX-License-Identifier: BSD-3-Clause

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike


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


def profile_clusters(
    table: Any, labels: ArrayLike, n_clusters: int | None, as_levels: Any = ()
) -> Any:
    """Return the means of numbers and the frequencies of levels in each cluster.

    Parameters
    ----------
    table : Array, PandasFrame, PolarsFrame or Rows
        The rows, as `open_table` gives them.
    labels : ndarray of int of shape (n_rows,)
        From 0 to n_clusters - 1.
    n_clusters : int
        Number of clusters.
    as_levels : collection of int, default=()
        Positions of the columns of numbers that are shown level by level, as all columns are that
        hold no numbers.

    Returns
    -------
    profile : Profile
        One feature per column of numbers, one per level of the other columns; of two levels only
        that which is last by name, since the other has the rest.
    """
    cells = cells_of_columns(columns_of(table), as_levels)
    features = [feature_of(each, labels, n_clusters) for each in cells]
    values, spread = [], []
    for feature in features:
        scaled, shares = feature.differences, feature.mean + feature.shifts
        spread.append(_root_mean_square(scaled, labels))
        values.append(np.clip(shares, 0.0, 1.0) if feature.is_level else scaled)
    values = np.reshape(values, (len(features), n_clusters)).T
    is_level = np.array([feature.is_level for feature in features], dtype=bool)
    return Profile(values, np.array(spread), is_level, [feature.name for feature in features])


class Feature(NamedTuple):
    """A column of numbers, or one level of another column, in the clusters and in all rows.

    Attributes
    ----------
    column : str
    level : object
        None of a number.
    other : object
        Of a column of two levels the other one, which has the rest; else None.
    shifts : ndarray of shape (n_clusters,)
        Means, or shares, less that of all rows; NaN where a cluster has no observed cell.
    mean, deviation : float
        Of all rows.
    temporal : str or None
        Of dates and durations, whose numbers are days, their dtype.
    """

    column: str
    level: object
    other: object
    shifts: np.ndarray
    mean: float
    deviation: float
    temporal: str | None = None

    @property
    def is_level(self):
        return self.level is not None

    @property
    def name(self):
        return f"{self.column} = {self.level}" if self.is_level else self.column

    @property
    def differences(self):
        """`shifts` in standard deviations; 0 in a column without any."""
        return self.shifts / self.deviation if self.deviation > 0 else 0.0 * self.shifts


class Cells(NamedTuple):
    """The cells that a Feature is the mean of: numbers, or whether they are of a level."""

    column: str
    level: object
    other: object
    values: np.ndarray
    missing: np.ndarray | None
    temporal: str | None


def columns_of(table):
    """The pairs (name, Column) of a table, as `open_table` gives it."""
    names = range(table.shape[1]) if table.names is None else table.names
    return ((str(name), table.column(j)) for j, name in enumerate(names))


def feature_of(cells, labels, n_clusters):
    """Return the Feature of Cells."""
    law = _moments(cells.values, cells.missing, labels, n_clusters)
    return Feature(cells.column, cells.level, cells.other, *law, cells.temporal)


def cells_of_columns(pairs, as_levels):
    """Yield the Cells of (name, Column) pairs: of two levels only that which is last by name.

    The columns of numbers at the positions `as_levels` are shown level by level, too.
    """
    for j, (name, column) in enumerate(pairs):
        codes, levels = _levels(column, j in as_levels)
        if levels is None:
            yield Cells(name, None, None, column.values, column.missing, column.temporal)
            continue
        shown, other = range(len(levels)), None
        if len(levels) == 2:
            shown = [max(shown, key=lambda c: str(levels[c]))]
            other = levels[1 - shown[0]]
        for c in shown:
            yield Cells(name, levels[c], other, codes == c, column.missing, None)


def _levels(column, numbers_too):
    """Return the codes and levels of a column that is shown level by level, else two Nones."""
    if column.levels is not None:
        return column.values, column.levels
    if column.dtype == "boolean":
        return column.values.astype(np.int8), [False, True]
    if not numbers_too:
        return None, None
    present = column.values if column.missing is None else column.values[~column.missing]
    levels = np.unique(present)
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
    mean, inside = cells.mean(), labels >= 0
    counts = np.bincount(labels[inside], minlength=n_clusters)
    sums = np.bincount(labels[inside], (cells - mean)[inside], minlength=n_clusters)
    shifts = np.divide(sums, counts, out=np.full(n_clusters, np.nan), where=counts > 0)
    shifts[counts == len(cells)] = 0.0  # exactly, where all rows are
    return shifts, mean, cells.std()


def _root_mean_square(shifts, labels):
    return np.sqrt(np.mean(np.nan_to_num(shifts)[labels] ** 2))
