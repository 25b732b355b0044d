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

A split of many rows is mostly refused, and a part of them is enough to tell. At LOOK rows, and at
each doubling, the rows so far are taken for all: let a_t be A for these, without the probabilities
of j, and the split end here unless a_t, too, exceeds the random number. So a split is accepted with
probability min(1, A, a_1, a_2, ...), and its merge, whose allocation has the same looks, with
min(1, A, a_1, ...) / A: in the forward and the backward direction the same numbers.

A proposal costs as much as the rows of i's and j's clusters, n of them, which are the same in both
directions. So the move draws many pairs, and proposes each with probability min(1, L / n). Small
clusters get many proposals, large ones few, and the work is bounded.

q is computed from the same float32 scores that make the allocation, so their rounding does not bias
the move.
"""

from libc.math cimport INFINITY, NAN, exp, isnan, log
from libc.stdint cimport int32_t, int64_t
from numpy.random cimport bitgen_t

import numpy as np

from .._native._random cimport below, bitgen, uniform
from ..families._base cimport FamilyBlock
from ..states._mixture cimport Mixture
from ._partners cimport (
    gather, log_inside, log_outside, log_total, near_cluster, partner, place_in, same_share,
    weigh_others,
)
from ._split_sides cimport Looks, SplitSides, log_marginal, log_split_sizes

from ._info import CALL, MoveInfo, Polled, n_columns_of, row_work
from ._integrated import Integrated


TRIES = 100  # pairs per sweep, at most one for each row
LOOK = 8192  # rows allocated when it is first asked whether they would be split

cdef enum:
    POLL = 10_000   # rows allocated between two looks at the clock


cdef class Clusters:
    """What proposals ask of the mixture's clusters, which few of them change: where their rows are,
    and their log marginals. Each is found out when it is first asked for."""

    cdef bint placed
    cdef int64_t[::1] at        # places of rows, those of a cluster side by side, ascending
    cdef int64_t[::1] first     # by slot, where its cluster begins; then the end of the last one
    cdef double[::1] log_marginals   # by slot; nan where one is not known

    def __init__(self, Mixture mixture, Py_ssize_t n_rows):
        self.at = np.empty(n_rows, dtype=np.int64)
        self.first, self.log_marginals = np.empty(0, dtype=np.int64), np.empty(0)
        self.forget(mixture)

    cdef int forget(self, Mixture mixture) except -1 nogil:
        """The clusters have changed, and perhaps how many slots there are."""
        if self.log_marginals.shape[0] != mixture.n_slots:
            with gil:
                self.first = np.empty(mixture.n_slots + 1, dtype=np.int64)
                self.log_marginals = np.empty(mixture.n_slots)
        self.log_marginals[:] = NAN
        self.placed = False
        return 0

    cdef void place(self, Mixture mixture, const int64_t[::1] rows) noexcept nogil:
        cdef int64_t place, start = 0
        cdef Py_ssize_t k
        if self.placed:
            return
        self.first[0] = 0
        for k in range(mixture.n_slots):  # where the next row of the cluster goes, one slot on
            self.first[k + 1] = start
            start += mixture.counts[k]
        for place in range(rows.shape[0]):
            k = mixture.labels[rows[place]]
            self.at[self.first[k + 1]] = place
            self.first[k + 1] += 1
        self.placed = True

    cdef double marginal_of(self, Mixture mixture, Py_ssize_t k) noexcept nogil:
        if isnan(self.log_marginals[k]):
            self.log_marginals[k] = log_marginal(mixture.pointer, mixture.n_blocks, k)
        return self.log_marginals[k]


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
    first_look : int, default=8192
        Rows allocated when it is first asked whether they would be split.
    """

    name = "split_merge"
    acts_on = "rows"
    exact = True
    tempered = True
    integrates = True

    def __init__(self, n_proposals=None, grid=None, uniform_pairs=False, first_look=LOOK):
        self.n_proposals, self.first_look = n_proposals, first_look
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
            self.uniform_pairs, self.first_look,
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
               bint uniform_pairs, int64_t first_look):
    """Draw pairs of rows and make their proposals, those of more than `most_rows` rows seldom."""
    cdef bitgen_t *rng = bitgen(bit_generator)
    cdef int64_t n = rows.shape[0], i, j, size, made = 0, accepted = 0
    cdef int64_t polled = pair.n_allocated
    cdef int64_t n_allocated = pair.n_allocated, n_weighed = pair.n_weighed
    cdef int64_t[::1] members = np.empty(n, dtype=np.int64)
    cdef int32_t[::1] side = np.empty(n, dtype=np.int32)
    cdef Clusters clusters = Clusters(mixture, n)
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
            accepted += propose(mixture, pair, rows, clusters, i, j, split, members[:size],
                                side[:size], beta, integrated, uniform_pairs, first_look, rng)
            made += 1
    return made, accepted, pair.n_allocated - n_allocated, pair.n_weighed - n_weighed


