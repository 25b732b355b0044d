"""What to search over ladders and samplers by: mixing; and over kernels: held-out density."""

# SPDX-License-Identifier: BSD-3-Clause

from typing import Any

import numpy as np

from .._native._types import TableLike


def ess_per_second_scorer(estimator: Any, X: TableLike = None, y: Any = None) -> float:
    """Smallest bulk effective sample size per second of the fit, warm-up included.

    Use it as ``GridSearchCV(scoring=ess_per_second_scorer)`` over ladders, methods and inner
    samplers; a predictive score cannot tell these apart once they have all converged.

    Parameters
    ----------
    estimator : estimator
        A fitted tempered estimator.
    X, y : None
        Not used, as the score depends only on the fit.

    Returns
    -------
    score : float
        0 if the effective sample size cannot be computed, with too few draws or none accepted.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal import TemperedGaussianMean
    >>> from skanneal.tempering import ess_per_second_scorer
    >>> model = TemperedGaussianMean(random_state=0).fit(np.eye(4))
    >>> ess_per_second_scorer(model) > 0
    True
    """
    result = estimator.result_
    seconds = float((result.seconds + result.seconds_warmup).sum())
    return float(np.min(np.nan_to_num(result.ess_bulk, nan=0.0))) / seconds


def log_predictive_density_scorer(estimator: Any, X: TableLike, y: Any) -> float:
    """Mean log density of held-out rows, for model selection by predictive density.

    Parameters
    ----------
    estimator : TemperedGPRegressor
        Fitted.
    X : array-like of shape (n_rows, n_columns)
        Held-out rows.
    y : array-like of shape (n_rows,)
        Their observations.

    Returns
    -------
    score : float

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from skanneal import TemperedGPRegressor
    >>> from skanneal.tempering import log_predictive_density_scorer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, (30, 1))
    >>> y = np.sin(X[:, 0]) + rng.normal(0, 0.2, 30)
    >>> model = TemperedGPRegressor(method="none", random_state=0)
    >>> scores = cross_val_score(model, X, y, cv=3, scoring=log_predictive_density_scorer)
    >>> scores.shape
    (3,)
    """
    return float(estimator.log_predictive_density(X, y).mean())
