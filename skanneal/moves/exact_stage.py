"""The exact stage on shards: weights for features with members off p*, the rest is the tail.

At a synchronisation one shard p*, drawn blindly, becomes the only one where features may come and
go. I are the features with a member on another shard: they get weights

    (w_k, k in I; w_0) ~ Dirichlet(n_k - d; a0 + n*),    a0 = alpha + d |I|,

n* the rows of p* in the others, the tail, which has no weights of its own: given w_0 it is a
Pitman-Yor mixture with concentration a0. Off p* a row chooses by w_k f among the features that have
members on its own shard, and the last of these stays; on p* a row chooses among all of I and the
tail's clusters. (The published scheme lets rows off p* empty a feature, and instantiates what only
p* holds: both are biased.)

Weights and theta stand still between two synchronisations, so what a row would draw from I is one
draw per segment: a second draw from the same weights has the same law, on p* by the argument of
Carlin and Chib (1995), the feature drawn being its own pseudo-prior while the row is in the tail.
Only the tail is swept again and again.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..partition_priors import PitmanYor
from ..states import Mixture
from ._assign import draw_rows, move_all_but_last, sweep_tail, tiled
from ._random import below
from .auxiliary import Places, sweep_places
from .segments import bit_generator, draw_weights, report, scored_blocks, unreachable, words


class ExactStage:
    """The corrected exact stage of the accelerated sampler.

    Parameters
    ----------
    n_auxiliary : int
        Empty features within the tail, if the likelihood is not conjugate (algorithm 8).
    """

    name = "hybrid"
    burn_in = False

    def __init__(self, n_auxiliary):
        self.n_auxiliary = n_auxiliary

    def plan(self, state, n_steps, generator):
        """(function, arguments of each shard) of the next segment."""
        n_shards = len(state.labels)
        chosen = below(n_shards, generator)
        members, sizes = state.members, state.sizes
        inside = sizes > members[chosen]  # I: a member off p*
        features = np.flatnonzero(inside)
        alpha, d = state.prior.concentration, state.prior.discount
        a0 = alpha + d * len(features)
        n_tail = int(sizes[~inside].sum())
        log_w = draw_weights(np.r_[sizes[features] - d, a0 + n_tail], generator)
        if state.theta is None:
            theta = state.likelihood.draw(state.statistics[features], None, generator)
        else:
            theta = state.theta[features]
        arguments = []
        for p, labels in enumerate(state.labels):
            of = np.flatnonzero(inside) if p == chosen else np.flatnonzero(members[p])
            at = np.searchsorted(features, of)
            sent = labels, state.n_clusters, of, theta[at], log_w[at], state.likelihood
            tail = None
            if p == chosen:
                own = None if state.theta is None else state.theta[~inside]
                tail = PitmanYor(a0, d), float(log_w[-1]), self.n_auxiliary, own
            arguments.append((*sent, tail, n_steps, words(generator)))
        return exact_segment, arguments


def exact_segment(rows, labels, n_features, features, theta, log_w, likelihood, tail, n_steps,
                  seed, stop):
    """A shard's part between two synchronisations.

    Parameters
    ----------
    rows : encoded rows
    labels : int32 array of shape (n,)
    n_features : int
        K.
    features : int array of shape (n_open,)
        Those that a row may choose, of I.
    theta, log_w : arrays of shape (n_open, ...), (n_open,)
    likelihood : Likelihood
    tail : None or (prior, log w_0, n_auxiliary, theta)
        On p*: the tail's Pitman-Yor prior, its weight, and the features of the tail if they are
        instantiated, in the order of their numbers.
    n_steps : int
        Sub-iterations.
    seed : list of int
    stop : StopFlag

    Returns
    -------
    report, or None if the stop flag is set
    """
    rng = bit_generator(seed)
    drawn = np.empty(len(rows), np.int32)
    log_mass = np.empty(len(rows))
    if len(features):
        log_weight = tiled(log_w)
        for start, scores in scored_blocks(likelihood, rows, theta, stop):
            part = slice(start, start + len(scores))
            draw_rows(scores, log_weight, drawn[part], log_mass[part], rng)
    else:
        drawn[:], log_mass[:] = -1, -np.inf
    if stop.is_set():
        return None
    place = np.full(n_features, -1, np.int32)  # feature -> its place among the open ones
    place[features] = np.arange(len(features))
    own = place[labels]
    if tail is None:
        stuck = np.flatnonzero(drawn < 0)
        if len(stuck):
            raise unreachable(likelihood, stuck[0])
        move_all_but_last(own, drawn, np.bincount(own, minlength=len(features)))
        new_labels = features[own].astype(np.int32)
        return report(likelihood, rows, new_labels, n_features, *_all(theta, features, n_features))
    own[own >= 0] = drawn[own >= 0]
    if likelihood.conjugate:
        clusters, done = _collapsed_tail(
            rows, labels, own, drawn, log_mass, likelihood, tail, n_steps, rng, stop
        )
        tail_theta = None
    else:
        clusters, tail_theta, done = _instantiated_tail(
            rows, labels, own, drawn, log_mass, likelihood, tail, n_steps, rng, stop
        )
    if not done:
        return None
    # the tail's clusters are new features, whichever numbers they had
    out = np.full(len(rows), -1, np.int32)
    out[own >= 0] = features[own[own >= 0]]
    used, number = np.unique(clusters[own < 0], return_inverse=True)
    out[own < 0] = n_features + number
    if likelihood.conjugate:
        return report(likelihood, rows, out, n_features + len(used))
    new = tail_theta[used]
    full, _ = _all(theta, features, n_features)
    return report(
        likelihood, rows, out, n_features + len(used), np.concatenate([full, new]), new
    )


def _all(theta, features, n_features):
    """theta in the places of all features, and no new ones."""
    full = np.zeros((n_features, *theta.shape[1:]))
    full[features] = theta
    return full, full[:0]


def _collapsed_tail(rows, labels, own, drawn, log_mass, likelihood, tail, n_steps, rng, stop):
    """Sweeps of p*'s rows with the tail's features integrated out: (cluster of each row, done)."""
    prior, log_tail, _, _ = tail
    members = np.flatnonzero(own < 0)
    first = np.unique(labels[members], return_inverse=True)[1]
    n_slots = int(first.max(initial=-1)) + 2
    mixture = Mixture(rows.table, likelihood.blocks(rows.table, n_slots), prior, None)
    mixture.replace(members, first)
    for _ in range(n_steps):
        if not sweep_tail(mixture, own, drawn, log_mass, log_tail, rng, stop.array):
            return None, False
    return mixture.get_labels(), True


def _instantiated_tail(rows, labels, own, drawn, log_mass, likelihood, tail, n_steps, rng, stop):
    """The same with algorithm 8: (cluster of each row, theta of the clusters, done)."""
    prior, log_tail, n_auxiliary, theta = tail
    members = np.flatnonzero(own < 0)
    column = np.full(len(rows), -1, np.int32)
    column[members] = np.unique(labels[members], return_inverse=True)[1]
    places = Places(likelihood, theta, column, prior, n_auxiliary, rng)
    log_rest = log_mass - log_tail
    for _ in range(n_steps):
        if not sweep_places(places, rows, log_rest, stop):
            return None, None, False
    own[:] = np.where(places.labels < 0, drawn, -1)
    return places.labels, places.theta, True
