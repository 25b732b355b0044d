"""Scalar helpers. lgamma_r, not lgamma: the latter writes the global signgam, a race of threads."""

cdef extern from *:
    """
    #include <math.h>
    static inline double log_gamma(double x)
    {
    #if defined(_MSC_VER) || defined(__APPLE__)
        return lgamma(x);
    #else
        int sign;
        return lgamma_r(x, &sign);
    #endif
    }
    """
    double log_gamma(double x) noexcept nogil


cdef inline double log_rising(double x, double n) noexcept nogil:
    """log of the rising factorial x (x + 1) ... (x + n - 1)."""
    return log_gamma(x + n) - log_gamma(x)
