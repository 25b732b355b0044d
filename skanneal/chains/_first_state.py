"""The state that a chain begins with."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..families import FAMILIES
from ..families._division import vectors_of
from ..moves import FeatureHyperparameters, PartitionHyperparameters, SharedHyperparameters
from ..moves._random import draw_index
from ..partition_priors import PARTITION_PRIORS, PriorGrid
from ..states import CrossCat, Mixture


def first_state(plan, subsample, start, bit_generator):
    """Return the state that a chain begins with.

    The partition of the columns, if there is one, is what the plan's `columns` says.

    Parameters
    ----------
    plan : ChainPlan
    subsample : Subsample
        Without rows; it gets all of them if the chain starts with labelled rows.
    start : {"empty", "prior"}
        Whether the state has no rows, or all of them, labelled as the plan's `init` says.
    bit_generator : numpy.random.BitGenerator
        The chain's.
    """
    state = _empty_state(plan, subsample, bit_generator)
    if start == "prior":
        subsample.fill()
        for view in state.views:
            labels = _first_labels(plan, view, bit_generator)
            view.set_prior(view.prior.holding(len(np.unique(labels))))
            rows = np.arange(plan.table.n_rows)
            view.replace(rows, labels)
            view.draw_fills(rows, bit_generator)
    return state


def state_from_prior(plan, subsample, bit_generator):
    """Return a state without rows, with everything else drawn from its prior.

    Parameters
    ----------
    plan : ChainPlan
        Subsamples of any size choose from all points of its grids (`PriorGrid.least_rows` is 0).
    subsample : Subsample
        Without rows.
    bit_generator : numpy.random.BitGenerator
    """
    state = _empty_state(plan, subsample, bit_generator, drawn=True)
    # Without rows, what is drawn given the rows is drawn from the prior.
    features = FeatureHyperparameters(plan.grids, together=False)
    for move in (PartitionHyperparameters(plan.prior_grid), features):
        for view in state.views:
            move.sweep(view, bit_generator)
    SharedHyperparameters(plan.shared_grids).sweep(state, bit_generator)
    return state


def _empty_state(plan, subsample, bit_generator, drawn=False):
    kind = PARTITION_PRIORS[plan.partition_prior]
    prior = _first_prior(plan.prior_grid, kind)
    if plan.view_grid is not None:
        view_prior = _first_prior(plan.view_grid, kind)
        if drawn:
            view_prior = _drawn_prior(plan.view_grid, kind, bit_generator)
        n_columns = plan.table.n_columns
        if plan.columns == "drawn":
            view_of = view_prior.draw(n_columns, bit_generator)
        else:
            view_of = np.arange(n_columns) * (plan.columns == "apart")
        view_prior = view_prior.holding(int(view_of.max()) + 1)
        return CrossCat.start(
            plan.table, plan.families, plan.hyper, view_of, view_prior, prior, subsample
        )
    blocks = []
    for name, columns in plan.families.items():
        family = FAMILIES[name]
        blocks.append(family(plan.table, columns, vectors_of(family, columns, plan.hyper)))
    return Mixture(plan.table, blocks, prior, subsample)


def _first_prior(grid, kind):
    grid = PriorGrid.of(grid)
    return grid.prior(grid.first(), kind)


def _drawn_prior(grid, kind, bit_generator):
    place = draw_index(grid.log_weights, np.random.Generator(bit_generator))
    return grid.prior(place, kind)


def _first_labels(plan, view, bit_generator):
    if isinstance(plan.init, np.ndarray):
        return plan.init
    n_rows = plan.table.n_rows
    if plan.init is None:
        return view.prior.draw(n_rows, bit_generator)
    return (np.random.Generator(bit_generator).random(n_rows) * plan.init).astype(int)
