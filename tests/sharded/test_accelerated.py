"""AcceleratedDPMixture's algorithms against enumerated posteriors, likelihood on and off.

Independent chains begin at draws from the posterior, run a few segments and are counted at their
ends (accelerated_chains.py): chi-square against the same posterior, one try, at LEVEL each, 1e-4
over the file. A fault is seen if the same test, on the same data, has p below LEVEL.
"""

import warnings
from collections import Counter
from itertools import product

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from oracles.accelerated_chains import (
    NAMES,
    Case,
    Coins,
    HandShards,
    Unweighted,
    advance,
    end_counts,
)
from oracles.accelerated_enumeration import chi_square
from oracles.accelerated_tails_enumeration import Tails
from oracles.enumeration import canonical, enumerate_joint
from oracles.reversible import FAULT
from oracles.toys import EXACT, toy_of
from skanneal.estimators import AcceleratedDPMixture
from skanneal.likelihoods import LIKELIHOODS, checked
from skanneal.parallel import InterruptNote
from skanneal.schedules import AcceleratedSchedule
from skanneal.sharded import (
    AcceleratedStage,
    Auxiliary,
    ExactStage,
    Importance,
    SliceSampler,
)
from skanneal.sharded._chain import AcceleratedChain, ShardedRun
from skanneal.sharded._shards import ShardPool, Shards

LEVEL = 1e-4 / 400
PRIORS = [(1.3, 0.0), (0.7, 0.3)]
NEGATIVE = -0.1, 0.3
# the shard of every row, by number of shards
DEALT = {
    2: {1: [0, 0], 2: [0, 1]},
    3: {1: [0, 0, 0], 2: [0, 1, 1], 3: [2, 0, 1]},
    6: {1: [0] * 6, 2: [0, 1, 1, 0, 1, 1], 3: [0, 1, 2, 2, 0, 0], 6: [3, 1, 4, 0, 5, 2]},
}
SHARDS = [(n, n_shards) for n, dealt in DEALT.items() for n_shards in dealt]
each_dealt = pytest.mark.parametrize("n, n_shards", SHARDS)
each_prior = pytest.mark.parametrize("alpha, d", PRIORS)
every_prior = pytest.mark.parametrize("alpha, d", [*PRIORS, NEGATIVE])


def p_value(stage, case, shard_of, alpha, d, **options):
    """Of independent chains' ends against the posterior."""
    law = case.law(alpha, d)
    return chi_square(end_counts(stage, case, shard_of, alpha, d, law=law, **options), law)


def assert_exact(*args, **options):
    """No evidence against it, at LEVEL."""
    assert p_value(*args, **options) > LEVEL


