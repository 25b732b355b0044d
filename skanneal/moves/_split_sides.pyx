"""The two clusters of a split, and how rows are allocated to them: see _split_merge.pyx."""

from cpython.exc cimport PyErr_CheckSignals
from cpython.ref cimport PyObject
from libc.math cimport INFINITY, exp, log, log1p
from libc.stdint cimport INT64_MAX, int32_t, int64_t
from libc.stdlib cimport free, malloc
from numpy.random cimport bitgen_t

import numpy as np

from .._native._random cimport bitgen, uniform
from ..families._base cimport FamilyBlock
from ..families._slots cimport TILE, aligned_zeros
from ..partition_priors._base cimport PartitionPrior
from ..states._mixture cimport Mixture

# The probability of an allocation is multiplied up until it is SMALL, over rows whose two scores
# differ by at most FAR; of the other rows the logarithms are added up.
cdef enum:
    FAR = 50
cdef double SMALL = 1e-200


cdef class SplitSides:
    """The two clusters of a split: one spare block per family.

    Slots 0 and 1 are the sides, and 2 and 3 are for looks at both as one."""

    def __cinit__(self, *args):
        self.pointer = NULL

    def __init__(self, Mixture mixture):
        cdef Py_ssize_t i
        self.blocks = [block.spare(4) for block in mixture.blocks]
        self.scores = aligned_zeros((TILE,), np.float32)
        self.n_blocks = len(self.blocks)
        self.pointer = <PyObject **> malloc(max(1, self.n_blocks) * sizeof(PyObject *))
        if self.pointer == NULL:
            raise MemoryError
        for i in range(self.n_blocks):
            self.pointer[i] = <PyObject *> self.blocks[i]

    def __dealloc__(self):
        free(self.pointer)

    def follow(self, Mixture mixture):
        """Take over the mixture's hyperparameters."""
        for block, spare in zip(mixture.blocks, self.blocks):
            spare.follow(block)

    cdef void empty(self) noexcept nogil:
        cdef Py_ssize_t b
        for b in range(self.n_blocks):
            (<FamilyBlock> self.pointer[b]).clear(0)
            (<FamilyBlock> self.pointer[b]).clear(1)
        self.size[0] = self.size[1] = 0

    cdef void insert(self, const char *cells, int side) noexcept nogil:
        cdef Py_ssize_t b
        for b in range(self.n_blocks):
            (<FamilyBlock> self.pointer[b]).insert(cells, side)
        self.size[side] += 1

    cdef double allocate(self, Mixture mixture, int64_t[::1] rows, int32_t[::1] side, bint forced,
                         double least_log_q, double beta, Looks looks,
                         bitgen_t *rng) noexcept nogil:
        """Assign rows[2:] one after another to the seeds rows[0] and rows[1]; return log q. Once
        log q + `lowest` falls below `least_log_q`, stop and return a number by which it does.

        side: which of the two each row joins; written, or read if `forced`.
        """
        cdef const char *cells
        cdef double d = mixture.prior.reduction, log_q = 0.0, q = 1.0, gain, ratio, least
        cdef double least_q = exp(least_log_q), given = least_log_q
        cdef Py_ssize_t t, b
        cdef int64_t look = looks.first
        self.lowest = 0.0
        self.empty()
        self.insert(mixture.table.row(rows[0]), 0)
        self.insert(mixture.table.row(rows[1]), 1)
        side[0], side[1] = 0, 1
        for t in range(2, rows.shape[0]):
            cells = mixture.table.row(rows[t])
            self.scores[0] = self.scores[1] = 0.0
            for b in range(self.n_blocks):
                (<FamilyBlock> self.pointer[b]).weigh(cells, &self.scores[0])
            gain = beta * (<double> self.scores[1] - <double> self.scores[0])
            ratio = (self.size[1] - d) / (self.size[0] - d)
            if gain < -FAR or gain > FAR:
                gain += log(ratio)
                if not forced:
                    side[t] = gain > 0.0
                    if uniform(rng) * (1.0 + exp(-abs(gain))) >= 1.0:
                        side[t] = 1 - side[t]
                log_q -= softplus(-gain if side[t] else gain)
                least_q = exp(least_log_q - log_q)
            else:
                ratio *= exp(gain)
                least = ratio if ratio < 1.0 else 1.0 / ratio
                if not forced:
                    side[t] = ratio >= 1.0
                    if uniform(rng) * (1.0 + least) >= 1.0:
                        side[t] = 1 - side[t]
                q *= (1.0 if side[t] == (ratio >= 1.0) else least) / (1.0 + least)
                if q < SMALL:
                    log_q += log(q)
                    q = 1.0
                    least_q = exp(least_log_q - log_q)
            self.n_allocated += 1
            if q < least_q:
                break
            for b in range(self.n_blocks):
                (<FamilyBlock> self.pointer[b]).join(cells, side[t])
            self.size[side[t]] += 1
            if t + 1 == look and look < rows.shape[0]:
                look *= 2
                self.look(mixture, looks.log_open, log_q + log(q), beta)
                if self.lowest <= looks.least:
                    break
                least_log_q = given - self.lowest
                least_q = exp(least_log_q - log_q)
        return log_q + log(q)

    cdef void look(self, Mixture mixture, double log_open, double log_q,
                   double beta) noexcept nogil:
        """Whether the rows allocated so far would be split: log a_t, in `lowest`."""
        cdef Py_ssize_t b
        cdef double log_ratio = log_open - log_q
        for b in range(self.n_blocks):
            (<FamilyBlock> self.pointer[b]).copy(<FamilyBlock> self.pointer[b], 0, 2)
            (<FamilyBlock> self.pointer[b]).copy(<FamilyBlock> self.pointer[b], 1, 3)
            (<FamilyBlock> self.pointer[b]).merge(2, 3)
        log_ratio += beta * (self.log_marginal(0) + self.log_marginal(1) - self.log_marginal(2))
        log_ratio += log_split_sizes(mixture.prior, self.size[0], self.size[1])
        self.lowest = min(self.lowest, log_ratio)

    cdef void refresh(self) noexcept nogil:
        """Make the score caches that an allocation may leave out."""
        cdef Py_ssize_t b
        for b in range(self.n_blocks):
            (<FamilyBlock> self.pointer[b]).refresh(0)
            (<FamilyBlock> self.pointer[b]).refresh(1)

    cdef int64_t improve(self, Mixture mixture, const int64_t[::1] rows,
                         int32_t[::1] side) noexcept nogil:
        """Move each row to the side where it fits better, given all others; return how many moved.

        The last row of a side stays, and so does one whose removal would cost the side's digits."""
        cdef const char *cells
        cdef double d = mixture.prior.reduction, gain
        cdef int64_t moved = 0
        cdef Py_ssize_t t, b
        cdef int own
        for t in range(rows.shape[0]):
            own, cells = side[t], mixture.table.row(rows[t])
            if self.size[own] == 1 or (mixture.table.far and mixture.table.has_far(cells)):
                continue
            self.scores[0] = self.scores[1] = 0.0
            for b in range(self.n_blocks):
                (<FamilyBlock> self.pointer[b]).add_scores(cells, 1, &self.scores[0])
            gain = self.scores[1 - own] + log((self.size[1 - own] - d) / (self.size[own] - 1 - d))
            for b in range(self.n_blocks):
                gain -= (<FamilyBlock> self.pointer[b]).score_without(cells, own)
            if gain > 0.0:
                for b in range(self.n_blocks):
                    (<FamilyBlock> self.pointer[b]).remove(cells, own)
                self.size[own] -= 1
                self.insert(cells, 1 - own)
                side[t] = 1 - own
                moved += 1
        return moved

    cdef double log_weight(self, Mixture mixture, int64_t row, double beta) noexcept nogil:
        """The log weight with which a row would join the second side."""
        cdef Py_ssize_t b
        self.scores[0] = self.scores[1] = 0.0
        for b in range(self.n_blocks):
            (<FamilyBlock> self.pointer[b]).weigh(mixture.table.row(row), &self.scores[0])
        return mixture.log_join(self.size[1]) + beta * self.scores[1]

    cdef double log_marginal(self, int side) noexcept nogil:
        return log_marginal(self.pointer, self.n_blocks, side)

    cdef double log_merged(self, Mixture mixture, Py_ssize_t i, Py_ssize_t k) noexcept nogil:
        """Log marginal of two clusters of the mixture as one."""
        cdef Py_ssize_t b
        for b in range(self.n_blocks):
            (<FamilyBlock> self.pointer[b]).copy(<FamilyBlock> mixture.pointer[b], i, 0)
            (<FamilyBlock> self.pointer[b]).copy(<FamilyBlock> mixture.pointer[b], k, 1)
            (<FamilyBlock> self.pointer[b]).merge(0, 1)
        return self.log_marginal(0)


