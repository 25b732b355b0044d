"""Exact laws over partitions of a few rows, by brute force from the formulas.

A partition is a tuple of labels in restricted-growth form (``canonical``); a partition of a
subsample S of the rows has -1 for every row outside S. A law is a dict state -> probability.
A column is ``(family, values, hyper)``, ``hyper`` one mapping or a list of mappings (a grid with
equal weights, or with those of a fourth entry).

Pitman-Yor prior with concentration alpha > -d and discount 0 <= d < 1, n rows, K clusters n_k:
p(pi) = [prod_{i=1..K-1} (alpha + i d)] / (alpha + 1)_{n-1} * prod_k (1 - d)_{n_k - 1}.
Target: p(pi) p(x | pi)^beta. Assignment weights: (n_k - d) p(x | x_k)^beta to join cluster k,
(alpha + K d) m(x)^beta to open one. Split-merge: Dahl (2003), sequentially allocated.
"""

import math
from collections import Counter, defaultdict
from itertools import permutations, product

import numpy as np
from scipy import stats

from oracles.reference import log_marginal, log_predictive


# ------------------------------------------------------------------------ partitions
def canonical(labels):
    """Labels numbered in order of first appearance; negative labels (outside S) become -1.

    >>> canonical([7, 7, -3, 2, 7])
    (0, 0, -1, 1, 0)
    """
    numbers = {}
    return tuple(
        -1 if label < 0 else numbers.setdefault(int(label), len(numbers)) for label in labels
    )


def partitions(n):
    """All partitions of n rows, each once, as restricted growth strings.

    >>> [len(list(partitions(n))) for n in range(8)]
    [1, 1, 2, 5, 15, 52, 203, 877]
    """
    if n == 0:
        yield ()
        return
    for shorter in partitions(n - 1):
        for label in range(max(shorter, default=-1) + 2):
            yield (*shorter, label)


def clusters(labels):
    """The clusters as sorted tuples of rows, by label; rows labelled -1 are in none.

    >>> clusters((0, 0, -1, 1, 0))
    [(0, 1, 4), (3,)]
    """
    members = defaultdict(list)
    for row, label in enumerate(labels):
        if label >= 0:
            members[label].append(row)
    return [tuple(members[label]) for label in sorted(members)]


def relabelled(labels, rows, label):
    """The canonical partition after ``rows`` got ``label``."""
    changed = list(labels)
    for row in rows:
        changed[row] = label
    return canonical(changed)


def log_eppf(sizes, concentration, discount):
    """Log probability of one partition with these cluster sizes under the Pitman-Yor prior.

    >>> round(math.exp(log_eppf([2, 1], 1.0, 0.5)), 12)  # 1.5 * 0.5 / (2 * 3)
    0.125
    """
    n = sum(sizes)
    log_open = sum(math.log(concentration + i * discount) for i in range(1, len(sizes)))
    log_rising = sum(math.log(concentration + 1 + i) for i in range(n - 1))
    log_sizes = sum(math.log(1 - discount + i) for size in sizes for i in range(size - 1))
    return log_open - log_rising + log_sizes


def normalised(log_weights):
    """A dict of log weights as probabilities."""
    largest = max(log_weights.values())
    weights = {state: math.exp(value - largest) for state, value in log_weights.items()}
    total = math.fsum(weights.values())
    return {state: weight / total for state, weight in weights.items()}


def total_variation(p, q):
    """Half the L1 distance between two laws."""
    return 0.5 * math.fsum(abs(p.get(state, 0.0) - q.get(state, 0.0)) for state in {*p, *q})


# ------------------------------------------------------------------------ posteriors
def hyper_grid(**grids):
    """The product of one grid per hyperparameter, as the list of mappings a column may have.

    >>> hyper_grid(a=[1, 2], b=[3])
    [{'a': 1, 'b': 3}, {'a': 2, 'b': 3}]
    """
    return [dict(zip(grids, values, strict=True)) for values in product(*grids.values())]


