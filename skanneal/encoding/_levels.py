"""The distinct values of a column, and where they are."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np


def present_values(column):
    """The values of a numeric column without the missing ones."""
    return column.values if column.missing is None else column.values[~column.missing]


def factorise(column):
    """The distinct present values as a list, and each cell's index into it, -1 where missing."""
    if column.levels is not None:
        return column.levels, column.values
    values = present_values(column)
    if values.dtype.kind == "f" and all_whole(values):
        levels, found = _factorise_numbers(values.astype(np.int64))
        levels = [float(level) for level in levels]
    elif values.dtype.kind == "b":
        levels, found = _factorise_numbers(values)
        levels = [bool(level) for level in levels]
    else:
        levels, found = _factorise_numbers(values)
    if column.missing is None:
        return levels, found
    codes = np.full(column.values.size, -1)
    codes[~column.missing] = found
    return levels, codes


def _factorise_numbers(values):
    """Distinct numbers in ascending order, and each cell's index; no sorting for small ranges."""
    kind = values.dtype.kind
    span = int(values.max()) - int(values.min()) if values.size and kind != "f" else np.inf
    if span > 4 * values.size + 65536:
        levels, codes = np.unique(values, return_inverse=True)
        return levels.tolist(), codes
    if kind != "u":  # unsigned differences cannot overflow, signed ones of a small dtype can
        values = values.astype(np.int64)
    shifted = (values - (low := values.min())).astype(np.int64)
    seen = np.zeros(span + 1, dtype=bool)
    seen[shifted] = True
    levels = (np.flatnonzero(seen).astype(values.dtype) + low).tolist()
    return levels, (np.cumsum(seen) - 1)[shifted]


def all_whole(values):
    """Whether all numbers are integers, of floats such as int64 holds."""
    return values.dtype.kind in "biu" or bool(
        np.all((np.abs(values, dtype=np.float64) < 2.0**63) & (values == np.rint(values)))
    )
