"""Parallel tempering and tempered transitions, by subsampling or by powers.

Van de Meent, Paige and Wood (2014), "Tempering by subsampling", algorithms 1 and 2, corrected.
h_m is level m's density, T_m its inner update, reversible with respect to h_m, m = 0 .. M.

Parallel tempering: T_m at every level; then for pairs (m - 1, m), exchange theta_{m-1}, theta_m
with probability min(1, h_m(theta_{m-1}) h_{m-1}(theta_m) / (h_m(theta_m) h_{m-1}(theta_{m-1}))).

Tempered transitions (Neal, 1996): up^_m ~ T_m(up_{m-1}, .), m = 1 .. M; down_M = up_M;
down_{m-1} ~ T_m(down_m, .), m = M .. 1; take down_0 with probability min(1, R),

    R = prod_m [h_m(up_{m-1}) / h_{m-1}(up_{m-1})] [h_{m-1}(down_{m-1}) / h_m(down_{m-1})].

Subsets are nested and the same up and down; another pass draws others.

Exact resampling of parallel tempering's subsets: with ring a the rows of level a that level a + 1
lacks, exchange a row of ring a with one of ring b > a with probability min(1, ratio),

    ratio = prod_{m = a+1 .. b} [p(X'_m | theta_m) / p(X_m | theta_m)] [p(X_m | t) / p(X'_m | t)]

for a reference t that does not change. Level 0 holds all rows, so its draws stay exactly posterior.
"""

from libc.math cimport INFINITY, NAN, isfinite
from libc.stdint cimport int64_t
from libc.string cimport memcpy

import numpy as np

from .._native._random cimport below, uniform
from ._bound cimport BoundTarget
from ._inner cimport Inner
from ._levels cimport Levels, Replica, copy, exchange, probability


cdef class Walk:
    """Base of the two: iterations recorded one by one.

    Parameters
    ----------
    levels : Levels
        The densities; replica 0 is at the target's.
    inner : Inner
        The updates within levels.
    """

    cdef readonly Levels levels
    cdef readonly Inner inner
    cdef double[::1] pair_probability    # (n_levels - 1,): sums over the crossings of each pair
    cdef int64_t[::1] pair_count
    cdef readonly int64_t round_trips
    cdef double[:, ::1] work             # (n_levels - 1, 2): see ParallelWalk
    cdef double[::1] candidate           # theta proposed last at level 0, and its log likelihood

    def __init__(self, Levels levels, Inner inner, **options):
        n_pairs = levels.n_levels - 1
        self.levels, self.inner = levels, inner
        self.pair_probability = np.zeros(n_pairs)
        self.pair_count = np.zeros(n_pairs, dtype=np.int64)
        self.work = np.full((n_pairs, 2), NAN)
        self.candidate = np.full(levels.n_parameters + 1, NAN)
        self.round_trips = 0

    cdef void iterate(self) noexcept nogil:
        self.inner.move(&self.levels.replica[0], 0)

    cdef void note_candidate(self, Replica *at) noexcept nogil:
        """Remember what a hotter level proposes to level 0, taken or not."""
        memcpy(&self.candidate[0], at.theta, self.levels.n_parameters * sizeof(double))
        self.candidate[self.levels.n_parameters] = at.values[0]

    def advance(
        self,
        double[:, ::1] draws,
        double[:, ::1] log_densities,
        double[:, :, ::1] work,
        double[:, ::1] candidates,
    ):
        """Iterate once per row of the three arrays, which are written.

        Parameters
        ----------
        draws : ndarray of shape (n, n_parameters)
        log_densities : ndarray of shape (n, 2)
            Log prior, log likelihood of all rows.
        work : ndarray of shape (n, n_levels - 1, 2)
        candidates : ndarray of shape (n, n_parameters + 1) or (n, 0)
            What the level above proposed last to level 0, taken or not, and the log likelihood
            there; NaN where nothing was. Of no columns: not wanted.
        """
        cdef Py_ssize_t i, n = draws.shape[0], d = self.levels.n_parameters
        cdef Py_ssize_t n_pairs = self.levels.n_levels - 1
        cdef Replica *first
        with nogil:
            for i in range(n):
                self.candidate[d] = NAN
                self.iterate()
                if candidates.shape[1]:
                    memcpy(&candidates[i, 0], &self.candidate[0], (d + 1) * sizeof(double))
                first = &self.levels.replica[0]
                memcpy(&draws[i, 0], first.theta, d * sizeof(double))
                log_densities[i, 0] = first.prior
                log_densities[i, 1] = self.levels.tempered(first, 0)
                if n_pairs:
                    memcpy(&work[i, 0, 0], &self.work[0, 0], 2 * n_pairs * sizeof(double))
                if self.levels.target.failed:
                    break
        self.levels.target.raise_error()

    cdef bint decide(self, Py_ssize_t pair, double log_ratio) noexcept nogil:
        cdef double p = probability(log_ratio)
        self.pair_probability[pair] += p
        self.pair_count[pair] += 1
        return uniform(self.levels.rng) < p

    def get_pair_acceptance(self):
        """Mean probability of crossing each pair of neighbouring levels."""
        n = np.asarray(self.pair_count)
        return np.where(n > 0, np.asarray(self.pair_probability) / np.maximum(n, 1), np.nan)

    def get_sums(self):
        """Sums of crossing probabilities by pair."""
        return np.array(self.pair_probability)

    def reset_counts(self):
        """Forget acceptances and round trips so far."""
        self.inner.reset_counts()
        self.levels.nan_count[:] = 0
        self.pair_probability[:] = 0.0
        self.pair_count[:] = 0
        self.round_trips = 0


