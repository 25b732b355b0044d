"""What re-centred levels are fitted by."""

import numpy as np
import pytest

from skanneal.schedules import GeometricLadder
from skanneal.tempering import CallableTarget, GaussianMeanTarget, sample
from skanneal.tempering._recentre import distinct
from skanneal.tempering._tilt import Exponents, Points, fit_level, misfit

RECENTRED = GeometricLadder(n_levels=2, recentre=True)


def problem(n, d, seed=0):
    """Points, and a level's log likelihoods that no quadratic is."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    return x, np.sin(2.0 * x).sum(axis=1) - np.cosh(x[:, 0]), rng


def points_of(x, target, depth=0.0):
    return Points(x, target, np.full(len(x), depth))


@pytest.mark.parametrize("power", (3.0, 0.8))  # far from the shares of the rows, and near
def test_a_tilt_that_exists_is_found(power):
    x, level, rng = problem(400, 4)
    slope, root = rng.normal(size=4), 0.5 * rng.normal(size=(4, 4))
    curvature = -root @ root.T
    target = power * level + x @ slope + 0.5 * ((x @ curvature) * x).sum(axis=1) + 7.0
    found = fit_level(points_of(x, target), level, 8.0)
    assert found.power == pytest.approx(power, abs=1e-3)
    assert np.allclose(found.slope, slope, atol=1e-3)
    assert np.allclose(found.curvature, curvature, atol=1e-3)
    assert np.ptp(found.residual(points_of(x, target), level)) < 0.05


def test_no_level_is_bent_outwards():
    x, level, _ = problem(400, 3)
    target = level + (x**2 * [1.0, -1.0, 0.0]).sum(axis=1)
    found = fit_level(points_of(x, target), level, 2.0)
    assert np.linalg.eigvalsh(found.curvature).max() < 1e-9
    assert found.curvature[1, 1] < -1.0


def test_what_the_target_refuses_does_not_spoil_the_fit():
    """Proposals hundreds of nats too high count by their number, not their depth."""
    x, level, rng = problem(400, 2)
    target, depth = 2.0 * level + x @ [1.0, -2.0], np.zeros(400)
    refused = rng.choice(400, 20, replace=False)
    target[refused] -= 500.0
    depth[refused] -= 500.0
    found = fit_level(Points(x, target, depth), level, 2.0)
    assert np.allclose(found.slope, [1.0, -2.0], atol=0.3)
    assert abs(found.power - 2.0) < 0.3
    kept = np.delete(found.residual(Points(x, target, depth), level), refused)
    assert kept.std() < 0.5


def test_few_points_fit_little():
    x, level, rng = problem(12, 8)
    found = fit_level(points_of(x, rng.normal(size=12)), level, 8.0)
    assert found.power == 8.0 and not found.slope.any() and not found.curvature.any()


def test_noise_is_not_fitted():
    """Cross-validation leaves the quadratic out where there is none to find."""
    x, level, rng = problem(60, 6)
    found = fit_level(points_of(x, 4.0 * level + 0.3 * rng.normal(size=60)), level, 4.0)
    residual = found.residual(points_of(x, 4.0 * level), level)
    assert residual.std() < 0.2


def test_misfit():
    """Nothing for a level that is the target but for a slope; more, the more they differ."""
    x, level, rng = problem(200, 3)
    exact = points_of(x, 8.0 * level + x[:, 0])
    assert misfit(exact, level, 8.0) == pytest.approx(0.0, abs=0.01)
    noise = rng.normal(size=200)
    found = [misfit(exact, level + s * noise, 8.0) for s in (0.02, 0.05, 0.1)]
    assert 0.0 < found[0] < found[1] < found[2]
    # Of normal residuals it is their variance, but for what the fit explains of it.
    assert found[1] == pytest.approx((8.0 * 0.05) ** 2, rel=0.3)


def test_distinct_rows():
    rows = np.array([[2.0, 1.0], [1.0, 1.0], [2.0, 1.0], [np.nan, 0.0], [0.0, 0.0]])
    assert distinct(rows).tolist() == [[2.0, 1.0], [1.0, 1.0], [0.0, 0.0]]


def test_plain_exponents():
    points = points_of(np.ones((2, 3)), np.array([3.0, 5.0]))
    assert Exponents.plain(2.0, 3).residual(points, np.ones(2)).tolist() == [1.0, 3.0]


@pytest.mark.parametrize("method", ("stt", "spt"))
@pytest.mark.slow
def test_levels_of_a_target_without_gradients(method):
    """The normal mean's level is the target's but for power and slope, which values alone show."""
    X = np.random.default_rng(0).normal([1.0, -2.0], 1.0, (60, 2))
    full = GaussianMeanTarget(X)
    target = CallableTarget(
        lambda theta: -0.5 * theta @ theta,
        lambda theta, rows: -0.5 * ((X[rows] - theta) ** 2).sum(),
        n_parameters=2,
        n_rows=60,
    )
    result = sample(
        target, method=method, inner="mh", schedule=RECENTRED, init=[0.0, 0.0], random_state=0
    )
    assert result.swap_acceptance.min() > 0.99
    mean = full.posterior()[0]
    assert np.abs(result.flat.mean(axis=0) - mean).max() < 0.2


@pytest.mark.slow
def test_a_likelihood_that_says_nothing():
    """No point to fit to, or none that differs: the draws go on."""
    silent = CallableTarget(
        lambda theta: -0.5 * theta @ theta,
        lambda theta, rows: 0.0,
        n_parameters=1,
        n_rows=20,
    )
    result = sample(silent, inner="mh", schedule=RECENTRED, init=[0.0], random_state=0)
    assert np.isfinite(result.draws).all()
    assert result.swap_acceptance.min() > 0.9
    short = sample(
        silent, inner="mh", schedule=RECENTRED, init=[0.0], n_warmup=4, n_draws=5, random_state=0
    )
    assert short.draws.shape == (4, 5, 1)


def test_where_no_fit_has_a_loss():
    """Residuals whose squares overflow decide nothing: the level stays plain."""
    x, level, rng = problem(60, 2)
    target = 1e200 * rng.normal(size=60)
    with np.errstate(over="ignore", invalid="ignore"):
        found = fit_level(points_of(x, target), level, 4.0)
    assert found.power == 4.0 and not found.slope.any() and not found.curvature.any()
