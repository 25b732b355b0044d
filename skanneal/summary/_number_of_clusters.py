"""How probable each number of clusters is, by the tree of a fit's components.

A tree is cut from its surest join on, so that there are k clusters if the k - 1 surest joins are
such of two clusters and all others are not. A join of the sureness s leaves the doubt 1 - s, and a
tree is cut where this is no more than 1 - c, with c the sureness that is asked for (`separation`).
So the ratio of the two, (1 - c) / (1 - s), is taken for the odds that a join is one of two
clusters: the evidence of the join, e^height = 1 / (1 - s), and 1 - c for how improbable a further
cluster is before the rows are seen. Of K components,

    P(k) = P(1) prod_{j < k} (1 - c) / (1 - s_j),    k = 1 .. K,

with s_1 >= s_2 >= ... the sureness of the joins. The factors fall, and are at least 1 just where
the tree is cut: the number of clusters is the most probable one, whatever c is.

There may be clusters that no component shows, of which the joins say nothing. If all components are
clusters, there are more of them with the probability u = 0.2:

    P(more than K) = P(K) u / (1 - u).

That is about what simulated normal clusters had, which overlap by 1 to 10 % of their rows. Other
forms were hardly better, or worse: a power of the odds, a limit of what a p-value can say (Sellke,
Bayarri and Berger 2001), and for u the share of the draws that have more components, which hold
small ones that come and go. How often the probabilities come true is measured in
benchmarks/fits/number_of_clusters.py.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from numpy.typing import ArrayLike

from ._cut_tree import checked_tree

UNSEEN = 0.2  # probability of more clusters than components, if all components are clusters
_SURE = 1e9  # nats: a height that is infinite counts as this


def n_clusters_proba(
    tree: ArrayLike, probability: float = 0.9, unseen: float = UNSEEN
) -> np.ndarray:
    """Return how probable each number of clusters is.

    Parameters
    ----------
    tree : array-like of shape (n_components - 1, 4)
        From `cluster_tree`.
    probability : float, default=0.9
        How sure it must be that two clusters are two, in [0, 1): as in `cut_tree`.
    unseen : float, default=0.2
        The probability that there are more clusters than components, if all components are
        clusters, in [0, 1).

    Returns
    -------
    probabilities : ndarray of shape (n_components + 2,)
        Of 0 clusters, which is 0, of 1, 2 and so on up to `n_components`; the last is that of more
        than these. With the sureness s_1 >= s_2 >= ... of the joins, that of k clusters is
        proportional to the product of ``(1 - probability) / (1 - s_j)`` over j < k. It is largest
        where `cut_tree` cuts.

    Raises
    ------
    ValueError
        If `tree` has another shape, or if `probability` or `unseen` is not in its range.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.summary import n_clusters_proba
    >>> n_clusters_proba(np.array([[0, 1, 0.4, 2], [2, 3, 9.0, 3]])).round(2)
    array([0.  , 0.  , 0.84, 0.12, 0.03])
    """
    for name, value in (("probability", probability), ("unseen", unseen)):
        if not 0.0 <= value < 1.0:
            raise ValueError(f"{name} must be at least 0 and below 1, got {value!r}.")
    heights = checked_tree(tree)[::-1, 2]
    log_odds = np.minimum(heights, _SURE) + np.log1p(-probability)
    weights = np.concatenate([[0.0], np.cumsum(log_odds)])
    weights = np.exp(weights - weights.max())
    weights = np.concatenate([[0.0], weights, weights[-1:] * unseen / (1.0 - unseen)])
    return weights / weights.sum()
