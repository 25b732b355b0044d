"""Draws of a row's slot among several tiles of them."""

from collections import Counter
from functools import cache

import numpy as np

from oracles.mixtures import make_mixture
from skanneal.moves._allocate import enter_rows, leave_rows

N_DRAWS = 60_000
CONCENTRATION, DISCOUNT, PSEUDO_COUNT, N_LEVELS = 1.5, 0.2, 0.7, 3
FREE = {3, 15, 16, 17, 40, 41}  # slots below 53 without rows; the lowest is the open one


def rows():
    """Two columns of levels, the clusters' slots 0 to 52 but FREE; the last row has none."""
    rng = np.random.default_rng(5)
    slots = [k for k in range(53) if k not in FREE]
    labels = np.concatenate([slots, rng.choice(slots, 200)])
    levels = rng.integers(N_LEVELS, size=(len(labels) + 1, 2))
    levels[-1] = 1, 2
    return labels, levels.tolist()


@cache
def draws():
    labels, levels = rows()
    hyper = {"pseudo_counts": [PSEUDO_COUNT] * N_LEVELS}
    columns = [("categorical", [row[f] for row in levels], hyper) for f in range(2)]
    mixture, bit_generator = make_mixture(columns, CONCENTRATION, DISCOUNT, seed=11)
    n = len(labels)
    mixture.replace(np.arange(n), labels)
    order = np.arange(n + 1)
    counts = Counter()
    for _ in range(N_DRAWS):
        enter_rows(mixture, order, n, n + 1, 0, 1.0, bit_generator)
        counts[int(mixture.labels_of([n])[0])] += 1
        leave_rows(mixture, order, n, n + 1, 0, 1.0, bit_generator)
    return counts
