"""Scores of rows of counts under features that are linear in the counts, and their statistics.

    score       c_k + sum over the row's entries (j, x) of x w_jk, plus the row's own constant
    statistics  for each feature, the sum of its rows

Multinomial: w = log p, and the row's constant is its multinomial coefficient. Poisson: w = log
rate, c = - sum of the rates, and the row's constant is - sum log x!.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t

import numpy as np

from .._math cimport log_gamma
from ..components._base cimport aligned_zeros
from ..components._table cimport Counts, Table

cdef extern from "_product.h" nogil:
    enum: PRODUCT_GROUP
    ctypedef struct ProductWeights:
        int64_t n_columns, n_features
        const float *weight
        const float *constant
    ctypedef struct ProductRow:
        const uint32_t *entry
        int64_t n
        float constant
    void prefetch_entries(const uint32_t *entry, int64_t n)
    int skanneal_level()
    void (*product_scores_v[3])(const ProductWeights *, const ProductRow *, int64_t, int64_t,
                                float *) noexcept

cdef enum:
    BLOCK = 256   # rows that go over a group of weights at a time
    LANES = 16
    SCRATCH = 1 << 16   # entries of rows that are read from cells
    TABULATED = 1024

cdef double[::1] LOG_FACTORIAL = np.array([log_gamma(x + 1.0) for x in range(TABULATED)])


cdef inline double log_factorial(uint32_t x) noexcept nogil:
    return LOG_FACTORIAL[x] if x < TABULATED else log_gamma(x + 1.0)


cdef class Weights:
    """Features' weights as the product reads them.

    Parameters
    ----------
    weights : float64 array of shape (n_features, n_columns)
    constants : float64 array of shape (n_features,), optional
        Zeros by default.
    """

    cdef readonly Py_ssize_t n_features, n_columns
    cdef float[::1] weight, constant
    cdef ProductWeights block

    def __init__(self, const double[:, ::1] weights, constants=None):
        cdef Py_ssize_t K = weights.shape[0], D = weights.shape[1], j, start, width, f
        cdef Py_ssize_t padded = (K + LANES - 1) // LANES * LANES
        cdef float *to
        self.n_features, self.n_columns = K, D
        self.weight = aligned_zeros((max(1, padded * D),), np.float32)
        self.constant = aligned_zeros((max(1, padded),), np.float32)
        if constants is not None:
            np.asarray(self.constant)[:K] = constants
        with nogil:
            start = 0
            while start < padded:
                width = min(padded - start, PRODUCT_GROUP)
                to = &self.weight[start * D]
                for f in range(min(K - start, width)):
                    for j in range(D):
                        to[j * width + f] = <float> weights[start + f, j]
                start += width
        self.block.n_columns, self.block.n_features = D, K
        self.block.weight, self.block.constant = &self.weight[0], &self.constant[0]


def count_scores(Table table, Py_ssize_t start, Py_ssize_t stop, Weights weights,
                 float[:, :] out):
    """Scores of rows start .. stop - 1 of a table of rows of counts.

    In float32: of a sum of products of one sign, about seven digits.

    Parameters
    ----------
    table : Table
    start, stop : int
    weights : Weights
    out : float32 array of shape (stop - start, at least n_features), written
        Numbers of a row stand side by side.
    """
    cdef ProductRow[BLOCK] row
    cdef Counts x
    cdef int32_t position = table.positions[table._counts]
    cdef int level = skanneal_level()
    cdef Py_ssize_t first, n, i, stride = out.strides[0] // sizeof(float)
    _check(table, start, stop, weights, out)
    if weights.n_features == 0:
        return
    with nogil:
        first = start
        while first < stop:
            n = min(BLOCK, stop - first)
            for i in range(n):
                x = (<const Counts *> (table.row(first + i) + position))[0]
                row[i].entry, row[i].n = table.entries + 2 * x.start, x.n
                row[i].constant = <float> x.log_coefficient
            product_scores_v[level](&weights.block, row, n, stride, &out[first - start, 0])
            first += n


def _check(Table table, Py_ssize_t start, Py_ssize_t stop, Weights weights, out):
    """What the kernels take for granted."""
    if not 0 <= start <= stop <= table.n_rows:
        raise IndexError(f"rows {start} to {stop} of a table of {table.n_rows}")
    if (out.shape[0] != stop - start or out.shape[1] < weights.n_features
            or out.strides[1] != out.itemsize):
        raise ValueError(f"out must have shape {(stop - start, weights.n_features)}, "
                         f"got {(out.shape[0], out.shape[1])}")
    if weights.n_columns != table.n_columns:
        raise ValueError(f"{weights.n_columns} columns of weights for {table.n_columns} columns")


def by_label(const int32_t[::1] labels, Py_ssize_t n_features):
    """Rows ordered by their labels, those of label -1 left out: (int64 rows, int64 starts of the
    features, n_features + 1)."""
    cdef int64_t[::1] start = np.zeros(n_features + 2, np.int64), row
    cdef Py_ssize_t i
    cdef int32_t k
    cdef bint bad = False
    with nogil:
        for i in range(labels.shape[0]):
            k = labels[i]
            if k < -1 or k >= n_features:
                bad = True
                break
            start[k + 2 if k >= 0 else 0] += 1
        start[0] = 0
    if bad:
        raise ValueError(f"labels must be -1 .. {n_features - 1}, got {labels[i]}")
    np.cumsum(start, out=np.asarray(start))
    row = np.empty(start[n_features + 1], np.int64)
    with nogil:
        for i in range(labels.shape[0]):
            k = labels[i]
            if k >= 0:
                row[start[k + 1]] = i
                start[k + 1] += 1
    return np.asarray(row), np.asarray(start)[:n_features + 1]


def count_sums(Table table, Py_ssize_t start, labels, Py_ssize_t n_features):
    """Column sums and the sum of the coefficients' logarithms of each feature's rows.

    Parameters
    ----------
    table : Table
        Of rows of counts.
    start : int
        The row of the first label.
    labels : int32 array of shape (n,)
        -1: not counted.
    n_features : int

    Returns
    -------
    ndarray of shape (n_features, n_columns + 1)
        float64; the sums are whole numbers, the last column the coefficients'.
    """
    cdef const int64_t[::1] row, starts
    cdef double[:, ::1] out = np.zeros((n_features, table.n_columns + 1))
    cdef int32_t position = table.positions[table._counts]
    cdef Py_ssize_t k, i, D = table.n_columns
    cdef int64_t e
    cdef double *sums
    cdef const uint32_t *entry
    cdef Counts x, ahead
    labels = np.ascontiguousarray(labels, np.int32)
    if not 0 <= start <= start + len(labels) <= table.n_rows:
        raise IndexError(f"rows {start} to {start + len(labels)} of a table of {table.n_rows}")
    row, starts = by_label(labels, n_features)
    with nogil:
        for k in range(n_features):
            sums = &out[k, 0]
            for i in range(starts[k], starts[k + 1]):
                x = (<const Counts *> (table.row(start + row[i]) + position))[0]
                if i + 1 < row.shape[0]:
                    ahead = (<const Counts *> (table.row(start + row[i + 1]) + position))[0]
                    prefetch_entries(table.entries + 2 * ahead.start, ahead.n)
                entry = table.entries + 2 * x.start
                for e in range(x.n):
                    sums[entry[2 * e]] += entry[2 * e + 1]
                sums[D] += x.log_coefficient
    return np.asarray(out)


def cell_scores(Table table, Py_ssize_t start, Py_ssize_t stop, Weights weights,
                float[:, :] out):
    """`count_scores` of a table with one cell per count; a row's constant is - sum log x!."""
    cdef ProductRow[BLOCK] row
    cdef Py_ssize_t D = table.n_columns, first, n, i, j, m
    cdef Py_ssize_t stride = out.strides[0] // sizeof(float)
    cdef Py_ssize_t most = max(1, min(BLOCK, SCRATCH // max(1, D)))   # rows at a time
    cdef uint32_t[::1] entry = np.empty(2 * max(1, D) * most, np.uint32)
    cdef int32_t[::1] position = np.ascontiguousarray(table.positions, np.int32)
    cdef int level = skanneal_level()
    cdef const char *cells
    cdef uint32_t x
    cdef double constant
    _check(table, start, stop, weights, out)
    if weights.n_features == 0:
        return
    with nogil:
        first = start
        while first < stop:
            n = min(most, stop - first)
            for i in range(n):
                cells, constant, m = table.row(first + i), 0.0, 2 * D * i
                row[i].entry = &entry[0] + m
                for j in range(D):
                    x = (<const uint32_t *> (cells + position[j]))[0]
                    entry[m], entry[m + 1] = <uint32_t> j, x   # overwritten where x is 0
                    m += 2 * (x > 0)
                    if x > 1:
                        constant -= log_factorial(x)
                row[i].n, row[i].constant = (m - 2 * D * i) // 2, <float> constant
            product_scores_v[level](&weights.block, row, n, stride, &out[first - start, 0])
            first += n


def cell_sums(Table table, Py_ssize_t start, labels, Py_ssize_t n_features):
    """Number, column sums and column sums of log x! of each feature's rows, of a table with one
    cell per count: float64 of shape (n_features, 1 + D + D)."""
    cdef const int64_t[::1] row, starts
    cdef Py_ssize_t D = table.n_columns, k, i, j
    cdef double[:, ::1] out = np.zeros((n_features, 1 + 2 * D))
    cdef int32_t[::1] position = np.ascontiguousarray(table.positions, np.int32)
    cdef const char *cells
    cdef uint32_t x
    labels = np.ascontiguousarray(labels, np.int32)
    if not 0 <= start <= start + len(labels) <= table.n_rows:
        raise IndexError(f"rows {start} to {start + len(labels)} of a table of {table.n_rows}")
    row, starts = by_label(labels, n_features)
    with nogil:
        for k in range(n_features):
            out[k, 0] = starts[k + 1] - starts[k]
            for i in range(starts[k], starts[k + 1]):
                cells = table.row(start + row[i])
                for j in range(D):
                    x = (<const uint32_t *> (cells + position[j]))[0]
                    out[k, 1 + j] += x
                    if x > 1:
                        out[k, 1 + D + j] += log_factorial(x)
    return np.asarray(out)
