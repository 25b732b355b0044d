"""Gaps filled by regression, for where rows are laid on a line.

A row that lacks some numbers has the others, and where columns go together these say much. So a gap
is filled with the mean that the numbers would have if they were normal,

    x_m = mu_m + S_mo S_oo^-1 (x_o - mu_o),

o the row's numbers and m its gaps. Mean and covariance are those of all rows, fills among them, and
the fills are made a few times over. This is the EM algorithm of a normal distribution less one
term, the covariance of the fills given the rest, which makes them a little too regular.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

MOST_GAPS = 0.2  # share of a row's numbers
FILLS = 4  # times over
MOST_WORK = 10**9  # patterns of gaps times the cube of the number of columns: beyond, gaps stay
_RIDGE = 1e-6  # added to correlations, so that columns may depend on each other


def with_fills(numbers):
    """Return numbers with gaps filled; a row that lacks more than a fifth of them keeps its gaps.

    Components play no part in it, so that fills tell none from another.

    Parameters
    ----------
    numbers : ndarray of float of shape (n_rows, n_columns)
        nan where there is a gap.

    Returns
    -------
    filled : ndarray of float of shape (n_rows, n_columns)
    """
    gaps = np.isnan(numbers)
    used = gaps.mean(axis=1) <= MOST_GAPS
    if not gaps.any() or not used.any():
        return numbers
    filled, missing = numbers[used], gaps[used]
    patterns, pattern = np.unique(missing, axis=0, return_inverse=True)
    if len(patterns) * numbers.shape[1] ** 3 > MOST_WORK:
        return numbers
    known = ~missing
    counts = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, filled, 0.0).sum(axis=0) / counts
    spread = np.sqrt(np.where(known, (filled - mean) ** 2, 0.0).sum(axis=0) / counts)
    spread[spread == 0] = 1.0
    filled = np.where(known, (filled - mean) / spread, 0.0)
    members = [np.flatnonzero(pattern == p) for p in range(len(patterns))]
    for _ in range(FILLS):
        centre = filled.mean(axis=0)
        centred = filled - centre
        covariance = centred.T @ centred / len(centred) + _RIDGE * np.eye(len(centre))
        for lacks, rows in zip(patterns, members):
            if lacks.any():
                has = ~lacks
                to_known = covariance[np.ix_(lacks, has)]
                slopes = np.linalg.solve(covariance[np.ix_(has, has)], to_known.T)
                expected = centre[lacks] + (filled[np.ix_(rows, has)] - centre[has]) @ slopes
                filled[np.ix_(rows, lacks)] = expected
    out = numbers.copy()
    out[used] = np.where(missing, mean + spread * filled, numbers[used])
    return out
