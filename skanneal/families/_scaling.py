"""Offset and scale of a column of numbers, computed from its ordinary values.

A number is stored as (value - offset) / scale in float32, and the grids of hyperparameters scale
with what is stored. One wild value must not decide either: a value of 1e7 in a column of values
about 3 would make the scale so large that the others could not be told apart. So only
the values inside *fences* are used, FENCE ranges beyond the range of the middle 7/8 of the values.
In a column without wild values these are all values.

Why these constants: at most 1/8 of the values are beyond the middle, so those just inside the
fences raise the standard deviation to FENCE sqrt(1/8), about 11 ranges, at most. A range of a
normal column is 3.1 standard deviations, so that this is a factor of 33, and the grids of variances
begin at 1e-4 or less of the column's variance, below 1/33^2. At most 1/16 of the values are beyond
the fences at each end: a larger cluster is never left out, and of fewer than 16 values none is.
Of more than MOST_CELLS values so many, evenly spread, say where the fences are.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

FENCE = 30.0
TAIL = 16  # one value in so many may lie beyond the middle at each end
LARGEST_CELL = 1e14  # scales: squares, and these over the least variance of the grids, are float32
MOST_CELLS = 200_000
GOLDEN = 0.6180339887498949  # multiples of it are spread evenly, modulo 1
FAR = 1e5  # scales: none of the n values that a scale was taken from is farther than sqrt(n)
_HUGE = 1e290  # sums and differences of numbers beyond this may overflow


def ordinary(values):
    """The values inside the fences.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Without NaN.

    Returns
    -------
    inside : ndarray
        `values` itself if all are inside.
    """
    if len(values) < TAIL:
        return values
    some = some_of(values)
    low, middle, high = _order_statistics(some, len(some) // TAIL)
    # if most values are equal, use the range of the others
    others = some_of(values[values != middle])
    if len(others):
        place = max(len(others) // TAIL, 1) if len(others) > 2 else 0
        least, _, most = _order_statistics(others, place)
        low, high = min(low, least), max(high, most)
    with np.errstate(over="ignore"):
        margin = FENCE * (high - low)
        inside = (values >= low - margin) & (values <= high + margin)
    return values if inside.all() else values[inside]


def some_of(values, most=MOST_CELLS):
    """All values, or of more than the most so many, or half of them if these are fewer.

    They are evenly spread, but not at equal distances: rows may take turns in what they are.
    """
    if len(values) <= most:
        return values
    n = min(most, len(values) // 2)
    at = np.arange(n)
    # two in a row are at least 0.6 of the mean distance apart, which is 2 or more
    return values[((at + at * GOLDEN % 1.0) * (len(values) / n)).astype(np.int64)]


def _order_statistics(values, place):
    """The values at a place from below, in the middle and at the same place from above."""
    places = [place, len(values) // 2, len(values) - 1 - place]
    return np.partition(values, places)[places].astype(np.float64)


def offset_and_scale(values):
    """Mean and standard deviation of the ordinary values; (value, 1) if all values are equal.

    Parameters
    ----------
    values : float64 array of shape (n,)
        Without NaN.

    Returns
    -------
    offset, scale : float
    """
    if values.size == 0:
        return 0.0, 1.0
    if values.min() == values.max():
        return float(values[0]), 1.0
    values = ordinary(values)
    shrink = 2.0**-64 if np.abs(values).max() > _HUGE else 1.0
    values = values * shrink
    offset = values.mean()
    values -= offset
    largest = np.abs(values).max()
    values /= largest  # squares of numbers up to 1 neither overflow nor all vanish
    scale = largest * np.sqrt(np.mean(values * values)) / shrink
    return float(offset / shrink), max(float(scale), float(np.finfo(np.float64).tiny))


def scale_from_zero(values):
    """Mean of the ordinary values, none of them negative; 1 if it is 0.

    Parameters
    ----------
    values : float64 array of shape (n,)
        Without NaN.

    Returns
    -------
    scale : float
    """
    values = ordinary(values)
    largest = values.max(initial=0.0)
    if largest == 0.0:
        return 1.0
    mean = largest * np.mean(values / largest)  # their sum may overflow
    return max(float(mean), float(np.finfo(np.float64).tiny))


def standardised(values, offset, scale):
    """Cells of numbers: float32 of (value - offset) / scale.

    A number farther than LARGEST_CELL scales from the offset counts as one at this distance.

    Parameters
    ----------
    values : float64 array of shape (n,)
        NaN stays NaN.
    offset, scale : float

    Returns
    -------
    cells : float32 array of shape (n,)
    """
    shrink = 2.0**-8 if max(abs(offset), scale) > _HUGE else 1.0
    values = values * shrink
    values -= offset * shrink
    with np.errstate(over="ignore"):
        values /= scale * shrink
    np.clip(values, -LARGEST_CELL, LARGEST_CELL, out=values)
    return values.astype(np.float32)
