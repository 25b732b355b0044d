"""Collapsed Gibbs with remove and assign decoupled: the churn of a subsample.

One assignment: the rows that must leave by the path leave, and one row enters. It joins a cluster
with probability proportional to (n_k - d) p(x | x_k)^beta, a new one with (alpha + d K) p(x)^beta.
With all rows in S, the row that leaves is the one that enters, and this is the Gibbs sampler.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY
from libc.stdint cimport INT64_MAX, int32_t, int64_t
from numpy.random cimport bitgen_t

import numpy as np

from .._native._prefetch cimport prefetch, prefetch_line
from .._native._random cimport bitgen
from ..families._base cimport FamilyBlock
from ..families._slots cimport TILE
from ..states._mixture cimport Mixture
from ..states._subsample cimport Subsample
from ._info import MoveInfo

cdef enum:
    ROOM = 2048     # steps planned at a time: about a millisecond's work
    AHEAD = 8       # steps between the prefetch of a row and its use

cdef float NEAR = 1.0  # nats: a climb soon looks again at rows for which another cluster is as near

cdef int follow(Mixture mixture, const int64_t *steps, Py_ssize_t n, float beta,
                bitgen_t *rng) except -1 nogil:
    """Carry out planned steps in one mixture."""
    cdef Py_ssize_t i = 0, ahead
    cdef int64_t row
    cdef Py_ssize_t row_bytes = mixture.table.row_bytes
    while i < n:
        for ahead in range(i + AHEAD, min(i + AHEAD + 2, n)):
            row = steps[ahead]
            if row < 0:
                row = ~row
                prefetch_line(&mixture.labels[row])
            elif ~row == steps[ahead - 1]:
                continue    # it has just left, so it is in the cache
            prefetch(mixture.table.row(row), row_bytes)
            if mixture.table.filled(row) != NULL:
                prefetch(mixture.table.observed(row), row_bytes)
        row = steps[i]
        if row < 0 and i + 1 < n and steps[i + 1] == ~row:   # leaves and enters
            mixture.gibbs_step(~row, beta, rng)
            i += 2
        elif row < 0:
            mixture.remove(~row)
            i += 1
        else:
            mixture.enter(row, beta, rng)
            i += 1
    return 0


def churn(mixtures, Subsample subsample, bit_generator, knots, int64_t start, int64_t stop,
          double beta=1.0, stop_flag=None):
    """Run the assignments start .. stop of a path.

    Parameters
    ----------
    mixtures : sequence of Mixture
        Views that share the subsample: given the columns they are independent, so each follows
        the same steps in turn.
    subsample : Subsample
        S.
    bit_generator : numpy.random.BitGenerator
        The chain's generator.
    knots : int64 array of shape (n, 2)
        (assignments, size): |S| is linear in between, rounded up; covers start .. stop.
    start, stop : int
        Assignments done before and after.
    beta : float, default=1.0
        Exponent of the likelihood.
    stop_flag : int32 array of shape (1,), optional
        Polled every few milliseconds; non-zero ends the churn.

    Returns
    -------
    int
        Assignments done: `stop`, unless the flag was raised.

    Raises
    ------
    ValueError
        For knots that do not ascend, do not cover the assignments, or ask for no row at all or for
        more rows than there are.
    """
    cdef const int64_t[:, ::1] path = np.ascontiguousarray(knots, dtype=np.int64)
    cdef int32_t[::1] flag = np.zeros(1, np.int32) if stop_flag is None else stop_flag
    cdef int64_t[::1] steps = np.empty(ROOM, dtype=np.int64)
    cdef bitgen_t *rng = bitgen(bit_generator)
    cdef int64_t position = start
    cdef Py_ssize_t n
    cdef Mixture mixture
    cdef float power = <float> beta
    if start < stop:
        _check_path(path, start, stop, subsample.n_rows)
    while position < stop and flag[0] == 0:
        with nogil:
            n = subsample.plan(rng, path, &position, stop, &steps[0], ROOM)
        for mixture in mixtures:
            with nogil:
                follow(mixture, &steps[0], n, power, rng)
        PyErr_CheckSignals()
    return position


cdef int _check_path(const int64_t[:, ::1] path, int64_t start, int64_t stop,
                     int64_t n_rows) except -1:
    """Raise unless each assignment of a path finds a row that enters, and one that leaves."""
    cdef Py_ssize_t i, n = path.shape[0]
    cdef bint sound = (n >= 2 and path.shape[1] == 2 and path[0, 0] <= start
                       and stop <= path[n - 1, 0] and 0 <= path[0, 1] <= n_rows)
    for i in range(1, n):
        if not sound:
            break
        # the product is that of `path_size`
        sound = (path[i - 1, 0] < path[i, 0] and 1 <= path[i, 1] <= n_rows
                 and (<double> path[i, 0] - <double> path[i - 1, 0]) * n_rows < 2.0 ** 62)
    if not sound:
        raise ValueError(f"the path must rise in assignments from {start} to {stop} and hold 1 to "
                         f"{n_rows} rows, got {np.asarray(path).tolist()}")
    return 0


def make_steps(mixtures, steps, bit_generator):
    """Carry out given steps of rows in every mixture; the subsample does not change.

    Parameters
    ----------
    mixtures : sequence of Mixture
        Views of one state.
    steps : int64 array of shape (n,)
        `row` for a row that enters, `~row` for one that leaves; one that leaves and enters at once
        makes a Gibbs step.
    bit_generator : numpy.random.BitGenerator
    """
    cdef const int64_t[::1] all_steps = np.ascontiguousarray(steps, dtype=np.int64)
    cdef Py_ssize_t n = all_steps.shape[0]
    cdef bitgen_t *rng = bitgen(bit_generator)
    cdef Mixture mixture
    for mixture in mixtures:
        if n:
            with nogil:
                follow(mixture, &all_steps[0], n, 1.0, rng)


cdef bint assign_greedily(Mixture mixture, Py_ssize_t row, int64_t fewest_clusters,
                          float *gap) except -1 nogil:
    """Move a labelled row, with its present fills, to its best cluster; return whether it moved.

    A row that is alone stays if there are no more clusters than `fewest_clusters`. gap: by how many
    nats the best cluster is better than the second."""
    cdef Py_ssize_t b, i, best, k = mixture.labels[row]
    cdef const char *cells = mixture.table.row(row)
    cdef float log_lik = 0.0, log_prior = mixture.log_prior[k], weight, most, second = -INFINITY
    cdef bint alone = mixture.counts[k] == 1
    gap[0] = INFINITY
    if alone and mixture.n_clusters <= fewest_clusters:
        return False
    if alone:   # its slot becomes the open one
        mixture.remove(row)
        k = mixture.open_slot
    mixture.score_cells(cells)
    if not alone:
        for b in range(mixture.n_blocks):
            log_lik += (<FamilyBlock> mixture.pointer[b]).score_without(cells, k)
        mixture.log_lik[k] = log_lik
        mixture.log_prior[k] = mixture.log_join(mixture.counts[k] - 1)
    best, most = k, mixture.log_prior[k] + mixture.log_lik[k]
    for i in range(mixture.n_tiles * TILE):
        if i == k:
            continue
        weight = mixture.log_prior[i] + mixture.log_lik[i]
        if weight > most:
            best, second, most = i, most, weight
        elif weight > second:
            second = weight
    gap[0] = most - second
    if not alone:
        mixture.log_prior[k] = log_prior
        if best == k:
            return False
        mixture.remove(row)
    mixture.insert(row, best)
    return best != k


def iterated_conditional_modes(Mixture mixture, Py_ssize_t max_passes=10,
                               int64_t most_clusters=INT64_MAX, int64_t fewest_clusters=0):
    """Move every row of S to its best cluster given the others, until no row moves.

    Rows are visited in the order of their indices; the log joint density never falls. A pass over
    all rows is followed by passes over those for which another cluster was nearly as good, until
    none of these moves.

    Parameters
    ----------
    mixture : Mixture
        Changed.
    max_passes : int, default=10
    most_clusters : int, optional
        Stop when there are more clusters than this.
    fewest_clusters : int, default=0
        Do not end with fewer clusters than this, if there are so many.

    Returns
    -------
    int
        Rows that changed their cluster, all passes together.
    """
    cdef const int64_t[::1] rows = np.sort(mixture.subsample.rows())
    cdef int64_t[::1] near = np.empty(rows.shape[0], dtype=np.int64)
    cdef Py_ssize_t i, total = 0, moved, n_near = 0, n_visited, _pass
    cdef int64_t row
    cdef bint whole = True
    cdef float gap
    for _pass in range(max_passes):
        n_visited, moved = rows.shape[0] if whole else n_near, 0
        n_near = 0 if whole else n_near
        with nogil:
            for i in range(n_visited):
                if mixture.n_clusters > most_clusters:
                    break
                row = rows[i] if whole else near[i]
                moved += assign_greedily(mixture, row, fewest_clusters, &gap)
                if whole and gap < NEAR:
                    near[n_near] = row
                    n_near += 1
        total += moved
        PyErr_CheckSignals()
        if moved == 0 and whole:
            break
        whole = moved == 0
    return total


class Gibbs:
    """Collapsed Gibbs over the rows of S, in the order of the subsample's own selection.

    A chain's growth and churn go through `churn`; as a move, a sweep is |S| assignments at constant
    size, which leaves the posterior invariant when S is all rows.
    """

    name = "gibbs"
    acts_on = "rows"
    exact = True
    tempered = True

    def sweep(self, state, bit_generator, *, beta=1.0):
        """|S| assignments; returns MoveInfo."""
        n = state.subsample.size
        knots = np.array([[0, n], [max(n, 1), n]], dtype=np.int64)
        churn([state], state.subsample, bit_generator, knots, 0, n, beta)
        return MoveInfo(n, n, n * (state.n_tiles + 1))
