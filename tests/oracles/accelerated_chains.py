"""Independent chains of AcceleratedDPMixture's algorithms on the oracles' few rows.

A chain begins at a draw from the enumerated posterior, runs a few segments on shards to which the
rows are dealt by hand, and counts once: the counts have the posterior's law if and only if all
segments leave it invariant. Nothing is shared between chains but what is encoded.
"""

from collections import Counter

import numpy as np
from scipy.special import betaln

from oracles.accelerated_enumeration import posterior
from oracles.enumeration import canonical
from oracles.mixtures import hyper_vector
from skanneal.likelihoods import LIKELIHOODS, Likelihood
from skanneal.parallel import StopFlag
from skanneal.sharded._chain import AcceleratedChain
from skanneal.sharded._segments import first_report

STOP = StopFlag()
NAMES = ("multinomial", "normal", "multivariate_normal", "poisson")
# (X, hyper): every n takes the first rows; no partition has most of the posterior
ON = {
    "multinomial": (
        [[0, 2, 1], [0, 1, 2], [2, 0, 1], [3, 1, 0], [1, 0, 1], [1, 1, 0]],
        {"pseudo_counts": 1.5},
    ),
    "normal": (
        [[0.75, 0.5], [-0.25, 0.75], [-0.5, -0.5], [0.5, -1.0], [1.0, 0.25], [-1.0, 0.0]],
        {"mu0": 0.0, "kappa0": 0.8, "nu0": 3.0, "sigma2_0": 0.9},
    ),
    "multivariate_normal": (
        [[-0.5, -0.5], [-1.0, 0.0], [0.75, 0.5], [-0.25, 0.75], [0.5, -1.0], [1.0, 0.25]],
        {"mu0": [0.1, 0.0], "kappa0": 0.8, "nu0": 5.0, "scale0": [[3.0, 0.4], [0.4, 2.5]]},
    ),
    "poisson": ([[2, 1], [4, 1], [1, 3], [3, 0], [2, 2], [5, 1]], {"shape": 2.0, "rate": 0.8}),
}
# likelihood off: one column of counts, and clusters that all explain a row alike
OFF = {
    "multinomial": ([[1], [2], [1], [3], [1], [2]], {"pseudo_counts": 0.7}),
    "normal": (
        ON["normal"][0], {"mu0": 0.0, "kappa0": 1e7, "nu0": 1e7, "sigma2_0": 1.0},
    ),
    "multivariate_normal": (
        ON["multivariate_normal"][0],
        {"mu0": [0.0, 0.0], "kappa0": 1e7, "nu0": 1e7, "scale0": [[1e7, 0.0], [0.0, 1e7]]},
    ),
    "poisson": (ON["poisson"][0], {"shape": 2e7, "rate": 1e7}),
}  # fmt: skip
COINS = [[1, 0, 1], [0, 1, 1], [1, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]]


class HandShards:
    """Shards of rows that are dealt by hand.

    Parameters
    ----------
    rows : encoded rows
    shard_of : sequence of int
        The shard of each row.
    """

    def __init__(self, rows, shard_of):
        self.shard_of = np.asarray(shard_of)
        self.n_rows, self.n_shards = len(rows), int(max(shard_of)) + 1
        self._rows = [rows[self.rows_of(p)] for p in range(self.n_shards)]

    def rows_of(self, p):
        return np.flatnonzero(self.shard_of == p)

    def encoded(self, p):
        return self._rows[p]


