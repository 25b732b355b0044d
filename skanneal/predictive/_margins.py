"""Margins of the data in place of the model's: one increasing map for each column of numbers.

The mixture says how columns go together; what a column is like by itself its values say better. So
a row x has the law of a row y of the mixture, x_j = g_j(y_j), where g_j takes the margin of the
mixture, averaged over its draws, to a smooth law of the training values (_margin_law.py):

    p(x) = p_mixture(y) prod_j dy_j / dx_j,    y_j = g_j^-1(x_j).

All maps are increasing and go cell by cell, so densities, draws, conditional laws and fills are
those of one law, and who depends on whom stays. There is one map for all draws: a draw whose margin
is above the mean of the draws stays above it. Within a draw each component has maps of its own
besides (_warps.py); so the law averages over DRAWS draws at most.

Numbers and their logarithms have maps, on the axis of the cells of their family. Levels and counts
do not; the mixture's laws of their values are as free as those of the data. An atom keeps the
probability that it has in the mixture: the maps are of what is elsewhere. Which levels and atoms go
together within components is told by forests (_forests.py).

Where others nearly determine a number of a family of whole rows (_own_spread.py), its map might
part what belongs together, farthest beyond the training values. Then these families' columns keep
the mixture's margins, unless maps that are made of every other row make the rest of the rows more
probable by two standard errors.

Rounding. The law is one of numbers as they were before they were rounded, and so are densities, as
elsewhere in the package. Draws and fills are rounded as the column is: where several training rows
share the number whose rank a draw has, it becomes this number, so that what recurs does so as
often. Other draws are rounded to the column's lattice, if it has one.

Where values end (`Walls` of _margin_law.py). A column that was never negative in fit has a hard
wall at 0: no draw is negative, and a negative number has no density. If more than one training
value is at an end of a rounded column, or if an end is an atom, the smooth law ends there, half a
step beyond, and what lies farther out has the share of one value in n + 1, by the model.

A map takes a value at a wall to where the mixture has hardly any rows, and no component holds it
for possible. But of a training value at the wall is only known that its rank is about that of half
a value of the n + 1. So where values come up to a wall, whatever is nearer to it than half a value
has the density that is found there.
"""

# SPDX-License-Identifier: BSD-3-Clause

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from .._native._warning import warn
from ..encoding import open_table
from ..encoding._codecs import as_numbers
from ._draws import evenly, partitions
from ._forests import forest_edges
from ._held_places import held_places
from ._margin_law import Walls, law_of_scores, quantiles
from ._model_margin import model_scores, off_atoms
from ._monotone import Monotone
from ._own_spread import nearly_determined
from ._predictor import Predictor
from ._warps import rank_counts

MOST_VALUES = 10_000  # of a column that its law is estimated from
DRAWS = 16  # that the law averages over
ASKED = 1000  # rows of a half, whether maps of the other half make them more probable
INSIDE = 1e-9, 1.0 - 1e-9  # of ranks
TOUCH = 4e-7  # relative error of a cell


class TrainingValues(NamedTuple):
    """What a column's law is made of, in cells.

    Attributes
    ----------
    cells : float32 array of shape (n,)
        Ascending, without atoms and gaps; of rounded numbers with their noise.
    shared : float64 array of shape (n,)
        The numbers that several rows hold, as the user gave them, else NaN.
    walls : Walls
    """

    cells: np.ndarray
    shared: np.ndarray
    walls: Walls


