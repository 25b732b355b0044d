"""Columns of jointly normal numbers that are nearly determined by the others.

The map of a column is known no better than the ranks of its n training values, to about 1/sqrt(n)
of the column's spread. Two columns that nearly lie on a line, such as a temperature in two units,
may be moved off that line by maps of their own, farther than the model takes for possible. That is
to be feared where what a column has of its own, its conditional scale given the view's other
numbers, is less than 1/sqrt(n) of its spread, in the median over rows and draws.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ._draws import evenly

DRAWS, MOST_COMPONENTS = 3, 16  # that are asked: the largest


def nearly_determined(predictor, columns):
    """Find these columns.

    Parameters
    ----------
    predictor : Predictor
        Of the draws of a fit.
    columns : dict of int to float32 array of shape (n,)
        By place, the training cells of columns that may have a map.

    Returns
    -------
    found : set of int
    """
    scales = {place: [] for place in columns}
    for d in evenly(len(predictor.draws), DRAWS):
        for view in predictor.draws[d]:
            for place, of in _conditional_scales(predictor, view, columns).items():
                scales[place].append(of)
    least = {place: np.std(cells) / np.sqrt(len(cells)) for place, cells in columns.items()}
    return {place for place, of in scales.items() if of and np.median(of) < least[place]}


def _conditional_scales(predictor, view, columns):
    """By column, among these, of a family of whole rows its scale given the view's others, in the
    component of the median row of the largest ones: that at the component's centre, in cell
    units."""
    joint = [place for place in view.features if view.is_joint(place) and place in columns]
    if len(joint) < 2:
        return {}
    sizes = view.mixture.sizes()[view.slots[:-1]]
    at = np.argsort(-sizes, kind="stable")[:MOST_COMPONENTS]
    cells = predictor.schema.missing_cells(len(at))
    for place in joint:
        cells[place] = view.student_law(place)[0][at].astype(np.float32)
    found, rows = {}, np.arange(len(at))
    for place in joint:
        others = [np.full_like(of, np.nan) if j == place else of for j, of in enumerate(cells)]
        squares = view.conditionals(place, predictor.table(others), rows)[1][rows, at]
        order = np.argsort(squares)
        held = np.cumsum(sizes[at[order]])
        found[place] = float(np.sqrt(squares[order[np.searchsorted(held, held[-1] / 2)]]))
    return found
