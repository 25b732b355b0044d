"""Split-merge of uncollapsed atoms at a synchronisation, several at once, over the shards.

Rows i and j, i uniform, and with probability 1/2 each j another row of i's cluster or uniform among
all other rows:

    r(j | i) = 1/2 [j in the cluster of i] / (n_i - 1) + 1/2 / (n - 1).

If both rows are in one cluster S, they propose to split it; if they are in two, they propose to
merge these into S. Launch atoms (t_i, t_j) and a share v come from a law of (i, j, S) alone, the
same both ways; given them every other row of S is on i's side with probability v f(.|t_i) / (v
f(.|t_i) + (1 - v) f(.|t_j)). A is the probability of all the sides: those drawn for a split, those
the rows are on for a merge. With sides of a and b rows and K clusters before the split, a split is
accepted with min(1, R), a merge with min(1, 1/R),

    R = (alpha + K d) G(a - d) G(b - d) / (G(a + b - d) G(1 - d)) / A
        (a + b - 1) / (n + a + b - 2) L,

the last fraction being the ratio of the r. If the likelihood is conjugate, atoms are integrated
out, L = m(x_a) m(x_b) / m(x_S); t_i, t_j are drawn from the posteriors given the one row, then,
once every row of S has drawn a side by these, from those given the sides, which are then forgotten:
with many parameters one row makes atoms by which hardly any split is accepted (Jain and Neal 2004).
Else i's side keeps the atom of S, t_i = theta_i, a split draws theta_j = t_j ~ q, the proposal of
row j, a merge drops the atom of j's cluster, and

    L = H(theta_j) / q(theta_j)  prod over j's side of f(x | theta_j) / f(x | theta_i).

Several pairs are drawn from one state; one that touches a cluster of a pair kept before is skipped.
The ratio of a pair then depends on the other pairs only through K, so pairs are accepted one after
another. What is skipped must not depend on what the kept pairs change: a slot is skipped with a
probability that depends on the number of rows in clusters taken before and on nothing else. So a
row that is alone and asks for another row of its cluster finds none and does nothing, but its
cluster counts as taken all the same.
"""

# SPDX-License-Identifier: BSD-3-Clause

from typing import NamedTuple

import numpy as np

from ..moves._info import MoveInfo
from ..moves._random import below
from ._segments import bit_generator, scored_blocks, words


class RowPair(NamedTuple):
    """The clusters of rows i and j, and the shard of each row and its place there."""

    k_i: int
    k_j: int
    i: tuple
    j: tuple

    @property
    def splits(self):
        return self.k_i == self.k_j


def split_and_merge(state, n_pairs, generator):
    """Make the move of one chain: a generator that asks for rounds over the shards.

    There are three rounds, or two if the likelihood is not conjugate.

    Parameters
    ----------
    state : Uncollapsed
        Changed at the end, if at all.
    n_pairs : int
        Pairs of rows to draw, at most.
    generator : numpy.random.Generator

    Yields
    ------
    function, tasks
        As ShardPool.run takes them; the results are to be sent.

    Returns
    -------
    MoveInfo
    """
    likelihood = state.likelihood
    pairs = []
    if state.n_rows > 1 and (likelihood.conjugate or likelihood.proposes):
        pairs = draw_pairs(state, n_pairs, generator)
    if not pairs:
        return MoveInfo(0, 0, 0)
    # ---- atoms near the rows, by the shards that hold them
    tasks, slots = [], []
    for p in range(len(state.labels)):
        here = [(m, 0, pair.i) for m, pair in enumerate(pairs) if likelihood.conjugate]
        here += [(m, 1, pair.j) for m, pair in enumerate(pairs)]
        here = [(m, side, row) for m, side, (shard, row) in here if shard == p]
        if here:
            rows = np.array([row for *_, row in here])
            kept = None
            if not likelihood.conjugate:
                merged = [s for s, (m, *_) in enumerate(here) if not pairs[m].splits]
                kept = merged, state.theta[[pairs[here[s][0]].k_j for s in merged]]
            tasks.append((p, (rows, kept, likelihood, words(generator))))
            slots.append([(m, side) for m, side, _ in here])
    results = yield launch_atoms, tasks
    near, log_q = {}, np.zeros(len(pairs))
    for at, (theta, log_densities) in zip(slots, results):
        near.update(zip(at, theta))
        if log_densities is not None:
            log_q[[m for m, _ in at]] = log_densities
    if not likelihood.conjugate:
        near.update({(m, 0): state.theta[pair.k_i] for m, pair in enumerate(pairs)})
    theta = np.array([[near[m, 0], near[m, 1]] for m in range(len(pairs))])
    # ---- the sides of all rows, by all shards
    share = 1.0 - generator.random(len(pairs))
    with np.errstate(divide="ignore"):
        log_odds = np.log(share) - np.log1p(-share)
    if likelihood.conjugate:  # what the rows around i and j make of these atoms
        results = yield divide_rows, _division(state, pairs, log_odds, theta, generator, True)
        statistics = [statistics for _, statistics, *_ in results]
        statistics = sum(statistics[1:], statistics[0].copy())
        theta = likelihood.draw(statistics, None, generator).reshape(theta.shape)
    results = yield divide_rows, _division(state, pairs, log_odds, theta, generator)
    moved, statistics, n_second, log_a, log_gain = zip(*results)
    statistics = sum(statistics[1:], statistics[0].copy())
    proposal = theta[:, 1], statistics, sum(n_second), sum(log_a), sum(log_gain), log_q
    touched = {k for pair in pairs for k in (pair.k_i, pair.k_j)}
    work = int(state.sizes[list(touched)].sum())
    return MoveInfo(len(pairs), _accept(state, pairs, moved, proposal, generator), work)


