"""The permutation-augmented sampler of partitions of a few rows, by brute force from the formulas.

Columns, partitions, laws and targets as in enumeration.py. An order is a tuple of rows, a
segmentation of it the tuple of its segments' lengths, first segment first; segment [s, r) holds the
rows order[s:r]. A partition is consistent with an order in which its clusters are segments.

Liang, Jordan and Taskar (2007), "A permutation-augmented sampler for DP mixture models"; what is
called derived is not in the paper. With V(K) = prod_{i=1..K-1} (alpha + i d), q(order of c) the law
of the rows' order within a cluster and 1 / K! that of the clusters' order:

B(c) = tau m(c) Gamma(n_c - d) / Gamma(1 - d) q(order of c)   eq. (4), tau: eq. (5); d derived
A(K) = V(K) / ((alpha + 1)_{n-1} K!)                          eq. (4), tau = 1; d derived
q    = 1 / n_c!                                               eq. (3), uniform permutations
q    = 1 / n_c prod_t k(x_t, x_t+1) / sum_{u > t} k(x_t, x_u) section 4.1, Markov Gibbs scans,
       k(a, b) = p(x_b | x_a)
q    = 1, and no K!, the order being a function of C          section 4.2, random projections
g(r, K) = sum_m g(r - m, K - 1) B[r - m, r)                   section 3.1, exact program
g(r) = sum_m g(r - m) B[r - m, r)                             eq. (6), quadratic program
g(r) = the same sum over m in M_r alone                       section 3.3, beam; m = 1 kept and the
       rejection of what it does not hold: derived
w(K) = V(K) / (K! tau^K), accepted with min(1, w(K') / w(K))  section 3.2, tau frozen there too
       after burn-in; tau = alpha / beta with beta = exp(digamma(K)) printed for K + 1; d and
       reference_tau, (alpha + K d) / (K + 1), derived
v(K) = V(K) / tau^K, accepted with min(1, v(K') / v(K))       derived: exact random projections
W(K) = sum over a grid of alpha in the place of V(K) / (alpha + 1)_{n-1}   derived; announced in
       section 5: p(alpha) V(K) Gamma(alpha + 1) / Gamma(alpha + n)

V(K) starts at i = 1, so that -d < alpha <= 0 needs no care: the factor alpha is the same for all K.
"""

import math
from functools import cache
from itertools import accumulate, groupby, permutations

import numpy as np
from scipy.special import digamma

from oracles.enumeration import (
    Target,
    _matrix,
    canonical,
    clusters,
    log_eppf,
    normalised,
    partitions,
)


def log_sum(log_terms):
    """Log of a sum, -inf of nothing.

    >>> log_sum([]), round(math.exp(log_sum([math.log(2), -math.inf, math.log(3)])), 12)
    (-inf, 5.0)
    """
    log_terms = list(log_terms)
    largest = max(log_terms, default=-math.inf)
    if largest == -math.inf:
        return largest
    return largest + math.log(math.fsum(math.exp(term - largest) for term in log_terms))


# ---------------------------------------------------------------- orders and segmentations
def segments(order, lengths):
    """The segments of an order, as tuples of rows in that order.

    >>> segments((2, 0, 1), (2, 1))
    [(2, 0), (1,)]
    """
    return [order[end - m : end] for m, end in zip(lengths, accumulate(lengths), strict=True)]


def labels_of(order, lengths):
    """The canonical partition whose clusters are the segments.

    >>> labels_of((2, 0, 1), (2, 1))
    (0, 1, 0)
    """
    labels = [0] * len(order)
    for label, rows in enumerate(segments(order, lengths)):
        for row in rows:
            labels[row] = label
    return canonical(labels)


def lengths_of(order, labels):
    """The segmentation of an order that gives a partition, None unless they are consistent.

    >>> lengths_of((2, 0, 1), (0, 1, 0)), lengths_of((0, 1, 2), (0, 1, 0))
    ((2, 1), None)
    """
    lengths = tuple(len(list(run)) for _, run in groupby(order, key=labels.__getitem__))
    return lengths if len(lengths) == len(set(labels)) else None


def consistent_orders(labels):
    """All orders consistent with a partition: K! prod_c n_c! of them (keep n <= 5).

    >>> consistent_orders((0, 1, 0))
    [(0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1)]
    """
    return [order for order in permutations(range(len(labels))) if lengths_of(order, labels)]


def compositions(n):
    """All segmentations of n rows.

    >>> list(compositions(3))
    [(1, 1, 1), (1, 2), (2, 1), (3,)]
    """
    if n == 0:
        yield ()
    for m in range(1, n + 1):
        for rest in compositions(n - m):
            yield (m, *rest)


