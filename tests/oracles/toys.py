"""A toy of few rows for the oracles of the accelerated sampler."""

import numpy as np

from oracles.accelerated_enumeration import (
    Toy,
)

EXACT = 1e-12
TABLE = np.array([[0.9, 0.2, 0.05], [0.15, 0.8, 0.3], [0.7, 0.3, 0.5], [0.1, 0.35, 0.9]])
BASE = {2: [0.6, 0.4], 3: [0.5, 0.3, 0.2]}


def toy_of(n, alpha=0.7, d=0.3, likelihood="on", n_features=2):
    """A toy of n rows."""
    table = TABLE[:n, :n_features]
    table = table if likelihood == "on" else np.ones_like(table)
    return Toy(table, BASE[n_features], alpha, d)
