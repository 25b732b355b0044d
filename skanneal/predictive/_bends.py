r"""How the numbers of one component differ from its family's law: a map for each column.

The maps of _margins.py give a column the margin of the data. Within a component its numbers may
still be skewed, end somewhere, or pile up where the family has a smooth law. So with
``margins="data"`` a component *bends* its law: its rows have the law of rows y' of the family, cell
by cell y = h^-1(y'), with a map h for each column of numbers. What binds the columns is that of the
family, as in a Gaussian copula, and the whole stays one law,

    p_k(y) = p_family(h_k(y)) prod_j h_kj'(y_j).

Let A be the family's law of the column in the component, a Student's t, and u = A(y) the ranks of
the component's training cells. If the family is right they are uniform. Their law is estimated by
Polya trees (Lavine 1992, "Some aspects of Polya tree distributions for statistical modelling",
Annals of Statistics 20): (0, 1) is halved LEVELS times; of n ranks in an interval of level l - 1,
n_1 of them in its left half, the left half has in the mean the share

    (c l^2 + n_1) / (2 c l^2 + n),

since the shares have beta laws of parameters c l^2, with which the trees' laws have densities. How
smooth these are, c, is not known: trees of STRENGTHS are averaged by their evidence, in each
component and column. So a component of few rows keeps its family's law, and so does a new one. h
takes the quantiles of A at the ends of the 2^LEVELS intervals to those with the estimated shares
below; it is straight between them, and of slope 1 beyond. Atoms, levels and counts stay as they
are: their laws are free anyway.

Where numbers recur, a draw becomes one of the training values that recur (`MarginMap.drawn`). Which
do may differ between components too: it is the one of a row of its component whose rank is nearest.
That is how draws are rounded, and no part of the law.

One strength for all, c = 1, was turned down: where the family is right, new rows were then less
probable than without maps.
"""

# SPDX-License-Identifier: BSD-3-Clause

from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from scipy.special import betaln, softmax, stdtr, stdtrit

from ._draws import partitions
from ._model_margin import off_atoms
from ._view import View

LEVELS = 6
BINS = 2**LEVELS
STRENGTHS = 0.5, 2.0, 8.0, 32.0  # c, each as probable as the others
MOST_DEGREES = 1e6  # of Student's t; more are a normal law
NEW = np.iinfo(np.int64).max  # a component that no row has


# ---- what training cells say ---------------------------------------------------------------------


def rank_counts(view, cells, labels):
    """How many training cells of each component have ranks in each interval.

    Parameters
    ----------
    view : View
        Of a draw whose components are numbered 0 .. K - 1.
    cells : dict of int to float64 array of shape (n,)
        By column, on the axis of the mixture; NaN where missing or at an atom.
    labels : int array of shape (n,)
        The component of each row.

    Returns
    -------
    counts : dict of int to int32 array of shape (K, BINS)
        Of the columns of the view whose law is Student's.
    """
    counts = {}
    for place in sorted(cells.keys() & view.features.keys()):
        law = view.student_law(place)
        if law is None:
            continue
        known = np.flatnonzero(~np.isnan(cells[place]))
        own = labels[known]
        centre, root, degrees = (of[own] for of in _standard(law))
        ranks = stdtr(degrees, (cells[place][known] - centre) / root)
        bins = np.minimum((ranks * BINS).astype(np.int64), BINS - 1)
        counts[place] = np.zeros((len(view.slots) - 1, BINS), dtype=np.int32)
        np.add.at(counts[place], (own, bins), 1)
    return counts


def held_places(view, places, labels):
    """Which training values the rows of each component have.

    Parameters
    ----------
    view : View
    places : dict of int to float64 array of shape (n,)
        By column, the place of each row's number among the training values; NaN if it has none.
    labels : int array of shape (n,)

    Returns
    -------
    held : dict of int to HeldPlaces
    """
    held = {}
    for place in sorted(places.keys() & view.features.keys()):
        known = np.flatnonzero(~np.isnan(places[place]))
        own, at = labels[known], places[place][known].astype(np.int32)
        order = np.lexsort((at, own))
        starts = np.searchsorted(own[order], np.arange(len(view.slots)))
        held[place] = HeldPlaces(starts, at[order])
    return held


