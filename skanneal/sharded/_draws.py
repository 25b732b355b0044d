"""Draws whose features are instantiated, and what they say about queries."""

# SPDX-License-Identifier: BSD-3-Clause

import copy

import numpy as np
from scipy.special import logsumexp

from ._new_cluster import log_new_cluster
from ._segments import scored_blocks


class FeatureDraw:
    """One kept draw of a chain whose likelihood is not conjugate.

    Attributes
    ----------
    labels : ndarray of shape (n_rows,), int32
        Component of each training row, 0 .. n_components - 1.
    concentration, discount : float
    log_joint : float
        log p(partition) + log p(features) + log p(x | partition, features).
    n_components : int
    sizes : ndarray of shape (n_components,)
    theta : ndarray of shape (n_components, ...)
        As the likelihood has it.
    features : ndarray of shape (n_components, ...)
        As it shows it.
    arrays : dict of str to ndarray
        All of it.
    """

    main_view = 0

    def __init__(self, arrays, likelihood):
        self.arrays = arrays
        self.likelihood = copy.deepcopy(likelihood)
        prefix = "likelihood/"
        state = {n.removeprefix(prefix): v for n, v in arrays.items() if n.startswith(prefix)}
        self.likelihood.set_state(state)

    labels = property(lambda self: self.arrays["labels"])
    concentration = property(lambda self: float(self.arrays["concentration"]))
    discount = property(lambda self: float(self.arrays["discount"]))
    log_joint = property(lambda self: float(self.arrays["log_joint"]))
    sizes = property(lambda self: self.arrays["features/size"])
    n_components = property(lambda self: len(self.sizes))
    theta = property(lambda self: self.arrays["theta"])
    features = property(lambda self: self.likelihood.features(self.theta))

    def __repr__(self):
        return f"FeatureDraw(n_components={self.n_components}, log_joint={self.log_joint:.6g})"


class FeaturePredictor:
    """Answers queries, averaged over draws.

    Parameters
    ----------
    draws : list of FeatureDraw
    """

    def __init__(self, draws):
        self.draws = draws

    def log_density(self, rows):
        """Log predictive density of each row: (n_rows,)."""
        per_draw = [logsumexp(_joint(draw, rows), axis=1) for draw in self.draws]
        return logsumexp(per_draw, axis=0) - np.log(len(per_draw))

    def new_cluster_probability(self, rows):
        """Probability that each row opens a cluster of its own: (n_rows,)."""
        joints = [_joint(draw, rows) for draw in self.draws]
        new = logsumexp([joint[:, -1] for joint in joints], axis=0)
        return np.exp(new - logsumexp([logsumexp(joint, axis=1) for joint in joints], axis=0))

    def cluster_probabilities(self, rows, view=0):
        """Probability of each existing cluster in the first draw: (n_rows, K)."""
        draw = self.draws[0]
        joint = _in_clusters(draw, rows)
        # a row that none of them can produce: nothing but their weights is known of it
        joint[np.isneginf(joint).all(axis=1)] = np.log(draw.sizes - draw.discount)
        out = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        return out / out.sum(axis=1, keepdims=True)


def _in_clusters(draw, rows):
    """log (n_c - d) f(row | theta_c) of each row: (n_rows, K)."""
    out = np.empty((len(rows), draw.n_components))
    for start, scores in scored_blocks(draw.likelihood, rows, draw.theta, dtype=float):
        out[start : start + len(scores)] = scores[:, : draw.n_components]
    return out + np.log(draw.sizes - draw.discount)


def _joint(draw, rows):
    """log w_c f(row | theta_c) in the user's units, a new cluster last: (n_rows, K + 1)."""
    alpha, d, arrays = draw.concentration, draw.discount, draw.arrays
    log_m = log_new_cluster(draw.likelihood, rows, arrays["prior_theta"], arrays["proposal_seed"])
    log_open = np.log(alpha + d * draw.n_components)
    joint = np.column_stack([_in_clusters(draw, rows), log_open + log_m])
    return joint - np.log(draw.sizes.sum() + alpha) + draw.likelihood.log_jacobian(1)
