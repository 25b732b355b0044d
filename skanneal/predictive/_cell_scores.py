"""Simulated cells of columns, and how probable each is by itself in every component."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..families import Table
from ._joint_pairs import joint_pairs


class SimulatedCells:
    """Cells of some columns of a view in rows of given components.

    Parameters
    ----------
    view : View
    schema : Schema
    columns : list of int
    at : int array of shape (n_rows,)
        Each row's component, an index into the view's slots.
    bit_generator : numpy.random.BitGenerator

    Attributes
    ----------
    table : Table
        Its other columns are missing.
    joint : list of JointPairs
        Of the view's family of whole rows, if these columns are of one.
    """

    def __init__(self, view, schema, columns, at, bit_generator):
        self.view, self.columns, self.joint = view, columns, joint_pairs(view, columns)
        cells = schema.missing_cells(len(at))
        for pairs in self.joint:
            for j, own in zip(pairs.columns, pairs.sample(at, bit_generator).T):
                cells[j] = own.astype(np.float32)
        self._of_joint = {
            j: (pairs, i) for pairs in self.joint for i, j in enumerate(pairs.columns)
        }
        for j in columns:
            if j not in self._of_joint:
                cells[j] = view.sample_cells(j, at, bit_generator)
        self.table = Table(*schema)
        self.table.append(cells)

    def scores(self, start=0, stop=None, columns=None):
        """Log density of each cell by itself in each component: (n_columns, n_rows, K + 1); of all
        columns, or of some."""
        stop = self.table.n_rows if stop is None else stop
        columns = self.columns if columns is None else columns
        return np.stack([self._of_column(j, start, stop) for j in columns])

    def _of_column(self, column, start, stop):
        if column not in self._of_joint:
            return self.view.cell_scores(column, self.table, start, stop)
        pairs, i = self._of_joint[column]
        return pairs.alone(i, self.table.column(column, start, stop).astype(np.float64))
