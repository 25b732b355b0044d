"""Splits and merges of uncollapsed features against the enumerated posterior.

Independent states begin at exact draws of the posterior and take a few of the moves; the counts of
where they end have the posterior's law if and only if the move leaves it invariant. Nothing else
moves the rows. One try each, of seeds fixed beforehand: a right move fails one of the N_EXACT tests
with probability N_EXACT * LEVEL, 1 in 1000. Faults that are planted must be seen below FAULT.
"""

from collections import Counter
from functools import cache

import numpy as np
import pytest
from scipy.special import gammaln

from accelerated_enumeration import chi_square, posterior
from enumeration import canonical
from mixtures import hyper_vector
from skanneal.likelihoods import LIKELIHOODS, Likelihood
from skanneal.moves import feature_split_merge as module
from skanneal.moves.feature_split_merge import draw_pairs, split_and_merge
from skanneal.parallel import StopFlag
from skanneal.partition_priors import PitmanYor
from skanneal.states import Uncollapsed

STOP = StopFlag()
N_DRAWS, N_MOVES, N_PAIRS = 1500, 3, 4
FAMILY = {"multinomial": "multinomial", "gaussian": "normal"}
NUMBERS = [[-0.5, -0.5], [0.75, 0.5], [-0.25, 0.75], [0.5, -1.0], [1.0, 0.25], [-1.0, 0.0]]
COUNTS = [[2, 0, 1], [0, 2, 1], [3, 1, 0], [1, 0, 1], [0, 1, 2], [1, 1, 0]]
DATA = {
    ("multinomial", "on"): (COUNTS, {"pseudo_counts": 1.5}),
    ("gaussian", "on"): (NUMBERS, {"mu0": 0.0, "kappa0": 0.8, "nu0": 3.0, "sigma2_0": 0.9}),
    # off: a single column of counts, and features that are all the same
    ("multinomial", "off"): ([[1], [2], [1], [3], [1], [2]], {"pseudo_counts": 0.7}),
    ("gaussian", "off"): (NUMBERS, {"mu0": 0.0, "kappa0": 1e7, "nu0": 1e7, "sigma2_0": 1.0}),
}


class NotConjugate(Likelihood):
    """A user's likelihood that does not say that another one's features can be integrated out.

    q of a row of counts is Dirichlet(pseudo_counts + x / 2), which is not the posterior.
    """

    def __init__(self, likelihood):
        self.likelihood = likelihood

    def prepare(self, theta):
        return self.likelihood.prepare(theta)

    def log_lik(self, rows, theta, out):
        wide = np.empty((len(rows), 16), np.float32)
        self.likelihood.log_lik(rows, theta, wide)
        out[:] = wide[:, : out.shape[1]]

    def statistics(self, rows, labels, n_features):
        return self.likelihood.statistics(rows, labels, n_features)

    def draw(self, statistics, theta, rng):
        return self.likelihood.draw(statistics, theta, rng)

    def prior_draw(self, n, rng):
        return self.likelihood.prior_draw(n, rng)

    def log_prior(self, theta):
        return self.likelihood.log_prior(theta)

    def proposal_draw(self, rows, rng):
        if self.likelihood.family != "multinomial":
            return self.likelihood.proposal_draw(rows, rng)
        each = np.arange(len(rows), dtype=np.int32)
        return self.draw(self.statistics(rows, each, len(rows)) / 2, None, rng)

    def proposal_logpdf(self, theta, row):
        if self.likelihood.family != "multinomial":
            return self.likelihood.proposal_logpdf(theta, row)
        x = self.statistics(row, np.zeros(1, np.int32), 1)[0, :-1]
        shapes = self.likelihood.pseudo_counts + x / 2
        return gammaln(shapes.sum()) - gammaln(shapes).sum() + theta @ (shapes - 1)


class Unweighted(NotConjugate):
    """The fault: H / q is taken to be 1."""

    def proposal_logpdf(self, theta, row):
        return self.log_prior(theta)


