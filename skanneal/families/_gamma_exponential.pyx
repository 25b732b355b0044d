"""Exponential with a Gamma prior: waiting times and other numbers from 0 on.

Model, per feature: x ~ Exponential(r) with density r exp(-r x), r ~ Gamma(a, b). With n cells of
sum S, alpha = a + n and beta = b + S, the predictive is Lomax's (Pareto's of the second kind):

    p(x) = alpha beta^alpha / (beta + x)^(alpha + 1),

and the marginal likelihood Gamma(alpha) / Gamma(a) b^a / beta^alpha. With s(z) the rest of
Stirling's formula for lgamma(z) its logarithm is

    n log(alpha / beta) - n + (a - 1/2) log(1 + n/a) - a log(1 + S/b) + s(alpha) - s(a),

without differences of large numbers. Source: Gelman et al., Bayesian Data Analysis, 2.6.

A cell is the number over the mean of the column's ordinary numbers. b is in the unit of x. The
grids: a from 0.1 to 100; b from a tenth of the column's short times (the 5 % quantile of those
above 0) to 100 times its mean. A cluster of short times has a small S, so a larger b would set its
scale; with a = 0.1 the logarithm of the rate has a nearly flat prior below 1/b, over many decades.

A cell is float32, so that adding cells of similar size in float64, and subtracting one again, is
exact; subtracting a far cell would leave few digits of the others' sum.
"""

from libc.math cimport log, log1p
from libc.stdint cimport int32_t, int64_t
from numpy.random cimport bitgen_t

import numpy as np

from .._native._math cimport stirling_rest
from .._native._random cimport bitgen, standard_gamma, uniform
from ._base cimport FamilyBlock
from ._column_family cimport ColumnFamily
from ._partition_sums cimport CellSums
from ._slots cimport TILE
from ._table cimport Table, is_far

from ._scaling import LARGEST_CELL, ordinary
from ._slots import SLOTS

cdef enum:
    SHARED = 8   # features per logarithm: a factor of their product is between 1e-35 and 1e26

# Lomax's distribution has a mean from alpha > 1 on and a variance from alpha > 2 on.
LEAST_OF_MEAN = 2.0       # a smaller alpha counts as so much in the mean
LEAST_OF_VARIANCE = 3.0   # and in the variance
LEAST_SHORT = 1e-6        # of the mean: shorter times than that do not lengthen the grid


cdef inline double cell_at(const char *row, int32_t position) noexcept nogil:
    return (<const float *> (row + position))[0]


cdef double marginal(double n, double total, double a, double b) noexcept nogil:
    """Log marginal likelihood of n cells."""
    cdef double alpha = a + n
    return (n * log(alpha / (b + total)) - n + (a - 0.5) * log1p(n / a) - a * log1p(total / b)
            + stirling_rest(alpha) - stirling_rest(a))


cdef class ExponentialSums(CellSums):
    cdef double marginal(self, Py_ssize_t f, double n, double total) noexcept nogil:
        return marginal(n, total, self.prior[f, 0], self.prior[f, 1])


