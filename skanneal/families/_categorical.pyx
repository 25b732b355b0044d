"""Categorical with a Dirichlet prior, one pseudo-count per level, any number of levels.

Model, per feature: x ~ Categorical(p), p ~ Dirichlet(a_1, ..., a_L), A = sum a. With counts n_l of
n cells: predictive (n_l + a_l) / (n + A); marginal
Gamma(A)/Gamma(A + n) prod_l Gamma(a_l + n_l)/Gamma(a_l).
A value that fit did not see scores log(a_min / (n + A + a_min)); known levels keep their scores.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memset
from numpy.random cimport bitgen_t

import numpy as np

from .._native._math cimport log_gamma, log_rise
from .._native._random cimport bitgen, uniform
from ._base cimport FamilyBlock
from ._column_family cimport ColumnFamily
from ._partition_sums cimport ROWS, PartitionSums
from ._slots cimport TILE, aligned_zeros
from ._table cimport Table

from ._slots import SLOTS

MOST_TABLES = 24    # distinct pseudo-counts of a block that still have tables of logarithms


cdef enum:
    RISES = 1024    # counts below have log a (a + 1) ... (a + c - 1) in a table
    SMALL = 64      # the same, by number of cells, for a feature's sum of pseudo-counts
    TALLIED = 64    # counts below are tallied by their size


cdef inline uint32_t read_code(const char *cells, int32_t position, int width) noexcept nogil:
    if width == 1:
        return (<const uint8_t *> (cells + position))[0]
    if width == 2:
        return (<const uint16_t *> (cells + position))[0]
    return (<const uint32_t *> (cells + position))[0]


def entries(hyper):
    """Return the first entry of each feature, followed by the number of entries, and the
    pseudo-counts of all entries; a feature has one entry per level and one for a missing cell."""
    first = np.zeros(len(hyper) + 1, dtype=np.int32)
    np.cumsum([len(a) + 1 for a in hyper], out=first[1:])
    pseudo_count = np.ones(max(1, first[len(hyper)]))
    for a, start in zip(hyper, first):
        pseudo_count[start:start + len(a)] = a
    return first, pseudo_count


cdef _marginals(dict shared, pseudo_counts, int32_t[::1] first, int64_t[::1] base,
                int32_t[:, ::1] count, double[:, :] out):
    """Write each feature's log marginal, from the counts of all slots: out[f, partition]."""
    cdef Py_ssize_t n_features = first.shape[0] - 1, f, e, k, v
    cdef double[::1] pseudo_count = pseudo_counts
    cdef double[::1] total = np.add.reduceat(pseudo_counts, np.asarray(first)[:n_features]) - 1.0
    cdef double[:, ::1] small = np.zeros((n_features, SMALL))
    # log Gamma of the pseudo-counts, and of their sum for a feature
    cdef double[::1] own = np.empty(len(pseudo_count)), sums = np.empty(n_features)
    cdef double[::1] table
    cdef int64_t[::1] rises
    cdef const double *rise
    cdef double score
    cdef int64_t n
    cdef int32_t c
    tables = []
    values, which = np.unique(pseudo_count, return_inverse=True)
    for value in map(float, values):
        if ("rises", value) not in shared:
            table = np.zeros(RISES)
            for n in range(1, RISES):
                table[n] = log_rise(value, n)
            shared["rises", value] = np.asarray(table), <int64_t> &table[0]
        tables.append(shared["rises", value])
    rises = np.array([address for _, address in tables], dtype=np.int64)[which]
    with nogil:
        for e in range(own.shape[0]):
            own[e] = log_gamma(pseudo_count[e])
        for f in range(n_features):
            sums[f] = log_gamma(total[f])
        for v in range(base.shape[0] - 1):
            for f in range(n_features):
                score = 0.0
                for k in range(base[v], base[v + 1]):
                    n = 0
                    for e in range(first[f], first[f + 1] - 1):
                        c = count[k, e]
                        n += c
                        if c >= RISES:
                            score += log_gamma(pseudo_count[e] + c) - own[e]
                        elif c > 0:
                            rise = <const double *> rises[e]
                            score += rise[c]
                    if n >= SMALL:
                        score -= log_gamma(total[f] + n) - sums[f]
                    elif n > 0:
                        if small[f, n] == 0.0:
                            small[f, n] = log_gamma(total[f] + n) - sums[f]
                        score -= small[f, n]
                out[f, v] = score


