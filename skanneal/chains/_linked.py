"""Link the views of draws that a chain has kept."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..moves import move_linked_rows
from ..states import Subsample, draw_arrays, state_from_arrays
from ..states._links import NO_LINKS, chosen_links, used_labels

N_SWEEPS = 2  # before a draw is kept again


def link_draws(table, draws, seed, limit, stop):
    """Draws of a CrossCat with links between their views, after a few sweeps of the rows by these.

    In a view that has the same columns as one of the draw before, rows go on from where they were
    there, so that sweeps add up. Draws for which there is no time are left out, all but the first:
    an answer would else mix draws whose views are linked with draws whose views are not.

    Parameters
    ----------
    table : Table
        The training rows.
    draws : list of dict of arrays
        As a chain keeps them.
    seed : numpy.random.SeedSequence
    limit : TimeLimit
    stop : StopFlag

    Returns
    -------
    draws : list of dict of arrays
        After an interrupt only some.
    """
    subsample, bit_generator, out = Subsample(table.n_rows), np.random.PCG64(seed), []
    subsample.fill()
    before = {}
    for arrays in draws:
        if stop.is_set() or (out and limit.is_over):
            break
        if len(_views_apart(arrays)) > 1:
            state = state_from_arrays(arrays, table, subsample, trusted=True)
            _go_on(state, before)
            links = chosen_links(*used_labels(state))
            if len(links[0]):
                move_linked_rows(state, N_SWEEPS, bit_generator, links)
                out.append(draw_arrays(state, linked=True))
                before = {columns: view.get_labels() for columns, view in _views(state)}
                continue
        out.append(arrays | NO_LINKS)
        before = {}
    return out


def _go_on(state, before):
    """Give the views of a state the labels that views of the same columns had before."""
    rows = np.arange(state.table.n_rows)
    for columns, view in _views(state):
        labels = before.get(columns)
        if labels is not None:
            view.set_prior(view.prior.holding(len(np.unique(labels))))
            view.replace(rows, labels)


def _views(state):
    """Pairs of a view's columns and the view."""
    of_columns = np.equal.outer(np.arange(state.n_views), state.view_of)
    return [(tuple(np.flatnonzero(own)), view) for own, view in zip(of_columns, state.views)]


def _views_apart(arrays):
    """The views of a draw that have more than one component."""
    sizes = {name: of for name, of in arrays.items() if name.endswith("/size")}
    return {name.split("/")[0] for name, of in sizes.items() if len(of) > 1}