# --------------------------------------------------------------------- A, B and the orders
def uniform_order(target, segment):
    """Log q of uniform permutations."""
    return -math.lgamma(len(segment) + 1)


def markov_order(target, segment):
    """Log q of Markov Gibbs scans; k is the target's predictive, with its exponent beta."""
    log_q = -math.log(len(segment))
    for t, row in enumerate(segment[:-1]):
        log_k = [target.log_predict(other, (row,)) for other in segment[t + 1 :]]
        log_q += log_k[0] - log_sum(log_k)
    return log_q


def sure_order(target, segment):
    """Log q where the order is a function of the partition: 0."""
    return 0.0


def block_weight(order_law=uniform_order, tau=1.0):
    """The function (target, segment) -> log B(segment).

    >>> log_b = block_weight(tau=2.0)
    >>> round(math.exp(log_b(Target([], 1.0, 0.5, n_rows=3), (2, 0))), 12)  # 2 * 0.5 / 2!
    0.5
    """

    def log_b(target, segment):
        log_rising = math.fsum(target.log_join(size) for size in range(1, len(segment)))
        log_cluster = target.log_cluster(tuple(sorted(segment)))
        return math.log(tau) + log_rising + log_cluster + order_law(target, segment)

    return log_b


def segment_log_weights(target, order, log_b):
    """log B of every segment [s, r) at [s, r], shape (n + 1, n + 1), -inf where s >= r."""
    n = len(order)
    log_weights = np.full((n + 1, n + 1), -np.inf)
    for r in range(1, n + 1):
        for s in range(r):
            log_weights[s, r] = log_b(target, order[s:r])
    return log_weights


def log_v(target, n_clusters):
    """log V(K), up to a constant with a MarginalTarget."""
    return math.fsum(target.log_open(k) for k in range(n_clusters))


def log_a(target, n_clusters):
    """log A(K), up to what is the same for every K."""
    return log_v(target, n_clusters) - math.lgamma(n_clusters + 1)


def reference_tau(target, n_clusters):
    """The tau with w(K + 1) = w(K): (alpha + K d) / (K + 1), or W(K + 1) / W(K) / (K + 1).

    >>> round(reference_tau(Target([], 1.0, 0.5, n_rows=3), 3), 12)
    0.625
    """
    return math.exp(target.log_open(n_clusters)) / (n_clusters + 1)


class MarginalTarget(Target):
    """The target with the concentration summed out over a grid, the discount fixed.

    Every matrix here and in enumeration.py that has all rows in S takes it like a Target.

    Parameters
    ----------
    columns, discount, beta, n_rows : as in Target
    concentrations : sequence of float
    weights : sequence of float, equal by default
        p(alpha) on the grid, up to a constant.
    """

    def __init__(self, columns, concentrations, discount=0.0, *, weights=None, **options):
        super().__init__(columns, list(concentrations), discount, **options)
        weights = [1.0] * len(self.concentration) if weights is None else weights
        self.weights = [weight / math.fsum(weights) for weight in weights]

    def _log_terms(self, n_clusters):
        """The terms of log W(K), one per alpha."""
        return [
            math.log(weight)
            + math.fsum(math.log(alpha + i * self.discount) for i in range(1, n_clusters))
            + math.lgamma(alpha + 1)
            - math.lgamma(alpha + self.n_rows)
            for alpha, weight in zip(self.concentration, self.weights, strict=True)
        ]

    def log_w(self, n_clusters):
        """log W(K)."""
        return self._cached(("w", n_clusters), lambda: log_sum(self._log_terms(n_clusters)))

    def log_open(self, n_clusters):
        """log W(K + 1) / W(K); the first cluster is opened surely."""
        return self.log_w(n_clusters + 1) - self.log_w(n_clusters) if n_clusters else 0.0

    def concentration_given(self, n_clusters):
        """p(alpha | K, n) as a dict."""
        terms = zip(self.concentration, self._log_terms(n_clusters), strict=True)
        return normalised(dict(terms))

    def mean_log_tau(self, n_clusters):
        """exp(E[log(alpha + K d) | K, n] - digamma(K + 1)), at d = 0 the page's tau."""
        mean_log = math.fsum(
            probability * math.log(alpha + n_clusters * self.discount)
            for alpha, probability in self.concentration_given(n_clusters).items()
        )
        return math.exp(mean_log - digamma(n_clusters + 1))

    def log_joint(self, labels):
        """Log of the prior summed over the grid, plus beta times the log likelihood; no W(K)."""
        members = clusters(labels)
        sizes = [len(rows) for rows in members]
        log_prior = log_sum(
            math.log(weight) + log_eppf(sizes, alpha, self.discount)
            for alpha, weight in zip(self.concentration, self.weights, strict=True)
        )
        return log_prior + math.fsum(self.log_cluster(rows) for rows in members)


