"""Exact laws over cross-categorizations of a few features and rows, by brute force.

A state is a tuple of views ``(features, content)`` in the order of their first features; a content
is ``(labels, point)``: the canonical partition of the rows and the index of the view's own
(concentration, discount) in a grid of pairs, of given weights or equal ones; (0, 0) is one cluster
of all rows. Columns as in enumeration.py.

Features are partitioned by PY(alpha_f, d_f), the rows of each view by PY(alpha_v, d_v), and
a feature's cells have the product of the marginal likelihoods of its view's clusters:
p(state) = p(view sizes) prod_v p(point_v) p(labels_v | point_v) prod_{f in v} L_f(labels_v)^beta.
Feature moves: Neal (2000), algorithm 8, in the forms that are exact for views; new sets of features
from the prior; split-merge of views with the rows allocated one by one as in Dahl (2003).
"""

import math
from collections import defaultdict
from functools import reduce
from itertools import combinations, combinations_with_replacement, permutations, product

import numpy as np
from scipy import stats

from oracles.enumeration import (
    Target,
    canonical,
    clusters,
    log_eppf,
    normalised,
    partitions,
    scan_matrix,
    uniform,
)
from oracles.reference import log_marginal


class CrossCatTarget:
    """The target with fixed hyperparameters, and the weights of the feature moves.

    A negative control overrides ``log_join``, ``log_open``, ``log_share`` or ``n_views`` and is
    checked against the true one.

    Parameters
    ----------
    columns : list of (family, values, hyper)
    view_prior : (concentration, discount) of the partition of features
    row_grid : sequence of (concentration, discount)
        Each view's own pair is one of these.
    row_weights : sequence of float or None
        Their probabilities a priori; None: all alike.
    beta : float
        Exponent of the likelihood.
    sum_points : bool
        Sum the views' pairs out: the point of every content is 0.
    """

    def __init__(
        self,
        columns,
        view_prior=(1.0, 0.0),
        row_grid=((1.0, 0.0),),
        *,
        row_weights=None,
        beta=1.0,
        sum_points=False,
    ):
        self.columns = columns
        self.concentration, self.discount = view_prior
        self.row_grid, self.beta = list(row_grid), beta
        self.n_features, self.n_rows = len(columns), len(columns[0][1])
        self.prior = defaultdict(float)  # of a fresh view's content
        weights = row_weights or [1 / len(self.row_grid)] * len(self.row_grid)
        for labels, (point, pair) in product(partitions(self.n_rows), enumerate(self.row_grid)):
            key = labels, 0 if sum_points else point
            if pair == (0.0, 0.0):
                if max(labels) == 0:
                    self.prior[key] += weights[point]
                continue
            log_prior = log_eppf([len(rows) for rows in clusters(labels)], *pair)
            self.prior[key] += math.exp(log_prior) * weights[point]
        self.log_lik = [self._log_marginals(*column) for column in columns]
        self.cache = {}

    def _log_marginals(self, family, values, hyper):
        """beta times a column's log marginal likelihood under every content."""

        def of_cluster(rows):
            return log_marginal(family, [values[row] for row in rows], hyper)

        return {
            content: self.beta * math.fsum(map(of_cluster, clusters(content[0])))
            for content in self.prior
        }

    def log_join(self, size):
        """Log prior weight to join a view of this many features."""
        return math.log(size - self.discount)

    def log_open(self, n_views):
        """Log prior weight to open a view beside n_views; the first is opened surely."""
        return 0.0 if n_views == 0 else math.log(self.concentration + n_views * self.discount)

    def log_share(self, n_views, n_auxiliary):
        """Log prior weight of one of n_auxiliary empty views."""
        return self.log_open(n_views) - math.log(n_auxiliary)

    def n_views(self, kept, emptied):
        """Views counted while a feature is out: those that hold one, not the one it emptied."""
        return len(kept)

    def log_view(self, features, content):
        """Log prior of a view's content plus beta times the log likelihood of its features."""
        key = features, content
        if key not in self.cache:
            likelihood = math.fsum(self.log_lik[f][content] for f in features)
            self.cache[key] = math.log(self.prior[content]) + likelihood
        return self.cache[key]

    def log_joint(self, state):
        """Log prior of the whole state plus beta times the log likelihood."""
        sizes = [len(features) for features, _ in state]
        log_prior = log_eppf(sizes, self.concentration, self.discount)
        return log_prior + math.fsum(self.log_view(*view) for view in state)

    def states(self):
        """Every state once, a partition of the features after the other."""
        for partition in partitions(self.n_features):
            blocks = clusters(partition)
            for contents in product(self.prior, repeat=len(blocks)):
                yield tuple(zip(blocks, contents, strict=True))

    def posterior(self):
        """The normalised target."""
        return normalised({state: self.log_joint(state) for state in self.states()})


