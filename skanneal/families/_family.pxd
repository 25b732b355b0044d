from libc.stdint cimport int32_t, int64_t
from numpy.random cimport bitgen_t

from ._slots cimport Slots
from ._table cimport Table

cdef class Family:
    cdef readonly Table table
    cdef readonly object columns      # int64 (n_columns,), positions in the table, internal order
    cdef readonly object gappy        # bool (n_columns,): may the column have missing cells?
    cdef readonly Py_ssize_t n_features   # n_columns, or 1 if the family describes whole rows
    cdef readonly Py_ssize_t n_dense  # features 0 .. n_dense - 1 never miss a cell
    cdef readonly Py_ssize_t n_slots  # capacity, a multiple of TILE
    cdef Slots slots                  # the statistics
    cdef int64_t[::1] size            # (n_slots,) rows in each slot
    cdef int32_t[::1] offset          # (n_columns,) byte position in an encoded row
    cdef int level                    # instruction set, see _dispatch.h

    cdef void add_scores(self, const char *row, Py_ssize_t n_tiles, float *out) noexcept nogil
    cdef float score_without(self, const char *row, Py_ssize_t k) noexcept nogil
    cdef void add_proposals(self, const char *row, Py_ssize_t n_tiles, float *out) noexcept nogil
    cdef float proposal_without(self, const char *observed, const char *row,
                                Py_ssize_t k) noexcept nogil
    cdef double correction(self, const char *observed, const char *row, Py_ssize_t k,
                           bint held) noexcept nogil
    cdef void update(self, const char *row, Py_ssize_t k, int sign) noexcept nogil
    cdef void fill(self, const char *row, Py_ssize_t k, char *filled, bitgen_t *rng) noexcept nogil
    cdef bint cancels(self, const char *row, Py_ssize_t k) noexcept nogil
    cdef void weigh(self, const char *row, float *out) noexcept nogil
    cdef void join(self, const char *row, Py_ssize_t k) noexcept nogil
    cdef void extend(self, const char *row, Py_ssize_t n_tiles, Py_ssize_t opened) noexcept nogil
    cdef void drop(self, Py_ssize_t k) noexcept nogil
    cdef void clear(self, Py_ssize_t k) noexcept nogil
    cdef void refresh(self, Py_ssize_t k) noexcept nogil
    cdef double log_marginal_feature(self, Py_ssize_t f, Py_ssize_t k) noexcept nogil
    cdef double log_marginal(self, Py_ssize_t k) noexcept nogil
    cdef void score_grid(self, Py_ssize_t f, Py_ssize_t h, const double *grid, Py_ssize_t n,
                         double *out) noexcept nogil
    cdef void score_pseudo_counts(self, Py_ssize_t f, const double[:, ::1] value,
                                  double[::1] out) noexcept nogil
    cdef void set_coordinate(self, Py_ssize_t f, Py_ssize_t h, double value) noexcept nogil

    # Add a row to slot k.
    cdef inline void insert(self, const char *row, Py_ssize_t k) noexcept nogil:
        self.update(row, k, 1)

    # Take a row out of slot k. An emptied slot is exactly as new.
    cdef inline void remove(self, const char *row, Py_ssize_t k) noexcept nogil:
        self.update(row, k, -1)
