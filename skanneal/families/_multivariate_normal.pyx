"""Normal rows with a normal-inverse-Wishart prior: clusters with full covariances.

Model, per row of d cells: x ~ N(mu, Sigma), mu ~ N(mu0, Sigma / kappa0), Sigma ~ IW(nu0, Psi0).
With n rows of mean m and centred sum of products S,

    kappa = kappa0 + n, nu = nu0 + n, mu_n = mu0 + n/kappa (m - mu0),
    Psi = Psi0 + S + kappa0 n/kappa (m - mu0)(m - mu0)',

the predictive is a multivariate t of nu - d + 1 degrees of freedom, centre mu_n and squared scale
Psi (kappa + 1) / (kappa (nu - d + 1)).

Statistics are n, m, S, and the inverse Cholesky factor W of Psi, which follows each row by a
rank-one update (_multivariate_normal_kernels.h); it belongs to the statistics because its roundings
depend on its past. Matrices are kept as lower triangles.
"""

from libc.math cimport INFINITY, log, log1p, sqrt
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy, memset
from numpy.random cimport bitgen_t

import numpy as np

from .._native._math cimport log_gamma
from .._native._random cimport bitgen, standard_gamma, standard_normal
from ._base cimport FamilyBlock
from ._number_rows cimport NumberRows
from ._slots cimport TILE, aligned_zeros
from ._table cimport Table, is_far

from ._forms import diagonal, flatten, lower_triangle, starts, unflatten
from ._normal_division import NormalColumns
from ._normal_grids import DEGREES, OF_OBSERVED_MEAN, START, TOO_WIDE, typical_variances
from ._slots import SLOTS

cdef double LOG_PI = 1.1447298858494002

cdef extern from "_multivariate_normal.h" nogil:
    int skanneal_level()
    void (*mvn_add_scores_v[3])(const MvnBlock *, const char *, int64_t, float *) noexcept
    void (*mvn_add_observed_v[3])(MvnBlock *, const char *, int64_t, int64_t, float *) noexcept
    void (*mvn_distances_v[3])(MvnBlock *, const char *, int64_t, int64_t, float *,
                               float *) noexcept
    void (*mvn_enter_v[3])(MvnBlock *, const char *, int64_t, double) noexcept
    void (*mvn_update_v[3])(MvnBlock *, const char *, int64_t, int, double) noexcept
    void (*mvn_refresh_v[3])(MvnBlock *, int64_t) noexcept
    void (*mvn_refactor_v[3])(MvnBlock *, int64_t) noexcept
    double (*mvn_without_v[3])(MvnBlock *, const char *, int64_t, double, int64_t,
                               double *) noexcept
    float (*mvn_score_without_v[3])(MvnBlock *, const char *, int64_t, double, int64_t) noexcept
    double (*mvn_factorise_v[3])(MvnBlock *, double, const double *, const double *, int,
                                 double *) noexcept
    int (*mvn_rank_one_v[3])(MvnBlock *, double *, const double *, double) noexcept
    double (*mvn_log_det_v[3])(const MvnBlock *, const double *) noexcept
    double (*mvn_solve_v[3])(const MvnBlock *, const double *, const double *, double *) noexcept
    double (*mvn_weigh_v[3])(MvnBlock *, const char *, int64_t, double) noexcept
    void (*mvn_join_v[3])(MvnBlock *, const char *, int64_t, double) noexcept


cdef double log_gamma_ratio(double nu, double n, Py_ssize_t d) noexcept nogil:
    """log of the multivariate gamma function at (nu + n)/2 less that at nu/2."""
    cdef double out = 0.0
    cdef Py_ssize_t j
    for j in range(d):
        out += log_gamma(0.5 * (nu + n - j)) - log_gamma(0.5 * (nu - j))
    return out


