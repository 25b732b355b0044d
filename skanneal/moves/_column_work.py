"""The work that moves of columns do, counted where it is done."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ._info import CALL, MARGINAL, Polled, row_work
from ._joint_columns import JointColumns

SCORES = 1 << 24  # of cells under partitions, between two polls


class ColumnWork(Polled):
    """Base of moves of columns.

    Attributes
    ----------
    work : int
        Of all sweeps so far, in the units of MoveInfo.
    """

    acts_on = "columns"
    exact = True
    tempered = True
    work = 0

    def column_scores(self, state, columns, rows, labels, hyper=None):
        """Log marginal likelihood of columns under partitions: see `CrossCat.column_scores`.
        Partitions of one cluster are scored once."""
        whole = np.all(labels == labels[:, :1], axis=1)
        if np.count_nonzero(whole) > 1:
            first = int(np.argmax(whole))
            kept = np.flatnonzero(~whole | (np.arange(len(whole)) == first))
            place = np.searchsorted(kept, np.where(whole, first, np.arange(len(whole))))
            return self.column_scores(state, columns, rows, labels[kept], hyper)[:, place]
        batch = max(1, SCORES // max(1, labels.size))
        of_column = labels.size + MARGINAL * int(np.sum(labels.max(axis=1, initial=-1) + 1))
        scores = []
        for start in range(0, len(columns), batch):
            self.poll()
            some = columns[start : start + batch]
            self.work += CALL + len(some) * of_column
            scores.append(state.column_scores(some, rows, labels, hyper))
        return np.concatenate(scores)

    def joint_columns(self, state, fresh, asked=None):
        """The joint columns in the state's views and in fresh ones, of which all are scored, or
        those asked for one by one."""
        joint = JointColumns(state, fresh, asked)
        self.work += CALL + joint.cells.size * len(joint.views)
        return joint

    def _add_view(self, joint, view):
        """Add a fresh view to joint columns' views."""
        joint.add(view)
        self.work += joint.cells.size

    def reassign(self, state, view_of, fresh=()):
        """Give every column a view: see `CrossCat.reassign`; views that change are built anew."""
        moved = view_of != state.view_of
        for v in {*view_of[moved].tolist(), *state.view_of[moved].tolist()}:
            self.work += CALL + state.subsample.size * row_work(np.count_nonzero(view_of == v))
        state.reassign(view_of, fresh)
