"""Leave-one-out probabilities of a mixture's rows."""

from libc.math cimport INFINITY, exp, log
from libc.stdint cimport int64_t

import numpy as np

from ..families._base cimport FamilyBlock
from ..families._slots cimport TILE
from ._mixture cimport Mixture


def logs_without(Mixture mixture, rows):
    """log p(row | the other rows of S and their labels) for rows of S, float64 (n,).

    The row's own label is summed out, over the clusters without the row and a new one, and so are
    its fills. In cell units, as in a Gibbs step: terms that depend on the row alone, not on the
    state, may be missing. The state does not change, except for rounding if it has fills.
    """
    cdef const int64_t[::1] row = np.ascontiguousarray(rows, dtype=np.int64)
    cdef Py_ssize_t i, n_others = int(np.sum(mixture.sizes())) - 1
    cdef double[::1] out = np.empty(len(row))
    with nogil:
        for i in range(row.shape[0]):
            out[i] = log_without(mixture, row[i])
    return np.asarray(out) - (log(mixture.prior.total(n_others)) if n_others else 0.0)


cdef double log_without(Mixture mixture, Py_ssize_t row) except? -1.0 nogil:
    """The same of one row, before the prior's weights are normalised."""
    cdef Py_ssize_t b, k = mixture.labels[row], opens = mixture.open_slot
    cdef const char *cells = mixture.table.row(row)
    cdef float log_lik = 0.0, log_prior = mixture.log_prior[k]
    cdef float log_open = mixture.log_prior[opens]
    cdef double out
    if mixture.table.filled(row) != NULL:
        mixture.remove(row)
        mixture.score_cells(mixture.table.observed(row))
        out = log_sum(mixture)
        mixture.insert(row, k)
        return out
    mixture.score_cells(mixture.table.observed(row))
    if mixture.counts[k] == 1:   # without the row there is no such cluster
        mixture.log_prior[k] = -INFINITY
        mixture.log_prior[opens] = <float> mixture.prior.log_open(mixture.n_clusters - 1)
    else:
        for b in range(mixture.n_blocks):
            log_lik += (<FamilyBlock> mixture.pointer[b]).score_without(cells, k)
        mixture.log_lik[k] = log_lik
        mixture.log_prior[k] = mixture.log_join(mixture.counts[k] - 1)
    out = log_sum(mixture)
    mixture.log_prior[k], mixture.log_prior[opens] = log_prior, log_open
    return out


cdef double log_sum(Mixture mixture) noexcept nogil:
    """Log of the sum over slots of exp(log_prior + log_lik)."""
    cdef double largest = -INFINITY, total = 0.0
    cdef Py_ssize_t i
    for i in range(mixture.n_tiles * TILE):
        if mixture.log_prior[i] > -INFINITY:
            largest = max(largest, <double> mixture.log_prior[i] + mixture.log_lik[i])
    for i in range(mixture.n_tiles * TILE):
        if mixture.log_prior[i] > -INFINITY:
            total += exp(<double> mixture.log_prior[i] + mixture.log_lik[i] - largest)
    return largest + log(total)
