"""A mixture: labels of the rows of S, a partition prior, and blocks of components.

Everything that scores a row adds into one buffer over slots: the prior has written log_prior[k],
each block adds to log_lik[k] for all k at once. The two stay apart, so that energy annealing can
draw from log_prior + beta log_lik. A slot is masked (log_prior = -inf) when its cluster is emptied
and used again later; exactly one empty slot, the lowest, is open: it stands for the new cluster.

If a row family's columns have gaps, the missing cells are part of the state: *fills*, which
statistics treat as data (Table.with_fills). A row step integrates the row's fill out of the scores
and draws it with the slot. The rows' weights, if a family has any, are treated in the same way.
"""

from cpython.ref cimport PyObject
from libc.math cimport INFINITY, log
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset
from numpy.random cimport bitgen_t

import numpy as np

from .._native._random cimport bitgen, uniform
from .._native._state_arrays import state_array
from ..families._base cimport FamilyBlock
from ..families._slots cimport TILE, aligned_zeros
from ..families._table cimport Table
from ..partition_priors import prior_from_arrays
from ..partition_priors._base cimport PartitionPrior
from ._check import checked_blocks
from ._subsample cimport Subsample

cdef extern from "_draw.h" nogil:
    int skanneal_level()
    int64_t (*draw_slot_v[3])(const float *, const float *, float, int64_t, double,
                              float *) noexcept

cdef enum:
    MEMO = 1024

cdef double REDRAWN = 0.125    # share of the steps in which a row that stays gets new fills


