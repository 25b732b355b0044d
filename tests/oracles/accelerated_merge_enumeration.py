"""Splits and merges of instantiated features on a Toy, by brute force; all of it is derived.

Rows i != j: i uniform, j with probability r(j | i, state). Of one cluster S: a split with i on one
side and j on the other. Of two: the merge of both, S their union. What helps to propose, the launch
features t = (t_i, t_j) and the share v, has a law of (i, j, S) alone: it is the same for a split
and for the merge that undoes it, so its density cancels and the ratio holds for each (t, v). Given
it, the other rows of S join i's side independently with probability

    p(row) = v f(row | t_i) / (v f(row | t_i) + (1 - v) f(row | t_j)).

The merge proposes one thing, and its reverse draws the sides the rows have now with probability
A = prod over the other rows of p or 1 - p. With the sides' sizes a and b, K before the split and
m(.) a marginal likelihood,

    prior ratio = (alpha + K d) G(a - d) G(b - d) / (G(a + b - d) G(1 - d)).

Conjugate: the partition is moved with the features integrated out, and where that is accepted the
touched features are drawn from their posteriors:

    R = prior ratio  m(a) m(b) / m(S)  1 / A  r(j | i, split) / r(j | i, merged).

Not conjugate: i's side keeps the feature theta that S has (t_i = theta), j's gets t_j ~ q, where q
may look at the data, at i, j, S, theta and the other clusters, so at nothing that the move changes:

    R = prior ratio  [H(t_j) / q(t_j)]  prod_{rows of j's side} f(row | t_j) / f(row | theta)
        1 / A  r(j | i, split) / r(j | i, merged);

the merge drops the feature of j's cluster, t_j, and keeps that of i's. Either way a split is
accepted with min(1, R), a merge with min(1, 1 / R).
"""

import math
from itertools import product

from oracles.accelerated_enumeration import put

SHARES = ((0.3, 0.5), (0.7, 0.25))  # (v, chance): what is left over rejects at once


# ------------------------------------------------------------------------- the second row
def uniform_pair(toy, state, i, j):
    """j uniform among the other rows: the ratio of the r is 1."""
    return 1 / (toy.n_rows - 1)


def even_pair(toy, state, i, j):
    """j in i's cluster with probability 1/2, uniform in it, else uniform outside."""
    return _pair(toy, state, i, j, lambda own, others: [len(rows) for rows, _ in others])


def similar_pair(toy, state, i, j):
    """As even_pair, but another cluster prop. to the likeness of its feature and that of i's."""

    def likeness(own, others):
        return [3.0 if theta == own else 1.0 for _, theta in others]

    return _pair(toy, state, i, j, likeness)


def _pair(toy, state, i, j, weigh):
    ((rows, own),) = (cluster for cluster in state if i in cluster[0])
    others = [cluster for cluster in state if i not in cluster[0]]
    inside = 0.5 if others and len(rows) > 1 else float(len(rows) > 1)
    if j in rows:
        return inside / (len(rows) - 1)
    weights = weigh(own, others)
    return sum(
        (1 - inside) * weight / sum(weights) / len(members)
        for weight, (members, _) in zip(weights, others, strict=True)
        if j in members
    )


# ------------------------------------------------------------------------------- launches
def seed_launch(toy, i, j, others, sides=None):
    """Each launch feature from the posterior given its seed: (chance, (t_i, t_j))."""
    laws = toy.feature_law((i,)), toy.feature_law((j,))
    for t in product(range(toy.n_features), repeat=2):
        yield laws[0][t[0]] * laws[1][t[1]], t


def refined_launch(toy, i, j, others, sides=None):
    """Then all of S is divided by these, and the features drawn anew given the division."""
    for chance, t in seed_launch(toy, i, j, others):
        for taken, there in divisions(toy, i, j, others, t, 0.5):
            laws = [toy.feature_law(rows) for rows in there]
            for t_new in product(range(toy.n_features), repeat=2):
                yield chance * taken * laws[0][t_new[0]] * laws[1][t_new[1]], t_new


def current_launch(toy, i, j, others, sides=None):
    """A fault: in a merge the launch features come from the two clusters as they are now."""
    if sides is None:
        yield from seed_launch(toy, i, j, others)
        return
    laws = [toy.feature_law(rows) for rows in sides]
    for t in product(range(toy.n_features), repeat=2):
        yield laws[0][t[0]] * laws[1][t[1]], t


def divisions(toy, i, j, others, t, v):
    """(probability A, (rows with i, rows with j)) of every division of the other rows."""
    for flags in product((True, False), repeat=len(others)):
        chance, sides = 1.0, ([i], [j])
        for row, first in zip(others, flags, strict=True):
            weights = v * toy.f[row, t[0]], (1 - v) * toy.f[row, t[1]]
            chance *= weights[not first] / sum(weights)
            sides[not first].append(row)
        yield chance, tuple(tuple(sorted(side)) for side in sides)


