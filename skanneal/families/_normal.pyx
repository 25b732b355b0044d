"""Normal with a normal-inverse-chi-squared prior.

Model, per feature: x ~ N(mu, s2), mu ~ N(mu0, s2 / kappa0), s2 ~ nu0 sigma2_0 / chi2(nu0).
With n cells of mean m and centred sum of squares M2,

    kappa = kappa0 + n, nu = nu0 + n, mu_n = mu0 + n/kappa (m - mu0),
    nu sigma2 = nu0 sigma2_0 + M2 + kappa0 n/kappa (m - mu0)^2,

the predictive is Student's t of nu degrees of freedom, centre mu_n, scale^2 = sigma2 (1 + 1/kappa).
Statistics are (n, m, M2), updated by Welford's recurrences, never raw sums of squares.
"""

from libc.math cimport exp, log, sqrt
from libc.stdint cimport int32_t, int64_t
from numpy.random cimport bitgen_t

import numpy as np

from .._native._math cimport log_gamma
from .._native._random cimport bitgen, standard_gamma, standard_normal
from ._base cimport FamilyBlock
from ._column_family cimport ColumnFamily
from ._partition_sums cimport ROWS, PartitionSums
from ._slots cimport TILE, aligned_zeros
from ._table cimport Table, is_far

from ._normal_grids import DEGREES, START, TOO_WIDE, WEIGHTS, typical_variances
from ._scaling import ordinary
from ._slots import SLOTS

LEAST_DEGREES = 3.0   # in a variance

cdef double LOG_PI = 1.1447298858494002
# No distance counts more, in deviations; predictive/_distances.py has the logarithm.
cdef double FURTHEST = exp(30.0)

cdef extern from "_normal.h" nogil:
    enum: NORMAL_MEMO
    ctypedef struct NormalBlock:
        int32_t n_features, n_dense, n_runs
        const int32_t *offset
        const int32_t *order
        const int32_t *run
        const double *mu0
        const double *kappa0
        const double *nu0
        const double *sigma2_0
        int64_t *size
        int64_t *present
        double *mean
        double *m2
        float *location
        float *exponent
        float *constant
        float *gappy
        int32_t *present_at
        float *present_cell
        int64_t *memo_size
        double *memo_value
    int skanneal_level()
    void (*normal_add_scores_v[3])(const NormalBlock *, const char *, int64_t, float *) noexcept
    void (*normal_sum_cells_v[3])(double *, const float *, int64_t, int) noexcept
    void (*normal_score_cells_v[3])(const float *, int64_t, int64_t, const double *, const double *,
                                    const double *, const double *, const double *, double,
                                    double *, double *, double *) noexcept
    float (*normal_score_without_v[3])(NormalBlock *, const char *, int64_t) noexcept
    void (*normal_update_v[3])(NormalBlock *, const char *, int64_t, int) noexcept
    void (*normal_refresh_v[3])(NormalBlock *, int64_t) noexcept


cdef double marginal(double n, double mean, double m2, double mu0, double kappa0, double nu0,
                     double sigma2_0, double gammas) noexcept nogil:
    """Log marginal likelihood of n cells; gammas = lgamma(nu/2) - lgamma(nu0/2)."""
    return of_parts(n, mean, m2, mu0, kappa0, nu0, sigma2_0, gammas,
                    0.5 * log(kappa0 / (kappa0 + n)), 0.5 * nu0 * log(nu0 * sigma2_0))


cdef inline double of_parts(double n, double mean, double m2, double mu0, double kappa0, double nu0,
                            double sigma2_0, double gammas, double of_mean,
                            double of_prior) noexcept nogil:
    """The same, given its three parts that do not depend on the cells' values."""
    cdef double delta = mean - mu0
    cdef double squares = nu0 * sigma2_0 + m2 + kappa0 * n / (kappa0 + n) * delta * delta
    return (gammas + of_mean + of_prior - 0.5 * (nu0 + n) * log(squares) - 0.5 * n * LOG_PI)


cdef double sum_of_marginals(const double *sums, const int64_t *size, Py_ssize_t n_slots,
                             Py_ssize_t f, Py_ssize_t n, bint gappy,
                             const double *prior) noexcept nogil:
    """Sum over slots of feature f's log marginal."""
    cdef double out = 0.0, shift, n_cells, prior_gamma = log_gamma(0.5 * prior[2])
    cdef Py_ssize_t k
    for k in range(n_slots):
        n_cells = sums[f] if gappy else size[k]
        if n_cells > 0.0:
            shift = sums[2 * n + f] / n_cells
            out += marginal(n_cells, sums[n + f] + shift,
                            max(0.0, sums[3 * n + f] - sums[2 * n + f] * shift),
                            prior[0], prior[1], prior[2], prior[3],
                            log_gamma(0.5 * (prior[2] + n_cells)) - prior_gamma)
        sums += 4 * n
    return out


