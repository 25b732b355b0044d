from libc.stdint cimport int64_t

cdef class PitmanYor:
    cdef readonly double concentration, discount
    cdef double log_join(self, int64_t n_k) noexcept nogil
    cdef double log_open(self, int64_t n_clusters) noexcept nogil
