"""Tables of whole rows with gaps, and what a test of several p-values says."""

from collections import Counter

import numpy as np

from oracles.enumeration import count_p_value, marginal
from skanneal.families import Table

LEVEL = 1e-4


def table_of(rows):
    """A Table of rows of numbers, None missing."""
    d = len(rows[0])
    table = Table(["f4"] * d, [0] * d)
    table.append([np.array(cells, dtype=np.float32) for cells in zip(*rows, strict=True)])
    return table


GAPPY = [(-1.25, -0.5), (1.0, None), (-0.75, -1.0), (None, 1.25), (None, None)]


class NowAndThen:
    """A move after every so many segments, blind to the state."""

    def __init__(self, move, every):
        self.move, self.every, self.n = move, every, 0

    def sweep(self, state, bit_generator, *, beta=1.0):
        self.n += 1
        if self.n % self.every == 0:
            self.move.sweep(state, bit_generator, beta=beta)


def p_values(counts, law):
    out = [count_p_value(counts, law)]
    for position in (0, 1):
        own = Counter()
        for key, count in counts.items():
            own[key[position]] += count
        out.append(count_p_value(own, marginal(law, position)))
    return out
