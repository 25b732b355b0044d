"""Atoms of a column of numbers: values that repeat more than rounding explains, such as zeros.

A value is an atom if it is held by at least LEAST_ROWS rows and by LEAST_SHARE of the column's
present cells, and by TIMES as many rows as the third most frequent of the NEIGHBOURS values that
stand nearest to it in the order of the column's distinct values. A column of numbers that were not
rounded has neighbours of one row each. One of rounded numbers has ties wherever its density is
high, but there the neighbours have as many ties, so TIMES as many are not due to rounding. The
third is used rather than the first, since an atom may have other atoms as neighbours.

A column of NEIGHBOURS distinct values or fewer has no atoms: it is one of levels. More than
NEIGHBOURS values that repeat so may be those of a coarser rounding that some of the rows have:
quarters of an hour beside minutes. Then the distances of most are multiples of the least one. They
are compared with one another by the same rule, so that a zero that stands out even among them stays
an atom.

families="auto" models atoms if they hold ENOUGH of the column's present cells. Fewer atoms make a
few small clusters, which costs less than the correlations within clusters, which the family of a
column with atoms cannot describe.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

LEAST_ROWS = 10
LEAST_SHARE = 0.001
TIMES = 10.0
NEIGHBOURS = 8
ENOUGH = 0.1
TOLERANCE = 0.01  # of the least distance, within which another one is a multiple
MOST = 20  # atoms of a column: the most frequent ones


def enough_atoms(n_elsewhere, n):
    """Whether families="auto" takes a column for one with atoms, of whose n cells so many are
    none."""
    return n_elsewhere < n and n - n_elsewhere >= ENOUGH * n


def atoms_of(values):
    """Find the atoms of a column.

    Parameters
    ----------
    values : ndarray of shape (n,)
        The present cells: finite numbers.

    Returns
    -------
    atoms : float64 array
        In ascending order; often empty.
    """
    places, counts = np.unique(values, return_counts=True)
    if len(places) <= NEIGHBOURS:
        return np.empty(0)
    least = max(LEAST_ROWS, LEAST_SHARE * len(values))
    places, counts = _standing_out(places, counts, least)
    while len(places) > NEIGHBOURS and _on_lattice(places):
        places, counts = _standing_out(places, counts, least)
    most = np.argsort(-counts, kind="stable")[:MOST]
    return np.sort(places[most]).astype(np.float64)


def _standing_out(places, counts, least):
    """Those of some values, more than NEIGHBOURS, that are more frequent than their neighbours."""
    found = np.flatnonzero(counts >= least)
    near = np.clip(found - NEIGHBOURS // 2, 0, len(places) - 1 - NEIGHBOURS)[:, None]
    near = near + np.arange(NEIGHBOURS)
    near += near >= found[:, None]  # its neighbours, without itself
    third = np.partition(counts[near], -3, axis=1)[:, -3]
    found = found[counts[found] >= TIMES * third]
    return places[found], counts[found]


def _on_lattice(places):
    """Whether half of the distances between neighbours, or more, are multiples of the least."""
    steps = np.diff(places)
    steps /= steps.min()
    return 2 * np.sum(np.abs(steps - np.rint(steps)) <= TOLERANCE) >= len(steps)
