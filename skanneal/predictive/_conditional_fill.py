"""Values for the missing cells of a family of whole rows.

In every component such a cell, given the row's other cells, has a Student's t distribution.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.special import gammaln

from ..families._normal import LEAST_DEGREES

CANDIDATES = 16  # components whose centres may be the mode


def conditional_fill(shares, centres, squares, degrees, mode):
    """Values for missing cells, and their standard deviations.

    Parameters
    ----------
    shares : ndarray of shape (n_rows, n_components)
        Probability of each draw's components given the row.
    centres, squares, degrees : sequence of ndarray of shape (n_rows, n_components of a draw)
        The cell's law in each component, draw by draw.
    mode : bool
        Whether the value is the most probable one of the centres of the 16 most probable
        components, not the mean.

    Returns
    -------
    values, deviations : ndarray of shape (n_rows,)
    """
    centres, squares, degrees = (np.hstack(of) for of in (centres, squares, degrees))
    finite = np.minimum(np.maximum(degrees, LEAST_DEGREES), 1e15)
    means = np.sum(shares * centres, axis=1)
    variances = squares * finite / (finite - 2.0) + (centres - means[:, None]) ** 2
    deviations = np.sqrt(np.sum(shares * variances, axis=1))
    if not mode or not len(means):
        return means, deviations
    likely = np.argsort(-shares, axis=1, kind="stable")[:, :CANDIDATES]
    places = np.take_along_axis(centres, likely, axis=1)
    logs = [log_student(place[:, None], centres, squares, degrees) for place in places.T]
    densities = np.stack([np.sum(shares * np.exp(log), axis=1) for log in logs], axis=1)
    best = densities.argmax(axis=1)
    return np.take_along_axis(places, best[:, None], axis=1)[:, 0], deviations


def log_student(x, centres, squares, degrees):
    """Log density of Student's t; of a normal where the degrees are infinite."""
    ratio = (x - centres) ** 2 / squares
    nu = np.minimum(degrees, 1e15)
    tails = gammaln(0.5 * (nu + 1)) - gammaln(0.5 * nu) - 0.5 * np.log(nu * np.pi)
    student = tails - 0.5 * (nu + 1) * np.log1p(ratio / nu)
    normal = -0.5 * (np.log(2 * np.pi) + ratio)
    return np.where(np.isinf(degrees), normal, student) - 0.5 * np.log(squares)
