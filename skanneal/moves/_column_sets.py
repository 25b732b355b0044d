"""Sets of columns assigned anew to the views of a CrossCat, by the prior."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ._column_kernels import seat
from ._column_move import ColumnMove
from ._info import CALL, MoveInfo
from ._random import below


class ColumnSets(ColumnMove):
    """Metropolis-Hastings: a set of columns is assigned anew by the prior alone.

    The set is the block of a random column in a fresh draw from the columns' prior, so it does
    not depend on the state. All of it is taken out, views left empty are dropped, and the columns
    are assigned one after another by the prior; the ratio is that of the likelihoods.

    Parameters
    ----------
    row_grid : PriorGrid or ndarray of shape (n_points, 2)
        The hyperprior of a view's own (concentration, discount); an array weighs its pairs alike.
    n_proposals : int, default=1
        Per sweep.
    """

    name = "column_sets"

    def __init__(self, row_grid, n_proposals=1):
        super().__init__(row_grid)
        self.n_proposals = n_proposals

    def sweep(self, state, bit_generator, *, beta=1.0):
        """`n_proposals` proposals."""
        accepted, began = 0, self.work
        for _ in range(self.n_proposals):
            self.work += CALL
            accepted += self._propose(state, bit_generator, beta)
        return MoveInfo(self.n_proposals, accepted, self.work - began)

    def _propose(self, state, bit_generator, beta):
        """Whether columns have changed views."""
        generator = np.random.Generator(bit_generator)
        n_columns, n_views = state.table.n_columns, state.n_views
        blocks = state.prior.draw(n_columns, bit_generator)
        chosen = np.flatnonzero(blocks == blocks[below(n_columns, generator)])
        after = seat(state.view_of, chosen.astype(np.int64), state.prior, bit_generator)
        fresh = self._fresh(state, max(0, int(after.max()) + 1 - n_views), bit_generator)
        single, log_ratio = np.intersect1d(chosen, state.single_columns), 0.0
        if len(single):
            scores, at = self._scores(state, single, fresh), np.arange(len(single))
            log_ratio += np.sum(scores[at, after[single]] - scores[at, state.view_of[single]])
        if len(single) < len(chosen):
            log_ratio += self.joint_columns(state, fresh, asked=[]).log_ratio(state.view_of, after)
        if np.log1p(-generator.random()) >= beta * log_ratio:
            return False
        changed = bool(np.any(after != state.view_of))
        if changed:
            self.reassign(state, after, fresh)
        return changed
