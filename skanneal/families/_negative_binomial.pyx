"""Negative binomial with a Beta prior: counts that vary more than a Poisson's.

Model, per feature: x ~ NB(r, p), P(x) = C(x) p^r (1 - p)^x, C(x) = Gamma(x + r) / (x! Gamma(r)),
p ~ Beta(a, b); the size r is the same for all clusters of a column. With n cells of sum S,
A = a + n r and B = b + S, the marginal likelihood is

    B(A, B) / B(a, b) prod C(x),

and the predictive C(x) B(A + r, B + x) / B(A, B). Source: Johnson, Kemp and Kotz, Univariate
Discrete Distributions, 6.2.3 (beta negative binomial).

For large counts the log-gamma functions are much larger than their sum. With s(z) the rest of
Stirling's formula, D = A + B and y = x + r the log predictive is

    log C(x) + K - x log(1 + A/B) + (B + x - 1/2) log(1 + x/B) - x + s(B + x)
             - (D + y - 1/2) log(1 + y/D) + y - s(D + y),

where K, of the slot alone, is log Gamma(A + r) / Gamma(A) - r log D - s(B) + s(D). Row steps score
counts up to MODERATE in float32, all slots at once (_negative_binomial_kernels.h), larger ones in
float64: the error is about 1e-7 times the count.

prod C(x) depends on r and on the cells, but not on how they are clustered. Its logarithm is kept
for every size of the grid, SIZES, and for the one that the block was made with, so that the size is
drawn without another pass over the rows. At the largest size, counts are nearly Poisson.
"""

from libc.math cimport log, log1p
from libc.stdint cimport int64_t, uint32_t

import numpy as np

from .._native._math cimport fill_log_factorials, log_factorial, log_gamma, stirling_rest
from ._base cimport FamilyBlock
from ._column_family cimport ColumnFamily
from ._partition_sums cimport CountSums
from ._slots cimport TILE, aligned_zeros
from ._table cimport Table

from ._scaling import ordinary
from ._slots import SLOTS
from ._table import MISSING_COUNT

SIZES = np.geomspace(0.1, 1e4, 21)
SIZES.setflags(write=False)
LEAST_OF_MEAN = 2.0       # a smaller A counts as so much in the mean, which has to be above 1
LEAST_OF_VARIANCE = 3.0   # and in the variance, above 2
LEAST_DRAW = 1e-250       # of a gamma variate, which underflows: rates from it are finite

cdef enum:
    N_SIZES = 22     # those of the grid, and the one that the block was made with
    SMALL = 12       # counts up to here go through a product
    TABULATED = 512  # of smaller counts C is tabulated for the sizes of the grid
    MODERATE = 256   # counts up to here are scored in float32

cdef double LEAST_B = 1e-6   # if b is not less: four factors 1 + i/b are finite in float32

cdef extern from "_negative_binomial.h" nogil:
    enum: NEGATIVE_PARTS
    int skanneal_level()
    void (*negative_add_scores_v[3])(const float *, uint32_t, double, int64_t,
                                     float *) noexcept

cdef uint32_t MISSING = MISSING_COUNT
cdef double[::1] GRID = np.array(SIZES)
fill_log_factorials()


cdef inline double rise(double u, double w) noexcept nogil:
    """log Gamma(u + w) / Gamma(u)."""
    return ((u + w - 0.5) * log1p(w / u) + w * log(u) - w + stirling_rest(u + w)
            - stirling_rest(u))


cdef double log_ways(uint32_t x, double r) noexcept nogil:
    """log C(x)."""
    cdef double product = 1.0
    cdef uint32_t i
    if x <= SMALL:
        for i in range(x):
            product *= (r + i) / (i + 1.0)
        return log(product)
    if r > x:
        return rise(r, x) - log_factorial(x)
    return rise(x, r) - log(<double> x) - log_gamma(r)


cdef double[:, ::1] WAYS = np.array([[log_ways(x, r) for r in SIZES] for x in range(TABULATED)])


cdef inline double occam(double n, double total, double r, double a, double b) noexcept nogil:
    """log B(A, B) / B(a, b)."""
    if n == 0.0:
        return 0.0
    return rise(a, n * r) + (rise(b, total) if total > 0.0 else 0.0) - rise(a + b, n * r + total)