# ---------------------------------------------------------------------------- programs
def is_representable(lengths, kept):
    """Whether every segment ending at r has its length in kept[r] = M_r."""
    return all(m in kept[r] for m, r in zip(lengths, accumulate(lengths), strict=True))


def segmentation_law(log_weights, log_count=None, kept=None):
    """The law of the segmentation, over all 2^(n-1) of them.

    Parameters
    ----------
    log_weights : array of shape (n + 1, n + 1)
        From segment_log_weights.
    log_count : function of K, optional
        log A(K) of the exact program; the quadratic one has none.
    kept : sequence of sets of lengths, optional
        The beam: kept[r] is M_r, kept[0] is not looked at.

    Returns
    -------
    dict
        Lengths to probability: prop. to A(K) prod B.
    """
    return normalised(segmentation_log_weights(log_weights, log_count, kept))


def segmentation_log_weights(log_weights, log_count=None, kept=None):
    """The same, not normalised: a dict from lengths to log [A(K) prod B]."""
    return {
        lengths: (log_count(len(lengths)) if log_count else 0.0)
        + math.fsum(
            log_weights[r - m, r] for m, r in zip(lengths, accumulate(lengths), strict=True)
        )
        for lengths in compositions(len(log_weights) - 1)
        if kept is None or is_representable(lengths, kept)
    }


def exact_program(log_weights):
    """log g(r, K), shape (n + 1, n + 1), -inf where there is no such segmentation."""
    size = len(log_weights)
    log_g = np.full((size, size), -np.inf)
    log_g[0, 0] = 0.0
    for r in range(1, size):
        for k in range(1, r + 1):
            log_g[r, k] = log_sum(log_g[:r, k - 1] + log_weights[:r, r])
    return log_g


def quadratic_program(log_weights):
    """log g(r), r = 0..n."""
    log_g = [0.0]
    for r in range(1, len(log_weights)):
        log_g.append(log_sum(log_g[s] + log_weights[s, r] for s in range(r)))
    return log_g


def smallest_set(log_terms, eps):
    """The smallest of the sets of lengths that hold m = 1 and at least 1 - eps of the sum.

    So others than m = 1 are dropped, the smallest terms first and of equal ones the longest, while
    what has been dropped is at most eps of the sum.

    >>> smallest_set({1: math.log(1), 2: math.log(6), 3: math.log(3)}, 0.35)
    [1, 2]
    """
    log_allowed = log_sum(log_terms.values()) + (math.log(eps) if eps else -math.inf)
    kept, log_dropped = set(log_terms), -math.inf
    for m in sorted(set(log_terms) - {1}, key=lambda m: (log_terms[m], -m)):
        log_dropped = log_sum([log_dropped, log_terms[m]])
        if log_dropped > log_allowed:
            break
        kept.remove(m)
    return sorted(kept)


def beam_program(log_weights, eps, choose=smallest_set):
    """The beam built from the left: M_{r+1} is chosen from {m + 1 : m in M_r} and {1}.

    Parameters
    ----------
    log_weights : array of shape (n + 1, n + 1)
    eps : float
    choose : function
        From the candidates' log terms {m: log g(r - m) B[r - m, r)} and eps to the lengths kept.

    Returns
    -------
    log_g : list of n + 1 floats
        log g(r), the sum over M_r alone.
    kept : list of n + 1 lists
        The lengths in M_r, ascending; M_0 is empty.
    """
    log_g, kept = [0.0], [[]]
    for r in range(1, len(log_weights)):
        candidates = [1, *(m + 1 for m in kept[-1])]
        log_terms = {m: log_g[r - m] + log_weights[r - m, r] for m in candidates}
        kept.append(choose(log_terms, eps))
        log_g.append(log_sum(log_terms[m] for m in kept[-1]))
    return log_g, kept


# ---------------------------------------------------------------- transition matrices
def order_chances(target, labels, order_law):
    """p(order | partition), q for every cluster and 1 / K!: pairs (order, probability)."""
    for order in consistent_orders(labels):
        lengths = lengths_of(order, labels)
        log_chance = math.fsum(order_law(target, rows) for rows in segments(order, lengths))
        yield order, math.exp(log_chance - math.lgamma(len(lengths) + 1))


def exact_matrix(target, order_law=uniform_order):
    """An order given the partition, then a partition given the order by the exact program.

    ``order_law`` is uniform_order or markov_order.
    """

    @cache
    def proposals(order):
        log_weights = segment_log_weights(target, order, block_weight(order_law))
        law = segmentation_law(log_weights, lambda k: log_a(target, k))
        return {labels_of(order, lengths): probability for lengths, probability in law.items()}

    def transitions(labels):
        for order, chance in order_chances(target, labels, order_law):
            for state, probability in proposals(order).items():
                yield state, chance * probability

    return _matrix(target.n_rows, transitions)


