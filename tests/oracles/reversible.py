"""Whether a kernel is reversible; laws with a fault, which tests must tell from the right one."""

import math

import numpy as np

from oracles.enumeration import (
    Target,
    allocations,
    stationary_error,
)
from oracles.reference import EXAMPLES

FAMILIES = sorted(EXAMPLES)
# Of one Gibbs scan or split-merge step; a planted fault moves the posterior by more than FAULT.
EXACT, FAULT = 1e-10, 1e-4


def column(family, n, missing=()):
    """A family's example, cut to n rows, some of them missing."""
    values, hyper = EXAMPLES[family]
    gap = math.nan if family == "normal" else None
    values = [gap if row in missing else value for row, value in enumerate(values[:n])]
    return family, values, hyper


def mixed_columns(n):
    """One column of each family, with missing cells."""
    return [column(family, n, missing={i}) for i, family in enumerate(FAMILIES[: n - 1])]


class NoDiscountJoin(Target):
    """Joins with weight n_k."""

    def log_join(self, size):
        return math.log(size)


class NoDiscountOpen(Target):
    """Opens with weight alpha."""

    def log_open(self, n_clusters):
        return math.log(self.concentration)


class OneClusterMore(Target):
    """Counts one cluster too many."""

    def log_open(self, n_clusters):
        return super().log_open(n_clusters + 1)


def fresh_paths(target, i, j, others, labels):
    """A merge that draws a new allocation instead of the current clusters."""
    return [(probability, log_z) for probability, log_z, _ in allocations(target, i, j, others)]


def assert_reversible(target, matrix):
    """Rows sum to 1, entries are no less than 0, detailed balance and pi T = pi."""
    pi = np.array(list(target.posterior().values()))
    flow = pi[:, None] * matrix
    assert matrix.min() >= 0
    assert np.abs(matrix.sum(axis=1) - 1).max() < EXACT
    assert np.abs(flow - flow.T).max() < EXACT
    assert stationary_error(target, matrix) < EXACT


COLUMNS = {family: lambda n, f=family: [column(f, n, missing={1})] for family in FAMILIES}
COLUMNS |= {"mixed": mixed_columns, "silent": lambda n: []}
