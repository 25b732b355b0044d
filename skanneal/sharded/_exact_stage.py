"""The exact stage on shards: some atoms have weights, the rest are tails of single shards.

At a synchronisation a set F of *free* shards is drawn blindly; the others are anchored. T_p, the
tail of a free shard p, are the atoms wholly on p; I are all others: those with a member on an
anchored shard, and those on several free ones. Given the partition

    (w_k, k in I; w_p, p in F) ~ Dirichlet(n_k - d; a_p + n_p),

n_p the rows in T_p. For a Dirichlet process the a_p are any numbers (here alpha / |F|), and a row
of p, taken out, weighs

    k in I                     w_k f
    j in T_p                   w_p n_j / (n_p + a_p) f
    a new atom, in T_p      w_p alpha / (n_p + a_p) f

since p(partition) is alpha^K times a product over atoms, so that tails know nothing of each other:
all free shards make atoms at the same time. With a discount they would have to count each other's;
then F is one shard, a_p = alpha + d |I|, and n_j - d and alpha + d (|I| + |T_p|) stand for n_j and
alpha. An atom in I must stay in I, whatever the rows do. So on an anchored shard a row chooses only
among atoms that have other members there, and the last member stays. The same holds on a free
shard, except that any row of a free shard may join and leave an atom that has a member on an
anchored one. F is all shards or all but one. (The published scheme lets rows off p* empty an atom,
and instantiates what only p* holds: both are biased.)

Weights and theta stand still between two synchronisations, so what a row would draw from I is one
draw per segment: a second draw from the same weights has the same law, and on a free shard the
atom drawn serves as its own pseudo-prior while the row is in the tail (Carlin and Chib 1995).
Only the tail is swept again and again.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..moves._random import below
from ..partition_priors import PitmanYor
from ..states import Mixture
from ._assign import draw_rows, move_all_but_last, sweep_tail, tiled
from ._auxiliary import Places, sweep_places
from ._segments import Stage, bit_generator, draw_weights, report, scored_blocks, unreachable, words

ANCHORED = 0.5  # share of the segments in which one shard is anchored


class ExactStage(Stage):
    """The corrected exact stage of the accelerated sampler."""

    name = "hybrid"
    n_pairs = 8

    def plan(self, state, n_steps, generator):
        """(function, arguments of each shard) of the next segment."""
        members = state.members
        n_shards, n_atoms = members.shape
        alpha, d = state.prior.stick_breaking()
        free = self.draw_free(n_shards, d, generator)
        own = members > 0
        anchored, wide = self.split(own, free)
        atoms = np.flatnonzero(wide)
        n_tail = self.tail_rows(state, wide)[free]
        a = alpha + d * len(atoms)
        shares = np.full(len(n_tail), a / max(1, len(n_tail)))
        log_w = draw_weights(np.r_[state.sizes[atoms] - d, shares + n_tail], generator)
        if state.theta is None:
            theta = state.likelihood.draw(state.statistics[atoms], None, generator)
        else:
            theta = state.theta[atoms]
        log_tails = iter(zip(log_w[len(atoms) :], shares))
        arguments = []
        for p, labels in enumerate(state.labels):
            # which atoms a row may choose, and which may lose their last member here
            of = np.flatnonzero(wide & (own[p] | (free[p] & anchored)))
            at = np.searchsorted(atoms, of)
            held = self.held(anchored[of], free[p])
            tail = None
            if free[p]:
                log_tail, share = next(log_tails)
                left = own[p] & ~wide
                own_theta = None if state.theta is None else state.theta[left]
                tail = PitmanYor(a, d), float(log_tail), float(share), self.n_auxiliary, own_theta
            sent = labels, n_atoms, of, theta[at], log_w[at], held, state.likelihood, tail
            arguments.append((*sent, n_steps, words(generator)))
        return exact_segment, arguments

    @staticmethod
    def draw_free(n_shards, discount, generator):
        """The free shards, a bool for each: all, or all but one; with a discount only one."""
        chosen = np.arange(n_shards) == below(n_shards, generator)
        if discount > 0.0 or n_shards == 1:
            return chosen
        return ~chosen if generator.random() < ANCHORED else np.ones(n_shards, bool)

    @staticmethod
    def split(own, free):
        """Which atoms have a member on an anchored shard, and which are in I."""
        anchored = own[~free].any(axis=0)
        return anchored, anchored | (own.sum(axis=0) > 1)

    @staticmethod
    def tail_rows(state, wide):
        """n_p of every shard."""
        return (state.members * ~wide).sum(axis=1)

    @staticmethod
    def held(anchored, is_free):
        """Whether a shard's last member of each of these atoms stays."""
        return ~anchored if is_free else np.ones(len(anchored), bool)


