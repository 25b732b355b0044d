"""How much better two groups of components explain their rows as two components than as one.

Between two values of a level lies nothing, so that a dip is certain wherever a level divides two
groups, however little else does. But two components that a single level divides say no more of
their rows than one does: each row must be told its side by the very level that it explains. So it
is asked how much more probable the rows are, each left out of what the others have said of it,

    sum_i log[(n_a - d) p(x_i | a) + (n_b - d) p(x_i | b)] - log[(n_a + n_b - d) p(x_i | a and b)],

with the rows of each group in one component, n_a and n_b of them without row i, and d the discount.
This is the log of a pseudo-Bayes factor (Geisser and Eddy 1979; Gelfand and Dey 1994): what counts
is each row's density and not its label, of which nothing is known.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ._draws import state_of
from ._loo import compared_rows
from ._view import View


class TwoGroups:
    """What a point estimate says of groups of its components while they are merged.

    Parameters
    ----------
    mixture : Mixture
    table : Table
        The training rows.
    most : int
        Rows that are looked at, if there are more.
    """

    def __init__(self, mixture, table, most):
        sizes = mixture.sizes()
        slots, self.reduction = np.flatnonzero(sizes), mixture.prior.reduction
        self.sizes = sizes[slots]
        self.blocks = [_with_half_counts(block, slots) for block in mixture.blocks]
        self.spares = [block.spare(4) for block in self.blocks]
        self.rows = compared_rows(table.n_rows, most)
        self.some = table.take(self.rows)
        self.own = np.searchsorted(slots, mixture.labels_of(self.rows))

    def merge(self, a, b):
        """Add group b to group a."""
        for block in self.blocks:
            block.merge_slots(a, b)
        self.sizes[a] += self.sizes[b]
        self.sizes[b] = 0
        self.own[self.own == b] = a

    def __call__(self, a, b):
        """The log of the factor for two groups, by the numbers of their first components."""
        looked = np.flatnonzero((self.own == a) | (self.own == b))
        rows, some, at = self.rows[looked], self.some.take(looked), np.arange(len(looked))
        scores, losses = np.zeros((len(rows), 3)), np.zeros((2, len(rows)))
        slots = np.where(self.own[looked] == a, 0, 1), np.full(len(rows), 2)
        for block, spare in zip(self.blocks, self.spares):
            for source, slot in (a, 0), (b, 1), (a, 2), (b, 3):
                spare.copy_slot(block, source, slot)
            spare.merge_slots(2, 3)
            spare.score_rows(some, scores, 0, len(rows))
            for loss, slot in zip(losses, slots):
                spare.losses_without(rows, slot, loss)
        sizes = np.array([self.sizes[a], self.sizes[b], self.sizes[a] + self.sizes[b]])
        weights = np.tile(sizes - self.reduction, (len(rows), 1))
        for loss, slot in zip(losses, slots):
            scores[at, slot] -= loss
            weights[at, slot] -= 1.0
        with np.errstate(divide="ignore"):
            scores += np.log(np.maximum(weights, 0.0))
        return float((np.logaddexp(scores[:, 0], scores[:, 1]) - scores[:, 2]).sum())


def _with_half_counts(block, slots):
    """A block of these slots whose pseudo-counts are 1/2."""
    new, first = block.spare(len(slots)), block.first_pseudo_count
    for f in range(new.n_features if first is not None else 0):
        for h in range(first, len(new.get_hyper(f))):
            new.set_hyper(f, h, 0.5)
    for k, slot in enumerate(slots):
        new.copy_slot(block, int(slot), k)
    return new


def two_groups(point, table, most):
    """The TwoGroups of a point estimate's view; None if none of its columns has levels or atoms."""
    mixture = state_of(point, table).views[point.main_view]
    return TwoGroups(mixture, table, most) if View(mixture).outcome_columns() else None
