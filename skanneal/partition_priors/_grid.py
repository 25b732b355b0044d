"""The points that a prior's parameters are inferred from, and their hyperprior.

Concentrations have equal ratios, ten points to a factor of ten. A partition of n rows into K
clusters suits an alpha with about K = alpha log(1 + n / alpha): the grid's end, n / 10, suits
n / 4 clusters.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.special import logsumexp

LEAST_END, ROWS_PER_UNIT = 100.0, 10
CONCENTRATIONS = np.geomspace(0.01, LEAST_END, 41)


def end_of_grid(n):
    """The bound at or just above which the grid for n rows ends."""
    return max(LEAST_END, n / ROWS_PER_UNIT)


def concentrations(n):
    """The points for n rows: the first that is no less than the end is the last."""
    further = np.ceil(10 * np.log10(end_of_grid(n) / LEAST_END) - 1e-9)
    return np.r_[CONCENTRATIONS, LEAST_END * 10 ** (np.arange(1, further + 1) / 10)]


class PriorGrid:
    """Points of a partition prior's parameters, each with its probability.

    Parameters
    ----------
    points : array-like of shape (n_points, 2)
        (concentration, discount) pairs.
    log_weights : array-like of shape (n_points,) or None, default=None
        Log of the hyperprior, up to a constant; None weighs all points alike.
    least_rows : array-like of shape (n_points,) or float, default=None
        How many rows a subsample must have to choose from a point. None: so many that a grid for
        them has this concentration. 0: however small it is, it chooses from all points.

    Attributes
    ----------
    points : ndarray of shape (n_points, 2)
    log_weights : ndarray of shape (n_points,)
        Normalised.
    """

    def __init__(self, points, log_weights=None, least_rows=None):
        self.points = np.asarray(points, dtype=np.float64)
        log_weights = np.zeros(len(self.points)) if log_weights is None else log_weights
        self.log_weights = log_weights - logsumexp(log_weights)
        self.least_rows = least_rows
        self._within = None, (None, None, None)  # the last answer

    @classmethod
    def of(cls, grid):
        """Return a grid as it is, and an array of points as a grid of equal weights."""
        return grid if isinstance(grid, cls) else cls(grid)

    def __len__(self):
        return len(self.points)

    def prior(self, i, kind):
        """Return the prior at the i-th point.

        Parameters
        ----------
        i : int
        kind : subclass of PartitionPrior
        """
        prior = kind(*self.points[i].tolist())
        prior.log_weight = self.log_weights[i]
        return prior

    def place(self, prior):
        """Return the number of a prior's point."""
        return int(np.flatnonzero(np.all(self.points == prior.point, axis=1))[0])

    def within(self, n):
        """Return which points a subsample of n rows chooses from.

        With a grid for more rows, a chain that begins with few could take every row for a
        cluster of its own, with a concentration from which it does not come back.

        Parameters
        ----------
        n : int

        Returns
        -------
        places : ndarray of shape (n_kept,)
            All points, if none is for so few rows: a user has set them.
        """
        return self.points_within(n)[0]

    def points_within(self, n):
        """Return these places, their points and the log weights of these.

        Parameters
        ----------
        n : int

        Returns
        -------
        places : ndarray of shape (n_kept,)
        points : ndarray of shape (n_kept, 2)
        log_weights : ndarray of shape (n_kept,)
        """
        known, found = self._within
        if known != n:
            if self.least_rows is None:
                kept = self.points[:, 0] <= concentrations(n)[-1] * (1 + 1e-9)
            else:
                kept = np.broadcast_to(self.least_rows, len(self)) <= n
            if not kept.any():
                kept[:] = True
            places = np.flatnonzero(kept)
            found = places, self.points[places], self.log_weights[places]
            self._within = n, found
        return found

    @property
    def opens(self):
        """Whether a second cluster ever opens, at each point."""
        return self.points.sum(axis=1) > 0

    def first(self):
        """Return the point to begin with: the median of those that few rows choose from.

        A point at which no second cluster ever opens is left out.
        """
        places = self.within(0)
        opening = places[self.opens[places]]
        places = opening if len(opening) else places
        weights = np.exp(self.log_weights[places])
        half = np.searchsorted(np.cumsum(weights), weights.sum() / 2 * (1 + 1e-9))
        return places[half]
