r"""Which columns depend on each other within components: forests of outcomes.

Columns are independent within a component of a mixture. Where one column all but determines
another, as a browser goes with an operating system, it takes many components to say so, and each
says it of few rows. So with ``margins="data"`` the *outcomes* of columns, the levels, or of numbers
with atoms which atom it is or none, are bound in each component by a forest (Chow and Liu 1968;
mixtures of trees: Meila and Jordan 2000),

    p_k(x) = prod_j p_k(x_j | x_u(j)),

where u(j) is the parent of column j, if it has one. Numbers are as before, given the outcomes. Let
p_k(a) and p_k(b) be what the component says of two columns, and n_kab the numbers of its training
rows. The pair's probabilities have a Dirichlet law of the parameters c p_k(a) p_k(b), as if c rows
of independent columns had been seen (Heckerman, Geiger and Chickering 1995), so

    p_k(b | a) = (n_kab + c p_k(a) p_k(b)) / (n_ka + c p_k(a)).

How large c is, is not known: STRENGTHS are averaged by their evidence, for each pair in all
components together. A component of few rows keeps its law, and so does a new one.

The forest is the most probable one of each view: its edges have the largest sum of log Bayes
factors, for dependent against independent pairs, less log d each, since a column may have one of
d - 1 parents or none. Bayes factors are means over a few draws that have both columns in one view.
"""

# SPDX-License-Identifier: BSD-3-Clause

from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from ..families._semi_continuous import outcomes_of
from ..summary._spanning import from_roots, spanning_forest
from ._draws import evenly
from ._forest import Forest, pair_evidence
from ._parameters import log_dirichlet

STRENGTHS = np.array([2.0, 8.0, 32.0, 128.0])  # c, each as probable as the others
JUDGES = 4  # draws that say how strongly a pair depends
MOST_COMPARED = 10**9  # cells, of all pairs of columns, from which this is told
MOST_CELLS = 1 << 12  # that the table of a pair has, in each component


class Edges(NamedTuple):
    """What a forest of one view of a draw is made of.

    Attributes
    ----------
    columns : list of int
        Places in the Table, parents before their children.
    parents : list of int
        Places among these; -1 of a root.
    counts : list of (int32 array of shape (K, n_outcomes of the parent, n_outcomes) or None)
        Training rows.
    weights : list of (float64 array of shape (n_strengths,) or None)
        Probabilities of the STRENGTHS.
    """

    columns: list
    parents: list
    counts: list
    weights: list


def outcomes_in(table, place, start=0, stop=None):
    """Which outcome of a column each row has, int32; -1 where it is missing or was not seen."""
    cells, n_levels = table.column(place, start, stop), int(table.n_levels[place])
    if not n_levels:
        return outcomes_of(cells, table.atoms[place]).astype(np.int32)
    return np.where(cells < n_levels, cells.astype(np.int32), -1)


# ---- what training rows say ----------------------------------------------------------------------


