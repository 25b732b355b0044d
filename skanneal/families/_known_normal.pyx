"""Normal rows of known covariance: clusters differ in their means alone.

Model, per row of d cells: x ~ N(mu, Sigma), mu ~ N(m0, V0), with Sigma and V0 given. With A such
that A Sigma A' = 1 and A V0 A' = diag(v), the coordinates of z = A (x - m0) are independent: with
n rows of sum s, the predictive of each is normal with

    mean v s / (1 + n v), variance 1 + v / (1 + n v).

Statistics are n, s and the centred sum of squares of all coordinates. The statistics
depend on A, so hyperparameters are fixed and none is inferred.
"""

from libc.math cimport log, sqrt
from libc.stdint cimport int32_t, int64_t
from numpy.random cimport bitgen_t

import math

import numpy as np

from .._native._random cimport bitgen, standard_normal
from ._number_rows cimport NumberRows
from ._slots cimport TILE, aligned_zeros
from ._table cimport Table

from ._forms import flatten, starts, unflatten
from ._slots import SLOTS, TILES

cdef double LOG_2_PI = 1.8378770664093453
cdef double EQUAL = 1e-12   # relative difference below which variances count as equal

cdef extern from "_gaps.h" nogil:
    double project_out(double *, int64_t, int64_t, double *, double *, double *)

cdef extern from "_known_normal.h" nogil:
    enum: KNOWN_MEMO
    ctypedef struct KnownBlock:
        int64_t d, stride
        int32_t diagonal, equal, adjacent, fickle
        const int32_t *offset
        const double *centre
        const double *rotation
        const double *log_scale
        const double *variance
        double log_det
        int64_t *size
        double *sum
        double *squares
        float *location
        float *precision
        float *scalar
        const char *row
        double *cell
        double *z
        float *z_f
        const int64_t *gap
        float *spanned
        int64_t *memo_size
        double *memo_value
    int skanneal_level()
    void (*known_add_scores_v[3])(KnownBlock *, const char *, int64_t, float *) noexcept
    void (*known_add_observed_v[3])(KnownBlock *, const char *, int64_t, int64_t, float *) noexcept
    void (*known_update_v[3])(KnownBlock *, const char *, int64_t, int) noexcept
    void (*known_extend_v[3])(KnownBlock *, const char *, int64_t, int64_t) noexcept
    void (*known_refresh_v[3])(KnownBlock *, int64_t) noexcept
    float (*known_score_without_v[3])(KnownBlock *, const char *, int64_t) noexcept
    float (*known_score_observed_without_v[3])(KnownBlock *, const char *, int64_t,
                                               int64_t) noexcept


