"""Arrays of draws, on a NumPy bit generator, by our own samplers (_draws.h)."""

from libc.math cimport exp, log, sqrt
from numpy.random cimport bitgen_t

import numpy as np

from .._native._random cimport bitgen

cdef extern from *:
    """
    #include "numpy/random/bitgen.h"
    """

cdef extern from "_draws.h" nogil:
    ctypedef struct GammaShape:
        pass
    void fill_ziggurat()
    double ziggurat_normal(bitgen_t *rng)
    GammaShape gamma_shape(double shape)
    double log_gamma_variate(bitgen_t *rng, const GammaShape *shape)

fill_ziggurat()

cdef double LEAST_LOG = -80.0   # of a Gamma variate: more than scores in float32 bear


def normals(shape, bit_generator):
    """Standard normal variates: float64 array of a shape."""
    cdef bitgen_t *rng = bitgen(bit_generator)
    out = np.empty(shape)
    cdef double[::1] flat = out.reshape(-1)
    cdef Py_ssize_t i
    with nogil:
        for i in range(flat.shape[0]):
            flat[i] = ziggurat_normal(rng)
    return out


def log_gammas(shapes, bit_generator):
    """Logarithms of Gamma(shape, 1) variates: float64 array of the shape of `shapes`."""
    cdef bitgen_t *rng = bitgen(bit_generator)
    shapes = np.ascontiguousarray(shapes, dtype=np.float64)
    out = np.empty(shapes.shape)
    cdef const double[::1] a = shapes.reshape(-1)
    cdef double[::1] flat = out.reshape(-1)
    cdef GammaShape shape
    cdef Py_ssize_t i
    with nogil:
        for i in range(flat.shape[0]):
            shape = gamma_shape(a[i])
            flat[i] = log_gamma_variate(rng, &shape)
    return out


def log_dirichlet(const double[:, ::1] counts, const double[::1] pseudo_counts, bit_generator):
    """For each row of counts, the logarithm of a Dirichlet(pseudo_counts + counts) vector.

    Parameters
    ----------
    counts : float64 array of shape (n, at least D)
    pseudo_counts : float64 array of shape (D,)
    bit_generator : numpy.random.BitGenerator

    Returns
    -------
    ndarray of shape (n, D)
    """
    cdef bitgen_t *rng = bitgen(bit_generator)
    cdef Py_ssize_t K = counts.shape[0], D = pseudo_counts.shape[0], k, j
    cdef double[:, ::1] out = np.empty((K, D))
    cdef double largest, total, last = -1.0
    cdef GammaShape empty, shape   # most counts are 0, most pseudo-counts the same
    if D == 0:
        return np.asarray(out)
    with nogil:
        for k in range(K):
            for j in range(D):
                if counts[k, j] > 0.0:
                    shape = gamma_shape(pseudo_counts[j] + counts[k, j])
                    out[k, j] = log_gamma_variate(rng, &shape)
                else:
                    if pseudo_counts[j] != last:
                        last = pseudo_counts[j]
                        empty = gamma_shape(last)
                    out[k, j] = log_gamma_variate(rng, &empty)
            largest = out[k, 0]
            for j in range(1, D):
                largest = max(largest, out[k, j])
            total = 0.0
            for j in range(D):
                total += exp(out[k, j] - largest)
            largest += log(total)
            for j in range(D):
                out[k, j] -= largest
    return np.asarray(out)


