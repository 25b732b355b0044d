"""The two clusters of a split: declarations."""

from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t
from numpy.random cimport bitgen_t

from ..partition_priors._base cimport PartitionPrior
from ..states._mixture cimport Mixture


cdef struct Looks:
    int64_t first       # rows allocated at the first look; others follow at each doubling
    double log_open     # log of alpha + K d
    double least        # the allocation ends where log a_t is not above


cdef class SplitSides:
    cdef list blocks
    cdef PyObject **pointer     # the same, borrowed, for code without the GIL
    cdef Py_ssize_t n_blocks
    cdef float[::1] scores
    cdef int64_t size[2]
    cdef double lowest          # the least log a_t of the last allocation, at most 0
    cdef int64_t n_allocated    # rows so far, of all proposals
    cdef int64_t n_weighed      # tiles of clusters, in which row i was scored

    cdef void empty(self) noexcept nogil
    cdef void insert(self, const char *cells, int side) noexcept nogil
    cdef double allocate(self, Mixture mixture, int64_t[::1] rows, int32_t[::1] side, bint forced,
                         double least_log_q, double beta, Looks looks,
                         bitgen_t *rng) noexcept nogil
    cdef void look(self, Mixture mixture, double log_open, double log_q,
                   double beta) noexcept nogil
    cdef void refresh(self) noexcept nogil
    cdef int64_t improve(self, Mixture mixture, const int64_t[::1] rows,
                         int32_t[::1] side) noexcept nogil
    cdef double log_weight(self, Mixture mixture, int64_t row, double beta) noexcept nogil
    cdef double log_marginal(self, int side) noexcept nogil
    cdef double log_merged(self, Mixture mixture, Py_ssize_t i, Py_ssize_t k) noexcept nogil


cdef double log_marginal(PyObject **blocks, Py_ssize_t n_blocks, Py_ssize_t k) noexcept nogil
cdef double log_split_sizes(PartitionPrior prior, int64_t n_i, int64_t n_j) noexcept nogil
