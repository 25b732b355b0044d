"""The cells of the table of a fit, read again."""

# SPDX-License-Identifier: BSD-3-Clause

from ._containers import open_table
from ._recoded import with_noise


def training_cells(encoder, columns, X):
    """What `fit_encode` returned, of what `encode` returns of the same table.

    Parameters
    ----------
    encoder : Encoder
    columns : list of ndarray of shape (n_rows,)
        From `encode`.
    X : array-like, frame or list of rows of shape (n_rows, n_columns)

    Returns
    -------
    columns : list of ndarray of shape (n_rows,)
        Those of rounded numbers with the noise that they got in fit.
    """
    columns, table = list(columns), open_table(X, "X", sparse=True)
    for j in encoder.jitter.lattices:
        if j not in encoder.apart.out:
            codec = encoder.codecs[j]
            column = with_noise(encoder.jitter.again, j, table.column(j), codec)
            columns[j] = codec.encode(column)
    return columns
