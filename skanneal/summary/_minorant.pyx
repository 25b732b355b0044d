"""How far a distribution function lies above its greatest convex minorant."""

# SPDX-License-Identifier: BSD-3-Clause

from libc.stdint cimport int64_t

import numpy as np


def distance_from_minorant(const double[:] points, const double[:] below, const double[:] above):
    """Return max(above - m), where m is the greatest convex function below `below`.

    Parameters
    ----------
    points : ndarray of float64 of shape (n,)
        Ascending, n > 0.
    below, above : ndarray of float64 of shape (n,)
        The distribution function to the left of each point, and at it.

    Returns
    -------
    distance : float
    """
    cdef Py_ssize_t n = points.shape[0], i, k, left, right, n_corners = 0
    cdef int64_t[::1] corner = np.empty(n, dtype=np.int64)  # of m, a polygon
    cdef double slope, height, distance = above[n - 1] - below[n - 1]
    with nogil:
        for i in range(n):
            while n_corners > 1:
                left, right = corner[n_corners - 2], corner[n_corners - 1]
                slope = (below[right] - below[left]) * (points[i] - points[left])
                if slope < (below[i] - below[left]) * (points[right] - points[left]):
                    break
                n_corners -= 1
            corner[n_corners] = i
            n_corners += 1
        for k in range(n_corners - 1):
            left, right = corner[k], corner[k + 1]
            slope = (below[right] - below[left]) / (points[right] - points[left])
            for i in range(left, right):
                height = below[left] + slope * (points[i] - points[left])
                distance = max(distance, above[i] - height)
    return distance
