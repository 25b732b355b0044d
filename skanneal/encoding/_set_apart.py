"""Columns of one value, or that others determine, which the model does not see.

A column of numbers whose present cells are all equal says nothing of the rows, but a normal family
would give it ever more density the narrower its clusters' variances are, and the most to one
cluster. Its density is a point mass instead: 1 for the value, 0 for any other. `SetApart` goes
between the columns of the user and those of the model's Table, which are the others, then the
indicators, in the same order. A table of constants alone gets one column of zeros in their place,
so that there is something to cluster; in queries its cells are missing. Columns that others
determine (_collinear.py) are set apart likewise, where their family would not bear them.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..families import FAMILIES
from ._codecs import ConstantCodec


class SetApart:
    """Which columns are in the model's Table, and what the others hold.

    Parameters
    ----------
    values : list of (float or None)
        For each column of the user its one value; None if it is in the Table.
    n_indicators : int
        Columns of the Table after these.
    collinear : collection of int, default=()
        Columns that others determine.

    Attributes
    ----------
    constants : dict of int to float
        The value of each column of one value.
    out : list of int
        All columns that are set apart.
    kept : int64 array
        The other columns: column i of the Table is column kept[i] of the user.
    stand_in : bool
        Whether the Table has a column of zeros and no other.
    """

    def __init__(self, values, n_indicators, collinear=()):
        self.n_columns, self.n_indicators = len(values), n_indicators
        self.constants = {j: value for j, value in enumerate(values) if value is not None}
        self.out = [*self.constants, *collinear]
        self.kept = np.setdiff1d(np.arange(len(values)), self.out)
        self.stand_in = not len(self.kept) and not n_indicators

    @classmethod
    def of(cls, codecs, columns, proper, n_indicators):
        """Set the constant columns apart, and change both lists accordingly.

        Parameters
        ----------
        codecs, columns : list
            The codec and the encoded cells of each column.
        proper : collection of str or int
            Families and columns that stay in the Table.
        n_indicators : int
        """
        values = [None] * len(codecs)
        for j, codec in enumerate(codecs):
            unbounded = FAMILIES[codec.family].bounds_density is not None
            if unbounded and not {j, codec.family} & set(proper):
                values[j] = codec.constant
            if values[j] is not None:
                codecs[j] = ConstantCodec(codec.family, codec.constant)
                columns[j] = np.where(np.isnan(columns[j]), np.nan, 0.0)
        return cls(values, n_indicators)

    def without(self, collinear):
        """Set columns that others determine apart, too."""
        values = [self.constants.get(j) for j in range(self.n_columns)]
        earlier = [j for j in self.out if j not in self.constants]
        return SetApart(values, self.n_indicators, [*earlier, *collinear])

    def stored(self, columns, stand_in=np.nan):
        """Select the Table's columns from the user's encoded columns and the indicators.

        Parameters
        ----------
        columns : list of n_columns + n_indicators arrays
        stand_in : float, default=nan
            The cells of the column of zeros.
        """
        if self.stand_in:
            return [np.full(len(columns[0]), stand_in, dtype=np.float32)]
        return [columns[j] for j in self.kept] + list(columns[self.n_columns :])

    def spread(self, columns, apart):
        """Put the Table's columns where the user has them, and the indicators last.

        A column j that was set apart becomes `apart(j)`.
        """
        out = [None] * self.n_columns
        for j, cells in zip(self.kept, columns):
            out[j] = cells
        for j in self.out:
            out[j] = apart(j)
        return out + list(columns[len(self.kept) :][: self.n_indicators])

    def places(self, positions):
        """Find some of the user's columns in the Table.

        Returns
        -------
        found : int array
            Indices into `positions` of the columns that the Table has.
        places : int array
            Their places in the Table.
        """
        place = np.full(self.n_columns, -1)
        place[self.kept] = np.arange(len(self.kept))
        at = place[np.asarray(positions, dtype=np.int64)]
        return np.flatnonzero(at >= 0), at[at >= 0]

    def log_density(self, columns, given=()):
        """0, or -inf for rows with another value in a column that is set apart and not given."""
        out = 0.0
        for j in self.out:
            if j not in given:
                out = np.where(columns[j] == 1.0, -np.inf, out)
        return out


def by_family(names):
    """Map each family to the places of its name, in the registry's order; last what is none."""
    of = np.array(names, dtype=object)
    others = sorted(set(names) - set(FAMILIES))
    return {family: np.flatnonzero(of == family) for family in FAMILIES if family in names} | {
        other: np.flatnonzero(of == other) for other in others
    }
