"""The accelerated parallel sampler on a few rows with few features, by brute force.

A feature theta is one of T values with base measure H; row i has likelihood f[i, theta]. A state is
the tuple of the clusters ``(rows, theta)`` in the order of their first rows, and the target

    pi(state) prop. to PY(partition) prod_k H(theta_k) prod_i f[i, theta of i]

with the Pitman-Yor prior of enumeration.py, K clusters of sizes n_k. T being finite, every
transition matrix can be written down; what is continuous, the weights w, is either held fixed
(each update of a segment must be reversible given w) or integrated (Gauss-Jacobi quadrature).

Exact stage. p* uniform; I = the features with a member off p*, of number K_I; the other features,
wholly on p*, are the tail: n* rows in K* features. With a0 = alpha + d K_I the density

    prod_{k in I} w_k^(n_k - d - 1) w_0^(a0 + n* - 1) PY(tail; a0, d) prod H prod f

on the simplex has, summed over w, pi(state) times a number that depends on K_I alone, and given the
state w ~ Dirichlet(n_k - d; a0 + n*). So the updates of a segment, reversible for this density with
w and I fixed, leave pi invariant. ``Segment`` has them.

Zhang, Williamson and Perez-Cruz (2022), "Accelerated parallel non-conjugate sampling for Bayesian
non-parametric models", section 3; Neal (2000), algorithms 7 and 8. What the paper prints
differently is derived.
"""

import math
from collections import defaultdict
from itertools import product

import numpy as np
from scipy.special import roots_jacobi

from oracles.enumeration import Target, canonical, clusters, count_p_value, log_eppf, partitions


# ------------------------------------------------------------------------------- posteriors
def posterior(X, family, hyper, alpha, d):
    """Posterior over the partitions of the rows of X, features integrated out.

    Parameters
    ----------
    X : array of shape (n_rows, n_columns)
    family : str
        A row family of reference.py (one feature is a whole row), or a column family: the columns
        are then independent given the cluster ("normal": the diagonal Gaussian).
    hyper : mapping, or for a column family a list of one mapping per column

    Returns
    -------
    (list of canonical label tuples, array of probabilities)

    >>> states, chances = posterior([[1], [0]], "bernoulli", {"a": 1, "b": 1}, 1.0, 0.0)
    >>> states, [round(float(p), 6) for p in chances]
    ([(0, 0), (0, 1)], [0.4, 0.6])
    """
    rows = [tuple(row) for row in np.asarray(X).tolist()]
    if family in ("multinomial", "multivariate_normal", "known_normal"):
        columns = [(family, rows, hyper)]
    else:
        hypers = [hyper] * len(rows[0]) if isinstance(hyper, dict) else hyper
        columns = [(family, list(cells), h) for cells, h in zip(zip(*rows), hypers, strict=True)]
    law = Target(columns, alpha, d).posterior()
    return list(law), np.array(list(law.values()))


def chi_square(counts, law):
    """P-value of independent draws' counts (a dict) against a law: a dict, or posterior's pair."""
    return count_p_value(counts, law if isinstance(law, dict) else dict(zip(*law, strict=True)))


# ----------------------------------------------------------------------------------- states
def labels_of(state):
    """The canonical partition of a state.

    >>> labels_of((((0, 2), 1), ((1,), 0)))
    (0, 1, 0)
    """
    label = {row: k for k, (rows, _) in enumerate(state) for row in rows}
    return canonical([label[row] for row in range(len(label))])


def taken_out(state, row):
    """The state without a row, and the row's feature and whether it was alone in it.

    >>> taken_out((((0, 2), "a"), ((1,), "b")), 1)
    ((((0, 2), 'a'),), 'b', True)
    """
    ((rows, feature),) = (cluster for cluster in state if row in cluster[0])
    left = tuple(other for other in rows if other != row)
    rest = [cluster for cluster in state if row not in cluster[0]] + (
        [(left, feature)] * bool(left)
    )
    return tuple(sorted(rest, key=lambda cluster: cluster[0])), feature, not left


