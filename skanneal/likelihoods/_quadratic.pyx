"""Scores of rows of numbers under normal features, and their statistics.

Rows are cells of a table of numbers only, without gaps, in cell units.
"""

from libc.stdint cimport int64_t

import numpy as np

from ..families._slots cimport aligned_zeros
from ..families._table cimport Table

from ._product import by_label

cdef extern from "_quadratic.h" nogil:
    enum: QUADRATIC_ROWS
    ctypedef struct QuadraticBlock:
        int64_t n_columns, n_features, factor_length
        const float *constant
        const float *mean
        const float *factor
        float *deviation
    int skanneal_level()
    void (*quadratic_diagonal_v[3])(const QuadraticBlock *, const float *, int64_t, int64_t,
                                    float *) noexcept
    void (*quadratic_full_v[3])(const QuadraticBlock *, const float *, int64_t, int64_t,
                                float *) noexcept

cdef enum:
    LANES = 16


cdef class Quadratic:
    """Normal features as the kernels read them.

    Parameters
    ----------
    means : float64 array of shape (n_features, D)
    factors : float64 array of shape (n_features, D) or (n_features, D (D + 1) / 2)
        What deviations are multiplied by before they are squared: one number for each, or a lower
        triangle, packed row by row.
    constants : float64 array of shape (n_features,)
    """

    cdef readonly Py_ssize_t n_features, n_columns
    cdef readonly bint full
    cdef float[:, ::1] mean, factor
    cdef float[::1] constant
    cdef QuadraticBlock block

    def __init__(self, means, factors, constants):
        self.n_features, self.n_columns = means.shape
        self.full = factors.shape[1] != self.n_columns or self.n_columns == 1
        self.mean = np.array(means, np.float32, order="C")
        self.constant = np.array(constants, np.float32)
        self.factor = self._tiles(factors) if self.full else np.array(factors, np.float32)
        self.block.n_columns, self.block.n_features = self.n_columns, self.n_features
        if self.n_features and self.n_columns:
            self.block.mean, self.block.factor = &self.mean[0, 0], &self.factor[0, 0]
            self.block.constant = &self.constant[0]
        self.block.factor_length = self.factor.shape[1]

    def _tiles(self, packed):
        """Four rows of a factor side by side, see _quadratic.h."""
        cdef Py_ssize_t D = self.n_columns, i, r
        parts = []
        for i in range(0, D, QUADRATIC_ROWS):
            part = np.zeros((self.n_features, i + QUADRATIC_ROWS, QUADRATIC_ROWS), np.float32)
            for r in range(i, min(i + QUADRATIC_ROWS, D)):
                part[:, :r + 1, r - i] = packed[:, r * (r + 1) // 2:(r + 1) * (r + 2) // 2]
            parts.append(part.reshape(self.n_features, part.shape[1] * QUADRATIC_ROWS))
        return np.ascontiguousarray(np.concatenate(parts, axis=1))


def quadratic_scores(Table table, Py_ssize_t start, Py_ssize_t stop, Quadratic features,
                     float[:, :] out):
    """Scores of rows start .. stop - 1 of a table.

    Parameters
    ----------
    table : Table
    start, stop : int
    features : Quadratic
    out : float32 array of shape (stop - start, at least n_features), written
        Numbers of a row stand side by side.
    """
    cdef Py_ssize_t D = features.n_columns, first, n, i, j
    cdef Py_ssize_t stride = out.strides[0] // sizeof(float)
    cdef float[::1] tile = aligned_zeros((max(1, D * LANES),), np.float32)
    cdef float[::1] deviation = aligned_zeros(((D + QUADRATIC_ROWS) * LANES,), np.float32)
    cdef QuadraticBlock block = features.block
    cdef const float *cell
    cdef int level = skanneal_level()
    if not 0 <= start <= stop <= table.n_rows:
        raise IndexError(f"rows {start} to {stop} of a table of {table.n_rows}")
    if (out.shape[0] != stop - start or out.shape[1] < features.n_features
            or out.strides[1] != out.itemsize):
        raise ValueError(f"out must have shape {(stop - start, features.n_features)}, "
                         f"got {(out.shape[0], out.shape[1])}")
    if table.n_columns != D or 4 * D != table.widths.sum():
        raise ValueError(f"{D} columns of features for another table")
    if features.n_features == 0 or start == stop:
        return
    block.deviation = &deviation[0]
    with nogil:
        first = start
        while first < stop:
            n = min(LANES, stop - first)
            for i in range(n):
                cell = <const float *> table.row(first + i)   # numbers only: in order, no gaps
                for j in range(D):
                    tile[j * LANES + i] = cell[j]
            if features.full:
                quadratic_full_v[level](&block, &tile[0], n, stride, &out[first - start, 0])
            else:
                quadratic_diagonal_v[level](&block, &tile[0], n, stride, &out[first - start, 0])
            first += n


def moments(Table table, Py_ssize_t start, labels, Py_ssize_t n_features, bint full):
    """Number, sums and sums of squares, or of products, of each feature's rows.

    Cells have mean 0 and variance 1 over the rows of the fit and 24 bits, so that their products
    are exact in float64 and a sum of squares loses what is far below a cell's own rounding.

    Parameters
    ----------
    table : Table
        Of numbers.
    start : int
        The row of the first label.
    labels : int32 array of shape (n,)
        -1: not counted.
    n_features : int
    full : bool
        Products of all pairs, lower triangle row by row, or squares.

    Returns
    -------
    ndarray of shape (n_features, 1 + D + D) or (n_features, 1 + D + D (D + 1) / 2)
    """
    cdef const int64_t[::1] row, starts
    cdef Py_ssize_t D = table.n_columns, k, i, j, m
    cdef double[:, ::1] out = np.zeros((n_features, 1 + D + (D * (D + 1) // 2 if full else D)))
    cdef double[::1] wide = np.empty(max(1, D))
    cdef double *sums
    cdef double *products
    cdef double x
    cdef const float *cell
    row, starts = by_label(table, start, labels, n_features)
    with nogil:
        for k in range(n_features):
            out[k, 0] = starts[k + 1] - starts[k]
            sums = &out[k, 1]
            for i in range(starts[k], starts[k + 1]):
                cell = <const float *> table.row(start + row[i])
                products = sums + D
                if not full:
                    for j in range(D):
                        sums[j] += cell[j]
                        products[j] += <double> cell[j] * cell[j]
                    continue
                for j in range(D):
                    wide[j] = cell[j]
                for j in range(D):
                    x = wide[j]
                    sums[j] += x
                    for m in range(j + 1):
                        products[m] += x * wide[m]
                    products += j + 1
    return np.asarray(out)
