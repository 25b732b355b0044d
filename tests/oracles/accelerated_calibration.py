"""The logistic-normal multinomial drawn from its prior, and chains that begin at the truth.

One of the priors of a grid, a partition, Lambda, a feature per cluster, and a row of counts for
every row are drawn from the model itself. A chain that begins at this truth has, after any number
of segments, again the joint law of the model: its partition and prior have their prior law, which
is known exactly. Draws that are far apart are independent given the rows, the truth among them, so
that the truth's rank among the others is uniform, for any quantity.
"""

from collections import Counter

import numpy as np

from oracles.accelerated_chains import STOP, HandShards, advance
from oracles.enumeration import canonical, log_eppf, partitions
from skanneal.likelihoods import LogisticNormal
from skanneal.partition_priors import PitmanYor
from skanneal.sharded._chain import AcceleratedChain
from skanneal.sharded._segments import first_report

N_ROWS, N_COLUMNS, RANK, TOTAL = 5, 3, 2, 8


class Unweighted(LogisticNormal):
    """The fault: auxiliaries from q_i that are weighted as if they were from H."""

    def proposal_logpdf(self, theta, row):
        return self.log_prior(theta)


class World:
    """The model.

    Parameters
    ----------
    grid : sequence of (concentration, discount)
    shard_of : sequence of int
    likelihood : type
    """

    def __init__(self, grid, shard_of, likelihood=LogisticNormal):
        self.grid, self.shard_of, self.make = grid, shard_of, likelihood

    def law(self):
        """Of (partition, index in the grid)."""
        return {
            (labels, g): np.exp(log_eppf(np.bincount(labels).tolist(), *prior)) / len(self.grid)
            for g, prior in enumerate(self.grid)
            for labels in partitions(N_ROWS)
        }

    def draw(self, rng, seed):
        """A chain at a truth, and the rows."""
        law = self.law() if not hasattr(self, "_law") else self._law
        self._law = law
        (labels, g) = list(law)[rng.choice(len(law), p=list(law.values()))]
        labels = np.array(labels)
        n_features = labels.max() + 1
        loading = rng.standard_normal((N_COLUMNS, RANK))
        theta = rng.standard_normal((n_features, RANK))
        X = np.array([rng.multinomial(TOTAL, p) for p in softmax(theta @ loading.T)[labels]])
        likelihood = self.make.of(X, rank=RANK)
        likelihood.set_state({"loading": loading})
        shards = HandShards(likelihood.encode(X), self.shard_of)
        chain = AcceleratedChain(shards, likelihood, self.grid, labels, seed)
        chain.state.prior, chain.state.theta = PitmanYor(*self.grid[g]), theta
        sent = n_features, likelihood, STOP
        reports = [
            first_report(shards.encoded(p), own, *sent) for p, own in enumerate(chain.state.labels)
        ]
        chain.state.gather(reports)
        return chain, X

    def which(self, chain):
        """The prior's index in the grid."""
        prior = chain.state.prior
        return list(self.grid).index((prior.concentration, prior.discount))

    def quantities(self, chain, X):
        """What does not depend on the features' numbers."""
        labels, theta = chain.labels(), chain.state.theta
        loading = chain.state.likelihood.loading
        shares = softmax(theta @ loading.T)
        log_joint = (X * np.log(shares[labels])).sum() - 0.5 * (theta**2).sum()
        log_joint -= 0.5 * (loading**2).sum() + len(theta) * RANK * 0.5 * np.log(2 * np.pi)
        prior = chain.state.prior
        log_joint += log_eppf(chain.state.sizes.tolist(), prior.concentration, prior.discount)
        return {
            "n_components": len(theta),
            "together": float(labels[0] == labels[1]),
            "prior": self.which(chain),
            "log_joint": log_joint,
            "share": shares[labels[0], 0],
            "distance": np.abs(shares[labels[0]] - shares[labels[1]]).sum(),
        }


def softmax(logits):
    """Probabilities of every line."""
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def end_counts(world, stage, n_draws, *, n_segments=3, n_steps=2, seed=0):
    """Counts of (partition, index in the grid) after some segments."""
    rng, counts = np.random.default_rng(seed), Counter()
    for i in range(n_draws):
        chain, _ = world.draw(rng, [seed, i])
        advance(chain, stage, n_segments, n_steps, chain.shards)
        counts[canonical(chain.labels()), world.which(chain)] += 1
    return counts


def ranks(world, stage, n_truths, *, n_others=7, n_segments=8, n_steps=2, seed=0):
    """For each quantity, how often the truth had rank 0 .. n_others; ties are broken at random."""
    rng, found = np.random.default_rng(seed), {}
    for i in range(n_truths):
        chain, X = world.draw(rng, [seed, i])
        draws = [world.quantities(chain, X)]
        for _ in range(n_others):
            advance(chain, stage, n_segments, n_steps, chain.shards)
            draws.append(world.quantities(chain, X))
        for name in draws[0]:
            values = np.array([draw[name] for draw in draws])
            below = (values[1:] < values[0]).sum()
            rank = int(below + rng.integers((values[1:] == values[0]).sum() + 1))
            found.setdefault(name, Counter())[rank] += 1
    return found
