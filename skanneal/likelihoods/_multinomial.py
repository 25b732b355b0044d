"""Multinomial rows of counts with a Dirichlet prior: theta = log p."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.special import gammaln

from ._conjugate import ConjugateLikelihood
from ._count_rows import CountRows
from ._draws import log_dirichlet
from ._product import Weights


class Multinomial(CountRows, ConjugateLikelihood):
    """Rows of counts: x ~ Multinomial(X, p), p ~ Dirichlet(pseudo_counts).

    theta is log p, float64 of shape (n_atoms, n_columns): a component that a small pseudo-count
    drives to 1e-400 is still a number there. Densities over atoms are with respect to the
    Lebesgue measure of p's first n_columns - 1 components. The proposal of a row is its posterior,
    Dirichlet(pseudo_counts + x). Statistics are the column sums and the sum of the logarithms of
    the multinomial coefficients: (n_atoms, n_columns + 1).

    Parameters
    ----------
    table, hyper, grids
        See ConjugateLikelihood; one flat vector, of one pseudo-count for all columns or one each.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.likelihoods import LIKELIHOODS
    >>> X = np.array([[3, 0, 1], [0, 2, 2], [1, 0, 0]])
    >>> likelihood = LIKELIHOODS["multinomial"].of(X)
    >>> rows = likelihood.encode(X)
    >>> statistics = likelihood.statistics(rows, np.array([0, 1, 0], dtype=np.int32), 2)
    >>> np.exp(likelihood.mean(statistics)).round(2).tolist()
    [[0.69, 0.08, 0.23], [0.09, 0.45, 0.45]]
    """

    family = "multinomial"

    def _take_hyper(self):
        self.pseudo_counts = np.broadcast_to(self.hyper[0], self.schema.n_columns).copy()

    def prepare(self, theta):
        """The weights of the sparse product, in float32."""
        return Weights(theta)

    def draw(self, statistics, theta, rng):
        """Atoms from their posterior."""
        return log_dirichlet(statistics, self.pseudo_counts, rng.bit_generator)

    def prior_draw(self, n, rng):
        """Atoms from the prior."""
        return self.draw(np.zeros((n, self.schema.n_columns)), None, rng)

    def log_prior(self, theta):
        """The Dirichlet density."""
        return _log_density(self.pseudo_counts, theta)

    def proposal_draw(self, rows, rng):
        """One draw from each row's posterior."""
        labels = np.arange(len(rows), dtype=np.int32)
        return self.draw(self.statistics(rows, labels, len(rows)), None, rng)

    def proposal_logpdf(self, theta, row):
        """The row's posterior density."""
        counts = self.statistics(row, np.zeros(1, np.int32), 1)[0, :-1]
        return _log_density(self.pseudo_counts + counts, theta)

    def sizes(self, statistics):
        """1 for each atom with rows: how many they are is not in the statistics."""
        return statistics[:, :-1].any(axis=1).astype(np.int64)

    def mean(self, statistics):
        """Logarithms of the posterior mean probabilities."""
        mean = self.pseudo_counts + statistics[:, :-1]
        return np.log(mean / mean.sum(axis=1, keepdims=True))

    def features(self, theta):
        """Probabilities."""
        return np.exp(theta)

    def _statistics_arrays(self, statistics, sizes):
        counts = statistics[:, :-1].astype(np.int64)
        return {
            "size": sizes,
            "count": np.ascontiguousarray(counts.T),
            "total": counts.sum(axis=1),
            "log_coefficients": statistics[:, -1].copy(),
        }


def _log_density(shapes, theta):
    return gammaln(shapes.sum()) - gammaln(shapes).sum() + theta @ (shapes - 1.0)
