"""Which rows differ: in their cells as the user has them, without noise in rounded ones."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.sparse import issparse

BLOCK_ROWS = 4096  # compared at a time


class RowKeys:
    """Keys of a table's rows: those of two rows are equal if all of their cells are.

    Parameters
    ----------
    encoder : Encoder
        Of the table, with its rounded columns.
    table : Table
    """

    def __init__(self, encoder, table):
        self.table, self.lattices = table, {}
        for j, column in enumerate(encoder.apart.kept):
            if column in encoder.jitter.lattices:
                units = encoder.codecs[column].units
                self.lattices[j] = units, encoder.jitter.lattices[column]

    def __call__(self, rows):
        """The keys of some rows, by index: int64 of shape (n,)."""
        some = self.table.take(rows)
        columns = [self._plain(j, some.column(j)) for j in range(some.n_columns)]
        return hashed(*(cells for cells in columns if cells is not None))

    def _plain(self, j, cells):
        """The cells of a column, equal where those of the user are."""
        if j not in self.lattices:
            return cells
        units, lattice = self.lattices[j]
        numbers = cells.astype(np.float64) * self.table.scales[j] + self.table.offsets[j]
        return lattice.nearest(units.in_units(numbers))


def hashed(*parts):
    """One number for each row, equal if the rows are: int64 of shape (n_rows,).

    Parameters
    ----------
    *parts : ndarray of shape (n_rows,) or (n_rows, n_columns), or csr_array
        What the rows consist of. Two numbers out of 2^64 that agree by chance are left to chance.
    """
    keys = zip(*map(_bytes, parts))
    return np.fromiter(map(hash, keys), dtype=np.int64, count=parts[0].shape[0] if parts else 0)


def _bytes(part):
    """The bytes of each row."""
    if issparse(part):
        ends = zip(part.indptr[:-1], part.indptr[1:])
        return [part.indices[a:b].tobytes() + part.data[a:b].tobytes() for a, b in ends]
    if part.dtype.kind == "f":
        part = np.where(np.isnan(part), np.nan, part + 0.0)  # one nan, one zero
    return [row.tobytes() for row in np.ascontiguousarray(part)]


def all_keys(keys, n_rows):
    """The keys of all rows: int64 of shape (n_rows,).

    Parameters
    ----------
    keys : callable
        ``keys(rows)`` gives the keys of rows by index, as `RowKeys` does.
    n_rows : int
    """
    return np.concatenate([keys(rows) for rows in _blocks(n_rows)])


def n_distinct(keys, n_rows, most):
    """How many rows differ, `most` at most; of what `all_keys` takes."""
    found = set()
    for rows in _blocks(n_rows):
        found.update(keys(rows).tolist())
        if len(found) >= most:
            return most
    return len(found)


def _blocks(n_rows):
    starts = range(0, n_rows, BLOCK_ROWS)
    return (np.arange(start, min(start + BLOCK_ROWS, n_rows)) for start in starts)
