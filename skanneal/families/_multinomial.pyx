"""Multinomial with a Dirichlet prior: a row is counts over many columns, most of them 0.

Model: x ~ Multinomial(X, p), p ~ Dirichlet(a_1, ..., a_D), A = sum a; the row's total X is given.
With counts n_j of a cluster's rows, of sum N, and (v)_x = v (v + 1) ... (v + x - 1):

    predictive   X! / prod x_j!  prod_j (a_j + n_j)_x_j / (A + N)_X
    marginal     the product of the rows' coefficients  prod_j (a_j)_n_j / (A)_N

Only the columns in which a row has a count take part, so a row costs its entries. The pseudo-counts
are one number for all columns, which is inferred, or one per column.

In a slot's statistics a bit per column says where the count is above 0: what goes over a slot's
columns skips the others 64 at a time.
"""

from libc.math cimport INFINITY, exp, log
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy
from numpy.random cimport bitgen_t

import numpy as np

from .._native._math cimport SMALL, fold, log_gamma, log_rise, stirling_rest
from .._native._random cimport below, bitgen, standard_gamma, uniform
from ._base cimport FamilyBlock
from ._slots cimport TILE, aligned_zeros
from ._table cimport Counts, Table

from ._slots import SLOTS

cdef extern from "_multinomial.h" nogil:
    ctypedef struct MultinomialBlock:
        int64_t n_slots
        const float *weight
        const double *total
        const double *log_total
        const double *rest_total
    int lowest_bit(uint64_t x)
    int skanneal_level()
    void (*multinomial_add_scores_v[3])(const MultinomialBlock *, const uint32_t *, int64_t,
                                        int64_t, double, int64_t, float *) noexcept

LEAST, MOST = 1e-9, 1e9   # pseudo-counts: what the kernels' products bear
MOST_TOTALS = 1000        # quantiles of the rows' totals that are kept

cdef enum:
    RISES = 1024          # counts below have log (a)_n in a table
    TALLIED = 1 << 16     # counts below are counted by their size
    EACH = 12             # log (a)_n of a large n takes as long as so many logarithms

# Rows whose squared counts sum to more are scored from the statistics. A weight is float32, its
# logarithm wrong by up to 6e-8 and by that of each count: together about 0.001 below this.
cdef double EXACT = 2.0 ** 30
# Sums of columns above are more than the kernels' products bear.
cdef int64_t LARGE = (1 << 31) - 1
# A float32 weight below is its pseudo-count plus a whole number, to an eighth.
cdef float WHOLE = 1 << 22


cdef inline Py_ssize_t first_above(double[::1] sums, double u) noexcept nogil:
    """The index of the first of ascending sums that is above u, or the last index."""
    cdef Py_ssize_t low = 0, high = sums.shape[0] - 1, middle
    while low < high:
        middle = (low + high) // 2
        if sums[middle] > u:
            high = middle
        else:
            low = middle + 1
    return low