class HeldPlaces(NamedTuple):
    """Places among the training values, ascending in each component.

    Attributes
    ----------
    starts : int array of shape (K + 1,)
        Where those of each component begin.
    places : int32 array
    """

    starts: np.ndarray
    places: np.ndarray

    def nearest(self, components, places):
        """For each place the nearest one that the component has; itself if it has none."""
        out = np.array(places)
        for k in np.unique(components[components < len(self.starts) - 1]):
            own, here = self.places[self.starts[k] : self.starts[k + 1]], components == k
            if len(own):
                above = np.searchsorted(own, places[here])
                pairs = own[np.clip([above - 1, above], 0, len(own) - 1)]
                off = np.abs(pairs - places[here])
                out[here] = np.where(off[0] < off[1], *pairs)
        return out


def of_views(function, draw, views, of_rows, rows):
    """What a function gives of each view of a draw, of what is known of these rows by column, and
    their components."""
    view_of, labels = partitions(draw.arrays, rows)
    own = [labels[view_of[min(view.features)] if len(views) > 1 else 0] for view in views]
    return [function(view, of_rows, of) for view, of in zip(views, own)]


def shares(counts):
    """The probability of each interval, given how many ranks are in it: (K, BINS)."""
    logs, trees = [], []
    for strength in STRENGTHS:
        log_evidence, tree = np.zeros(len(counts)), np.ones((len(counts), 1))
        for level in range(1, LEVELS + 1):
            n = counts.reshape(len(counts), 2 ** (level - 1), 2, -1).sum(axis=3)
            a = strength * level**2
            ratios = betaln(*np.moveaxis(a + n, 2, 0)) - betaln(a, a) + np.log(2.0) * n.sum(axis=2)
            log_evidence += ratios.sum(axis=1)
            halves = (a + n) / (2.0 * a + n.sum(axis=2, keepdims=True))
            tree = (tree[:, :, None] * halves).reshape(len(counts), -1)
        logs.append(log_evidence)
        trees.append(tree)
    weights = softmax(logs, axis=0)
    return (weights[:, :, None] * trees).sum(axis=0)


def _standard(law):
    """Centres, scales and degrees of freedom that SciPy's functions take."""
    centre, square, degrees = law
    return centre, np.sqrt(square), np.minimum(degrees, MOST_DEGREES)


# ---- maps ----------------------------------------------------------------------------------------


class Bends:
    """The maps h of the components of a view.

    Parameters
    ----------
    view : View
    counts : dict of int to int32 array of shape (K, BINS)
        As `rank_counts` gives them.

    Attributes
    ----------
    lines : dict of int to Lines
        By column, from cells of the mixture to those of the family.
    """

    def __init__(self, view, counts):
        self.lines = {}
        edges = np.arange(1, BINS) / BINS
        for place, of in counts.items():
            centre, root, degrees = (a[:-1, None] for a in _standard(view.student_law(place)))
            estimated = shares(of)
            below = np.cumsum(estimated, axis=1)[:, :-1]
            above = np.cumsum(estimated[:, ::-1], axis=1)[:, -2::-1]
            low = below < 0.5  # from the nearer end
            bent = np.where(low, 1.0, -1.0) * stdtrit(degrees, np.where(low, below, above))
            self.lines[place] = Lines(stdtrit(degrees, edges) * root + centre, bent * root + centre)

    def from_family(self, place, at, cells):
        """Cells of the mixture; `at` is the component of each, or NEW."""
        cells, lines = np.array(cells, dtype=np.float64), self.lines[place]
        for k in np.unique(at[at < len(lines.x)]):
            cells[..., at == k] = lines.inverse(k, cells[..., at == k])
        return cells