class Margins:
    """The training values that laws of columns are made of, and these laws as soon as asked for.

    Parameters
    ----------
    columns : dict of int to TrainingValues
        By the place in the Table.
    used : sequence of int
        The draws of the fit that the law averages over.

    Attributes
    ----------
    counts : list of list of dict
        By draw and view, what `rank_counts` gives; empty if there was no time.
    held : list of list of dict
        By draw and view, what `held_places` gives, of columns with numbers that recur.
    edges : list of list of (Edges or None)
        By draw and view, what `forest_edges` gives.
    law : Predictor or None
        Of the draws with warped components, as soon as a query asks for it; not pickled.
    """

    def __init__(self, columns=(), used=()):
        self.columns, self.used = dict(columns), np.asarray(used, dtype=np.int64)
        self.counts, self.held, self.edges, self.law, self._maps = [], [], [], None, None

    def __getstate__(self):
        return vars(self) | {"law": None}

    @classmethod
    def of(cls, encoder, table, X, draws, weights, limit=None):
        """The margins of the rows of a fit: of the Table, and as the user gave them.

        Parameters
        ----------
        encoder : Encoder
        table : Table
        X : array-like or frame of shape (n_rows, n_columns)
        draws : list of Draw or CrossCatDraw
            Those that answer queries.
        weights : ndarray of shape (n_draws,)
        limit : TimeLimit, optional
            If it is over, components are not warped.
        """
        given, found = open_table(X, "X", sparse=True), {}
        for place, j in enumerate(map(int, encoder.apart.kept)):
            if table.dtypes[place] == "f4":
                rows = _rows_elsewhere(table, place)
                cells = table.column(place)[rows]
                if np.ptp(cells) > 0:
                    values = as_numbers(given.column(j), encoder.codecs[j].family)[rows]
                    units = table.offsets[place], table.scales[place]
                    found[place] = _training_values(encoder, j, *units, cells, values)
        new = cls(found, evenly(len(draws), DRAWS))
        used = [draws[d] for d in new.used]
        predictor = Predictor(used, encoder.table_schema, weights[new.used])
        determined = nearly_determined(predictor, {at: of.cells for at, of in found.items()})
        left = _not_worth_mapping(predictor, found, table) if determined else []
        for place in left:
            del new.columns[place]
        if left:
            _warn_of_unmapped(encoder, determined, left)
        if not (limit and limit.is_over):
            rows, maps = _evenly_spread(np.arange(table.n_rows)), new.maps(predictor)
            ranks = {place: of.ranks(table.column(place)[rows]) for place, of in maps.items()}
            cells = {place: maps[place].at_ranks(of) for place, of in ranks.items()}
            places = {
                place: of * len(maps[place].known)
                for place, of in ranks.items()
                if not np.isnan(maps[place].shared).all()
            }
            pairs = list(zip(used, predictor.draws))
            new.counts = [_of_views(rank_counts, *pair, cells, rows) for pair in pairs]
            new.held = [_of_views(held_places, *pair, places, rows) for pair in pairs]
            labels = [_labels(*pair, np.arange(table.n_rows)) for pair in pairs]
            new.edges = forest_edges(predictor.draws, labels, table)
        return new

    @property
    def changed(self):
        """Whether the law differs from that of the mixture."""
        return bool(self.columns) or any(any(of_draw) for of_draw in self.edges)

    def maps(self, predictor):
        """By place the MarginMap from the margin of the mean of a predictor's draws, which are
        those of the fit."""
        if self._maps is None:
            self._maps = {
                place: MarginMap(predictor, place, of) for place, of in self.columns.items()
            }
        return self._maps