def _column_scores(column):
    """A function of the clusters giving log weight + log p(column | clusters) per hyper."""
    family, values, hyper, *weights = column
    hypers = [hyper] if isinstance(hyper, dict) else list(hyper)
    weights = weights[0] if weights else [1.0] * len(hypers)
    cache = {}

    def score(choice, rows):
        key = choice, rows
        if key not in cache:
            cache[key] = log_marginal(family, [values[row] for row in rows], hypers[choice])
        return cache[key]

    def scores(members, beta):
        return [
            math.log(weights[choice]) + beta * math.fsum(score(choice, rows) for rows in members)
            for choice in range(len(hypers))
        ]

    return scores


def _n_rows(columns, n_rows):
    lengths = {len(column[1]) for column in columns} | ({n_rows} if n_rows is not None else set())
    if len(lengths) != 1:
        raise ValueError(f"columns and n_rows give {sorted(lengths)} rows")
    return lengths.pop()


def enumerate_joint(
    columns, concentration=1.0, discount=0.0, *, beta=1.0, n_rows=None, prior_weights=None
):
    """Joint posterior of the partition, (concentration, discount) and every column's hyper.

    Parameters
    ----------
    columns : list of (family, values, hyper[, weights])
    concentration, discount : float or sequence of float
        Fixed, or the axes of the joint grid.
    beta : float
        Exponent of the likelihood; priors keep exponent 1.
    n_rows : int, needed without columns
    prior_weights : array of shape (n_concentrations, n_discounts), equal by default

    Returns
    -------
    dict
        ``(partition, concentration, discount, (index of each column's hyper, ...))`` to
        probability.
    """
    alphas, discounts = np.atleast_1d(concentration), np.atleast_1d(discount)
    if prior_weights is None:
        prior_weights = np.ones((len(alphas), len(discounts)))
    column_scores = [_column_scores(column) for column in columns]
    log_weights = {}
    for partition in partitions(_n_rows(columns, n_rows)):
        members = clusters(partition)
        sizes = [len(rows) for rows in members]
        per_column = [list(enumerate(scores(members, beta))) for scores in column_scores]
        hyper_scores = [
            (tuple(index for index, _ in combination), math.fsum(score for _, score in combination))
            for combination in product(*per_column)
        ]
        for (i, alpha), (j, d) in product(enumerate(alphas), enumerate(discounts)):
            if prior_weights[i][j] <= 0:
                continue
            log_prior = log_eppf(sizes, alpha, d) + math.log(prior_weights[i][j])
            for indices, score in hyper_scores:
                log_weights[partition, float(alpha), float(d), indices] = log_prior + score
    return normalised(log_weights)


def marginal(joint, *positions):
    """Sum a law over tuples down to some positions (one position: keys are bare).

    >>> marginal({("a", 1): 0.25, ("b", 1): 0.5, ("a", 2): 0.25}, 0)
    {'a': 0.5, 'b': 0.5}
    """
    sums = defaultdict(float)
    for key, probability in joint.items():
        kept = tuple(key[position] for position in positions)
        sums[kept[0] if len(kept) == 1 else kept] += probability
    return dict(sums)


def enumerate_posterior(columns, concentration=1.0, discount=0.0, **options):
    """Posterior over partitions, everything else summed out; see enumerate_joint.

    >>> column = ("bernoulli", [True, False], {"a": 1, "b": 1})
    >>> posterior = enumerate_posterior([column], concentration=1.0)
    >>> {state: round(p, 6) for state, p in posterior.items()}  # 1/2 1/6 against 1/2 1/4
    {(0, 0): 0.4, (0, 1): 0.6}
    """
    return marginal(enumerate_joint(columns, concentration, discount, **options), 0)


