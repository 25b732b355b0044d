"""MixtureOutlierDetector: the rows that a mixture finds odd, in scikit-learn's outlier manner."""

# SPDX-License-Identifier: BSD-3-Clause

from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from .._native._doc_link import DocLink
from .._native._types import Seed, TableLike
from ..encoding import open_table
from ._annealed import BaseAnnealed
from ._annealed_dp import AnnealedDPMixture
from ._base_chains import BaseChains
from ._callbacks import CallbackSupportMixin, handed_on
from ._fit_context import validated

AUTO_SHARE = 0.01  # of rows that "auto" takes for outliers if there are none
FEW_ROWS = 1000  # that say where outliers begin, if max_time left no time to score all
ORDINARY = 0.9  # of the rows: what is beyond may be outliers, and says nothing of ordinary rows


class MixtureOutlierDetector(OutlierMixin, CallbackSupportMixin, DocLink, BaseEstimator):
    """Find rows that are improbable under a mixture, whatever their columns and gaps.

    The score is a tail probability, not a density: rows are odd if they lie at the rim of their
    component, or if their component is small or diffuse. So outliers that resemble each other,
    repeated values and gaps neither hide outliers nor create them.

    Parameters
    ----------
    estimator : AnnealedDPMixture, PermutationDPMixture, CrossCatPY or None, default=None
        The model; a copy is fitted. None is ``AnnealedDPMixture()``.
    contamination : "auto" or float, default="auto"
        The share of the training rows that are outliers, in (0, 0.5]. "auto" assumes that scores
        have an exponential tail, as those of a model's own rows have. It takes the score that 10 %
        of the training rows exceed, and extrapolates to the score that 1 % would exceed; rows above
        that are outliers.
    max_time : float or None, default=None
        Seconds of wall clock that the estimator's fit may take. It replaces the estimator's own
        `max_time`.
    random_state : int, None, RandomState, Generator or SeedSequence, default=None
        Randomness of the estimator, if it has no `random_state` of its own.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model.
    offset_ : float
        Rows whose `score_samples` is below it are outliers.
    outlier_scores_ : ndarray of shape (n_rows,)
        How odd each training row is, scored without itself; higher is odder. nan where `max_time`
        left no time for it: then "auto" goes by the scores of 1,000 rows.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Names of the columns of X, if it had names.

    See Also
    --------
    AnnealedDPMixture.score_outliers : The score.
    sklearn.ensemble.IsolationForest : Outliers are isolated by few random splits.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal import AnnealedDPMixture, MixtureOutlierDetector
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> X[:2] = 7.0
    >>> mixture = AnnealedDPMixture(families="multivariate_normal", random_state=0)
    >>> detector = MixtureOutlierDetector(mixture, contamination=0.01)
    >>> np.flatnonzero(detector.fit_predict(X) == -1)
    array([0, 1])
    """

    _parameter_constraints: dict = {
        "estimator": [BaseAnnealed, None],
        "contamination": [StrOptions({"auto"}), Interval(Real, 0, 0.5, closed="right")],
        "max_time": BaseChains._parameter_constraints["max_time"],
        "random_state": ["random_state", np.random.Generator, np.random.SeedSequence],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        contamination: str | float = "auto",
        max_time: float | None = None,
        random_state: Seed = None,
    ) -> None:
        self.estimator = estimator
        self.contamination = contamination
        self.max_time = max_time
        self.random_state = random_state

    @validated
    def fit(self, X: TableLike, y: Any = None) -> Self:
        """Fit the model and find where outliers begin.

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
        estimator = AnnealedDPMixture() if self.estimator is None else clone(self.estimator)
        if estimator.random_state is None:
            estimator.set_params(random_state=self.random_state)
        if self.max_time is not None:
            estimator.set_params(max_time=self.max_time)
        with handed_on(self, estimator):
            estimator.fit(X)
        validate_data(self, X, reset=True, skip_check_array=True)
        self.estimator_, self.outlier_scores_ = estimator, estimator.outlier_scores_
        if self.contamination == "auto":
            margin, scores = np.log((1 - ORDINARY) / AUTO_SHARE), self.outlier_scores_
            if np.isnan(scores).any():  # there was no time for them
                n_rows = len(scores)
                some = np.linspace(0, n_rows - 1, min(n_rows, FEW_ROWS)).astype(np.int64)
                scores = estimator.score_outliers(_safe_indexing(X, some))
            self.offset_ = -float(np.quantile(scores, ORDINARY) + margin)
        else:
            scores = -estimator.score_outliers(X)
            self.offset_ = float(np.quantile(scores, self.contamination))
        return self

    def score_samples(self, X: TableLike) -> np.ndarray:
        """Minus how odd each row is.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Any cell may be missing.

        Returns
        -------
        scores : ndarray of shape (n_rows,)
            The logarithm of a probability: lower is odder.
        """
        check_is_fitted(self)
        open_table(X, "X")  # refuses what is no table, with scikit-learn's words
        validate_data(self, X, reset=False, skip_check_array=True)
        return -self.estimator_.score_outliers(X)

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
            A line per cell, as `AnnealedDPMixture.explain_outliers` gives it.
        """
        check_is_fitted(self)
        return self.estimator_.explain_outliers(X, n, n_cells=n_cells, reference=reference)

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
