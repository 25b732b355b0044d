"""What a chain keeps of a likelihood that is not conjugate, and in which order it draws.

`log_joint` is compared with its definition, written from the formulas, at every record and in every
draw. Built-in likelihoods of which a subclass says that they are not conjugate have posteriors that
can be enumerated, hyperparameters included: independent chains begin at draws from them, run a few
segments and are counted at their ends; chi-square, one try, at LEVEL each, 1e-4 over the file.
"""

import copy
from collections import Counter
from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import beta, kstest

from oracles.accelerated_chains import STOP, Case, HandShards, advance, end_counts
from oracles.accelerated_enumeration import chi_square
from oracles.enumeration import canonical, enumerate_joint, log_eppf
from oracles.waiting_times import ROOT, Waiting, not_conjugate
from skanneal import AcceleratedDPMixture
from skanneal.likelihoods import LIKELIHOODS, checked
from skanneal.partition_priors import PitmanYor
from skanneal.schedules import AcceleratedSchedule
from skanneal.sharded import (
    Auxiliary,
    ExactStage,
    Importance,
    SliceSampler,
)
from skanneal.sharded._chain import AcceleratedChain
from skanneal.sharded._segments import first_report

LEVEL = 1e-4 / 40
ALGORITHMS = "accelerated", "hybrid", "auxiliary", "importance", "slice"
FITS = [*product(ALGORITHMS, [0.0]), ("accelerated", "infer"), ("slice", "infer")]


# ------------------------------------------------------------------- log_joint by its definition
def waiting_log_density(X, labels, theta, parameters):
    log_prior = -0.125 * (theta - parameters["mu"]) ** 2 - np.log(2.0 * ROOT)
    return log_prior.sum() + (theta[labels] - X[:, 0] * np.exp(theta[labels])).sum()


def logistic_log_density(X, labels, theta, parameters):
    logits = theta @ parameters["loading"].T
    log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    coefficients = gammaln(X.sum(axis=1) + 1) - gammaln(X + 1).sum(axis=1)
    log_prior = -0.5 * theta**2 - np.log(ROOT)
    return log_prior.sum() + (X * log_p[labels]).sum() + coefficients.sum()


def multinomial_log_density(X, labels, theta, parameters):
    a, n_columns = float(parameters["hyper"][0, 0]), X.shape[1]
    log_prior = (a - 1) * theta.sum(axis=1) + gammaln(n_columns * a) - n_columns * gammaln(a)
    coefficients = gammaln(X.sum(axis=1) + 1) - gammaln(X + 1).sum(axis=1)
    return log_prior.sum() + (X * theta[labels]).sum() + coefficients.sum()


def kinds():
    """(likelihood, X, log p(theta) + log p(x | partition, theta))."""
    rng = np.random.default_rng(0)
    waits = np.r_[rng.exponential(1, 12), rng.exponential(30, 12)][:, None]
    shares = rng.dirichlet(np.full(5, 0.5), 3)
    X = np.vstack([rng.multinomial(30, p, 12) for p in shares])
    own = not_conjugate("multinomial").of(X)
    return {
        "own": (Waiting(), waits, waiting_log_density),
        "logistic_normal": ("logistic_normal", X, logistic_log_density),
        "subclass": (own, X, multinomial_log_density),
    }


@pytest.mark.filterwarnings("ignore:The chains do not agree")
@pytest.mark.parametrize("algorithm, discount", FITS)
@pytest.mark.parametrize("kind", ["own", "logistic_normal", "subclass"])
@pytest.mark.few(2)
def test_log_joint_is_of_the_state_that_is_kept(kind, algorithm, discount):
    likelihood, X, log_density = kinds()[kind]
    n_records = 0

    grid = PitmanYor.grid(len(X), "infer", discount)
    log_weight = dict(zip(map(tuple, grid.points.tolist()), grid.log_weights))

    def of_definition(labels, theta, parameters, prior):
        log_prior = log_weight[prior] + log_eppf(np.bincount(labels).tolist(), *prior)
        return log_prior + log_density(X, labels, theta, parameters)

    def on_record(i, chain):
        nonlocal n_records
        n_records += 1
        state = chain.state
        prior = state.prior.concentration, state.prior.discount
        expected = of_definition(chain.labels(), state.theta, state.likelihood.state(), prior)
        assert chain.trace["log_joint"][-1] == pytest.approx(expected, abs=2e-3)

    model = AcceleratedDPMixture(
        likelihood=likelihood,
        discount=discount,
        algorithm=algorithm,
        schedule=AcceleratedSchedule(n_accelerated=4, n_exact=9, sync_every=3),
        n_draws=3,
        thin=4,
        n_chains=2,
        random_state=0,
        warm_start=True,
    )
    model._on_record = on_record
    for _ in range(2):
        model.fit(X)
        for of_chain in model.draws_:
            for draw in of_chain:
                prior, arrays = (draw.concentration, draw.discount), draw.arrays
                parameters = {
                    name.removeprefix("likelihood/"): value
                    for name, value in arrays.items()
                    if name.startswith("likelihood/")
                }
                expected = of_definition(draw.labels, draw.theta, parameters, prior)
                assert draw.log_joint == pytest.approx(expected, abs=2e-3)
    assert n_records >= 2 * (3 + 2 + 3)  # of two chains: the schedule, and further draws twice


def test_numbers_of_a_subclass_are_in_the_users_units():
    X = np.random.default_rng(1).normal(size=(30, 2))
    fits = []
    for factor in (1.0, 1024.0):
        own = not_conjugate("normal").of(factor * X)
        model = AcceleratedDPMixture(
            likelihood=own,
            schedule=AcceleratedSchedule(n_accelerated=2, n_exact=5),
            n_draws=1,
            random_state=0,
        )
        fits.append(model.fit(factor * X))
    one, other = fits
    shift = 2 * np.log(1024.0)
    np.testing.assert_allclose(other.score_samples(1024.0 * X), one.score_samples(X) - shift)
    log_joints = [model.draws_[0][0].log_joint for model in fits]
    assert log_joints[1] == pytest.approx(log_joints[0] - len(X) * shift)


# ------------------------------------------------------------------------------- what is kept
def test_what_is_kept_stays_as_it_is():
    likelihood, X, _ = kinds()["own"]
    model = AcceleratedDPMixture(
        likelihood=likelihood,
        schedule=AcceleratedSchedule(n_accelerated=2, n_exact=5),
        n_draws=6,
        random_state=0,
        warm_start=True,
    ).fit(X)
    mus = [float(draw.arrays["likelihood/mu"][0]) for draw in model.draws_[0]]
    assert len(set(mus)) == 6
    assert [float(draw.likelihood.likelihood.mu[0]) for draw in model.draws_[0]] == mus
    assert float(likelihood.mu[0]) == 0.0  # the user's own object
    kept = copy.deepcopy([model._states, [draw.arrays for draw in model.draws_[0]]])
    earlier = model._states, model.draws_[0]
    model.fit(X)
    now = [earlier[0], [draw.arrays for draw in earlier[1]]]
    for before, after in zip(kept, now, strict=True):
        for a, b in zip(before, after, strict=True):
            assert a.keys() == b.keys()
            for name in a:
                np.testing.assert_array_equal(a[name], b[name], err_msg=name)


# -------------------------------------------------------- subclasses of conjugate likelihoods
STAGES = [
    *[(ExactStage(1), [0, 0, 0]), (ExactStage(3), [0, 1, 1])],
    *[(Auxiliary(2), [0, 0, 0]), (Importance(2), [0, 0, 0])],
    *[(SliceSampler(3), [0, 0, 0]), (SliceSampler(3), [2, 0, 1])],
]
each_stage = pytest.mark.parametrize("stage, dealt", STAGES, ids=lambda x: getattr(x, "name", None))
PSEUDO_COUNTS, ALPHAS, DISCOUNTS = [0.4, 1.5, 5.0], [0.3, 2.0], [0.0, 0.4]


