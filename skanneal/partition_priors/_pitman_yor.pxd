from ._base cimport PartitionPrior


cdef class PitmanYor(PartitionPrior):
    cdef readonly double concentration, discount
