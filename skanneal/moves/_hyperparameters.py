"""Grid Gibbs over hyperparameters: each is drawn from its exact conditional on a grid.

A feature's hyperparameters have uniform priors over the points of their grids, and a sweep draws
them coordinate by coordinate given the partition. It then draws a column's pseudo-counts once more,
all moved by the same number of steps. Concentration and discount are drawn jointly, from the grid
of the partition prior with its weights.
"""

import numpy as np

from ..partition_priors import PriorGrid
from ._info import MoveInfo, Polled
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
        Columns left out are fixed. A row family's grids are under its first column.
    together : bool, default=True
        Whether a column's pseudo-counts are also drawn together. While rows are few, clusters that
        are still small would be found alike, and would then grow alike.
    """

    name = "hyperparameters"
    exact = True
    tempered = True

    def __init__(self, grids, together=True):
        self.grids, self.together = {}, together
        for column, of_column in grids.items():
            parts = [np.empty(0) if grid is None else grid for grid in of_column]
            starts = np.cumsum([0, *map(len, parts)]).astype(np.int64)
            self.grids[int(column)] = np.concatenate([np.empty(0), *parts]), starts

    def sweep(self, state, bit_generator, *, beta=1.0):
        """Draw every coordinate once, and then pseudo-counts together."""
        drawn = 0
        for block in state.blocks:
            before = drawn
            for f in range(block.n_features):
                column = int(block.columns[f])
                if column in self.grids:
                    self.poll()
                    drawn += block.draw_hyper(f, *self.grids[column], beta, bit_generator)
                    if self.together:
                        drawn += draw_together(block, f, *self.grids[column], beta, bit_generator)
            if drawn > before:
                block.refresh_all()
            if block.weighted:
                drawn += self._draw_weights(state, block, beta, bit_generator)
        return MoveInfo(drawn, drawn, drawn * state.n_tiles)

    def _draw_weights(self, state, block, beta, bit_generator):
        """Draw the rows' weights jointly with the block's last coordinate, that of their law;
        return 1."""
        values, starts = self.grids.get(int(block.columns[0]), (np.empty(0), [0, 0]))
        rows = state.subsample.rows()
        labels = state.labels_of(rows)
        block.draw_weights(rows, labels, values[starts[-2] : starts[-1]], beta, bit_generator)
        return 1


class PartitionHyperparameters:
    """Grid Gibbs over the pair (concentration, discount) of a mixture's partition of rows, or of a
    CrossCat's partition of features.

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
        sizes = state.sizes()
        places = self.grid.within(sizes.sum())
        scores = state.prior.grid_scores(sizes, self.grid.points[places])
        log_weights = scores + self.grid.log_weights[places]
        place = places[draw_index(log_weights, np.random.Generator(bit_generator))]
        state.set_prior(self.grid.prior(place, type(state.prior)))
        return MoveInfo(1, 1, 1)