def inverse_factors(factors, degrees, bit_generator):
    """Inverse Cholesky factors of inverse Wishart matrices.

    With scale = L L' and an upper triangular U such that U U' ~ Wishart(degrees, I) (Bartlett's,
    from the last row up), the matrix L (U U')^-1 L' has the lower Cholesky factor L U^-T, whose
    inverse is U' L^-1.

    Parameters
    ----------
    factors : float64 array of shape (n, d, d)
        L^-1: what `inverse_cholesky` makes of the scales.
    degrees : float64 array of shape (n,)
        Above d - 1.
    bit_generator : numpy.random.BitGenerator

    Returns
    -------
    ndarray of shape (n, d (d + 1) / 2)
        Lower triangles, row by row.
    """
    cdef bitgen_t *rng = bitgen(bit_generator)
    cdef const double[:, :, ::1] factor = np.ascontiguousarray(factors, dtype=np.float64)
    cdef const double[::1] nu = np.ascontiguousarray(degrees, dtype=np.float64)
    cdef Py_ssize_t n = factor.shape[0], d = factor.shape[1], k, i, j, m
    cdef double[:, ::1] out = np.empty((n, d * (d + 1) // 2)), upper = np.zeros((d, d))
    cdef GammaShape shape
    cdef double total
    with nogil:
        for k in range(n):
            for i in range(d):
                shape = gamma_shape(0.5 * (nu[k] - (d - 1 - i)))
                upper[i, i] = sqrt(2.0 * exp(max(LEAST_LOG, log_gamma_variate(rng, &shape))))
                for j in range(i + 1, d):
                    upper[i, j] = ziggurat_normal(rng)
            for i in range(d):
                for j in range(i + 1):
                    total = 0.0
                    for m in range(j, i + 1):   # U'_im (L^-1)_mj
                        total += upper[m, i] * factor[k, m, j]
                    out[k, i * (i + 1) // 2 + j] = total
    return np.asarray(out)


def inverse_cholesky(matrices, least=0.0):
    """Inverse Cholesky factors of positive definite matrices: lower triangles in (n, d, d).

    One place for all of them, and in compiled loops: a BLAS gives other bits elsewhere.

    Parameters
    ----------
    matrices : float64 array of shape (n, d, d)
        The lower triangles are read.
    least : float or float64 array that broadcasts to (n, d), default=0.0
        What stands for a pivot of which rounding has left less.

    Returns
    -------
    ndarray of shape (n, d, d)
    """
    cdef double[:, :, ::1] out = np.array(matrices, dtype=np.float64, order="C")
    cdef Py_ssize_t d = out.shape[1], k, i, j
    cdef const double[:, ::1] pivots = np.ascontiguousarray(np.broadcast_to(least, (len(out), d)))
    cdef bint singular = False
    with nogil:
        for k in range(out.shape[0]):
            if not invert_factor(&out[k, 0, 0], d, &pivots[k, 0]):
                singular = True
                break
            for i in range(d):
                for j in range(i + 1, d):
                    out[k, i, j] = 0.0
    if singular:
        raise ValueError("a matrix is not positive definite")
    return np.asarray(out)


def add_squares(factors, vectors):
    """Inverse Cholesky factors of A + v v', given those of A: see _multivariate_normal_kernels.h.

    Parameters
    ----------
    factors : float64 array of shape (n, d, d)
    vectors : float64 array of shape (n, d)
        Of any length: no digits of A are lost.

    Returns
    -------
    ndarray of shape (n, d, d)
    """
    cdef double[:, :, ::1] out = np.array(factors, dtype=np.float64, order="C")
    cdef const double[:, ::1] v = np.ascontiguousarray(vectors, dtype=np.float64)
    cdef Py_ssize_t d = out.shape[1], k, i, j
    cdef double[::1] partial = np.empty(d)
    cdef double before, after, p, own, other, old
    with nogil:
        for k in range(out.shape[0]):
            before = 1.0
            partial[:] = 0.0
            for i in range(d):
                p = 0.0
                for j in range(i + 1):
                    p += out[k, i, j] * v[k, j]
                after = before + p * p
                own, other = sqrt(before / after), p / sqrt(before) / sqrt(after)
                for j in range(i + 1):
                    old = out[k, i, j]
                    out[k, i, j] = own * old - other * partial[j]
                    partial[j] += p * old
                before = after
    return np.asarray(out)


cdef bint invert_factor(double *a, Py_ssize_t d, const double *least) noexcept nogil:
    """The lower triangle of a becomes L^-1, a = L L'; false if there is none."""
    cdef Py_ssize_t i, j, m
    cdef double total
    for j in range(d):
        for i in range(j, d):
            total = a[i * d + j]
            for m in range(j):
                total -= a[i * d + m] * a[j * d + m]
            if i == j:
                total = max(total, least[j])
                if not total > 0.0:
                    return False
                a[j * d + j] = sqrt(total)
            else:
                a[i * d + j] = total / a[j * d + j]
    for j in range(d):
        a[j * d + j] = 1.0 / a[j * d + j]
        for i in range(j + 1, d):
            total = 0.0
            for m in range(j, i):
                total -= a[i * d + m] * a[m * d + j]
            a[i * d + j] = total / a[i * d + i]
    return True
