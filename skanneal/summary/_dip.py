"""Whether numbers have more than one mode: a dip test.

The dip of numbers is the least distance sup_x |F_n(x) - G(x)| of their distribution function F_n
from any unimodal one (J. A. Hartigan and P. M. Hartigan 1985, "The Dip Test of Unimodality", Annals
of Statistics 13). For a mode m the best G is convex up to m and concave beyond. The best convex
function is the greatest convex minorant, raised by half of its distance. Here the two sides are
fitted apart, as if G might jump at m either way, so that

    dip = 1/2 min_m max(distance of the minorant up to m, distance of the majorant from m on),

which is seldom less than Hartigans' dip, and never more. The first distance grows with m and the
second falls: bisection finds where they cross.

Of unimodal distributions the uniform one has the largest dips; sqrt(n) dip then has a limit. Its
quantiles were simulated: 3,000 samples of 300 numbers.
"""

# SPDX-License-Identifier: BSD-3-Clause

from math import sqrt

import numpy as np

from ._distances import least_distance

# sqrt(n) dip of uniform numbers, and the probability that it is at least so large
_QUANTILES = np.array([0.0, 0.290, 0.326, 0.369, 0.416, 0.443, 0.504, 0.566])
_NATS = -np.log([1.0, 0.75, 0.5, 0.25, 0.1, 0.05, 0.01, 0.001])
_LAST = float(_QUANTILES[-1])
_SLOPE = float((_NATS[-1] - _NATS[-3]) / (_LAST**2 - _QUANTILES[-3] ** 2))


def dip(values):
    """Return the dip of numbers: from 0 to 1/4.

    Parameters
    ----------
    values : ndarray of float of shape (n,)
        In any order; equal ones are allowed.

    Returns
    -------
    dip : float
    """
    return least_distance(np.sort(values))


def dip_evidence(values):
    """Return -log p of the dip test: how sure it is that numbers are not unimodal, in nats.

    Parameters
    ----------
    values : ndarray of float of shape (n,)

    Returns
    -------
    evidence : float
        0 or more. Beyond the probabilities that were simulated it grows as the square of the dip.
    """
    scaled = sqrt(len(values)) * dip(values)
    if scaled <= _LAST:
        return float(np.interp(scaled, _QUANTILES, _NATS))
    return float(_NATS[-1]) + _SLOPE * (scaled**2 - _LAST**2)


def scaled_dip(evidence):
    """Return which sqrt(n) dip has so much evidence, of at most log(1000) nats."""
    return float(np.interp(evidence, _NATS, _QUANTILES))