def kept_sets(log_weights, eps, lengths):
    """The beam's sets: of the order and the data alone, whatever the current ``lengths``."""
    return beam_program(log_weights, eps)[1]


def program_step(
    labels, order, log_weights, log_ratio, *, eps, kept=kept_sets, holds=is_representable
):
    """A partition proposed by one beam and accepted or not: pairs (state, probability).

    ``log_ratio`` gives the log acceptance ratio of a state; ``kept`` and ``holds``, the beam's sets
    and the test of the current partition, are replaced in negative controls.
    """
    current = lengths_of(order, labels)
    sets = kept(log_weights, eps, current)
    if not holds(current, sets):
        yield labels, 1.0
        return
    for lengths, probability in segmentation_law(log_weights, kept=sets).items():
        state = labels_of(order, lengths)
        accepted = math.exp(min(0.0, log_ratio(state)))
        yield state, probability * accepted
        yield labels, probability * (1.0 - accepted)


def quadratic_matrix(target, tau, *, eps=0.0, order_law=uniform_order, **faults):
    """An order given the partition, then Metropolis-Hastings by the quadratic program.

    Parameters
    ----------
    target : Target
    tau : float
        Fixed.
    eps : float
        Of the beam; 0 keeps every length.
    order_law : uniform_order or markov_order
    **faults
        ``kept`` or ``holds`` of program_step.
    """

    @cache
    def weights(order):
        return segment_log_weights(target, order, block_weight(order_law, tau))

    def log_w(labels):
        n_clusters = max(labels) + 1
        return log_a(target, n_clusters) - n_clusters * math.log(tau)

    def transitions(labels):
        def log_ratio(state):
            return log_w(state) - log_w(labels)

        for order, chance in order_chances(target, labels, order_law):
            step = program_step(labels, order, weights(order), log_ratio, eps=eps, **faults)
            for state, probability in step:
                yield state, chance * probability

    return _matrix(target.n_rows, transitions)


def projected_order(labels, projections):
    """Clusters by (mean projection, smallest member), rows within one by (projection, row).

    >>> projected_order((0, 1, 0, 1), [3.0, 0.5, -1.0, 1.5])  # both means are 1
    (2, 0, 1, 3)
    """

    def place(rows):
        return math.fsum(projections[row] for row in rows) / len(rows), rows[0]

    return tuple(
        row
        for rows in sorted(clusters(labels), key=place)
        for row in sorted(rows, key=lambda row: (projections[row], row))
    )


def gives_back(state, projections, order):
    """Whether the proposed partition gives the order that it was proposed from."""
    return projected_order(state, projections) == order


def projection_matrix(target, projections, tau, *, eps=0.0, returns=gives_back, **faults):
    """The exact move by projections u . x on one u, which may not depend on the partition.

    Parameters
    ----------
    target : Target
    projections : sequence of n floats
    tau : float
        Fixed; alpha + K d at a reference K.
    eps : float
        Of the beam; 0 keeps every length.
    returns : function
        Replaced in a negative control.
    **faults
        ``kept`` or ``holds`` of program_step.
    """

    def transitions(labels):
        order = projected_order(labels, projections)

        def log_ratio(state):
            if not returns(state, projections, order):
                return -math.inf
            after, before = max(state) + 1, max(labels) + 1
            log_tau = (after - before) * math.log(tau)
            return log_v(target, after) - log_v(target, before) - log_tau

        log_weights = segment_log_weights(target, order, block_weight(sure_order, tau))
        return program_step(labels, order, log_weights, log_ratio, eps=eps, **faults)

    return _matrix(target.n_rows, transitions)


def hill_climb_matrix(target, projections, tau, *, eps=0.0):
    """The paper's burn-in pass by projections: every proposal is taken. Biased."""

    def transitions(labels):
        order = projected_order(labels, projections)
        log_weights = segment_log_weights(target, order, block_weight(sure_order, tau))
        return program_step(
            labels, order, log_weights, lambda state: 0.0, eps=eps, holds=lambda *_: True
        )

    return _matrix(target.n_rows, transitions)


def law_after(matrix, law, n_steps=1):
    """The law of the partition after steps of a matrix.

    >>> swap = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> {state: float(p) for state, p in law_after(swap, {(0, 0): 1.0}, 3).items()}
    {(0, 0): 0.0, (0, 1): 1.0}
    """
    states = list(partitions(len(next(iter(law)))))
    start = np.array([law.get(state, 0.0) for state in states])
    after = start @ np.linalg.matrix_power(matrix, n_steps)
    return dict(zip(states, after.tolist(), strict=True))
