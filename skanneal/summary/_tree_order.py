"""In which order components join: what a tree of clusters is cut by where a number is asked for.

How sure it is that two components are two clusters says nothing of how far they are apart: among
sure ones the evidence grows with the rows. So a tree says two things apart from each other. Its
heights are those of the evidence, in ascending order: what is cut at a height has one cluster more
than there are parts of the tree so sure. Its joins, in contrast, go

1. within clusters, by overlap: those components first whose rows are least told apart, by the
   Bhattacharyya coefficient of their shares p_ik of the rows,

       sum_i sqrt(p_ia p_ib) / sqrt(sum_i p_ia sum_i p_ib),

   in which the shares of a group are taken to be those of its components, one by one: coefficients
   add up without the rows;
2. between clusters, by distance: those first that are least apart, which is m d of two clusters
   whose nearest rows are at the distance d and of which the smaller has m rows: a few rows join
   another cluster before two large ones do that are nearer to each other.

Before all others join those that are said to be alike, if any: no row would tell them apart.

In both parts a group of few rows, less than SMALL of the median, joins before all others, the
smallest first: who asks for a number of clusters does not mean the three rows that a mixture has
given a component of their own.

The distance of two rows is that of numbers in standard units, but no less than that of either to
its neighbours (mutual reachability; Campello, Moulavi and Sander 2013), so that a bridge of a few
rows is long. Where rows have cells of other sorts, or lack too many, the distance of a row from a
group is by how much the density of the group is below that of its own, in nats.
"""

# SPDX-License-Identifier: BSD-3-Clause

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.metrics import pairwise_distances_chunked
from sklearn.neighbors import NearestNeighbors

from ._cluster_tree import SMALL
from ._cut_tree import cut_tree

NEIGHBOURS = 5  # of a row: their distance is the least that it has from any row


class Joins(NamedTuple):
    """What the tree of a fit's components is made from.

    Attributes
    ----------
    evidence : ndarray of shape (n_components - 1, 4)
        From `cluster_tree`.
    sizes : ndarray of shape (n_components,)
        Rows of each component, in shares.
    overlaps, distances : ndarray of shape (n_components, n_components)
        Sums of sqrt(p_ia p_ib), and the least distance of two rows.
    parted : bool
        Whether components of the fit are parted by the peaks of the density.
    """

    evidence: np.ndarray
    sizes: np.ndarray
    overlaps: np.ndarray
    distances: np.ndarray
    parted: bool = False

    @classmethod
    def of(cls, evidence, log_joints, numbers=None, parted=False):
        """Measure overlaps and distances of components in rows.

        Parameters
        ----------
        evidence : ndarray of shape (n_components - 1, 4)
        log_joints : ndarray of shape (n_rows, n_components)
            As `cluster_tree` takes them.
        numbers : ndarray of shape (n_rows, n_columns) or None, default=None
            The rows, if all of their cells are numbers; rows that have a gap do not count.
        parted : bool, default=False
        """
        shares = np.exp(log_joints - logsumexp(log_joints, axis=1, keepdims=True))
        roots = np.sqrt(shares)
        labels = log_joints.argmax(axis=1)
        whole = None if numbers is None else ~np.isnan(numbers).any(axis=1)
        if whole is None or np.unique(labels[whole]).size < np.unique(labels).size:
            distances = _by_density(log_joints, labels)
        else:
            distances = _by_numbers(numbers[whole], labels[whole], log_joints.shape[1])
        return cls(evidence, shares.sum(axis=0), roots.T @ roots, distances, parted)

    def tree(self, probability, alike=None):
        """The tree whose clusters are sure by `probability`: (n_components - 1, 4).

        Of `alike`, int array of shape (n_components,), components with equal numbers join first."""
        groups = cut_tree(self.evidence, probability)
        merged = _Merged(self)
        if alike is not None:
            firsts = np.unique(alike, return_index=True)[1]
            for k in np.setdiff1d(merged.alive, firsts):
                merged.join(firsts[np.searchsorted(alike[firsts], alike[k])], k)
        for _ in range(len(merged.alive) - len(np.unique(groups[merged.alive]))):
            merged.join(*merged.most_overlapping(groups))
        while len(merged.alive) > 1:
            merged.join(*merged.nearest())
        return np.column_stack(
            [np.reshape(merged.nodes, (-1, 2)), self.evidence[:, 2], merged.counts]
        )


