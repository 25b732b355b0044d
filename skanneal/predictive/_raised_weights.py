"""Weights with which each of some clusters is the most probable one of a row, and components that
no row tells apart."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching
from scipy.special import logsumexp

_IMPOSSIBLE = 1e7  # nats, which a row's cluster may be less probable than its best
_MARGIN = 1e-6  # nats by which a raised cluster is the most probable one: more than rounding


def raised_weights(log_joints):
    """What to add to log densities so that each is the largest one in a row: (n_clusters,).

    Each cluster g is given a row i_g, such that the product of the probabilities of g in i_g is the
    greatest that different rows can have. By the duality of linear programs there are then weights
    b with which no cluster h is more probable in i_g than g,

        b_g - b_h >= log f_h(i_g) - log f_g(i_g).

    The least of them that are not below 0 follow from raising them again and again. Where only
    equality can be had, since two clusters may change their rows at no cost, rows are chosen once
    more, by how much less probable than the best cluster theirs is.

    Parameters
    ----------
    log_joints : ndarray of shape (n_rows, n_clusters)
        log f_h of rows, of which equal ones count as one.
    """
    for total in (logsumexp, np.max):
        logs = log_joints - total(log_joints, axis=1, keepdims=True)
        logs = np.unique(np.maximum(logs, -_IMPOSSIBLE), axis=0)
        own, chosen = linear_sum_assignment(logs.T, maximize=True)
        logs, at, weights = logs[chosen], np.arange(len(own)), np.zeros(logs.shape[1])
        needed = logs - logs[at, own][:, None] + _MARGIN
        needed[at, own] = 0.0
        for _ in range(len(weights) + 1):  # a way from cluster to cluster has no more steps
            least = (needed + weights).max(axis=1)
            if (least <= weights[own]).all():
                return weights
            weights[own] = least
    return weights


def alike(log_joints, labels):
    """Number the components, those alike that no row tells apart: (n_components,).

    Rows are equal if no component tells them apart. As many components as can are given a row of
    theirs that is equal to no other's. Each that is left without, as all of its rows are given to
    others, is alike the one that was given the row which most of its rows are equal to.

    Parameters
    ----------
    log_joints : ndarray of shape (n_rows, n_components)
        As in `raised_weights`, of components.
    labels : int array of shape (n_rows,)
        The component that each row is in; none is without a row.
    """
    logs = np.maximum(log_joints - log_joints.max(axis=1, keepdims=True), -_IMPOSSIBLE)
    digits = -int(np.log10(_MARGIN))
    rows = np.unique(np.round(logs, digits), axis=0, return_inverse=True)[1].ravel()
    counts = np.zeros((rows.max() + 1, logs.shape[1]), dtype=np.int64)
    np.add.at(counts, (rows, labels), 1)
    given = maximum_bipartite_matching(csr_array(counts), perm_type="row")
    takers = maximum_bipartite_matching(csr_array(counts), perm_type="column")
    own = np.arange(len(given))
    return np.where(given >= 0, own, takers[counts.argmax(axis=0)])
