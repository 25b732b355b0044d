"""Log likelihood of the mean of normal rows with known covariance, row by row.

With L the Cholesky factor of the covariance and A = L^-1, rows are kept as z_n = A x_n, in the
order of the chain. At theta, with t = A theta,

    log p(x_n | theta) = -|z_n - t|^2 / 2 - log det L - D / 2 log(2 pi),
    gradient of a sum over rows = A' (sum z_n - n t).

The sum over rows is not replaced by its sufficient statistics: the model stands for likelihoods
whose cost grows with the rows, as in the paper.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy

import numpy as np

from ._bound cimport BoundTarget

from ._bound import check_shape

cdef enum:
    BLOCK = 8                            # doubles; rows are padded to blocks

cdef extern from "_gaussian_rows.h" nogil:
    int skanneal_level()
    double (*gaussian_squares_v[3])(const double *, const double *, int64_t, int64_t) noexcept
    void (*gaussian_total_v[3])(const double *, double *, int64_t, int64_t) noexcept

cdef int LEVEL = skanneal_level()


cdef class BoundGaussianMean(BoundTarget):
    """One chain's evaluator.

    Parameters
    ----------
    target : GaussianMeanTarget
        `whitened` (rows), `whitener` (A), `log_constant` and `prior_scale`.
    order, sizes : array-like
        As in `Target.bind`.
    """

    cdef const double[:, ::1] source     # (n_rows, width) rows z, padded with zeros
    cdef const double[:, ::1] whitener   # (D, D) A, lower triangular
    cdef const double[:, ::1] columns    # its transpose
    cdef double[:, ::1] rows             # the same rows in the chain's order
    cdef double[::1] centre, total       # (width,) t and a sum over rows
    cdef double log_constant, prior_precision, prior_constant
    cdef Py_ssize_t width

    def __init__(self, target, order, sizes):
        super().__init__(target, order, sizes)
        d = self.n_parameters
        self.width = -(-d // BLOCK) * BLOCK
        check_shape("the target's whitener", target.whitener, (d, d))
        check_shape("the target's whitened", target.whitened, (self.n_rows, d))
        padded = np.zeros((self.n_rows, self.width))
        padded[:, :d] = target.whitened
        self.source = padded
        self.rows = np.empty_like(padded)
        self.whitener = np.ascontiguousarray(target.whitener)
        self.columns = np.ascontiguousarray(target.whitener.T)
        self.centre, self.total = np.zeros(self.width), np.zeros(self.width)
        self.log_constant = target.log_constant
        self.prior_precision = 1.0 / target.prior_scale**2
        self.prior_constant = -0.5 * d * np.log(2.0 * np.pi * target.prior_scale**2)
        self.reorder()

    cdef void reorder(self) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.n_rows):
            memcpy(
                &self.rows[i, 0], &self.source[self.order[i], 0], self.width * sizeof(double)
            )

    cdef void exchange(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        cdef int64_t row = self.order[i]
        self.order[i] = self.order[j]
        self.order[j] = row
        memcpy(&self.rows[i, 0], &self.source[self.order[i], 0], self.width * sizeof(double))
        memcpy(&self.rows[j, 0], &self.source[self.order[j], 0], self.width * sizeof(double))

    cdef double log_prior(self, const double *theta, double *gradient) noexcept nogil:
        cdef double squares = 0.0
        cdef Py_ssize_t i
        for i in range(self.n_parameters):
            squares += theta[i] * theta[i]
            if gradient != NULL:
                gradient[i] = -self.prior_precision * theta[i]
        return self.prior_constant - 0.5 * self.prior_precision * squares

    cdef void whiten(self, const double *theta) noexcept nogil:
        """centre = A theta, column by column."""
        cdef Py_ssize_t i, j, d = self.n_parameters
        cdef double *centre = &self.centre[0]
        cdef const double *column
        cdef double factor
        for i in range(d):
            centre[i] = 0.0
        for j in range(d):
            column, factor = &self.columns[j, 0], theta[j]
            for i in range(j, d):
                centre[i] += factor * column[i]

    cdef double sum_rows(self, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
        """Log likelihood of the rows at positions start .. stop - 1."""
        cdef double squares = gaussian_squares_v[LEVEL](
            &self.rows[start, 0], &self.centre[0], stop - start, self.width // BLOCK
        )
        return (stop - start) * self.log_constant - 0.5 * squares

    cdef void log_likelihood(
        self,
        const double *theta,
        Py_ssize_t level,
        Py_ssize_t known,
        double *values,
        double *gradient,
    ) noexcept nogil:
        cdef Py_ssize_t m, i, j
        cdef double gain
        self.whiten(theta)
        if values != NULL:
            for m in range(known - 1, level - 1, -1):
                if m + 1 < self.n_levels:
                    values[m] = values[m + 1] + self.sum_rows(self.sizes[m + 1], self.sizes[m])
                else:
                    values[m] = self.sum_rows(0, self.sizes[m])
        if gradient == NULL:
            return
        gaussian_total_v[LEVEL](
            &self.rows[0, 0], &self.total[0], self.sizes[level], self.width // BLOCK
        )
        for j in range(self.n_parameters):
            gradient[j] = 0.0
        for i in range(self.n_parameters):
            gain = self.total[i] - <double> self.sizes[level] * self.centre[i]
            for j in range(i + 1):
                gradient[j] += self.whitener[i, j] * gain

    cdef double row_log_likelihood(self, const double *theta, Py_ssize_t position) noexcept nogil:
        self.whiten(theta)
        return self.sum_rows(position, position + 1)
