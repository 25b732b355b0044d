"""One chain's evaluator of a Gaussian process: log marginal likelihoods of prefixes, gradients.

With K the covariance of the rows, noise included, L its Cholesky factor and v = L^-1 y, the log
likelihood of the first n rows needs the first n entries of v and of the diagonal of L alone: one
factorisation serves every hotter level. Where it breaks down, the hotter levels have their own.

A covariance is singular to working precision if the noise is below `SINGULAR` n K_11, which is 2^9
times what rounding may do to a squared pivot, and some squared pivot below `APART` times that.
Where rows follow from others, the noise alone decides: a level whose rows come in another order, or
through another level's factor, has the same density. Rows apart from each other need no noise.

With a = K^-1 y, W = a a' - K^-1, Q the slopes of the kernel (see `gp_kernel` in
_gaussian_process_kernels.h) and x scaled by the length scales,

    d/dlog l_d     = sum over i > j of W_ij Q_ij (x_id - x_jd)^2
    d/dlog sigma_n = sigma_n^2 tr W
    d/dlog sigma_f = tr W (K - sigma_n^2) = y'a - n - sigma_n^2 tr W.

Everything that is quadratic in the rows runs over the lower triangle, in the kernels; what is cubic
is SciPy's BLAS and LAPACK. LAPACK's inverse of a factor spends its time in small blocks and reaches
half the speed of a matrix product: here the factor is halved until 32 rows are left.
"""

from libc.math cimport NAN, exp, log
from libc.stdint cimport int64_t
from scipy.linalg.cython_blas cimport dsyrk, dtrmm, dtrsv
from scipy.linalg.cython_lapack cimport dlauum, dpotrf, dtrtri

import numpy as np

from ..families._slots cimport aligned_zeros
from ._bound cimport BoundTarget

from ._bound import check_shape

cdef double LOG_2_PI = 1.8378770664093453
cdef int SMALL_INVERSE = 32  # rows below which LAPACK's own loops are as fast as halving
cdef int SMALL_PRODUCT = 16
cdef double SINGULAR = 2.0**-44
cdef double APART = 2.0**6

cdef extern from "_gaussian_process.h" nogil:
    enum: GP_RBF
    enum: GP_MATERN32
    enum: GP_MATERN52
    ctypedef struct GpRows:
        int64_t n, d, stride
        const double *scaled
    int skanneal_level()
    void (*gp_covariance_v[3])(
        const GpRows *, const GpRows *, int, double, int64_t, double *, double *
    ) noexcept
    void (*gp_contract_v[3])(
        const GpRows *, int64_t, const double *, const double *, const double *, double *, double *
    ) noexcept

KERNELS = {"rbf": GP_RBF, "matern32": GP_MATERN32, "matern52": GP_MATERN52}


cdef inline int64_t leading(int64_t n) noexcept nogil:
    """Room for n numbers: whole cache lines, and not a power of two, which would put the cells of
    a row into one set of the cache."""
    cdef int64_t padded = (n + 7) & -8
    return padded + 8 if padded % 64 == 0 else padded


