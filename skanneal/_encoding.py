"""From a user's table to the Table of the mixture, and back.

`Encoder` decides the family of every column at fit and gives each column the codec of its family.
Everything is done one column at a time, so that the float64 copy of one column is the largest
temporary.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numbers
from collections.abc import Mapping

import numpy as np
from sklearn.utils.validation import validate_data

from skanneal._codecs import CODECS, all_whole, present_values
from skanneal._containers import build_table, open_table

MAX_AUTO_LEVELS = 20  # families="auto" takes integers of more distinct values for numbers


class Encoder:
    """Decides families, offsets and levels at fit; encodes queries; decodes answers.

    Attributes
    ----------
    codecs : list
        One codec per column.
    families_ : dict of str to ndarray of int
        The positions of each family's columns, in the order of the registry; no empty families.
    layout : dict
        How the container of the fit looked: strings and lists, no cells.
    dtypes : list of str
        "boolean", "integer", "float" or "levels": what the cells of each column were.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.base import BaseEstimator
    >>> from skanneal._encoding import Encoder
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

    def fit(self, estimator, X, families="auto", name="X"):
        """`fit_encode` for those who need no cells.

        Returns
        -------
        self : Encoder
        """
        self.fit_encode(estimator, X, families, name)
        return self

    def fit_encode(self, estimator, X, families="auto", name="X"):
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

        Returns
        -------
        columns : list of ndarray of shape (n_rows,)
            Encoded cells, one array per column.

        Raises
        ------
        ValueError, TypeError
            Naming the column, if a cell cannot be of its family, is infinite, complex, a date or
            a container; if `families` names unknown families or columns, or a column twice.
        """
        table = open_table(X, name)
        chosen = _resolve_families(families, table)
        self.codecs, self.dtypes, columns = [], [], []
        for j, family in enumerate(chosen):
            column = table.column(j)
            codec = CODECS[family or _auto_family(column)].fit(column)
            columns.append(codec.encode(column))
            self.codecs.append(codec)
            self.dtypes.append(column.dtype)
        self.layout = table.layout()
        of_column = np.array([codec.family for codec in self.codecs])
        self.families_ = {
            family: np.flatnonzero(of_column == family) for family in CODECS if family in of_column
        }
        validate_data(estimator, X, reset=True, skip_check_array=True)
        return columns

    def encode(self, estimator, X, name="X"):
        """Encode a query.

        Parameters
        ----------
        estimator : BaseEstimator
            The estimator `fit_encode` was given: it knows the columns' names and number.
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
        table = open_table(X, name)
        validate_data(estimator, X, reset=False, skip_check_array=True)
        return [codec.encode(table.column(j)) for j, codec in enumerate(self.codecs)]

    @property
    def table_schema(self):
        """What Table needs: (dtypes, n_levels, offsets, scales), one entry per column.

        A list of str, an int64 array and two float64 arrays.
        """
        return (
            [codec.dtype for codec in self.codecs],
            np.array([codec.n_levels for codec in self.codecs], dtype=np.int64),
            np.array([codec.offset for codec in self.codecs], dtype=np.float64),
            np.array([codec.scale for codec in self.codecs], dtype=np.float64),
        )

    @property
    def levels_(self):
        """The levels of each column as a list, None for columns that are not categorical."""
        return [getattr(codec, "levels", None) for codec in self.codecs]

    def missing(self, columns):
        """Which encoded cells are missing.

        Parameters
        ----------
        columns : list of ndarray of shape (n_rows,)
            From `fit_encode` or `encode`.

        Returns
        -------
        masks : list of ndarray of bool of shape (n_rows,)
        """
        pairs = zip(self.codecs, columns, strict=True)
        return [codec.missing(cells) for codec, cells in pairs]

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
        replacements = []
        for j, cells in enumerate(columns):
            mask = table.column(j).missing if masks is None else masks[j]
            if mask is not None and mask.any():
                replacements.append((j, mask, self._decode(j, np.asarray(cells)[mask])))
        return table.fill(replacements)

    def _decode(self, j, cells):
        """Cells of column j as booleans, integers, floats or objects, as the fit's cells were."""
        values = self.codecs[j].decode(cells)
        if self.dtypes[j] == "integer" and values.dtype.kind in "bf":
            whole = values.dtype.kind == "b" or all_whole(values)
            return values.astype(np.int64) if whole else values
        if self.dtypes[j] == "float" and values.dtype.kind == "b":
            return values.astype(np.float64)
        return values


def _resolve_families(families, table):
    """The family of each column as named by the user; None where it is left to "auto"."""
    n_columns = table.shape[1]
    known = f"the families are {', '.join(map(repr, CODECS))}"
    if isinstance(families, str):
        if families != "auto" and families not in CODECS:
            raise ValueError(f"families={families!r} is neither 'auto' nor a family; {known}.")
        return [None if families == "auto" else families] * n_columns
    if not isinstance(families, Mapping):
        raise TypeError(
            "families must be 'auto', the name of a family or a mapping of families to columns,"
            f" got {type(families).__name__}."
        )
    chosen = [None] * n_columns
    for family, columns in families.items():
        if family not in CODECS:
            raise ValueError(f"families names the unknown family {family!r}; {known}.")
        for j in _positions(columns, family, table):
            if chosen[j] not in (None, family):
                raise ValueError(
                    f"families gives {table.label(j)} to two families, {chosen[j]!r} and"
                    f" {family!r}."
                )
            chosen[j] = family
    return chosen


def _positions(columns, family, table):
    """Positions of the columns that the user gave as names, positions or a boolean mask."""
    n_columns = table.shape[1]
    if isinstance(columns, (str, numbers.Integral)):
        columns = [columns]
    columns = np.asarray(columns, dtype=object).ravel().tolist()
    if columns and all(isinstance(column, (bool, np.bool_)) for column in columns):
        if len(columns) != n_columns:
            raise ValueError(
                f"families[{family!r}] is a mask of {len(columns)} columns, but there are"
                f" {n_columns}."
            )
        return np.flatnonzero(columns).tolist()
    positions = []
    for column in columns:
        if table.names is not None and isinstance(column, str) and column in table.names:
            positions.append(table.names.index(column))
        elif isinstance(column, numbers.Integral) and -n_columns <= column < n_columns:
            positions.append(int(column) % n_columns)
        else:
            raise ValueError(
                f"families[{family!r}] names the column {column!r}, which is absent"
                f" (there are {n_columns} columns)."
            )
    return positions


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
