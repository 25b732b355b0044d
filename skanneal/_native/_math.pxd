"""Scalar helpers: see _math.h."""

from libc.math cimport log, log1p
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from "../_native/_math.h" nogil:
    double log_gamma(double x)
    double stirling_rest(double z)
    double log1p_less(double t)
    void fill_log_factorials()
    double log_factorial(uint32_t x)
    void add_log_factorial(double *units, double *rest, uint32_t x, double sign)
    double poisson_peak(double x)
    double log_poisson(uint32_t x, double rate, double log_rate)
    double log_peak(double n, double total, double units, double rest)


cdef inline double log_rising(double x, double n) noexcept nogil:
    """log of the rising factorial x (x + 1) ... (x + n - 1)."""
    return log_gamma(x + n) - log_gamma(x)


cdef enum:
    SMALL = 16   # counts up to here are multiplied out


cdef inline double log_rise(double a, int64_t n) noexcept nogil:
    """The same of a count; no difference of large numbers."""
    cdef double product = 1.0
    cdef int64_t i
    if n <= SMALL:
        for i in range(n):
            product *= a + i
        return log(product)
    if a < SMALL:  # Stirling's formula from a + SMALL on
        for i in range(SMALL):
            product *= a + i
        a += SMALL
        n -= SMALL
    return (n * log(a) + (a + n - 0.5) * log1p(n / a) - n + stirling_rest(a + n)
            - stirling_rest(a) + log(product))


cdef inline double fold(double x, int64_t *exponent) noexcept nogil:
    """x / 2^e in [1, 2), e added to exponent."""
    cdef uint64_t bits
    memcpy(&bits, &x, sizeof(bits))
    exponent[0] += <int64_t> (bits >> 52) - 1023
    bits = (bits & ((<uint64_t> 1 << 52) - 1)) | (<uint64_t> 1023 << 52)
    memcpy(&x, &bits, sizeof(bits))
    return x
