"""Rows of counts, as the likelihoods of them take them."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.sparse import csr_array, issparse

from ..families._counts import ROW_COUNTS, refuse_empty_rows
from ..families._sparse import entries, row_of
from ._product import count_scores, count_sums


class CountRows:
    """What likelihoods of rows of counts share; `prepare` gives them Weights.

    Statistics are the column sums and the sum of the logarithms of the multinomial coefficients:
    (n_atoms, n_columns + 1).
    """

    writes_float64 = True

    @staticmethod
    def _types(X):
        n_columns = np.shape(X)[1]
        return ["entries", *["none"] * (n_columns - 1)], np.zeros(n_columns, np.int64)

    @staticmethod
    def checked_rows(X, name="X", first=0):
        """Rows as csr_array, of counts. See `TableLikelihood.checked_rows`."""
        return count_rows(X, name, first)

    @classmethod
    def _cells(cls, X, schema):
        counts = cls.checked_rows(X)
        if counts.shape[1] != schema.n_columns:
            raise ValueError(f"X has {counts.shape[1]} columns, expected {schema.n_columns}.")
        return [counts, *[None] * (schema.n_columns - 1)]

    def log_lik(self, rows, theta, out):
        """The sparse product of the rows and the logarithms of the probabilities."""
        count_scores(rows.table, rows.start, rows.stop, theta, out)

    def statistics(self, rows, labels, n_atoms):
        """Column sums and the sum of the log coefficients: (n_atoms, n_columns + 1)."""
        return count_sums(rows.table, rows.start, labels, n_atoms)


def count_rows(X, name="X", first=0):
    """Rows of counts as a csr_array of uint32 in canonical format without zeros.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_rows, n_columns)
    name : str, default="X"
        What error messages call the table that X is a part of.
    first : int, default=0
        What they call X's first row.

    Raises
    ------
    ValueError
        For what is no count, for a row of zeros, and for a malformed sparse matrix.
    """
    if not issparse(X):
        X = np.asarray(X)
        if X.dtype.kind not in "iufb":
            X = X.astype(np.float64)
        X = csr_array(X)
    counts = entries(X, name)
    values = counts.data
    bad = ROW_COUNTS.outside(values)
    if bad.any():
        at = int(bad.argmax())
        row = first + row_of(counts, at)
        raise ROW_COUNTS.error(f"Row {row}, column {counts.indices[at]} of {name}", values[at])
    refuse_empty_rows(counts, name, "a multinomial likelihood", first)
    return counts.astype(np.uint32)
