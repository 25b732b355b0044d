from ._base cimport FamilyBlock

cdef class ColumnFamily(FamilyBlock):
    cdef double[:, ::1] hyper   # (n_coordinates, n_features)
