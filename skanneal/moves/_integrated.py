"""The concentration integrated out of the moves of many rows.

Such a move leaves the partition's law with a known discount invariant, and ends with a draw of
(concentration, discount) given the partition, which leaves the joint law invariant. Any move may
follow.
"""

# SPDX-License-Identifier: BSD-3-Clause

from ..partition_priors import PriorGrid
from ._hyperparameters import PartitionHyperparameters


class Integrated:
    """Weights of the number of clusters, with the concentration integrated out.

    Parameters
    ----------
    grid : PriorGrid or array of shape (n_points, 2)
        (concentration, discount) pairs, of which those with the present discount are used.
    """

    def __init__(self, grid):
        self.grid = PriorGrid.of(grid)
        self.known, self.known_of = {}, None

    def _known(self, prior, n, key, compute):
        """The cached weights for this number of rows, by the discount and a key."""
        if self.known_of != n:
            self.known, self.known_of = {}, n
        key = prior.reduction, key
        if key not in self.known:
            self.known[key] = compute()
        return self.known[key]

    def log_opening(self, prior, n_clusters, n):
        """log of the weight of opening a cluster beside n_clusters, for n rows."""
        return self._known(
            prior, n, n_clusters, lambda: prior.log_opening_over(self.grid, n_clusters, n)
        )

    def log_openings(self, prior, n):
        """log of the weights of K clusters of n rows, up to a constant: K = 0 .. n + 1."""
        return self._known(prior, n, "all", lambda: prior.log_openings_over(self.grid, n))

    def draw(self, state, bit_generator):
        """Draw the pair given the partition."""
        PartitionHyperparameters(self.grid).sweep(state, bit_generator)
