"""Sums over components of standing times tail probability: what `_tail.py` is about, row by row.

A tail costs many times as much as a bound of it, Chernoff's, and few components matter to a row. So
terms are tails where their bound is within NEGLIGIBLE nats of the row's largest bound, and stay at
their bounds elsewhere.
"""

# SPDX-License-Identifier: BSD-3-Clause

from libc.math cimport INFINITY, exp, expm1, isinf, log
from libc.stdint cimport int64_t

import numpy as np

from scipy.special.cython_special cimport betainc, gammaincc

cdef double NEGLIGIBLE = 8.0    # nats below the largest bound of a row's terms
cdef double UNDERFLOW = 1e-290  # a tail below cannot be told from 0, and stays at its bound
cdef double NOTHING = 50.0      # nats below the largest term: too small to add


def gamma_sums(const double[:, :] standing, const int64_t[::1] case, const double[:, :] surprisals,
               const double[::1] least, const double[::1] shape, const double[::1] scale,
               const int64_t[::1] rows, double[::1] out):
    """Write log sum_k exp(standing_k) P(G_k > surprisal_k - least_k) of some rows to `out`.

    Parameters
    ----------
    standing : float64 array of shape (n_cases, K)
    case : int64 array of shape (n_rows,)
        Which of them is each row's.
    surprisals : float64 array of shape (n_rows, K)
    least, shape, scale : float64 array of shape (K,)
        G_k has a gamma law; a shape of 0 stands for a law without spread, of scale 1, whose tail
        falls as exp(-x).
    rows : int64 array
    out : float64 array of shape (n_rows,)
    """
    cdef Py_ssize_t n_terms = shape.shape[0], r, i, k
    cdef double[::1] terms = np.empty(n_terms), x = np.empty(n_terms)
    cdef double largest, tail
    with nogil:
        for r in range(rows.shape[0]):
            i = rows[r]
            largest = -INFINITY
            for k in range(n_terms):
                x[k] = max(surprisals[i, k] - least[k], 0.0) / scale[k]
                terms[k] = standing[case[i], k] + gamma_bound(x[k], shape[k])
                largest = max(largest, terms[k])
            for k in range(n_terms):
                if shape[k] > 0.0 and terms[k] >= largest - NEGLIGIBLE and not isinf(x[k]):
                    tail = gammaincc(shape[k], x[k])
                    if tail > UNDERFLOW:
                        terms[k] = standing[case[i], k] + log(tail)
            out[i] = log_sum(terms)


def beta_sums(const double[:, :] standing, const int64_t[::1] case, const double[:, :] surprisals,
              const double[::1] least, const double[::1] a, const double[::1] b,
              const double[::1] h, const int64_t[::1] rows, double[::1] out):
    """Write log sum_k exp(standing_k) P(-h_k log B_k > surprisal_k - least_k) to `out`, B_k of a
    beta law with a_k and b_k; the rest as in `gamma_sums`."""
    cdef Py_ssize_t n_terms = a.shape[0], r, i, k
    cdef double[::1] terms = np.empty(n_terms), log_x = np.empty(n_terms)
    cdef double largest, tail
    with nogil:
        for r in range(rows.shape[0]):
            i = rows[r]
            largest = -INFINITY
            for k in range(n_terms):
                log_x[k] = -max(surprisals[i, k] - least[k], 0.0) / h[k]
                terms[k] = standing[case[i], k] + beta_bound(log_x[k], a[k], b[k])
                largest = max(largest, terms[k])
            for k in range(n_terms):
                if terms[k] >= largest - NEGLIGIBLE and not isinf(log_x[k]):
                    tail = betainc(a[k], b[k], exp(log_x[k]))
                    if tail > UNDERFLOW:
                        terms[k] = standing[case[i], k] + log(tail)
            out[i] = log_sum(terms)


cpdef double gamma_bound(double x, double shape) noexcept nogil:
    """Chernoff's bound of log P(G > x), G of a gamma law of scale 1; the tail itself of a law
    without spread, whose shape is 0. Far out it is within a few nats of the tail."""
    if isinf(x) or shape == 0.0:
        return -x
    return shape - x + shape * log(x / shape) if x > shape else 0.0


cpdef double beta_bound(double log_x, double a, double b) noexcept nogil:
    """The same of log P(G_a / (G_a + G_b) < x) for gamma variables."""
    cdef double log_mean = log(a / (a + b))
    if log_x >= log_mean:
        return 0.0
    return a * (log_x - log_mean) + b * (log(-expm1(log_x)) - log(b / (a + b)))


cdef double log_sum(const double[::1] terms) noexcept nogil:
    cdef double largest = -INFINITY, total = 0.0
    cdef Py_ssize_t k
    for k in range(terms.shape[0]):
        largest = max(largest, terms[k])
    if isinf(largest):
        return largest
    for k in range(terms.shape[0]):
        if terms[k] > largest - NOTHING:
            total += exp(terms[k] - largest)
    return log(total) + largest
