"""One answer from the analyses of several filled tables: Rubin's rules."""

# SPDX-License-Identifier: BSD-3-Clause

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student


class Pooled(NamedTuple):
    """See `pool`, whose Returns section describes these."""

    estimate: Any
    variance: Any
    df: Any
    interval: Any
    fraction_missing: Any


def pool(
    estimates: ArrayLike, variances: ArrayLike, *, df_complete: float = np.inf, level: float = 0.95
) -> Any:
    """Pool the estimates from several imputations of one table by Rubin's rules.

    With the mean W of the m variances and the variance B of the m estimates, the variance of their
    mean is T = W + (1 + 1/m) B. Intervals are those of Student's t; its degrees of freedom are
    Barnard and Rubin's [1]_, which never exceed those of the whole table.

    Parameters
    ----------
    estimates : array-like of shape (m,) or (m, n_parameters)
        From each of m >= 2 filled tables, of `impute` with ``n_imputations=m``, what is asked: a
        mean, the slopes of a regression.
    variances : array-like of the same shape
        Their squared standard errors, as if the filled table were data: not below 0.
    df_complete : float, default=inf
        Degrees of freedom of the estimate if no cell were missing: of a mean the number of rows
        less one, of a regression the number of rows less that of its coefficients. The default is
        for tables of many rows.
    level : float, default=0.95
        The probability of the intervals, between 0 and 1.

    Returns
    -------
    estimate : float or ndarray of shape (n_parameters,)
        The mean of the estimates.
    variance : float or ndarray of shape (n_parameters,)
        T, the square of its standard error.
    df : float or ndarray of shape (n_parameters,)
        Degrees of freedom; infinite if estimates do not differ and `df_complete` is infinite.
    interval : ndarray of shape (2,) or (n_parameters, 2)
        Its low and high end.
    fraction_missing : float or ndarray of shape (n_parameters,)
        (1 + 1/m) B / T: the share of the variance that is due to missing cells.

    Raises
    ------
    ValueError
        If shapes differ, there are fewer than 2 tables, or a number is not in its range.

    See Also
    --------
    skanneal.AnnealedDPMixture.impute : Fills a table several times.

    References
    ----------
    .. [1] J. Barnard, D. B. Rubin (1999). "Small-sample degrees of freedom with multiple
       imputation". Biometrika 86.

    Examples
    --------
    The mean of a column of which 40 of 100 cells are missing at random, given the other column.

    >>> import numpy as np
    >>> from skanneal import AnnealedDPMixture
    >>> from skanneal.summary import pool
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 1)) + rng.normal(size=(100, 2))
    >>> X[rng.random(100) < 0.4, 1] = np.nan
    >>> model = AnnealedDPMixture(families="multivariate_normal", n_chains=2, random_state=0)
    >>> tables = model.fit(X).impute(X, n_imputations=20)
    >>> estimates = [table[:, 1].mean() for table in tables]
    >>> variances = [table[:, 1].var(ddof=1) / 100 for table in tables]
    >>> pooled = pool(estimates, variances, df_complete=99)
    >>> low, high = pooled.interval
    >>> bool(low < 0.0 < high), bool(pooled.variance > np.mean(variances))
    (True, True)
    """
    estimates, variances = np.asarray(estimates, float), np.asarray(variances, float)
    m = len(estimates) if estimates.ndim else 0
    if m < 2 or estimates.ndim > 2:
        raise ValueError(
            "estimates must have the shape (m,) or (m, n_parameters) with m of 2 or more, got "
            f"{estimates.shape}"
        )
    if variances.shape != estimates.shape:
        raise ValueError(
            f"variances must have the shape of estimates, {estimates.shape}, got {variances.shape}"
        )
    if not (np.isfinite(estimates).all() and np.isfinite(variances).all()):
        raise ValueError("estimates and variances must be finite")
    if (variances < 0.0).any():
        raise ValueError("variances must not be below 0")
    if not df_complete > 0.0:
        raise ValueError(f"df_complete must be above 0, got {df_complete!r}")
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must be between 0 and 1, got {level!r}")
    between = (1.0 + 1.0 / m) * estimates.var(axis=0, ddof=1)
    variance = variances.mean(axis=0) + between
    share = np.divide(between, variance, out=np.zeros_like(variance), where=variance > 0.0)
    # as inverses, so that an infinite number adds 0
    inverse = share**2 / (m - 1)
    if np.isfinite(df_complete):
        with np.errstate(divide="ignore"):
            inverse = inverse + (df_complete + 3.0) / (df_complete + 1.0) / (
                df_complete * (1.0 - share)
            )
    with np.errstate(divide="ignore"):
        df = 1.0 / inverse
    estimate = estimates.mean(axis=0)
    reach = student.ppf(0.5 + 0.5 * level, df) * np.sqrt(variance)
    interval = np.stack([estimate - reach, estimate + reach], axis=-1)
    if estimates.ndim == 1:
        return Pooled(float(estimate), float(variance), float(df), interval, float(share))
    return Pooled(estimate, variance, df, interval, share)
