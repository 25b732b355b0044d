"""How often pairs of rows share a cluster."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ._labels import checked

_MAX_BYTES = 2**30
_BLOCK_CELLS = 2**22  # pairs of rows compared at a time


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
    if 8 * n * n > _MAX_BYTES:
        raise ValueError(
            f"The co-clustering of {n} rows would take {8 * n * n / 2**30:.1f} GiB: name fewer in"
            " `rows`."
        )
    shared = np.zeros((n, n))
    step = max(1, _BLOCK_CELLS // max(1, n))
    for start in range(0, n, step):
        block = slice(start, start + step)
        for labels in labels_list:
            shared[block] += labels[block, None] == labels[None, :]
        shared[block] /= len(labels_list)
    return shared
