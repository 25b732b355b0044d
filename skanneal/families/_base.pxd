from libc.stdint cimport int64_t

from ._family cimport Family

cdef class FamilyBlock(Family):
    cdef int64_t version              # counts changes of the hyperparameters

    cdef int reserve(self, Py_ssize_t n_slots) except -1
    cdef void copy(self, FamilyBlock source, Py_ssize_t i, Py_ssize_t k) noexcept nogil
    cdef void merge(self, Py_ssize_t i, Py_ssize_t k) noexcept nogil
    cdef void refresh_slots(self) noexcept nogil
