"""The uncollapsed slice sampler (Walker 2007; in parallel as Ge et al. 2015).

Weights are instantiated: (w_1 .. w_K, w_*) ~ Dirichlet(n_k - d; alpha + d K). Every row has a slice
u_i, uniform on (0, w of its feature). The remainder w_* is broken, v ~ Beta(1 - d, alpha + d (K +
j)) for the j-th new feature, theta from H, until what is left is smaller than every slice; then
each row chooses by f among the features with w_k > u_i. Everything but the breaking is done on the
shards, one sub-iteration between two synchronisations.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ._assign import draw_slices, tiled
from .segments import (
    Stage,
    bit_generator,
    draw_weights,
    report,
    scored_blocks,
    unreachable,
    words,
)

MOST_PIECES = 100_000  # of the remainder in one sub-iteration


class SliceSampler(Stage):
    """The slice sampler on shards."""

    name = "slice"
    steps = 1  # between two synchronisations
    n_pairs = 8

    def plan(self, state, n_steps, generator):
        """(function, arguments of each shard) of the next segment."""
        alpha, d = state.prior.concentration, state.prior.discount
        sizes, n_clusters = state.sizes, state.n_clusters
        log_w = draw_weights(np.r_[sizes - d, alpha + d * n_clusters], generator)
        theta = state.theta
        if theta is None:
            theta = state.likelihood.draw(state.statistics, None, generator)
        # a slice below w has the law of w times a uniform; the smallest says where to stop
        slices = [_log_uniforms(len(labels), generator) for labels in state.labels]
        bounds = [
            (log_w[labels] + log_u).astype(np.float32)
            for labels, log_u in zip(state.labels, slices)
        ]
        least = min(bound.min() for bound in bounds)
        pieces, rest = [], log_w[-1]
        while rest >= least:
            if len(pieces) == MOST_PIECES:
                raise RuntimeError(
                    f"the slices need more than {MOST_PIECES} new features (concentration "
                    f"{alpha:.3g}, discount {d:.3g}): use another algorithm than 'slice'"
                )
            beyond = alpha + d * (n_clusters + len(pieces) + 1)
            log_v, log_left = draw_weights([1 - d, beyond], generator)
            pieces.append(rest + log_v)
            rest += log_left
        new = state.likelihood.prior_draw(len(pieces), generator)
        log_w = np.r_[log_w[:-1], pieces].astype(np.float32)
        state.offered = new
        sent = np.concatenate([theta, new]), log_w, state.likelihood
        return slice_segment, [
            (labels, bound, *sent, words(generator)) for labels, bound in zip(state.labels, bounds)
        ]


def _log_uniforms(n, generator):
    return np.log1p(-generator.random(n))


def slice_segment(rows, labels, bounds, theta, log_w, likelihood, seed, stop):
    """New labels of a shard's rows given weights, features and slices.

    Parameters
    ----------
    rows : encoded rows
    labels : int32 array of shape (n,)
    bounds : float32 array of shape (n,)
        Logs of the slices, at most log_w of the row's own feature.
    theta, log_w : arrays of shape (K + n_offered, ...), float32 (K + n_offered,)
    likelihood : Likelihood
    seed : list of int
    stop : StopFlag
    """
    rng, log_weight = bit_generator(seed), tiled(log_w)
    # in float32 a slice may round up to its weight: it stays below
    bounds = np.minimum(bounds, np.nextafter(log_w[labels], np.float32(-np.inf)))
    out = labels.copy()
    for start, scores in scored_blocks(likelihood, rows, theta, stop):
        part = slice(start, start + len(scores))
        stuck = draw_slices(scores, log_weight, out[part], bounds[part], rng)
        if stuck >= 0:  # its own feature, which is above its slice, has not made the row
            raise unreachable(likelihood, start + stuck)
    return report(likelihood, rows, out, len(theta), None if likelihood.conjugate else theta[:0])
