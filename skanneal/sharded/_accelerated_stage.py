"""The accelerated stage: every shard makes atoms of its own, from rows that are ill explained.

This stage is approximate by design, and serves as burn-in. A row joins an atom with weight n f,
where n counts the atom's members everywhere at the last synchronisation and what has changed on
this shard since then. It joins an atom born on this shard since then with weight n f too, and an
empty atom with (alpha / m) f. (The published weight, P times the members on this shard, is 0 for
what the other P - 1 shards found: every atom would stay where it was born.) The stage makes the
empty atoms from rows. In a random handful it favours the rows that gain most by an atom of their
own over the best atom that there is. So new atoms fall where rows are ill explained, in proportion,
as in k-means++, and not on the few rows that nothing explains (a weight of 1/f would choose an
outlier almost always). To the row that it is made from, an atom offers that row's marginal
likelihood or, if the likelihood is not conjugate, nothing: its fit to itself would count the row
twice.

A row's scores under the shared atoms do not change between two synchronisations. The row chooses
among the eight best of these atoms; in many dimensions no others matter.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ._assign import SHORTLIST, accelerated_rows, block, shortlist_rows, tiled
from ._segments import Stage, all_scores, bit_generator, report, scored_blocks, words

MIN_PLACES, MAX_PLACES = 16, 256  # places for new atoms of a shard, in whole tiles
ROWS_PER_TILE = 2048  # a shard has a tile of places for so many of its rows
CANDIDATES = 4  # for each place so many rows compete to make its atom


class AcceleratedStage(Stage):
    """The accelerated stage on shards."""

    name = "accelerated"
    burn_in = True

    def plan(self, state, n_steps, generator):
        """(function, arguments of each shard) of the next segment."""
        theta = state.theta
        if theta is None:
            theta = state.likelihood.mean(state.statistics)
        sent = theta, state.sizes, state.likelihood, state.prior, n_steps
        return accelerated_segment, [(labels, *sent, words(generator)) for labels in state.labels]


def accelerated_segment(rows, labels, theta, sizes, likelihood, prior, n_steps, seed, stop):
    """A shard's part between two synchronisations.

    Parameters
    ----------
    rows : encoded rows
    labels : int32 array of shape (n,)
    theta : array of shape (K, ...)
    sizes : int64 array of shape (K,)
        Rows of each atom, of all shards.
    likelihood : Likelihood
    prior : PartitionPrior
    n_steps : int
        Sub-iterations.
    seed : list of int
    stop : StopFlag

    Returns
    -------
    report
    """
    rng = bit_generator(seed)
    generator = np.random.Generator(rng)
    n_shared, reduction = len(theta), prior.reduction
    labels, members = labels.copy(), sizes.copy()
    log_weight = np.log(members - reduction)
    atom = np.empty((len(rows), SHORTLIST), np.int32)
    value = np.empty((len(rows), SHORTLIST), np.float32)
    key = tiled(log_weight)
    for start, scores in scored_blocks(likelihood, rows, theta, stop):
        part = slice(start, start + len(scores))
        shortlist_rows(scores, key, atom[part], value[part])
    born = _Born(len(rows), theta)
    log_place = np.log(prior.open_weight(n_shared) / born.n_places)
    for _ in range(n_steps):
        if stop.is_set():
            break
        born.offer(likelihood, rows, value, log_place, generator)
        if not accelerated_rows(
            labels,
            atom,
            value,
            born.scores,
            members,
            log_weight,
            born.members,
            born.log_weight,
            reduction,
            log_place,
            rng,
            stop.array,
        ):
            break
    used = np.flatnonzero(born.members)
    number = np.full(n_shared + len(born.members), -1, np.int32)
    number[:n_shared] = np.arange(n_shared)
    number[n_shared + used] = n_shared + np.arange(len(used))
    n_atoms = n_shared + len(used)
    new = None if likelihood.conjugate else born.theta[used]
    return report(likelihood, rows, number[labels], n_atoms, new)


class _Born:
    """Columns of scores for the atoms born on a shard in this segment, with places for more."""

    def __init__(self, n_rows, theta):
        n = n_rows // ROWS_PER_TILE * MIN_PLACES
        self.n_places = n = min(max(n, MIN_PLACES), MAX_PLACES)
        self.theta = np.zeros((n, *theta.shape[1:]))
        self.scores = block(n_rows, n)
        self.scores[:] = -np.inf
        self.members = np.zeros(n, np.int64)
        self.log_weight = tiled(np.full(n, -np.inf))

    def offer(self, likelihood, rows, value, log_place, generator):
        """Fill the columns without members with atoms made from rows."""
        empty = np.flatnonzero(self.members == 0)
        if len(empty) < self.n_places:
            self._grow()
            empty = np.flatnonzero(self.members == 0)
        self.log_weight[empty] = -np.inf
        theta, founders = self._proposals(likelihood, rows, value, generator)
        if not len(theta):
            return  # no row gains anything: equal rows
        empty = empty[: len(theta)]
        self.theta[empty] = theta
        self.scores[:, empty] = all_scores(likelihood, rows, theta)[:, : len(theta)]
        # a row that takes the atom made from itself would count itself twice
        self.scores[founders, empty] = (
            likelihood.log_marginal_rows(rows[founders]) if likelihood.conjugate else -np.inf
        )
        self.log_weight[empty] = log_place

    def _grow(self):
        """Double the columns."""
        n = len(self.members)
        self.theta = np.concatenate([self.theta, np.zeros_like(self.theta)])
        self.members = np.concatenate([self.members, np.zeros(n, np.int64)])
        self.log_weight = tiled(np.r_[self.log_weight, np.full(n, -np.inf)])
        scores = block(len(self.scores), 2 * n)
        scores[:, :n], scores[:, n:] = self.scores, -np.inf
        self.scores = scores

    def _proposals(self, likelihood, rows, value, generator):
        """Atoms made from rows, more likely from those that gain much: (theta, rows)."""
        n = min(CANDIDATES * self.n_places, len(rows))
        candidates = np.sort((generator.random(n) * len(rows)).astype(np.int64))
        candidates = np.unique(candidates)
        part = rows[candidates]
        theta = centres(likelihood, part, generator)
        own = np.diagonal(all_scores(likelihood, part, theta))
        used = np.flatnonzero(self.members)
        best = value[candidates, 0]
        if len(used):
            best = np.maximum(best, self.scores[np.ix_(candidates, used)].max(axis=1))
        # -inf minus -inf: a row that is impossible everywhere has no gain
        with np.errstate(invalid="ignore"):
            gain = np.nan_to_num(np.maximum(own - best, 0.0).astype(float))
        # sampling without replacement, in proportion to the gains (Efraimidis and Spirakis 2006)
        with np.errstate(divide="ignore"):
            keys = -np.log1p(-generator.random(len(candidates))) / gain
        chosen = np.argsort(keys, kind="stable")[: self.n_places]
        chosen = chosen[gain[chosen] > 0]
        return theta[chosen], candidates[chosen]


def centres(likelihood, rows, generator):
    """An atom at each row: the posterior mean given the row, or a proposal."""
    if not likelihood.conjugate:
        return likelihood.proposal_draw(rows, generator)
    labels = np.arange(len(rows), dtype=np.int32)
    return likelihood.mean(likelihood.statistics(rows, labels, len(rows)))
