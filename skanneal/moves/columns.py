"""Moves of features between the views of a CrossCat (Obermeyer et al. 2014, section 4).

L_f(view) is the marginal likelihood of feature f's cells under the view's partition of the rows of
S. A view that no feature is in yet is drawn from its prior alone: the pair (concentration,
discount) from the hyperprior, then a partition of S; nothing is copied from a view that exists.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..states import FreshView
from ._columns import choose_views, seat
from ._random import below, draw_index, draw_poisson
from .info import MoveInfo, Polled


class _ColumnMove(Polled):
    """Base: moves that draw views from their prior.

    Parameters
    ----------
    row_grid : ndarray of shape (n_points, 2)
        (concentration, discount) pairs of equal weight: the hyperprior of a view's own pair.
    """

    exact = True
    tempered = True

    def __init__(self, row_grid):
        self.row_grid = np.asarray(row_grid, dtype=np.float64)

    def _fresh(self, state, n_views, bit_generator):
        """Views from their prior: list of FreshView."""
        generator = np.random.Generator(bit_generator)
        n, kind = state.subsample.size, state.views[0].prior
        views = []
        for _ in range(n_views):
            prior = kind.at(self.row_grid[below(len(self.row_grid), generator)])
            views.append(FreshView(prior, prior.draw(n, bit_generator).astype(np.int32)))
        return views

    def _scores(self, state, columns, fresh):
        """log L of columns in the state's views and then in the fresh ones: (n, n_views)."""
        rows = state.subsample.rows()
        labels = np.concatenate([state.row_labels(rows), *(view.labels[None] for view in fresh)])
        return self.column_scores(state, np.asarray(columns), rows, labels)


class ColumnBlock(_ColumnMove):
    """Gibbs steps of all features on one table of scores, computed in one pass over S.

    E ~ Poisson(n_auxiliary) fresh views stand beside those that hold features. A feature, taken
    out, enters a view that holds n_v others with weight (n_v - d) L, and each view that is empty at
    that moment, its own included, with (alpha + d V) / n_auxiliary L, V the views that hold one.
    The fresh views are an exact augmentation because their number is Poisson whatever the state.

    Parameters
    ----------
    row_grid : ndarray of shape (n_points, 2)
        (concentration, discount) pairs of equal weight: the hyperprior of a view's own pair.
    n_auxiliary : float, default=8
        Mean number of fresh views.
    n_passes : int, default=4
        Steps per feature; they cost little beside the table.
    """

    name = "column_block"
    weight = 2

    def __init__(self, row_grid, n_auxiliary=8, n_passes=4):
        super().__init__(row_grid)
        self.n_auxiliary, self.n_passes = n_auxiliary, n_passes

    def sweep(self, state, bit_generator, *, beta=1.0):
        """`n_passes` steps of every feature; counts as accepted those that changed views."""
        n_columns = state.table.n_columns
        n_fresh = draw_poisson(self.n_auxiliary, np.random.Generator(bit_generator))
        fresh = self._fresh(state, n_fresh, bit_generator)
        scores = beta * self._scores(state, np.arange(n_columns), fresh)
        before = state.view_of
        after = self._choose(state, before, scores, bit_generator)
        moved = int(np.sum(after != before))
        if moved:
            state.reassign(after, fresh)
        work = state.subsample.size * scores.shape[1]
        return MoveInfo(n_columns, moved, work)

    def _choose(self, state, view_of, scores, bit_generator):
        return choose_views(
            view_of, scores, state.prior, self.n_auxiliary, self.n_passes, bit_generator
        )


