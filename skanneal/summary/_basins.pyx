"""Basins of a density: which rows are about which of its peaks.

Rows are joined by edges, along which their neighbours are. Of an edge is known how low the density
is on the way along it. Edges are taken in falling order of that; where one joins two groups of
rows, these are about two peaks with a saddle between them, the density at the edge. Whether the
lower peak is one is judged by its excess mass (Mueller and Sawitzki 1991, "Excess mass estimates
and tests for multimodality", Journal of the American Statistical Association 86): how many rows a
group has above what a density as high as the saddle would give it,

    E = sum_i (1 - s / f_i),

since of rows that are drawn from f each stands for a volume of 1 / (n f_i). In one dimension half
of the excess mass that a second peak adds is the dip of the dip test. So the evidence is that of a
dip of E / (2 m) of m rows, with m the rows of both groups, as many of the larger as of the smaller
and E the smaller of both. Peaks with less are joined.
"""

# SPDX-License-Identifier: BSD-3-Clause

from libc.math cimport exp, log, sqrt
from libc.stdint cimport int64_t

import numpy as np


def basins(log_densities, first, second, log_heights, double least):
    """Return in which basin each row is.

    Parameters
    ----------
    log_densities : array-like of shape (n_rows,)
    first, second : array-like of int of shape (n_edges,)
        The rows that an edge joins.
    log_heights : array-like of shape (n_edges,)
        Log of the least density along each edge; no greater than that of its rows.
    least : float
        The least sqrt(m) dip of a peak.

    Returns
    -------
    labels : ndarray of int64 of shape (n_rows,)
        From 0. Rows that no way of edges joins are in different basins.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.summary._basins import basins
    >>> log_densities = -8.0 * (np.r_[np.linspace(-1, 1, 41), np.linspace(-1, 1, 41)]) ** 2
    >>> first, second = np.arange(81), np.arange(1, 82)
    >>> heights = np.minimum(log_densities[first], log_densities[second])
    >>> np.bincount(basins(log_densities, first, second, heights, 0.4))
    array([41, 41])
    """
    cdef double[::1] logs = np.ascontiguousarray(log_densities, dtype=np.float64)
    cdef const double[::1] height = np.ascontiguousarray(log_heights, dtype=np.float64)
    cdef const int64_t[::1] one = np.ascontiguousarray(first, dtype=np.int64)
    cdef const int64_t[::1] other = np.ascontiguousarray(second, dtype=np.int64)
    cdef const int64_t[::1] order = np.argsort(-np.asarray(height), kind="stable")
    cdef Py_ssize_t n = logs.shape[0], i
    cdef int64_t[::1] parent = np.arange(n), size = np.ones(n, dtype=np.int64)
    cdef double[::1] volume = -np.asarray(logs)  # log of the sum of 1 / f over a group
    cdef int64_t a, b
    cdef double s, excess
    apart = {}  # of a group: those that it was found to be apart from
    for i in range(order.shape[0]):
        a, b = root(parent, one[order[i]]), root(parent, other[order[i]])
        if a == b or (a in apart and b in apart[a]):
            continue
        s = height[order[i]]
        excess = min(size[a] - exp(s + volume[a]), size[b] - exp(s + volume[b]))
        if excess > least * sqrt(8.0 * min(size[a], size[b])):
            apart.setdefault(a, set()).add(b)
            apart.setdefault(b, set()).add(a)
            continue
        if size[a] < size[b]:
            a, b = b, a
        parent[b] = a
        size[a] += size[b]
        volume[a] = max(volume[a], volume[b]) + log(1.0 + exp(-abs(volume[a] - volume[b])))
        for of in apart.pop(b, ()):
            apart[of].discard(b)
            if of != a:
                apart[of].add(a)
                apart.setdefault(a, set()).add(of)
    return np.unique([root(parent, i) for i in range(n)], return_inverse=True)[1]


cdef int64_t root(int64_t[::1] parent, int64_t i) noexcept nogil:
    """The number of the group of a row."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i