class MarginMap:
    """The map of one column: from cells of the mixture to those of the data, and back.

    Parameters
    ----------
    predictor : Predictor
    place : int
    known : TrainingValues

    Attributes
    ----------
    atoms : float32 array
        Cells that stay.
    scores : Monotone
        From arsinh of a cell to its score under the mixture's margin.
    curve : Monotone
        From arsinh of a cell of the mixture to that of one of the data; of slope 1 beyond all that
        is known of both.
    low, high : tuple of float
        A wall, and the cell of the data between which and the wall all cells count as this one.
        Infinite where there is no wall, or where values do not come up to it.
    """

    def __init__(self, predictor, place, known):
        self.atoms, self.lowest = predictor.schema.atoms[place], known.walls.lowest
        self.known, self.shared = known.cells, known.shared
        block, _ = predictor.view_of(predictor.draws[0], place).features[place]
        least = 0.0 if block.cells == "non_negative" else -np.inf
        self.scores = scores = model_scores(predictor, place, known.cells, least)
        walls = known.walls.mapped(lambda at: float(scores(np.arcsinh(at))))
        known_scores = scores(np.arcsinh(known.cells.astype(np.float64)))
        law = law_of_scores(known_scores, walls, lambda at: np.sinh(scores.inverse(at)))
        ends = [scores.inverse(at) for at in quantiles(*law)]
        self.curve = Monotone(*np.maximum(ends, np.arcsinh(least)), outer=1.0)
        low, high = max(known.walls.lowest, known.walls.low), known.walls.high
        ranks = np.array([0.5, 0.25]) / (len(known.cells) + 1.0)
        self.low = low, self._where_walled(low, ndtri(ranks), -np.inf)
        self.high = high, self._where_walled(high, -ndtri(ranks), np.inf)

    def _where_walled(self, wall, scores, otherwise):
        """The cell of the data at the first of two scores, of half a value and of a quarter, if the
        density there is at most twice its mean up to the wall."""
        half, quarter = np.sinh(self.curve(self.scores.inverse(scores)))
        return half if abs(half - wall) <= 4.0 * abs(half - quarter) else otherwise

    def to_data(self, cells):
        """Cells of the data from those of the mixture, float64."""
        cells = np.asarray(cells, dtype=np.float64)
        moved = np.maximum(np.sinh(self.curve(np.arcsinh(cells))), self.lowest)
        return np.where(np.isin(cells, self.atoms), cells, moved)

    def drawn(self, cells, in_units, of_component=None):
        """Numbers in the user's units of cells that were drawn: those of `to_data` and, where
        several training rows share the number of the same rank, this.

        `in_units` takes cells of the data to the user's units, and `of_component` places among the
        training values to the nearest that a row of the draw's component has.
        """
        cells = np.asarray(cells, dtype=np.float64)
        ranks = ndtr(self.scores(np.arcsinh(cells))) * len(self.shared)
        places = np.clip(ranks.astype(np.int64), 0, len(self.shared) - 1)
        shared = self.shared[places if of_component is None else of_component(places)]
        as_drawn = np.isnan(shared) | np.isin(cells, self.atoms)
        numbers = np.where(as_drawn, in_units(self.to_data(cells)), shared)
        return np.maximum(numbers, 0.0) if np.isfinite(self.lowest) else numbers

    def ranks(self, cells):
        """Ranks of training cells, from 0 to 1; NaN where missing or at an atom. Rows of one number
        are spread over the ranks at which `drawn` gives it."""
        elsewhere = np.flatnonzero(~np.isnan(cells) & ~np.isin(cells, self.atoms))
        order = elsewhere[np.argsort(cells[elsewhere], kind="stable")]
        low, high = (np.searchsorted(self.known, cells[order], side) for side in ("left", "right"))
        _, first, n = np.unique(cells[order], return_index=True, return_counts=True)
        shares = (np.arange(len(order)) - np.repeat(first, n) + 0.5) / np.repeat(n, n)
        out = np.full(len(cells), np.nan)
        out[order] = np.clip((low + shares * (high - low)) / len(self.known), *INSIDE)
        return out

    def at_ranks(self, ranks):
        """Cells of the mixture that have these ranks."""
        return np.sinh(self.scores.inverse(ndtri(ranks)))

    def to_model(self, cells):
        """Cells of the mixture from those of the data, and the log of their slope.

        Returns
        -------
        moved : float32 array
            NaN where missing.
        log_slopes : float64 array
            0 at atoms and where missing; -inf beyond a hard wall.
        """
        own = np.asarray(cells, dtype=np.float64)
        touch = TOUCH * (1.0 + np.abs(own))
        (low, first), (high, last) = self.low, self.high
        inside = np.maximum(np.where(np.isnan(own), 0.0, own), self.lowest)
        inside = np.where(inside >= low - touch, np.maximum(inside, first), inside)
        x = np.arcsinh(np.where(inside <= high + touch, np.minimum(inside, last), inside))
        y = self.curve.inverse(x)
        slopes = np.log(np.cosh(y)) - np.log(np.cosh(x)) - self.curve.log_slope(y)
        slopes = np.where(own < self.lowest - touch, -np.inf, slopes)
        stays = np.isnan(own) | np.isin(cells, self.atoms)
        moved = off_atoms(np.sinh(y), self.atoms)
        return np.where(stays, cells, moved), np.where(stays, 0.0, slopes)

    def points(self, every):
        """Cells of the mixture that stand for all, and the width of each; last the atoms.

        every : int
            One point in so many of the curve's.

        Returns
        -------
        cells, widths : float64 array of shape (n_points,)
            NaN is the width of an atom.
        """
        edges = self.curve.x[::every]
        middles = np.sinh(0.5 * (edges[:-1] + edges[1:]))
        widths = np.diff(np.sinh(edges)), np.full(len(self.atoms), np.nan)
        return np.r_[off_atoms(middles, self.atoms), self.atoms], np.concatenate(widths)


def rows_of_mixture(law, maps, cells):
    """Cells of the data as rows of the mixture, and by place the log slopes of their cells: what a
    log density of the mixture's cells lacks to be one of the user's numbers.

    Parameters
    ----------
    law : Predictor
    maps : dict of int to MarginMap
        By place.
    cells : list of ndarray of shape (n_rows,)
        Of all columns of the Table.
    """
    table, cells, slopes = law.table(cells), list(cells), {}
    for place, of in maps.items():
        cells[place], slopes[place] = of.to_model(cells[place])
    modelled = law.table(cells)
    for place in slopes:  # and those of the cells in the user's numbers
        view = law.view_of(law.draws[0], place)
        own, its = (
            view.log_slope(*view.features[place], rows, 0, rows.n_rows)
            for rows in (table, modelled)
        )
        slopes[place] = slopes[place] + own - its
    return modelled, slopes


