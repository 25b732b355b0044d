"""Which family describes each column: the user's choice, else by the column's dtype and values."""

# SPDX-License-Identifier: BSD-3-Clause

from collections.abc import Mapping

import numpy as np

from ..families import FAMILIES, default_family, family_of_logarithms
from ._atoms import NEIGHBOURS, atoms_of, enough_atoms
from ._levels import all_whole, present_values

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
    have atoms if they often repeat values beyond rounding. A column without a cell that is present
    has levels of which none is known."""
    dtype = column.dtype
    if column.missing is not None and column.missing.all():
        dtype = "levels"
    elif dtype != "boolean" and column.levels is None:
        dtype = "levels" if _has_levels(column) else "float"
    if dtype == "float" and not column.temporal:
        return family_of_numbers(present_values(column))
    return default_family(dtype)


def atoms_or_auto(column):
    """As `auto_family`, but a column of numbers has atoms as soon as one of its values is one."""
    family = auto_family(column)
    if family == default_family("float") and not column.temporal:
        return default_family("atoms" if len(atoms_of(present_values(column))) else "float")
    return family


def family_of_amounts(column, family):
    """The family of the column's logarithms that may be better than the given one of numbers.

    A 0, which has no logarithm, is an atom. None is returned if there is no such family: for dates,
    which count from an arbitrary day, and where a number is negative.
    """
    atoms = default_family("atoms")
    if family not in (atoms, default_family("float")) or column.dtype[0] == "M":
        return None
    values = present_values(column)
    if not len(values) or values.min() < 0 or values.max() == 0:
        return None
    return family_of_logarithms(atoms if values.min() == 0 else family)


def family_of_numbers(values):
    """The family of a column of numbers, by whether they have atoms."""
    n_elsewhere = np.count_nonzero(~np.isin(values, atoms_of(values)))
    return default_family("atoms" if enough_atoms(n_elsewhere, len(values)) else "float")


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