class Lines:
    """For each component an increasing line through points, of slope 1 beyond them.

    Parameters
    ----------
    x, y : float64 array of shape (K, n_points)
        Ascending.
    """

    def __init__(self, x, y):
        ends, last = np.ones((len(x), 1)), np.maximum(np.arange(x.shape[1] + 1) - 1, 0)
        self.x, self.y = x, y
        self._slopes = np.hstack([ends, np.diff(y) / np.diff(x), ends])
        self._starts = y[:, last] - self._slopes * x[:, last]
        self._log_slopes = np.log(self._slopes)

    def __call__(self, k, values):
        """Values of component k's line, and the log of its slope there."""
        at = np.searchsorted(self.x[k], values)
        moved = self._starts[k].take(at) + self._slopes[k].take(at) * values
        return moved, self._log_slopes[k].take(at)

    def inverse(self, k, values):
        """Where component k's line has these values."""
        at = np.searchsorted(self.y[k], values)
        return (values - self._starts[k].take(at)) / self._slopes[k].take(at)


class BentView(View):
    """A view whose components have maps.

    Parameters
    ----------
    mixture, log_weights
        As of `View`.
    bends : Bends
        Of the components in the slots 0 .. K - 1, of which some may be empty.
    held : dict of int to HeldPlaces
        Of the same components.
    """

    def __init__(self, mixture, log_weights, bends, held):
        super().__init__(mixture, log_weights)
        self.bends, self.held, self._components = bends, held, np.r_[self.slots[:-1], NEW]
        bent = [not bends.lines.keys().isdisjoint(block.columns) for block in mixture.blocks]
        self._plain = [block for block, is_bent in zip(mixture.blocks, bent) if not is_bent]
        self._bent = [block for block, is_bent in zip(mixture.blocks, bent) if is_bent]

    @cached_property
    def _alone(self):
        """Of each component by itself the blocks that have bent columns."""
        empty = self.mixture.table.empty_like()
        return [
            [block.from_arrays(block.to_arrays(slot[None]), empty) for block in self._bent]
            for slot in self.slots
        ]

    @classmethod
    def of(cls, view, counts, held):
        """A View with the maps that follow from its `rank_counts`, and with its `held_places`;
        itself if it has neither."""
        if not counts and not held:
            return view
        return cls(view.mixture, view.log_weights, Bends(view, counts), held)

    def renewed(self, mixture, log_weights=None):
        return BentView(mixture, log_weights, self.bends, self.held)

    def nearest_held(self, column, at):
        if column not in self.held:
            return None
        return partial(self.held[column].nearest, self._components[at])

    def _in_families(self, table, start, stop):
        """Yield of each component, and of a new one, the rows as its families have them, and by
        column the log slopes: (stop - start,)."""
        columns = [table.column(j, start, stop) for j in range(table.n_columns)]
        cells = {place: columns[place].astype(np.float64) for place in self.bends.lines}
        stays = {place: _stays(columns[place], table.atoms[place]) for place in cells}
        plain = _rows_like(table, columns)
        units = {
            place: self.log_slope(*self.features[place], plain, 0, len(of))
            for place, of in cells.items()
        }  # densities are of numbers in the user's units
        for k, slot in enumerate(self.slots[:-1]):
            own, slopes = list(columns), {}
            for place, of in cells.items():
                moved, log_slopes = self.bends.lines[place](slot, of)
                moved = off_atoms(moved, table.atoms[place])
                own[place] = np.where(stays[place], columns[place], moved)
                slopes[place] = np.where(stays[place], 0.0, log_slopes) + units[place]
            rows = _rows_like(table, own)
            for place, of in cells.items():
                slopes[place] -= self.log_slope(*self.features[place], rows, 0, len(of))
            yield k, rows, slopes
        yield len(self.slots) - 1, plain, {}

    def joint(self, table, start, stop):
        known = [place for place in self.bends.lines if not table.missing(place)[start:stop].all()]
        if not known:
            return super().joint(table, start, stop)
        scores = np.zeros((stop - start, int(self.slots.max()) + 1))
        for block in self._plain:
            block.score_rows(table, scores, start, stop)
        out = scores[:, self.slots] + self.log_weights
        for k, rows, slopes in self._in_families(table, start, stop):
            own = np.zeros((stop - start, 1))
            for block in self._alone[k]:
                block.score_rows(rows, own, 0, stop - start)
            out[:, k] += sum(slopes.values(), own[:, 0])
        return out

    def cell_scores(self, column, table, start, stop):
        if self._place(column) is None:
            return super().cell_scores(column, table, start, stop)
        out = np.zeros((stop - start, len(self.slots)))
        for k, rows, slopes in self._in_families(table, start, stop):
            block, f = self._block(column, k)
            own = np.zeros((stop - start, 1))
            block.score_feature(f, rows, own, 0, stop - start)
            out[:, k] = own[:, 0] + slopes.get(column, 0.0)
        return out

    def means(self, column):
        centres = super().means(column)
        return self.from_family(column, np.arange(len(self.slots)), centres)

    def to_family(self, column, cells):
        moved, log_slopes = map(np.array, super().to_family(column, cells))
        if column in self.bends.lines:
            for k, slot in enumerate(self.slots[:-1]):
                moved[:, k], log_slopes[:, k] = self.bends.lines[column](slot, cells)
        return moved, log_slopes

    def from_family(self, column, at, cells):
        if column not in self.bends.lines:
            return cells
        atoms = np.isin(cells, self.mixture.table.atoms[column])
        moved = self.bends.from_family(column, self._components[at], cells)
        return np.where(atoms, cells, moved)

    def conditionals(self, column, table, rows):
        """On the axis of the component's family."""
        if self._place(column) is None:
            return super().conditionals(column, table, rows)
        some, out = table.take(rows), np.empty((3, len(rows), len(self.slots)))
        for k, own, _ in self._in_families(some, 0, len(rows)):
            block, f = self._block(column, k)
            out[:, :, k] = [of[:, 0] for of in block.conditionals(f, own, np.arange(len(rows)), 1)]
        return list(out)

    def sample(self, missing, at, bit_generator, table=None):
        if table is not None:
            table = self._as_drawn(table, self._components[at])
        for column, rows, cells in super().sample(missing, at, bit_generator, table):
            yield column, rows, self.from_family(column, at[rows], cells)

    def _as_drawn(self, table, components):
        """Rows as the families of their components have them, where one may stand for all."""
        of = np.zeros(len(components), np.int64) if table.n_rows == 1 else np.arange(table.n_rows)
        some = table.take(of)
        columns = [some.column(j) for j in range(some.n_columns)]
        for place, lines in self.bends.lines.items():
            moves = ~_stays(columns[place], table.atoms[place]) & (components != NEW)
            for k in np.unique(components[moves]):
                own = moves & (components == k)
                moved = lines(k, columns[place][own].astype(np.float64))[0]
                columns[place][own] = off_atoms(moved, table.atoms[place])
        return _rows_like(table, columns)

    def _place(self, column):
        """The column's place in the blocks of one component; None if they have it not."""
        at = [i for i, block in enumerate(self._bent) if column in block.columns]
        return at[0] if at else None

    def _block(self, column, k):
        """The block of component k that has the column, and the feature's number in it."""
        block = self._alone[k][self._place(column)]
        return block, block.columns.tolist().index(column)


def _stays(cells, atoms):
    """Which cells are missing or at atoms."""
    return np.isnan(cells) | np.isin(cells, atoms)


def _rows_like(table, columns):
    new = table.empty_like()
    new.append(columns)
    return new
