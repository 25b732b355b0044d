"""Labels of rows given their scores under instantiated atoms.

A score is log f(row | theta_k), float32, of one row in a C-contiguous line whose length is the
number of atoms rounded up to whole tiles of 16; what lies beyond the atoms has the log weight
-inf. The rows of a block are scored all at once before (`Likelihood.log_lik`): what is left to do
for a row is to add log weights, draw, and where weights follow the numbers of members, to keep
these.
"""

from libc.math cimport INFINITY, exp, log
from libc.stdint cimport int32_t, int64_t, uint8_t
from numpy.random cimport bitgen_t

import numpy as np

from .._native._random cimport below, bitgen, uniform
from ..families._slots cimport TILE, aligned_zeros
from ..partition_priors._base cimport PartitionPrior
from ..states._mixture cimport Mixture

cdef extern from "_assign.h" nogil:
    int skanneal_level()
    int64_t (*draw_feature_v[3])(const float *, const float *, float, int64_t, double, float *,
                                 double *) noexcept
    int64_t (*draw_above_v[3])(const float *, const float *, float, int64_t, double, float *,
                               double *) noexcept
    void (*shortlist_v[3])(const float *, const float *, int64_t, float *, int32_t *,
                           float *) noexcept
    enum:
        SHORT

cdef int LEVEL = skanneal_level()
SHORTLIST = SHORT    # atoms on a row's shortlist


