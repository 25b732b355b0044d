"""Elliptical slices of the logistic-normal multinomial (Murray, Adams and MacKay, 2010).

A feature is eta ~ N(0, I), its logits Lambda eta; Lambda's entries are N(0, scale^2). On an ellipse
the logits are a cosine of one vector and a sine of another, so that a slice costs one product with
Lambda per vector and then only exponentials per angle.

Lambda moves row by row: a row changes one logit of every feature, and the sums of the other
exponentials stay.
"""

from libc.math cimport cos, exp, log, sin, sqrt
from libc.stdint cimport int64_t
from numpy.random cimport bitgen_t

import numpy as np

from .._native._random cimport bitgen, uniform

cdef extern from "_draws.h" nogil:
    void fill_ziggurat()
    double ziggurat_normal(bitgen_t *rng)

cdef extern from "_logistic.h" nogil:
    int skanneal_level()
    double (*log_sum_exp_v[3])(const double *, const double *, double, double, int64_t) noexcept
    double (*row_loss_v[3])(const double *, const double *, double, double, const double *,
                            const double *, const double *, int64_t) noexcept

fill_ziggurat()

cdef enum:
    NEWTON = 4       # steps towards a row's mode
    HALVINGS = 12

cdef double TWO_PI = 6.283185307179586
cdef double NARROW = 1e-14   # angles between which nothing changes any more
cdef double CANCELLED = 1e-9


cdef inline double dot(const double *a, const double *b, Py_ssize_t n) noexcept nogil:
    cdef double out = 0.0
    cdef Py_ssize_t i
    for i in range(n):
        out += a[i] * b[i]
    return out


def log_softmax(const double[:, ::1] eta, const double[:, ::1] loading):
    """Logarithms of the features' probabilities: (n_features, n_columns)."""
    cdef Py_ssize_t K = eta.shape[0], D = loading.shape[0], r = loading.shape[1], k, j
    cdef double[:, ::1] out = np.empty((K, D))
    cdef int level = skanneal_level()
    cdef double total
    with nogil:
        for k in range(K):
            for j in range(D):
                out[k, j] = dot(&loading[j, 0], &eta[k, 0], r)
            total = log_sum_exp_v[level](&out[k, 0], &out[k, 0], 1.0, 0.0, D)
            for j in range(D):
                out[k, j] -= total
    return np.asarray(out)


def slice_features(const double[:, ::1] counts, eta, const double[:, ::1] loading,
                   Py_ssize_t n_steps, bit_generator):
    """Elliptical slices for every feature given its column sums.

    Parameters
    ----------
    counts : float64 array of shape (n_features, at least n_columns)
    eta : float64 array of shape (n_features, rank)
    loading : float64 array of shape (n_columns, rank)
    n_steps : int
        Slices of each feature.
    bit_generator : numpy.random.BitGenerator

    Returns
    -------
    ndarray of shape (n_features, rank)
    """
    cdef bitgen_t *rng = bitgen(bit_generator)
    cdef double[:, ::1] out = np.array(eta, dtype=np.float64, order="C")
    cdef Py_ssize_t K = out.shape[0], D = loading.shape[0], r = loading.shape[1], k, j, i
    cdef double[::1] u = np.empty(D), v = np.empty(D), score = np.empty(r), nu = np.empty(r)
    cdef int level = skanneal_level()
    cdef double total, a, b, height, angle, low, high, c, s
    with nogil:
        for k in range(K):
            total = 0.0
            for i in range(r):
                score[i] = 0.0
            for j in range(D):
                total += counts[k, j]
                if counts[k, j] != 0.0:
                    for i in range(r):
                        score[i] += counts[k, j] * loading[j, i]
            if total == 0.0:   # the prior
                for i in range(r):
                    out[k, i] = ziggurat_normal(rng)
                continue
            for j in range(D):
                u[j] = dot(&loading[j, 0], &out[k, 0], r)
            for _ in range(n_steps):
                for i in range(r):
                    nu[i] = ziggurat_normal(rng)
                for j in range(D):
                    v[j] = dot(&loading[j, 0], &nu[0], r)
                a, b = dot(&score[0], &out[k, 0], r), dot(&score[0], &nu[0], r)
                height = a - total * log_sum_exp_v[level](&u[0], &v[0], 1.0, 0.0, D)
                height += log(1.0 - uniform(rng))
                angle = TWO_PI * uniform(rng)
                low, high = angle - TWO_PI, angle
                while high - low > NARROW:
                    c, s = cos(angle), sin(angle)
                    if (c * a + s * b - total * log_sum_exp_v[level](&u[0], &v[0], c, s, D)
                            > height):
                        for i in range(r):
                            out[k, i] = c * out[k, i] + s * nu[i]
                        for j in range(D):
                            u[j] = c * u[j] + s * v[j]
                        break
                    if angle < 0.0:
                        low = angle
                    else:
                        high = angle
                    angle = low + (high - low) * uniform(rng)
    return np.asarray(out)


