"""Leave-one-out densities of training rows under each chain.

For a draw s (a partition z and hyperparameters h), the density of row i given the other rows is
p(x_i | x_-i, z_-i, h), the row's own label summed out; with several views it is the product over
them, and where these are linked (_links.py) the sum over the components of all. The draws have seen
the row, so that the density under their chain is the importance-sampling estimate

    p(x_i | x_-i) = 1 / mean_s 1 / p(x_i | x_-i, z_-i^s, h^s)

(Gelfand, Dey and Chang 1992; Vehtari, Gelman and Gabry 2017). It is exact in the limit of many
draws; the mean's variance may be infinite if a row carries much information on the others' labels,
and with few draws the estimate is too high. That matters little here, where chains with equally
many draws are only compared. The worst draws count most: a chain that was still far from the others
when its first draw was kept is judged by that draw.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.special import logsumexp

from ..states import logs_without, state_from_arrays
from ..summary import stacking_weights
from ._draws import evenly
from ._links import LeftOut, Links
from ._tail import own_components, weights_without
from ._view import View

MOST_ROWS = 2000  # on which chains are compared
LINKED_ROWS = 2000  # at a time
MOST_LINKED = 8  # draws of each, if their views are linked: then each takes many times longer


def chain_weights(chains, table, agree=False):
    """How much each chain counts: (n_chains,), summing to 1.

    Parameters
    ----------
    chains : list of list of Draw or CrossCatDraw
    table : Table
        The training rows.
    agree : bool, default=False
        Whether the chains are known to agree: then all count alike, and nothing is computed.

    Returns
    -------
    weights : ndarray of shape (n_chains,)
    log_densities : ndarray of shape (n_chains, n_compared) or None
        What they were computed from; None if nothing was.
    """
    if agree or len(chains) == 1:
        return np.full(len(chains), 1.0 / len(chains)), None
    log_densities = chain_log_densities(chains, table)
    return stacking_weights(log_densities), log_densities


def chain_log_densities(chains, table):
    """Leave-one-out log predictive density of training rows under each chain.

    Parameters
    ----------
    chains : list of list of Draw or CrossCatDraw
    table : Table
        The training rows.

    Returns
    -------
    log_densities : ndarray of shape (n_chains, n_compared)
        Of all rows, or of 2000 that depend on nothing but the number of rows; in cell units, terms
        of the row alone missing.
    """
    rows = compared_rows(table.n_rows)
    out = np.empty((len(chains), len(rows)))
    for of_chain, draws in zip(out, chains):
        if "link_views" in draws[0].arrays:
            draws = [draws[d] for d in evenly(len(draws), MOST_LINKED)]
        logs = [log_densities_without(draw, table, rows) for draw in draws]
        of_chain[:] = np.log(len(draws)) - logsumexp(np.negative(logs), axis=0)
    return out


def log_densities_without(draw, table, rows):
    """Log density of each of these rows given all others and the draw: (n,)."""
    state = state_from_arrays(draw.arrays, table)
    return _of_views(state, rows) + _of_links(draw, state, table, rows)


def _of_views(state, rows):
    """The same if views were independent."""
    return sum(logs_without(view, rows) for view in state.views)


def _of_links(draw, state, table, rows):
    """What links add."""
    if not len(draw.arrays.get("link_views", ())):
        return 0.0
    views = [View(mixture) for mixture in state.views]
    links, out = Links.of(draw.arrays, views), np.empty(len(rows))
    for start in range(0, len(rows), LINKED_ROWS):
        block = slice(start, start + LINKED_ROWS)
        out[block] = _links_add(draw, views, links, table, rows[block])
    return out


def _links_add(draw, views, links, table, rows):
    """The same of some rows."""
    some, own, at, without = table.take(rows), [], [], []
    for view in views:
        scores = view.mixture.score_rows(some, 0, len(rows))[0]
        home, loss = own_components(view, rows)
        scores[np.arange(len(rows)), home] -= loss
        homes, of = np.unique(home, return_inverse=True)
        sizes = view.mixture.sizes()[view.slots[:-1]]
        log_weights = np.array([weights_without(view.mixture, sizes, k) for k in homes])[of]
        own.append(scores + log_weights)
        at.append(home)
        without.append(np.exp(log_weights))
    weights = [np.exp(view.log_weights) for view in views]
    left_out = LeftOut(draw.arrays, at, weights, without)
    return links.upwards(own, left_out)[2] - sum(logsumexp(of, axis=1) for of in own)


def log_likelihoods(draws, table):
    """Log density of each training row given all others and a draw, in the user's units.

    Where p(x_i | x_-i, z_-i, h) stands for p(x_i | parameters), Pareto-smoothed importance sampling
    over the draws gives p(x_i | x_-i) as it does for any model: the weight of a draw, its density
    given the others' data over that given all data, is 1 / p(x_i | x_-i, z_-i, h) up to a factor.

    Parameters
    ----------
    draws : list of Draw or CrossCatDraw
    table : Table
        The training rows.

    Returns
    -------
    log_densities : ndarray of shape (n_draws, n_rows)
    """
    rows = np.arange(table.n_rows)
    logs = np.array([log_densities_without(draw, table, rows) for draw in draws])
    first = _of_views(state_from_arrays(draws[0].arrays, table), rows)
    return logs + (_in_units(draws[0], table, rows) - first)  # the difference is the rows' own


def _in_units(draw, table, rows):
    """`_of_views` of any draw, in the user's units: the slow way, row by row."""
    views = state_from_arrays(draw.arrays, table).views
    out = np.zeros(len(rows))
    for i, row in enumerate(map(int, rows)):
        for view in views:
            slot = int(view.get_labels()[row])
            view.remove_row(row)
            scores, log_weights = view.score_rows(table, row, row + 1)
            out[i] += logsumexp(scores[0] + log_weights)
            view.insert_row(row, slot)
    return out


def compared_rows(n_rows, most=MOST_ROWS):
    """The rows on which chains are compared, ascending: `most` at most."""
    if n_rows <= most:
        return np.arange(n_rows)
    order = np.argpartition(np.random.Generator(np.random.PCG64(0)).random(n_rows), most)
    return np.sort(order[:most])
