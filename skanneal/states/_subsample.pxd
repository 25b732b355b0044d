from libc.stdint cimport int64_t
from numpy.random cimport bitgen_t

cdef class Subsample:
    cdef readonly str selection
    cdef readonly Py_ssize_t n_rows
    cdef readonly Py_ssize_t size       # |S|
    cdef int64_t[::1] order             # rows; S comes first ("window": a ring, S from tail on)
    cdef int64_t tail                   # "window": position of the oldest row of S
    cdef Py_ssize_t n_strata
    cdef int64_t[::1] start             # (n_strata + 1,) "stratified": stratum s from here
    cdef int64_t[::1] inside            # (n_strata,) rows of S in each stratum, which come first
    cdef int rule
    cdef int64_t enter(self, bitgen_t *rng) noexcept nogil
    cdef int64_t leave(self, bitgen_t *rng) noexcept nogil
    cdef Py_ssize_t plan(self, bitgen_t *rng, const int64_t[:, ::1] knots, int64_t *position,
                         int64_t stop, int64_t *steps, Py_ssize_t room) noexcept nogil
