"""How far a distribution function is from a unimodal one: the search below the dip test."""

# SPDX-License-Identifier: BSD-3-Clause

from libc.stdint cimport int64_t

import numpy as np


def least_distance(const double[::1] ascending):
    """Return the least distance of numbers from a unimodal distribution, as `_dip.py` defines it.

    Parameters
    ----------
    ascending : ndarray of float64 of shape (n,)
        The numbers in ascending order, n > 0. Equal ones are allowed.

    Returns
    -------
    distance : float
    """
    cdef Py_ssize_t n = ascending.shape[0], i, last = -1
    # of each point: where it is, and the distribution function to its left and at it; then the
    # same of the numbers with their signs changed
    cdef double[:, ::1] forward = np.empty((3, n)), backward = np.empty((3, n))
    cdef int64_t[::1] corner = np.empty(n, dtype=np.int64)
    cdef Py_ssize_t first = 0, middle
    cdef double distance
    with nogil:
        for i in range(n):
            if i == 0 or ascending[i] > ascending[i - 1]:
                last += 1
                forward[0, last] = ascending[i]
                forward[1, last] = <double>i / n
            forward[2, last] = <double>(i + 1) / n
        for i in range(last + 1):
            backward[0, i] = -forward[0, last - i]
            backward[1, i] = 1.0 - forward[2, last - i]
            backward[2, i] = 1.0 - forward[1, last - i]
        n = last + 1
        while last - first > 1:
            middle = (first + last) // 2
            if _from_minorant(forward, middle + 1, corner) < (
                _from_minorant(backward, n - middle, corner)
            ):
                first = middle
            else:
                last = middle
        distance = _of_mode(forward, backward, n, first, corner)
        distance = min(distance, _of_mode(forward, backward, n, last, corner))
    return distance


cdef double _of_mode(double[:, ::1] forward, double[:, ::1] backward, Py_ssize_t n, Py_ssize_t mode,
                     int64_t[::1] corner) noexcept nogil:
    """The distance if the mode is at this point."""
    return 0.5 * max(_from_minorant(forward, mode + 1, corner),
                     _from_minorant(backward, n - mode, corner))


cdef double _from_minorant(double[:, ::1] of, Py_ssize_t n, int64_t[::1] corner) noexcept nogil:
    """Return max(above - m) over the first n points, m the greatest convex function below `below`.

    `of` holds the points, and the distribution function below and above each step."""
    cdef Py_ssize_t i, k, left, right, n_corners = 0
    cdef double slope, height, distance = of[2, n - 1] - of[1, n - 1]
    for i in range(n):
        while n_corners > 1:  # m is a polygon
            left, right = corner[n_corners - 2], corner[n_corners - 1]
            slope = (of[1, right] - of[1, left]) * (of[0, i] - of[0, left])
            if slope < (of[1, i] - of[1, left]) * (of[0, right] - of[0, left]):
                break
            n_corners -= 1
        corner[n_corners] = i
        n_corners += 1
    for k in range(n_corners - 1):
        left, right = corner[k], corner[k + 1]
        slope = (of[1, right] - of[1, left]) / (of[0, right] - of[0, left])
        for i in range(left, right):
            height = of[1, left] + slope * (of[0, i] - of[0, left])
            distance = max(distance, of[2, i] - height)
    return distance