class _Merged:
    """Groups of components while they are joined; a group has the number of its first one."""

    def __init__(self, joins):
        self.sizes, self.overlaps = joins.sizes.copy(), joins.overlaps.copy()
        self.distances = joins.distances.copy()
        n_components = len(self.sizes)
        self.alive = list(range(n_components))
        self.node, self.count = list(self.alive), [1] * n_components
        self.nodes, self.counts = [], []

    def most_overlapping(self, groups):
        """Two groups of one cluster that overlap most; if one that is not alone in its cluster is
        small, it and the other."""
        alive = np.array(self.alive)
        roots = np.sqrt(self._rows(alive))
        within = self.overlaps[np.ix_(alive, alive)] / np.outer(roots, roots)
        within[(groups[alive, None] != groups[alive]) | np.eye(len(alive), dtype=bool)] = -1.0
        small = self._smallest(alive, within.max(axis=1) >= 0.0)
        if small is not None:
            return alive[[small, within[small].argmax()]]
        return alive[list(np.unravel_index(within.argmax(), within.shape))]

    def nearest(self):
        """The two groups that are least apart; if one is small, it and the nearest."""
        alive = np.array(self.alive)
        rows = self._rows(alive)
        apart = np.minimum.outer(rows, rows) * self.distances[np.ix_(alive, alive)]
        np.fill_diagonal(apart, np.inf)
        first = self._smallest(alive, np.ones(len(alive), dtype=bool))
        if first is None:
            first = apart.min(axis=1).argmin()
        second = apart[first].argmin()
        if second == first:  # nothing is known of any other
            second = (first + 1) % len(alive)
        return alive[[first, second]]

    def _rows(self, alive):
        """Rows of groups; none has exactly 0."""
        return np.maximum(self.sizes[alive], np.finfo(float).tiny)

    def _smallest(self, alive, may_join):
        """The place of the smallest of these groups that may join, if it is small."""
        sizes = self.sizes[alive]
        place = int(np.where(may_join, sizes, np.inf).argmin())
        return place if may_join[place] and sizes[place] < SMALL * np.median(sizes) else None

    def join(self, a, b):
        """Add group b to group a, or the other way round if b is the lower number."""
        a, b = sorted((int(a), int(b)))
        self.nodes.append(sorted((self.node[a], self.node[b])))
        self.count[a] += self.count[b]
        self.counts.append(self.count[a])
        self.node[a] = len(self.sizes) + len(self.nodes) - 1
        self.sizes[a] += self.sizes[b]
        self.overlaps[a] += self.overlaps[b]
        self.overlaps[:, a] += self.overlaps[:, b]
        self.distances[a] = np.minimum(self.distances[a], self.distances[b])
        self.distances[:, a] = self.distances[a]
        self.alive.remove(b)


def _by_density(log_joints, labels):
    """Least distance of components by densities: of a row from a component, how much less probable
    that is than its own."""
    own = log_joints[np.arange(len(labels)), labels]
    n_components = log_joints.shape[1]
    out = np.full((n_components, n_components), np.inf)
    for k in np.unique(labels):
        rows = labels == k
        out[k] = (own[rows, None] - log_joints[rows]).min(axis=0)
    for k in np.setdiff1d(np.arange(n_components), labels):  # without a row: from any
        out[k] = out[:, k]
    return np.minimum(out, out.T)


def _by_numbers(numbers, labels, n_components):
    """Least distance of components by mutual reachability, in standard units of the columns."""
    spread = numbers.std(axis=0)
    rows = numbers / np.where(spread > 0, spread, 1.0)
    order = np.argsort(labels, kind="stable")
    rows, labels = rows[order], labels[order]
    present, starts = np.unique(labels, return_index=True)
    near = NearestNeighbors(n_neighbors=min(NEIGHBOURS + 1, len(rows))).fit(rows)
    core, start = near.kneighbors(rows)[0][:, -1], 0
    out = np.full((n_components, n_components), np.inf)
    for block in pairwise_distances_chunked(rows):
        own = slice(start, start + len(block))
        start += len(block)
        np.maximum(block, core, out=block)
        of_rows = np.maximum(np.minimum.reduceat(block, starts, axis=1), core[own, None])
        for k in np.unique(labels[own]):
            least = of_rows[labels[own] == k].min(axis=0)
            out[k, present] = np.minimum(out[k, present], least)
    return np.minimum(out, out.T)
