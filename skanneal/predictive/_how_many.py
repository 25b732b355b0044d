"""How probable each number of clusters is, and of components."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..summary import n_clusters_proba, valley_sureness
from ._point import matching_view


def number_proba(found, separation, n_clusters, n_rows):
    """Probability of each number of clusters, from 0; the last is that of more than components.

    A join that the tree is cut at, but of which a cluster has no row, has no evidence. There are no
    more clusters than rows.

    Parameters
    ----------
    found : Clusters
    separation : float
    n_clusters : int or None
        How many were asked for; the tree says of any number the same, whatever that is.
    n_rows : int
    """
    tree = found.tree.copy()
    if n_clusters is None:
        n_sure = np.count_nonzero(valley_sureness(tree) >= separation)
        first = len(tree) - n_sure
        tree[first : first + 1 + n_sure - found.n_clusters, 2] = 0.0
        tree[:, 2].sort()
    unseen = {"unseen": 0.0} if len(tree) + 1 >= n_rows else {}
    return n_clusters_proba(tree, separation, **unseen)


def n_components_proba(draws, weights, point):
    """Probability of each number of components, from 0, going by the draws."""
    numbers = [int(matching_view(draw, point)[1].max()) + 1 for draw in draws]
    return np.bincount(numbers, weights) / np.sum(weights)
