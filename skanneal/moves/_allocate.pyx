"""Sequential allocation of rows to the clusters of one view, with its normalising constants."""

from libc.math cimport INFINITY, exp, log
from libc.stdint cimport int32_t, int64_t
from numpy.random cimport bitgen_t

import numpy as np

from .._native._random cimport below, bitgen
from ..families._base cimport TILE
from ..states._mixture cimport Mixture


def allocate(Mixture view, rows, labels, double beta, bit_generator):
    """Give rows, in random order, clusters one after another.

    Row t joins with probability proportional to (n_k - d) p(x | x_k)^beta, or opens a cluster with
    (alpha + d K) p(x)^beta; Z_t is the sum of these weights over t + alpha. The product of the Z_t
    estimates the marginal likelihood without bias (sequential imputation), and equals
    p(partition) p(x | partition)^beta over the probability of the allocation.

    Parameters
    ----------
    view : Mixture
        Empty; filled here.
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
    cdef double log_z = 0.0, largest, total
    with nogil:
        for t in range(n):
            j = t + below(rng, n - t)
            row[t], row[j] = row[j], row[t]
            if forced:
                label[t], label[j] = label[j], label[t]
            view.score_cells(view.table.observed(row[t]))
            largest, total = -INFINITY, 0.0
            for k in range(view.n_tiles * TILE):
                largest = max(largest, view.log_prior[k] + beta * view.log_lik[k])
            for k in range(view.n_tiles * TILE):
                if view.log_prior[k] > -INFINITY:
                    total += exp(view.log_prior[k] + beta * view.log_lik[k] - largest)
            log_z += largest + log(total)
            if t:
                log_z -= log(view.prior.total(t))
            if not forced:
                k = view.draw(<float> beta, rng)
            elif slot_of[label[t]] < 0:
                k = slot_of[label[t]] = view.open_slot
            else:
                k = slot_of[label[t]]
            view.insert(row[t], k)
    return log_z
