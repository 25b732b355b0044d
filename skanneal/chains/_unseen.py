"""Rows that no state has seen yet, and how probable views make them: what starts are judged by."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.special import logsumexp

MOST_UNSEEN, LEAST_UNSEEN = 2000, 50  # rows that judge views; fewer decide nothing


def unseen_rows(table, states):
    """Return rows that none of the states has, at most MOST_UNSEEN, spread over the table."""
    unseen = np.ones(table.n_rows, dtype=bool)
    for state in states:
        unseen[state.subsample.rows()] = False
    return spread(np.flatnonzero(unseen), MOST_UNSEEN)


def spread(rows, most):
    """Return at most so many of the rows, evenly chosen."""
    n = min(len(rows), most)
    return rows[np.arange(n) * len(rows) // max(n, 1)]


def log_densities(views, rows):
    """Log density of each row of a table, given views: ndarray of shape (n_rows,)."""
    total = np.zeros(rows.n_rows)
    for view in views:
        scores, log_weights = view.score_rows(rows)
        total += logsumexp(scores + log_weights, axis=1)
    return total


def unseen_differences(table, usual, rival):
    """Return log densities of rows that neither state has, the rival's less the usual one's.

    Returns
    -------
    differences : ndarray of shape (n_unseen,)
    """
    rows = table.take(unseen_rows(table, [usual, rival]))
    return log_densities(rival.views, rows) - log_densities(usual.views, rows)
