"""A hyperprior given by the number of clusters that it implies.

At a point of its grid a process has mu = E(K) clusters of n rows, and K - 1 is nearly Poisson with
mean mu - 1. With mu - 1 ~ Gamma(shape, scale), K - 1 is negative binomial: the limit, in n, of the
Stirling-gamma prior of Zito, Rigon and Dunson (2023, arXiv 2306.02360). Stated for mu, it serves
the Pitman-Yor process as well.
"""

# SPDX-License-Identifier: BSD-3-Clause

from numbers import Real

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainc

TAIL = 0.1  # probability of `low` clusters or fewer, and of `high` or more
LEAST_HIGH = 10.0
_SCALES = 1e-3, 1e9


def check_expected_clusters(value, n, of=""):
    """Raise a ValueError unless a value is None or (low, high) with 1 <= low < high <= n.

    Parameters
    ----------
    value : object
    n : int
        What is partitioned: so many rows, or columns; 0 if that is not yet known.
    of : {"", "view_"}, default=""
        Of rows, or of columns.
    """
    name, what = ("expected_views", "columns") if of else ("expected_clusters", "rows")
    if value is None:
        return
    pair = isinstance(value, tuple | list) and len(value) == 2
    numbers = pair and all(isinstance(v, Real) and not isinstance(v, bool) for v in value)
    if not (numbers and 1 <= value[0] < value[1] < np.inf):
        raise ValueError(
            f"{name} must be None or a pair (low, high) with 1 <= low < high, got {value!r}"
        )
    if n and value[1] > n:
        raise ValueError(
            f"{name}={value!r} is impossible with {n} {what}, of which there are at most {n} "
            f"{name.partition('_')[2]}: lower it, or leave it out"
        )


def gamma_of(expected_clusters, n):
    """Return shape and scale of the gamma law of mu - 1.

    Parameters
    ----------
    expected_clusters : (float, float) or None
        Low and high: K is `low` or fewer, and `high` or more, with probability TAIL each. If the
        interval is narrower than that of a Poisson distribution, its middle is the mean. None is
        from 1 to the square root of n, or to LEAST_HIGH if that is more.
    n : int
        Number of rows.

    Returns
    -------
    shape, scale : float

    Examples
    --------
    >>> from scipy.stats import nbinom
    >>> shape, scale = gamma_of((1, 30), 900)
    >>> more = nbinom(shape, 1 / (1 + scale))  # K - 1
    >>> print(f"{more.cdf(0):.3f} {more.sf(28):.3f}")
    0.100 0.100
    """
    if expected_clusters is None:
        expected_clusters = 1.0, max(LEAST_HIGH, n**0.5)
    low, high = expected_clusters

    def shape_of(scale):
        """The shape with which P(K <= low) is TAIL."""
        p = 1.0 / (1.0 + scale)
        return brentq(lambda log_shape: betainc(np.exp(log_shape), low, p) - TAIL, -30.0, 30.0)

    def excess(log_scale):
        """P(K >= high) - TAIL."""
        scale = np.exp(log_scale)
        return 1.0 - betainc(np.exp(shape_of(scale)), high - 1.0, 1.0 / (1.0 + scale)) - TAIL

    least, most = np.log(_SCALES)
    if excess(least) >= 0.0:
        scale = _SCALES[0]
        return ((low + high) / 2.0 - 1.0) / scale, scale
    scale = np.exp(brentq(excess, least, most))
    return float(np.exp(shape_of(scale))), float(scale)
