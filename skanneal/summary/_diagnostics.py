"""Convergence of several chains: rank-normalised split R-hat and bulk effective sample size.

Both follow Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), "Rank-normalization, folding,
and localization: an improved R-hat for assessing convergence of MCMC", Bayesian Analysis 16(2);
their values are ArviZ's. They are meant for scalars that do not depend on how clusters are
numbered.
"""

# SPDX-License-Identifier: BSD-3-Clause

from typing import Any

import numpy as np
from arviz_stats.base import array_stats
from numpy.typing import ArrayLike

from ._effective_size import effective_size, halves, normal_scores

_MIN_DRAWS = 4  # two halves of two draws each


def r_hat(draws: ArrayLike) -> float:
    """Rank-normalised split R-hat, which is near 1 if the chains agree.

    Parameters
    ----------
    draws : array-like of shape (n_chains, n_draws)
        Rows may begin and end with NaN; all are cut to the last draws of the shortest one. Rows
        of nothing but NaN are left out.

    Returns
    -------
    r_hat : float
        NaN with fewer than 2 chains or 4 draws, if all draws are equal or if one is infinite; inf
        if each chain stays at a value of its own.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.summary import r_hat
    >>> rng = np.random.default_rng(0)
    >>> agreeing = rng.normal(size=(4, 500))
    >>> round(r_hat(agreeing), 2)
    1.0
    >>> r_hat(agreeing + [[0], [0], [0], [5]]) > 1.5
    True
    """
    draws = _usable(draws)
    if draws is None or len(draws) < 2:
        return np.nan
    if (draws == draws[:, :1]).all():
        return np.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(array_stats.rhat(draws, method="rank"))


def ess(draws: ArrayLike) -> float:
    """Bulk effective sample size: how many independent draws would be as informative.

    Parameters
    ----------
    draws : array-like of shape (n_chains, n_draws)
        As in `r_hat`.

    Returns
    -------
    ess : float
        That of all chains together; NaN with fewer than 4 draws, if all draws are equal or if one
        is infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.summary import ess
    >>> independent = np.random.default_rng(0).normal(size=(4, 500))
    >>> 1500 < ess(independent) < 2500
    True
    >>> ess(np.repeat(independent, 10, axis=1)) < 2500
    True
    """
    draws = _usable(draws)
    return np.nan if draws is None else effective_size(normal_scores(halves(draws)))


def tail_ess(draws: ArrayLike) -> float:
    """Tail effective sample size: that of the 5 % and 95 % quantiles.

    Parameters
    ----------
    draws : array-like of shape (n_chains, n_draws)
        As in `r_hat`.

    Returns
    -------
    ess : float
        The smaller one of the two quantiles'; NaN as in `ess`.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.summary import tail_ess
    >>> 1200 < tail_ess(np.random.default_rng(0).normal(size=(4, 500))) < 2500
    True
    """
    draws = _usable(draws)
    if draws is None:
        return np.nan
    return min(effective_size(halves(draws <= end)) for end in np.quantile(draws, (0.05, 0.95)))


def drift(draws: ArrayLike, least_spread: float = 0.0) -> float:
    """How far one chain goes on moving in one direction over the last three quarters of its draws.

    Parameters
    ----------
    draws : array-like of shape (n_draws,)
        May begin and end with NaN.
    least_spread : float, default=0.0
        A lower limit of the standard deviation.

    Returns
    -------
    drift : float
        The mean of the third quarter minus that of the second, or the mean of the last quarter
        minus that of the third, whichever is nearer to 0, divided by the standard deviation within
        quarters. A straight line has 3.5. It is 0 if the two differences have different signs, with
        fewer than 8 draws, and if all draws are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.summary import drift
    >>> round(drift(np.arange(400.0)), 1)
    3.5
    >>> abs(drift(np.random.default_rng(0).normal(size=400))) < 0.5
    True
    """
    draws = _strip(np.asarray(draws, dtype=np.float64))
    n = len(draws) // 4
    if n < 2:
        return 0.0
    quarters = draws[-3 * n :].reshape(3, n)
    steps, spread = np.diff(quarters.mean(axis=1)), quarters.std(axis=1)
    if steps[0] * steps[1] <= 0:
        return 0.0
    with np.errstate(divide="ignore"):
        steps /= np.maximum(np.hypot(spread[:-1], spread[1:]) / np.sqrt(2), least_spread)
    return float(min(steps, key=abs))


def diagnose(trace: Any, names: Any = None) -> Any:
    """R-hat and effective sample size of several traces.

    Parameters
    ----------
    trace : dict of str to array-like of shape (n_chains, n_records)
        For instance the final full-data records of a fitted estimator's ``trace_``.
    names : iterable of str or None, default=None
        The entries to look at; None takes all.

    Returns
    -------
    r_hats, esses : dict of str to float

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.summary import diagnose
    >>> trace = {"n_components": np.full((4, 3), 7.0)}
    >>> diagnose(trace)
    ({'n_components': nan}, {'n_components': nan})
    """
    names = list(trace if names is None else names)
    return {name: r_hat(trace[name]) for name in names}, {name: ess(trace[name]) for name in names}


def _usable(draws):
    """The last draws that all chains have; None where they say nothing about convergence."""
    draws = np.asarray(draws, dtype=np.float64)
    if draws.ndim != 2:
        raise ValueError(f"draws must have shape (n_chains, n_draws), got {draws.shape}.")
    chains = [_strip(chain) for chain in draws]
    chains = [chain for chain in chains if len(chain)]
    n_draws = min(map(len, chains), default=0)
    if n_draws < _MIN_DRAWS:
        return None
    draws = np.array([chain[-n_draws:] for chain in chains])
    if not np.isfinite(draws).all() or (draws == draws[0, 0]).all():
        return None
    return draws


def _strip(chain):
    """A chain without the NaN at its two ends."""
    present = np.flatnonzero(~np.isnan(chain))
    return chain[present[0] : present[-1] + 1] if len(present) else chain[:0]
