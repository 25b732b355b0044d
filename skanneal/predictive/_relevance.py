"""How probable it is that a column has to do with the components of its view.

That two columns are in one view of several components does not make them depend on each other: the
components need not differ in a column. A draw of a chain has a law for each component in every
column, but where their prior is strong, as large pseudo-counts are, these laws are nearly equal and
cost nothing. So each column is asked by itself, given the rows' components z,

    relevant      a law for each component    prod_k m(x_k)
    irrelevant    one law for all             m(x)

with probability 1/2 each. Both marginal likelihoods m are exact. How strong the prior is, that is
by how much components are expected to differ, is unknown, so they are averaged over it: all of the
column's pseudo-counts, or the shape and the rate of a gamma law, are multiplied by one factor that
runs over the family's own grid. A prior that weighs more than the mean component has rows makes the
laws of components more one law than laws of their own: such strengths count as irrelevant, and are
left out of the average of the relevant. The other hyperparameters are the draw's.
"""

# SPDX-License-Identifier: BSD-3-Clause

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from ..families._gamma_exponential import GammaExponential
from ..families._negative_binomial import NegativeBinomial
from ..families._poisson import Poisson

# Of families without pseudo-counts of outcomes: the coordinates that say how much components are
# alike, and which of them is the prior's weight in rows. Of a normal column the weight of the prior
# mean says so, but it is at most ten rows.
ALIKE = {Poisson: ([0, 1], 1), GammaExponential: ([0, 1], 0), NegativeBinomial: ([1, 2], 1)}


def relevances(view):
    """Probability that each column of a view has to do with its components: dict of int to float.

    It is 0 in a view of one component. Columns of families of whole rows are left out; see
    _covariance_odds.py.

    Parameters
    ----------
    view : View
    """
    slots, out = view.slots[:-1], {}
    for block in view.mixture.blocks:
        if block.joint:
            continue
        if len(slots) < 2:
            out |= dict.fromkeys(block.columns.tolist(), 0.0)
            continue
        own = block.spare(len(slots))
        for k, slot in enumerate(slots):
            own.copy_slot(block, int(slot), k)
        lines = [Line.of(own, f) for f in range(own.n_features)]
        most = own.sizes().sum() / len(slots)
        apart = [line.up_to(most).log_marginal(own, f) for f, line in enumerate(lines)]
        for k in range(1, len(slots)):
            own.merge_slots(0, k)
        for f, line in enumerate(lines):
            out[int(own.columns[f])] = float(expit(apart[f] - line.log_marginal(own, f)))
    return out


class Line(NamedTuple):
    """Hyperparameters of a column with a prior from weak to strong.

    Attributes
    ----------
    coordinates : list of int
        Those that differ between the points.
    values : ndarray of shape (n_points, n_coordinates)
        One point of no coordinate where nothing says how strong the prior is.
    rows : ndarray of shape (n_points,)
        What the prior weighs.
    """

    coordinates: list
    values: np.ndarray
    rows: np.ndarray

    @classmethod
    def of(cls, block, f):
        """Return the line through the hyperparameters of feature f."""
        hyper, first = block.get_hyper(f), block.first_pseudo_count
        at, weight = ALIKE.get(type(block), ([], None))
        if first is not None:
            at = list(range(first, len(hyper)))
        if not at:
            return cls(at, np.empty((1, 0)), np.zeros(1))
        n_levels = int(block.table.n_levels[block.columns[f]])
        largest = at[0] if first is None else at[int(hyper[at].argmax())]
        grid = block.grids(np.ones(1), n_levels)[largest]
        values = np.multiply.outer(grid / hyper[largest], hyper[at])
        return cls(at, values, values.sum(axis=1) if weight is None else values[:, weight])

    def up_to(self, most):
        """Return the part where the prior weighs no more rows; at least the first point."""
        n = max(1, np.count_nonzero(self.rows <= most))
        return Line(self.coordinates, self.values[:n], self.rows[:n])

    def log_marginal(self, block, f):
        """Return the log marginal likelihood of feature f's cells in all slots, averaged over the
        points; the block's hyperparameters are then those of the last."""
        logs = []
        for point in self.values:
            for h, value in zip(self.coordinates, point):
                block.set_hyper(f, h, value)
            logs.append(block.log_marginals(f).sum())
        return np.logaddexp.reduce(logs) - np.log(len(logs))
