"""Draws of features, on a NumPy bit generator."""

from libc.math cimport exp, log
from numpy.random cimport bitgen_t

import numpy as np

from .._random cimport bitgen, standard_gamma, uniform


def log_dirichlet(const double[:, ::1] counts, const double[::1] pseudo_counts, bit_generator):
    """For each row of counts, the logarithm of a Dirichlet(pseudo_counts + counts) vector.

    Gamma variates of small shapes a vanish in float64, their logarithms do not: they are drawn as
    log Gamma(a + 1) + log(U) / a.

    Parameters
    ----------
    counts : float64 array of shape (n, at least D)
    pseudo_counts : float64 array of shape (D,)
    bit_generator : numpy.random.BitGenerator

    Returns
    -------
    ndarray of shape (n, D)
    """
    cdef bitgen_t *rng = bitgen(bit_generator)
    cdef Py_ssize_t K = counts.shape[0], D = pseudo_counts.shape[0], k, j
    cdef double[:, ::1] out = np.empty((K, D))
    cdef double a, largest, total
    with nogil:
        for k in range(K):
            for j in range(D):
                a = pseudo_counts[j] + counts[k, j]
                if a < 1.0:
                    out[k, j] = log(standard_gamma(rng, a + 1.0)) + log(1.0 - uniform(rng)) / a
                else:
                    out[k, j] = log(standard_gamma(rng, a))
            largest = out[k, 0]
            for j in range(1, D):
                largest = max(largest, out[k, j])
            total = 0.0
            for j in range(D):
                total += exp(out[k, j] - largest)
            largest += log(total)
            for j in range(D):
                out[k, j] -= largest
    return np.asarray(out)
