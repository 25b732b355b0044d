"""Exact evidence of a few rows, and the posterior of their partition, from the formulas.

Columns as in enumeration.py, with a list of mappings for a hyperparameter grid of equal weights.
The law of a partition is a list of points, (probability, log law of the clusters' sizes). Columns
of one view share a partition z of the rows,

    p(x_F) = sum_point p(point) sum_z p(z | point) prod_{f in F} mean_h p(x_f | z, h),

and with views the evidence is the sum over the partitions of the columns of their probability times
the product over views.
"""

import math

from oracles import t_reference
from oracles.enumeration import clusters, log_eppf, partitions
from oracles.finite_enumeration import log_finite
from oracles.gaps_reference import observed_log_marginal
from oracles.reference import ROW_EXAMPLES, log_marginal


def process(points, weights=None):
    """The law of a Pitman-Yor process at each (concentration, discount); (0, 0): one cluster."""

    def log_law(concentration, discount):
        if concentration == discount == 0:
            return lambda sizes: 0.0 if len(sizes) == 1 else -math.inf
        return lambda sizes: log_eppf(sizes, concentration, discount)

    weights = weights or [1 / len(points)] * len(points)
    return [(weight, log_law(*point)) for weight, point in zip(weights, points, strict=True)]


def finite(points, weights=None):
    """The law of a finite mixture at each (number of components, gamma)."""

    def log_law(n_components, gamma):
        return lambda sizes: log_finite(sizes, n_components, gamma)

    weights = weights or [1 / len(points)] * len(points)
    return [(weight, log_law(*point)) for weight, point in zip(weights, points, strict=True)]


ONE = process([(0.0, 0.0)])


class Evidence:
    """The evidence of columns, and what it is made of.

    Parameters
    ----------
    columns : list of (family, values, hyper)
    row_law : list of (probability, log law)
        Of the partition of the rows, in every view.
    view_law : list of (probability, log law), one view by default
        Of the partition of the columns.
    """

    def __init__(self, columns, row_law, view_law=ONE):
        self.columns, self.row_law = columns, row_law
        self.n_rows, self.known = len(columns[0][1]), {}
        self.of_partition = {}  # of the columns and, in their first view, of the rows
        for views in partitions(len(columns)):
            first, *others = clusters(views)
            factor = law(view_law, [first, *others])
            factor *= math.prod(math.fsum(self.view(block).values()) for block in others)
            for labels, density in self.view(first).items() if factor else ():
                self.of_partition[views, labels] = factor * density
        self.density = math.fsum(self.of_partition.values())

    def view(self, features):
        """p(z, x_F) of every partition z of the rows."""
        return {
            labels: law(self.row_law, clusters(labels))
            * math.prod(self.column(f)[labels] for f in features)
            for labels in partitions(self.n_rows)
        }

    def column(self, f):
        """p(x_f | z) of every partition z, the mean over the grid of the hyperparameters."""
        if f not in self.known:
            family, values, hyper = self.columns[f]
            hypers = [hyper] if isinstance(hyper, dict) else hyper
            self.known[f] = dict.fromkeys(partitions(self.n_rows), 0.0)
            for one in hypers:
                of = _ClusterScores(family, values, one)
                for labels in self.known[f]:
                    log_density = math.fsum(map(of, clusters(labels)))
                    self.known[f][labels] += math.exp(log_density) / len(hypers)
        return self.known[f]

    @property
    def posterior(self):
        """(view of each column, labels of the rows in the first column's view) to probability."""
        return {key: value / self.density for key, value in self.of_partition.items()}


class _ClusterScores(dict):
    """Log marginal likelihood of a column's cells in a cluster, each cluster once."""

    def __init__(self, family, values, hyper):
        self.of = family, values, hyper

    def __missing__(self, rows):
        family, values, hyper = self.of
        cells = [values[row] for row in rows]
        if family == "multivariate_t":
            self[rows] = t_reference.log_marginal(cells, hyper)
        elif family in ROW_EXAMPLES:  # rows that may have gaps
            self[rows] = observed_log_marginal(family, cells, hyper)
        else:
            self[rows] = log_marginal(family, cells, hyper)
        return self[rows]

    def __call__(self, rows):
        return self[rows]


def law(points, blocks):
    """Probability of a partition, its point summed out."""
    sizes = [len(block) for block in blocks]
    return math.fsum(weight * math.exp(log_law(sizes)) for weight, log_law in points)
