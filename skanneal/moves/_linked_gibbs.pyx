"""Gibbs steps of rows in views that are linked.

In a view a row joins a component k with the probability that `gibbs_step` gives it, times what its
components l in the linked views say of k: the product of exp(t_kl) over the links. The tilts t are
given; a new component has none. So as long as no component with tilts loses its last row, a sweep
leaves invariant

    prod_v p(partition of view v) p(cells of view v | it) prod_rows prod_links exp(t_kl).

A row that is alone in its component is offered its place as that of a new one.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport log
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc
from numpy.random cimport bitgen_t

import numpy as np

from .._native._random cimport bitgen, uniform
from ..families._slots cimport TILE
from ..states._mixture cimport Mixture

cdef struct Linked:
    const int32_t *labels   # of the rows in the linked view
    float *tilts            # (n_linked, n_own), by slot
    float *back             # (n_own, n_linked), the same for the linked view
    Py_ssize_t n_linked
    Py_ssize_t n_own


cdef void forget(Linked *links, Py_ssize_t n_links, Py_ssize_t k) noexcept nogil:
    """Slot k is empty: who comes next is a new component."""
    cdef Py_ssize_t i, l
    for i in range(n_links):
        if k < links[i].n_own:
            for l in range(links[i].n_linked):
                links[i].tilts[l * links[i].n_own + k] = 0.0
                links[i].back[k * links[i].n_linked + l] = 0.0


cdef int linked_step(Mixture mixture, Py_ssize_t row, Linked *links, Py_ssize_t n_links,
                     bitgen_t *rng) except -1 nogil:
    """A Gibbs step of a labelled row in one view."""
    cdef Py_ssize_t i, j, l, new, k = mixture.labels[row], n
    cdef const float *tilts
    mixture.remove(row)
    if mixture.counts[k] == 0:
        forget(links, n_links, k)
        k = mixture.open_slot
    mixture.propose(row)
    for i in range(n_links):
        l = links[i].labels[row]
        if l < links[i].n_linked:
            tilts = links[i].tilts + l * links[i].n_own
            n = min(links[i].n_own, mixture.n_tiles * TILE)
            for j in range(n):
                mixture.log_lik[j] += tilts[j]
    new = mixture.draw(1.0, rng)
    if mixture.corrected and new != k and log(1.0 - uniform(rng)) >= (
            mixture.correction(row, new, False) - mixture.correction(row, k, False)):
        new = k
    if mixture.table.filled(row) != NULL:
        mixture.fill(row, new, rng)
    return mixture.insert(row, new)


def linked_sweep(views, tilts, bit_generator):
    """A Gibbs step of each row of S in each view, one view after another.

    Parameters
    ----------
    views : sequence of Mixture
        They share the subsample. Changed.
    tilts : dict of (int, int) to float32 array of shape (n_slots, n_slots)
        By two views the t of their slots. Changed: 0 where a slot was emptied.
    bit_generator : numpy.random.BitGenerator
    """
    cdef const int64_t[::1] rows = np.sort(views[0].subsample.rows())
    cdef bitgen_t *rng = bitgen(bit_generator)
    cdef float[:, ::1] own, back
    cdef Mixture mixture, other
    cdef Py_ssize_t i, n_links, n_rows = rows.shape[0]
    both = {(u, v): (of, np.ascontiguousarray(of.T)) for (u, v), of in tilts.items()}
    cdef Linked *links = <Linked *> malloc(max(1, len(views)) * sizeof(Linked))
    if links == NULL:
        raise MemoryError
    try:
        for v, mixture in enumerate(views):
            n_links = 0
            for u, other in enumerate(views):
                if (u, v) in both:
                    own, back = both[u, v]
                elif (v, u) in both:
                    back, own = both[v, u]
                else:
                    continue
                links[n_links] = Linked(&other.labels[0], &own[0, 0], &back[0, 0], own.shape[0],
                                        own.shape[1])
                n_links += 1
            with nogil:
                for i in range(n_rows):
                    linked_step(mixture, rows[i], links, n_links, rng)
            PyErr_CheckSignals()
    finally:
        free(links)
