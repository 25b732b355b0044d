"""Bring memory into the cache before it is needed."""

cdef extern from *:
    """
    #if defined(__GNUC__)
    #define PREFETCH(p) __builtin_prefetch(p, 0, 3)
    #else
    #define PREFETCH(p)
    #endif
    """
    void prefetch_line "PREFETCH" (const void *p) nogil


cdef inline void prefetch(const char *first, Py_ssize_t n_bytes) noexcept nogil:
    """Fetch n_bytes bytes, at least one."""
    cdef Py_ssize_t at
    for at in range(0, n_bytes, 64):
        prefetch_line(first + at)
    prefetch_line(first + n_bytes - 1)
