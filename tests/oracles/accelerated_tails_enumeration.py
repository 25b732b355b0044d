"""The exact stage with several tails at once, on a Toy.

Given the set F of free shards and a state (clusters ``(rows, theta)``, see
accelerated_enumeration.py), I are the clusters that are not wholly on one free shard; T_p, those
wholly on the free shard p, are its tail, which is collapsed. The joint density

    pi(state) Dirichlet(w_k, k in I; w_p, p in F | n_k - d; a_p + n_p)

sums to pi(state) over w. With d = 0 the a_p are any positive numbers, with d > 0 F is one shard and
a_p = alpha + d |I|. The updates of a row given w, theta of I and the set I:

    on a free shard p      k in I: w_k f;  j in T_p: w_p (n_j - d) / (n_p + a_p) f;
                           new: w_p (alpha + d (|I| + |T_p|)) / (n_p + a_p) f
    on an anchored shard   w_k f among the features with another member on the row's shard

with two rules that keep I what it is: on an anchored shard the last member of a feature stays; on a
free one so it does if the feature has no member on an anchored shard, and rows may join only
features with a member on their own or on an anchored shard.
"""

import math

import numpy as np
from scipy.special import gammaln

from oracles.accelerated_enumeration import choices, put, taken_out
from oracles.enumeration import clusters, partitions