def put(state, rows, feature, onto=()):
    """The state after ``rows`` joined the cluster that holds the rows ``onto``; () opens one.

    >>> put((((0, 2), "a"),), (1,), "a", (0, 2)), put((((0, 2), "a"),), (1,), "b")
    ((((0, 1, 2), 'a'),), (((0, 2), 'a'), ((1,), 'b')))
    """
    rest = [cluster for cluster in state if cluster[0] != onto]
    rest.append((tuple(sorted((*onto, *rows))), feature))
    return tuple(sorted(rest, key=lambda cluster: cluster[0]))


class Toy:
    """The target: a table f of shape (n_rows, T), H of shape (T,), and the Pitman-Yor prior."""

    def __init__(self, table, base, concentration=1.0, discount=0.0):
        self.f = np.asarray(table, dtype=float)
        self.base = np.asarray(base, dtype=float)
        self.alpha = concentration
        self.d = discount
        self.n_rows, self.n_features = self.f.shape

    def prior(self, sizes, concentration=None):
        """Pitman-Yor probability of a partition with these sizes; 1 for no rows."""
        concentration = self.alpha if concentration is None else concentration
        return math.exp(log_eppf(list(sizes), concentration, self.d))

    def likelihood(self, rows, theta):
        """f of all these rows under one feature."""
        return math.prod(self.f[row, theta] for row in rows)

    def feature_weights(self, rows):
        """H(theta) f(rows | theta) for every theta; the sum is the marginal likelihood."""
        return self.base * [self.likelihood(rows, theta) for theta in range(self.n_features)]

    def marginal(self, rows):
        """The marginal likelihood of a cluster."""
        return self.feature_weights(rows).sum()

    def feature_law(self, rows):
        """The posterior of a cluster's feature."""
        return self.feature_weights(rows) / self.marginal(rows)

    def weight(self, state):
        """pi(state), not normalised."""
        factors = [self.base[theta] * self.likelihood(rows, theta) for rows, theta in state]
        return self.prior(len(rows) for rows, _ in state) * math.prod(factors)

    def law(self):
        """pi over all states."""
        weights = {}
        for labels in partitions(self.n_rows):
            members = clusters(labels)
            for thetas in product(range(self.n_features), repeat=len(members)):
                state = tuple(zip(members, thetas, strict=True))
                weights[state] = self.weight(state)
        total = math.fsum(weights.values())
        return {state: weight / total for state, weight in weights.items()}

    def collapsed(self):
        """The same posterior over partitions as a Target, features integrated out."""
        return _Collapsed(self)


class _Collapsed(Target):
    def __init__(self, toy):
        super().__init__([], toy.alpha, toy.d, n_rows=toy.n_rows)
        self.toy = toy

    def _log_marginal(self, rows):
        return math.log(self.toy.marginal(rows))

    def _log_predictive(self, row, rows):
        return math.log(self.toy.marginal((*rows, row)) / self.toy.marginal(rows))


def kernel(law, transitions):
    """Matrix over the states of a law from state -> iterable of (state, probability)."""
    index = {state: i for i, state in enumerate(law)}
    matrix = np.zeros((len(index), len(index)))
    for state, i in index.items():
        for other, probability in transitions(state):
            matrix[i, index[other]] += probability
    return matrix


def stationary_error(law, matrix):
    """Largest |pi T - pi|."""
    pi = np.array(list(law.values()))
    return float(np.abs(pi @ matrix - pi).max())


def reversibility_error(law, matrix):
    """Largest |pi(a) T(a, b) - pi(b) T(b, a)|."""
    flow = np.array(list(law.values()))[:, None] * matrix
    return float(np.abs(flow - flow.T).max())


def choices(branches):
    """(state, probability) of draws prop. to weight within each branch (chance, outcomes)."""
    for chance, outcomes in branches:
        total = sum(weight for weight, _ in outcomes)
        for weight, state in outcomes:
            yield state, chance * weight / total


