"""Inner samplers of the user's own: exact with every method, and what is refused."""

import math
import warnings

import numpy as np
import pytest
from scipy import stats

from skanneal import TemperedGPRegressor
from skanneal.schedules import GeometricLadder
from skanneal.summary import ess
from skanneal.tempering import (
    METHODS,
    BaseInnerSampler,
    CallableTarget,
    GaussianMeanTarget,
    RandomWalk,
    sample,
)

DIMENSIONS = 3
# Mean and variance of each coordinate, for all methods with three samplers.
LIMIT = stats.norm.isf(1e-4 / (2 * DIMENSIONS * len(METHODS) * 3) / 2)


def problem(n_rows=40):
    """Rows with coordinates of different scales."""
    rng = np.random.default_rng(3)
    covariance = np.diag([0.5, 1.0, 2.0]) + 0.2
    X = rng.normal(size=(n_rows, DIMENSIONS)) @ np.linalg.cholesky(covariance).T
    return GaussianMeanTarget(X, covariance, prior_scale=1.5)


class Hops(BaseInnerSampler):
    """Metropolis with uniform steps."""

    def __init__(self, length=1.0, n_steps=4):
        self.length, self.n_steps = length, n_steps

    def move(self, theta, level, generator):
        """Some steps."""
        for _ in range(self.n_steps):
            to = theta + self.length * level.steps * generator.uniform(-1, 1, len(theta))
            log_ratio = level.log_density(to) - level.log_density(theta)
            if np.log1p(-generator.random()) < log_ratio:
                theta = to
        return theta


class Langevin(BaseInnerSampler):
    """A step along the gradient, accepted by Metropolis and Hastings."""

    def move(self, theta, level, generator):
        """One step."""
        size = level.steps
        ahead = theta + 0.5 * size**2 * level.gradient(theta)
        to = ahead + size * generator.normal(size=len(theta))
        back = to + 0.5 * size**2 * level.gradient(to)
        log_ratio = level.log_density(to) - level.log_density(theta)
        log_ratio += 0.5 * (((to - ahead) / size) ** 2 - ((theta - back) / size) ** 2).sum()
        return to if np.log1p(-generator.random()) < log_ratio else theta


class Sharp(Hops):
    """A fault: it takes the ratio of densities twice."""

    def move(self, theta, level, generator):
        """Some steps."""
        for _ in range(self.n_steps):
            to = theta + self.length * level.steps * generator.uniform(-1, 1, len(theta))
            log_ratio = level.log_density(to) - level.log_density(theta)
            if np.log1p(-generator.random()) < 2 * log_ratio:
                theta = to
        return theta


def z_scores(inner, method, n_draws=400):
    """Errors of means and variances of each coordinate, in standard errors."""
    target = problem()
    mean, covariance = target.posterior()
    result = sample(
        target,
        method=method,
        schedule=GeometricLadder(n_levels=3, beta_min=0.4),
        inner=inner,
        n_draws=n_draws,
        n_warmup=150,
        random_state=5,
    )
    centred = np.moveaxis(result.draws - mean, -1, 0)
    centred /= np.sqrt(np.diagonal(covariance))[:, None, None]
    found = []
    for values, expected in ((centred, 0.0), (centred**2, 1.0)):
        for column in values:
            error = column.std() / math.sqrt(ess(column))
            found.append((column.mean() - expected) / error)
    return np.array(found)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "inner", [Hops(), Langevin(), [RandomWalk(), Hops(n_steps=2)]], ids=["hops", "langevin", "both"]
)
@pytest.mark.few(6)
def test_moments(inner, method):
    assert np.abs(z_scores(inner, method)).max() < LIMIT


@pytest.mark.parametrize("method", ["none", "spt"])
def test_a_faulty_sampler_is_seen(method):
    assert np.abs(z_scores(Sharp(), method, 800)).max() > 2 * LIMIT


def test_a_level_says_what_it_is():
    """Densities and gradients at the chain's theta and elsewhere are those of the level's rows."""
    seen = []

    class Asks(BaseInnerSampler):
        def move(self, theta, level, generator):
            other = theta + 0.1
            values = [level.log_density(at) for at in (theta, other, theta)]
            slopes = [level.gradient(at) for at in (other, theta)]
            seen.append((level.number, level.beta, theta, values, slopes, level.steps))
            return theta

    target = problem()
    sample(target, method="spt", schedule=GeometricLadder(n_levels=3, beta_min=0.25), inner=Asks(),
           n_chains=1, n_draws=1, n_warmup=0, metric="unit", random_state=0)  # fmt: skip
    assert [number for number, *_ in seen] == [0, 1, 2]
    assert [beta for _, beta, *_ in seen] == [1.0, 0.5, 0.25]
    bound = target.bind(np.arange(40), np.array([40]))
    _, _, theta, values, slopes, steps = seen[0]

    def exact(at):
        (prior, slope), (likelihood, gradient) = bound.prior(at, True), bound.evaluate(at, 0, True)
        return prior + likelihood[0], slope + gradient

    assert values[0] == values[2]
    for at, value, slope in ((theta, values[0], slopes[1]), (theta + 0.1, values[1], slopes[0])):
        assert value == pytest.approx(exact(at)[0])
        np.testing.assert_allclose(slope, exact(at)[1])
    np.testing.assert_allclose(steps, 0.1)
    np.testing.assert_allclose(seen[2][-1], 0.2)  # wider levels, longer steps


def test_a_seed_gives_the_same_draws():
    options = {"method": "stt", "inner": Hops(), "n_draws": 20, "n_warmup": 20}
    first, again = (sample(problem(), random_state=1, **options).draws for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_a_regressor_takes_it():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (15, 1))
    model = TemperedGPRegressor(inner=Hops(), n_draws=10, n_warmup=10, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so short chains do not agree
        assert np.isfinite(model.fit(X, X[:, 0]).predict(X)).all()


class Fails(BaseInnerSampler):
    """Returns what it is given."""

    def __init__(self, answer=None):
        self.answer = answer

    def move(self, theta, level, generator):
        """The answer."""
        return self.answer


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.zeros(2), "returned 2 numbers for 3 parameters"),
        (np.full(3, np.nan), "without a density at level 0"),
        (np.full(3, np.inf), "without a density at level 0"),
    ],
)
def test_what_is_no_theta_is_refused(answer, message):
    with pytest.raises(ValueError, match=f"move of Fails .*{message}"):
        sample(problem(), method="none", inner=Fails(answer), n_draws=5, random_state=0)


def test_errors_come_through():
    class Breaks(BaseInnerSampler):
        def move(self, theta, level, generator):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        sample(problem(), inner=Breaks(), n_draws=5, random_state=0)
    with pytest.raises(NotImplementedError, match="must define move"):
        sample(problem(), inner=BaseInnerSampler(), n_draws=5, random_state=0)


def test_a_gradient_that_is_not_there_is_refused():
    target = CallableTarget(
        log_prior=lambda theta: -0.5 * theta @ theta,
        log_likelihood=lambda theta, rows: -0.1 * len(rows) * theta @ theta,
        n_parameters=1,
        n_rows=10,
        draw_prior=lambda generator: generator.standard_normal(1),
    )
    with pytest.raises(TypeError, match="CallableTarget has no gradients"):
        sample(target, inner=Langevin(), n_draws=5, random_state=0)
