"""Columns that are not modelled: constants, identifiers, and those that others determine.

A column of numbers whose present cells are all equal does not distinguish rows, but a normal family
could raise its density without bound by narrower clusters, most of all with a single cluster. Its
density is a point mass instead: 1 for the value, 0 for any other. A column of one level
distinguishes as little; there another level may occur, with probability 1 / (n + 2) after n cells
(Laplace's rule of succession), while the known one keeps 1, as known levels do in the families.
`SetApart` goes between the columns of the user and those of the model's Table, which are the
others, then the indicators, in the same order. A table of constants alone gets one column of zeros
in their place, so that there is something to cluster; in queries its cells are missing. Columns
that others determine (_collinear.py) are set apart too if their family requires it, and so are
identifiers (_identifiers.py), no cell of which is improbable.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..families import FAMILIES
from ._codecs import ConstantCodec
from ._identifiers import IdentifierCodec


class SetApart:
    """Which columns are in the model's Table, and what the others hold.

    Parameters
    ----------
    values : list of (float or None)
        For each column of the user what stands for its cells, its one number, the code of its one
        level, or nan of an identifier; None if the column is in the Table.
    log_others : dict of int to float
        The log probability of another value, of those that are constant.
    n_indicators : int
        Columns of the Table after these: indicators and parts of dates.
    collinear : collection of int, default=()
        Columns that others determine.

    Attributes
    ----------
    constants : dict of int to float
        What stands for the cells of each constant column and of each identifier.
    out : list of int
        All columns that are set apart.
    kept : int64 array
        The other columns: column i of the Table is column kept[i] of the user.
    stand_in : bool
        Whether the Table has a column of zeros and no other.
    """

    def __init__(self, values, log_others, n_indicators, collinear=()):
        self.n_columns, self.n_indicators = len(values), n_indicators
        self.log_others = log_others
        self.constants = {j: value for j, value in enumerate(values) if value is not None}
        self.out = [*self.constants, *collinear]
        self.kept = np.setdiff1d(np.arange(len(values)), self.out)
        self.stand_in = not len(self.kept) and not n_indicators

    @classmethod
    def of(cls, codecs, columns, named, proper, n_indicators):
        """Set constant columns and identifiers apart, and change both lists accordingly.

        Parameters
        ----------
        codecs, columns : list
            The codec and the encoded cells of each column.
        named : list of bool
            Whether the user named the column's family: a column of one level then stays.
        proper : collection of str or int
            Families and columns that stay in the Table.
        n_indicators : int
        """
        values, log_others = [None] * len(codecs), {}
        for j, codec in enumerate(codecs):
            if codec.family == IdentifierCodec.family:
                values[j] = np.nan
                continue
            number = FAMILIES[codec.family].bounds_density is not None
            level = codec.n_levels == 1 and not named[j]
            if not (number or level) or {j, codec.family} & set(proper):
                continue
            missing = codec.missing(columns[j])
            n_present = len(missing) - np.count_nonzero(missing)
            if number:
                value, values[j], log_other = codec.constant, codec.constant, -np.inf
            elif n_present > 1:
                value, values[j], log_other = codec.levels[0], 0, -np.log(n_present + 2.0)
            if values[j] is not None:
                codecs[j], log_others[j] = ConstantCodec(codec, value, log_other), log_other
                columns[j] = np.where(missing, np.nan, 0.0)
        return cls(values, log_others, n_indicators)

    def without(self, collinear):
        """Set columns that others determine apart, too."""
        values = [self.constants.get(j) for j in range(self.n_columns)]
        earlier = [j for j in self.out if j not in self.constants]
        return SetApart(values, self.log_others, self.n_indicators, [*earlier, *collinear])

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
        """0, or less for rows with another value in a column that is set apart and not given."""
        out = 0.0
        for j in self.out:
            log_other = self.log_others.get(j, -np.inf)
            if j not in given:
                out = np.where(columns[j] == 1.0, out + log_other, out)
        return out

    def surprisal(self, j, cells):
        """-log p of each cell of a column that is set apart; nan where it is missing."""
        return np.where(cells == 1.0, -self.log_others.get(j, -np.inf), cells)


def by_family(names):
    """Map each family to the places of its name, in the registry's order; last what is none."""
    of = np.array(names, dtype=object)
    others = sorted(set(names) - set(FAMILIES))
    return {family: np.flatnonzero(of == family) for family in FAMILIES if family in names} | {
        other: np.flatnonzero(of == other) for other in others
    }
