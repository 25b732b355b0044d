"""Permutation-augmented moves (Liang, Jordan and Taskar 2007), for Dirichlet and Pitman-Yor priors.

The partition is augmented by an order in which the rows of each cluster are contiguous. Given the
order, all 2^(n - 1) partitions that cut it into runs are weighed at once by a dynamic program
(`_order_programs`), and one of them is drawn.

The prior is A(K) prod B(c), and an order drawn given a partition has probability 1 / K! times a
factor per cluster that goes into B:

    uniform      clusters and the rows in them in uniform order: 1 / n_c!
    markov       a Markov Gibbs scan through each cluster: (1 / n_c) prod k(x_t, x_{t + 1}) / sum
    projection   clusters by the projection of their means on a random direction, rows by their own:
                 no factor, and no 1 / K!. The order is a function of partition and direction.

The exact program draws from A(K) prod B. The others draw from prod tau B, tau a constant, and are
corrected by Metropolis and Hastings with w(K) = A(K) / (K! tau^K), without the K! for projections;
tau is the secant of log A(K) / K! at a reference number of clusters, which follows the chain in
burn-in and is fixed then. The move is rejected if the beam lacks the present clustering, or if the
outcome of a projection would be in another order. In burn-in, projections accept every draw, which
climbs the posterior.

The concentration may be integrated out (`Integrated`).
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.special import gammaln

from ._info import CALL, MoveInfo, Polled, n_columns_of, row_work
from ._integrated import Integrated
from ._order_programs import OrderProgram, scan_order
from ._random import below

PERMUTATIONS = ("projection", "uniform", "markov")
PROGRAMS = ("exact", "quadratic", "beam")
EXACT_ROWS = 1000  # the exact program holds n^2 numbers twice and takes n^3 / 6 exponentials
BEAM = 1e-32  # share of the sum over runs that a beam drops at each row by default


class Permutation(Polled):
    """Cut a random order of the rows into clusters.

    Parameters
    ----------
    permutation : {"projection", "uniform", "markov"}, default="projection"
        How orders are drawn. Projections alternate at random with uniform orders once burn-in is
        over, for a projection alone cannot reach every partition.
    program : {"exact", "quadratic", "beam"}, default="beam"
        "exact": O(n^3). "quadratic": all runs, O(n^2), with Metropolis and Hastings. "beam":
        only runs of notable weight, about O(n).
    tolerance : float, default=1e-32
        Share of the sum over runs that the beam may drop at each row.
    grid : PriorGrid, array of shape (n_points, 2) or None, default=None
        (concentration, discount) pairs; an array weighs them alike. The concentration is integrated
        out over those of the present discount. None: the mixture's own.
    """

    name = "permutation"
    acts_on = "rows"
    exact = True
    tempered = True
    integrates = True
    burn_in = False  # set by the chain: hill climbs are allowed, and tau follows
    tuning = None  # the reference number of clusters

    def __init__(self, permutation="projection", program="beam", tolerance=BEAM, grid=None):
        self.permutation, self.program, self.tolerance = permutation, program, tolerance
        self.integrated = None if grid is None else Integrated(grid)

    def sweep(self, state, bit_generator, *, beta=1.0):
        """One order; MoveInfo(1, accepted, work)."""
        rows = state.subsample.rows()
        if len(rows) < 2:
            return MoveInfo(0, 0, 0)
        if self.burn_in or self.tuning is None:
            self.tuning = state.n_clusters
        law = self.permutation
        climb = law == "projection" and self.burn_in
        if law == "projection" and not climb:
            law = ("projection", "uniform")[below(2, np.random.Generator(bit_generator))]
        info = self._move(state, rows, law, climb, beta, bit_generator)
        if self.integrated is not None:
            self.integrated.draw(state, bit_generator)
        return info

    def _move(self, state, rows, law, climb, beta, bit_generator):
        n, labels = len(rows), state.labels_of(rows)
        generator = np.random.Generator(bit_generator)
        if law == "projection":
            at = _projections(state, rows, bit_generator)
            place = _by_projection(labels, at, rows)
        elif law == "uniform":
            place = _uniform_order(labels, generator)
        else:
            place = _scanned_order(state, labels, rows, bit_generator)
        order, before = rows[place], labels[place]
        order_program = state.spare("order_program", OrderProgram)
        log_number, log_size = self._log_number(state, n, law), self._log_size(state, n, law)
        self.poll()
        tolerance, log_tau = self.tolerance if self.program == "beam" else 0.0, 0.0
        if self.program != "exact":
            log_tau = self._log_tau(log_number)
        weights = log_size + log_tau
        order_program.forward(state, order, weights, beta, tolerance, law == "markov", self.poll)
        self.poll()
        work = CALL + order_program.work * row_work(n_columns_of(state))
        if self.program == "exact":
            after, log_ratio = order_program.draw_exact(log_number, bit_generator), 0.0
        elif climb or order_program.holds(before):
            after = order_program.draw(bit_generator)
            old, new = state.n_clusters, int(after.max()) + 1
            log_ratio = log_number[new] - log_number[old] - (new - old) * log_tau
        else:
            return MoveInfo(1, 0, work)
        if log_ratio == -np.inf:  # more clusters than there may be
            return MoveInfo(1, 0, work)
        if not climb:
            if law == "projection" and not _gives_back(after, place, at, rows):
                return MoveInfo(1, 0, work)
            if np.log1p(-generator.random()) >= log_ratio:
                return MoveInfo(1, 0, work)
        if not np.array_equal(np.diff(before) != 0, np.diff(after) != 0):  # where the cuts are
            state.replace(order, after)
        return MoveInfo(1, 1, work)

    # ---- weights --------------------------------------------------------------------------------

    def _log_size(self, state, n, law):
        """log of the factor of a cluster of 0 .. n rows besides its likelihood."""
        d = state.prior.reduction
        sizes = np.arange(1.0, n + 1.0)
        out = gammaln(sizes - d) - gammaln(1.0 - d)
        if law == "uniform":
            out -= gammaln(sizes + 1.0)
        elif law == "markov":
            out -= np.log(sizes)
        return np.r_[-np.inf, out]

    def _log_number(self, state, n, law):
        """log A(K) / K!, or log A(K) for projections, up to a constant: K = 0 .. n + 1."""
        if self.integrated is None:
            out = state.prior.log_openings(n)
        else:
            out = self.integrated.log_openings(state.prior, n)
        return out if law == "projection" else out - gammaln(np.arange(1.0, n + 3.0))

    def _log_tau(self, log_number):
        """The secant of log A at the reference number of clusters, or the last where it has one."""
        most = np.count_nonzero(log_number > -np.inf) - 1
        reference = min(max(self.tuning, 1), len(log_number) - 2, most - 1)
        return log_number[reference + 1] - log_number[reference]


# ---- orders -------------------------------------------------------------------------------------


def _projections(state, rows, bit_generator):
    """The rows' projections on a random direction."""
    columns = np.concatenate([block.columns for block in state.blocks])
    return state.table.project(rows, np.sort(columns), bit_generator)


