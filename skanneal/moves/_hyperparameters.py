"""Grid Gibbs over hyperparameters: each is drawn from its exact conditional on a grid.

The priors are uniform over the grids' points. A feature's hyperparameters are drawn coordinate by
coordinate given the partition; concentration and discount jointly.
"""

import numpy as np

from ..partition_priors import within
from ._info import MoveInfo, Polled
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
        self.weight = getattr(move, "weight", None)

    def sweep(self, state, bit_generator, *, beta=1.0):
        """One sweep of each view; the sums of what they report."""
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
    """

    name = "hyperparameters"
    exact = True
    tempered = True

    def __init__(self, grids):
        self.grids = {}
        for column, of_column in grids.items():
            parts = [np.empty(0) if grid is None else grid for grid in of_column]
            starts = np.cumsum([0, *map(len, parts)]).astype(np.int64)
            self.grids[int(column)] = np.concatenate([np.empty(0), *parts]), starts

    def sweep(self, state, bit_generator, *, beta=1.0):
        """Draw every coordinate once."""
        drawn = 0
        for block in state.blocks:
            before = drawn
            for f in range(block.n_features):
                column = int(block.columns[f])
                if column in self.grids:
                    self.poll()
                    drawn += block.draw_hyper(f, *self.grids[column], beta, bit_generator)
            if drawn > before:
                block.refresh_all()
        return MoveInfo(drawn, drawn, drawn * state.n_tiles)


class PartitionHyperparameters:
    """Grid Gibbs over (concentration, discount) jointly: of a mixture's partition of rows, or of a
    CrossCat's partition of features.

    Parameters
    ----------
    grid : ndarray of shape (n_points, 2)
        Pairs (concentration, discount).
    """

    name = "partition_hyperparameters"
    exact = True
    tempered = True

    def __init__(self, grid):
        self.grid = np.asarray(grid, dtype=np.float64)

    def sweep(self, state, bit_generator, *, beta=1.0):
        """Draw the pair given the sizes of the clusters; the likelihood has no part in it."""
        if len(self.grid) < 2:
            return MoveInfo(0, 0, 0)
        sizes = state.sizes()
        grid = within(self.grid, sizes.sum())
        index = draw_index(state.prior.grid_scores(sizes, grid), np.random.Generator(bit_generator))
        state.set_prior(state.prior.at(grid[index]))
        return MoveInfo(1, 1, 1)
