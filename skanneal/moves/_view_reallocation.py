"""Reallocation of views: one view becomes two or two become one, and their rows are assigned anew.

If one view stands for two, its clusters are the products of theirs. A split of such a view needs a
new partition of the rows for the columns that leave, and also for those that stay, whose old
partition would still separate clusters of the columns that left. Sequential allocation draws these
partitions and estimates the marginal likelihood of each set of columns, which decides.

Choose, each with probability 1/2, a split of a uniform one of the V views, or a merge of a uniform
ordered pair of views.

    split   choose one of the view's n columns, i, uniformly, and allocate the rows given i alone,
            with a pair from t: partition z. Column f goes with i with probability
            q_f = e + (1 - 2 e) / (1 + p(x_f | one cluster) / p(x_f | z)).
            Those that go, F (m of them, not all), and the rest, R, each get a pair
            (concentration, discount) from t and an allocation.
    merge   choose i uniformly in the first view, F, and z as above; the columns of both get a
            pair from t and an allocation.

With q = prod q_f (1 - q_f), Z the product of an allocation's constants (a forced allocation for
present views) and h the hyperprior of the pair, a split is accepted with min(1, A), a merge with
min(1, 1 / A),

    A = Z_F Z_R h t_W / (Z_W t_F t_R) n / ((V + 1) m q)
        (alpha + d V) (1 - d)_{m - 1} (1 - d)_{n - m - 1} / (1 - d)_{n - 1},

where V counts the views before the split. i and z are drawn alike in both directions and cancel.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.special import expit

from ._allocating_move import AllocatingMove
from ._random import below

EITHER = 0.05  # the least probability that a column goes with the chosen one, and that it stays


class ViewReallocation(AllocatingMove):
    """Split a view in two, or merge two, and allocate the rows of all of them anew.

    Parameters
    ----------
    row_grid : PriorGrid or ndarray of shape (n_points, 2)
        The hyperprior of a view's own (concentration, discount); an array weighs its pairs alike.
    n_proposals : int, default=1
        Per sweep.
    """

    name = "view_reallocation"

    def __init__(self, row_grid, n_proposals=1):
        super().__init__(row_grid, n_proposals)

    def _split(self, state, view, bit_generator, beta):
        generator = np.random.Generator(bit_generator)
        own, rows = np.flatnonzero(state.view_of == view), state.subsample.rows()
        if len(own) == 1 or state.prior.open_weight(state.n_views) == 0:
            return False
        chosen = own[below(len(own), generator)]
        going = self._going(state, chosen, own, rows, beta, bit_generator)
        goes = (generator.random(len(own)) < going) | (own == chosen)
        if goes.all():
            return False
        parts = own[goes], own[~goes]
        before = self._unmake(state, view, rows, beta, bit_generator)
        made = [self._make(state, part, rows, beta, bit_generator) for part in parts]
        log_ratio = self._log_ratio(
            state, state.n_views, before, made, goes, self._log_choice(going, goes, own == chosen)
        )
        if np.log1p(-generator.random()) >= log_ratio:
            return False
        view_of = state.view_of.copy()
        view_of[parts[0]], view_of[parts[1]] = state.n_views, state.n_views + 1
        self.reassign(state, view_of, [view for _, _, view in made])
        return True

    def _merge(self, state, view, bit_generator, beta):
        if state.n_views == 1:
            return False
        generator = np.random.Generator(bit_generator)
        other = below(state.n_views - 1, generator)
        other += other >= view
        rows = state.subsample.rows()
        own = np.flatnonzero((state.view_of == view) | (state.view_of == other))
        goes = state.view_of[own] == view
        chosen = own[goes][below(int(goes.sum()), generator)]
        going = self._going(state, chosen, own, rows, beta, bit_generator)
        before = [self._unmake(state, v, rows, beta, bit_generator) for v in (view, other)]
        made = self._make(state, own, rows, beta, bit_generator)
        log_choice = self._log_choice(going, goes, own == chosen)
        log_ratio = -self._log_ratio(state, state.n_views - 1, made, before, goes, log_choice)
        if np.log1p(-generator.random()) >= log_ratio:
            return False
        view_of = state.view_of.copy()
        view_of[own] = state.n_views
        self.reassign(state, view_of, [made[2]])
        return True

    def _make(self, state, columns, rows, beta, bit_generator):
        """A view of these columns: its prior's place on the grid, log Z, the view."""
        point, log_z, labels = self._propose(state, columns, rows, beta, bit_generator)
        return point, log_z, self._fresh(state, point, labels)

    def _unmake(self, state, v, rows, beta, bit_generator):
        """The first two of these for the present view."""
        return self._retrace(state, v, rows, beta, bit_generator)

    def _reference(self, state, columns):
        """Hyperparameters that decide which columns go, the same before and after the
        proposal."""
        return state.hyper(columns)

    def _going(self, state, chosen, own, rows, beta, bit_generator):
        """q_f of the columns `own`."""
        hyper = self._reference(state, own)
        _, _, labels = self._propose(state, [chosen], rows, beta, bit_generator, hyper)
        partitions = np.stack([np.zeros_like(labels), labels])
        scores = self.column_scores(state, own, rows, partitions, hyper)
        return EITHER + (1.0 - 2.0 * EITHER) * expit(beta * (scores[:, 1] - scores[:, 0]))

    def _log_choice(self, going, goes, chosen):
        """log q of the columns that go; the chosen column always goes."""
        return np.log(np.where(goes, going, 1.0 - going))[~chosen].sum()

    def _log_ratio(self, state, n_views, whole, parts, goes, log_choice):
        """log A of a split among n_views views; whole and parts are (point, log Z, ...)."""
        log_h = self.row_grid.log_weights - self._log_proposal(state)
        n, m = len(goes), int(goes.sum())
        log_prior = state.prior.log_split(n_views, m, n - m)
        log_parts = sum(part[1] + log_h[part[0]] for part in parts)
        log_whole = whole[1] + log_h[whole[0]]
        log_views = np.log(n) - np.log(n_views + 1.0) - np.log(m)
        return log_parts - log_whole + log_prior + log_views - log_choice
