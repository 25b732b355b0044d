from libc.stdint cimport int32_t, uint32_t

from ._table cimport Table

cdef enum:
    ROWS = 128  # read at a time where several partitions look at them

cdef class PartitionSums:
    cdef Table table
    cdef Py_ssize_t n_columns
    cdef int32_t[::1] position      # (n_columns,) of their cells in an encoded row
    cdef bint first                 # are the first partitions looking at the rows?

    # what a family writes
    cdef void read(self, const char *row, Py_ssize_t i) noexcept nogil
    cdef void add(self, const int32_t *label, Py_ssize_t n, Py_ssize_t base) noexcept nogil

cdef class CellSums(PartitionSums):
    cdef double[:, ::1] prior       # (n_columns, n_coordinates)
    cdef double[:, ::1] cell        # (ROWS, n_columns), NaN where missing
    cdef double[:, ::1] n, total    # (n_slots, n_columns)

    # what a family writes
    cdef double whole(self, Py_ssize_t f) noexcept nogil
    cdef double marginal(self, Py_ssize_t f, double n, double total) noexcept nogil

cdef class CountSums(CellSums):
    cdef uint32_t[::1] count        # (n_columns,) of the row read last
    cdef double[:, ::1] all         # (n_columns, 4) what `note` keeps of all cells

    cdef void note(self, const uint32_t *count) noexcept nogil
