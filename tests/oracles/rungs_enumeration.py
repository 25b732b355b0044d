"""Rungs of nested rows and the swaps of their states, by brute force from the formulas.

A column is as in enumeration.py, with a list of mappings for a grid of equal weights; the law of a
partition is a list of points, (probability, log law of the clusters' sizes), as in
evidence_enumeration.py. A state of n rows is (labels, point, hypers): the number of a point, and of
each column's mapping. Its target is p(point) p(labels | point) p(hypers) p(x_1, .., x_n | ..).
"""

import math
from collections import defaultdict
from itertools import permutations, product

import numpy as np

from oracles.enumeration import canonical, clusters, normalised, partitions
from oracles.gaps_reference import observed_log_marginal
from oracles.reference import ROW_EXAMPLES, log_marginal


class Rows:
    """Columns, the points of a partition's prior, and what follows for the first n rows.

    Parameters
    ----------
    columns : list of (family, values, hyper)
    points : list of (probability, log law)
    totals : list of float
        What each point adds to the number of rows in the sum of its weights: alpha.
    """

    def __init__(self, columns, points, totals):
        self.columns, self.points, self.totals, self.known = columns, points, totals, {}
        self.mappings = [[h] if isinstance(h, dict) else h for _, _, h in columns]

    def log_cluster(self, rows, hypers):
        """Log marginal likelihood of some rows in one cluster."""
        return math.fsum(self._of_column(j, h, rows) for j, h in enumerate(hypers))

    def _of_column(self, j, h, rows):
        key = j, h, rows
        if key not in self.known:
            family, values, _ = self.columns[j]
            marginal = observed_log_marginal if family in ROW_EXAMPLES else log_marginal
            self.known[key] = marginal(family, [values[i] for i in rows], self.mappings[j][h])
        return self.known[key]

    def log_joint(self, labels, point, hypers):
        """Log of the target, up to the constant of the hyperparameters' grids."""
        weight, log_law = self.points[point]
        blocks = clusters(labels)
        log_prior = log_law([len(rows) for rows in blocks])
        if weight == 0 or log_prior == -math.inf:
            return -math.inf
        return math.log(weight) + log_prior + sum(self.log_cluster(b, hypers) for b in blocks)

    def states(self, n):
        """All states of the first n rows."""
        indices = product(*(range(len(m)) for m in self.mappings))
        yield from product(partitions(n), range(len(self.points)), list(indices))

    def law(self, n):
        """The law of the state of the first n rows."""
        found = {state: self.log_joint(*state) for state in self.states(n)}
        return normalised({state: value for state, value in found.items() if value > -math.inf})

    def steps(self, labels, point, hypers, row):
        """What a row that enters may make of the labels, to the log of the target's growth. The
        sum of these factors is Z: terms over t + alpha."""
        before = self.log_joint(labels, point, hypers)
        inside = [i for i, label in enumerate(labels) if label >= 0]
        out = {}
        for label in range(max((labels[i] for i in inside), default=-1) + 2):
            changed = list(labels) + [-1] * (row + 1 - len(labels))
            changed[row] = label
            out[tuple(changed)] = self.log_joint(tuple(changed), point, hypers) - before
        return out


def log_sum(values):
    """Log of the sum of exponentials."""
    return float(np.logaddexp.reduce(list(values)))


def allocations(rows, state, order):
    """{labels: (probability, log Z)} of what paths make of a state, whose rows are all before those
    of `order`."""
    labels, point, hypers = state
    paths = {(*labels, *[-1] * len(order)): (1.0, 0.0)}
    for row in order:
        longer = {}
        for before, (probability, log_z) in paths.items():
            steps = rows.steps(before, point, hypers, row)
            z = log_sum(steps.values())
            for after, log_step in steps.items():
                if log_step > -math.inf:
                    longer[after] = probability * math.exp(log_step - z), log_z + z
        paths = longer
    return {canonical(after): value for after, value in paths.items()}


def right(rows, n, m, log_forth, log_back, small, large):
    """The log ratio of a swap."""
    return log_forth - log_back


def unnormalised(rows, n, m, log_forth, log_back, small, large):
    """A wrong one: sums of weights that are not divided by t + alpha."""
    of_small, of_large = rows.totals[small[1]], rows.totals[large[1]]
    return (
        log_forth - log_back + sum(math.log((t + of_small) / (t + of_large)) for t in range(n, m))
    )


def swapped(rows, n, m, law, ratio=right):
    """The law of (small, large) after one swap of two independent draws of their targets."""
    out, orders, known = defaultdict(float), list(permutations(range(n, m))), {}

    def paths(state, order):
        if (state, order) not in known:
            known[state, order] = allocations(rows, state, order)
        return known[state, order]

    for (small, large), mass in law.items():
        end = (canonical(large[0][:n]), *large[1:])
        for order in orders:
            log_back = paths(end, order)[large[0]][1]
            for labels, (probability, log_forth) in paths(small, order).items():
                log_ratio = ratio(rows, n, m, log_forth, log_back, small, large)
                accepted = math.exp(min(0.0, log_ratio))
                share = mass * probability / len(orders)
                out[end, (labels, *small[1:])] += share * accepted
                out[small, large] += share * (1 - accepted)
    return dict(out)


def joint(*laws):
    """The law of independent states."""
    out = {(): 1.0}
    for law in laws:
        out = {(*key, state): p * q for key, p in out.items() for state, q in law.items()}
    return out
