"""Whether the rows of two components have two normal laws, or one that is skewed, flat or heavy.

A dip test asks for a valley, and between two normal clusters that overlap by some per cent there is
hardly one: their tails tell that they are two. So two explanations are compared of the rows' places
on the line from one component to the other (_cluster_tree.py says what it is):

- two normal laws, which begin as the components are and climb by the EM algorithm;
- one bump: Phi((y - a) / s) Phi((b - y) / t) up to a factor, which is normal where a is about b,
  flat between a and b where they are far apart, skewed where s and t differ; or Student's t with
  two halves of unequal width, where tails are heavy. Two neighbouring pieces of a ring or of a
  square have a flat law together.

Both are fitted to the same places; two laws have five parameters, the bump has four. How probable
two are before the rows are seen is not said here: the other pairs of the table tell
(_cluster_tree.py). So the log odds are

    log p(y | two) - log p(y | one).

There are two lines. One is that of the densities,

    y_i = log f_a(x_i) / Q_a - log f_b(x_i) / Q_b,

where Q_a is how much lower log f_a is at the centre of b than at that of a. If components are
normal of d columns, log f_a has the variance d / 2 among rows of a, by whose mean it falls below
its height at the centre. And among rows of b its mean is below that at the centre of b by its
covariance with log f_b. So with means, variance and covariance over the rows of a or of b,

    Q_a = (mean_a + variance_a) log f_a - (mean_b log f_a + covariance_b (log f_a, log f_b)),

in which each row counts for a and for b by its probabilities. This line follows a bent cluster. But
components that are not quite what their rows are bend it, and then the laws of two normal clusters
on it are not normal. The other line is straight (_discriminant.py): two normal clusters have two
normal laws there, but pieces of a bent one may have them, too. They are the same rows on both, so
that the log odds are not added up: the mean of the two counts.

Where one component lies within the other, as the core of a cluster with heavy tails within its
halo, a Q is not positive. There is no line then, and nothing speaks for two.

The places are counted in bins of their standard units, in which the bumps are tabulated once: of
each shape the bump has the mean and the variance of the places, or nearly so.
"""

# SPDX-License-Identifier: BSD-3-Clause

from functools import cache

import numpy as np
from scipy.special import expit, log_ndtr

from ._discriminant import discriminant_places
from ._two_normals import log_two_normals

_EDGES = np.linspace(-4.0, 4.0, 65)  # of bins, in standard deviations; the outer ones are open
_MIDDLES, _WIDTH = (_EDGES[1:] + _EDGES[:-1]) / 2, _EDGES[1] - _EDGES[0]
_FLAT = (-2.0, 0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0)  # (b - a) / sqrt(s t)
_SKEWED = np.arange(-2.0, 2.1, 0.5)  # log(t / s) / 2
_FREEDOMS, _HEAVY_SKEWED = (2.5, 4.0, 8.0), np.arange(-1.5, 1.6, 0.5)  # of heavy tails
_MOVED = (-0.1, 0.0, 0.1)  # of the mean, in standard deviations, and of their logarithm
_STEPS = 8  # of the EM algorithm
_TINY = 1e-12  # probability of a bin, at least


def log_odds(first, second, numbers=None):
    """Return the log odds of two normal laws against one bump.

    Parameters
    ----------
    first, second : ndarray of shape (n_rows,)
        Log of each component's weight times its density, of the rows of both.
    numbers : ndarray of shape (n_rows, n_columns) or None, default=None
        The rows' numbers, nan where there is a gap; rows with gaps have no place on the straight
        line.

    Returns
    -------
    log_odds : float
        -inf if one component is within the other, and there is no line from one to the other.
    """
    shares = expit(first - second)
    places = _places(first, second, shares)
    if places is None:
        return -np.inf
    found = _on_line(places, shares)
    if numbers is None or not np.isfinite(found):
        return found
    whole = ~np.isnan(numbers).any(axis=1)
    places = discriminant_places(numbers[whole], shares[whole])
    return found if places is None else (found + _on_line(places, shares[whole])) / 2


def _on_line(places, shares):
    """The log odds by the rows' places on a line."""
    spread = places.std()
    if not spread > 0:
        return -np.inf
    bins = np.searchsorted(_EDGES[1:-1], (places - places.mean()) / spread)
    counts = np.bincount(bins, minlength=len(_EDGES) - 1).astype(np.float64)
    of_first = np.bincount(bins, shares, minlength=len(counts))
    one = (_bumps() @ counts).max()
    two = log_two_normals(counts, of_first, _MIDDLES, _WIDTH, _STEPS)
    return float(two - one)


def _places(first, second, shares):
    """Where the rows lie on the line from the second component to the first; None if one of them is
    within the other."""
    drops = _drop(first, second, shares), _drop(second, first, 1.0 - shares)
    if min(drops) <= 0.0:
        return None
    return first / drops[0] - second / drops[1]


def _drop(own, other, shares):
    """How much lower a component's log density is at the other's centre than at its own: 0 if one
    of them has no row."""
    others = 1.0 - shares
    n_own, n_others = shares.sum(), others.sum()
    if min(n_own, n_others) <= 0.0:
        return 0.0
    of_own, at_other, of_other = shares @ own / n_own, others @ own / n_others, others @ other
    highest = of_own + shares @ (own - of_own) ** 2 / n_own
    covariance = others @ ((own - at_other) * (other - of_other / n_others)) / n_others
    return highest - at_other - covariance


@cache
def _bumps():
    """Log probabilities of the bins by bumps of all shapes: (n_shapes, n_bins)."""
    out = []
    for x, density in _shapes():
        density = density / density.sum()
        mean = density @ x
        scaled = (x - mean) / np.sqrt(density @ (x - mean) ** 2)
        total = np.cumsum(density) - density / 2  # up to the middle of each point's own share
        for shift in _MOVED:
            for stretch in np.exp(_MOVED):
                inner = np.interp((_EDGES[1:-1] - shift) / stretch, scaled, total)
                out.append(np.diff(inner, prepend=0.0, append=1.0))
    return np.log(np.maximum(out, _TINY))


def _shapes():
    """Yield a grid and, up to a factor, the density of each shape there."""
    for flat in _FLAT:
        for skewed in _SKEWED:
            s, t = np.exp(-skewed), np.exp(skewed)
            x = np.linspace(-flat / 2 - 12 * (s + t), flat / 2 + 12 * (s + t), 2001)
            log = log_ndtr((x + flat / 2) / s) + log_ndtr((flat / 2 - x) / t)
            yield x, np.exp(log - log.max())
    x = np.linspace(-40.0, 40.0, 4001)
    for freedom in _FREEDOMS:
        for skewed in np.exp(_HEAVY_SKEWED):
            z = np.where(x < 0, x * skewed, x / skewed)
            yield x, (1.0 + z**2 / freedom) ** (-(freedom + 1) / 2)
