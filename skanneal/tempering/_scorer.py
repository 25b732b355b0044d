"""How well a tempered estimator mixes, as a score to be searched over."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np


def ess_per_second_scorer(estimator, X=None, y=None):
    """Smallest bulk effective sample size per second of the fit, warm-up included.

    For ``GridSearchCV(scoring=ess_per_second_scorer)`` over ladders, methods and inner samplers,
    which a predictive score cannot tell apart once they have all converged.

    Parameters
    ----------
    estimator : estimator
        A fitted tempered estimator.
    X, y : None
        Not used: the score is the fit's.

    Returns
    -------
    score : float
        0 where the effective sample size cannot be had: too few draws, or none accepted.

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