cdef class NormalSums(PartitionSums):
    """Cells, and of these less the first of a slot the sum and the sum of squares."""

    cdef double[:, ::1] prior           # (n_columns, 4)
    cdef float[:, ::1] cell             # (ROWS, n_columns)
    cdef int64_t[::1] size              # (n_slots,)
    cdef double[:, :, ::1] sums         # (n_slots, 4, n_columns) cells, the first, both sums
    cdef bint gappy
    cdef int level

    def __init__(self, table, columns, hyper):
        PartitionSums.__init__(self, table, columns, hyper)
        self.prior = np.array(hyper, dtype=np.float64)
        self.cell = np.empty((ROWS, self.n_columns), np.float32)
        self.gappy, self.level = table.gaps[columns].any(), skanneal_level()

    def slot_bytes(self):
        return 32 * self.n_columns

    def begin(self, n_slots):
        self.size = np.zeros(n_slots, np.int64)
        self.sums = np.zeros((n_slots, 4, self.n_columns))

    cdef void read(self, const char *row, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t f
        for f in range(self.n_columns):
            self.cell[i, f] = (<const float *> (row + self.position[f]))[0]

    cdef void add(self, const int32_t *label, Py_ssize_t n, Py_ssize_t base) noexcept nogil:
        cdef Py_ssize_t i, f, k
        for i in range(n):
            k = base + label[i]
            if self.size[k] == 0 and not self.gappy:
                for f in range(self.n_columns):
                    self.sums[k, 1, f] = self.cell[i, f]
            self.size[k] += 1
            normal_sum_cells_v[self.level](&self.sums[k, 0, 0], &self.cell[i, 0], self.n_columns,
                                           self.gappy)

    def finish(self, const int64_t[::1] base, double[:, :] out):
        cdef Py_ssize_t f, v, k
        with nogil:
            for v in range(base.shape[0] - 1):
                k = base[v]
                for f in range(self.n_columns):
                    out[f, v] = sum_of_marginals(&self.sums[k, 0, 0], &self.size[k],
                                                 base[v + 1] - k, f, self.n_columns, self.gappy,
                                                 &self.prior[f, 0])


cdef class Normal(ColumnFamily):
    """Numbers. Coordinates of a feature's hyperparameters: mu0, kappa0, nu0, sigma2_0."""

    family = "normal"
    cells = "number"
    jittered = True
    default_for = "float"
    coordinate_names = ("mu0", "kappa0", "nu0", "sigma2_0")
    forms = ("location", "positive", "positive", "variance")
    restricting_ends = {"sigma2_0": TOO_WIDE}
    bounds_density = "sigma2_0"
    partition_sums = NormalSums

    cdef NormalBlock block
    cdef int32_t[::1] order, run
    cdef int64_t[:, ::1] present         # (n_slots, n_features); dense features keep theirs in size
    cdef double[:, ::1] mean, m2         # (n_slots, n_features)
    cdef object caches                   # keeps the aligned arrays alive
    cdef int64_t[::1] memo_size
    cdef double[::1] memo_value
    cdef int32_t[::1] present_at         # (n_gappy,) scratch
    cdef float[::1] present_cell

    @staticmethod
    def default_hyper(n_levels):
        """(mu0, kappa0, nu0, sigma2_0) for a column of mean 0 and variance 1."""
        return np.array([0.0, 0.1, DEGREES, START])

    @staticmethod
    def grids(cells, n_levels):
        """Grids in cell units, scaled by the column: see doc/families.md."""
        cells = np.asarray(cells, dtype=np.float64)
        cells = cells[~np.isnan(cells)]
        inside = ordinary(cells) if len(cells) else np.zeros(1)
        return [
            np.unique(np.linspace(inside.min(), inside.max(), 21)),
            WEIGHTS,
            np.array([DEGREES]),
            typical_variances(cells),
        ]

    def _set_up(self, table, hyper):
        ColumnFamily._set_up(self, table, hyper)
        self.level = skanneal_level()
        self.memo_size = np.empty(NORMAL_MEMO, dtype=np.int64)   # emptied by `_find_runs`
        self.memo_value = np.empty(NORMAL_MEMO)
        self.block.memo_size = &self.memo_size[0]
        self.block.memo_value = &self.memo_value[0]
        self.present_at = np.zeros(max(1, self.n_features - self.n_dense), dtype=np.int32)
        self.present_cell = np.zeros(max(1, self.n_features - self.n_dense), dtype=np.float32)
        self.block.present_at = &self.present_at[0]
        self.block.present_cell = &self.present_cell[0]
        self.block.n_features = self.n_features
        self.block.n_dense = self.n_dense
        self.order = np.arange(max(1, self.n_dense), dtype=np.int32)
        self.run = np.zeros(self.n_dense + 1, dtype=np.int32)
        self.block.order = &self.order[0]
        self.block.run = &self.run[0]
        self._find_runs()

    def _find_runs(self):
        """Runs of dense features with equal nu0: they share a logarithm (_normal_kernels.h)."""
        cdef Py_ssize_t i, j, n_runs = 0
        for i in range(self.n_dense):   # an insertion sort, stable
            j = i
            while j > 0 and self.hyper[2, i] < self.hyper[2, self.order[j - 1]]:
                self.order[j] = self.order[j - 1]
                j -= 1
            self.order[j] = <int32_t> i
        for i in range(1, self.n_dense):
            if self.hyper[2, self.order[i]] != self.hyper[2, self.order[i - 1]]:
                n_runs += 1
                self.run[n_runs] = i
        if self.n_dense:
            n_runs += 1
        self.run[n_runs] = self.n_dense
        self.block.n_runs = n_runs
        self.block.mu0 = &self.hyper[0, 0]
        self.block.kappa0 = &self.hyper[1, 0]
        self.block.nu0 = &self.hyper[2, 0]
        self.block.sigma2_0 = &self.hyper[3, 0]
        self.memo_size[:] = -1

    def bind(self, Table table):
        FamilyBlock.bind(self, table)
        self.block.offset = &self.offset[0]

    def _layout(self):
        shape = SLOTS, self.n_features
        return {"n": (np.int64, shape), "mean": (np.float64, shape), "m2": (np.float64, shape)}

    def _hold(self, n_slots, present, mean, m2):
        cdef float[::1] location, exponent, constant, gappy
        cdef Py_ssize_t n_tiles = n_slots // TILE, n_gappy = self.n_features - self.n_dense
        self.present, self.mean, self.m2 = present, mean, m2
        # runs of equal nu0 may come to be as many as there are features
        location = aligned_zeros((n_tiles * max(1, self.n_dense) * 2 * TILE,), np.float32)
        exponent = aligned_zeros((n_tiles * max(1, self.n_dense) * TILE,), np.float32)
        constant = aligned_zeros((n_slots,), np.float32)
        gappy = aligned_zeros((n_tiles * max(1, n_gappy) * 4 * TILE,), np.float32)
        self.caches = (location, exponent, constant, gappy)
        self.block.location, self.block.exponent = &location[0], &exponent[0]
        self.block.constant, self.block.gappy = &constant[0], &gappy[0]
        self.block.size, self.block.present = &self.size[0], &self.present[0, 0]
        self.block.mean, self.block.m2 = &self.mean[0, 0], &self.m2[0, 0]

    cdef void add_scores(self, const char *row, Py_ssize_t n_tiles, float *out) noexcept nogil:
        normal_add_scores_v[self.level](&self.block, row, n_tiles, out)

    cdef float score_without(self, const char *row, Py_ssize_t k) noexcept nogil:
        return normal_score_without_v[self.level](&self.block, row, k)

    cdef void update(self, const char *row, Py_ssize_t k, int sign) noexcept nogil:
        normal_update_v[self.level](&self.block, row, k, sign)

    cdef bint cancels(self, const char *row, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t f
        for f in range(self.n_features):
            if is_far((<const float *> (row + self.offset[f]))[0], self.mean[k, f]):
                return True
        return False

    cdef void refresh(self, Py_ssize_t k) noexcept nogil:
        normal_refresh_v[self.level](&self.block, k)

    cdef int64_t n_present(self, Py_ssize_t f, Py_ssize_t k) noexcept nogil:
        return self.size[k] if f < self.n_dense else self.present[k, f]

    cdef void merge(self, Py_ssize_t i, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t f
        cdef double a, b, delta
        for f in range(self.n_features):
            a, b = self.n_present(f, i), self.n_present(f, k)
            if b > 0:
                delta = self.mean[k, f] - self.mean[i, f]
                self.mean[i, f] += delta * b / (a + b)
                self.m2[i, f] += self.m2[k, f] + delta * delta * a * b / (a + b)
            self.present[i, f] += self.present[k, f]
        self.size[i] += self.size[k]
        self.clear(k)
        self.refresh(i)

    cdef double log_marginal_feature(self, Py_ssize_t f, Py_ssize_t k) noexcept nogil:
        cdef int64_t n = self.n_present(f, k)
        if n == 0:
            return 0.0
        return marginal(n, self.mean[k, f], self.m2[k, f], self.hyper[0, f], self.hyper[1, f],
                        self.hyper[2, f], self.hyper[3, f],
                        log_gamma(0.5 * (self.hyper[2, f] + n)) - log_gamma(0.5 * self.hyper[2, f]))

    cdef void score_grid(self, Py_ssize_t f, Py_ssize_t h, const double *grid, Py_ssize_t n_grid,
                         double *out) noexcept nogil:
        # what a coordinate does not change is computed once for all points of its grid
        cdef double mu0 = self.hyper[0, f], kappa0 = self.hyper[1, f]
        cdef double nu0 = self.hyper[2, f], sigma2_0 = self.hyper[3, f]
        cdef double gammas, of_mean, of_prior
        cdef int64_t n
        cdef Py_ssize_t g, k
        for g in range(n_grid):
            out[g] = 0.0
        for k in range(self.n_slots):
            n = self.n_present(f, k)
            if n == 0:
                continue
            gammas = log_gamma(0.5 * (nu0 + n)) - log_gamma(0.5 * nu0)
            of_mean = 0.5 * log(kappa0 / (kappa0 + n))
            of_prior = 0.5 * nu0 * log(nu0 * sigma2_0)
            for g in range(n_grid):
                if h == 0:
                    mu0 = grid[g]
                elif h == 1:
                    kappa0 = grid[g]
                    of_mean = 0.5 * log(kappa0 / (kappa0 + n))
                else:
                    if h == 2:
                        nu0 = grid[g]
                        gammas = log_gamma(0.5 * (nu0 + n)) - log_gamma(0.5 * nu0)
                    else:
                        sigma2_0 = grid[g]
                    of_prior = 0.5 * nu0 * log(nu0 * sigma2_0)
                out[g] += of_parts(n, self.mean[k, f], self.m2[k, f], mu0, kappa0, nu0, sigma2_0,
                                   gammas, of_mean, of_prior)
            mu0, kappa0 = self.hyper[0, f], self.hyper[1, f]
            nu0, sigma2_0 = self.hyper[2, f], self.hyper[3, f]

    def refresh_all(self):
        self._find_runs()
        FamilyBlock.refresh_all(self)

    def _posterior(self, f):
        """(kappa, nu, mu_n, nu sigma2) of feature f in every slot, each of shape (n_slots,)."""
        mu0, kappa0, nu0, sigma2_0 = self.get_hyper(f)
        n = np.asarray(self.size) if f < self.n_dense else np.asarray(self.present)[:, f]
        mean, m2 = np.asarray(self.mean)[:, f], np.asarray(self.m2)[:, f]
        kappa, nu = kappa0 + n, nu0 + n
        squares = nu0 * sigma2_0 + m2 + kappa0 * n / kappa * (mean - mu0) ** 2
        return kappa, nu, mu0 + n / kappa * (mean - mu0), squares

    def score_feature(self, Py_ssize_t f, Table table, out, Py_ssize_t start, Py_ssize_t stop):
        """Add feature f's log predictive density, in the user's units, to out: (rows, n)."""
        j = self.columns[f]
        self.score_numbers(f, table.column(j, start, stop), table.scales[j], out)

    def score_numbers(self, Py_ssize_t f, const float[::1] cells, double scale, out):
        """The same of these cells in float32, NaN where missing."""
        self._score([f], np.asarray(cells)[:, None], [scale], out)

    def score_rows(self, Table table, out, start=0, stop=None):
        """As FamilyBlock's; columns of equal degrees of freedom share a logarithm."""
        stop = table.n_rows if stop is None else stop
        for features in self._alike():
            columns = self.columns[features]
            cells = np.column_stack([table.column(j, start, stop) for j in columns])
            self._score(features, cells, table.scales[columns], out)

    def add_surprisals(self, Table table, out):
        for features in self._alike():
            columns = self.columns[features]
            cells = np.column_stack([table.column(j) for j in columns])
            self._score(features, cells, np.ones(len(columns)), np.zeros(out.shape), out)

    def _alike(self):
        """Lists of the features that have the same degrees of freedom in every slot."""
        lists = {}
        for f in range(self.n_features):
            lists.setdefault(self._posterior(f)[1].tobytes(), []).append(f)
        return lists.values()

    def _score(self, features, cells, scales, out, added=None):
        """Add the log predictive densities of some features' cells, alike in their degrees of
        freedom, to out: (rows, n). And, to `added`, by how much more surprising they are where
        tails show the distance, up to FURTHEST.

        Parameters
        ----------
        features : list of int
        cells : float32 array of shape (n_rows, n_features)
            NaN where missing.
        scales : float64 array of shape (n_features,)
        """
        cdef double[:, ::1] scores = out
        cdef double[:, ::1] more = added
        cdef const float[:, ::1] cell = np.ascontiguousarray(cells)
        cdef Py_ssize_t n_features = len(features), n_slots = scores.shape[1], i
        cdef double[::1] product = np.empty(n_slots)
        kappa, nu, mu_n, squares = (
            np.array(of)[:, :n_slots].copy() for of in zip(*map(self._posterior, features))
        )
        rates, powers = kappa / ((kappa + 1.0) * squares), 0.5 * (nu[0] + 1.0)
        gammas = np.array([log_gamma(p) - log_gamma(p - 0.5) for p in powers])
        cdef const double[:, ::1] centre = mu_n, rate = rates
        cdef const double[:, ::1] constant = (
            gammas + 0.5 * (np.log(rates) - LOG_PI) - np.log(scales)[:, None]
        )
        cdef const double[:, ::1] most = np.column_stack([rates.max(1), np.abs(mu_n).max(1)])
        cdef const double[::1] power = powers
        with nogil:
            for i in range(cell.shape[0]):
                normal_score_cells_v[self.level](
                    &cell[i, 0], n_features, n_slots, &centre[0, 0], &rate[0, 0], &constant[0, 0],
                    &most[0, 0], &power[0], FURTHEST, &product[0], &scores[i, 0],
                    &more[i, 0] if more is not None else NULL)

    def log_jacobian(self):
        """Sum over cells of -log(scale): what takes log marginals from cell to user's units."""
        cdef double[::1] n = np.zeros(self.n_features)
        cdef Py_ssize_t f, k
        for f in range(self.n_features):
            for k in range(self.n_slots):
                n[f] += self.n_present(f, k)
        return -float(np.asarray(n) @ np.log(self.table.scales[self.columns]))

    def student_law(self, Py_ssize_t f):
        """Student's t of the predictive in every slot: centre, squared scale and degrees of
        freedom, in cell units."""
        kappa, nu, mu_n, squares = self._posterior(f)
        return mu_n, squares / nu * (1 + 1 / kappa), nu

    def predictive_mean(self, Py_ssize_t f):
        """Centre of the predictive in every slot, in cell units."""
        return self._posterior(f)[2]

    def predictive_variance(self, Py_ssize_t f):
        """Variance of the predictive in every slot, in cell units.

        Student's t has none below two degrees of freedom: fewer than LEAST_DEGREES count as so
        many."""
        kappa, nu, _, squares = self._posterior(f)
        degrees = np.maximum(nu, LEAST_DEGREES)
        return squares / nu * (1 + 1 / kappa) * degrees / (degrees - 2)

    def excess_law(self, Py_ssize_t f):
        """Student's t of nu degrees of freedom."""
        nu = self._posterior(f)[1]
        return 0.5 * nu, 0.5, 0.5 * (nu + 1.0)

    def sample_feature(self, Py_ssize_t f, slots, bit_generator):
        """One predictive cell for each of `slots`: float64 of the same shape, in cell units."""
        cdef bitgen_t *rng = bitgen(bit_generator)
        cdef const int64_t[::1] slot = np.ascontiguousarray(slots, dtype=np.int64)
        cdef double[::1] out = np.empty(len(slot))
        kappa, nu, mu_n, squares = self._posterior(f)
        cdef const double[::1] centre = mu_n, degrees = nu, spread = squares * (1.0 + 1.0 / kappa)
        cdef Py_ssize_t i, k
        for i in range(slot.shape[0]):
            k = slot[i]
            # t = z / sqrt(chi2_nu / nu), times sqrt(squares / nu (1 + 1/kappa))
            out[i] = centre[k] + standard_normal(rng) * sqrt(
                spread[k] / (2.0 * standard_gamma(rng, 0.5 * degrees[k])))
        return np.asarray(out)

    def statistics(self):
        """Cells, mean and centred sum of squares of each feature in every slot."""
        arrays, dense = ColumnFamily.statistics(self), np.argsort(self.columns) < self.n_dense
        arrays["n"][dense] = self.size
        return arrays
