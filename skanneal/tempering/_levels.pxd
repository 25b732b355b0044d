"""The densities of a ladder's levels, and where a chain stands in them.

Level m has the density h_m(theta) = p(theta) p(X_rung | theta)^power: by subsampling rung = m and
power = 1, by powers rung = 0 and power = beta_m; power 0 is the prior. Re-centred levels, all but
the target's, have powers of their own and are tilted: log h_m gains slope_m . x + x' bend_m x / 2,
x = theta - centre. A tilt belongs to its rows; there may be several, of which one holds at a time.
"""

from libc.stdint cimport int64_t, uint8_t
from numpy.random cimport bitgen_t

from ._bound cimport BoundTarget


cdef struct Replica:                 # one theta and what is known of it
    double *theta                    # (n_parameters,)
    double *values                   # (n_rungs,): log likelihoods
    uint8_t *fresh                   # (n_rungs,): which of them are right
    double *gradient                 # (n_parameters,): of the log likelihood of gradient_rung
    double prior
    Py_ssize_t gradient_rung         # -1: none


cdef class Levels:
    cdef readonly BoundTarget target
    cdef readonly Py_ssize_t n_levels, n_parameters, n_rungs
    cdef Py_ssize_t[::1] rung        # (n_levels,)
    cdef double[::1] power           # (n_levels,)
    cdef int64_t[::1] nan_count      # (n_levels,): likelihoods that were not numbers
    cdef bitgen_t *rng
    cdef object bit_generator, description, generator, buffers
    cdef Replica *replica            # n_replicas of them, then `spare` for proposals
    cdef Replica *spare
    cdef Py_ssize_t n_replicas
    cdef double[::1] gradient        # (n_parameters,): gradient of a level's log density
    cdef readonly bint exact_prior   # the prior can be drawn from
    cdef readonly bint tilted        # set_tilts was called
    cdef Py_ssize_t tilt_now         # which of the tilts holds
    cdef int64_t[:, ::1] orders      # (n_tilts, n_rows)
    cdef double[:, ::1] powers       # (n_tilts, n_levels)
    cdef double[::1] centre          # (n_parameters,)
    cdef double[:, :, ::1] slope     # (n_tilts, n_levels, n_parameters)
    cdef double[:, :, :, ::1] curvature   # (n_tilts, n_levels, n_parameters, n_parameters)

    cdef double tempered(self, Replica *at, Py_ssize_t level) noexcept nogil
    cdef double log_density(self, Replica *at, Py_ssize_t level) noexcept nogil
    cdef void take_tilt(self, Py_ssize_t k) noexcept nogil
    cdef void forget_rows(self) noexcept nogil
    cdef double tilt(self, Replica *at, Py_ssize_t level, double *gradient) noexcept nogil
    cdef void evaluate(self, Replica *at, Py_ssize_t level, bint gradient) noexcept nogil
    cdef bint find_gradient(self, Replica *at, Py_ssize_t level) noexcept nogil
    cdef void moved(self, Replica *at) noexcept nogil
    cdef void draw_prior(self, Replica *at) noexcept nogil
    cdef int write_prior_draw(self, Replica *at) except -1


cdef void exchange(Replica *a, Replica *b) noexcept nogil
cdef void copy(Levels levels, Replica *source, Replica *to) noexcept nogil
cdef double probability(double log_ratio) noexcept nogil
