"""Draws that the moves share; each takes one uniform number or a few."""

from libc.math cimport exp

import numpy as np

from .._native cimport _random


def below(n, generator):
    """Uniform on 0 .. n - 1."""
    return min(int(generator.random() * n), n - 1)


def draw_index(log_weights, generator):
    """Index with probability proportional to exp(log_weights)."""
    cdef double[::1] weight = np.array(log_weights, dtype=np.float64)
    return _random.draw_index(&weight[0], weight.shape[0], 1.0, generator.random())


def draw_poisson(mean, generator):
    """A Poisson number by a product of uniforms, the same with every version of NumPy."""
    cdef double least = exp(-mean), product = generator.random()
    cdef Py_ssize_t number = 0
    while product > least:
        number += 1
        product *= generator.random()
    return number
