"""Dynamic programs over the clusterings that cut an order of the rows into runs.

Given an order, let B(s, r) be the weight of rows s .. r - 1 of it as one cluster. The forward pass
computes, for every r, the weights of the runs that end there,

    g(r) = sum over s of g(s) B(s, r),    g(0) = 1,

and the backward pass draws a segmentation with probability proportional to the product of its B
(Liang, Jordan and Taskar 2007, section 3). Every run that is kept has a slot in spare blocks,
and all of them grow by the same row at once, so that a step costs as much as scoring a row in
that many clusters.

The beam keeps, for every r, the smallest set of runs with all but `tolerance` of the sum, the
new one {r} always among them; a run that was dropped never comes back. It is built from the
order and the data alone. Then g is the sum over kept runs, and cuts into kept runs
are drawn with probability proportional to their product of B.
"""

from cpython.exc cimport PyErr_CheckSignals
from cpython.ref cimport PyObject
from libc.math cimport INFINITY, exp, log, log1p
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from numpy.random cimport bitgen_t

import numpy as np

from .._native._prefetch cimport prefetch
from .._native._random cimport below, bitgen, uniform
from ..families._base cimport FamilyBlock
from ..families._slots cimport TILE, aligned_zeros
from ..states._mixture cimport Mixture

cdef enum:
    ROWS_AT_A_TIME = 256    # between two checks for an interrupt
    AHEAD = 8               # rows between the prefetch of a row and its use
    UNDERFLOW = -746        # exp of less is zero
    EMPTY = TILE - 1        # the slot that no run takes

cdef inline double log_add(double a, double b) noexcept nogil:
    """log(exp(a) + exp(b))."""
    if a < b:
        a, b = b, a
    return a + log1p(exp(b - a)) if b > -INFINITY else a


def resized(array, n):
    """A copy of length n that begins with the array."""
    new = np.empty(n, np.asarray(array).dtype)
    new[:len(array)] = array
    return new