# ------------------------------------------------------------------------- features by Gibbs
def feature_steps(toy, state):
    """Every feature from its posterior given its rows."""
    laws = [toy.feature_law(rows) for rows, _ in state]
    for thetas in product(range(toy.n_features), repeat=len(state)):
        drawn = tuple((rows, theta) for (rows, _), theta in zip(state, thetas, strict=True))
        yield drawn, math.prod(law[theta] for law, theta in zip(laws, thetas, strict=True))


# ---------------------------------------------------------------- algorithm 8 and its kin
def _joins(toy, rest, row):
    return [
        ((len(rows) - toy.d) * toy.f[row, theta], put(rest, (row,), theta, rows))
        for rows, theta in rest
    ]


def auxiliary_law(toy, m):
    """pi with a pool of m unoccupied features from H: keys (state, pool)."""
    return {
        (state, pool): probability * math.prod(toy.base[list(pool)])
        for state, probability in toy.law().items()
        for pool in product(range(toy.n_features), repeat=m)
    }


def auxiliary_steps(toy, state_and_pool, row, replaces=True, refill=True):
    """One row by algorithm 8 with a pool that persists from row to row.

    A singleton's feature replaces a uniformly chosen one of the pool before the draw; a feature
    taken from the pool is refilled from H at once, the row's own included.
    """
    state, pool = state_and_pool
    m = len(pool)
    rest, own, alone = taken_out(state, row)
    pools = [(1.0, pool)]
    if alone and replaces:
        pools = [(1 / m, (*pool[:j], own, *pool[j + 1 :])) for j in range(m)]
    for chance, places in pools:
        opening = (toy.alpha + toy.d * len(rest)) / m
        outcomes = [(weight, (after, places)) for weight, after in _joins(toy, rest, row)]
        for j, theta in enumerate(places):
            for fresh, h in enumerate(toy.base) if refill else [(theta, 1.0)]:
                after = put(rest, (row,), theta), (*places[:j], fresh, *places[j + 1 :])
                outcomes.append((opening * toy.f[row, theta] * h, after))
        yield from choices([(chance, outcomes)])


def data_driven(toy, rest, row, own, rho=0.7, own_weight=None):
    """q_i: H and the other rows' own posteriors, weighted by 1 / f at the features they are in.

    ``own_weight`` None leaves row i out, a number gives it that constant weight, "1/f" that of its
    current feature (wrong).
    """
    theta_of = {other: theta for rows, theta in rest for other in rows}
    weights = {other: 1 / toy.f[other, theta] for other, theta in theta_of.items()}
    if own_weight is not None:
        weights[row] = 1 / toy.f[row, own] if own_weight == "1/f" else own_weight
    mixture = sum(weight * toy.feature_law((other,)) for other, weight in weights.items())
    return (1 - rho) * toy.base + rho * mixture / sum(weights.values())


def importance_steps(toy, state, row, m, proposal=data_driven, weighted=True):
    """One row by algorithm 8 with m auxiliaries from q_i, weighted by H / q_i.

    ``proposal`` (toy, state without the row, row, the row's feature) -> q_i over features.
    """
    rest, own, alone = taken_out(state, row)
    q = proposal(toy, rest, row, own)
    place = (toy.alpha + toy.d * len(rest)) / m * toy.f[row] * (toy.base / q if weighted else 1.0)
    joins = _joins(toy, rest, row)
    for fresh in product(range(toy.n_features), repeat=m - alone):
        places = ((own,) if alone else ()) + fresh
        opens = [(place[theta], put(rest, (row,), theta)) for theta in places]
        yield from choices([(math.prod(q[list(fresh)]), joins + opens)])


