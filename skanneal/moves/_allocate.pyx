"""Sequential allocation of rows to the clusters of one view, with its normalising constants."""

from libc.math cimport INFINITY, exp, log
from libc.stdint cimport int32_t, int64_t
from numpy.random cimport bitgen_t

import numpy as np

from .._native._random cimport below, bitgen
from ..families._slots cimport TILE
from ..states._mixture cimport Mixture


def allocate(Mixture view, rows, labels, double beta, bit_generator):
    """Assign rows to clusters, one after another in random order.

    Row t joins with probability proportional to (n_k - d) p(x | x_k)^beta, or opens a cluster with
    (alpha + d K) p(x)^beta; Z_t is the sum of these weights over t + alpha. The product of the Z_t
    estimates the marginal likelihood without bias (sequential imputation), and equals
    p(partition) p(x | partition)^beta over the probability of the allocation.

    Parameters
    ----------
    view : Mixture
        Without rows; they are added here.
    rows : int64 array of shape (n,)
    labels : int32 array of shape (n,) or None
        A partition that every row is forced into; None draws one.
    beta : float
        Exponent of the likelihood.
    bit_generator : numpy.random.BitGenerator

    Returns
    -------
    float
        Sum of log Z_t.
    """
    cdef int64_t[::1] row = np.array(rows, dtype=np.int64)
    cdef bint forced = labels is not None
    cdef int32_t[::1] label = np.array(labels if forced else [], dtype=np.int32)
    cdef int64_t[::1] slot_of = np.full(int(labels.max(initial=-1)) + 1 if forced else 0, -1)
    cdef bitgen_t *rng = bitgen(bit_generator)
    cdef Py_ssize_t n = row.shape[0], t, j, k
    cdef double log_z = 0.0
    with nogil:
        for t in range(n):
            j = t + below(rng, n - t)
            row[t], row[j] = row[j], row[t]
            if forced:
                label[t], label[j] = label[j], label[t]
            view.score_cells(view.table.observed(row[t]))
            log_z += log_normaliser(view, beta, t)
            if not forced:
                k = view.draw(<float> beta, rng)
            elif slot_of[label[t]] < 0:
                k = slot_of[label[t]] = view.open_slot
            else:
                k = slot_of[label[t]]
            view.insert(row[t], k)
    return log_z


cdef double log_normaliser(Mixture view, double beta, Py_ssize_t t) noexcept nogil:
    """log Z of a row that has just been scored, with t rows in the view."""
    cdef double largest = -INFINITY, total = 0.0
    cdef Py_ssize_t k
    for k in range(view.n_tiles * TILE):
        largest = max(largest, view.log_prior[k] + beta * view.log_lik[k])
    for k in range(view.n_tiles * TILE):
        if view.log_prior[k] > -INFINITY:
            total += exp(view.log_prior[k] + beta * view.log_lik[k] - largest)
    return largest + log(total) - (log(view.prior.total(t)) if t else 0.0)


def enter_rows(Mixture view, order, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t n_steps,
               double beta, bit_generator):
    """Add the rows order[start:stop] to a view that holds order[:start].

    Parameters
    ----------
    view : Mixture
    order : int64 array of shape (n,)
    start, stop : int
    n_steps : int
        Gibbs steps of random rows of the view after each that enters.
    beta : float
        Exponent of the likelihood.
    bit_generator : numpy.random.BitGenerator

    Returns
    -------
    float
        Sum of log Z_t, as of `allocate`.
    """
    cdef const int64_t[::1] row = order
    cdef bitgen_t *rng = bitgen(bit_generator)
    cdef Py_ssize_t t
    cdef double log_z = 0.0
    with nogil:
        for t in range(start, stop):
            view.score_cells(view.table.observed(row[t]))
            log_z += log_normaliser(view, beta, t)
            view.insert(row[t], view.draw(<float> beta, rng))
            steps(view, row, t + 1, n_steps, beta, rng)
    return log_z


def leave_rows(Mixture view, order, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t n_steps,
               double beta, bit_generator):
    """The reverse of `enter_rows`: the rows order[start:stop] leave, the last first, each after
    `n_steps` Gibbs steps; the Z_t of each is computed once the row is out."""
    cdef const int64_t[::1] row = order
    cdef bitgen_t *rng = bitgen(bit_generator)
    cdef Py_ssize_t t
    cdef double log_z = 0.0
    with nogil:
        for t in range(stop - 1, start - 1, -1):
            steps(view, row, t + 1, n_steps, beta, rng)
            view.remove(row[t])
            view.score_cells(view.table.observed(row[t]))
            log_z += log_normaliser(view, beta, t)
    return log_z


cdef int steps(Mixture view, const int64_t[::1] row, Py_ssize_t n, Py_ssize_t n_steps, double beta,
               bitgen_t *rng) except -1 nogil:
    """Gibbs steps of rows drawn at random from the first n: each step is reversible."""
    cdef Py_ssize_t _i
    for _i in range(n_steps):
        view.gibbs_step(row[below(rng, n)], <float> beta, rng)
    return 0
