"""Draws that the moves share; each takes one uniform number or a few."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np


def below(n, generator):
    """Uniform on 0 .. n - 1."""
    return min(int(generator.random() * n), n - 1)


def draw_index(log_weights, generator):
    """Index with probability proportional to exp(log_weights)."""
    cumulative = np.exp(log_weights - log_weights.max()).cumsum()
    index = cumulative.searchsorted(generator.random() * cumulative[-1], side="right")
    return min(int(index), len(cumulative) - 1)


def draw_poisson(mean, generator):
    """A Poisson number by a product of uniforms, the same with every version of NumPy."""
    number, product = 0, generator.random()
    while product > np.exp(-mean):
        number += 1
        product *= generator.random()
    return number
