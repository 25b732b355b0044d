"""Two normal laws of numbers that are counted in bins, by the EM algorithm."""

# SPDX-License-Identifier: BSD-3-Clause

from libc.math cimport M_PI, exp, log, sqrt

import numpy as np

cdef double TINY = 1e-12    # added to what is divided by, and to the logarithm's argument


def log_two_normals(const double[::1] counts, const double[::1] of_first,
                    const double[::1] middles, double width, Py_ssize_t n_steps):
    """Return the log likelihood of two normal laws after some steps of the EM algorithm.

    Parameters
    ----------
    counts : float64 array of shape (n_bins,)
        How many numbers are in each bin.
    of_first : float64 array of shape (n_bins,)
        Which part of these is the first law's to begin with.
    middles : float64 array of shape (n_bins,)
        Of the bins.
    width : float
        Of each bin.
    n_steps : int
        One or more.

    Returns
    -------
    log_likelihood : float
    """
    cdef Py_ssize_t n_bins = counts.shape[0], law, i
    cdef double size, mean, variance, scale, out = 0.0, n = 0.0
    cdef double[:, ::1] part = np.empty((2, n_bins)), bin = np.empty((2, n_bins))
    cdef double[::1] total = np.empty(n_bins)
    with nogil:
        for i in range(n_bins):
            part[0, i], part[1, i] = of_first[i], counts[i] - of_first[i]
            n += counts[i]
        for _ in range(n_steps):
            total[:] = TINY
            for law in range(2):
                size, mean, variance = TINY, 0.0, 0.0
                for i in range(n_bins):
                    size += part[law, i]
                    mean += part[law, i] * middles[i]
                mean /= size
                for i in range(n_bins):
                    variance += part[law, i] * (middles[i] - mean) ** 2
                variance = variance / size + width ** 2 / 12  # and within a bin
                scale = size * width / sqrt(2 * M_PI * variance)
                for i in range(n_bins):
                    bin[law, i] = scale * exp(-0.5 * (middles[i] - mean) ** 2 / variance)
                    total[i] += bin[law, i]
            for law in range(2):
                for i in range(n_bins):
                    part[law, i] = bin[law, i] * counts[i] / total[i]
        for i in range(n_bins):
            if counts[i] > 0.0:
                out += counts[i] * log(total[i] / n)
    return out