cdef int propose(Mixture mixture, SplitSides pair, const int64_t[::1] rows, Clusters clusters,
                 int64_t i, int64_t j, bint split, int64_t[::1] members, int32_t[::1] side,
                 double beta, integrated, bint uniform_pairs, int64_t first_look,
                 bitgen_t *rng) except -1 nogil:
    """Split the cluster of places i and j, or merge theirs, if that is accepted; return whether it
    was.

    members, side: written; as long as there are rows in what is split or merged. `log_lik` has the
    weights of `weigh_others` for i, if this is a merge.
    """
    cdef int64_t n = rows.shape[0], size = members.shape[0], n_before, at
    cdef Py_ssize_t a = mixture.labels[rows[i]], b = mixture.labels[rows[j]]
    cdef double log_ratio, least, near = 0.0, log_u = log(1.0 - uniform(rng))
    cdef Looks looks
    n_before = mixture.n_clusters - (not split)
    if integrated is None:
        log_ratio = mixture.prior.log_open(n_before)
    else:
        with gil:
            log_ratio = integrated.log_opening(mixture.prior, n_before, n)
    looks.first, looks.log_open, looks.least = first_look, log_ratio, -INFINITY
    if split:
        looks.least = log_u
        clusters.place(mixture, rows)
        gather(mixture, rows, clusters.at, clusters.first, i, j, members, rng)
        log_ratio -= pair.allocate(mixture, members, side, False, -INFINITY, beta, looks, rng)
        if log_u >= pair.lowest:
            return False
        log_ratio += log_split_sizes(mixture.prior, pair.size[0], pair.size[1])
        if not uniform_pairs:
            weigh_others(mixture, rows[i], beta)
            pair.n_weighed += mixture.n_tiles
            near = 1.0 / (1.0 + exp(log_total(mixture) - pair.log_weight(mixture, rows[i], beta)))
        log_ratio += log_outside(pair.size[0], pair.size[1], n, near, uniform_pairs)
        log_ratio -= log_inside(size, n, uniform_pairs)
        log_ratio += beta * (pair.log_marginal(0) + pair.log_marginal(1)
                             - clusters.marginal_of(mixture, a))
        if log_u >= log_ratio:
            return False
        accept_split(mixture, pair, a, members, side)
    else:
        log_ratio += log_split_sizes(mixture.prior, mixture.counts[a], mixture.counts[b])
        if not uniform_pairs:
            near = exp(mixture.log_lik[b] - log_total(mixture))
        log_ratio += log_outside(mixture.counts[a], mixture.counts[b], n, near, uniform_pairs)
        log_ratio -= log_inside(size, n, uniform_pairs)
        log_ratio += beta * (clusters.marginal_of(mixture, a)
                             + clusters.marginal_of(mixture, b)
                             - pair.log_merged(mixture, a, b))
        least = log_u + log_ratio  # the merge is accepted if log q + `lowest` is above
        if least >= 0.0:
            return False
        clusters.place(mixture, rows)
        gather(mixture, rows, clusters.at, clusters.first, i, j, members, rng)
        for at in range(size):
            side[at] = mixture.labels[members[at]] == b
        least -= pair.allocate(mixture, members, side, True, least, beta, looks, rng)
        if least >= pair.lowest:
            return False
        accept_merge(mixture, a, b, members, side)
    clusters.forget(mixture)
    return True


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
