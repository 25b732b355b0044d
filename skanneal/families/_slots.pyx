"""The statistics of a block's slots: arrays that are declared, grown, emptied, copied and added.

A family says of each array its name, the type of its numbers, and its shape, in which SLOTS stands
for the number of slots. Where slots lie in tiles, it is (TILES, n, TILE), TILES for the number of
tiles. What a slot holds in an array are parts at equal distances.
"""

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy, memset
from numpy cimport PyArray_DATA

import math

import numpy as np

SLOTS, TILES = -1, -2


cdef object aligned_zeros(shape, dtype):
    """Zeros that start at a multiple of 64 bytes."""
    cdef Py_ssize_t n_bytes = np.dtype(dtype).itemsize
    for length in shape:
        n_bytes *= length
    buffer = np.zeros(n_bytes + 64, dtype=np.uint8)
    return np.ndarray(shape, dtype, buffer, -<size_t> PyArray_DATA(buffer) % 64)


def tiles(n_slots):
    """Capacity for n_slots slots: the next multiple of the tile."""
    return max(TILE, -(-n_slots // TILE) * TILE)


cdef inline char *first_part(const Place *place, Py_ssize_t k) noexcept nogil:
    """Of slot k; the others follow at the distance `apart`."""
    return place.data + k // place.side * place.stride + k % place.side * place.n_bytes


cdef class Slots:
    """Arrays of all slots, none of which exists before the first `grow`.

    Parameters
    ----------
    layout : dict of str to (dtype, shape)
        In the order in which `grow` returns the arrays.
    """

    def __init__(self, layout):
        self.layout, self.arrays, self.n_arrays = layout, {}, len(layout)

    def grow(self, Py_ssize_t n_slots):
        """Make room for n_slots slots (a multiple of TILE), those that are there as they are: list
        of the arrays, which start at a multiple of 64 bytes."""
        cdef Place *place = &self.place[0]
        lengths = {SLOTS: n_slots, TILES: n_slots // TILE}
        for name, (dtype, shape) in self.layout.items():
            array = aligned_zeros([lengths.get(n, n) for n in shape], dtype)
            if name in self.arrays:
                old = self.arrays[name]
                array[tuple(map(slice, old.shape))] = old
            self.arrays[name] = array
            tiled = TILES in shape
            axis = len(shape) - 1 if tiled else shape.index(SLOTS)
            place.data = <char *> PyArray_DATA(array)
            place.kind, place.item = ord(array.dtype.kind), array.itemsize
            place.side = array.shape[axis]
            place.n_bytes = array.itemsize * math.prod(shape[axis + 1:])
            place.apart = place.side * place.n_bytes
            place.n_parts = math.prod(shape[tiled:axis])
            place.stride = place.n_parts * place.apart
            place += 1
        return list(self.arrays.values())

    cdef void clear(self, Py_ssize_t k) noexcept nogil:
        """Zeros in slot k."""
        cdef Py_ssize_t a, p
        cdef Place place
        cdef char *own
        for a in range(self.n_arrays):
            place = self.place[a]
            own = first_part(&place, k)
            for p in range(place.n_parts):
                memset(own + p * place.apart, 0, place.n_bytes)

    cdef void copy(self, Slots source, Py_ssize_t i, Py_ssize_t k) noexcept nogil:
        """Slot k holds what slot i of `source` does, which has the same layout."""
        cdef Py_ssize_t a, p
        cdef Place place, other
        cdef char *own
        cdef const char *theirs
        for a in range(self.n_arrays):
            place, other = self.place[a], source.place[a]
            own, theirs = first_part(&place, k), first_part(&other, i)
            for p in range(place.n_parts):
                memcpy(own + p * place.apart, theirs + p * other.apart, place.n_bytes)

    cdef void add(self, Py_ssize_t i, Py_ssize_t k) noexcept nogil:
        """Add what slot k holds to slot i."""
        cdef Py_ssize_t a, _p, j
        cdef Place place
        cdef char *own
        cdef const char *theirs
        for a in range(self.n_arrays):
            place = self.place[a]
            own, theirs = first_part(&place, i), first_part(&place, k)
            for _p in range(place.n_parts):
                for j in range(place.n_bytes // place.item):
                    if place.kind == c"f":
                        (<double *> own)[j] += (<const double *> theirs)[j]
                    elif place.item == sizeof(int64_t):
                        (<int64_t *> own)[j] += (<const int64_t *> theirs)[j]
                    else:
                        (<int32_t *> own)[j] += (<const int32_t *> theirs)[j]
                own += place.apart
                theirs += place.apart

    def get(self, name):
        """An array with the slot as its last axis, a view where slots do not lie in tiles."""
        array, (_, shape) = self.arrays[name], self.layout[name]
        if TILES in shape:
            return array.swapaxes(0, 1).reshape(array.shape[1], -1)
        axis = shape.index(SLOTS)
        return array.transpose(*range(axis), *range(axis + 1, len(shape)), axis)

    def put(self, name, at, value, n_slots):
        """Set the places `at` of the first n_slots slots in an array as `get` gives it."""
        whole, (_, shape) = self.get(name), self.layout[name]
        whole[..., :n_slots][at] = value
        if TILES in shape:
            self.arrays[name][:] = whole.reshape(len(whole), -1, TILE).swapaxes(0, 1)
