"""TemperedGPRegressor: Gaussian process regression with a full posterior over hyperparameters."""

# SPDX-License-Identifier: BSD-3-Clause

import warnings
from collections.abc import Mapping
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import (
    assert_all_finite,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)
from threadpoolctl import threadpool_limits

from .._native._types import Seed, TableLike
from ..parallel import InterruptNote, TimeLimit, spawn_seeds
from ..tempering import METHODS, GaussianProcessTarget
from ..tempering._gaussian_process import KERNELS, resolve_priors
from ..tempering._given import as_numbers, refuse_masked
from ..tempering._gp_mixture import GaussianProcessMixture
from ..tempering._recentre import thinned
from ._fit_context import validated
from ._tempered import BaseTempered

ROUNDING = 1e-14  # of the largest value: smaller deviations say nothing
LARGEST = 1e300  # numbers that sums and a few standard deviations may be added to


class TemperedGPRegressor(RegressorMixin, BaseTempered):
    """Gaussian process regression, averaged over the posterior of its hyperparameters.

    scikit-learn's GaussianProcessRegressor fits length scales, amplitude and noise to a maximum of
    the likelihood. Here these hyperparameters have priors, and Markov chains with gradients draw
    them. Optional tempering on levels of fewer rows helps the chains over barriers [1]_. A
    prediction is a mixture over draws, so that it is wide where the data do not determine the
    hyperparameters.

    Parameters
    ----------
    kernel : {"rbf", "matern32", "matern52"}, default="rbf"
        The squared exponential kernel, or Matern's of order 3/2 or 5/2. Each column has its own
        length scale.
    priors : None or mapping, default=None
        "length_scale": mean and standard deviation of the normal prior of the logarithm of a length
        scale, measured in standard deviations of its column; numbers, or one per column. "sigma_f",
        "sigma_n": shape and rate of the gamma priors of amplitude and noise, in standard deviations
        of y if `normalize_y`. The defaults are (0.5, 1), (4, 1) and (2, 2).
    method : {"auto", "stt", "spt", "tt", "pt", "none"}, default="auto"
        "stt" and "tt" are tempered transitions, "spt" and "pt" parallel tempering. Levels have
        fewer rows in the methods with "s", and powers of the likelihood in the others. "none" is
        the inner sampler alone. "auto" is "stt" if there is a `schedule`, else "none", which is
        faster if the posterior has one mode.
    inner : {"hmc", "mh"}, inner sampler or sequence of them, default="hmc"
        What updates the hyperparameters within a level: Hamiltonian Monte Carlo or a random walk.
    schedule : ladder or None, default=None
        The levels. None is ``GeometricLadder(n_levels=7, beta_min=1/8)`` for a tempered `method`.
        ``GeometricLadder(n_levels=2, recentre=True)`` helps if there are many rows and `r_hat_`
        shows that the inner sampler mixes badly.
    n_chains : int, default=4
        Independent chains.
    n_draws, n_warmup : int, default=250
        Iterations of each chain that are kept, and iterations before these, in which step sizes
        adapt.
    n_predict : int, default=64
        Number of draws that predictions average, evenly thinned from all chains. Each of them keeps
        N (N + 1) / 2 numbers.
    normalize_y : bool, default=True
        Whether y is scaled to mean 0 and standard deviation 1, as the default priors expect.
        Predictions are in the units of y.
    max_time : float or None, default=None
        Seconds of wall clock that the whole fit may take. Iterations that would end later are left
        out.
    n_jobs : int or None, default=None
        How many chains run at a time, through joblib.
    random_state : int, None, RandomState, Generator or SeedSequence, default=None
        An int gives the same fit every time, for any `n_jobs`.
    verbose : int, default=0
        If above 0, a line is printed for each stage of each chain.

    Attributes
    ----------
    draws_ : ndarray of shape (n_chains, n_draws, `n_features_in_` + 2)
        Logarithms of the length scales, in the units of X, and of sigma_f and sigma_n, in the units
        of y or of the normalised y.
    parameter_names_ : list of str
        Names along the last axis of `draws_`.
    ess_, r_hat_ : dict of ndarray
        Bulk effective sample size and rank-normalised split R-hat of "length_scale" (one per
        column), "sigma_f" and "sigma_n".
    trace_ : dict of ndarray of shape (n_chains, n_draws)
        "seconds" and "sweeps" (iterations) since the chain began, including warm-up; "log_joint" of
        parameters and y; each parameter by its name. `TraceDisplay` draws them.
    betas_, sizes_ : ndarray of shape (n_chains, n_levels)
        The ladder.
    acceptance_ : ndarray of shape (n_chains, n_updates, n_levels)
        Acceptance of the inner sampler, by level.
    result_ : TemperingResult
        All other results: accepted passes or swaps, covariances rejected as singular, step sizes,
        seconds.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Names of the columns of X, if it had names.

    See Also
    --------
    sklearn.gaussian_process.GaussianProcessRegressor : One set of hyperparameters, the likeliest.

    References
    ----------
    .. [1] J.-W. van de Meent, B. Paige, F. Wood (2014). "Tempering by Subsampling".
       arXiv:1401.7145.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal import TemperedGPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, (40, 1))
    >>> y = np.sin(X[:, 0]) + rng.normal(0, 0.1, 40)
    >>> model = TemperedGPRegressor(n_draws=100, n_warmup=100, random_state=0).fit(X, y)
    >>> mean, std = model.predict([[1.5], [100.0]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(1.5)) < 0.15 and std[0] < 0.2 < std[1])
    True
    """

    _parameter_constraints: dict = {
        **BaseTempered._parameter_constraints,
        "method": [StrOptions({"auto", *METHODS})],
        "kernel": [StrOptions(set(KERNELS))],
        "priors": [Mapping, None],
        "n_predict": [Interval(Integral, 1, None, closed="left")],
        "normalize_y": ["boolean"],
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        priors: Any = None,
        method: str = "auto",
        inner: Any = "hmc",
        schedule: Any = None,
        n_chains: int = 4,
        n_draws: int = 250,
        n_warmup: int = 250,
        n_predict: int = 64,
        normalize_y: bool = True,
        max_time: float | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.priors = priors
        self.method = method
        self.inner = inner
        self.schedule = schedule
        self.n_chains = n_chains
        self.n_draws = n_draws
        self.n_warmup = n_warmup
        self.n_predict = n_predict
        self.normalize_y = normalize_y
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @validated
    def fit(self, X: TableLike, y: Any) -> Self:
        """Run the chains.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            Coordinates.
        y : array-like of shape (n_rows,)
            Observations.

        Returns
        -------
        self : TemperedGPRegressor

        Raises
        ------
        ValueError, TypeError
            Naming the parameter at fault, before any work starts.
        """
        limit = TimeLimit(self.max_time)
        with self._all_or_nothing(), warnings.catch_warnings():
            X, y = self._rows(X, y, y_numeric=True)
            y = as_numbers("y", y)
            y, centre, scale = normalised(y) if self.normalize_y else (y, 0.0, 1.0)
            target = self._target_of(X, y)
            # A covariance that is singular to working precision is no plausible one: rejecting it
            # is the model's affair, and `result_` has the counts.
            warnings.filterwarnings("ignore", ".* not a number", RuntimeWarning)
            result = self._sample(target, self._time_for(target, limit))
            with InterruptNote() as note:  # the draws are complete: they are not lost any more
                mixture = GaussianProcessMixture(target, thinned(result.flat, self.n_predict))
        blocks = {"length_scale": slice(-2), "sigma_f": -2, "sigma_n": -1}
        fitted, complaints = self._results(result, blocks, result.interrupted or note.noted)
        of_target = {
            "parameter_names_": target.parameter_names,
            "acceptance_": result.acceptance,
            "_mixture": mixture,
            "_y_centre": centre,
            "_y_scale": scale,
        }
        return self._keep(fitted | of_target, complaints)

    def _time_for(self, target, limit):
        """Seconds for the chains: what the factors of `n_predict` draws take is set aside."""
        if not limit:
            return None
        generator = np.random.Generator(np.random.PCG64(0))
        theta = target.draw_prior(generator)
        with threadpool_limits(1, user_api="blas"):  # entering it takes longer than small factors
            began = limit.taken
            target.log_likelihood(theta, np.arange(target.n_rows), False)
            taken = limit.taken - began
        n_draws = min(self.n_predict, self.n_chains * self.n_draws)
        return max(limit.left - n_draws * taken, 0.5 * limit.left)

    def _target_of(self, X, y):
        """The posterior given normalised y: length scales count in the columns' deviations."""
        priors = resolve_priors(self.priors, X.shape[1])
        location, scale = priors["length_scale"]
        spread = deviation(X)
        if (spread < 1 / LARGEST).any():
            j = np.argmin(spread)
            raise ValueError(
                f"column {j} of X has a standard deviation of {spread[j]:.3g}, which is too small "
                f"to divide by: give it in smaller units."
            )
        priors["length_scale"] = (location + np.log(spread), scale)
        return GaussianProcessTarget(X, y, self.kernel, priors)

    def predict(self, X: TableLike, return_std: bool = False, return_cov: bool = False) -> Any:
        """Mean of new observations, and optionally their standard deviation or covariance.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            The rows at which to predict.
        return_std : bool, default=False
            Whether to return the standard deviation of a new observation too. It combines the
            noise, the process and the uncertainty of the hyperparameters.
        return_cov : bool, default=False
            Whether to return the covariance of new observations at all rows instead.

        Returns
        -------
        mean : ndarray of shape (n_rows,)
        std : ndarray of shape (n_rows,)
            With `return_std`.
        cov : ndarray of shape (n_rows, n_rows)
            With `return_cov`.

        Raises
        ------
        ValueError
            With `return_cov`, if variances in the units of y overflow; if a row of X is too far
            from those of the fit.
        """
        if return_std and return_cov:
            raise ValueError("return_std and return_cov exclude each other: cov holds std ** 2.")
        X = self._query(X)
        if return_cov:
            if self._y_scale > np.sqrt(LARGEST):
                raise ValueError(
                    f"return_cov: covariances in the units of y overflow, its standard deviation "
                    f"being {self._y_scale:.3g}; return_std=True can be had."
                )
            mean, cov = self._mixture.covariance(X)
            return self._in_units(mean), self._y_scale**2 * cov
        if not return_std:
            return self._in_units(self._mixture.means(X).mean(axis=0))
        means, variances = self._mixture.moments(X)
        std = np.sqrt(variances.mean(axis=0) + means.var(axis=0))
        return self._in_units(means.mean(axis=0)), self._y_scale * std

    def score(self, X: TableLike, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return R^2, the coefficient of determination, of `predict`.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            The rows at which to predict.
        y : array-like of shape (n_rows,)
            What was observed at X.
        sample_weight : array-like of shape (n_rows,), default=None
            The rows' weights.

        Returns
        -------
        score : float
            1 for a perfect prediction, 0 for one no better than the mean of y.
        """
        refuse_masked(y=y)
        return super().score(X, y, sample_weight)

    def sample_y(self, X: TableLike, n_samples: int = 1, random_state: Seed = 0) -> np.ndarray:
        """Draw new observations at all rows jointly, each sample under one draw.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            The rows at which to predict.
        n_samples : int, default=1
            How many.
        random_state : int, None, RandomState, Generator or SeedSequence, default=0
            An int gives the same samples every time.

        Returns
        -------
        samples : ndarray of shape (n_rows, n_samples)
        """
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(f"n_samples must be a positive integer, got {n_samples!r}.")
        X = self._query(X)
        (seed,) = spawn_seeds(random_state, 1)
        generator = np.random.Generator(np.random.PCG64(seed))
        return self._in_units(self._mixture.sample(X, n_samples, generator))

    def log_predictive_density(self, X: TableLike, y: Any) -> Any:
        """Log density of each observation: the log of the mean over draws of its densities.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            The rows at which to predict.
        y : array-like of shape (n_rows,)
            Observations, in the units of `fit`.

        Returns
        -------
        log_densities : ndarray of shape (n_rows,)
        """
        X = self._query(X)
        refuse_masked(y=y)
        y = as_numbers("y", column_or_1d(y, warn=True))
        check_consistent_length(X, y)
        assert_all_finite(y, input_name="y")
        with np.errstate(over="ignore"):
            y = y / self._y_scale - self._y_centre / self._y_scale
            log_densities = self._mixture.log_density(X, y) - np.log(self._y_scale)
        if not np.isfinite(log_densities).all():
            raise ValueError(
                f"y[{np.argmin(np.isfinite(log_densities))}] is too far from what was fitted: the "
                f"log of its density overflows."
            )
        return log_densities

    def log_marginal_likelihood(self, theta: ArrayLike, eval_gradient: bool = False) -> Any:
        """Log marginal likelihood of the training rows.

        Parameters
        ----------
        theta : array-like of shape (`n_features_in_` + 2,)
            Logarithms of the length scales in the units of X, and of sigma_f and sigma_n, as in
            `draws_`.
        eval_gradient : bool, default=False
            Whether to return the gradient with respect to theta too.

        Returns
        -------
        value : float
            The likelihood of y or of the normalised y; NaN if the covariance is singular to working
            precision.
        gradient : ndarray of shape (`n_features_in_` + 2,)
            With `eval_gradient`.
        """
        check_is_fitted(self)
        target = self._mixture.target
        theta = np.asarray(theta, dtype=np.float64)
        if theta.shape != (target.n_parameters,):
            raise ValueError(
                f"theta must have shape ({target.n_parameters},): "
                f"{', '.join(self.parameter_names_)}; got {theta.shape}."
            )
        with threadpool_limits(1, user_api="blas"):
            rows = np.arange(target.n_rows)
            value, gradient = target.log_likelihood(theta, rows, eval_gradient)
        return (value, gradient) if eval_gradient else value

    def _query(self, X):
        """Rows to predict at, checked and centred as the target's."""
        check_is_fitted(self)
        X = self._rows(X, reset=False)
        with np.errstate(over="ignore"):
            X = X - self._mixture.target.centre
            lengths = self._mixture.draws[:, :-2].min(axis=0)
            too_far = ~np.isfinite(np.abs(X).max(axis=0) * np.exp(-lengths))
        if too_far.any():
            raise ValueError(
                f"column {np.argmax(too_far)} of X holds values too far from those of the fit to "
                f"be divided by its length scale."
            )
        return X

    def _in_units(self, mean):
        return self._y_centre + self._y_scale * mean


def binary_unit(values):
    """A power of two as large as the largest value: in such units no square overflows."""
    return np.ldexp(0.5, np.frexp(np.abs(values).max(axis=0))[1])


def deviation(values):
    """Standard deviations to divide by: 1 where all values are equal, but for rounding."""
    unit = binary_unit(values)
    inner = values / unit
    spread = inner.std(axis=0)
    return np.where(spread > ROUNDING * np.abs(inner).max(axis=0), spread * unit, 1.0)[()]


def normalised(y):
    """y at mean 0 and standard deviation 1, and both; zeros where all values are equal."""
    if np.abs(y).max() > LARGEST:
        raise ValueError(
            f"y holds values up to {np.abs(y).max():.3g}, near the largest number: give it in "
            f"larger units."
        )
    unit = binary_unit(y)
    inner = y / unit
    centre, spread = inner.mean(), inner.std()
    if not spread > ROUNDING * np.abs(inner).max():
        return np.zeros_like(y), centre * unit, 1.0
    return (inner - centre) / spread, centre * unit, spread * unit
