"""Poisson with a Gamma prior.

Model, per feature: x ~ Poisson(r), r ~ Gamma(shape, rate). With n cells of sum t, a = shape + t and
b = rate + n, the predictive is negative binomial:

    log p = lgamma(a + x) - lgamma(a) - lgamma(x + 1) + a log(b/(b + 1)) - x log(b + 1).

For large counts these terms are much larger than their sum. With g(u) = log(1 + u) - u, s(z) the
rest of Stirling's formula for lgamma(z) and d = (b x - a) / (b + 1), how far the count is from its
mean, it is

    log p = x g(-d/x) + a g(d/a) - log(1 + x/a)/2 + s(a + x) - s(a) - s(x) - log(2 pi x)/2,

whose terms are no larger than log p. A small x takes the first form, where lgamma(a + x) -
lgamma(a) is the logarithm of a (a + 1) ... (a + x - 1).

The marginal likelihood is the greatest likelihood, that of the rate t/n, which the hyperparameters
do not change, times a factor that the statistics n and t are enough for (`_occam`).
"""

from libc.math cimport log, log1p, sqrt
from libc.stdint cimport int64_t, uint32_t
from numpy.random cimport bitgen_t

import numpy as np

from .._native._math cimport (
    add_log_factorial, fill_log_factorials, log1p_less, log_factorial, log_peak, poisson_peak,
    stirling_rest,
)
from .._native._random cimport bitgen, standard_gamma, standard_normal, uniform
from ._column_family cimport ColumnFamily
from ._partition_sums cimport CountSums
from ._slots cimport TILE
from ._table cimport Table

from ._scaling import ordinary
from ._slots import SLOTS

cdef enum:
    SMALL = 12   # counts up to here go through a product

cdef uint32_t MISSING = 0xFFFFFFFF
fill_log_factorials()

# What the predictive needs of a slot.
cdef struct Gamma:
    double a, b
    double rest     # s(a)
    double log_miss, log_hit   # log p of a count of 0, a log(b/(b + 1)); log(b + 1)


cdef inline void set_gamma(Gamma *gamma, double a, double b) noexcept nogil:
    gamma.a, gamma.b, gamma.rest = a, b, stirling_rest(a)
    gamma.log_miss, gamma.log_hit = -a * log1p(1.0 / b), log1p(b)


cdef inline double count_constant(uint32_t x) noexcept nogil:
    """What the predictive of a count subtracts whatever the slot."""
    return log_factorial(x) if x <= SMALL else poisson_peak(x)


cdef inline double log_predictive(const Gamma *gamma, uint32_t x, double constant) noexcept nogil:
    cdef double a = gamma.a, d, product = 1.0
    cdef uint32_t i
    if x <= SMALL:
        for i in range(x):   # at most (1e19 + 12)^12 = 1e228
            product *= a + i
        return log(product) + gamma.log_miss - x * gamma.log_hit - constant
    d = (gamma.b * x - a) / (gamma.b + 1.0)
    return (x * log1p_less(-d / x) + a * log1p_less(d / a) - 0.5 * log1p(x / a)
            + (stirling_rest(a + x) - gamma.rest) - constant)


cdef inline double _occam(double n, double total, double shape, double rate) noexcept nogil:
    """Log marginal likelihood of n counts less their greatest log likelihood."""
    cdef double out = -shape * log1p(n / rate)
    if total == 0.0:
        return out
    return (out + total * (log1p_less(shape / total) - log1p(rate / n))
            + (shape - 0.5) * log1p(total / shape) + shape
            + stirling_rest(total + shape) - stirling_rest(shape))


cdef inline double log_gain(double n, double total, double mean) noexcept nogil:
    """Greatest log likelihood of n counts less that under the rate `mean`, up to terms whose sum
    over all slots is 0: the other rate is the mean of all of them."""
    cdef double expected = n * mean
    if total == 0.0:
        return expected
    return -total * log1p_less((expected - total) / total)


