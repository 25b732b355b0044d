"""What segments of a chain cost, learnt while it runs on a machine that may be busy elsewhere."""

# SPDX-License-Identifier: BSD-3-Clause

from math import exp, inf, log

import numpy as np

# Old segments count less by this factor each: the cost follows the subsample as it grows.
_FORGET = 0.8
FEW = 5  # segments after which a cost is known: the median of so many stands for the first ones
_OUTLIER = 3.0  # a segment counts as no more than so many times what was expected of it


class Cost:
    """Seconds of a segment as a function of the subsample's size, when nothing holds it up.

    A segment of ``m`` assignments at size ``n`` takes ``overhead + m * level * (n / n0) ** power``
    with ``0 <= power <= 1``. The overhead is the least time of any segment seen: short segments
    come first and consist of little else. A machine that is busy elsewhere makes some segments
    last many times as long: the first few are therefore taken at their median, and every later one
    at a multiple of what was expected, at most.
    """

    _STATE = ("least", "weight", "count", "seconds", "x", "y", "xx", "xy", "moves")

    def __init__(self):
        self.least = inf
        self.first = []  # the segments to take the median of
        # Sums over segments, weighted by length, in which old segments fade.
        self.weight = self.count = self.seconds = self.x = self.y = self.xx = self.xy = 0.0
        self.moves = 0.0  # of the moves alone

    def update(self, size, length, seconds, moves=0.0):
        """Take in a segment: its mean size, its assignments and its seconds.

        `moves` are those of the seconds that its moves took, however many its assignments are.
        """
        segment = size, length, max(seconds, 1e-9), moves
        self.least = min(self.least, segment[2])
        if len(self.first) == FEW:
            self._add(segment, self._usual(size, length))
            return
        self.first.append(segment)
        fresh = Cost()
        for name in self._STATE[1:]:
            setattr(self, name, getattr(fresh, name))
        usual = lower_median([seconds / length for _, length, seconds, *_ in self.first])
        for early in self.first:
            self._add(early, usual * early[1])

    def _usual(self, size, length):
        return float(self.per_assignment(size)) * length

    def _add(self, segment, usual):
        size, length, seconds, moves = segment
        share = min(1.0, _OUTLIER * usual / seconds)
        seconds, moves = share * seconds, share * moves
        x, y = log(max(size, 1.0)), log(max(seconds - self.least, 0.05 * seconds) / length)
        values = (1.0, 1.0 / length, seconds / length, x, y, x * x, x * y, moves / length)
        for name, value in zip(self._STATE[1:], values):
            setattr(self, name, _FORGET * getattr(self, name) + length * value)

    def per_assignment(self, sizes):
        """Return the expected seconds per assignment at each size."""
        mean_x = self.x / self.weight
        spread = self.xx / self.weight - mean_x**2
        slope = self.xy / self.weight - mean_x * self.y / self.weight
        # The small constant pulls the power to 0 where sizes hardly differ.
        power = min(max(slope / (spread + 0.02), 0.0), 1.0)
        # Some of the time is always the rows': all-overhead would make rows free.
        overhead = min(self.least, 0.95 * self.seconds / self.count)
        level = (self.seconds - overhead * self.count) / self.weight
        sizes = np.maximum(sizes, 1.0)
        return overhead / sizes + level * (sizes / exp(mean_x)) ** power

    def of_sweep(self, n_rows):
        """Return the expected seconds of a sweep of the full data, and the moves' share of them."""
        seconds = float(self.per_assignment(n_rows)) * n_rows
        return seconds, min(self.moves / self.seconds, 0.95)


def lower_median(values):
    """Return the median, of two values the lower one: delays only add."""
    return sorted(values)[(len(values) - 1) // 2]
