"""Queries of a mixture whose likelihood is not conjugate, from the atoms of the draws.

Questions that need atoms integrated out are not answered.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.special import logsumexp

from ._check import check_feature_draw
from ._clusters import BLOCK_ROWS, Rows
from ._draws import joint_weights, weights_in_components


class FeatureQueries:
    """What the draws of a fit say about rows without missing cells.

    Parameters
    ----------
    draws : list of FeatureDraw
        Of all chains.
    point : FeatureDraw
        The point estimate.
    read : callable
        Makes the likelihood's rows of what the estimator has read.
    """

    def __init__(self, draws, point, read):
        for draw in (*draws, point):
            check_feature_draw(draw.arrays, draw.likelihood)
        self.draws, self.point, self.read = draws, point, read

    def table(self, columns):
        """Rows, as `ShardedClusters` takes them."""
        rows = self.read(columns)
        return Rows(len(rows), rows.__getitem__)

    def log_density(self, columns, given=None):
        """Log predictive density of each row: (n_rows,)."""
        if given is not None:
            raise ValueError("given needs a conjugate likelihood")
        out = [
            logsumexp([logsumexp(joint_weights(draw, rows), axis=1) for draw in self.draws], axis=0)
            for rows in self._blocks(columns)
        ]
        return np.concatenate([*out, np.empty(0)]) - np.log(len(self.draws))

    def new_cluster_probability(self, columns):
        """Probability that each row opens a cluster of its own: (n_rows,)."""
        out = []
        for rows in self._blocks(columns):
            joints = (joint_weights(draw, rows) for draw in self.draws)
            pairs = [(joint[:, -1].copy(), logsumexp(joint, axis=1)) for joint in joints]
            new, whole = (logsumexp(of_draws, axis=0) for of_draws in zip(*pairs))
            out.append(np.exp(new - whole))
        return np.concatenate([*out, np.empty(0)])

    def _blocks(self, columns):
        """The rows, some thousand at a time."""
        rows = self.read(columns)
        return (rows[start : start + BLOCK_ROWS] for start in range(0, len(rows), BLOCK_ROWS))

    def cluster_probabilities(self, columns):
        """Probability of each cluster of the point estimate: (n_rows, n_clusters)."""
        joint = weights_in_components(self.point, self.read(columns))
        # a row that none of them can produce: nothing but their weights is known of it
        impossible = np.isneginf(joint).all(axis=1)
        joint[impossible] = np.log(self.point.sizes - self.point.prior.reduction)
        out = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        return out / out.sum(axis=1, keepdims=True)