# ---------------------------------------------------------------------------- counts
def count_p_value(counts, probabilities):
    """Chi-square p-value of independent draws' counts against a law.

    States expected fewer than 5 times are pooled, and the next rarest joins the pool while it
    is itself expected fewer than 5 times. A draw of probability 0 gives p = 0.
    """
    if not math.isclose(math.fsum(probabilities.values()), 1.0, abs_tol=1e-9):
        raise ValueError("the probabilities do not sum to 1")
    if any(count and probabilities.get(state, 0.0) <= 0 for state, count in counts.items()):
        return 0.0
    n_draws = sum(counts.values())
    bins, pool = [], [0.0, 0.0]
    for state, probability in sorted(probabilities.items(), key=lambda item: item[1]):
        pair = [counts.get(state, 0), n_draws * probability]
        if pair[1] < 5 or 0 < pool[1] < 5:
            pool = [pool[0] + pair[0], pool[1] + pair[1]]
        else:
            bins.append(pair)
    if pool[1] > 0:
        bins.append(pool)
    if len(bins) == 1:
        return 1.0
    statistic = math.fsum((count - expected) ** 2 / expected for count, expected in bins)
    return float(stats.chi2.sf(statistic, len(bins) - 1))


def check_counts(counts, probabilities, level=1e-4):
    """Assert that the counts' p-value is above ``level``, the false-alarm rate; return it."""
    p_value = count_p_value(counts, probabilities)
    assert p_value > level, f"p = {p_value:.3g} from {sum(counts.values())} draws"
    return p_value


# --------------------------------------------------------------------------- weights
class Target:
    """p(partition of S) p(x_S | partition)^beta with fixed parameters, and its assignment weights.

    A negative control overrides ``log_join`` or ``log_open`` and is checked against the true one.
    """

    def __init__(self, columns, concentration=1.0, discount=0.0, *, beta=1.0, n_rows=None):
        self.columns = columns
        self.concentration = concentration
        self.discount = discount
        self.beta = beta
        self.n_rows = _n_rows(columns, n_rows)
        self._cache = {}

    def _cached(self, key, compute):
        if key not in self._cache:
            self._cache[key] = compute()
        return self._cache[key]

    def log_join(self, size):
        """Log prior weight to join a cluster of this size."""
        return math.log(size - self.discount)

    def log_open(self, n_clusters):
        """Log prior weight to open a cluster beside n_clusters; the first is opened surely."""
        if n_clusters == 0:
            return 0.0
        return math.log(self.concentration + n_clusters * self.discount)

    def log_cluster(self, rows):
        """beta times the log marginal likelihood of one cluster."""
        return self._cached(("cluster", rows), lambda: self.beta * self._log_marginal(rows))

    def _log_marginal(self, rows):
        return math.fsum(
            log_marginal(family, [values[row] for row in rows], hyper)
            for family, values, hyper in self.columns
        )

    def log_predict(self, row, rows):
        """beta times the log predictive density of a row given a cluster's rows."""
        return self._cached(
            ("predict", row, rows), lambda: self.beta * self._log_predictive(row, rows)
        )

    def _log_predictive(self, row, rows):
        return math.fsum(
            log_predictive(family, values[row], [values[other] for other in rows], hyper)
            for family, values, hyper in self.columns
        )

    def log_joint(self, labels):
        """Log prior of the partition of S plus beta times the log likelihood of its rows."""
        members = clusters(labels)
        log_prior = log_eppf([len(rows) for rows in members], self.concentration, self.discount)
        return log_prior + math.fsum(self.log_cluster(rows) for rows in members)

    def posterior(self):
        """The normalised target over the partitions of all rows."""
        return normalised({labels: self.log_joint(labels) for labels in partitions(self.n_rows)})

    def assign(self, row, labels):
        """The law of the state after a row outside S has been assigned."""
        return self._cached(("assign", row, labels), lambda: self._assign(row, labels))

    def _assign(self, row, labels):
        members = clusters(labels)
        log_weights = {
            relabelled(labels, [row], len(members)): self.log_open(len(members))
            + self.log_predict(row, ())
        }
        for label, rows in enumerate(members):
            log_weight = self.log_join(len(rows)) + self.log_predict(row, rows)
            log_weights[relabelled(labels, [row], label)] = log_weight
        return normalised(log_weights)