def birth_death_steps(toy, state, row, proposal=data_driven):
    """One row by algorithm 7 with q_i: a birth where it is in company, a death where alone."""
    rest, own, alone = taken_out(state, row)
    q = proposal(toy, rest, row, own)
    n_others = toy.n_rows - 1
    opening = (toy.alpha + toy.d * len(rest)) / (n_others - toy.d * len(rest))

    def ratio(born, from_theta):
        f = toy.f[row]
        return opening * f[born] * toy.base[born] / (q[born] * f[from_theta])

    if alone:
        total = n_others - toy.d * len(rest)
        proposals = [
            ((len(rows) - toy.d) / total, put(rest, (row,), theta, rows), 1 / ratio(own, theta))
            for rows, theta in rest
        ]
    else:
        proposals = [
            (q[theta], put(rest, (row,), theta), ratio(theta, own))
            for theta in range(toy.n_features)
        ]
    for chance, after, accept in proposals:
        yield after, chance * min(1.0, accept)
        yield state, chance * (1 - min(1.0, accept))


# -------------------------------------------------------------------------- the exact stage
def dirichlet_nodes(parameters, n_nodes):
    """Nodes (len(parameters), q) and weights (q,) that integrate over a Dirichlet law.

    Sticks w_j / (w_j + w_j+1 + ..) are independent Beta: Gauss-Jacobi in each.

    >>> nodes, weights = dirichlet_nodes([0.5, 1.5, 2.0], 4)
    >>> np.round(nodes @ weights, 12).tolist()
    [0.125, 0.375, 0.5]
    """
    nodes, weights, left = np.zeros((0, 1)), np.ones(1), np.ones(1)
    for j, a in enumerate(parameters[:-1]):
        x, chance = roots_jacobi(n_nodes, sum(parameters[j + 1 :]) - 1, a - 1)
        stick = (1 + x) / 2
        piece = (left[:, None] * stick).ravel()
        nodes = np.vstack([np.repeat(nodes, n_nodes, axis=1), piece])
        weights = (weights[:, None] * (chance / chance.sum())).ravel()
        left = (left[:, None] * (1 - stick)).ravel()
    return np.vstack([nodes, left]), weights


