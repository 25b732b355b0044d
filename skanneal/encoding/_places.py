"""Levels in an order that is known, as numbers.

families="auto" takes numbers of few values for levels, and categories for levels whether they are
ordered or not: what a row's other cells tell of a level is then all that counts. Where the order is
what counts, as it does where rows at the end of a scale are odd, whole numbers can stay numbers,
and ordered categories become the numbers 0, 1, ... of their places. Two levels have no order.
"""

# SPDX-License-Identifier: BSD-3-Clause

from copy import copy

import numpy as np

from ._codecs import LevelCodec
from ._containers import open_table
from ._family_choice import family_of_numbers
from ._levels import present_values
from ._recoded import Recoded, fit_codec

ORDERED = 3  # levels at least


class PlaceCodec:
    """Ordered levels as the numbers of their places; a level that fit did not know is missing.

    Parameters
    ----------
    levels : LevelCodec
        Of the column.
    numbers : NumberCodec
        Of its places.
    """

    def __init__(self, levels, numbers):
        self.levels, self.numbers, self.family = levels, numbers, numbers.family

    def __getattr__(self, name):
        if name.startswith("__") or name in ("levels", "numbers", "family"):
            raise AttributeError(name)
        return getattr(self.numbers, name)

    def encode(self, column):
        return self.numbers.encode(places(self.levels, column))


def places(levels, column):
    """The column of the places of ordered levels."""
    codes = levels.encode(column)
    unknown = codes >= levels.n_levels
    return column._replace(values=codes.astype(float), missing=unknown, levels=None)


def ordered_as_numbers(encoder, X):
    """The columns of levels whose order is known, encoded anew as numbers.

    Parameters
    ----------
    encoder : Encoder
        Fitted; it stays as it is.
    X : array-like, frame or list of rows of shape (n_rows, n_columns)
        The table of the fit.

    Returns
    -------
    recoded : Recoded
    """
    table, codecs, noisy, exact = open_table(X, "X", sparse=True), {}, {}, {}
    jitter = copy(encoder.jitter)
    jitter.lattices = dict(jitter.lattices)
    for j in map(int, encoder.apart.kept):
        column, codec = table.column(j), encoder.codecs[j]
        ordered = column.levels is None or column.ordered
        if not (isinstance(codec, LevelCodec) and ordered):
            continue
        if column.ordered:
            column = places(codec, column)
        values = present_values(column)
        if len(np.unique(values)) < ORDERED:
            continue
        family = family_of_numbers(values)
        numbers, noisy[j], exact[j] = fit_codec(jitter, j, column, family)
        codecs[j] = PlaceCodec(codec, numbers) if table.column(j).ordered else numbers
    return Recoded(codecs, noisy, exact)
