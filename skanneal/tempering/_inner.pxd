"""The updates of theta within a level."""

from libc.stdint cimport int64_t

from ._levels cimport Levels, Replica

cdef enum:
    MAX_UPDATES = 8


cdef struct Update:
    bint own                         # a sampler in Python; it says itself how many steps
    bint hamiltonian
    Py_ssize_t n_steps               # leapfrog steps, or random-walk steps in a row
    Py_ssize_t least_steps           # of a trajectory; equal to n_steps: always as many
    double target                    # acceptance that the step is adapted to
    bint adapt


cdef class Inner:
    cdef Levels levels
    cdef Update update[MAX_UPDATES]
    cdef readonly Py_ssize_t n_updates
    cdef double[:, ::1] log_step     # (n_updates, n_levels)
    cdef double[:, ::1] mean_step    # running means of log_step while it is adapted
    cdef int64_t[:, ::1] n_adapted
    cdef double[:, ::1] sum_probability
    cdef int64_t[:, ::1] n_proposed
    cdef double[::1] scale           # (n_parameters,): steps are in units of it
    cdef double[::1] momentum
    cdef bint adapting
    cdef list samplers               # of each update the sampler in Python, or None
    cdef object generator            # theirs

    cdef void move(self, Replica *at, Py_ssize_t level) noexcept nogil
    cdef void apply(self, Py_ssize_t k, Replica *at, Py_ssize_t level) noexcept nogil
    cdef void move_own(self, Py_ssize_t k, Replica *at, Py_ssize_t level) noexcept nogil
    cdef int call_own(self, Py_ssize_t k, Replica *at, Py_ssize_t level) except -1
    cdef void adapt_step(self, Py_ssize_t k, Py_ssize_t level, double p) noexcept nogil
    cdef void random_walk(self, Py_ssize_t k, Replica *at, Py_ssize_t level) noexcept nogil
    cdef void hamiltonian(self, Py_ssize_t k, Replica *at, Py_ssize_t level) noexcept nogil
    cdef bint decide(
        self, Py_ssize_t k, Replica *at, Py_ssize_t level, double log_ratio
    ) noexcept nogil


cdef class Level:
    cdef Inner inner
    cdef Replica *at                 # where the chain is
    cdef readonly Py_ssize_t number
    cdef readonly double beta
    cdef readonly object steps
    cdef bint tried                  # the spare replica holds a theta of this move

    cdef Replica *find(self, theta) except NULL
