from libc.stdint cimport int32_t, int64_t

from ._column_family cimport ColumnFamily

cdef extern from "_categorical.h" nogil:
    enum: CATEGORICAL_MEMO
    ctypedef struct CategoricalBlock:
        int32_t n_features, n_dense, n_entries
        int32_t width_stop[3]
        int32_t width_stop_gappy[3]
        const int32_t *offset
        const int32_t *first
        const double *pseudo_count
        const float *pseudo_count_f
        const double *total
        int64_t *size
        int32_t *count
        float *score
        float *constant
        const float **logs
        int32_t log_size
        const char *row
        int64_t *cell_entry
        int64_t *memo_size
        double *memo_value
    int skanneal_level()
    void (*categorical_add_scores_v[3])(CategoricalBlock *, const char *, int64_t, float *) noexcept
    void (*categorical_update_v[3])(CategoricalBlock *, const char *, int64_t, int) noexcept
    void (*categorical_refresh_v[3])(CategoricalBlock *, int64_t) noexcept
    float (*categorical_score_without_v[3])(CategoricalBlock *, const char *, int64_t) noexcept
    void (*fill_log_table_v[3])(float *, float, int64_t) noexcept
    void (*add_log_rises_v[3])(const double *, const int64_t *, const int64_t *, int64_t, double,
                               double *) noexcept

cdef class Categorical(ColumnFamily):
    cdef CategoricalBlock block
    cdef int32_t[::1] first               # (n_features + 1,) first entry; the last of each: missing
    cdef double[::1] pseudo_count         # (n_entries,)
    cdef float[::1] pseudo_count_f
    cdef double[::1] total                # (n_features,) sum of the pseudo-counts
    cdef int32_t[:, ::1] count            # (n_slots, n_entries)
    cdef int64_t[::1] cell_entry          # scratch of the kernels
    cdef int64_t[::1] logs                # (n_entries,) addresses of the tables of logarithms
    cdef object log_tables                # keeps them alive
    cdef object caches                    # keeps the aligned arrays alive
    cdef int64_t[::1] memo_size
    cdef int64_t[:, ::1] tally      # counts, and how often each stands there
    cdef double[::1] memo_value
    cdef void sum_pseudo_counts(self, Py_ssize_t f) noexcept nogil
    cdef Py_ssize_t tally_up(self, Py_ssize_t f, Py_ssize_t e) noexcept nogil
    cdef void add_rises(self, Py_ssize_t n_counts, double sign, const double *a, Py_ssize_t stride,
                        double shift, Py_ssize_t n, double *out) noexcept nogil
    cdef int64_t n_present(self, Py_ssize_t f, Py_ssize_t k) noexcept nogil
