"""The pair of rows of a split or a merge, how probable it was, and the rows of its clusters.

Row i is uniform in S. With `uniform_pairs` row j is, too. Else it is in i's cluster with
probability 1/2, uniform in it. Otherwise it is uniform among all rows outside or, as often, in
another cluster, which is drawn with the weight with which i would join it. These weights are in the
mixture's `log_lik`.
"""

from libc.float cimport FLT_MAX
from libc.math cimport INFINITY, exp, fmaxf, log
from libc.stdint cimport int64_t
from numpy.random cimport bitgen_t

from .._native._random cimport below, uniform
from ..families._slots cimport TILE
from ..states._mixture cimport Mixture


cdef inline double same_share(int64_t size, int64_t n, bint uniform_pairs) noexcept nogil:
    """Probability of choosing j from i's own cluster."""
    if uniform_pairs:
        return (size - 1.0) / (n - 1.0)
    return 0.0 if size == 1 else 1.0 if size == n else 0.5


cdef inline int64_t partner(Mixture mixture, const int64_t[::1] rows, int64_t i, bint same,
                            bitgen_t *rng) noexcept nogil:
    """Another place of rows, uniform in the cluster of place i or outside it."""
    cdef Py_ssize_t k = mixture.labels[rows[i]]
    cdef int64_t at = i
    while at == i or (mixture.labels[rows[at]] == k) != same:
        at = below(rng, rows.shape[0])
    return at


cdef inline void weigh_others(Mixture mixture, int64_t row, double beta) noexcept nogil:
    """The log weight with which a row would join each cluster but its own, in the mixture's
    `log_lik`; -inf of its own, and of slots without a cluster."""
    cdef Py_ssize_t k
    mixture.score_cells(mixture.table.row(row))
    for k in range(mixture.n_tiles * TILE):
        if k == mixture.labels[row] or mixture.counts[k] == 0:
            mixture.log_lik[k] = -INFINITY
        else:
            mixture.log_lik[k] = fmaxf(mixture.log_prior[k] + beta * mixture.log_lik[k], -FLT_MAX)


cdef inline double log_total(Mixture mixture) noexcept nogil:
    """Log of the sum of the weights in `log_lik`; -inf if there is none."""
    cdef Py_ssize_t k
    cdef double most = -INFINITY, total = 0.0
    for k in range(mixture.n_tiles * TILE):
        most = max(most, mixture.log_lik[k])
    if most == -INFINITY:
        return most
    for k in range(mixture.n_tiles * TILE):
        total += exp(mixture.log_lik[k] - most)
    return most + log(total)


cdef inline Py_ssize_t near_cluster(Mixture mixture, bitgen_t *rng) noexcept nogil:
    """A cluster by the weights in `log_lik`."""
    cdef Py_ssize_t k, last = 0
    cdef double total = log_total(mixture), left = uniform(rng)
    for k in range(mixture.n_tiles * TILE):
        if mixture.log_lik[k] > -INFINITY:
            last = k
            left -= exp(mixture.log_lik[k] - total)
            if left < 0.0:
                break
    return last


cdef inline int64_t place_in(Mixture mixture, const int64_t[::1] rows, Py_ssize_t k,
                             bitgen_t *rng) noexcept nogil:
    """A place of rows, uniform in a cluster."""
    cdef int64_t at = below(rng, rows.shape[0])
    while mixture.labels[rows[at]] != k:
        at = below(rng, rows.shape[0])
    return at


cdef inline double log_inside(int64_t size, int64_t n, bint uniform_pairs) noexcept nogil:
    """log probability of a given j in i's cluster of `size` rows."""
    return log(same_share(size, n, uniform_pairs) / (size - 1))


cdef inline double log_outside(int64_t size, int64_t other, int64_t n, double near,
                               bint uniform_pairs) noexcept nogil:
    """log probability of a given j in a cluster of `other` rows, which is not i's of `size`; `near`
    is the probability of its cluster where that is drawn by weight."""
    cdef double share = 1.0 - same_share(size, n, uniform_pairs)
    if uniform_pairs:
        return log(share / (n - size))
    return log(share * 0.5 * (1.0 / (n - size) + near / other))


cdef inline void gather(Mixture mixture, const int64_t[::1] rows, const int64_t[::1] places,
                        const int64_t[::1] first, int64_t i, int64_t j, int64_t[::1] members,
                        bitgen_t *rng) noexcept nogil:
    """The rows of the clusters of places i and j: these two first, then all others in random
    order.

    places: those of a cluster side by side, ascending; by slot, `first` says where they begin.
    """
    cdef Py_ssize_t a = mixture.labels[rows[i]], b = mixture.labels[rows[j]]
    cdef int64_t of_a = first[a], end_a = first[a + 1], of_b = 0, end_b = 0
    cdef int64_t at, other, count = 2
    if b != a:
        of_b, end_b = first[b], first[b + 1]
    members[0], members[1] = rows[i], rows[j]
    while of_a < end_a or of_b < end_b:  # in the order of their places
        if of_b == end_b or (of_a < end_a and places[of_a] < places[of_b]):
            at = places[of_a]
            of_a += 1
        else:
            at = places[of_b]
            of_b += 1
        if at != i and at != j:
            members[count] = rows[at]
            count += 1
    for at in range(count - 1, 2, -1):
        other = 2 + below(rng, at - 1)
        members[at], members[other] = members[other], members[at]
