"""The base of moves that make new views by sequential allocation of the rows."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..partition_priors import PriorGrid
from ..states import FreshView
from ._allocate import allocate
from ._column_work import ColumnWork
from ._info import CALL, MoveInfo, row_work
from ._random import below, draw_index

NULL_SHARE = 0.1  # share of the proposed pairs at which no second cluster ever opens


class AllocatingMove(ColumnWork):
    """Base of the moves that split views and merge them, each with probability 1/2.

    A subclass writes ``_split`` and ``_merge``, which take (state, view, bit_generator, beta), make
    one proposal and return whether it was accepted.

    Parameters
    ----------
    row_grid : PriorGrid or ndarray of shape (n_points, 2)
        The hyperprior of a view's own (concentration, discount); an array weighs its pairs alike.
    n_proposals : int
        Per sweep.
    """

    def __init__(self, row_grid, n_proposals):
        self.row_grid = PriorGrid.of(row_grid)
        self.n_proposals = n_proposals
        self._known = None  # (rows in S, log t), kept because log t is expensive

    def sweep(self, state, bit_generator, *, beta=1.0):
        """Make `n_proposals` proposals; return MoveInfo."""
        generator = np.random.Generator(bit_generator)
        accepted, began = 0, self.work
        for _ in range(self.n_proposals):
            merge, view = generator.random() < 0.5, below(state.n_views, generator)
            propose = self._merge if merge else self._split
            self.work += CALL
            accepted += propose(state, view, bit_generator, beta)
        return MoveInfo(self.n_proposals, accepted, self.work - began)

    def _log_proposal(self, state):
        """log t: the hyperprior divided by a pair's cost, its expected number of clusters.

        A pair with which one cluster holds all rows costs least and is probable, but it separates
        no rows. Such pairs have the share NULL_SHARE together, if there are others.
        """
        n_rows = state.subsample.size
        if self._known is None or self._known[0] != n_rows:
            expected = state.views[0].prior.expected_clusters(self.row_grid.points, n_rows)
            self._known = n_rows, self._log_t(np.nan_to_num(expected, nan=n_rows))
        return self._known[1]

    def _log_t(self, expected):
        costs = 1.0 + np.maximum(expected, 0.0)
        log_weights = self.row_grid.log_weights - np.log(costs)
        opens = self.row_grid.opens
        # of few numbers logaddexp.reduce is ten times as fast as logsumexp
        if opens.any() and not opens.all():
            log_weights[~opens] += np.log(NULL_SHARE) - np.logaddexp.reduce(log_weights[~opens])
            log_weights[opens] += np.log1p(-NULL_SHARE) - np.logaddexp.reduce(log_weights[opens])
        return log_weights - np.logaddexp.reduce(log_weights)

    def _propose(self, state, columns, rows, beta, bit_generator, hyper=None):
        """A view of these columns: its prior's place on the grid, log Z, slots of the rows."""
        point = self._first_point(state, bit_generator)
        given = columns, point, rows, None, beta, bit_generator, hyper
        return point, *self._allocate(state, *given)

    def _first_point(self, state, bit_generator):
        """A pair's place on the grid, drawn from t."""
        return draw_index(self._log_proposal(state), np.random.Generator(bit_generator))

    def _retrace(self, state, v, rows, beta, bit_generator):
        """The same for the present view: its prior's place on the grid, log Z."""
        view, columns = state.views[v], np.flatnonzero(state.view_of == v)
        point, labels = self.row_grid.place(view.prior), view.labels_of(rows)
        return point, self._allocate(state, columns, point, rows, labels, beta, bit_generator)[0]

    def _allocate(self, state, columns, point, rows, labels, beta, bit_generator, hyper=None):
        """(log Z, slots of the rows) of a view of these columns alone."""
        self.poll()
        view = self._new_view(state, columns, self._prior(state, point), hyper)
        log_z = allocate(view, rows, labels, beta, bit_generator)
        self.work += len(rows) * (view.n_tiles + 1) * row_work(len(columns))
        return log_z, view.labels_of(rows)

    def _new_view(self, state, columns, prior, hyper=None):
        self.work += CALL
        return state.new_view(columns, prior, hyper)

    def _fresh(self, state, point, labels):
        return FreshView(self._prior(state, point), labels)

    def _prior(self, state, point):
        return self.row_grid.prior(point, type(state.views[0].prior))
