"""Spreads of the missing cells of columns that others determine.

Such a number is a sum over the columns that determine it. Where one of their cells is missing its
standard deviation is that cell's, times its weight. Of several, and of logarithms, it is estimated
from N_DRAWS joint draws, the same ones at each call.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

N_DRAWS = 100


def determined_spread(codec, codecs, known, missing, spreads, draws):
    """Standard deviations of the missing cells of a column.

    Parameters
    ----------
    codec : CollinearCodec
        Of the column.
    codecs : list of codec
        Of all columns.
    known : list of (ndarray of shape (n_rows,) or None)
        By column the cells that are not missing, in the user's units.
    missing : list of ndarray of bool of shape (n_rows,)
        By column.
    spreads : list of (ndarray of shape (n_missing,) or None)
        By column, those of its missing cells.
    draws : callable
        ``draws(rows, n)`` gives n times a joint draw of the missing cells of these rows: a list of
        arrays by column, in the user's units.

    Returns
    -------
    deviations : float64 array of shape (n_rows,)
        0 where all that determine the cell are known.
    """
    n_gaps = sum(missing[j].astype(int) for j in codec.sources)
    out = np.zeros(len(n_gaps))
    for j, weight in zip(codec.sources, codec.weights):
        out[missing[j]] += np.abs(weight * codec.scale / codecs[j].scale) * spreads[j]
    of_logarithms = codec.codec.of_logarithms or any(codecs[j].of_logarithms for j in codec.sources)
    rows = np.flatnonzero(n_gaps > (0 if of_logarithms else 1))
    if len(rows):
        values = []
        for drawn in draws(rows, N_DRAWS):
            cells = {j: np.where(missing[j][rows], drawn[j], known[j][rows]) for j in codec.sources}
            values.append(codec.value(cells, codecs))
        with np.errstate(over="ignore"):
            out[rows] = np.minimum(np.std(values, axis=0), np.finfo(float).max)
    return out