def data_driven_feature(toy, rest, i, j, rows, theta, rho=0.8):
    """q: H, the posterior given x_j, and a little of all that q may look at."""
    q = (1 - rho) * toy.base + rho * toy.feature_law((j,))
    q[theta] += 0.2 * len(rows)
    for members, other in rest:
        q[other] += 0.1 * len(members)
    return q / q.sum()


# ---------------------------------------------------------------------------------- moves
def conjugate_steps(
    toy, state, *, pair=even_pair, launch=seed_launch, shares=SHARES,
    allocated=True, paired=True, redrawn=True, more=0,
):  # fmt: skip
    """The split-merge move with features integrated out; the last four options are faults."""

    def marginals(clusters):
        return math.prod(toy.marginal(rows) for rows in clusters)

    for i, j, chance, rest, sides, features in _pairs(toy, state, pair):
        rows, others = _union(sides, i, j)
        for t_chance, t in launch(toy, i, j, others, sides if len(sides) == 2 else None):
            for v, v_chance in shares:
                start = chance * t_chance * v_chance
                for a, there in divisions(toy, i, j, others, t, v):
                    ratio = _prior_ratio(toy, rest, there, more)
                    ratio *= marginals(there) / toy.marginal(rows)
                    ratio /= a if allocated else 1.0
                    split = len(sides) == 1
                    if not split and there != sides:
                        continue
                    proposed = there if split else (rows,)
                    for probability, drawn in _drawn(toy, proposed, features, redrawn):
                        after = rest
                        for members, theta in zip(proposed, drawn, strict=True):
                            after = put(after, members, theta)
                        accept = ratio if split else 1 / ratio
                        if paired:
                            accept *= pair(toy, after, i, j) / pair(toy, state, i, j)
                        proposal = start * probability * (a if split else 1.0)
                        yield after, proposal * min(1.0, accept)
                        yield state, -proposal * min(1.0, accept)
    yield state, 1.0


def general_steps(
    toy, state, *, pair=even_pair, proposal=data_driven_feature, shares=SHARES,
    allocated=True, paired=True, weighted=True, more=0,
):  # fmt: skip
    """The split-merge move of instantiated features; the last four options are faults."""
    for i, j, chance, rest, sides, features in _pairs(toy, state, pair):
        rows, others = _union(sides, i, j)
        theta, split = features[0], len(sides) == 1
        q = proposal(toy, rest, i, j, rows, theta)
        second = list(enumerate(q)) if split else [(features[1], 1.0)]
        for v, v_chance in shares:
            for t_j, t_chance in second:
                for a, there in divisions(toy, i, j, others, (theta, t_j), v):
                    if not split and there != sides:
                        continue
                    ratio = _prior_ratio(toy, rest, there, more) / (a if allocated else 1.0)
                    ratio *= toy.base[t_j] / q[t_j] if weighted else 1.0
                    ratio *= toy.likelihood(there[1], t_j) / toy.likelihood(there[1], theta)
                    if split:
                        after = put(put(rest, there[0], theta), there[1], t_j)
                    else:
                        after = put(rest, rows, theta)
                    accept = ratio if split else 1 / ratio
                    if paired:
                        accept *= pair(toy, after, i, j) / pair(toy, state, i, j)
                    probability = chance * v_chance * t_chance * (a if split else 1.0)
                    yield after, probability * min(1.0, accept)
                    yield state, -probability * min(1.0, accept)
    yield state, 1.0


def _pairs(toy, state, pair):
    """(i, j, chance, other clusters, sides now, their features) of every ordered pair."""
    for i, j in product(range(toy.n_rows), repeat=2):
        if i == j:
            continue
        rest = tuple(cluster for cluster in state if not {i, j} & {*cluster[0]})
        touched = [cluster for cluster in state if {i, j} & {*cluster[0]}]
        touched.sort(key=lambda cluster: i not in cluster[0])
        sides, features = zip(*touched, strict=True)
        yield i, j, pair(toy, state, i, j) / toy.n_rows, rest, sides, features


def _union(sides, i, j):
    rows = tuple(sorted(row for side in sides for row in side))
    return rows, [row for row in rows if row not in (i, j)]


def _prior_ratio(toy, rest, sides, more):
    """Of the split partition to the merged one; ``more`` miscounts K (a fault)."""
    a, b = map(len, sides)
    logs = math.lgamma(a - toy.d) + math.lgamma(b - toy.d)
    logs -= math.lgamma(a + b - toy.d) + math.lgamma(1 - toy.d)
    return (toy.alpha + (len(rest) + 1 + more) * toy.d) * math.exp(logs)


def _drawn(toy, proposed, features, redrawn):
    """(probability, features) of the proposed clusters."""
    laws = [toy.feature_law(rows) for rows in proposed]
    for drawn in product(range(toy.n_features), repeat=len(proposed)):
        if not redrawn and drawn[0] != features[0]:
            continue
        chances = [law[theta] for law, theta in zip(laws, drawn, strict=True)]
        yield math.prod(chances[0 if redrawn else 1 :]), drawn
