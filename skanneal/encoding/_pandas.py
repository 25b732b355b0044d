"""Frames of pandas, which is imported only to build new ones."""

# SPDX-License-Identifier: BSD-3-Clause

from collections import Counter

import numpy as np

from ._columns import Column, read_array, read_objects, sparse_error
from ._container_base import Container, dimension_error, holding_dtype, new_cells, present
from ._dates import temporal_error


class PandasFrame(Container):
    """A pandas frame; dtypes are kept wherever they can hold the values."""

    def __init__(self, X):
        if X.ndim != 2:
            raise dimension_error(X.ndim)
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
            levels, ordered = dtype.categories.tolist(), bool(dtype.ordered)
            return Column(label, codes, missing, levels, declared=True, ordered=ordered)
        if library_name == "PeriodDtype":
            raise temporal_error(label)
        if dtype.kind in "mM":  # with a time zone, or of pyarrow
            return read_array(label, series.to_numpy(dtype=f"{dtype.kind}8[us]"))
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
            with new_cells(self.names, j, series.dtype):
                new = _pandas_series(values, series.dtype)
                if mask.all():
                    series = new.set_axis(series.index)
                else:
                    series = series.astype(new.dtype).copy()
                    series.iloc[np.flatnonzero(mask)] = new.array
            filled.isetitem(j, series)
        return filled

    def select(self, columns):
        return self.X.iloc[:, columns]

    def append(self, names, new):
        return self.X.assign(**dict(zip(names, new)))

    def beside(self, values):
        import pandas as pd

        return pd.DataFrame(values, index=self.X.index, columns=self.X.columns)

    @staticmethod
    def square(layout, columns, values):
        import pandas as pd

        names = [layout["names"][j] for j in columns]
        return pd.DataFrame(values, index=names, columns=names)

    def cell(self, i, j):
        return self.X.iat[i, j]

    @staticmethod
    def build(layout, columns):
        import pandas as pd

        built = {}
        for j, (values, (dtype, *categories)) in enumerate(
            zip(columns, layout["dtypes"], strict=True)
        ):
            dtype = pd.CategoricalDtype(*categories) if categories else dtype
            with new_cells(layout["names"], j, dtype):
                built[j] = _pandas_series(values, pd.api.types.pandas_dtype(dtype))
        built = pd.DataFrame(built)
        built.columns = layout["names"]
        return built


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
    if values.dtype.kind in "mM":
        series = pd.Series(values.astype(f"{values.dtype.kind}8[us]"))
        if dtype.kind == "O":
            return pd.Series(values.tolist(), dtype=object)
        if getattr(dtype, "tz", None) is not None:
            series = series.dt.tz_localize("UTC")
        return series.astype(dtype) if dtype.kind == values.dtype.kind else series
    if str(dtype) == "null[pyarrow]":  # a column without any cell, which may become any other
        return pd.Series(values.tolist() if values.dtype.kind == "O" else values)
    nullable = not isinstance(dtype, np.dtype)
    base = getattr(dtype, "numpy_dtype", dtype)
    if isinstance(base, np.dtype) and base.kind in "biufO":
        held = holding_dtype(base, present(values) if nullable else values)
        if held != base:
            dtype = "Float64" if nullable and held.kind == "f" else held
    elif not all(value is None or isinstance(value, str) for value in values.tolist()):
        dtype = np.dtype(object)
    return pd.Series(values.tolist() if values.dtype.kind == "O" else values, dtype=dtype)
