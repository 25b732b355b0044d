"""The codec and the cells of a column in a family, and columns that are encoded anew in others."""

# SPDX-License-Identifier: BSD-3-Clause

from copy import copy
from typing import NamedTuple

import numpy as np

from ..families import FAMILIES
from ._codecs import AtomCodec, LogarithmCodec, as_numbers, codec_of
from ._containers import open_table


def fit_codec(jitter, j, column, family):
    """The codec of column j, which is of this family, and its cells, jittered if need be."""
    codec = codec_of(family).fit(column, family)
    if FAMILIES[family].jittered:
        column = with_noise(jitter.apply, j, column, codec)
    return codec, codec.encode(column)


def with_noise(noise, j, column, codec):
    """Column j with noise, a method of `Jitter`, except at its atoms."""
    numbers = as_numbers(column, codec.family)
    at_atom = np.isin(numbers, getattr(codec, "atoms", ()))
    values = np.where(at_atom, numbers, noise(j, numbers, codec.lowest))
    return column._replace(values=values, levels=None)


class Recoded(NamedTuple):
    """Some columns of an encoder in other families.

    Attributes
    ----------
    codecs : dict of int to codec
        By column.
    cells : dict of int to ndarray of shape (n_rows,)
        Encoded.
    """

    codecs: dict
    cells: dict

    @classmethod
    def of(cls, encoder, X, families):
        """Encode columns of the table of the encoder's fit, X, in these families, by column.

        These are families of logarithms that nobody asked for, so that later rows may have a 0.
        """
        if not families:
            return cls({}, {})
        table = open_table(X, "X", sparse=True)
        pairs = [fit_codec(encoder.jitter, j, table.column(j), of) for j, of in families.items()]
        for j, (codec, _) in zip(families, pairs):
            if isinstance(codec, LogarithmCodec):
                codec.least = float(np.nanmin(as_numbers(table.column(j), codec.family)))
        return cls(*(dict(zip(families, of)) for of in zip(*pairs)))

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
        of = [np.isin(self.cells[j], self.codecs[j].atom_cells) for j in columns]
        return np.any(of, axis=0) if of else False

    def put(self, encoder, cells):
        """The encoder with these codecs, and the cells with these; the same if there are none."""
        if not self.codecs:
            return encoder, cells
        new = copy(encoder)
        new.codecs = [self.codecs.get(j, codec) for j, codec in enumerate(encoder.codecs)]
        return new, [self.cells.get(j, of_column) for j, of_column in enumerate(cells)]
