"""A column's pseudo-counts drawn together: all of them move by the same number of steps.

Large pseudo-counts say that clusters are alike, small ones that they differ. Drawn one by one they
hardly pass from one to the other, since each is held where it is by the others. With the points
g_0 < g_1 < ... of each one's grid and a_l = g_{i_l}, all become g_{i_l + s}, with s drawn from the
exact conditional

    p(s | partition, x)  proportional to  prod_k m_k(g_{i_1 + s}, ..., g_{i_L + s})^beta

among the shifts that leave each of them on its grid; m_k is the column's marginal likelihood in
cluster k. All points of this line have the same line, so the draw leaves the posterior invariant.
"""

from libc.stdint cimport int64_t
from numpy.random cimport bitgen_t

import numpy as np

from .._native._random cimport bitgen, draw_index, uniform
from ..families._base cimport FamilyBlock


def draw_together(FamilyBlock block, Py_ssize_t f, const double[::1] grid, const int64_t[::1] start,
                  double beta, bit_generator):
    """Draw feature f's pseudo-counts on their line; where one has no grid, or is not on it, all
    stay.

    The parameters are those of `FamilyBlock.draw_hyper`.

    Returns
    -------
    int
        Coordinates drawn. Call `refresh_all` after the last feature.
    """
    cdef bitgen_t *rng = bitgen(bit_generator)
    cdef Py_ssize_t n_coordinates = start.shape[0] - 1, first, h, shift
    if block.first_pseudo_count is None:
        return 0
    first = block.first_pseudo_count
    cdef const double[::1] value = block.get_hyper(f)
    cdef int64_t[::1] place = np.empty(n_coordinates, dtype=np.int64)
    cdef Py_ssize_t least = -len(grid), most = len(grid)
    for h in range(first, n_coordinates):
        place[h] = start[h]
        while place[h] < start[h + 1] and grid[place[h]] != value[h]:
            place[h] += 1
        least = max(least, start[h] - place[h])
        most = min(most, start[h + 1] - 1 - place[h])
    if least >= most or most < 0:   # nowhere to go, or one is not on its grid
        return 0
    cdef double[::1] score = np.empty(most + 1 - least)
    cdef double[:, ::1] shifted = np.empty((most + 1 - least, n_coordinates - first))
    with nogil:
        for shift in range(least, most + 1):
            for h in range(first, n_coordinates):
                shifted[shift - least, h - first] = grid[place[h] + shift]
        block.score_pseudo_counts(f, shifted, score)
    shift = least + draw_index(&score[0], score.shape[0], beta, uniform(rng))
    for h in range(first, n_coordinates):
        block.set_coordinate(f, h, grid[place[h] + shift])
    block.version += 1
    return n_coordinates - first