def _by_projection(labels, at, rows):
    """Places in order: clusters by mean projection and least row, rows by projection and number."""
    _, number = np.unique(labels, return_inverse=True)
    # summed in an order that no labelling changes: equal partitions have equal means
    least = np.full(number.max() + 1, rows.max() + 1)
    np.minimum.at(least, number, rows)
    means = np.bincount(number, weights=at) / np.bincount(number)
    return np.lexsort((rows, at, least[number], means[number]))


def _uniform_order(labels, generator):
    """Places in an order drawn uniformly from those that keep clusters together."""
    _, number = np.unique(labels, return_inverse=True)
    return np.lexsort((generator.random(len(labels)), generator.random(number.max() + 1)[number]))


def _scanned_order(state, labels, rows, bit_generator):
    """Places in an order of Markov Gibbs scans, clusters in uniform order."""
    generator = np.random.Generator(bit_generator)
    place_of = {row: place for place, row in enumerate(rows.tolist())}
    used = np.unique(labels)
    used = used[np.argsort(generator.random(len(used)))]
    scans = [scan_order(state, rows[labels == k], bit_generator) for k in used]
    return np.array([place_of[row] for row in np.concatenate(scans).tolist()])


def _gives_back(labels, place, at, rows):
    """Whether these clusters, ordered by their projections, come in this order."""
    of_row = np.empty(len(rows), np.int64)
    of_row[place] = labels
    return np.array_equal(_by_projection(of_row, at, rows), place)
