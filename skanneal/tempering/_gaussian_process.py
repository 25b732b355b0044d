"""Gaussian process regression as a target: a posterior over the kernel's hyperparameters."""

# SPDX-License-Identifier: BSD-3-Clause

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln
from sklearn.utils.validation import check_X_y

from .._native._types import TableLike
from ._draws import standard_gammas, standard_normals
from ._gaussian_process_bound import KERNELS, BoundGaussianProcess
from ._given import as_numbers, refuse_masked
from ._targets import Target

__all__ = ["GaussianProcessTarget"]

# The priors of van de Meent, Paige and Wood (2014), section 4.2.
PRIORS = {"length_scale": (0.5, 1.0), "sigma_f": (4.0, 1.0), "sigma_n": (2.0, 2.0)}


class GaussianProcessTarget(Target):
    """Posterior of a Gaussian process' length scales, amplitude and noise.

    Rows are ``y = f(x) + sigma_n e`` with standard normal e and f a process of mean zero whose
    covariance is ``sigma_f ** 2 k(r)``, r the distance after each coordinate is divided by its
    length scale. The parameters are the logarithms of the length scales, of sigma_f and of sigma_n;
    the function f is integrated out.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_columns)
        Coordinates.
    y : array-like of shape (n_rows,)
        Observations, about zero.
    kernel : {"rbf", "matern32", "matern52"}, default="rbf"
        The squared exponential ``exp(-r ** 2 / 2)``; Matern's of order 3/2,
        ``(1 + sqrt(3) r) exp(-sqrt(3) r)``; of order 5/2,
        ``(1 + sqrt(5) r + 5 r ** 2 / 3) exp(-sqrt(5) r)``.
    priors : None or mapping, default=None
        "length_scale": mean and standard deviation of the normal prior of each logarithm of a
        length scale, numbers or arrays of shape (n_columns,). "sigma_f", "sigma_n": shape and rate
        of gamma priors. The defaults are (0.5, 1), (4, 1) and (2, 2), as in van de Meent, Paige and
        Wood [1]_.

    Attributes
    ----------
    n_parameters : int
        The number of columns of X plus two.
    X : ndarray of shape (n_rows, n_columns)
        The coordinates, centred.
    centre : ndarray of shape (n_columns,)
        The means that were subtracted from the coordinates.
    parameter_names : list of str
        "log_length_scale[0]", ..., "log_sigma_f", "log_sigma_n".

    References
    ----------
    .. [1] J.-W. van de Meent, B. Paige, F. Wood (2014). "Tempering by Subsampling".
       arXiv:1401.7145.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.tempering import GaussianProcessTarget
    >>> X = np.linspace(0, 5, 20)[:, None]
    >>> target = GaussianProcessTarget(X, np.sin(X[:, 0]))
    >>> value, gradient = target.log_likelihood(np.log([1.0, 1.0, 0.1]), np.arange(20), True)
    >>> gradient.shape
    (3,)
    """

    independent = False
    has_gradient = True

    def __init__(self, X: TableLike, y: Any, kernel: Any = "rbf", priors: Any = None) -> None:
        # One order in memory: sums over rows round by it.
        refuse_masked(X=X, y=y)
        X, y = check_X_y(X, y, dtype=np.float64, order="C", y_numeric=True)
        y = as_numbers("y", y)
        # Covariances see differences alone: what all rows have in common only costs digits.
        with np.errstate(over="ignore", invalid="ignore"):
            self.centre = X.mean(axis=0)
            self.X, self.y = X - self.centre, y
            too_far = ~np.isfinite(self.X).all(axis=0)
            too_large = not np.isfinite(self.y @ self.y)
        if too_far.any():
            raise ValueError(
                f"column {np.argmax(too_far)} of X holds values too large to take their mean out: "
                f"give it in larger units."
            )
        if too_large:
            raise ValueError(
                f"y holds values up to {np.abs(self.y).max():.3g}, whose squares overflow: give it "
                f"in larger units, or normalised."
            )
        if kernel not in KERNELS:
            raise ValueError(f"kernel must be one of {sorted(KERNELS)}, got {kernel!r}.")
        self.kernel = kernel
        self.n_rows, n_columns = self.X.shape
        self.n_parameters = n_columns + 2
        self.priors = resolve_priors(priors, n_columns)
        self.location, self.scale = (
            np.array(np.broadcast_to(part, n_columns)) for part in self.priors["length_scale"]
        )
        self.shape, self.rate = np.array([self.priors["sigma_f"], self.priors["sigma_n"]]).T.copy()
        gammas = self.shape * np.log(self.rate) - gammaln(self.shape)
        self.constant = np.r_[-np.log(self.scale) - 0.5 * np.log(2 * np.pi), gammas]
        lengths = [f"log_length_scale[{d}]" for d in range(n_columns)]
        self.parameter_names = [*lengths, "log_sigma_f", "log_sigma_n"]

    def log_prior(self, theta: ArrayLike, gradient: Any = False) -> Any:
        """Log density of the prior of the logarithms, normalised.

        Parameters
        ----------
        theta : ndarray of shape (n_parameters,)
            Log length scales, log sigma_f, log sigma_n.
        gradient : bool, default=False
            Whether the gradient is wanted.

        Returns
        -------
        value : float
        gradient : ndarray of shape (n_parameters,) or None
        """
        sigma = np.exp(theta[-2:])
        z = (theta[:-2] - self.location) / self.scale
        logs = np.r_[-0.5 * z**2, self.shape * theta[-2:] - self.rate * sigma]
        slope = np.r_[-z / self.scale, self.shape - self.rate * sigma] if gradient else None
        return float((logs + self.constant).sum()), slope

    def log_likelihood(self, theta: ArrayLike, rows: Any, gradient: Any = False) -> Any:
        """Log marginal likelihood of some rows.

        Parameters
        ----------
        theta : ndarray of shape (n_parameters,)
            Log length scales, log sigma_f, log sigma_n.
        rows : ndarray of int
            Positions in X.
        gradient : bool, default=False
            Whether the gradient is wanted.

        Returns
        -------
        value : float
            NaN where the covariance is singular to working precision.
        gradient : ndarray of shape (n_parameters,) or None
        """
        rest = np.setdiff1d(np.arange(self.n_rows), rows)
        sizes = [self.n_rows, len(rows)] if len(rest) else [self.n_rows]
        bound = self.bind(np.r_[rows, rest], sizes)
        values, slope = bound.evaluate(theta, len(sizes) - 1, gradient)
        return float(values[0]), slope

    def draw_prior(self, generator: Any) -> Any:
        z = standard_normals(generator.bit_generator, len(self.location))
        sigmas = standard_gammas(generator.bit_generator, self.shape) / self.rate
        return np.r_[self.location + self.scale * z, np.log(sigmas)]

    def bind(self, order: Any, sizes: Any) -> Any:
        return BoundGaussianProcess(self, order, sizes)


