"""Columns that repeat an earlier one in other values: a name beside its code, a number beside its
logarithm.

Two rows are equal in one of them exactly where they are equal in the other, so the model would
count one fact twice: clusters follow it more than other columns, down to one cluster for each of
its values. If one column's cells were dealt to the rows at random, both would divide the rows alike
with the probability prod_k n_k! prod_c m_c! / n!, where n_k of the n present cells have value k,
and m_c values have c cells. Only below exp(-NO_ACCIDENT) this is not taken for chance, as with
identifiers; columns whose cells all differ always divide the rows alike.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.special import gammaln

from .._native._warning import warn
from ._identifiers import NO_ACCIDENT

FIRST_ROWS = 10_000  # the others are read only where two columns divide these alike


def repeated_columns(codecs, columns, places):
    """Find the columns that repeat an earlier one, and lack the same cells.

    Parameters
    ----------
    codecs : list of codecs
    columns : list of ndarray of shape (n_rows,)
        Encoded cells.
    places : sequence of int
        Among which columns to look.

    Returns
    -------
    earlier : dict of int to int
        By column, the first one that it repeats.
    """
    earlier, seen = {}, {}
    for j in places:
        few = columns[j][:FIRST_ROWS]
        if not _no_accident(_division(few[~codecs[j].missing(few)])):
            continue
        alike = seen.setdefault(_division(few).tobytes(), [])
        for i in alike:
            gaps = [codecs[k].missing(columns[k]) for k in (i, j)]
            if np.array_equal(*gaps) and np.array_equal(*(_division(columns[k]) for k in (i, j))):
                earlier[j] = i
                break
        else:
            alike.append(j)
    return earlier


def _division(cells):
    """The rows' values, numbered as they first occur; all gaps are one value."""
    first, codes = np.unique(cells, return_index=True, return_inverse=True)[1:]
    return np.argsort(np.argsort(first))[codes]


def _no_accident(division):
    """Whether another column is not to be expected to divide the rows so."""
    sizes = np.bincount(division)
    log_chance = gammaln(sizes + 1.0).sum() + gammaln(np.bincount(sizes) + 1.0)[1:].sum()
    return gammaln(len(division) + 1.0) - log_chance > NO_ACCIDENT


def warn_of_repeats(encoder, columns):
    """Say which columns of the model that are left to "auto" repeat others.

    Parameters
    ----------
    encoder : Encoder
    columns : list of ndarray of shape (n_rows,)
        Cells of its fit without noise, see `TrainingCells`.
    """
    places, label = np.intersect1d(encoder.may_repeat, encoder.apart.kept), encoder.names.label
    for j, i in repeated_columns(encoder.codecs, columns, places).items():
        warn(
            f"{label(j)} repeats {label(i)} in other values: two rows are equal in one where they "
            f"are in the other. It counts the same fact twice, in clusters as in dependence: leave "
            f"one of them out, or name {label(j)} in families to keep it without this warning."
        )
