"""The subsample S: which rows carry a label, who enters and who leaves.

    random      both uniform (Obermeyer et al. 2014)
    window      a window moving over one shuffle: O(1), every row once per pass; with all rows in,
                the row that leaves is the one that enters: a systematic scan
    stratified  a row of the stratum least present in S enters, a uniform row leaves: S stays
                balanced over the strata while it grows

Which rows enter and leave never depends on the labels, so steps are planned ahead of time. This
lets a churn prefetch rows, and several views share one S.
"""

from libc.stdint cimport int64_t
from numpy.random cimport bitgen_t

import numpy as np

from .._native._random cimport below, bitgen
from ._check import check_subsample

SELECTIONS = ("random", "window", "stratified")


cdef inline int64_t path_size(const int64_t[:, ::1] knots, Py_ssize_t i, int64_t a) noexcept nogil:
    """Size after a assignments, between knots i and i + 1: linear, rounded up."""
    cdef int64_t rise = (a - knots[i, 0]) * (knots[i + 1, 1] - knots[i, 1])
    cdef int64_t run = knots[i + 1, 0] - knots[i, 0]
    if rise == 0:
        return knots[i, 1]
    # C's division rounds towards zero, which is up for a falling path
    return knots[i, 1] + ((rise + run - 1) // run if rise > 0 else rise // run)


cdef class Subsample:
    """Rows in S and their order.

    Parameters
    ----------
    n_rows : int
        All rows.
    selection : {"random", "window", "stratified"}
        Which rows enter and leave.
    bit_generator : numpy.random.BitGenerator
        Shuffles the rows for "window".
    strata : array-like of int, shape (n_rows,), optional
        Codes 0 .. n_strata - 1 for "stratified".
    """

    def __init__(self, Py_ssize_t n_rows, selection="random", bit_generator=None, strata=None):
        cdef bitgen_t *rng
        cdef int64_t i, j
        if selection not in SELECTIONS:
            raise ValueError(f"selection must be one of {SELECTIONS}, got {selection!r}")
        self.selection, self.rule = selection, SELECTIONS.index(selection)
        self.n_rows, self.size, self.tail = n_rows, 0, 0
        self.order = np.arange(n_rows, dtype=np.int64)
        self.n_strata = 1
        self.start = np.array([0, n_rows], dtype=np.int64)
        self.inside = np.zeros(1, dtype=np.int64)
        if selection == "window":
            rng = bitgen(bit_generator)
            for i in range(n_rows - 1, 0, -1):
                j = below(rng, i + 1)
                self.order[i], self.order[j] = self.order[j], self.order[i]
        if selection == "stratified":
            strata = np.asarray(strata, dtype=np.int64)
            self.order = np.argsort(strata, kind="stable")
            self.n_strata = int(strata.max()) + 1 if n_rows else 1
            counts = np.bincount(strata, minlength=self.n_strata)
            self.start = np.r_[0, np.cumsum(counts)].astype(np.int64)
            self.inside = np.zeros(self.n_strata, dtype=np.int64)

    cdef int64_t enter(self, bitgen_t *rng) noexcept nogil:
        """The row that enters S; there must be one outside."""
        cdef int64_t at, i, s, best, ties
        if self.rule == 1:
            at = self.tail + self.size
            if at >= self.n_rows:
                at -= self.n_rows
            self.size += 1
            return self.order[at]
        if self.rule == 0:
            i, at = self.size + below(rng, self.n_rows - self.size), self.size
        else:
            best, ties = -1, 0
            for s in range(self.n_strata):
                if self.inside[s] == self.start[s + 1] - self.start[s]:
                    continue
                if best < 0 or self.inside[s] < self.inside[best]:
                    best, ties = s, 1
                elif self.inside[s] == self.inside[best]:
                    ties += 1
                    if below(rng, ties) == 0:   # each of the ties with equal probability
                        best = s
            at = self.start[best] + self.inside[best]
            i = at + below(rng, self.start[best + 1] - at)
            self.inside[best] += 1
        self.size += 1
        self.order[i], self.order[at] = self.order[at], self.order[i]
        return self.order[at]

    cdef int64_t leave(self, bitgen_t *rng) noexcept nogil:
        """The row that leaves S; there must be one inside."""
        cdef int64_t at, i, s
        if self.rule == 1:
            at = self.tail
            self.tail = at + 1 if at + 1 < self.n_rows else 0
            self.size -= 1
            return self.order[at]
        if self.rule == 0:
            i, at = below(rng, self.size), self.size - 1
        else:
            i = below(rng, self.size)
            s = 0
            while i >= self.inside[s]:
                i -= self.inside[s]
                s += 1
            i, at = self.start[s] + i, self.start[s] + self.inside[s] - 1
            self.inside[s] -= 1
        self.size -= 1
        self.order[i], self.order[at] = self.order[at], self.order[i]
        return self.order[at]

    cdef Py_ssize_t plan(self, bitgen_t *rng, const int64_t[:, ::1] knots, int64_t *position,
                         int64_t stop, int64_t *steps, Py_ssize_t room) noexcept nogil:
        """Write the next steps of a path: row for "enters", ~row for "leaves".

        position: assignments done, advanced; ends at `stop` or where `room` is full. An assignment
        is the leaves that make room on the path, then one enter.
        """
        cdef Py_ssize_t n = 0, i = 0
        cdef int64_t a = position[0], target
        while a < stop and n < room:
            while knots[i + 1, 0] < a + 1:
                i += 1
            target = path_size(knots, i, a + 1)
            while self.size >= target and n < room:
                steps[n] = ~self.leave(rng)
                n += 1
            if n == room:
                break
            steps[n] = self.enter(rng)
            n += 1
            a += 1
        position[0] = a
        return n

    def fill(self):
        """Let all rows in (for a start with every row labelled)."""
        self.size = self.n_rows
        for s in range(self.n_strata):
            self.inside[s] = self.start[s + 1] - self.start[s]

    def append_rows(self, n_new, strata=None):
        """Take in rows n_rows .. n_rows + n_new - 1, outside S; `strata`: their codes."""
        n_rows = self.n_rows + n_new
        new = np.arange(self.n_rows, n_rows, dtype=np.int64)
        if self.rule == 2:
            codes = np.empty(n_rows, dtype=np.int64)
            codes[self.order] = np.repeat(np.arange(self.n_strata), np.diff(self.start))
            codes[new] = strata
            is_in = np.zeros(n_rows, dtype=bool)
            is_in[self.rows()] = True
            # within a stratum the rows of S come first
            self.order = np.lexsort((~is_in, codes))
            self.n_strata = int(codes.max()) + 1
            self.start = np.r_[0, np.cumsum(np.bincount(codes))].astype(np.int64)
            self.inside = np.bincount(codes[is_in], minlength=self.n_strata).astype(np.int64)
        else:
            order = np.asarray(self.order)
            self.order = np.concatenate([np.roll(order, -self.tail), new])
            self.tail = 0
        self.n_rows = n_rows

    def rows(self):
        """The rows of S: int64 (size,)."""
        order = np.asarray(self.order)
        if self.rule == 0:
            return order[:self.size].copy()
        if self.rule == 1:
            return np.take(order, np.arange(self.tail, self.tail + self.size), mode="wrap")
        return np.concatenate([order[self.start[s]:self.start[s] + self.inside[s]]
                               for s in range(self.n_strata)])

    def enter_row(self, bit_generator):
        """Let one row in and return it."""
        if self.size == self.n_rows:
            raise ValueError("every row is in the subsample")
        return self.enter(bitgen(bit_generator))

    def leave_row(self, bit_generator):
        """Put one row out and return it."""
        if self.size == 0:
            raise ValueError("the subsample is empty")
        return self.leave(bitgen(bit_generator))

    def to_arrays(self):
        """Flat dict of arrays; `from_arrays` gives the same object back."""
        return {
            "selection": np.array(self.selection),
            "order": np.asarray(self.order).copy(),
            "window": np.array([self.tail, self.size], dtype=np.int64),
            "start": np.asarray(self.start).copy(),
            "inside": np.asarray(self.inside).copy(),
        }

    @classmethod
    def from_arrays(cls, arrays):
        """The subsample whose to_arrays() gave `arrays`; StateError for arrays that are none."""
        cdef Subsample new = cls(0)
        check_subsample(arrays, SELECTIONS)
        new.selection = str(arrays["selection"])
        new.rule = SELECTIONS.index(new.selection)
        new.order = np.array(arrays["order"], dtype=np.int64)
        new.n_rows = len(arrays["order"])
        new.tail, new.size = (int(value) for value in arrays["window"])
        new.start = np.array(arrays["start"], dtype=np.int64)
        new.inside = np.array(arrays["inside"], dtype=np.int64)
        new.n_strata = len(arrays["inside"])
        return new

    def validate(self):
        """Check the invariants; AssertionError names the first that fails."""
        assert 0 <= self.size <= self.n_rows
        assert np.array_equal(np.sort(self.order), np.arange(self.n_rows)), "order lost rows"
        assert self.rule != 2 or np.sum(self.inside) == self.size, "strata and size disagree"
