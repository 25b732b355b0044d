"""Normal rows with a full covariance in each atom and a normal-inverse-Wishart prior."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.special import multigammaln

from ..families._forms import diagonal, unflatten
from ..families._scaling import FAR
from ._draws import add_squares, inverse_cholesky, inverse_factors, normals
from ._normal import LOG_2PI, Numbers
from ._quadratic import Quadratic, moments


class MultivariateNormal(Numbers):
    """Rows of numbers: x ~ N(m, V).

    Prior: m ~ N(mu0, V / kappa0), V ~ inverse Wishart(nu0, scale0). theta holds m and the inverse
    Cholesky factor F of V, F V F' = I, in cell units: float64 of shape (n_atoms, d + d (d + 1) /
    2), F's lower triangle row by row. Densities over atoms are with respect to m and the lower
    triangle of V. The proposal of a row x: V ~ inverse Wishart(nu0 + 1, scale0),
    m ~ N(x, V / (kappa0 + 1)). Statistics are the number of rows, the sums and the sums of
    products: (n_atoms, 1 + d + d (d + 1) / 2).

    Parameters
    ----------
    table, hyper, grids
        See ConjugateLikelihood; one flat vector of mu0, kappa0, nu0 and scale0's lower triangle.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.likelihoods import LIKELIHOODS
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> likelihood = LIKELIHOODS["multivariate_normal"].of(X)
    >>> rows = likelihood.encode(X)
    >>> statistics = likelihood.statistics(rows, np.zeros(50, dtype=np.int32), 1)
    >>> mean, *covariance = likelihood.features(likelihood.mean(statistics))[0]
    >>> np.abs(covariance - np.cov(X.T)).max() < 0.1
    np.True_
    """

    family = "multivariate_normal"

    def _take_hyper(self):
        d = self.schema.n_columns
        forms = ("location", "positive", "positive", "covariance")
        self.mu0, self.kappa0, self.nu0, self.scale0 = unflatten(forms, self.hyper[0], d)
        # no pivot of a posterior's scale is less than the prior's; by rounding, than half of it
        self.least = 0.5 / np.diag(inverse_cholesky(self.scale0[None])[0]) ** 2

    def prepare(self, theta):
        """Means and inverse Cholesky factors over the root of 2, in float32."""
        mean, factor = self._split(theta)
        constants = self._log_det(factor) - 0.5 * mean.shape[1] * LOG_2PI
        return Quadratic(mean, factor * np.sqrt(0.5), constants)

    def statistics(self, rows, labels, n_atoms):
        """Number of rows, sums, sums of products."""
        return moments(rows.table, rows.start, labels, n_atoms, True)

    def _split(self, theta):
        d = self.schema.n_columns
        return theta[:, :d], theta[:, d:]

    def _matrices(self, packed):
        """Lower triangles as matrices, 0 above."""
        d = self.schema.n_columns
        out = np.zeros((len(packed), d, d))
        rows, columns = np.tril_indices(d)
        out[:, rows, columns] = packed
        return out

    def _log_det(self, factor):
        return np.log(factor[:, diagonal(self.schema.n_columns)]).sum(axis=1)

    def _centred(self, statistics):
        """(n, mean, centred sums of products as lower triangles); n of shape (n_atoms, 1)."""
        d = self.schema.n_columns
        n, total, products = np.split(statistics, [1, 1 + d], axis=1)
        mean = total / np.maximum(n, 1.0)
        rows, columns = np.tril_indices(d)
        scatter = products - total[:, rows] * mean[:, columns]
        return n, mean, np.where(n > 1.0, scatter, 0.0)

    def _posterior(self, statistics):
        """(kappa, nu, mu_n, Psi, far), of shapes (n_atoms, 1), (n_atoms,), ...

        Psi + far far' is the scale: where mu_n is far, the square would leave no digits of Psi.
        """
        n, mean, scatter = self._centred(statistics)
        rows, columns = np.tril_indices(mean.shape[1])
        kappa, shift = self.kappa0 + n, mean - self.mu0
        scale = self.scale0[rows, columns] + scatter
        is_far = np.abs(shift).max(axis=1, keepdims=True) > FAR
        far = np.where(is_far, np.sqrt(self.kappa0 * n / kappa) * shift, 0.0)
        near = np.where(is_far, 0.0, shift)
        scale = scale + self.kappa0 * n / kappa * near[:, rows] * near[:, columns]
        return kappa, self.nu0 + n[:, 0], self.mu0 + n / kappa * shift, self._matrices(scale), far

    def _factors(self, scale, far, degrees=None):
        """Inverse Cholesky factors of the posterior's scales, over their degrees if given."""
        degrees = np.ones(len(scale)) if degrees is None else degrees
        out = inverse_cholesky(scale / degrees[:, None, None], self.least / degrees[:, None])
        k = np.flatnonzero(far.any(axis=1))
        out[k] = add_squares(out[k], far[k] / np.sqrt(degrees[k, None]))
        return out

    def _draw(self, kappa, nu, centre, factors, bit_generator):
        factor = inverse_factors(factors, nu, bit_generator)
        z = normals(centre.shape, bit_generator)
        # F u = z has u ~ N(0, V)
        u = np.empty_like(z)
        lower = self._matrices(factor)
        for i in range(z.shape[1]):
            u[:, i] = (z[:, i] - (lower[:, i, :i] * u[:, :i]).sum(axis=1)) / lower[:, i, i]
        return np.concatenate([centre + u / np.sqrt(kappa), factor], axis=1)

    def draw(self, statistics, theta, rng):
        """Atoms from their posterior, by Bartlett's decomposition."""
        kappa, nu, centre, scale, far = self._posterior(statistics)
        return self._draw(kappa, nu, centre, self._factors(scale, far), rng.bit_generator)

    def prior_draw(self, n, rng):
        """Atoms from the prior."""
        d = self.schema.n_columns
        return self.draw(np.zeros((n, 1 + d + d * (d + 1) // 2)), None, rng)

    def _log_density(self, kappa, nu, centre, scale, theta):
        """Normal times inverse Wishart, one for all atoms."""
        mean, factor = self._split(theta)
        d = mean.shape[1]
        lower, log_det = self._matrices(factor), self._log_det(factor)
        root = np.linalg.inv(inverse_cholesky(scale[None])[0])  # scale = root root'
        trace = (np.einsum("kij,jl->kil", lower, root) ** 2).sum(axis=(1, 2))
        distance = (np.einsum("kij,kj->ki", lower, mean - centre) ** 2).sum(axis=1)
        constant = nu * np.log(np.diag(root)).sum() - 0.5 * nu * d * np.log(2.0)
        constant -= multigammaln(0.5 * nu, d) + 0.5 * d * (LOG_2PI - np.log(kappa))
        return constant + (nu + d + 2.0) * log_det - 0.5 * (trace + kappa * distance)

    def log_prior(self, theta):
        """Normal times inverse Wishart."""
        return self._log_density(self.kappa0, self.nu0, self.mu0, self.scale0, theta)

    def proposal_draw(self, rows, rng):
        """Means around each row, covariances from about the prior."""
        labels = np.arange(len(rows), dtype=np.int32)
        cells = moments(rows.table, rows.start, labels, len(rows), False)
        cells = cells[:, 1 : 1 + self.schema.n_columns]
        nu = np.full(len(rows), self.nu0 + 1.0)
        factor = inverse_cholesky(self.scale0[None])
        factors = np.broadcast_to(factor, (len(rows), *self.scale0.shape))
        return self._draw(self.kappa0 + 1.0, nu, cells, factors, rng.bit_generator)

    def proposal_logpdf(self, theta, row):
        """The density of `proposal_draw`."""
        centre = self._row(row)
        return self._log_density(self.kappa0 + 1.0, self.nu0 + 1.0, centre, self.scale0, theta)

    def mean(self, statistics):
        """The atom of the posterior means of m and V.

        Where V's posterior has no mean, nu <= d + 1, its mode.
        """
        _, nu, centre, scale, far = self._posterior(statistics)
        d = centre.shape[1]
        degrees = np.where(nu > d + 1.0, nu - d - 1.0, nu + d + 1.0)
        factor = self._factors(scale, far, degrees)
        rows, columns = np.tril_indices(d)
        return np.concatenate([centre, factor[:, rows, columns]], axis=1)

    def features(self, theta):
        """Means and covariances in the user's units: (n_atoms, 1 + d, d), the mean first.

        A variance beyond the largest number is inf, and so is a covariance, with its sign.
        """
        mean, factor = self._split(theta)
        offsets, scales = self.schema.offsets, self.schema.scales
        root = np.linalg.inv(self._matrices(factor))
        with np.errstate(over="ignore"):
            covariance = np.einsum("kij,klj->kil", root, root) * scales * scales[:, None]
        return np.concatenate([(offsets + scales * mean)[:, None], covariance], axis=1)

    def _statistics_arrays(self, statistics, sizes):
        _, mean, scatter = self._centred(statistics)
        rows, columns = np.tril_indices(mean.shape[1])
        factor = self._factors(*self._posterior(statistics)[3:])[:, rows, columns]
        return {
            "size": sizes,
            "updates": np.zeros(len(sizes), np.int64),
            "mean": np.ascontiguousarray(mean.T),
            "scatter": np.ascontiguousarray(scatter.T),
            "factor": np.ascontiguousarray(factor.T),
        }
