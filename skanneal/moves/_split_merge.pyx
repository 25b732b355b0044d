"""Sequentially allocated split-merge (Dahl 2003), for the Dirichlet and the Pitman-Yor process.

A row i of S is drawn uniformly, then a row j: with probability 1/2 from the rest of i's cluster,
else from outside (if there are many clusters, a uniform pair is seldom in one). Outside, j is with
probability 1/2 uniform among all rows; else it is from a cluster that is drawn with the weight with
which row i would join it, since most clusters are too far apart to be merged. If both are in one
cluster, the proposal is a split: the seeds are {i} and {j}, and the other members in random order
join one of the two with weight (size - d) p(x | x_k)^beta; q is the probability of this allocation.
Otherwise it is a merge, whose reverse is a split in a fresh random order with every step forced to
the present clusters. With K clusters before the split, and r(j) the probability of j given i,

    A = (alpha + K d) G(n_i) G(n_j) / G(n) (m_i m_j / m)^beta / q  r_split(j) / r_whole(j),

G(c) = (1 - d)_{c - 1}. If every point of the prior's grid bounds the number of clusters, a split
would have to wait for a draw of a larger bound, which the present clusters make improbable. Then an
average over the points of the present discount replaces alpha + K d (`Integrated`).

The move draws the random number that decides first. Before it allocates a row of a merge it knows
everything but q, and q only falls from row to row. So it ends the allocation as soon as the merge
cannot be accepted any more, mostly before the first row.

A proposal costs as much as the rows of i's and j's clusters, n of them, which are the same in both
directions. So the move draws many pairs, and proposes each with probability min(1, L / n). Small
clusters get many proposals, large ones few, and the work is bounded.

q is computed from the same float32 scores that make the allocation, so their rounding does not bias
the move.
"""

from cpython.exc cimport PyErr_CheckSignals
from cpython.ref cimport PyObject
from libc.math cimport INFINITY, exp, log, log1p
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc
from numpy.random cimport bitgen_t

import numpy as np

from .._native._random cimport below, bitgen, uniform
from ..families._base cimport FamilyBlock
from ..families._slots cimport TILE, aligned_zeros
from ..partition_priors._base cimport PartitionPrior
from ..states._mixture cimport Mixture
from ._partners cimport (
    gather, log_inside, log_outside, log_total, near_cluster, partner, place_in, same_share,
    weigh_others,
)

from ._info import CALL, MoveInfo, Polled, n_columns_of, row_work
from ._integrated import Integrated


TRIES = 100  # pairs per sweep, at most one for each row

# The probability of an allocation is multiplied up until it is SMALL, over rows whose two scores
# differ by at most FAR; of the other rows the logarithms are added up.
cdef enum:
    FAR = 50
    POLL = 10_000   # rows allocated between two looks at the clock
cdef double SMALL = 1e-200


cdef class SplitSides:
    """The two clusters of a split: one spare block per family."""

    cdef list blocks
    cdef PyObject **pointer     # the same, borrowed, for code without the GIL
    cdef Py_ssize_t n_blocks
    cdef float[::1] scores
    cdef int64_t size[2]
    cdef int64_t n_allocated    # rows so far, of all proposals
    cdef int64_t n_weighed      # tiles of clusters, in which row i was scored

    def __cinit__(self, *args):
        self.pointer = NULL

    def __init__(self, Mixture mixture):
        cdef Py_ssize_t i
        self.blocks = [block.spare(2) for block in mixture.blocks]
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
                         double least_log_q, double beta, bitgen_t *rng) noexcept nogil:
        """Assign rows[2:] one after another to the seeds rows[0] and rows[1]; return log q. Once it
        falls below `least_log_q`, stop and return a number below that.

        side: which of the two each row joins; written, or read if `forced`.
        """
        cdef const char *cells
        cdef double d = mixture.prior.reduction, log_q = 0.0, q = 1.0, gain, ratio, least
        cdef double least_q = exp(least_log_q)
        cdef Py_ssize_t t, b
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
        return log_q + log(q)

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
    with nogil:
        pair.allocate(mixture, members, side, False, -INFINITY, 1.0, rng)
        pair.refresh()
    while moved and n_steps < most_steps:
        with nogil:
            moved = pair.improve(mixture, members, side)
        n_steps += members.shape[0]
        PyErr_CheckSignals()
    return np.asarray(side), n_steps


