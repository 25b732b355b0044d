"""Gibbs steps of all columns at once, between the views of a CrossCat."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..states import FreshView
from ._column_kernels import choose_views
from ._column_move import ColumnMove
from ._hyperparameters import PartitionHyperparameters
from ._info import CALL, MoveInfo
from ._random import draw_index, draw_poisson


class ColumnBlock(ColumnMove):
    """Gibbs steps of all columns on one table of scores, computed in one pass over S, and then one
    step of each column of a family of whole rows, which has no such table.

    The hyperprior gives a view one cluster, whatever its rows, with probability w: views at such
    points are all alike. E ~ Poisson(n_auxiliary) fresh views at other points are added to those
    that hold columns. A column is taken out and enters a view that holds n_v others with weight
    (n_v - d) L. With o = alpha + d V, where V counts the views that hold a column, it enters a new
    view of one cluster with weight w o L, and each other view that is empty at that moment, its own
    included, with weight (1 - w) o / n_auxiliary L. The fresh views are an exact augmentation
    because their number is Poisson in any state, and views of one cluster need none. After each
    step of the columns (alpha, d) is drawn given their partition.

    Parameters
    ----------
    row_grid : PriorGrid or ndarray of shape (n_points, 2)
        The hyperprior of a view's own (concentration, discount); an array weighs its pairs alike.
    view_grid : PriorGrid, ndarray of shape (n_points, 2) or None, default=None
        The same for the partition of the columns; None leaves (alpha, d) as it is.
    n_auxiliary : float, default=2
        Mean number of fresh views.
    n_passes : int, default=4
        Steps per column; they cost little compared with the table.
    """

    name = "column_block"
    takes_view_grid = True

    def __init__(self, row_grid, view_grid=None, n_auxiliary=2, n_passes=4):
        super().__init__(row_grid)
        self.n_auxiliary, self.n_passes = n_auxiliary, n_passes
        self.prior_draw = None if view_grid is None else PartitionHyperparameters(view_grid)
        log_weights, single = self.row_grid.log_weights, ~self.row_grid.opens
        self.single_weight = float(np.exp(log_weights[single]).sum())
        self.single_points = np.flatnonzero(single)
        self.fresh_weights = np.where(single, -np.inf, log_weights)
        if single.all():
            self.single_weight, self.fresh_weights = 1.0, log_weights

    def sweep(self, state, bit_generator, *, beta=1.0):
        """`n_passes` steps of every column; counts as accepted those that changed views."""
        began, self.work = self.work, self.work + CALL
        mean = self.n_auxiliary if self.single_weight < 1.0 else 0.0
        n_fresh = draw_poisson(mean, np.random.Generator(bit_generator))
        fresh = self._fresh(state, n_fresh, bit_generator)
        before = after = state.view_of
        if len(state.single_columns):
            scores, single = self._table(state, fresh)
            self.work += CALL * self.n_passes
            for _ in range(self.n_passes):
                after = self._choose(state, after, beta * scores, single, bit_generator)
                self._draw_prior(state, after, bit_generator)
            after = self._open_singles(state, after, fresh, bit_generator)
        if len(state.joint_columns):
            after = self._choose_joint(state, after, fresh, beta, bit_generator)
            self._draw_prior(state, after, bit_generator)
        moved = int(np.sum(after != before))
        if moved:
            self.reassign(state, after, fresh)
        return MoveInfo(state.table.n_columns, moved, self.work - began)

    def _table(self, state, fresh):
        """Scores of the single columns in the state's views, the fresh ones and as many views of
        one cluster as there are columns, if there may be any; which of all these have one cluster
        by their prior."""
        n_single = state.table.n_columns if self.single_weight else 0
        one = [self._single_view(state)] if n_single else []
        scores = self._scores(state, state.single_columns, [*fresh, *one])
        scores = np.repeat(scores, [1] * (scores.shape[1] - len(one)) + [n_single] * len(one), 1)
        return scores, self._are_single(state, fresh, n_single)

    def _are_single(self, state, fresh, n_single):
        priors = [view.prior for view in (*state.views, *fresh)]
        return np.array([sum(prior.point) <= 0.0 for prior in priors] + [True] * n_single)

    def _single_view(self, state, point=0):
        """A fresh view of one cluster, its prior at one of the points for such views."""
        prior = self.row_grid.prior(self.single_points[point], type(state.views[0].prior))
        return FreshView(prior, np.zeros(state.subsample.size, dtype=np.int32))

    def _choose(self, state, view_of, scores, single, bit_generator):
        of, weights = state.single_columns, (self.n_auxiliary, self.single_weight)
        return choose_views(view_of, of, scores, single, state.prior, *weights, bit_generator)

    def _open_singles(self, state, view_of, fresh, bit_generator):
        """Add the views of one cluster that were chosen to the fresh ones; return where columns
        are."""
        n_known = state.n_views + len(fresh)
        chosen = np.unique(view_of[view_of >= n_known])
        fresh.extend(self._drawn_single(state, bit_generator) for _ in chosen)
        return np.where(view_of < n_known, view_of, n_known + np.searchsorted(chosen, view_of))

    def _drawn_single(self, state, bit_generator):
        log_weights = self.row_grid.log_weights[self.single_points]
        point = draw_index(log_weights, np.random.Generator(bit_generator))
        return self._single_view(state, point)

    def _draw_prior(self, state, view_of, bit_generator):
        """Draw (alpha, d) of the partition of the columns, if they are inferred."""
        if self.prior_draw is not None:
            sizes = np.bincount(view_of)
            state.set_prior(self.prior_draw.drawn(state.prior, sizes, bit_generator))

    def _choose_joint(self, state, view_of, fresh, beta, bit_generator):
        """One step of each joint column, in random order, the others where `view_of` says; views of
        one cluster are added to the fresh ones, so that there always is an empty one."""
        view_of, generator = view_of.copy(), np.random.Generator(bit_generator)
        sizes = np.bincount(view_of, minlength=state.n_views + len(fresh))
        joint = self.joint_columns(state, fresh)
        order = np.argsort(generator.random(len(joint.columns)), kind="stable")
        for column in joint.columns[order].tolist():
            self.poll()
            own = view_of[column]
            sizes[own] -= 1
            single = self._are_single(state, fresh, 0)
            if self.single_weight and not np.any(single & (sizes == 0)):
                fresh.append(self._drawn_single(state, bit_generator))
                self._add_view(joint, fresh[-1])
                sizes, single = np.r_[sizes, 0], np.r_[single, True]
            log_weights = beta * joint.scores(column) + self._log_weights(state, sizes, single)
            view_of[column] = draw_index(log_weights, generator)
            self.work += CALL
            sizes[view_of[column]] += 1
            joint.move(column, view_of[column], generator)
        return view_of

    def _log_weights(self, state, sizes, single):
        """Log prior weight of each view, without the column that is out."""
        log_weights = self._log_prior(state.prior, sizes, self.n_auxiliary)
        empty, w = sizes == 0, self.single_weight
        with np.errstate(divide="ignore"):
            log_weights[empty & ~single] += np.log1p(-w)
            first = np.flatnonzero(empty & single)[:1]
            one = log_weights[first] + np.log(w * self.n_auxiliary)
        log_weights[empty & single] = -np.inf
        log_weights[first] = one
        return log_weights
