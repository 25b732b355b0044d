"""Sparse tables, of whose arrays nothing is believed before it has been checked.

SciPy's compiled routines read and write wherever a matrix's arrays of positions point, and so do
ours. What a user or a file gives may point anywhere.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.sparse import coo_array, csr_array


def entries(X, name):
    """Return what is not 0, as a csr_array in canonical format, duplicates summed.

    Parameters
    ----------
    X : sparse array or matrix of shape (n_rows, n_columns)
        In any of SciPy's formats.
    name : str
        What error messages call it.

    Returns
    -------
    counts : csr_array
        It may share the arrays of X.

    Raises
    ------
    ValueError
        If X is malformed, see `checked`.
    """
    X = checked(X, name)
    canonical = X.has_canonical_format
    if X.dtype.kind == "b" or (X.dtype.kind in "iu" and not canonical):
        X = X.astype(np.int64)  # holds the sums of duplicates
    if canonical and X.data.all():
        return X
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def checked(X, name):
    """Return a sparse array or matrix as a new csr_array.

    One in CSR keeps its arrays and its duplicates. The new one remembers nothing of what SciPy
    had noted of X, such as that its indices were once in order.

    Raises
    ------
    ValueError
        If X does not hold real numbers, or if its arrays contradict its shape or each other. The
        message names X and the first row (column, of CSC) that is wrong.
    """
    if X.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold numbers, got the dtype {X.dtype}.")
    if X.format in ("csr", "csc", "bsr"):
        _check_compressed(X, name)
    else:
        X = _coordinates(X, name)
    if X.format != "csr" and X.dtype.kind in "biu":
        X = X.astype(np.int64)  # the change of format may sum duplicates
    return csr_array(X)


def row_of(counts, at):
    """Return the row of a csr_array's entry."""
    return int(np.searchsorted(counts.indptr, at, side="right")) - 1


def check_pointers(starts, stops, n_entries, name, unit="row", number=int):
    """Raise unless every row's entries are among those that there are.

    Parameters
    ----------
    starts, stops : integer arrays of shape (n_rows,)
        Where the entries of each row begin and end.
    n_entries : int
    name, unit : str
        What the error calls the table, and what it calls a row.
    number : callable, default=int
        ``number(i)`` is what the error calls the i-th of these rows.
    """
    bad = (starts < 0) | (stops < starts) | (stops > n_entries)
    if bad.any():
        i = int(bad.argmax())
        raise ValueError(
            f"{name} is malformed in {unit} {number(i)}: by indptr its entries are those from"
            f" {starts[i]} to {stops[i]}, of {n_entries}."
        )


def check_indices(indices, starts, n, name, unit="row", number=int):
    """Raise unless every entry is in one of n columns.

    Parameters
    ----------
    indices : integer array of shape (n_entries,)
    starts : integer array of shape (n_rows,)
        Where the entries of each row begin; it ascends.
    n, name, unit, number
        See `check_pointers`.
    """
    if not len(indices) or 0 <= indices.min() <= indices.max() < n:
        return
    at = int(((indices < 0) | (indices >= n)).argmax())
    i = int(np.searchsorted(starts, at, side="right")) - 1
    other = {"row": "column", "column": "row"}[unit]
    raise ValueError(
        f"{name} is malformed in {unit} {number(i)}: an entry is in {other} {indices[at]}, of {n}"
        f" ({other}s are counted from 0)."
    )


def _check_compressed(X, name):
    """Check the arrays of a CSR, a CSC or, by rows of blocks, a BSR."""
    unit = "column" if X.format == "csc" else "row"
    data, n_rows, n_columns = X.data, *X.shape
    size = 1, 1
    if X.format == "bsr":
        size = np.shape(data)[1:]
        if len(size) != 2 or min(size) < 1 or n_rows % size[0] or n_columns % size[1]:
            raise ValueError(f"{name} is malformed: its blocks do not divide its shape.")
        data = data[:, 0, 0]
    n_lines, n = n_rows // size[0], n_columns // size[1]
    if unit == "column":
        n_lines, n = n, n_lines
    _check_vectors(name, data=data, indices=X.indices, indptr=X.indptr)
    if len(X.indptr) != n_lines + 1 or X.indptr[0] != 0 or len(X.indices) != len(data):
        raise ValueError(
            f"{name} is malformed: for {n_lines} {unit}s, indptr must hold {n_lines + 1} numbers"
            f" from 0 on, got {len(X.indptr)}; and there are {len(data)} entries, but"
            f" {len(X.indices)} indices."
        )
    starts, stops = X.indptr[:-1], X.indptr[1:]
    number = size[0].__mul__  # the first row of a row of blocks
    check_pointers(starts, stops, len(data), name, unit, number)
    check_indices(X.indices[: X.indptr[-1]], starts, n, name, unit, number)


def _coordinates(X, name):
    """Return a sparse matrix that is not compressed as a coo_array, whose rows and columns are
    checked. SciPy's compiled routines take no part in it."""
    if X.format == "lil":
        columns, values = list(X.rows), list(X.data)
        n = np.array(list(map(len, columns)), dtype=np.int64)
        if len(n) != X.shape[0] or not np.array_equal(n, list(map(len, values))):
            raise ValueError(f"{name} is malformed: its rows and its values differ in number.")
        rows, columns = np.repeat(np.arange(len(n)), n), [j for row in columns for j in row]
        data = np.array([value for row in values for value in row], dtype=X.dtype)
        columns = np.array(columns, dtype=np.int64)
    elif X.format == "dia":
        of, columns = np.nonzero(X.data[:, : X.shape[1]])
        rows, data = columns - X.offsets[of], X.data[of, columns]
        inside = (rows >= 0) & (rows < X.shape[0])
        rows, columns, data = rows[inside], columns[inside], data[inside]
    elif X.format == "dok":
        rows, columns = np.array(list(X.keys()), dtype=np.int64).reshape(-1, 2).T
        data = np.array(list(X.values()), dtype=X.dtype)
    else:
        rows, columns, data = X.row, X.col, X.data
    _check_vectors(name, data=data, row=rows, column=columns)
    if not len(rows) == len(columns) == len(data):
        raise ValueError(
            f"{name} is malformed: it has {len(rows)} rows and {len(columns)} columns of entries,"
            f" but {len(data)} values."
        )
    outside = (rows < 0) | (rows >= X.shape[0]) | (columns < 0) | (columns >= X.shape[1])
    if outside.any():
        at = int(outside.argmax())
        raise ValueError(
            f"{name} is malformed: an entry is in row {rows[at]} and column {columns[at]}, but the"
            f" shape is {X.shape}."
        )
    return coo_array((data, (rows, columns)), X.shape)


def _check_vectors(name, data, **positions):
    """Raise unless these are arrays of one dimension, those of positions of integers."""
    for of, array in {"data": data, **positions}.items():
        kinds = "biuf" if of == "data" else "iu"
        if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind not in kinds:
            what = "numbers" if of == "data" else "integers"
            raise ValueError(
                f"{name} is malformed: {of} must be an array of {what}, of one dimension."
            )