def slice_loading(const double[:, ::1] counts, const double[:, ::1] eta, loading, double scale,
                  bit_generator):
    """One elliptical slice for each row of the loading given all features.

    Parameters
    ----------
    counts : float64 array of shape (n_features, at least n_columns)
    eta : float64 array of shape (n_features, rank)
    loading : float64 array of shape (n_columns, rank)
    scale : float
        Prior standard deviation of its entries.
    bit_generator : numpy.random.BitGenerator

    Returns
    -------
    ndarray of shape (n_columns, rank)
    """
    cdef bitgen_t *rng = bitgen(bit_generator)
    cdef double[:, ::1] out = np.array(loading, dtype=np.float64, order="C")
    cdef Py_ssize_t D = out.shape[0], r = out.shape[1], K = 0, k, j, i, m
    # features without rows say nothing of the loading
    totals = np.asarray(counts)[:, :D].sum(axis=1)
    cdef const int64_t[::1] kept = np.flatnonzero(totals > 0).astype(np.int64)
    cdef const double[::1] total = totals[totals > 0]
    K = len(kept)
    cdef double[::1] u = np.empty(K), v = np.empty(K), rest = np.empty(K), shift = np.empty(K)
    cdef double[::1] sums = np.empty(K), logit = np.empty(D), nu = np.empty(r)
    cdef double[::1] score = np.empty(r)
    cdef int level = skanneal_level()
    cdef double a, b, height, angle, low, high, c, s
    cdef const double *feature
    with nogil:
        for k in range(K):
            feature = &eta[kept[k], 0]
            for j in range(D):
                logit[j] = dot(&out[j, 0], feature, r)
            shift[k] = log_sum_exp_v[level](&logit[0], &logit[0], 1.0, 0.0, D)
            sums[k] = 1.0
        for j in range(D):
            for i in range(r):
                nu[i], score[i] = scale * ziggurat_normal(rng), 0.0
            for k in range(K):
                feature = &eta[kept[k], 0]
                u[k], v[k] = dot(&out[j, 0], feature, r), dot(&nu[0], feature, r)
                a = exp(u[k] - shift[k])
                rest[k] = sums[k] - a
                if rest[k] < CANCELLED * a:
                    rest[k] = 0.0
                    for m in range(D):
                        if m != j:
                            rest[k] += exp(dot(&out[m, 0], feature, r) - shift[k])
                if counts[kept[k], j] != 0.0:
                    for i in range(r):
                        score[i] += counts[kept[k], j] * feature[i]
            a, b = dot(&score[0], &out[j, 0], r), dot(&score[0], &nu[0], r)
            height = a + log(1.0 - uniform(rng))
            if K > 0:
                height -= row_loss_v[level](&u[0], &v[0], 1.0, 0.0, &total[0], &rest[0],
                                            &shift[0], K)
            angle = TWO_PI * uniform(rng)
            low, high = angle - TWO_PI, angle
            c, s = 1.0, 0.0
            while high - low > NARROW:
                c, s = cos(angle), sin(angle)
                if K == 0 or c * a + s * b - row_loss_v[level](
                        &u[0], &v[0], c, s, &total[0], &rest[0], &shift[0], K) > height:
                    break
                if angle < 0.0:
                    low = angle
                else:
                    high = angle
                angle = low + (high - low) * uniform(rng)
                c, s = 1.0, 0.0
            for i in range(r):
                out[j, i] = c * out[j, i] + s * nu[i]
            for k in range(K):
                sums[k] = rest[k] + exp(c * u[k] + s * v[k] - shift[k])
    return np.asarray(out)


