"""Log-normal: positive amounts, the normal family on their logarithm.

Model, per feature: log x ~ N(mu, s2) with the normal family's prior, so

    p(x) = p_normal(log x) / x,

whose predictive is a log-Student-t and whose hyperparameters are those of log x. A cell is the
standardised logarithm. The Jacobian 1/x does not depend on the clusters: densities and log joints,
which are in the user's units, include it, and the moves omit it.

The mean of a log-Student-t does not exist, however many its degrees of freedom. A missing amount is
filled with the exponential of the logarithm's mean, which is the median if one cluster
explains the row. Its spread is the standard deviation of the log-normal with this median and with
the logarithm's standard deviation.
"""

import numpy as np

from ._table cimport Table

from ._normal import Normal

LARGEST = 709.0    # exp of this, and of minus it, is a normal float64


class LogNormal(Normal):
    """Numbers above 0. Coordinates as of Normal, of the numbers' logarithms."""

    family = "log_normal"
    cells = "logarithm"
    default_for = None
    logarithms_of = Normal.family

    def score_feature(self, f, Table table, out, Py_ssize_t start, Py_ssize_t stop):
        """Add feature f's log predictive density, in the user's units, to out: (rows, n)."""
        super().score_feature(f, table, out, start, stop)
        out += self.log_slope(f, table, start, stop)[:, None]

    def score_rows(self, Table table, out, start=0, stop=None):
        """As FamilyBlock's."""
        stop = table.n_rows if stop is None else stop
        super().score_rows(table, out, start, stop)
        for f in range(self.n_features):
            out += self.log_slope(f, table, start, stop)[:, None]

    def log_slope(self, f, table, start, stop):
        """-log x of each cell."""
        j = self.columns[f]
        logs = table.offsets[j] + table.scales[j] * table.column(j, start, stop).astype(np.float64)
        return np.where(np.isnan(logs), 0.0, -logs)

    def log_jacobian(self):
        """Sum over cells of -log(scale x): what takes log marginals from cell to user's units."""
        columns, of = np.sort(self.columns), self.statistics()
        logs = self.table.offsets[columns, None] + self.table.scales[columns, None] * of["mean"]
        return super().log_jacobian() - float(np.sum(of["n"] * logs))

    @staticmethod
    def in_units(numbers):
        """The numbers of which these are the logarithms."""
        return np.exp(np.clip(numbers, -LARGEST, LARGEST))

    @staticmethod
    def spread_in_units(numbers, deviations):
        """Standard deviations of log-normals of these medians' logarithms and deviations."""
        # sqrt(exp(s^2) - 1) exp(s^2 / 2), its logarithm first
        squares = np.square(deviations)
        with np.errstate(divide="ignore"):
            logs = squares + 0.5 * np.log(-np.expm1(-squares))
        return np.exp(np.minimum(numbers + logs, LARGEST))
