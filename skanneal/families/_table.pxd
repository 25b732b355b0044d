from libc.stdint cimport int32_t, int64_t, uint32_t

cdef enum:
    CHUNK_BITS = 16

cdef struct Counts:             # a row of counts, as it stands in the encoded row
    int64_t start               # where its entries begin in the table's store
    int64_t n                   # columns with a count above 0
    int64_t total               # sum of the counts
    double log_coefficient      # log of total! / prod count!

cdef bint is_far(double number, double place) noexcept nogil

cdef class Table:
    cdef readonly Py_ssize_t n_rows, n_columns
    cdef readonly Py_ssize_t row_bytes      # stride of an encoded row
    cdef readonly tuple dtypes              # see the module, one per column
    cdef readonly object n_levels           # int64 (n_columns,), 0 for numbers and counts
    cdef readonly object positions          # int32 (n_columns,), byte position in a row
    cdef readonly object widths             # int64 (n_columns,), bytes of a cell
    cdef readonly object offsets, scales    # float64 (n_columns,): number = offset + scale * cell
    cdef readonly list atoms                # float32 arrays: cells of columns with atoms, ascending
    cdef readonly object logarithms         # bool (n_columns,): are cells those of logarithms?
    cdef readonly dict shared               # what blocks over these rows compute once, by key
    cdef readonly bint far                  # is a number far from its column's offset?
    cdef readonly object gaps               # bool (n_columns,): has the column a missing cell?
    cdef list _chunks                       # uint8 arrays (2^CHUNK_BITS, row_bytes)
    cdef list _outgrown                     # chunks that append exchanged
    cdef char **_pointers                   # their addresses
    cdef Py_ssize_t _n_pointers
    cdef list _stored                       # columns that are more than a part of a row of counts
    cdef Py_ssize_t _counts                 # the column that carries the row of counts, or -1
    cdef const uint32_t *entries            # pairs (column of the family, count)
    cdef object _entries                    # the array they stand in, with room at the end
    cdef Py_ssize_t _n_entries

    cdef Py_ssize_t _n_numbers              # numbers of a row, one after another
    cdef Py_ssize_t _numbers                # their first byte

    cdef const int32_t *_place              # (n_rows,) see with_fills; NULL where there are none
    cdef char *_filled                      # rows with fills, one after another
    cdef char *_filled_end
    cdef Py_ssize_t _filled_bytes           # stride of these
    cdef readonly bint weighted             # does a weight stand behind each of them?
    cdef readonly object with_gaps          # rows in which fills stand for missing cells
    cdef readonly bint shares_fills         # do several mixtures have these fills?
    cdef object _fills                      # the arrays of both, and where the fills stand

    cdef bint has_far(self, const char *row) noexcept nogil

    # As the user gave the row, gaps included.
    cdef inline const char *observed(self, Py_ssize_t i) noexcept nogil:
        return self._pointers[i >> CHUNK_BITS] + (i & ((1 << CHUNK_BITS) - 1)) * self.row_bytes

    # Of a row with fills, its copy, to be written to; else NULL.
    cdef inline char *filled(self, Py_ssize_t i) noexcept nogil:
        if self._place == NULL or self._place[i] < 0:
            return NULL
        return self._filled + self._place[i] * self._filled_bytes

    # As statistics have the row: with its fills.
    cdef inline const char *row(self, Py_ssize_t i) noexcept nogil:
        cdef const char *own = self.filled(i)
        return own if own != NULL else self.observed(i)

    # Where the weight of a row with fills stands; NULL of a row as the user gave it.
    cdef inline float *weight(self, const char *row) noexcept nogil:
        if not self.weighted or row < self._filled or row >= self._filled_end:
            return NULL
        return <float *> (row + self.row_bytes)