cdef inline double softplus(double x) noexcept nogil:
    """log(1 + exp(x))."""
    return x + log1p(exp(-x)) if x > 0.0 else log1p(exp(x))


cdef double log_marginal(PyObject **blocks, Py_ssize_t n_blocks, Py_ssize_t k) noexcept nogil:
    cdef double total = 0.0
    cdef Py_ssize_t b
    for b in range(n_blocks):
        total += (<FamilyBlock> blocks[b]).log_marginal(k)
    return total


cdef double log_split_sizes(PartitionPrior prior, int64_t n_i, int64_t n_j) noexcept nogil:
    """log of G(n_i) G(n_j) / G(n_i + n_j)."""
    return prior.log_size(n_i) + prior.log_size(n_j) - prior.log_size(n_i + n_j)


def divide(Mixture mixture, rows, bit_generator, int64_t most_steps):
    """Divide rows into two components by a mixture's hyperparameters, whether or not that is
    accepted: the allocation of a split, then rows move to where they fit better until none does.

    Parameters
    ----------
    mixture : Mixture
        Not changed.
    rows : int64 array of shape (n,)
        The first two of them are the seeds.
    bit_generator : numpy.random.BitGenerator
    most_steps : int
        Rows that may be looked at after the allocation; the last pass over the rows is completed.

    Returns
    -------
    side : int32 array of shape (n,)
        0 or 1; both sides have rows.
    n_steps : int
        Rows looked at after the allocation.
    """
    cdef int64_t[::1] members = np.array(rows, dtype=np.int64)
    cdef int32_t[::1] side = np.empty(len(rows), dtype=np.int32)
    cdef SplitSides pair = mixture.spare("pair", SplitSides)
    cdef bitgen_t *rng = bitgen(bit_generator)
    cdef int64_t n_steps = 0, moved = 1
    cdef Looks looks
    looks.first, looks.log_open, looks.least = INT64_MAX, 0.0, -INFINITY  # none
    with nogil:
        pair.allocate(mixture, members, side, False, -INFINITY, 1.0, looks, rng)
        pair.refresh()
    while moved and n_steps < most_steps:
        with nogil:
            moved = pair.improve(mixture, members, side)
        n_steps += members.shape[0]
        PyErr_CheckSignals()
    return np.asarray(side), n_steps
