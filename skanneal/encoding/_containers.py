"""Tables as users hold them (numpy, pandas, polars, lists), read and rebuilt one column at a time.

`open_table` wraps any supported container in a class with one interface:

    shape, names         the number of rows and columns; the columns' names or None
    column(j)            column j as a `Column`: plain NumPy values and a mask of missing cells
    layout()             a description made of strings and lists
    build(layout, ...)   a new container of that layout
    fill(replacements)   a new container of the same sort with some cells replaced; each
                         replacement is (column, mask of rows, values for the masked rows)
    select(columns)      a container of the same sort with these columns, by position
    append(names, new)   a container of the same sort with further columns of booleans
    beside(values)       numbers, one per cell, with the names of rows and columns
    square(layout, ...)  numbers, one per pair of columns, with their names
    cell(i, j)           one cell as the user wrote it

The classes recognise containers by their attributes rather than by their libraries' types, so that
neither pandas nor polars is imported unless the user has it. Only one column at a time is ever
converted: half a million rows of a read-only memory map cost one column of memory.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.sparse import issparse

from ._columns import sparse_error
from ._pandas import PandasFrame
from ._plain import Array, Rows, Sparse
from ._polars import PolarsFrame

_CONTAINERS = {"array": Array, "rows": Rows, "pandas": PandasFrame, "polars": PolarsFrame}


def open_table(X, name, sparse=False):
    """Wrap a table; raise an error for anything else.

    Parameters
    ----------
    X : array-like, frame or list of rows
    name : str
        What error messages call it.
    sparse : bool, default=False
        Whether it may be a sparse array or matrix.

    Returns
    -------
    table : Array, PandasFrame, PolarsFrame, Rows or Sparse

    Raises
    ------
    TypeError, ValueError
        For sparse, structured and masked arrays, lazy frames, frames of other libraries, ragged
        rows, data that is not two-dimensional, no rows or no columns.
    """
    if issparse(X) and not sparse:
        raise sparse_error(name)
    if isinstance(X, np.ma.MaskedArray):
        raise TypeError(f"Masked arrays are not supported: pass {name}.filled(numpy.nan).")
    if hasattr(X, "collect_schema") and hasattr(X, "collect"):
        raise TypeError(f"{name} is a lazy frame: pass {name}.collect().")
    if issparse(X):
        table = Sparse(X, name)
    elif hasattr(X, "iloc") and hasattr(X, "columns"):
        table = PandasFrame(X)
    elif hasattr(X, "to_series") and hasattr(X, "get_columns"):
        table = PolarsFrame(X)
    elif isinstance(X, (list, tuple)) and len(X) > 0 and not isinstance(X[0], np.ndarray):
        table = Rows(X, name)
    elif hasattr(X, "to_pandas") and not hasattr(X, "dtype"):  # such as a pyarrow.Table
        raise TypeError(
            f"{name} is a {type(X).__module__}.{type(X).__qualname__}, but must be a NumPy array, a"
            f" pandas or polars frame, or a list of rows: pass {name}.to_pandas()."
        )
    else:
        table = Array(X, name)
    n_rows, n_columns = table.shape
    for count, what in ((n_rows, "sample(s)"), (n_columns, "feature(s)")):
        if count == 0:
            raise ValueError(
                f"Found array with 0 {what} (shape={table.shape}) while a minimum of 1 is required."
            )
    return table


def build_table(layout, columns):
    """A new container.

    Parameters
    ----------
    layout : dict
        What `layout()` of the original container gave.
    columns : list of ndarray of shape (n_rows,)
        Booleans, integers, floats or objects, one array per column.

    Returns
    -------
    table : ndarray, frame or list of lists
    """
    return _CONTAINERS[layout["container"]].build(layout, columns)


def square_table(layout, columns, values):
    """Numbers that belong to pairs of columns.

    Parameters
    ----------
    layout : dict
        What `layout()` of the columns' container gave.
    columns : sequence of int
        Positions.
    values : ndarray of shape (n_columns, n_columns)

    Returns
    -------
    table : ndarray or frame
        A frame, whose columns have these columns' names, if the container was one.
    """
    return _CONTAINERS[layout["container"]].square(layout, columns, values)
