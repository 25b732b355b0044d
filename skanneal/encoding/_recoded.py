"""The codec and the cells of a column in a family, and columns that are encoded anew in others."""

# SPDX-License-Identifier: BSD-3-Clause

from copy import copy
from typing import NamedTuple

import numpy as np

from ..families import FAMILIES
from ._codecs import AtomCodec, as_numbers, codec_of
from ._containers import open_table
from ._training_cells import TrainingCells, noisy_cells


def fit_codec(jitter, j, column, family):
    """Fit the codec of column j in a family; return it and the noisy and the exact cells, which are
    the same array if the column is not jittered."""
    codec = codec_of(family).fit(column, family)
    exact = codec.encode(column)
    if not FAMILIES[family].jittered:
        return codec, exact, exact
    return codec, noisy_cells(jitter.apply, j, column, codec, exact), exact


class Recoded(NamedTuple):
    """Some columns of an encoder in other families.

    Attributes
    ----------
    codecs : dict of int to codec
        By column.
    noisy, exact : dict of int to ndarray of shape (n_rows,)
        The encoded cells, see `TrainingCells`.
    """

    codecs: dict
    noisy: dict
    exact: dict

    @classmethod
    def of(cls, encoder, X, families):
        """Encode columns of the table of the encoder's fit, X, in these families, by column.

        These are families of logarithms that nobody asked for, so that later rows may have a 0 or
        a negative number.
        """
        if not families:
            return NOTHING
        table = open_table(X, "X", sparse=True)
        of = [fit_codec(encoder.jitter, j, table.column(j), name) for j, name in families.items()]
        recoded = cls(*(dict(zip(families, part)) for part in zip(*of)))
        for j, codec in recoded.codecs.items():
            if codec.lowest == 0.0:
                values = as_numbers(table.column(j), codec.family)
                codec.least = float(values[values > 0.0].min())
        return recoded

    def among(self, columns):
        """Those of the columns."""
        kept = {int(j) for j in columns} & set(self.codecs)
        return Recoded(*({j: of[j] for j in sorted(kept)} for of in self))

    @property
    def with_atoms(self):
        """Those columns that have atoms."""
        return [j for j, codec in self.codecs.items() if isinstance(codec, AtomCodec)]

    def at_atoms(self, columns):
        """Which rows are at an atom in one of these columns: (n_rows,)."""
        of = [np.isin(self.noisy[j], self.codecs[j].atom_cells) for j in columns]
        return np.any(of, axis=0) if of else False

    def put(self, encoder, cells):
        """The encoder with these codecs, and the TrainingCells with these cells; the same if there
        are none."""
        if not self.codecs:
            return encoder, cells
        new = copy(encoder)
        new.codecs = [self.codecs.get(j, codec) for j, codec in enumerate(encoder.codecs)]
        pairs = zip((self.noisy, self.exact), cells)
        return new, TrainingCells(*([of.get(j, c) for j, c in enumerate(old)] for of, old in pairs))


NOTHING = Recoded({}, {}, {})
