"""Semi-continuous: numbers with atoms, values that repeat, as the zeros of an amount do.

Model, per feature with L atoms: a number is the l-th atom or stands elsewhere,

    w ~ Dirichlet(b, a, ..., a),  P(elsewhere) = w_0,  P(atom l) = w_l,

and elsewhere it is normal with the normal family's prior. With c_0 numbers elsewhere, c_l at atom l
and n = c_0 + ... + c_L, the next number is atom l with probability (a + c_l) / (b + L a + n), and
has elsewhere the density (b + c_0) / (b + L a + n) times that of the normal family's predictive.
The marginal likelihood is the product of the two families'. Densities are with respect to counting
measure at the atoms plus Lebesgue measure elsewhere: an atom has a probability, in no unit.

Which values are atoms is a property of the column (encoding/_atoms.py), which the Table knows. The
numbers elsewhere are a block of the normal family, for which an atom is a missing cell.

The grids: those of the normal family for the numbers elsewhere; a and b those of pseudo-counts.
"""

from libc.stdint cimport int32_t, int64_t

import numpy as np

from .._native._math cimport log_rise
from ._base cimport FamilyBlock
from ._column_family cimport ColumnFamily
from ._slots cimport aligned_zeros
from ._table cimport Table

from ._categorical import Categorical
from ._normal import Normal
from ._slots import SLOTS

cdef enum:
    N_NORMAL = 4   # coordinates of the normal family, which come first

cdef extern from "_semi_continuous.h" nogil:
    ctypedef struct SemiBlock:
        int64_t n_features, n_outcomes, n_slots
        const int32_t *offset
        const int32_t *start
        const float *atom
        const double *pseudo
        int64_t *n
        int64_t *count
        float *log_all
        float *log_own
        float *elsewhere
        int64_t n_present
        int32_t *feature
        int32_t *outcome
    int skanneal_level()
    void (*semi_read_v[3])(SemiBlock *, const char *) noexcept
    void (*semi_add_scores_v[3])(const SemiBlock *, int64_t, float *) noexcept
    float (*semi_score_without_v[3])(const SemiBlock *, int64_t) noexcept
    void (*semi_update_v[3])(SemiBlock *, int64_t, int) noexcept
    void (*semi_refresh_v[3])(SemiBlock *, int64_t) noexcept


def outcomes_of(cells, atoms):
    """Of each cell which outcome it is: 0 elsewhere, l at atom l, -1 missing."""
    found = np.searchsorted(atoms, cells)
    at_atom = np.r_[atoms, np.float32(np.nan)][found] == cells
    return np.where(np.isnan(cells), -1, np.where(at_atom, 1 + found, 0))


