"""Exact laws of mixtures with a finite number of components, by brute force from the formula.

Rows share one of M components with weights from a Dirichlet distribution with M parameters gamma, M
is one of a few numbers of given probability, and n rows are in K clusters with

p(pi | M) = M! / (M - K)! Gamma(gamma M) / Gamma(n + gamma M)
            prod_k Gamma(n_k + gamma) / Gamma(gamma).

A point is (M, gamma). All else is as in enumeration.py and crosscat_enumeration.py.
"""

import math
from itertools import product

from oracles.crosscat_enumeration import CrossCatTarget
from oracles.enumeration import clusters, normalised, partitions
from oracles.reference import log_marginal


def log_finite(sizes, n_components, gamma):
    """Log probability of one partition with these sizes: the ways to give its clusters components,
    times the law of Dirichlet and multinomial.

    >>> round(math.exp(log_finite([2, 1], 2, 1.0)), 12)  # 2 ways, 2! 1! 1! / 4! each
    0.166666666667
    >>> log_finite([1, 1, 1], 2, 1.0)
    -inf
    """
    if len(sizes) > n_components:
        return -math.inf
    ways = sum(math.log(n_components - i) for i in range(len(sizes)))
    whole = math.lgamma(gamma * n_components) - math.lgamma(sum(sizes) + gamma * n_components)
    return ways + whole + sum(math.lgamma(size + gamma) - math.lgamma(gamma) for size in sizes)


def finite_law(columns, points, weights, *, beta=1.0):
    """Law of (partition, index of the point)."""
    log_weights = {}
    for labels in partitions(len(columns[0][1])):
        members = clusters(labels)
        log_lik = math.fsum(
            log_marginal(family, [values[row] for row in rows], hyper)
            for family, values, hyper in columns
            for rows in members
        )
        for i, (point, weight) in enumerate(zip(points, weights, strict=True)):
            log_prior = log_finite([len(rows) for rows in members], *point)
            if log_prior > -math.inf:
                log_weights[labels, i] = math.log(weight) + log_prior + beta * log_lik
    return normalised(log_weights)


class FiniteCrossCat(CrossCatTarget):
    """The cross-categorizations of finite mixtures: the pairs are (gamma M, -gamma)."""

    def __init__(self, columns, view_prior, row_grid, *, row_weights, beta=1.0):
        # what the base makes of the pairs of a process is replaced
        super().__init__(columns, row_grid=[(1.0, 0.0)] * len(row_grid), beta=beta)
        self.concentration, self.discount = view_prior
        self.row_grid, self.prior = row_grid, {}
        for labels, (point, pair) in product(partitions(self.n_rows), enumerate(row_grid)):
            log_prior = log_finite([len(rows) for rows in clusters(labels)], *_of_pair(*pair))
            if log_prior > -math.inf:
                self.prior[labels, point] = math.exp(log_prior) * row_weights[point]

    def log_joint(self, state):
        sizes = [len(features) for features, _ in state]
        log_prior = log_finite(sizes, *_of_pair(self.concentration, self.discount))
        return log_prior + math.fsum(self.log_view(*view) for view in state)


def _of_pair(concentration, discount):
    return round(concentration / -discount), -discount