cdef class Places:
    """The places of rows by their clusters, for proposals to find the rows of a cluster.

    Looked for again once rows have changed clusters, which few proposals do."""

    cdef bint known
    cdef int64_t[::1] at        # those of a cluster side by side, ascending
    cdef int64_t[::1] first     # by slot, where its cluster begins; then the end of the last one

    def __init__(self, Py_ssize_t n_rows):
        self.known = False
        self.at = np.empty(n_rows, dtype=np.int64)
        self.first = np.empty(0, dtype=np.int64)

    cdef int find(self, Mixture mixture, const int64_t[::1] rows) except -1 nogil:
        cdef int64_t place, start = 0
        cdef Py_ssize_t k
        if self.known:
            return 0
        if self.first.shape[0] != mixture.n_slots + 1:
            with gil:
                self.first = np.empty(mixture.n_slots + 1, dtype=np.int64)
        self.first[0] = 0
        for k in range(mixture.n_slots):  # where the next row of the cluster goes, one slot on
            self.first[k + 1] = start
            start += mixture.counts[k]
        for place in range(rows.shape[0]):
            k = mixture.labels[rows[place]]
            self.at[self.first[k + 1]] = place
            self.first[k + 1] += 1
        self.known = True
        return 0


class SplitMerge(Polled):
    """Split or merge clusters around a random pair of rows.

    Parameters
    ----------
    n_proposals : int or None, default=None
        Proposals per sweep. None: up to 100, the fewer the larger the clusters.
    grid : PriorGrid, array of shape (n_points, 2) or None, default=None
        (concentration, discount) pairs; an array weighs them alike. The concentration is integrated
        out over those of the present discount, and finally the pair is drawn given the partition.
        None: the mixture's own.
    uniform_pairs : bool, default=False
        Whether j is uniform among the rows other than i, as Dahl has it, in place of half from i's
        cluster, and a quarter from those where i would fit. With many clusters nearly all proposals
        are then merges, and of clusters that are far apart.
    """

    name = "split_merge"
    acts_on = "rows"
    exact = True
    tempered = True
    integrates = True

    def __init__(self, n_proposals=None, grid=None, uniform_pairs=False):
        self.n_proposals = n_proposals
        self.uniform_pairs = uniform_pairs
        self.integrated = None if grid is None else Integrated(grid)

    def sweep(self, state, bit_generator, *, beta=1.0):
        """`n_proposals` proposals; returns MoveInfo."""
        if state.subsample.size < 2:
            return MoveInfo(0, 0, 0)
        n_columns = n_columns_of(state)
        n_tries, most_rows = self._tries(state.subsample.size, n_columns)
        pair = state.spare("pair", SplitSides)
        rows = state.subsample.rows()
        made, accepted, n_allocated, n_weighed = try_pairs(
            state, pair, rows, bit_generator, beta, self.integrated, n_tries, most_rows, self.poll,
            self.uniform_pairs,
        )
        n_scored = 2 * n_allocated + n_weighed
        info = MoveInfo(made, accepted, CALL + n_scored * row_work(n_columns))
        if self.integrated is not None:
            self.integrated.draw(state, bit_generator)
        return info

    def _tries(self, n, n_columns):
        """How many pairs of n rows are drawn, and the rows of a proposal that is always made."""
        if self.n_proposals is not None:
            return self.n_proposals, n
        n_tries = min(n, TRIES)
        # In all, as many rows as S has and as can be allocated in the time of the call.
        return n_tries, (n + CALL / (2 * row_work(n_columns))) / n_tries


cdef try_pairs(Mixture mixture, SplitSides pair, const int64_t[::1] rows, bit_generator,
               double beta, integrated, int64_t n_tries, double most_rows, poll,
               bint uniform_pairs):
    """Draw pairs of rows and make their proposals, those of more than `most_rows` rows seldom."""
    cdef bitgen_t *rng = bitgen(bit_generator)
    cdef int64_t n = rows.shape[0], i, j, size, made = 0, accepted = 0
    cdef int64_t polled = pair.n_allocated
    cdef int64_t n_allocated = pair.n_allocated, n_weighed = pair.n_weighed
    cdef int64_t[::1] members = np.empty(n, dtype=np.int64)
    cdef int32_t[::1] side = np.empty(n, dtype=np.int32)
    cdef Places places = Places(n)
    cdef double share
    cdef bint split
    poll()
    with nogil:
        for _ in range(n_tries):
            i = below(rng, n)
            size = mixture.counts[mixture.labels[rows[i]]]
            split = uniform(rng) < same_share(size, n, uniform_pairs)
            share = uniform(rng)
            if share * size >= most_rows:  # a merge would have even more rows
                continue
            if not split and not uniform_pairs:
                weigh_others(mixture, rows[i], beta)
                pair.n_weighed += mixture.n_tiles
            if split or uniform_pairs or uniform(rng) < 0.5:
                j = partner(mixture, rows, i, split, rng)
            else:
                j = place_in(mixture, rows, near_cluster(mixture, rng), rng)
            if not split:
                size += mixture.counts[mixture.labels[rows[j]]]
                if share * size >= most_rows:
                    continue
            if pair.n_allocated - polled > POLL:
                polled = pair.n_allocated
                with gil:
                    poll()
            accepted += propose(mixture, pair, rows, places, i, j, split, members[:size],
                                side[:size], beta, integrated, uniform_pairs, rng)
            made += 1
    return made, accepted, pair.n_allocated - n_allocated, pair.n_weighed - n_weighed


