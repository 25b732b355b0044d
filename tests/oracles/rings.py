"""Rows and components on a ring."""

import numpy as np


def components_of(rows, centres, deviation):
    """Log joints of normal components of one variance."""
    return -((rows[:, None] - centres) ** 2).sum(axis=2) / (2 * deviation**2)


def ring(generator, n, radius=4.0):
    angle = generator.uniform(0, 2 * np.pi, n)
    return radius * np.c_[np.cos(angle), np.sin(angle)] + generator.normal(0, 0.2, (n, 2))


def on_ring(n, radius=4.0):
    angle = 2 * np.pi * np.arange(n) / n
    return radius * np.c_[np.cos(angle), np.sin(angle)]
