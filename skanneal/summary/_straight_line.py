"""A valley between two components of numbers, sought along a straight line that the rows choose.

Two components can describe two clusters well and yet have their border in the wrong place: where a
narrow and a wide one are equally probable, which is at a distance from the narrow one in every
direction, and not where rows are few. With many columns, the log densities of rows also vary by
what has nothing to do with the direction in which the components differ. So there may be a valley
that their densities do not show. A straight line has neither fault. Its direction is that of
Fisher's linear discriminant between the two sides of a border, and the border is moved until its
sides are those that it was made from,

    w = S^-1 (m_a - m_b),    y_i = w' (x_i - (m_a + m_b) / 2),    a = {i: y_i > 0},

with S the covariance of all rows of both components, and m_a, m_b the means of the two sides, which
begin as the components. In rows sphered by S these are the steps of two means (Lloyd 1982, "Least
squares quantization in PCM", IEEE Transactions on Information Theory 28), so they end.

A border that is free to move comes to rest where its own rows happen to be few, the more surely the
more columns there are. So each row has its place y_i on a line that other rows have chosen: the
steps are made ten times, each time without a tenth of the rows. All of this is repeated with other
tenths, and a row's place is the mean; of many rows less often, since their lines hardly differ.

A straight line through a bent group leaves it and comes back, as if there were a valley. Groups of
several components may be bent; a component is not. And evidence that one border in ten has by
chance counts as none: it would only change the order in which groups are joined.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from ._dip import dip_evidence
from ._line import near_border, spread_ties

FOLDS, ROUNDS = 10, 5
ENOUGH = 3000  # rows times rounds
CHANCE = -np.log(0.1)
LINES = 2  # on which a valley is sought: this one and that of the densities
SEED = 0  # of the tenths
_RIDGE = 1e-12  # added to correlations, so that columns may depend on each other
_MOST_STEPS = 100


def straight_evidence(numbers, first, least=0.0):
    """Return the evidence of a valley between two components along a straight line.

    Parameters
    ----------
    numbers : ndarray of float of shape (n_rows, n_columns)
        The rows of both components, in any units.
    first : ndarray of bool of shape (n_rows,)
        Which of them are in the first one.
    least : float, default=0.0
        Evidence below is of no interest.

    Returns
    -------
    evidence : float
        -log p of a dip test, p times the number of lines on which a valley is sought; 0 if p is
        above 0.1, the evidence below `least`, or if there are no more rows than two for each
        column.
    """
    least, (n_rows, n_columns) = max(least, CHANCE), numbers.shape
    if n_rows <= 2 * n_columns:
        return 0.0
    spread = numbers.std(axis=0)
    rows = (numbers - numbers.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    products = rows.T @ rows
    evidence = _evidence(_places(rows, first, products, rows))
    if evidence <= least:
        return 0.0
    places = np.zeros(n_rows)
    for fold in _folds(n_rows):
        known = np.delete(rows, fold, axis=0)
        mean, out = known.mean(axis=0), rows[fold]
        left = products - out.T @ out - len(known) * np.outer(mean, mean)
        of_fold = _places(known, np.delete(first, fold), left, out)
        if of_fold is None:
            return 0.0
        places[fold] += of_fold
    evidence = min(evidence, _evidence(places))
    return evidence if evidence > least else 0.0


def _folds(n_rows):
    """The rows in FOLDS parts, and again in other ones."""
    n_rounds = min(ROUNDS, max(1, ENOUGH // n_rows))
    numbers = np.random.Generator(np.random.PCG64(SEED)).random((n_rounds, n_rows))
    for order in np.argsort(numbers, axis=1, kind="stable"):
        yield from np.array_split(order, FOLDS)


def _places(rows, first, products, others):
    """The places of other rows on the line that rows choose, whose centred products are given; None
    if one of its sides has no row."""
    ridge = _RIDGE * len(rows) * np.eye(len(products))
    factor, failed = dpotrf(products + ridge, lower=1)
    if failed:
        return None
    total = rows.sum(axis=0)
    for _ in range(_MOST_STEPS):
        n_first = np.count_nonzero(first)
        if n_first in (0, len(rows)):
            return None
        of_first = first.astype(np.float64) @ rows
        one, two = of_first / n_first, (total - of_first) / (len(rows) - n_first)
        direction, middle = dpotrs(factor, one - two, lower=1)[0], (one + two) / 2
        before, first = first, rows @ direction > middle @ direction
        if np.array_equal(first, before):
            break
    spread = np.sqrt(max(direction @ products @ direction / len(rows), np.finfo(float).tiny))
    return (others - middle) @ direction / spread


def _evidence(places):
    """The same of places on a line, the border at 0; 0 if there are none."""
    if places is None:
        return 0.0
    sides = np.flatnonzero(places > 0), np.flatnonzero(places <= 0)
    if not min(map(len, sides)):
        return 0.0
    logs = np.asfortranarray(np.column_stack([places, -places]))
    near = near_border(logs, *sides, 0, 1)
    return max(dip_evidence(spread_ties(near)) - np.log(LINES), 0.0) if len(near) else 0.0
