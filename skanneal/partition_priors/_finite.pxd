from libc.stdint cimport int64_t

from ._base cimport PartitionPrior


cdef class Finite(PartitionPrior):
    cdef readonly double concentration, discount
    cdef readonly int64_t max_clusters
