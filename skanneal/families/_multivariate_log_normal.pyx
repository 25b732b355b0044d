"""Rows of amounts: the multivariate normal family on their logarithms, or on some of them.

Model, per row: y ~ N(mu, Sigma) with the multivariate normal family's prior, y_j = log x_j where
the table says that cells are of logarithms, else y_j = x_j. So

    p(x) = p_normal(y) prod_j 1 / x_j,

the product being over the logarithms. The hyperparameters are those of y. The Jacobian does not
depend on the clusters: densities and log joints, which are in the user's units, include it, and the
moves omit it. What fills a gap, and how widely it is spread, follows as for log_normal.
"""

import numpy as np

from ._multivariate_normal cimport MultivariateNormal
from ._table cimport Table

from ._log_normal import LogNormal


cdef class MultivariateLogNormal(MultivariateNormal):
    """Rows of amounts, whose logarithms have a full covariance: mu0, kappa0, nu0, scale0."""

    family = "multivariate_log_normal"
    cells = "logarithm"
    default_for = None
    logarithms_of = MultivariateNormal.family

    def score_feature(self, Py_ssize_t i, Table table, out, Py_ssize_t start, Py_ssize_t stop):
        """Add the log density of the i-th column's cell given the row's others, in the user's
        units, to out: (rows, n)."""
        MultivariateNormal.score_feature(self, i, table, out, start, stop)
        out += self.log_slope(i, table, start, stop)[:, None]

    def score_rows(self, Table table, out, start=0, stop=None):
        """As FamilyBlock's."""
        stop = table.n_rows if stop is None else stop
        MultivariateNormal.score_rows(self, table, out, start, stop)
        for i in range(self.d):
            out += self.log_slope(i, table, start, stop)[:, None]

    def log_slope(self, i, table, start, stop):
        """-log x of each cell of the i-th column, 0 where cells are not of logarithms."""
        j = self.columns[i]
        if not table.logarithms[j]:
            return np.zeros(stop - start)
        logs = table.offsets[j] + table.scales[j] * table.column(j, start, stop).astype(np.float64)
        return np.where(np.isnan(logs), 0.0, -logs)

    def log_jacobian(self):
        """Sum over cells, those that were filled too, of -log(scale x)."""
        own = self.columns[self.table.logarithms[self.columns]]
        mean = np.asarray(self.mean)[:, :self.d][:, self.table.logarithms[self.columns]]
        logs = self.table.offsets[own] + self.table.scales[own] * mean
        total = np.asarray(self.size) @ logs.sum(axis=1)
        return MultivariateNormal.log_jacobian(self) - float(total)

    def units_of(self, i):
        """LogNormal where cells are of logarithms."""
        return LogNormal if self.table.logarithms[self.columns[i]] else self