# ----------------------------------------------------------------- annealed schedules
def annealed_sizes(n_rows, n_swaps, n_final_sweeps=0):
    """Subsample sizes after 0, 1, .. assignments: n_swaps remove/assign pairs per added row.

    >>> annealed_sizes(2, 1, 1)
    [0, 1, 1, 2, 2, 2, 2]
    """
    growth = [math.ceil(a / (n_swaps + 1)) for a in range((n_swaps + 1) * n_rows + 1)]
    return growth + [n_rows] * (n_final_sweeps * n_rows)


def _events(sizes, betas):
    """None for every row that leaves, the exponent for every row that enters, in order."""
    events = []
    for before, after, beta in zip(sizes[:-1], sizes[1:], betas, strict=True):
        events += [None] * (before + 1 - after) + [beta]
    return events


def _ring_choices(order, events, n_start):
    """Certain choices: enter at the head of the ring, leave at its tail."""
    head, tail = n_start, 0
    for event in events:
        if event is None:
            row, tail = order[tail % len(order)], tail + 1
        else:
            row, head = order[head % len(order)], head + 1
        yield lambda rows, row=row: {row: 1.0}


def uniform(rows):
    """The uniform law on a set of rows."""
    return {row: 1.0 / len(rows) for row in rows}


def _propagate(law, events, choices, targets):
    """One event after another: a row is chosen, then leaves or is assigned."""
    for event, choose in zip(events, choices, strict=True):
        after = defaultdict(float)
        for labels, probability in law.items():
            leaving = event is None
            candidates = [row for row, label in enumerate(labels) if (label >= 0) == leaving]
            for row, chosen in choose(candidates).items():
                if leaving:
                    after[relabelled(labels, [row], -1)] += probability * chosen
                    continue
                for state, assigned in targets[event].assign(row, labels).items():
                    after[state] += probability * chosen * assigned
        law = dict(after)
    return law


def schedule_law(
    columns,
    sizes,
    selection="random",
    concentration=1.0,
    discount=0.0,
    *,
    betas=None,
    start="empty",
    n_rows=None,
    target=Target,
):
    """Exact law of the labels at the end of an annealed schedule, hyperparameters fixed.

    Parameters
    ----------
    columns : list of (family, values, hyper)
    sizes : sequence of int, shape (m + 1,)
        Subsample size after 0..m assignments. Assignment a -> a + 1 lets
        sizes[a] + 1 - sizes[a + 1] rows leave, then one row enters.
    selection : {"random", "window"} or (leave, enter)
        "random": leave uniform in S, then enter uniform outside S, a row that has just left
        included. "window": a uniformly shuffled ring, averaged over all orders (keep n <= 5).
        Two functions: from a list of candidate rows to a dict row -> probability.
    betas : sequence of float, shape (m,), optional
        Exponent of the likelihood per assignment, 1 by default.
    start : {"empty", "prior"}
        "prior": sizes[0] is all rows, labelled by a draw from the prior.
    target : class
        Replaced by a faulty subclass of Target in negative controls.

    Returns
    -------
    dict
        Labels (-1 outside S where sizes ends below all rows) to probability.
    """
    n = _n_rows(columns, n_rows)
    if sizes[0] != (n if start == "prior" else 0):
        raise ValueError(f"a start {start!r} does not have {sizes[0]} rows")
    events = _events(sizes, [1.0] * (len(sizes) - 1) if betas is None else betas)
    targets = {
        beta: target(columns, concentration, discount, beta=beta, n_rows=n)
        for beta in {*events} - {None}
    }
    law = {(-1,) * n: 1.0}
    if start == "prior":
        law = Target([], concentration, discount, n_rows=n).posterior()
    if selection != "window":
        leave, enter = (uniform, uniform) if selection == "random" else selection
        choices = [leave if event is None else enter for event in events]
        return _propagate(law, events, choices, targets)
    average = Counter()
    for order in permutations(range(n)):
        ring = _ring_choices(order, events, sizes[0])
        for labels, probability in _propagate(law, events, ring, targets).items():
            average[labels] += probability / math.factorial(n)
    return dict(average)


