"""Expected numbers of a column whose margin is that of the data, and of amounts with atoms.

The mean of x = g(y) is not g of the mean of y. The mean and the variance of x, a cell of the data,
are integrated for each component: over points on the axis of y, where the component's law of the
cell does not depend on the row, and over quantiles of Student's t, as wide as it is, where it does
(a family of whole rows). Of amounts cells are logarithms, as in the families' own fills: amounts
may have no mean, and an amount's variance in one improbable component may outweigh all else. So
what is elsewhere than at atoms is averaged as cells over the components, and then with the atoms in
the user's units.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.special import stdtrit

from ..families._normal import LEAST_DEGREES
from ._conditional_fill import CANDIDATES, log_student
from ._view import shares_of_views

EVERY = 4  # of the points of a map's curve
N_QUANTILES = 64
NEGLIGIBLE = 1e-6  # share of a component
LEAST = np.finfo(float).tiny
MOST_DEGREES = 1e6


def filler_in_units(predictor, column, of_column, mode):
    """As Predictor's own fillers, but in the user's units.

    Parameters
    ----------
    predictor : Predictor
    column : int
        Of the Table.
    of_column : MarginMap or None
        None: the margin is the model's, of amounts with atoms.
    mode : bool
        Whether values are those of the most probable one of the components' centres, not means.

    Returns
    -------
    filler : callable
        ``filler(shares, table, rows)`` gives values and standard deviations.
    """
    views = [predictor.view_of(of_draw, column) for of_draw in predictor.draws]
    joint = views[0].is_joint(column)
    if of_column is None:
        moments = _of_amounts(predictor, views, column)
    else:
        moments = (_by_row if joint else _by_component)(predictor, views, column, of_column)
    to_data = np.asarray if of_column is None else of_column.to_data
    if mode:
        of_mixture = _likeliest_centre(views, column) if joint else predictor.filler(column, mode)
    least = 0.0 if of_column is not None and np.isfinite(of_column.lowest) else -np.inf

    def filler(shares, table, rows):
        numbers, deviations = moments(shares, table, rows)
        if mode:
            cells, _ = of_mixture(shares, table, rows)
            numbers = predictor.in_units(column, to_data(cells))
        return np.maximum(numbers, least), deviations

    return filler


def _by_component(predictor, views, column, of_column):
    """A filler where a component's law of the cell is one for all rows, given its outcome."""
    cells, widths = of_column.points(EVERY)
    values, n_atoms = of_column.to_data(cells), len(of_column.atoms)
    elsewhere = np.arange(len(values)) < len(values) - n_atoms
    atoms = predictor.in_units(column, values[~elsewhere])
    centre = values[elsewhere].mean()
    powers = np.where(elsewhere, values - centre, 0.0) ** np.arange(3)[:, None] * elsewhere
    of_values = np.vstack([powers, np.eye(len(values))[~elsewhere]])
    moments = [(of_values @ _weights(predictor, view, column, cells, widths)).T for view in views]
    return _with_atoms(predictor, views, column, moments, centre, atoms)


def _of_amounts(predictor, views, column):
    """The same by the model's own margin."""
    moments = []
    for view in views:
        own, i = view.features[column]
        chances, centres, squares = (
            of[..., view.slots]
            for of in (own.outcome_shares(i), own.numbers_mean(i), own.numbers_variance(i))
        )
        powers = [np.ones_like(centres), centres, squares + centres**2]
        moments.append(np.vstack([chances[0] * powers, chances[1:]]).T)
    atoms = predictor.in_units(column, predictor.schema.atoms[column])
    return _with_atoms(predictor, views, column, moments, 0.0, atoms)


