"""Tables as users hold them (numpy, pandas, polars, lists), read and rebuilt one column at a time.

`open_table` wraps any supported container in a class with one interface:

    shape, names         the number of rows and columns; the columns' names or None
    column(j)            column j as a `Column`: plain NumPy values and a mask of missing cells
    layout()             a description made of strings and lists
    build(layout, ...)   a new container of that layout
    fill(replacements)   a new container of the same sort with some cells replaced; each
                         replacement is (column, mask of rows, values for the masked rows)
    select(columns)      a container of the same sort with these columns, by position
    append(names, new)   a container of the same sort with columns of booleans more

The classes go by the attributes of the containers rather than by their libraries' types, so that
neither pandas nor polars is imported unless the user has it. Only one column at a time is ever
converted: half a million rows of a read-only memory map cost one column of memory.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numbers
from collections import Counter

import numpy as np
from scipy.sparse import csr_array, issparse

from skanneal.encoding._columns import (
    Column,
    complex_error,
    read_array,
    read_objects,
    sparse_error,
    temporal_error,
)


def _dimension_error(n_dimensions):
    if n_dimensions > 2:
        return ValueError(f"Found array with dim {n_dimensions}, while dim <= 2 is required.")
    got = "scalar" if n_dimensions == 0 else "1D"
    return ValueError(
        f"Expected 2D array, got {got} array instead.\nReshape your data either using"
        " array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) if it"
        " contains a single sample."
    )


def open_table(X, name, sparse=False):
    """Wrap a table; refuse what is none.

    Parameters
    ----------
    X : array-like, frame or list of rows
    name : str
        What error messages call it.
    sparse : bool, default=False
        Whether it may be a sparse array or matrix.

    Returns
    -------
    table : Array, PandasFrame, PolarsFrame, Rows or Sparse

    Raises
    ------
    TypeError, ValueError
        For sparse, structured and masked arrays, lazy frames, ragged rows, data that is not
        two-dimensional, no rows or no columns.
    """
    if issparse(X) and not sparse:
        raise sparse_error(name)
    if isinstance(X, np.ma.MaskedArray):
        raise TypeError(f"Masked arrays are not supported: pass {name}.filled(numpy.nan).")
    if hasattr(X, "collect_schema") and hasattr(X, "collect"):
        raise TypeError(f"{name} is a lazy frame: pass {name}.collect().")
    if issparse(X):
        table = Sparse(X, name)
    elif hasattr(X, "iloc") and hasattr(X, "columns"):
        table = PandasFrame(X)
    elif hasattr(X, "to_series") and hasattr(X, "get_columns"):
        table = PolarsFrame(X)
    elif isinstance(X, (list, tuple)) and len(X) > 0 and not isinstance(X[0], np.ndarray):
        table = Rows(X, name)
    else:
        table = Array(X, name)
    n_rows, n_columns = table.shape
    for count, what in ((n_rows, "sample(s)"), (n_columns, "feature(s)")):
        if count == 0:
            raise ValueError(
                f"Found array with 0 {what} (shape={table.shape}) while a minimum of 1 is required."
            )
    return table


def column_label(names, j):
    """What error messages call column j of a table with these column names, or None."""
    return f"column {j}" if names is None else f"column {names[j]!r}"


class _Table:
    """What the containers share: labels for error messages."""

    names = None

    def label(self, j):
        """What error messages call column j."""
        return column_label(self.names, j)


class Array(_Table):
    """A NumPy array, or anything that turns into one."""

    def __init__(self, X, name):
        if isinstance(X, (list, tuple)) and len({np.shape(row) for row in X}) > 1:
            raise ValueError(f"The rows of {name} differ in length.")
        self.X = np.asarray(X)
        if self.X.dtype.names is not None:
            raise TypeError(
                f"Structured arrays are not supported: pass {name} as a pandas or polars frame, or"
                " through numpy.lib.recfunctions.structured_to_unstructured."
            )
        if self.X.dtype.kind == "c":
            raise complex_error(name)
        if self.X.ndim != 2:
            raise _dimension_error(self.X.ndim)
        self.shape = self.X.shape

    def column(self, j):
        return read_array(self.label(j), self.X[:, j])

    def layout(self):
        return {"container": "array", "dtype": self.X.dtype.str}

    def fill(self, replacements):
        dtype = self.X.dtype
        for _, _, values in replacements:
            dtype = holding_dtype(dtype, values)
        filled = self.X.astype(dtype)
        for j, mask, values in replacements:
            filled[mask, j] = values.astype(dtype)
        return filled

    def select(self, columns):
        return self.X[:, columns]

    def append(self, names, new):
        return np.column_stack([self.X, *new])

    @staticmethod
    def build(layout, columns):
        dtype = np.dtype(layout["dtype"])
        for values in columns:
            dtype = holding_dtype(dtype, values)
        built = np.empty((len(columns[0]), len(columns)), dtype)
        for j, values in enumerate(columns):
            built[:, j] = values.astype(dtype)
        return built


class Sparse(_Table):
    """A SciPy sparse array or matrix of numbers; never made dense."""

    def __init__(self, X, name):
        if X.ndim != 2:
            raise _dimension_error(X.ndim)
        if X.dtype.kind == "c":
            raise complex_error(name)
        self.X, self.shape = X, X.shape

    def entries(self):
        """What is not 0, as a csr_array of numbers in canonical format, duplicates summed."""
        X = self.X
        summed = X.format == "csr" and X.has_canonical_format
        if X.dtype.kind == "b" or (X.dtype.kind in "iu" and not summed):
            X = X.astype(np.int64)  # holds the sums of duplicates
        counts = csr_array(X)  # of a CSR matrix the caller's own arrays
        if not counts.has_canonical_format or not counts.data.all():
            counts = counts.copy()
            counts.sum_duplicates()
            counts.eliminate_zeros()
        return counts

    def layout(self):
        return {"container": "array", "dtype": self.X.dtype.str}

    def fill(self, replacements):
        return self.X.copy()  # counts have no missing cells


class Rows(_Table):
    """A list of rows; each column gets its own dtype, unlike in an array made of the list."""

    def __init__(self, X, name):
        if any(isinstance(row, (str, bytes, dict)) or not hasattr(row, "__len__") for row in X):
            raise _dimension_error(1)
        self.X = [row if isinstance(row, (list, tuple)) else list(row) for row in X]
        width = len(X[0])
        for i, row in enumerate(self.X):
            if len(row) != width:
                raise ValueError(
                    f"The rows of {name} differ in length: row 0 has {width} cells, row {i} has"
                    f" {len(row)}."
                )
        self.shape = (len(X), width)

    def column(self, j):
        return read_objects(self.label(j), [row[j] for row in self.X])

    def layout(self):
        return {"container": "rows"}

    def fill(self, replacements):
        rows = [list(row) for row in self.X]
        for j, mask, values in replacements:
            for i, value in zip(np.flatnonzero(mask).tolist(), values.tolist(), strict=True):
                rows[i][j] = value
        return [
            tuple(row) if isinstance(old, tuple) else row
            for row, old in zip(rows, self.X, strict=True)
        ]

    def select(self, columns):
        return [[row[j] for j in columns] for row in self.X]

    def append(self, names, new):
        return [[*row, *more] for row, *more in zip(self.X, *(c.tolist() for c in new))]

    @staticmethod
    def build(layout, columns):
        return [list(row) for row in zip(*(values.tolist() for values in columns), strict=True)]


class PandasFrame(_Table):
    """A pandas frame; dtypes are kept wherever they can hold the values."""

    def __init__(self, X):
        if X.ndim != 2:
            raise _dimension_error(X.ndim)
        self.X, self.shape, self.names = X, X.shape, list(X.columns)
        repeated = [name for name, n in Counter(self.names).items() if n > 1]
        if repeated:
            raise ValueError(f"Column names must be unique, but {repeated} are not.")

    def column(self, j):
        series, label = self.X.iloc[:, j], self.label(j)
        dtype = series.dtype
        if isinstance(dtype, np.dtype):
            return read_array(label, series.to_numpy())
        library_name = type(dtype).__name__
        if library_name == "SparseDtype":
            raise sparse_error(label)
        if library_name == "CategoricalDtype":
            codes = series.cat.codes.to_numpy()
            missing = codes < 0
            missing = missing if missing.any() else None
            return Column(label, codes, missing, dtype.categories.tolist(), declared=True)
        if library_name == "PeriodDtype" or dtype.kind in "mM":
            raise temporal_error(label)
        if dtype.kind == "f":
            return read_array(label, series.to_numpy(dtype=np.float64, na_value=np.nan))
        if dtype.kind in "biu":
            missing = series.isna().to_numpy()
            values = series.to_numpy(dtype=dtype.numpy_dtype, na_value=0)
            return Column(label, values, missing if missing.any() else None)
        return read_objects(label, series.to_numpy(dtype=object), text=dtype.kind == "O")

    def layout(self):
        dtypes = []
        for dtype in self.X.dtypes:
            if str(dtype) == "category":
                dtypes.append(["category", dtype.categories.tolist(), bool(dtype.ordered)])
            else:
                dtypes.append([str(dtype)])
        return {"container": "pandas", "names": self.names, "dtypes": dtypes}

    def fill(self, replacements):
        filled = self.X.copy()
        for j, mask, values in replacements:
            series = self.X.iloc[:, j]
            new = _pandas_series(values, series.dtype)
            series = series.astype(new.dtype).copy()
            series.iloc[np.flatnonzero(mask)] = new.array
            filled.isetitem(j, series)
        return filled

    def select(self, columns):
        return self.X.iloc[:, columns]

    def append(self, names, new):
        return self.X.assign(**dict(zip(names, new)))

    @staticmethod
    def build(layout, columns):
        import pandas as pd

        built = {}
        for j, (values, (dtype, *categories)) in enumerate(
            zip(columns, layout["dtypes"], strict=True)
        ):
            dtype = pd.CategoricalDtype(*categories) if categories else dtype
            built[j] = _pandas_series(values, pd.api.types.pandas_dtype(dtype))
        built = pd.DataFrame(built)
        built.columns = layout["names"]
        return built


class PolarsFrame(_Table):
    """A polars frame; dtypes are kept wherever they can hold the values."""

    def __init__(self, X):
        self.X, self.shape, self.names = X, X.shape, list(X.columns)

    def column(self, j):
        import polars as pl

        series, label = self.X.to_series(j), self.label(j)
        dtype = series.dtype
        if dtype.is_temporal():
            raise temporal_error(label)
        missing = series.is_null().to_numpy() if series.null_count() else None
        if dtype == pl.Boolean:
            return Column(label, series.fill_null(False).to_numpy(), missing)
        if dtype.is_integer() and dtype.base_type().__name__ in ("Int128", "UInt128"):
            # NumPy has none of 128 bits: int64 if they fit, else numbers
            series = series.cast(pl.Int64, strict=False)
            fits = series.null_count() == self.X.to_series(j).null_count()
            series = series if fits else self.X.to_series(j).cast(pl.Float64)
            dtype = series.dtype
        if dtype.is_integer():
            return Column(label, series.fill_null(0).to_numpy(), missing)
        if dtype.is_numeric() or dtype == pl.Null:
            keep = dtype in (pl.Float32, pl.Float64)
            return read_array(label, (series if keep else series.cast(pl.Float64)).to_numpy())
        if dtype == pl.Enum:
            codes = series.to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
            return Column(label, codes, missing, dtype.categories.to_list(), declared=True)
        text = dtype in (pl.Categorical, pl.String)
        return read_objects(label, (series.cast(pl.String) if text else series).to_list(), text)

    def layout(self):
        dtypes = []
        for dtype in self.X.dtypes:
            name = dtype.base_type().__name__
            dtypes.append([name, dtype.categories.to_list()] if name == "Enum" else [name])
        return {"container": "polars", "names": self.names, "dtypes": dtypes}

    def fill(self, replacements):
        import polars as pl

        columns = self.X.get_columns()
        for j, mask, values in replacements:
            series = columns[j]
            new = _polars_series(series.name, values, series.dtype)
            # the position of each row's replacement; those of other rows are read but not used
            position = np.maximum(np.cumsum(mask) - 1, 0)
            columns[j] = series.cast(new.dtype).zip_with(pl.Series(~mask), new.gather(position))
        return pl.DataFrame(columns)

    def select(self, columns):
        return self.X[:, [int(j) for j in columns]]

    def append(self, names, new):
        import polars as pl

        return self.X.with_columns(pl.Series(name, cells) for name, cells in zip(names, new))

    @staticmethod
    def build(layout, columns):
        import polars as pl

        built = []
        for name, values, (dtype, *categories) in zip(
            layout["names"], columns, layout["dtypes"], strict=True
        ):
            dtype = getattr(pl, dtype)(*categories) if categories else getattr(pl, dtype)
            built.append(_polars_series(name, values, dtype))
        return pl.DataFrame(built)


_CONTAINERS = {"array": Array, "rows": Rows, "pandas": PandasFrame, "polars": PolarsFrame}


def build_table(layout, columns):
    """A new container.

    Parameters
    ----------
    layout : dict
        What `layout()` of the original container gave.
    columns : list of ndarray of shape (n_rows,)
        Booleans, integers, floats or objects, one array per column.

    Returns
    -------
    table : ndarray, frame or list of lists
    """
    return _CONTAINERS[layout["container"]].build(layout, columns)


def holding_dtype(dtype, values):
    """The NumPy dtype itself if it can hold the values, else float64 or object.

    Numbers are never rounded to whole ones: a fraction turns an integer dtype into float64.
    """
    if values.dtype.kind == "O":
        types = set(map(type, values.tolist())) - {type(None)}
        if all(issubclass(type_, (numbers.Number, np.bool_)) for type_ in types):
            values = np.array(values.tolist())  # whole numbers in integers if there is no gap
            values = values.astype(np.float64) if values.dtype == object else values  # None: NaN
        else:
            text = {"U": str, "S": bytes}.get(dtype.kind)
            return dtype if types == {text} else np.dtype(object)
    if dtype.kind in "fO":
        return dtype
    if dtype.kind == "b":
        fits = np.isin(values, (0, 1)).all()
    elif dtype.kind in "iu":
        limits = np.iinfo(dtype)
        # compared with floats, the largest int64 would be 2**63, which is no int64
        most = np.nextafter(2.0**limits.bits if limits.min == 0 else -float(limits.min), 0.0)
        most = min(limits.max, int(most)) if values.dtype.kind == "f" else limits.max
        fits = np.all((values >= limits.min) & (values <= most) & (values == np.rint(values)))
    else:
        return np.dtype(object)
    return dtype if fits else np.dtype(np.float64)


def _present(values):
    """The values that are neither None nor NaN: containers with nulls have room for those."""
    if values.dtype.kind == "O":
        return values[[value is not None for value in values.tolist()]]
    return values[~np.isnan(values)] if values.dtype.kind == "f" else values


def _pandas_series(values, dtype):
    """Values as a pandas Series of the given dtype, or of the nearest one that holds them."""
    import pandas as pd

    if isinstance(dtype, pd.CategoricalDtype):
        seen = [value for value in dict.fromkeys(values.tolist()) if value is not None]
        known = set(dtype.categories)
        absent = [value for value in seen if value not in known]
        if not absent:
            return pd.Series(pd.Categorical(values.tolist(), dtype=dtype))
        if values.dtype.kind == "f":  # a continuous family was fitted to numeric categories
            return pd.Series(values)
        categories = [*dtype.categories, *absent]
        dtype = pd.CategoricalDtype(categories, ordered=dtype.ordered)
        return pd.Series(pd.Categorical(values.tolist(), dtype=dtype))
    nullable = not isinstance(dtype, np.dtype)
    base = getattr(dtype, "numpy_dtype", dtype)
    if isinstance(base, np.dtype) and base.kind in "biufO":
        held = holding_dtype(base, _present(values) if nullable else values)
        if held != base:
            dtype = "Float64" if nullable and held.kind == "f" else held
    elif not all(value is None or isinstance(value, str) for value in values.tolist()):
        dtype = np.dtype(object)
    return pd.Series(values.tolist() if values.dtype.kind == "O" else values, dtype=dtype)


POLARS_TEXT = ("String", "Categorical", "Binary")


def _polars_series(name, values, dtype):
    """Values as a polars Series of the given dtype, or of the nearest one that holds them."""
    import polars as pl

    present, cells = _present(values), values.tolist()
    if len(present) < len(cells):
        cells = [None if cell is None or cell != cell else cell for cell in cells]
    base = dtype.base_type().__name__
    if base in ("Boolean", "Float32", "Float64") or dtype.is_integer():
        # NumPy has no integers of 128 bits: what 64 do not hold becomes Float64
        numpy_name = {"Boolean": "bool", "Int128": "int64", "UInt128": "uint64"}.get(
            base, base.lower()
        )
        held = holding_dtype(np.dtype(numpy_name), present)
        if held != np.dtype(numpy_name):
            dtype = pl.Float64 if held.kind == "f" else pl.String
    elif base == "Enum":
        known = set(dtype.categories.to_list())
        dtype = dtype if all(cell is None or cell in known for cell in cells) else pl.String
    elif base != "Object" and (values.dtype.kind in "biuf" or base not in POLARS_TEXT):
        dtype = pl.Float64 if values.dtype.kind in "biuf" else pl.String
    if dtype.is_integer() and all(cell is None or isinstance(cell, int) for cell in cells):
        return pl.Series(name, cells, dtype=dtype)
    if dtype in (pl.Boolean, pl.Float32, pl.Float64) or dtype.is_integer():
        cells = [None if cell is None else float(cell) for cell in cells]
        return pl.Series(name, cells, dtype=pl.Float64).cast(dtype)
    return pl.Series(name, cells, dtype=dtype)
