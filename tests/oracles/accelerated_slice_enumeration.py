"""The uncollapsed slice sampler on a Toy (Ge, Chen, Wan and Ghahramani 2015; d > 0 derived).

Given K clusters, w ~ Dirichlet(n_k - d; alpha + d K) and the unoccupied features share the last
entry by sticks Beta(1 - d, alpha + d (K + j)), j = 1, 2, ..; u_i ~ U(0, w of i), sticks broken
until what is left is below min u; z_i among the features with w > u_i prop. to f.

Exact in two halves: all weights given the partition (``reallocation_matrix``, likelihood off), and
a row given all weights (``slice_row_matrix``), reversible for w_k f_k.
"""

import math
from collections import defaultdict
from itertools import product

import numpy as np
from scipy.special import gammaln

from oracles.enumeration import canonical, clusters, log_eppf, partitions


def slice_row_matrix(weights, f):
    """One row's update over finitely many features: u ~ U(0, w_z), z prop. to f where w > u."""
    weights, f = np.asarray(weights, dtype=float), np.asarray(f, dtype=float)
    matrix = np.zeros((len(f), len(f)))
    edges = np.concatenate([[0.0], np.sort(weights)])
    for low, high in zip(edges[:-1], edges[1:], strict=True):
        above = weights >= high
        share = np.where(above, f, 0.0) / f[above].sum()
        matrix += np.outer(above * (high - low) / weights, share)
    return matrix


def reallocation_matrix(alpha, d, n_rows, remainder=None, tail=None):
    """w and the unoccupied features given the partition, then all rows anew from the weights.

    Likelihood off, so that Dirichlet moments and the Pitman-Yor law of the tail give it exactly:
    E[prod_k w_k^c_k w_0^c_0] PY(tail; alpha + d K, d) for c_k rows at the old feature k and c_0
    rows at unoccupied ones. ``remainder`` and ``tail``: K -> the parameter of w_0, the tail's
    concentration (negative controls).
    """
    remainder = remainder or (lambda k: alpha + d * k)
    tail = tail or (lambda k: alpha + d * k)
    states = list(partitions(n_rows))
    matrix = np.zeros((len(states), len(states)))
    for i, labels in enumerate(states):
        sizes = [len(rows) for rows in clusters(labels)]
        k = len(sizes)
        before = np.array([size - d for size in sizes] + [remainder(k)])
        for places in product(range(k + 1), repeat=n_rows):
            counts = np.bincount(places, minlength=k + 1)
            log_moment = gammaln(before + counts) - gammaln(before)
            chance = np.exp(
                log_moment.sum() + gammaln(before.sum()) - gammaln(before.sum() + n_rows)
            )
            new_rows = [row for row, place in enumerate(places) if place == k]
            for tail_labels in partitions(len(new_rows)):
                after = list(places)
                for row, label in zip(new_rows, tail_labels, strict=True):
                    after[row] = k + label
                tail_sizes = [len(rows) for rows in clusters(tail_labels)]
                extra = math.exp(log_eppf(tail_sizes, tail(k), d))
                matrix[i, states.index(canonical(after))] += chance * extra
    return matrix


def slice_sweep(toy, state, rng, remainder=None, stick=None):
    """One draw of the slice sampler: weights, slices, sticks, new features, all rows."""
    k = len(state)
    d = toy.d
    remainder = remainder or (lambda k: toy.alpha + d * k)
    stick = stick or (lambda j: (1 - d, toy.alpha + d * (k + j)))
    *w, left = rng.dirichlet([len(rows) - d for rows, _ in state] + [remainder(k)])
    thetas = [theta for _, theta in state]
    u = np.empty(toy.n_rows)
    for (rows, _), weight in zip(state, w, strict=True):
        for row in rows:
            u[row] = rng.uniform(0, weight)
    j = 1
    while left >= u.min():
        broken = left * rng.beta(*stick(j))
        w.append(broken)
        left -= broken
        j += 1
    thetas += rng.choice(toy.n_features, size=j - 1, p=toy.base).tolist()
    members = defaultdict(list)
    for row in range(toy.n_rows):
        f = np.where(np.asarray(w) > u[row], toy.f[row, thetas], 0.0)
        members[rng.choice(len(w), p=f / f.sum())].append(row)
    return tuple(sorted((tuple(rows), thetas[place]) for place, rows in members.items()))
