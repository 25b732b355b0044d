"""One column of a table as plain NumPy values, whatever dtype or Python objects it came as."""

# SPDX-License-Identifier: BSD-3-Clause

import numbers
from typing import NamedTuple

import numpy as np

from ..families import FAMILIES, reads_sparse
from ._dates import TEMPORAL, objects_to_array, to_days


class Column(NamedTuple):
    """One column of a table.

    Attributes
    ----------
    label : str
        What error messages call it, as in ``column 'age'``.
    values : ndarray of shape (n_rows,)
        Booleans, integers, floats, or, if `levels` is given, codes into it. Possibly a view of the
        caller's data: never written to. Cells that are missing hold anything.
    missing : ndarray of bool of shape (n_rows,) or None
        None says that no cell is missing.
    levels : list or None
        The distinct values, if the column is not numeric.
    declared : bool
        Whether the container declares the levels (pandas Categorical, polars Enum).
    temporal : str or None
        The dtype of dates and durations, such as "M8[ns]"; their `values` are days.
    ordered : bool
        Whether the container says that the levels have an order, that of `levels`.
    """

    label: str
    values: np.ndarray
    missing: np.ndarray | None
    levels: list | None = None
    declared: bool = False
    temporal: str | None = None
    ordered: bool = False

    @property
    def dtype(self):
        """One of "boolean", "integer", "float", "levels", or `temporal`."""
        if self.temporal is not None:
            return self.temporal
        if self.levels is not None:
            return "levels"
        return {"b": "boolean", "f": "float"}.get(self.values.dtype.kind, "integer")


def sparse_error(name):
    """The error for sparse input."""
    reader = next(filter(reads_sparse, FAMILIES))
    return TypeError(
        f"Sparse input is not supported here: {name} is sparse, and only the family {reader!r}"
        f" reads sparse counts, from a SciPy array. Name families={reader!r} where the estimator"
        " has it, or pass dense data, as X.toarray() gives."
    )


def infinity_error(label):
    """The error for infinite numbers, in scikit-learn's words."""
    return ValueError(
        f"Input contains infinity or a value too large for dtype('float64') in {label}."
    )


def complex_error(label):
    """The error for complex numbers, in scikit-learn's words."""
    return ValueError(f"Complex data not supported\n{label} holds complex numbers.")


def read_array(label, values):
    """A `Column` from a one-dimensional NumPy array of any dtype."""
    kind = values.dtype.kind
    if kind == "c":
        raise complex_error(label)
    if kind in "mM":
        days, unit = to_days(values)
        missing = np.isnan(days)
        return Column(label, days, missing if missing.any() else None, temporal=unit)
    if kind in "biu":
        return Column(label, np.ascontiguousarray(values), None)
    if kind != "f":
        return read_objects(label, values.tolist(), text=kind != "O")
    with np.errstate(over="ignore"):  # a long double beyond float64 becomes, and is, an infinity
        double = values.dtype.itemsize > 8
        values = np.ascontiguousarray(values, dtype=np.float64 if double else None)
    if np.isinf(values).any():
        raise infinity_error(label)
    missing = np.isnan(values)
    return Column(label, values, missing if missing.any() else None)


def read_objects(label, cells, text=False):
    """A `Column` from a list of Python objects; numeric if every present cell is a number.

    With `text` the column is one of text even if no cell is present.
    """
    types = set(map(type, cells))
    if types in ({float}, {bool}):
        return read_array(label, np.array(cells, dtype=types.pop()))
    try:
        distinct = list(dict.fromkeys(cells))
    except TypeError:
        bad = next(cell for cell in cells if type(cell).__hash__ is None)
        raise TypeError(
            f"float() argument must be a string or a real number, not {type(bad).__name__!r}"
            f" ({label})"
        ) from None
    present = [value for value in distinct if not _is_missing(value)]
    codes = dict.fromkeys(distinct, -1)
    codes.update((value, code) for code, value in enumerate(present))
    codes = np.fromiter(map(codes.__getitem__, cells), dtype=np.int64, count=len(cells))
    missing = codes < 0 if len(present) < len(distinct) else None
    types = tuple(set(map(type, present)))
    if any(issubclass(type_, (complex, np.complexfloating)) for type_ in types):
        raise complex_error(label)
    if any(issubclass(type_, TEMPORAL) for type_ in types):
        if missing is not None:
            cells = [None if code < 0 else cell for cell, code in zip(cells, codes)]
        return read_array(label, objects_to_array(label, cells, types))
    if text or not all(issubclass(type_, (numbers.Number, np.bool_)) for type_ in types):
        return Column(label, codes, missing, present)
    values = _numbers(label, present, types)[codes]
    return Column(label, values, missing)


def as_number(value):
    """A number, a date or a duration, as columns have it among their values."""
    return float(read_objects("", [value]).values[0])


def _is_missing(value):
    """None, NaN of any numeric type, NaT and pandas.NA, recognised without importing pandas."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    return isinstance(value, numbers.Number) and bool(value != value)


def _numbers(label, present, types):
    """Numbers as an array, in the narrowest dtype; one cell more at the end, for code -1."""
    if types and all(issubclass(type_, (bool, np.bool_)) for type_ in types):
        return np.array([*present, False], dtype=bool)
    try:
        if types and all(issubclass(type_, (numbers.Integral, np.bool_)) for type_ in types):
            try:
                return np.array([*present, 0], dtype=np.int64)
            except OverflowError:
                pass
        table = np.array([*map(float, present), np.nan])
    except OverflowError:
        raise infinity_error(label) from None
    if np.isinf(table).any():
        raise infinity_error(label)
    return table
