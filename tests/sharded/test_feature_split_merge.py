"""Splits and merges of uncollapsed features against the enumerated posterior.

Independent states begin at exact draws of the posterior and take a few of the moves; the counts of
where they end have the posterior's law if and only if the move leaves it invariant. Nothing else
moves the rows. One try each: a right move fails one of the N_EXACT tests with probability N_EXACT *
LEVEL, 1 in 1000. Planted faults must be seen at p < FAULT; several moves show them better than many
draws.
"""

from collections import Counter
from functools import cache

import numpy as np
import pytest
from scipy.special import gammaln

from oracles.accelerated_enumeration import chi_square, posterior
from oracles.enumeration import canonical
from oracles.mixtures import hyper_vector
from skanneal.likelihoods import LIKELIHOODS, Likelihood
from skanneal.parallel import InterruptNote, StopFlag
from skanneal.partition_priors import PitmanYor
from skanneal.sharded import ExactStage, SliceSampler, Uncollapsed
from skanneal.sharded import _split_merge as module
from skanneal.sharded._chain import AcceleratedChain, ShardedRun
from skanneal.sharded._shards import ShardPool, Shards
from skanneal.sharded._split_merge import draw_pairs, split_and_merge

STOP = StopFlag()
N_MOVES, N_PAIRS = 8, 4
NUMBERS = [[-0.5, -0.5], [0.75, 0.5], [-0.25, 0.75], [0.5, -1.0], [1.0, 0.25], [-1.0, 0.0]]
COUNTS = [[2, 0, 1], [0, 2, 1], [3, 1, 0], [1, 0, 1], [0, 1, 2], [1, 1, 0]]
DATA = {
    ("multinomial", "on"): (COUNTS, {"pseudo_counts": 1.5}),
    ("normal", "on"): (NUMBERS, {"mu0": 0.0, "kappa0": 0.8, "nu0": 3.0, "sigma2_0": 0.9}),
    # off: a single column of counts, and features that are all the same
    ("multinomial", "off"): ([[1], [2], [1], [3], [1], [2]], {"pseudo_counts": 0.7}),
    ("normal", "off"): (NUMBERS, {"mu0": 0.0, "kappa0": 1e7, "nu0": 1e7, "sigma2_0": 1.0}),
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
            flat = [hyper_vector(name, hyper)] * X.shape[1]
        likelihood = LIKELIHOODS[name].of(X, flat, [])
        rows = likelihood.encode(X)
        cells = X
        if name == "normal":
            schema = likelihood.schema
            cells = ((X - schema.offsets) / schema.scales).astype(np.float32)
        self.law = posterior(cells, name, hyper, alpha, d)
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


def p_value(one, seed, n_draws):
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


# (name, data, rows, shards, concentration, discount), class of the user's likelihood
QUICK = [
    (("multinomial", "on", 5, 2, 0.8, 0.4), None),
    (("multinomial", "off", 5, 1, 0.1, 0.5), None),
    (("normal", "on", 4, 3, 1.0, 0.0), None),
    (("multinomial", "on", 5, 1, 1.0, 0.0), NotConjugate),
    (("normal", "on", 4, 2, 0.8, 0.4), NotConjugate),
]
LONG = [
    *QUICK,
    (("multinomial", "on", 6, 3, 1.5, 0.0), None),
    (("multinomial", "off", 5, 3, 1.0, 0.0), None),
    (("normal", "on", 5, 2, 0.8, 0.4), None),
    (("normal", "off", 4, 1, 1.2, 0.3), None),
    (("multinomial", "off", 5, 3, 0.1, 0.5), NotConjugate),
    (("normal", "on", 5, 1, 1.0, 0.0), NotConjugate),
    (("normal", "off", 4, 3, 1.0, 0.0), NotConjugate),
]
N_EXACT = len(QUICK) + len(LONG)
LEVEL, FAULT = 1e-3 / N_EXACT, 1e-6


@pytest.mark.parametrize("arguments, wrap", QUICK, ids=str)
@pytest.mark.few(1)
def test_exact(arguments, wrap):
    assert p_value(case(*arguments, wrap), 1, 120) > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("arguments, wrap", LONG, ids=str)
def test_exact_with_many_draws(arguments, wrap):
    assert p_value(case(*arguments, wrap), 2, 800) > LEVEL


# ------------------------------------------------------------------------------------------ faults
class OneMore(PitmanYor):
    """Counts a cluster more than there are."""

    def log_split(self, n_clusters, a, b):
        return super().log_split(n_clusters + 1, a, b)


def plant(fault, one, monkeypatch):
    """Make the move wrong."""
    if fault == "sides at no price":

        def divide(*arguments):
            moved, statistics, n_second, log_a, log_gain = right(*arguments)
            return moved, statistics, n_second, 0 * log_a, log_gain

        right = module.divide_rows
        monkeypatch.setattr(module, "divide_rows", divide)
    elif fault == "launched by the labels":  # of a merge: a split's rows have none on sides

        def divide(*arguments):
            return right(*arguments[:-2], False, arguments[-1])

        right = module.divide_rows
        monkeypatch.setattr(module, "divide_rows", divide)
    elif fault == "one cluster more":
        monkeypatch.setattr(one, "prior", OneMore(*one.prior.point))
    elif fault == "pairs alike":
        monkeypatch.setattr(module, "log_pair_ratio", lambda n_rows, size: 0.0)


COUNTED = "multinomial", "on", 5, 1, 1.0, 0.0
ALIKE = "multinomial", "off", 5, 1, 0.1, 0.5  # a small concentration: K matters
FAULTS = [
    ("sides at no price", COUNTED, None, 150),
    ("one cluster more", ALIKE, None, 450),
    ("pairs alike", COUNTED, None, 300),
    ("H over q is 1", ("normal", "on", 4, 2, 0.8, 0.4), Unweighted, 250),
]
LONG_FAULTS = [
    ("sides at no price", COUNTED, NotConjugate, 500),
    ("one cluster more", ALIKE, NotConjugate, 800),
    ("pairs alike", COUNTED, NotConjugate, 300),
    ("H over q is 1", COUNTED, Unweighted, 1000),
    ("launched by the labels", ("normal", "on", 4, 1, 1.0, 0.0), None, 2500),
]


@pytest.mark.parametrize("fault, arguments, wrap, n_draws", FAULTS)
@pytest.mark.few(1)
def test_a_fault_is_seen(fault, arguments, wrap, n_draws, monkeypatch):
    one = case(*arguments, wrap)
    plant(fault, one, monkeypatch)
    assert p_value(one, 3, n_draws) < FAULT


@pytest.mark.slow
@pytest.mark.parametrize("fault, arguments, wrap, n_draws", LONG_FAULTS)
def test_a_fault_is_seen_with_many_draws(fault, arguments, wrap, n_draws, monkeypatch):
    one = case(*arguments, wrap)
    plant(fault, one, monkeypatch)
    assert p_value(one, 4, n_draws) < FAULT


# ------------------------------------------------------------------------------------------- parts
def test_law_of_the_pairs():
    """The first pair has r(j | i) / n; a row alone finds no companion."""
    one, n = case("multinomial", "on", 6, 3, 1.5, 0.0, None), 6
    labels = np.array([0, 0, 0, 1, 1, 2])
    generator = np.random.Generator(np.random.PCG64(5))
    state, counts = one.state(labels, generator), Counter()
    for _ in range(3000):
        pairs = draw_pairs(state, 1, generator)
        counts[tuple(int(one.rows_of[p][at]) for p, at in pairs[0][2:]) if pairs else None] += 1
    law = {None: 0.5 / n}
    for i in range(n):
        for j in set(range(n)) - {i}:
            own = (labels == labels[i]).sum() - 1
            law[i, j] = (0.5 / (n - 1) + (0.5 / own if labels[i] == labels[j] else 0.0)) / n
    assert chi_square(counts, law) > 1e-3


@pytest.mark.parametrize("wrap", [None, NotConjugate])
def test_the_state_stays_consistent(wrap):
    one = case("multinomial", "on", 6, 3, 1.5, 0.0, wrap)
    generator = np.random.Generator(np.random.PCG64(6))
    state, n_accepted = one.state([0, 0, 0, 0, 1, 1], generator), 0
    for _ in range(60):
        before = state.n_clusters, state.theta
        info = one.move(state, generator)
        n_accepted += info.accepted
        labels = one.labels(state)
        assert set(labels) == set(range(state.n_clusters))
        assert abs(state.n_clusters - before[0]) <= info.accepted <= info.proposed <= N_PAIRS
        np.testing.assert_array_equal(state.sizes, np.bincount(labels))
        expected = one.likelihood.statistics(one.rows, labels, state.n_clusters)
        np.testing.assert_allclose(state.statistics, expected, atol=1e-12)
        if wrap is None:
            assert state.theta is None
        else:
            assert len(state.theta) == state.n_clusters
    assert n_accepted > 10


def test_without_a_proposal_there_is_no_move():
    class Silent(NotConjugate):
        proposal_draw, proposal_logpdf = Likelihood.proposal_draw, Likelihood.proposal_logpdf

    one = Case("multinomial", "on", 4, 1, 1.0, 0.0, Silent)
    generator = np.random.Generator(np.random.PCG64(7))
    assert one.move(one.state([0, 0, 1, 1], generator), generator).proposed == 0


# -------------------------------------------------------------------------------------- in a chain
def planted(n_rows, n_clusters, seed):
    """Rows of well separated clusters, row r in cluster r % n_clusters."""
    generator = np.random.Generator(np.random.PCG64(seed))
    centres = 6.0 * generator.standard_normal((n_clusters, 8))
    return np.resize(centres, (n_rows, 8)) + generator.standard_normal((n_rows, 8))


def begun(X, seed):
    """Shards, and a chain of one cluster on them."""
    likelihood = LIKELIHOODS["normal"].of(X)
    shards = Shards(X, 2, likelihood.encode)
    labels = np.zeros(len(X), np.int32)
    seed = np.random.SeedSequence(seed)
    return shards, AcceleratedChain(shards, likelihood, [[1.0, 0.0]], labels, seed)


@pytest.mark.parametrize("make", [ExactStage, SliceSampler])
@pytest.mark.few(1)
def test_one_cluster_falls_into_the_planted_ones(make):
    """From one cluster, at most 60 synchronisations: with the move all 10 clusters have come apart
    in each of 4 chains, without it in none."""
    apart = {}
    for n_pairs in (0, make.n_pairs):
        stage, apart[n_pairs] = make(3), 0
        stage.n_pairs = n_pairs
        for seed in range(4):
            shards, chain = begun(planted(1000, 10, seed), seed)
            with ShardPool(shards) as pool:
                run = ShardedRun(pool, [chain], InterruptNote())
                run.first()
                for _ in range(60):
                    run.stage(stage, [1])
                    labels = chain.labels()
                    main = [np.bincount(labels[k::10]).argmax() for k in range(10)]
                    if len(set(main)) == 10:
                        apart[n_pairs] += 1
                        break
    assert apart == {0: 0, make.n_pairs: 4}


@pytest.mark.parametrize("make", [ExactStage, SliceSampler])
def test_the_same_bits_for_any_number_of_jobs(make):
    X, found = planted(300, 4, 8), []
    for n_jobs in (1, 2):
        chains = [begun(X, seed) for seed in (9, 10)]
        with ShardPool(chains[0][0], n_jobs) as pool:
            run = ShardedRun(pool, [chain for _, chain in chains], InterruptNote())
            run.first()
            run.stage(make(3), [2] * 6)
        found.append([(c.labels().tolist(), c.trace["log_joint"], c.n_tried) for c in run.chains])
    assert found[0] == found[1]
    assert all(n_tried > 0 for *_, n_tried in found[0])


@pytest.mark.parametrize("function", ["launch_atoms", "divide_rows"])
def test_an_interrupt_drops_the_move(function):
    """The segment before it is kept and recorded."""
    shards, chain = begun(planted(200, 4, 11), 12)
    with ShardPool(shards) as pool:

        class Interrupted:
            shards = pool.shards

            def run(self, called, tasks, seconds=None):
                results, _ = pool.run(called, tasks)
                if called is not getattr(module, function):
                    return results, False
                before.append((chain.labels(), chain.state.statistics.copy()))
                return [None] * len(results), True

        before = []
        run = ShardedRun(Interrupted(), [chain], InterruptNote())
        run.first()
        run.stage(ExactStage(3), [1] * 5)
    assert run.interrupted and len(before) == 1 and chain.n_tried == 0
    assert len(chain.trace["n_components"]) == 1 and chain.done == 1
    np.testing.assert_array_equal(chain.labels(), before[0][0])
    np.testing.assert_array_equal(chain.state.statistics, before[0][1])