class Case:
    """Rows on shards, row r on shard r % n_shards, and the posterior of their partition."""

    def __init__(self, name, data, n, n_shards, alpha, d, wrap):
        X, hyper = DATA[name, data]
        X = np.array(X[:n])
        if name == "multinomial":
            flat = [np.array([hyper["pseudo_counts"]])]
        else:
            flat = [hyper_vector(FAMILY[name], hyper)] * X.shape[1]
        likelihood = LIKELIHOODS[name].of(X, flat, [])
        rows = likelihood.encode(X)
        cells = X
        if name == "gaussian":
            schema = likelihood.schema
            cells = ((X - schema.offsets) / schema.scales).astype(np.float32)
        self.law = posterior(cells, FAMILY[name], hyper, alpha, d)
        self.likelihood = likelihood if wrap is None else wrap(likelihood)
        self.prior = PitmanYor(alpha, d)
        self.shard_of = np.arange(n) % n_shards
        self.rows_of = [np.flatnonzero(self.shard_of == p) for p in range(n_shards)]
        self.rows, self.shards = rows, [rows[own] for own in self.rows_of]

    def state(self, labels, generator):
        """The state of a partition, features drawn from their posterior if they are needed."""
        labels = np.array(labels, dtype=np.int32)
        n = labels.max() + 1
        statistics = self.likelihood.statistics(self.rows, labels, n)
        state = Uncollapsed(self.likelihood, self.prior, None)
        state.replace([labels[own] for own in self.rows_of], statistics, None)
        if not self.likelihood.conjugate:
            state.theta = self.likelihood.draw(statistics, None, generator)
        return state

    def labels(self, state):
        out = np.empty(len(self.shard_of), np.int32)
        for own, labels in zip(self.rows_of, state.labels, strict=True):
            out[own] = labels
        return out

    def move(self, state, generator, n_pairs=N_PAIRS):
        """One move, without a pool."""
        move, results = split_and_merge(state, n_pairs, generator), None
        try:
            while True:
                function, tasks = move.send(results)
                results = [function(self.shards[p], *arguments, STOP) for p, arguments in tasks]
        except StopIteration as end:
            return end.value


@cache
def case(*arguments):
    return Case(*arguments)


def p_value(one, seed, n_draws=N_DRAWS):
    """Of the partitions that independent draws have after N_MOVES moves."""
    partitions, chances = one.law
    generator = np.random.Generator(np.random.PCG64(seed))
    counts = Counter()
    for start in generator.choice(len(partitions), n_draws, p=chances):
        state = one.state(partitions[start], generator)
        for _ in range(N_MOVES):
            one.move(state, generator)
        counts[canonical(one.labels(state))] += 1
    return chi_square(counts, one.law)


# name, data, rows, shards, concentration, discount
EXACT = [
    ("multinomial", "on", 4, 1, 1.0, 0.0),
    ("multinomial", "on", 5, 2, 0.8, 0.4),
    ("multinomial", "on", 6, 3, 1.5, 0.0),
    ("multinomial", "off", 5, 3, 1.0, 0.0),
    ("multinomial", "off", 5, 1, 0.7, 0.5),
    ("gaussian", "on", 4, 2, 0.8, 0.4),
    ("gaussian", "on", 5, 3, 1.0, 0.0),
    ("gaussian", "off", 4, 1, 1.2, 0.3),
]
GENERAL = [
    ("multinomial", "on", 5, 2, 1.0, 0.0),
    ("multinomial", "on", 4, 1, 0.8, 0.4),
    ("multinomial", "off", 5, 3, 0.7, 0.5),
    ("gaussian", "on", 4, 3, 0.8, 0.4),
    ("gaussian", "on", 5, 1, 1.0, 0.0),
]
N_EXACT = len(EXACT) + len(GENERAL)
LEVEL, FAULT = 1e-3 / N_EXACT, 1e-8


@pytest.mark.parametrize("arguments", EXACT, ids=str)
def test_features_integrated_out(arguments):
    assert p_value(case(*arguments, None), 1) > LEVEL


@pytest.mark.parametrize("arguments", GENERAL, ids=str)
def test_features_that_are_not_conjugate(arguments):
    assert p_value(case(*arguments, NotConjugate), 2) > LEVEL