def view_labels(state):
    """The view of every feature, canonical.

    >>> view_labels((((0, 2), None), ((1,), None)))
    (0, 1, 0)
    """
    view_of = {f: v for v, (features, _) in enumerate(state) for f in features}
    return tuple(view_of[f] for f in sorted(view_of))


def summed(law, statistic):
    """The law (or counts) of a function of the state."""
    sums = defaultdict(type(next(iter(law.values()))))
    for state, value in law.items():
        sums[statistic(state)] += value
    return dict(sums)


# ----------------------------------------------------------------- features leave and enter
def without(state, features):
    """(views that still hold a feature, contents of those that do not) after features left."""
    rest = [(tuple(f for f in own if f not in features), content) for own, content in state]
    return [view for view in rest if view[0]], [content for own, content in rest if not own]


def joined(kept, at, feature):
    """The state after a feature joined the view at this position."""
    own, content = kept[at]
    return tuple(sorted([*kept[:at], (tuple(sorted((*own, feature))), content), *kept[at + 1 :]]))


def opened(kept, feature, content):
    """The state after a feature opened a view with this content."""
    return tuple(sorted([*kept, ((feature,), content)]))


def join_weights(target, kept, feature):
    """Weight of every view that holds a feature."""
    return [
        math.exp(target.log_join(len(own)) + target.log_lik[feature][content])
        for own, content in kept
    ]


def drawn_contents(target, n):
    """Unordered draws of n fresh views' contents: (contents, probability)."""
    for contents in combinations_with_replacement(target.prior, n):
        repeats = math.prod(math.factorial(contents.count(c)) for c in set(contents))
        orders = math.factorial(n) // repeats
        yield contents, orders * math.prod(target.prior[c] for c in contents)


def auxiliary_gibbs(target, state, feature, n_auxiliary):
    """(state, probability) after one feature's auxiliary-variable Gibbs step.

    The view that the feature leaves empty is one of the auxiliaries, the others are drawn from the
    prior; sums over all draws.
    """
    kept, emptied = without(state, {feature})
    joins = join_weights(target, kept, feature)
    share = math.exp(target.log_share(target.n_views(kept, emptied), n_auxiliary))
    for drawn, chance in drawn_contents(target, n_auxiliary - len(emptied)):
        auxiliaries = [*emptied, *drawn]
        opens = [share * math.exp(target.log_lik[feature][content]) for content in auxiliaries]
        total = math.fsum(joins) + math.fsum(opens)
        for at, weight in enumerate(joins):
            yield joined(kept, at, feature), chance * weight / total
        for content, weight in zip(auxiliaries, opens, strict=True):
            yield opened(kept, feature, content), chance * weight / total


def block_of_a_random_feature(target):
    """The law of the features chosen: the block of a random one in a draw from their prior."""
    law = defaultdict(float)
    for partition in partitions(target.n_features):
        blocks = clusters(partition)
        sizes = [len(block) for block in blocks]
        chance = math.exp(log_eppf(sizes, target.concentration, target.discount))
        for block in blocks:
            law[block] += chance * len(block) / target.n_features
    return law


def seated_by_the_prior(target, kept, features):
    """(state, probability) after features entered one by one, blind to the data."""
    if not features:
        yield tuple(sorted(kept)), 1.0
        return
    first, *others = features
    weights = [math.exp(target.log_join(len(own))) for own, _ in kept]
    opening = math.exp(target.log_open(len(kept)))
    total = math.fsum(weights) + opening
    choices = [(joined(kept, at, first), weight) for at, weight in enumerate(weights)]
    choices += [
        (opened(kept, first, content), opening * chance) for content, chance in target.prior.items()
    ]
    for state, weight in choices:
        for end, chance in seated_by_the_prior(target, list(state), others):
            yield end, chance * weight / total