cdef class MultivariateNormal(NumberRows):
    """Rows of numbers, with a full covariance in each cluster: mu0, kappa0, nu0, scale0."""

    family = "multivariate_normal"
    default_for = "float"
    division = NormalColumns
    coordinate_names = ("mu0", "kappa0", "nu0", "scale0")
    forms = ("location", "positive", "positive", "covariance")
    restricting_ends = {"scale0": TOO_WIDE}
    bounds_density = "scale0"
    derived = ("total",)    # rows without weights: their number

    @staticmethod
    def default_hyper(table, columns):
        """Hyperparameters for columns of mean 0 and variance 1."""
        cdef Py_ssize_t d = len(columns)
        cdef double nu0 = d - 1 + DEGREES
        return flatten(MultivariateNormal.forms, [np.zeros(d), 0.1, nu0, START * nu0 * np.eye(d)],
                       d)

    @staticmethod
    def grids(table, columns):
        """Grids in cell units, scaled by the columns: see doc/families.md."""
        cdef Py_ssize_t d = len(columns)
        cdef double nu0 = d - 1 + DEGREES
        at = starts(MultivariateNormal.forms, d)
        out = [None] * at[4]
        out[at[1]] = OF_OBSERVED_MEAN
        out[at[2]] = np.array([nu0])
        for j, place in enumerate(diagonal(d)):
            cells = table.column(columns[j])
            out[at[3] + place] = nu0 * typical_variances(cells[~np.isnan(cells)])
        return out

    @staticmethod
    def settled_rows(n_columns):
        """One row for each parameter of a component. Fewer rows are as probable in many components
        of a common shape as in one, whose covariance they hardly determine; hyperparameters that
        are drawn then fit the many components, and later rows do not correct them."""
        return n_columns * (n_columns + 3) // 2

    @staticmethod
    def check_hyper(flat, n_columns):
        if flat[n_columns + 1] <= n_columns - 1:
            return "nu0", (f"above the family's number of columns less one, {n_columns - 1}, "
                           f"got {flat[n_columns + 1]}")
        return None

    def _set_up(self, table, hyper):
        cdef double[:, ::1] vectors, matrices
        cdef double[::1] memo_value
        cdef float[::1] deviation
        cdef int64_t[::1] memo_size
        NumberRows._set_up(self, table, hyper)
        self.stride = (self.d + 7) // 8 * 8
        self.level = skanneal_level()
        self.hyper = hyper[0]
        self.block.d, self.block.stride = self.d, self.stride
        self.block.mu0 = &self.hyper[0]
        self.block.kappa0, self.block.nu0 = &self.hyper[self.d], &self.hyper[self.d + 1]
        self.block.scale0 = &self.hyper[self.d + 2]
        vectors = aligned_zeros((7, self.stride), np.float64)
        matrices = aligned_zeros((3 * self.d, self.stride), np.float64)
        deviation = aligned_zeros((self.d * TILE,), np.float32)
        self.scratch = vectors, matrices, deviation
        self.block.cell, self.block.shift = &vectors[0, 0], &vectors[1, 0]
        self.block.vector, self.block.partial = &vectors[2, 0], &vectors[3, 0]
        self.block.along, self.block.pair = &vectors[4, 0], &vectors[5, 0]
        self.block.lower, self.block.spare = &matrices[0, 0], &matrices[self.d, 0]
        self.block.prior_factor = &matrices[2 * self.d, 0]
        self.block.deviation = &deviation[0]
        memo_size, memo_value = np.full(MVN_MEMO, -1, dtype=np.int64), np.zeros(MVN_MEMO)
        self.memo = memo_size, memo_value
        self.block.memo_size, self.block.memo_value = &memo_size[0], &memo_value[0]
        self._factorise_prior()

    cdef void _factorise_prior(self) noexcept nogil:
        memset(self.block.shift, 0, self.d * sizeof(double))
        self.prior_log_det = mvn_factorise_v[self.level](
            &self.block, 0.0, self.block.shift, NULL, 0, self.block.prior_factor)

    cdef void _refactor_all(self) noexcept nogil:
        """All factors from their scatters, after hyperparameters that they depend on changed."""
        cdef Py_ssize_t k
        self._factorise_prior()
        for k in range(self.n_slots):
            mvn_refactor_v[self.level](&self.block, k)
        self.stale = False

    def bind(self, Table table):
        cdef float[::1] spanned
        NumberRows.bind(self, table)
        self.block.offset, self.block.gap = &self.offset[0], &self.gap[0]
        if self.may_miss:
            spanned = self.spans = aligned_zeros(((self.d + 1) * self.d * TILE,), np.float32)
            self.block.spanned = &spanned[0]

    def _layout(self):
        matrices = SLOTS, self.d, self.stride
        return {"updates": (np.int64, (SLOTS,)), "mean": (np.float64, (SLOTS, self.stride)),
                "scatter": (np.float64, matrices), "factor": (np.float64, matrices),
                "total": (np.float64, (SLOTS,))}

    def _hold(self, n_slots, updates, mean, scatter, factor, total):
        cdef float[::1] location, weights, student
        cdef Py_ssize_t n_tiles = n_slots // TILE, k
        self.updates, self.mean, self.scatter, self.factor = updates, mean, scatter, factor
        self.total, self.log_det = total, np.zeros(n_slots)
        location = aligned_zeros((n_tiles * self.d * TILE,), np.float32)
        weights = aligned_zeros((n_tiles * (self.d * (self.d + 1) // 2) * TILE,), np.float32)
        student = aligned_zeros((n_tiles * 4 * TILE,), np.float32)
        self.caches = location, weights, student
        self.block.location, self.block.weights = &location[0], &weights[0]
        self.block.student = &student[0]
        self.block.size, self.block.updates = &self.size[0], &self.updates[0]
        self.block.total = &self.total[0]
        self.block.mean, self.block.scatter = &self.mean[0, 0], &self.scatter[0, 0, 0]
        self.block.factor, self.block.log_det = &self.factor[0, 0, 0], &self.log_det[0]
        for k in range(self.n_slots, n_slots):
            mvn_refactor_v[self.level](&self.block, k)

    cdef void add_scores(self, const char *row, Py_ssize_t n_tiles, float *out) noexcept nogil:
        if not self.misses(row):
            mvn_add_scores_v[self.level](&self.block, row, n_tiles, out)
        elif self.n_gaps < self.d:
            mvn_add_observed_v[self.level](&self.block, row, self.n_gaps, n_tiles, out)

    cdef double weight_of(self, const char *row) noexcept nogil:
        """The weight of a row: 1, except in a family whose rows have weights."""
        return 1.0

    cdef void distances(self, const char *row, Py_ssize_t n_tiles, float *q,
                        float *constant) noexcept nogil:
        """q of the observed cells in every slot, and what does not depend on it in their score."""
        if not self.misses(row):
            self.n_gaps = 0
        mvn_distances_v[self.level](&self.block, row, self.n_gaps, n_tiles, q, constant)

    cdef float score_without(self, const char *row, Py_ssize_t k) noexcept nogil:
        return mvn_score_without_v[self.level](&self.block, row, k, self.weight_of(row), 0)

    cdef float observed_without(self, const char *row, Py_ssize_t k) noexcept nogil:
        return mvn_score_without_v[self.level](&self.block, row, k, 1.0, self.n_gaps)

    cdef double distance_without(self, const char *observed, const char *row, Py_ssize_t k,
                                 double *log_det) noexcept nogil:
        """q of the observed cells of slot k's row in the slot without it, and log |W| - log |R|."""
        if not self.misses(observed):
            self.n_gaps = 0
        return mvn_without_v[self.level](&self.block, row, k, self.weight_of(row), self.n_gaps,
                                         log_det)

    cdef void update(self, const char *row, Py_ssize_t k, int sign) noexcept nogil:
        mvn_update_v[self.level](&self.block, row, k, sign, self.weight_of(row))

    cdef void weigh(self, const char *row, float *out) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(2):
            out[k] += <float> mvn_weigh_v[self.level](&self.block, row, k, self.weight_of(row))

    cdef void join(self, const char *row, Py_ssize_t k) noexcept nogil:
        mvn_join_v[self.level](&self.block, row, k, self.weight_of(row))

    cdef bint cancels(self, const char *row, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t j
        for j in range(self.d):
            if is_far((<const float *> (row + self.offset[j]))[0], self.mean[k, j]):
                return True
        return False

    cdef void refresh(self, Py_ssize_t k) noexcept nogil:
        mvn_refresh_v[self.level](&self.block, k)

    cdef void clear(self, Py_ssize_t k) noexcept nogil:
        self.slots.clear(k)
        self.settle(k)

    cdef void merge(self, Py_ssize_t i, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t a, b
        cdef double n_i = self.total[i], n_k = self.total[k], scaled
        cdef double *shift = self.block.shift
        if n_k > 0.0:
            for a in range(self.d):
                shift[a] = self.mean[k, a] - self.mean[i, a]
                self.mean[i, a] += shift[a] * n_k / (n_i + n_k)
            for a in range(self.d):
                scaled = shift[a] * n_i * n_k / (n_i + n_k)
                for b in range(a + 1):
                    self.scatter[i, a, b] += self.scatter[k, a, b] + scaled * shift[b]
            self.size[i] += self.size[k]
            self.total[i] += n_k
            mvn_refactor_v[self.level](&self.block, i)
            self.refresh(i)
        self.clear(k)

    # ---- marginal likelihoods and hyperparameters -----------------------------------------------

    cdef double marginal(self, Py_ssize_t k) noexcept nogil:
        """Log marginal likelihood of slot k's rows, of weights 1 but for their own powers."""
        cdef double kappa0 = self.block.kappa0[0], nu0 = self.block.nu0[0], n = self.size[k]
        return (log_gamma_ratio(nu0, n, self.d)
                + 0.5 * self.d * (log(kappa0 / (kappa0 + self.total[k])) - n * LOG_PI)
                - nu0 * self.prior_log_det + (nu0 + n) * self.log_det[k])

    cdef double log_marginal_feature(self, Py_ssize_t f, Py_ssize_t k) noexcept nogil:
        return self.marginal(k) if self.size[k] > 0 else 0.0

    cdef void score_grid(self, Py_ssize_t f, Py_ssize_t h, const double *grid, Py_ssize_t n_grid,
                         double *out) noexcept nogil:
        cdef Py_ssize_t j = 0, place = h - self.d - 2
        if self.stale:
            self._refactor_all()
        memset(out, 0, n_grid * sizeof(double))
        if h == self.d:
            self._score_kappa0(grid, n_grid, out)
        elif h == self.d + 1:
            self._score_nu0(grid, n_grid, out)
        else:
            while j * (j + 3) // 2 < place:
                j += 1
            if place == j * (j + 3) // 2:
                self._score_variance(j, grid, n_grid, out)
            else:
                self._score_any(h, grid, n_grid, out)

    cdef void _score_kappa0(self, const double *grid, Py_ssize_t n_grid,
                            double *out) noexcept nogil:
        """|A + c v v'| = |A| (1 + c v' A^-1 v) with A = Psi0 + S, c = kappa0 n / kappa."""
        cdef double *shift = self.block.vector
        cdef double n, q, nu = self.block.nu0[0]
        cdef Py_ssize_t k, j, g
        for k in range(self.n_slots):
            n = self.total[k]
            if n == 0.0:
                continue
            for j in range(self.d):
                shift[j] = self.mean[k, j] - self.hyper[j]
            mvn_factorise_v[self.level](&self.block, 0.0, shift, &self.scatter[k, 0, 0], 1,
                                        self.block.spare)
            q = mvn_solve_v[self.level](&self.block, self.block.spare, shift, NULL)
            for g in range(n_grid):
                out[g] += (0.5 * self.d * log(grid[g] / (grid[g] + n))
                           - 0.5 * (nu + self.size[k]) * log1p(grid[g] * n / (grid[g] + n) * q))

    cdef void _score_nu0(self, const double *grid, Py_ssize_t n_grid, double *out) noexcept nogil:
        cdef double log_det   # not the cached one: kappa0 may just have changed
        cdef Py_ssize_t k, g
        for k in range(self.n_slots):
            if self.size[k] == 0:
                continue
            log_det = mvn_log_det_v[self.level](&self.block, &self.factor[k, 0, 0])
            for g in range(n_grid):
                out[g] += (log_gamma_ratio(grid[g], self.size[k], self.d)
                           - grid[g] * (self.prior_log_det - log_det))

    cdef double _inverse_diagonal(self, const double *factor, Py_ssize_t j) noexcept nogil:
        """The j-th diagonal entry of the inverse of the matrix whose factor this is."""
        cdef double out = 0.0
        cdef Py_ssize_t i
        for i in range(j, self.d):
            out += factor[i * self.stride + j] * factor[i * self.stride + j]
        return out

    cdef void _score_variance(self, Py_ssize_t j, const double *grid, Py_ssize_t n_grid,
                              double *out) noexcept nogil:
        """|Psi + c e_j e_j'| = |Psi| (1 + c (Psi^-1)_jj)."""
        cdef double nu0 = self.block.nu0[0], change, share
        cdef double prior = self._inverse_diagonal(self.block.prior_factor, j), own
        cdef double now = self.block.scale0[j * (j + 3) // 2]
        cdef Py_ssize_t k, g
        for k in range(self.n_slots):
            if self.size[k] == 0:
                continue
            own = self._inverse_diagonal(&self.factor[k, 0, 0], j)
            if own > 1.000001 * prior:   # only by rounding, with far rows
                own = prior
            for g in range(n_grid):
                change = grid[g] - now
                share = change * prior
                if share <= -1.0:
                    out[g] = -INFINITY
                else:
                    out[g] += 0.5 * (nu0 * log1p(share)
                                     - (nu0 + self.size[k]) * log1p(change * own))

    cdef void _score_any(self, Py_ssize_t h, const double *grid, Py_ssize_t n_grid,
                         double *out) noexcept nogil:
        """A coordinate without a shortcut: new factors for each value."""
        cdef double now = self.hyper[h]
        cdef Py_ssize_t k, g
        for g in range(n_grid):
            self.hyper[h] = grid[g]
            self._refactor_all()
            for k in range(self.n_slots):
                if self.size[k] > 0:
                    self.refresh(k)
                    out[g] += self.marginal(k)
        self.hyper[h] = now
        self._refactor_all()
        for k in range(self.n_slots):
            self.refresh(k)

    cdef void set_coordinate(self, Py_ssize_t f, Py_ssize_t h, double value) noexcept nogil:
        """Factors are updated at once for a variance of scale0, so a sweep costs d^2 for each."""
        cdef double change = value - self.hyper[h]
        cdef Py_ssize_t j = 0, place = h - self.d - 2, k
        cdef double *unit = self.block.vector
        self.hyper[h] = value
        if change == 0.0 or h == self.d + 1:
            return
        while place >= 0 and j * (j + 3) // 2 < place:
            j += 1
        if place < 0 or place != j * (j + 3) // 2 or self.stale:
            self.stale = True
            return
        self._set_variance(j)
        for k in range(self.n_slots):
            if self.size[k] == 0:
                continue
            memset(unit, 0, self.d * sizeof(double))
            unit[j] = sqrt(abs(change))
            self.updates[k] += 1
            if not mvn_rank_one_v[self.level](&self.block, &self.factor[k, 0, 0], unit,
                                              1.0 if change > 0.0 else -1.0):
                mvn_refactor_v[self.level](&self.block, k)

    cdef void _set_variance(self, Py_ssize_t j) noexcept nogil:
        """The prior's factor, and those of empty slots, after the j-th variance of scale0 changed.

        Where the covariances of the j-th column are 0 it is one entry of the factor."""
        cdef Py_ssize_t i, k
        cdef bint alone = True
        cdef const double *scale0 = self.block.scale0
        for i in range(self.d):
            if i != j and scale0[max(i, j) * (max(i, j) + 1) // 2 + min(i, j)] != 0.0:
                alone = False
        if alone:
            self.block.prior_factor[j * self.stride + j] = (
                1.0 / sqrt(max(1e-300, scale0[j * (j + 3) // 2])))
            self.prior_log_det = mvn_log_det_v[self.level](&self.block, self.block.prior_factor)
        else:
            self._factorise_prior()
        for k in range(self.n_slots):
            if self.size[k] == 0 and alone:
                self.factor[k, j, j] = self.block.prior_factor[j * self.stride + j]
            elif self.size[k] == 0:
                mvn_refactor_v[self.level](&self.block, k)

    cdef void enter(self, const char *row, Py_ssize_t k) noexcept nogil:
        """Add a row to slot k, all but to its factor, which `settle` makes after the last."""
        mvn_enter_v[self.level](&self.block, row, k, self.weight_of(row))

    cdef void settle(self, Py_ssize_t k) noexcept nogil:
        """Slot k's factor and cache from its scatter."""
        mvn_refactor_v[self.level](&self.block, k)
        self.refresh(k)

    def refresh_all(self):
        cdef int64_t[::1] memo_size = self.memo[0]
        memo_size[:] = -1
        if self.stale:
            self._refactor_all()
        FamilyBlock.refresh_all(self)

    def get_hyper(self, Py_ssize_t f):
        """The flat vector of hyperparameters, in cell units."""
        return np.asarray(self.hyper).copy()

    def _take_hyper(self, MultivariateNormal other):
        self.hyper[:] = other.hyper
        self.stale = True

    # ---- queries --------------------------------------------------------------------------------

    cdef double location(self, Py_ssize_t k, Py_ssize_t j) noexcept nogil:
        cdef double share = self.total[k] / (self.block.kappa0[0] + self.total[k])
        return self.hyper[j] + share * (self.mean[k, j] - self.hyper[j])

    cdef void whiten(self, Py_ssize_t k, double *deviation, double *out) noexcept nogil:
        memcpy(self.block.vector, deviation, self.d * sizeof(double))
        mvn_solve_v[self.level](&self.block, &self.factor[k, 0, 0], self.block.vector, out)

    cdef void whitening(self, Py_ssize_t k, Py_ssize_t j, double *column) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.d):
            column[i] = self.factor[k, i, j]

    cdef double rate(self, Py_ssize_t k) noexcept nogil:
        cdef double kappa = self.block.kappa0[0] + self.total[k]
        return kappa / (kappa + 1.0)

    cdef double degrees(self, Py_ssize_t k, Py_ssize_t n) noexcept nogil:
        return self.block.nu0[0] + self.size[k] + 1.0 - self.d + n

    cdef double square(self, Py_ssize_t k, Py_ssize_t n, double q) noexcept nogil:
        return (1.0 / self.rate(k) + q) / self.degrees(k, n)

    cdef double log_constant(self, Py_ssize_t k, Py_ssize_t n) noexcept nogil:
        return (log_gamma(0.5 * self.degrees(k, n)) - log_gamma(0.5 * self.degrees(k, 0))
                + self.log_det[k] + 0.5 * n * (log(self.rate(k)) - LOG_PI))

    cdef double log_kernel(self, Py_ssize_t k, Py_ssize_t n, double q) noexcept nogil:
        return -0.5 * self.degrees(k, n) * log1p(self.rate(k) * q)

    cdef double _solve(self, Py_ssize_t k, double *y) noexcept nogil:
        """q of the cells that were read, y = W e."""
        cdef double share = self.total[k] / (self.block.kappa0[0] + self.total[k])
        cdef double *e = self.block.vector
        cdef double *mu0 = &self.hyper[0]
        cdef double *mean = &self.mean[k, 0]
        cdef Py_ssize_t j
        for j in range(self.d):     # less `location`
            e[j] = self.number[j] - (mu0[j] + share * (mean[j] - mu0[j]))
        return mvn_solve_v[self.level](&self.block, &self.factor[k, 0, 0], e, y)

    def score_rows(self, Table table, out, start=0, stop=None):
        """Add the log density of each row's observed cells, in the user's units, to out."""
        cdef double[:, ::1] scores = out
        cdef Py_ssize_t first = start, last = table.n_rows if stop is None else stop, i, k
        cdef int32_t[::1] position = np.ascontiguousarray(table.positions[self.columns], np.int32)
        cdef double shift = np.log(table.scales[self.columns]).sum(), kappa, half
        cdef double[::1] constant = np.empty(scores.shape[1])
        with nogil:
            for k in range(scores.shape[1]):
                kappa = self.block.kappa0[0] + self.total[k]
                half = 0.5 * (self.block.nu0[0] + self.size[k] + 1.0)
                constant[k] = (log_gamma(half) - log_gamma(half - 0.5 * self.d) + self.log_det[k]
                               + 0.5 * self.d * (log(kappa / (kappa + 1.0)) - LOG_PI) - shift)
            for i in range(first, last):
                if self.read(table.observed(i), &position[0]):
                    continue
                for k in range(scores.shape[1]):
                    kappa = self.block.kappa0[0] + self.total[k]
                    half = 0.5 * (self.block.nu0[0] + self.size[k] + 1.0)
                    scores[i - first, k] += constant[k] - half * log1p(
                        kappa / (kappa + 1.0) * self._solve(k, NULL))
        self._score_gaps(table, out, start)

    def score_feature(self, Py_ssize_t i, Table table, out, Py_ssize_t start, Py_ssize_t stop):
        """Add the log density of the i-th column's cell given the row's others, to out: (rows, n).

        With P = Psi^-1 and y = P e, the squared distance of the others is q - y_i^2 / P_ii."""
        cdef double[:, ::1] scores = out
        cdef int32_t[::1] position = np.ascontiguousarray(table.positions[self.columns], np.int32)
        cdef double shift = log(table.scales[self.columns[i]]), half, rate, q, part, y
        cdef double[::1] solved = np.empty(self.stride), precision = np.empty(scores.shape[1])
        cdef double[::1] constant = np.empty(scores.shape[1])
        cdef double *w
        cdef Py_ssize_t row, k, j
        with nogil:
            for k in range(scores.shape[1]):
                half = 0.5 * (self.block.nu0[0] + self.size[k] + 1.0)
                rate = self.block.kappa0[0] + self.total[k]
                precision[k] = self._inverse_diagonal(&self.factor[k, 0, 0], i)
                constant[k] = (log_gamma(half) - log_gamma(half - 0.5) - shift
                               + 0.5 * (log(precision[k] * rate / (rate + 1.0)) - LOG_PI))
            for row in range(start, stop):
                if self.read(table.observed(row), &position[0]):
                    continue
                for k in range(scores.shape[1]):
                    half = 0.5 * (self.block.nu0[0] + self.size[k] + 1.0)
                    rate = self.block.kappa0[0] + self.total[k]
                    rate = rate / (rate + 1.0)
                    q = self._solve(k, &solved[0])
                    w, y = &self.factor[k, 0, 0], 0.0
                    for j in range(i, self.d):
                        y += w[j * self.stride + i] * solved[j]
                    part = y * y / precision[k]
                    scores[row - start, k] += (constant[k] - half * log1p(rate * q)
                                               + (half - 0.5) * log1p(rate * max(0.0, q - part)))
        self._score_gaps(table, out, start, i)

    def log_jacobian(self):
        """Sum over cells of -log(scale): what takes log marginals from cell to user's units."""
        n = int(np.asarray(self.size).sum())
        return -n * float(np.log(self.table.scales[self.columns]).sum())

    def predictive_mean(self, Py_ssize_t i):
        """Centre of the i-th column's predictive in every slot, in cell units."""
        n, mean = np.asarray(self.total), np.asarray(self.mean)[:, i]
        return self.hyper[i] + n / (self.block.kappa0[0] + n) * (mean - self.hyper[i])

    def excess_law(self, Py_ssize_t n_cells):
        """Student's t: any subset of its cells has its degrees of freedom."""
        a = 0.5 * (self.block.nu0[0] + np.asarray(self.size) - self.d + 1.0)
        return a, 0.5 * n_cells, a + 0.5 * n_cells

    def sample_rows(self, slots, bit_generator):
        """One predictive row for each of `slots`: float64 (n, n_columns), in cell units."""
        cdef bitgen_t *rng = bitgen(bit_generator)
        cdef const int64_t[::1] slot = np.ascontiguousarray(slots, dtype=np.int64)
        cdef double[:, ::1] out = np.empty((len(slot), self.d))
        cdef Py_ssize_t i, j, a, k
        cdef double kappa, spread, value, share
        with nogil:
            for i in range(slot.shape[0]):
                k = slot[i]
                kappa = self.block.kappa0[0] + self.total[k]
                share = self.total[k] / kappa
                # a t row: normal with covariance Psi, over the root of chi2, mean's spread included
                spread = sqrt((kappa + 1.0) / kappa / (2.0 * standard_gamma(
                    rng, 0.5 * (self.block.nu0[0] + self.size[k] - self.d + 1.0))))
                for j in range(self.d):   # W u = z
                    value = standard_normal(rng)
                    for a in range(j):
                        value -= self.factor[k, j, a] * out[i, a]
                    out[i, j] = value / self.factor[k, j, j]
                for j in range(self.d):
                    out[i, j] = (spread * out[i, j] + self.hyper[j]
                                 + share * (self.mean[k, j] - self.hyper[j]))
        return np.asarray(out)

    # ---- state as arrays ------------------------------------------------------------------------

    def _at(self, name):
        if name in ("scatter", "factor"):   # slots stand last
            return lower_triangle(self.d)
        return slice(self.d) if name == "mean" else ...

    def _restore(self, arrays):
        NumberRows._restore(self, arrays)
        if "total" in self.derived:
            self.slots.put("total", ..., arrays["size"], len(arrays["size"]))

    def parameters(self):
        """Hyperparameters in their natural forms."""
        values = map(np.array, unflatten(self.forms, self.hyper, self.d))
        return dict(zip(self.coordinate_names, values))
