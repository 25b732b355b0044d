"""From a user's table to the Table of the mixture, and back.

`Encoder` decides the family of every column at fit and gives each column the codec of its family.
Everything is done one column at a time, so that the float64 copy of one column is the largest
temporary.
"""

# SPDX-License-Identifier: BSD-3-Clause

import zlib
from copy import copy

import numpy as np
from sklearn.utils.validation import validate_data

from .._native._warning import warn
from ..families import Table, default_family, reads_sparse
from ._codecs import BooleanCodec, ConstantCodec, CountRowCodec, NumberCodec
from ._collinear import CollinearCodec, find_collinear
from ._column_names import ColumnNames
from ._columns import sparse_error
from ._containers import Sparse, build_table, open_table
from ._date_parts import DateParts
from ._dates import from_days, is_temporal
from ._empty_rows import warn_of_empty_rows
from ._family_choice import auto_family, families_given, family_of_amounts
from ._free_text import is_free_text
from ._identifiers import (
    IdentifierCodec,
    is_identifier,
    warn_of_left_out,
    warn_of_many_levels,
)
from ._jitter import Jitter
from ._levels import all_whole, present_values
from ._one_hot import warn_of_one_hot
from ._recoded import fit_codec
from ._schema import Schema
from ._set_apart import SetApart, by_family
from ._training_cells import TrainingCells


