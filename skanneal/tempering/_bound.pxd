"""The evaluator of one chain: what a compiled target implements.

Level m holds the rows ``order[:sizes[m]]``; ``sizes[0]`` is all rows, sizes fall strictly and are
at least 1 (a level of no rows is the prior, which no target is asked for). Tempering by powers
binds one level of all rows.
"""

from libc.stdint cimport int64_t


cdef class BoundTarget:
    cdef readonly Py_ssize_t n_parameters, n_rows, n_levels
    cdef readonly bint independent    # the log likelihood is a sum over rows
    cdef readonly bint has_gradient
    cdef int64_t[::1] order           # (n_rows,): the chain's permutation, its own copy
    cdef int64_t[::1] sizes           # (n_levels,)
    cdef readonly object error        # an exception of the user's code, raised after the step
    cdef bint failed                  # whether there is one: loops without the GIL stop

    # Log prior density; the gradient is written where `gradient` is not NULL.  # OUT gradient
    cdef double log_prior(self, const double *theta, double *gradient) noexcept nogil

    # values[m] = log likelihood of level m at theta for m = level .. n_levels - 1, hotter levels
    # included; gradient = that of the log likelihood of `level` alone.  # OUT values, gradient
    # values[known], values[known + 1], .. are right already, for this theta and order (`known` is
    # n_levels where none is), and stay as they are. A level's value is the same whatever level it
    # was asked through: it must not be NaN because a colder one is.
    # values NULL: only the gradient is wanted; gradient NULL: only the values. NaN (or a gradient
    # that is not finite) where the likelihood cannot be had: it counts as rejection.
    cdef void log_likelihood(
        self,
        const double *theta,
        Py_ssize_t level,
        Py_ssize_t known,
        double *values,
        double *gradient,
    ) noexcept nogil

    # The log likelihood of the row at a position of the order; asked if `independent` only.
    cdef double row_log_likelihood(self, const double *theta, Py_ssize_t position) noexcept nogil

    # `order` was changed: gather the rows anew.
    cdef void reorder(self) noexcept nogil

    # Exchange the rows at two positions, in `order` and in what was gathered.
    cdef void exchange(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil
