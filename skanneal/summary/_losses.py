"""Expected loss of a partition under draws of partitions, and the descent that minimises it.

With n_a the sizes of one partition's clusters, n_b the other's, n_ab those of their intersections
and N rows, two losses have one form,

    loss(A, B) = [sum_a f(n_a) + sum_b f(n_b) - 2 sum_ab f(n_ab)] / scale,

f(n) = n log n and scale N for the variation of information (in nats; Meilă 2007), f(n) = n^2 and
scale N^2 for Binder's loss (1978): the share of ordered pairs of rows that one partition joins and
the other parts. The mean over the draws is minimised, as in Dahl, Johnson and Müller (2022), by
descent from the best draws and from one cluster of all rows.

Rows that no draw parts, an *atom*, count as one weighted row in all of this: for both losses some
minimiser leaves the atoms whole (the loss is concave in how an atom is shared out between two
clusters), and there are far fewer of them. What is computed are sparse contingency tables, never
an array of rows x rows.
"""

# SPDX-License-Identifier: BSD-3-Clause

import math
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.special import xlogy

from ._labels import checked, relabel

# Work is counted, never timed, so that a result depends on nothing but the draws.
_CANDIDATE_WORK = 5 * 10**7  # cells looked at to rank the draws
_DESCENT_WORK = 6 * 10**7  # (atom, draw, cluster) triples scored over all descents
_TRIPLE_BLOCK = 2**21  # of them scored at a time
# Targets of an atom: from so many of the draws, so many that share rows with its cluster there.
_ASKED_DRAWS, _TARGETS_PER_CODE = 16, 8


class Loss(NamedTuple):
    """One of the losses above."""

    term: object  # f, on arrays of counts
    scale: object  # of the number of rows


LOSSES = {
    "vi": Loss(lambda n: xlogy(n, n), float),
    "binder": Loss(lambda n: n * n, lambda n_rows: float(n_rows) ** 2),
}


class _Draws(NamedTuple):
    """The draws over atoms."""

    weights: np.ndarray  # (n_atoms,) float64: rows per atom
    codes: np.ndarray  # (n_draws, n_atoms) int64: clusters, numbered on from draw to draw
    n_codes: int
    atom_of: np.ndarray  # (n_rows,) int64


def expected_loss(labels, labels_list, loss):
    """Mean loss between a partition of the rows and the draws."""
    labels_list = checked(labels_list)
    # Gathered with the partition itself, so that the atoms do not straddle its clusters.
    joint = _gather([*labels_list, labels])
    labels = joint.codes[-1] - joint.codes[-1].min(initial=joint.n_codes)
    n_clusters = int(labels.max(initial=-1)) + 1
    draws = joint._replace(codes=joint.codes[:-1], n_codes=joint.n_codes - n_clusters)
    return _value(draws, loss, _table(draws, labels, n_clusters))


def expected_losses(labels_list, loss):
    """Mean loss between each of the draws and all of them, whose atoms are found once: float64
    (n_draws,)."""
    draws = _gather(labels_list)
    values = []
    for codes in draws.codes:
        labels = codes - codes.min(initial=draws.n_codes)
        table = _table(draws, labels, int(labels.max(initial=-1)) + 1)
        values.append(_value(draws, loss, table))
    return np.array(values)


def minimise(labels_list, loss):
    """Labels of the rows: the partition found to have the least expected loss."""
    draws = _gather(labels_list)
    best, best_value, work = None, np.inf, 0
    for start in _starts(draws, loss):
        labels, value, descent_work = _descend(draws, loss, start, _DESCENT_WORK - work)
        if value < best_value:
            best, best_value = labels, value
        work += descent_work
        if work >= _DESCENT_WORK:
            break
    return relabel(best[draws.atom_of])


# ------------------------------------------------------------------------------- draws and tables
def _gather(labels_list):
    """Find the atoms, refining the partition into them draw by draw."""
    labels_list = checked(labels_list)
    atom_of = np.zeros(len(labels_list[0]), dtype=np.int64)
    numbered = []
    for labels in labels_list:
        _, codes = np.unique(labels, return_inverse=True)
        numbered.append(codes)
        # Below N^2, which int64 holds: both factors are numbered from 0.
        _, atom_of = np.unique(atom_of * (codes.max(initial=0) + 1) + codes, return_inverse=True)
    n_atoms = atom_of.max(initial=-1) + 1
    codes = np.empty((len(numbered), n_atoms), dtype=np.int64)
    n_codes = 0
    for draw, labels in zip(codes, numbered):
        draw[atom_of] = labels + n_codes
        n_codes += labels.max(initial=-1) + 1
    weights = np.bincount(atom_of, minlength=n_atoms).astype(np.float64)
    return _Draws(weights, codes, int(n_codes), atom_of)


