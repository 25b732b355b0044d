"""Hyperparameters of row families between the user's units and cell units (families/_forms.py)."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..families import FAMILIES
from ..families._forms import diagonal, flatten, starts, to_cells, to_user, unflatten
from ._limits import as_floats, check_cells

ASYMMETRY = 1e-8  # that a covariance may have, relative to the standard deviations' product


def prepare_rows(family, named, columns, table, at, n_given):
    """Starting values and grids of a row family, in cell units.

    Parameters
    ----------
    family : str
    named : dict of str to array-like
        What the user fixed, by name.
    columns : int array of shape (n_columns,)
        The family's.
    table : Table
        Encoded rows.
    at : int array of shape (n_columns,)
        Their places among the columns that the user gave to the family.
    n_given : int
        Number of those.

    Returns
    -------
    start : float64 array
        The family's flat vector.
    grid : list of (array or None)
        Aligned with it; None where the user fixed the coordinate.
    """
    member, n_columns = FAMILIES[family], len(columns)
    for name in member.required:
        if name not in named:
            where = f"hyperparameters[{family!r}][{name!r}]"
            raise ValueError(f"The family {family!r} needs {where}, in the units of X.")
    start, grid = member.default_hyper(table, columns), member.grids(table, columns)
    values = unflatten(member.forms, start, n_columns)
    ends = starts(member.forms, n_columns)
    for h, (name, form) in enumerate(zip(member.coordinate_names, member.forms)):
        if name in named:
            where = f"hyperparameters[{family!r}][{name!r}]"
            value = _of_columns(READ[form](named[name], n_given, where), at)
            values[h] = to_cells(form, value, table.offsets[columns], table.scales[columns])
            check_cells(np.diag(values[h]) if form == "covariance" else values[h], form, where)
            stop = None if form == "common" else ends[h + 1]
            grid[ends[h] : stop] = [None] * np.size(flatten([form], [values[h]], n_columns))
    start = flatten(member.forms, values, n_columns)
    fault = member.check_hyper(start, n_columns)
    if fault is not None:
        raise ValueError(f"hyperparameters[{family!r}][{fault[0]!r}] must be {fault[1]}")
    return start, grid


def _of_columns(value, at):
    """Select some columns from a vector or a matrix; a number stays as it is."""
    return value[np.ix_(*[at] * np.ndim(value))] if np.ndim(value) else value


def row_values_in_units(family, arrays, columns, offsets, scales):
    """A draw's hyperparameters of a row family, by name, in their natural shapes.

    family : its class; arrays : its block's; offsets, scales : of all columns of the table
    """
    units = offsets[columns], scales[columns]
    out = {}
    for name, form in zip(family.coordinate_names, family.forms):
        value = to_user(form, arrays[name], *units)
        out[name] = float(value) if np.ndim(value) == 0 else value
    return out


def row_grids_in_units(family, grid, columns, table):
    """Map each hyperparameter to its grid, or to a list with the grid of each column."""
    member, n_columns = FAMILIES[family], len(columns)
    offsets, scales = table.offsets[columns], table.scales[columns]
    ends = starts(member.forms, n_columns)
    out = {}
    for h, (name, form) in enumerate(zip(member.coordinate_names, member.forms)):
        parts = grid[ends[h] : ends[h + 1]]
        if form in ("covariance", "location"):
            if form == "covariance":
                form, parts = "variance", [parts[i] for i in diagonal(n_columns)]
            parts = [
                p if p is None else to_user(form, p, o, s)
                for p, o, s in zip(parts, offsets, scales)
            ]
        out[name] = parts[0] if form in ("positive", "common") else parts
    return out


# ---- what a user gives --------------------------------------------------------------------------


def _positive(values, n_columns, where):
    array = as_floats(values, where)
    if array.ndim != 0:
        raise ValueError(f"{where} must be one number, got shape {array.shape}")
    if array <= 0:
        raise ValueError(f"{where} must be positive, got {float(array)}")
    return float(array)


def _location(values, n_columns, where):
    array = as_floats(values, where)
    if array.ndim != 0 and array.shape != (n_columns,):
        raise ValueError(
            f"{where} must be a number or one per column of the family ({n_columns}), "
            f"got shape {array.shape}"
        )
    return np.broadcast_to(array, n_columns).copy()


def _positives(values, n_columns, where):
    array = _location(values, n_columns, where)
    if array.min() <= 0:
        raise ValueError(f"{where} must be positive, got {array.min()}")
    return array


def _common(values, n_columns, where):
    each = _positives(values, n_columns, where)
    return each if np.ndim(values) else each[0]


def _covariance(values, n_columns, where):
    array = as_floats(values, where)
    if array.shape not in ((), (n_columns,), (n_columns, n_columns)):
        raise ValueError(
            f"{where} must be a number, one per column of the family ({n_columns}) or a matrix of "
            f"shape ({n_columns}, {n_columns}), got shape {array.shape}"
        )
    if array.ndim < 2:
        if array.min() <= 0:
            raise ValueError(f"{where} must be positive, got {array.min()}")
        return np.diag(np.broadcast_to(array, n_columns))
    variances = np.diag(array)
    if variances.min() <= 0:
        raise ValueError(f"{where} must be positive definite: a variance is {variances.min()}")
    deviations = np.sqrt(variances)
    correlations = array / deviations / deviations[:, None]
    if np.abs(correlations - correlations.T).max() > ASYMMETRY:
        raise ValueError(f"{where} must be a symmetric matrix")
    try:
        factor = np.linalg.cholesky(correlations)
        singular = np.diag(factor).min() ** 2 < n_columns * np.finfo(float).eps
    except np.linalg.LinAlgError:
        singular = True
    if singular:
        raise ValueError(f"{where} must be positive definite")
    return 0.5 * (array + array.T)


READ = {
    "positive": _positive,
    "positives": _positives,
    "location": _location,
    "covariance": _covariance,
    "common": _common,
}