# ---------------------------------------------------------------- transition matrices
def _matrix(n_rows, transitions):
    """Row-stochastic matrix over partitions(n_rows) from state -> iterable of (state, prob)."""
    index = {labels: i for i, labels in enumerate(partitions(n_rows))}
    matrix = np.zeros((len(index), len(index)))
    for labels, i in index.items():
        for state, probability in transitions(labels):
            matrix[i, index[state]] += probability
    return matrix


def gibbs_matrix(target, row):
    """Remove this row and assign it again."""
    return _matrix(
        target.n_rows, lambda labels: target.assign(row, relabelled(labels, [row], -1)).items()
    )


def random_gibbs_matrix(target):
    """One Gibbs step of a uniformly chosen row."""
    return sum(gibbs_matrix(target, row) for row in range(target.n_rows)) / target.n_rows


def scan_matrix(target, order=None):
    """One systematic scan: a Gibbs step of every row in this order."""
    matrices = [gibbs_matrix(target, row) for row in (order or range(target.n_rows))]
    return matrices[0] if len(matrices) == 1 else np.linalg.multi_dot(matrices)


def allocations(target, i, j, others):
    """Every sequential allocation of others to the seeds: (probability, sum log Z, sides)."""
    paths = [(1.0, 0.0, ((i,), (j,)))]
    for row in others:
        longer = []
        for probability, log_z, sides in paths:
            log_weights = [
                target.log_join(len(side)) + target.log_predict(row, tuple(sorted(side)))
                for side in sides
            ]
            z = np.logaddexp(*log_weights)
            first, second = (math.exp(log_weight - z) for log_weight in log_weights)
            joined = ((*sides[0], row), sides[1]), (sides[0], (*sides[1], row))
            longer += [
                (probability * chance, log_z + z, after)
                for chance, after in zip((first, second), joined, strict=True)
            ]
        paths = longer
    return paths


def forced_paths(target, i, j, others, labels):
    """The one allocation that gives the current two clusters, taken surely: (1, sum log Z)."""
    for _, log_z, sides in allocations(target, i, j, others):
        if all(len({labels[row] for row in side}) == 1 for side in sides):
            return [(1.0, log_z)]
    raise ValueError("no allocation gives the current clusters")


def log_split_ratio(target, i, j, rows, n_clusters, log_z):
    """Log acceptance ratio of the split of ``rows``, n_clusters counted before the split."""
    return (
        target.log_open(n_clusters)
        + target.log_cluster((i,))
        + target.log_cluster((j,))
        + log_z
        + math.lgamma(1 - target.discount)
        - math.lgamma(len(rows) - target.discount)
        - target.log_cluster(rows)
    )


def always(labels, i, j):
    """The chance that a pair of rows is proposed."""
    return 1.0


def uniform_partners(target, labels, i):
    """The law of j given i: any other row."""
    return {j: 1 / (len(labels) - 1) for j in range(len(labels)) if j != i}


def near_partners(target, labels, i):
    """The law of j given i: half in i's cluster, uniform; half of the rest uniform among the rows
    outside, half from a cluster drawn by the weight with which i would join it."""
    members, n = clusters(labels), len(labels)
    own = next(rows for rows in members if i in rows)
    others = [rows for rows in members if rows is not own]
    inside = 0.0 if len(own) == 1 else 1.0 if len(own) == n else 0.5
    law = {j: inside / (len(own) - 1) for j in own if j != i}
    if not others:
        return law
    near = normalised(
        {rows: target.log_join(len(rows)) + target.log_predict(i, rows) for rows in others}
    )
    for rows in others:
        each = 0.5 / (n - len(own)) + 0.5 * near[rows] / len(rows)
        law |= dict.fromkeys(rows, (1.0 - inside) * each)
    return law


