"""What the chains of a fit share, and the state they begin with."""

# SPDX-License-Identifier: BSD-3-Clause

from typing import NamedTuple

import numpy as np

from ..families import FAMILIES, Table
from ..partition_priors import first_prior
from ..states import CrossCat, Mixture


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
        first column.
    grids : dict of int to list of (array or None)
        Under the same columns, the grids of the coordinates that are inferred.
    prior_grid : array of shape (n_points, 2)
        (concentration, discount) pairs, sorted by discount; one point if fixed.
    moves : tuple of str
        Names in MOVES or COLUMN_MOVES. "gibbs" is the churn itself.
    options : dict of str to dict
        Parameters of moves, by name.
    even_work : bool
        Whether every move works as much as the churn, at all sizes of the subsample; else moves
        take turns while it grows.
    init : int, int array of shape (n_rows,) or None
        Where all rows are labelled at first: number of clusters they are dealt to at random, or
        the labels; None draws from the partition prior.
    strata : int array of shape (n_rows,) or None
        For stratified selection.
    view_grid : array of shape (n_points, 2) or None
        The same pairs for the partition of features into views; None: one mixture.
    """

    table: Table
    families: dict
    hyper: dict
    grids: dict
    prior_grid: np.ndarray
    moves: tuple
    strata: np.ndarray | None = None
    view_grid: np.ndarray | None = None
    options: dict = {}
    even_work: bool = False
    init: int | np.ndarray | None = None


def first_state(model, subsample, bit_generator):
    """A state without rows; the features' partition, if there is one, drawn from its prior."""
    prior = first_prior(model.prior_grid)
    if model.view_grid is not None:
        view_prior = first_prior(model.view_grid)
        view_of = view_prior.draw(model.table.n_columns, bit_generator)
        return CrossCat.start(
            model.table, model.families, model.hyper, view_of, view_prior, prior, subsample
        )
    blocks = []
    for name, columns in model.families.items():
        family = FAMILIES[name]
        hyper = [model.hyper[int(j)] for j in family.key_columns(columns)]
        blocks.append(family(model.table, columns, hyper))
    return Mixture(model.table, blocks, prior, subsample)
