from libc.stdint cimport int32_t, int64_t

from ._number_rows cimport NumberRows

cdef extern from "_multivariate_normal_block.h" nogil:
    enum: MVN_MEMO
    ctypedef struct MvnBlock:
        int64_t d, stride
        const int32_t *offset
        const double *mu0
        const double *kappa0
        const double *nu0
        const double *scale0
        double *prior_factor
        int64_t *size
        double *total
        int64_t *updates
        double *mean
        double *scatter
        double *factor
        double *log_det
        float *location
        float *weights
        float *student
        double *cell
        double *shift
        double *vector
        double *partial
        double *along
        double *pair
        double *lower
        double *spare
        float *deviation
        const int64_t *gap
        float *spanned
        int64_t *memo_size
        double *memo_value


cdef class MultivariateNormal(NumberRows):
    cdef MvnBlock block
    cdef Py_ssize_t stride
    cdef double[::1] hyper                 # flat
    cdef double prior_log_det              # sum of log W_ii of scale0
    cdef double[::1] total                 # (n_slots,) sum of the rows' weights
    cdef double[:, ::1] mean               # (n_slots, stride)
    cdef double[:, :, ::1] scatter, factor   # (n_slots, d, stride), lower
    cdef int64_t[::1] updates              # (n_slots,)
    cdef double[::1] log_det               # (n_slots,)
    cdef bint stale                        # have factors to be made anew from the scatters?
    cdef object scratch, caches, memo, spans   # keep the arrays alive

    cdef double weight_of(self, const char *row) noexcept nogil
    cdef void enter(self, const char *row, Py_ssize_t k) noexcept nogil
    cdef void settle(self, Py_ssize_t k) noexcept nogil
    cdef void distances(self, const char *row, Py_ssize_t n_tiles, float *q,
                        float *constant) noexcept nogil
    cdef double distance_without(self, const char *observed, const char *row, Py_ssize_t k,
                                 double *log_det) noexcept nogil
    cdef void _factorise_prior(self) noexcept nogil
    cdef void _refactor_all(self) noexcept nogil
    cdef void _set_variance(self, Py_ssize_t j) noexcept nogil
    cdef double marginal(self, Py_ssize_t k) noexcept nogil
    cdef void _score_kappa0(self, const double *grid, Py_ssize_t n_grid,
                            double *out) noexcept nogil
    cdef void _score_nu0(self, const double *grid, Py_ssize_t n_grid, double *out) noexcept nogil
    cdef double _inverse_diagonal(self, const double *factor, Py_ssize_t j) noexcept nogil
    cdef void _score_variance(self, Py_ssize_t j, const double *grid, Py_ssize_t n_grid,
                              double *out) noexcept nogil
    cdef void _score_any(self, Py_ssize_t h, const double *grid, Py_ssize_t n_grid,
                         double *out) noexcept nogil
    cdef double rate(self, Py_ssize_t k) noexcept nogil
    cdef double _solve(self, Py_ssize_t k, double *y) noexcept nogil
