"""The rows of two groups on the line between them: what a valley is looked for in."""

# SPDX-License-Identifier: BSD-3-Clause

from libc.math cimport INFINITY
from libc.stdint cimport int64_t

import numpy as np

cdef double FAR = 0.25      # share of each side's rows, farthest from the other, that are left out
cdef double SAME = 1e-6     # by which equal log odds may differ, in nats


def near_border(const double[::1, :] joints, const int64_t[::1] rows_a, const int64_t[::1] rows_b,
                Py_ssize_t a, Py_ssize_t b):
    """Return the places, in ascending order, of the rows of two groups that are near their border.

    `_cluster_tree.py` says what the line is, and which rows take part.

    Parameters
    ----------
    joints : float64 array of shape (n_rows, n_groups), columns contiguous
        Finite.
    rows_a, rows_b : int64 array
        The rows of each group; neither is empty.
    a, b : int
        The groups' columns.

    Returns
    -------
    places : ndarray of float64 of shape (n_near,)
    """
    cdef Py_ssize_t n = min(rows_a.shape[0], rows_b.shape[0]), n_near = 0, i
    cdef Py_ssize_t n_far = <Py_ssize_t> (FAR * n)
    # log f_a and log f_b, of n rows of a and then of n rows of b
    cdef double[:, ::1] logs = np.empty((2, 2 * n))
    cdef double[::1] place = np.empty(2 * n), near = np.empty(2 * n)
    cdef double[::1] scratch = np.empty(max(rows_a.shape[0], rows_b.shape[0]))
    cdef double drop_a, drop_b, first, last
    with nogil:
        nearest(joints, rows_a, a, b, n, logs[:, :n], scratch)
        nearest(joints, rows_b, b, a, n, logs[::-1, n:], scratch)
        drop_a = median(logs[0, :n], scratch) - median(logs[0, n:], scratch)
        drop_b = median(logs[1, n:], scratch) - median(logs[1, :n], scratch)
        if min(drop_a, drop_b) <= 0.0:
            drop_a = drop_b = 1.0
        for i in range(2 * n):
            place[i] = (logs[0, i] / drop_a - logs[1, i] / drop_b) * min(drop_a, drop_b)
        last = ranked(place[:n], n - 1 - n_far, scratch)
        first = ranked(place[n:], n_far, scratch)
        for i in range(2 * n):
            if first <= place[i] <= last:
                near[n_near] = place[i]
                n_near += 1
    return np.sort(near[:n_near])


def spread_ties(const double[::1] ascending):
    """Return numbers of which equal ones are spread evenly, half way to the nearest other one.

    Levels make log odds that lie on a lattice. A dip test is for densities, and every lattice of
    more than two points looks to it as if it had many modes. Two points alone stay as they are.

    Parameters
    ----------
    ascending : ndarray of float64 of shape (n,)

    Returns
    -------
    spread : ndarray of float64 of shape (n,)
        Ascending.
    """
    cdef Py_ssize_t n = ascending.shape[0], n_points = 0, start, stop, i
    cdef double before, after, width
    out = np.array(ascending)
    cdef double[::1] spread = out
    for i in range(n):
        n_points += is_new(ascending, i)
    if n_points < 3 or n_points == n:
        return out
    stop, before = 0, INFINITY
    while stop < n:
        start, stop = stop, stop + 1
        while stop < n and not is_new(ascending, stop):
            stop += 1
        after = ascending[stop] - ascending[start] if stop < n else INFINITY
        width, before = min(before, after), after
        for i in range(start, stop):
            spread[i] = ascending[start] + ((i - start + 0.5) / (stop - start) - 0.5) * width
    return out


cdef inline bint is_new(const double[::1] ascending, Py_ssize_t i) noexcept nogil:
    """Whether the i-th number differs from the one before."""
    return i == 0 or ascending[i] - ascending[i - 1] > SAME


cdef void nearest(const double[::1, :] joints, const int64_t[::1] rows, Py_ssize_t own,
                  Py_ssize_t other, Py_ssize_t n, double[:, :] out, double[::1] scratch
                  ) noexcept nogil:
    """log f of the group `own` and of the other, in those n of its rows whose log odds are least;
    of equal ones the first."""
    cdef Py_ssize_t i, row, n_equal = n, n_out = 0
    cdef double odds, last
    for i in range(rows.shape[0]):
        scratch[i] = joints[rows[i], own] - joints[rows[i], other]
    last = select(&scratch[0], rows.shape[0], n - 1)
    for i in range(rows.shape[0]):
        n_equal -= joints[rows[i], own] - joints[rows[i], other] < last
    for i in range(rows.shape[0]):
        row = rows[i]
        odds = joints[row, own] - joints[row, other]
        if odds > last or (odds == last and n_equal == 0):
            continue
        n_equal -= odds == last
        out[0, n_out], out[1, n_out] = joints[row, own], joints[row, other]
        n_out += 1


cdef double median(const double[:] values, double[::1] scratch) noexcept nogil:
    cdef Py_ssize_t n = values.shape[0]
    cdef double upper = ranked(values, n // 2, scratch)
    return upper if n % 2 else 0.5 * (ranked(values, n // 2 - 1, scratch) + upper)


cdef double ranked(const double[:] values, Py_ssize_t rank, double[::1] scratch) noexcept nogil:
    """The value that would stand at place `rank` if they were sorted."""
    cdef Py_ssize_t i
    for i in range(values.shape[0]):
        scratch[i] = values[i]
    return select(&scratch[0], values.shape[0], rank)


cdef double select(double *x, Py_ssize_t n, Py_ssize_t rank) noexcept nogil:
    """The same, with the values reordered (Hoare's algorithm)."""
    cdef Py_ssize_t low = 0, high = n - 1, i, j
    cdef double pivot
    while low < high:
        pivot, i, j = x[(low + high) // 2], low, high
        while i <= j:
            while x[i] < pivot:
                i += 1
            while x[j] > pivot:
                j -= 1
            if i <= j:
                x[i], x[j] = x[j], x[i]
                i += 1
                j -= 1
        if rank <= j:
            high = j
        elif rank >= i:
            low = i
        else:
            break
    return x[rank]
