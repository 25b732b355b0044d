"""Likelihoods whose rows are those of a Table."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..families import Table
from ._likelihood import Likelihood


class TableLikelihood(Likelihood):
    """A likelihood whose rows are those of a Table.

    Parameters
    ----------
    table : Table
        Its columns are the likelihood's; its rows scale the defaults.

    Attributes
    ----------
    schema : Table
        Without rows.
    """

    writes_float64 = False  # whether log_lik also takes a float64 array for `out`

    def __init__(self, table):
        self.schema = table.empty_like()

    @staticmethod
    def _types(X):
        """Arguments of a Table for data like X."""
        raise NotImplementedError

    @staticmethod
    def checked_rows(X, name="X", first=0):
        """Rows given as an array or a sparse matrix, all of whose cells have been checked.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_columns)
        name : str, default="X"
            What error messages call the table that X is a part of.
        first : int, default=0
            What they call the first row of X.

        Raises
        ------
        ValueError
            It names the first row with a cell that the likelihood cannot describe.
        """
        raise NotImplementedError

    @classmethod
    def _cells(cls, X, schema):
        """Encoded columns of rows given as an array or a sparse matrix."""
        raise NotImplementedError

    @classmethod
    def of(cls, X, *args, **options):
        """The likelihood of rows like those of X, the defaults scaled by them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_columns)
        *args, **options
            As for the class, without the table.
        """
        table = Table(*cls._types(X))
        table.append(cls._cells(X, table))
        return cls(table, *args, **options)

    def score(self, rows, prepared, n_atoms, out):
        """`log_lik` without a copy, since it takes wider lines here."""
        if out.dtype == np.float32 or self.writes_float64:
            self.log_lik(rows, prepared, out)
        else:
            super().score(rows, prepared, n_atoms, out)

    def encode(self, X):
        """Rows of numbers, dense or sparse, as TableRows."""
        return self.rows(self._cells(X, self.schema))

    def log_jacobian(self, n_rows):
        """Cells are numbers less an offset, over a scale."""
        return -n_rows * float(np.log(self.schema.scales).sum())

    def rows(self, columns):
        """TableRows of columns that are encoded, as Table.append takes them."""
        table = self.schema.empty_like()
        table.append(columns)
        return TableRows(table)


class TableRows:
    """Consecutive rows of a table.

    Parameters
    ----------
    table : Table
    start, stop : int, optional
        All rows by default.
    """

    def __init__(self, table, start=0, stop=None):
        self.table = table
        self.start = start
        self.stop = table.n_rows if stop is None else stop

    def __len__(self):
        return self.stop - self.start

    def __getitem__(self, rows):
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            if step == 1:
                return TableRows(self.table, self.start + start, self.start + max(start, stop))
            rows = np.arange(start, stop, step)
        rows = np.asarray(rows)
        if rows.ndim != 1 or rows.dtype.kind not in "iu":
            raise TypeError(f"rows are taken by a slice or an array of integers, not {rows!r}")
        return TableRows(self.table.take(rows + self.start))

    def __reduce__(self):
        if len(self) == self.table.n_rows:
            return TableRows, (self.table,)
        return TableRows, (self.table.take(np.arange(self.start, self.stop)),)


def dense(X, n_columns=None):
    """X as a float64 array of shape (n_rows, n_columns)."""
    if hasattr(X, "toarray"):
        raise TypeError("X is sparse: give it as a dense array.")
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or n_columns not in (None, X.shape[1]):
        expected = "two-dimensional" if n_columns is None else f"of {n_columns} columns"
        raise ValueError(f"X must be {expected}, got shape {X.shape}.")
    return X
