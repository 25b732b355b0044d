"""Components that lie beneath several clusters, and their parts.

Where clusters have cores and wide tails, and overlap, a mixture of normal components may describe
the cores by small components and the tails of all by one wide component beneath them. Between the
wide one and a core there is no valley; through it all cores would be one cluster.

So it is asked which rows are about which peak of the density (summary/_basins.py). A component
lies beneath several clusters if no cluster has more than half of its rows. If most draws have such
a component, all components are parted by peaks: those of a draw that judges by its own, those of
the point estimate and of other draws by the peaks of the mean density over draws that judge. Of
each peak the rows in its basin are a component of their own, if there are three. Valleys are then
sought between peaks, with components about one peak joined. If clusters that are found like this
have no component beneath several of them, the peaks were ripples, and the components stay whole.
They also stay whole if they show more clusters than the peaks do, clusters beneath several peaks
not counted: normal clusters that overlap may have fewer peaks than components. Else pairs of peaks
are judged as pairs of components are, and each pair by itself, too, since a component beneath
several clusters has shown that these are no pieces of one shape.

Neighbours of a row are those that are nearest in standard units; along an edge between two rows the
density is asked for half way, unless all draws that judge have both rows in one component, within
which there is no saddle. All of this is for numbers without gaps: levels have no places in between.
Of many rows only some are looked at; others are in the basin of the nearest of these.
"""

# SPDX-License-Identifier: BSD-3-Clause

from copy import copy

import numpy as np
from sklearn.neighbors import NearestNeighbors

from ..states import draw_arrays
from ..summary._basins import basins
from ..summary._dip import scaled_dip
from ..summary._groups import FEW_ROWS
from ._draws import CHECKED, n_labelled, state_of
from ._loo import compared_rows
from ._view import View

NEIGHBOURS = 10  # of a row, to which it has edges
CHANCE = np.log(2.0)  # nats: a peak is one if it is less probable than this by chance


class Neighbourhood:
    """Rows and the edges between them, on which densities are compared.

    Parameters
    ----------
    table : Table
        The training rows.
    rows : int array of shape (n_rows,)
        Those that are looked at.
    columns : list of int
        Of a view: all numbers, none of which is missing.

    Attributes
    ----------
    first, second : ndarray of int64 of shape (n_edges,)
        The rows that an edge joins, by their place among those that are looked at.
    """

    def __init__(self, table, rows, columns):
        self.rows, self.columns = rows, columns
        self.some = some = table.take(rows)
        self.numbers = self.places(some)
        self.centre, spread = self.numbers.mean(axis=0), self.numbers.std(axis=0)
        self.spread = np.where(spread > 0, spread, 1.0)
        n_rows, n_near = some.n_rows, min(NEIGHBOURS, some.n_rows - 1)
        standard = self._standard(self.numbers)
        self.tree = NearestNeighbors(n_neighbors=n_near + 1).fit(standard)
        near = self.tree.kneighbors(return_distance=False, n_neighbors=n_near)
        row = np.repeat(np.arange(n_rows), n_near)
        pairs = np.minimum(row, near.ravel()) * n_rows + np.maximum(row, near.ravel())
        self.first, self.second = np.divmod(np.unique(pairs), n_rows)

    def places(self, table):
        """The numbers of rows: (n_rows, n_columns)."""
        return np.column_stack([table.column(j) for j in self.columns]).astype(np.float64)

    def _standard(self, numbers):
        return (numbers - self.centre) / self.spread

    def half_way(self, edges):
        """The places half way along some edges."""
        first, second = self.first[edges], self.second[edges]
        ends, out = self.some.take(first), self.some.empty_like()
        cells = [ends.column(j) for j in range(ends.n_columns)]
        for j, column in enumerate(self.columns):
            cells[column] = (self.numbers[first, j] + self.numbers[second, j]) / 2
        out.append(cells)
        return out

    def basins(self, of_rows, edges, of_edges):
        """The basin of each row under a density: (n_rows,).

        of_rows, of_edges : log densities, of rows, and half way along some edges."""
        heights = np.minimum(of_rows[self.first], of_rows[self.second])
        heights[edges] = np.minimum(heights[edges], of_edges)
        return basins(of_rows, self.first, self.second, heights, scaled_dip(CHANCE))

    def peaks(self, mixtures, weights, limit=None):
        """Which rows are about which peak of densities.

        Parameters
        ----------
        mixtures : list of Mixture
        weights : ndarray of shape (n_mixtures,)
        limit : TimeLimit or None
            Half of what is left of it may be spent; None is returned if that is too little.

        Returns
        -------
        found : ndarray of int64 of shape (n_rows,)
            The basin of each row under the mean density.
        of_mixtures : list of ndarray of int64 of shape (n_rows,)
            The same under each mixture's own.
        """
        began, views = limit.taken if limit else 0.0, [View(mixture) for mixture in mixtures]
        of_rows, apart = np.empty((len(views), self.some.n_rows)), np.zeros(len(self.first), bool)
        for own, view in zip(of_rows, views):
            joint = view.joint(self.some, 0, self.some.n_rows)
            own[:], best = _log_sums(joint), joint.argmax(axis=1)
            apart |= best[self.first] != best[self.second]
        if limit and limit.left < 2 * NEIGHBOURS * (limit.taken - began):
            return None
        edges, between = np.flatnonzero(apart), self.half_way(apart)
        of_edges = [_log_sums(view.joint(between, 0, between.n_rows)) for view in views]
        log_weights = np.log(weights / weights.sum())[:, None]
        mean = [_log_sums((of + log_weights).T) for of in (of_rows, np.array(of_edges))]
        of_each = [self.basins(own, edges, of) for own, of in zip(of_rows, of_edges)]
        return self.basins(mean[0], edges, mean[1]), of_each

    def basins_of(self, table, found):
        """The basin of the nearest row, of any rows: (n_rows,)."""
        numbers = self._standard(self.places(table))
        return found[self.tree.kneighbors(numbers, 1, return_distance=False)[:, 0]]


