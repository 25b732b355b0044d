"""Labels of a partition: their numbering, and checks of what a user gives."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from numpy.typing import ArrayLike


def relabel(labels: ArrayLike) -> np.ndarray:
    """Number clusters from 0 in order of their first rows.

    Parameters
    ----------
    labels : array-like of int of shape (n_rows,)
        Any integers, one per cluster.

    Returns
    -------
    labels : ndarray of int64 of shape (n_rows,)

    Examples
    --------
    >>> from skanneal.summary import relabel
    >>> relabel([7, 7, 2, 9, 2])
    array([0, 0, 1, 2, 1])
    """
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.int64)
    number[np.argsort(first)] = np.arange(len(first))
    return number[codes]


def rank_clusters(labels: ArrayLike) -> np.ndarray:
    """Number clusters from the largest.

    Parameters
    ----------
    labels : array-like of int of shape (n_rows,)
        Any integers, one per cluster.

    Returns
    -------
    ranks : ndarray of int64 of shape (n_rows,)
        0 in the largest cluster. Among clusters of equal size the one with the earliest row comes
        first.
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


def checked(labels_list):
    """Return the draws' labels as arrays, if they are integers and of one length."""
    labels_list = [np.asarray(labels) for labels in labels_list]
    if not labels_list:
        raise ValueError("labels_list must hold at least one partition.")
    for labels in labels_list:
        if labels.ndim != 1 or len(labels) != len(labels_list[0]):
            raise ValueError("labels_list must hold one-dimensional arrays of one length.")
        if labels.dtype.kind not in "iu" and labels.size:
            raise ValueError(f"labels_list must hold integers, got {labels.dtype}.")
    return labels_list


def checked_weights(draw_weights, n_draws):
    """Return how much each draw counts, equally for None, if the weights are that."""
    if draw_weights is None:
        return np.ones(n_draws)
    weights = np.asarray(draw_weights, dtype=np.float64)
    if weights.shape != (n_draws,) or not (np.all(weights >= 0) and 0 < weights.sum() < np.inf):
        raise ValueError(
            f"draw_weights must hold {n_draws} finite numbers that are not negative, and not all"
            " of them 0."
        )
    return weights
