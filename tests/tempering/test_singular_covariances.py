"""Levels of a Gaussian process where covariances are singular to working precision.

Smooth rows without noise: the posterior lies where the target's own factorisation is about to fail,
and levels of fewer rows go on beyond. A level must have one density all the same.
"""

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy import stats

from oracles import tempering_enumeration as oracle
from oracles.gaussian_process_reference import covariance, log_likelihood
from oracles.scripted import Scripted
from skanneal.schedules import CustomLadder, GeometricLadder
from skanneal.tempering import GaussianProcessTarget, RandomWalk, sample
from skanneal.tempering._inner import Inner
from skanneal.tempering._levels import Levels
from skanneal.tempering._walks import ParallelWalk

KERNELS = ("rbf", "matern32", "matern52")


def smooth(n):
    """Rows of a curve, without noise."""
    X = np.linspace(0, 1, n)[:, None]
    return X, np.sin(3 * X[:, 0])


# ---------------------------------------------------------------- values
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_level_has_the_same_value_through_whichever_level_it_is_asked(kernel):
    target, sizes = GaussianProcessTarget(*smooth(30), kernel), [30, 20, 12, 3]
    rng, seen = np.random.default_rng(0), set()
    for _ in range(300):
        theta = np.r_[rng.uniform(-2, 9), rng.normal(), rng.uniform(-30, -5)]
        bound = target.bind(rng.permutation(30), sizes)
        alone = np.array([bound.evaluate(theta, level)[0][0] for level in range(4)])
        for level in range(4):
            values, gradient = bound.evaluate(theta, level, True)
            np.testing.assert_allclose(values, alone[level:], rtol=1e-4, atol=1e-3)
            assert np.isfinite(gradient).all() == np.isfinite(alone[level])
        seen.add(tuple(np.isnan(alone).tolist()))
    assert {(False,) * 4, (True, False, False, False), (True, True, True, False)} <= seen


@pytest.mark.parametrize("kernel", KERNELS)
def test_whether_a_covariance_is_singular_does_not_depend_on_the_order_of_rows(kernel):
    """From n 2^-44 of the variance on, values are good to a hundredth of a nat."""
    X, rng, least = smooth(40)[0], np.random.default_rng(0), 0.5 * np.log(40 * 2.0**-44)
    orders = [rng.permutation(40) for _ in range(10)]
    for log_noise in (least - 0.01, least + 0.01, least + 1.0, least + 6.0):
        theta = np.array([7.0, 0.0, log_noise])
        size, along = np.linalg.eigh(covariance(kernel, X, X, theta))
        variances = np.maximum(size, 0.0) + np.exp(2.0 * log_noise)
        y = along @ (np.sqrt(variances) * rng.normal(size=40))  # rows that the process may give
        target = GaussianProcessTarget(X, y, kernel)
        values = [target.bind(order, [40]).evaluate(theta)[0][0] for order in orders]
        if log_noise < least:
            assert np.isnan(values).all()
        else:
            np.testing.assert_allclose(values, values[0], rtol=0, atol=1e-2)


@pytest.mark.parametrize("kernel", KERNELS)
def test_rows_apart_from_each_other_need_no_noise(kernel):
    X, y = smooth(12)
    theta = np.array([-2.0, 0.3, -40.0])
    value, gradient = GaussianProcessTarget(X, y, kernel).log_likelihood(theta, np.arange(12), True)
    np.testing.assert_allclose(value, log_likelihood(kernel, X, y, theta), rtol=1e-9)
    assert np.isfinite(gradient).all()


# ---------------------------------------------------------------- transitions, enumerated
# Two length scales, short and long, and a prior that has nothing beyond; all else stays. With the
# long one six rows are singular, two are not.
STEP = {"hamiltonian": False, "n_steps": 1, "least_steps": 1, "target": 0.3, "adapt": False}
SHORT, LONG, SIZES = -3.0, 3.0, (6, 2)
PRIORS = {"length_scale": (0.0, 0.1)}
X = np.array([0.0, 0.5, 0.9, 0.2, 0.7, 0.35])[:, None]
Y = np.array([0.3, 0.35, 0.4, 0.33, 0.39, 0.36])
NOISE = -25.0
MOVE = ("radius", "angle", *[("below", 1)] * 4, "accept")


def densities():
    """h_m of the two length scales by the slow formula; the target's is 0 at the long one."""
    return np.array(
        [
            [
                0.0 if n == 6 and length == LONG else np.exp(log_likelihood("rbf", X[:n], Y[:n], t))
                for length, t in ((v, np.array([v, 0.0, NOISE])) for v in (SHORT, LONG))
            ]
            for n in SIZES
        ]
    )


def move(h):
    """Metropolis on the two states: one of the two steps leads to the other state."""
    out = np.eye(2)
    for i in range(2):
        if h[i] > 0:
            out[i, 1 - i] = 0.5 * min(1.0, h[1 - i] / h[i])
            out[i, i] = 1.0 - out[i, 1 - i]
    return out