cdef int propose(Mixture mixture, SplitSides pair, const int64_t[::1] rows, Places places,
                 int64_t i, int64_t j, bint split, int64_t[::1] members, int32_t[::1] side,
                 double beta, integrated, bint uniform_pairs, bitgen_t *rng) except -1 nogil:
    """Split the cluster of places i and j, or merge theirs, if that is accepted; return whether it
    was.

    members, side: written; as long as there are rows in what is split or merged. `log_lik` has the
    weights of `weigh_others` for i, if this is a merge.
    """
    cdef int64_t n = rows.shape[0], size = members.shape[0], n_before, at
    cdef Py_ssize_t a = mixture.labels[rows[i]], b = mixture.labels[rows[j]]
    cdef double log_ratio, least, near = 0.0, log_u = log(1.0 - uniform(rng))
    n_before = mixture.n_clusters - (not split)
    if integrated is None:
        log_ratio = mixture.prior.log_open(n_before)
    else:
        with gil:
            log_ratio = integrated.log_opening(mixture.prior, n_before, n)
    if split:
        places.find(mixture, rows)
        gather(mixture, rows, places.at, places.first, i, j, members, rng)
        log_ratio -= pair.allocate(mixture, members, side, False, -INFINITY, beta, rng)
        log_ratio += log_split_sizes(mixture.prior, pair.size[0], pair.size[1])
        if not uniform_pairs:
            weigh_others(mixture, rows[i], beta)
            pair.n_weighed += mixture.n_tiles
            near = 1.0 / (1.0 + exp(log_total(mixture) - pair.log_weight(mixture, rows[i], beta)))
        log_ratio += log_outside(pair.size[0], pair.size[1], n, near, uniform_pairs)
        log_ratio -= log_inside(size, n, uniform_pairs)
        log_ratio += beta * (pair.log_marginal(0) + pair.log_marginal(1) - of_slot(mixture, a))
        if log_u >= log_ratio:
            return False
        accept_split(mixture, pair, a, members, side)
    else:
        log_ratio += log_split_sizes(mixture.prior, mixture.counts[a], mixture.counts[b])
        if not uniform_pairs:
            near = exp(mixture.log_lik[b] - log_total(mixture))
        log_ratio += log_outside(mixture.counts[a], mixture.counts[b], n, near, uniform_pairs)
        log_ratio -= log_inside(size, n, uniform_pairs)
        log_ratio += beta * (of_slot(mixture, a) + of_slot(mixture, b)
                             - pair.log_merged(mixture, a, b))
        least = log_u + log_ratio  # the merge is accepted if log q is above
        if least >= 0.0:
            return False
        places.find(mixture, rows)
        gather(mixture, rows, places.at, places.first, i, j, members, rng)
        for at in range(size):
            side[at] = mixture.labels[members[at]] == b
        if pair.allocate(mixture, members, side, True, least, beta, rng) <= least:
            return False
        accept_merge(mixture, a, b, members, side)
    places.known = False
    return True


cdef inline double of_slot(Mixture mixture, Py_ssize_t k) noexcept nogil:
    return log_marginal(mixture.pointer, mixture.n_blocks, k)


cdef double log_split_sizes(PartitionPrior prior, int64_t n_i, int64_t n_j) noexcept nogil:
    """log of G(n_i) G(n_j) / G(n_i + n_j)."""
    return prior.log_size(n_i) + prior.log_size(n_j) - prior.log_size(n_i + n_j)


cdef int accept_split(Mixture mixture, SplitSides pair, Py_ssize_t slot, int64_t[::1] members,
                      int32_t[::1] side) except -1 nogil:
    """The first cluster keeps the slot, the second takes the open one."""
    cdef Py_ssize_t b, new = mixture.open_slot
    for b in range(mixture.n_blocks):
        (<FamilyBlock> mixture.pointer[b]).copy(<FamilyBlock> pair.pointer[b], 0, slot)
        (<FamilyBlock> mixture.pointer[b]).copy(<FamilyBlock> pair.pointer[b], 1, new)
    mixture.n_clusters += 1
    return relabel(mixture, members, side, new)


cdef int accept_merge(Mixture mixture, Py_ssize_t first, Py_ssize_t second, int64_t[::1] members,
                      int32_t[::1] side) except -1 nogil:
    """The first cluster's slot takes over the rows of the second."""
    cdef Py_ssize_t b
    for b in range(mixture.n_blocks):
        (<FamilyBlock> mixture.pointer[b]).merge(first, second)
    mixture.n_clusters -= 1
    return relabel(mixture, members, side, first)


cdef int relabel(Mixture mixture, const int64_t[::1] rows, const int32_t[::1] side,
                 Py_ssize_t k) except -1 nogil:
    """Label the rows of the second side with slot k, of which the blocks have the statistics."""
    cdef Py_ssize_t i
    for i in range(rows.shape[0]):
        if side[i]:
            mixture.counts[mixture.labels[rows[i]]] -= 1
            mixture.labels[rows[i]] = <int32_t> k
            mixture.counts[k] += 1
    return mixture.weigh_slots()
