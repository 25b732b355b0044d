"""Draws for priors written in Python, by the package's own samplers."""

from numpy.random cimport bitgen_t

import numpy as np

from .._native._random cimport bitgen, standard_gamma, standard_normal


def standard_normals(bit_generator, Py_ssize_t n):
    """So many standard normal numbers from a bit generator."""
    cdef bitgen_t *rng = bitgen(bit_generator)
    drawn = np.empty(n)
    cdef double[::1] out = drawn
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = standard_normal(rng)
    return drawn


def standard_gammas(bit_generator, shapes):
    """Gamma(shape, 1) numbers, one per shape, from a bit generator."""
    cdef bitgen_t *rng = bitgen(bit_generator)
    cdef double[::1] given = np.array(shapes, dtype=np.float64).ravel()
    drawn = np.empty(len(given))
    cdef double[::1] out = drawn
    cdef Py_ssize_t i
    for i in range(len(given)):
        out[i] = standard_gamma(rng, given[i])
    return drawn
