"""Semi-continuous amounts: numbers with atoms, as the zeros are, elsewhere log-normal.

Model, per feature: that of *semi_continuous* (_semi_continuous.pyx), with the log-normal family
(_log_normal.pyx) elsewhere, so a number x > 0 that is no atom has the density

    P(elsewhere) p_normal(log x) / x.

A cell elsewhere is the standardised logarithm. That of an atom is its own logarithm's too, by which
it is recognised; 0, whose logarithm is not finite, has the least cell there is. As in the
log-normal family the Jacobian 1/x is in what is reported in the user's units, and not in what the
moves compare: it depends on no cluster. An atom's probability has none.

What stands for a missing amount is, of each cluster, the mean of its outcomes: the atoms, and
elsewhere the median, as a log-Student-t has no mean. Its spread is the standard deviation of these
outcomes with that of the log-normal about its median. Both are handed over as those of a logarithm:
m, and the variance v for which a log-normal of median m has the spread.
"""

import numpy as np

from ._log_normal import LARGEST, LogNormal
from ._semi_continuous import SemiContinuous, outcomes_of


class SemiContinuousLogNormal(SemiContinuous):
    """Amounts with atoms. Coordinates as of SemiContinuous, of the logarithms elsewhere."""

    family = "semi_continuous_log_normal"
    cells = "logarithm_or_atom"
    default_for = None
    logarithms_of = SemiContinuous.family

    def score_feature(self, f, table, out, start, stop):
        """Add feature f's log predictive, at an atom its log probability, elsewhere the log density
        in the user's units, to out: (rows, n)."""
        super().score_feature(f, table, out, start, stop)
        out -= self._logarithms(f, table, start, stop)[:, None]

    def _logarithms(self, f, table, start, stop):
        """log x of each cell elsewhere, 0 of others."""
        j = self.columns[f]
        cells = table.column(j, start, stop)
        logs = table.offsets[j] + table.scales[j] * cells.astype(np.float64)
        return np.where(outcomes_of(cells, table.atoms[j]) == 0, logs, 0.0)

    def log_slope(self, f, table, start, stop):
        """-log(scale x) of each cell elsewhere."""
        logs = self._logarithms(f, table, start, stop)
        return super().log_slope(f, table, start, stop) - logs

    def log_jacobian(self):
        """Sum over the cells elsewhere of -log(scale x)."""
        columns, of = np.sort(self.columns), self.statistics()
        logs = self.table.offsets[columns, None] + self.table.scales[columns, None] * of["mean"]
        return super().log_jacobian() - float(np.sum(of["count"][:, 0] * logs))

    def predictive_mean(self, f):
        """Log mean of the outcomes in every slot, elsewhere the median, in cell units."""
        j = self.columns[f]
        return (np.log(self._moments(f)[0]) - self.table.offsets[j]) / self.table.scales[j]

    def predictive_variance(self, f):
        """Variance of the logarithm for which a log-normal has the outcomes' spread, in cell
        units."""
        mean, variance = self._moments(f)
        # a log-normal's variance over its squared median is e (e - 1), e = exp(v)
        with np.errstate(over="ignore"):
            ratio = variance / mean / mean
        return np.log(0.5 + np.sqrt(0.25 + ratio)) / self.table.scales[self.columns[f]] ** 2

    def _moments(self, f):
        """Mean and variance of the outcomes in every slot, in the user's units."""
        offset, scale = (of[self.columns[f]] for of in (self.table.offsets, self.table.scales))
        shares, atoms = self.outcome_shares(f), self.in_units(offset + scale * self._atoms(f))
        logs = offset + scale * self.numbers_mean(f)
        median = LogNormal.in_units(logs)
        spread = LogNormal.spread_in_units(logs, scale * np.sqrt(self.numbers_variance(f)))
        mean = shares[0] * median + (shares[1:] * atoms).sum(0)
        with np.errstate(over="ignore"):
            variance = shares[0] * (spread**2 + (median - mean) ** 2)
            return mean, variance + (shares[1:] * (atoms - mean) ** 2).sum(0)

    @staticmethod
    def in_units(numbers):
        """The numbers of which these are the logarithms, 0 for the least cell."""
        return np.exp(np.minimum(numbers, LARGEST))

    spread_in_units = staticmethod(LogNormal.spread_in_units)
