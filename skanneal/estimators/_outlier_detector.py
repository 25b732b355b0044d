"""MixtureOutlierDetector: the rows that a mixture finds odd, in scikit-learn's outlier manner."""

# SPDX-License-Identifier: BSD-3-Clause

import warnings
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from .._native._doc_link import DocLink
from .._native._types import Seed, TableLike
from .._native._warning import warn
from ..encoding import open_table
from ..parallel import TimeLimit
from ..predictive._calibration import FALL, HALF, ORDINARY
from ..schedules import resolve_schedule
from ._annealed import BaseAnnealed
from ._annealed_dp import AnnealedDPMixture
from ._base_chains import BaseChains
from ._callbacks import CallbackSupportMixin, handed_on
from ._explanations import explain
from ._fit_context import validated
from ._scales import FEW_ROWS, fit_scales, rows_at, scores_of_model

AUTO_SHARE = 0.01  # of rows that "auto" takes for outliers if there are none
MARGIN = np.log((1 - ORDINARY) / AUTO_SHARE)  # of an exponential tail, from ORDINARY to there
MODEL_SHARE = 2 / 3  # of the time, for the fit of all rows
MOST_SEEN = 256  # rows of a mixture of few
# Sweeps of all rows before the first draw of a chain of the mixture of all rows, draws, and sweeps
# from one to the next. Chains that go on until they agree take twice as long, and rank no better.
FIRST_SWEEPS, DRAWS, THIN = 11, 8, 2


