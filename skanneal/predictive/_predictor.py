"""Answers of a set of draws to queries.

A row's density in a view of a draw is sum_c w_c p(row_v | x_c), the new cluster's term included; a
mixture is its own only view. That of the row is the product over views, or the sum over the
clusters of all views where these are linked (_links.py). Densities are averaged over draws, not
their logarithms; a draw may count less than others. The training data are not needed.
"""

# SPDX-License-Identifier: BSD-3-Clause

from copy import copy
from functools import partial
from types import MappingProxyType

import numpy as np
from scipy.special import logsumexp

from ..families import Table
from ..states import state_from_arrays
from ._conditional_fill import conditional_fill
from ._draws import state_of
from ._fill_in_units import filler_in_units
from ._forest_view import as_warped
from ._forests import outcomes_in
from ._links import Links, choose
from ._reach import sample_within
from ._view import View, shares_of_views

BLOCK_BYTES = 1 << 25  # of scores held at a time
NOTHING = MappingProxyType({})


class Predictor:
    """Answers queries, averaged over draws.

    Parameters
    ----------
    draws : list of Draw or CrossCatDraw
    schema : Schema
        Of the Table.
    draw_weights : float64 array of shape (n_draws,), default=None
        How much each draw counts, above 0; by default all count 1.

    Attributes
    ----------
    draws : list of list of View
    links : list of Links
        By draw, how its views go together.
    draw_weights : float64 array of shape (n_draws,)
    main : list of int
        For each draw, the view that answers where only one can.
    """

    def __init__(self, draws, schema, draw_weights=None):
        self.schema = schema
        self.draw_weights = np.ones(len(draws)) if draw_weights is None else draw_weights
        self._log_draw_weights = np.log(self.draw_weights)
        empty = Table(*schema)
        self.main = [draw.main_view for draw in draws]
        self.draws = [[View(mixture) for mixture in state_of(draw, empty).views] for draw in draws]
        self.links = [Links.of_draw(*pair) for pair in zip(draws, self.draws)]

    def warped(self, known):
        """This predictor with warped components that bind outcomes: by draw the `rank_counts`, the
        `held_places` and the `forest_edges` of its views, None for a draw without them."""
        other = copy(self)
        other.draws = [
            views if of_draw is None else list(map(as_warped, views, *of_draw))
            for views, of_draw in zip(self.draws, known)
        ]
        return other

    def with_parameters(self, draws, seed):
        """This predictor with weights and parameters drawn, which all rows then share.

        Parameters
        ----------
        draws : list of Draw or CrossCatDraw
            Its own.
        seed : SeedSequence
        """
        other, generator = copy(self), np.random.Generator(np.random.PCG64(seed))
        other.draws = [[view.drawn(generator) for view in views] for views in self.draws]
        other.links = [
            Links.of(draw.arrays, views, generator=generator)
            for draw, views in zip(draws, other.draws)
        ]
        return other

    def without(self, draws, table, rows):
        """Yield this predictor with draws that have not seen a training row, one row after another.

        Parameters
        ----------
        draws : list of Draw or CrossCatDraw
            Its own.
        table : Table
            The training rows.
        rows : sequence of int
        """
        other = copy(self)
        states = [state_from_arrays(draw.arrays, table).views for draw in draws]
        for row in map(int, rows):
            homes = [[int(mixture.get_labels()[row]) for mixture in views] for views in states]
            for views in states:
                for mixture in views:
                    mixture.remove_row(row)
            other.draws = [
                [view.renewed(mixture) for view, mixture in zip(views, mixtures)]
                for views, mixtures in zip(self.draws, states)
            ]
            other.links = [
                Links.of(draw.arrays, *of_draw) for draw, *of_draw in zip(draws, other.draws, homes)
            ]
            yield other
            for views, slots in zip(states, homes):
                for mixture, slot in zip(views, slots):
                    mixture.insert_row(row, slot)

    def table(self, columns):
        """Encoded columns as rows."""
        table = Table(*self.schema)
        table.append(columns)
        return table

    def view_of(self, views, column):
        """The view of a draw that has the column."""
        return next(view for view in views if column in view.features)

    # ---- densities ------------------------------------------------------------------------------

    def joints(self, d, table, start, stop):
        """log p(row, cluster) under draw d: of each of its views (stop - start, K + 1), all cells
        of the row counted; and log p(row), (stop - start,)."""
        return self.links[d].joints([of.joint(table, start, stop) for of in self.draws[d]])

    def of_view(self, d, v, table, start, stop):
        """log p(cluster, the row's cells in view v | its other cells) under draw d:
        (stop - start, K + 1)."""
        view, tree = self.draws[d][v], self.links[d].tree(v)
        if len(tree) == 1:
            return view.joint(table, start, stop)
        own = [None] * len(self.draws[d])
        for u in tree:
            own[u] = self.draws[d][u].joint(table, start, stop)
        return self.links[d].of_view(v, own, view.log_weights)

    def _log_density(self, d, table, start, stop):
        """log p(row) under draw d: (stop - start,)."""
        views, links = self.draws[d], self.links[d]
        if links.any:
            return links.upwards([view.joint(table, start, stop) for view in views])[2]
        return sum(logsumexp(view.joint(table, start, stop), axis=1) for view in views)

    def log_densities(self, table):
        """Log of each draw's weight times its density of each row: (n_rows, n_draws)."""
        return np.concatenate([*self._of_blocks(table), np.empty((0, len(self.draws)))])

    def _of_blocks(self, table):
        """Yield the same of a block of rows at a time."""
        for start, stop in self._blocks(table):
            out = np.empty((stop - start, len(self.draws)))
            for d, log_weight in enumerate(self._log_draw_weights):
                out[:, d] = self._log_density(d, table, start, stop) + log_weight
            yield out

    def log_density(self, table):
        """Log predictive density of each row: (n_rows,)."""
        means = [self._mean_of_logs(logs.T) for logs in self._of_blocks(table)]
        return np.concatenate([*means, np.empty(0)])

    def _mean_of_logs(self, logs):
        """log of the mean over draws of what has these logarithms, weights included."""
        return logsumexp(logs, axis=0) - np.log(self.draw_weights.sum())

    def new_cluster_probability(self, table):
        """Probability that each row opens a cluster of its own in the main view: (n_rows,)."""
        out = np.empty(table.n_rows)
        for start, stop in self._blocks(table, self._n_of_draw):
            new, whole = [], []
            for d, log_weight in enumerate(self._log_draw_weights):
                joints, log_density = self.joints(d, table, start, stop)
                whole.append(log_density + log_weight)
                new.append(joints[self.main[d]][:, -1] + log_weight)
            out[start:stop] = np.exp(self._mean_of_logs(new) - self._mean_of_logs(whole))
        return out

    def cluster_probabilities(self, table, v=0):
        """Probability of each existing cluster in view v of the first draw: (n_rows, K)."""
        out = np.empty((table.n_rows, len(self.draws[0][v].slots) - 1))
        for start, stop in self._blocks(table):
            joint = self.of_view(0, v, table, start, stop)[:, :-1]
            out[start:stop] = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        return out / out.sum(axis=1, keepdims=True)

    def memberships(self, table, d):
        """By view of draw d the probability of each existing cluster, a new one being the rest."""
        out = [np.empty((table.n_rows, len(view.slots) - 1)) for view in self.draws[d]]
        for start, stop in self._blocks(table, self._n_of_draw):
            joints, whole = self.joints(d, table, start, stop)
            for of_view, joint in zip(out, joints):
                of_view[start:stop] = np.exp(joint - whole[:, None])[:, :-1]
        return out

    def cell_surprisals(self, table, n_columns):
        """-log p(cell | the row's other cells): (n_rows, n_columns), nan for missing cells."""
        out = np.empty((table.n_rows, n_columns))
        for start, stop in self._blocks(table, self._n_weights):
            whole = []
            without = [[] for _ in range(table.n_columns)]
            for d, log_weight in enumerate(self._log_draw_weights):
                joints, log_density = self.joints(d, table, start, stop)
                whole.append(log_density + log_weight)
                for view, joint in zip(self.draws[d], joints):
                    for column in view.features:
                        cells = view.cell_scores(column, table, start, stop)
                        without[column].append(logsumexp(joint - cells, axis=1) + log_weight)
            whole = self._mean_of_logs(whole)
            for j in range(n_columns):
                out[start:stop, j] = self._mean_of_logs(without[j]) - whole
        for j in range(n_columns):
            out[table.missing(j), j] = np.nan
        return out

    def level_probabilities(self, table, columns):
        """Probability of each level of some columns, given the row's other cells.

        Parameters
        ----------
        table : Table
            Encoded rows, in which the column's own cell may be missing or not: it does not count.
        columns : iterable of int
            Columns of levels.

        Returns
        -------
        probabilities : dict of int to ndarray of shape (n_rows, n_levels)
        """
        found = {j: [np.empty((0, self.schema.n_levels[j]))] for j in columns}
        for start, stop in self._blocks(table, self._n_weights):
            of_draws = {j: [] for j in found}
            for d, log_weight in enumerate(self._log_draw_weights):
                joints, _ = self.joints(d, table, start, stop)
                for view, joint in zip(self.draws[d], joints):
                    for j in found.keys() & view.features.keys():
                        without = joint - view.cell_scores(j, table, start, stop)
                        of_draws[j].append((without + log_weight, view))
            for j, pairs in of_draws.items():
                top = np.max([logs.max(axis=1) for logs, _ in pairs], axis=0)[:, None]
                mixed = sum(
                    view.mixed_levels(j, np.exp(logs - top), table, start, stop)
                    for logs, view in pairs
                )
                found[j].append(mixed / mixed.sum(axis=1, keepdims=True))
        return {j: np.concatenate(blocks) for j, blocks in found.items()}

    # ---- missing cells --------------------------------------------------------------------------

    def fill(self, table, missing, mode=False, maps=NOTHING):
        """A value for each missing cell, given the rest of its row.

        Parameters
        ----------
        table : Table
            Encoded rows.
        missing : list of bool arrays of shape (n_rows,)
            The cells to fill, for the first columns of the table.
        mode : bool, default=False
            For numbers the most probable one of the clusters' centres, not the mean. Levels always
            get the most probable one.
        maps : mapping of int to MarginMap, default={}
            By column, from cells of the mixture to those of the answer.

        Returns
        -------
        values : list of ndarray of shape (n_missing,)
            For each column of `missing`, its missing cells': numbers in the user's units, codes.
        spreads : list of ndarray of shape (n_missing,)
            Standard deviations of numbers, one minus the probability of levels.
        """
        values, spreads = [[[np.empty(0)] for _ in missing] for _ in range(2)]
        wanted = [j for j, mask in enumerate(missing) if mask.any()]
        in_units = {j for j in wanted if j in maps or self._amounts_with_atoms(j)}
        fillers = {
            j: filler_in_units(self, j, maps.get(j), mode)
            if j in in_units
            else self.filler(j, mode)
            for j in wanted
        }
        for start, stop in self._blocks(table, self._n_weights):
            shares = self._shares(table, start, stop)
            for j in wanted:
                rows = np.flatnonzero(missing[j][start:stop])
                own = np.hstack([share[j][rows] for share in shares])
                value, spread = fillers[j](own, table, start + rows)
                values[j].append(value)
                spreads[j].append(spread)
        pairs = zip(map(np.concatenate, values), map(np.concatenate, spreads))
        filled = [
            pair if j in in_units else self.both_in_units(j, *pair) for j, pair in enumerate(pairs)
        ]
        return [value for value, _ in filled], [spread for _, spread in filled]

    def _amounts_with_atoms(self, j):
        """Whether a column's cells are logarithms of numbers with atoms."""
        block, _ = self.view_of(self.draws[0], j).features[j]
        return block.logarithms_of is not None and hasattr(block, "outcome_shares")

    def in_units(self, j, cells):
        """Numbers in the user's units; codes as integers."""
        return self.both_in_units(j, cells, 0.0)[0]

    def both_in_units(self, j, cells, deviations):
        """Numbers and their standard deviations in the user's units; codes as integers."""
        if self.schema.n_levels[j]:
            return np.asarray(cells, dtype=np.int64), deviations
        block, f = self.view_of(self.draws[0], j).features[j]
        numbers, units = cells * self.schema.scales[j] + self.schema.offsets[j], block.units_of(f)
        deviations = deviations * self.schema.scales[j]
        return units.in_units(numbers), units.spread_in_units(numbers, deviations)

    def _shares(self, table, start, stop):
        """For each draw, by column: P(draw, cluster of the column's view | row), (rows, K + 1)."""
        found = [self.joints(d, table, start, stop) for d in range(len(self.draws))]
        totals = [total + own for (_, total), own in zip(found, self._log_draw_weights)]
        whole = logsumexp(totals, axis=0)[:, None]
        out = []
        for views, (joints, _), log_weight in zip(self.draws, found, self._log_draw_weights):
            share = {}
            for view, joint in zip(views, joints):
                share |= dict.fromkeys(view.features, np.exp(joint + log_weight - whole))
            out.append(share)
        return out

    def filler(self, column, mode):
        """A function from P(draw, cluster | row), and the rows of a table that they are of, to
        values, in cell units, and their spread."""
        views = [self.view_of(of_draw, column) for of_draw in self.draws]
        if views[0].is_joint(column):
            return lambda shares, table, rows: conditional_fill(
                shares, *zip(*(view.conditionals(column, table, rows) for view in views)), mode
            )
        if views[0].level_probabilities(column) is not None:
            return partial(_most_probable_levels, views, column)
        means = np.concatenate([view.means(column) for view in views])
        variances = np.concatenate([view.variances(column) for view in views])
        centre = means.mean()
        squares = variances + (means - centre) ** 2
        if mode:
            places, outcomes, densities = self._candidates(column, views, means)

        def numbers(shares, table, rows):
            mean = shares @ means
            deviation = np.sqrt(np.maximum(shares @ squares - (mean - centre) ** 2, 0.0))
            if not mode:
                return mean, deviation
            some = table.take(rows)
            mixed = sum(
                view.mixed(column, own, of, outcomes, some, 0, len(rows))
                for view, own, of in zip(views, shares_of_views(views, shares), densities)
            )
            return places[mixed.argmax(axis=1)], deviation

        return numbers

    def _candidates(self, column, views, means):
        """The clusters' centres, which outcome of the column each is, and by view the density of
        each in each cluster: (K + 1, n)."""
        cells = self.schema.missing_cells(len(means))
        whole = cells[column].dtype.kind == "u"
        cells[column] = np.rint(means) if whole else means
        table = self.table(cells)
        scores = [view.cell_scores(column, table, 0, len(means)) for view in views]
        top = max(of.max() for of in scores)
        places, outcomes = table.column(column).astype(np.float64), outcomes_in(table, column)
        return places, outcomes, [np.exp(of - top).T for of in scores]

    def simulate(self, table, seed, n=None, maps=NOTHING, reach=NOTHING):
        """A joint draw of the missing cells of each row, given the others.

        Parameters
        ----------
        table : Table
            Encoded rows.
        seed : SeedSequence
        n : int, optional
            The table has one row, which stands for n equal ones.
        maps : mapping of int to MarginMap, default={}
            By column, from cells of the mixture to those of the answer.
        reach : mapping of int to (float, float), default={}
            What `reach_of` gives; numbers of other columns may be anywhere.

        Returns
        -------
        columns : list of ndarray of shape (n_rows,)
            Numbers in the user's units, codes; 0 in cells that are not missing.
        """
        bit_generator = np.random.PCG64(seed)
        generator = np.random.Generator(bit_generator)
        log_densities = self.log_densities(table)
        weights = np.exp(log_densities - log_densities.max(axis=1, keepdims=True))
        n_rows = table.n_rows if n is None else n
        which = choose(np.cumsum(weights, axis=1), generator.random(n_rows))
        missing = [np.broadcast_to(table.missing(j), n_rows) for j in range(table.n_columns)]
        columns = [
            np.zeros(n_rows, np.int64 if levels else float) for levels in self.schema.n_levels
        ]
        for d, views in enumerate(self.draws):
            rows = np.flatnonzero(which == d)
            own = table if n is not None else table.take(rows)
            gaps = [mask[rows] for mask in missing]
            for v, at in self._clusters(d, own, len(rows), generator):
                of_view = sample_within(reach, views[v], gaps, at, bit_generator, own)
                for j, empty, cells in of_view:
                    in_units = partial(self.in_units, j)
                    columns[j][rows[empty]] = (
                        maps[j].drawn(cells, in_units, views[v].nearest_held(j, at[empty]))
                        if j in maps
                        else in_units(cells)
                    )
        return columns

    def _clusters(self, d, table, n, generator):
        """Yield each view of draw d and a cluster of each row in it, given the row's cells and its
        clusters in the views before: indices into view.slots.

        The table has n rows, or one that stands for n."""
        views, links, alike = self.draws[d], self.links[d], table.n_rows == 1
        for tree in links.trees:
            at = {v: np.empty(n, dtype=np.int64) for v in tree}
            for start, stop in self._blocks(table, n_rows=n):
                own = [None] * len(views)
                for v in tree:
                    own[v] = views[v].joint(table, *((0, 1) if alike else (start, stop)))
                below, found = links.upwards(own)[0], {}
                for v in tree:
                    logs = links.given_parent(v, below, found)
                    weights = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
                    uniforms = generator.random(stop - start)
                    found[v] = choose(np.cumsum(weights, axis=1), uniforms)
                    at[v][start:stop] = found[v]
            yield from at.items()

    # ---- blocks of rows -------------------------------------------------------------------------

    @property
    def _n_weights(self):
        """Clusters of all draws and views."""
        return sum(len(view.slots) for views in self.draws for view in views)

    @property
    def _n_of_draw(self):
        """Clusters of all views of the draw that has most."""
        return max(sum(len(view.slots) for view in views) for views in self.draws)

    def _blocks(self, table, width=0, n_rows=None):
        """Ranges of the table's rows, or of so many, small enough to hold `width` numbers for each,
        or as many as the widest view has, or the widest draw whose views are linked."""
        n_rows = table.n_rows if n_rows is None else n_rows
        widest = max(view.mixture.n_slots for views in self.draws for view in views)
        if any(links.any for links in self.links):
            widest = max(widest, self._n_of_draw)
        step = max(1, BLOCK_BYTES // (8 * max(width, widest)))
        for start in range(0, n_rows, step):
            yield start, min(start + step, n_rows)


def _most_probable_levels(views, column, shares, table, rows):
    """As a filler of `Predictor`."""
    some = table.take(rows)
    return _most_probable(
        sum(
            view.mixed_levels(column, own, some, 0, len(rows))
            for view, own in zip(views, shares_of_views(views, shares))
        )
    )


def _most_probable(probabilities):
    """The most probable level of each row, and the probability of the others."""
    levels = probabilities.argmax(axis=1)
    best = np.take_along_axis(probabilities, levels[:, None], axis=1)[:, 0]
    return levels, np.maximum(1.0 - best, 0.0)
