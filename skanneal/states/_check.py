"""What is asked of the arrays of a mixture before a state is made of them.

The ranges keep compiled code within its arrays, for a chain that goes on as for a draw that answers
queries. That a chain's counts are those of its rows is asked once, when it goes on (`recount`).
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from .._native._packing import unpack
from .._native._state_arrays import StateError, check_ascending, part, state_array
from ..families import FAMILIES
from ..families._forms import flatten

INTEGERS, NUMBERS = "iu", "iuf"
MOST = 2**53  # up to which a float64 holds every whole number
HISTORY = ("updates",)  # statistics that depend on how the state came about


def checked_blocks(arrays, table, trusted=False):
    """The blocks of a Mixture, of its arrays.

    Parameters
    ----------
    arrays : dict of str to ndarray
    table : Table
        With the rows of the labels, or without rows.
    trusted : bool, default=False
        Whether they have been checked before.

    Returns
    -------
    blocks : list of FamilyBlock

    Raises
    ------
    StateError
        If no Mixture would give back these arrays.
    """
    parts = unpack(arrays)
    if trusted:
        return [FAMILIES[family].from_arrays(own, table) for family, own in parts.items()]
    if not parts:
        raise StateError("size", "is missing, as is every family")
    columns = []
    for family, own in parts.items():
        with part(family):
            n_slots = _check_block(family, own, table)
            columns.append(own["columns"])
    columns = np.sort(np.concatenate(columns))
    family = next(iter(parts))
    if (columns[1:] == columns[:-1]).any():
        raise StateError(f"{family}/columns", "shares a column with another family's")
    sizes = parts[family]["size"]
    for other, own in parts.items():
        if not np.array_equal(own["size"], sizes):
            raise StateError(f"{other}/size", f"is not {family}/size")
    if table.n_rows:
        state_array(arrays, "labels", "i", (table.n_rows,), -1, n_slots - 1)
    elif "labels" in arrays and sizes.sum() > len(state_array(arrays, "labels", "i", (None,))):
        raise StateError(f"{family}/size", "holds more rows than there are labels")
    return [_checked_block(family, own, table) for family, own in parts.items()]


def _check_block(family, arrays, table):
    """Raise unless the columns, the numbers and the hyperparameters are such as the family has;
    return its number of slots."""
    if family not in FAMILIES:
        raise StateError("columns", "is of a family that is not known")
    cls = FAMILIES[family]
    columns = state_array(arrays, "columns", INTEGERS, (None,), 0, table.n_columns - 1)
    check_ascending(columns, "columns")
    wrong = [j for j in columns.tolist() if not _reads(cls.cells, table, j)]
    whole = cls.cells != "count_row" or len(columns) == n_count_columns(table)
    if wrong or not whole or not len(columns):
        raise StateError("columns", f"does not hold columns of the family: {columns.tolist()}")
    size = state_array(arrays, "size", INTEGERS, (None,), 0, MOST)
    for name, array in arrays.items():
        if np.asarray(array).dtype.kind == "f":
            state_array(arrays, name, "f")
        else:
            state_array(arrays, name, "biu", None, 0, MOST)
    if "gappy" in arrays:
        gappy = state_array(arrays, "gappy", "b", (len(columns),))
        if (table.gaps[columns] & ~gappy).any() and not cls.joint:
            raise StateError("gappy", "leaves out a column that has missing cells")
    if "n" in arrays:
        n = state_array(arrays, "n", INTEGERS, (len(columns), len(size)))
        if (n > size).any():
            raise StateError("n", "counts more cells than there are rows")
    _check_hyper(cls, arrays, columns, table)
    return len(size)


def _reads(cells, table, j):
    """Whether column j of the table holds cells of this sort (see encoding/_codecs.py)."""
    dtype, n_levels = table.dtypes[j], int(table.n_levels[j])
    if cells == "level":
        return n_levels > 0
    if cells == "boolean":
        return n_levels == 2
    of = {"count": ("u4",), "count_row": ("entries", "none")}
    return not n_levels and dtype in of.get(cells, ("f4",))


def n_count_columns(table):
    """Number of the table's columns of rows of counts."""
    return sum(dtype in ("entries", "none") for dtype in table.dtypes)


