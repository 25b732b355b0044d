"""Numbers of a table's rows as an array, and fills from one."""

from libc.stdint cimport int32_t, int64_t

import numpy as np

from ._table cimport Table, is_far


def numbers_of(Table table, columns, rows, bint filled=False):
    """Cells of columns of numbers in some rows, those of gaps NaN or their fills.

    Parameters
    ----------
    table : Table
    columns : int array of shape (n_columns,)
    rows : int array of shape (n,)
    filled : bool, default=False

    Returns
    -------
    cells : float64 array of shape (n, n_columns)
        Column by column in memory.
    """
    cdef const int64_t[::1] row = np.ascontiguousarray(rows, dtype=np.int64)
    cdef const int32_t[::1] position = np.ascontiguousarray(table.positions[columns], np.int32)
    out = np.empty((len(row), len(position)), order="F")
    cdef double[::1, :] cells = out
    cdef const char *own
    cdef Py_ssize_t i, j
    with nogil:
        for i in range(row.shape[0]):
            own = table.row(row[i]) if filled else table.observed(row[i])
            for j in range(position.shape[0]):
                cells[i, j] = (<const float *> (own + position[j]))[0]
    return out


def fill_cells(Table table, Py_ssize_t column, rows, const double[::1] numbers):
    """Replace a column's fills in some rows, all of which lack it; no statistics that have been
    computed with the old may be used."""
    cdef const int64_t[::1] row = np.ascontiguousarray(rows, dtype=np.int64)
    cdef Py_ssize_t i, position = table.positions[column]
    for i in range(row.shape[0]):
        (<float *> (table.filled(row[i]) + position))[0] = <float> numbers[i]
        table.far |= is_far(numbers[i], 0.0)
