"""Density of a row in a cluster of its own where no closed form integrates atoms out.

m(x), the integral of f(x | theta) over the base measure H, is estimated from n_0 atoms of H, which
all rows share, and, if the likelihood has a proposal, n_1 of the row's q_x besides. Each of these
atoms, from whichever law it was drawn, has the weight

    f(x | theta) H(theta) / (n_0 H(theta) + n_1 q_x(theta)),

the balance heuristic (Veach and Guibas 1995): unbiased, and never much worse than either sample
alone. Draws of H alone miss the posterior of a row in many columns, by tens of nats; those of q_x
alone would trust every tail of a user's proposal.

A row's atoms come from the same random numbers whichever rows are asked about with it, so its
density is a function of the row and the draw.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.special import logsumexp

from ._segments import all_scores, bit_generator, scored_blocks

N_PROPOSED = 128


def log_new_cluster(likelihood, rows, theta, seed):
    """log m of each row.

    Parameters
    ----------
    likelihood : Likelihood
        Not a conjugate one.
    rows : encoded rows
    theta : array of shape (n_0, ...)
        Atoms of H.
    seed : int array
        Seed of the proposals.

    Returns
    -------
    float64 array of shape (n_rows,)
    """
    out, n_prior = np.empty(len(rows)), len(theta)
    rng, log_h = bit_generator(seed), likelihood.log_prior(theta)
    first = rng.state
    for start, scores in scored_blocks(likelihood, rows, theta, dtype=float):
        log_f = scores[:, :n_prior]
        part = slice(start, start + len(scores))
        if not likelihood.proposes:
            out[part] = logsumexp(log_f, axis=1) - np.log(n_prior)
            continue
        log_weights = np.empty((len(scores), n_prior + N_PROPOSED))
        for i, own in enumerate(log_f):
            rng.state = first
            copies = rows[np.full(N_PROPOSED, start + i)]
            log_weights[i] = _balanced(likelihood, copies, theta, own, log_h, rng)
        out[part] = logsumexp(log_weights, axis=1)
    return out


def _balanced(likelihood, copies, theta, log_f, log_h, rng):
    """Log weights of all atoms for one row, given in as many copies as are to be proposed."""
    row = copies[:1]
    proposed = likelihood.proposal_draw(copies, np.random.Generator(rng))
    of_proposed = all_scores(likelihood, row, proposed, float)[0, : len(proposed)]
    log_q = likelihood.proposal_logpdf(np.concatenate([theta, proposed]), row)
    log_h = np.r_[log_h, likelihood.log_prior(proposed)]
    both = np.logaddexp(np.log(len(theta)) + log_h, np.log(len(proposed)) + log_q)
    joint = np.r_[log_f, of_proposed] + log_h
    return np.where(np.isneginf(joint), -np.inf, joint - np.where(np.isneginf(both), 0.0, both))