cdef class KnownNormal(NumberRows):
    """Rows of numbers whose covariance is given: covariance, prior_mean, prior_covariance."""

    family = "known_normal"
    coordinate_names = ("covariance", "prior_mean", "prior_covariance")
    forms = ("covariance", "location", "covariance")
    required = ("covariance",)
    bounds_density = "covariance"

    cdef KnownBlock block
    cdef object hyper                       # the flat vector
    cdef double[::1] centre, variance       # m0 and v
    cdef double[:, ::1] rotation, inverse   # A and its inverse
    cdef double[:, :, ::1] sum              # (n_tiles, d, 16)
    cdef double[::1] squares                # (n_slots,)
    cdef object scratch, caches, memo, spans   # keep the arrays alive

    @staticmethod
    def default_hyper(table, columns):
        """For columns of mean 0 and variance 1: cluster means vary as much as the table's rows."""
        d = len(columns)
        return flatten(KnownNormal.forms, [np.eye(d), np.zeros(d), np.eye(d)], d)

    @staticmethod
    def grids(table, columns):
        """Nothing is inferred."""
        return [None] * starts(KnownNormal.forms, len(columns))[3]

    def _set_up(self, table, hyper):
        cdef double[:, ::1] vectors, lines
        cdef double[::1] memo_value
        cdef float[::1] z_f
        cdef int64_t[::1] memo_size
        cdef Py_ssize_t stride
        NumberRows._set_up(self, table, hyper)
        stride = (self.d + 7) // 8 * 8
        self.level = skanneal_level()
        self.hyper = hyper[0]
        covariance, prior_mean, prior_covariance = unflatten(self.forms, hyper[0], self.d)
        rotation, inverse, variance = diagonalise(covariance, prior_covariance)
        off = rotation[~np.eye(self.d, dtype=bool)]
        self.block.diagonal = not off.any()
        self.block.equal = np.ptp(variance) <= EQUAL * variance[0]
        if self.block.equal:
            variance[:] = variance[0]
        self.centre, self.variance = prior_mean, variance
        self.rotation, self.inverse = rotation, inverse
        self.block.log_det = -log_det_of(covariance)
        lines = aligned_zeros((self.d, stride), np.float64)
        if self.block.diagonal:
            np.asarray(lines)[0, :self.d] = np.diag(rotation)
        else:
            np.asarray(lines)[:, :self.d] = rotation
        vectors = aligned_zeros((3, stride), np.float64)
        if self.block.diagonal:
            np.asarray(vectors)[2, :self.d] = np.log(np.diag(rotation))
        z_f = aligned_zeros((stride,), np.float32)
        self.scratch = vectors, lines, z_f
        self.block.d, self.block.stride = self.d, stride
        self.block.centre, self.block.variance = &self.centre[0], &self.variance[0]
        self.block.rotation, self.block.log_scale = &lines[0, 0], &vectors[2, 0]
        self.block.cell, self.block.z, self.block.z_f = &vectors[0, 0], &vectors[1, 0], &z_f[0]
        memo_size, memo_value = np.full(KNOWN_MEMO, -1, dtype=np.int64), np.zeros(KNOWN_MEMO)
        self.memo = memo_size, memo_value
        self.block.memo_size, self.block.memo_value = &memo_size[0], &memo_value[0]

    def bind(self, Table table):
        cdef float[::1] spanned
        NumberRows.bind(self, table)
        self.block.offset, self.block.row = &self.offset[0], NULL
        self.block.fickle, self.block.gap = self.may_miss, &self.gap[0]
        if self.may_miss:
            spanned = self.spans = aligned_zeros(((self.d + 1) * self.d * TILE,), np.float32)
            self.block.spanned = &spanned[0]
        self.block.adjacent = bool(np.all(np.diff(self.offset) == sizeof(float)))

    def _layout(self):
        return {"sum": (np.float64, (TILES, self.d, TILE)), "squares": (np.float64, (SLOTS,))}

    def _hold(self, n_slots, total, squares):
        cdef float[::1] location, precision, scalar
        cdef Py_ssize_t n_tiles = n_slots // TILE
        cdef Py_ssize_t n_precisions = 1 if self.block.equal else n_tiles * self.d * TILE
        self.sum, self.squares = total, squares
        location = aligned_zeros((n_tiles * self.d * TILE,), np.float32)
        precision = aligned_zeros((n_precisions,), np.float32)
        scalar = aligned_zeros((n_tiles * 2 * TILE,), np.float32)
        self.caches = location, precision, scalar
        self.block.location, self.block.precision = &location[0], &precision[0]
        self.block.scalar = &scalar[0]
        self.block.size, self.block.squares = &self.size[0], &self.squares[0]
        self.block.sum = &self.sum[0, 0, 0]

    cdef void add_scores(self, const char *row, Py_ssize_t n_tiles, float *out) noexcept nogil:
        if not self.misses(row):
            known_add_scores_v[self.level](&self.block, row, n_tiles, out)
        elif self.n_gaps < self.d:
            known_add_observed_v[self.level](&self.block, row, self.n_gaps, n_tiles, out)

    cdef float score_without(self, const char *row, Py_ssize_t k) noexcept nogil:
        return known_score_without_v[self.level](&self.block, row, k)

    cdef float observed_without(self, const char *row, Py_ssize_t k) noexcept nogil:
        return known_score_observed_without_v[self.level](&self.block, row, k, self.n_gaps)

    cdef void update(self, const char *row, Py_ssize_t k, int sign) noexcept nogil:
        known_update_v[self.level](&self.block, row, k, sign)

    cdef void extend(self, const char *row, Py_ssize_t n_tiles, Py_ssize_t opened) noexcept nogil:
        known_extend_v[self.level](&self.block, row, n_tiles, opened)

    cdef bint cancels(self, const char *row, Py_ssize_t k) noexcept nogil:
        return True   # the sums are of other coordinates than the cells

    cdef void refresh(self, Py_ssize_t k) noexcept nogil:
        known_refresh_v[self.level](&self.block, k)

    cdef void drop(self, Py_ssize_t k) noexcept nogil:
        self.size[k] = 0

    cdef void merge(self, Py_ssize_t i, Py_ssize_t k) noexcept nogil:
        cdef double n_i = self.size[i], n_k = self.size[k], delta, total = 0.0
        cdef double *ours
        cdef double *theirs
        cdef Py_ssize_t f
        for f in range(self.d):
            ours = &self.sum[i // TILE, f, i % TILE]
            theirs = &self.sum[k // TILE, f, k % TILE]
            if n_i > 0.0 and n_k > 0.0:
                delta = theirs[0] / n_k - ours[0] / n_i
                total += delta * delta
            ours[0] += theirs[0]
        if n_k > 0.0:
            self.squares[i] += self.squares[k] + total * n_i * n_k / (n_i + n_k)
        self.size[i] += self.size[k]
        self.clear(k)
        self.refresh(i)

    cdef double log_marginal_feature(self, Py_ssize_t f, Py_ssize_t k) noexcept nogil:
        cdef double n = self.size[k], logs = 0.0, squares = self.squares[k], s, inverse
        cdef Py_ssize_t j
        if n == 0.0:
            return 0.0
        for j in range(self.d):
            s = self.sum[k // TILE, j, k % TILE]
            inverse = 1.0 / (1.0 + n * self.variance[j])
            logs += log(inverse)
            squares += s / n * s * inverse
        return n * self.block.log_det + 0.5 * (logs - squares - n * self.d * LOG_2_PI)

    # ---- hyperparameters ------------------------------------------------------------------------

    def grid_scores(self, Py_ssize_t f, Py_ssize_t h, grid):
        """Not of this family: sums of squares under another covariance are not kept."""
        raise ValueError("the hyperparameters of 'known_normal' are given, not inferred")

    def set_hyper(self, Py_ssize_t f, Py_ssize_t h, double value):
        """Not of this family: a block is made with its hyperparameters."""
        raise ValueError("the hyperparameters of 'known_normal' are given, not inferred")

    def get_hyper(self, Py_ssize_t f):
        """The flat vector of hyperparameters, in cell units."""
        return self.hyper.copy()

    # ---- queries --------------------------------------------------------------------------------

    def _posterior(self, n_slots):
        """(location, precision) of z in the first n_slots slots, each (n_slots, d), float64."""
        n = np.asarray(self.size)[:n_slots, None].astype(np.float64)
        total = np.asarray(self.sum).transpose(0, 2, 1).reshape(-1, self.d)[:n_slots]
        v = np.asarray(self.variance)
        return v / (1.0 + n * v) * total, (1.0 + n * v) / (1.0 + (n + 1.0) * v)

    cdef double precision(self, Py_ssize_t k, Py_ssize_t f) noexcept nogil:
        """Of the f-th coordinate of z in slot k."""
        cdef double n = self.size[k], v = self.variance[f]
        return (1.0 + n * v) / (1.0 + (n + 1.0) * v)

    cdef double location(self, Py_ssize_t k, Py_ssize_t j) noexcept nogil:
        cdef Py_ssize_t f
        cdef double v, out = self.centre[j]
        cdef Py_ssize_t first = j if self.block.diagonal else 0
        cdef Py_ssize_t last = j + 1 if self.block.diagonal else self.d
        for f in range(first, last):
            v = self.variance[f]
            out += (self.inverse[j, f] * v / (1.0 + self.size[k] * v)
                    * self.sum[k // TILE, f, k % TILE])
        return out

    cdef void whitening(self, Py_ssize_t k, Py_ssize_t j, double *column) noexcept nogil:
        cdef Py_ssize_t f
        for f in range(self.d):
            column[f] = self.rotation[f, j] * sqrt(self.precision(k, f))

    cdef double condition(self, Py_ssize_t k) noexcept nogil:
        """As inherited, but the centres of the observed cells are subtracted in z."""
        cdef Py_ssize_t f, j, l
        cdef double n = self.size[k], v
        for j in range(self.d):
            self.z[j] = self.number[j] - self.centre[j]
        for l in range(self.n_gaps):
            j = self.gap[l]
            self.z[j] = self.location(k, j) - self.centre[j]
            self.whitening(k, j, &self.spanned[l, 0])
        for f in range(self.d):
            v = self.variance[f]
            self.rest[f] = -v / (1.0 + n * v) * self.sum[k // TILE, f, k % TILE]
            if self.block.diagonal:
                self.rest[f] += self.rotation[f, f] * self.z[f]
            else:
                for j in range(self.d):
                    self.rest[f] += self.rotation[f, j] * self.z[j]
            self.rest[f] *= sqrt(self.precision(k, f))
        return project_out(&self.spanned[0, 0], self.n_gaps, self.d, &self.rest[0],
                           &self.r[0, 0], &self.along[0])

    cdef double condition_fill(self, Py_ssize_t k) noexcept nogil:
        """Where every coordinate is of one cell, the observed ones say nothing of the others."""
        cdef Py_ssize_t l, later, j
        if not self.block.diagonal:
            return self.condition(k)
        for l in range(self.n_gaps):
            j = self.gap[l]
            self.along[l], self.r[l, l] = 0.0, self.rotation[j, j] * sqrt(self.precision(k, j))
            for later in range(l + 1, self.n_gaps):
                self.r[l, later] = 0.0
        return 0.0

    cdef double log_constant(self, Py_ssize_t k, Py_ssize_t n) noexcept nogil:
        cdef Py_ssize_t f
        cdef double out = self.block.log_det - 0.5 * n * LOG_2_PI
        for f in range(self.d):
            out += 0.5 * log(self.precision(k, f))
        return out

    cdef double log_kernel(self, Py_ssize_t k, Py_ssize_t n, double q) noexcept nogil:
        return -0.5 * q

    cdef void _transform(self, double *z) noexcept nogil:
        """z of the cells that were read."""
        cdef Py_ssize_t f, j
        cdef double *cell = self.block.cell
        self.block.row = NULL
        for f in range(self.d):
            cell[f] = self.number[f] - self.centre[f]
        for f in range(self.d):
            z[f] = 0.0
            for j in range(self.d):
                z[f] += self.rotation[f, j] * cell[j]

    def score_rows(self, Table table, out, start=0, stop=None):
        """Add each row's log predictive density, in the user's units, to out: (rows, n).

        Missing cells are integrated out."""
        cdef double[:, ::1] scores = out
        cdef Py_ssize_t first = start, last = table.n_rows if stop is None else stop, i, k, f
        cdef int32_t[::1] position = np.ascontiguousarray(table.positions[self.columns], np.int32)
        mean, weight = self._posterior(scores.shape[1])
        shift = self.block.log_det - np.log(table.scales[self.columns]).sum()
        cdef double[:, ::1] location = mean, precision = weight
        cdef double[::1] constant = shift + 0.5 * (np.log(weight) - LOG_2_PI).sum(axis=1)
        cdef double[::1] z = np.empty(self.d)
        cdef double q
        with nogil:
            for i in range(first, last):
                if self.read(table.observed(i), &position[0]):
                    continue
                self._transform(&z[0])
                for k in range(scores.shape[1]):
                    q = 0.0
                    for f in range(self.d):
                        q += precision[k, f] * (z[f] - location[k, f]) ** 2
                    scores[i - first, k] += constant[k] - 0.5 * q
        self._score_gaps(table, out, start)

    def score_feature(self, Py_ssize_t i, Table table, out, Py_ssize_t start, Py_ssize_t stop):
        """Add the log density of the i-th column's cell given the row's others, to out: (rows, n).

        With P = A' diag(precision) A and y = P e, the cell is normal about x_i - y_i / P_ii with
        variance 1 / P_ii."""
        cdef double[:, ::1] scores = out
        cdef int32_t[::1] position = np.ascontiguousarray(table.positions[self.columns], np.int32)
        mean, weight = self._posterior(scores.shape[1])
        column = np.asarray(self.rotation)[:, i]
        cdef double[:, ::1] location = mean, share = weight * column
        cdef double[::1] own = weight @ column ** 2
        cdef double[::1] z = np.empty(self.d)
        cdef double shift = log(table.scales[self.columns[i]]), y
        cdef Py_ssize_t row, k, f
        with nogil:
            for row in range(start, stop):
                if self.read(table.observed(row), &position[0]):
                    continue
                self._transform(&z[0])
                for k in range(scores.shape[1]):
                    y = 0.0
                    for f in range(self.d):
                        y += share[k, f] * (z[f] - location[k, f])
                    scores[row - start, k] += (0.5 * (log(own[k]) - LOG_2_PI - y * y / own[k])
                                               - shift)
        self._score_gaps(table, out, start, i)

    def log_jacobian(self):
        """Sum over cells of -log(scale): what takes log marginals from cell to user's units."""
        n = int(np.asarray(self.size).sum())
        return -n * float(np.log(self.table.scales[self.columns]).sum())

    def predictive_mean(self, Py_ssize_t i):
        """Mean of the i-th column's predictive in every slot, in cell units."""
        location, _ = self._posterior(self.n_slots)
        return self.centre[i] + (location * np.asarray(self.inverse)[i]).sum(axis=1)

    def sample_rows(self, slots, bit_generator):
        """One predictive row for each of `slots`: float64 (n, n_columns), in cell units."""
        cdef bitgen_t *rng = bitgen(bit_generator)
        cdef const int64_t[::1] slot = np.ascontiguousarray(slots, dtype=np.int64)
        mean, weight = self._posterior(self.n_slots)
        cdef double[:, ::1] location = mean, precision = weight
        cdef double[:, ::1] out = np.empty((len(slot), self.d))
        cdef double[::1] z = np.empty(self.d)
        cdef Py_ssize_t i, f, j, k
        with nogil:
            for i in range(slot.shape[0]):
                k = slot[i]
                for f in range(self.d):
                    z[f] = location[k, f] + standard_normal(rng) / sqrt(precision[k, f])
                for j in range(self.d):
                    out[i, j] = self.centre[j]
                    for f in range(self.d):
                        out[i, j] += self.inverse[j, f] * z[f]
        return np.asarray(out)

    # ---- state as arrays ------------------------------------------------------------------------

    def parameters(self):
        """Hyperparameters in their natural forms."""
        return dict(zip(self.coordinate_names, unflatten(self.forms, self.hyper, self.d)))


# ---- A, by loops of our own: LAPACK's bits differ between machines ------------------------------


def diagonalise(covariance, prior_covariance):
    """A, its inverse and v with A covariance A' = 1 and A prior_covariance A' = diag(v)."""
    d = len(covariance)
    if not (covariance - np.diag(np.diag(covariance))).any():
        if not (prior_covariance - np.diag(np.diag(prior_covariance))).any():
            deviations = np.sqrt(np.diag(covariance))
            return (np.diag(1.0 / deviations), np.diag(deviations),
                    np.diag(prior_covariance) / deviations / deviations)
    lower = np.zeros((d, d))
    inverse = np.zeros((d, d))
    factorise(np.ascontiguousarray(covariance), lower, inverse)
    whitened = _product(_product(inverse, prior_covariance), inverse.T)
    whitened = np.ascontiguousarray(0.5 * (whitened + whitened.T))
    typical = np.diag(whitened).max()
    if np.abs(whitened - typical * np.eye(d)).max() <= EQUAL * typical:
        return inverse, lower, np.full(d, typical)
    vectors = np.eye(d)
    rotate_away(whitened, vectors)
    return (np.ascontiguousarray(_product(vectors.T, inverse)),
            np.ascontiguousarray(_product(lower, vectors)), np.diag(whitened).copy())


def log_det_of(covariance):
    """Half the log determinant."""
    lower, inverse = np.zeros_like(covariance), np.zeros_like(covariance)
    factorise(covariance, lower, inverse)
    return sum(map(math.log, np.diag(lower)))


def _product(a, b):
    """The matrix product as a sum of outer products, in this order."""
    out = np.zeros((len(a), b.shape[1]))
    for i in range(b.shape[0]):
        out += np.multiply.outer(a[:, i], b[i])
    return out


cdef factorise(const double[:, ::1] matrix, double[:, ::1] lower, double[:, ::1] inverse):
    """The Cholesky factor and its inverse."""
    cdef Py_ssize_t d = matrix.shape[0], i, j, k
    cdef double value
    for i in range(d):
        for j in range(i + 1):
            value = matrix[i, j]
            for k in range(j):
                value -= lower[i, k] * lower[j, k]
            lower[i, j] = value / lower[j, j] if j < i else sqrt(value)
    for i in range(d):
        inverse[i, i] = 1.0 / lower[i, i]
        for j in range(i):
            value = 0.0
            for k in range(j, i):
                value -= lower[i, k] * inverse[k, j]
            inverse[i, j] = value / lower[i, i]


cdef rotate_away(double[:, ::1] matrix, double[:, ::1] vectors):
    """Jacobi's eigenvalues and eigenvectors of a symmetric matrix, in place: cyclic rotations."""
    cdef Py_ssize_t d = matrix.shape[0], p, q, k, rotations = 1, sweep = 0
    cdef double tau, t, c, s, a, b
    while rotations and sweep < 60:
        rotations = 0
        sweep += 1
        for p in range(d - 1):
            for q in range(p + 1, d):
                a = abs(matrix[p, p]) * abs(matrix[q, q])
                if matrix[p, q] * matrix[p, q] <= 1e-32 * a:
                    matrix[p, q] = matrix[q, p] = 0.0
                    continue
                rotations += 1
                tau = (matrix[q, q] - matrix[p, p]) / (2.0 * matrix[p, q])
                t = (1.0 if tau >= 0.0 else -1.0) / (abs(tau) + sqrt(1.0 + tau * tau))
                c = 1.0 / sqrt(1.0 + t * t)
                s = t * c
                for k in range(d):
                    a, b = matrix[k, p], matrix[k, q]
                    matrix[k, p], matrix[k, q] = c * a - s * b, s * a + c * b
                for k in range(d):
                    a, b = matrix[p, k], matrix[q, k]
                    matrix[p, k], matrix[q, k] = c * a - s * b, s * a + c * b
                for k in range(d):
                    a, b = vectors[k, p], vectors[k, q]
                    vectors[k, p], vectors[k, q] = c * a - s * b, s * a + c * b
