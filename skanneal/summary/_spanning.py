"""The forest of nodes whose edges are worth most together."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree


def spanning_forest(worth):
    """The edges of the largest sum that close no circle; those worth nothing are left out.

    Parameters
    ----------
    worth : ndarray of shape (n, n)
        Of an edge from i to j or from j to i, whichever is larger.

    Returns
    -------
    forest : sparse array of shape (n, n)
        An edge stands in one of its two places.
    """
    # The tree takes 0 for no edge, so that lengths are made positive.
    lengths = np.where(worth > 0.0, 1.0 + worth.max(initial=0.0) - worth, 0.0)
    return minimum_spanning_tree(lengths)


def from_roots(forest):
    """The nodes of a forest that have edges, parents first, and each node's parent, -1 of roots."""
    order, parents = [], np.full(forest.shape[0], -1)
    for root in np.unique(forest.nonzero()):
        if root not in order:
            found, before = breadth_first_order(forest, root, directed=False)
            order += found.tolist()
            parents[found[1:]] = before[found[1:]]
    return order, parents
