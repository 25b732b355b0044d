"""Containers of NumPy, SciPy and Python: arrays, sparse arrays and lists of rows."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..families._sparse import entries
from ._columns import complex_error, read_array, read_objects
from ._container_base import Container, dimension_error, holding_dtype


class Array(Container):
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
            raise dimension_error(self.X.ndim)
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

    def cell(self, i, j):
        return self.X[i, j]

    @staticmethod
    def build(layout, columns):
        dtype = np.dtype(layout["dtype"])
        for values in columns:
            dtype = holding_dtype(dtype, values)
        built = np.empty((len(columns[0]), len(columns)), dtype)
        for j, values in enumerate(columns):
            built[:, j] = values.astype(dtype)
        return built


class Sparse(Container):
    """A SciPy sparse array or matrix of numbers; never made dense."""

    def __init__(self, X, name):
        if X.ndim != 2:
            raise dimension_error(X.ndim)
        if X.dtype.kind == "c":
            raise complex_error(name)
        self.X, self.shape, self.name = X, X.shape, name

    def entries(self):
        """What is not 0, as a csr_array of numbers in canonical format, duplicates summed."""
        return entries(self.X, self.name)

    def layout(self):
        return {"container": "array", "dtype": self.X.dtype.str}

    def fill(self, replacements):
        return self.X.copy()  # counts have no missing cells

    def cell(self, i, j):
        return self.entries()[i, j]


class Rows(Container):
    """A list of rows; each column gets its own dtype, unlike in an array made of the list."""

    def __init__(self, X, name):
        if any(isinstance(row, (str, bytes, dict)) or not hasattr(row, "__len__") for row in X):
            raise dimension_error(1)
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

    def cell(self, i, j):
        return self.X[i][j]

    @staticmethod
    def build(layout, columns):
        return [list(row) for row in zip(*(values.tolist() for values in columns), strict=True)]
