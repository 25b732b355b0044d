"""How sure it is that a cluster's mean, or share of a level, is above that of the other rows.

Given which rows are inside, the means m and n of the rows inside and outside have independent
posteriors under reference priors. Of numbers these are Student's t about the sample means (Jeffreys
1961), and the probability that m > n is, with Welch's (1947) degrees of freedom, that of one t. Of
a level they are Beta(x + 1/2, n - x + 1/2), x of n cells being of the level. Under these priors the
probability is uniform if there is no difference, exactly or nearly so. A cluster's mean is above
that of all rows exactly if it is above that of the others.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.special import betainc, betaincinv, stdtr

_POINTS = (np.arange(100) + 0.5) / 100  # of a Beta law: an error below 0.002


def probability_above(values, missing, partitions, weights, n_clusters):
    """How probable it is that a cluster's mean is above that of the other rows.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        Numbers; of a level whether cells are of it.
    missing : ndarray of bool of shape (n_rows,) or None
        Cells that do not count.
    partitions : list of int arrays of shape (n_rows,)
        Of each draw, the cluster of each row, from 0.
    weights : float64 array of shape (n_draws,)
        How much each draw counts.
    n_clusters : int

    Returns
    -------
    probabilities : ndarray of shape (n_clusters,)
        Averaged over the draws in which there are observed cells on both sides; nan without any.
    """
    above = _share_above if values.dtype == bool else _mean_above
    known = slice(None) if missing is None else ~missing
    values = values[known].astype(np.float64)
    if len(values):
        values -= values.mean() if above is _mean_above else 0.0
    total, counted = np.zeros((2, n_clusters))
    for labels, weight in zip(partitions, weights):
        labels = labels[known]
        inside = [np.bincount(labels, values**p, n_clusters) for p in range(3)]
        outside = [own.sum() - own for own in inside]
        both = (inside[0] > 0) & (outside[0] > 0)
        sides = ([sums[both] for sums in side] for side in (inside, outside))
        total[both] += weight * above(*sides)
        counted[both] += weight
    return np.divide(total, counted, out=np.full(n_clusters, np.nan), where=counted > 0)


def _mean_above(inside, outside):
    """Of numbers; one half where a side has a single cell, which says nothing of their spread."""
    means, variances, freedoms = [], [], []
    for n, sums, squares in (inside, outside):
        means.append(sums / n)
        spread = np.maximum(squares - sums**2 / n, 0.0)
        freedoms.append(np.maximum(n - 1, 1))
        variances.append(spread / freedoms[-1] / n)
    difference, variance = means[0] - means[1], variances[0] + variances[1]
    alone = (inside[0] == 1) | (outside[0] == 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = variance**2 / sum(v**2 / f for v, f in zip(variances, freedoms))
        out = stdtr(freedom, difference / np.sqrt(variance))
    out = np.where(variance > 0, out, 0.5 + 0.5 * np.sign(difference))
    return np.where(alone, 0.5, out)


def _share_above(inside, outside):
    """Of a level: the mean, over the share inside, of how probable a lower share outside is."""
    laws = [(x + 0.5, n - x + 0.5) for n, x, _ in (inside, outside)]
    a, b = (part[:, None] for part in laws[0])
    shares = betaincinv(a, b, _POINTS)
    a, b = (part[:, None] for part in laws[1])
    return betainc(a, b, shares).mean(axis=1)
