"""Grid Gibbs over hyperparameters: each is drawn from its exact conditional on a grid.

A feature's hyperparameters have uniform priors over the points of their grids, and a sweep draws
them coordinate by coordinate given the partition. It then draws a column's pseudo-counts once more,
all moved by the same number of steps. Concentration and discount are drawn jointly, from the grid
of the partition prior with its weights.
"""

import numpy as np

from ..families import FAMILIES
from ..families._division import divided, joined_grids
from ..families._forms import starts
from ..partition_priors import PriorGrid
from ._info import MARGINAL, MoveInfo, Polled
from ._pseudo_counts import draw_together
from ._random import draw_index


class EachView(Polled):
    """A mixture's move, applied to every view.

    Parameters
    ----------
    move : object
        With sweep(mixture, bit_generator, *, beta) -> MoveInfo.
    """

    def __init__(self, move):
        self.move = move
        self.name, self.exact, self.tempered = move.name, move.exact, move.tempered
        self.acts_on = getattr(move, "acts_on", None)

    def sweep(self, state, bit_generator, *, beta=1.0):
        """One sweep of each view; the sum of their MoveInfo."""
        self.move.poll, infos = self.poll, []
        for view in state.views:
            self.poll()
            infos.append(self.move.sweep(view, bit_generator, beta=beta))
        return MoveInfo(*map(sum, zip(*infos)))


class FeatureHyperparameters(Polled):
    """Grid Gibbs over the hyperparameters of every feature that has grids.

    Parameters
    ----------
    grids : dict of int to list of (ndarray or None)
        For a column of the table, the grid of each coordinate; None keeps the coordinate fixed.
        Columns left out are fixed. A row family's grids are under its first column. Where views
        divide its columns, each column has its own.
    together : bool, default=True
        Whether a column's pseudo-counts are also drawn together. While rows are few, the
        draw would find small clusters to be alike, and they would then grow alike.
    """

    name = "hyperparameters"
    exact = True
    tempered = True

    def __init__(self, grids, together=True):
        self.given, self.together = {int(j): of_column for j, of_column in grids.items()}, together
        self.grids = {j: _one_after_another(of_column) for j, of_column in self.given.items()}
        self.joined = {}  # first column of a divided row family -> (its columns, their grids)

    def sweep(self, state, bit_generator, *, beta=1.0):
        """Draw every coordinate once, and then pseudo-counts together."""
        drawn = 0
        for block in state.blocks:
            before = drawn
            for f in range(block.n_features):
                grids = self._grids_of(block, f)
                if grids is not None:
                    self.poll()
                    drawn += block.draw_hyper(f, *grids, beta, bit_generator)
                    if self.together and block.first_pseudo_count is not None:
                        drawn += draw_together(block, f, *grids, beta, bit_generator)
            if drawn > before:
                block.refresh_all()
            if block.weighted:
                drawn += self._draw_weights(state, block, beta, bit_generator)
        return MoveInfo(drawn, drawn, MARGINAL * drawn * state.n_clusters)

    def _grids_of(self, block, f):
        """The grids of a block's feature as `draw_hyper` takes them; None if it is fixed."""
        columns = [] if block.division is None else block.columns.tolist()
        if len(columns) < 2 or not divided(block, columns, self.given):
            return self.grids.get(int(block.columns[f]))
        known, grids = self.joined.get(columns[0], (None, None))
        if known != columns:
            grids = _one_after_another(joined_grids(block, [self.given[j] for j in columns]))
            self.joined[columns[0]] = columns, grids
        return grids

    def _draw_weights(self, state, block, beta, bit_generator):
        """Draw the rows' weights jointly with the block's last coordinate, that of their law;
        return 1."""
        values, starts = self.grids.get(int(block.columns[0]), (np.empty(0), [0, 0]))
        rows = state.subsample.rows()
        labels = state.labels_of(rows)
        block.draw_weights(rows, labels, values[starts[-2] : starts[-1]], beta, bit_generator)
        return 1


class SharedHyperparameters(Polled):
    """Grid Gibbs over what the columns of a row family share in all views of a CrossCat.

    Parameters
    ----------
    grids : dict of str to list of (ndarray or None)
        By family, the grid of each coordinate of a column alone; None keeps it fixed.
    """

    name = "shared_hyperparameters"
    exact = True
    tempered = True

    def __init__(self, grids):
        self.grids = grids

    def sweep(self, state, bit_generator, *, beta=1.0):
        """Draw every coordinate once, given the blocks of all views."""
        drawn, generator = 0, np.random.Generator(bit_generator)
        for family, of_family in self.grids.items():
            views = [block for view in state.views for block in view.blocks]
            blocks = [block for block in views if block.family == family]
            for h, grid in enumerate(of_family):
                if grid is not None and len(grid) > 1:
                    self.poll()
                    _draw_shared(blocks, FAMILIES[family], h, grid, beta, generator)
                    drawn += 1
        return MoveInfo(drawn, drawn, drawn)


def _draw_shared(blocks, member, h, grid, beta, generator):
    """Draw coordinate h, which these blocks share, from its conditional."""
    step = member.division.growth.get(member.coordinate_names[h], 0.0)
    at = [starts(member.forms, len(block.columns))[h] for block in blocks]
    grids = [grid + (len(block.columns) - 1) * step for block in blocks]
    scores = sum(block.grid_scores(0, *own) for block, *own in zip(blocks, at, grids))
    point = draw_index(beta * scores, generator)
    for block, place, values in zip(blocks, at, grids):
        block.set_hyper(0, place, values[point])
        block.refresh_all()


def _one_after_another(grids):
    """Grids in one array, and where each begins."""
    parts = [np.empty(0) if grid is None else grid for grid in grids]
    return np.concatenate([np.empty(0), *parts]), np.cumsum([0, *map(len, parts)]).astype(np.int64)


class PartitionHyperparameters:
    """Grid Gibbs over the pair (concentration, discount) of a mixture's partition of rows, or of a
    CrossCat's partition of columns.

    Parameters
    ----------
    grid : PriorGrid or ndarray of shape (n_points, 2)
        Pairs (concentration, discount); an array weighs them alike.
    """

    name = "partition_hyperparameters"
    exact = True
    tempered = True

    def __init__(self, grid):
        self.grid = PriorGrid.of(grid)

    def sweep(self, state, bit_generator, *, beta=1.0):
        """Draw the pair given the sizes of the clusters, on which alone it depends."""
        if len(self.grid) < 2:
            return MoveInfo(0, 0, 0)
        state.set_prior(self.drawn(state.prior, state.sizes(), bit_generator))
        return MoveInfo(1, 1, 1)

    def drawn(self, prior, sizes, bit_generator):
        """A prior drawn given the sizes of the clusters; `prior`, if the grid has one point."""
        if len(self.grid) < 2:
            return prior
        places, points, log_weights = self.grid.points_within(int(sizes.sum()))
        log_weights = prior.grid_scores(sizes, points) + log_weights
        place = places[draw_index(log_weights, np.random.Generator(bit_generator))]
        return self.grid.prior(place, type(prior))
