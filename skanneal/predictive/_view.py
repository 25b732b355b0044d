"""One view of a draw as queries see it: scores, predictives, and draws of cells."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from .._native._state_arrays import StateError
from ..encoding import Schema
from ._parameters import with_parameters


def shares_of_views(views, shares):
    """The shares of each view's components, of those of all, side by side."""
    return np.split(shares, np.cumsum([len(view.slots) for view in views])[:-1], axis=-1)


class View:
    """One view of a draw as queries see it: K clusters and a new one, in this order.

    Parameters
    ----------
    mixture : Mixture
    log_weights : float64 array of shape (K + 1,), default=None
        By default those of the next row.

    Attributes
    ----------
    slots : int64 array of shape (K + 1,)
    log_weights : float64 array of shape (K + 1,)
        Normalised.
    features : dict of int to (FamilyBlock, int)
        By column, its block and its place in the block's columns.
    """

    def __init__(self, mixture, log_weights=None):
        self.mixture = mixture
        self.slots = np.r_[np.flatnonzero(mixture.sizes()), mixture.open_slot]
        self.log_weights = mixture.log_weights() if log_weights is None else log_weights
        self.features = {
            int(column): (block, f)
            for block in mixture.blocks
            for f, column in enumerate(block.columns)
        }

    def renewed(self, mixture, log_weights=None):
        """The same of a mixture with other statistics."""
        return View(mixture, log_weights)

    def drawn(self, generator):
        """The same with weights and parameters drawn, which all rows then share."""
        return self.renewed(*with_parameters(self.mixture, generator))

    def joint(self, table, start, stop):
        """log w_c p(row | x_c) of each row: (stop - start, K + 1).

        StateError if the rows have other columns than the mixture, which would read beyond them."""
        own = self.mixture.table
        if table.dtypes != own.dtypes or not np.array_equal(table.n_levels, own.n_levels):
            raise StateError("columns", "holds others than the rows have")
        return self.mixture.score_rows(table, start, stop)[0] + self.log_weights

    def cell_scores(self, column, table, start, stop):
        """log p(cell | x_c) of each row's cell in a column: (stop - start, K + 1).

        In a row family, given also the row's other observed cells of the family."""
        block, f = self.features[column]
        scores = np.zeros((stop - start, int(self.slots.max()) + 1))
        block.score_feature(f, table, scores, start, stop)
        return scores[:, self.slots]

    @staticmethod
    def log_slope(block, f, table, start, stop):
        """Log of du/dx at the cells of a block's feature f, 0 where missing: (stop - start,).

        x is the user's number, and u what the family's law is of: its logarithm, say. Minus the log
        density of u is the surprisal by which oddness is judged (_tail.py), since that of x depends
        on the unit. 0.0: the slope is the same at all cells and does not matter, or cells have no
        unit."""
        return 0.0 if block.log_slope is None else block.log_slope(f, table, start, stop)

    def log_slopes(self, table, start, stop):
        """The sum over each row's cells: (stop - start,)."""
        slopes = np.zeros(stop - start)
        for block, f in self.features.values():
            slopes += self.log_slope(block, f, table, start, stop)
        return slopes

    def level_probabilities(self, column):
        """Predictive probability of each level: (K + 1, n_levels), or None for numbers."""
        block, f = self.features[column]
        if not hasattr(block, "predictive_probabilities"):
            return None
        return block.predictive_probabilities(f)[:, self.slots].T

    def outcome_columns(self):
        """Columns of levels and of numbers with atoms."""
        has_some = "predictive_probabilities", "outcome_shares"
        return [
            column
            for column, (block, _) in self.features.items()
            if any(hasattr(block, name) for name in has_some)
        ]

    def outcome_probabilities(self, column):
        """Predictive probability of each level, or of no atom and each atom: (K + 1, n)."""
        block, f = self.features[column]
        levels = self.level_probabilities(column)
        return block.outcome_shares(f)[:, self.slots].T if levels is None else levels

    def mixed(self, column, weights, values, outcomes, table, start, stop):
        """The sum over components of their weights in rows times values: (stop - start, n).

        Parameters
        ----------
        column : int
        weights : float64 array of shape (stop - start, K + 1)
        values : float64 array of shape (K + 1, n)
            Each in proportion to the probability of an outcome of the column.
        outcomes : int array of shape (n,)
            Which outcome that is. Its probability may depend on a row's other cells.
        table : Table
        start, stop : int
        """
        return weights @ values

    def mixed_levels(self, column, weights, table, start, stop):
        """The probability of each level of a column in such rows: (stop - start, n_levels)."""
        levels = self.level_probabilities(column)
        own = column, weights, levels, np.arange(levels.shape[1])
        return self.mixed(*own, table, start, stop)

    def means(self, column):
        """Centre of a number's predictive, in cell units: (K + 1,)."""
        block, f = self.features[column]
        return block.predictive_mean(f)[self.slots]

    def variances(self, column):
        """Variance of a number's predictive, in cell units: (K + 1,)."""
        block, f = self.features[column]
        return block.predictive_variance(f)[self.slots]

    def student_law(self, column):
        """The Student's t that a number has in each component, elsewhere than at atoms, in cell
        units: centres, squared scales and degrees of freedom, (K + 1,) each; None for others."""
        block, f = self.features[column]
        if block.joint:
            nothing = self.mixture.table.empty_like()
            nothing.append(Schema.of_table(nothing).missing_cells(1))
            return [of[0] for of in self.conditionals(column, nothing, np.zeros(1, np.int64))]
        if not hasattr(block, "student_law"):
            return None
        return [of[self.slots] for of in block.student_law(f)]

    def nearest_held(self, column, at):
        """A function from places among the training values of a column to the nearest that rows of
        the components `at` have, an index into slots; None where that is not known."""
        return None

    def to_family(self, column, cells):
        """A column's numbers as the family of each component has them, and the log of the slope, in
        cell units: (n, K + 1) each."""
        shape = len(cells), len(self.slots)
        return np.broadcast_to(cells[:, None], shape), np.zeros(shape)

    def from_family(self, column, at, cells):
        """Numbers of a column as the mixture has them, from those that the family of the component
        `at` has, an index into slots; in cell units."""
        return cells

    def sample_cells(self, column, at, bit_generator):
        """One cell for each of the clusters `at` (indices into slots), in cell units."""
        block, f = self.features[column]
        return block.sample_feature(f, self.slots[at], bit_generator)

    def is_joint(self, column):
        """Whether a family of whole rows describes the column."""
        return self.features[column][0].joint

    def conditionals(self, column, table, rows):
        """The law of the missing cell of a row family's column, given the row's other cells.

        Returns
        -------
        centres, squares, degrees : ndarray of shape (n_rows, K + 1)
            Of Student's t; squared scales in cell units.
        """
        block, f = self.features[column]
        n_slots = int(self.slots.max()) + 1
        return [a[:, self.slots] for a in block.conditionals(f, table, rows, n_slots)]

    def drawn_with(self, column):
        """The columns whose cells a component draws together with those of a column: itself, if the
        others are independent of it."""
        block, _ = self.features[column]
        return block.columns.tolist() if block.joint else [column]

    def sample(self, missing, at, bit_generator, table=None):
        """The missing cells of rows.

        Parameters
        ----------
        missing : list of bool arrays of shape (n_rows,)
            For each column of the table.
        at : int array of shape (n_rows,)
            Each row's cluster, an index into slots.
        bit_generator : numpy.random.BitGenerator
        table : Table, optional
            The rows, or one that stands for all of them, where they have other cells.

        Yields
        ------
        column, rows, cells : int, int array, float64 array
            In cell units.
        """
        for block in self.mixture.blocks:
            if block.joint:
                gaps = np.array([missing[j] for j in block.columns])
                whole = gaps.all(axis=0)
                rows = np.flatnonzero(whole)
                cells = block.sample_rows(self.slots[at[rows]], bit_generator)
                for i, j in enumerate(block.columns):
                    yield int(j), rows, cells[:, i]
                rows = np.flatnonzero(gaps.any(axis=0) & ~whole)
                if len(rows):
                    of = rows if table.n_rows == len(at) else np.zeros_like(rows)
                    cells = block.sample_gaps(table, of, self.slots[at[rows]], bit_generator)
                    for i, j in enumerate(block.columns):
                        own = missing[j][rows]
                        yield int(j), rows[own], cells[own, i]
                continue
            for j in map(int, block.columns):
                rows = np.flatnonzero(missing[j])
                yield j, rows, self.sample_cells(j, at[rows], bit_generator)
