"""The grid of (concentration, discount) pairs, which grows with the number of rows.

Concentrations have equal ratios, ten points to a factor of ten. A partition of n rows into K
clusters asks for an alpha with about K = alpha log(1 + n / alpha): the grid's end, n / 10, is what
n / 4 clusters ask for.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

LEAST_END, ROWS_PER_UNIT = 100.0, 10
CONCENTRATIONS = np.geomspace(0.1, LEAST_END, 31)


def end_of_grid(n):
    """What the last concentration for n rows is, or comes next to from above."""
    return max(LEAST_END, n / ROWS_PER_UNIT)


def concentrations(n):
    """The points for n rows: the first that is no less than the end is the last."""
    further = np.ceil(10 * np.log10(end_of_grid(n) / LEAST_END) - 1e-9)
    return np.r_[CONCENTRATIONS, LEAST_END * 10 ** (np.arange(1, further + 1) / 10)]


def within(grid, n):
    """The pairs that a subsample of n rows chooses from.

    With a grid of pairs for more rows, a chain that begins with few could take every row for a
    cluster of its own, with a concentration from which it does not come back.

    Parameters
    ----------
    grid : ndarray of shape (n_points, 2)
        (concentration, discount) pairs.
    n : int

    Returns
    -------
    ndarray of shape (n_kept, 2)
        All pairs, if none is below the end of the grid for n rows: a user has set them.
    """
    kept = grid[:, 0] <= concentrations(n)[-1] * (1 + 1e-9)
    return grid if kept.all() or not kept.any() else grid[kept]


def first_point(grid):
    """The pair to begin with: the middle of those that few rows choose from."""
    grid = within(grid, 0)
    return grid[len(grid) // 2]
