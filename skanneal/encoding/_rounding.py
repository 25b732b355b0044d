"""Rounded numbers: the lattice that a column lies on, its atoms, and the jitter.

Where values repeat, densities are unbounded, so a mixture of densities collapses onto the values of
a rounded column. So the digits that rounding removed are replaced at random: each cell of the fit
becomes uniform within its rounding interval, the value plus or minus half a step.

*Lattice.* Values v are rounded if v = offset + k step with integers k. The step is found as the
common divisor of the gaps between the distinct values, by Euclid's algorithm with a tolerance; it
begins once with the smallest gap and once with the commonest, for a few values may be off the
lattice, and the coarser step is taken. At least SHARE of the column must be on it, each distinct
value counting as often as it occurs but at most sqrt(n) times, so that values that are repeated
very often do not decide alone. The lattice is then made as coarse as SHARE allows. Two distinct
values always have a lattice, so there must be three.

*Ties.* A column is rounded only if it has ties beside its atoms (_atoms.py): at least TIED of the
other cells, counted in the same way, share their value, two values or more between them.

*Large columns.* Of more than MOST_CELLS cells so many tell, evenly spread. Few of these share their
value with another one of them where few of all do, so that the share of ties that is asked falls
with the share of cells that are looked at.
"""

# SPDX-License-Identifier: BSD-3-Clause

from typing import NamedTuple

import numpy as np

from ..families._scaling import some_of
from ._atoms import atoms_of

SHARE = 0.9
TIED = 0.1
TOLERANCE = 0.01  # of a step, within which a value is on the lattice
NOISE = 8 * np.finfo(np.float64).eps  # by which equal numbers may differ, relative to their size
FACTORS = (2, 3, 5)  # by which the lattice is made coarser
LARGEST_MULTIPLE = 2**53  # doubles do not hold every whole number beyond
MOST_DIVISIONS = 60


class Lattice(NamedTuple):
    """The numbers offset + k step.

    Attributes
    ----------
    step, offset : float
        0 <= offset < step.
    """

    step: float
    offset: float

    def nearest(self, values, lowest=-np.inf):
        """The nearest numbers of the lattice that are above `lowest`; one that is too large to be
        counted in steps stays as it is."""
        with np.errstate(over="ignore"):
            index = np.rint((values - self.offset) / self.step)
        index = np.maximum(index, np.floor((lowest - self.offset) / self.step) + 1.0)
        parts = np.rint(1.0 / self.step) if self.step < 1.0 else 0.0
        of_one = parts and abs(parts * self.step - 1.0) < NOISE
        steps = index / parts if of_one else index * self.step  # 33 / 10, as 33 * 0.1 is not 3.3
        return np.where(np.isinf(index), values, self.offset + steps)

    def jittered(self, values, uniforms, lowest=-np.inf):
        """Numbers within half a step of the values, and above `lowest` where the values are.

        Parameters
        ----------
        values : float64 array
        uniforms : float64 array
            From 0 inclusive to 1 exclusive.
        lowest : float, default=-inf
        """
        half = 0.5 * self.step
        return values + half - (values + half - np.maximum(values - half, lowest)) * uniforms


def nearest_of(known, values):
    """For each value the nearest of some others, which are ascending."""
    above = np.searchsorted(known, values)
    pairs = known[np.clip([above - 1, above], 0, len(known) - 1)]
    off = np.abs(pairs - values)
    return np.where(off[0] < off[1], *pairs)


