"""The compiled part of the block sweep: columns choose among views by a table of scores."""

from libc.math cimport INFINITY, exp, log
from libc.stdint cimport int64_t, uint8_t
from numpy.random cimport bitgen_t

import numpy as np

from .._native._random cimport below, bitgen, uniform
from ..partition_priors._base cimport PartitionPrior


def choose_views(view_of, columns, scores, single, PartitionPrior prior, double mean_empty,
                 double single_weight, bit_generator):
    """A Gibbs step of some columns, in random order, on a fixed table of scores.

    Parameters
    ----------
    view_of : int64 array of shape (n_columns,)
        View of each column.
    columns : int64 array of shape (n,)
        Those that may change views.
    scores : float64 array of shape (n, n_views)
        beta times the column's log marginal likelihood in each view, empty ones included.
    single : uint8 array of shape (n_views,)
        Whether a view's rows are one cluster by its prior. Of these views the first empty one
        stands for all; with `single_weight` above 0 there has to be one at any time.
    prior : PartitionPrior
        Over partitions of the columns.
    mean_empty : float
        Expected number of fresh views of the other kind; each that is empty has the share
        (1 - single_weight) open(V) / mean_empty.
    single_weight : float
        Probability that a view's prior allows one cluster only.
    bit_generator : numpy.random.BitGenerator

    Returns
    -------
    view_of : int64 array of shape (n_columns,)
    """
    cdef int64_t[::1] of = np.array(view_of, dtype=np.int64)
    cdef const double[:, ::1] score = np.ascontiguousarray(scores)
    cdef const int64_t[::1] column = columns
    cdef const uint8_t[::1] one = single
    cdef Py_ssize_t n_columns = score.shape[0], i, j, f, v
    cdef Py_ssize_t n_views = score.shape[1]    # less the empty ones at the end, but for one
    cdef int64_t[::1] size = np.bincount(of, minlength=n_views).astype(np.int64)
    cdef int64_t[::1] order = np.arange(n_columns, dtype=np.int64)
    cdef double[::1] weight = np.empty(n_views)
    cdef bitgen_t *rng = bitgen(bit_generator)
    cdef double share = log((1.0 - single_weight) / mean_empty), of_single = log(single_weight)
    cdef double opens, best, total, u
    cdef int64_t n_filled, last
    cdef bint has_single
    with nogil:
        while n_views > 1 and one[n_views - 2] and size[n_views - 1] + size[n_views - 2] == 0:
            n_views -= 1
        for i in range(n_columns - 1, 0, -1):
            j = below(rng, i + 1)
            order[i], order[j] = order[j], order[i]
        for i in range(n_columns):
            f = column[order[i]]
            size[of[f]] -= 1
            n_filled = 0
            for v in range(n_views):
                n_filled += size[v] > 0
            # the only column opens a view with probability 1
            opens = log(prior.open(n_filled)) if n_filled else 0.0
            best = -INFINITY
            has_single = False
            for v in range(n_views):
                if size[v]:
                    weight[v] = prior.log_join(size[v])
                elif not one[v]:
                    weight[v] = opens + share
                else:
                    weight[v] = -INFINITY if has_single else opens + of_single
                    has_single = True
                weight[v] += score[order[i], v]
                best = max(best, weight[v])
            total = 0.0
            for v in range(n_views):
                weight[v] = exp(weight[v] - best)
                total += weight[v]
            u = uniform(rng) * total
            last = n_views - 1
            for v in range(n_views):
                if weight[v] > 0.0:     # rounding must not lead to a view of weight zero
                    last = v
                    if u < weight[v]:
                        break
                    u -= weight[v]
            of[f] = v = last
            size[v] += 1
            if v == n_views - 1 and n_views < score.shape[1]:
                n_views += 1
    return np.asarray(of)


def seat(view_of, const int64_t[::1] chosen, PartitionPrior prior, bit_generator):
    """Draw the views of some columns from the prior, given those of the others.

    Parameters
    ----------
    view_of : int64 array of shape (n_columns,)
        View of each column.
    chosen : int64 array of shape (n_chosen,)
        Columns that are taken out and assigned again, one after another.
    prior : PartitionPrior
        Over partitions of the columns.
    bit_generator : numpy.random.BitGenerator

    Returns
    -------
    view_of : int64 array of shape (n_columns,)
        Views without another column disappear; new ones follow the highest number so far.
    """
    cdef int64_t[::1] of = np.array(view_of, dtype=np.int64)
    cdef Py_ssize_t n_views = int(view_of.max()) + 1, i, v
    cdef int64_t[::1] size = np.zeros(n_views + chosen.shape[0], dtype=np.int64)
    cdef bitgen_t *rng = bitgen(bit_generator)
    cdef int64_t n_seated = of.shape[0] - chosen.shape[0], n_filled, last = 0
    cdef double u
    with nogil:
        for i in range(of.shape[0]):
            size[of[i]] += 1
        for i in range(chosen.shape[0]):
            size[of[chosen[i]]] -= 1
        for i in range(chosen.shape[0]):
            # the first column opens a view with probability 1
            u = uniform(rng) * prior.total(n_seated) if n_seated else INFINITY
            v = n_filled = 0
            while v < n_views:
                if size[v]:
                    last = v
                    n_filled += 1
                    u -= size[v] - prior.reduction
                    if u < 0.0:
                        break
                v += 1
            if v == n_views and n_seated and prior.open(n_filled) == 0.0:
                v = last    # by rounding
            n_views = max(n_views, v + 1)
            of[chosen[i]] = v
            size[v] += 1
            n_seated += 1
    return np.asarray(of)
