"""A view of a draw whose components have warped laws (_warps.py)."""

# SPDX-License-Identifier: BSD-3-Clause

from functools import cached_property, partial

import numpy as np

from ._model_margin import off_atoms
from ._view import View

NEW = np.iinfo(np.int64).max  # a component that no row has


class WarpedView(View):
    """A view whose components have maps.

    Parameters
    ----------
    mixture, log_weights
        As of `View`.
    warps : Warps
        Of the components in the slots 0 .. K - 1, of which some may be empty.
    held : dict of int to HeldPlaces
        Of the same components.
    """

    def __init__(self, mixture, log_weights, warps, held):
        super().__init__(mixture, log_weights)
        self.warps, self.held, self._components = warps, held, np.r_[self.slots[:-1], NEW]
        warped = [not warps.lines.keys().isdisjoint(block.columns) for block in mixture.blocks]
        self._plain = [block for block, is_warped in zip(mixture.blocks, warped) if not is_warped]
        self._warped = [block for block, is_warped in zip(mixture.blocks, warped) if is_warped]

    @cached_property
    def _alone(self):
        """Of each component by itself the blocks that have warped columns."""
        empty = self.mixture.table.empty_like()
        return [
            [block.from_arrays(block.to_arrays(slot[None]), empty) for block in self._warped]
            for slot in self.slots
        ]

    def renewed(self, mixture, log_weights=None):
        return WarpedView(mixture, log_weights, self.warps, self.held)

    def nearest_held(self, column, at):
        if column not in self.held:
            return None
        return partial(self.held[column].nearest, self._components[at])

    def _in_families(self, table, start, stop):
        """Yield of each component, and of a new one, the rows as its families have them, and by
        column the log slopes: (stop - start,)."""
        columns = [table.column(j, start, stop) for j in range(table.n_columns)]
        cells = {place: columns[place].astype(np.float64) for place in self.warps.lines}
        stays = {place: _stays(columns[place], table.atoms[place]) for place in cells}
        plain = _rows_like(table, columns)
        units = {
            place: self.log_slope(*self.features[place], plain, 0, len(of))
            for place, of in cells.items()
        }  # densities are of numbers in the user's units
        for k, slot in enumerate(self.slots[:-1]):
            own, slopes = list(columns), {}
            for place, of in cells.items():
                moved, log_slopes = self.warps.lines[place](slot, of)
                moved = off_atoms(moved, table.atoms[place])
                own[place] = np.where(stays[place], columns[place], moved)
                slopes[place] = np.where(stays[place], 0.0, log_slopes) + units[place]
            rows = _rows_like(table, own)
            for place, of in cells.items():
                slopes[place] -= self.log_slope(*self.features[place], rows, 0, len(of))
            yield k, rows, slopes
        yield len(self.slots) - 1, plain, {}

    def joint(self, table, start, stop):
        if all(np.isnan(table.column(place, start, stop)).all() for place in self.warps.lines):
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
        if column in self.warps.lines:
            for k, slot in enumerate(self.slots[:-1]):
                moved[:, k], log_slopes[:, k] = self.warps.lines[column](slot, cells)
        return moved, log_slopes

    def from_family(self, column, at, cells):
        if column not in self.warps.lines:
            return cells
        atoms = np.isin(cells, self.mixture.table.atoms[column])
        moved = self.warps.from_family(column, self._components[at], cells)
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
        for place, lines in self.warps.lines.items():
            moves = ~_stays(columns[place], table.atoms[place]) & (components != NEW)
            for k in np.unique(components[moves]):
                own = moves & (components == k)
                moved = lines(k, columns[place][own].astype(np.float64))[0]
                columns[place][own] = off_atoms(moved, table.atoms[place])
        return _rows_like(table, columns)

    def _place(self, column):
        """The column's place in the blocks of one component; None if they have it not."""
        at = [i for i, block in enumerate(self._warped) if column in block.columns]
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