# What the predictive needs of a slot.
cdef struct Beta:
    double b, d         # B and D
    double constant     # K
    double log_odds     # log(1 + A/B)
    double shared       # log Gamma(A) / Gamma(A - r), of a slot that is not empty


cdef inline void set_beta(Beta *beta, double a, double b, double r) noexcept nogil:
    beta.b, beta.d, beta.log_odds = b, a + b, log1p(a / b)
    beta.constant = rise(a, r) - r * log(a + b) - stirling_rest(b) + stirling_rest(a + b)


cdef inline double log_predictive(const Beta *beta, double x, double r) noexcept nogil:
    """The log predictive of a count, less log C."""
    cdef double y = x + r
    return (beta.constant - x * beta.log_odds
            + (beta.b + x - 0.5) * log1p(x / beta.b) - x + stirling_rest(beta.b + x)
            - (beta.d + y - 0.5) * log1p(y / beta.d) + y - stirling_rest(beta.d + y))


cdef class NegativeBinomialSums(CountSums):
    """Of all counts of a column: the sum of log C."""

    cdef void note(self, const uint32_t *count) noexcept nogil:
        cdef Py_ssize_t f
        for f in range(self.n_columns):
            if count[f] != MISSING:
                self.all[f, 0] += log_ways(count[f], self.prior[f, 0])

    cdef double whole(self, Py_ssize_t f) noexcept nogil:
        return self.all[f, 0]

    cdef double marginal(self, Py_ssize_t f, double n, double total) noexcept nogil:
        return occam(n, total, self.prior[f, 0], self.prior[f, 1], self.prior[f, 2])