class MixtureOutlierDetector(OutlierMixin, CallbackSupportMixin, DocLink, BaseEstimator):
    """Find rows that are improbable under mixtures, whatever their columns and gaps.

    The score is about minus the log of the share of rows that are as odd. It is an average over
    three scales: a mixture of all rows, mixtures of few random rows each, and one component of the
    three quarters of the rows that are least odd in it. Rows are odd if they lie at the rim of
    their component, or if their component is diffuse or rare; being a tail probability, not a
    density, the score is neither raised nor lowered by repeated values and gaps.

    Parameters
    ----------
    estimator : AnnealedDPMixture, PermutationDPMixture, CrossCatPY or None, default=None
        The mixture of all rows. None is an `AnnealedDPMixture` of two chains, each of which makes
        25 sweeps of all rows whether they agree or not, with components as labels, beside the other
        scales. Otherwise the score is that of this model alone; a copy is fitted.
    n_estimators : int, default=24
        How many mixtures of few rows are fitted; not used with an `estimator`.
    max_samples : "auto", int or float, default="auto"
        How many rows each of them sees: a number, or a share of the rows; at most half of the rows,
        since the others say which share of rows is as odd. "auto" is 256.
    contamination : "auto" or float, default="auto"
        The share of the training rows that are outliers, in (0, 0.5]. With "auto", rows above the
        score that 1 % of ordinary rows would exceed are outliers, and the tenth of the rows that
        are oddest has no say in where that is: ordinary rows are assumed to have an exponential
        tail, as a model's own rows have, and the scores of the others are extrapolated. If less
        than 1 % of the training rows of an average over scales are beyond, their tail is lighter:
        then about 1 % of them are outliers, if there are 100 rows or more.
    max_time : float or None, default=None
        Seconds of wall clock that the fit may take. It replaces the estimator's own `max_time`.
        Without an `estimator`, two thirds of it are for the mixture of all rows.
    n_jobs : int or None, default=None
        How many of the chains run at a time, through joblib; an `estimator` has its own.
    random_state : int, None, RandomState, Generator or SeedSequence, default=None
        Randomness of the estimator, if it has no `random_state` of its own, and of all else.

    Attributes
    ----------
    estimator_ : estimator
        The fitted mixture of all rows.
    estimators_ : list of Member
        The mixtures of few rows: each has `rows`, the rows that it has seen, and `draw`, one draw
        of a chain as in ``estimator_.draws_``. Empty with an `estimator`, or if `max_time` or an
        interrupt left no time for one, of which `fit` warns.
    core_ : Member or None
        The one component: its `rows` are those that are least odd in it. None with an `estimator`,
        or if there is one row.
    max_samples_ : int
        Rows that each of them has seen.
    offset_ : float
        Rows whose `score_samples` is below it are outliers.
    outlier_scores_ : ndarray of shape (n_rows,)
        How odd each training row is, by mixtures that have not seen it, or without itself; higher
        is odder. Equal rows may differ, as each is judged by other mixtures. Compare `offset_` with
        `score_samples`, not with these. nan where `max_time` left no time for it: then "auto" goes
        by the scores of 1,000 rows.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Names of the columns of X, if it had names.

    See Also
    --------
    AnnealedDPMixture.score_outliers : The score of one model.
    sklearn.ensemble.IsolationForest : Outliers are isolated by few random splits.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal import MixtureOutlierDetector
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> X[:2] = [[7.0, 7.0], [-7.0, 6.0]]
    >>> detector = MixtureOutlierDetector(contamination=0.01, random_state=0)
    >>> np.flatnonzero(detector.fit_predict(X) == -1)
    array([0, 1])
    """

    _parameter_constraints: dict = {
        "estimator": [BaseAnnealed, None],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_samples": [
            StrOptions({"auto"}),
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="right"),
        ],
        "contamination": [StrOptions({"auto"}), Interval(Real, 0, 0.5, closed="right")],
        "max_time": BaseChains._parameter_constraints["max_time"],
        "n_jobs": BaseChains._parameter_constraints["n_jobs"],
        "random_state": ["random_state", np.random.Generator, np.random.SeedSequence],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 24,
        max_samples: str | float = "auto",
        contamination: str | float = "auto",
        max_time: float | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.contamination = contamination
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.random_state = random_state

    @validated
    def fit(self, X: TableLike, y: Any = None) -> Self:
        """Fit the models and find where outliers begin.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Outliers may be among the rows. Never changed.
        y : None
            Not used.

        Returns
        -------
        self : MixtureOutlierDetector

        Raises
        ------
        ValueError, TypeError
            As the estimator's fit does.
        """
        limit = TimeLimit(self.max_time)
        estimator = self._own_model() if self.estimator is None else clone(self.estimator)
        if estimator.random_state is None:
            estimator.set_params(random_state=self.random_state)
        if self.max_time is not None:
            share = MODEL_SHARE if self.estimator is None else 1.0
            estimator.set_params(max_time=share * self.max_time)
        with handed_on(self, estimator), warnings.catch_warnings():
            if self.estimator is None:  # of its clusters nothing is asked
                only_clusters = r"The chains agree on [^,]*density"
                warnings.filterwarnings("ignore", only_clusters, ConvergenceWarning)
            estimator.fit(X)
        validate_data(self, X, reset=True, skip_check_array=True)
        self.estimator_, self.estimators_ = estimator, []
        self.core_ = self._scales = None
        n_rows = len(estimator.outlier_scores_)
        self.max_samples_ = min(self._n_seen(n_rows), n_rows // 2)
        if self.estimator is None and self.max_samples_:
            self._fit_scales(X, limit)
        else:
            self.outlier_scores_ = estimator.outlier_scores_
        if self.contamination == "auto":
            self.offset_ = self._auto_offset(X)
        else:
            self.offset_ = float(np.quantile(self.score_samples(X), self.contamination))
        return self

    def _own_model(self):
        schedule = resolve_schedule("anneal").set_params(n_sweeps=None, final_sweeps=FIRST_SWEEPS)
        return AnnealedDPMixture(
            schedule=schedule,
            n_chains=2,
            n_draws=DRAWS,
            thin=THIN,
            point_estimate="map",
            n_jobs=self.n_jobs,
        )

    def _n_seen(self, n_rows):
        if self.max_samples == "auto":
            return MOST_SEEN
        whole = isinstance(self.max_samples, Integral)
        return self.max_samples if whole else max(1, int(self.max_samples * n_rows))

    def _fit_scales(self, X, limit):
        """Fit the other scales."""
        wanted = 0 if self.estimator_._interrupted else self.n_estimators
        scales, means, interrupted = fit_scales(
            self.estimator_, X, wanted, self.max_samples_, self.n_jobs, limit
        )
        self._scales, self.estimators_, self.core_ = scales, scales.members, scales.core
        self.outlier_scores_ = scales.law(means)
        if len(scales.members) < self.n_estimators:
            reason = "The fit was interrupted" if interrupted or not wanted else "max_time was over"
            warn(
                f"{reason}: {len(scales.members)} of {self.n_estimators} mixtures of few rows were "
                "fitted.",
                ConvergenceWarning,
            )

    def _auto_offset(self, X):
        """Where "auto" says that outliers begin, by some of the training rows.

        The score of one model falls off as that of its own rows does. The mean of the scales, which
        is not known so well, goes on as it fell before."""
        scores = self.outlier_scores_
        if self._scales is not None:
            means = self._scales.means(_some(X, len(scores)))
            half, most = np.quantile(means, [HALF, ORDINARY])
            begin = most + MARGIN * (most - half) / FALL
            if AUTO_SHARE * len(means) >= 1.0:  # else the oddest row says nothing of the tail
                begin = min(begin, np.quantile(means, 1.0 - AUTO_SHARE, method="higher"))
            return -float(self._scales.law(begin))
        if np.isnan(scores).any():  # there was no time for them
            scores = scores_of_model(self.estimator_, _some(X, len(scores)))
        return -float(np.quantile(scores, ORDINARY) + MARGIN)

    def score_samples(self, X: TableLike) -> np.ndarray:
        """Minus how odd each row is.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Any cell may be missing.

        Returns
        -------
        scores : ndarray of shape (n_rows,)
            The logarithm of a probability: lower is odder. Without an `estimator` it is about the
            share of rows that are as odd.
        """
        check_is_fitted(self)
        open_table(X, "X")  # refuses what is no table, with scikit-learn's words
        validate_data(self, X, reset=False, skip_check_array=True)
        return self._scores(X)

    def _scores(self, X):
        """`score_samples` of rows whose columns' names have been compared with those of the fit."""
        if self._scales is None:
            return -scores_of_model(self.estimator_, X)
        return -self._scales.scores(X)

    def explain_outliers(
        self, X: TableLike, n: int = 10, *, n_cells: int = 1, reference: Any = None
    ) -> Any:
        """The oddest rows, and which of their cells are to blame.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Any cell may be missing.
        n : int, default=10
            How many rows to explain, whether `predict` calls them outliers or not.
        n_cells : int, default=1
            How many cells to name per row at most.
        reference : array-like, frame or None, default=None
            Ordinary rows, such as the training data, with which cells are compared. None takes X,
            which must then have two rows or more.

        Returns
        -------
        explanation : pandas.DataFrame
            A line per cell, as `AnnealedDPMixture.explain_outliers` gives it; "score" is the
            detector's own.
        """
        check_is_fitted(self)
        return explain(self.estimator_, X, n, n_cells, reference, scored_by=self)

    def decision_function(self, X: TableLike) -> np.ndarray:
        """`score_samples` less `offset_`.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Any cell may be missing.

        Returns
        -------
        scores : ndarray of shape (n_rows,)
            Below 0 for outliers.
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: TableLike) -> np.ndarray:
        """Which rows are outliers.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Any cell may be missing.

        Returns
        -------
        signs : ndarray of shape (n_rows,), int64
            -1 for outliers, 1 for the others.
        """
        return np.where(self.decision_function(X) < 0, -1, 1)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags


def _some(X, n_rows):
    """At most FEW_ROWS of the rows."""
    return rows_at(X, np.linspace(0, n_rows - 1, min(n_rows, FEW_ROWS)).astype(np.int64))
