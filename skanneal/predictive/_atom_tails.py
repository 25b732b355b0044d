"""The laws of surprisals where numbers have atoms: which atom it is, and beside it how far out.

A number with atoms has a probability at these and a density elsewhere, which do not compare: a
component would be dense for having atoms, and what is at none of them odd or ordinary by its unit.
So which atom a number is at, if any, is compared as a level is. Elsewhere there is beside it the
density over its typical value exp(-e_k), e_k being the entropy: on average this adds nothing, as an
atom adds nothing. What it adds is taken to be that of a normal distribution, 0.5 (z^2 - 1). Between
components the densities compare by these entropies times the mixture's probability of elsewhere,
which is one for all components.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ._surprisal_laws import Law, ViewTails

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

    def typical(self, laws, observed):
        """Mean log density in each component, by pattern of gaps: (n_patterns, K + 1)."""
        out = -np.array([law.least + law.mean for law in laws])
        weights = np.exp(self.view.log_weights)
        for j, of_components in self.entropies().items():
            others = weights @ self._once(("outcomes", j), self._outcomes, j)[0]
            out -= observed[:, [j]] * others * of_components
        return out

    def _entropy(self, block, f):
        return 0.5 * np.log(2.0 * np.pi * np.e * block.numbers_variance(f)[self.view.slots])

    def _outcomes(self, j):
        """Probabilities that a number is elsewhere, and at each atom: (1 + n_atoms, K + 1)."""
        atoms = self._table({j: self.schema.atoms[j]})
        shares = np.exp(self.view.cell_scores(j, atoms, 0, atoms.n_rows))
        return np.vstack([np.maximum(1.0 - shares.sum(axis=0), LEAST_SHARE), shares])

    def _of_column(self, j):
        if j not in self.entropies():
            return super()._of_column(j)
        outcomes = self._once(("outcomes", j), self._outcomes, j)
        with np.errstate(divide="ignore"):
            surprisals = -np.log(outcomes)
        law = Law.of_points(surprisals, outcomes)
        least = np.minimum(law.least, surprisals[0] + LEAST_NORMAL)
        return Law(least, law.mean + law.least - least, law.variance + outcomes[0] * OF_NORMAL)


def elsewhere(table, j, start, stop):
    """Which rows' numbers in column j are at no atom: (stop - start,)."""
    cells = table.column(j, start, stop)
    return ~(np.isnan(cells) | np.isin(cells, table.atoms[j]))