def log_ratio_of_likelihoods(target, old, new, chosen):
    """Log of prod_F L_f(new view) / prod_F L_f(old view), beta included."""

    def log_lik(state):
        return math.fsum(
            target.log_lik[f][content] for own, content in state for f in own if f in chosen
        )

    return log_lik(new) - log_lik(old)


def feature_sets(target, state, sets, log_ratio):
    """(state, probability) after one Metropolis-Hastings proposal of new feature sets.

    ``sets`` is the law of the features chosen, which must not look at the state.
    """
    for chosen, chance in sets.items():
        kept, _ = without(state, set(chosen))
        for proposal, proposed in seated_by_the_prior(target, kept, chosen):
            accepted = math.exp(min(0.0, log_ratio(target, state, proposal, chosen)))
            yield proposal, chance * proposed * accepted
            yield state, chance * proposed * (1.0 - accepted)


# ------------------------------------------------------------- views split and merge
def allocations(target, features, point):
    """Sequential allocations of the rows to a view of these features, in every order.

    {order: {labels: (probability, log Z)}}, Z the product of the steps' normalising constants.
    """
    key = "allocations", features, point
    if key not in target.cache:
        of_rows = Target(
            [target.columns[f] for f in features], *target.row_grid[point], beta=target.beta
        )
        orders = permutations(range(target.n_rows))
        target.cache[key] = {order: _allocated(of_rows, order) for order in orders}
    return target.cache[key]


def _allocated(of_rows, order):
    paths = {(): (1.0, 0.0)}  # slots of the rows so far, in the order
    for t, row in enumerate(order):
        longer = {}
        for slots, (probability, log_z) in paths.items():
            members = [
                tuple(sorted(r for r, k in zip(order, slots, strict=False) if k == slot))
                for slot in range(max(slots, default=-1) + 1)
            ]
            log_weights = [
                of_rows.log_join(len(rows)) + of_rows.log_predict(row, rows) for rows in members
            ]
            log_weights.append(of_rows.log_open(len(members)) + of_rows.log_predict(row, ()))
            total = np.logaddexp.reduce(log_weights)
            log_step = total - (math.log(t + of_rows.concentration) if t else 0.0)
            for slot, log_weight in enumerate(log_weights):
                chance = probability * math.exp(log_weight - total)
                longer[(*slots, slot)] = chance, log_z + log_step
        paths = longer
    at = np.argsort(order)
    return {canonical([slots[i] for i in at]): path for slots, path in paths.items()}


def log_merged(target, features, own, content, n_others):
    """log g: a split's chance to choose these features, L of them here, over the prior's ratio."""
    m, n = len(features), len(own)
    split = [m, n], target.concentration, target.discount
    log_ratio = log_eppf(*split) - log_eppf([m + n], *split[1:])
    # the ratio for V other views, of which this is one: alpha + d V opens, not alpha + d
    log_ratio += target.log_open(n_others) - target.log_open(1)
    log_subset = -math.log((m + n - 1) * math.comb(m + n, m))
    return log_subset + math.fsum(target.log_lik[f][content] for f in features) - log_ratio


def view_split_merge(target, state, pairs, log_g=log_merged, log_views=lambda v: math.log1p(1 / v)):
    """(state, probability) after one proposal to merge a view into another, or to split one.

    ``pairs`` is the law of the pair proposed in a split, by point. A view and one of merge and
    split are chosen uniformly; a merge takes a view's features F to another b with chance
    g_b / G, a split a uniform number and subset of them to a view of their own whose rows are
    allocated one by one. Accepted with min(1, A) and min(1, 1 / A), A = G t (V + 1) / (V Z h).
    """
    chance = 0.5 / len(state)
    for at, (own, content) in enumerate(state):
        others = [*state[:at], *state[at + 1 :]]
        merges = _merges(target, others, own, content, pairs, log_g, log_views)
        for end, probability in merges if others else [(state, 1.0)]:
            yield state if end is None else end, chance * probability
        if len(own) == 1:
            yield state, chance
            continue
        for m in range(1, len(own)):
            for features in combinations(own, m):
                subset = chance / ((len(own) - 1) * math.comb(len(own), m))
                kept, _ = without(state, set(features))
                for end, probability in _splits(target, kept, features, pairs, log_g, log_views):
                    yield state if end is None else end, subset * probability


