"""Base of the compiled evaluators, and the one of targets written in Python."""

from libc.math cimport NAN
from libc.stdint cimport int64_t
from libc.string cimport memcpy

import numpy as np

from ._given import as_numbers


cdef class BoundTarget:
    """One chain's evaluator; a subclass overrides the cdef methods and calls ``super().__init__``.

    Parameters
    ----------
    target : Target
        Says `n_parameters`, `independent` and `has_gradient`.
    order : array-like of shape (n_rows,)
        A permutation of the rows; copied.
    sizes : array-like of shape (n_levels,)
        Rows of each level.
    """

    def __init__(self, target, order, sizes):
        self.n_parameters = target.n_parameters
        self.n_rows = target.n_rows
        self.independent = target.independent
        self.has_gradient = target.has_gradient
        order, sizes = np.array(order, dtype=np.int64), np.array(sizes, dtype=np.int64)
        check_order(order, self.n_rows)
        if sizes.ndim != 1 or not len(sizes) or sizes.min() < 0 or sizes.max() > self.n_rows:
            raise ValueError(f"sizes must lie between 0 and the {self.n_rows} rows, got {sizes}.")
        self.order, self.sizes = order, sizes
        self.n_levels = len(self.sizes)
        self.error = None
        self.failed = False

    cdef double log_prior(self, const double *theta, double *gradient) noexcept nogil:
        return NAN

    cdef void log_likelihood(
        self,
        const double *theta,
        Py_ssize_t level,
        Py_ssize_t known,
        double *values,
        double *gradient,
    ) noexcept nogil:
        if values != NULL:
            values[level] = NAN

    cdef double row_log_likelihood(self, const double *theta, Py_ssize_t position) noexcept nogil:
        return NAN

    cdef void reorder(self) noexcept nogil:
        pass

    cdef void exchange(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        cdef int64_t row = self.order[i]
        self.order[i] = self.order[j]
        self.order[j] = row
        self.reorder()

    # ---- the same for Python: re-centred levels, the check of gradients --------------------------

    def get_order(self):
        """The permutation, a copy."""
        return np.array(self.order)

    def set_order(self, order):
        """Another permutation of the rows."""
        order = np.array(order, dtype=np.int64)
        check_order(order, self.n_rows)
        cdef int64_t[::1] given = order
        self.order[:] = given
        self.reorder()

    def prior(self, theta, bint gradient=False):
        """Log prior and its gradient (or None)."""
        cdef double[::1] at = self.point(theta)
        cdef double[::1] out = np.zeros(self.n_parameters)
        cdef double value
        with nogil:
            value = self.log_prior(&at[0], &out[0] if gradient else NULL)
        self.raise_error()
        return value, np.asarray(out) if gradient else None

    def evaluate(self, theta, Py_ssize_t level=0, bint gradient=False):
        """Log likelihoods of `level` and all hotter levels, and the gradient of `level`'s."""
        cdef double[::1] at = self.point(theta)
        cdef double[::1] out = np.zeros(self.n_parameters)
        cdef double[::1] values = np.zeros(self.n_levels)
        check_below(self.n_levels, level=level)
        with nogil:
            self.log_likelihood(
                &at[0], level, self.n_levels, &values[0], &out[0] if gradient else NULL
            )
        self.raise_error()
        return np.asarray(values)[level:], np.asarray(out) if gradient else None

    def evaluate_many(self, thetas, Py_ssize_t level):
        """Log priors of so many thetas, and log likelihoods of `level` and all hotter levels."""
        check_shape("thetas", thetas, (len(thetas), self.n_parameters))
        cdef double[:, ::1] at = np.array(thetas, dtype=np.float64, order="C")
        cdef Py_ssize_t i, n = at.shape[0]
        check_below(self.n_levels, level=level)
        cdef double[::1] prior = np.zeros(n)
        cdef double[:, ::1] values = np.zeros((n, self.n_levels))
        with nogil:
            for i in range(n):
                prior[i] = self.log_prior(&at[i, 0], NULL)
                self.log_likelihood(&at[i, 0], level, self.n_levels, &values[i, 0], NULL)
        self.raise_error()
        return np.asarray(prior), np.asarray(values)[:, level:]

    def point(self, theta):
        """A copy of theta, of the right length."""
        theta = np.array(theta, dtype=np.float64)
        check_shape("theta", theta, (self.n_parameters,))
        return theta

    def raise_error(self):
        """Raise what the user's code raised, if it did."""
        error, self.error, self.failed = self.error, None, False
        if error is not None:
            raise error


def check_order(order, n_rows):
    """Raise a ValueError unless an array holds the position of every row once."""
    if not np.array_equal(np.sort(order, axis=None), np.arange(n_rows)) or order.ndim != 1:
        raise ValueError(f"the order must hold every one of {n_rows} rows once, got {order}.")


def check_shape(what, array, shape):
    """Raise a ValueError unless an array has this shape."""
    if np.shape(array) != shape:
        raise ValueError(f"{what} must have the shape {shape}, got {np.shape(array)}.")


def check_below(end, **named):
    """Raise a ValueError unless a number, given by its name, counts from 0 to below the end."""
    ((name, number),) = named.items()
    if not 0 <= number < end:
        raise ValueError(f"{name} must be in 0 .. {end - 1}, got {number}.")


cdef class BoundPython(BoundTarget):
    """Evaluator of a target in plain Python: every evaluation takes the GIL."""

    cdef object target

    def __init__(self, target, order, sizes):
        super().__init__(target, order, sizes)
        self.target = target

    cdef double log_prior(self, const double *theta, double *gradient) noexcept nogil:
        cdef double value = NAN
        with gil:
            if self.error is None:
                try:
                    value = self.call_prior(theta, gradient)
                except BaseException as error:
                    self.error, self.failed = error, True
        return value

    cdef void log_likelihood(
        self,
        const double *theta,
        Py_ssize_t level,
        Py_ssize_t known,
        double *values,
        double *gradient,
    ) noexcept nogil:
        with gil:
            if values != NULL:
                values[level] = NAN
            if self.error is None:
                try:
                    self.call_likelihood(theta, level, known, values, gradient)
                except BaseException as error:
                    self.error, self.failed = error, True

    cdef double row_log_likelihood(self, const double *theta, Py_ssize_t position) noexcept nogil:
        cdef double value = NAN
        with gil:
            if self.error is None:
                try:
                    value = self.call_rows(theta, position, position + 1, NULL)
                except BaseException as error:
                    self.error, self.failed = error, True
        return value

    cdef double call_prior(self, const double *theta, double *gradient) except *:
        answer = self.target.log_prior(self.copy(theta), gradient=gradient != NULL)
        return self.take(answer, gradient, "log_prior")

    cdef double call_rows(
        self, const double *theta, Py_ssize_t start, Py_ssize_t stop, double *gradient
    ) except *:
        rows = np.array(self.order[start:stop])
        answer = self.target.log_likelihood(self.copy(theta), rows, gradient=gradient != NULL)
        return self.take(answer, gradient, "log_likelihood")

    cdef int call_likelihood(
        self,
        const double *theta,
        Py_ssize_t level,
        Py_ssize_t known,
        double *values,
        double *gradient,
    ) except -1:
        cdef Py_ssize_t m, start
        if values == NULL:
            self.call_rows(theta, 0, self.sizes[level], gradient)
            return 0
        if gradient != NULL:
            # The whole level at once: its gradient is wanted in one piece.
            values[level] = self.call_rows(theta, 0, self.sizes[level], gradient)
            level += 1
        for m in range(min(known, self.n_levels) - 1, level - 1, -1):
            start = self.sizes[m + 1] if self.independent and m + 1 < self.n_levels else 0
            values[m] = self.call_rows(theta, start, self.sizes[m], NULL)
            if start:
                values[m] += values[m + 1]
        return 0

    cdef object copy(self, const double *theta):
        copied = np.empty(self.n_parameters)
        cdef double[::1] view = copied
        memcpy(&view[0], theta, self.n_parameters * sizeof(double))
        return copied

    cdef double take(self, answer, double *gradient, name) except *:
        """The value that a method answers with; its gradient is written where one is asked for."""
        cdef double number
        owner = type(self.target).__name__
        try:
            value, slope = answer
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"{name} of {owner} must return a value and a gradient or None, got {answer!r}."
            ) from error
        try:
            number = value
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"the value of {name} of {owner} must be a number, got {value!r}."
            ) from error
        if gradient != NULL:
            self.write(slope, gradient, name)
        return number

    cdef int write(self, slope, double *gradient, name) except -1:
        if slope is None:
            raise ValueError(
                f"{name} of {type(self.target).__name__} returned no gradient though has_gradient "
                f"is true."
            )
        cdef double[::1] view = as_numbers(f"the gradient of {name}", slope).ravel()
        if len(view) != self.n_parameters:
            raise ValueError(
                f"the gradient of {name} has {len(view)} entries, {type(self.target).__name__} "
                f"has {self.n_parameters} parameters."
            )
        memcpy(gradient, &view[0], self.n_parameters * sizeof(double))
        return 0
