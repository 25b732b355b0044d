r"""The law of one column under a mixture, as normal scores.

A column's margin is the mean over draws of sum_k w_k p_k(c), whatever the families; of a column
with atoms it is here the law elsewhere. Its distribution function F is integrated numerically, on
the axis a = arsinh(c) of the cells c, which reaches as far as a heavy tail does: intervals are
halved until each point is on a line with its neighbours, up to TOLERANCE of the whole; the integral
is that of a cubic. What is kept is the normal score z(c), with Phi(z) = F(c), added up from the
nearer end.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.special import ndtri

from ._conditional_fill import log_student
from ._monotone import Monotone

TOLERANCE = 2e-6  # of the probability, at each point
FARTHEST = 18.0  # arsinh of a cell
N_COARSE, N_QUANTILES = 145, 257
MOST_ROUNDS = 16
LARGEST = 700.0  # of which the exponential is a float


def model_scores(predictor, place, cells, lowest):
    """The normal scores of a column under the mean of the draws.

    Parameters
    ----------
    predictor : Predictor
    place : int
        Of the column in the Table.
    cells : float array of shape (n,)
        Where there is something to resolve: those of the fit.
    lowest : float
        Below which the model has no cells.

    Returns
    -------
    scores : Monotone
        From arsinh of the cell to z.
    """
    known = np.quantile(cells, np.linspace(0.0, 1.0, N_QUANTILES))
    axis = np.linspace(-FARTHEST, FARTHEST, N_COARSE)
    at = _on_axis(np.r_[axis, np.arcsinh(known)], lowest)
    density = _density(predictor, place)
    values = density(at)
    for _ in range(MOST_ROUNDS):
        middles = _on_axis(0.5 * (at[1:] + at[:-1])[_rough(at, values)], lowest)
        middles = np.setdiff1d(middles, at)
        if not len(middles):
            break
        values = np.r_[values, density(middles)]
        order = np.argsort(np.r_[at, middles])
        at, values = np.r_[at, middles][order], values[order]
    return _scores(at, values)


def _on_axis(at, lowest):
    """Places that are those of float32 cells, ascending."""
    cells = np.unique(np.maximum(np.sinh(at), lowest).astype(np.float32))
    return np.arcsinh(cells[cells >= lowest].astype(np.float64))


def _density(predictor, place):
    """The margin's density on the axis, up to a factor: a function of places."""
    views = [predictor.view_of(of_draw, place) for of_draw in predictor.draws]
    pairs = list(zip(views, predictor.draw_weights / predictor.draw_weights.sum()))
    nothing = predictor.table(predictor.schema.missing_cells(1))

    def of_family(at):
        """By the scores of cells in rows with no other one."""
        columns, total = predictor.schema.missing_cells(len(at)), 0.0
        columns[place] = off_atoms(np.sinh(at), predictor.schema.atoms[place])
        table, scale = predictor.table(columns), np.log(predictor.schema.scales[place])
        for view, weight in pairs:
            slope = view.log_slope(*view.features[place], table, 0, len(at))
            logs = view.cell_scores(place, table, 0, len(at)) + view.log_weights
            logs += scale - np.reshape(slope, (-1, 1))
            total = total + weight * np.exp(np.minimum(logs, LARGEST)).sum(axis=1)
        return total * np.cosh(at)

    def of_rows(at):
        """By the laws of a cell in a row without any."""
        cells, total = np.sinh(at)[:, None], 0.0
        for (view, weight), law in zip(pairs, laws):
            total = total + weight * np.exp(log_student(cells, *law) + view.log_weights).sum(axis=1)
        return total * np.cosh(at)

    if not views[0].is_joint(place):
        return of_family
    laws = [view.conditionals(place, nothing, np.zeros(1, np.int64)) for view in views]
    return of_rows


def off_atoms(cells, atoms):
    """Cells as they are stored, the next ones where these would be atoms."""
    cells = np.asarray(cells).astype(np.float32)
    return np.where(np.isin(cells, atoms), np.nextafter(cells, np.float32(np.inf)), cells)


def _rough(at, values):
    """Which intervals to halve: those beside a point that is off the line through its neighbours,
    by more than what is allowed of the probability."""
    shares = np.diff(at[:-1]) / (at[2:] - at[:-2])
    off = np.abs(values[1:-1] - values[:-2] - shares * (values[2:] - values[:-2]))
    off = np.r_[0.0, off * (at[2:] - at[:-2]), 0.0]
    return np.maximum(off[1:], off[:-1]) > TOLERANCE * _masses(at, values).sum()


def _masses(at, values):
    """The integral of each interval, by the monotone cubic."""
    with np.errstate(over="ignore"):  # where values are next to nothing, so that slopes are 0
        slopes = PchipInterpolator(at, values).derivative()(at)
    widths = np.diff(at)
    trapezoids = 0.5 * widths * (values[1:] + values[:-1])
    return np.maximum(trapezoids + widths**2 / 12.0 * (slopes[:-1] - slopes[1:]), 0.0)


def _scores(at, values):
    masses = _masses(at, values)
    total = masses.sum()
    below = np.cumsum(masses)[:-1] / total
    above = np.cumsum(masses[::-1])[::-1][1:] / total
    scores = np.where(below < 0.5, ndtri(below), -ndtri(above))
    finite = np.isfinite(scores)
    return Monotone(at[1:-1][finite], scores[finite])
