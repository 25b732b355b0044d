"""The base of moves of columns between views of a CrossCat (Obermeyer et al. 2014, section 4).

L_f(view) is the marginal likelihood of column f's cells under the view's partition of the rows of
S. A view that holds no column yet is drawn from its prior alone: the pair (concentration,
discount) from the hyperprior, then a partition of S; nothing is copied from an existing view.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..partition_priors import PriorGrid
from ..states import FreshView
from ._column_work import ColumnWork
from ._info import CALL
from ._random import draw_index


class ColumnMove(ColumnWork):
    """Base: moves that draw views from their prior.

    Parameters
    ----------
    row_grid : PriorGrid or ndarray of shape (n_points, 2)
        The hyperprior of a view's own (concentration, discount); an array weighs its pairs alike.

    Attributes
    ----------
    fresh_weights : float64 array of shape (n_points,)
        Log weights by which the points of fresh views are drawn.
    """

    def __init__(self, row_grid):
        self.row_grid = PriorGrid.of(row_grid)
        self.fresh_weights = self.row_grid.log_weights

    def _fresh(self, state, n_views, bit_generator):
        """Views from their prior: list of FreshView."""
        generator = np.random.Generator(bit_generator)
        n, kind = state.subsample.size, type(state.views[0].prior)
        views = []
        self.work += CALL * n_views
        for _ in range(n_views):
            prior = self.row_grid.prior(draw_index(self.fresh_weights, generator), kind)
            views.append(FreshView(prior, prior.draw(n, bit_generator).astype(np.int32)))
        return views

    @staticmethod
    def _log_prior(prior, sizes, n_auxiliary):
        """Log prior weight of views of these sizes, without the column that is out; of those that
        are empty, n_auxiliary are expected."""
        n_filled = np.count_nonzero(sizes)
        # the only column opens a view with probability 1
        with np.errstate(divide="ignore"):  # where no view may open
            share = np.log(prior.open_weight(n_filled) / n_auxiliary) if n_filled else 0.0
        weights = np.full(len(sizes), share)
        weights[sizes > 0] = np.log(sizes[sizes > 0] - prior.reduction)
        return weights

    def _scores(self, state, columns, fresh):
        """log L of columns in the state's views and then in the fresh ones: (n, n_views)."""
        rows = state.subsample.rows()
        labels = np.concatenate([state.row_labels(rows), *(view.labels[None] for view in fresh)])
        return self.column_scores(state, np.asarray(columns), rows, labels)
