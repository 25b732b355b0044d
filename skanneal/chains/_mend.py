"""Rebuild views while rows are few, if that makes unseen rows more probable.

While rows are few, two views often appear as one, whose clusters fit a little of both, or columns
stay in a view of one cluster. Later hardly any move separates them: it has to guess which columns
go, and to allocate all rows in one pass. But pairs of columns show which columns depend on one
another (`column_groups`). So if a group of columns is not a view, new views are built of the group
and of the columns that it leaves behind. Their rows enter one by one, with N_STEPS Gibbs steps of
random rows after each. The new views replace the old ones if they surely make unseen rows more
probable (see Lead). If they surely make them less probable, the group is not tried again on more
rows.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..moves import FeatureHyperparameters, PartitionHyperparameters, SplitMerge
from ..moves._allocate import enter_rows
from ..moves._view_annealing import stages
from ..partition_priors import PriorGrid
from ..states import FreshView
from ..summary._lead import Lead
from ._column_groups import column_groups
from ._unseen import LEAST_UNSEEN, MOST_UNSEEN, log_densities, spread, unseen_rows

MOST_COLUMNS = 256  # tables of more columns have too many pairs to compare
MOST_ROWS = 10_000  # once more rows are in, views are left as they are
MOST_TRIES = 16  # groups that are tried each time
N_STEPS = 10  # Gibbs steps of random rows for each row that enters
N_SWEEPS = 3  # of splits and merges, once all rows of a new view are in


def mend_views(plan, state, bit_generator, stop, behind=None):
    """Make views anew where that is better.

    Parameters
    ----------
    plan : ChainPlan
    state : CrossCat
        Changed in place.
    bit_generator : numpy.random.BitGenerator
        Not the chain's own: a chain whose views are right is what it would be without this.
    stop : StopFlag
        Raised to end early.
    behind : set or None
        Groups of columns, as tuples, that made unseen rows less probable on fewer rows. Such groups
        are added.

    Returns
    -------
    n_changes : int
    """
    behind = set() if behind is None else behind
    rows = state.subsample.rows()
    if plan.table.n_columns > MOST_COLUMNS or len(rows) > MOST_ROWS:
        return 0
    unseen = unseen_rows(plan.table, [state])
    if len(unseen) < LEAST_UNSEEN:
        return 0
    groups = column_groups(plan.table.take(spread(rows, MOST_UNSEEN)))
    unseen, tries, n_changes = plan.table.take(unseen), 0, 0
    for group in sorted(groups, key=len, reverse=True):
        parts, columns = parts_of(state.view_of, group), tuple(group.tolist())
        if not len(parts) or tries >= MOST_TRIES or columns in behind or stop.is_set():
            continue
        tries += 1
        fresh = [grown(plan, state, part, bit_generator) for part in parts]
        gain = _gain(state, parts, fresh, unseen)
        if gain.is_sure():
            _exchange(state, parts, fresh)
            n_changes += 1
        elif (-gain).is_sure():
            behind.add(columns)
    return n_changes


def grown(plan, state, columns, bit_generator):
    """Return a view of these columns, grown from nothing on the rows of S.

    Hyperparameters are drawn whenever the rows have doubled, from the plan's `settled_rows` on.
    Pairs of (concentration, discount) with which no further cluster opens are left out: a view that
    has one cluster at first would keep it.

    Returns
    -------
    view : FreshView
    """
    grid = PriorGrid.of(plan.prior_grid)
    opens = grid.opens if grid.opens.any() else np.ones(len(grid), dtype=bool)
    draws = [
        PartitionHyperparameters(PriorGrid(grid.points[opens], grid.log_weights[opens])),
        FeatureHyperparameters(plan.grids, together=False),
    ]
    kind = type(state.views[0].prior)
    view = state.new_view(columns, grid.prior(grid.first(), kind), plan.hyper)
    rows = state.subsample.rows()
    order = np.random.Generator(bit_generator).permutation(rows)
    for start, stop in stages(len(rows)):
        enter_rows(view, order, start, stop, N_STEPS, 1.0, bit_generator)
        if stop >= plan.settled_rows:
            for draw in draws:
                draw.sweep(view, bit_generator)
        view.compact()
    for _ in range(N_SWEEPS):
        for move in (SplitMerge(), *draws):
            move.sweep(view, bit_generator)
    prior = grid.prior(grid.place(view.prior), kind)  # its probability on the whole grid
    return FreshView.of(view, rows)._replace(prior=prior)


def parts_of(view_of, group):
    """Return the sets of columns that take the place of the views that hold a group.

    Parameters
    ----------
    view_of : int array of shape (n_columns,)
    group : int array

    Returns
    -------
    parts : list of int array
        The group, and for each of the views what it has beside; none if the group is a view, or
        has all columns of its views but one.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.chains._mend import parts_of
    >>> parts_of(np.array([0, 0, 0, 0, 1]), np.array([1, 2]))
    [array([1, 2]), array([0, 3])]
    >>> parts_of(np.array([0, 0, 0, 1, 1]), np.array([0, 1]))
    []
    """
    views = np.unique(view_of[group])
    rests = [np.setdiff1d(np.flatnonzero(view_of == v), group) for v in views]
    rests = [rest for rest in rests if len(rest)]
    if len(views) == 1 and sum(map(len, rests)) < 2:
        return []
    return [group, *rests]


def _gain(state, parts, fresh, unseen):
    """Return the Lead of fresh views over the views whose place they take."""
    old = [state.views[v] for v in np.unique(state.view_of[np.concatenate(parts)])]
    new = [state.open_view(view, part) for view, part in zip(fresh, parts)]
    gains = log_densities(new, unseen) - log_densities(old, unseen)
    return Lead.of(gains)


def _exchange(state, parts, fresh):
    """Put fresh views in the place of those that hold these columns."""
    view_of = state.view_of.copy()
    for k, part in enumerate(parts):
        view_of[part] = state.n_views + k
    state.reassign(view_of, fresh)
