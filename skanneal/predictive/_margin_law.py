r"""The law of a column's training values, relative to that of the model.

Let z be a value's normal score under the model's margin: if that margin is right, z is standard
normal. The values' law is estimated on this axis, as a mean of kernels,

    f(z) = [n sum_s pi_s mean_i N(z; r_s z_i, s^2) + N(z; 0, 1)] / (n + 1),    r_s = sqrt(1 - s^2).

A kernel of width s moves a score as a step of a stationary process does whose law is the standard
normal one (Mehler's kernel). So widths lead from the values as they are, s = 0, to the model's
margin, s = 1, and none of them widens a law that is right. To smooth values on the axis of a model
is the transformation kernel estimate of Ruppert and Cline (1994).

The weights pi maximise the density of each value when it is left out, together with all values that
equal it: stacking, by expectation and maximisation. Beside the n values there is one of the
model's. So nowhere is a value less probable than under the model by more than the factor n + 1.

Tails. Beyond the outermost values no value says whether the model's margin is right, and it may be
far too wide: it has the new components in it, of whose place and width only the prior is known. A
kernel as wide as a score may there be as wide as a power of ten. So what the kernels have beyond
the greatest value decays exponentially, on the axis of the cells, which is that of logarithms where
these describe the column. Its mean excess is that of the sqrt(n) greatest values over the next one:
more and more values, of a smaller and smaller part of the column. So has the other end.

Walls. No kernel goes through the end of what can be: what would lie beyond is folded back. Of a
hard wall this holds for the one value of the model, too, so that nothing lies beyond it.
"""

# SPDX-License-Identifier: BSD-3-Clause

import math
from typing import NamedTuple

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.ndimage import gaussian_filter1d
from scipy.special import ndtr, ndtri

STEP, REACH = 2.0**-8, 8.0  # of the axis of scores, and how far it goes
WIDTHS = 2.0 ** np.arange(-6.0, 0.0, 0.5)  # of the kernels, beside 1
N_STEPS = 100  # of expectation and maximisation


class Walls(NamedTuple):
    """Ends of what can be, by scores or other values; infinite where there is none.

    Attributes
    ----------
    lowest : float
        Nothing is below, whatever the model says.
    low, high : float
        Training values end here, more than one of them.
    """

    lowest: float = -np.inf
    low: float = -np.inf
    high: float = np.inf

    def mapped(self, function):
        """The walls on another axis."""
        return Walls(*(function(at) if np.isfinite(at) else at for at in self))


def law_of_scores(scores, walls, cells_of):
    """Estimate the law of a column from its values' scores under the model.

    Parameters
    ----------
    scores : float64 array of shape (n,)
        Ascending.
    walls : Walls
        Of scores.
    cells_of : callable
        From scores to cells, increasing.

    Returns
    -------
    edges, below, above : float64 array of shape (n_bins + 1,)
        Places on the axis of scores, and the probabilities on both sides of each.
    """
    start = max(walls.lowest, -REACH)
    edges = np.arange(start, REACH + STEP, STEP)
    inside = _bins(edges, walls.low, walls.high)
    model = _of_model(edges, np.isfinite(walls.lowest))
    distinct, counts = np.unique(scores, return_counts=True)
    values = edges, inside, distinct, counts
    masses = np.stack([_kernel_masses(*values, s) for s in WIDTHS])
    others = np.stack([_left_out(*values, *of) for of in zip(masses, WIDTHS)])
    walled = np.zeros_like(model)  # the kernels of width 1, without an end in the tails
    walled[slice(*inside)] = _folded(model, *inside)
    at = _bin_of(edges, distinct)
    weights = _stacked(np.vstack([others, walled[at]]), counts)
    last = 1.0 / (counts.sum() + 1.0)
    kernels = weights @ np.vstack([masses, walled])
    _decay(kernels, edges, scores, walls, cells_of)
    whole = (1.0 - last) * kernels + last * model
    tail = last * ndtr(-REACH)
    first = 0.0 if np.isfinite(walls.lowest) else tail
    below = first + np.r_[0.0, np.cumsum(whole)]
    above = tail + np.r_[np.cumsum(whole[::-1])[::-1], 0.0]
    total = below[-1] + tail
    return edges, below / total, above / total


def quantiles(edges, below, above):
    """Points of the map from the model's scores to those of the values that have their ranks.

    They are as close as STEP on both axes: spikes and gaps of the values are resolved, and what is
    next to a hard wall, where probabilities are proportional to the distance.

    Returns
    -------
    of_model, of_values : float64 array of shape (n_points,)
        Scores under the model's margin: ascending.
    """
    v = np.where(below < 0.5, ndtri(below), -ndtri(above))
    known = np.isfinite(v)
    at = np.union1d(v[known], np.arange(-REACH, REACH + STEP, STEP))
    z = PchipInterpolator(v[known], edges[known])(np.clip(at, *v[known][[0, -1]]))
    if not known[0]:
        near = edges[0] + (edges[1] - edges[0]) * ndtr(at) / below[1]
        z = np.where(at < v[1], near, z)
    inside = (at >= v[known][0]) | (not known[0])
    return at[inside], z[inside]