cdef class Multinomial(FamilyBlock):
    """Rows of counts. Hyperparameters: pseudo-counts, one number or one per column."""

    family = "multinomial"
    joint = True
    takes_gaps = False
    cells = "count_row"
    coordinate_names = ("pseudo_counts",)
    forms = ("common",)
    derived = ("present",)

    cdef MultinomialBlock block
    cdef Py_ssize_t n_columns, n_words
    cdef Py_ssize_t n_large           # counts of all slots above LARGE
    cdef bint common                  # one pseudo-count for all columns?
    cdef double[::1] pseudo_count     # (n_columns,)
    cdef double sum_pseudo            # A
    cdef double[::1] rises            # (RISES,) log (a)_n of the common pseudo-count
    cdef int64_t[::1] tally           # (TALLIED,) scratch, zeros between calls
    cdef int64_t[:, ::1] count        # (n_slots, n_columns)
    cdef uint64_t[:, ::1] present     # (n_slots, n_words) a bit per column
    cdef int64_t[::1] total           # (n_slots,) N
    cdef double[::1] log_coefficients  # (n_slots,) sum over the rows
    cdef float[::1] weight            # caches, see _multinomial.h
    cdef double[::1] sum_weight, log_total, rest_total
    cdef object row_totals            # of the table's rows, quantiles

    @staticmethod
    def default_hyper(table, columns):
        """Jeffreys' pseudo-count for all columns."""
        return np.array([0.5])

    @staticmethod
    def grids(table, columns):
        """One grid: from clusters of few words to clusters that hardly differ."""
        return [np.geomspace(1e-3, 100.0, 26)]

    @staticmethod
    def check_hyper(flat, n_columns):
        """Pseudo-counts that the kernels' products bear."""
        if np.min(flat) < LEAST or np.max(flat) > MOST:
            return "pseudo_counts", f"between {LEAST:g} and {MOST:g}"
        return None

    def _set_up(self, table, hyper):
        (flat,) = hyper
        self.level = skanneal_level()
        self.n_columns = len(self.columns)
        self.n_words = (self.n_columns + 63) // 64
        self.common = len(flat) == 1
        self.pseudo_count = np.broadcast_to(flat, self.n_columns).copy()
        self.rises, self.tally = np.zeros(RISES), np.zeros(TALLIED, np.int64)
        self.take_pseudo_counts()
        self.row_totals = _quantiles(table)

    cdef void take_pseudo_counts(self) noexcept nogil:
        """What depends on the pseudo-counts alone."""
        cdef Py_ssize_t j
        cdef int64_t n
        self.sum_pseudo = 0.0
        for j in range(self.n_columns):
            self.sum_pseudo += self.pseudo_count[j]
        if self.common:
            for n in range(RISES):
                self.rises[n] = log_rise(self.pseudo_count[0], n)

    def _layout(self):
        return {"count": (np.int64, (SLOTS, self.n_columns)),
                "present": (np.uint64, (SLOTS, self.n_words)),
                "total": (np.int64, (SLOTS,)), "log_coefficients": (np.float64, (SLOTS,))}

    def _hold(self, n_slots, count, present, total, log_coefficients):
        self.count, self.present = count, present
        self.total, self.log_coefficients = total, log_coefficients
        self.weight = aligned_zeros((self.n_columns * n_slots,), np.float32)
        self.sum_weight = np.zeros(n_slots)
        self.log_total, self.rest_total = np.zeros(n_slots), np.zeros(n_slots)
        self.block.n_slots = n_slots
        self.block.weight, self.block.total = &self.weight[0], &self.sum_weight[0]
        self.block.log_total, self.block.rest_total = &self.log_total[0], &self.rest_total[0]

    # ---- one row --------------------------------------------------------------------------------

    cdef inline Counts cell(self, const char *row) noexcept nogil:
        cdef Counts cell
        memcpy(&cell, row + self.offset[0], sizeof(Counts))
        return cell

    cdef void add_scores(self, const char *row, Py_ssize_t n_tiles, float *out) noexcept nogil:
        cdef Counts x = self.cell(row)
        cdef const uint32_t *entry = self.table.entries + 2 * x.start
        cdef Py_ssize_t k
        cdef double squares = 0.0
        for k in range(x.n):
            squares += <double> entry[2 * k + 1] * entry[2 * k + 1]
        if squares <= EXACT and self.n_large == 0:
            multinomial_add_scores_v[self.level](&self.block, entry, x.n, x.total,
                                                 x.log_coefficient, n_tiles, out)
            return
        for k in range(n_tiles * TILE):
            out[k] += <float> self.log_predictive(entry, x, k, False)

    cdef float score_without(self, const char *row, Py_ssize_t k) noexcept nogil:
        cdef Counts x = self.cell(row)
        return <float> self.log_predictive(self.table.entries + 2 * x.start, x, k, True)

    cdef double log_predictive(self, const uint32_t *entry, Counts x, Py_ssize_t k,
                               bint held) noexcept nogil:
        """In float64, from the statistics; `held`: without the row, which slot k holds."""
        cdef const double *prior = &self.pseudo_count[0]
        cdef double even = 1.0, odd = 1.0, many = 0.0, a   # two products, none waits for the other
        cdef int64_t exponent = 0, i, r
        cdef uint32_t c, factors = 0
        for i in range(x.n):
            c = entry[2 * i + 1]
            a = prior[entry[2 * i]] + <double> (
                self.counted(entry[2 * i], k) - (<int64_t> c if held else 0))
            if c <= SMALL:
                for r in range(1, c):
                    odd *= a + r
                even, odd = odd, even * a
                factors += c
                if factors >= SMALL:   # then below 2 SMALL
                    even, odd, factors = fold(even, &exponent), fold(odd, &exponent), 0
            else:
                many += log_rise(a, c)
        even = fold(fold(even, &exponent) * fold(odd, &exponent), &exponent)
        a = self.sum_pseudo + <double> (self.total[k] - (x.total if held else 0))
        return (x.log_coefficient + many + log(even) + exponent * 0.6931471805599453
                - log_rise(a, x.total))

    cdef inline int64_t counted(self, Py_ssize_t j, Py_ssize_t k) noexcept nogil:
        """count[k, j], read back from its weight, which a row step has just had in the cache."""
        cdef float weight = self.weight[j * self.n_slots + k]
        if weight < WHOLE:
            return <int64_t> (weight - self.pseudo_count[j] + 0.5)
        return self.count[k, j]

    cdef void update(self, const char *row, Py_ssize_t k, int sign) noexcept nogil:
        cdef Counts x = self.cell(row)
        cdef const uint32_t *entry = self.table.entries + 2 * x.start
        cdef int64_t i
        self.size[k] += sign
        self.total[k] += sign * x.total
        self.log_coefficients[k] += sign * x.log_coefficient
        if self.size[k] == 0:
            self.log_coefficients[k] = 0.0
        for i in range(x.n):
            self.add(k, entry[2 * i], sign * <int64_t> entry[2 * i + 1])
        self.set_total(k)

    cdef inline void add(self, Py_ssize_t k, Py_ssize_t j, int64_t c) noexcept nogil:
        """Change the count of column j in slot k by c."""
        cdef int64_t n = self.count[k, j] + c
        cdef uint64_t bit = <uint64_t> 1 << (j & 63)
        self.n_large += (n > LARGE) - (self.count[k, j] > LARGE)
        self.count[k, j] = n
        self.weight[j * self.n_slots + k] = <float> (self.pseudo_count[j] + n)
        if n > 0:
            self.present[k, j >> 6] |= bit
        else:
            self.present[k, j >> 6] &= ~bit

    cdef inline void set_total(self, Py_ssize_t k) noexcept nogil:
        cdef double total = self.sum_pseudo + self.total[k]
        self.sum_weight[k] = total
        self.log_total[k], self.rest_total[k] = log(total), stirling_rest(total)

    # ---- slots ----------------------------------------------------------------------------------

    cdef void refresh(self, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t j
        for j in range(self.n_columns):
            self.weight[j * self.n_slots + k] = <float> (self.pseudo_count[j] + self.count[k, j])
        self.set_total(k)

    cdef void refresh_slots(self) noexcept nogil:
        """Every slot's score cache from its statistics, in the order of the cache."""
        cdef Py_ssize_t j, k, b
        cdef uint64_t word
        cdef float prior
        for j in range(self.n_columns):
            prior = <float> self.pseudo_count[j]
            for k in range(self.n_slots):
                self.weight[j * self.n_slots + k] = prior
        for k in range(self.n_slots):
            self.set_total(k)
            for b in range(self.n_words):
                word = self.present[k, b]
                while word:
                    j = 64 * b + lowest_bit(word)
                    word &= word - 1
                    self.weight[j * self.n_slots + k] = <float> (self.pseudo_count[j]
                                                                 + self.count[k, j])

    cdef void clear(self, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t j, b
        cdef uint64_t word
        for b in range(self.n_words):
            word = self.present[k, b]
            self.present[k, b] = 0
            while word:
                j = 64 * b + lowest_bit(word)
                word &= word - 1
                self.n_large -= self.count[k, j] > LARGE
                self.count[k, j] = 0
                self.weight[j * self.n_slots + k] = <float> self.pseudo_count[j]
        self.size[k] = self.total[k] = 0
        self.log_coefficients[k] = 0.0
        self.set_total(k)

    cdef void add_slot(self, Multinomial other, Py_ssize_t i, Py_ssize_t k) noexcept nogil:
        """Add what slot i of `other` has to slot k."""
        cdef Py_ssize_t j, b
        cdef uint64_t word
        self.size[k] += other.size[i]
        self.total[k] += other.total[i]
        self.log_coefficients[k] += other.log_coefficients[i]
        for b in range(self.n_words):
            word = other.present[i, b]
            while word:
                j = 64 * b + lowest_bit(word)
                word &= word - 1
                self.add(k, j, other.count[i, j])
        self.set_total(k)

    cdef void copy(self, FamilyBlock source, Py_ssize_t i, Py_ssize_t k) noexcept nogil:
        self.clear(k)
        self.add_slot(<Multinomial> source, i, k)

    cdef void merge(self, Py_ssize_t i, Py_ssize_t k) noexcept nogil:
        self.add_slot(self, k, i)
        self.clear(k)

    # ---- marginals and hyperparameters ----------------------------------------------------------

    cdef double log_marginal_feature(self, Py_ssize_t f, Py_ssize_t k) noexcept nogil:
        cdef double out = self.log_coefficients[k] - log_rise(self.sum_pseudo, self.total[k])
        cdef Py_ssize_t j, b
        cdef uint64_t word
        cdef int64_t n
        for b in range(self.n_words):
            word = self.present[k, b]
            while word:
                j = 64 * b + lowest_bit(word)
                word &= word - 1
                n = self.count[k, j]
                if self.common and n < RISES:
                    out += self.rises[n]
                else:
                    out += log_rise(self.pseudo_count[j], n)
        return out

    cdef void score_grid(self, Py_ssize_t f, Py_ssize_t h, const double *grid, Py_ssize_t n_grid,
                         double *out) noexcept nogil:
        cdef double rest = 0.0 if self.common else self.sum_pseudo - self.pseudo_count[h], total
        cdef Py_ssize_t g, k
        if self.common:
            self.score_common(grid, n_grid, out)
        else:
            for g in range(n_grid):
                out[g] = 0.0
                for k in range(self.n_slots):
                    out[g] += log_rise(grid[g], self.count[k, h])
        for g in range(n_grid):
            total = self.n_columns * grid[g] if self.common else rest + grid[g]
            for k in range(self.n_slots):
                if self.size[k] > 0:
                    out[g] -= log_rise(total, self.total[k])

    cdef void score_common(self, const double *grid, Py_ssize_t n_grid,
                           double *out) noexcept nogil:
        """out[g] = the sum over slots and columns of log (a)_n at a = grid[g].

        This is the sum over r of log(a + r) times the number of counts above r, so only the
        number of counts of each size is needed. Above RISES few sizes may be spread widely;
        then each has its own logarithm."""
        cdef Py_ssize_t g, j, k, b
        cdef int64_t r, most = 0, sizes = 0, above = 0, low, n
        cdef uint64_t word
        for g in range(n_grid):
            out[g] = 0.0
        for k in range(self.n_slots):
            for b in range(self.n_words):
                word = self.present[k, b]
                while word:
                    j = 64 * b + lowest_bit(word)
                    word &= word - 1
                    n = self.count[k, j]
                    if n < TALLIED:
                        sizes += self.tally[n] == 0 and n >= RISES
                        self.tally[n] += 1
                        most = max(most, n)
                    else:
                        for g in range(n_grid):
                            out[g] += log_rise(grid[g], n)
        low = RISES if sizes * EACH < most - RISES else most + 1
        for r in range(low, most + 1):
            if self.tally[r] > 0:
                for g in range(n_grid):
                    out[g] += self.tally[r] * log_rise(grid[g], r)
                self.tally[r] = 0
        for r in range(min(low - 1, most), 0, -1):   # above: counts of more than r - 1
            above += self.tally[r]
            self.tally[r] = 0
            if above > 0:
                for g in range(n_grid):
                    out[g] += above * log(grid[g] + (r - 1))

    def get_hyper(self, Py_ssize_t f):
        """The pseudo-counts: shape (1,) if all columns have the same, else (n_columns,)."""
        return np.asarray(self.pseudo_count)[:1 if self.common else self.n_columns].copy()

    cdef void set_coordinate(self, Py_ssize_t f, Py_ssize_t h, double value) noexcept nogil:
        if self.common:
            self.pseudo_count[:] = value
        else:
            self.pseudo_count[h] = value
        self.take_pseudo_counts()

    def _take_hyper(self, Multinomial other):
        self.pseudo_count[:] = other.pseudo_count
        self.take_pseudo_counts()

    # ---- queries --------------------------------------------------------------------------------

    def score_rows(self, Table table, out, start=0, stop=None):
        """Add each row's log predictive in every slot to `out`, in float64; a row without counts
        is a missing one.

        Parameters
        ----------
        table : Table
            Encoded queries.
        out : ndarray of shape (stop - start, n) and type float64, written
            n at most n_slots.
        start, stop : int
            The rows.
        """
        cdef double[:, ::1] scores = out
        cdef Py_ssize_t n_slots = scores.shape[1], first = start, i, k
        cdef int32_t position = table.positions[self.columns[0]]
        cdef Counts x
        with nogil:
            for i in range(scores.shape[0]):
                memcpy(&x, table.row(first + i) + position, sizeof(Counts))
                for k in range(n_slots):
                    scores[i, k] += self.log_predictive(table.entries + 2 * x.start, x, k, False)

    def score_feature(self, Py_ssize_t f, Table table, out, Py_ssize_t start, Py_ssize_t stop):
        """Add the log predictive of column f's count, given the row's total, to out: (stop - start,
        n). Within a cluster, the counts of the other columns do not matter further."""
        cdef double[:, ::1] scores = out
        cdef Py_ssize_t i, k
        cdef int32_t position = table.positions[self.columns[0]]
        cdef double a, b, ways
        cdef int64_t low, high, middle, c
        cdef const uint32_t *entry
        cdef Counts x
        with nogil:
            for i in range(start, stop):
                memcpy(&x, table.row(i) + position, sizeof(Counts))
                entry = table.entries + 2 * x.start
                low, high = 0, x.n
                while low < high:
                    middle = (low + high) // 2
                    if entry[2 * middle] < f:
                        low = middle + 1
                    else:
                        high = middle
                c = entry[2 * low + 1] if low < x.n and entry[2 * low] == f else 0
                ways = (log_gamma(x.total + 1.0) - log_gamma(c + 1.0)
                        - log_gamma(x.total - c + 1.0))
                for k in range(scores.shape[1]):
                    a = self.pseudo_count[f] + self.count[k, f]
                    b = self.sum_pseudo + self.total[k] - a
                    scores[i - start, k] += (ways + log_rise(a, c) + log_rise(b, x.total - c)
                                             - log_rise(a + b, x.total))

    def sample_rows(self, slots, bit_generator):
        """One row for each of `slots`, its total that of a random row of the table: float64 array
        of shape (n, n_columns).

        A row of fewer units than columns is drawn unit by unit from Polya's urn, another one by
        way of its probabilities, which take a Gamma variate per column.
        """
        cdef bitgen_t *rng = bitgen(bit_generator)
        cdef const int64_t[::1] slot = np.ascontiguousarray(slots, dtype=np.int64)
        cdef const int64_t[::1] totals = self.row_totals
        cdef double[::1] urn = np.empty(self.n_columns)
        cdef Py_ssize_t[::1] drawn = np.empty(self.n_columns, dtype=np.intp)
        cdef double[:, ::1] out = np.zeros((len(slot), self.n_columns))
        cdef int64_t[::1] size = np.zeros(len(slot), dtype=np.int64)  # of those by probabilities
        cdef Py_ssize_t i, j, k, t, of_urn = -1, last = self.n_columns - 1
        cdef int64_t total
        cdef double a, u, largest, whole
        with nogil:
            for i in range(slot.shape[0]):
                k, total = slot[i], totals[below(rng, totals.shape[0])]
                if total < self.n_columns:
                    if k != of_urn:
                        for j in range(self.n_columns):
                            a = self.pseudo_count[j] + self.count[k, j]
                            urn[j] = a + (urn[j - 1] if j > 0 else 0.0)
                        of_urn = k
                    for t in range(total):
                        u = uniform(rng) * (urn[last] + t)
                        if u < urn[last]:
                            drawn[t] = first_above(urn, u)
                        else:  # another one like an earlier unit
                            drawn[t] = drawn[min(t - 1, <Py_ssize_t> (u - urn[last]))]
                        out[i, drawn[t]] += 1.0
                    continue
                # logarithms of Gamma variates: those of small shapes would be 0
                size[i], largest, whole = total, -INFINITY, 0.0
                for j in range(self.n_columns):
                    a = self.pseudo_count[j] + self.count[k, j]
                    out[i, j] = log(standard_gamma(rng, a + 1.0)) + log(1.0 - uniform(rng)) / a
                    largest = max(largest, out[i, j])
                for j in range(self.n_columns):
                    out[i, j] = exp(out[i, j] - largest)
                    whole += out[i, j]
                for j in range(self.n_columns):
                    out[i, j] /= whole
        rows, sizes = np.asarray(out), np.asarray(size)
        others = np.flatnonzero(sizes)
        generator = np.random.Generator(bit_generator)
        rows[others] = generator.multinomial(sizes[others], rows[others])
        return rows

    # ---- arrays ---------------------------------------------------------------------------------

    def parameters(self):
        """Pseudo-counts, and totals to sample from."""
        hyper = self.get_hyper(0)
        return {
            "gappy": self.gappy.copy(),
            "pseudo_counts": hyper[0] if self.common else hyper,
            "row_totals": self.row_totals.copy(),
        }

    def _restore(self, arrays):
        FamilyBlock._restore(self, arrays)
        self.row_totals = arrays["row_totals"]
        self._find_present()

    def _find_present(self):
        """The bits of all slots from their counts, and how many of these are large."""
        cdef Py_ssize_t j, k
        self.present[:] = 0
        self.n_large = 0
        with nogil:
            for k in range(self.n_slots):
                for j in range(self.n_columns):
                    self.n_large += self.count[k, j] > LARGE
                    if self.count[k, j] > 0:
                        self.present[k, j >> 6] |= <uint64_t> 1 << (j & 63)

    def validate(self):
        """Check the invariants; AssertionError names the first that fails."""
        present, weight = np.asarray(self.present).copy(), np.asarray(self.weight).copy()
        n_large = self.n_large
        count = np.asarray(self.count)
        assert count.min() >= 0, "a count is negative"
        assert np.array_equal(count.sum(axis=1), self.total), "a slot's total"
        self._find_present()
        assert np.array_equal(present, self.present), "bits and counts disagree"
        assert n_large == self.n_large, "the number of large counts"
        FamilyBlock.validate(self)
        assert np.array_equal(weight, self.weight), "a score cache is stale"


def _quantiles(Table table):
    """Totals of the table's rows, all of them or evenly spaced quantiles."""
    if table.n_rows == 0:
        return np.ones(1, np.int64)
    if "row_totals" not in table.shared:
        totals = np.sort(table.totals())
        n = min(len(totals), MOST_TOTALS)
        table.shared["row_totals"] = totals[((np.arange(n) + 0.5) * len(totals) / n).astype(int)]
    return table.shared["row_totals"]
