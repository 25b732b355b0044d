from libc.stdint cimport int64_t

cdef enum:
    CHUNK_BITS = 16

cdef class Table:
    cdef readonly Py_ssize_t n_rows, n_columns
    cdef readonly Py_ssize_t row_bytes      # stride of an encoded row
    cdef readonly tuple dtypes              # "f4", "u1", "u2" or "u4", one per column
    cdef readonly object n_levels           # int64 (n_columns,), 0 for numbers and counts
    cdef readonly object positions          # int32 (n_columns,), byte position in a row
    cdef readonly object widths             # int64 (n_columns,), bytes of a cell
    cdef readonly object offsets, scales    # float64 (n_columns,): number = offset + scale * cell
    cdef readonly dict shared               # what blocks over these rows compute once, by key
    cdef readonly object gaps               # bool (n_columns,): has the column a missing cell?
    cdef list _chunks                       # uint8 arrays (2^CHUNK_BITS, row_bytes)
    cdef list _outgrown                     # chunks that append exchanged
    cdef char **_pointers                   # their addresses
    cdef Py_ssize_t _n_pointers

    cdef inline const char *row(self, Py_ssize_t i) noexcept nogil:
        return self._pointers[i >> CHUNK_BITS] + (i & ((1 << CHUNK_BITS) - 1)) * self.row_bytes