def tiled(values, fill=-np.inf):
    """`values` as aligned float32, filled up to whole tiles; at least one."""
    n = len(values)
    out = aligned_zeros((max(TILE, -(-n // TILE) * TILE),), np.float32)
    out[:n], out[n:] = values, fill
    return out


def block(n_rows, n_atoms, dtype=np.float32):
    """Aligned room for the scores of n_rows rows: (n_rows, whole tiles)."""
    return aligned_zeros((n_rows, max(TILE, -(-n_atoms // TILE) * TILE)), dtype)


cdef object scratch_for(Py_ssize_t n):
    return aligned_zeros((n + 2 * (n // TILE + 1) + TILE,), np.float32)


def draw_rows(const float[:, ::1] scores, const float[::1] log_weight, int32_t[::1] drawn,
              double[::1] log_mass, bit_generator):
    """Draw an atom for every row of a block, each by itself.

    Parameters
    ----------
    scores : float32 array of shape (n, width)
    log_weight : float32 array of shape (width,)
        -inf beyond the atoms.
    drawn : int32 array of shape (n,), written
        Atom k with probability proportional to exp(scores[i, k] + log_weight[k]); -1 where no
        atom has any.
    log_mass : float64 array of shape (n,), written
        Log of the sum of these weights.
    bit_generator : numpy.random.BitGenerator
    """
    cdef bitgen_t *rng = bitgen(bit_generator)
    cdef float[::1] scratch = scratch_for(scores.shape[1])
    cdef Py_ssize_t i
    cdef int64_t n_tiles = scores.shape[1] // TILE
    with nogil:
        for i in range(scores.shape[0]):
            log_mass[i] = -INFINITY
            drawn[i] = <int32_t> draw_feature_v[LEVEL](
                &scores[i, 0], &log_weight[0], 0.0, n_tiles, uniform(rng), &scratch[0], &log_mass[i]
            )


def draw_slices(const float[:, ::1] scores, const float[::1] log_weight, int32_t[::1] labels,
                const float[::1] bounds, bit_generator):
    """Draw an atom for every row of a block among those whose weight is above the row's slice.

    Parameters
    ----------
    scores : float32 array of shape (n, width)
    log_weight : float32 array of shape (width,)
    labels : int32 array of shape (n,), written
        Atom k with probability proportional to exp(scores[i, k]), log_weight[k] > bounds[i].
    bounds : float32 array of shape (n,)
        Logs of the slices.
    bit_generator : numpy.random.BitGenerator

    Returns
    -------
    int
        The first row for which no atom is left, else -1.
    """
    cdef bitgen_t *rng = bitgen(bit_generator)
    cdef float[::1] scratch = scratch_for(scores.shape[1])
    cdef Py_ssize_t i
    cdef int64_t k, n_tiles = scores.shape[1] // TILE
    cdef double unused
    cdef Py_ssize_t stuck = -1
    with nogil:
        for i in range(scores.shape[0]):
            k = draw_above_v[LEVEL](&scores[i, 0], &log_weight[0], bounds[i], n_tiles,
                                    uniform(rng), &scratch[0], &unused)
            if k < 0:
                stuck = i
                break
            labels[i] = <int32_t> k
    return stuck


def shortlist_rows(const float[:, ::1] scores, const float[::1] log_weight,
                   int32_t[:, ::1] atom, float[:, ::1] value):
    """The 8 atoms of largest score + log_weight of every row, and their scores.

    Parameters
    ----------
    scores : float32 array of shape (n, width)
    log_weight : float32 array of shape (width,)
    atom : int32 array of shape (n, 8), written
        In falling order; -1 beyond the atoms.
    value : float32 array of shape (n, 8), written
    """
    cdef float[::1] scratch = scratch_for(scores.shape[1])
    cdef Py_ssize_t i
    with nogil:
        for i in range(scores.shape[0]):
            shortlist_v[LEVEL](&scores[i, 0], &log_weight[0], scores.shape[1] // TILE,
                               &scratch[0], &atom[i, 0], &value[i, 0])


def move_all_but_last(int32_t[::1] labels, int32_t[::1] drawn, int64_t[::1] members,
                      const uint8_t[::1] held):
    """Give each row the atom drawn for it, one row after another, unless it is the last member
    here of an atom that is held, or none was drawn; then its own atom counts as drawn.

    Parameters
    ----------
    labels, drawn : int32 arrays of shape (n,), written
        Rows of label -1 are left out.
    members : int64 array of shape (n_atoms,), written
        Rows of the shard with each atom.
    held : uint8 array of shape (n_atoms,)
    """
    cdef Py_ssize_t i
    cdef int32_t z
    with nogil:
        for i in range(labels.shape[0]):
            z = labels[i]
            if z < 0:
                continue
            if drawn[i] < 0 or (held[z] and members[z] == 1):
                drawn[i] = z
                continue
            members[z] -= 1
            labels[i] = drawn[i]
            members[drawn[i]] += 1


def sweep_tail(Mixture tail, int32_t[::1] labels, const int32_t[::1] drawn,
               const double[::1] log_mass, int64_t[::1] members, const uint8_t[::1] held,
               double log_tail, double share, bit_generator, int32_t[::1] stop):
    """One sub-iteration of a free shard's rows between the atoms with weights and the tail.

    Parameters
    ----------
    tail : Mixture
        The clusters of the tail, collapsed; prior PitmanYor(a, d).
    labels : int32 array of shape (n,), written
        A row's atom in I, or -1: it is in the tail.
    drawn : int32 array of shape (n,)
        For each row, an atom of I drawn prop. to w_k f: where it goes if it goes there, and where
        it is if it is there.
    log_mass : float64 array of shape (n,)
        Log of the sum of w_k f.
    members, held : int64 and uint8 arrays of shape (n_atoms,)
        Rows of the shard with each atom of I, written; whether the last one stays.
    log_tail, share : float
        log w_p and a_p.
    bit_generator : numpy.random.BitGenerator
    stop : int32 array of shape (1,)
        Not zero: return at once.

    Returns
    -------
    done : bool
        Whether all rows had their turn.
    stuck : int
        A row that neither an atom of I nor a cluster of the tail can produce, and that has no
        label now; else -1.
    """
    cdef bitgen_t *rng = bitgen(bit_generator)
    cdef Py_ssize_t i, k, stuck = -1
    cdef int64_t n_tail = 0
    cdef int32_t z
    cdef double first = log(tail.prior.open(0)) - log(share), mass, scale, odds
    cdef Py_ssize_t room = tail.n_slots
    cdef float[::1] scratch = scratch_for(room)
    for k in range(tail.n_slots):
        n_tail += tail.counts[k]
    with nogil:
        for i in range(labels.shape[0]):
            if i % 256 == 0 and stop[0]:
                break
            z = labels[i]
            if z < 0:
                tail.remove(i)
                n_tail -= 1
            elif held[z] and members[z] == 1:
                continue
            else:
                members[z] -= 1
            tail.score_cells(tail.table.observed(i))
            # the mixture weighs n_k - d and a + d K, but its first cluster 1, not a
            scale = log_tail + (first if n_tail == 0 else -log(n_tail + share))
            mass = -INFINITY
            k = draw_feature_v[LEVEL](&tail.log_lik[0], &tail.log_prior[0], 0.0, tail.n_tiles,
                                      uniform(rng), &scratch[0], &mass)
            if k < 0 and log_mass[i] == -INFINITY:
                stuck = i
                break
            odds = exp(min(scale + mass - log_mass[i], 700.0))
            if uniform(rng) * (1.0 + odds) < odds or log_mass[i] == -INFINITY:
                tail.insert(i, k)
                labels[i] = -1
                n_tail += 1
                if tail.n_slots > room:
                    room = tail.n_slots
                    with gil:
                        scratch = scratch_for(room)
            else:
                labels[i] = drawn[i]
                members[drawn[i]] += 1
        else:
            i = labels.shape[0]
    return i == labels.shape[0], stuck


cdef inline float log_members(int64_t n, float reduction) noexcept nogil:
    return <float> log(n - reduction) if n > 0 else -INFINITY


def accelerated_rows(int32_t[::1] labels, const int32_t[:, ::1] atom,
                     const float[:, ::1] value, const float[:, ::1] local,
                     int64_t[::1] members, double[::1] log_weight, int64_t[::1] local_members,
                     float[::1] local_weight, double reduction,
                     double log_place, bit_generator, int32_t[::1] stop):
    """One sub-iteration of the accelerated stage on a shard.

    Parameters
    ----------
    labels : int32 array of shape (n,), written
        0 .. K - 1 are shared atoms, K .. those born here.
    atom, value : arrays of shape (n, 8)
        Each row's shortlist of shared atoms.
    local : float32 array of shape (n, width)
        Scores under the atoms born here and the empty places.
    members, local_members : int64 arrays of shape (K,), (width,), written
        Rows of all shards as they were at the synchronisation, and of this one as they are; rows of
        this shard.
    log_weight, local_weight : float64 (K,), float32 (width,), written
        log (n - reduction); empty places: log_place; -inf where there is nothing.
    reduction : float
        Of the partition prior.
    log_place : float
        Log weight of an empty place; one that its last row has left is empty again.
    bit_generator : numpy.random.BitGenerator
    stop : int32 array of shape (1,)
        Not zero: return at once.

    Returns
    -------
    bool
        Whether all rows had their turn.
    """
    cdef bitgen_t *rng = bitgen(bit_generator)
    cdef Py_ssize_t i, j, n_shared = members.shape[0], n_tiles = local.shape[1] // TILE
    cdef int64_t z, k
    cdef float[::1] scratch = scratch_for(local.shape[1])
    cdef double key[SHORT]
    cdef double mass, top, total, u
    with nogil:
        for i in range(labels.shape[0]):
            if i % 256 == 0 and stop[0]:
                break
            z = labels[i]
            if z < n_shared:
                members[z] -= 1
                log_weight[z] = log_members(members[z], reduction)
            else:
                z -= n_shared
                local_members[z] -= 1
                local_weight[z] = log_members(local_members[z], reduction) \
                    if local_members[z] else <float> log_place
            mass = -INFINITY
            k = draw_feature_v[LEVEL](&local[i, 0], &local_weight[0], 0.0, n_tiles, uniform(rng),
                                      &scratch[0], &mass)
            top = mass
            for j in range(SHORT):
                key[j] = -INFINITY
                if atom[i, j] >= 0:
                    key[j] = value[i, j] + log_weight[atom[i, j]]
                top = max(top, key[j])
            if top > -INFINITY:    # else: it stays
                total = exp(mass - top)
                for j in range(SHORT):
                    total += exp(key[j] - top)
                u = uniform(rng) * total
                for j in range(SHORT):
                    u -= exp(key[j] - top)
                    if u < 0.0:
                        labels[i] = atom[i, j]
                        break
                else:
                    if k >= 0:
                        labels[i] = <int32_t> (n_shared + k)
            z = labels[i]
            if z < n_shared:
                members[z] += 1
                log_weight[z] = log_members(members[z], reduction)
            else:
                z -= n_shared
                local_members[z] += 1
                local_weight[z] = log_members(local_members[z], reduction)
        else:
            i = labels.shape[0]
    return i == labels.shape[0]


def auxiliary_rows(Py_ssize_t first, const float[:, ::1] scores, int32_t[::1] labels,
                   int64_t[::1] members, float[::1] log_weight, int32_t[::1] places,
                   int64_t[::1] numbers, PartitionPrior prior, const double[::1] log_new, rest,
                   bit_generator):
    """Algorithm 8 on the rows of a block, up to the one that takes a place.

    Parameters
    ----------
    first : int
        The row of the block to begin with.
    scores : float32 array of shape (n, width)
    labels : int32 array of shape (n,), written
        Column of each row's atom; -1: none of these, but one of the rest.
    members : int64 array of shape (width,), written
        Rows of each atom.
    log_weight : float32 array of shape (width,), written
        log (n_k - d) of atoms, log (alpha + d K) - log m of places, -inf of other columns.
    places : int32 array of shape (m,), written
        Columns of the m empty atoms; -1 where one was taken or given up. None if m is 0.
    numbers : int64 array of shape (2,), written
        Clusters and rows in columns of `scores`.
    prior : PartitionPrior
    log_new : float64 array of shape (n,)
        Log marginal likelihood of each row, if a new atom is integrated out; else empty.
    rest : None or (log_mass, drawn, members, held, log_tail, share)
        The atoms of I beside these of the tail, as `sweep_tail` takes them.
    bit_generator : numpy.random.BitGenerator

    Returns
    -------
    i, column : int
        The row that took a place, and its column, or -1 if that was an atom integrated out; the
        caller has to give the row's atom its theta, and to fill the places up. i = n: none did.
    """
    cdef bitgen_t *rng = bitgen(bit_generator)
    cdef float[::1] scratch = scratch_for(scores.shape[1])
    cdef Py_ssize_t i, j, n_tiles = scores.shape[1] // TILE, n_places = places.shape[0]
    cdef int64_t z, k
    cdef double mass, other, new, top, total, u, opening, log_tail = 0.0, share = 1.0
    cdef bint integrated = log_new.shape[0] > 0, beside = rest is not None, taken = False
    cdef const double[::1] log_mass
    cdef const int32_t[::1] drawn
    cdef int64_t[::1] others
    cdef const uint8_t[::1] held
    if beside:
        log_mass, drawn, others, held, log_tail, share = rest
    with nogil:
        for i in range(first, scores.shape[0]):
            z = labels[i]
            if z < 0:
                if held[drawn[i]] and others[drawn[i]] == 1:
                    continue
                others[drawn[i]] -= 1
            else:
                numbers[1] -= 1
                members[z] -= 1
                log_weight[z] = log_members(members[z], prior.reduction)
                if members[z] == 0:
                    numbers[0] -= 1
                    if n_places:   # its theta replaces that of a place chosen at random
                        j = below(rng, n_places)
                        log_weight[places[j]] = -INFINITY
                        places[j] = <int32_t> z
            opening = prior.log_open(numbers[0])
            for j in range(n_places):
                log_weight[places[j]] = <float> (opening - log(<double> n_places))
            mass = other = new = -INFINITY
            k = draw_feature_v[LEVEL](&scores[i, 0], &log_weight[0], 0.0, n_tiles, uniform(rng),
                                      &scratch[0], &mass)
            if beside:   # the prior's first cluster weighs 1, not its concentration
                other = log_mass[i] - log_tail + (
                    log(numbers[1] + share) if numbers[1] else log(share / prior.open(0)))
            if integrated:
                new = opening + log_new[i]
            top = max(mass, max(other, new))
            total = exp(mass - top) + exp(other - top) + exp(new - top)
            u = uniform(rng) * total
            if u < exp(other - top):
                labels[i] = -1
                others[drawn[i]] += 1
                continue
            numbers[1] += 1
            if u < exp(other - top) + exp(new - top) or k < 0:
                numbers[0] += 1
                labels[i] = -2
                k = -1
                taken = True
                break
            labels[i] = <int32_t> k
            members[k] += 1
            log_weight[k] = log_members(members[k], prior.reduction)
            if members[k] == 1:
                numbers[0] += 1
                for j in range(n_places):
                    if places[j] == k:
                        places[j] = -1
                taken = True
                break
    if not taken:
        i, k = scores.shape[0], -1
    return i, k