def split_merge_matrix(
    target, merge_paths=forced_paths, made=always, partners=uniform_partners, looks=((), ())
):
    """The split-merge move, over all ordered pairs, orders and allocations.

    ``merge_paths`` (target, i, j, others, labels) -> [(probability, sum log Z)] is replaced in a
    negative control; ``made`` (labels, i, j) is the chance that a pair is proposed, ``partners``
    (target, labels, i) the law of j. ``looks`` are the rows allocated when a split is asked whether
    it is worth it, and those of a merge, which must be the same.
    """
    given = merge_paths, made, partners, looks
    return _matrix(target.n_rows, lambda labels: split_merge_transitions(target, labels, *given))


def log_lowest(target, order, labels, n_clusters, looks):
    """The least log ratio of a split of the first rows of an order, at most 0; the seeds come
    first, and labels say on which side a row is."""
    lowest = 0.0
    for n_rows in looks:
        if 2 < n_rows < len(order):
            i, j, *others = order[:n_rows]
            [(_, log_z)] = forced_paths(target, i, j, others, labels)
            rows = tuple(sorted(order[:n_rows]))
            lowest = min(lowest, log_split_ratio(target, i, j, rows, n_clusters, log_z))
    return lowest


def split_merge_transitions(target, labels, merge_paths, made, partners, looks=((), ())):
    """(state, probability) after one proposal of the split-merge move."""
    n = target.n_rows

    def outcomes(labels, i, j, others):
        """(probability, log acceptance ratio, proposed state, log chance that all looks are passed)
        for one pair and order; a merge has the ratio and the looks of its split."""
        rows = tuple(sorted((i, j, *others)))
        n_clusters = max(labels) + 1
        if labels[i] == labels[j]:
            for probability, log_z, sides in allocations(target, i, j, others):
                ratio = log_split_ratio(target, i, j, rows, n_clusters, log_z)
                state = relabelled(labels, sides[1], n_clusters)
                passed = log_lowest(target, (i, j, *others), state, n_clusters, looks[0])
                yield probability, ratio, state, passed
        else:
            passed = log_lowest(target, (i, j, *others), labels, n_clusters - 1, looks[1])
            for probability, log_z in merge_paths(target, i, j, others, labels):
                ratio = -log_split_ratio(target, i, j, rows, n_clusters - 1, log_z)
                yield probability, ratio, relabelled(labels, rows, labels[i]), passed

    if n == 1:
        yield labels, 1.0
    for i, j in permutations(range(n), 2):
        pair, drawn = (labels[i], labels[j]), partners(target, labels, i)[j] / n
        if drawn == 0.0:
            continue
        others = [row for row in range(n) if row not in (i, j) and labels[row] in pair]
        chance = made(labels, i, j) * drawn / math.factorial(len(others))
        yield labels, (1.0 - made(labels, i, j)) * drawn
        for order in permutations(others):
            for probability, log_ratio, state, passed in outcomes(labels, i, j, order):
                log_ratio += math.log(partners(target, state, i)[j] / n / drawn)
                # a split is accepted with min(1, A, a), and a merge with min(1, A', a A')
                passed += 0.0 if labels[i] == labels[j] else log_ratio
                accepted = math.exp(min(0.0, log_ratio, passed))
                yield state, chance * probability * accepted
                yield labels, chance * probability * (1.0 - accepted)


def stationary_error(target, matrix):
    """Largest |pi T - pi| over the states, pi the target's posterior."""
    pi = np.array(list(target.posterior().values()))
    return float(np.abs(pi @ matrix - pi).max())
