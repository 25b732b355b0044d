"""The mean of normal rows with known covariance: a target whose posterior is in closed form."""

# SPDX-License-Identifier: BSD-3-Clause

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from .._native._types import TableLike
from ._draws import standard_normals
from ._gaussian_rows import BoundGaussianMean
from ._given import refuse_masked
from ._targets import Target

LARGEST = 1e150  # of what is squared


class GaussianMeanTarget(Target):
    """Rows x_n ~ N(theta, covariance), theta ~ N(0, prior_scale^2 I).

    This is the model of van de Meent, Paige and Wood (2014), section 4.1. Each evaluation goes over
    the rows, as it must in models without sufficient statistics.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_parameters)
        Finite numbers.
    covariance : None, float or array-like, default=None
        Covariance of a row: None is the identity, a number a multiple of it, a vector its diagonal.
    prior_scale : float, default=1.0
        Standard deviation of each coordinate of theta under the prior.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.tempering import GaussianMeanTarget
    >>> target = GaussianMeanTarget(np.array([[1.0], [2.0], [3.0]]), prior_scale=1.0)
    >>> mean, covariance = target.posterior()
    >>> mean, covariance
    (array([1.5]), array([[0.25]]))
    """

    independent = True
    has_gradient = True

    def __init__(self, X: TableLike, covariance: Any = None, prior_scale: Any = 1.0) -> None:
        refuse_masked(X=X)
        X = np.array(X, dtype=np.float64, order="C")  # sums over rows round by their order
        if X.ndim != 2 or not X.size:
            raise ValueError(f"X must have rows and columns, got shape {X.shape}.")
        if not np.isfinite(X).all():
            raise ValueError("X must hold finite numbers only.")
        if not isinstance(prior_scale, Real) or not 1 / LARGEST <= prior_scale <= LARGEST:
            raise ValueError(
                f"prior_scale must be a positive number, from {1 / LARGEST} to {LARGEST}, so that "
                f"it has a square; got {prior_scale!r}."
            )
        self.n_rows, self.n_parameters = X.shape
        self.covariance = as_covariance(covariance, X.shape[1])
        self.prior_scale = float(prior_scale)
        factor = linalg.cholesky(self.covariance, lower=True)
        self.whitener = np.tril(
            linalg.solve_triangular(factor, np.eye(self.n_parameters), lower=True)
        )
        unit = np.sqrt(np.diagonal(self.covariance))
        for what, values in (("X", np.abs(X).max(axis=0)), ("prior_scale", self.prior_scale)):
            with np.errstate(over="ignore"):
                far = ~(values / unit <= LARGEST)
            if far.any():
                j = np.argmax(far)
                raise ValueError(
                    f"{what} reaches more than {LARGEST} times the standard deviation that "
                    f"covariance gives column {j} of X, {unit[j]:.3g}: its squares overflow."
                )
        self.whitened = X @ self.whitener.T
        self.mean_of_rows = X.mean(axis=0)
        self.log_constant = -np.log(np.diagonal(factor)).sum() - 0.5 * self.n_parameters * np.log(
            2 * np.pi
        )

    def log_prior(self, theta: ArrayLike, gradient: Any = False) -> Any:
        variance = self.prior_scale**2
        value = -0.5 * theta @ theta / variance
        value -= 0.5 * self.n_parameters * np.log(2 * np.pi * variance)
        return value, -theta / variance if gradient else None

    def log_likelihood(self, theta: ArrayLike, rows: Any, gradient: Any = False) -> Any:
        residuals = self.whitened[rows] - self.whitener @ theta
        value = len(rows) * self.log_constant - 0.5 * (residuals**2).sum()
        return value, self.whitener.T @ residuals.sum(axis=0) if gradient else None

    def draw_prior(self, generator: Any) -> Any:
        return self.prior_scale * standard_normals(generator.bit_generator, self.n_parameters)

    def bind(self, order: Any, sizes: Any) -> Any:
        return BoundGaussianMean(self, order, sizes)

    def posterior(self) -> Any:
        """Mean and covariance of theta given all rows, in closed form.

        Returns
        -------
        mean : ndarray of shape (n_parameters,)
        covariance : ndarray of shape (n_parameters, n_parameters)
        """
        d = self.n_parameters
        total = self.covariance / self.n_rows + self.prior_scale**2 * np.eye(d)
        gain = self.prior_scale**2 * linalg.solve(total, np.eye(d), assume_a="pos")
        mean = gain @ self.mean_of_rows
        covariance = gain @ self.covariance / self.n_rows
        return mean, 0.5 * (covariance + covariance.T)


def as_covariance(covariance, d):
    """A covariance matrix from None, a number, a diagonal or a matrix."""
    given = 1.0 if covariance is None else covariance
    try:
        given = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"covariance must be None, a number, a vector or a matrix, got {covariance!r}."
        ) from None
    if given.ndim < 2:
        given = np.diag(np.broadcast_to(given, d) if given.ndim == 0 else given)
    if given.shape != (d, d):
        raise ValueError(
            f"covariance of shape {np.shape(covariance)} does not fit {d} columns of X."
        )
    if not np.isfinite(given).all() or not np.allclose(given, given.T, rtol=1e-10, atol=0.0):
        raise ValueError("covariance must be symmetric and finite.")
    try:
        np.linalg.cholesky(given)
    except np.linalg.LinAlgError:
        raise ValueError("covariance must be positive definite.") from None
    scales = np.sqrt(np.diagonal(given))
    if scales.min() < 1 / LARGEST or scales.max() > LARGEST:
        raise ValueError(
            f"covariance must give standard deviations from {1 / LARGEST} to {LARGEST}, got "
            f"{scales.min():.3g} to {scales.max():.3g}: give X in other units."
        )
    return given
