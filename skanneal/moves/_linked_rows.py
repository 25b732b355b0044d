"""Rows of linked views move together: Gibbs sweeps before a draw is kept.

A chain's views are independent a priori, so a row goes to its component in a view by the cells of
that view alone. Where views are linked (states/_links.py), its components in the others say more.
So before a draw is kept, rows make a few sweeps in a copy of the state, in which they go by the
links, too (_linked_gibbs.pyx). The laws of pairs are made anew from the labels before each sweep,
those of all rows, so that a row of a small component rather stays; which views are linked, and how
strongly, stays as it was. The chain itself goes on as if nothing had happened.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..states._links import chosen_links, pair_counts, ratio_of, used_labels, weights_of
from ._linked_gibbs import linked_sweep

CLOSE = 1e-7  # how near margins come: sweeps leave the law invariant by whatever ratios


def move_linked_rows(state, n_sweeps, bit_generator, links=None):
    """Sweeps over the rows of S, which holds all rows.

    Parameters
    ----------
    state : CrossCat
        Changed; its views stay.
    n_sweeps : int
    bit_generator : numpy.random.BitGenerator
    links : tuple, optional
        What `chosen_links` gives of the state, if it is known.
    """
    pairs, strengths = chosen_links(*used_labels(state)) if links is None else links
    if not len(pairs):
        return
    for _ in range(n_sweeps):
        linked_sweep(state.views, _tilts(state, pairs, strengths), bit_generator)


def _tilts(state, pairs, strengths):
    """By two views the logarithms of how much more probable a pair of components is than if views
    were independent, by slot."""
    labels, _ = used_labels(state)
    weights, out = [weights_of(view) for view in state.views], {}
    for (u, v), c in zip(pairs.tolist(), strengths):
        one, two = weights[u], weights[v]
        counts = pair_counts(labels[u], labels[v], len(one) - 1, len(two) - 1)
        ratios = ratio_of(counts, c, one, two, close=CLOSE)[:-1, :-1]
        own = np.zeros((state.views[u].n_slots, state.views[v].n_slots), dtype=np.float32)
        used = (np.flatnonzero(state.views[w].sizes()) for w in (u, v))
        own[np.ix_(*used)] = np.log(ratios)
        out[u, v] = own
    return out
