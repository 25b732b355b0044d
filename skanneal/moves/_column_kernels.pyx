"""The compiled part of the block sweep: features choose among views by a table of scores."""

from libc.math cimport INFINITY, exp, log
from libc.stdint cimport int64_t
from numpy.random cimport bitgen_t

import numpy as np

from .._native._random cimport below, bitgen, uniform
from ..partition_priors._base cimport PartitionPrior


def choose_views(view_of, features, scores, PartitionPrior prior, double mean_empty,
                 Py_ssize_t n_passes, bit_generator):
    """Gibbs steps of some features, in random order, on a fixed table of scores.

    Parameters
    ----------
    view_of : int64 array of shape (n_columns,)
        View of each feature.
    features : int64 array of shape (n_features,)
        Those that may change views.
    scores : float64 array of shape (n_features, n_views)
        beta times the feature's log marginal likelihood in each view, empty ones included.
    prior : PartitionPrior
        Over partitions of the features.
    mean_empty : float
        Expected number of fresh views; each empty one has the share open(V) / mean_empty.
    n_passes : int
        Steps per feature.
    bit_generator : numpy.random.BitGenerator

    Returns
    -------
    view_of : int64 array of shape (n_columns,)
    """
    cdef int64_t[::1] of = np.array(view_of, dtype=np.int64)
    cdef const double[:, ::1] score = np.ascontiguousarray(scores)
    cdef const int64_t[::1] feature = features
    cdef Py_ssize_t n_columns = score.shape[0], n_views = score.shape[1], i, j, f, v, _pass
    cdef int64_t[::1] size = np.bincount(of, minlength=n_views).astype(np.int64)
    cdef int64_t[::1] order = np.arange(n_columns, dtype=np.int64)
    cdef double[::1] weight = np.empty(n_views)
    cdef bitgen_t *rng = bitgen(bit_generator)
    cdef double share, best, total, u
    cdef int64_t n_filled, last
    with nogil:
        for _pass in range(n_passes):
            for i in range(n_columns - 1, 0, -1):
                j = below(rng, i + 1)
                order[i], order[j] = order[j], order[i]
            for i in range(n_columns):
                f = feature[order[i]]
                size[of[f]] -= 1
                n_filled = 0
                for v in range(n_views):
                    n_filled += size[v] > 0
                # the only feature opens a view with probability 1
                share = log(prior.open(n_filled) / mean_empty) if n_filled else 0.0
                best = -1e308
                for v in range(n_views):
                    weight[v] = score[order[i], v] + (prior.log_join(size[v]) if size[v] else share)
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
    return np.asarray(of)


def seat(view_of, const int64_t[::1] chosen, PartitionPrior prior, bit_generator):
    """Draw the views of some features from the prior, given those of the others.

    Parameters
    ----------
    view_of : int64 array of shape (n_columns,)
        View of each feature.
    chosen : int64 array of shape (n_chosen,)
        Features that are taken out and assigned again, one after another.
    prior : PartitionPrior
        Over partitions of the features.
    bit_generator : numpy.random.BitGenerator

    Returns
    -------
    view_of : int64 array of shape (n_columns,)
        Views without another feature disappear; new ones follow the highest number so far.
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
            # the first feature opens a view with probability 1
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
