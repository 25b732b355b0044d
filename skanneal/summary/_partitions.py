"""From the draws' partitions of the rows to one partition, and to co-clustering frequencies."""

# SPDX-License-Identifier: BSD-3-Clause

from typing import NamedTuple

import numpy as np

from ._losses import LOSSES, checked, expected_loss, minimise, relabel

__all__ = [
    "POINT_ESTIMATES",
    "coclustering",
    "expected_binder",
    "expected_vi",
    "point_estimate",
    "profile_clusters",
    "rank_clusters",
    "relabel",
]

POINT_ESTIMATES = ("map", *LOSSES)

_MAX_COCLUSTERING_BYTES = 2**30
_COCLUSTERING_BLOCK = 2**22  # cells compared at a time
_MAX_LEVELS_OF_INTEGERS = 20


def point_estimate(labels_list, log_joints=None, method="map"):
    """One partition that stands for all draws.

    Parameters
    ----------
    labels_list : sequence of array-like of int of shape (n_rows,)
        The draws' partitions, of all chains.
    log_joints : array-like of shape (n_draws,) or None, default=None
        Log joint densities of the draws; "map" needs them.
    method : {"map", "vi", "binder"}, default="map"
        The draw with the highest log joint density, or the partition found to have the least
        expected variation of information or Binder loss (Wade and Ghahramani 2018).

    Returns
    -------
    labels : ndarray of int64 of shape (n_rows,)
        Contiguous from 0, in order of first appearance.

    Raises
    ------
    ValueError
        If `method` is unknown, there are no draws, their lengths differ, or "map" lacks log joint
        densities.

    Examples
    --------
    >>> from skanneal.summary import point_estimate
    >>> draws = [[0, 0, 1, 1, 1], [0, 0, 1, 1, 2], [3, 3, 3, 1, 1]]
    >>> point_estimate(draws, method="vi")
    array([0, 0, 1, 1, 1])
    >>> point_estimate(draws, [-7.5, -7.9, -7.2], method="map")
    array([0, 0, 0, 1, 1])
    """
    if method not in POINT_ESTIMATES:
        raise ValueError(f"method must be one of {POINT_ESTIMATES}, got {method!r}.")
    if method == "map":
        return relabel(_most_probable(labels_list, log_joints))
    return minimise(labels_list, LOSSES[method])


def expected_vi(labels, labels_list):
    """Mean variation of information between a partition and the draws.

    Parameters
    ----------
    labels : array-like of int of shape (n_rows,)
        Any partition of the rows.
    labels_list : sequence of array-like of int of shape (n_rows,)
        The draws' partitions.

    Returns
    -------
    expected_vi : float
        In nats.

    Examples
    --------
    >>> from skanneal.summary import expected_vi
    >>> round(expected_vi([0, 0, 1, 1], [[5, 5, 3, 3], [0, 0, 0, 0]]), 4)
    0.3466
    """
    return expected_loss(labels, labels_list, LOSSES["vi"])


def expected_binder(labels, labels_list):
    """Mean Binder loss between a partition and the draws.

    Parameters
    ----------
    labels : array-like of int of shape (n_rows,)
        Any partition of the rows.
    labels_list : sequence of array-like of int of shape (n_rows,)
        The draws' partitions.

    Returns
    -------
    expected_binder : float
        Share of the ordered pairs of rows on which the two disagree, from 0 to 1.

    Examples
    --------
    >>> from skanneal.summary import expected_binder
    >>> expected_binder([0, 0, 1, 1], [[5, 5, 3, 3], [0, 0, 0, 0]])
    0.25
    """
    return expected_loss(labels, labels_list, LOSSES["binder"])


def coclustering(labels_list, rows=None):
    """How often each pair of rows shares a cluster.

    Parameters
    ----------
    labels_list : sequence of array-like of int of shape (n_rows,)
        The draws' partitions.
    rows : array-like of int or bool or None, default=None
        Which rows to compare, in which order; None takes all.

    Returns
    -------
    coclustering : ndarray of shape (n_compared, n_compared)
        Shares of the draws, from 0 to 1.

    Raises
    ------
    ValueError
        If the result would take more than 1 GiB (11,585 rows).

    Examples
    --------
    >>> from skanneal.summary import coclustering
    >>> coclustering([[0, 0, 1, 1], [0, 0, 0, 1]], rows=[0, 1, 2])
    array([[1. , 1. , 0.5],
           [1. , 1. , 0.5],
           [0.5, 0.5, 1. ]])
    """
    labels_list = checked(labels_list)
    if rows is not None:
        labels_list = [labels[np.asarray(rows)] for labels in labels_list]
    n = len(labels_list[0])
    if 8 * n * n > _MAX_COCLUSTERING_BYTES:
        raise ValueError(
            f"The co-clustering of {n} rows would take {8 * n * n / 2**30:.1f} GiB: name fewer in"
            " `rows`."
        )
    shared = np.zeros((n, n))
    step = max(1, _COCLUSTERING_BLOCK // max(1, n))
    for start in range(0, n, step):
        block = slice(start, start + step)
        for labels in labels_list:
            shared[block] += labels[block, None] == labels[None, :]
        shared[block] /= len(labels_list)
    return shared


def rank_clusters(labels):
    """Number clusters from the largest.

    Parameters
    ----------
    labels : array-like of int of shape (n_rows,)
        Any integers, one per cluster.

    Returns
    -------
    ranks : ndarray of int64 of shape (n_rows,)
        0 in the largest cluster; of equals the one with the earliest row comes first.
    sizes : ndarray of int64 of shape (n_clusters,)
        Not increasing.

    Examples
    --------
    >>> from skanneal.summary import rank_clusters
    >>> rank_clusters([0, 5, 5, 5, 2])
    (array([1, 0, 0, 0, 2]), array([3, 1, 1]))
    """
    codes = relabel(labels)
    sizes = np.bincount(codes)
    order = np.argsort(-sizes, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[codes], sizes[order]


class Profile(NamedTuple):
    """What sets clusters apart, feature by feature; a feature is a number or one level of a column.

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
    """Means of numbers and frequencies of levels by cluster.

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
    """Codes and levels of a column to be shown level by level, else None and None."""
    if column.levels is not None:
        return column.values, column.levels
    if column.dtype == "float":
        return None, None
    if column.dtype == "boolean":
        return np.where(column.values, 0, 1), [True]  # the share of False is the rest
    present = column.values if column.missing is None else column.values[~column.missing]
    levels = np.unique(present)
    if len(levels) > _MAX_LEVELS_OF_INTEGERS:
        return None, None
    return np.searchsorted(levels, column.values), levels.tolist()


def _moments(cells, missing, labels, n_clusters):
    """Cluster means less the overall mean, that mean, the standard deviation: observed cells."""
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


def _most_probable(labels_list, log_joints):
    labels_list = checked(labels_list)
    log_joints = np.asarray([] if log_joints is None else log_joints, dtype=np.float64)
    if log_joints.shape != (len(labels_list),):
        raise ValueError(
            f"log_joints must hold one number per draw: {len(labels_list)} draws,"
            f" {log_joints.size} numbers."
        )
    if np.isnan(log_joints).all():
        raise ValueError("log_joints are all NaN.")
    return labels_list[np.nanargmax(log_joints)]
