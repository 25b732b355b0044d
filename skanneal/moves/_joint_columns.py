"""Columns of a family of whole rows in the views of a CrossCat, and in views that hold none yet.

How probable such a column is in a view depends on the family's other columns there, so one table of
scores does not serve several columns. Each is scored given the columns that are in the view at the
moment, from sums of products of their cells and its own (families/_normal_division.py).

The gaps of the column that moves are integrated out, those of the others have fills. In its new
view its own are drawn anew: its view and its fills together are one Gibbs step. Where it stays, the
fills do, which leaves the law invariant as well.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..families import FAMILIES
from ..families._cells import fill_cells


class JointColumns:
    """The views of a state and fresh ones, with the joint columns that each holds.

    Parameters
    ----------
    state : CrossCat
    fresh : list of FreshView
    asked : int array, default=None
        The columns that `scores` are asked of; None: all joint ones.
    """

    def __init__(self, state, fresh, asked=None):
        rows = state.subsample.rows()
        self.columns = state.joint_columns
        self.table, self.rows = state.table, rows
        self.cells, self.gaps, hyper = state.joint_cells(rows)
        self.hyper, self.asked = hyper, None if asked is None else self._places(asked)
        self.division = FAMILIES[state.family_of[int(self.columns[0])]].division
        labels = [*state.row_labels(rows), *(view.labels for view in fresh)]
        self.views = [self._view(own) for own in labels]
        self.view_of = state.view_of[self.columns]

    def _view(self, labels):
        return self.division(self.cells, labels, self.hyper, self.gaps, self.asked)

    def add(self, view):
        """Add a fresh view, behind the others."""
        self.views.append(self._view(view.labels))

    def log_ratio(self, before, after):
        """Log ratio of the likelihoods of all columns in the views `after` and `before`, with fills
        taken as data."""
        now, then = before[self.columns], after[self.columns]
        total = 0.0
        for v in np.unique(np.r_[now, then][np.tile(now != then, 2)]):
            for sign, of in ((1.0, then), (-1.0, now)):
                total += sign * self.views[v].together(np.flatnonzero(of == v).tolist())
        return total

    def scores_together(self, columns, views):
        """log L of columns together given the others in each of these views, all fills being data:
        (n_views,)."""
        places, out = self._places(columns), []
        for v in views:
            others = np.setdiff1d(np.flatnonzero(self.view_of == v), places).tolist()
            view = self.views[v]
            out.append(view.together(others + places) - view.together(others))
        return np.array(out)

    def scores(self, column):
        """log L of a column given the others in each view: (n_views,)."""
        for v, view in enumerate(self.views):
            held = np.flatnonzero(self.view_of == v).tolist()
            if held != view.held:
                view.hold(held)
        (place,) = self._places([column])
        return np.array([view.score(place) for view in self.views])

    def move(self, column, target, generator):
        """Let a column enter the view drawn for it, and draw its fills there. Other views keep its
        old fills, which they read only if it is scored again: so a column moves once at most."""
        (place,) = self._places([column])
        if self.view_of[place] == target:
            return
        self.view_of[place] = target
        own = self.gaps[:, place]
        if own.any():
            numbers = self.views[target].draw(place, generator)
            self.cells[own, place] = numbers.astype(np.float32)
            self.views[target].forget()
            fill_cells(self.table, column, self.rows[own], numbers)

    def _places(self, columns):
        return np.searchsorted(self.columns, columns).tolist()
