"""Gibbs steps of one column after another, between the views of a CrossCat."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ._column_move import ColumnMove
from ._info import CALL, MoveInfo
from ._random import draw_index


class ColumnGibbs(ColumnMove):
    """Auxiliary-variable Gibbs (Neal 2000, algorithm 8) of one column after another.

    The column is taken out; if it was alone, its view is one of the auxiliaries. A view that holds
    n_v others has weight (n_v - d) L, each auxiliary (alpha + d V) / n_auxiliary L.

    Parameters
    ----------
    row_grid : PriorGrid or ndarray of shape (n_points, 2)
        The hyperprior of a view's own (concentration, discount); an array weighs its pairs alike.
    n_auxiliary : int, default=3
        Auxiliary views per step.
    """

    name = "column_gibbs"

    def __init__(self, row_grid, n_auxiliary=3):
        super().__init__(row_grid)
        self.n_auxiliary = n_auxiliary

    def sweep(self, state, bit_generator, *, beta=1.0):
        """One step of every column, in random order."""
        generator = np.random.Generator(bit_generator)
        order = np.argsort(generator.random(state.table.n_columns), kind="stable")
        moved, began = 0, self.work
        for column in order:
            self.work += CALL
            moved += self._step(state, int(column), bit_generator, beta)
        return MoveInfo(len(order), moved, self.work - began)

    def _step(self, state, column, bit_generator, beta):
        """Whether the column changed views."""
        own = state.view_of[column]
        sizes = state.sizes()
        sizes[own] -= 1
        alone = sizes[own] == 0
        fresh = self._fresh(state, self.n_auxiliary - alone, bit_generator)
        is_joint = column in state.joint_columns
        joint = self.joint_columns(state, fresh, asked=[column]) if is_joint else None
        scores = joint.scores(column) if joint else self._scores(state, [column], fresh)[0]
        sizes = np.r_[sizes, np.zeros(len(fresh), dtype=np.int64)]
        log_weights = beta * scores + self._log_prior(state.prior, sizes, self.n_auxiliary)
        generator = np.random.Generator(bit_generator)
        choice = draw_index(log_weights, generator)
        if choice != own:
            if joint:
                joint.move(column, choice, generator)
            view_of = state.view_of.copy()
            view_of[column] = choice
            self.reassign(state, view_of, fresh)
        return choice != own