class Segment:
    """What is fixed between two synchronisations, and the updates of the rows.

    Within a segment a state is (clusters, pool), a cluster's feature ("I", k) with weight w[k] and
    theta ``thetas[k]``, or ("tail", theta), theta None where the tail is collapsed.

    Parameters
    ----------
    shards : sequence of int
        The shard of each row.
    star : int
        p*.
    tail : {"collapsed", "drawn", "fresh", "pool"}
        How rows of p* open a feature: its theta integrated out for the whole segment; drawn prop.
        to H f as it opens; or algorithm 8 with m auxiliaries, fresh for each row or a pool.
    off : {"last", "frozen", "free", "unheld", "anywhere"}
        Rows off p*: among the features with members on the row's shard, the last one stays; the
        rule with rows ``frozen`` beforehand; and the faults: the published rule, a frozen rule for
        rows whose feature is not held, and one that counts frozen rows on p*.
    instantiated : {"off", "all"}
        "all" is a fault: features wholly on p* get a weight as well.
    twice : bool
        The fault that takes the tail's discounts from its total too.
    """

    def __init__(
        self, toy, state, shards, star, *, tail="collapsed", off="last", instantiated="off",
        frozen=(), m=2, twice=False,
    ):  # fmt: skip
        self.toy, self.shards, self.star = toy, shards, star
        self.tail, self.off, self.frozen, self.m = tail, off, frozen, m
        self.thetas, held = [], []
        for rows, theta in state:
            if instantiated == "all" or any(shards[row] != star for row in rows):
                held.append((rows, ("I", len(self.thetas))))
                self.thetas.append(theta)
            else:
                held.append((rows, ("tail", None if tail == "collapsed" else theta)))
        self.clusters = tuple(held)
        self.a0 = toy.alpha + toy.d * len(self.thetas)
        sizes, tail_sizes = self.sizes(self.clusters)
        self.parameters = [size - toy.d for size in sizes]
        self.parameters.append(self.a0 + sum(tail_sizes) - twice * toy.d * len(tail_sizes))

    def start(self):
        """(probability, (clusters, pool)) of the start."""
        for pool in product(range(self.toy.n_features), repeat=self.m * (self.tail == "pool")):
            yield math.prod(self.toy.base[list(pool)]), (self.clusters, pool)

    def sizes(self, state):
        """Sizes of the features in I and of those in the tail."""
        rows_of = {feature: rows for rows, feature in state if feature[0] == "I"}
        sizes = [len(rows_of.get(("I", k), ())) for k in range(len(self.thetas))]
        return sizes, [len(rows) for rows, feature in state if feature[0] == "tail"]

    def density(self, state_and_pool, w):
        """Joint density of a state and w (K_I + 1, q), given p* and I, not normalised."""
        state, pool = state_and_pool
        toy = self.toy
        sizes, tail_sizes = self.sizes(state)
        out = w[-1] ** (self.a0 + sum(tail_sizes) - 1) * toy.prior(tail_sizes, self.a0)
        for k, size in enumerate(sizes):
            out = out * w[k] ** (size - toy.d - 1) * toy.base[self.thetas[k]]
        for rows, (where, name) in state:
            if where == "I":
                out = out * toy.likelihood(rows, self.thetas[name])
            elif name is None:
                out = out * toy.marginal(rows)
            else:
                out = out * toy.base[name] * toy.likelihood(rows, name)
        return out * math.prod(toy.base[list(pool)])

    def steps(self, state_and_pool, row, w):
        """(state, probability) of one row's update given w."""
        if self.shards[row] == self.star:
            if self.off == "anywhere" and row in self.frozen:
                return [(state_and_pool, 1.0)]
            return choices(self._star_branches(state_and_pool, row, w))
        return choices([(1.0, self._off_outcomes(state_and_pool, row, w))])

    def _joins(self, rest, row, w, names):
        """The row into features of I, which need not hold a row (faulty rules)."""
        rows_of = {feature: rows for rows, feature in rest}
        for k in names:
            weight = w[k] * self.toy.f[row, self.thetas[k]]
            yield weight, put(rest, (row,), ("I", k), rows_of.get(("I", k), ()))

    def _off_outcomes(self, state_and_pool, row, w):
        state, pool = state_and_pool
        rest, (_, own), _ = taken_out(state, row)
        names = range(len(self.thetas))
        if self.off == "last":
            names = self._names(rest, lambda other: self.shards[other] == self.shards[row])
        elif self.off in ("frozen", "unheld", "anywhere"):
            names = self._names(
                rest,
                lambda other: (
                    other in self.frozen
                    and (self.off == "anywhere" or self.shards[other] != self.star)
                ),
            )
            if row in self.frozen or not names:
                names = [own]
        if own not in names and self.off != "unheld":
            names = [own]
        return [(weight, (after, pool)) for weight, after in self._joins(rest, row, w, names)]

    def _names(self, rest, holds):
        return [
            name
            for rows, (where, name) in rest
            if where == "I" and any(holds(other) for other in rows)
        ]

    def _star_branches(self, state_and_pool, row, w):
        toy = self.toy
        state, pool = state_and_pool
        rest, (where, own), alone = taken_out(state, row)
        alone = alone and where == "tail"
        tail_sizes = self.sizes(rest)[1]
        share = w[-1] / (sum(tail_sizes) + self.a0)
        joins = list(self._joins(rest, row, w, range(len(self.thetas))))
        for rows, (side, theta) in rest:
            if side == "tail":
                weight = share * (len(rows) - toy.d)
                if theta is None:
                    weight = weight * toy.marginal((*rows, row)) / toy.marginal(rows)
                else:
                    weight = weight * toy.f[row, theta]
                joins.append((weight, put(rest, (row,), (side, theta), rows)))
        opening = share * (toy.alpha + toy.d * (len(self.thetas) + len(tail_sizes)))

        def opened(theta):
            return put(rest, (row,), ("tail", theta))

        if self.tail == "collapsed":
            return [(1.0, _paired([*joins, (opening * toy.marginal((row,)), opened(None))], pool))]
        if self.tail == "drawn":
            weights = toy.feature_weights((row,))
            opens = [(opening * weight, opened(theta)) for theta, weight in enumerate(weights)]
            return [(1.0, _paired(joins + opens, pool))]
        if self.tail == "fresh":
            return [
                (
                    math.prod(toy.base[list(fresh)]),
                    _paired(joins, pool)
                    + [
                        (opening / self.m * toy.f[row, theta], (opened(theta), pool))
                        for theta in ((own,) if alone else ()) + fresh
                    ],
                )
                for fresh in product(range(toy.n_features), repeat=self.m - alone)
            ]
        pools = [(1.0, pool)]
        if alone:
            pools = [(1 / self.m, (*pool[:j], own, *pool[j + 1 :])) for j in range(self.m)]
        return [
            (
                chance,
                _paired(joins, places)
                + [
                    (
                        opening / self.m * toy.f[row, theta] * h,
                        (opened(theta), (*places[:j], new, *places[j + 1 :])),
                    )
                    for j, theta in enumerate(places)
                    for new, h in enumerate(toy.base)
                ],
            )
            for chance, places in pools
        ]

    def finished(self, state_and_pool):
        """(state, probability) at the next synchronisation: a collapsed tail gets its features."""
        state, _ = state_and_pool
        laws = []
        for rows, (where, name) in state:
            theta = self.thetas[name] if where == "I" else name
            if theta is None:
                laws.append(list(enumerate(self.toy.feature_law(rows))))
            else:
                laws.append([(theta, 1.0)])
        for drawn in product(*laws):
            after = tuple((rows, theta) for (rows, _), (theta, _) in zip(state, drawn))
            yield after, math.prod(chance for _, chance in drawn)


