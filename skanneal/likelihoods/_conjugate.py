"""Likelihoods with a conjugate prior: the clusters' parameters can be integrated out."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..families import FAMILIES
from ._table_rows import TableLikelihood

BLOCK_ROWS = 512  # whose statistics are held at a time


class ConjugateLikelihood(TableLikelihood):
    """A likelihood of a family of `skanneal.families`, whose atoms can be integrated out.

    Parameters
    ----------
    table : Table
        Its columns are the likelihood's, all of one family; its rows scale the defaults.
    hyper : list of array-like, optional
        Flat vectors in cell units, as FamilyBlock takes them: one in all for a family of whole
        rows, else one per column. By default those of the family.
    grids : list of list of (ndarray or None), optional
        For each of these vectors, the grid of each coordinate; None keeps the coordinate, and an
        empty list all of them. By default the grids of the family.

    Attributes
    ----------
    family : str
        Name in FAMILIES.
    """

    conjugate = True
    family = None

    def __init__(self, table, hyper=None, grids=None):
        super().__init__(table)
        member, columns = FAMILIES[self.family], np.arange(table.n_columns)
        self.hyper = _defaults(member, table, columns) if hyper is None else hyper
        self.hyper = [np.array(flat, dtype=np.float64, ndmin=1) for flat in self.hyper]
        self.grids = _grids(member, table, columns) if grids is None else grids
        self._template = self._empty_block(table, 1).to_arrays(0)
        self._take_hyper()

    # ---- what a family's likelihood writes ------------------------------------------------------

    def _take_hyper(self):
        """Compute what depends on the hyperparameters alone."""
        raise NotImplementedError

    def _statistics_arrays(self, statistics, sizes):
        """Statistics under the names of the family's to_arrays()."""
        raise NotImplementedError

    def log_marginal_rows(self, rows):
        """Log marginal likelihood of each row alone: (len(rows),)."""
        out = np.empty(len(rows))
        for start in range(0, len(rows), BLOCK_ROWS):
            part = rows[start : start + BLOCK_ROWS]
            labels = np.arange(len(part), dtype=np.int32)
            statistics = self.statistics(part, labels, len(part))
            out[start : start + len(part)] = self.log_marginal(statistics)
        return out

    def mean(self, statistics):
        """Each atom's posterior mean, in theta's shape."""
        raise NotImplementedError

    # ---- shared ---------------------------------------------------------------------------------

    @property
    def infers(self):
        """Whether any hyperparameter has a grid."""
        return any(grid is not None for grids in self.grids for grid in grids)

    def sizes(self, statistics):
        """Number of rows of each atom, by the statistics' first column."""
        return statistics[:, 0].astype(np.int64)

    def arrays(self, statistics, sizes):
        """Arrays of a Mixture whose clusters have these statistics: "<family>/<name>"."""
        return {f"{self.family}/{name}": a for name, a in self._parts(statistics, sizes).items()}

    def block(self, statistics, sizes, n_slots=None):
        """The FamilyBlock whose slots have these statistics."""
        parts = self._parts(statistics, sizes)
        return FAMILIES[self.family].from_arrays(parts, self.schema, n_slots)

    def _parts(self, statistics, sizes):
        return self._template | self._statistics_arrays(statistics, np.asarray(sizes, np.int64))

    def blocks(self, table, n_slots):
        """A list of FamilyBlock with the current hyperparameters and empty slots."""
        return [self._empty_block(table, n_slots)]

    def _empty_block(self, table, n_slots):
        columns = np.arange(self.schema.n_columns)
        gappy = np.zeros(len(columns), dtype=bool)
        return FAMILIES[self.family](table, columns, self.hyper, n_slots, gappy)

    def log_marginal(self, statistics):
        """Log marginal likelihood of each atom's rows, in cell units: (n_atoms,)."""
        return self.block(statistics, self.sizes(statistics)).log_marginals()[: len(statistics)]

    def update(self, theta, statistics, sizes, rng):
        """Draw each hyperparameter from its conditional on its grid.

        The atoms are integrated out, so they must be drawn anew afterwards.
        """
        if not self.infers:
            return
        block = self.block(statistics, sizes)
        for f in range(block.n_features):
            i = 0 if block.joint else int(block.columns[f])
            parts = [np.empty(0) if grid is None else grid for grid in self.grids[i]]
            starts = np.cumsum([0, *map(len, parts)]).astype(np.int64)
            grid = np.concatenate([np.empty(0), *parts])
            block.draw_hyper(f, grid, starts, 1.0, rng.bit_generator)
            self.hyper[i] = block.get_hyper(f)
        self._hyper_changed()

    def _hyper_changed(self):
        now = self._empty_block(self.schema, 1)
        names = set(now.coordinate_names)
        self._template |= {name: a for name, a in now.to_arrays(0).items() if name in names}
        self._take_hyper()

    def state(self):
        """The hyperparameters: "hyper" of shape (number of vectors, n_coordinates)."""
        return {"hyper": np.array(self.hyper)}

    def set_state(self, state):
        self.hyper = list(np.array(state["hyper"]))
        self._hyper_changed()


def _defaults(member, table, columns):
    """A family's default hyperparameters."""
    if member.joint:
        return [member.default_hyper(table, columns)]
    return [member.default_hyper(int(table.n_levels[j])) for j in columns]


def _grids(member, table, columns):
    """A family's grids, scaled by the table."""
    if member.joint:
        return [member.grids(table, columns)]
    return [member.grids(table.column(j), int(table.n_levels[j])) for j in columns]
