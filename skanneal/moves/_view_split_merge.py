"""Split-merge of views: columns leave for a view of their own, or a view dissolves into another.

A column that is alone in its view stays there under Gibbs moves of columns, because the view's
partition of the rows fits it closely. So the move compares the column's likelihood in another view
with its *marginal* likelihood in a view of its own, with the partition summed out. Sequential
allocation of the rows estimates this, in an exact Metropolis-Hastings move.

Choose, each with probability 1/2, a merge or a split, and a view uniformly.

    merge   all m columns F of the view go to another view b, chosen with probability g_b / G
    split   m is uniform on 1 .. n - 1 and F a uniform subset of m of the view's n columns;
            a pair (concentration, discount) is drawn from t, the rows are allocated given F

With V other views of n_b columns each, z_b their partitions of the rows, h the hyperprior of the
pair and log Z the sum of the allocation's constants (forced, in a merge, to the present view),
L_F(z_b) being given the cells of b's own columns where a family has a law for whole rows,

    g_b = s(m, n_b + m) L_F(z_b) / r(m, n_b),     G = sum_b g_b,
    s(m, n) = 1 / ((n - 1) C(n, m)),
    r(m, n) = (alpha + d V) (1 - d)_{m - 1} (1 - d)_{n - 1} / (1 - d)_{n + m - 1},

a merge is accepted with min(1, A), a split with min(1, 1 / A), A = G t (V + 1) / (V Z h).
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.special import gammaln

from ._allocating_move import AllocatingMove
from ._random import below, draw_index


class ViewSplitMerge(AllocatingMove):
    """Split a view, or merge one into another.

    Parameters
    ----------
    row_grid : PriorGrid or ndarray of shape (n_points, 2)
        The hyperprior of a view's own (concentration, discount); an array weighs its pairs alike.
    n_proposals : int, default=1
        Per sweep.
    """

    name = "view_split_merge"

    def __init__(self, row_grid, n_proposals=1):
        super().__init__(row_grid, n_proposals)

    def _merge(self, state, view, bit_generator, beta):
        """Dissolve a view."""
        if state.n_views == 1:
            return False
        generator = np.random.Generator(bit_generator)
        others = np.delete(np.arange(state.n_views), view)
        columns, rows = np.flatnonzero(state.view_of == view), state.subsample.rows()
        log_g = self._log_g(state, columns, others, state.sizes()[others], beta)
        point, log_z = self._retrace(state, view, rows, beta, bit_generator)
        log_ratio = self._log_ratio(state, log_g, log_z, point)
        if np.log1p(-generator.random()) >= log_ratio:
            return False
        view_of = state.view_of.copy()
        view_of[columns] = others[draw_index(log_g, generator)]
        self.reassign(state, view_of)
        return True

    def _split(self, state, view, bit_generator, beta):
        """Send columns of a view to one of their own."""
        generator = np.random.Generator(bit_generator)
        own, rows = np.flatnonzero(state.view_of == view), state.subsample.rows()
        if len(own) == 1 or state.prior.open_weight(state.n_views) == 0:
            return False
        n_leaving = 1 + below(len(own) - 1, generator)
        order = np.argsort(generator.random(len(own)), kind="stable")
        columns = np.sort(own[order[:n_leaving]])
        point, log_z, labels = self._propose(state, columns, rows, beta, bit_generator)
        sizes = state.sizes()
        sizes[view] -= n_leaving
        log_g = self._log_g(state, columns, np.arange(state.n_views), sizes, beta)
        log_ratio = -self._log_ratio(state, log_g, log_z, point)
        if np.log1p(-generator.random()) >= log_ratio:
            return False
        view_of = state.view_of.copy()
        view_of[columns] = state.n_views
        self.reassign(state, view_of, [self._fresh(state, point, labels)])
        return True

    def _log_ratio(self, state, log_g, log_z, point):
        """log A."""
        log_proposal = self._log_proposal(state)
        n_others = len(log_g)
        return (
            np.logaddexp.reduce(log_g)
            - log_z
            + log_proposal[point]
            - self.row_grid.log_weights[point]
            + np.log1p(1.0 / n_others)
        )

    def _log_g(self, state, columns, others, sizes, beta):
        """log g_b for the views `others`, which hold `sizes` columns that are not moved."""
        rows = state.subsample.rows()
        labels = state.row_labels(rows)[others]
        single = np.intersect1d(columns, state.single_columns)
        joint, scores = np.setdiff1d(columns, single), np.zeros(len(others))
        if len(single):
            scores += self.column_scores(state, single, rows, labels).sum(axis=0)
        if len(joint):
            scores += self.joint_columns(state, [], asked=[]).scores_together(joint, others)
        m = len(columns)
        log_subset = (
            -np.log(sizes + m - 1.0)
            - gammaln(sizes + m + 1.0)
            + gammaln(m + 1.0)
            + gammaln(sizes + 1.0)
        )
        log_prior = state.prior.log_split(len(others), m, sizes)
        return beta * scores + log_subset - log_prior