def exact_segment(
    rows, labels, n_atoms, atoms, theta, log_w, held, likelihood, tail, n_steps, seed, stop
):
    """A shard's part between two synchronisations.

    Parameters
    ----------
    rows : encoded rows
    labels : int32 array of shape (n,)
    n_atoms : int
        K.
    atoms : int array of shape (n_open,)
        The atoms of I that a row may choose.
    theta, log_w : arrays of shape (n_open, ...), (n_open,)
    held : bool array of shape (n_open,)
        Atoms whose last member here stays.
    likelihood : Likelihood
    tail : None or (prior, log w_p, a_p, n_auxiliary, theta)
        On a free shard: the Pitman-Yor prior whose weights the tail has, and the tail's atoms if
        they are instantiated, in the order of their numbers.
    n_steps : int
        Sub-iterations.
    seed : list of int
    stop : StopFlag

    Returns
    -------
    report
    """
    rng = bit_generator(seed)
    drawn = np.empty(len(rows), np.int32)
    log_mass = np.empty(len(rows))
    if len(atoms):
        log_weight = tiled(log_w)
        for start, scores in scored_blocks(likelihood, rows, theta, stop):
            part = slice(start, start + len(scores))
            draw_rows(scores, log_weight, drawn[part], log_mass[part], rng)
    else:
        drawn[:], log_mass[:] = -1, -np.inf
    place = np.full(n_atoms, -1, np.int32)  # atom -> its place among the open ones
    place[atoms] = np.arange(len(atoms))
    own = place[labels]
    new = None if likelihood.conjugate else theta[:0]
    if stop.is_set():  # not every row has drawn: none moves
        return report(likelihood, rows, labels, n_atoms, new)
    if tail is None and (drawn < 0).any():
        raise unreachable(likelihood, np.flatnonzero(drawn < 0)[0])
    members = np.bincount(own[own >= 0], minlength=len(atoms))
    held = held.view(np.uint8)
    move_all_but_last(own, drawn, members, held)
    if tail is None:
        out = atoms[own].astype(np.int32)
        return report(likelihood, rows, out, n_atoms, new)
    prior, log_tail, share, n_auxiliary, first = tail
    clusters = np.full(len(rows), -1, np.int32)
    clusters[own < 0] = np.unique(labels[own < 0], return_inverse=True)[1]
    if likelihood.conjugate:
        rest = drawn, log_mass, members, held, log_tail, share
        n_slots = int(clusters.max()) + 2
        mixture = Mixture(rows.table, likelihood.blocks(rows.table, n_slots), prior, None)
        mixture.replace(np.flatnonzero(own < 0), clusters[own < 0])
        for _ in range(n_steps):
            done, stuck = sweep_tail(mixture, own, *rest, rng, stop.array)
            if stuck >= 0:
                raise unreachable(likelihood, stuck)
            if not done:
                break
        clusters = mixture.get_labels()
    else:
        rest = log_mass, drawn, members, held, log_tail, share
        places = Places(likelihood, first, clusters, prior, n_auxiliary, rng)
        for _ in range(n_steps):
            if not sweep_places(places, rows, stop, rest=rest):
                break
        clusters = places.labels
    # the tail's clusters are new atoms, whichever numbers they had
    inside = clusters < 0
    used, number = np.unique(clusters[~inside], return_inverse=True)
    out = np.empty(len(rows), np.int32)
    out[inside] = atoms[drawn[inside]]
    out[~inside] = n_atoms + number
    new = None if likelihood.conjugate else places.theta[used]
    return report(likelihood, rows, out, n_atoms + len(used), new)