class _Table(NamedTuple):
    """Contingency tables of a partition of the atoms with all draws."""

    counts: csr_array  # (n_codes, n_clusters) float64: rows in both; columns ascend
    sizes: np.ndarray  # (n_clusters,) float64: rows in each cluster of the partition


def _table(draws, labels, n_clusters):
    """Count rows by code and cluster; `labels` of the atoms are below n_clusters."""
    n_draws = len(draws.codes)
    places = draws.codes.ravel(), np.tile(labels, n_draws)
    shape = draws.n_codes, n_clusters
    counts = coo_array((np.tile(draws.weights, n_draws), places), shape=shape).tocsr()
    return _Table(counts, np.bincount(labels, draws.weights, minlength=n_clusters))


def _value(draws, loss, table):
    """Expected loss from a contingency table."""
    n_draws, n_rows = len(draws.codes), draws.weights.sum()
    if n_rows == 0:
        return 0.0
    weights = np.broadcast_to(draws.weights, draws.codes.shape).ravel()
    own = loss.term(np.bincount(draws.codes.ravel(), weights)).sum() / n_draws
    both = loss.term(table.counts.data).sum() / n_draws
    value = (loss.term(table.sizes).sum() + own - 2.0 * both) / loss.scale(n_rows)
    return max(0.0, float(value))  # rounding can leave a zero slightly negative