class Encoder:
    """Decides families, offsets and levels at fit; encodes queries; decodes answers.

    Encoded, a table has its own columns and after them the indicators: whether the cells of some of
    its columns are present, as booleans that are never missing. The periodic parts of dates, if the
    model has them, come last. The model's Table has no columns of one value, see `apart`.

    Attributes
    ----------
    codecs : list
        One codec per column.
    names : ColumnNames
    indicators : ndarray of int
        The columns whose presence is a column of its own.
    parts : DateParts
    open_numbers : ndarray of int
        The columns of numbers whose family was not given, so that another one may be chosen.
    amounts : dict of int to str
        For columns of numbers left to "auto" that are never negative, the family of logarithms.
    may_repeat : list of int
        The columns left to "auto" of which no other warning says that they count a fact again.
    apart : SetApart
    jitter : Jitter
        The lattices of rounded numbers.
    layout : dict
        The layout of the container of the fit: strings and lists, no cells.
    dtypes : list of str
        "boolean", "integer", "float", "levels", or of dates and durations "M8[D]" and the like:
        what the cells of each column were.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.base import BaseEstimator
    >>> from skanneal.encoding import Encoder
    >>> X = [[1.5, "b"], [2.5, "a"], [None, "b"]]
    >>> estimator = BaseEstimator()
    >>> encoder = Encoder()
    >>> [cells.tolist() for cells in encoder.fit_encode(estimator, X).exact]
    [[-1.0, 1.0, nan], [1, 0, 1]]
    >>> [cells.tolist() for cells in encoder.encode(estimator, [[2.0, "c"]])]
    [[0.0], [3]]
    >>> encoder.decode([np.array([2.0, 2.0, 2.0]), np.array([0, 0, 0])], like=X)
    [[1.5, 'b'], [2.5, 'a'], [2.0, 'b']]
    """

    def fit_encode(
        self,
        estimator,
        X,
        families="auto",
        name="X",
        indicators=(),
        proper=(),
        rounding=None,
        dates="elapsed",
        decide=auto_family,
    ):
        """Decide the family of every column and encode it.

        Parameters
        ----------
        estimator : BaseEstimator
            Gets `n_features_in_` and `feature_names_in_`, unless an error is raised.
        X : array-like, frame or list of rows of shape (n_rows, n_columns)
            Missing cells are NaN, None, pandas.NA or a null.
        families : "auto", str or mapping of str to columns, default="auto"
            One family for all columns, or each family's columns: names, positions, a boolean mask,
            or a single name or position. Columns left out are decided as in "auto", which leaves
            identifiers and free text out of the model, with a UserWarning.
        name : str, default="X"
            What error messages call the table.
        indicators : columns, default=()
            Names, positions or a mask of the columns whose presence becomes a boolean column.
        proper : collection of str or int, default=()
            Families and columns that are never set apart: their variances are given, so that a
            column of one value has a finite density.
        rounding : "auto", None or mapping of columns to steps, default=None
            Which numbers are rounded; see `Jitter`.
        dates : {"elapsed", "periodic"}, default="elapsed"
            Whether dates have their periodic parts beside them.
        decide : callable, default=auto_family
            ``decide(column)`` is the family of a column that is left to "auto".

        Returns
        -------
        cells : TrainingCells
            Encoded cells, one array per column, then the indicators and the parts of dates. Rows of
            counts are a csr_array in the first of their columns, None in the others.

        Raises
        ------
        ValueError, TypeError
            Naming the column, if a cell cannot be of its family, is infinite, complex, a date or
            a container; if `families` names unknown families or columns, or a column twice.
        """
        table = open_table(X, name, sparse=True)
        self.names = ColumnNames(table.names, table.shape[1])
        chosen = families_given(families, self.names)
        self.counts = [j for j, family in enumerate(chosen) if reads_sparse(family)]
        if isinstance(table, Sparse) and len(self.counts) < self.n_columns:
            raise sparse_error(name)
        self.indicators = np.unique(self.names.positions(indicators, "missing_indicator"))
        self.codecs, self.dtypes, noisy, exact = ([None] * self.n_columns for _ in range(4))
        self.jitter, self.amounts = Jitter(rounding, self.names), {}
        if self.counts:
            family = chosen[self.counts[0]]
            rows, dtypes = CountRowCodec.read(table, self.counts, name, family)
            noisy[self.counts[0]] = exact[self.counts[0]] = rows
            others = CountRowCodec(family, first=False)
            for j, dtype in zip(self.counts, dtypes):
                self.codecs[j], self.dtypes[j] = others, dtype
            self.codecs[self.counts[0]] = CountRowCodec(family, first=True)
        for j, family in enumerate(chosen):
            if self.codecs[j] is None:
                noisy[j], exact[j] = self._fit_column(j, table.column(j), family, decide)
        left_out = [j for j, c in enumerate(self.codecs) if c.family == IdentifierCodec.family]
        if len(left_out) == self.n_columns:  # nothing is left for them to identify
            for j in left_out:
                column = table.column(j)
                noisy[j], exact[j] = self._fit_column(j, column, decide(column), decide)
            left_out = []
        self.layout = table.layout()
        self.jitter.check([codec.family for codec in self.codecs])
        named, number = [family is not None for family in chosen], default_family("float")
        open_numbers = [j for j, c in enumerate(self.codecs) if c.family == number and not named[j]]
        numbers = [j for j, c in enumerate(self.codecs) if not (c.n_levels or j in self.counts)]
        self.parts = DateParts.of(table, numbers if dates == "periodic" else (), self.names)
        n_others = len(self.indicators) + len(self.parts.codecs)
        self.apart = SetApart.of(self.codecs, exact, named, proper, n_others)
        for j in self.apart.out:
            noisy[j] = exact[j]
        self.open_numbers = np.intersect1d(open_numbers, self.apart.kept)
        self.amounts = {j: of for j, of in self.amounts.items() if of and j in self.apart.kept}
        validate_data(estimator, X, reset=True, skip_check_array=True)
        warn_of_left_out(self.names, self.codecs, left_out)
        warn_of_many_levels(self.names, self.codecs, named, table.shape[0])
        hot = warn_of_one_hot(self.names, self.codecs, exact, named)
        self.may_repeat = [j for j, given in enumerate(named) if not given and j not in hot]
        missing = self.missing(exact)
        warn_of_empty_rows([missing[j] for j in range(self.n_columns) if j not in left_out])
        others = self._presence(exact) + self.parts.encode(table)
        return TrainingCells(noisy + others, exact + others)

    def _fit_column(self, j, column, family, decide):
        """Decide the codec of a column, whose family None leaves to `decide`; return the column's
        noisy and exact cells."""
        self.dtypes[j] = column.dtype
        if family is None and (is_identifier(column) or is_free_text(column)):
            self.codecs[j] = IdentifierCodec.fit(column)
            exact = self.codecs[j].encode(column)
            return exact, exact
        self.codecs[j], *cells = fit_codec(self.jitter, j, column, family or decide(column))
        if family is None:
            self.amounts[j] = family_of_amounts(column, self.codecs[j].family)
        return cells

    def encode(self, estimator, X, name="X"):
        """Encode a query.

        Parameters
        ----------
        estimator : BaseEstimator or None
            The estimator that `fit_encode` was given, to check the columns' names and number. None:
            they have been checked.
        X : array-like, frame or list of rows of shape (n_rows, n_columns)
            Any container, whatever the container of the fit was.
        name : str, default="X"

        Returns
        -------
        columns : list of ndarray of shape (n_rows,)

        Raises
        ------
        ValueError, TypeError
            As `fit_encode`; also if number, names or order of the columns differ from the fit's.
        """
        table = open_table(X, name, sparse=len(self.counts) == self.n_columns)
        if estimator is not None:
            validate_data(estimator, X, reset=False, skip_check_array=True)
        columns = [
            None if isinstance(codec, CountRowCodec) else self.encode_column(j, table.column(j))
            for j, codec in enumerate(self.codecs)
        ]
        if self.counts:
            columns[self.counts[0]] = self.read_counts(table, self.counts, name)
        deviations = {
            j: codec.deviates(columns[j], columns)
            for j, codec in enumerate(self.codecs)
            if isinstance(codec, CollinearCodec)
        }
        columns = [deviations.get(j, cells) for j, cells in enumerate(columns)]
        return columns + self._presence(columns) + self.parts.encode(table)

    def with_family(self, columns, family):
        """Return the encoder with another family of numbers for some columns.

        Parameters
        ----------
        columns : sequence of int
            Some of `open_numbers`.
        family : str
            Its cells must be those of the family that the columns have: no row is encoded anew.
        """
        new = copy(self)
        new.codecs = list(self.codecs)
        for j in columns:
            new.codecs[j] = copy(self.codecs[j])
            new.codecs[j].family = family
        return new

    def without_collinear(self, exact, columns):
        """Return the encoder with those columns set apart that are linear functions of others.

        Parameters
        ----------
        exact : list of ndarray of shape (n_rows,)
            Cells of the fit, which noise would take off the plane; see `TrainingCells`.
        columns : sequence of int
            Among which to look: numbers of one family.
        """
        found = find_collinear(self.codecs, exact, columns)
        if not found:
            return self
        new = copy(self)
        new.codecs = [found.get(j, codec) for j, codec in enumerate(self.codecs)]
        new.apart = self.apart.without(found)
        new.open_numbers = np.setdiff1d(self.open_numbers, list(found))
        return new

    def table(self, cells):
        """Return the Table of the fit's rows, of one of the lists that `fit_encode` returned."""
        table = Table(*self.table_schema)
        table.append(self.apart.stored(cells, 0.0))
        return table

    def set_apart(self, columns):
        """What the columns that are set apart hold, in the user's units.

        Parameters
        ----------
        columns : list of (ndarray or None)
            The other columns, in the user's units.

        Returns
        -------
        values : dict of int to (float or ndarray)
        """
        return {
            j: codec.value(columns, self.codecs)
            if isinstance(codec, CollinearCodec)
            else self.apart.constants[j]
            for j, codec in enumerate(self.codecs)
            if j in self.apart.out
        }

    def encode_column(self, j, column):
        """Encode the cells of column j of a query: dates where the fit had dates, else none."""
        kinds = [dtype[0] if is_temporal(dtype) else "" for dtype in (self.dtypes[j], column.dtype)]
        if kinds[0] != kinds[1] and len(present_values(column)):
            named = {"M": "dates", "m": "durations", "": "neither dates nor durations"}
            raise TypeError(
                f"{column.label} held {named[kinds[0]]} in fit, but holds {named[kinds[1]]} now."
            )
        return self.codecs[j].encode(column)

    def read_counts(self, table, columns, name):
        """Rows of counts in some columns of a query, as csr_array."""
        family = self.codecs[self.counts[0]].family
        return CountRowCodec.read(table, columns, name, family)[0]

    @property
    def n_columns(self):
        """Number of the user's columns."""
        return self.names.n_columns

    def indicators_of(self, positions):
        """Places of the columns' indicators in the encoded table: a list of int."""
        return (self.n_columns + np.flatnonzero(np.isin(self.indicators, positions))).tolist()

    def parts_of(self, positions):
        """The parts of the dates in these columns: their codecs by places in the encoded table."""
        first = self.n_columns + len(self.indicators)
        places = enumerate(self.parts.codecs, start=first)
        return {place: codec for place, codec in places if codec.source in positions}

    def known_by(self, positions):
        """Places in the encoded table of all that is known if these columns are: a list of int."""
        return [*positions, *self.indicators_of(positions), *self.parts_of(positions)]

    def _presence(self, columns):
        """The indicators' cells."""
        if not len(self.indicators):
            return []
        missing = self.missing(columns)
        return [np.uint8(~missing[j]) for j in map(int, self.indicators)]

    @property
    def families_(self):
        """The positions of each family's columns, and those of the columns set apart."""
        return by_family([codec.family for codec in self.codecs])

    @property
    def given_families(self):
        """`families_` as if no column were set apart."""
        return by_family([getattr(codec, "given_family", codec.family) for codec in self.codecs])

    @property
    def shown_families(self):
        """`families_` by the columns of the Table, those of the user's columns that it has."""
        return by_family([self.codecs[j].family for j in self.apart.kept])

    @property
    def table_families(self):
        """The families of all columns of the Table."""
        return by_family([codec.family for codec in self._table_codecs])

    @property
    def _table_codecs(self):
        if self.apart.stand_in:
            own = [c.codec for c in self.codecs if isinstance(c, ConstantCodec)]
            levels = NumberCodec(default_family("float"), 0.0, 1.0)  # where there is no number
            return [next((codec for codec in own if not codec.n_levels), levels)]
        indicators = [BooleanCodec(default_family("boolean"))] * len(self.indicators)
        return [self.codecs[j] for j in self.apart.kept] + indicators + self.parts.codecs

    @property
    def table_schema(self):
        """The Schema of the Table."""
        return Schema.of(self._table_codecs)

    @property
    def levels_(self):
        """The levels of each column as a list, None for columns that are not categorical."""
        return [getattr(codec, "levels", None) for codec in self.codecs]

    @property
    def atoms_(self):
        """By the position of each column with atoms these, in the user's units."""
        atoms = {j: getattr(codec, "atoms", ()) for j, codec in enumerate(self.codecs)}
        return {j: values for j, values in atoms.items() if len(values)}

    def fingerprint(self, table):
        """Return a fingerprint of a table: of its encoded cells, units and constants."""
        units = table.offsets.tolist(), table.scales.tolist(), self.apart.constants
        header = (table.dtypes, table.n_rows, *units)
        crc = zlib.crc32(repr(header).encode())
        for part in table.bytes():
            crc = zlib.crc32(part, crc)
        return crc

    def rounded(self, columns):
        """Simulated columns, numbers rounded as those of the fit were; atoms stay, and None."""
        return [None if c is None else self._rounded(j, c) for j, c in enumerate(columns)]

    def _rounded(self, j, values):
        near = self.jitter.nearest(j, values, self.codecs)
        if j not in self.atoms_:
            return near
        exact = self.codecs[j].decode(values)  # an atom may be off the lattice
        return np.where(np.isin(exact, self.atoms_[j]), exact, near)

    def missing_columns(self, n_rows):
        """Encoded columns of missing cells, the indicators' among them."""
        cells = self.table_schema.missing_cells(n_rows)
        return self.apart.spread(cells, lambda j: np.full(n_rows, np.nan))

    def missing(self, columns):
        """Which encoded cells are missing.

        Parameters
        ----------
        columns : list of ndarray of shape (n_rows,)
            From `fit_encode` or `encode`.

        Returns
        -------
        masks : list of ndarray of bool of shape (n_rows,)
            One per column, none for the indicators.
        """
        whole = np.broadcast_to(False, next(c for c in columns if c is not None).shape[0])
        return [
            whole if cells is None else codec.missing(cells)
            for codec, cells in zip(self.codecs, columns)
        ]

    def decode(self, columns, like=None, masks=None):
        """Turn answers into a container of the user's sort.

        Dtypes are kept if they can hold the answers. Numbers are not rounded: fractions make an
        integer column float64 (nullable if it was), and text in an array of numbers makes it an
        array of objects.

        Parameters
        ----------
        columns : list of ndarray of shape (n_rows,)
            Numbers and counts in the user's units, codes of levels and booleans.
        like : container, default=None
            A table whose missing cells are filled, into a new one of its sort; its observed cells
            stay. None makes a table like the one given to `fit_encode`.
        masks : list of ndarray of bool of shape (n_rows,), default=None
            The cells of `like` to fill; None fills those that are missing.

        Returns
        -------
        table : ndarray, frame or list of rows
        """
        if like is None:
            return build_table(self.layout, [self._decode(j, c) for j, c in enumerate(columns)])
        table = open_table(like, "like")
        if masks is None:
            masks = [table.column(j).missing for j in range(len(columns))]
        pairs = zip(columns, masks, strict=True)
        cells = [np.empty(0) if m is None else np.asarray(c)[m] for c, m in pairs]
        return table.fill(self.replacements(cells, masks))

    def replacements(self, cells, masks):
        """What to fill a container with.

        Parameters
        ----------
        cells : list of ndarray
            For each column, what to put where its mask is true: numbers in the user's units, codes.
        masks : list of ndarray of bool of shape (n_rows,)

        Returns
        -------
        replacements : list of (int, ndarray, ndarray)
            Column, mask and decoded cells, for the columns with cells to fill. A column of which
            fit saw no level is left as it is, with a warning.
        """
        pairs = enumerate(zip(cells, masks, strict=True))
        asked = [(j, new, mask) for j, (new, mask) in pairs if len(new)]
        unknown = [j for j, *_ in asked if self.levels_[j] == [None]]
        unknown += [j for j, *_ in asked if self.codecs[j].family == IdentifierCodec.family]
        if unknown:
            warn(
                f"No cell was observed in fit, or the column was taken for an identifier or text, "
                f"hence nothing is known that could fill the gaps of "
                f"{', '.join(map(self.names.label, unknown))}: they stay.",
            )
        return [(j, mask, self._decode(j, new)) for j, new, mask in asked if j not in unknown]

    def _decode(self, j, cells):
        """Cells of column j as booleans, integers, floats or objects, like the fit's cells."""
        values = self.codecs[j].decode(cells)
        if is_temporal(self.dtypes[j]):
            return from_days(values, self.dtypes[j], getattr(self.codecs[j], "lowest", -np.inf))
        if self.dtypes[j] == "integer" and values.dtype.kind in "bf":
            whole = values.dtype.kind == "b" or all_whole(values)
            return values.astype(np.int64) if whole else values
        if self.dtypes[j] == "float" and values.dtype.kind == "b":
            return values.astype(np.float64)
        return values
