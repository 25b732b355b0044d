"""From a user's table to the Table of the mixture, and back.

`Encoder` decides the family of every column at fit and gives each column the codec of its family.
Everything is done one column at a time, so that the float64 copy of one column is the largest
temporary.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numbers
import warnings
import zlib
from collections.abc import Mapping

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils.validation import validate_data

from skanneal.encoding._codecs import (
    CODECS,
    ConstantCodec,
    CountRowCodec,
    all_whole,
    present_values,
)
from skanneal.encoding._columns import read_objects, sparse_error
from skanneal.encoding._containers import Sparse, build_table, column_label, open_table
from skanneal.encoding._set_apart import SetApart, by_family
from skanneal.families import FAMILIES, MISSING_COUNT

MAX_AUTO_LEVELS = 20  # families="auto" takes integers of more distinct values for numbers


class Encoder:
    """Decides families, offsets and levels at fit; encodes queries; decodes answers.

    Encoded, a table has its own columns and after them the indicators: whether the cells of some of
    its columns are present, as booleans that are never missing. The model's Table has no columns of
    one value: `apart` goes between the two.

    Attributes
    ----------
    codecs : list
        One codec per column.
    names : list of str or None
        The columns' names.
    indicators : ndarray of int
        The columns whose presence is a column of its own.
    families_ : dict of str to ndarray of int
        The positions of each family's columns, in the order of the registry; no empty families.
        Last, as "constant", those of the columns that are set apart.
    given_families : dict of str to ndarray of int
        The same before columns were set apart.
    apart : SetApart
    layout : dict
        How the container of the fit looked: strings and lists, no cells.
    dtypes : list of str
        "boolean", "integer", "float" or "levels": what the cells of each column were.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.base import BaseEstimator
    >>> from skanneal.encoding._encoding import Encoder
    >>> X = [[1.5, "b"], [2.5, "a"], [None, "b"]]
    >>> estimator = BaseEstimator()
    >>> encoder = Encoder()
    >>> [cells.tolist() for cells in encoder.fit_encode(estimator, X)]
    [[-1.0, 1.0, nan], [1, 0, 1]]
    >>> [cells.tolist() for cells in encoder.encode(estimator, [[2.0, "c"]])]
    [[0.0], [3]]
    >>> encoder.decode([np.array([2.0, 2.0, 2.0]), np.array([0, 0, 0])], like=X)
    [[1.5, 'b'], [2.5, 'a'], [2.0, 'b']]
    """

    def fit(self, estimator, X, families="auto", name="X", indicators=(), proper=()):
        """`fit_encode` for those who need no cells.

        Returns
        -------
        self : Encoder
        """
        self.fit_encode(estimator, X, families, name, indicators, proper)
        return self

    def fit_encode(self, estimator, X, families="auto", name="X", indicators=(), proper=()):
        """Decide the family of every column and encode it.

        Parameters
        ----------
        estimator : BaseEstimator
            Gets `n_features_in_` and `feature_names_in_`, unless an error is raised.
        X : array-like, frame or list of rows of shape (n_rows, n_columns)
            Missing cells are NaN, None, pandas.NA or a null.
        families : "auto", str or mapping of str to columns, default="auto"
            One family for all columns, or each family's columns: names, positions, a boolean mask,
            or a single name or position. Columns left out are decided as in "auto".
        name : str, default="X"
            What error messages call the table.
        indicators : columns, default=()
            Names, positions or a mask of the columns whose presence becomes a boolean column.
        proper : collection of str or int, default=()
            Families, and columns, of which no column is set apart: variances are given, and with
            them a density that a column of one value does not make infinite.

        Returns
        -------
        columns : list of ndarray of shape (n_rows,)
            Encoded cells, one array per column, the indicators last. Rows of counts are a csr_array
            in the first of their columns, None in the others.

        Raises
        ------
        ValueError, TypeError
            Naming the column, if a cell cannot be of its family, is infinite, complex, a date or
            a container; if `families` names unknown families or columns, or a column twice.
        """
        table = open_table(X, name, sparse=True)
        self.names, self.n_columns = table.names, table.shape[1]
        chosen = self._resolve_families(families)
        if isinstance(table, Sparse) and set(chosen) != {CountRowCodec.family}:
            raise sparse_error(name)
        self.indicators = np.unique(self.positions(indicators, "missing_indicator"))
        self.codecs, self.dtypes, columns = ([None] * self.n_columns for _ in range(3))
        self.counts = [j for j, family in enumerate(chosen) if family == CountRowCodec.family]
        if self.counts:
            rows, dtypes = CountRowCodec.read(table, self.counts, name)
            columns[self.counts[0]] = rows
            others = CountRowCodec(first=False)
            for j, dtype in zip(self.counts, dtypes):
                self.codecs[j], self.dtypes[j] = others, dtype
            self.codecs[self.counts[0]] = CountRowCodec(first=True)
        for j, family in enumerate(chosen):
            if self.codecs[j] is None:
                column = table.column(j)
                self.codecs[j] = CODECS[family or _auto_family(column)].fit(column)
                self.dtypes[j] = column.dtype
                columns[j] = self.codecs[j].encode(column)
        self.layout = table.layout()
        self.given_families = by_family(self.codecs)
        self.apart = SetApart.of(self.codecs, columns, proper, len(self.indicators))
        self.families_ = by_family(self.codecs)
        validate_data(estimator, X, reset=True, skip_check_array=True)
        return columns + self._presence(columns)

    def encode(self, estimator, X, name="X"):
        """Encode a query.

        Parameters
        ----------
        estimator : BaseEstimator or None
            The estimator `fit_encode` was given: it knows the columns' names and number. None:
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
            None if codec.family == CountRowCodec.family else codec.encode(table.column(j))
            for j, codec in enumerate(self.codecs)
        ]
        if self.counts:
            columns[self.counts[0]] = CountRowCodec.read(table, self.counts, name)[0]
        return columns + self._presence(columns)

    def encode_cells(self, cells, name="given"):
        """Encode some cells of one row.

        Parameters
        ----------
        cells : mapping of columns to values
            Columns by name or position.
        name : str, default="given"
            What error messages call the mapping.

        Returns
        -------
        columns : list of ndarray of shape (1,)
            Missing where nothing is given; an indicator is present where its column is given, be
            it as missing.

        Raises
        ------
        ValueError, TypeError
            For unknown columns, values that contradict a column's type, levels of which fit knows
            nothing, and missing values in columns without an indicator.
        """
        columns, counts, named = self.missing_columns(1), {}, []
        for label, value in cells.items():
            (j,) = self.positions([label], name)
            named.append(j)
            at = self.indicators_of([j])
            codec, column = self.codecs[j], read_objects(self.label(j), [value])
            if codec.family == CountRowCodec.family:
                counts[j] = value
                continue
            columns[j] = codec.encode(column)
            if codec.missing(columns[j])[0] and not len(at):
                raise ValueError(
                    f"{name} has a missing value for {column.label}, which has no missing_indicator"
                )
            if codec.family == "categorical" and columns[j][0] > codec.n_levels:
                raise ValueError(f"{name}: {column.label} has no level {value!r}")
            if codec.family == ConstantCodec.family and columns[j][0] == 1.0:
                raise ValueError(
                    f"{name}: {column.label} is {codec.value:g} in all rows of the fit, got"
                    f" {value!r}, which has density 0"
                )
            for i in at:
                columns[i] = np.uint8(~codec.missing(columns[j]))
        self.check_whole_rows(named, name)
        if counts:
            table = open_table([[counts[j] for j in self.counts]], name)
            table.names = self.names and [self.names[j] for j in self.counts]
            places = range(len(counts))
            columns[self.counts[0]] = CountRowCodec.read(table, places, name)[0]
        return columns

    def check_whole_rows(self, positions, what):
        """Refuse some but not all columns of a row family.

        Parameters
        ----------
        positions : sequence of int
        what : str
            What error messages call what names them.
        """
        for family, columns in self.families_.items():
            named = np.isin(columns, positions)
            if family in FAMILIES and FAMILIES[family].joint and named.any() and not named.all():
                raise ValueError(
                    f"{what} has some columns of the family {family!r}, which describes whole rows,"
                    f" but not {self.label(columns[~named][0])}: name all of them or none."
                )

    def put_given(self, columns, known, given):
        """Put what is given into simulated rows, and take out what their indicators say is missing.

        Parameters
        ----------
        columns : list of ndarray of shape (n_rows,)
            Numbers in the user's units and codes, indicators last, wherever nothing is known.
        known : list of ndarray of shape (1,)
            From `encode_cells`.
        given : mapping of columns to values
            What `encode_cells` was given.

        Returns
        -------
        columns : list of ndarray of shape (n_rows,)
            Without the indicators; for `decode`.
        """
        out = list(columns[: self.n_columns])
        n_rows = len(out[0])
        for label, value in given.items():
            (j,) = self.positions([label], "given")
            if known[j] is None or not self.codecs[j].missing(known[j])[0]:
                coded = self.codecs[j].n_levels > 0
                out[j] = np.full(n_rows, int(known[j][0]) if coded else float(value))
        for i, j in enumerate(self.indicators, start=self.n_columns):
            present = np.where(known[i] == 2, columns[i], known[i])
            out[j] = np.where(present == 1, out[j], self.codecs[j].n_levels or np.nan)
        return out

    def indicators_of(self, positions):
        """Where the indicators of columns stand in the encoded table: a list of int."""
        return (self.n_columns + np.flatnonzero(np.isin(self.indicators, positions))).tolist()

    def _presence(self, columns):
        """The indicators' cells."""
        if not len(self.indicators):
            return []
        missing = self.missing(columns)
        return [np.uint8(~missing[j]) for j in map(int, self.indicators)]

    def positions(self, columns, what):
        """Positions of columns given as names, positions or a boolean mask.

        Parameters
        ----------
        columns : str, int, sequence of these, or sequence of bool
        what : str
            What error messages call the argument.

        Returns
        -------
        positions : list of int
        """
        if isinstance(columns, (str, numbers.Integral)):
            columns = [columns]
        columns = np.asarray(columns, dtype=object).ravel().tolist()
        if columns and all(isinstance(column, (bool, np.bool_)) for column in columns):
            if len(columns) != self.n_columns:
                raise ValueError(
                    f"{what} is a mask of {len(columns)} columns, but there are {self.n_columns}."
                )
            return np.flatnonzero(columns).tolist()
        return [self._position(column, what) for column in columns]

    def _position(self, column, what):
        if self.names is not None and isinstance(column, str) and column in self.names:
            return self.names.index(column)
        if isinstance(column, numbers.Integral) and -self.n_columns <= column < self.n_columns:
            return int(column) % self.n_columns
        raise ValueError(
            f"{what} names the column {column!r}, which is absent (there are {self.n_columns}"
            " columns)."
        )

    def label(self, j):
        """What error messages call column j."""
        return column_label(self.names, j)

    @property
    def shown_families(self):
        """`families_` by the columns of the Table, those of the user's columns that it has."""
        return by_family([self.codecs[j] for j in self.apart.kept])

    @property
    def table_families(self):
        """The families of all columns of the Table."""
        return by_family(self._table_codecs)

    @property
    def _table_codecs(self):
        if self.apart.stand_in:
            return [CODECS[next(iter(self.given_families))](self.apart.constants[0], 1.0)]
        indicators = [CODECS["bernoulli"]()] * len(self.indicators)
        return [self.codecs[j] for j in self.apart.kept] + indicators

    @property
    def table_schema(self):
        """What Table needs: (dtypes, n_levels, offsets, scales), one entry per column of it.

        A list of str, an int64 array and two float64 arrays.
        """
        codecs = self._table_codecs
        return (
            [codec.dtype for codec in codecs],
            np.array([codec.n_levels for codec in codecs], dtype=np.int64),
            np.array([codec.offset for codec in codecs], dtype=np.float64),
            np.array([codec.scale for codec in codecs], dtype=np.float64),
        )

    @property
    def levels_(self):
        """The levels of each column as a list, None for columns that are not categorical."""
        return [getattr(codec, "levels", None) for codec in self.codecs]

    def fingerprint(self, table):
        """Return a number that tells tables apart: by encoded cells, units and constants."""
        units = table.offsets.tolist(), table.scales.tolist(), self.apart.constants
        header = (table.dtypes, table.n_rows, *units)
        crc = zlib.crc32(repr(header).encode())
        for part in table.bytes():
            crc = zlib.crc32(part, crc)
        return crc

    def missing_columns(self, n_rows):
        """Encoded columns of missing cells, the indicators' among them."""
        cells = missing_cells(self.table_schema, n_rows)
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
            Numbers in the user's units for normal and poisson columns, codes for categorical and
            bernoulli ones.
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
        if unknown:
            warnings.warn(
                f"No cell was observed in fit, hence no level is known that could fill the gaps of "
                f"{', '.join(map(self.label, unknown))}: they stay.",
                stacklevel=3,  # the caller of impute
            )
        return [(j, mask, self._decode(j, new)) for j, new, mask in asked if j not in unknown]

    def _resolve_families(self, families):
        """The family of each column as named by the user; None where it is left to "auto"."""
        known = f"the families are {', '.join(map(repr, CODECS))}"
        if isinstance(families, str):
            if families != "auto" and families not in CODECS:
                raise ValueError(f"families={families!r} is neither 'auto' nor a family; {known}.")
            return [None if families == "auto" else families] * self.n_columns
        if not isinstance(families, Mapping):
            raise TypeError(
                "families must be 'auto', the name of a family or a mapping of families to columns,"
                f" got {type(families).__name__}."
            )
        chosen = [None] * self.n_columns
        for family, columns in families.items():
            if family not in CODECS:
                raise ValueError(f"families names the unknown family {family!r}; {known}.")
            for j in self.positions(columns, f"families[{family!r}]"):
                if chosen[j] not in (None, family):
                    raise ValueError(
                        f"families gives {self.label(j)} to two families, {chosen[j]!r} and"
                        f" {family!r}."
                    )
                chosen[j] = family
        return chosen

    def _decode(self, j, cells):
        """Cells of column j as booleans, integers, floats or objects, as the fit's cells were."""
        values = self.codecs[j].decode(cells)
        if self.dtypes[j] == "integer" and values.dtype.kind in "bf":
            whole = values.dtype.kind == "b" or all_whole(values)
            return values.astype(np.int64) if whole else values
        if self.dtypes[j] == "float" and values.dtype.kind == "b":
            return values.astype(np.float64)
        return values


