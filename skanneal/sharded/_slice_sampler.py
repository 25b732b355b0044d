"""The uncollapsed slice sampler (Walker 2007; in parallel as Ge et al. 2015), with a horizon.

Weights are instantiated: (w_1 .. w_K, w_*) ~ Dirichlet(n_k - d; alpha + d K). Every row has a slice
u_i, uniform on (0, w of its atom). The remainder w_* is broken, v ~ Beta(1 - d, alpha + d (K +
j)) for the j-th new atom, theta from H, until what is left is smaller than every slice; then
each row chooses by f among the atoms with w_k > u_i. Everything but the breaking is done on the
shards, one sub-iteration between two synchronisations.

With a discount the remainder after j pieces falls as slowly as j^(1 - 1/d): millions of pieces
would be needed. So the sampler imagines further rows, drawn from the weights at the times of a
Poisson process of rate 1. Atom k is seen first at T_k ~ Exponential(w_k), the pieces of w_* in the
order in which they are broken, each after a time Exponential(what is left). The times depend on the
weights, and not on which rows are in which cluster. So, given the times, the rows of the atoms seen
before a horizon may choose among these atoms alone, while all other rows stay where they are: each
row is drawn from its law given the rest and given that its atom was seen. Pieces not seen are never
broken. The horizon depends on the number of rows and the prior alone; it is where the prior expects
`TIMES` as many clusters as among the rows.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ._assign import draw_slices, tiled
from ._segments import (
    Stage,
    bit_generator,
    draw_weights,
    report,
    scored_blocks,
    unreachable,
    words,
)

TIMES = 4.0  # safety cap on pieces; without a discount the slices stop earlier


class SliceSampler(Stage):
    """The slice sampler on shards."""

    name = "slice"
    steps = 1  # between two synchronisations
    n_pairs = 8

    def plan(self, state, n_steps, generator):
        """(function, arguments of each shard) of the next segment."""
        alpha, d = state.prior.stick_breaking()
        sizes, n_clusters = state.sizes, state.n_clusters
        log_w = draw_weights(np.r_[sizes - d, alpha + d * n_clusters], generator)
        log_times = _log_exponentials(n_clusters, generator) - log_w[:-1]
        horizon = self.log_horizon(state.n_rows, alpha, d)
        seen = self.seen(log_times, horizon)
        theta = state.theta
        if theta is None:
            theta = state.likelihood.draw(state.statistics, None, generator)
        # a slice below w has the law of w times a uniform; the smallest says where to stop
        slices = [_log_uniforms(len(labels), generator) for labels in state.labels]
        bounds = [
            (log_w[labels] + log_u).astype(np.float32)
            for labels, log_u in zip(state.labels, slices)
        ]
        least = min(
            bound[seen[labels]].min(initial=np.inf) for labels, bound in zip(state.labels, bounds)
        )
        pieces, rest, log_time = [], log_w[-1], -np.inf
        while rest >= least:
            log_time = np.logaddexp(log_time, _log_exponentials(1, generator)[0] - rest)
            if log_time > horizon:
                break
            beyond = alpha + d * (n_clusters + len(pieces) + 1)
            log_v, log_left = draw_weights([1 - d, beyond], generator)
            pieces.append(rest + log_v)
            rest += log_left
        new = state.likelihood.prior_draw(len(pieces), generator)
        state.offered = new
        n_atoms = n_clusters + len(pieces)
        atoms = np.r_[np.flatnonzero(seen), n_clusters:n_atoms]
        log_w = np.r_[log_w[:-1][seen], pieces].astype(np.float32)
        sent = n_atoms, atoms, np.concatenate([theta[seen], new]), log_w, state.likelihood
        return slice_segment, [
            (labels, bound, *sent, words(generator)) for labels, bound in zip(state.labels, bounds)
        ]

    @staticmethod
    def log_horizon(n_rows, alpha, d):
        """Logarithm of the time after which atoms are not seen any more.

        It follows from dK/dt = (alpha + d K) / (alpha + t), K(1) = 1: so grows the expected number
        K of clusters of t rows.
        """
        log_growth = np.log1p((n_rows - 1) / (alpha + 1))
        expected = 1 + (alpha + d) * (np.expm1(d * log_growth) / d if d else log_growth)
        excess = (TIMES * expected - 1) / (alpha + d)
        log_growth = np.log1p(d * excess) / d if d else excess
        if log_growth > 700.0:  # beyond what exp can do
            return np.log(alpha + 1) + log_growth
        return np.log1p((alpha + 1) * np.expm1(log_growth))

    @staticmethod
    def seen(log_times, horizon):
        """Whether each of the atoms that have rows is seen: bool (K,)."""
        return log_times <= horizon


def _log_exponentials(n, generator):
    """Logarithms of n exponential variates, none of them 0."""
    return np.log(-np.log(1.0 - generator.random(n) * (1.0 - 2.0**-53)))


def _log_uniforms(n, generator):
    return np.log1p(-generator.random(n))


def slice_segment(rows, labels, bounds, n_atoms, atoms, theta, log_w, likelihood, seed, stop):
    """New labels of a shard's rows given weights, atoms and slices.

    Parameters
    ----------
    rows : encoded rows
    labels : int32 array of shape (n,)
    bounds : float32 array of shape (n,)
        Logs of the slices, at most the log weight of the row's own atom.
    n_atoms : int
        K + n_offered.
    atoms : int array of shape (n_seen,)
        Those that are seen; rows of others stay.
    theta, log_w : arrays of shape (n_seen, ...), float32 (n_seen,)
    likelihood : Likelihood
    seed : list of int
    stop : StopFlag
    """
    rng, log_weight = bit_generator(seed), tiled(log_w)
    place = np.full(n_atoms, -1, np.int32)  # atom -> its place among those seen
    place[atoms] = np.arange(len(atoms))
    drawn = place[labels]
    at = np.flatnonzero(drawn >= 0)
    drawn = drawn[at]
    # in float32 a slice may round up to its weight: it stays below
    bounds = np.minimum(bounds[at], np.nextafter(log_w[drawn], np.float32(-np.inf)))
    for start, scores in scored_blocks(likelihood, rows, theta, stop, at):
        part = slice(start, start + len(scores))
        stuck = draw_slices(scores, log_weight, drawn[part], bounds[part], rng)
        if stuck >= 0:  # its own atom, which is above its slice, has not made the row
            raise unreachable(likelihood, at[start + stuck])
    out = labels.copy()
    out[at] = atoms[drawn]
    return report(likelihood, rows, out, n_atoms, None if likelihood.conjugate else theta[:0])