class Tails:
    """What is fixed between two synchronisations.

    Parameters
    ----------
    toy : Toy
    state : tuple of (rows, theta)
        At the synchronisation; theta matters for I alone.
    shards : sequence of int
    free : set of int
    shares : dict of shard to float, optional
        a_p; needed if d = 0.
    leaves : bool
        The fault that a row of a free shard may be the last to leave a feature of free shards.
    """

    def __init__(self, toy, state, shards, free, shares=None, leaves=False):
        self.toy, self.shards, self.free, self.leaves = toy, shards, free, leaves
        self.thetas, self.support = [], []
        for rows, theta in state:
            if self.tail_of(rows) is None:
                self.thetas.append(theta)
                self.support.append({shards[row] for row in rows})
        self._states = None
        self.a = toy.alpha + toy.d * len(self.thetas)
        self.shares = dict.fromkeys(free, self.a) if shares is None else shares

    def tail_of(self, rows):
        """The free shard that these rows are wholly on, or None."""
        on = {self.shards[row] for row in rows}
        return next(iter(on)) if len(on) == 1 and on <= self.free else None

    def is_consistent(self, state):
        """Whether I and the tails are what the rows say."""
        names = {name for _, (where, name) in state if where == "I"}
        if names != set(range(len(self.thetas))):
            return False
        return all(
            self.tail_of(rows) == name if where == "tail" else self.tail_of(rows) is None
            for rows, (where, name) in state
            if name is not None
        ) and all(name is not None for _, (_, name) in state)

    def log_weight(self, state):
        """log pi(state), but for a constant."""
        toy = self.toy
        out = math.log(toy.prior(len(rows) for rows, _ in state))
        for rows, (where, name) in state:
            if where == "I":
                theta = self.thetas[name]
                out += math.log(toy.base[theta] * toy.likelihood(rows, theta))
            else:
                out += math.log(toy.marginal(rows))
        return out

    def log_density(self, state, log_w):
        """Log of the joint density; log_w: (of I, dict of tails)."""
        of_i, of_tails = log_w
        in_tail = dict.fromkeys(self.free, 0)
        parameters = {}
        for rows, (where, name) in state:
            if where == "I":
                parameters["I", name] = len(rows) - self.toy.d
            else:
                in_tail[name] += len(rows)
        parameters |= {("tail", p): self.shares[p] + n for p, n in in_tail.items()}
        values = {("I", k): w for k, w in enumerate(of_i)}
        values |= {("tail", p): w for p, w in of_tails.items()}
        out = self.log_weight(state) + gammaln(sum(parameters.values()))
        return out + sum((a - 1) * values[name] - gammaln(a) for name, a in parameters.items())

    def log_integrated(self, state):
        """Log of the integral over w of what the updates are conditionals of: prod_I w^(n_k-d-1)
        prod_F w_p^(a_p+n_p-1) and, of each tail, its law given w, times H and f."""
        toy, out, parameters = self.toy, 0.0, []
        sizes = {p: [] for p in self.free}
        for rows, (where, name) in state:
            if where == "I":
                theta = self.thetas[name]
                out += math.log(toy.base[theta] * toy.likelihood(rows, theta))
                parameters.append(len(rows) - toy.d)
            else:
                out += math.log(toy.marginal(rows))
                sizes[name].append(len(rows))
        for p, of_tail in sizes.items():
            parameters.append(self.shares[p] + sum(of_tail))
            if toy.d > 0:
                out += math.log(toy.prior(of_tail, self.a))
            else:  # alpha^K prod (n_j - 1)! / (a_p)_(n_p)
                out += len(of_tail) * math.log(toy.alpha) + sum(gammaln(n) for n in of_tail)
                out += gammaln(self.shares[p]) - gammaln(parameters[-1])
        return out + sum(map(gammaln, parameters)) - gammaln(sum(parameters))

    def steps(self, state, row, log_w):
        """(state, probability) of one row's update given w."""
        toy, p = self.toy, self.shards[row]
        rest, feature, alone = taken_out(state, row)
        mates = {name: rows for rows, name in rest}
        here = {name: sum(self.shards[r] == p for r in rows) for name, rows in mates.items()}
        anchored = [bool(support - self.free) for support in self.support]
        where, own = feature
        if where == "I" and not here.get(feature, 0):
            held = not anchored[own] if p in self.free else True
            if held and not (self.leaves and p in self.free):
                return [(state, 1.0)]
        outcomes = []
        for k, theta in enumerate(self.thetas):
            if p in self.support[k] or (p in self.free and anchored[k]):
                name = "I", k
                weight = math.exp(log_w[0][k]) * toy.f[row, theta]
                outcomes.append((weight, put(rest, (row,), name, mates.get(name, ()))))
        if p in self.free:
            tail = [rows for rows, name in rest if name == ("tail", p)]
            share = math.exp(log_w[1][p]) / (sum(map(len, tail)) + self.shares[p])
            for rows in tail:
                ratio = toy.marginal((*rows, row)) / toy.marginal(rows)
                weight = share * (len(rows) - toy.d) * ratio
                outcomes.append((weight, put(rest, (row,), ("tail", p), rows)))
            opening = share * (self.a + toy.d * len(tail)) * toy.marginal((row,))
            outcomes.append((opening, put(rest, (row,), ("tail", p))))
        return list(choices([(1.0, outcomes)]))

    def states(self):
        """All states with this I, and its thetas."""
        n_shared = len(self.thetas)
        for labels in partitions(self.toy.n_rows):
            for names in _namings(clusters(labels), n_shared):
                state = tuple(
                    (rows, ("I", name) if name is not None else ("tail", self.tail_of(rows)))
                    for rows, name in names
                )
                if self.is_consistent(state) and self._supports(state):
                    yield state

    def _supports(self, state):
        """Features keep the shards that the rules say they keep."""
        for rows, (where, name) in state:
            if where == "I":
                on = {self.shards[row] for row in rows}
                before = self.support[name]
                same_anchors = on - self.free == before - self.free
                if not same_anchors or (not before - self.free and on != before):
                    return False
        return True

    def random_weights(self, rng):
        """Some w in the simplex."""
        shared, free = len(self.thetas), sorted(self.free)
        w = np.log(rng.dirichlet(np.ones(shared + len(free))))
        return w[:shared], dict(zip(free, w[shared:], strict=True))

    def error(self, row, log_w):
        """Largest violation of detailed balance of a row's update, relative to the density."""
        if self._states is None:
            self._states = list(self.states())
        states = self._states
        index = {state: i for i, state in enumerate(states)}
        log_density = np.array([self.log_density(state, log_w) for state in states])
        density = np.exp(log_density - log_density.max())
        flow = np.zeros((len(states), len(states)))
        lost = 0.0
        for state, i in index.items():
            for other, chance in self.steps(state, row, log_w):
                if other in index:
                    flow[i, index[other]] += density[i] * chance
                else:
                    lost += density[i] * chance
        return (np.abs(flow - flow.T).max() + lost) / density.sum()


def _namings(members, n_shared):
    """The clusters with the numbers 0 .. n_shared - 1 given to some, None to the others."""
    if not members:
        if n_shared == 0:
            yield []
        return
    yield from _name(members, set(range(n_shared)))


def _name(members, left):
    if not members:
        if not left:
            yield []
        return
    first, *others = members
    for name in (None, *sorted(left)):
        for names in _name(others, left - {name}):
            yield [(first, name), *names]
