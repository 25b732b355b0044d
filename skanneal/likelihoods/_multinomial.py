"""Multinomial rows of counts with a Dirichlet prior: theta = log p."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.special import gammaln

from ._base import ConjugateLikelihood
from ._draws import log_dirichlet
from ._product import Weights, count_scores, count_sums

LARGEST_COUNT = 2**31 - 1


class Multinomial(ConjugateLikelihood):
    """Rows of counts: x ~ Multinomial(X, p), p ~ Dirichlet(pseudo_counts).

    theta is log p, float64 of shape (n_features, n_columns): a component that a small pseudo-count
    drives to 1e-400 is still a number there. Densities over features are with respect to the
    Lebesgue measure of p's first n_columns - 1 components. The proposal of a row is its posterior,
    Dirichlet(pseudo_counts + x). Statistics are the column sums and the sum of the logarithms of
    the multinomial coefficients: (n_features, n_columns + 1).

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

    @staticmethod
    def _types(X):
        n_columns = np.shape(X)[1]
        return ["entries", *["none"] * (n_columns - 1)], np.zeros(n_columns, np.int64)

    @staticmethod
    def _cells(X, schema):
        counts = count_rows(X)
        if counts.shape[1] != schema.n_columns:
            raise ValueError(f"X has {counts.shape[1]} columns, expected {schema.n_columns}.")
        return [counts, *[None] * (schema.n_columns - 1)]

    def prepare(self, theta):
        """The weights of the sparse product, in float32."""
        return Weights(theta)

    def log_lik(self, rows, theta, out):
        """The sparse product of the rows and the logarithms of the probabilities."""
        count_scores(rows.table, rows.start, rows.stop, theta, out)

    def statistics(self, rows, labels, n_features):
        """Column sums and the sum of the log coefficients: (n_features, n_columns + 1)."""
        return count_sums(rows.table, rows.start, labels, n_features)

    def draw(self, statistics, theta, rng):
        """Features from their posterior."""
        return log_dirichlet(statistics, self.pseudo_counts, rng.bit_generator)

    def prior_draw(self, n, rng):
        """Features from the prior."""
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

    def log_marginal(self, statistics):
        """Log marginal likelihood of each feature's rows."""
        sizes = np.ones(len(statistics), np.int64)
        return self.block(statistics, sizes).log_marginals()[: len(statistics)]

    def mean(self, statistics):
        """Logarithms of the posterior mean probabilities."""
        mean = self.pseudo_counts + statistics[:, :-1]
        return np.log(mean / mean.sum(axis=1, keepdims=True))

    def features(self, theta):
        """Probabilities."""
        return np.exp(theta)

    def _statistics_arrays(self, statistics, sizes):
        counts = statistics[:, :-1].astype(np.int32)
        return {
            "size": sizes,
            "count": np.ascontiguousarray(counts.T),
            "total": counts.sum(axis=1, dtype=np.int64),
            "log_coefficients": statistics[:, -1].copy(),
        }


def _log_density(shapes, theta):
    return gammaln(shapes.sum()) - gammaln(shapes).sum() + theta @ (shapes - 1.0)


def count_rows(X):
    """Rows of counts as a csr_array of uint32 in canonical format without zeros.

    Raises
    ------
    ValueError
        For what is no count, and for a row of zeros.
    """
    if not issparse(X):
        X = np.asarray(X)
        if X.dtype.kind not in "iufb":
            X = X.astype(np.float64)
    counts = csr_array(X, copy=issparse(X))
    counts.sum_duplicates()
    counts.eliminate_zeros()
    values = counts.data
    bad = ~((values >= 0) & (values <= LARGEST_COUNT) & (values == np.rint(values)))
    if bad.any():
        at = int(bad.argmax())
        row = int(np.searchsorted(counts.indptr, at, side="right")) - 1
        raise ValueError(
            f"Row {row}, column {counts.indices[at]} of X must hold a non-negative integer below"
            f" 2**31, got {float(values[at]):g}."
        )
    empty = np.diff(counts.indptr) == 0
    if empty.any():
        raise ValueError(
            f"Row {int(empty.argmax())} of X has no counts above 0, which says nothing to a"
            " multinomial likelihood: drop such rows."
        )
    return counts.astype(np.uint32)
