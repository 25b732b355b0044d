"""How sure it is that two neighbouring components are two clusters, by themselves.

The log odds of a pair (_one_or_two.py) are no odds yet: two pieces of one ring may look like two
normal laws, too. But each draw has pieces of its own, and clusters are what draws agree about. So
two things are asked of a pair: its log odds o, and the mean square difference e of two draws'
probabilities that its n rows are in the first component. Between two clusters that is how well n
rows tell where the border is, and falls as 1 / n; between pieces it stays. On simulated tables, of
which it is known which pairs are clusters, the log of a Bayes factor for two is about

    CONSTANT + OF_ODDS sign(o) log(1 + |o|) + OF_ROWS log(n / e),

by logistic regression on 4,036 pairs of 226 tables in which both answers have the same weight;
benchmarks/fits/by_itself.py fits it to others.

How probable two are before a pair is seen is told by the other pairs: with the share pi of pairs
that are two, a pair is two with the odds pi / (1 - pi) times its Bayes factor, and pi is the mean
of these probabilities (Efron 2010, Large-Scale Inference, chapter 5: two groups), with one pair of
each sort added.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.special import expit, log_expit, logit

CONSTANT, OF_ODDS, OF_ROWS = -9.4, 0.745, 0.801
_LEAST, _MOST = -100.0, 300.0  # log odds beyond these say no more
_FEWEST_ROWS, _LEAST_SHARE = 6, 1e-4  # nor do fewer rows, or less disagreement
_STEPS = 100  # of the fixed point


def log_factors(odds, differ, n_rows):
    """Return the logs of the Bayes factors for two clusters and not one.

    Parameters
    ----------
    odds, differ, n_rows : array-like of shape (n_pairs,)
        Log odds of two normal laws against one bump, e, and n.
    """
    odds = np.clip(odds, _LEAST, _MOST)
    rows = np.maximum(n_rows, _FEWEST_ROWS) / np.maximum(differ, _LEAST_SHARE)
    return CONSTANT + OF_ODDS * np.sign(odds) * np.log1p(np.abs(odds)) + OF_ROWS * np.log(rows)


def evidence_by_itself(factors, counts):
    """Return -log(1 - probability) of each pair's being two, and that of a pair of which nothing
    but the share is known.

    Parameters
    ----------
    factors : array-like of shape (n_pairs,)
        From `log_factors`.
    counts : array-like of shape (n_pairs,)
        As how many pairs each counts for the share.

    Returns
    -------
    evidence : ndarray of shape (n_pairs,)
    of_share : float
    """
    factors, counts = np.asarray(factors), np.asarray(counts, dtype=np.float64)
    share = 0.5
    for _ in range(_STEPS):
        share = (counts @ expit(logit(share) + factors) + 1.0) / (counts.sum() + 2.0)
    return -log_expit(-(logit(share) + factors)), float(-np.log1p(-share))