def forest_edges(draws, labels, table):
    """The edges of each draw's views.

    Parameters
    ----------
    draws : list of list of View
        The views of each draw.
    labels : list of list of int array of shape (n_rows,)
        By draw and view the component of each training row.
    table : Table
        The training rows.

    Returns
    -------
    edges : list of list of (Edges or None)
        By draw and view; None where nothing is bound.
    """
    places = sorted({place for view in draws[0] for place in view.outcome_columns()})
    if len(places) < 2:
        return [[None] * len(views) for views in draws]
    outcomes = np.column_stack([outcomes_in(table, place) for place in places])
    step = -(-len(outcomes) * len(places) ** 2 // MOST_COMPARED)
    of = {place: i for i, place in enumerate(places)}
    total, times = np.zeros((2, len(places), len(places)))
    for d in evenly(len(draws), JUDGES):
        for view, own in zip(draws[d], labels[d]):
            held = sorted(of[place] for place in view.outcome_columns())
            pairs = np.array(list(combinations(held, 2)), dtype=np.int64).reshape(-1, 2)
            logs = _evidence(view, places, outcomes[::step], own[::step], pairs)
            total[*pairs.T] += logsumexp(logs, axis=1) - np.log(len(STRENGTHS))
            times[*pairs.T] += 1
    gain = total / np.maximum(times, 1) - np.log(len(places))
    gain = np.maximum(np.triu(gain, 1), 0.0)  # of an edge that is worth having
    return [
        [_edges(view, places, outcomes, own, gain) for view, own in zip(*of_draw)]
        for of_draw in zip(draws, labels)
    ]


def _evidence(view, places, outcomes, labels, pairs):
    """Log Bayes factors of pairs, given as places among `places`: (n_pairs, n_strengths)."""
    held = np.unique(pairs)  # those whose outcomes the view knows
    own = [view.outcome_probabilities(places[i])[:-1].T for i in held]
    sizes = np.array([len(of) for of in own], dtype=np.int64)
    pairs = np.searchsorted(held, pairs)
    fits = sizes[pairs].prod(axis=1) <= MOST_CELLS
    logs = np.full((len(pairs), len(STRENGTHS)), -np.inf)
    if fits.any():
        rows = np.ascontiguousarray(outcomes[:, held]), np.ascontiguousarray(labels, np.int32)
        known = np.cumsum([0, *sizes]), np.vstack(own).copy("C"), STRENGTHS, pairs[fits]
        logs[fits] = pair_evidence(*rows, *known)
    return logs


def _edges(view, places, outcomes, labels, gain):
    """The Edges of one view, None if there are none."""
    held = [i for i, place in enumerate(places) if place in view.features]
    forest = spanning_forest(gain[np.ix_(held, held)])
    if not forest.nnz:
        return None
    order, parents = from_roots(forest)
    pairs = np.array([(held[parents[i]], held[i]) for i in order if parents[i] >= 0])
    weights = iter(softmax(_evidence(view, places, outcomes, labels, pairs), axis=1))
    at = {i: node for node, i in enumerate(order)}
    edges = Edges([places[held[i]] for i in order], [at.get(parents[i], -1) for i in order], [], [])
    for i in order:
        if parents[i] < 0:
            edges.counts.append(None)
            edges.weights.append(None)
            continue
        pair = [held[parents[i]], held[i]]
        edges.counts.append(_counts(view, [places[j] for j in pair], outcomes[:, pair].T, labels))
        edges.weights.append(next(weights))
    return edges


def _counts(view, pair, outcomes, labels):
    """Rows by component and the outcomes of two columns."""
    sizes = [view.outcome_probabilities(place).shape[1] for place in pair]
    shape = len(view.slots) - 1, *sizes
    known = np.flatnonzero((outcomes[0] >= 0) & (outcomes[1] >= 0))
    cells = np.ravel_multi_index((labels[known], *(of[known] for of in outcomes)), shape)
    return np.bincount(cells, minlength=np.prod(shape)).reshape(shape).astype(np.int32)


# ---- the forest of a view ------------------------------------------------------------------------


def forest_of(view, edges, components, generator=None):
    """The Forest of a view.

    Parameters
    ----------
    view : View
    edges : Edges
    components : int array of shape (K,)
        The places in the counts of the components that stand first in `view.slots`; the new one
        follows.
    generator : numpy.random.Generator, optional
        Draw the probabilities. By default they are means.
    """
    base = [view.outcome_probabilities(place).T for place in edges.columns]
    conditionals = []
    for of, parent, counts, weights in zip(base, edges.parents, edges.counts, edges.weights):
        if parent < 0:
            conditionals.append(None)
            continue
        n = np.zeros((*counts.shape[1:], len(components) + 1))
        n[:, :, :-1] = np.moveaxis(counts[components], 0, 2)
        above = base[parent][:, None]
        if generator is None:
            parts = [
                w * (n + c * above * of) / (n.sum(axis=1, keepdims=True) + c * above)
                for c, w in zip(STRENGTHS, weights)
            ]
            conditionals.append(sum(parts))
            continue
        c = generator.choice(STRENGTHS, p=weights)
        shapes = np.moveaxis(n + c * above * of, 1, 0)
        drawn = np.moveaxis(np.exp(log_dirichlet(shapes, generator)), 0, 1)
        drawn[:, :, -1] = of[:, -1]  # a new component has no parameters yet
        conditionals.append(np.maximum(drawn, np.finfo(float).tiny))
    return Forest(edges.parents, base, conditionals)
