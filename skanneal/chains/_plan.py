"""What the chains of a fit share."""

# SPDX-License-Identifier: BSD-3-Clause

from typing import NamedTuple

import numpy as np

from ..families import FAMILIES, Table
from ..partition_priors import PriorGrid

# Moves follow a churn once this share of all rows is in the subsample, but at least and at most so
# many rows. Families may ask for more.
MOST_SETTLED, LEAST_SETTLED, SETTLED_PART = 50, 10, 4


class ChainPlan(NamedTuple):
    """What chains share: data, prior and moves.

    Attributes
    ----------
    table : Table
        Encoded rows.
    families : dict of str to int array
        Columns of each family.
    hyper : dict of int to float array
        For each column, the hyperparameters to start from, in cell units; a row family's under its
        first column, or where views divide its columns, those of each column alone.
    grids : dict of int to list of (array or None)
        Under the same columns, the grids of the coordinates that are inferred.
    prior_grid : PriorGrid or array of shape (n_points, 2)
        (concentration, discount) pairs, sorted by discount; one point if fixed.
    moves : tuple of str
        Names in MOVES or COLUMN_MOVES. "gibbs" is the churn itself.
    options : dict of str to dict
        Parameters of moves, by name.
    init : int, int array of shape (n_rows,) or None
        Where all rows are labelled at first: number of clusters they are dealt to at random, or
        the labels; None draws from the partition prior.
    strata : int array of shape (n_rows,) or None
        For stratified selection.
    view_grid : PriorGrid, array of shape (n_points, 2) or None
        The same pairs for the partition of columns into views; None: one mixture.
    columns : {"drawn", "apart", "together"}
        The views at first: drawn from their prior, one for each column, or one for all.
    starts : tuple of str
        Names in STARTS, of the rivals that may take the chain's place.
    pieces : bool
        Whether a mixture of few rows begins again in small pieces, if that is better.
    partition_prior : str
        Name in PARTITION_PRIORS, of both partitions' prior.
    shared_grids : dict of str to list of (array or None)
        The grids of what the columns of a row family share in all views, by family.
    """

    table: Table
    families: dict
    hyper: dict
    grids: dict
    prior_grid: PriorGrid | np.ndarray
    moves: tuple
    strata: np.ndarray | None = None
    view_grid: PriorGrid | np.ndarray | None = None
    partition_prior: str = "pitman_yor"
    options: dict = {}
    init: int | np.ndarray | None = None
    columns: str = "drawn"
    starts: tuple = ()
    pieces: bool = False
    shared_grids: dict = {}

    @property
    def settled_rows(self):
        """Rows in the subsample from which on moves follow a churn."""
        n_rows = self.table.n_rows
        few = min(MOST_SETTLED, max(LEAST_SETTLED, n_rows // SETTLED_PART))
        return min(max(few, self.asked_rows), n_rows)

    @property
    def asked_rows(self):
        """Rows that families ask for, before they tell anything of a component."""
        asked = [FAMILIES[name].settled_rows(len(at)) for name, at in self.families.items()]
        return max(asked, default=0)
