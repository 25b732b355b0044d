r"""How probable it is that jointly normal numbers of a view depend on each other.

Within components two columns i and j may depend on each other by themselves, or given the view's
other numbers: as a sum does on one of its terms, given the rest. Let m(S) be the product over
components of the marginal likelihoods of the columns S, which is that of a view of these columns
alone, under the same partition (families/_normal_division.py). The Bayes factors for dependence
are exact,

    m(ij) / (m(i) m(j))    and    m(all) m(all but ij) / (m(all but i) m(all but j)),

and their mean is the odds, each kind being as probable as the other. Both take only determinants of
Psi and of the parts of it and of its inverse that belong to i and j.

A column has to do with the components if it differs between them, m(i) against its marginal
likelihood in one component, or if it depends within them on a column that does.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.special import expit, multigammaln

from ..families._forms import unpack


def covariance_odds(block, slots):
    """Probabilities of dependence within components, and of having to do with them.

    Parameters
    ----------
    block : MultivariateNormal
        Whose scale0 is diagonal.
    slots : int array of shape (K,)
        The components.

    Returns
    -------
    pairs : ndarray of shape (d, d)
        Of two columns of the block; symmetric, 1 on the diagonal.
    relevant : ndarray of shape (d,)
    """
    arrays = block.to_arrays(slots)
    law = _Law(*(arrays[name] for name in ("mu0", "kappa0", "nu0")), np.diag(arrays["scale0"]))
    sizes, means = arrays["size"].astype(np.float64), arrays["mean"].T
    scatters = np.array([unpack(packed, len(law.psi0)) for packed in arrays["scatter"].T])
    squares = [law.square(*of) for of in zip(sizes, means, scatters)]
    singles = [law.log_single(*of) for of in zip(sizes, squares)]
    alone = sum(
        law.log_pairs(n, psi) - np.add.outer(single, single)
        for n, psi, single in zip(sizes, squares, singles)
    )
    given = sum(law.log_given(*of) for of in zip(sizes, squares))
    pairs = expit(np.logaddexp(alone, given) - np.log(2.0))
    np.fill_diagonal(pairs, 1.0)
    if len(sizes) < 2:
        return pairs, np.zeros(len(pairs))
    whole = means.T @ sizes / sizes.sum()
    spread = scatters.sum(axis=0) + (sizes[:, None] * (means - whole)).T @ (means - whole)
    as_one = law.log_single(sizes.sum(), law.square(sizes.sum(), whole, spread))
    return pairs, np.max(pairs * expit(sum(singles) - as_one), axis=1)


class _Law:
    """Marginal likelihoods of columns of one component, up to what cancels in ratios."""

    def __init__(self, mu0, kappa0, nu0, psi0):
        self.mu0, self.kappa0, self.psi0 = mu0, float(kappa0), psi0
        self.delta = float(nu0) - len(psi0) + 1.0

    def square(self, n, mean, scatter):
        """Psi of n rows."""
        off = mean - self.mu0
        weight = self.kappa0 * n / (self.kappa0 + n)
        return np.diag(self.psi0) + scatter + weight * np.multiply.outer(off, off)

    def _log(self, n, s, log_before, log_after):
        """Of s columns by the log determinants of Psi0 and Psi."""
        if s < 1:
            return 0.0
        nu = self.delta + s - 1.0
        gammas = multigammaln(0.5 * (nu + n), s) - multigammaln(0.5 * nu, s)
        gammas += 0.5 * s * np.log(self.kappa0 / (self.kappa0 + n))
        return gammas + 0.5 * nu * log_before - 0.5 * (nu + n) * log_after

    def log_single(self, n, psi):
        """Of each column: (d,)."""
        return self._log(n, 1, np.log(self.psi0), np.log(np.diag(psi)))

    def log_pairs(self, n, psi):
        """Of each two columns: (d, d)."""
        before, own = np.log(self.psi0), np.diag(psi)
        after = np.log(np.maximum(np.multiply.outer(own, own) - psi**2, np.finfo(float).tiny))
        return self._log(n, 2, np.add.outer(before, before), after)

    def log_given(self, n, psi):
        """Log Bayes factors for the dependence of each two columns given all others: (d, d)."""
        d, before = len(psi), np.log(self.psi0)
        inverse, (_, whole) = np.linalg.inv(psi), np.linalg.slogdet(psi)
        own = np.diag(inverse)
        parts = np.maximum(np.multiply.outer(own, own) - inverse**2, np.finfo(float).tiny)
        one = self._log(n, d - 1, before.sum() - before, whole + np.log(own))
        neither = self._log(
            n, d - 2, before.sum() - np.add.outer(before, before), whole + np.log(parts)
        )
        return self._log(n, d, before.sum(), whole) + neither - np.add.outer(one, one)
