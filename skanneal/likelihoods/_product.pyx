"""Scores of rows of counts under features that are linear in the counts, and their statistics.

    score       c_k + sum over the row's entries (j, x) of x w_jk, plus the row's own constant
    statistics  for each feature, the sum of its rows

Multinomial: w = log p, and the row's constant is its multinomial coefficient. Poisson: w = log rate
- rho_j, c = - sum (rates - exp(rho_j)), and the row's constant is its log density under the rates
exp(rho). A score is of the size of a few nats per column, the terms of the sum are as large as the
counts: what is added up is a sum in float64 unless the row has few counts in all.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t

import numpy as np

from .._native._math cimport add_log_factorial, fill_log_factorials, log_poisson
from ..families._slots cimport aligned_zeros
from ..families._table cimport Counts, Table

cdef extern from "_product.h" nogil:
    enum: PRODUCT_GROUP
    ctypedef struct ProductWeights:
        int64_t n_columns, n_features
        const float *weight
        const double *wide
        const double *constant
    ctypedef struct ProductRow:
        const uint32_t *entry
        int64_t n
        double constant
        void *out
    void prefetch_entries(const uint32_t *entry, int64_t n)
    int skanneal_level()
    void (*product_scores_v[3])(const ProductWeights *, const ProductRow *, int64_t) noexcept
    void (*product_wide_v[3])(const ProductWeights *, const ProductRow *, int64_t, int) noexcept

cdef enum:
    BLOCK = 256   # rows that go over a group of weights at a time
    LANES = 16
    SCRATCH = 1 << 16   # entries of rows that are read from cells
    FEW = 512     # counts of a row whose products are added up in float32, errors below 0.003

ctypedef fused Real:
    float
    double

fill_log_factorials()


cdef class Weights:
    """Features' weights as the product reads them.

    Parameters
    ----------
    weights : float64 array of shape (n_features, n_columns)
    constants : float64 array of shape (n_features,), optional
        Zeros by default.
    """

    cdef readonly Py_ssize_t n_features, n_columns
    cdef const double[:, ::1] source
    cdef float[::1] weight
    cdef double[::1] wide, constant
    cdef ProductWeights block

    def __init__(self, const double[:, ::1] weights, constants=None):
        self.source = weights
        self.n_features, self.n_columns = weights.shape[0], weights.shape[1]
        self.constant = np.zeros(self.n_features + 1)
        if constants is not None:
            np.asarray(self.constant)[:self.n_features] = constants
        self.block.n_columns, self.block.n_features = self.n_columns, self.n_features
        self.block.weight, self.block.wide = NULL, NULL
        self.block.constant = &self.constant[0]

    cdef int need_few(self) except -1:
        """The weights in float32 from now on."""
        if self.block.weight == NULL:
            self.weight = aligned_zeros((self._size(),), np.float32)
            self.block.weight = &self.weight[0]
            lay_out(self.source, &self.weight[0])
        return 0

    cdef int need_wide(self) except -1:
        """The weights in float64 from now on."""
        if self.block.wide == NULL:
            self.wide = aligned_zeros((self._size(),), np.float64)
            self.block.wide = &self.wide[0]
            lay_out(self.source, &self.wide[0])
        return 0

    cdef Py_ssize_t _size(self):
        return max(1, (self.n_features + LANES - 1) // LANES * LANES * self.n_columns)


cdef void lay_out(const double[:, ::1] weights, Real *to) noexcept nogil:
    """Groups of features, in each (n_columns, features), the last in whole tiles."""
    cdef Py_ssize_t K = weights.shape[0], D = weights.shape[1], j, start = 0, width, f
    cdef Py_ssize_t padded = (K + LANES - 1) // LANES * LANES
    while start < padded:
        width = min(padded - start, PRODUCT_GROUP)
        for f in range(min(K - start, width)):
            for j in range(D):
                to[j * width + f] = <Real> weights[start + f, j]
        to += width * D
        start += width


cdef class Rows:
    """Rows that wait for their product: those of few counts and the others."""

    cdef ProductRow[BLOCK] few, many
    cdef Py_ssize_t n_few, n_many
    cdef Weights weights
    cdef bint exact
    cdef int level

    def __init__(self, Weights weights, bint exact):
        self.weights, self.exact, self.level = weights, exact, skanneal_level()
        self.n_few = self.n_many = 0

    cdef void add(self, const uint32_t *entry, int64_t n, int64_t total, double constant,
                  void *out) noexcept nogil:
        cdef ProductRow *row
        if total > FEW or self.exact:
            row = &self.many[self.n_many]
            self.n_many += 1
        else:
            row = &self.few[self.n_few]
            self.n_few += 1
        row.entry, row.n, row.constant, row.out = entry, n, constant, out

    cdef int score(self) except -1:
        """Write the scores of the rows added, and forget these."""
        if self.n_few:
            self.weights.need_few()
        if self.n_many:
            self.weights.need_wide()
        with nogil:
            if self.n_few:
                product_scores_v[self.level](&self.weights.block, self.few, self.n_few)
            if self.n_many:
                product_wide_v[self.level](&self.weights.block, self.many, self.n_many, self.exact)
        self.n_few = self.n_many = 0
        return 0


def count_scores(Table table, Py_ssize_t start, Py_ssize_t stop, Weights weights, Real[:, :] out):
    """Scores of rows start .. stop - 1 of a table of rows of counts.

    Parameters
    ----------
    table : Table
    start, stop : int
    weights : Weights
    out : float32 or float64 array of shape (stop - start, at least n_features), written
        Numbers of a row stand side by side.
    """
    cdef Rows rows = Rows(weights, Real is double)
    cdef Counts x
    cdef int32_t position = table.positions[table._counts]
    cdef Py_ssize_t first, i
    _check(table, start, stop, weights, out)
    if weights.n_features == 0:
        return
    for first in range(start, stop, BLOCK):
        with nogil:
            for i in range(first, min(first + BLOCK, stop)):
                x = (<const Counts *> (table.row(i) + position))[0]
                rows.add(table.entries + 2 * x.start, x.n, x.total, x.log_coefficient,
                         &out[i - start, 0])
        rows.score()


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


def by_label(Table table, Py_ssize_t first, labels, Py_ssize_t n_labels):
    """Order the rows from `first` on by their labels, and leave out those of label -1.

    Returns
    -------
    rows : int64 array
        Counted from `first`.
    starts : int64 array of shape (n_labels + 1,)
        Where the rows of each label begin in `rows`; the last one is the end.
    """
    cdef const int32_t[::1] label = np.ascontiguousarray(labels, np.int32)
    cdef int64_t[::1] start = np.zeros(n_labels + 2, np.int64), row
    cdef Py_ssize_t i, n = label.shape[0]
    cdef int32_t k
    cdef bint bad = False
    if not 0 <= first <= first + n <= table.n_rows:
        raise IndexError(f"rows {first} to {first + n} of a table of {table.n_rows}")
    with nogil:
        for i in range(n):
            k = label[i]
            if k < -1 or k >= n_labels:
                bad = True
                break
            start[k + 2 if k >= 0 else 0] += 1
        start[0] = 0
    if bad:
        raise ValueError(f"labels must be -1 .. {n_labels - 1}, got {label[i]}")
    np.cumsum(start, out=np.asarray(start))
    row = np.empty(start[n_labels + 1], np.int64)
    with nogil:
        for i in range(n):
            k = label[i]
            if k >= 0:
                row[start[k + 1]] = i
                start[k + 1] += 1
    return np.asarray(row), np.asarray(start)[:n_labels + 1]


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
    row, starts = by_label(table, start, labels, n_features)
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
                const double[::1] log_rates, Real[:, :] out):
    """`count_scores` of a table with one cell per count; a row's constant is its log density under
    Poisson rates, whose logarithms the weights are relative to."""
    cdef Rows rows = Rows(weights, Real is double)
    cdef Py_ssize_t D = table.n_columns, first, i, j, m, n
    cdef Py_ssize_t most = max(1, min(BLOCK, SCRATCH // max(1, D)))   # rows at a time
    cdef uint32_t[::1] entry = np.empty(2 * max(1, D) * most, np.uint32)
    cdef int32_t[::1] position = np.ascontiguousarray(table.positions, np.int32)
    cdef double[::1] rates = np.exp(log_rates)
    cdef const char *cells
    cdef uint32_t x
    cdef int64_t total
    cdef double constant
    _check(table, start, stop, weights, out)
    if weights.n_features == 0:
        return
    for first in range(start, stop, most):
        with nogil:
            m = 0
            for i in range(first, min(first + most, stop)):
                cells, constant, total, n = table.row(i), 0.0, 0, m
                for j in range(D):
                    x = (<const uint32_t *> (cells + position[j]))[0]
                    entry[m], entry[m + 1] = <uint32_t> j, x   # overwritten where x is 0
                    m += 2 * (x > 0)
                    total += x
                    constant += log_poisson(x, rates[j], log_rates[j])
                rows.add(&entry[n], (m - n) // 2, total, constant, &out[i - start, 0])
        rows.score()


def cell_sums(Table table, Py_ssize_t start, labels, Py_ssize_t n_features):
    """Number, column sums and column sums of log x!, in 1024s and the rest, of each feature's rows,
    of a table with one cell per count: float64 of shape (n_features, 1 + D + D + D)."""
    cdef const int64_t[::1] row, starts
    cdef Py_ssize_t D = table.n_columns, k, i, j
    cdef double[:, ::1] out = np.zeros((n_features, 1 + 3 * D))
    cdef int32_t[::1] position = np.ascontiguousarray(table.positions, np.int32)
    cdef const char *cells
    cdef uint32_t x
    row, starts = by_label(table, start, labels, n_features)
    with nogil:
        for k in range(n_features):
            out[k, 0] = starts[k + 1] - starts[k]
            for i in range(starts[k], starts[k + 1]):
                cells = table.row(start + row[i])
                for j in range(D):
                    x = (<const uint32_t *> (cells + position[j]))[0]
                    out[k, 1 + j] += x
                    if x > 1:
                        add_log_factorial(&out[k, 1 + D + j], &out[k, 1 + 2 * D + j], x, 1.0)
    return np.asarray(out)