def _log_a(target, log_gs, point, log_z, pairs, log_views):
    log_h = -math.log(len(target.row_grid))
    return (
        np.logaddexp.reduce(log_gs)
        + math.log(pairs[point])
        + log_views(len(log_gs))
        - log_z
        - log_h
    )


def _merges(target, others, features, content, pairs, log_g, log_views):
    log_gs = np.array([log_g(target, features, *view, len(others)) for view in others])
    labels, point = content
    allocated = allocations(target, features, point)
    for order, chance in uniform(list(allocated)).items():
        log_z = allocated[order][labels][1]
        log_a = _log_a(target, log_gs, point, log_z, pairs, log_views)
        accepted = chance * math.exp(min(0.0, log_a))
        yield None, chance - accepted
        for b, to in enumerate(np.exp(log_gs - np.logaddexp.reduce(log_gs))):
            own, into = others[b]
            end = [*others[:b], (tuple(sorted((*own, *features))), into), *others[b + 1 :]]
            yield tuple(sorted(end)), accepted * to


def _splits(target, kept, features, pairs, log_g, log_views):
    log_gs = np.array([log_g(target, features, *view, len(kept)) for view in kept])
    for point, proposed in pairs.items():
        allocated = allocations(target, features, point)
        for order, chance in uniform(list(allocated)).items():
            for labels, (probability, log_z) in allocated[order].items():
                log_a = _log_a(target, log_gs, point, log_z, pairs, log_views)
                accepted = math.exp(min(0.0, -log_a))
                weight = proposed * chance * probability
                yield None, weight * (1.0 - accepted)
                end = [*kept, (features, (labels, point))]
                yield tuple(sorted(end)), weight * accepted


# --------------------------------------------------------------------- transition matrices
def column_matrix(target, transitions):
    """Row-stochastic matrix over target.states() from (target, state) -> (state, probability)."""
    index = {state: i for i, state in enumerate(target.states())}
    matrix = np.zeros((len(index), len(index)))
    for state, i in index.items():
        for after, probability in transitions(target, state):
            matrix[i, index[after]] += probability
    return matrix


def auxiliary_gibbs_matrix(target, feature, n_auxiliary):
    """One feature's auxiliary-variable Gibbs step."""
    return column_matrix(target, lambda t, state: auxiliary_gibbs(t, state, feature, n_auxiliary))


def auxiliary_sweep_matrix(target, n_auxiliary):
    """Every feature's step, in their order."""
    features = range(target.n_features)
    return reduce(np.matmul, [auxiliary_gibbs_matrix(target, f, n_auxiliary) for f in features])


def feature_sets_matrix(target, log_ratio=log_ratio_of_likelihoods):
    """One proposal of new feature sets."""
    sets = block_of_a_random_feature(target)
    return column_matrix(target, lambda t, state: feature_sets(t, state, sets, log_ratio))


def view_split_merge_matrix(target, pairs, **faults):
    """One proposal to split or merge a view."""
    return column_matrix(target, lambda t, state: view_split_merge(t, state, pairs, **faults))


def row_scan_matrix(target):
    """A systematic Gibbs scan of all rows, in every view by itself; the points stay."""

    def of_view(features):
        columns = [target.columns[f] for f in features]
        scans = [scan_matrix(Target(columns, *pair, beta=target.beta)) for pair in target.row_grid]
        n, points = len(scans[0]), len(scans)
        matrix = np.zeros((n, points, n, points))  # contents go through the points fastest
        for point, scan in enumerate(scans):
            matrix[:, point, :, point] = scan
        return matrix.reshape(n * points, n * points)

    blocks = [
        reduce(np.kron, map(of_view, clusters(partition)))
        for partition in partitions(target.n_features)
    ]
    ends = np.cumsum([len(block) for block in blocks])
    matrix = np.zeros((ends[-1], ends[-1]))
    for end, block in zip(ends, blocks, strict=True):
        start = end - len(block)
        matrix[start:end, start:end] = block
    return matrix


