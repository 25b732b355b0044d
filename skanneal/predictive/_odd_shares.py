"""The share of rows that are as odd as these, under one mixture whose rows stand in an order.

Components stand in the order of their weight times density at a typical row, and rows of one
component in the order of their density. With components k of weight w_k (a new one among them), let
D_k be the weight of those that are no denser than k, and T_k(x) the probability that a row of k has
a density as low as that of x. If x is of component k, then as odd as x are the rows of less dense
components and, of its own, those as near to the rim:

    D_k - w_k + w_k T_k(x).

Which component x is of is known up to its posterior probabilities r_k(x). So the score of x is

    -log sum_k r_k(x) [D_k - w_k + w_k T_k(x)].

With one component it is -log T(x). The laws of surprisals, and what becomes of them where cells are
missing, are those of `_tail.py`; its S_k has no part here.

A number with atoms has a probability at these and a density elsewhere, which do not compare: a
component would be dense for having atoms. So which atom a number is at, if any, is compared as a
level is. Elsewhere there is beside it the density over its typical value exp(-e_k), e_k being the
entropy: on average this adds nothing, as an atom adds nothing. What it adds is taken to be that of
a normal distribution, 0.5 (z^2 - 1). Between components the densities
compare by these entropies times the share of rows elsewhere, which is one for all components. The
probabilities r_k are those of the mixture as it is.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.special import logsumexp

from ._predictor import BLOCK_BYTES
from ._tail import (
    Law,
    ViewTails,
    distinct,
    log_sums,
    own_components,
    patterns,
    share_up_to,
    surprisals_of,
)

LEAST_NORMAL, OF_NORMAL = -0.5, 0.5  # the least value and the variance of 0.5 (z^2 - 1)
LEAST_SHARE = 1e-12  # of numbers elsewhere


class AtomTails(ViewTails):
    """The laws of surprisals, those of numbers with atoms as above."""

    def entropies(self):
        """By column with atoms e_k, in cell units and as if of a normal distribution: (K + 1,)."""
        return {
            j: self._once(("entropy", j), self._entropy, block, f)
            for j, (block, f) in self.view.features.items()
            if hasattr(block, "numbers_variance")
        }

    def _entropy(self, block, f):
        return 0.5 * np.log(2.0 * np.pi * np.e * block.numbers_variance(f)[self.view.slots])

    def _of_column(self, j):
        if j not in self.entropies():
            return super()._of_column(j)
        atoms = self._table({j: self.schema.atoms[j]})
        log_shares = self.view.cell_scores(j, atoms, 0, atoms.n_rows)
        shares = np.exp(log_shares)
        others = np.maximum(1.0 - shares.sum(axis=0), LEAST_SHARE)
        surprisals = -np.vstack([np.log(others), log_shares])
        law = Law.of_points(surprisals, np.vstack([others, shares]))
        least = np.minimum(law.least, surprisals[0] + LEAST_NORMAL)
        return Law(least, law.mean + law.least - least, law.variance + others * OF_NORMAL)


class OddShares:
    """The scores of a table's rows under a mixture.

    Parameters
    ----------
    view : View
    table : Table
    maker : Predictor
        Makes tables of the schema.
    """

    def __init__(self, view, table, maker):
        self.view, self.table = view, table
        tails = AtomTails(self.view, maker.table, maker.schema)
        observed, own = patterns(table)
        observed, same = distinct(observed)
        self.pattern, self.laws = same[own], tails.laws(observed)
        self.entropies = tails.entropies()
        typical = -np.array([law.least + law.mean for law in self.laws])
        for j, of_components in self.entropies.items():
            typical -= observed[:, [j]] * elsewhere(table, j).mean() * of_components
        log_weights = self.view.log_weights
        weights = np.exp(log_weights)
        self.below = share_up_to(log_weights + typical, weights) - weights  # D_k - w_k

    def scores(self, start, stop, without=False):
        """The scores of the rows from start to stop, higher for odder ones: (stop - start,).

        without : whether the rows are the mixture's own, each scored without itself.
        """
        step = max(1, BLOCK_BYTES // (32 * self.view.mixture.n_slots))
        blocks = [
            self._of_rows(first, min(first + step, stop), without)
            for first in range(start, stop, step)
        ]
        return np.concatenate([*blocks, np.empty(0)])

    def _of_rows(self, start, stop, without):
        surprisals = surprisals_of(self.view, self.table, start, stop)
        if without:
            rows = np.arange(start, stop)
            own, loss = own_components(self.view, rows)
            surprisals[np.arange(len(rows)), own] += loss
        log_weights = self.view.log_weights
        log_members = log_weights - surprisals
        log_members -= logsumexp(log_members, axis=1, keepdims=True)
        for j, of_components in self.entropies.items():
            surprisals -= elsewhere(self.table, j, start, stop)[:, None] * of_components
        pattern = self.pattern[start:stop]
        log_own = log_sums(log_members + log_weights, surprisals, self.laws, pattern)
        below = np.maximum(self.below[pattern], 0.0)  # but for rounding, where nothing is below
        with np.errstate(divide="ignore"):
            log_below = np.log((np.exp(log_members) * below).sum(axis=1))
        return -np.logaddexp(log_below, log_own)


def elsewhere(table, j, start=0, stop=None):
    """Which rows' numbers in column j are at no atom: (n_rows,)."""
    cells = table.column(j, start, table.n_rows if stop is None else stop)
    return ~(np.isnan(cells) | np.isin(cells, table.atoms[j]))
