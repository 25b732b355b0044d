"""An increasing smooth function through given points, its inverse and its slope.

Between the points it is the monotone cubic of Fritsch and Carlson (1980), beyond them a straight
line. The inverse is found by bisection between two of the points, so that the two are one function
to the last digits, whatever the points.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.interpolate import PchipInterpolator

HALVINGS = 48  # of the interval between two points
LEAST_SLOPE = 1e-300  # so that a logarithm exists


class Monotone:
    """y = f(x), increasing.

    Parameters
    ----------
    x, y : float64 array of shape (n,)
        Ascending. Points that floating-point numbers do not tell apart are left out.
    outer : float or None, default=None
        The slope beyond the points; None: that between the last two.
    """

    def __init__(self, x, y, outer=None):
        kept = _apart(x) & _apart(y)
        self.x, self.y = x[kept], y[kept]
        self._cubic = PchipInterpolator(self.x, self.y)
        self._slope = self._cubic.derivative()
        last = np.diff(self.y)[[0, -1]] / np.diff(self.x)[[0, -1]]
        self._outer = last if outer is None else np.full(2, outer)

    def __call__(self, x):
        """f(x)."""
        inside = np.clip(x, self.x[0], self.x[-1])
        return self._cubic(inside) + (x - inside) * self._beyond(x > inside)

    def log_slope(self, x):
        """log f'(x)."""
        inside = np.clip(x, self.x[0], self.x[-1])
        slope = np.where(x == inside, self._slope(inside), self._beyond(x > inside))
        return np.log(np.maximum(slope, LEAST_SLOPE))

    def _beyond(self, above):
        """The slope above the points, or below."""
        return np.where(above, *self._outer[::-1])

    def inverse(self, y):
        """The x of which y is the value."""
        inside = np.clip(y, self.y[0], self.y[-1])
        above = np.clip(np.searchsorted(self.y, inside), 1, len(self.y) - 1)
        low, high = self.x[above - 1], self.x[above]
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            below = self._cubic(middle) < inside
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        x = 0.5 * (low + high)
        return x + (y - inside) / self._beyond(y > inside)


def _apart(values):
    """Which of ascending values exceed all earlier ones by more than rounding."""
    least = 4 * np.spacing(np.abs(values))
    return np.diff(np.maximum.accumulate(values), prepend=-np.inf) > least
