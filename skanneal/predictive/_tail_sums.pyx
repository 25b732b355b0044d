"""Sums over components of standing times tail probability: what `_tail.py` is about, row by row.

A tail costs many times as much as a bound of it, Chernoff's, and few components matter to a row. So
terms are tails where their bound is within NEGLIGIBLE nats of the row's largest bound, and stay at
their bounds elsewhere. Both are kept for the next row: rows of a few columns of levels often have
the same cells.
"""

# SPDX-License-Identifier: BSD-3-Clause

from libc.math cimport INFINITY, exp, expm1, isinf, log
from libc.stdint cimport int64_t

import numpy as np

from scipy.special.cython_special cimport betainc, gammaincc

cdef double NEGLIGIBLE = 8.0    # nats below the largest bound of a row's terms
cdef double UNDERFLOW = 1e-290  # a tail below cannot be told from 0, and stays at its bound
cdef double NOTHING = 50.0      # nats below the largest term: too small to add


def tail_sums(const double[:, :] standing, const int64_t[::1] case, const double[:, :] surprisals,
              const double[::1] least, const double[::1] scale, const double[::1] a,
              const double[::1] b, const int64_t[::1] rows, double[::1] out):
    """Write log sum_k exp(standing_k) P(X_k > x_k) of some rows to `out`, where x_k is
    (surprisal_k - least_k) / scale_k, at least 0.

    Parameters
    ----------
    standing : float64 array of shape (n_cases, K)
    case : int64 array of shape (n_rows,)
        Which of them is each row's.
    surprisals : float64 array of shape (n_rows, K)
    least, scale : float64 array of shape (K,)
    a, b : float64 array of shape (K,)
        The law of X_k: exp(-X_k) is Beta(a_k, b_k); or, where b_k is 0, X_k is Gamma(a_k, 1); or,
        where a_k is 0 too, X_k is exponential.
    rows : int64 array
        Best with rows of equal surprisals one after another.
    out : float64 array of shape (n_rows,)
    """
    cdef Py_ssize_t n_terms = least.shape[0], r, i, k
    cdef double[::1] terms = np.empty(n_terms), x = np.full(n_terms, -1.0)
    cdef double[::1] bounds = np.empty(n_terms), log_tails = np.empty(n_terms)
    cdef char[::1] known = np.zeros(n_terms, dtype=np.int8)
    cdef double largest, here
    with nogil:
        for r in range(rows.shape[0]):
            i = rows[r]
            largest = -INFINITY
            for k in range(n_terms):
                here = max(surprisals[i, k] - least[k], 0.0) / scale[k]
                if here != x[k]:
                    x[k], bounds[k], known[k] = here, log_bound(here, a[k], b[k]), False
                terms[k] = standing[case[i], k] + bounds[k]
                largest = max(largest, terms[k])
            for k in range(n_terms):
                if terms[k] >= largest - NEGLIGIBLE:
                    if not known[k]:
                        log_tails[k], known[k] = log_tail(x[k], a[k], b[k], bounds[k]), True
                    terms[k] = standing[case[i], k] + log_tails[k]
            out[i] = log_sum(terms)


cdef inline double log_tail(double x, double a, double b, double bound) noexcept nogil:
    """log P(X > x); the bound if it cannot be told from 0."""
    cdef double tail
    if isinf(x) or a == 0.0:
        return bound
    tail = betainc(a, b, exp(-x)) if b > 0.0 else gammaincc(a, x)
    return log(tail) if tail > UNDERFLOW else bound


cdef inline double log_bound(double x, double a, double b) noexcept nogil:
    """Chernoff's bound of log P(X > x), within a few nats of it far out; of an exponential law the
    value itself. A beta variable is G_a / (G_a + G_b) of gamma variables."""
    cdef double log_mean
    if isinf(x) or a == 0.0:
        return -x
    if b == 0.0:
        return a - x + a * log(x / a) if x > a else 0.0
    log_mean = log(a / (a + b))
    if -x >= log_mean:
        return 0.0
    return a * (-x - log_mean) + b * (log(-expm1(-x)) - log(b / (a + b)))


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
