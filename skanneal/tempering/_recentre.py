"""Re-centre a chain's levels: choose their rows and tilts by where the chain has been."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ._tilt import Points, fit_level, misfit

N_SUBSETS = 32  # sets of rows that are tried
FEW_POINTS, MOST_POINTS = 200, 1000  # that a set of rows is judged by, that a tilt is fitted to
LEAST_POINTS = 10


def recentre(levels, history, scale, powers, generator, n_tilts):
    """Tilt the levels of fewer rows; leave them as they are where too little is known.

    A small set of rows stands for all rows more or less well by chance, so many random sets are
    tried and the best are kept. Several are kept because a chain may be stuck at a place that one
    set finds too unlikely and another does not. Refused proposals count in the fit of the tilts.

    Parameters
    ----------
    levels : Levels
    history : list of Iterations
        The chain's latest iterations.
    scale : ndarray of shape (n_parameters,)
        Units of theta.
    powers : ndarray of shape (n_levels - 1,)
        Number of all rows over that of each level.
    generator : numpy.random.Generator
    n_tilts : int
        Sets of rows to keep.

    Returns
    -------
    tilted : bool
    """
    bound, former = levels.target, levels.target.get_order()
    draws = np.concatenate([np.c_[made.draws, made.densities[:, 1]] for made in history])
    proposed = np.concatenate([made.candidates for made in history])
    met = distinct(
        np.concatenate([thinned(draws, 4 * MOST_POINTS), thinned(proposed, 4 * MOST_POINTS)])
    )
    if len(met) < LEAST_POINTS:
        return False
    centre = draws[:, :-1].mean(axis=0)
    typical = np.median(np.concatenate([made.densities.sum(axis=1) for made in history]))

    def seen(rows):
        """The rows' points, and what the levels say of them."""
        theta, target = rows[:, :-1], rows[:, -1]
        prior, values = bound.evaluate_many(theta, 1)
        points = Points((theta - centre) / scale, target, prior + target - typical)
        kept = np.isfinite(values).all(axis=1)
        if kept.sum() < LEAST_POINTS:
            return None
        return Points(*(array[kept] for array in points)), values[kept].T

    few, most = thinned(draws, FEW_POINTS), thinned(met, MOST_POINTS)
    found = []
    orders = [former]
    orders += [
        np.argsort(generator.random(bound.n_rows), kind="stable") for _ in range(N_SUBSETS - 1)
    ]
    for order in orders:
        bound.set_order(order)
        if (known := seen(few)) is not None:
            points, values = known
            total = sum(misfit(points, *level) for level in zip(values, powers))
            found.append((total, len(found), order))
    tilts = []
    for _, _, order in sorted(found)[:n_tilts]:
        bound.set_order(order)
        if (known := seen(most)) is not None:
            points, values = known
            exponents = [fit_level(points, *level) for level in zip(values, powers)]
            tilt = in_units(exponents, scale)
            if all(np.isfinite(part).all() for part in tilt):
                tilts.append((order, *tilt))
    bound.set_order(former)
    if not tilts:
        return False
    orders, power, slope, curvature = zip(*tilts)
    levels.set_tilts(orders, centre, power, slope, curvature)
    return True


def distinct(rows):
    """The finite rows, each where it came first."""
    rows = rows[np.isfinite(rows).all(axis=1)]
    return rows[np.sort(np.unique(rows, axis=0, return_index=True)[1])]


def thinned(rows, n_kept):
    """At most so many of the rows, evenly spread.

    >>> thinned(np.arange(9), 3).tolist()
    [1, 4, 7]
    """
    n, n_kept = len(rows), min(len(rows), n_kept)
    return rows[(2 * np.arange(n_kept) + 1) * n // (2 * n_kept)]


def in_units(exponents, scale):
    """Powers, slopes and bends of all levels, the target's first, in the parameters' units."""
    d = len(scale)
    power = [1.0, *(level.power for level in exponents)]
    slope = [np.zeros(d), *(level.slope / scale for level in exponents)]
    curvature = [
        np.zeros((d, d)),
        *(level.curvature / np.outer(scale, scale) for level in exponents),
    ]
    return power, slope, curvature
