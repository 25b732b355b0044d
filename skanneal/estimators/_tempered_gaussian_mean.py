"""TemperedGaussianMean: the mean of normal rows, by tempered Markov chains."""

# SPDX-License-Identifier: BSD-3-Clause

from numbers import Real
from typing import Any, Self

import numpy as np
from scipy import linalg
from scipy.special import logsumexp
from sklearn.base import DensityMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from .._native._types import Seed, TableLike
from ..parallel import TimeLimit
from ..tempering import GaussianMeanTarget
from ._fit_context import validated
from ._tempered import BaseTempered


class TemperedGaussianMean(DensityMixin, BaseTempered):
    """Posterior of the mean of normal rows with known covariance, by tempering by subsampling.

    Rows are x_n ~ N(theta, covariance) with theta ~ N(0, prior_scale^2 I): the model of van de
    Meent, Paige and Wood [1]_, section 4.1. Since its posterior is known in closed form, it serves
    to compare samplers.

    Parameters
    ----------
    covariance : None, float or array-like, default=None
        Covariance of a row: None is the identity, a number is this multiple of it, a vector its
        diagonal.
    prior_scale : float, default=1.0
        Standard deviation of each coordinate of theta under the prior.
    method : {"stt", "spt", "tt", "pt", "none"}, default="stt"
        "stt" and "tt" are tempered transitions, "spt" and "pt" parallel tempering. Levels have
        fewer rows in the methods with "s", and powers of the likelihood in the others. "none" is
        the inner sampler alone.
    inner : {"hmc", "mh"}, inner sampler or sequence of them, default="hmc"
        What updates theta within a level.
    schedule : ladder or None, default=None
        `GeometricLadder` or `CustomLadder`; None is ``GeometricLadder()``.
    n_chains : int, default=4
        Independent chains.
    n_draws, n_warmup : int, default=250
        Iterations of each chain that are kept, and iterations before these.
    max_time : float or None, default=None
        Seconds of wall clock that the whole fit may take. Iterations that would end later are left
        out.
    n_jobs : int or None, default=None
        How many chains run at a time, through joblib. By default they run in threads, which release
        the GIL.
    random_state : int, None, RandomState, Generator or SeedSequence, default=None
        An int gives the same fit every time, for any `n_jobs` and backend.
    verbose : int, default=0
        If above 0, a line is printed for each stage of each chain.

    Attributes
    ----------
    mean_ : ndarray of shape (`n_features_in_`,)
        Mean of the draws.
    covariance_ : ndarray of shape (`n_features_in_`, `n_features_in_`)
        Covariance of a row, as a matrix.
    draws_ : ndarray of shape (n_chains, n_draws, `n_features_in_`)
        Draws of theta.
    ess_, r_hat_ : dict of ndarray
        "theta": bulk effective sample size and R-hat of each coordinate.
    trace_ : dict of ndarray of shape (n_chains, n_draws)
        "seconds" and "sweeps" (iterations) since the chain began, including warm-up; "log_joint";
        the coordinates "theta[0]" and so on. `TraceDisplay` draws them.
    betas_, sizes_ : ndarray of shape (n_chains, n_levels)
        The ladder.
    result_ : TemperingResult
        All other results: acceptances, round trips, step sizes, evidence, seconds.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Names of the columns of X, if it had names.

    References
    ----------
    .. [1] J.-W. van de Meent, B. Paige, F. Wood (2014). "Tempering by Subsampling".
       arXiv:1401.7145.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal import TemperedGaussianMean
    >>> X = np.random.default_rng(0).normal([1, -1], 1, (200, 2))
    >>> model = TemperedGaussianMean(random_state=0).fit(X)
    >>> bool(np.all(abs(model.mean_ - X.mean(axis=0)) < 0.1))
    True
    """

    _parameter_constraints: dict = {
        **BaseTempered._parameter_constraints,
        "covariance": [None, Interval(Real, 0, None, closed="neither"), "array-like"],
        "prior_scale": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        *,
        covariance: Any = None,
        prior_scale: Any = 1.0,
        method: str = "stt",
        inner: Any = "hmc",
        schedule: Any = None,
        n_chains: int = 4,
        n_draws: int = 250,
        n_warmup: int = 250,
        max_time: float | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None:
        self.covariance = covariance
        self.prior_scale = prior_scale
        self.method = method
        self.inner = inner
        self.schedule = schedule
        self.n_chains = n_chains
        self.n_draws = n_draws
        self.n_warmup = n_warmup
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @validated
    def fit(self, X: TableLike, y: Any = None) -> Self:
        """Run the chains.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            Finite numbers.
        y : None
            Not used.

        Returns
        -------
        self : TemperedGaussianMean
        """
        limit = TimeLimit(self.max_time)
        with self._all_or_nothing():
            X = self._rows(X)
            target = GaussianMeanTarget(X, self.covariance, self.prior_scale)
            result = self._sample(target, limit.left if limit else None)
        fitted, complaints = self._results(result, {"theta": slice(None)}, result.interrupted)
        of_target = {"covariance_": target.covariance, "mean_": result.flat.mean(axis=0)}
        return self._keep(fitted | of_target, complaints)

    def score_samples(self, X: TableLike) -> np.ndarray:
        """Log posterior predictive density of each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            Finite numbers.

        Returns
        -------
        log_density : ndarray of shape (n_rows,)
            Log density of the mixture over draws.
        """
        check_is_fitted(self)
        X = self._rows(X, reset=False)
        factor = linalg.cholesky(self.covariance_, lower=True)
        draws = self.draws_.reshape(-1, X.shape[1])
        whitened = linalg.solve_triangular(factor, draws.T, lower=True).T
        constant = -np.log(np.diagonal(factor)).sum() - 0.5 * X.shape[1] * np.log(2 * np.pi)
        out = np.empty(len(X))
        for i, row in enumerate(X):  # one at a time: a row's density does not depend on others
            with np.errstate(over="ignore"):
                z = linalg.solve_triangular(factor, row, lower=True)
                out[i] = logsumexp(-0.5 * ((whitened - z) ** 2).sum(axis=1))
        if not np.isfinite(out).all():
            raise ValueError(
                f"row {np.argmin(np.isfinite(out))} of X is too far from the mean: the log of its "
                f"density overflows."
            )
        return out - np.log(len(draws)) + constant

    def score(self, X: TableLike, y: Any = None) -> float:
        """Mean log posterior predictive density.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            Finite numbers.
        y : None
            Not used.

        Returns
        -------
        score : float
        """
        return float(np.mean(self.score_samples(X)))