def law_error(target, law):
    """Largest difference of a law, as a vector over target.states(), to the posterior."""
    return float(np.abs(law - np.array(list(target.posterior().values()))).max())


def stationary_error(target, matrix):
    """Largest |pi T - pi| over the states, pi the target's posterior."""
    return law_error(target, np.array(list(target.posterior().values())) @ matrix)


# ------------------------------------------------------------------------- the block sweep
def poisson_sizes(mean, tail=1e-13):
    """The law of a Poisson number, cut where its tail is below ``tail``."""
    n_max = int(stats.poisson.isf(tail, mean)) + 1
    return dict(enumerate(stats.poisson.pmf(np.arange(n_max + 1), mean)))


class Pools:
    """The unordered pools of empty views: counts of every content, up to n_max views in all."""

    def __init__(self, n_contents, n_max):
        self.counts = np.array(list(_compositions(n_contents, n_max)))
        number = {tuple(count): i for i, count in enumerate(self.counts.tolist())}
        one = np.eye(n_contents, dtype=int)
        self.fewer = np.array(
            [[number.get(tuple(count - unit), -1) for unit in one] for count in self.counts]
        )

    def drawn(self, size_law, chances):
        """The law of the pool: a random size, contents drawn from the prior."""
        sizes = self.counts.sum(axis=1)
        law = np.zeros(len(sizes))
        for size, chance in size_law.items():
            at = sizes == size
            law[at] = chance * stats.multinomial.pmf(self.counts[at], size, chances)
        return law

    def with_one_less(self, law, content):
        """The law of the pool after one view of this content was taken out of it."""
        has = self.fewer[:, content] >= 0
        after = np.zeros_like(law)
        after[self.fewer[has, content]] = law[has]
        return after

    def with_one_more(self, law, content):
        """The law of the pool after one view of this content was put into it."""
        has = self.fewer[:, content] >= 0
        after = np.zeros_like(law)
        after[has] = law[self.fewer[has, content]]
        return after


def _compositions(n_parts, n_max):
    """All tuples of n_parts counts with a sum of at most n_max."""
    if n_parts == 0:
        yield ()
        return
    for count in range(n_max + 1):
        for others in _compositions(n_parts - 1, n_max - count):
            yield (count, *others)


def block_sweep_law(target, law, order, n_auxiliary, size_law=None):
    """The law of the state, a vector over target.states(), after one block sweep.

    A pool of fresh views is drawn, Poisson(n_auxiliary) of them unless size_law says otherwise
    (a fixed number is a negative control). Each feature in turn leaves and enters a view that
    holds one, or any empty view: fresh, emptied before, or its own. No refill; at the end the
    empty views are dropped. Exact up to the Poisson's cut-off tail.
    """
    size_law = size_law or poisson_sizes(n_auxiliary)
    contents = list(target.prior)
    pools = Pools(len(contents), max(size_law) + target.n_features)
    fresh = pools.drawn(size_law, list(target.prior.values()))
    laws = {s: p * fresh for s, p in zip(target.states(), law, strict=True) if p > 0}
    for feature in order:
        after = defaultdict(lambda: np.zeros(len(fresh)))
        for state, pool in laws.items():
            for end, part in _block_step(target, state, pool, feature, n_auxiliary, pools):
                after[end] += part
        laws = after
    return np.array([laws[state].sum() for state in target.states()])


def _block_step(target, state, pool, feature, n_auxiliary, pools):
    """One feature's step: (state, joint law of it and the pool) for every place."""
    contents = list(target.prior)
    kept, emptied = without(state, {feature})
    for content in emptied:
        pool = pools.with_one_more(pool, contents.index(content))
    joins = join_weights(target, kept, feature)
    share = math.exp(target.log_share(target.n_views(kept, emptied), n_auxiliary))
    opens = [share * math.exp(target.log_lik[feature][content]) for content in contents]
    total = math.fsum(joins) + pools.counts @ opens
    chance = np.divide(pool, total, out=np.zeros_like(pool), where=pool > 0)
    for at, weight in enumerate(joins):
        yield joined(kept, at, feature), chance * weight
    for at, content in enumerate(contents):
        taken = pools.with_one_less(chance * pools.counts[:, at] * opens[at], at)
        yield opened(kept, feature, content), taken
