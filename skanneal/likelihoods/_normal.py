"""Normal columns, independent in an atom, with normal-inverse-chi-squared priors."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.special import gammaln

from ..families._scaling import offset_and_scale, standardised
from ._conjugate import ConjugateLikelihood
from ._draws import log_gammas, normals
from ._quadratic import Quadratic, moments, quadratic_scores
from ._table_rows import dense

LOG_2PI = np.log(2.0 * np.pi)
LEAST_LOG = -80.0  # of a Gamma variate that a variance is divided by: more than float32 scores bear


class Numbers(ConjugateLikelihood):
    """What likelihoods of rows of numbers share.

    Cells are (x - offset) / scale in float32, see families/_scaling.py; densities of rows are of
    cells.
    """

    @staticmethod
    def _types(X):
        columns = dense(X).T
        offsets, scales = zip(*map(offset_and_scale, columns))
        return ["f4"] * len(columns), np.zeros(len(columns), np.int64), offsets, scales

    @staticmethod
    def checked_rows(X, name="X", first=0):
        """Rows as float64, of finite numbers. See `TableLikelihood.checked_rows`."""
        X = dense(X)
        if not np.isfinite(X).all():
            i, j = np.argwhere(~np.isfinite(X))[0]
            raise ValueError(
                f"Row {first + i}, column {j} of {name} must hold a finite number, got {X[i, j]}:"
                " this likelihood describes rows without gaps."
            )
        return X

    @classmethod
    def _cells(cls, X, schema):
        X = dense(cls.checked_rows(X), schema.n_columns)
        units = zip(X.T, schema.offsets, schema.scales)
        return [standardised(column, offset, scale) for column, offset, scale in units]

    def log_lik(self, rows, theta, out):
        """Normal log densities of cells."""
        quadratic_scores(rows.table, rows.start, rows.stop, theta, out)

    def _row(self, row):
        """The cells of one row, in float64."""
        return moments(row.table, row.start, np.zeros(1, np.int32), 1, False)[
            0, 1 : 1 + self.schema.n_columns
        ]


class Normal(Numbers):
    """Rows of independent numbers: x_j ~ N(m_j, v_j).

    Prior: m_j ~ N(mu0, v_j / kappa0), v_j ~ nu0 sigma2_0 / chi2(nu0). theta holds (m, v) in cell
    units, float64 of shape (n_atoms, 2, n_columns), and densities over atoms are with
    respect to them. The proposal of a row x: v_j ~ nu0 sigma2_0 / chi2(nu0 + 1),
    m_j ~ N(x_j, v_j / (kappa0 + 1)). Statistics are the number of rows, the sums and the sums of
    squares: (n_atoms, 1 + 2 n_columns).

    Parameters
    ----------
    table, hyper, grids
        See ConjugateLikelihood; for each column (mu0, kappa0, nu0, sigma2_0).

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.likelihoods import LIKELIHOODS
    >>> X = np.array([[1.0, 20.0], [3.0, 22.0], [9.0, 21.0]])
    >>> likelihood = LIKELIHOODS["normal"].of(X)
    >>> rows = likelihood.encode(X)
    >>> statistics = likelihood.statistics(rows, np.array([0, 0, 1], dtype=np.int32), 2)
    >>> likelihood.features(likelihood.mean(statistics))[:, 0].round(1).tolist()
    [[2.1, 21.0], [8.6, 21.0]]
    """

    family = "normal"

    def _take_hyper(self):
        self.mu0, self.kappa0, self.nu0, self.sigma2_0 = np.array(self.hyper).T

    def prepare(self, theta):
        """Means and roots of half the precisions, in float32."""
        mean, variance = theta[:, 0], theta[:, 1]
        constants = -0.5 * (LOG_2PI + np.log(variance)).sum(axis=1)
        return Quadratic(mean, np.sqrt(0.5 / variance), constants)

    def statistics(self, rows, labels, n_atoms):
        """Number of rows, sums, sums of squares."""
        return moments(rows.table, rows.start, labels, n_atoms, False)

    def _posterior(self, statistics):
        """(kappa, nu, mu_n, nu sigma2), each of shape (n_atoms, 1 or n_columns)."""
        n, mean, m2 = _centred(statistics)
        kappa = self.kappa0 + n
        shift = mean - self.mu0
        squares = self.nu0 * self.sigma2_0 + m2 + self.kappa0 * n / kappa * shift**2
        return kappa, self.nu0 + n, self.mu0 + n / kappa * shift, squares

    def draw(self, statistics, theta, rng):
        """Atoms from their posterior."""
        kappa, nu, centre, squares = self._posterior(statistics)
        return _draw(kappa, nu, centre, squares, rng.bit_generator)

    def prior_draw(self, n, rng):
        """Atoms from the prior."""
        return self.draw(np.zeros((n, 1 + 2 * len(self.mu0))), None, rng)

    def log_prior(self, theta):
        """Normal times scaled inverse chi-squared."""
        squares = self.nu0 * self.sigma2_0
        return _log_density(self.kappa0, self.nu0, self.mu0, squares, theta)

    def _proposal(self, cells):
        return self.kappa0 + 1.0, self.nu0 + 1.0, cells, self.nu0 * self.sigma2_0

    def proposal_draw(self, rows, rng):
        """Means around each row, variances from about the prior."""
        labels = np.arange(len(rows), dtype=np.int32)
        cells = self.statistics(rows, labels, len(rows))[:, 1 : 1 + len(self.mu0)]
        return _draw(*self._proposal(cells), rng.bit_generator)

    def proposal_logpdf(self, theta, row):
        """The density of `proposal_draw`."""
        return _log_density(*self._proposal(self._row(row)), theta)

    def mean(self, statistics):
        """Posterior means of the means and of the variances.

        Where the variance's posterior has no mean, nu <= 2, its mode.
        """
        _, nu, centre, squares = self._posterior(statistics)
        variance = squares / np.where(nu > 2.0, nu - 2.0, nu + 2.0)
        return np.stack([centre, variance], axis=1)

    def features(self, theta):
        """Means and variances in the user's units: (n_atoms, 2, n_columns).

        A variance beyond the largest number is inf.
        """
        offsets, scales = self.schema.offsets, self.schema.scales
        with np.errstate(over="ignore"):
            variances = scales * theta[:, 1] * scales  # a scale may have no square
        return np.stack([offsets + scales * theta[:, 0], variances], axis=1)

    def _statistics_arrays(self, statistics, sizes):
        _, mean, m2 = _centred(statistics)
        return {
            "size": sizes,
            "n": np.repeat(sizes[None, :], len(self.mu0), axis=0),
            "mean": np.ascontiguousarray(mean.T),
            "m2": np.ascontiguousarray(m2.T),
        }


def _centred(statistics):
    """(n, mean, centred sum of squares); n of shape (n_atoms, 1)."""
    n = statistics[:, :1]
    total, squares = np.split(statistics[:, 1:], 2, axis=1)
    mean = total / np.maximum(n, 1.0)
    return n, mean, np.maximum(0.0, squares - total * mean)


def _draw(kappa, nu, centre, squares, bit_generator):
    shapes = np.broadcast_to(0.5 * nu, np.broadcast_shapes(nu.shape, centre.shape))
    log_gamma = np.maximum(log_gammas(shapes, bit_generator), LEAST_LOG)
    variance = 0.5 * squares * np.exp(-log_gamma)
    mean = centre + np.sqrt(variance / kappa) * normals(variance.shape, bit_generator)
    return np.stack([mean, variance], axis=1)


def _log_density(kappa, nu, centre, squares, theta):
    mean, variance = theta[:, 0], theta[:, 1]
    half = 0.5 * nu
    out = half * np.log(0.5 * squares) - gammaln(half) - (half + 1.0) * np.log(variance)
    out = out - 0.5 * squares / variance - 0.5 * (LOG_2PI - np.log(kappa) + np.log(variance))
    return (out - 0.5 * kappa * (mean - centre) ** 2 / variance).sum(axis=1)
