"""Weights of chains that ended in different places: stacking of their predictive densities.

With p_ci the predictive density of row i under the draws of chain c, the row itself left out, the
stacked weights w maximise over the simplex

    f(w) = mean_i log sum_c w_c p_ci

(Yao, Vehtari and Gelman 2022, "Stacking for non-mixing Bayesian computations: the curse and
blessing of multimodal posteriors", JMLR 23). f is concave, and the steps

    w_c <- w_c g_c,  g_c = mean_i p_ci / sum_b w_b p_bi,

of the EM algorithm climb it; max_c g_c - 1 bounds what is still to be gained.

If chains are equally good, noise decides the maximiser, which often leaves some of them out. So
stacking only tests whether equal weights are significantly worse. The answer is the largest set of
the best chains, equally weighted, that the maximiser does not surely beat; if it beats every such
set, the answer is the maximiser.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from numpy.typing import ArrayLike

from ._lead import Lead

ENOUGH_ROWS = 30  # below which a standard error says too little
MATERIAL = 0.003  # nats per row that are worth a choice
NEGLIGIBLE = 0.05  # of the mean weight: below it a chain has no say in labels
_TO_GAIN = MATERIAL / 10  # nats per row that the climb may leave
_MAX_STEPS = 10_000  # log(n_chains) / _TO_GAIN are always enough


def stacking_weights(log_densities: ArrayLike) -> np.ndarray:
    """Weights with which the chains together predict best.

    Parameters
    ----------
    log_densities : array-like of shape (n_chains, n_rows)
        Log predictive density of each row under each chain, the row itself left out of what the
        chain has seen. Terms of a row that are the same for all chains do not matter.

    Returns
    -------
    weights : ndarray of shape (n_chains,)
        They sum to 1. Equal over the largest set of the best chains that stacked weights do not
        beat by more than 0.003 nats per row and 3 standard errors (paired over rows; 3.3 with four
        chains), and 0 for the others; if every such set is beaten, the stacked weights. Equal with
        fewer than 30 rows.

    Raises
    ------
    ValueError
        If `log_densities` are not of this shape, or hold NaN or positive infinity.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.summary import stacking_weights
    >>> rng = np.random.default_rng(0)
    >>> agreeing = rng.normal(size=500) + rng.normal(scale=0.01, size=(3, 500))
    >>> stacking_weights(agreeing).round(2)
    array([0.33, 0.33, 0.33])
    >>> stacking_weights(agreeing - [[0], [2], [0]])
    array([0.5, 0. , 0.5])
    """
    log_densities = np.asarray(log_densities, dtype=np.float64)
    if log_densities.ndim != 2 or not log_densities.shape[0]:
        raise ValueError(
            f"log_densities must have shape (n_chains, n_rows), got {log_densities.shape}."
        )
    if not (log_densities < np.inf).all():
        raise ValueError("log_densities must be numbers or -inf.")
    n_chains = len(log_densities)
    largest = log_densities.max(axis=0)
    possible = largest > -np.inf  # the other rows tell no chain from another
    densities = np.exp(log_densities[:, possible] - largest[possible])
    if n_chains == 1 or np.count_nonzero(possible) < ENOUGH_ROWS:
        return np.full(n_chains, 1.0 / n_chains)
    stacked = _climbed(densities)
    best = np.argsort(-log_densities[:, possible].mean(axis=1), kind="stable")
    for n_kept in range(n_chains, 0, -1):
        weights = np.zeros(n_chains)
        weights[best[:n_kept]] = 1.0 / n_kept
        if not _beats(densities, stacked, weights):
            return weights
    return stacked


def counted_chains(weights: ArrayLike) -> np.ndarray:
    """The chains that labels come from: those whose weight is not negligible.

    Parameters
    ----------
    weights : array-like of shape (n_chains,)
        At least 0, one of them above.

    Returns
    -------
    chains : ndarray of int64 of shape (n_counted,)
        The chains with at least a twentieth of the mean weight.

    Examples
    --------
    >>> from skanneal.summary import counted_chains
    >>> counted_chains([0.49, 0.01, 0.5])
    array([0, 2])
    """
    weights = np.asarray(weights, dtype=np.float64)
    return np.flatnonzero(weights >= NEGLIGIBLE * weights.mean())


def _climbed(densities):
    """The weights that maximise f, from equal ones."""
    weights = np.full(len(densities), 1.0 / len(densities))
    for _ in range(_MAX_STEPS):
        gains = (densities / (weights @ densities)).mean(axis=1)
        weights *= gains
        weights /= weights.sum()
        if gains.max() - 1.0 < _TO_GAIN:
            break
    return weights


def _beats(densities, one, other):
    """Whether weights predict better than others, materially and for certain."""
    with np.errstate(divide="ignore"):
        differences = np.log(one @ densities) - np.log(other @ densities)
    if not np.isfinite(differences).all():
        return True
    return Lead.of(differences).is_sure(MATERIAL, n_rivals=len(one) - 1)
