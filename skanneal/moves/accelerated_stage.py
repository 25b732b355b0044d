"""The accelerated stage: every shard makes features of its own, from rows that are ill explained.

Approximate by design, and burn-in: on a shard a row joins a feature that all shards share with
weight P n f (n its members there, P shards), one born there since the last synchronisation with
n f, an empty one with (alpha / m) f. The empty ones are made from rows: of a random handful those
are favoured that gain most by a feature of their own, measured against the best that there is, so
new features fall where rows are ill explained, in proportion, as k-means++ does it, rather than on
the few rows that nothing explains (a weight of 1/f would be an outlier's all but always). A row
may not take the feature made from itself: one is born only if another row prefers it.

A row's scores under the shared features do not change between two synchronisations; it chooses
among the eight best of them, which is all of them that matters in many dimensions.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ._assign import accelerated_rows, block, shortlist_rows, tiled
from .segments import all_scores, bit_generator, report, scored_blocks, words

PLACES = 16  # empty features: a tile costs as much as one
CANDIDATES = 4  # rows looked at for each
SHORT = 8  # as in _assign_kernels.h


class AcceleratedStage:
    """The accelerated stage on shards."""

    name = "accelerated"
    burn_in = True

    def plan(self, state, n_steps, generator):
        """(function, arguments of each shard) of the next segment."""
        theta = state.theta
        if theta is None:
            theta = state.likelihood.mean(state.statistics)
        sent = theta, state.likelihood, state.prior, len(state.labels), n_steps
        return accelerated_segment, [
            (labels, *sent, words(generator)) for labels in state.labels
        ]


def accelerated_segment(rows, labels, theta, likelihood, prior, n_shards, n_steps, seed, stop):
    """A shard's part between two synchronisations.

    Parameters
    ----------
    rows : encoded rows
    labels : int32 array of shape (n,)
    theta : array of shape (K, ...)
    likelihood : Likelihood
    prior : PitmanYor
    n_shards : int
        P.
    n_steps : int
        Sub-iterations.
    seed : list of int
    stop : StopFlag

    Returns
    -------
    report, or None if the stop flag is set
    """
    rng = bit_generator(seed)
    generator = np.random.Generator(rng)
    n_shared, d, log_copies = len(theta), prior.discount, np.log(n_shards)
    labels = labels.copy()
    members = np.bincount(labels, minlength=n_shared)
    with np.errstate(divide="ignore"):
        log_weight = log_copies + np.log(np.maximum(members - d, 0.0))
    feature = np.empty((len(rows), SHORT), np.int32)
    value = np.empty((len(rows), SHORT), np.float32)
    key = tiled(log_weight)
    for start, scores in scored_blocks(likelihood, rows, theta, stop):
        part = slice(start, start + len(scores))
        shortlist_rows(scores, key, feature[part], value[part])
    born = _Born(len(rows), theta)
    log_place = np.log(prior.concentration + d * n_shared) - np.log(PLACES)
    for _ in range(n_steps):
        if stop.is_set():
            return None
        born.offer(likelihood, rows, value, log_place, generator)
        if not accelerated_rows(
            labels, feature, value, born.scores, members, log_weight, born.members,
            born.log_weight, log_copies, d, log_place, rng, stop.array,
        ):
            return None
    used = np.flatnonzero(born.members)
    number = np.full(n_shared + len(born.members), -1, np.int32)
    number[:n_shared] = np.arange(n_shared)
    number[n_shared + used] = n_shared + np.arange(len(used))
    n_features = n_shared + len(used)
    if likelihood.conjugate:
        return report(likelihood, rows, number[labels], n_features)
    new = born.theta[used]
    return report(
        likelihood, rows, number[labels], n_features, np.concatenate([theta, new]), new
    )


class _Born:
    """Features born on a shard in this segment, and places for more; columns of scores."""

    def __init__(self, n_rows, theta):
        self.theta = np.zeros((PLACES, *theta.shape[1:]))
        self.scores = block(n_rows, PLACES)
        self.scores[:] = -np.inf
        self.members = np.zeros(PLACES, np.int64)
        self.log_weight = tiled(np.full(PLACES, -np.inf))

    def offer(self, likelihood, rows, value, log_place, generator):
        """Fill the columns without members with features made from rows."""
        empty = np.flatnonzero(self.members == 0)
        if len(empty) < PLACES:
            self._grow()
            empty = np.flatnonzero(self.members == 0)
        self.log_weight[empty] = -np.inf
        empty = empty[:PLACES]
        theta, founders = self._proposals(likelihood, rows, value, generator)
        empty = empty[: len(theta)]
        self.theta[empty] = theta
        self.scores[:, empty] = all_scores(likelihood, rows, theta)[:, : len(theta)]
        self.scores[founders, empty] = -np.inf
        self.log_weight[empty] = log_place

    def _grow(self):
        """Twice as many columns."""
        n = len(self.members)
        self.theta = np.concatenate([self.theta, np.zeros_like(self.theta)])
        self.members = np.concatenate([self.members, np.zeros(n, np.int64)])
        self.log_weight = tiled(np.r_[self.log_weight, np.full(n, -np.inf)])
        scores = block(len(self.scores), 2 * n)
        scores[:, :n], scores[:, n:] = self.scores, -np.inf
        self.scores = scores

    def _proposals(self, likelihood, rows, value, generator):
        """Features made from rows, more likely from those that gain much: (theta, rows)."""
        n = min(CANDIDATES * PLACES, len(rows))
        candidates = np.sort((generator.random(n) * len(rows)).astype(np.int64))
        candidates = np.unique(candidates)
        part = rows[candidates]
        theta = centres(likelihood, part, generator)
        own = np.diagonal(all_scores(likelihood, part, theta))
        used = np.flatnonzero(self.members)
        best = value[candidates, 0]
        if len(used):
            best = np.maximum(best, self.scores[np.ix_(candidates, used)].max(axis=1))
        gain = np.maximum(own - best, 0.0).astype(float)
        # sampling without replacement, in proportion to the gains (Efraimidis and Spirakis 2006)
        with np.errstate(divide="ignore"):
            keys = -np.log1p(-generator.random(len(candidates))) / gain
        chosen = np.argsort(keys, kind="stable")[:PLACES]
        chosen = chosen[gain[chosen] > 0]
        return theta[chosen], candidates[chosen]


def centres(likelihood, rows, generator):
    """A feature at each row: the posterior mean given the row, or a proposal."""
    if not likelihood.conjugate:
        return likelihood.proposal_draw(rows, generator)
    labels = np.arange(len(rows), dtype=np.int32)
    return likelihood.mean(likelihood.statistics(rows, labels, len(rows)))
