"""Frames of polars, which is imported only where there is one."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ._columns import Column, read_array, read_objects
from ._container_base import Container, holding_dtype, new_cells, present
from ._dates import temporal_error

POLARS_TEXT = ("String", "Categorical", "Binary")


class PolarsFrame(Container):
    """A polars frame; dtypes are kept wherever they can hold the values."""

    def __init__(self, X):
        self.X, self.shape, self.names = X, X.shape, list(X.columns)

    def column(self, j):
        import polars as pl

        series, label = self.X.to_series(j), self.label(j)
        dtype = series.dtype
        if dtype == pl.Time:
            raise temporal_error(label)
        if dtype.is_temporal():
            return read_array(label, series.to_numpy())
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
            parameters = {
                "Enum": lambda dtype: [dtype.categories.to_list()],
                "Datetime": lambda dtype: [dtype.time_unit, dtype.time_zone],
                "Duration": lambda dtype: [dtype.time_unit],
            }
            dtypes.append([name, *parameters.get(name, lambda dtype: [])(dtype)])
        return {"container": "polars", "names": self.names, "dtypes": dtypes}

    def fill(self, replacements):
        import polars as pl

        columns = self.X.get_columns()
        for j, mask, values in replacements:
            series = columns[j]
            with new_cells(self.names, j, series.dtype):
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

    def beside(self, values):
        import polars as pl

        return pl.DataFrame(values, schema=self.names, orient="row")

    @staticmethod
    def square(layout, columns, values):
        import polars as pl

        return pl.DataFrame(values, schema=[layout["names"][j] for j in columns], orient="row")

    def cell(self, i, j):
        return self.X.item(i, j)

    @staticmethod
    def build(layout, columns):
        import polars as pl

        built = []
        names = layout["names"]
        for j, (values, (dtype, *categories)) in enumerate(
            zip(columns, layout["dtypes"], strict=True)
        ):
            dtype = getattr(pl, dtype)(*categories) if categories else getattr(pl, dtype)
            with new_cells(names, j, dtype):
                built.append(_polars_series(names[j], values, dtype))
        return pl.DataFrame(built)


def _polars_series(name, values, dtype):
    """Values as a polars Series of the given dtype, or of the nearest one that holds them."""
    import polars as pl

    if values.dtype.kind in "mM":
        return _polars_dates(name, values, dtype)
    observed, cells = present(values), values.tolist()
    if len(observed) < len(cells):
        cells = [None if cell is None or cell != cell else cell for cell in cells]
    base = dtype.base_type().__name__
    if base == "Null":  # fits whatever there is
        return pl.Series(name, cells, strict=False)
    if base in ("Boolean", "Float32", "Float64") or dtype.is_integer():
        # NumPy has no integers of 128 bits: what 64 do not hold becomes Float64
        numpy_name = {"Boolean": "bool", "Int128": "int64", "UInt128": "uint64"}.get(
            base, base.lower()
        )
        held = holding_dtype(np.dtype(numpy_name), observed)
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


def _polars_dates(name, values, dtype):
    """Dates or durations as a Series of the given dtype, if it is one of these."""
    import polars as pl

    series = pl.Series(name, values)
    if not dtype.is_temporal():
        return series
    zone = getattr(dtype, "time_zone", None)
    if zone is None:
        return series.cast(dtype)
    series = series.cast(pl.Datetime(dtype.time_unit)).dt.replace_time_zone("UTC")
    return series.dt.convert_time_zone(zone)