def resolve_priors(priors, n_columns):
    """The priors with what was left out, checked."""
    if priors is None:
        return dict(PRIORS)
    if not isinstance(priors, Mapping):
        raise TypeError(f"priors must be None or a mapping, got {type(priors).__name__}.")
    if unknown := sorted(map(str, set(priors) - set(PRIORS))):
        raise ValueError(f"priors names {', '.join(unknown)}; it may name {sorted(PRIORS)}.")
    resolved = PRIORS | dict(priors)
    for name, pair in resolved.items():
        try:
            first, second = None if isinstance(pair, str) else pair
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"priors[{name!r}] must be a pair of numbers, got {pair!r}."
            ) from error
        parts = [as_numbers(f"priors[{name!r}]", part) for part in (first, second)]
        shapes = {()} if name != "length_scale" else {(), (n_columns,)}
        if any(part.shape not in shapes for part in parts):
            arrays = f" or arrays of shape ({n_columns},)" if name == "length_scale" else ""
            raise ValueError(f"priors[{name!r}] must be two numbers{arrays}, got {pair!r}.")
        positive = parts[1:] if name == "length_scale" else parts
        if not all(np.isfinite(part).all() for part in parts) or any(
            (part <= 0).any() for part in positive
        ):
            what = "a finite mean and a positive standard deviation of the logarithm"
            raise ValueError(
                f"priors[{name!r}] must be "
                f"{what if name == 'length_scale' else 'a positive shape and a positive rate'}, "
                f"got {pair!r}."
            )
        resolved[name] = tuple(parts)
    return resolved