def missing_cells(schema, n_rows):
    """Columns of missing cells, as a Table takes them.

    Parameters
    ----------
    schema : tuple
        What `Encoder.table_schema` gives.
    n_rows : int
        Number of rows.

    Returns
    -------
    columns : list of ndarray of shape (n_rows,)
    """
    dtypes, n_levels = schema[:2]
    width = 1 + dtypes.count("none")
    blank = {"entries": lambda: csr_array((n_rows, width), dtype=np.uint32), "none": lambda: None}
    return [
        blank[dtype]()
        if dtype in blank
        else np.full(n_rows, np.nan if dtype == "f4" else levels or MISSING_COUNT, dtype=dtype)
        for dtype, levels in zip(dtypes, n_levels)
    ]


def _auto_family(column):
    """The family by dtype; few distinct integers are taken for codes, many for numbers."""
    if column.dtype == "integer":
        return "categorical" if _has_few_values(column) else "normal"
    return {"boolean": "bernoulli", "float": "normal", "levels": "categorical"}[column.dtype]


def _has_few_values(column):
    """Whether there are at most MAX_AUTO_LEVELS distinct integers, seen as early as possible."""
    values = present_values(column)
    distinct, start, size = values[:0], 0, 1024
    while start < values.size and distinct.size <= MAX_AUTO_LEVELS:
        distinct = np.union1d(distinct, values[start : start + size])
        start, size = start + size, 65536
    return distinct.size <= MAX_AUTO_LEVELS
