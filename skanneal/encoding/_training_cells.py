"""The encoded cells of the table of a fit: those that chains read, and those of a query.

The two differ in rounded columns of numbers, whose cells have noise in a fit (_jitter.py). A fit
encodes its table once and keeps both: the noisy cells for its chains, the exact ones where columns
are compared with each other and where the table's own rows are asked about.
"""

# SPDX-License-Identifier: BSD-3-Clause

from typing import NamedTuple

import numpy as np

from ._codecs import as_numbers
from ._containers import open_table


class TrainingCells(NamedTuple):
    """The encoded columns of the table of a fit.

    Attributes
    ----------
    noisy : list of ndarray of shape (n_rows,)
        What chains read: rounded numbers have noise.
    exact : list of ndarray of shape (n_rows,)
        What `Encoder.encode` returns of the same table; the same arrays where there is no noise.
    """

    noisy: list
    exact: list


def noisy_cells(noise, j, column, codec, exact):
    """Encode column j with noise, except at its atoms.

    Parameters
    ----------
    noise : callable
        A method of `Jitter`.
    j : int
    column : Column
    codec : NumberCodec
        The column's.
    exact : ndarray of shape (n_rows,)
        The column's cells without noise, which are returned if it gets none.
    """
    numbers = as_numbers(column, codec.family)
    noisy = noise(j, numbers, codec.lowest)
    if noisy is numbers:
        return exact
    values = np.where(np.isin(numbers, getattr(codec, "atoms", ())), numbers, noisy)
    return codec.encode(column._replace(values=values, levels=None))


def training_cells(encoder, exact, X):
    """Read the cells of the table of a fit again, after the fit.

    Parameters
    ----------
    encoder : Encoder
    exact : list of ndarray of shape (n_rows,)
        What `encode` returns of X.
    X : array-like, frame or list of rows of shape (n_rows, n_columns)
        The table of the fit.

    Returns
    -------
    cells : TrainingCells
        The same as in the fit.
    """
    noisy, table = list(exact), open_table(X, "X", sparse=True)
    for j in encoder.jitter.lattices:
        if j not in encoder.apart.out:
            task = j, table.column(j), encoder.codecs[j], exact[j]
            noisy[j] = noisy_cells(encoder.jitter.again, *task)
    return TrainingCells(noisy, exact)
