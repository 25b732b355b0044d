"""About how many rows draws differ: in how many places may the border of two groups lie?

For two draws s and t that give a row the probabilities p_s and p_t of the first group,

    D = p_s (1 - p_t) + p_t (1 - p_s)

is the probability that they put it into different groups. Added up over rows, as a mean over pairs
of draws, D is how many rows are in doubt: between the borders of two draws, or so near to a border
that a single draw does not know their side. Where two clusters are apart all draws have the border
between them, and D is next to nothing. Where groups are tiles of a square, of a ring or of a heavy
tail, each draw has borders of its own.

Of many groups at once D is 1 - sum_k p_sk p_tk, the probability that a row is in different ones.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np


def share_in_doubt(shares, weights):
    """Return D of many groups, as a mean over rows.

    Parameters
    ----------
    shares : iterable of ndarray of shape (n_rows, n_groups)
        Each draw's probabilities of the groups; rows sum to 1.
    weights : array-like of shape (n_draws,)
        How much each draw counts, in any unit.

    Returns
    -------
    share : float
        The mean over pairs of different draws; 0 if one draw has all of the weight.
    """
    weights = np.asarray(weights, dtype=np.float64) / np.sum(weights)
    mean = same = 0.0
    for of_draw, weight in zip(shares, weights):
        mean = mean + weight * of_draw
        same += weight**2 * (of_draw**2).sum(axis=1).mean()
    different = 1.0 - weights @ weights
    if different < 1e-9:
        return 0.0
    return float(1.0 - ((mean**2).sum(axis=1).mean() - same) / different)


def disagreement(shares, weights):
    """Return D of each row.

    Parameters
    ----------
    shares : iterable of ndarray of shape (n_rows,)
        Each draw's probabilities that the rows are in the first of two groups.
    weights : array-like of shape (n_draws,)
        How much each draw counts, in any unit.

    Returns
    -------
    differ : ndarray of shape (n_rows,)
        The mean over pairs of different draws; 0 if one draw has all of the weight.
    """
    weights = np.asarray(weights, dtype=np.float64) / np.sum(weights)
    mean = same = 0.0
    for of_draw, weight in zip(shares, weights):
        mean = mean + weight * of_draw
        same = same + weight**2 * (of_draw * (1.0 - of_draw))
    different = 1.0 - weights @ weights
    if different < 1e-9:
        return np.zeros_like(same)
    return 2.0 * (mean * (1.0 - mean) - same) / different


def mean_square_difference(shares, weights):
    """Return the mean of (p_s - p_t)^2 over rows and pairs of different draws. D exceeds by it the
    mean of 2 p_s (1 - p_s), the doubt that draws have by themselves. Parameters as in
    `disagreement`; 1 if there are no two draws, or one has all of the weight: then nothing shows
    that draws agree."""
    weights = np.asarray(weights, dtype=np.float64)
    different = weights.sum() ** 2 - weights @ weights
    if different <= 1e-9 * (weights @ weights):
        return 1.0
    mean = sum(weight * of_draw for of_draw, weight in zip(shares, weights)) / weights.sum()
    squares = sum(weight * (p - mean) ** 2 for p, weight in zip(shares, weights))
    return float(2.0 * squares.mean() * weights.sum() / different)