# ------------------------------------------------------------------------------ the data
@pytest.mark.parametrize("likelihood", ["on", "off"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", DEALT)
@each_prior
@pytest.mark.few(12)
def test_posteriors_are_spread(name, n, likelihood, alpha, d):
    chances = Case(name, n, likelihood).law(alpha, d)[1]
    assert max(chances) < 0.6
    prior = Case("multinomial", n, "off").law(alpha, d)[1]
    shift = np.abs(chances - prior).max()
    assert shift > 0.03 if likelihood == "on" else shift < 1e-4


# ----------------------------------------------------------------------- the exact stage
@pytest.mark.parametrize(
    "name, likelihood",
    [("multinomial", "on"), pytest.param("normal", "on", marks=pytest.mark.slow)],
)
@each_dealt
@each_prior
@pytest.mark.few(2)
def test_exact_stage(name, likelihood, n, n_shards, alpha, d):
    n_steps = 1 if n_shards % 2 else 3
    n_draws = 400 if n < 6 else 250
    case = Case(name, n, likelihood)
    dealt = DEALT[n][n_shards]
    assert_exact(ExactStage(3), case, dealt, alpha, d, n_draws=n_draws, n_steps=n_steps, seed=1)


@pytest.mark.parametrize("n, n_shards", [(3, 3), (6, 2)])
@each_prior
@pytest.mark.few(1)
def test_exact_stage_without_likelihood(n, n_shards, alpha, d):
    case, dealt = Case("multinomial", n, "off"), DEALT[n][n_shards]
    assert_exact(ExactStage(3), case, dealt, alpha, d, n_draws=400, seed=2)


@pytest.mark.slow
@pytest.mark.parametrize("name, likelihood", list(product(NAMES, ["on", "off"])))
@each_dealt
@every_prior
def test_exact_stage_at_length(name, likelihood, n, n_shards, alpha, d):
    n_steps = 3 if n_shards % 2 else 1
    case, dealt = Case(name, n, likelihood), DEALT[n][n_shards]
    assert_exact(ExactStage(3), case, dealt, alpha, d, n_draws=2000, n_steps=n_steps, seed=3)


def inferred_p_value(stage, discounts, n_chains, seed):
    """Concentration, discount and a hyperparameter drawn at every synchronisation: the law of all
    of them and of the partition, jointly."""
    case = Case("multinomial", 3)
    pseudo_counts, alphas = [0.4, 1.5, 5.0], [0.3, 2.0]
    rows = [tuple(row) for row in case.X.tolist()]
    hypers = [{"pseudo_counts": a} for a in pseudo_counts]
    law = enumerate_joint([("multinomial", rows, hypers)], alphas, discounts)
    grid = list(product(alphas, discounts))
    likelihood = LIKELIHOODS["multinomial"].of(case.X, [[1.5]], [[np.array(pseudo_counts)]])
    shards, states, counts = HandShards(case.rows, [0, 1, 1]), list(law), Counter()
    starts = np.random.default_rng(seed).choice(len(states), n_chains, p=list(law.values()))
    for i, start in enumerate(starts):
        labels, alpha, d, (which,) = states[start]
        likelihood.set_state({"hyper": [[pseudo_counts[which]]]})
        chain = AcceleratedChain(shards, likelihood, grid, np.array(labels), [seed, i])
        chain.state.prior = type(chain.state.prior)(alpha, d)
        advance(chain, stage, 2, 2, shards)
        state, hyper = chain.state, float(likelihood.hyper[0][0])
        found = canonical(chain.labels()), state.prior.concentration, state.prior.discount
        counts[*found, (int(np.argmin(np.abs(np.array(pseudo_counts) - hyper))),)] += 1
    return chi_square(counts, law)


@pytest.mark.slow
def test_inferred_with_the_partition():
    assert inferred_p_value(ExactStage(3), (0.0, 0.4), 1200, 4) > LEVEL


# ------------------------------------------------------------------------ other algorithms
ONE_SHARD = [Auxiliary(1), Auxiliary(3), Importance(3)]
OTHERS = [(stage, 1) for stage in ONE_SHARD] + [(SliceSampler(3), 1), (SliceSampler(3), 3)]
each_other = pytest.mark.parametrize("stage, n_shards", OTHERS, ids=lambda x: getattr(x, "name", x))


@each_other
@pytest.mark.parametrize("n", [3, 6])
@each_prior
@pytest.mark.few(1)
def test_other_algorithms(stage, n_shards, n, alpha, d):
    case, dealt = Case("multinomial", n), DEALT[n][n_shards]
    assert_exact(stage, case, dealt, alpha, d, n_draws=300, seed=5)


@pytest.mark.slow
@each_other
@pytest.mark.parametrize("name, likelihood", list(product(NAMES, ["on", "off"])))
@pytest.mark.parametrize("n", [3, 6])
@every_prior
def test_other_algorithms_at_length(stage, n_shards, name, likelihood, n, alpha, d):
    case, dealt = Case(name, n, likelihood), DEALT[n][n_shards]
    assert_exact(stage, case, dealt, alpha, d, n_draws=2000, n_steps=2, seed=6)


class Near(SliceSampler):
    """The slice sampler with a horizon that leaves many features unseen."""

    @staticmethod
    def log_horizon(n_rows, alpha, d):
        return np.log(n_rows)


class Thawed(Near):
    """The fault: a horizon for the pieces that are broken, and none for what has rows."""

    @staticmethod
    def seen(log_times, horizon):
        return np.ones(len(log_times), bool)


HEAVY = [(0.7, 0.7), (-0.5, 0.9)]
each_heavy = pytest.mark.parametrize("alpha, d", HEAVY)


@pytest.mark.parametrize("cls", [SliceSampler, Near])
@pytest.mark.parametrize("n, n_shards", [(3, 3), (6, 1)])
@each_heavy
@pytest.mark.few(3)
def test_slices_of_a_heavy_tail(cls, n, n_shards, alpha, d):
    case, dealt = Case("multinomial", n), DEALT[n][n_shards]
    assert_exact(cls(3), case, dealt, alpha, d, n_draws=150, seed=17)


@pytest.mark.slow
@pytest.mark.parametrize("cls", [SliceSampler, Near])
@pytest.mark.parametrize("name, likelihood", list(product(NAMES, ["on", "off"])))
@pytest.mark.parametrize("n, n_shards", [(3, 1), (3, 3), (6, 2)])
@pytest.mark.parametrize("alpha, d", [*PRIORS, *HEAVY])
def test_slices_of_a_heavy_tail_at_length(cls, name, likelihood, n, n_shards, alpha, d):
    case, dealt = Case(name, n, likelihood), DEALT[n][n_shards]
    assert_exact(cls(3), case, dealt, alpha, d, n_draws=2000, seed=18)


@pytest.mark.parametrize("cls", [SliceSampler, Near])
@pytest.mark.few(1)
def test_slices_with_the_discount_inferred(cls):
    assert inferred_p_value(cls(3), (0.0, 0.5, 0.9), 400, 19) > LEVEL


def test_a_horizon_for_the_pieces_alone_is_seen():
    case, options = Case("multinomial", 3), {"n_draws": 200, "n_segments": 6, "seed": 20}
    assert_exact(Near(3), case, [0, 1, 1], 0.7, 0.7, **options)
    assert p_value(Thawed(3), case, [0, 1, 1], 0.7, 0.7, **options) < LEVEL


@pytest.mark.parametrize(
    "alpha, d", [(0.1, 0.7), (1.0, 0.9), (1.0, 0.99), (1e9, 0.0), (100.0, 0.5)]
)
def test_few_features_are_offered_at_a_time(alpha, d):
    rng = np.random.default_rng(21)
    X = np.r_[rng.normal(-3, 1, (50, 2)), rng.normal(3, 1, (50, 2))]
    likelihood = LIKELIHOODS["normal"].of(X)
    shards, stage = HandShards(likelihood.encode(X), np.arange(100) % 2), SliceSampler(3)
    chain = AcceleratedChain(shards, likelihood, [[alpha, d]], np.arange(100) % 5, 0)
    advance(chain, stage, 5, 1, shards)
    for _ in range(5):
        advance(chain, stage, 1, 1, shards)
        state = chain.state
        stage.plan(state, 1, np.random.default_rng(22))
        # a time has as many pieces on average as the prior expects clusters, however many K are
        assert len(state.offered) < 20 * (state.n_clusters + 20)
        state.offered = None


# --------------------------------------------------------------------- a user's likelihood
def checked_coins():
    """As AcceleratedDPMixture takes a user's likelihood."""
    return checked(Coins(), True)


USER = [
    *[(stage, 1) for stage in (Auxiliary(3), Importance(3))],
    *[pytest.param(stage, 1, marks=pytest.mark.slow) for stage in (Auxiliary(1), Importance(1))],
    *[(SliceSampler(3), 1), (SliceSampler(3), 2)],
    *[(ExactStage(1), 1), (ExactStage(1), 2), (ExactStage(3), 3)],
]
each_user = pytest.mark.parametrize("stage, n_shards", USER, ids=lambda x: getattr(x, "name", x))


@each_user
@pytest.mark.few(1)
def test_user_likelihood(stage, n_shards):
    case = Case("coins", 3, user=checked_coins)
    assert_exact(stage, case, DEALT[3][n_shards], 0.7, 0.3, n_draws=300, n_steps=2, seed=7)


@pytest.mark.slow
@each_user
@pytest.mark.parametrize("n", [3, 6])
@every_prior
def test_user_likelihood_at_length(stage, n_shards, n, alpha, d):
    case, dealt = Case("coins", n), DEALT[n][n_shards]
    assert_exact(stage, case, dealt, alpha, d, n_draws=3000, n_steps=2, seed=8)


# ---------------------------------------------------------------------- negative controls
class Empties(ExactStage):
    """The published rule: rows of an anchored shard may empty a feature."""

    @staticmethod
    def held(anchored, is_free):
        return ExactStage.held(anchored, is_free) & is_free


class Everything(ExactStage):
    """The last local member stays, but every feature is in I."""

    @staticmethod
    def split(own, free):
        return own[~free].any(axis=0), own.any(axis=0)


class TwiceDiscounted(ExactStage):
    """The tail's total is discounted like its features."""

    def tail_rows(self, state, wide):
        n_features = ((state.members > 0) & ~wide).sum(axis=1)
        return super().tail_rows(state, wide) - state.prior.discount * n_features


class AllFree(ExactStage):
    """Several tails with a discount."""

    @staticmethod
    def draw_free(n_shards, discount, generator):
        return np.ones(n_shards, bool)


class Leaves(ExactStage):
    """A row of a free shard may be the last to leave a feature of free shards only."""

    @staticmethod
    def held(anchored, is_free):
        return ExactStage.held(anchored, is_free) & (not is_free)


class Unshared(SliceSampler):
    """Rows of two shards that take the same new feature come into two clusters."""

    def plan(self, state, n_steps, generator):
        function, arguments = super().plan(state, n_steps, generator)
        n_old, offered, state.offered = state.n_clusters, len(state.offered), state.offered[:0]

        def apart(rows, *sent):
            labels, statistics, _ = function(rows, *sent)
            used = np.unique(labels[labels >= n_old])
            number = np.arange(n_old + offered)
            number[used] = n_old + np.arange(len(used))
            kept = [*range(n_old), *used]
            return number[labels], statistics[kept], None

        return apart, arguments


DISCOUNT = 0.1, 0.8
FAULTS = [
    (Everything, [0, 1, 1], (1.3, 0.0), 200),
    pytest.param(TwiceDiscounted, [0, 1, 1], DISCOUNT, 400, marks=pytest.mark.slow),
    pytest.param(Empties, [0, 1, 1], (1.3, 0.0), 800, marks=pytest.mark.slow),
    pytest.param(AllFree, [0, 0, 1, 1], DISCOUNT, 400, marks=pytest.mark.slow),
    pytest.param(Leaves, [0, 1, 1], (1.3, 0.0), 400, marks=pytest.mark.slow),
]


@pytest.mark.parametrize("fault, dealt, prior, n_draws", FAULTS)
@pytest.mark.slow
def test_faults_of_the_exact_stage_are_seen(fault, dealt, prior, n_draws):
    case = Case("multinomial", len(dealt))
    options = {"n_draws": n_draws, "n_segments": 6, "n_steps": 3, "seed": 9}
    assert_exact(ExactStage(3), case, dealt, *prior, **options)
    assert p_value(fault(3), case, dealt, *prior, **options) < LEVEL


@pytest.mark.slow
def test_new_features_apart_are_seen():
    case, options = Case("multinomial", 3, "off"), {"n_draws": 700, "n_segments": 6, "seed": 15}
    assert_exact(SliceSampler(3), case, [0, 1, 2], 0.3, 0.0, **options)
    assert p_value(Unshared(3), case, [0, 1, 2], 0.3, 0.0, **options) < LEVEL


@pytest.mark.slow
def test_unweighted_auxiliaries_are_seen():
    options = {"n_draws": 400, "n_segments": 3, "seed": 10}
    for user, seen in ((Coins, False), (Unweighted, True)):
        case = Case("coins", 3, user=user)
        p = p_value(Importance(2), case, [0, 0, 0], 0.7, 0.3, **options)
        assert (p < LEVEL) == seen


# ------------------------------------------------------------------- several tails, exactly
def free_sets(n_shards, d):
    """What F may be."""
    everyone = set(range(n_shards))
    if d > 0:
        return [{p} for p in everyone]
    return [everyone, *(everyone - {p} for p in everyone)]


def tails_of(toy, shards, free, rng, **options):
    """Segments from every state, with any a_p if they may be any."""
    shares = None
    if toy.d == 0:
        shares = dict(zip(free, rng.uniform(0.1, 2.0, len(free)).tolist(), strict=True))
    for state in toy.law():
        yield Tails(toy, state, shards, free, shares=shares, **options)


@pytest.mark.parametrize("shards", [(0, 0, 1), (0, 1, 2), (0, 0, 1, 1), (0, 1, 1, 2)])
@every_prior
@pytest.mark.few(4)
def test_rows_of_several_tails_are_reversible(shards, alpha, d):
    toy, rng = toy_of(len(shards), alpha, d), np.random.default_rng(11)
    for free in free_sets(max(shards) + 1, d):
        for segment in tails_of(toy, shards, free, rng):
            log_w = segment.random_weights(rng)
            assert max(segment.error(row, log_w) for row in range(toy.n_rows)) < EXACT


@pytest.mark.parametrize("shards", [(0, 1, 2), (0, 0, 1, 1)])
@every_prior
@pytest.mark.few(3)
def test_weights_of_several_tails_integrate_to_the_posterior(shards, alpha, d):
    toy, rng = toy_of(len(shards), alpha, d), np.random.default_rng(12)
    for free in free_sets(max(shards) + 1, d):
        for segment in tails_of(toy, shards, free, rng):
            excess = [segment.log_integrated(s) - segment.log_weight(s) for s in segment.states()]
            assert np.ptp(excess) < 1e-11


def test_faults_of_several_tails_are_seen():
    rng, shards = np.random.default_rng(13), (0, 0, 1)

    def largest(toy, **options):
        return max(
            segment.error(row, segment.random_weights(rng))
            for segment in tails_of(toy, shards, {0, 1}, rng, **options)
            for row in range(3)
        )

    assert largest(toy_of(3, 1.3, 0.0)) < EXACT
    assert largest(toy_of(3, 1.3, 0.0), leaves=True) > FAULT
    # with a discount no share of alpha makes up for what the others' tails hold
    toy, worst = toy_of(3, 0.7, 0.3), 0.0
    for state in toy.law():
        segment = Tails(toy, state, shards, {0, 1}, shares={0: 0.35, 1: 0.35})
        log_w = segment.random_weights(rng)
        worst = max(worst, *(segment.error(row, log_w) for row in range(3)))
    assert worst > FAULT


# --------------------------------------------------------------------------- the same bits
BITS = [cls(3) for cls in (AcceleratedStage, ExactStage, Auxiliary, Importance, SliceSampler)]


def equal_arrays(a, b):
    assert a.keys() == b.keys()
    for name in a.keys() - {"header", "trace/seconds"}:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def small_chains(name, X, n_shards, n_chains=2):
    """Chains that infer all they can."""
    likelihood = [LIKELIHOODS[name].of(X) for _ in range(n_chains)]
    shards = Shards(X, n_shards, likelihood[0].encode)
    grid = list(product([0.5, 2.0], [0.0, 0.25]))
    labels = np.arange(len(X)) % 3
    chains = [AcceleratedChain(shards, own, grid, labels, i) for i, own in enumerate(likelihood)]
    return shards, chains, grid


@pytest.mark.parametrize("stage", BITS, ids=lambda stage: stage.name)
@pytest.mark.parametrize("name", ["multinomial", "logistic_normal"])
@pytest.mark.few(4)
def test_same_bits(stage, name):
    X = np.random.default_rng(14).poisson(2.0, (30, 4)) + 1
    n_shards = 1 if isinstance(stage, Auxiliary) else 3
    ends = []
    for n_jobs in (1, 2):
        shards, chains, grid = small_chains(name, X, n_shards)
        with ShardPool(shards, n_jobs) as pool:
            run = ShardedRun(pool, chains, InterruptNote())
            assert run.first()
            run.stage(stage, [2] * 6)
        ends.append([chain.to_arrays() for chain in chains])
    for a, b in zip(*ends, strict=True):
        equal_arrays(a, b)
    # stopped after half of it, and run on
    shards, chains, grid = small_chains(name, X, n_shards)
    with ShardPool(shards, 1) as pool:
        run = ShardedRun(pool, chains, InterruptNote())
        run.first()
        run.stage(stage, [2] * 3)
        stopped = [chain.to_arrays() for chain in chains]
        again = [
            AcceleratedChain.from_arrays(arrays, shards, LIKELIHOODS[name].of(X), grid)
            for arrays in stopped
        ]
        ShardedRun(pool, again, InterruptNote()).stage(stage, [2] * 3)
    for a, chain in zip(ends[0], again, strict=True):
        equal_arrays(a, chain.to_arrays())
        assert (
            a["header"].item().split('"seconds"')[0]
            == (chain.to_arrays()["header"].item().split('"seconds"')[0])
        )


# -------------------------------------------------------------------- the whole estimator
def fitted_p_value(algorithm, n_chains, seed):
    """Of the draws of chains that all begin with one cluster, after 26 sub-iterations."""
    case = Case("multinomial", 3)
    model = AcceleratedDPMixture(
        likelihood="multinomial",
        hyperparameters={"multinomial": case.hyper},
        concentration=1.3,
        algorithm=algorithm,
        schedule=AcceleratedSchedule(n_accelerated=2, n_exact=24, sync_every=2),
        n_chains=n_chains,
        n_draws=1,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # chains of one draw
        model.fit(case.X)
    return chi_square(Counter(canonical(own.labels) for (own,) in model.draws_), case.law(1.3, 0.0))


@pytest.mark.parametrize(
    "algorithm, n_chains",
    [pytest.param("collapsed", 800, marks=pytest.mark.slow), ("accelerated", 100)],
)
@pytest.mark.slow
def test_fitted_draws(algorithm, n_chains):
    assert fitted_p_value(algorithm, n_chains, 16) > LEVEL