# ---------------------------------------------------------------------------------------- descent
def _starts(draws, loss):
    """Labels of the atoms from which to descend, the least expected loss first.

    They are the distinct draws, of very many evenly spaced ones, and all rows in one cluster: where
    draws have little in common, that is better than any of them, and none descends to it.
    """
    n_draws, n_atoms = draws.codes.shape
    n_ranked = min(n_draws, max(1, _CANDIDATE_WORK // max(1, n_draws * n_atoms)))
    one = np.zeros(n_atoms, dtype=np.int64)
    candidates = {one.tobytes(): one}
    for i in np.linspace(0, n_draws - 1, n_ranked).astype(int):
        labels = relabel(draws.codes[i])
        candidates.setdefault(labels.tobytes(), labels)
    values = []
    for labels in candidates.values():
        values.append(_value(draws, loss, _table(draws, labels, labels.max(initial=-1) + 1)))
    order = np.argsort(values, kind="stable")
    candidates = list(candidates.values())
    return [candidates[i] for i in order]


def _descend(draws, loss, labels, max_work):
    """Move atoms to better clusters, or to new ones, until none gains or the work is done.

    All moves that gain by themselves are tried together; while they lose together, the half that
    gains less is put back. The best move alone always gains, so that each round does.

    Returns the atoms' labels, their expected loss and the work: triples scored.
    """
    n_clusters = int(labels.max(initial=-1)) + 1
    table = _table(draws, labels, n_clusters)
    value, work = _value(draws, loss, table), 0
    while work < max_work:
        gains, targets, scored = _best_moves(draws, loss, labels, table, max_work - work)
        work += scored
        movers = np.flatnonzero(gains > 1e-13 * loss.scale(draws.weights.sum()))
        movers = movers[np.argsort(-gains[movers], kind="stable")]
        while len(movers):
            moved = labels.copy()
            moved[movers] = targets[movers]
            opened = movers[targets[movers] == n_clusters]
            moved[opened] = n_clusters + np.arange(len(opened))  # each a cluster of its own
            moved = relabel(moved)
            n_moved = int(moved.max()) + 1
            moved_table = _table(draws, moved, n_moved)
            moved_value = _value(draws, loss, moved_table)
            work += draws.codes.size
            if moved_value < value:
                break
            movers = movers[: len(movers) // 2]
        if not len(movers):
            break
        labels, n_clusters, table, value = moved, n_moved, moved_table, moved_value
    return labels, value, work


def _best_moves(draws, loss, labels, table, max_work):
    """Best cluster of each atom, the others staying where they are.

    With h(n, w) = f(n + w) - f(n) - f(w), adding an atom of w rows to cluster a costs
    h(n_a, w) - 2 mean_draws h(n_ab, w) more than opening a cluster for it, b its cluster in a draw.
    So the cost can only be negative where 2 h(n_ab, w) > h(n_a, w) in some draw, and for w = 1 if
    for any w. Of these clusters the few that save most in that draw are looked at, for each b.

    Where that is more work than is left, evenly spaced atoms are looked at, and the others stay.

    Returns gains over staying (times the loss's scale), targets (n_clusters for a new one) and the
    number of triples scored.
    """
    n_draws, n_atoms = draws.codes.shape
    cells = _cells(draws, loss, table)
    asked = draws.codes[:: -(-n_draws // _ASKED_DRAWS)]
    n_found = np.diff(cells.starts)[asked].sum(axis=0)
    n_triples = n_found + n_draws * np.minimum(1 + n_found, len(table.sizes))
    step = max(1, math.ceil(n_triples.sum() / max_work))
    looked_at = np.arange(0, n_atoms, step)
    n_triples = n_triples[looked_at]
    blocks = np.searchsorted(np.cumsum(n_triples), np.arange(0, n_triples.sum(), _TRIPLE_BLOCK))
    gains, targets = np.zeros(n_atoms), labels.copy()
    edges = np.unique(np.append(blocks, len(looked_at)))
    for start, stop in zip(edges[:-1], edges[1:]):
        block = looked_at[start:stop]
        gains[block], targets[block] = _best_moves_in(
            draws, loss, labels, table, cells, asked, block
        )
    return gains, targets, int(n_triples.sum())


class _Cells(NamedTuple):
    """The tables' cells that are not empty."""

    keys: np.ndarray  # code * n_clusters + cluster, ascending
    starts: np.ndarray  # (n_codes + 1,): where each code's part of `clusters` begins
    clusters: np.ndarray  # those worth looking at, code by code


def _cells(draws, loss, table):
    counts = table.counts
    codes = np.repeat(np.arange(draws.n_codes), np.diff(counts.indptr))
    saved = 2.0 * _join(loss, counts.data, 1.0) - _join(loss, table.sizes[counts.indices], 1.0)
    order = np.lexsort((-saved, codes))
    rank = np.arange(len(order)) - counts.indptr[codes]  # within the code, as codes ascend
    worth = order[(rank < _TARGETS_PER_CODE) & (saved[order] > 0.0)]
    return _Cells(
        keys=codes * len(table.sizes) + counts.indices,
        starts=np.searchsorted(codes[worth], np.arange(draws.n_codes + 1)),
        clusters=counts.indices[worth],
    )


def _best_moves_in(draws, loss, labels, table, cells, asked, block):
    """`_best_moves` for a block of atoms."""
    n_clusters, codes = len(table.sizes), draws.codes[:, block]
    weights, own = draws.weights[block], labels[block]
    atoms = np.arange(len(own))
    # Each atom with its own cluster and with those worth looking at, once each and in order.
    asked = asked[:, block].ravel()
    starts = cells.starts[asked]
    n_cells = cells.starts[asked + 1] - starts
    places = np.arange(n_cells.sum()) + np.repeat(starts - np.cumsum(n_cells) + n_cells, n_cells)
    pairs = np.repeat(np.resize(atoms, len(asked)), n_cells) * n_clusters + cells.clusters[places]
    pairs = np.sort(np.append(pairs, atoms * n_clusters + own))
    pairs = pairs[np.append(True, pairs[1:] > pairs[:-1])]
    atom, cluster = pairs // n_clusters, pairs % n_clusters
    stays = cluster == own[atom]
    weight = weights[atom]
    own_rows = np.where(stays, weight, 0.0)
    cost = _join(loss, table.sizes[cluster] - own_rows, weight)
    for draw in codes:
        keys = draw[atom] * n_clusters + cluster
        cell = np.searchsorted(cells.keys, keys).clip(max=len(cells.keys) - 1)
        count = np.where(cells.keys[cell] == keys, table.counts.data[cell], 0.0)
        cost -= 2.0 / len(codes) * _join(loss, count - own_rows, weight)
    first = np.searchsorted(atom, atoms)
    least = np.minimum.reduceat(cost, first)
    hit = np.flatnonzero(cost == least[atom])[::-1]
    target = np.empty(len(own), dtype=np.int64)
    target[atom[hit]] = cluster[hit]  # of equals the first, written last
    opens = least > 0.0
    target[opens] = n_clusters
    return cost[stays] - np.where(opens, 0.0, least), target


def _join(loss, count, weight):
    """h(n, w)."""
    return loss.term(count + weight) - loss.term(count) - loss.term(weight)
