"""Scalar helpers: see _math.h."""

from libc.stdint cimport uint32_t

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