cdef class GammaExponential(ColumnFamily):
    """Numbers from 0 on. Coordinates of a feature's hyperparameters: a, b."""

    family = "gamma_exponential"
    cells = "non_negative"
    coordinate_names = ("a", "b")
    forms = ("positive", "scale")
    cell_cost = 3.0
    partition_sums = ExponentialSums

    cdef int64_t[:, ::1] n         # (n_features, n_slots) cells
    cdef double[:, ::1] total      # (n_features, n_slots) their sum
    cdef double[:, ::1] inverse    # (n_features, n_slots) 1 / beta
    cdef double[:, ::1] gappy_at_0   # (n_features, n_slots) log p(0) of gappy features
    cdef double[::1] dense_at_0    # (n_slots,) the sum of the dense features'
    cdef double[::1] grown, sum    # (n_slots,) scratch
    cdef Py_ssize_t[::1] order     # (n_dense,) dense features sorted by a
    cdef Py_ssize_t[::1] stop      # (n_dense,) where in `order` features of one logarithm end

    @staticmethod
    def default_hyper(n_levels):
        """(a, b) for a column of mean 1."""
        return np.array([1.0, 1.0])

    @staticmethod
    def grids(cells, n_levels):
        """Grids from the column's short times to well above its mean: see the module."""
        cells = np.asarray(cells, dtype=np.float64)
        cells = ordinary(cells[~np.isnan(cells)])
        cells = cells[cells > 0.0]
        short, mean = (np.quantile(cells, 0.05), cells.mean()) if len(cells) else (1.0, 1.0)
        low, high = 0.1 * max(short, LEAST_SHORT * mean), 100.0 * mean
        n_points = 1 + int(np.ceil(5.0 * np.log10(high / low)))  # as dense as the grid of a
        return [np.geomspace(0.1, 100.0, 16), np.geomspace(low, high, n_points)]

    def _set_up(self, table, hyper):
        ColumnFamily._set_up(self, table, hyper)
        self._find_runs()

    def _layout(self):
        shape = self.n_features, SLOTS
        return {"n": (np.int64, shape), "total": (np.float64, shape)}

    def _hold(self, n_slots, n, total):
        self.n, self.total = n, total
        self.inverse, self.gappy_at_0 = np.zeros((2, self.n_features, n_slots))
        self.dense_at_0, self.grown, self.sum = np.zeros((3, n_slots))

    def _find_runs(self):
        """Dense features of equal a have equal alpha, so they share a logarithm."""
        cdef Py_ssize_t i, last
        a = np.asarray(self.hyper)[0, :self.n_dense]
        self.order = np.argsort(a, kind="stable")
        self.stop = np.zeros(self.n_dense, dtype=np.intp)
        for i in range(self.n_dense):
            last = i
            while (last < min(i + SHARED, self.n_dense)
                   and self.hyper[0, self.order[last]] == self.hyper[0, self.order[i]]):
                last += 1
            self.stop[i] = last

    # log p(x) = log p(0) - (alpha + 1) log(1 + x/beta), log p(0) = log(alpha/beta); the products of
    # 1 + x/beta, less 1, keep the digits of small x/beta
    cdef void add_scores(self, const char *row, Py_ssize_t n_tiles, float *out) noexcept nogil:
        cdef Py_ssize_t n_slots = n_tiles * TILE, i = 0, j, f, k
        cdef double x, y
        for k in range(n_slots):
            self.sum[k] = self.dense_at_0[k]
        while i < self.n_dense:
            for k in range(n_slots):
                self.grown[k] = 0.0
            for j in range(i, self.stop[i]):
                f = self.order[j]
                x = cell_at(row, self.offset[f])
                for k in range(n_slots):
                    y = x * self.inverse[f, k]
                    self.grown[k] += y + y * self.grown[k]
            f = self.order[i]
            for k in range(n_slots):
                self.sum[k] -= (self.hyper[0, f] + self.n[f, k] + 1.0) * log1p(self.grown[k])
            i = self.stop[i]
        for f in range(self.n_dense, self.n_features):
            x = cell_at(row, self.offset[f])
            if x != x:
                continue
            for k in range(n_slots):
                self.sum[k] += (self.gappy_at_0[f, k] - (self.hyper[0, f] + self.n[f, k] + 1.0)
                                * log1p(x * self.inverse[f, k]))
        for k in range(n_slots):
            out[k] += <float> self.sum[k]

    cdef float score_without(self, const char *row, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t f
        cdef double x, alpha, beta, total = 0.0
        for f in range(self.n_features):
            x = cell_at(row, self.offset[f])
            if x != x:
                continue
            alpha = self.hyper[0, f] + (self.n[f, k] - 1)
            beta = self.hyper[1, f] + max(0.0, self.total[f, k] - x)
            total += log(alpha / beta) - (alpha + 1.0) * log1p(x / beta)
        return <float> total

    cdef void update(self, const char *row, Py_ssize_t k, int sign) noexcept nogil:
        cdef Py_ssize_t f
        cdef double x
        self.size[k] += sign
        for f in range(self.n_features):
            x = cell_at(row, self.offset[f])
            if x != x:
                continue
            self.n[f, k] += sign
            self.total[f, k] = max(0.0, self.total[f, k] + sign * x) if self.n[f, k] else 0.0
        self.refresh(k)

    cdef bint cancels(self, const char *row, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t f
        for f in range(self.n_features):
            if is_far(cell_at(row, self.offset[f]), 0.0):
                return True
        return False

    cdef void refresh(self, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t f
        cdef double ratio, product = 1.0
        self.dense_at_0[k] = 0.0
        for f in range(self.n_features):
            self.inverse[f, k] = 1.0 / (self.hyper[1, f] + self.total[f, k])
            ratio = (self.hyper[0, f] + self.n[f, k]) * self.inverse[f, k]
            if f >= self.n_dense:
                self.gappy_at_0[f, k] = log(ratio)
                continue
            product *= ratio
            if f % SHARED == SHARED - 1 or f == self.n_dense - 1:
                self.dense_at_0[k] += log(product)
                product = 1.0

    cdef double log_marginal_feature(self, Py_ssize_t f, Py_ssize_t k) noexcept nogil:
        if self.n[f, k] == 0:
            return 0.0
        return marginal(self.n[f, k], self.total[f, k], self.hyper[0, f], self.hyper[1, f])

    cdef void score_grid(self, Py_ssize_t f, Py_ssize_t h, const double *grid, Py_ssize_t n_grid,
                         double *out) noexcept nogil:
        cdef double a = self.hyper[0, f], b = self.hyper[1, f]
        cdef Py_ssize_t g, k
        for g in range(n_grid):
            if h == 0:
                a = grid[g]
            else:
                b = grid[g]
            out[g] = 0.0
            for k in range(self.n_slots):
                if self.n[f, k] > 0:
                    out[g] += marginal(self.n[f, k], self.total[f, k], a, b)

    def refresh_all(self):
        self._find_runs()
        FamilyBlock.refresh_all(self)

    def _posterior(self, f):
        """(alpha, beta) of feature f in every slot, each of shape (n_slots,)."""
        a, b = self.get_hyper(f)
        return a + np.asarray(self.n)[f], b + np.asarray(self.total)[f]

    def score_feature(self, Py_ssize_t f, Table table, out, Py_ssize_t start, Py_ssize_t stop):
        """Add feature f's log predictive density, in the user's units, to out: (rows, n)."""
        cdef double[:, ::1] scores = out
        cdef Py_ssize_t n_slots = scores.shape[1], i, k
        cdef int32_t position = table.positions[self.columns[f]]
        shape, rate = self._posterior(f)
        cdef double[::1] alpha = shape, beta = rate
        cdef double[::1] at_0 = np.log(shape / rate) - log(table.scales[self.columns[f]])
        cdef double x
        with nogil:
            for i in range(start, stop):
                x = cell_at(table.row(i), position)
                if x != x:
                    continue
                for k in range(n_slots):
                    scores[i - start, k] += at_0[k] - (alpha[k] + 1.0) * log1p(x / beta[k])

    def log_jacobian(self):
        """Sum over cells of -log(scale): what takes log marginals from cell to user's units."""
        return -float(np.asarray(self.n).sum(axis=1) @ np.log(self.table.scales[self.columns]))

    def predictive_mean(self, Py_ssize_t f):
        """Mean of the predictive in every slot, in cell units; see LEAST_OF_MEAN."""
        alpha, beta = self._posterior(f)
        return beta / (np.maximum(alpha, LEAST_OF_MEAN) - 1)

    def predictive_variance(self, Py_ssize_t f):
        """Variance of the predictive in every slot, in cell units; see LEAST_OF_VARIANCE."""
        alpha = np.maximum(self._posterior(f)[0], LEAST_OF_VARIANCE)
        return self.predictive_mean(f) ** 2 * alpha / (alpha - 2)

    def sample_feature(self, Py_ssize_t f, slots, bit_generator):
        """One predictive cell for each of `slots`: float64 of the same shape, in cell units."""
        cdef bitgen_t *rng = bitgen(bit_generator)
        cdef const int64_t[::1] slot = np.ascontiguousarray(slots, dtype=np.int64)
        cdef double[::1] out = np.empty(len(slot))
        shape, rate = self._posterior(f)
        cdef const double[::1] alpha = shape, beta = rate
        cdef double most = LARGEST_CELL, waited   # of a tiny alpha the rate may underflow to 0
        cdef Py_ssize_t i
        for i in range(slot.shape[0]):
            waited = -log(1.0 - uniform(rng)) * beta[slot[i]]
            out[i] = min(most, waited / standard_gamma(rng, alpha[slot[i]]))
        return np.asarray(out)