cdef class NegativeBinomial(ColumnFamily):
    """Counts. Coordinates of a feature's hyperparameters: r, a, b."""

    family = "negative_binomial"
    cells = "count"
    coordinate_names = ("r", "a", "b")
    forms = ("positive", "positive", "positive")
    cell_cost = 3.0
    partition_sums = NegativeBinomialSums

    cdef double[::1] given            # (n_features,) r that the block was made with
    cdef int64_t[:, ::1] n, total     # (n_features, n_slots) cells and their sum
    cdef double[:, :, ::1] ways       # (n_features, n_slots, N_SIZES) sum of log C
    cdef double[:, :, ::1] cache      # (n_features, n_slots, 5), see Beta
    cdef float[::1] narrow            # (n_features, n_tiles, NEGATIVE_PARTS, 16): see the kernel

    @staticmethod
    def default_hyper(n_levels):
        """(r, a, b): a size near 1."""
        return np.array([SIZES[4], 1.0, 1.0])

    @staticmethod
    def grids(cells, n_levels):
        """SIZES; as for the Poisson's shape; and b around the column's mean."""
        cells = np.asarray(cells)
        cells = ordinary(cells[cells != MISSING_COUNT])
        mean = max(float(cells.mean()) if len(cells) else 1.0, 0.01)
        return [SIZES, np.geomspace(0.1, 100.0, 16), mean * np.geomspace(0.01, 100.0, 21)]

    def spare(self, n_slots):
        cdef NegativeBinomial new = FamilyBlock.spare(self, n_slots)
        new.given[:] = self.given   # not the present size: a resumed chain makes its spares later
        return new

    def _set_up(self, table, hyper):
        ColumnFamily._set_up(self, table, hyper)
        self.given = np.array(self.hyper)[0]
        self.level = skanneal_level()

    def _layout(self):
        shape = self.n_features, SLOTS
        return {"n": (np.int64, shape), "total": (np.int64, shape),
                "log_ways": (np.float64, (*shape, N_SIZES))}

    def _hold(self, n_slots, n, total, ways):
        self.n, self.total, self.ways = n, total, ways
        self.cache = np.zeros((self.n_features, n_slots, sizeof(Beta) // sizeof(double)))
        self.narrow = aligned_zeros((self.n_features * n_slots * NEGATIVE_PARTS,), np.float32)

    cdef inline Beta *beta(self, Py_ssize_t f, Py_ssize_t k) noexcept nogil:
        return <Beta *> &self.cache[f, k, 0]

    cdef inline uint32_t count(self, const char *row, Py_ssize_t f) noexcept nogil:
        return (<const uint32_t *> (row + self.offset[f]))[0]

    cdef inline double log_ways_of(self, Py_ssize_t f, uint32_t x) noexcept nogil:
        """log C(x), of feature f's size."""
        cdef Py_ssize_t g
        if x < TABULATED:
            g = self.place(f, self.hyper[0, f])
            if g < N_SIZES - 1:
                return WAYS[x, g]
        return log_ways(x, self.hyper[0, f])

    cdef void add_scores(self, const char *row, Py_ssize_t n_tiles, float *out) noexcept nogil:
        cdef Py_ssize_t f, k, stride = self.n_slots * NEGATIVE_PARTS
        cdef double constant
        cdef uint32_t x
        for f in range(self.n_features):
            x = self.count(row, f)
            if x == MISSING:
                continue
            constant = self.log_ways_of(f, x)
            if x <= MODERATE and self.hyper[2, f] >= LEAST_B:
                negative_add_scores_v[self.level](&self.narrow[f * stride], x, constant,
                                                  n_tiles, out)
                continue
            for k in range(n_tiles * TILE):
                out[k] += <float> (constant
                                   + log_predictive(self.beta(f, k), x, self.hyper[0, f]))

    cdef float score_without(self, const char *row, Py_ssize_t k) noexcept nogil:
        """By the ratio of the marginal likelihoods with the row and without it."""
        cdef Py_ssize_t f
        cdef uint32_t x, i
        cdef double total = 0.0, r, b, d, product
        for f in range(self.n_features):
            x = self.count(row, f)
            if x == MISSING:
                continue
            r = self.hyper[0, f]
            b = self.hyper[2, f] + (self.total[f, k] - <int64_t> x)
            d = self.hyper[1, f] + (self.n[f, k] - 1) * r + b
            total += self.log_ways_of(f, x) + self.beta(f, k).shared
            if x <= SMALL:
                product = 1.0
                for i in range(x):
                    product *= (b + i) / (d + r + i)
                total += log(product) - rise(d, r)
            else:
                total += rise(b, x) - rise(d, r + x)
        return <float> total

    cdef void update(self, const char *row, Py_ssize_t k, int sign) noexcept nogil:
        cdef Py_ssize_t f, g
        cdef uint32_t x
        self.size[k] += sign
        for f in range(self.n_features):
            x = self.count(row, f)
            if x == MISSING:
                continue
            self.n[f, k] += sign
            self.total[f, k] += sign * <int64_t> x
            for g in range(N_SIZES):
                if x < TABULATED and g < N_SIZES - 1:
                    self.ways[f, k, g] += sign * WAYS[x, g]
                else:
                    self.ways[f, k, g] += sign * log_ways(x, self.size_at(f, g))
                if self.n[f, k] == 0:
                    self.ways[f, k, g] = 0.0
        self.refresh(k)

    cdef void refresh(self, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t f, stride = self.n_slots * NEGATIVE_PARTS
        cdef Beta *beta
        cdef float *narrow
        cdef double r, e
        for f in range(self.n_features):
            r, beta = self.hyper[0, f], self.beta(f, k)
            set_beta(beta, self.hyper[1, f] + self.n[f, k] * r, self.hyper[2, f] + self.total[f, k],
                     r)
            beta.shared = 0.0
            if self.n[f, k] > 0:
                beta.shared = rise(self.hyper[1, f] + (self.n[f, k] - 1) * r, r)
            narrow = &self.narrow[f * stride + k // TILE * TILE * NEGATIVE_PARTS + k % TILE]
            e = beta.d + r
            narrow[0] = <float> log_predictive(beta, 0.0, r)
            narrow[TILE] = <float> (1.0 / beta.b)
            narrow[2 * TILE] = <float> (1.0 / e)
            narrow[3 * TILE] = <float> log(beta.b / e)
            narrow[4 * TILE] = <float> (stirling_rest(e) - stirling_rest(beta.b))

    cdef inline double size_at(self, Py_ssize_t f, Py_ssize_t g) noexcept nogil:
        return GRID[g] if g < N_SIZES - 1 else self.given[f]

    cdef Py_ssize_t place(self, Py_ssize_t f, double r) noexcept nogil:
        """Where the sum of log C is kept for a size, which is one of these."""
        cdef Py_ssize_t g
        for g in range(N_SIZES - 1):
            if GRID[g] == r:
                return g
        return N_SIZES - 1

    cdef double log_marginal_feature(self, Py_ssize_t f, Py_ssize_t k) noexcept nogil:
        return self.ways[f, k, self.place(f, self.hyper[0, f])] + occam(
            self.n[f, k], self.total[f, k], self.hyper[0, f], self.hyper[1, f], self.hyper[2, f])

    cdef void score_grid(self, Py_ssize_t f, Py_ssize_t h, const double *grid, Py_ssize_t n_grid,
                         double *out) noexcept nogil:
        cdef double hyper[3]
        cdef Py_ssize_t g, k, i
        for i in range(3):
            hyper[i] = self.hyper[i, f]
        for g in range(n_grid):
            hyper[h] = grid[g]
            i = self.place(f, hyper[0])
            out[g] = 0.0
            for k in range(self.n_slots):
                out[g] += self.ways[f, k, i] + occam(self.n[f, k], self.total[f, k], hyper[0],
                                                     hyper[1], hyper[2])

    def score_feature(self, Py_ssize_t f, Table table, out, Py_ssize_t start, Py_ssize_t stop):
        """Add feature f's log predictive to out: (stop - start, n)."""
        cdef double[:, ::1] scores = out
        cdef Py_ssize_t n_slots = scores.shape[1], i, k
        cdef Py_ssize_t position = table.positions[self.columns[f]]
        cdef double constant, r = self.hyper[0, f]
        cdef uint32_t x
        with nogil:
            for i in range(start, stop):
                x = (<const uint32_t *> (table.row(i) + position))[0]
                if x == MISSING:
                    continue
                constant = log_ways(x, r)
                for k in range(n_slots):
                    scores[i - start, k] += constant + log_predictive(self.beta(f, k), x, r)

    def _posterior(self, f):
        """(r, A, B) of feature f, the last two of shape (n_slots,)."""
        r, a, b = self.get_hyper(f)
        return r, a + r * np.asarray(self.n)[f], b + np.asarray(self.total)[f]

    def predictive_mean(self, Py_ssize_t f):
        """Mean of the predictive in every slot; see LEAST_OF_MEAN."""
        r, a, b = self._posterior(f)
        return r * b / (np.maximum(a, LEAST_OF_MEAN) - 1)

    def predictive_variance(self, Py_ssize_t f):
        """Variance of the predictive in every slot; see LEAST_OF_VARIANCE."""
        r, a, b = self._posterior(f)
        a = np.maximum(a, LEAST_OF_VARIANCE)
        # E[1/p] and E[1/p^2]; the variance is r E[(1 - p)/p^2] + r^2 Var[1/p]
        once = (a + b - 1) / (a - 1)
        spread = b * (a + b - 1) / ((a - 1) ** 2 * (a - 2))   # of 1/p
        return r * (spread + once * (once - 1)) + r**2 * spread

    def sample_feature(self, Py_ssize_t f, slots, bit_generator):
        """One predictive count for each of `slots`: float64 of the same shape."""
        generator = np.random.Generator(bit_generator)
        r, a, b = self._posterior(f)
        most = float(MISSING_COUNT - 1)
        odds = generator.standard_gamma(b[slots]) / np.maximum(
            generator.standard_gamma(a[slots]), LEAST_DRAW)
        rates = np.minimum(generator.standard_gamma(r, len(odds)) * odds, most)
        return np.minimum(generator.poisson(rates).astype(np.float64), most)

    def parameters(self):
        """The size that each feature was made with besides what is inherited."""
        given = np.asarray(self.given)[np.argsort(self.columns)]
        return ColumnFamily.parameters(self) | {"given": given}

    def _restore(self, arrays):
        ColumnFamily._restore(self, arrays)
        np.asarray(self.given)[np.argsort(self.columns)] = arrays["given"]