def _not_worth_mapping(predictor, columns, table):
    """The columns of families of whole rows, unless maps that are made of every other row make the
    rest of the rows surely more probable than the mixture does."""
    joint = [at for at in columns if predictor.view_of(predictor.draws[0], at).is_joint(at)]
    rows, gains = _evenly_spread(np.arange(table.n_rows)), []
    for own, others in ((rows[::2], rows[1::2]), (rows[1::2], rows[::2])):
        maps = {}
        for at in joint:
            cells = table.column(at)[own]
            cells = np.sort(cells[~np.isnan(cells)])
            if len(cells) and np.ptp(cells) > 0:
                known = TrainingValues(cells, np.full(len(cells), np.nan), columns[at].walls)
                maps[at] = MarginMap(predictor, at, known)
        asked = others[:: -(-len(others) // ASKED)]
        cells = [table.column(j)[asked] for j in range(table.n_columns)]
        modelled, slopes = rows_of_mixture(predictor, maps, cells)
        mapped = predictor.log_density(modelled) + sum(slopes.values())
        gains.append(mapped - predictor.log_density(predictor.table(cells)))
    gains = np.concatenate(gains)
    with np.errstate(invalid="ignore"):  # a row beyond a hard wall is impossible
        worth = gains.mean() > 2.0 * gains.std() / np.sqrt(len(gains))
    return [] if worth else joint


def _warn_of_unmapped(encoder, determined, left):
    """Say which columns have no map although one was asked for.

    determined, left : collection of int
        Places of those that others nearly determine, and of all that have no map.
    """
    near, others = (
        ", ".join(encoder.names.label(int(encoder.apart.kept[place])) for place in sorted(places))
        for places in (determined, set(left) - determined)
    )
    warn(
        f"margins='data' has no effect on {near}, which other columns nearly determine: maps of "
        f"their own would part them from these"
        + (f"; nor on {others}, which have full covariances with them" if others else "")
        + ". Their draws may lie beyond where the training values end. Leave out those of the "
        "columns that others give."
    )


def _labels(draw, views, rows):
    """The components of some rows in each view of a draw."""
    view_of, labels = partitions(draw.arrays, rows)
    return [labels[view_of[min(view.features)] if len(views) > 1 else 0] for view in views]


def _of_views(function, draw, views, of_rows, rows):
    """What a function gives of each view of a draw, of what is known of these rows by column, and
    their components."""
    return [function(view, of_rows, of) for view, of in zip(views, _labels(draw, views, rows))]


def _rows_elsewhere(table, place):
    """Rows whose cells are neither missing nor atoms, MOST_VALUES at most, evenly spread; one row
    if there is none."""
    cells = table.column(place)
    rows = np.flatnonzero(~np.isnan(cells) & ~np.isin(cells, table.atoms[place]))
    return _evenly_spread(rows) if len(rows) else np.zeros(1, dtype=np.int64)


def _evenly_spread(rows):
    """These rows, or MOST_VALUES of them."""
    step = max(len(rows) / MOST_VALUES, 1.0)
    return rows[(np.arange(min(len(rows), MOST_VALUES)) * step).astype(np.int64)]


def _training_values(encoder, j, offset, scale, cells, values):
    """The TrainingValues of a column of the fit, from its cells and the user's numbers."""
    cells, values = np.sort(cells), np.sort(values)
    codec, lattice = encoder.codecs[j], encoder.jitter.lattices.get(j)
    of_logarithms = codec.lowest == 0.0

    def as_cells(values):
        with np.errstate(divide="ignore", invalid="ignore"):
            return ((np.log(values) if of_logarithms else values) - offset) / scale

    distinct, of, counts = np.unique(values, return_inverse=True, return_counts=True)
    half = 0.0 if lattice is None else 0.5 * lattice.step
    walls = _walls_of(values, getattr(codec, "atoms", ()), lattice is not None, half)
    if of_logarithms:
        walls = walls._replace(lowest=-np.inf)  # no cell is below
    elif values[0] >= 0.0:
        walls = walls._replace(lowest=0.0 if lattice is None else lattice.offset - half)
    shared = np.where(counts > 1, distinct, np.nan)
    return TrainingValues(cells, shared[of], walls.mapped(as_cells))


def _walls_of(values, atoms, is_rounded, half):
    """The ends that more than one value holds, in the user's units."""
    ends = values.min(), values.max()
    low, high = (is_rounded and np.sum(values == end) > 1 for end in ends)
    low = ends[0] - half if low else -np.inf
    high = ends[1] + half if high else np.inf
    if len(atoms) and atoms[0] < ends[0]:
        low = max(low, atoms[0] + half)
    if len(atoms) and atoms[-1] > ends[1]:
        high = min(high, atoms[-1] - half)
    return Walls(-np.inf, low, high)