def iteration(h, erased=False):
    """The law on the state at level 1, level 0 being at the short one; or of the fault.

    `erased`: a proposal at level 1 was accepted whatever it was, the long state's value being lost.
    """
    out = move(h[1])
    if erased:
        out[1] = [0.5, 0.5]
    return out  # a swap leaves two short ones as they are, and is refused else


def test_what_a_failure_at_a_colder_level_leaves_of_a_hotter_one():
    """Two iterations of the compiled chain: moves, a swap that asks in vain, moves."""
    rng = Scripted()
    target = GaussianProcessTarget(X, Y, priors=PRIORS)
    bound = target.bind(np.arange(6), SIZES)
    levels = Levels(target, bound, [0, 1], np.ones(2), rng, 2, False)
    inner = Inner(levels, [STEP], np.full((1, 2), LONG - SHORT), [1.0, 0.0, 0.0])
    walk = ParallelWalk(levels, inner)
    rng.sums = lambda: inner.get_sums().sum() + walk.get_sums().sum()
    arrays = np.empty((2, 3)), np.empty((2, 2)), np.empty((2, 1, 2)), np.empty((2, 0))
    h = densities()
    compiled = np.zeros((2, 2))
    for i, start in enumerate((SHORT, LONG)):

        def run(start=start):
            walk.reset_counts()
            levels.set_theta(0, [SHORT, 0.0, NOISE])
            levels.set_theta(1, [start, 0.0, NOISE])
            walk.advance(*arrays)
            cold, hot = (levels.get_theta(m)[0] for m in range(2))
            assert cold == SHORT
            return int(hot == LONG)

        def kinds(drawn):
            for _ in range(2):
                yield from (*MOVE, *MOVE, "accept")

        for weight, reached in rng.paths(run, kinds):
            compiled[i, reached] += weight
    right = iteration(h)
    assert np.abs(compiled - right @ right).max() < 1e-6  # covariances near to singular
    assert 0.05 < right[1, 0] < 0.45  # the two states are comparable ..
    broken = right @ iteration(h, erased=True)
    assert np.abs(broken - right @ right).max() > 0.05  # .. so that the fault shows
    law = oracle.normalised(h[1])
    assert oracle.variation(law @ compiled, law) < 1e-6
    assert oracle.variation(law @ broken, law) > 0.02


# ---------------------------------------------------------------- posteriors
LADDER = CustomLadder(betas=[1, 22 / 24, 20 / 24, 18 / 24])
WAYS = [
    ("spt", {"schedule": LADDER}),
    ("spt", {"schedule": LADDER, "swaps": "even_odd"}),
    ("spt", {"schedule": LADDER, "resample": 2}),
    ("spt", {"schedule": GeometricLadder()}),
    ("spt", {"schedule": GeometricLadder(n_levels=3, adapt=True)}),
    ("stt", {"schedule": LADDER}),
    ("stt", {"schedule": GeometricLadder(n_levels=2, beta_min=0.5, recentre=True)}),
    ("pt", {"schedule": LADDER}),
    ("tt", {"schedule": LADDER}),
]
# Means of three parameters by each way, and one comparison that must fail.
LIMIT = stats.norm.isf(1e-4 / (3 * len(WAYS)) / 2)


def drawn(n_rows, method, n_draws, **options):
    """Means of the parameters given the first rows of a smooth curve, and their errors."""
    X, y = smooth(24)
    result = sample(
        GaussianProcessTarget(X[:n_rows], y[:n_rows]),
        method=method,
        inner=RandomWalk(step_size=0.3, n_steps=10, adapt=False),
        init=[0.0, 0.0, -4.0],
        n_draws=n_draws,
        n_warmup=500,
        random_state=5,
        **options,
    )
    columns = np.moveaxis(result.draws, -1, 0)
    assert result.nan_rejections[:, 0].min() > 0.1 * n_draws  # it is the failures that count
    assert result.ess_bulk.min() > 400
    return result.flat.mean(axis=0), [array_stats.mcse(c, method="mean") for c in columns]


def apart(one, other):
    """The worst of the differences in standard errors."""
    (means, errors), (others, their_errors) = one, other
    return np.max(np.abs(means - others) / np.hypot(errors, their_errors))


@pytest.mark.filterwarnings("ignore:.*not a number:RuntimeWarning")
@pytest.mark.slow
@pytest.mark.parametrize("ways", [WAYS[:1], WAYS[1:]], ids=["spt", "all"])
def test_every_way_draws_from_the_posterior_of_the_inner_sampler(ways):
    """One try at a false-alarm rate of 1e-4 over all comparisons."""
    alone = drawn(24, "none", 8000)
    for method, options in ways:
        assert apart(drawn(24, method, 4000, **options), alone) < LIMIT, (method, options)
    assert apart(drawn(22, "none", 4000), alone) > LIMIT  # the comparison sees two rows less
