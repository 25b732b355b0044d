"""Draws from a NumPy bit generator, by our own samplers: streams do not depend on NumPy's version.

Only `next_double` is used, so any bit generator serves. One generator per chain: no locks.
"""

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport cos, exp, log, pow, sqrt
from libc.stdint cimport int64_t
from numpy.random cimport bitgen_t


cdef inline bitgen_t *bitgen(object bit_generator) except NULL:
    """The C generator inside a numpy.random.BitGenerator, which must outlive the pointer."""
    return <bitgen_t *> PyCapsule_GetPointer(bit_generator.capsule, "BitGenerator")


cdef inline double uniform(bitgen_t *rng) noexcept nogil:
    """Uniform on [0, 1)."""
    return rng.next_double(rng.state)


cdef inline int64_t below(bitgen_t *rng, int64_t n) noexcept nogil:
    """Uniform on 0, ..., n - 1; off by less than n / 2^53."""
    cdef int64_t i = <int64_t> (uniform(rng) * <double> n)
    return i if i < n else n - 1


cdef inline double standard_normal(bitgen_t *rng) noexcept nogil:
    """Box and Muller's, one of the pair."""
    cdef double radius = sqrt(-2.0 * log(1.0 - uniform(rng)))
    return radius * cos(6.283185307179586 * uniform(rng))


cdef inline double standard_gamma(bitgen_t *rng, double shape) noexcept nogil:
    """Gamma(shape, 1) by Marsaglia and Tsang (2000); shapes below 1 through shape + 1."""
    cdef double boost = 1.0, d, c, x, v
    if shape < 1.0:
        boost = pow(1.0 - uniform(rng), 1.0 / shape)
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / sqrt(9.0 * d)
    while True:
        x = standard_normal(rng)
        v = 1.0 + c * x
        if v <= 0.0:
            continue
        v = v * v * v
        if log(1.0 - uniform(rng)) < 0.5 * x * x + d - d * v + d * log(v):
            return boost * d * v


cdef inline Py_ssize_t draw_index(double *weight, Py_ssize_t n, double beta,
                                  double u) noexcept nogil:
    """Index with probability proportional to exp(beta weight); weight is overwritten."""
    cdef Py_ssize_t i
    cdef double largest = weight[0], total = 0.0
    for i in range(1, n):
        largest = max(largest, weight[i])
    for i in range(n):
        weight[i] = exp(beta * (weight[i] - largest))
        total += weight[i]
    u *= total
    for i in range(n - 1):
        u -= weight[i]
        if u < 0.0:
            return i
    return n - 1