class Coins(Likelihood):
    """A user's likelihood: rows of independent coins, theta ~ Beta(a, b) each.

    It does not say that it is conjugate, but its posterior is known. q_i is not the row's
    posterior; ``weighted`` False has weights H / q_i of 1.
    """

    hyper = {"a": 1.2, "b": 0.9}
    weighted = True

    def log_lik(self, rows, theta, out):
        out[:] = rows @ np.log(theta.T) + (1 - rows) @ np.log1p(-theta.T)

    def statistics(self, rows, labels, n_features):
        out = np.zeros((n_features, 2, rows.shape[1]))
        np.add.at(out[:, 0], labels[labels >= 0], rows[labels >= 0])
        np.add.at(out[:, 1], labels[labels >= 0], 1 - rows[labels >= 0])
        return out

    def draw(self, statistics, theta, rng):
        return self._clip(
            rng.beta(self.hyper["a"] + statistics[:, 0], self.hyper["b"] + statistics[:, 1])
        )

    def prior_draw(self, n, rng):
        return self._clip(rng.beta(self.hyper["a"], self.hyper["b"], (n, len(COINS[0]))))

    def log_prior(self, theta):
        return self._log_beta(theta, self.hyper["a"], self.hyper["b"])

    def _proposal(self, rows):
        return 0.8 + 0.9 * rows, 1.1 - 0.3 * rows

    def proposal_draw(self, rows, rng):
        return self._clip(rng.beta(*self._proposal(rows)))

    def proposal_logpdf(self, theta, row):
        if not self.weighted:
            return self.log_prior(theta)
        return self._log_beta(theta, *self._proposal(row))

    @staticmethod
    def _log_beta(theta, a, b):
        log_density = (a - 1) * np.log(theta) + (b - 1) * np.log1p(-theta) - betaln(a, b)
        return log_density.sum(axis=1)

    @staticmethod
    def _clip(theta):
        return np.clip(theta, 1e-12, 1 - 1e-12)


class Unweighted(Coins):
    """The fault: auxiliaries from q_i that are weighted as if they were from H."""

    weighted = False


class Case:
    """Rows, their likelihood and their posterior.

    Parameters
    ----------
    name : str
        One of NAMES, or "coins".
    n : int
    likelihood : {"on", "off"}
    user : type
        Class of the coins' likelihood.
    """

    def __init__(self, name, n, likelihood="on", user=Coins):
        if name == "coins":
            X = np.array(COINS[:n], dtype=float)
            self.family, self.hyper = "bernoulli", Coins.hyper
            self.likelihood, self.X = user(), X
            self.rows = self.likelihood.encode(X)
            return
        X, self.hyper = (ON if likelihood == "on" else OFF)[name]
        every, X = np.array(X), np.array(X[:n])
        self.family = name
        flat = self.flat(self.hyper)
        n_hyper = X.shape[1] if name in ("normal", "poisson") else 1
        self.likelihood = LIKELIHOODS[name].of(every, [flat] * n_hyper, [])
        self.rows = self.likelihood.encode(X)
        counted = name in ("multinomial", "poisson")
        scales, offsets = self.likelihood.schema.scales, self.likelihood.schema.offsets
        self.X = X if counted else ((X - offsets) / scales).astype(np.float32)

    def flat(self, hyper):
        if self.family == "multinomial":
            return np.array([hyper["pseudo_counts"]])
        return hyper_vector(self.family, hyper)

    def law(self, alpha, d):
        """(partitions, probabilities)."""
        return posterior(self.X, self.family, self.hyper, alpha, d)


def advance(chain, stage, n_segments, n_steps, shards):
    """Run segments, without a pool."""
    if chain.state.members is None:
        reports = [first_report(shards.encoded(p), *a, STOP) for p, a in chain.first_tasks()]
        chain.synchronise(reports)
    for _ in range(n_segments):
        function, tasks = chain.tasks(stage, n_steps)
        chain.synchronise([function(shards.encoded(p), *a, STOP) for p, a in tasks])


def end_counts(
    stage, case, shard_of, alpha, d, *, n_draws, n_segments=2, n_steps=1, seed=0, law=None
):
    """Counts of the partitions at which independent chains end.

    Parameters
    ----------
    stage : Stage
    case : Case
    shard_of : sequence of int
    law : pair, optional
        As case.law(alpha, d).
    """
    shards = HandShards(case.rows, shard_of)
    partitions, chances = case.law(alpha, d) if law is None else law
    starts = np.random.default_rng(seed).choice(len(partitions), n_draws, p=chances)
    counts = Counter()
    for i, start in enumerate(starts):
        labels = np.array(partitions[start])
        chain = AcceleratedChain(shards, case.likelihood, [[alpha, d]], labels, [seed, i])
        advance(chain, stage, n_segments, n_steps, shards)
        counts[canonical(chain.labels())] += 1
    return counts
