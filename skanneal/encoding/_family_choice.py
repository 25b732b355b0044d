"""Which family describes each column: the user's choice, else by the column's dtype and values."""

# SPDX-License-Identifier: BSD-3-Clause

from collections.abc import Mapping

import numpy as np

from ..families import FAMILIES, default_family
from ._atoms import NEIGHBOURS, atoms_of, enough_atoms
from ._codecs import all_whole, present_values
from ._skewness import prefers_logarithm

MAX_AUTO_LEVELS = 20  # with more distinct values families="auto" takes a column for numbers


def families_given(families, names):
    """The family of each column as named by the user; None where it is left to "auto".

    Parameters
    ----------
    families : "auto", str or mapping of str to columns
        As in `Encoder.fit_encode`.
    names : ColumnNames

    Returns
    -------
    chosen : list of str or None
    """
    known = f"the families are {', '.join(map(repr, FAMILIES))}"
    if isinstance(families, str):
        if families != "auto" and families not in FAMILIES:
            raise ValueError(f"families={families!r} is neither 'auto' nor a family; {known}.")
        return [None if families == "auto" else families] * names.n_columns
    if not isinstance(families, Mapping):
        raise TypeError(
            "families must be 'auto', the name of a family or a mapping of families to columns,"
            f" got {type(families).__name__}."
        )
    chosen = [None] * names.n_columns
    for family, columns in families.items():
        if family not in FAMILIES:
            raise ValueError(f"families names the unknown family {family!r}; {known}.")
        for j in names.positions(columns, f"families[{family!r}]"):
            if chosen[j] not in (None, family):
                raise ValueError(
                    f"families gives {names.label(j)} to two families, {chosen[j]!r} and"
                    f" {family!r}."
                )
            chosen[j] = family
    return chosen


def auto_family(column):
    """The family by dtype; numbers go by their values, not by their dtype: they may be levels, or
    have atoms if they often repeat values beyond rounding."""
    dtype = column.dtype
    if dtype != "boolean" and column.levels is None:
        dtype = "levels" if _has_levels(column) else "float"
    if dtype == "float" and not column.temporal:
        dtype = _sort_of_numbers(present_values(column))
    return default_family(dtype)


def _sort_of_numbers(values):
    """Whether numbers have atoms, and whether those elsewhere are skewed: "float" if neither."""
    atoms = atoms_of(values)
    elsewhere = values[~np.isin(values, atoms)]
    if not enough_atoms(len(elsewhere), len(values)):
        return "float"
    skewed = atoms[0] >= 0 and prefers_logarithm(elsewhere.astype(np.float64))
    return "skewed atoms" if skewed else "atoms"


def _has_levels(column):
    """Whether numbers are names of levels: few of them, and most of the cells repeat one.

    For whole numbers, "few" means at most MAX_AUTO_LEVELS distinct values. For others it means two
    to NEIGHBOURS: too few to tell atoms from a density, which would collapse onto them. Of the
    cells after the first, at least half, and at least one, must repeat an earlier one, because 15
    rows have at most 15 values anyway. The function returns as soon as it has seen too many
    distinct numbers.
    """
    values = present_values(column)
    distinct, start, size = values[:0], 0, 1024
    while start < values.size and distinct.size <= MAX_AUTO_LEVELS:
        distinct = np.union1d(distinct, values[start : start + size])
        start, size = start + size, 65536
    repeats = values.size - distinct.size >= max(1, distinct.size - 1)
    if column.temporal or distinct.size > MAX_AUTO_LEVELS or not repeats:
        return False
    return all_whole(distinct) or 1 < distinct.size <= NEIGHBOURS