def _bins(edges, low, high):
    """The first bin and the one after the last between two walls."""
    first = np.searchsorted(edges, low) if np.isfinite(low) else 0
    last = np.searchsorted(edges, high, side="right") - 1 if np.isfinite(high) else len(edges) - 1
    first = min(first, len(edges) - 2)
    return first, max(last, first + 1)


def _bin_of(edges, values):
    return np.clip(((values - edges[0]) / STEP).astype(np.int64), 0, len(edges) - 2)


def _of_model(edges, is_hard):
    """Probabilities of bins under the standard normal law, folded at a hard wall."""
    masses = ndtr(edges[1:]) - ndtr(edges[:-1])
    masses = np.where(edges[1:] > 0, ndtr(-edges[:-1]) - ndtr(-edges[1:]), masses)
    if is_hard:
        beyond = 2 * edges[0] - edges
        masses = masses + ndtr(beyond[:-1]) - ndtr(beyond[1:])
    return masses


def _kernel_masses(edges, inside, distinct, counts, width):
    """Probabilities of bins by kernels of one width, folded at both walls."""
    first, last = inside
    at = _centres(edges, inside, distinct, width)
    pad = int(6 * width / STEP) + 1
    masses = np.bincount(at - first, counts, last - first) / counts.sum()
    masses = gaussian_filter1d(np.pad(masses, pad), width / STEP, mode="constant", truncate=6.0)
    whole = np.zeros(len(edges) - 1)
    whole[first:last] = _folded(masses, pad, len(masses) - pad)
    return whole


def _decay(masses, edges, scores, walls, cells_of):
    """Let masses of bins decay exponentially beyond the outermost values, in place; where more than
    one of these is at an end there is nothing beyond."""
    with np.errstate(over="ignore"):
        cells, known = cells_of(edges), cells_of(scores)
    first, last = _bin_of(edges, scores[[0, -1]])
    if np.isinf(walls.low):
        excess = mean_excess(-known[::-1])
        _exponential(masses[: first + 1][::-1], -cells[: first + 2][::-1], excess)
    if np.isinf(walls.high):
        _exponential(masses[last:], cells[last:], mean_excess(known))


def mean_excess(values):
    """Of the sqrt(n) greatest of n ascending values over the next one."""
    k = max(1, math.isqrt(len(values)))
    return values[-k:].mean() - values[-k - 1 :][0]


def _exponential(masses, ends, excess):
    """Share the masses of bins with these ends as an exponential law does, in place."""
    with np.errstate(over="ignore"):
        above = np.exp((ends[0] - ends) / max(excess, np.finfo(float).tiny))
    if above[-1] < 1.0:  # else they are one point
        masses[:] = masses.sum() * (above[:-1] - above[1:]) / (1.0 - above[-1])


def _folded(masses, first, last):
    """Masses of the bins from first to last, with those beyond folded back, 1 in all."""
    inside = masses[first:last].copy()
    for beyond, near in ((masses[:first][::-1], inside), (masses[last:], inside[::-1])):
        n = min(len(beyond), len(near))
        near[:n] += beyond[:n]
    return inside / inside.sum()


def _centres(edges, inside, distinct, width):
    """The bins of the kernels' centres, folded at both walls."""
    first, last = inside
    at = _bin_of(edges, distinct) + 0.5 + edges[0] / STEP
    at = np.floor(at * np.sqrt(1.0 - width**2) - edges[0] / STEP).astype(np.int64)
    at = np.where(at < first, 2 * first - 1 - at, at)
    at = np.where(at >= last, 2 * last - 1 - at, at)
    return np.clip(at, first, last - 1)


def _left_out(edges, inside, distinct, counts, masses, width):
    """Probability of each value's bin by the other values."""
    first, last = inside
    at, centre = _bin_of(edges, distinct), _centres(edges, inside, distinct, width)
    images = np.stack([at - centre, at - (2 * first - 1 - centre), at - (2 * last - 1 - centre)])
    own = np.exp(-0.5 * (images * STEP / width) ** 2).sum(axis=0) * STEP / width
    n = counts.sum()
    left = n * masses[at] - counts * own / np.sqrt(2 * np.pi)
    return np.maximum(left, 0.0) / np.maximum(n - counts, 1)


def _stacked(densities, counts):
    """The most probable weights of laws; densities: (n_laws, n_values)."""
    weights = np.full(len(densities), 1.0 / len(densities))
    for _ in range(N_STEPS):
        shares = weights[:, None] * densities
        shares /= np.maximum(shares.sum(axis=0), 1e-300)
        weights = shares @ counts
        weights /= weights.sum()
    return weights