cdef void invert_factor(double *factor, int n, int stride) noexcept nogil:
    """Replace a lower triangular matrix by its inverse."""
    cdef int info, head, tail
    cdef double one = 1.0, minus = -1.0
    if n <= SMALL_INVERSE:
        dtrtri("L", "N", &n, factor, &stride, &info)
        return
    head = (n // 2 + 7) & -8
    tail = n - head
    cdef double *below = factor + head
    cdef double *last = below + <int64_t> head * stride
    invert_factor(factor, head, stride)
    invert_factor(last, tail, stride)
    dtrmm("R", "L", "N", "N", &tail, &head, &minus, factor, &stride, below, &stride)
    dtrmm("L", "L", "N", "N", &tail, &head, &one, last, &stride, below, &stride)


cdef void square(double *inverse, int n, int stride) noexcept nogil:
    """Replace a lower triangular T by the lower triangle of T'T."""
    cdef int info, head, tail
    cdef double one = 1.0
    if n <= SMALL_PRODUCT:
        dlauum("L", &n, inverse, &stride, &info)
        return
    head = (n // 2 + 7) & -8
    tail = n - head
    cdef double *below = inverse + head
    cdef double *last = below + <int64_t> head * stride
    square(inverse, head, stride)
    dsyrk("L", "T", &head, &tail, &one, below, &stride, &one, inverse, &stride)
    dtrmm("L", "L", "T", "N", &tail, &head, &one, last, &stride, below, &stride)
    square(last, tail, stride)


cdef class BoundGaussianProcess(BoundTarget):
    """Evaluator of a `GaussianProcessTarget`; theta is log length scales, log sigma_f, log sigma_n.
    """

    cdef const double[:, ::1] X
    cdef const double[::1] y
    cdef const double[::1] location, scale    # of the normal priors of the log length scales
    cdef const double[::1] shape, rate        # of the gamma priors of sigma_f and sigma_n
    cdef const double[::1] constant           # logarithms of the priors' normalisers
    cdef int kernel, variant                  # variant: of the instruction sets
    cdef int64_t n_columns, stride
    cdef object buffers                       # what the pointers point into
    cdef double *cells                        # (n_columns, stride): X in the order
    cdef double *scaled                       # (n_columns, stride): over the length scales
    cdef double *targets                      # (stride,): y in the order
    cdef double *whitened                     # (stride,): v = L^-1 y
    cdef double *weights                      # (stride,): a = K^-1 y
    cdef double *matrix                       # (n_rows, stride): K, then L, then K^-1
    cdef double *slopes                       # (n_rows, stride): Q
    cdef double *sums                         # (n_columns, 8)

    def __init__(self, target, order, sizes):
        super().__init__(target, order, sizes)
        d = self.n_parameters - 2
        shapes = {"X": (self.n_rows, d), "y": (self.n_rows,), "constant": (d + 2,)}
        shapes |= {"location": (d,), "scale": (d,), "shape": (2,), "rate": (2,)}
        for name, shape in shapes.items():
            check_shape(f"the target's {name}", getattr(target, name), shape)
        self.X = target.X
        self.y = target.y
        self.kernel = KERNELS[target.kernel]
        self.variant = skanneal_level()
        self.n_columns = target.X.shape[1]
        self.stride = leading(self.n_rows)
        self.location, self.scale = target.location, target.scale
        self.shape, self.rate = target.shape, target.rate
        self.constant = target.constant
        self.buffers = []
        self.cells = self.room(self.n_columns * self.stride)
        self.scaled = self.room(self.n_columns * self.stride)
        self.targets = self.room(self.stride)
        self.whitened = self.room(self.stride)
        self.weights = self.room(self.stride)
        self.matrix = self.room(self.n_rows * self.stride)
        self.slopes = self.room(self.n_rows * self.stride)
        self.sums = self.room(self.n_columns * 8)
        self.reorder()

    cdef double *room(self, int64_t size) except NULL:
        cdef double[::1] buffer = aligned_zeros((size,), np.float64)
        self.buffers.append(buffer)
        return &buffer[0]

    cdef void reorder(self) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.n_rows):
            self.gather(i)

    cdef void gather(self, Py_ssize_t i) noexcept nogil:
        cdef int64_t d, row = self.order[i]
        self.targets[i] = self.y[row]
        for d in range(self.n_columns):
            self.cells[d * self.stride + i] = self.X[row, d]

    cdef void exchange(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        cdef int64_t row = self.order[i]
        self.order[i] = self.order[j]
        self.order[j] = row
        self.gather(i)
        self.gather(j)

    cdef double log_prior(self, const double *theta, double *gradient) noexcept nogil:
        cdef double value = 0.0, z, sigma
        cdef int64_t d, p
        for d in range(self.n_columns):
            z = (theta[d] - self.location[d]) / self.scale[d]
            value += self.constant[d] - 0.5 * z * z
            if gradient != NULL:
                gradient[d] = -z / self.scale[d]
        for p in range(2):
            d = self.n_columns + p
            sigma = exp(theta[d])
            # shape, not shape - 1: the Jacobian of the logarithm.
            value += self.constant[d] + self.shape[p] * theta[d] - self.rate[p] * sigma
            if gradient != NULL:
                gradient[d] = self.shape[p] - self.rate[p] * sigma
        return value

    cdef void log_likelihood(
        self,
        const double *theta,
        Py_ssize_t level,
        Py_ssize_t known,
        double *values,
        double *gradient,
    ) noexcept nogil:
        cdef int n = <int> self.sizes[level], stride = <int> leading(n), unit = 1, info
        cdef int64_t i, m = self.n_levels - 1
        cdef double signal = exp(2.0 * theta[self.n_columns])
        cdef double noise = exp(2.0 * theta[self.n_columns + 1])
        cdef double fit = 0.0, log_det = 0.0, pivot, least = signal + noise, cut
        cdef bint sound = False
        cdef GpRows rows
        rows.n, rows.d, rows.stride, rows.scaled = n, self.n_columns, self.stride, self.scaled
        self.rescale(theta, n)
        gp_covariance_v[self.variant](
            &rows, &rows, self.kernel, signal, stride, self.matrix,
            self.slopes if gradient != NULL else NULL,
        )
        for i in range(n):
            self.matrix[i * (stride + 1)] = signal + noise
            self.whitened[i] = self.targets[i]
        dpotrf("L", &n, self.matrix, &stride, &info)
        if info == 0:
            dtrsv("L", "N", "N", &n, self.matrix, &stride, self.whitened, &unit)
            for i in range(n):
                pivot = self.matrix[i * (stride + 1)]
                fit += self.whitened[i] * self.whitened[i]
                log_det += log(pivot)
                least = min(least, pivot * pivot)
                if i + 1 == self.sizes[m]:
                    cut = SINGULAR * <double> (i + 1) * (signal + noise)
                    sound = noise > cut or least > APART * cut
                    if values != NULL and m < known:
                        values[m] = -0.5 * (fit + (i + 1) * LOG_2_PI) - log_det if sound else NAN
                    m -= 1
        elif values != NULL:
            values[level] = NAN
            if level + 1 < known:
                self.log_likelihood(theta, level + 1, known, values, NULL)
        if gradient != NULL:
            if sound:
                self.slope(&rows, stride, noise, gradient)
            else:
                for i in range(self.n_parameters):
                    gradient[i] = NAN

    cdef void rescale(self, const double *theta, int64_t n) noexcept nogil:
        """The first n rows over their length scales; whole blocks of 8."""
        cdef int64_t i, d, padded = (n + 7) & -8
        cdef double inverse
        for d in range(self.n_columns):
            inverse = exp(-theta[d])
            for i in range(padded):
                self.scaled[d * self.stride + i] = inverse * self.cells[d * self.stride + i]

    cdef void slope(
        self, const GpRows *rows, int stride, double noise, double *gradient
    ) noexcept nogil:
        """The gradient, from the factor in `matrix` and v."""
        cdef int n = <int> rows.n, unit = 1
        cdef int64_t i
        cdef double fit = 0.0, trace = 0.0
        for i in range((n + 7) & -8):
            self.weights[i] = self.whitened[i] if i < n else 0.0
        dtrsv("L", "T", "N", &n, self.matrix, &stride, self.weights, &unit)
        invert_factor(self.matrix, n, stride)
        square(self.matrix, n, stride)
        gp_contract_v[self.variant](
            rows, stride, self.matrix, self.slopes, self.weights, self.sums, gradient
        )
        for i in range(n):
            trace += self.weights[i] * self.weights[i] - self.matrix[i * (stride + 1)]
            fit += self.targets[i] * self.weights[i]
        gradient[self.n_columns] = fit - n - noise * trace
        gradient[self.n_columns + 1] = noise * trace


def covariance(kernel, A, B, theta):
    """Covariances of the process, without noise, between two sets of rows.

    Parameters
    ----------
    kernel : str
        A name in `KERNELS`.
    A, B : ndarray of shape (n_a, n_columns), (n_b, n_columns)
    theta : ndarray of shape (n_columns + 2,)
        Log length scales, log sigma_f, log sigma_n.

    Returns
    -------
    covariance : ndarray of shape (n_a, n_b), Fortran order
    """
    cdef GpRows a, b
    check_shape("the second set of rows", B, (len(B), A.shape[1]))
    check_shape("theta", theta, (A.shape[1] + 2,))
    cdef double[:, ::1] left = scaled_columns(A, theta), right = scaled_columns(B, theta)
    cdef double signal = exp(2.0 * theta[A.shape[1]])
    cdef int kind = KERNELS[kernel], level = skanneal_level()
    cdef int64_t rows
    a.n, a.d, a.stride, a.scaled = len(A), A.shape[1], left.shape[1], &left[0, 0]
    b.n, b.d, b.stride, b.scaled = len(B), B.shape[1], right.shape[1], &right[0, 0]
    rows = leading(a.n)
    cdef double[::1] out = aligned_zeros((rows * b.n,), np.float64)
    with nogil:
        gp_covariance_v[level](&a, &b, kind, signal, rows, &out[0], NULL)
    return np.asarray(out).reshape(b.n, rows)[:, : a.n].T


def scaled_columns(X, theta):
    """X over its length scales as the kernels read it."""
    stride = leading(len(X))
    out = aligned_zeros((X.shape[1], stride), np.float64)
    out[:, : len(X)] = (X * np.exp(-np.asarray(theta)[: X.shape[1]])).T
    return out