cdef class CategoricalSums(PartitionSums):
    """Counts of the entries."""

    cdef double[::1] pseudo_count       # (n_entries,)
    cdef int32_t[::1] first, width      # (n_columns + 1,), (n_columns,)
    cdef int32_t[:, ::1] entry, count   # (ROWS, n_columns), (n_slots, n_entries)

    def __init__(self, table, columns, hyper):
        PartitionSums.__init__(self, table, columns, hyper)
        self.first, self.pseudo_count = entries(hyper)
        self.width = table.widths[columns].astype(np.int32)
        self.entry = np.empty((ROWS, self.n_columns), np.int32)

    def slot_bytes(self):
        return 4 * self.first[self.n_columns]

    def begin(self, n_slots):
        self.count = np.zeros((n_slots, self.first[self.n_columns]), np.int32)

    cdef void read(self, const char *row, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t f, n_columns = self.n_columns
        cdef const int32_t *first = &self.first[0]
        cdef const int32_t *position = &self.position[0]
        cdef const int32_t *width = &self.width[0]
        cdef int32_t *entry = &self.entry[i, 0]
        for f in range(n_columns):
            entry[f] = first[f] + <int32_t> read_code(row, position[f], width[f])

    cdef void add(self, const int32_t *label, Py_ssize_t n, Py_ssize_t base) noexcept nogil:
        cdef Py_ssize_t i, f, n_columns = self.n_columns
        cdef int32_t *at
        cdef const int32_t *entry
        for i in range(n):
            at, entry = &self.count[base + label[i], 0], &self.entry[i, 0]
            for f in range(n_columns):
                at[entry[f]] += 1

    def finish(self, int64_t[::1] base, double[:, :] out):
        _marginals(self.table.shared, np.asarray(self.pseudo_count), self.first, base, self.count,
                   out)


cdef class Categorical(ColumnFamily):
    """Codes. Coordinates of a feature's hyperparameters: one pseudo-count per level."""

    family = "categorical"
    cells = "level"
    default_for = "levels"
    coordinate_names = ("pseudo_counts",)
    forms = ("per_level",)
    first_pseudo_count = 0
    partition_sums = CategoricalSums

    @staticmethod
    def default_hyper(n_levels):
        """Jeffreys' pseudo-counts."""
        return np.full(n_levels, 0.5)

    @staticmethod
    def grids(cells, n_levels):
        """The same grid for every level: few values, so that their logarithms fit in tables."""
        return [np.geomspace(1e-3, 31.622776601683793, 10)] * n_levels

    def _set_up(self, table, hyper):
        cdef Py_ssize_t f
        self.level = skanneal_level()
        self.first, self.pseudo_count = entries(hyper)
        self.pseudo_count_f = np.asarray(self.pseudo_count).astype(np.float32)
        self.total = np.zeros(max(1, self.n_features))
        for f in range(self.n_features):
            self.sum_pseudo_counts(f)
        self.cell_entry = np.zeros(max(1, self.n_features), dtype=np.int64)
        self.logs = np.zeros(max(1, self.first[self.n_features]), dtype=np.int64)
        self.log_tables = ()
        self.memo_size = np.full(CATEGORICAL_MEMO, -1, dtype=np.int64)
        self.memo_value = np.zeros(CATEGORICAL_MEMO)
        self.block.n_features = self.n_features
        self.block.n_dense = self.n_dense
        self.block.n_entries = self.first[self.n_features]
        self.block.first = &self.first[0]
        self.block.cell_entry = &self.cell_entry[0]
        self.block.pseudo_count = &self.pseudo_count[0]
        self.block.pseudo_count_f = &self.pseudo_count_f[0]
        self.block.total = &self.total[0]
        self.block.memo_size, self.block.memo_value = &self.memo_size[0], &self.memo_value[0]
        self.block.log_size = min(1 << 20, max(1024, 1 << int(table.n_rows).bit_length()))
        self._find_logs(table.shared)

    def _find_logs(self, dict shared):
        """Tables of logarithms, one per value of the pseudo-counts: the grids have few, so blocks
        over the same rows share them. (Threads may fill one twice, with the same bits.)"""
        cdef float[::1] table
        self.block.logs = NULL
        values = np.asarray(self.pseudo_count_f).tolist()
        tables = dict.fromkeys(values)
        if len(tables) > MOST_TABLES:
            return
        for value in tables:
            key = "logs", value, self.block.log_size, self.level
            if key not in shared:
                table = aligned_zeros((self.block.log_size,), np.float32)
                fill_log_table_v[self.level](&table[0], value, self.block.log_size)
                shared[key] = table, <int64_t> &table[0]
            tables[value] = shared[key]
        self.logs = np.array([tables[value][1] for value in values], dtype=np.int64)
        self.log_tables = tables
        self.block.logs = <const float **> &self.logs[0]

    def refresh_all(self):
        self.memo_size[:] = -1
        self._find_logs(self.table.shared)
        FamilyBlock.refresh_all(self)

    def bind(self, Table table):
        cdef Py_ssize_t i
        FamilyBlock.bind(self, table)
        self.block.offset, self.block.row = &self.offset[0], NULL
        width = table.widths[self.columns]   # sorted in each of the two parts
        for i in range(3):
            self.block.width_stop[i] = np.searchsorted(width[:self.n_dense], 1 << i, "right")
            self.block.width_stop_gappy[i] = self.n_dense + np.searchsorted(
                width[self.n_dense:], 1 << i, "right")

    def _layout(self):
        return {"count": (np.int32, (SLOTS, self.block.n_entries))}

    def _hold(self, n_slots, count):
        cdef float[::1] score, constant
        self.count = count
        self.tally = np.zeros((2, n_slots + TALLIED), np.int64)
        score = aligned_zeros((n_slots * self.block.n_entries,), np.float32)
        constant = aligned_zeros((n_slots,), np.float32)
        self.caches = (score, constant)
        self.block.score, self.block.constant = &score[0], &constant[0]
        self.block.size, self.block.count = &self.size[0], &self.count[0, 0]

    cdef void add_scores(self, const char *row, Py_ssize_t n_tiles, float *out) noexcept nogil:
        categorical_add_scores_v[self.level](&self.block, row, n_tiles, out)

    cdef float score_without(self, const char *row, Py_ssize_t k) noexcept nogil:
        return categorical_score_without_v[self.level](&self.block, row, k)

    cdef void update(self, const char *row, Py_ssize_t k, int sign) noexcept nogil:
        categorical_update_v[self.level](&self.block, row, k, sign)

    cdef void refresh(self, Py_ssize_t k) noexcept nogil:
        categorical_refresh_v[self.level](&self.block, k)

    cdef int64_t n_present(self, Py_ssize_t f, Py_ssize_t k) noexcept nogil:
        return self.size[k] - self.count[k, self.first[f + 1] - 1]

    cdef double log_marginal_feature(self, Py_ssize_t f, Py_ssize_t k) noexcept nogil:
        cdef int64_t n = self.n_present(f, k)
        cdef double total
        cdef Py_ssize_t e
        cdef int32_t c
        if n == 0:
            return 0.0
        total = -log_rise(self.total[f], n)
        for e in range(self.first[f], self.first[f + 1] - 1):
            c = self.count[k, e]
            if c > 0:
                total += log_rise(self.pseudo_count[e], c)
        return total

    cdef Py_ssize_t tally_up(self, Py_ssize_t f, Py_ssize_t e) noexcept nogil:
        """Write into `tally` the counts above 0 of entry e of feature f over the slots, small ones
        once, and how often each stands there; of all cells if e is negative. Return how many."""
        cdef int64_t times[TALLIED]
        cdef int64_t c, largest = 0
        cdef Py_ssize_t k, n = 0
        memset(times, 0, sizeof(times))
        for k in range(self.n_slots):
            if self.size[k] == 0:
                continue
            c = self.n_present(f, k) if e < 0 else self.count[k, e]
            if c >= TALLIED:
                self.tally[0, n], self.tally[1, n] = c, 1
                n += 1
            else:
                times[c] += 1
                largest = max(largest, c)
        for c in range(1, largest + 1):
            if times[c] > 0:
                self.tally[0, n], self.tally[1, n] = c, times[c]
                n += 1
        return n

    cdef void add_rises(self, Py_ssize_t n_counts, double sign, const double *a, Py_ssize_t stride,
                        double shift, Py_ssize_t n, double *out) noexcept nogil:
        """Add sign times the sum of log b (b + 1) ... (b + c - 1) over the counts c of `tally` to
        each of `out`, (n,), where b is an element of `a`, (n, stride), in its first column, plus
        a shift."""
        cdef double b[TILE]
        cdef double sums[TILE]
        cdef Py_ssize_t g, start = 0
        while start < n:
            for g in range(TILE):
                b[g] = a[min(start + g, n - 1) * stride] + shift
                sums[g] = 0.0
            add_log_rises_v[self.level](b, &self.tally[0, 0], &self.tally[1, 0], n_counts, sign,
                                        sums)
            for g in range(min(TILE, n - start)):
                out[start + g] += sums[g]
            start += TILE

    cdef void score_grid(self, Py_ssize_t f, Py_ssize_t h, const double *grid, Py_ssize_t n_grid,
                         double *out) noexcept nogil:
        # the other levels' factors do not change
        cdef Py_ssize_t e = self.first[f] + h, n = self.tally_up(f, -1)
        memset(out, 0, n_grid * sizeof(double))
        self.add_rises(n, -1.0, grid, 1, self.total[f] - self.pseudo_count[e], n_grid, out)
        n = self.tally_up(f, e)
        self.add_rises(n, 1.0, grid, 1, 0.0, n_grid, out)

    cdef void score_pseudo_counts(self, Py_ssize_t f, const double[:, ::1] value,
                                  double[::1] out) noexcept nogil:
        cdef double totals[TILE]   # sums of the pseudo-counts
        cdef Py_ssize_t i, h, n, n_values = value.shape[0], n_levels = value.shape[1], start = 0
        out[:] = 0.0
        for h in range(n_levels):
            n = self.tally_up(f, self.first[f] + h)
            self.add_rises(n, 1.0, &value[0, h], n_levels, 0.0, n_values, &out[0])
        n = self.tally_up(f, -1)
        while start < n_values:
            memset(totals, 0, sizeof(totals))
            for i in range(min(TILE, n_values - start)):
                for h in range(n_levels):
                    totals[i] += value[start + i, h]
            self.add_rises(n, -1.0, totals, 1, 0.0, min(TILE, n_values - start), &out[start])
            start += TILE

    def get_hyper(self, Py_ssize_t f):
        """Feature f's pseudo-counts, shape (n_levels,)."""
        return np.asarray(self.pseudo_count)[self.first[f]:self.first[f + 1] - 1].copy()

    cdef void set_coordinate(self, Py_ssize_t f, Py_ssize_t h, double value) noexcept nogil:
        self.pseudo_count[self.first[f] + h] = value
        self.pseudo_count_f[self.first[f] + h] = <float> value
        self.sum_pseudo_counts(f)

    cdef void sum_pseudo_counts(self, Py_ssize_t f) noexcept nogil:
        cdef Py_ssize_t e
        self.total[f] = 0.0
        for e in range(self.first[f], self.first[f + 1] - 1):
            self.total[f] += self.pseudo_count[e]

    def _take_hyper(self, Categorical other):
        self.pseudo_count[:] = other.pseudo_count
        self.total[:] = other.total
        self.pseudo_count_f[:] = other.pseudo_count_f

    def _counts(self, f):
        """Counts of feature f's levels in every slot, (n_levels, n_slots)."""
        return np.asarray(self.count)[:, self.first[f]:self.first[f + 1] - 1].T

    def predictive_probabilities(self, Py_ssize_t f):
        """Predictive probability of each level in every slot, (n_levels, n_slots)."""
        weights = self._counts(f) + self.get_hyper(f)[:, None]
        return weights / weights.sum(axis=0)

    def score_feature(self, Py_ssize_t f, Table table, out, Py_ssize_t start, Py_ssize_t stop):
        """Add feature f's log predictive to out: (stop - start, n)."""
        cdef double[:, ::1] scores = out
        cdef Py_ssize_t n_slots = scores.shape[1], i, k
        cdef Py_ssize_t position = table.positions[self.columns[f]]
        cdef int width = int(table.dtypes[self.columns[f]][1])
        cdef uint32_t code
        a = self.get_hyper(f)
        n = self._counts(f).sum(axis=0)
        table_of = np.zeros((len(a) + 2, self.n_slots))  # one row per code; missing scores 0
        table_of[:len(a)] = np.log(self.predictive_probabilities(f))
        table_of[len(a) + 1] = np.log(a.min()) - np.log(n + a.sum() + a.min())
        cdef const double[:, ::1] of = table_of
        with nogil:
            for i in range(start, stop):
                code = read_code(table.row(i), position, width)
                for k in range(n_slots):
                    scores[i - start, k] += of[code, k]

    def sample_feature(self, Py_ssize_t f, slots, bit_generator):
        """One predictive code for each of `slots`: int64 of the same shape."""
        cdef bitgen_t *rng = bitgen(bit_generator)
        cdef const int64_t[::1] slot = np.ascontiguousarray(slots, dtype=np.int64)
        shares = self.predictive_probabilities(f)
        cdef const double[:, ::1] sums = np.ascontiguousarray(np.cumsum(shares, axis=0).T)
        cdef int64_t[::1] out = np.empty(len(slot), dtype=np.int64)
        cdef Py_ssize_t last = sums.shape[1] - 1, i, low, high, middle
        cdef double wanted
        for i in range(slot.shape[0]):
            wanted = uniform(rng) * sums[slot[i], last]
            low, high = 0, last
            while low < high:
                middle = (low + high) // 2
                if sums[slot[i], middle] <= wanted:
                    low = middle + 1
                else:
                    high = middle
            out[i] = low
        return np.asarray(out)

    def _entries(self):
        """The entries of all features' levels, and of their missing cells, features by column."""
        order, first = np.argsort(self.columns), np.asarray(self.first)
        levels = [np.arange(first[f], first[f + 1] - 1) for f in order]
        return np.concatenate([np.zeros(0, int), *levels]), first[1:][order] - 1

    def statistics(self):
        """Counts of all features' levels, one after another, and of missing cells in every slot,
        which follow from the sizes: a state that contradicts itself is seen when it is read."""
        count, first = self.slots.get("count"), np.asarray(self.first)
        present = [count[first[f]:first[f + 1] - 1].sum(axis=0) for f in np.argsort(self.columns)]
        missing = np.asarray(self.size) - np.reshape(present, (-1, self.n_slots)).astype(np.int64)
        return {"count": count[self._entries()[0]], "missing": missing.astype(np.int32)}

    def _restore(self, arrays):
        levels, missing = self._entries()
        n = len(arrays["size"])
        self.slots.put("size", ..., arrays["size"], n)
        self.slots.put("count", levels, arrays["count"], n)
        self.slots.put("count", missing, arrays["missing"], n)

    def parameters(self):
        """Gaps, numbers of levels and all pseudo-counts, features by column."""
        order = np.argsort(self.columns)
        hyper = [self.get_hyper(f) for f in order]
        return {
            "gappy": self.gappy[order],
            "n_levels": np.array([len(a) for a in hyper], dtype=np.int64),
            "pseudo_counts": np.concatenate([np.zeros(0), *hyper]),
        }

    @classmethod
    def hyper_of(cls, arrays):
        """Each feature's pseudo-counts."""
        stops = np.cumsum(arrays["n_levels"])
        starts = stops - arrays["n_levels"]
        return [arrays["pseudo_counts"][start:stop] for start, stop in zip(starts, stops)]