cdef class SemiContinuous(ColumnFamily):
    """Numbers with atoms. Coordinates: those of Normal, then a and b, the pseudo-counts of each
    atom and of elsewhere."""

    family = "semi_continuous"
    cells = "number_or_atom"
    default_for = "atoms"
    coordinate_names = (*Normal.coordinate_names, "a", "b")
    forms = (*Normal.forms, "positive", "positive")
    first_pseudo_count = N_NORMAL
    restricting_ends = Normal.restricting_ends
    bounds_density = Normal.bounds_density
    jittered = True
    cell_cost = 3.0

    cdef FamilyBlock numbers            # what is elsewhere, in rows of floats of its own
    cdef SemiBlock block
    cdef double[:, ::1] pseudo          # (2, n_features): a, b
    cdef int32_t[::1] start             # (n_features + 1,): the outcomes of each, elsewhere first
    cdef float[::1] atom                # (n_outcomes,) cells; NaN for elsewhere
    cdef int64_t[:, ::1] n, count       # (n_features, n_slots), (n_outcomes, n_slots) cells
    cdef float[::1] elsewhere           # (n_features,) scratch: a row for the block of numbers
    cdef int32_t[::1] feature, outcome  # (n_features,) scratch: of cells that are not missing
    cdef object caches                  # keeps the aligned arrays alive

    @staticmethod
    def default_hyper(n_levels):
        """Those of Normal, and a pseudo-count of 1 for every outcome."""
        return np.r_[Normal.default_hyper(n_levels), 1.0, 1.0]

    @staticmethod
    def grids(cells, n_levels):
        """Grids of the numbers elsewhere, in cell units, and of pseudo-counts."""
        return Normal.grids(cells, n_levels) + Categorical.grids(cells, 2)

    def _set_up(self, table, hyper):
        atoms = [table.atoms[j] for j in self.columns]
        self.start = np.cumsum([0, *(1 + len(of) for of in atoms)]).astype(np.int32)
        parts = [np.r_[np.float32(np.nan), of] for of in atoms]
        self.atom = np.concatenate([np.zeros(0, np.float32), *parts]).astype(np.float32)
        ColumnFamily._set_up(self, table, hyper)
        self.pseudo = self.hyper[N_NORMAL:]
        inner = Table(["f4"] * max(1, self.n_features), [0] * max(1, self.n_features))
        gappy = np.ones(self.n_features, dtype=bool)
        hyper = np.asarray(self.hyper)[:N_NORMAL].T
        self.numbers = Normal(inner, np.arange(self.n_features), hyper, 1, gappy)
        self.level = skanneal_level()
        self.elsewhere = np.zeros(max(1, self.n_features), dtype=np.float32)
        self.feature = np.zeros(max(1, self.n_features), dtype=np.int32)
        self.outcome = np.zeros(max(1, self.n_features), dtype=np.int32)
        self.block.n_features, self.block.n_outcomes = self.n_features, len(self.atom)
        self.block.elsewhere, self.block.start = &self.elsewhere[0], &self.start[0]
        self.block.feature, self.block.outcome = &self.feature[0], &self.outcome[0]
        if self.n_features:
            self.block.atom, self.block.pseudo = &self.atom[0], &self.pseudo[0, 0]

    def bind(self, Table table):
        FamilyBlock.bind(self, table)
        self.block.offset = &self.offset[0]

    def _layout(self):
        return {"n": (np.int64, (self.n_features, SLOTS)),
                "count": (np.int64, (len(self.atom), SLOTS))}

    def _hold(self, n_slots, n, count):
        cdef float[::1] log_all, log_own
        self.n, self.count = n, count
        log_all = aligned_zeros((max(1, n.size),), np.float32)
        log_own = aligned_zeros((max(1, count.size),), np.float32)
        self.caches = log_all, log_own
        self.block.log_all, self.block.log_own = &log_all[0], &log_own[0]
        self.block.n_slots = n_slots
        if self.n_features:
            self.block.n, self.block.count = &self.n[0, 0], &self.count[0, 0]
        if self.numbers.n_slots < n_slots:
            self.numbers.reserve(n_slots)

    cdef inline double prior(self, Py_ssize_t f, Py_ssize_t o) noexcept nogil:
        """Pseudo-count of an outcome."""
        return self.pseudo[1 if o == self.start[f] else 0, f]

    cdef inline double prior_of_all(self, Py_ssize_t f) noexcept nogil:
        return self.pseudo[1, f] + (self.start[f + 1] - self.start[f] - 1) * self.pseudo[0, f]

    cdef const char *read(self, const char *row) noexcept nogil:
        """The row as the block of numbers reads it; the block knows the outcome of each cell."""
        semi_read_v[self.level](&self.block, row)
        return <const char *> self.block.elsewhere

    cdef void add_scores(self, const char *row, Py_ssize_t n_tiles, float *out) noexcept nogil:
        self.numbers.add_scores(self.read(row), n_tiles, out)
        semi_add_scores_v[self.level](&self.block, n_tiles, out)

    cdef float score_without(self, const char *row, Py_ssize_t k) noexcept nogil:
        cdef float numbers = self.numbers.score_without(self.read(row), k)
        return numbers + semi_score_without_v[self.level](&self.block, k)

    cdef void update(self, const char *row, Py_ssize_t k, int sign) noexcept nogil:
        self.numbers.update(self.read(row), k, sign)
        self.size[k] += sign
        semi_update_v[self.level](&self.block, k, sign)

    cdef bint cancels(self, const char *row, Py_ssize_t k) noexcept nogil:
        return self.numbers.cancels(self.read(row), k)

    cdef void refresh(self, Py_ssize_t k) noexcept nogil:
        self.numbers.refresh(k)
        semi_refresh_v[self.level](&self.block, k)

    cdef void clear(self, Py_ssize_t k) noexcept nogil:
        self.numbers.slots.clear(k)
        ColumnFamily.clear(self, k)

    cdef void copy(self, FamilyBlock source, Py_ssize_t i, Py_ssize_t k) noexcept nogil:
        self.numbers.slots.copy((<SemiContinuous> source).numbers.slots, i, k)
        ColumnFamily.copy(self, source, i, k)

    cdef void merge(self, Py_ssize_t i, Py_ssize_t k) noexcept nogil:
        self.numbers.merge(i, k)
        ColumnFamily.merge(self, i, k)

    cdef double log_marginal_counts(self, Py_ssize_t f, Py_ssize_t k) noexcept nogil:
        """Log probability of which cells of feature f are which atoms, in slot k."""
        cdef double whole = self.prior_of_all(f), out
        cdef Py_ssize_t o
        out = -log_rise(whole, self.n[f, k])
        for o in range(self.start[f], self.start[f + 1]):
            if self.count[o, k] > 0:
                out += log_rise(self.prior(f, o), self.count[o, k])
        return out

    cdef double log_marginal_feature(self, Py_ssize_t f, Py_ssize_t k) noexcept nogil:
        if self.n[f, k] == 0:
            return 0.0
        return self.log_marginal_counts(f, k) + self.numbers.log_marginal_feature(f, k)

    @classmethod
    def column_scores(cls, table, columns, hyper, rows, labels, n_slots):
        hyper = np.array(hyper, dtype=np.float64)
        cells = [table.column(j)[rows] for j in columns]
        outcomes = [outcomes_of(own, table.atoms[j]) for own, j in zip(cells, columns)]
        inner = Table(["f4"] * len(columns), [0] * len(columns))
        inner.append([np.where(o == 0, own, np.nan) for own, o in zip(cells, outcomes)])
        at = np.arange(len(columns))
        out = Normal.column_scores(inner, at, hyper[:, :N_NORMAL], np.arange(len(rows)), labels,
                                   n_slots)
        for i, outcome in enumerate(outcomes):
            n_outcomes = 1 + len(table.atoms[columns[i]])
            prior = np.r_[hyper[i, N_NORMAL + 1], np.full(n_outcomes - 1, hyper[i, N_NORMAL])]
            present = np.flatnonzero(outcome >= 0)
            for v, n in enumerate(n_slots):
                cell = labels[v][present] * n_outcomes + outcome[present]
                counts = np.bincount(cell, minlength=n * n_outcomes).reshape(n, n_outcomes)
                out[i, v] += dirichlet_multinomial(counts, prior)
        return out

    cdef void score_grid(self, Py_ssize_t f, Py_ssize_t h, const double *grid, Py_ssize_t n_grid,
                         double *out) noexcept nogil:
        cdef double before
        cdef Py_ssize_t g
        if h < N_NORMAL:
            self.numbers.score_grid(f, h, grid, n_grid, out)
            return
        before = self.pseudo[h - N_NORMAL, f]
        for g in range(n_grid):
            self.pseudo[h - N_NORMAL, f] = grid[g]
            out[g] = self.log_marginal_all_counts(f)
        self.pseudo[h - N_NORMAL, f] = before

    cdef void score_pseudo_counts(self, Py_ssize_t f, const double[:, ::1] value,
                                  double[::1] out) noexcept nogil:
        cdef double a = self.pseudo[0, f], b = self.pseudo[1, f]
        cdef Py_ssize_t g
        for g in range(value.shape[0]):
            self.pseudo[0, f], self.pseudo[1, f] = value[g, 0], value[g, 1]
            out[g] = self.log_marginal_all_counts(f)
        self.pseudo[0, f], self.pseudo[1, f] = a, b

    cdef double log_marginal_all_counts(self, Py_ssize_t f) noexcept nogil:
        cdef double total = 0.0
        cdef Py_ssize_t k
        for k in range(self.n_slots):
            if self.n[f, k] > 0:
                total += self.log_marginal_counts(f, k)
        return total

    cdef void set_coordinate(self, Py_ssize_t f, Py_ssize_t h, double value) noexcept nogil:
        self.hyper[h, f] = value
        if h < N_NORMAL:
            self.numbers.set_coordinate(f, h, value)

    def refresh_all(self):
        self.numbers.refresh_all()
        FamilyBlock.refresh_all(self)

    def _take_hyper(self, SemiContinuous other):
        self.numbers._take_hyper(other.numbers)
        self.hyper[:] = other.hyper

    def outcome_shares(self, Py_ssize_t f):
        """Predictive probability of each outcome of feature f: (1 + L, n_slots)."""
        a, b = np.asarray(self.pseudo)[:, f]
        count = np.asarray(self.count)[self.start[f]:self.start[f + 1]]
        weights = count + np.r_[b, np.full(len(count) - 1, a)][:, None]
        return weights / weights.sum(axis=0)

    def score_feature(self, Py_ssize_t f, Table table, out, Py_ssize_t start, Py_ssize_t stop):
        """Add feature f's log predictive, at an atom its log probability, elsewhere the log density
        in the user's units, to out: (rows, n)."""
        j, n_slots = self.columns[f], out.shape[1]
        cells = table.column(j, start, stop)
        outcome = outcomes_of(cells, table.atoms[j])
        numbers = np.where(outcome == 0, cells, np.float32(np.nan))
        self.numbers.score_numbers(f, numbers, table.scales[j], out)
        # of a missing cell log 1, in the last place
        logs = np.vstack([np.log(self.outcome_shares(f)[:, :n_slots]), np.zeros(n_slots)])
        out += logs[outcome]

    def log_slope(self, f, table, start, stop):
        """-log(scale) of each cell elsewhere: a density per scale of the column, which has no unit,
        compares with an atom's probability."""
        j = self.columns[f]
        outcome = outcomes_of(table.column(j, start, stop), table.atoms[j])
        return np.where(outcome == 0, -np.log(table.scales[j]), 0.0)

    def log_jacobian(self):
        """Sum over the cells elsewhere of -log(scale): from log marginals in cell units to those in
        the user's. An atom's probability has no unit."""
        elsewhere = np.asarray(self.count)[np.asarray(self.start)[:-1]].sum(axis=1)
        return -float(elsewhere @ np.log(self.table.scales[self.columns]))

    def _atoms(self, f):
        return np.asarray(self.atom, dtype=np.float64)[self.start[f] + 1:self.start[f + 1], None]

    def student_law(self, Py_ssize_t f):
        """Normal's, of what is elsewhere."""
        return self.numbers.student_law(f)

    def numbers_mean(self, Py_ssize_t f):
        """Centre of what is elsewhere, in every slot, in cell units."""
        return self.numbers.predictive_mean(f)

    def numbers_variance(self, Py_ssize_t f):
        """Variance of what is elsewhere, in every slot, in cell units."""
        return self.numbers.predictive_variance(f)

    def predictive_mean(self, Py_ssize_t f):
        """Mean of the predictive in every slot, atoms included, in cell units."""
        shares = self.outcome_shares(f)
        return shares[0] * self.numbers_mean(f) + (shares[1:] * self._atoms(f)).sum(0)

    def predictive_variance(self, Py_ssize_t f):
        """Variance of the predictive in every slot, atoms included, in cell units."""
        shares, mean = self.outcome_shares(f), self.predictive_mean(f)
        elsewhere = self.numbers_variance(f) + (self.numbers_mean(f) - mean) ** 2
        return shares[0] * elsewhere + (shares[1:] * (self._atoms(f) - mean) ** 2).sum(0)

    def sample_feature(self, Py_ssize_t f, slots, bit_generator):
        """One predictive cell for each of `slots`: float64 of the same shape, in cell units."""
        slots = np.asarray(slots, dtype=np.int64)
        out = self.numbers.sample_feature(f, slots, bit_generator)
        cumulative = np.cumsum(self.outcome_shares(f), axis=0)[:, slots]
        uniforms = np.random.Generator(bit_generator).random(len(slots))
        outcome = np.minimum((cumulative <= uniforms).sum(axis=0), len(cumulative) - 1)
        return np.where(outcome > 0, np.r_[0.0, self._atoms(f)[:, 0]][outcome], out)

    def _outcomes(self):
        """Whether a feature has an outcome, and which it is: (n_features, most outcomes of any),
        features by column."""
        order, start = np.argsort(self.columns), np.asarray(self.start)
        outcome = start[order, None] + np.arange(np.diff(start).max(initial=1))
        return outcome < start[order + 1, None], outcome

    def statistics(self):
        """Cells of each outcome, elsewhere first; mean and squares of those elsewhere."""
        order, numbers = np.argsort(self.columns), self.numbers.statistics()
        there, outcome = self._outcomes()
        count = np.zeros((*there.shape, self.n_slots), np.int64)
        count[there] = self.slots.get("count")[outcome[there]]
        return {"count": count, "mean": numbers["mean"][order], "m2": numbers["m2"][order]}

    def _restore(self, arrays):
        n, at = len(arrays["size"]), np.searchsorted(arrays["columns"], self.columns)
        there, outcome = self._outcomes()
        inner = {"n": arrays["count"][at, 0], "mean": arrays["mean"][at], "m2": arrays["m2"][at]}
        self.numbers._restore({"size": arrays["size"], **inner})
        self.slots.put("size", ..., arrays["size"], n)
        self.slots.put("count", outcome[there], arrays["count"][there], n)
        self.slots.put("n", ..., arrays["count"][at].sum(axis=1), n)


def dirichlet_multinomial(counts, prior):
    """Log probability of which cells have which outcome: the sum over slots, counts (n, L)."""
    cdef const int64_t[:, ::1] count = np.ascontiguousarray(counts, dtype=np.int64)
    cdef const double[::1] a = prior
    cdef double whole = np.sum(prior), out = 0.0
    cdef int64_t n
    cdef Py_ssize_t k, o
    for k in range(count.shape[0]):
        n = 0
        for o in range(count.shape[1]):
            n += count[k, o]
            if count[k, o] > 0:
                out += log_rise(a[o], count[k, o])
        if n > 0:
            out -= log_rise(whole, n)
    return out