cdef class Mixture:
    """A mixture of products of families, over the rows of a subsample.

    Parameters
    ----------
    table : Table
        Encoded rows.
    blocks : sequence of FamilyBlock
        One block per family; together they own every column of this view.
    prior : PartitionPrior
        Prior over partitions of S.
    subsample : Subsample
        S, which other views may share; this object never changes it.
    """

    def __cinit__(self, *args, **kwargs):
        self.pointer = NULL

    def __init__(self, Table table, blocks, PartitionPrior prior, Subsample subsample):
        self.level = skanneal_level()
        filled = [block.columns for block in blocks if block.joint and block.takes_gaps]
        self.table = table if table.shares_fills else table.with_fills(
            np.concatenate([np.empty(0, np.int64), *filled]),
            any(block.weighted for block in blocks),
        )
        self.subsample = subsample
        if self.table is not table:
            for block in blocks:
                block.bind(self.table)
        self.labels = np.full(table.n_rows, -1, dtype=np.int32)
        self.memo_size, self.memo_value = np.empty(MEMO, np.int64), np.empty(MEMO, np.float32)
        self.set_blocks(blocks)
        self._set_counts(np.zeros(max([TILE] + [block.n_slots for block in blocks]), np.int64))
        self.set_prior(prior)

    def __dealloc__(self):
        free(self.pointer)

    def set_blocks(self, blocks):
        """Replace the blocks, as when a feature moves, with others that have this partition."""
        cdef Py_ssize_t i
        self.blocks, self.spares = tuple(blocks), {}
        self.corrected = any(block.proposes for block in self.blocks)
        self.n_blocks = len(self.blocks)
        free(self.pointer)
        self.pointer = <PyObject **> malloc(max(1, self.n_blocks) * sizeof(PyObject *))
        if self.pointer == NULL:
            raise MemoryError
        for i in range(self.n_blocks):
            self.pointer[i] = <PyObject *> self.blocks[i]

    def _set_counts(self, counts):
        """Take over the counts of all slots, with blocks of the same capacity."""
        cdef FamilyBlock block
        self.counts = counts
        self.n_slots = len(counts)
        for block in self.blocks:
            if block.n_slots < self.n_slots:
                block.reserve(self.n_slots)
        self.log_prior = aligned_zeros((self.n_slots,), np.float32)
        self.log_lik = aligned_zeros((self.n_slots,), np.float32)
        self.weight = aligned_zeros((self.n_slots + self.n_slots // TILE,), np.float32)
        self.n_clusters = int(np.count_nonzero(counts))

    def set_prior(self, PartitionPrior prior):
        """Exchange the partition prior."""
        self.prior = prior
        self.memo_size[:] = -1
        self.weigh_slots()

    cdef int weigh_slots(self) except -1 nogil:
        """The prior's log weight of every slot by its count, and the open slot."""
        cdef Py_ssize_t k
        for k in range(self.n_slots):
            self.log_prior[k] = self.log_join(self.counts[k]) if self.counts[k] else -INFINITY
        return self.settle_open()

    def bind_subsample(self, Subsample subsample):
        """Exchange the subsample (its rows must be the labelled ones)."""
        self.subsample = subsample

    cdef float log_join(self, int64_t n_k) noexcept nogil:
        """The prior's log weight, from a table by cluster size."""
        cdef Py_ssize_t at = n_k & (MEMO - 1)
        if self.memo_size[at] != n_k:
            self.memo_size[at] = n_k
            self.memo_value[at] = <float> self.prior.log_join(n_k)
        return self.memo_value[at]

    # ---- the row step ---------------------------------------------------------------------------

    cdef int grow(self) except -1:
        """One more tile of slots (then half as many again)."""
        counts = np.zeros(self.n_slots + TILE * max(1, self.n_slots // (2 * TILE)), np.int64)
        counts[:self.n_slots] = self.counts
        log_prior = np.asarray(self.log_prior).copy()
        self._set_counts(counts)
        np.asarray(self.log_prior)[:] = -np.inf
        np.asarray(self.log_prior)[:len(log_prior)] = log_prior
        return 0

    cdef int settle_open(self) except -1 nogil:
        """Open the lowest free slot; there is always one."""
        cdef Py_ssize_t k = 0, top
        while k < self.n_slots and self.counts[k] > 0:
            k += 1
        if k == self.n_slots:
            with gil:
                self.grow()
        self.open_slot = k
        self.log_prior[k] = self.prior.log_open(self.n_clusters)
        top = self.n_slots - 1
        while top > k and self.counts[top] == 0:
            top -= 1
        self.n_tiles = top // TILE + 1
        return 0

    cdef int insert(self, Py_ssize_t row, Py_ssize_t k) except -1 nogil:
        """Label `row` with slot k, a cluster's or an empty one."""
        cdef const char *cells = self.table.row(row)
        cdef Py_ssize_t b
        for b in range(self.n_blocks):
            (<FamilyBlock> self.pointer[b]).insert(cells, k)
        self.labels[row] = <int32_t> k
        self.counts[k] += 1
        self.log_prior[k] = self.log_join(self.counts[k])
        if self.counts[k] == 1:
            self.n_clusters += 1
            self.settle_open()
        return 0

    cdef void remove(self, Py_ssize_t row) noexcept nogil:
        """Take the label from `row`."""
        cdef const char *cells = self.table.row(row)
        cdef Py_ssize_t b, k = self.labels[row]
        cdef bint anew = False
        if self.table.far and self.counts[k] > 1 and self.table.has_far(cells):
            for b in range(self.n_blocks):
                anew |= (<FamilyBlock> self.pointer[b]).cancels(cells, k)
        for b in range(self.n_blocks):
            (<FamilyBlock> self.pointer[b]).remove(cells, k)
        self.labels[row] = -1
        self.counts[k] -= 1
        if self.counts[k] > 0:
            self.log_prior[k] = self.log_join(self.counts[k])
            if anew:
                self.refill(k)
            return
        self.n_clusters -= 1
        self.log_prior[k] = -INFINITY
        if k < self.open_slot:
            self.log_prior[self.open_slot] = -INFINITY
            self.open_slot = k
        self.log_prior[self.open_slot] = <float> self.prior.log_open(self.n_clusters)

    cdef void refill(self, Py_ssize_t k) noexcept nogil:
        """Slot k's statistics from its rows."""
        cdef Py_ssize_t b, row
        for b in range(self.n_blocks):
            (<FamilyBlock> self.pointer[b]).clear(k)
            for row in range(self.labels.shape[0]):
                if self.labels[row] == k:
                    (<FamilyBlock> self.pointer[b]).insert(self.table.row(row), k)

    cdef void fill(self, Py_ssize_t row, Py_ssize_t k, bitgen_t *rng) noexcept nogil:
        """Draw the fills of a row that has no label given slot k (rng NULL: their centres)."""
        cdef char *filled = self.table.filled(row)
        cdef Py_ssize_t b
        for b in range(self.n_blocks):
            (<FamilyBlock> self.pointer[b]).fill(self.table.observed(row), k, filled, rng)
        self.table.far |= self.table.has_far(filled)

    cdef void score_cells(self, const char *cells) noexcept nogil:
        """log_lik[k] for every slot of the first n_tiles."""
        cdef Py_ssize_t b
        memset(&self.log_lik[0], 0, self.n_tiles * TILE * sizeof(float))
        for b in range(self.n_blocks):
            (<FamilyBlock> self.pointer[b]).add_scores(cells, self.n_tiles, &self.log_lik[0])

    cdef Py_ssize_t draw(self, float beta, bitgen_t *rng) noexcept nogil:
        """A slot with probability proportional to exp(log_prior + beta log_lik)."""
        return draw_slot_v[self.level](&self.log_prior[0], &self.log_lik[0], beta, self.n_tiles,
                                       uniform(rng), &self.weight[0])

    cdef void propose(self, Py_ssize_t row) noexcept nogil:
        """log_lik[k], as a slot is drawn from it."""
        cdef Py_ssize_t b
        memset(&self.log_lik[0], 0, self.n_tiles * TILE * sizeof(float))
        for b in range(self.n_blocks):
            (<FamilyBlock> self.pointer[b]).add_proposals(self.table.observed(row), self.n_tiles,
                                                          &self.log_lik[0])

    cdef double correction(self, Py_ssize_t row, Py_ssize_t k, bint held) noexcept nogil:
        """The correction of slot k's proposal weight; `held`: the slot holds the row."""
        cdef const char *cells = self.table.observed(row)
        cdef Py_ssize_t b
        cdef double out = 0.0
        for b in range(self.n_blocks):
            out += (<FamilyBlock> self.pointer[b]).correction(cells, self.table.row(row), k, held)
        return out

    cdef int enter(self, Py_ssize_t row, float beta, bitgen_t *rng) except -1 nogil:
        """Give a row that has no label a slot, and fills drawn given the slot."""
        cdef Py_ssize_t k
        self.propose(row)
        k = self.draw(beta, rng)
        if self.table.filled(row) != NULL:
            self.fill(row, k, rng)
        return self.insert(row, k)

    cdef int gibbs_step(self, Py_ssize_t row, float beta, bitgen_t *rng) except -1 nogil:
        """A Gibbs step of a labelled row: leave and enter at once.

        The row's own slot is scored as it would be without the row; if the row stays, as most rows
        do, no statistic changes. A row that stays mostly keeps its fills: new ones would have the
        same law and cost several steps. If proposals only approximate the scores, a
        Metropolis-Hastings step decides whether a row leaves.
        """
        cdef Py_ssize_t b, new, k = self.labels[row]
        cdef const char *cells = self.table.row(row)
        cdef float log_lik = 0.0, log_prior = self.log_prior[k]
        cdef bint filled = self.table.filled(row) != NULL, held = self.counts[k] > 1
        if not held or (filled and self.table.far and self.table.has_far(cells)):
            self.remove(row)
            k, held = k if held else self.open_slot, False   # the row was alone
        self.propose(row)
        if held:
            for b in range(self.n_blocks):
                log_lik += (<FamilyBlock> self.pointer[b]).proposal_without(
                    self.table.observed(row), cells, k)
            self.log_lik[k] = log_lik
            self.log_prior[k] = self.log_join(self.counts[k] - 1)
        new = self.draw(beta, rng)
        if held:
            self.log_prior[k] = log_prior
        if self.corrected and new != k and log(1.0 - uniform(rng)) >= beta * (
                self.correction(row, new, False) - self.correction(row, k, held)):
            new = k
        if held and new == k and not (filled and uniform(rng) < REDRAWN):
            return 0
        if held:
            self.remove(row)
        if filled:
            self.fill(row, new, rng)
        return self.insert(row, new)

    def spare(self, name, make):
        """The result of the first call of `make(self)` by this name: empty clusters of these blocks
        that a move reuses. Its follow(self) updates the hyperparameters."""
        if name not in self.spares:
            self.spares[name] = make(self)
        spare = self.spares[name]
        spare.follow(self)
        return spare

    # ---- for Python -----------------------------------------------------------------------------

    @property
    def views(self):
        """A mixture is its own only view."""
        return (self,)

    def insert_row(self, Py_ssize_t row, Py_ssize_t k):
        """Label `row`, which must have none, with slot k."""
        if self.labels[row] >= 0:
            raise ValueError(f"row {row} already has a label")
        while k >= self.n_slots:
            self.grow()
        self.insert(row, k)

    def remove_row(self, Py_ssize_t row):
        """Take the label from `row`, which must have one."""
        if self.labels[row] < 0:
            raise ValueError(f"row {row} has no label")
        self.remove(row)

    def scores(self, Py_ssize_t row):
        """(log_prior, log_lik) of `row`, float32 arrays of shape (n_tiles * 16,)."""
        self.score_cells(self.table.observed(row))
        n = self.n_tiles * TILE
        return np.asarray(self.log_prior)[:n].copy(), np.asarray(self.log_lik)[:n].copy()

    def draw_fills(self, rows, bit_generator=None):
        """Replace the fills of rows of S, given all labels, one row after another.

        With a generator they are drawn; without one they become the centres of their laws."""
        cdef const int64_t[::1] row = np.ascontiguousarray(rows, dtype=np.int64)
        cdef bitgen_t *rng = NULL if bit_generator is None else bitgen(bit_generator)
        cdef Py_ssize_t i, k
        with nogil:
            for i in range(row.shape[0]):
                if self.table.filled(row[i]) != NULL:
                    k = self.labels[row[i]]
                    self.remove(row[i])
                    self.fill(row[i], k, rng)
                    self.insert(row[i], k)

    def append_rows(self):
        """Make room for rows that were appended to the table; they have no label yet."""
        labels = np.full(self.table.n_rows, -1, dtype=np.int32)
        labels[:len(self.labels)] = self.labels
        self.labels = labels

    def reseat_row(self, Py_ssize_t row, bit_generator, beta=1.0):
        """A Gibbs step of `row`, which must have a label."""
        if self.labels[row] < 0:
            raise ValueError(f"row {row} has no label")
        self.gibbs_step(row, beta, bitgen(bit_generator))

    def members(self, k):
        """Rows of S in slot k."""
        rows = self.subsample.rows()
        return rows[np.asarray(self.labels)[rows] == k]

    def sizes(self):
        """Rows in each slot, int64 (n_slots,)."""
        return np.asarray(self.counts).copy()

    def get_labels(self):
        """Slot of every row or -1, int32 (n_rows,)."""
        return np.asarray(self.labels).copy()

    def labels_of(self, rows):
        """Slots of these rows, int32 (n,)."""
        return np.asarray(self.labels)[rows]

    def replace(self, rows, labels):
        """A whole new partition: `rows` (indices) with slots `labels`; no other row has one."""
        rows, labels = np.asarray(rows, np.int64), np.asarray(labels, np.int64)
        n_slots = max(self.n_slots, -(-(int(labels.max(initial=-1)) + 2) // TILE) * TILE)
        for block in self.blocks:
            block.build(rows, labels, n_slots)
        self.labels[:] = -1
        np.asarray(self.labels)[rows] = labels
        self._set_counts(np.bincount(labels, minlength=n_slots).astype(np.int64))
        self.set_prior(self.prior)

    def compact(self):
        """Move clusters down to the slots 0 .. K - 1 if that frees a tile."""
        cdef FamilyBlock block
        cdef Py_ssize_t i, k
        if self.n_clusters // TILE + 1 >= self.n_tiles:
            return
        used = np.flatnonzero(self.counts)
        to = np.full(self.n_slots + 1, -1, dtype=np.int32)
        to[used] = np.arange(len(used))
        for i, k in enumerate(used):
            if i == k:
                continue
            for block in self.blocks:
                block.copy(block, k, i)
                block.clear(k)
            self.counts[i], self.counts[k] = self.counts[k], 0
        rows = self.subsample.rows()
        labels = np.asarray(self.labels)
        labels[rows] = to[labels[rows]]
        self.set_prior(self.prior)

    def log_likelihood(self):
        """log p(x_S | partition, hyperparameters), in the user's units."""
        cdef FamilyBlock block
        cdef double total = 0.0
        cdef Py_ssize_t k
        for block in self.blocks:
            for k in range(self.n_slots):
                if self.counts[k] > 0:
                    total += block.log_marginal(k)
            total += block.log_jacobian()
        return total

    def log_joint(self, beta=1.0):
        """log p(prior's point) p(partition | it) + beta log p(x_S | partition, hyperparameters)."""
        log_prior = self.prior.log_weight + self.prior.log_probability(self.counts)
        return log_prior + beta * self.log_likelihood()

    def score_rows(self, Table table, start=0, stop=None):
        """Log predictive of queries in each cluster, in the order of their slots, and last in a new
        one, in the user's units: (stop - start, K + 1); and the log prior weight of each, (K + 1,).
        """
        stop = table.n_rows if stop is None else stop
        slots = np.append(np.asarray(self.counts).nonzero()[0], self.open_slot)
        scores = np.zeros((stop - start, int(slots.max()) + 1))
        for block in self.blocks:
            block.score_rows(table, scores, start, stop)
        return scores[:, slots], self.log_weights()

    def log_weights(self):
        """Log weight of each cluster and of a new one for the next row, normalised: (K + 1,)."""
        counts = np.asarray(self.counts)
        return self.prior.log_weights(counts[counts > 0])

    def scalars(self):
        """What a trace records: dict of numbers that do not depend on the clusters' labels."""
        own = {"n_components": self.n_clusters, "log_joint": self.log_joint()}
        return own | self.prior.scalars()

    def to_arrays(self, numbered=False):
        """Flat dict "labels", "concentration", "discount", "<family>/<name>" of arrays, and
        "fills" where there are any.

        Slots up to the highest in use, statistics bit for bit; or, `numbered`, without the empty
        slots: clusters 0 .. K - 1. Fills that views share are not a view's to save."""
        used = np.asarray(self.counts).nonzero()[0]
        slots, labels = max(1, int(np.max(used, initial=-1)) + 1), np.asarray(self.labels).copy()
        if numbered:
            number = np.full(self.n_slots + 1, -1, dtype=np.int32)
            number[used] = np.arange(len(used))
            slots, labels = used, number[labels]
        arrays, fills = {"labels": labels, **self.prior.to_arrays()}, self.table.fills()
        if fills is not None and not self.table.shares_fills:
            arrays["fills"] = fills
        for block in self.blocks:
            for name, value in block.to_arrays(slots).items():
                arrays[f"{block.family}/{name}"] = value
        return arrays

    @classmethod
    def from_arrays(cls, arrays, Table table=None, Subsample subsample=None, trusted=False):
        """The mixture whose to_arrays() gave `arrays`; StateError, unless they are `trusted`, for
        arrays that are none such. A `table` without rows (same columns) is for queries only."""
        cdef Mixture new
        blocks = checked_blocks(arrays, table, trusted)
        prior = prior_from_arrays(arrays)
        new = cls(table, blocks, prior, subsample)
        size = blocks[0].sizes()
        counts = np.zeros(max(block.n_slots for block in blocks), np.int64)
        counts[:len(size)] = size
        if table.n_rows:
            new.labels = np.array(arrays["labels"], dtype=np.int32)
            fills = new.table.fills()
            if fills is not None and not table.shares_fills:
                new.table.set_fills(state_array(arrays, "fills", "f", fills.shape))
        new._set_counts(counts)
        new.set_prior(prior)
        return new

    def validate(self):
        """Check the invariants; AssertionError names the first that fails."""
        labels = np.asarray(self.labels)
        counts = np.bincount(labels[labels >= 0], minlength=self.n_slots)
        assert np.array_equal(counts, self.counts), "labels and counts disagree"
        assert self.counts[self.open_slot] == 0, "the open slot has rows"
        assert np.all(np.asarray(self.counts)[:self.open_slot] > 0), "a lower slot is free"
        assert self.n_clusters == np.count_nonzero(counts), "number of clusters"
        for block in self.blocks:
            assert np.array_equal(block.sizes(), counts), f"{block.family}: sizes"
            block.validate()
        if self.subsample is not None:
            assert np.array_equal(np.sort(self.subsample.rows()), np.flatnonzero(labels >= 0)), \
                "labelled rows are not the subsample's"
