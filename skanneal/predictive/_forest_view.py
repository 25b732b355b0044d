"""A view of a draw in whose components a forest binds the outcomes of columns (_forests.py)."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ._forests import forest_of, outcomes_in
from ._warped_view import WarpedView
from ._warps import MOST_DEGREES, Warps


def as_warped(view, counts, held, edges):
    """A View with what follows from its `rank_counts`, `held_places` and Edges; itself if it has
    none of them."""
    if edges is None and not counts and not held:
        return view
    own = view.mixture, view.log_weights, Warps(view, counts), held
    return WarpedView(*own) if edges is None else ForestView(*own, edges)


class ForestView(WarpedView):
    """A view whose components are warped, or not, and bind outcomes.

    Parameters
    ----------
    mixture, log_weights, warps, held
        As of `WarpedView`.
    edges : Edges
    generator : numpy.random.Generator, optional
        Draw the forest's probabilities. By default they are means.
    """

    def __init__(self, mixture, log_weights, warps, held, edges, generator=None):
        super().__init__(mixture, log_weights, warps, held)
        self.edges = edges
        self.nodes = {place: node for node, place in enumerate(edges.columns)}
        self.forest = forest_of(self, edges, self.slots[:-1], generator)

    def renewed(self, mixture, log_weights=None):
        return ForestView(mixture, log_weights, self.warps, self.held, self.edges)

    def drawn(self, generator):
        own = super().drawn(generator)
        of_view = self.warps, self.held, self.edges
        return ForestView(own.mixture, own.log_weights, *of_view, generator)

    def _outcomes(self, table, start, stop):
        """(n_rows, n_nodes)"""
        columns = [outcomes_in(table, place, start, stop) for place in self.edges.columns]
        return np.column_stack(columns)

    def joint(self, table, start, stop):
        ratios = self.forest.log_ratios(self._outcomes(table, start, stop))
        return super().joint(table, start, stop) + ratios

    def cell_scores(self, column, table, start, stop):
        scores = super().cell_scores(column, table, start, stop)
        if column not in self.nodes:
            return scores
        outcomes = self._outcomes(table, start, stop)
        known = self.forest.log_ratios(outcomes)
        outcomes[:, self.nodes[column]] = -1
        return scores + known - self.forest.log_ratios(outcomes)

    def mixed(self, column, weights, values, outcomes, table, start, stop):
        if column not in self.nodes:
            return super().mixed(column, weights, values, outcomes, table, start, stop)
        known, out = self._outcomes(table, start, stop), np.empty((len(weights), len(outcomes)))
        own = known[:, self.nodes[column]]
        own[:] = -1
        without = self.forest.log_ratios(known)
        for outcome in np.unique(outcomes):
            own[:] = outcome
            ratios = np.exp(self.forest.log_ratios(known) - without)
            at = outcomes == outcome
            out[:, at] = (weights * ratios) @ values[:, at]
        return out

    def drawn_with(self, column):
        return list(self.nodes) if column in self.nodes else super().drawn_with(column)

    def sample(self, missing, at, bit_generator, table=None):
        known = np.full((len(at), len(self.nodes)), -1, dtype=np.int32)
        if table is not None:
            known[:] = self._outcomes(table, 0, table.n_rows)
        drawn = self.forest.draw(known, at, bit_generator)
        for place, node in self.nodes.items():
            rows = np.flatnonzero(missing[place])
            cells = self._cells_of(place, drawn[rows, node], at[rows], bit_generator)
            yield place, rows, cells
        others = [
            np.zeros_like(mask) if place in self.nodes else mask
            for place, mask in enumerate(missing)
        ]
        yield from super().sample(others, at, bit_generator, table)

    def _cells_of(self, place, outcomes, at, bit_generator):
        """Cells that have these outcomes."""
        atoms = self.mixture.table.atoms[place]
        if not len(atoms):
            return outcomes
        generator = np.random.Generator(bit_generator)
        centres, squares, degrees = (of[at] for of in self.student_law(place))
        drawn = centres + np.sqrt(squares) * generator.standard_t(np.minimum(degrees, MOST_DEGREES))
        numbers = self.from_family(place, at, drawn)
        return np.where(outcomes > 0, np.r_[0.0, atoms][outcomes], numbers)
