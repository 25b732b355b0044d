"""Evaluate the densities of a ladder's levels; remember what one evaluation says of others."""

from libc.math cimport INFINITY, exp, isfinite
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

import numpy as np

from .._native._random cimport bitgen

from ._targets import prior_draw


cdef void exchange(Replica *a, Replica *b) noexcept nogil:
    """Exchange two replicas, by their pointers."""
    cdef Replica other = a[0]
    a[0] = b[0]
    b[0] = other


cdef void copy(Levels levels, Replica *source, Replica *to) noexcept nogil:
    """Copy theta and all that is known of it."""
    memcpy(to.theta, source.theta, levels.n_parameters * sizeof(double))
    memcpy(to.gradient, source.gradient, levels.n_parameters * sizeof(double))
    memcpy(to.values, source.values, levels.n_rungs * sizeof(double))
    memcpy(to.fresh, source.fresh, levels.n_rungs * sizeof(uint8_t))
    to.prior = source.prior
    to.gradient_rung = source.gradient_rung


cdef double probability(double log_ratio) noexcept nogil:
    """min(1, ratio); 0 where the ratio is not a number."""
    if log_ratio >= 0.0:
        return 1.0
    return exp(log_ratio) if log_ratio < 0.0 else 0.0


cdef class Levels:
    """The levels of one chain and its replicas.

    Parameters
    ----------
    target : Target
        What is drawn from.
    bound : BoundTarget
        Its evaluator.
    rung : array-like of shape (n_levels,)
        The evaluator's level that each level of the ladder reads.
    power : array-like of shape (n_levels,)
        Exponent of the likelihood, 0 for the prior.
    bit_generator : numpy.random.BitGenerator
        The chain's.
    n_replicas : int
        How many thetas the chain keeps.
    exact_prior : bool
        Whether ``target.draw_prior`` can be called.
    """

    def __init__(self, target, BoundTarget bound, rung, power, bit_generator, n_replicas,
                 exact_prior):
        cdef double[:, ::1] numbers
        cdef uint8_t[:, ::1] flags
        cdef Py_ssize_t i, d = bound.n_parameters, r = bound.n_levels
        self.description, self.target = target, bound
        self.rung = np.array(rung, dtype=np.intp)
        self.power = np.array(power, dtype=np.float64)
        self.n_levels, self.n_parameters, self.n_rungs = len(self.rung), d, r
        self.nan_count = np.zeros(self.n_levels, dtype=np.int64)
        self.bit_generator, self.rng = bit_generator, bitgen(bit_generator)
        self.generator = None
        self.exact_prior = exact_prior
        self.gradient = np.zeros(d)
        self.tilted = False
        self.tilt_now = 0
        self.n_replicas = n_replicas
        numbers = np.zeros((n_replicas + 1, 2 * d + r))
        flags = np.zeros((n_replicas + 1, r), dtype=np.uint8)
        self.buffers = (numbers, flags)
        self.replica = <Replica *> calloc(n_replicas + 1, sizeof(Replica))
        if self.replica == NULL:
            raise MemoryError()
        self.spare = &self.replica[n_replicas]
        for i in range(n_replicas + 1):
            self.replica[i].theta = &numbers[i, 0]
            self.replica[i].gradient = &numbers[i, d]
            self.replica[i].values = &numbers[i, 2 * d]
            self.replica[i].fresh = &flags[i, 0]
            self.replica[i].gradient_rung = -1

    def __dealloc__(self):
        free(self.replica)

    cdef double tempered(self, Replica *at, Py_ssize_t level) noexcept nogil:
        """log h without the prior: power * log likelihood, -inf where that is not a number, and
        the tilt."""
        cdef Py_ssize_t k = self.rung[level]
        cdef double value
        if self.power[level] == 0.0:
            return 0.0
        if not at.fresh[k]:
            self.evaluate(at, level, False)
        value = at.values[k]
        if not value < INFINITY:
            return -INFINITY
        value *= self.power[level]
        if self.tilted and level > 0:
            value += self.tilt(at, level, NULL)
        return value

    cdef double tilt(self, Replica *at, Py_ssize_t level, double *gradient) noexcept nogil:
        """The tilt of a re-centred level; its gradient is added to `gradient`, if asked for."""
        cdef double value = 0.0, steep, curved
        cdef Py_ssize_t i, j, k = self.tilt_now
        for i in range(self.n_parameters):
            steep, curved = self.slope[k, level, i], 0.0
            for j in range(self.n_parameters):
                curved += self.curvature[k, level, i, j] * (at.theta[j] - self.centre[j])
            value += (at.theta[i] - self.centre[i]) * (steep + 0.5 * curved)
            if gradient != NULL:
                gradient[i] += steep + curved
        return value

    cdef double log_density(self, Replica *at, Py_ssize_t level) noexcept nogil:
        """log h of a level at a replica; -inf outside the prior's support, without asking more."""
        if not (-INFINITY < at.prior < INFINITY):
            return -INFINITY
        return at.prior + self.tempered(at, level)

    cdef void evaluate(self, Replica *at, Py_ssize_t level, bint gradient) noexcept nogil:
        """Values of the level and all hotter ones; with `gradient`, that of the level too."""
        cdef Py_ssize_t i, k = self.rung[level], known = self.n_rungs
        while known > k + 1 and at.fresh[known - 1]:
            known -= 1
        self.target.log_likelihood(
            at.theta, k, known, at.values, at.gradient if gradient else NULL
        )
        for i in range(k, self.n_rungs):
            at.fresh[i] = 1
        if not at.values[k] < INFINITY:
            self.nan_count[level] += 1
        if gradient:
            at.gradient_rung = k

    cdef bint find_gradient(self, Replica *at, Py_ssize_t level) noexcept nogil:
        """Set `gradient` to the gradient of the level's log density; false if it is not finite.

        The likelihood's gradient is had anew only where theta or the rows are others: powers of
        one likelihood share it.
        """
        cdef Py_ssize_t i
        cdef double power = self.power[level]
        cdef bint finite = True
        self.target.log_prior(at.theta, &self.gradient[0])
        if power != 0.0:
            if at.gradient_rung != self.rung[level]:
                self.target.log_likelihood(
                    at.theta, self.rung[level], self.n_rungs, NULL, at.gradient
                )
                at.gradient_rung = self.rung[level]
            for i in range(self.n_parameters):
                self.gradient[i] += power * at.gradient[i]
            if self.tilted and level > 0:
                self.tilt(at, level, &self.gradient[0])
        for i in range(self.n_parameters):
            finite = finite and isfinite(self.gradient[i])
        return finite

    cdef void moved(self, Replica *at) noexcept nogil:
        """theta is another one: nothing is known of it but its prior."""
        memset(at.fresh, 0, self.n_rungs * sizeof(uint8_t))
        at.gradient_rung = -1
        at.prior = self.target.log_prior(at.theta, NULL)

    cdef void draw_prior(self, Replica *at) noexcept nogil:
        """Put a draw from the prior in a replica's place."""
        with gil:
            if self.target.error is None:
                try:
                    self.write_prior_draw(at)
                except BaseException as error:
                    self.target.error, self.target.failed = error, True
        self.moved(at)

    cdef int write_prior_draw(self, Replica *at) except -1:
        if self.generator is None:
            self.generator = np.random.Generator(self.bit_generator)
        cdef double[::1] drawn = prior_draw(self.description, self.generator)
        memcpy(at.theta, &drawn[0], self.n_parameters * sizeof(double))
        return 0

    cdef void take_tilt(self, Py_ssize_t k) noexcept nogil:
        """Let one of the tilts hold, with its rows."""
        self.tilt_now = k
        memcpy(&self.power[0], &self.powers[k, 0], self.n_levels * sizeof(double))
        memcpy(
            &self.target.order[0], &self.orders[k, 0], self.target.n_rows * sizeof(int64_t)
        )
        self.target.reorder()
        self.forget_rows()

    cdef void forget_rows(self) noexcept nogil:
        """The levels of fewer rows have others: only the target's values are right."""
        cdef Py_ssize_t i
        for i in range(self.n_replicas):
            memset(self.replica[i].fresh + 1, 0, self.n_rungs - 1)
            if self.replica[i].gradient_rung > 0:
                self.replica[i].gradient_rung = -1

    def set_tilts(self, orders, centre, power, slope, curvature):
        """Tilt the levels from now on; the first tilt holds.

        The numbers of the first level are not read: the target stays as it is.

        Parameters
        ----------
        orders : array-like of shape (n_tilts, n_rows)
            Permutations of the rows.
        centre : array-like of shape (n_parameters,)
        power : array-like of shape (n_tilts, n_levels)
            Exponents of the levels' likelihoods, positive.
        slope : array-like of shape (n_tilts, n_levels, n_parameters)
        curvature : array-like of shape (n_tilts, n_levels, n_parameters, n_parameters)
            Symmetric.
        """
        self.orders = np.array(orders, dtype=np.int64)
        self.powers = np.array(power, dtype=np.float64)
        self.centre = np.array(centre, dtype=np.float64)
        self.slope = np.array(slope, dtype=np.float64)
        self.curvature = np.array(curvature, dtype=np.float64)
        np.asarray(self.powers)[:, 0] = self.power[0]
        self.tilted = True
        self.take_tilt(0)

    def set_theta(self, Py_ssize_t i, theta):
        """Put theta in replica i; returns its log density at each level."""
        cdef double[::1] given = self.target.point(theta)
        cdef Py_ssize_t m
        memcpy(self.replica[i].theta, &given[0], self.n_parameters * sizeof(double))
        densities = np.empty(self.n_levels)
        cdef double[::1] out = densities
        with nogil:
            self.moved(&self.replica[i])
            for m in range(self.n_levels):
                out[m] = self.log_density(&self.replica[i], m)
        self.target.raise_error()
        return densities

    def get_theta(self, Py_ssize_t i):
        """Theta of replica i, a copy."""
        return np.asarray(<double[:self.n_parameters]> self.replica[i].theta).copy()

    def get_nan_count(self):
        """Likelihoods that were not numbers, by level."""
        return np.array(self.nan_count)