cdef class ParallelWalk(Walk):
    """One replica per level, neighbours exchanged.

    ``work[m - 1]`` is log h_{m-1} / h_m at theta_m and log h_m / h_{m-1} at theta_{m-1}, when the
    pair's exchange was proposed last in the iteration; NaN where it was not.

    Parameters
    ----------
    levels, inner : Levels, Inner
        With one level this is the inner sampler alone.
    even_odd : bool
        Pairs with m even and with m odd in turns, in place of all of them from the hottest down.
    n_exchanges : int
        Proposals per iteration to exchange rows between rings, once `set_reference` was called.
    """

    cdef bint even_odd
    cdef Py_ssize_t parity, n_exchanges
    cdef int64_t[::1] walker             # who is at each level
    cdef int64_t[::1] heading            # of each walker: 1 last at the top, -1 last at the bottom
    cdef bint referred                   # set_reference was called
    cdef double[::1] reference           # t
    cdef double[::1] reference_rows      # log likelihood of each row at t, where independent
    cdef double[::1] reference_levels    # of each level, where not
    cdef double[::1] new_reference, new_value, scratch
    cdef readonly double sum_exchange    # of acceptance probabilities
    cdef readonly int64_t n_proposed_exchanges

    def __init__(self, Levels levels, Inner inner, *, even_odd=False, n_exchanges=0):
        super().__init__(levels, inner)
        self.even_odd, self.n_exchanges = even_odd, n_exchanges
        self.parity = 0
        self.walker = np.arange(levels.n_levels, dtype=np.int64)
        self.heading = np.zeros(levels.n_levels, dtype=np.int64)
        self.referred = False
        self.sum_exchange = 0.0
        self.n_proposed_exchanges = 0

    cdef void iterate(self) noexcept nogil:
        cdef Py_ssize_t m, _i, top = self.levels.n_levels - 1
        for m in range(top + 1):
            self.inner.move(&self.levels.replica[m], m)
        for m in range(top):
            self.work[m, 0] = self.work[m, 1] = NAN
        for m in range(top, 0, -1):
            if not self.even_odd or m % 2 == self.parity:
                self.swap(m)
        self.parity = 1 - self.parity
        if self.referred:
            for _i in range(self.n_exchanges):
                self.exchange_rows()

    cdef void swap(self, Py_ssize_t m) noexcept nogil:
        """Propose to exchange the replicas of levels m - 1 and m."""
        cdef Replica *cold = &self.levels.replica[m - 1]
        cdef Replica *hot = &self.levels.replica[m]
        cdef double down = self.levels.tempered(hot, m - 1) - self.levels.tempered(hot, m)
        cdef double up = self.levels.tempered(cold, m) - self.levels.tempered(cold, m - 1)
        self.work[m - 1, 0] = down
        self.work[m - 1, 1] = up
        if m == 1:
            self.note_candidate(hot)
        if self.decide(m - 1, down + up):
            exchange(cold, hot)
            self.walker[m - 1], self.walker[m] = self.walker[m], self.walker[m - 1]
        if m == self.levels.n_levels - 1:
            self.heading[self.walker[m]] = 1
        if m == 1:
            if self.heading[self.walker[0]] == 1:
                self.round_trips += 1
            self.heading[self.walker[0]] = -1

    # ---- resampling the subsets -----------------------------------------------------------------

    def set_reference(self, theta):
        """Freeze t and begin to exchange rows."""
        cdef Py_ssize_t i
        cdef BoundTarget target = self.levels.target
        self.reference = np.array(theta, dtype=np.float64)
        self.scratch = np.zeros(self.levels.n_rungs)
        self.new_reference = np.zeros(self.levels.n_rungs)
        self.new_value = np.zeros(self.levels.n_rungs)
        self.reference_rows = np.zeros(target.n_rows)
        self.reference_levels = np.zeros(self.levels.n_rungs)
        if target.independent:
            for i in range(target.n_rows):
                self.reference_rows[target.order[i]] = (
                    target.row_log_likelihood(&self.reference[0], i)
                )
        else:
            target.log_likelihood(
                &self.reference[0], 0, self.levels.n_rungs, &self.reference_levels[0], NULL
            )
        target.raise_error()
        self.referred = self.levels.n_rungs > 1

    cdef void exchange_rows(self) noexcept nogil:
        """Propose to exchange a row of one ring with a row of a ring further in."""
        cdef Py_ssize_t n_rings = self.levels.n_rungs, a, b, other, i, j
        if uniform(self.levels.rng) < 0.5:
            a = below(self.levels.rng, n_rings - 1)
            b = a + 1
        else:
            a = below(self.levels.rng, n_rings)
            other = below(self.levels.rng, n_rings - 1)
            b = other if other < a else other + 1
            a, b = min(a, b), max(a, b)
        i = self.position(a)
        j = self.position(b)
        if self.levels.target.independent:
            self.exchange_independent(a, b, i, j)
        else:
            self.exchange_dependent(a, b, i, j)

    cdef Py_ssize_t position(self, Py_ssize_t ring) noexcept nogil:
        """A position in the order, uniform over a ring."""
        cdef int64_t start = 0
        if ring + 1 < self.levels.n_rungs:
            start = self.levels.target.sizes[ring + 1]
        return start + below(self.levels.rng, self.levels.target.sizes[ring] - start)

    cdef bint decide_exchange(self, double log_ratio) noexcept nogil:
        cdef double p = probability(log_ratio)
        self.sum_exchange += p
        self.n_proposed_exchanges += 1
        return uniform(self.levels.rng) < p

    cdef double row_change(self, Replica *at, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        """What a level's log likelihood gains when row i takes the place of row j."""
        return (
            self.levels.target.row_log_likelihood(at.theta, i)
            - self.levels.target.row_log_likelihood(at.theta, j)
        )

    cdef void exchange_independent(
        self, Py_ssize_t a, Py_ssize_t b, Py_ssize_t i, Py_ssize_t j
    ) noexcept nogil:
        cdef Replica *at
        cdef Py_ssize_t m, k
        cdef double log_ratio = 0.0, change
        change = (
            self.reference_rows[self.levels.target.order[i]]
            - self.reference_rows[self.levels.target.order[j]]
        )
        for m in range(a + 1, b + 1):
            log_ratio += self.row_change(&self.levels.replica[m], i, j) - change
        if not self.decide_exchange(log_ratio):
            return
        for m in range(self.levels.n_levels):
            at = &self.levels.replica[m]
            change = self.row_change(at, i, j)
            for k in range(a + 1, b + 1):
                if isfinite(change) and isfinite(at.values[k]):
                    at.values[k] += change
                else:
                    at.fresh[k] = 0
            if a < m <= b:
                at.gradient_rung = -1
        self.levels.target.exchange(i, j)

    cdef void exchange_dependent(
        self, Py_ssize_t a, Py_ssize_t b, Py_ssize_t i, Py_ssize_t j
    ) noexcept nogil:
        cdef Replica *at
        cdef Py_ssize_t m, k, n = self.levels.n_rungs
        cdef double log_ratio = 0.0
        for m in range(a + 1, b + 1):
            log_ratio -= self.levels.tempered(&self.levels.replica[m], m)
        self.levels.target.exchange(i, j)
        self.levels.target.log_likelihood(
            &self.reference[0], a + 1, n, &self.new_reference[0], NULL
        )
        for m in range(a + 1, b + 1):
            self.levels.target.log_likelihood(
                self.levels.replica[m].theta, m, n, &self.scratch[0], NULL
            )
            self.new_value[m] = self.scratch[m]
            log_ratio += self.scratch[m] - self.new_reference[m] + self.reference_levels[m]
        if not self.decide_exchange(log_ratio):
            self.levels.target.exchange(i, j)
            return
        for k in range(a + 1, b + 1):
            self.reference_levels[k] = self.new_reference[k]
        for m in range(self.levels.n_levels):
            at = &self.levels.replica[m]
            for k in range(a + 1, b + 1):
                at.fresh[k] = 0
            if a < m <= b:
                at.values[m] = self.new_value[m]
                at.fresh[m] = 1
                at.gradient_rung = -1

    def reset_counts(self):
        """Forget acceptances and round trips so far."""
        super().reset_counts()
        self.sum_exchange = 0.0
        self.n_proposed_exchanges = 0

    def get_exchange_acceptance(self):
        """Mean acceptance of the exchanges of rows; NaN if none was proposed."""
        return self.sum_exchange / self.n_proposed_exchanges if self.n_proposed_exchanges else NAN


cdef class TransitionWalk(Walk):
    """Tempered transitions: replica 0 is the state, replica 1 goes up and down.

    A pair's probability is min(1, its factor of R); `round_trips` counts the passes accepted.

    Parameters
    ----------
    levels, inner : Levels, Inner
        At least two levels.
    n_base_moves : float
        Updates at level 0 before each pass, on average.
    """

    cdef Py_ssize_t n_base_moves
    cdef double more                     # chance of one base move more
    cdef double[::1] up
    cdef readonly double sum_pass        # of the passes' acceptance probabilities
    cdef readonly int64_t n_passes

    def __init__(self, Levels levels, Inner inner, *, n_base_moves=1):
        super().__init__(levels, inner)
        self.set_base_moves(n_base_moves)
        self.up = np.zeros(levels.n_levels)
        self.sum_pass = 0.0
        self.n_passes = 0

    cdef void iterate(self) noexcept nogil:
        cdef Py_ssize_t _i, n = self.n_base_moves
        if self.more > 0.0 and uniform(self.levels.rng) < self.more:
            n += 1
        for _i in range(n):
            self.inner.move(&self.levels.replica[0], 0)
        if self.levels.tilted:
            self.levels.take_tilt(below(self.levels.rng, self.levels.orders.shape[0]))
        else:
            self.draw_subsets()
        self.traverse()

    cdef void draw_subsets(self) noexcept nogil:
        """Shuffle the rows of level 1 and hotter to the front; level 0 is what it was."""
        cdef Py_ssize_t i, j, n = self.levels.target.n_rows, n_first
        cdef int64_t row
        if self.levels.n_rungs == 1:
            return
        n_first = self.levels.target.sizes[1]
        for i in range(n_first):
            j = i + below(self.levels.rng, n - i)
            row = self.levels.target.order[i]
            self.levels.target.order[i] = self.levels.target.order[j]
            self.levels.target.order[j] = row
        self.levels.target.reorder()
        self.levels.forget_rows()

    cdef void traverse(self) noexcept nogil:
        """One pass."""
        cdef Replica *at = &self.levels.replica[1]
        cdef Py_ssize_t m, top = self.levels.n_levels - 1
        cdef double log_ratio = 0.0, down, p
        copy(self.levels, &self.levels.replica[0], at)
        self.n_passes += 1
        for m in range(1, top + 1):
            self.up[m] = self.levels.tempered(at, m) - self.levels.tempered(at, m - 1)
            if self.up[m] == -INFINITY:
                self.pair_count[m - 1] += 1
                return
            self.inner.move(at, m)
        for m in range(top, 0, -1):
            self.inner.move(at, m)
            down = self.levels.tempered(at, m - 1) - self.levels.tempered(at, m)
            self.pair_probability[m - 1] += probability(self.up[m] + down)
            self.pair_count[m - 1] += 1
            log_ratio += self.up[m] + down
            if down == -INFINITY:
                return
        self.note_candidate(at)
        p = probability(log_ratio)
        self.sum_pass += p
        if uniform(self.levels.rng) < p:
            exchange(&self.levels.replica[0], at)
            self.round_trips += 1

    def set_base_moves(self, double n_base_moves):
        """Another number of updates at level 0 before each pass."""
        self.n_base_moves = <Py_ssize_t> n_base_moves
        self.more = n_base_moves - self.n_base_moves

    def reset_counts(self):
        """Forget acceptances so far."""
        super().reset_counts()
        self.sum_pass = 0.0
        self.n_passes = 0

    def get_pass_acceptance(self):
        """Mean acceptance of the passes; NaN before the first."""
        return self.sum_pass / self.n_passes if self.n_passes else NAN