def _division(state, pairs, log_odds, theta, generator, launch=False):
    """The arguments of `divide_rows` for every shard."""
    tasks = []
    for p, labels in enumerate(state.labels):
        here = [
            (pair.k_i, pair.k_j, *(row if shard == p else -1 for shard, row in (pair.i, pair.j)))
            for pair in pairs
        ]
        sent = labels, here, log_odds, theta, state.likelihood, words(generator), launch
        tasks.append((p, sent))
    return tasks


def draw_pairs(state, n_pairs, generator):
    """Pairs of rows whose clusters no other pair touches.

    Parameters
    ----------
    state : Uncollapsed
    n_pairs : int
        Slots: some stay empty.
    generator : numpy.random.Generator

    Returns
    -------
    list of RowPair
    """
    ends = np.cumsum([len(labels) for labels in state.labels])
    sizes, taken, pairs = state.sizes, set(), []

    def place(row):
        p = int(np.searchsorted(ends, row, side="right"))
        return p, int(row - (ends[p - 1] if p else 0))

    for _ in range(n_pairs):
        row = below(ends[-1], generator)
        p, at = place(row)
        k = int(state.labels[p][at])
        if generator.random() < 0.5:
            q, other = _companion(state, k, p, at, generator) if sizes[k] > 1 else (p, at)
        else:
            other = below(ends[-1] - 1, generator)
            q, other = place(other + (other >= row))
        k_other = int(state.labels[q][other])
        if k in taken or k_other in taken:
            continue
        taken |= {k, k_other}
        if (p, at) != (q, other):
            pairs.append(RowPair(k, k_other, (p, at), (q, other)))
    return pairs


def _companion(state, k, p, row, generator):
    """A uniform row of cluster k other than this one of shard p."""
    before = np.cumsum(state.members[:, k])
    rank = int(before[p] - np.count_nonzero(state.labels[p][row:] == k))
    chosen = below(before[-1] - 1, generator)
    chosen += chosen >= rank
    q = int(np.searchsorted(before, chosen, side="right"))
    return q, int(np.flatnonzero(state.labels[q] == k)[chosen - before[q]])


def launch_atoms(rows, at, kept, likelihood, seed, stop):
    """Atoms near single rows.

    Parameters
    ----------
    rows : encoded rows
    at : int array of shape (n,)
        The rows.
    kept : None or (list of int, array of shape (n_kept, ...))
        Places in `at` whose atoms are given, and these atoms; None if the likelihood is conjugate.
    likelihood : Likelihood
    seed : list of int
    stop : StopFlag

    Returns
    -------
    theta : array of shape (n, ...)
    log_q : array of shape (n,) or None
        If the likelihood is not conjugate.
    """
    generator = np.random.Generator(bit_generator(seed))
    part = rows[at]
    if likelihood.conjugate:
        statistics = likelihood.statistics(part, np.arange(len(at), dtype=np.int32), len(at))
        return likelihood.draw(statistics, None, generator), None
    theta = np.array(likelihood.proposal_draw(part, generator))
    theta[kept[0]] = kept[1]
    log_q = [
        likelihood.proposal_logpdf(theta[s : s + 1], part[s : s + 1])[0] for s in range(len(at))
    ]
    return theta, np.array(log_q)