def _with_atoms(predictor, views, column, moments, centre, atoms):
    """A filler from the components' moments: by view (K + 1, 3 + n_atoms), the probability of a
    cell elsewhere than at atoms, times its distance from a centre, times the square of that; and
    the probability of each atom. The atoms are in the user's units."""
    outcomes = np.r_[0, 0, np.arange(1 + len(atoms))]

    def filler(shares, table, rows):
        some = table.take(rows)
        mixed = sum(
            view.mixed(column, own, of, outcomes, some, 0, len(rows))
            for view, own, of in zip(views, shares_of_views(views, shares), moments)
        )
        chances = mixed[:, np.r_[0, 3 : 3 + len(atoms)]]
        first, second = mixed[:, 1:3].T / np.maximum(chances[:, 0], LEAST)
        deviations = np.sqrt(np.maximum(second - first**2, 0.0))
        numbers, deviations = predictor.both_in_units(column, first + centre, deviations)
        chances /= chances.sum(axis=1, keepdims=True)
        means = chances[:, 0] * numbers + chances[:, 1:] @ atoms
        off = np.column_stack([np.hypot(deviations, numbers - means), atoms - means[:, None]])
        return means, np.sqrt((chances * off**2).sum(axis=1))

    return filler


def _by_row(predictor, views, column, of_column):
    """A filler where it is Student's t, given the row's other cells."""
    levels = (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES

    def filler(shares, table, rows):
        laws = _stacked(view.conditionals(column, table, rows) for view in views)
        centres, squares, degrees = laws
        of, at = np.nonzero(shares > NEGLIGIBLE)
        own = np.clip(degrees[of, at], LEAST_DEGREES, MOST_DEGREES)
        points = stdtrit(own, levels[:, None])
        points *= np.sqrt(own / (own - 2.0) / np.mean(points**2, axis=0))  # their variance: t's
        cells = centres[of, at] + np.sqrt(squares[of, at]) * points
        cells = _of_mixture(views, column, at, cells)
        values, weights = of_column.to_data(cells), shares[of, at]
        total = np.bincount(of, weights, len(shares))
        means = np.bincount(of, weights * values.mean(axis=0), len(shares)) / total
        off = ((values - means[of]) ** 2).mean(axis=0)
        deviations = np.sqrt(np.bincount(of, weights * off, len(shares)) / total)
        return predictor.both_in_units(column, means, deviations)

    return filler


def _likeliest_centre(views, column):
    """As `conditional_fill` finds the mode, but on the axis of the mixture."""

    def filler(shares, table, rows):
        laws = _stacked(view.conditionals(column, table, rows) for view in views)
        centres = _of_mixture(views, column, np.arange(shares.shape[1]), laws[0])
        likely = np.argsort(-shares, axis=1, kind="stable")[:, :CANDIDATES]
        places = np.take_along_axis(centres, likely, axis=1)
        densities = np.empty(places.shape)
        for i, place in enumerate(places.T):
            cells, log_slopes = _stacked(view.to_family(column, place) for view in views)
            logs = log_student(cells, *laws) + log_slopes
            densities[:, i] = np.sum(shares * np.exp(logs), axis=1)
        best = densities.argmax(axis=1)
        return np.take_along_axis(places, best[:, None], axis=1)[:, 0], None

    return filler


def _stacked(of_views):
    """What each view says of its components, side by side: one array for each thing it says."""
    return [np.hstack(of) for of in zip(*of_views)]


def _of_mixture(views, column, at, cells):
    """Cells of the mixture, from those of the families of the components `at`, which are counted
    over all views."""
    cells, first = np.array(cells), 0
    for view in views:
        last = first + len(view.slots)
        own = (at >= first) & (at < last)
        cells[..., own] = view.from_family(column, at[own] - first, cells[..., own])
        first = last
    return cells


def _weights(predictor, view, column, cells, widths):
    """The probability of each point in each component: (n_points, K + 1).

    What is elsewhere than at atoms is divided among the points by the component's density."""
    columns = predictor.schema.missing_cells(len(cells))
    columns[column] = cells.astype(np.float32)
    table = predictor.table(columns)
    scores = view.cell_scores(column, table, 0, len(cells))
    slopes = np.reshape(view.log_slope(*view.features[column], table, 0, len(cells)), (-1, 1))
    is_atom = np.isnan(widths)[:, None]
    logs = np.where(is_atom, -np.inf, scores - slopes + np.log(widths)[:, None])
    elsewhere = np.exp(logs - logs.max(axis=0))
    atoms = np.where(is_atom, np.exp(np.minimum(scores, 0.0)), 0.0)
    return atoms + (1.0 - atoms.sum(axis=0)) * elsewhere / elsewhere.sum(axis=0)
