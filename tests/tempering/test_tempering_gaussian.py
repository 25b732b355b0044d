"""The mean of normal rows: every method and inner sampler against the closed form.

One try at a false-alarm rate of 1e-4 over all comparisons of this file: means and variances of
every coordinate, for all methods x inner samplers, D = 5 and D = 50, and the evidence.
"""

import math

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy import stats

from skanneal.schedules import CustomLadder, GeometricLadder
from skanneal.tempering import HMC, METHODS, GaussianMeanTarget, RandomWalk, sample

DIMENSIONS = (5, 50)
INNER = {5: {"mh": RandomWalk(n_steps=10), "hmc": HMC()}, 50: {}}
INNER[50] = {"mh": RandomWalk(n_steps=60), "hmc": HMC(n_leapfrog=20)}
N_DRAWS = {"mh": 300, "hmc": 500}
LADDER = {5: GeometricLadder(), 50: GeometricLadder(n_levels=3, beta_min=0.8)}
OPTIONS = [(method, {}) for method in METHODS]
OPTIONS += [("spt", {"resample": True}), ("spt", {"swaps": "even_odd"})]
# Two comparisons per coordinate, and one evidence each for "spt" and "pt".
N_COMPARISONS = 2 * sum(DIMENSIONS) * 2 * len(OPTIONS) + 2
LIMIT = stats.norm.isf(1e-4 / N_COMPARISONS / 2)


def problem(d, n_rows=40):
    """Rows with correlated coordinates of different scales."""
    rng = np.random.default_rng(d)
    root = np.eye(d) + 0.3 * np.tri(d, k=-1) / math.sqrt(d)
    covariance = root @ root.T * np.linspace(0.7, 1.4, d)[:, None] * np.linspace(0.7, 1.4, d)
    X = rng.normal(size=(n_rows, d)) @ np.linalg.cholesky(covariance).T + rng.normal(size=d)
    return GaussianMeanTarget(X, covariance, prior_scale=1.5)


@pytest.mark.parametrize(
    ("inner", "d"),
    [("mh", 5), ("hmc", 5), ("hmc", 50), pytest.param("mh", 50, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("method, options", OPTIONS)
def test_moments(method, options, inner, d):
    target = problem(d)
    mean, covariance = target.posterior()
    result = sample(
        target,
        method=method,
        schedule=LADDER[d],
        inner=INNER[d][inner],
        n_draws=N_DRAWS[inner],
        n_warmup=150,
        random_state=7,
        **options,
    )
    variance = np.diagonal(covariance)
    draws = np.moveaxis(result.draws, -1, 0)
    centred = (draws - mean[:, None, None]) / np.sqrt(variance)[:, None, None]
    for values, expected in ((centred, 0.0), (centred**2, 1.0)):
        for column in values:
            assert array_stats.ess(column, method="mean") > 100  # the errors below can be trusted
            error = array_stats.mcse(column, method="mean")
            assert abs(column.mean() - expected) < LIMIT * error


@pytest.mark.parametrize("method", ("stt", "tt"))
def test_moments_without_moves_between_passes(method):
    """Passes alone, on a ladder that they get across: 8 comparisons at 1e-4 over both methods."""
    target = problem(2, n_rows=4)
    mean, covariance = target.posterior()
    result = sample(
        target,
        method=method,
        schedule=GeometricLadder(n_levels=2, beta_min=0.5),
        inner=HMC(n_leapfrog=1),
        n_base_moves=0,
        n_draws=8000,
        n_warmup=500,
        random_state=1,
    )
    for column, centre, variance in zip(result.draws.T, mean, np.diagonal(covariance)):
        for values, expected in ((column.T - centre, 0.0), ((column.T - centre) ** 2, variance)):
            error = array_stats.mcse(values, method="mean")
            assert abs(values.mean() - expected) < stats.norm.isf(1e-4 / 8 / 2) * error


@pytest.mark.parametrize("method", ("stt", "spt"))
@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.few(1)
def test_recentred_levels(method, d):
    """Of normal rows the quadratic is exact: levels of an eighth of the rows are the target.

    110 comparisons per method at 1e-4 over both.
    """
    target = problem(d)
    mean, covariance = target.posterior()
    result = sample(
        target,
        method=method,
        schedule=GeometricLadder(n_levels=2, recentre=True),
        inner=HMC(n_leapfrog=20),
        n_base_moves=0,
        n_draws=500,
        n_warmup=300,
        random_state=2,
    )
    assert result.swap_acceptance.min() > 0.999
    limit = stats.norm.isf(1e-4 / (4 * sum(DIMENSIONS)) / 2)
    for column, centre, variance in zip(
        np.moveaxis(result.draws, -1, 0), mean, np.diagonal(covariance)
    ):
        for values, expected in ((column, centre), ((column - centre) ** 2, variance)):
            assert array_stats.ess(values, method="mean") > 100
            error = array_stats.mcse(values, method="mean")
            assert abs(values.mean() - expected) < limit * error


@pytest.mark.parametrize("method", ("spt", "pt"))
def test_evidence(method):
    """From the target down to the prior; the spread of the chains says how far to trust it."""
    target = problem(5)
    d, n = target.n_parameters, target.n_rows
    # Integrating theta out leaves all cells jointly normal.
    noise = np.kron(np.eye(n), target.covariance)
    total = noise + target.prior_scale**2 * np.kron(np.ones((n, n)), np.eye(d))
    rows = np.linalg.solve(target.whitener, target.whitened.T).T
    expected = stats.multivariate_normal(np.zeros(n * d), total).logpdf(rows.ravel())
    ladder = CustomLadder(betas=[*2.0 ** -np.arange(0, 5.5, 0.5), 0.0])
    result = sample(
        target,
        method=method,
        schedule=ladder,
        n_chains=12,
        n_draws=600,
        n_warmup=200,
        random_state=3,
    )
    limit = stats.t(11).isf(1e-4 / N_COMPARISONS / 2)
    assert abs(result.log_evidence - expected) < limit * result.log_evidence_error
    assert result.log_evidence_error < 0.1
    assert result.log_ratios.shape == (12, result.betas.shape[1] - 1)


def test_wrong_moments_are_seen():
    """The comparison of `test_moments` fails for a target that is off by a third of its scale."""
    target = problem(5)
    mean, covariance = target.posterior()
    result = sample(target, inner="hmc", n_draws=1000, n_warmup=300, random_state=7)
    column = result.draws[:, :, 0]
    error = array_stats.mcse(column, method="mean")
    shifted = mean[0] + math.sqrt(covariance[0, 0]) / 3
    assert abs(column.mean() - shifted) > LIMIT * error
