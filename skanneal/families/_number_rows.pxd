from libc.stdint cimport int32_t, int64_t
from numpy.random cimport bitgen_t

from ._base cimport FamilyBlock

cdef class NumberRows(FamilyBlock):
    cdef Py_ssize_t d
    cdef bint may_miss                # has the table rows with gaps?
    cdef Py_ssize_t n_gaps            # of the row that was read last
    cdef const char *known            # the row of the block's own table of which they are
    cdef int64_t[::1] gap             # (d,) its missing columns
    cdef double[::1] number           # (d,) its cells
    cdef double[::1] rest, along, z   # (d,) u, c and what is missing, less its centre
    cdef double[:, ::1] spanned, r    # (d, d) the columns W_m, R

    cdef Py_ssize_t read(self, const char *row, const int32_t *position) noexcept nogil
    cdef bint misses(self, const char *row) noexcept nogil
    cdef double condition(self, Py_ssize_t k) noexcept nogil
    cdef double condition_fill(self, Py_ssize_t k) noexcept nogil
    cdef void draw(self, Py_ssize_t k, double q, bitgen_t *rng) noexcept nogil
    cdef double log_observed(self, Py_ssize_t k) noexcept nogil
    cdef void add_observed(self, const double *log_scale, double sign,
                           double[::1] out) noexcept nogil

    # what a family writes
    cdef float observed_without(self, const char *row, Py_ssize_t k) noexcept nogil

    # of a slot's law, |W (x - centre)|^2 = q
    cdef double location(self, Py_ssize_t k, Py_ssize_t j) noexcept nogil
    cdef void whiten(self, Py_ssize_t k, double *deviation, double *out) noexcept nogil
    cdef void whitening(self, Py_ssize_t k, Py_ssize_t j, double *column) noexcept nogil
    cdef double log_constant(self, Py_ssize_t k, Py_ssize_t n) noexcept nogil
    cdef double log_kernel(self, Py_ssize_t k, Py_ssize_t n, double q) noexcept nogil
    cdef double degrees(self, Py_ssize_t k, Py_ssize_t n) noexcept nogil
    cdef double square(self, Py_ssize_t k, Py_ssize_t n, double q) noexcept nogil