def find_lattice(values):
    """The lattice that a column of numbers was rounded to, or None.

    Parameters
    ----------
    values : float64 array of shape (n,)
        Without NaN.

    Returns
    -------
    lattice : Lattice or None
    """
    n_cells = len(values)
    values = some_of(values)
    distinct, counts = _distinct(values)
    if not 3 <= len(distinct) < len(values):
        return None
    weights = np.minimum(counts, np.sqrt(len(values)))
    light = ~np.isin(distinct, atoms_of(values))
    tied = light & (counts > 1)
    least = TIED * len(values) / n_cells
    if tied.sum() < 2 or weights[tied].sum() < least * weights[light].sum():
        return None
    gaps = np.sort(np.diff(distinct))
    # the commonest gap: the middle of the interval of 2 % that has most of them
    n_near = np.searchsorted(gaps, gaps * 1.02, side="right") - np.arange(len(gaps))
    commonest = gaps[n_near.argmax() + n_near.max() // 2]
    found = [_common_divisor(distinct, weights, gaps, gap) for gap in (gaps[0], commonest)]
    found = [_coarser(distinct, weights, lattice) for lattice in found if lattice is not None]
    return max(found, default=None)


def lattice_of(values, step):
    """The lattice of a given step that most of the values are on.

    Parameters
    ----------
    values : float64 array of shape (n,)
        Without NaN.
    step : float
    """
    distinct, counts = _distinct(values)
    if not len(distinct):
        return Lattice(float(step), 0.0)
    weights = np.minimum(counts, np.sqrt(len(values)))
    return _made(distinct, weights, float(step))


def _distinct(values):
    """Distinct values in ascending order and how often they occur; noise makes none of its own."""
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) == len(values) or not len(values):
        return distinct, counts
    sizes = np.maximum(np.abs(distinct[1:]), np.abs(distinct[:-1]))
    first = np.flatnonzero(np.concatenate([[True], np.diff(distinct) > NOISE * sizes]))
    return distinct[first], np.add.reduceat(counts, first)


def _common_divisor(distinct, weights, gaps, step):
    """The lattice of the greatest step that divides `step` and enough of the gaps, or None."""
    least = NOISE * np.median(np.abs(distinct)) / TOLERANCE
    for _ in range(MOST_DIVISIONS):
        if not step > least:
            return None
        near = gaps[gaps < 1000 * step]
        multiples = np.rint(near / step)
        fits = (multiples > 0) & (np.abs(near - multiples * step) < TOLERANCE * step)
        if fits.any():
            step = near[fits].sum() / multiples[fits].sum()
        share, n_on, _ = _densest(distinct, weights, step)
        if share >= SHARE and n_on >= 3:
            return _made(distinct, weights, _short(step))
        rest = np.abs(gaps - step * np.rint(gaps / step))
        rest = rest[rest > TOLERANCE * step]
        if not len(rest):
            return None
        step = rest.min()
    return None


def _densest(distinct, weights, step):
    """(share of the weights, number of values, offset) of the lattice with most weight on it."""
    origin = distinct[len(distinct) // 2]  # from here, so that an error of the step counts less
    place = (distinct - origin) / step % 1.0
    order = np.argsort(place, kind="stable")
    place = np.concatenate([place[order], place[order] + 1.0])
    total = np.concatenate([[0.0], np.cumsum(np.tile(weights[order], 2))])
    start = np.arange(len(distinct))
    stop = np.searchsorted(place, place[start] + 2 * TOLERANCE, side="right")
    stop = np.minimum(stop, start + len(distinct))
    on = total[stop] - total[start]
    best = on.argmax()
    middle = np.median(place[best : stop[best]])
    return on[best] / weights.sum(), stop[best] - best, (origin + middle * step) % step


def _coarser(distinct, weights, lattice):
    """The lattice as coarse as the share of values on it allows."""
    index = np.rint((distinct - lattice.offset) / lattice.step)
    multiple = 1
    for factor in FACTORS:
        while multiple * factor <= LARGEST_MULTIPLE:
            _, of = np.unique(index % (multiple * factor), return_inverse=True)
            shares = np.bincount(of, weights) / weights.sum()
            best = shares.argmax()
            if shares[best] < SHARE or np.sum(of == best) < 3:
                break
            multiple *= factor
    return _made(distinct, weights, _short(lattice.step * multiple))


def _made(distinct, weights, step):
    """The lattice of this step that has most weight on it; an offset next to 0 is 0."""
    offset = float(_densest(distinct, weights, step)[2])
    return Lattice(step, 0.0 if min(offset, step - offset) < 1e-3 * step else offset)


def _short(step):
    """A step of few digits, or one part of 1, without what arithmetic added to it."""
    parts = np.rint(1.0 / step)
    candidates = [float(f"{step:.6g}"), *([1.0 / parts] if parts else [])]
    return next((float(c) for c in candidates if abs(step - c) < 1e-8 * step), float(step))