def _log_sums(logs):
    """Log of the sum of the exponentials of each row, one of which is finite."""
    largest = logs.max(axis=1)
    return largest + np.log(np.exp(logs - largest[:, None]).sum(axis=1))


def neighbourhood(point, table, rows):
    """The Neighbourhood of some rows of a table in a point estimate's view; None if that has other
    columns than numbers, if cells are missing, or if there is a single row."""
    view = View(state_of(point, table.empty_like()).views[point.main_view])
    columns = sorted(view.features)
    numbers = all(
        table.dtypes[j] == "f4" and not len(table.atoms[j]) and not table.has_missing(j)
        for j in columns
    )
    return Neighbourhood(table, rows, columns) if numbers and len(rows) > 1 else None


def numbers_of(point, table, most):
    """The columns of numbers of a point estimate's view, those with atoms left out, in at most so
    many rows: (n_rows, n_columns), or None if there is none; and whether the view has no other
    column."""
    view = View(state_of(point, table.empty_like()).views[point.main_view])
    some = table.take(compared_rows(table.n_rows, most))
    numbers = [
        j for j in sorted(view.features) if some.dtypes[j] == "f4" and not len(some.atoms[j])
    ]
    if not numbers:
        return None, False
    return np.column_stack([some.column(j) for j in numbers]), len(numbers) == len(view.features)


def beneath(labels_of_draws, rows, groups):
    """Whether most draws have a component that has no more than half of its rows in any group.

    Parameters
    ----------
    labels_of_draws : list of int arrays
        Components of all rows.
    rows, groups : int array of shape (n_rows,)
        Some of the rows, and their basins or clusters.
    """
    having = [_beneath(labels[rows], groups).any() for labels in labels_of_draws]
    return 2 * sum(having) > len(having)


def _beneath(labels, groups):
    """Which components have no more than half of their rows in any group; none that has no row."""
    counts = _counts(labels, groups)
    return 2 * counts.max(axis=1) < counts.sum(axis=1)


def show_as_many(groups, labels, clusters):
    """Whether groups of parts are no fewer than clusters of whole components, of which those do not
    count whose components all lie beneath several groups.

    Parameters
    ----------
    groups, labels : int array of shape (n_rows,)
        The group, and the component, of some rows.
    clusters : int array of shape (n_components,)
    """
    under = np.zeros(len(clusters), dtype=bool)
    under[: int(labels.max()) + 1] = _beneath(labels, groups)
    return len(np.unique(groups)) >= len(np.unique(clusters[~under]))


def main_peaks(labels, rows, found):
    """About which peak each component is: the one with most of its rows among some, or one of its
    own if it has none there. Parameters as in `parted`."""
    counts = _counts(labels[rows], found)
    counts = np.pad(counts, ((0, int(labels.max()) + 1 - len(counts)), (0, 0)))
    own = np.arange(len(counts)) + counts.shape[1]
    return np.where(counts.any(axis=1), counts.argmax(axis=1), own)


def _counts(labels, groups):
    """How many rows of each component are in each group: (n_components, n_groups)."""
    counts = np.zeros((int(labels.max()) + 1, int(groups.max()) + 1), dtype=np.int64)
    np.add.at(counts, (labels, groups), 1)
    return counts


def parted(draw, view, labels, around, found, table):
    """A draw whose components in a view are parted by basins; the same one if none is.

    Parameters
    ----------
    draw : Draw or CrossCatDraw
    view : int
        Its number in the state.
    labels : int array of shape (n_table_rows,)
        The draw's components there.
    around : Neighbourhood
    found : int array of shape (n_rows,)
        The basins of its rows.
    table : Table
        The training rows.
    """
    counts = _counts(labels[around.rows], found)
    where = counts >= FEW_ROWS
    where[where.sum(axis=1) < 2] = False
    where = np.pad(where, ((0, int(labels.max()) + 1 - len(where)), (0, 0)))
    rows = np.flatnonzero(where.any(axis=1)[labels])
    if not len(rows):
        return draw
    own, basin = labels[rows], around.basins_of(table.take(rows), found)
    basin = np.where(where[own, basin], basin, main_peaks(labels, around.rows, found)[own])
    new = labels.astype(np.int64)
    new[rows] = len(where) + own * where.shape[1] + basin
    new = np.unique(new, return_inverse=True)[1]
    state = state_of(draw, table)
    mixture = state.views[view]
    mixture.set_prior(mixture.prior.holding(int(new.max()) + 1))
    mixture.replace(np.arange(table.n_rows), new)
    out = copy(draw)
    out.arrays = draw_arrays(state, "link_views" in draw.arrays)
    CHECKED[out] = {0, n_labelled(out.arrays)}
    return out