def divide_rows(rows, labels, pairs, log_odds, theta, likelihood, seed, launch, stop):
    """Sides of a shard's rows.

    Parameters
    ----------
    rows : encoded rows
    labels : int32 array of shape (n,)
    pairs : list of (k_i, k_j, i, j)
        Clusters, and the rows i and j where they are of this shard, else -1.
    log_odds : array of shape (n_pairs,)
        log v / (1 - v).
    theta : array of shape (n_pairs, 2, ...)
        t_i and t_j.
    likelihood : Likelihood
    seed : list of int
    launch : bool
        Whether rows that are on a side already draw one, too.
    stop : StopFlag

    Returns
    -------
    moved : list of int arrays
        The rows on j's side.
    statistics : array of shape (2 n_pairs, ...)
        Statistics of i's side and of j's, one pair after another.
    n_second, log_a, log_gain : arrays of shape (n_pairs,)
        Rows on j's side, log A, the sum of log f(. | t_j) / f(. | t_i) on j's side.
        None is returned if the stop flag is set.
    """
    generator = np.random.Generator(bit_generator(seed))
    sides = np.full(len(rows), -1, np.int32)
    log_a, log_gain, moved = np.zeros(len(pairs)), np.zeros(len(pairs)), []
    for m, (k_i, k_j, i, j) in enumerate(pairs):
        at = np.flatnonzero((labels == k_i) | (labels == k_j))
        gain = np.empty(len(at))
        for start, scores in scored_blocks(likelihood, rows, theta[m], stop, at):
            first, second = scores[:, :2].astype(np.float64).T
            neither = np.isneginf(first) & np.isneginf(second)
            first[neither] = second[neither] = 0.0
            gain[start : start + len(scores)] = second - first
        if stop.is_set():
            return None
        log_odd = log_odds[m] - gain
        if launch or k_i == k_j:
            second = generator.random(len(at)) >= 1.0 / (1.0 + np.exp(-np.maximum(log_odd, -700.0)))
        else:
            second = labels[at] == k_j
        second = (second | (at == j)) & (at != i)
        log_p = -np.logaddexp(0.0, np.where(second, log_odd, -log_odd))
        log_a[m] = log_p[(at != i) & (at != j)].sum()
        log_gain[m] = gain[second].sum()
        sides[at] = 2 * m + second
        moved.append(at[second])
    statistics = likelihood.statistics(rows, sides, 2 * len(pairs))
    return moved, statistics, np.array([len(second) for second in moved]), log_a, log_gain


def _accept(state, pairs, moved, proposal, generator):
    """Accept or reject one pair after another; return how many were accepted."""
    theta, sides, n_second, log_a, log_gain, log_q = proposal
    likelihood = state.likelihood
    sizes = state.sizes
    sides = sides.reshape(len(pairs), 2, *sides.shape[1:])
    both = sides.sum(axis=1)
    if likelihood.conjugate:
        log_m = likelihood.log_marginal(np.concatenate([sides[:, 0], sides[:, 1], both]))
        log_l = np.array([1.0, 1.0, -1.0]) @ log_m.reshape(3, -1)
    else:
        log_l = likelihood.log_prior(theta) - log_q + log_gain
    log_u = np.log1p(-generator.random(len(pairs)))
    labels = [of_shard.copy() for of_shard in state.labels]
    statistics, new_theta = list(state.statistics), None
    if not likelihood.conjugate:
        new_theta = list(state.theta)
    n_clusters, n_accepted = state.n_clusters, 0
    for m, pair in enumerate(pairs):
        total = int(sizes[pair.k_i] + (0 if pair.splits else sizes[pair.k_j]))
        second = int(n_second[m])
        log_ratio = (
            state.prior.log_split(n_clusters - (not pair.splits), total - second, second)
            + log_pair_ratio(state.n_rows, total)
            + log_l[m]
            - log_a[m]
        )
        if log_u[m] >= (log_ratio if pair.splits else -log_ratio):
            continue
        n_accepted += 1
        n_clusters += 1 if pair.splits else -1
        # a split has a new number, a merge leaves one empty
        k = len(statistics) if pair.splits else pair.k_i
        for of_shard, rows in zip(labels, moved):
            of_shard[rows[m]] = k
        if pair.splits:
            statistics[pair.k_i] = sides[m, 0]
            statistics.append(sides[m, 1])
            if new_theta is not None:
                new_theta.append(theta[m])
        else:
            statistics[pair.k_i] = both[m]
    if n_accepted:
        new_theta = None if new_theta is None else np.array(new_theta)
        state.replace(labels, np.array(statistics), new_theta)
    return n_accepted


def log_pair_ratio(n_rows, size):
    """Log ratio of r(j | i) if i and j are apart to that if one cluster of this size has both."""
    return np.log(size - 1.0) - np.log(n_rows + size - 2.0)