cdef class Slots:
    """Spare clusters of a mixture's families: a slot per run or per row.

    One slot stays empty: its scores are those of a run that begins with the row.
    """

    cdef list blocks
    cdef PyObject **pointer         # the same, borrowed, for code without the GIL
    cdef Py_ssize_t n_blocks, n_slots, top   # top: beyond the highest slot in use
    cdef unsigned char[::1] used
    cdef float[::1] scores

    def __cinit__(self, *args):
        self.pointer = NULL

    def __init__(self, Mixture mixture):
        cdef Py_ssize_t i
        self.blocks = [block.spare(TILE) for block in mixture.blocks]
        self.n_blocks = len(self.blocks)
        self.pointer = <PyObject **> malloc(max(1, self.n_blocks) * sizeof(PyObject *))
        if self.pointer == NULL:
            raise MemoryError
        for i in range(self.n_blocks):
            self.pointer[i] = <PyObject *> self.blocks[i]
        self.n_slots = self.top = 0
        self.used = np.zeros(0, np.uint8)
        self.reserve(TILE)

    def __dealloc__(self):
        free(self.pointer)

    def follow(self, Mixture mixture):
        """Take over the mixture's hyperparameters and table; every slot is empty."""
        cdef FamilyBlock block, spare
        self.empty()
        for block, spare in zip(mixture.blocks, self.blocks):
            if spare.table is not block.table:
                spare.bind(block.table)
            spare.follow(block)

    cdef int reserve(self, Py_ssize_t n_slots) except -1:
        cdef FamilyBlock block
        for block in self.blocks:
            if block.n_slots < n_slots:
                block.reserve(n_slots)
        used = np.zeros(n_slots, np.uint8)
        used[:self.n_slots] = self.used
        used[EMPTY] = 1
        self.used, self.n_slots = used, n_slots
        self.scores = aligned_zeros((n_slots,), np.float32)
        return 0

    cdef void empty(self) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.top):
            if self.used[k] and k != EMPTY:
                self.release(k)
        self.top = 0

    cdef Py_ssize_t take(self) except -1 nogil:
        """The lowest free slot."""
        cdef Py_ssize_t k = 0
        while k < self.n_slots and self.used[k]:
            k += 1
        if k == self.n_slots:
            with gil:
                self.reserve(self.n_slots + TILE * max(1, self.n_slots // (2 * TILE)))
        self.used[k] = 1
        self.top = max(self.top, k + 1)
        return k

    cdef void release(self, Py_ssize_t k) noexcept nogil:
        """Empty slot k."""
        cdef Py_ssize_t b
        for b in range(self.n_blocks):
            (<FamilyBlock> self.pointer[b]).clear(k)
        self.give(k)

    cdef void drop(self, Py_ssize_t k) noexcept nogil:
        """Empty slot k, which `extend` will open again."""
        cdef Py_ssize_t b
        for b in range(self.n_blocks):
            (<FamilyBlock> self.pointer[b]).drop(k)
        self.give(k)

    cdef inline void give(self, Py_ssize_t k) noexcept nogil:
        self.used[k] = 0
        while self.top > 0 and not self.used[self.top - 1]:
            self.top -= 1

    cdef void score(self, const char *cells) noexcept nogil:
        """Log predictive of a row in every slot up to the highest in use."""
        cdef Py_ssize_t n_tiles = (self.top + TILE - 1) // TILE, b, k
        for k in range(n_tiles * TILE):
            self.scores[k] = 0.0
        for b in range(self.n_blocks):
            (<FamilyBlock> self.pointer[b]).add_scores(cells, n_tiles, &self.scores[0])

    cdef void insert(self, const char *cells, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t b
        for b in range(self.n_blocks):
            (<FamilyBlock> self.pointer[b]).insert(cells, k)

    cdef void extend(self, const char *cells, Py_ssize_t opened) noexcept nogil:
        """Add a row to every slot that has rows, and to an empty one."""
        cdef Py_ssize_t n_tiles = (self.top + TILE - 1) // TILE, b
        for b in range(self.n_blocks):
            (<FamilyBlock> self.pointer[b]).extend(cells, n_tiles, opened)


cdef class OrderProgram:
    """The forward pass over one order of rows, and draws from it.

    Parameters
    ----------
    mixture : Mixture
        Of the rows' families and hyperparameters.

    Attributes
    ----------
    work : int
        Of the last forward pass, see MoveInfo.
    """

    cdef Slots slots, points
    cdef readonly int64_t work
    cdef Py_ssize_t n, oldest           # rows; the first that still has a slot of its own
    # the runs kept at the present row, oldest first
    cdef Py_ssize_t n_active
    cdef int64_t[::1] first, slot       # place of the first row; slot
    cdef double[::1] log_lik, weight    # of the run; of all that ends with it
    cdef double[::1] share              # exp(weight - the largest)
    # what was kept, row by row: the runs that end after row r are at start[r] .. start[r + 1]
    cdef int64_t[::1] start, kept_first
    cdef double[::1] kept_weight
    cdef double[::1] log_g              # log g(r), r = 0 .. n
    # transitions: slot of a row as a cluster of its own, log of the sum of k(x_t, .) over the rows
    # after it so far, log k(x_t, x_{t + 1})
    cdef int64_t[::1] point_slot
    cdef double[::1] log_sum, log_next, log_path

    def __init__(self, Mixture mixture):
        self.slots = Slots(mixture)
        self.points = None
        self.first, self.slot = np.empty(0, np.int64), np.empty(0, np.int64)
        self.log_lik, self.weight, self.share = np.empty(0), np.empty(0), np.empty(0)
        self.kept_first, self.kept_weight = np.empty(64, np.int64), np.empty(64)

    def follow(self, Mixture mixture):
        """Take over the mixture's hyperparameters and table."""
        self.slots.follow(mixture)
        if self.points is not None:
            self.points.follow(mixture)

    cdef int reserve(self, Py_ssize_t n) except -1:
        """Room for n runs at once."""
        self.first, self.slot = resized(self.first, n), resized(self.slot, n)
        self.log_lik, self.weight = resized(self.log_lik, n), resized(self.weight, n)
        self.share = np.empty(n)
        return 0

    cdef int reserve_kept(self, Py_ssize_t n) except -1 nogil:
        """Room for n kept runs in all."""
        if n > self.kept_first.shape[0]:
            with gil:
                self.kept_first = resized(self.kept_first, 2 * n)
                self.kept_weight = resized(self.kept_weight, 2 * n)
        return 0

    def forward(self, Mixture mixture, order, log_size, double beta=1.0, double tolerance=0.0,
                transitions=False, poll=None):
        """Weigh the runs of an order.

        Parameters
        ----------
        mixture : Mixture
        order : int64 array of shape (n,)
            Rows of the table.
        log_size : float64 array of shape (n + 1,)
            Log of the factor by which a run of each length is weighed besides its likelihood.
        beta : float, default=1.0
            Exponent of the likelihood.
        tolerance : float, default=0.0
            Share of the sum that the beam may drop at each row; 0 keeps every run.
        transitions : bool, default=False
            Whether B also has the probability that the Markov Gibbs scan runs through the run
            in this order, prod_t k(x_t, x_{t + 1}) / sum over the later rows of k(x_t, .).
        poll : callable or None, default=None
            Called regularly; an exception that it raises ends the pass.
        """
        cdef const int64_t[::1] row = np.ascontiguousarray(order, dtype=np.int64)
        cdef const double[::1] of_size = np.ascontiguousarray(log_size, dtype=np.float64)
        cdef bint scans = transitions
        cdef Py_ssize_t r = 0, stop
        self.n = row.shape[0]
        self.start = np.zeros(self.n + 1, np.int64)
        self.log_g = np.zeros(self.n + 1)
        self.n_active, self.work, self.oldest = 0, 0, 0
        if scans:
            if self.points is None:
                self.points = Slots(mixture)
                self.points.follow(mixture)
            self.points.empty()
            self.point_slot = np.zeros(self.n, np.int64)
            self.log_sum, self.log_next = np.full(self.n, -np.inf), np.zeros(self.n)
            self.log_path = np.zeros(self.n + 1)
        while r < self.n:
            stop = min(r + ROWS_AT_A_TIME, self.n)
            if self.n_active + ROWS_AT_A_TIME > self.first.shape[0]:
                self.reserve(2 * self.n_active + ROWS_AT_A_TIME)
            with nogil:
                while r < stop:
                    self.step(mixture, row, r, of_size, beta, tolerance, scans)
                    r += 1
            PyErr_CheckSignals()
            if poll is not None:
                poll()
        self.slots.empty()

    cdef int step(self, Mixture mixture, const int64_t[::1] row, Py_ssize_t r,
                  const double[::1] of_size, double beta, double tolerance,
                  bint scans) except -1 nogil:
        """Add row r of the order to every run, and open one with it."""
        cdef const char *cells = mixture.table.row(row[r])
        cdef Py_ssize_t n = self.n_active, i, k = self.slots.take(), at
        cdef double best = -INFINITY, total = 0.0, log_b
        if r + AHEAD < self.n:
            prefetch(mixture.table.row(row[r + AHEAD]), mixture.table.row_bytes)
        self.first[n], self.slot[n], self.log_lik[n] = r, k, 0.0
        n += 1
        self.slots.score(cells)
        self.slots.scores[k] = self.slots.scores[EMPTY]
        self.slots.extend(cells, k)
        if scans:
            self.scan(cells, r)
        for i in range(n):
            self.log_lik[i] += self.slots.scores[self.slot[i]]
            log_b = of_size[r + 1 - self.first[i]] + beta * self.log_lik[i]
            if scans:
                log_b += self.log_path[self.first[i]]
            self.weight[i] = log_b + self.log_g[self.first[i]]
            best = max(best, self.weight[i])
        self.work += (self.slots.top + TILE - 1) // TILE + 2 * n
        self.n_active = n
        for i in range(n):
            log_b = self.weight[i] - best
            self.share[i] = 1.0 if log_b == 0.0 else exp(log_b) if log_b > UNDERFLOW else 0.0
        if tolerance > 0.0:
            self.prune(tolerance)
        at = self.start[r]
        self.reserve_kept(at + self.n_active)
        for i in range(self.n_active):
            total += self.share[i]
            self.kept_first[at + i], self.kept_weight[at + i] = self.first[i], self.weight[i]
        self.log_g[r + 1] = best + log(total)
        self.start[r + 1] = at + self.n_active
        if scans:
            while self.oldest < self.first[0]:
                self.points.release(self.point_slot[self.oldest])
                self.oldest += 1
        return 0

    cdef void prune(self, double tolerance) noexcept nogil:
        """Drop the lightest runs, as long as all that is dropped stays within the tolerance."""
        cdef Py_ssize_t n = self.n_active, i, least, kept = 0
        cdef double total = 0.0, allowed
        for i in range(n):
            total += self.share[i]
        allowed = tolerance * total
        while True:
            least = -1
            for i in range(n - 1):  # the newest stays in any case
                if (self.share[i] <= allowed and self.slot[i] >= 0
                        and (least < 0 or self.weight[i] < self.weight[least])):
                    least = i
            if least < 0:
                break
            allowed -= self.share[least]
            self.slots.drop(self.slot[least])
            self.slot[least] = -1
        for i in range(n):
            if self.slot[i] >= 0:
                self.first[kept], self.slot[kept] = self.first[i], self.slot[i]
                self.log_lik[kept], self.weight[kept] = self.log_lik[i], self.weight[i]
                self.share[kept] = self.share[i]
                kept += 1
        self.n_active = kept

    cdef int scan(self, const char *cells, Py_ssize_t r) except -1 nogil:
        """Transitions from the earlier rows to row r, and of the whole runs up to it."""
        cdef Py_ssize_t t, k
        cdef double log_k
        self.points.score(cells)
        self.log_path[r] = 0.0
        for t in range(r - 1, self.oldest - 1, -1):
            log_k = self.points.scores[self.point_slot[t]]
            if t == r - 1:
                self.log_next[t] = log_k
            self.log_sum[t] = log_add(self.log_sum[t], log_k)
            self.log_path[t] = self.log_path[t + 1] + self.log_next[t] - self.log_sum[t]
        self.work += (self.points.top + TILE - 1) // TILE + 2
        k = self.points.take()
        self.points.insert(cells, k)
        self.point_slot[r] = k
        return 0

    # ---- from the weights to clusterings --------------------------------------------------------

    def kept(self):
        """For each row of the order, (first, log B) of the runs that were kept there.

        Two lists of n arrays.
        """
        start = np.asarray(self.start)
        first = np.split(np.asarray(self.kept_first)[:start[self.n]], start[1:self.n])
        weight = np.split(np.asarray(self.kept_weight)[:start[self.n]], start[1:self.n])
        log_g = np.asarray(self.log_g)
        return first, [w - log_g[f] for w, f in zip(weight, first)]

    def log_sums(self):
        """log g(r), r = 0 .. n."""
        return np.asarray(self.log_g).copy()

    def holds(self, labels):
        """Whether a clustering, with rows in this order, consists of kept runs."""
        cdef const int64_t[::1] label = np.ascontiguousarray(labels, dtype=np.int64)
        cdef int64_t first = 0, r, i
        for r in range(1, self.n + 1):
            if r < self.n and label[r] == label[r - 1]:
                continue
            i = self.start[r - 1]
            while i < self.start[r] and self.kept_first[i] != first:
                i += 1
            if i == self.start[r]:
                return False
            first = r
        return True

    def draw(self, bit_generator):
        """Cut the order in two and more with probability proportional to the product of B.

        Returns
        -------
        labels : int64 array of shape (n,)
            By place in the order, 0 .. K - 1, each a run.
        """
        cdef bitgen_t *rng = bitgen(bit_generator)
        cdef int64_t[::1] label = np.empty(self.n, np.int64)
        cdef int64_t r = self.n, i, s, n_runs = 0
        cdef double u
        with nogil:
            while r > 0:
                u = uniform(rng)
                i = self.start[r] - 1
                while i > self.start[r - 1]:
                    u -= exp(self.kept_weight[i] - self.log_g[r])
                    if u < 0.0:
                        break
                    i -= 1
                for s in range(self.kept_first[i], r):
                    label[s] = n_runs
                n_runs += 1
                r = self.kept_first[i]
        return n_runs - 1 - np.asarray(label)

    def draw_exact(self, log_number, bit_generator):
        """Cut the order with probability proportional to A(K) times the product of B.

        Every run must have been kept (tolerance 0). O(n^3) time, O(n^2) memory.

        Parameters
        ----------
        log_number : float64 array of shape (n + 1,)
            log A(K), K = 0 .. n.
        bit_generator : numpy.random.BitGenerator

        Returns
        -------
        labels : int64 array of shape (n,)
        """
        cdef const double[::1] log_a = np.ascontiguousarray(log_number, dtype=np.float64)
        cdef bitgen_t *rng = bitgen(bit_generator)
        cdef Py_ssize_t n = self.n, r, s, k, n_clusters
        cdef double[:, ::1] log_g = np.full((n + 1, n + 1), -np.inf)   # by clusters, rows
        cdef double[::1] term = np.empty(n + 1)
        cdef int64_t[::1] label = np.zeros(n, np.int64)
        with nogil:
            log_g[0, 0] = 0.0
            for k in range(1, n + 1):
                for r in range(k, n + 1):
                    for s in range(k - 1, r):
                        term[s] = log_g[k - 1, s] + self.log_b(s, r)
                    log_g[k, r] = log_sum(&term[k - 1], r - k + 1)
            term[0] = -INFINITY
            for k in range(1, n + 1):
                term[k] = log_a[k] + log_g[k, n]
            n_clusters = k = draw_log(&term[0], n + 1, uniform(rng))
            r = n
            while r > 0 and k > 0:   # where no B is a number, k is 0
                for s in range(r):
                    term[s] = log_g[k - 1, s] + self.log_b(s, r)
                s = draw_log(&term[0], r, uniform(rng))
                k -= 1
                while r > s:
                    r -= 1
                    label[r] = k
        return np.asarray(label)

    cdef inline double log_b(self, Py_ssize_t s, Py_ssize_t r) noexcept nogil:
        """log B of rows s .. r - 1, where every run was kept."""
        return self.kept_weight[self.start[r - 1] + s] - self.log_g[s]


cdef double log_sum(const double *term, Py_ssize_t n) noexcept nogil:
    """log of the sum of exp(term)."""
    cdef double best = term[0], total = 0.0
    cdef Py_ssize_t i
    for i in range(1, n):
        best = max(best, term[i])
    if best == -INFINITY:
        return best
    for i in range(n):
        total += exp(term[i] - best)
    return best + log(total)


cdef Py_ssize_t draw_log(const double *term, Py_ssize_t n, double u) noexcept nogil:
    """Index with probability proportional to exp(term)."""
    cdef double total = log_sum(term, n)
    cdef Py_ssize_t i, last = 0
    for i in range(n):
        if term[i] > -INFINITY:
            u -= exp(term[i] - total)
            last = i
            if u < 0.0:
                return i
    return last


def scan_order(Mixture mixture, members, bit_generator):
    """An order of one cluster's rows by a Markov Gibbs scan, from all its rows to none.

    The first row is uniform; the next is x_u with probability k(x_t, x_u) = p(x_u | x_t) over the
    sum of k(x_t, .) over the rows that are left.

    Parameters
    ----------
    mixture : Mixture
    members : int64 array of shape (n,)
    bit_generator : numpy.random.BitGenerator

    Returns
    -------
    order : int64 array of shape (n,)
    """
    cdef int64_t[::1] row = np.array(members, dtype=np.int64)
    cdef bitgen_t *rng = bitgen(bit_generator)
    cdef Py_ssize_t n = row.shape[0], t, u, k
    cdef double[::1] log_k = np.empty(n)
    cdef Slots point = mixture.spare("point", Slots)
    with nogil:
        for t in range(n):
            if t == 0:
                u = below(rng, n)
            else:
                k = point.take()
                point.insert(mixture.table.row(row[t - 1]), k)
                for u in range(t, n):
                    point.score(mixture.table.row(row[u]))
                    log_k[u] = point.scores[k]
                point.release(k)
                u = t + draw_log(&log_k[t], n - t, uniform(rng))
            row[t], row[u] = row[u], row[t]
    return np.asarray(row)
