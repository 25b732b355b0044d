"""Clusters of a fit on shards: of atoms, and of rows that are read a block at a time."""

# SPDX-License-Identifier: BSD-3-Clause

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..families import Table
from ..parallel import LEAST
from ..predictive._clusters import Clusters
from ..predictive._judges import joints_without
from ..predictive._loo import compared_rows
from ..predictive._parts import numbers_of
from ..predictive._tail import TIMED_ROWS
from ..states import state_from_arrays
from ._draws import FeatureDraw, joint_weights, weight_in_new, weights_in_components

BLOCK_ROWS = 4096  # read at a time
TIMED_ATOMS_ROWS = 50  # TIMED_ROWS where atoms are instantiated: rows take longer
FEWEST_LOOKED = 300  # rows in which valleys are looked for however short the time is


class Rows(NamedTuple):
    """Rows that stand for a Table where there is none.

    Attributes
    ----------
    n_rows : int
    get : callable
        ``get(rows)`` makes rows by index what a likelihood takes.
    """

    n_rows: int
    get: Callable

    def take(self, rows):
        """Some of the rows."""
        return Rows(len(rows), lambda at: self.get(rows[at]))


class ShardedClusters(Clusters):
    """The clusters of a fit, whether or not its rows are in a Table."""

    _of_new = None  # log weights of a new component in the rows that are looked at, meanwhile

    def _peaks(self, table, judges, limit):
        """See `Clusters`; only rows in a Table have places in between."""
        in_table = isinstance(table, Table)
        return super()._peaks(table, judges, limit) if in_table else (None, None, None)

    @property
    def timed_rows(self):
        """See `Clusters`: fewer if each of them takes long."""
        if isinstance(self.point, FeatureDraw):
            return max(TIMED_ATOMS_ROWS // len(self.draws), 1)
        return TIMED_ROWS

    def grown(self, table, separation, limit=None):
        """See `Clusters`; instantiated atoms are looked at in as many rows as there is time for.

        Their densities are relative to that of a new component. It takes long, so it is computed
        once, for the point estimate, and serves the draws that judge too."""
        if isinstance(self.point, FeatureDraw):
            if limit:
                self.n_looked = self._looked_in_time(table, limit)
            rows = table.get(compared_rows(table.n_rows, self.n_looked))
            self._of_new = weight_in_new(self.point, rows)[:, None]
        joins, self._of_new = super().grown(table, separation, limit), None
        return joins

    def _looked_in_time(self, table, limit):
        """In how many rows valleys are looked for: half of the time that is left is for them."""
        began, at = limit.taken, compared_rows(table.n_rows, TIMED_ATOMS_ROWS)
        weight_in_new(self.point, table.get(at))
        seconds = max((limit.taken - began) / len(at), LEAST)
        return int(np.clip(limit.left / 2 / seconds, FEWEST_LOOKED, self.n_looked))

    def joints_without(self, draw, view, table):
        """See `Clusters`; atoms that are instantiated have seen all rows."""
        if isinstance(table, Table):
            return super().joints_without(draw, view, table)
        at = compared_rows(table.n_rows, self.n_looked)
        rows = table.get(at)
        if isinstance(draw, FeatureDraw):
            return weights_in_components(draw, rows) - self._of_new
        arrays = draw.arrays | {"labels": draw.labels[at]}
        mixture = state_from_arrays(arrays, rows.table).views[view]
        return joints_without(mixture, rows.table, np.arange(len(at)))

    def numbers(self, point, table):
        """See `Clusters`; rows of a likelihood that is not conjugate have none."""
        if isinstance(table, Table):
            return super().numbers(point, table)
        if isinstance(point, FeatureDraw):
            return None, False
        rows = table.get(compared_rows(table.n_rows, self.n_looked))
        return numbers_of(point, rows.table, self.n_looked)

    def factor(self, table):
        """See `Clusters`; only columns of a Table have levels."""
        return super().factor(table) if isinstance(table, Table) else None

    def scored(self, draws, views, table):
        """See `Clusters`; `table` is a Table or Rows."""
        if isinstance(table, Table):
            yield from super().scored(draws, views, table)
            return
        for start in range(0, table.n_rows, BLOCK_ROWS):
            rows = table.get(np.arange(start, min(start + BLOCK_ROWS, table.n_rows)))
            if isinstance(draws[0], FeatureDraw):
                yield start, start + len(rows), (joint_weights(draw, rows) for draw in draws)
                continue
            for begin, end, joints in super().scored(draws, views, rows.table):
                yield start + begin, start + end, joints
