"""Independent Poisson counts with Gamma priors: theta = log rate."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.sparse import issparse
from scipy.special import gammaln

from ..families._counts import COUNTS
from ..families._sparse import checked
from ._conjugate import ConjugateLikelihood
from ._draws import log_gammas
from ._product import Weights, cell_scores, cell_sums
from ._table_rows import dense


class Poisson(ConjugateLikelihood):
    """Rows of independent counts: x_j ~ Poisson(r_j), r_j ~ Gamma(shape_j, rate_j).

    theta is log r, float64 of shape (n_atoms, n_columns), and densities over atoms are with
    respect to it. The proposal of a row is its posterior. Statistics are the number of rows, the
    column sums and the column sums of log x!, in 1024s and the rest, so that no digit is lost:
    (n_atoms, 1 + 3 n_columns).

    Parameters
    ----------
    table, hyper, grids
        See ConjugateLikelihood; for each column (shape, rate).

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.likelihoods import LIKELIHOODS
    >>> X = np.array([[3, 0], [5, 1], [0, 0]])
    >>> likelihood = LIKELIHOODS["poisson"].of(X)
    >>> rows = likelihood.encode(X)
    >>> statistics = likelihood.statistics(rows, np.array([0, 0, 1], dtype=np.int32), 2)
    >>> np.exp(likelihood.mean(statistics)).round(2).tolist()   # (1 + sum) / (1 + n)
    [[3.0, 0.67], [0.5, 0.5]]
    """

    family = "poisson"
    writes_float64 = True

    def __init__(self, table, hyper=None, grids=None):
        super().__init__(table, hyper, grids)
        # scores are relative to rates near the columns' means, whatever these are
        sums = [float(table.column(j).sum(dtype=np.float64)) for j in range(table.n_columns)]
        self._log_rates = np.log((np.array(sums) + 1.0) / (table.n_rows + 1.0))

    @staticmethod
    def _types(X):
        n_columns = np.shape(X)[1]
        return ["u4"] * n_columns, np.zeros(n_columns, np.int64)

    @staticmethod
    def checked_rows(X, name="X", first=0):
        """Rows as float64, of counts. See `TableLikelihood.checked_rows`."""
        X = dense(checked(X, name).toarray() if issparse(X) else X)
        bad = COUNTS.outside(X)
        if bad.any():
            i, j = np.argwhere(bad)[0]
            raise COUNTS.error(f"Row {first + i}, column {j} of {name}", X[i, j])
        return X

    @classmethod
    def _cells(cls, X, schema):
        return list(dense(cls.checked_rows(X), schema.n_columns).astype(np.uint32).T)

    def _take_hyper(self):
        self.shape, self.rate = np.array(self.hyper).T

    def prepare(self, theta):
        """The weights of the sparse product, relative to the columns' rates."""
        relative = theta - self._log_rates
        return Weights(relative, -(np.exp(self._log_rates) * np.expm1(relative)).sum(axis=1))

    def log_lik(self, rows, theta, out):
        """The sparse product of the rows and the logarithms of the rates."""
        cell_scores(rows.table, rows.start, rows.stop, theta, self._log_rates, out)

    def statistics(self, rows, labels, n_atoms):
        """Number of rows, column sums, column sums of log x! in 1024s and the rest."""
        return cell_sums(rows.table, rows.start, labels, n_atoms)

    def draw(self, statistics, theta, rng):
        """Atoms from their posterior."""
        n, total = statistics[:, :1], statistics[:, 1 : 1 + len(self.shape)]
        return log_gammas(self.shape + total, rng.bit_generator) - np.log(self.rate + n)

    def prior_draw(self, n, rng):
        """Atoms from the prior."""
        return self.draw(np.zeros((n, 1 + len(self.shape))), None, rng)

    def log_prior(self, theta):
        """The density of log Gamma variates."""
        return _log_density(self.shape, self.rate, theta)

    def proposal_draw(self, rows, rng):
        """One draw from each row's posterior."""
        labels = np.arange(len(rows), dtype=np.int32)
        return self.draw(self.statistics(rows, labels, len(rows)), None, rng)

    def proposal_logpdf(self, theta, row):
        """The row's posterior density."""
        counts = self.statistics(row, np.zeros(1, np.int32), 1)[0, 1 : 1 + len(self.shape)]
        return _log_density(self.shape + counts, self.rate + 1.0, theta)

    def mean(self, statistics):
        """Logarithms of the posterior mean rates."""
        n, total = statistics[:, :1], statistics[:, 1 : 1 + len(self.shape)]
        return np.log((self.shape + total) / (self.rate + n))

    def features(self, theta):
        """Rates."""
        return np.exp(theta)

    def _statistics_arrays(self, statistics, sizes):
        n_columns = len(self.shape)
        total, units, rest = (
            statistics[:, 1:].reshape(len(statistics), 3, n_columns).transpose(1, 2, 0)
        )
        return {
            "size": sizes,
            "n": np.repeat(sizes[None, :], n_columns, axis=0),
            "total": np.ascontiguousarray(total).astype(np.int64),
            "log_factorial_units": np.ascontiguousarray(units),
            "log_factorial_rest": np.ascontiguousarray(rest),
        }


def _log_density(shape, rate, theta):
    constant = (shape * np.log(rate) - gammaln(shape)).sum()
    return constant + (theta * shape - rate * np.exp(theta)).sum(axis=1)