cdef class PoissonSums(CountSums):
    """Of all counts of a column: how many, their sum, and the units and the rest of log x!."""

    cdef void note(self, const uint32_t *count) noexcept nogil:
        cdef Py_ssize_t f
        for f in range(self.n_columns):
            if count[f] != MISSING:
                self.all[f, 0] += 1.0
                self.all[f, 1] += count[f]
                add_log_factorial(&self.all[f, 2], &self.all[f, 3], count[f], 1.0)

    cdef double whole(self, Py_ssize_t f) noexcept nogil:
        """The greatest log likelihood of one rate, of which a rate per slot gains."""
        if self.all[f, 0] == 0.0:
            return 0.0
        return log_peak(self.all[f, 0], self.all[f, 1], self.all[f, 2], self.all[f, 3])

    cdef double marginal(self, Py_ssize_t f, double n, double total) noexcept nogil:
        return (log_gain(n, total, self.all[f, 1] / self.all[f, 0])
                + _occam(n, total, self.prior[f, 0], self.prior[f, 1]))


cdef class Poisson(ColumnFamily):
    """Counts. Coordinates of a feature's hyperparameters: shape, rate."""

    family = "poisson"
    cells = "count"
    coordinate_names = ("shape", "rate")
    forms = ("positive", "positive")
    cell_cost = 3.0
    partition_sums = PoissonSums

    cdef int64_t[:, ::1] n, total    # (n_features, n_slots) cells and their sum
    cdef double[:, ::1] units, rest  # (n_features, n_slots) sum of log x! = 1024 units + rest
    cdef double[:, :, ::1] cache     # (n_features, n_slots, 5), see Gamma
    cdef double[::1] sum             # (n_slots,) scratch

    @staticmethod
    def default_hyper(n_levels):
        """(shape, rate) of an exponential with mean 1."""
        return np.array([1.0, 1.0])

    @staticmethod
    def grids(cells, n_levels):
        """Grids around the column's mean: see doc/families.md."""
        cells = np.asarray(cells)
        cells = ordinary(cells[cells != MISSING])
        mean = max(float(cells.mean()) if len(cells) else 1.0, 0.01)
        return [np.geomspace(0.1, 100.0, 16), np.geomspace(0.1, 100.0, 16) / mean]

    def _layout(self):
        shape = self.n_features, SLOTS
        counts, sums = (np.int64, shape), (np.float64, shape)
        return {"n": counts, "total": counts, "log_factorial_units": sums,
                "log_factorial_rest": sums}

    def _hold(self, n_slots, n, total, units, rest):
        self.n, self.total, self.units, self.rest = n, total, units, rest
        self.cache = np.zeros((self.n_features, n_slots, sizeof(Gamma) // sizeof(double)))
        self.sum = np.zeros(n_slots)

    cdef inline Gamma *gamma(self, Py_ssize_t f, Py_ssize_t k) noexcept nogil:
        return <Gamma *> &self.cache[f, k, 0]

    cdef void add_scores(self, const char *row, Py_ssize_t n_tiles, float *out) noexcept nogil:
        cdef Py_ssize_t f, k, n_slots = n_tiles * TILE
        cdef uint32_t x
        cdef double constant
        for k in range(n_slots):
            self.sum[k] = 0.0
        for f in range(self.n_features):
            x = (<const uint32_t *> (row + self.offset[f]))[0]
            if x == MISSING:
                continue
            constant = count_constant(x)
            for k in range(n_slots):
                self.sum[k] += log_predictive(self.gamma(f, k), x, constant)
        for k in range(n_slots):
            out[k] += <float> self.sum[k]

    cdef float score_without(self, const char *row, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t f
        cdef uint32_t x
        cdef Gamma without
        cdef double total = 0.0
        for f in range(self.n_features):
            x = (<const uint32_t *> (row + self.offset[f]))[0]
            if x == MISSING:
                continue
            set_gamma(&without, self.hyper[0, f] + (self.total[f, k] - <int64_t> x),
                      self.hyper[1, f] + (self.n[f, k] - 1))
            total += log_predictive(&without, x, count_constant(x))
        return <float> total

    cdef void update(self, const char *row, Py_ssize_t k, int sign) noexcept nogil:
        cdef Py_ssize_t f
        cdef uint32_t x
        self.size[k] += sign
        for f in range(self.n_features):
            x = (<const uint32_t *> (row + self.offset[f]))[0]
            if x == MISSING:
                continue
            self.n[f, k] += sign
            self.total[f, k] += sign * <int64_t> x
            add_log_factorial(&self.units[f, k], &self.rest[f, k], x, sign)
            if self.n[f, k] == 0:
                self.rest[f, k] = 0.0
        self.refresh(k)

    cdef void refresh(self, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t f
        for f in range(self.n_features):
            set_gamma(self.gamma(f, k), self.hyper[0, f] + self.total[f, k],
                      self.hyper[1, f] + self.n[f, k])

    cdef double log_marginal_feature(self, Py_ssize_t f, Py_ssize_t k) noexcept nogil:
        if self.n[f, k] == 0:
            return 0.0
        return _occam(self.n[f, k], self.total[f, k], self.hyper[0, f], self.hyper[1, f]) \
            + log_peak(self.n[f, k], self.total[f, k], self.units[f, k], self.rest[f, k])

    cdef void score_grid(self, Py_ssize_t f, Py_ssize_t h, const double *grid, Py_ssize_t n_grid,
                         double *out) noexcept nogil:
        cdef double shape = self.hyper[0, f], rate = self.hyper[1, f]
        cdef Py_ssize_t g, k
        for g in range(n_grid):
            if h == 0:
                shape = grid[g]
            else:
                rate = grid[g]
            out[g] = 0.0
            for k in range(self.n_slots):
                if self.n[f, k] > 0:
                    out[g] += _occam(self.n[f, k], self.total[f, k], shape, rate)

    def score_feature(self, Py_ssize_t f, Table table, out, Py_ssize_t start, Py_ssize_t stop):
        """Add feature f's log predictive to out: (stop - start, n)."""
        cdef double[:, ::1] scores = out
        cdef Py_ssize_t n_slots = scores.shape[1], i, k
        cdef Py_ssize_t position = table.positions[self.columns[f]]
        cdef double constant
        cdef uint32_t x
        with nogil:
            for i in range(start, stop):
                x = (<const uint32_t *> (table.row(i) + position))[0]
                if x == MISSING:
                    continue
                constant = count_constant(x)
                for k in range(n_slots):
                    scores[i - start, k] += log_predictive(self.gamma(f, k), x, constant)

    def predictive_mean(self, Py_ssize_t f):
        """Mean of the predictive in every slot."""
        return ((self.hyper[0, f] + np.asarray(self.total)[f])
                / (self.hyper[1, f] + np.asarray(self.n)[f]))

    def predictive_variance(self, Py_ssize_t f):
        """Variance of the predictive in every slot."""
        rate = self.hyper[1, f] + np.asarray(self.n)[f]
        return self.predictive_mean(f) * (1 + 1 / rate)

    def sample_feature(self, Py_ssize_t f, slots, bit_generator):
        """One predictive count for each of `slots`: float64 of the same shape."""
        cdef bitgen_t *rng = bitgen(bit_generator)
        cdef const int64_t[::1] slot = np.ascontiguousarray(slots, dtype=np.int64)
        cdef double[::1] out = np.empty(len(slot))
        cdef Py_ssize_t i
        for i in range(slot.shape[0]):
            out[i] = poisson(rng, standard_gamma(rng, self.hyper[0, f] + self.total[f, slot[i]])
                             / (self.hyper[1, f] + self.n[f, slot[i]]))
        return np.asarray(out)


cdef double poisson(bitgen_t *rng, double rate) noexcept nogil:
    """Poisson(rate): arrival times of a unit process, m at a time through a Gamma variate while the
    rate is large (Ahrens and Dieter 1974), then one by one. Above 2^53, where a double no longer
    holds every count, the normal law of the same mean and variance."""
    cdef double count = 0.0, m, x
    if rate > 9007199254740992.0:
        return rate + sqrt(rate) * standard_normal(rng)
    while rate > 20.0:
        m = <double> (<int64_t> (0.875 * rate))
        x = standard_gamma(rng, m)   # time of the m-th arrival
        if x > rate:                 # the m - 1 before it are uniform on (0, x)
            return count + binomial(rng, m - 1.0, rate / x)
        count += m
        rate -= x
    while True:
        rate += log(1.0 - uniform(rng))   # minus an exponential waiting time
        if rate < 0.0:
            return count
        count += 1.0


cdef double binomial(bitgen_t *rng, double n, double p) noexcept nogil:
    """Binomial(n, p): the median of the uniforms, a Beta variate, halves n; then one by one."""
    cdef double count = 0.0, half, x, a
    while n > 40.0:
        half = <double> (<int64_t> (n / 2.0)) + 1.0   # rank of an order statistic
        a = standard_gamma(rng, half)
        x = a / (a + standard_gamma(rng, n + 1.0 - half))
        if x <= p:
            count += half
            n -= half
            p = (p - x) / (1.0 - x)
        else:
            n = half - 1.0
            p = p / x
    for _ in range(<int64_t> n):
        if uniform(rng) < p:
            count += 1.0
    return count