def _paired(outcomes, pool):
    return [(weight, (after, pool)) for weight, after in outcomes]


def frozen_sets(rows, chance):
    """(probability, set) of every set of frozen rows, each row frozen with this probability."""
    for flags in product((False, True), repeat=len(rows)):
        frozen = tuple(row for row, flag in zip(rows, flags, strict=True) if flag)
        yield chance ** len(frozen) * (1 - chance) ** (len(rows) - len(frozen)), frozen


def segment_law(segment, n_sweeps=1, n_nodes=24):
    """The law of the state at the next synchronisation, w integrated by quadrature."""
    w, chances = dirichlet_nodes(segment.parameters, n_nodes)
    law = {state: probability * chances for probability, state in segment.start()}
    for row in [*range(segment.toy.n_rows)] * n_sweeps:
        after = defaultdict(float)
        for state, probability in law.items():
            for other, chance in segment.steps(state, row, w):
                after[other] = after[other] + probability * chance
        law = after
    out = defaultdict(float)
    for state, probability in law.items():
        for after, chance in segment.finished(state):
            out[after] += probability.sum() * chance
    return dict(out)


def exact_stage_matrix(toy, shards, *, n_sweeps=1, n_nodes=24, freeze=0.4, **options):
    """From one synchronisation to the next; options as for Segment."""
    n_shards = max(shards) + 1
    off = options.get("off", "last")

    def freezing(star):
        rows = [row for row, shard in enumerate(shards) if shard != star or off == "anywhere"]
        return frozen_sets([] if off in ("last", "free") else rows, freeze)

    def transitions(state):
        for star in range(n_shards):
            for chance, rows in freezing(star):
                segment = Segment(toy, state, shards, star, frozen=rows, **options)
                for after, probability in segment_law(segment, n_sweeps, n_nodes).items():
                    yield after, chance * probability / n_shards

    return kernel(toy.law(), transitions)
