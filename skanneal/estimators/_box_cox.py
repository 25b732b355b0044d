"""Which columns of rows of numbers have logarithms: those that these relate better to the others.

A component of rows with a full covariance gives each of their numbers a straight regression on the
others. So an amount x_j has logarithms, y_j = log x_j in place of x_j, where they make its numbers
more probable, given the numbers y_i of the other columns (Box and Cox 1964):

    log p(x_j | others) = log N(y_j; a + sum_i b_i y_i, s^2) - log x_j

with the coefficients of least squares; gaps of the others are at their mean. Column by column
logarithms are taken if they are surely ahead, the others being as they are, until no column
changes. A column has logarithms only if all of its numbers are above 0, and if none of them is an
atom, where no density is normal.

A column that others determine along a line would not on a curve: it stays plain, and so do the
others. But a multiple of another column is one in logarithms, too, and has them if the other has.
"""

# SPDX-License-Identifier: BSD-3-Clause

from typing import NamedTuple

import numpy as np

from ..encoding._atoms import atoms_of
from ..encoding._codecs import NumberCodec
from ..encoding._collinear import TOLERANCE, find_collinear
from ..families import default_family
from ..families._scaling import some_of
from ..summary._lead import Lead
from ._contest import TRIFLE

FEWEST_ROWS = 8
MOST_ROWS = 1000  # they show what shape a relation has
MOST_ROUNDS = 5  # of all columns
RIDGE = 1e-3  # on standardised numbers, since some columns may determine others


class Form(NamedTuple):
    """A column as it is, or its logarithms.

    Attributes
    ----------
    numbers : float64 array of shape (n_rows,)
        Standardised, 0 where missing.
    log_slopes : float64 array of shape (n_rows,)
        The logarithms of their slopes.
    """

    numbers: np.ndarray
    log_slopes: np.ndarray

    @classmethod
    def of(cls, numbers, log_slopes=0.0):
        """Standardise numbers, which are NaN where missing; they have slopes themselves."""
        standardised, log_scale = _standardised(numbers)
        slopes = log_slopes - log_scale + 0.0 * standardised
        return cls(np.nan_to_num(standardised), np.nan_to_num(slopes))


def _standardised(numbers):
    """Numbers with the mean 0 and the variance 1, and the logarithm of their scale."""
    unit = np.nanmax(np.abs(numbers)) or 1.0  # squares of large numbers would overflow
    numbers = numbers / unit
    scale = np.nanstd(numbers) or 1.0
    return (numbers - np.nanmean(numbers)) / scale, np.log(scale) + np.log(unit)


def columns_of_logarithms(columns):
    """The columns that have logarithms.

    Parameters
    ----------
    columns : dict of int to float64 array of shape (n_rows,)
        Numbers, NaN where missing; each column has some.

    Returns
    -------
    chosen : list of int
    """
    if not columns:
        return []
    rows = some_of(np.arange(len(next(iter(columns.values())))), MOST_ROWS)
    forms = {j: _forms(values, rows) for j, values in columns.items()}
    multiples, plain = _determined(columns, forms)
    forms = {j: of[:1] if j in plain else of for j, of in forms.items() if j not in multiples}
    chosen = dict.fromkeys(forms, 0)
    for _ in range(MOST_ROUNDS):
        before = dict(chosen)
        for j in (j for j, of in forms.items() if len(of) > 1):
            others = [forms[i][chosen[i]].numbers for i in forms if i != j]
            known = ~np.isnan(columns[j][rows])
            chosen[j] = int(_lead_of_logarithms(forms[j], others, known).is_sure(TRIFLE))
        if chosen == before:
            break
    return [j for j in columns if chosen[multiples.get(j, j)]]


def _determined(columns, forms):
    """Multiples of other columns, by column of which, and what must stay plain: columns that others
    determine otherwise, and these."""
    names = list(columns)
    codec = NumberCodec(default_family("float"), 0.0, 1.0)
    cells = [_standardised(values)[0] for values in columns.values()]
    found = find_collinear([codec] * len(names), cells, range(len(names)))
    multiples, plain = {}, set()
    for at, of in found.items():
        j, sources = names[at], [names[i] for i in of.sources]
        if len(sources) == 1 and len(forms[j]) == len(forms[sources[0]]) == 2:
            ratios = np.log(columns[j]) - np.log(columns[sources[0]])
            if np.nanstd(ratios) <= TOLERANCE * np.nanstd(np.log(columns[j])):
                multiples[j] = sources[0]
                continue
        plain |= {j, *sources}
    return multiples, plain


def _forms(values, rows):
    """A column in some rows as it is and, if it may have them, its logarithms."""
    known, own = values[~np.isnan(values)], values[rows]
    if np.isnan(own).all():
        return [Form(np.zeros(len(rows)), np.zeros(len(rows)))]
    plain = Form.of(own)
    if known.min() <= 0.0 or len(atoms_of(known)) or np.sum(~np.isnan(own)) < FEWEST_ROWS:
        return [plain]
    return [plain, Form.of(np.log(own), -np.log(own))]


def _lead_of_logarithms(forms, others, known):
    """The Lead of a column's second form over the first one, in its known cells, given others."""
    design = np.column_stack([np.ones(len(known)), *others])[known]
    ridge = RIDGE * len(design) * np.eye(design.shape[1])
    densities = []
    for form in forms:
        numbers = form.numbers[known]
        coefficients = np.linalg.solve(design.T @ design + ridge, design.T @ numbers)
        left = numbers - design @ coefficients
        variance = max(np.mean(np.square(left)), np.finfo(float).tiny)
        logs = -0.5 * (np.log(variance) + np.square(left) / variance)
        densities.append(logs + form.log_slopes[known])
    return Lead.of(densities[1] - densities[0])
