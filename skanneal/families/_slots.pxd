cdef enum:
    TILE = 16   # slots per tile of the score caches
    MOST = 8    # arrays of one block

cdef struct Place:                   # where an array has what it holds of a slot
    char *data
    char kind                        # of its numbers: NumPy's "i" or "f"
    Py_ssize_t item                  # bytes of a number
    Py_ssize_t side, stride          # slots side by side; bytes from these to the next ones
    Py_ssize_t n_parts, apart        # of a slot; bytes from one part to the next
    Py_ssize_t n_bytes               # of a part

cdef class Slots:
    cdef readonly dict layout        # name -> (dtype, shape)
    cdef dict arrays                 # name -> ndarray
    cdef Py_ssize_t n_arrays
    cdef Place place[MOST]

    cdef void clear(self, Py_ssize_t k) noexcept nogil
    cdef void copy(self, Slots source, Py_ssize_t i, Py_ssize_t k) noexcept nogil
    cdef void add(self, Py_ssize_t i, Py_ssize_t k) noexcept nogil

cdef object aligned_zeros(shape, dtype)
