"""Gibbs steps of all columns at once, between the views of a CrossCat."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ._column_kernels import choose_views
from ._column_move import ColumnMove
from ._info import CALL, MoveInfo
from ._random import draw_index, draw_poisson


class ColumnBlock(ColumnMove):
    """Gibbs steps of all columns on one table of scores, computed in one pass over S, and then one
    step of each column of a family of whole rows, which has no such table.

    E ~ Poisson(n_auxiliary) fresh views are added to those that hold columns. A column is taken out
    and enters a view that holds n_v others with weight (n_v - d) L, and each view that is empty at
    that moment, its own included, with weight (alpha + d V) / n_auxiliary L, where V counts the
    views that hold a column. The fresh views are an exact augmentation because their number is
    Poisson in any state.

    Parameters
    ----------
    row_grid : PriorGrid or ndarray of shape (n_points, 2)
        The hyperprior of a view's own (concentration, discount); an array weighs its pairs alike.
    n_auxiliary : float, default=8
        Mean number of fresh views.
    n_passes : int, default=4
        Steps per column; they cost little compared with the table.
    """

    name = "column_block"

    def __init__(self, row_grid, n_auxiliary=8, n_passes=4):
        super().__init__(row_grid)
        self.n_auxiliary, self.n_passes = n_auxiliary, n_passes

    def sweep(self, state, bit_generator, *, beta=1.0):
        """`n_passes` steps of every column; counts as accepted those that changed views."""
        began, self.work = self.work, self.work + CALL
        n_fresh = draw_poisson(self.n_auxiliary, np.random.Generator(bit_generator))
        fresh = self._fresh(state, n_fresh, bit_generator)
        before = after = state.view_of
        if len(state.single_columns):
            scores = beta * self._scores(state, state.single_columns, fresh)
            after = self._choose(state, before, scores, bit_generator)
        if len(state.joint_columns):
            after = self._choose_joint(state, after, fresh, beta, bit_generator)
        moved = int(np.sum(after != before))
        if moved:
            self.reassign(state, after, fresh)
        return MoveInfo(state.table.n_columns, moved, self.work - began)

    def _choose(self, state, view_of, scores, bit_generator):
        of, mean = state.single_columns, self.n_auxiliary
        return choose_views(view_of, of, scores, state.prior, mean, self.n_passes, bit_generator)

    def _choose_joint(self, state, view_of, fresh, beta, bit_generator):
        """One step of each joint column, in random order, the others where `view_of` says."""
        view_of, generator = view_of.copy(), np.random.Generator(bit_generator)
        sizes = np.bincount(view_of, minlength=state.n_views + len(fresh))
        joint = self.joint_columns(state, fresh)
        order = np.argsort(generator.random(len(joint.columns)), kind="stable")
        for column in joint.columns[order].tolist():
            self.poll()
            own = view_of[column]
            sizes[own] -= 1
            log_weights = beta * joint.scores(column)
            log_weights += self._log_prior(state.prior, sizes, self.n_auxiliary)
            view_of[column] = draw_index(log_weights, generator)
            sizes[view_of[column]] += 1
            joint.move(column, view_of[column], generator)
        return view_of
