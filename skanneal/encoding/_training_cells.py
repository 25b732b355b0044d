"""The cells of the table of a fit, read again."""

# SPDX-License-Identifier: BSD-3-Clause

from ._codecs import as_numbers
from ._containers import open_table


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
            column, codec = table.column(j), encoder.codecs[j]
            numbers = as_numbers(column, codec.family)
            numbers = encoder.jitter.again(j, numbers, codec.lowest)
            columns[j] = codec.encode(column._replace(values=numbers, levels=None))
    return columns