class ColumnGibbs(_ColumnMove):
    """Auxiliary-variable Gibbs (Neal 2000, algorithm 8) of one feature after another.

    The feature is taken out; if it was alone, its view is one of the auxiliaries. A view that holds
    n_v others has weight (n_v - d) L, each auxiliary (alpha + d V) / n_auxiliary L.

    Parameters
    ----------
    row_grid : ndarray of shape (n_points, 2)
        (concentration, discount) pairs of equal weight: the hyperprior of a view's own pair.
    n_auxiliary : int, default=3
        Auxiliary views per step.
    """

    name = "column_gibbs"
    weight = 2

    def __init__(self, row_grid, n_auxiliary=3):
        super().__init__(row_grid)
        self.n_auxiliary = n_auxiliary

    def sweep(self, state, bit_generator, *, beta=1.0):
        """One step of every feature, in random order."""
        generator = np.random.Generator(bit_generator)
        order = np.argsort(generator.random(state.table.n_columns), kind="stable")
        moved = work = 0
        for column in order:
            changed, n_views = self._step(state, int(column), bit_generator, beta)
            moved += changed
            work += state.subsample.size * n_views
        return MoveInfo(len(order), moved, work)

    def _step(self, state, column, bit_generator, beta):
        """(whether the feature changed views, views scored)."""
        own = state.view_of[column]
        sizes = state.sizes()
        sizes[own] -= 1
        alone = sizes[own] == 0
        fresh = self._fresh(state, self.n_auxiliary - alone, bit_generator)
        scores = beta * self._scores(state, [column], fresh)[0]
        log_weights = scores + self._log_prior(state, sizes, alone, len(fresh))
        choice = draw_index(log_weights, np.random.Generator(bit_generator))
        if choice != own:
            view_of = state.view_of.copy()
            view_of[column] = choice
            state.reassign(view_of, fresh)
        return choice != own, len(scores)

    def _log_prior(self, state, sizes, alone, n_fresh):
        """Log prior weight of the views, `sizes` without the feature, and of the fresh ones."""
        prior = state.prior
        n_filled = np.count_nonzero(sizes)
        # the only feature opens a view with probability 1
        share = np.log(prior.open_weight(n_filled) / self.n_auxiliary) if n_filled else 0.0
        weights = np.full(len(sizes) + n_fresh, share)
        weights[: len(sizes)][sizes > 0] = np.log(sizes[sizes > 0] - prior.reduction)
        return weights


class ColumnSets(_ColumnMove):
    """Metropolis-Hastings: a set of features is seated anew by the prior alone.

    The set is the block of a random feature in a fresh draw from the features' prior, so it does
    not depend on the state. All of it is taken out, views left empty are dropped, and the features
    are seated one after another by the prior; the ratio is that of the likelihoods.

    Parameters
    ----------
    row_grid : ndarray of shape (n_points, 2)
        (concentration, discount) pairs of equal weight: the hyperprior of a view's own pair.
    n_proposals : int, default=2
        Per sweep.
    """

    name = "column_sets"
    weight = 1

    def __init__(self, row_grid, n_proposals=2):
        super().__init__(row_grid)
        self.n_proposals = n_proposals

    def sweep(self, state, bit_generator, *, beta=1.0):
        """`n_proposals` proposals."""
        accepted = work = 0
        for _ in range(self.n_proposals):
            changed, scored = self._propose(state, bit_generator, beta)
            accepted += changed
            work += scored
        return MoveInfo(self.n_proposals, accepted, work)

    def _propose(self, state, bit_generator, beta):
        """(whether the features now sit elsewhere, work in row scores)."""
        generator = np.random.Generator(bit_generator)
        n_columns, n_views = state.table.n_columns, state.n_views
        blocks = state.prior.draw(n_columns, bit_generator)
        chosen = np.flatnonzero(blocks == blocks[below(n_columns, generator)])
        after = seat(state.view_of, chosen.astype(np.int64), state.prior, bit_generator)
        fresh = self._fresh(state, max(0, int(after.max()) + 1 - n_views), bit_generator)
        scores = self._scores(state, chosen, fresh)
        at = np.arange(len(chosen))
        log_ratio = beta * np.sum(scores[at, after[chosen]] - scores[at, state.view_of[chosen]])
        if np.log1p(-generator.random()) >= log_ratio:
            return False, scores.size
        changed = bool(np.any(after != state.view_of))
        if changed:
            state.reassign(after, fresh)
        return changed, state.subsample.size * scores.shape[1]
