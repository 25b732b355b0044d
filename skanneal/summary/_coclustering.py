"""How often pairs of rows share a cluster."""

# SPDX-License-Identifier: BSD-3-Clause

from typing import Any

import numpy as np

from ._labels import checked

_MAX_BYTES = 2**30
_BLOCK_CELLS = 2**22  # pairs of rows compared at a time


def coclustering(labels_list: Any, rows: Any = None, others: Any = None) -> np.ndarray:
    """How often each pair of rows shares a cluster.

    Parameters
    ----------
    labels_list : sequence of array-like of int of shape (n_rows,)
        The draws' partitions.
    rows : array-like of int or bool or None, default=None
        Which rows to compare, in which order; None takes all.
    others : array-like of int or bool or None, default=None
        The rows to compare them with; None takes `rows` themselves. A table of many rows is thus
        compared in blocks, each of which fits in memory.

    Returns
    -------
    coclustering : ndarray of shape (n_compared, n_others)
        Shares of the draws, from 0 to 1.

    Raises
    ------
    ValueError
        If `rows` or `others` name rows that there are not, or the result would take more than 1 GiB
        (11,585 rows with each other).

    Examples
    --------
    >>> from skanneal.summary import coclustering
    >>> coclustering([[0, 0, 1, 1], [0, 0, 0, 1]], rows=[0, 1, 2])
    array([[1. , 1. , 0.5],
           [1. , 1. , 0.5],
           [0.5, 0.5, 1. ]])
    """
    labels_list = checked(labels_list)
    compared = _chosen(labels_list, "rows", rows)
    with_these = compared if others is None else _chosen(labels_list, "others", others)
    shape = n, _ = len(compared[0]), len(with_these[0])
    n_bytes = 8 * shape[0] * shape[1]
    if n_bytes > _MAX_BYTES:
        raise ValueError(
            f"The co-clustering of {shape[0]} rows with {shape[1]} would take"
            f" {n_bytes / 2**30:.1f} GiB: name fewer in `rows` and `others`."
        )
    shared = np.zeros(shape)
    step = max(1, _BLOCK_CELLS // max(1, shape[1]))
    for start in range(0, n, step):
        block = slice(start, start + step)
        for one, other in zip(compared, with_these):
            shared[block] += one[block, None] == other[None, :]
        shared[block] /= len(labels_list)
    return shared


def _chosen(labels_list, name, which):
    """The labels of some rows, by their positions or a mask."""
    if which is None:
        return labels_list
    n_rows, at = len(labels_list[0]), np.asarray(which)
    if not at.size:
        at = np.empty(0, dtype=np.intp)  # an empty list is one of floats
    mask = at.dtype.kind == "b" and at.shape == (n_rows,)
    positions = at.dtype.kind in "iu" and at.ndim == 1
    if not mask and not (positions and np.all((at >= -n_rows) & (at < n_rows))):
        raise ValueError(f"{name} must hold positions of the {n_rows} rows, or a mask of them.")
    return [labels[at] for labels in labels_list]
