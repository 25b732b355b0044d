"""Reallocation of views by annealing: rows enter the new views with Gibbs steps in between.

As in ViewReallocation one view becomes two or two become one, and all their rows are assigned anew.
Sequential allocation in one pass underestimates the marginal likelihood, by more than a nat per row
if there are many columns, since a row keeps the cluster that it gets. Here Gibbs steps of random
rows follow each row that enters, and the pair (concentration, discount) and the hyperparameters are
drawn at each doubling of the rows. With s = (partition, pair, hyperparameters), the rows in random
order and the targets

    p_t(s) = p(s) p(x_1, .., x_t | s),   t = 0 .. n,

Z is the product of the entering rows' normalisers along a path from p_0 to p_n. The present views
take such a path backwards: steps and draws in reverse order, and rows that leave, each with its
normaliser once it is out. Since all steps and draws are reversible with respect to their p_t,

    q(path) Z = p(s, x) q(backward path | s)

for any number of steps: annealed importance sampling (Neal 2001) between models (Karagiannis and
Andrieu 2013), tempered by rows. So a split or a merge is accepted as in ViewReallocation; t is the
law of the first pair of a path; on a backward path the last pair stands in its place.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..partition_priors import PriorGrid
from ..states import FreshView
from ._allocate import enter_rows, leave_rows
from ._hyperparameters import FeatureHyperparameters, PartitionHyperparameters
from ._info import row_work
from ._view_reallocation import ViewReallocation


class ViewAnnealing(ViewReallocation):
    """Split a view in two, or merge two, and anneal the rows of all of them.

    Parameters
    ----------
    row_grid : PriorGrid or ndarray of shape (n_points, 2)
        The hyperprior of a view's own (concentration, discount); an array weighs its pairs alike.
    grids : dict of int to list of (ndarray or None) or None, default=None
        Of the columns' hyperparameters, as in FeatureHyperparameters; others do not change.
    n_steps : int, default=30
        Gibbs steps after each row that enters, and before each that leaves.
    """

    name = "view_annealing"
    takes_grids = True

    def __init__(self, row_grid, grids=None, n_steps=30):
        super().__init__(row_grid, 1)
        self.grids = grids = {} if grids is None else grids
        self.n_steps = n_steps
        whole = PriorGrid(self.row_grid.points, self.row_grid.log_weights, least_rows=0)
        # Each coordinate by itself: a sweep of several is not reversible, but its reverse is a
        # sweep in the reverse order.
        self.draws = [PartitionHyperparameters(whole)]
        for c in range(max(map(len, grids.values()), default=0)):
            of_one = {j: _only(c, own) for j, own in grids.items() if c < len(own)}
            self.draws.append(FeatureHyperparameters(of_one, together=False))

    def _make(self, state, columns, rows, beta, bit_generator):
        """A view of these columns: its first pair's place on the grid, log Z, the view."""
        point, log_z = self._first_point(state, bit_generator), 0.0
        order = self._order(rows, bit_generator)
        view = self._new_view(state, columns, self._prior(state, point))
        for draw in self.draws[1:]:
            draw.sweep(view, bit_generator, beta=beta)
        for start, stop in stages(len(rows)):
            self.poll()
            log_z += enter_rows(view, order, start, stop, self.n_steps, beta, bit_generator)
            self._count(view, columns, stop - start)
            for draw in self.draws:
                draw.sweep(view, bit_generator, beta=beta)
            view.compact()
        return point, log_z, FreshView.of(view, rows)

    def _unmake(self, state, v, rows, beta, bit_generator):
        """The first two of these for the present view, by the backward path."""
        columns, log_z = np.flatnonzero(state.view_of == v), 0.0
        order = self._order(rows, bit_generator)
        view = self._new_view(state, columns, state.views[v].prior)
        view.replace(rows, state.views[v].labels_of(rows))
        for start, stop in reversed(stages(len(rows))):
            self.poll()
            for draw in reversed(self.draws):
                draw.sweep(view, bit_generator, beta=beta)
            log_z += leave_rows(view, order, start, stop, self.n_steps, beta, bit_generator)
            self._count(view, columns, stop - start)
        return self.row_grid.place(view.prior), log_z

    def _order(self, rows, bit_generator):
        uniform = np.random.Generator(bit_generator).random(len(rows))
        return rows[np.argsort(uniform, kind="stable")]

    def _count(self, view, columns, n_rows):
        """Count rows that enter or leave, and the steps between them."""
        self.work += n_rows * (1 + self.n_steps) * (view.n_tiles + 1) * row_work(len(columns))

    def _reference(self, state, columns):
        """Hyperparameters with grids are at the middle of these, independently of the state."""
        hyper = super()._reference(state, columns)
        for j in hyper.keys() & self.grids.keys():
            middles = [None if grid is None else grid[len(grid) // 2] for grid in self.grids[j]]
            kept = [old if new is None else new for old, new in zip(hyper[j], middles)]
            hyper[j] = np.array(kept)
        return hyper


def stages(n_rows):
    """Return the beginnings and ends of the stretches after which the parameters are drawn.

    Examples
    --------
    >>> from skanneal.moves._view_annealing import stages
    >>> stages(11)
    [(0, 4), (4, 8), (8, 11)]
    """
    ends = [2**k for k in range(2, n_rows.bit_length()) if 2**k < n_rows] + [n_rows]
    return list(zip([0, *ends], ends))


def _only(c, grids):
    """Grids that are None except for the c-th coordinate."""
    return [grid if i == c else None for i, grid in enumerate(grids)]
