"""R-hat and effective sample size: known truths, ArviZ's values, padding, and quiet NaN."""

import warnings

import numpy as np
import pytest
from arviz_stats.base import array_stats

from skanneal.summary import diagnose, drift, ess, r_hat, tail_ess


@pytest.fixture(autouse=True)
def no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def autoregression(rho, n_chains, n_draws, seed):
    """Stationary AR(1) chains: n (1 - rho) / (1 + rho) draws are effective."""
    noise = np.random.default_rng(seed).normal(size=(n_chains, n_draws))
    draws = np.empty_like(noise)
    draws[:, 0] = noise[:, 0]
    for t in range(1, n_draws):
        draws[:, t] = rho * draws[:, t - 1] + np.sqrt(1 - rho**2) * noise[:, t]
    return draws


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_ess_of_an_autoregression(rho):
    expected = 4 * 5000 * (1 - rho) / (1 + rho)
    # The estimate's relative error has a standard deviation near 5 %: about 4 of them.
    assert ess(autoregression(rho, 4, 5000, seed=1)) == pytest.approx(expected, rel=0.2)


@pytest.mark.parametrize("seed", range(2))
def test_effective_sizes_are_those_of_arviz(seed):
    """It looks at lag by lag: the first pair that is not positive ends the sum, or the last lag."""
    rng = np.random.default_rng(seed)
    forms = (np.copy, np.round, np.signbit, lambda x: x + 3.0 * np.arange(len(x))[:, None])
    for rho in (-0.9, 0.0, 0.5, 0.95, 0.999):
        for n_draws in (*range(4, 12), 57, 400):
            draws = autoregression(rho, rng.integers(1, 5), n_draws, rng.integers(10**6))
            for form in forms:
                given = np.asarray(form(draws), dtype=np.float64)
                if np.ptp(given) == 0:
                    continue
                bulk = float(array_stats.ess(given, method="bulk"))
                tail = float(array_stats.ess(given, method="tail", prob=(0.05, 0.95)))
                assert (ess(given), tail_ess(given)) == pytest.approx((bulk, tail), rel=1e-9)


def test_r_hat_tells_agreement_from_disagreement():
    draws = autoregression(0.5, 4, 500, seed=2)
    assert 0.99 < r_hat(draws) < 1.02
    assert r_hat(draws + [[0], [0], [0], [3]]) > 1.2
    # Equal centres and unequal spread are seen by the folded half.
    assert r_hat(draws * [[1], [1], [1], [10]]) > 1.2
    # A drift that all chains share is seen by the split.
    assert r_hat(draws + np.linspace(0, 5, 500)) > 1.2


def test_both_depend_on_ranks_only():
    draws = autoregression(0.5, 3, 200, seed=3)
    assert ess(np.exp(5 * draws)) == ess(draws)


def test_padding_is_cut_to_the_last_draws_all_chains_have():
    draws = autoregression(0.3, 3, 40, seed=4)
    padded = np.full((5, 60), np.nan)
    padded[0, 10:50] = draws[0]
    padded[1, :40] = draws[1]
    padded[3, 30:] = draws[2, -30:]
    assert r_hat(padded) == r_hat(draws[:, -30:])
    assert ess(padded) == ess(draws[:, -30:])


@pytest.mark.parametrize(
    "draws",
    [
        np.empty((0, 0)),
        np.empty((4, 0)),
        np.full((4, 10), np.nan),
        np.random.default_rng(0).normal(size=(4, 3)),
        np.full((4, 10), 2.5),
        np.array([[1, 2, 3, np.nan, 5, 6, 7, 8]] * 2),
        np.array([[1, 2, 3, -np.inf, 5, 6, 7, 8]] * 2),
    ],
    ids=["empty", "no draws", "all missing", "short", "constant", "hole", "infinite"],
)
def test_nan_without_warning(draws):
    assert np.isnan(r_hat(draws)) and np.isnan(ess(draws))


def test_one_chain_has_an_ess_but_no_r_hat():
    draws = autoregression(0.0, 1, 400, seed=5)
    assert np.isnan(r_hat(draws))
    assert 200 < ess(draws) < 800


def test_chains_stuck_apart():
    assert r_hat(np.repeat([[3.0], [5.0]], 10, axis=1)) == np.inf


def test_diagnose_names_what_it_was_asked_for():
    trace = {"n_components": autoregression(0.2, 2, 50, seed=6), "seconds": np.zeros((2, 50))}
    r_hats, esses = diagnose(trace)
    assert list(r_hats) == list(esses) == ["n_components", "seconds"]
    assert r_hats["n_components"] == r_hat(trace["n_components"])
    assert esses["n_components"] == ess(trace["n_components"])
    assert np.isnan(r_hats["seconds"])
    assert list(diagnose(trace, ["n_components"])[0]) == ["n_components"]


def test_wrong_shape():
    with pytest.raises(ValueError, match="n_chains, n_draws"):
        r_hat([1.0, 2.0])


def test_drift():
    rng = np.random.default_rng(0)
    line, noise = np.arange(100.0), rng.normal(size=100)
    assert drift(line) == pytest.approx(np.sqrt(12), rel=0.01)
    assert drift(line, least_spread=50.0) == pytest.approx(0.5)
    assert drift(-line) == pytest.approx(-drift(line))
    assert drift(np.r_[np.nan, line, np.nan]) == pytest.approx(drift(line), rel=0.01)
    assert drift(line + noise) > 1.0  # a climb with noise
    assert drift(np.r_[line[:25] * 100, 2500 + noise[25:]]) < 1.0  # it was over in a quarter
    assert drift(np.r_[np.zeros(50), np.ones(50)]) == 0.0  # one step is no movement
    assert drift(np.arange(4.0).repeat(5)) == np.inf
    assert drift(np.ones(40)) == drift(line[:7]) == drift([]) == drift([np.nan] * 9) == 0.0


def test_a_chain_that_has_settled_seldom_drifts():
    """Chains with an autocorrelation time of a tenth of their length: one in a hundred alarms; of
    those that climb by ten standard deviations more than nine in ten."""
    chains, line = autoregression(0.8, 1000, 100, seed=2), np.linspace(0.0, 10.0, 100)
    assert np.mean([abs(drift(chain)) > 1.0 for chain in chains]) < 0.02
    assert np.mean([drift(chain + line) > 1.0 for chain in chains]) > 0.9
