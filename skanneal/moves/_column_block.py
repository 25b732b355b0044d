"""Gibbs steps of all columns at once, between the views of a CrossCat."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ._column_kernels import choose_views
from ._column_move import ColumnMove
from ._info import CALL, MoveInfo
from ._random import draw_poisson


class ColumnBlock(ColumnMove):
    """Gibbs steps of all columns on one table of scores, computed in one pass over S.

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
        n_columns = state.table.n_columns
        n_fresh = draw_poisson(self.n_auxiliary, np.random.Generator(bit_generator))
        fresh = self._fresh(state, n_fresh, bit_generator)
        scores = beta * self._scores(state, np.arange(n_columns), fresh)
        before = state.view_of
        after = self._choose(state, before, scores, bit_generator)
        moved = int(np.sum(after != before))
        if moved:
            state.reassign(after, fresh)
        work = CALL + state.subsample.size * scores.size
        return MoveInfo(n_columns, moved, work)

    def _choose(self, state, view_of, scores, bit_generator):
        return choose_views(
            view_of, scores, state.prior, self.n_auxiliary, self.n_passes, bit_generator
        )