def inferred_p_value(stage, dealt, n_chains, seed):
    """Of hyperparameter, concentration, discount and partition, jointly."""
    case = Case("multinomial", 3)
    rows = [tuple(row) for row in case.X.tolist()]
    hypers = [{"pseudo_counts": a} for a in PSEUDO_COUNTS]
    law = enumerate_joint([("multinomial", rows, hypers)], ALPHAS, DISCOUNTS)
    own = not_conjugate("multinomial").of(case.X, [[1.5]], [[np.array(PSEUDO_COUNTS)]])
    likelihood, grid = checked(own, True), list(product(ALPHAS, DISCOUNTS))
    shards, states, counts = HandShards(case.rows, dealt), list(law), Counter()
    starts = np.random.default_rng(seed).choice(len(states), n_chains, p=list(law.values()))
    for i, start in enumerate(starts):
        labels, alpha, d, (which,) = states[start]
        likelihood.set_state({"hyper": [[PSEUDO_COUNTS[which]]]})
        chain = AcceleratedChain(shards, likelihood, grid, np.array(labels), [seed, i])
        chain.state.prior = PitmanYor(alpha, d)
        advance(chain, stage, 2, 2, shards)
        hyper, prior = float(own.hyper[0][0]), chain.state.prior
        which = int(np.argmin(np.abs(np.array(PSEUDO_COUNTS) - hyper)))
        counts[canonical(chain.labels()), prior.concentration, prior.discount, (which,)] += 1
    return chi_square(counts, law)


@each_stage
@pytest.mark.few(3)
def test_subclass_inferred(stage, dealt):
    assert inferred_p_value(stage, dealt, 60, 2) > LEVEL


@pytest.mark.slow
@each_stage
def test_subclass_inferred_at_length(stage, dealt):
    assert inferred_p_value(stage, dealt, 3000, 3) > LEVEL


class DrawsFirst(AcceleratedChain):
    """The fault: features are drawn before an update that integrates them out."""

    def synchronise(self, reports):
        super().synchronise(reports)
        state = self.state
        state.likelihood.update(state.theta, state.statistics, state.sizes, self.generator)


def features_given_the_rest(cls, n_draws):
    """P-value of one cluster's features over synchronisations, given the hyperparameter of each."""
    X = np.array([[3, 0], [4, 1], [0, 2]])
    own = not_conjugate("multinomial").of(X, [[1.5]], [[np.array([0.1, 1.5, 50.0])]])
    shards = HandShards(own.encode(X), [0, 0, 0])
    chain = cls(shards, checked(own), [[1.0, 0.0]], np.zeros(3, int), 5)
    (report,) = [first_report(shards.encoded(0), *sent, STOP) for _, sent in chain.first_tasks()]
    uniforms = []
    for _ in range(n_draws):
        chain.synchronise([report])
        a = float(own.hyper[0][0])
        first, second = a + X.sum(axis=0)
        uniforms.append(beta.cdf(np.exp(chain.state.theta[0, 0]), first, second))
        report = report[0], report[1], chain.state.theta[:0]
    return kstest(uniforms, "uniform").pvalue


def test_features_are_drawn_given_what_they_depend_on():
    assert features_given_the_rest(AcceleratedChain, 1000) > LEVEL
    assert features_given_the_rest(DrawsFirst, 1000) < LEVEL


@each_stage
@pytest.mark.parametrize("name", ["multinomial", "poisson", "normal", "multivariate_normal"])
@pytest.mark.few(3)
def test_subclass_fixed(name, stage, dealt):
    case = Case(name, 3)
    case.likelihood.__class__ = not_conjugate(name)
    case.likelihood = checked(case.likelihood, True)
    law = case.law(0.7, 0.3)
    counts = end_counts(stage, case, dealt, 0.7, 0.3, law=law, n_draws=50, n_steps=2, seed=4)
    assert chi_square(counts, law) > LEVEL


def test_an_inherited_update_of_another_law_is_refused():
    def log_prior(self, theta):
        return LIKELIHOODS["multinomial"].log_prior(self, theta)

    def update(self, theta, statistics, sizes, rng):
        pass

    _, X, _ = kinds()["subclass"]
    own = not_conjugate("multinomial", log_prior=log_prior)
    model = AcceleratedDPMixture(
        likelihood=own.of(X), schedule=AcceleratedSchedule(n_accelerated=1, n_exact=1)
    )
    with pytest.raises(TypeError, match="Own must define the method update.*changed log_prior"):
        model.fit(X)
    model.set_params(likelihood=own.of(X, [[0.5]], [])).fit(X)
    own = not_conjugate("multinomial", log_prior=log_prior, update=update)
    model.set_params(likelihood=own.of(X)).fit(X)
