"""Which terms of a row's sum of tail probabilities count: the pass over all of them."""

# SPDX-License-Identifier: BSD-3-Clause

from libc.math cimport INFINITY, isinf, log
from libc.stdint cimport int64_t

import numpy as np


def gamma_bounds(const double[:, :] standing, const double[:, :] excess, const double[::1] shape,
                 const double[::1] scale, const unsigned char[::1] spread, double negligible):
    """Bounds of the logs of terms under gamma laws, and which of them count.

    The bound of a tail probability is Chernoff's, P(G > x) <= exp(a - x) (x / a)^a beyond the mean
    a of a gamma variable of scale 1; before it, 1. A law without spread has all at 0.

    Parameters
    ----------
    standing, excess : float64 array of shape (n_rows, n_terms)
    shape, scale : float64 array of shape (n_terms,)
    spread : uint8 array of shape (n_terms,)
        Whether a law has any.
    negligible : float
        A term counts if its bound is at most so much below the largest of its row.

    Returns
    -------
    bounds : ndarray of shape (n_rows, n_terms)
    rows, terms : ndarray of int64
        Of the terms that count and have a spread.
    """
    cdef Py_ssize_t n_rows = excess.shape[0], n_terms = excess.shape[1], i, k, n = 0
    cdef double[:, ::1] bounds = np.empty((n_rows, n_terms))
    cdef int64_t[::1] rows = np.empty(n_rows * n_terms, dtype=np.int64)
    cdef int64_t[::1] terms = np.empty(n_rows * n_terms, dtype=np.int64)
    cdef double x, bound, largest
    with nogil:
        for i in range(n_rows):
            largest = -INFINITY
            for k in range(n_terms):
                bound = standing[i, k]
                if not spread[k]:
                    if excess[i, k] > 1e-6:
                        bound = -INFINITY
                elif excess[i, k] > shape[k] * scale[k]:
                    x = excess[i, k] / scale[k]
                    bound += -INFINITY if isinf(x) else shape[k] - x + shape[k] * log(x / shape[k])
                bounds[i, k] = bound
                largest = max(largest, bound)
            for k in range(n_terms):
                if spread[k] and bounds[i, k] >= largest - negligible:
                    rows[n], terms[n] = i, k
                    n += 1
    return np.asarray(bounds), np.asarray(rows[:n]), np.asarray(terms[:n])