def modes(const double[:, ::1] counts, const double[:, ::1] loading):
    """For each row of counts, about where its feature's posterior is highest, and how wide it is.

    From a weighted least squares fit of the logarithms of the shares, a few Newton steps; what
    comes out need not be the mode, but is a function of the row and the loading alone.

    Parameters
    ----------
    counts : float64 array of shape (n, at least n_columns)
    loading : float64 array of shape (n_columns, rank)

    Returns
    -------
    mode : ndarray of shape (n, rank)
    factor : ndarray of shape (n, rank, rank)
        Lower Cholesky factors of the negative second derivatives there.
    """
    cdef Py_ssize_t n = counts.shape[0], D = loading.shape[0], r = loading.shape[1], i, j, a
    cdef double[:, ::1] mode = np.zeros((n, r))
    cdef double[:, :, ::1] factor = np.zeros((n, r, r))
    cdef double[::1] p = np.empty(D), step = np.empty(r), point = np.empty(r), centre = np.empty(r)
    cdef int level = skanneal_level()
    cdef double total, now, new, weight, mean
    with nogil:
        for i in range(n):
            total = 0.0
            for j in range(D):
                total += counts[i, j]
            for j in range(D):
                p[j] = (counts[i, j] + 0.5) / (total + 0.5 * D)
            curvature(p, loading, total, centre, &factor[i, 0, 0])
            mean = 0.0
            for j in range(D):
                mean += p[j] * log(p[j])
            for a in range(r):
                step[a] = 0.0
            for j in range(D):
                weight = total * p[j] * (log(p[j]) - mean)
                for a in range(r):
                    step[a] += weight * (loading[j, a] - centre[a])
            solve(&factor[i, 0, 0], &step[0], r)
            for a in range(r):
                mode[i, a] = step[a]
            now = objective(counts[i], loading, mode[i], total, p, level)
            for _ in range(NEWTON):
                curvature(p, loading, total, centre, &factor[i, 0, 0])
                for a in range(r):
                    step[a] = -mode[i, a] - total * centre[a]
                for j in range(D):
                    if counts[i, j] != 0.0:
                        for a in range(r):
                            step[a] += counts[i, j] * loading[j, a]
                solve(&factor[i, 0, 0], &step[0], r)
                weight = 1.0
                for _ in range(HALVINGS):
                    for a in range(r):
                        point[a] = mode[i, a] + weight * step[a]
                    new = objective(counts[i], loading, point, total, p, level)
                    if new > now:
                        break
                    weight *= 0.5
                if not new > now:
                    objective(counts[i], loading, mode[i], total, p, level)
                    break
                now = new
                for a in range(r):
                    mode[i, a] = point[a]
            curvature(p, loading, total, centre, &factor[i, 0, 0])
    return np.asarray(mode), np.asarray(factor)


cdef double objective(const double[::1] counts, const double[:, ::1] loading, double[::1] eta,
                      double total, double[::1] p, int level) noexcept nogil:
    """A row's log posterior at eta, up to a constant; p: the probabilities there."""
    cdef Py_ssize_t D = loading.shape[0], r = loading.shape[1], j
    cdef double out = -0.5 * dot(&eta[0], &eta[0], r), norm
    for j in range(D):
        p[j] = dot(&loading[j, 0], &eta[0], r)
        out += counts[j] * p[j]
    norm = log_sum_exp_v[level](&p[0], &p[0], 1.0, 0.0, D)
    for j in range(D):
        p[j] = exp(p[j] - norm)
    return out - total * norm


cdef void curvature(const double[::1] p, const double[:, ::1] loading, double total,
                    double[::1] centre, double *factor) noexcept nogil:
    """The Cholesky factor of I + total Lambda' (diag p - p p') Lambda; centre: Lambda' p."""
    cdef Py_ssize_t D = loading.shape[0], r = loading.shape[1], j, a, b, m
    cdef double x
    for a in range(r):
        centre[a] = 0.0
    for j in range(D):
        for a in range(r):
            centre[a] += p[j] * loading[j, a]
    for a in range(r):
        for b in range(a + 1):
            factor[a * r + b] = 1.0 if a == b else 0.0
    for j in range(D):
        for a in range(r):
            x = total * p[j] * (loading[j, a] - centre[a])
            for b in range(a + 1):
                factor[a * r + b] += x * (loading[j, b] - centre[b])
    for b in range(r):
        for a in range(b, r):
            x = factor[a * r + b]
            for m in range(b):
                x -= factor[a * r + m] * factor[b * r + m]
            factor[a * r + b] = sqrt(x) if a == b else x / factor[b * r + b]


cdef void solve(const double *factor, double *x, Py_ssize_t r) noexcept nogil:
    """x becomes (L L')^-1 x."""
    cdef Py_ssize_t a, b
    for a in range(r):
        for b in range(a):
            x[a] -= factor[a * r + b] * x[b]
        x[a] /= factor[a * r + a]
    for a in range(r - 1, -1, -1):
        for b in range(a + 1, r):
            x[a] -= factor[b * r + a] * x[b]
        x[a] /= factor[a * r + a]