def _check_hyper(cls, arrays, columns, table):
    """Raise unless each hyperparameter has the shape and the range of its form."""
    d, values = len(columns), []
    n_levels = table.n_levels[columns]
    forms = dict(zip(cls.coordinate_names, cls.forms))
    if cls.cells in ("level", "boolean"):  # kept as the categorical family keeps them
        forms = {"pseudo_counts": "per_level"}
        found = state_array(arrays, "n_levels", INTEGERS, (d,))
        if not np.array_equal(found, n_levels):
            raise StateError("n_levels", f"holds {found.tolist()}, not {n_levels.tolist()}")
    for name, form in forms.items():
        value = state_array(arrays, name, NUMBERS)
        shapes = {
            "positive": ((),),
            "common": ((), (d,)),
            "covariance": ((d, d),),
            "per_level": ((n_levels.sum(),),),
        }.get(form, ((d,),))
        if not cls.joint and form != "per_level":
            shapes = ((d,),)
        if value.shape not in shapes:
            raise StateError(name, f"has the shape {value.shape}, not {shapes[-1]}")
        if form == "covariance":
            if not _is_covariance(value):
                raise StateError(name, "is no positive definite matrix")
        elif form != "location" and not (value > 0).all():
            raise StateError(name, "must be positive")
        values.append(value)
    if cls.joint:
        fault = cls.check_hyper(flatten(cls.forms, values, d), d)
        if fault is not None:
            raise StateError(fault[0], f"must be {fault[1]}")


def _is_covariance(matrix):
    if not np.array_equal(matrix, matrix.T):
        return False
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True


def _checked_block(family, arrays, table):
    """A block of the family, which is what its arrays say.

    Raises
    ------
    StateError
        If the block would give back other arrays: of other shapes, or other integers.
    """
    cls, n_slots = FAMILIES[family], len(arrays["size"])
    with part(family):
        try:
            block = cls.from_arrays(arrays, table)
        except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
            raise _first_misfit(cls, arrays, table, error) from error
        _check_equal(block.to_arrays(n_slots), arrays)
    return block


def _first_misfit(cls, arrays, table, error):
    """The error for arrays of which no block could be made: it names one of a wrong shape."""
    try:
        empty = cls(table, arrays["columns"], n_slots=len(arrays["size"]))
        _check_equal(empty.to_arrays(len(arrays["size"])), arrays, shapes=True)
    except StateError as misfit:
        return misfit
    return StateError("size", f"does not go with the others ({error})")


def _check_equal(expected, arrays, shapes=False):
    """Raise unless arrays have the sorts, the shapes and, unless only `shapes` count, the whole
    numbers that are expected."""
    for name, array in expected.items():
        array = np.asarray(array)
        kinds = {"b": "b", "f": NUMBERS}.get(array.dtype.kind, INTEGERS)
        found = state_array(arrays, name, kinds, array.shape)
        if kinds == INTEGERS and not shapes and not np.array_equal(found, array):
            raise StateError(name, "contradicts the others")


def check_subsample(arrays, selections):
    """Raise StateError unless a Subsample of one of the selections can be made of the arrays."""
    selection = str(state_array(arrays, "selection", "U", ()))
    if selection not in selections:
        raise StateError("selection", f"is {selection!r}, none of {selections}")
    order = state_array(arrays, "order", "iu", (None,))
    n_rows = len(order)
    if not np.array_equal(np.sort(order), np.arange(n_rows)):
        raise StateError("order", "does not hold every row once")
    tail, size = state_array(arrays, "window", "iu", (2,), 0, n_rows)
    if tail >= max(n_rows, 1):
        raise StateError("window", f"begins at {tail}, of {n_rows} rows")
    inside = state_array(arrays, "inside", "iu", (None,), 0, n_rows)
    start = state_array(arrays, "start", "iu", (len(inside) + 1,), 0, n_rows)
    if start[0] != 0 or start[-1] != n_rows or (np.diff(start) < 0).any():
        raise StateError("start", f"does not ascend from 0 to {n_rows}")
    if (inside > np.diff(start)).any():
        raise StateError("inside", "holds more rows of a stratum than there are")
    if selection == "stratified" and inside.sum() != size:
        raise StateError("inside", f"holds {inside.sum()} rows, not {size}")


def recount(mixture):
    """Raise StateError unless a mixture's labels are those of its subsample's rows, and its counts
    those of the labelled rows.

    Statistics that are not whole numbers are sums in another order; they are not compared.
    """
    labels, rows = mixture.get_labels(), np.sort(mixture.subsample.rows())
    if not np.array_equal(np.flatnonzero(labels >= 0), rows):
        raise StateError("labels", "labels other rows than those of the subsample")
    labels = labels[rows]
    for block in mixture.blocks:
        again = block.spare(block.n_slots)
        again.build(rows, labels, block.n_slots)
        held = block.to_arrays()
        for name, array in again.to_arrays().items():
            whole = array.dtype.kind in INTEGERS and name not in HISTORY
            if whole and not np.array_equal(array, held[name]):
                raise StateError(
                    f"{block.family}/{name}", "is not what a recount of the rows gives"
                )
