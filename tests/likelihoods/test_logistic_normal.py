"""The logistic-normal multinomial: its elliptical slices leave the right laws invariant.

Random tests: fixed seeds, one try, false alarms at 1 in 10,000; means at 4.5 standard errors.
"""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from oracles.likelihood_rows import LEVEL, ks, make, make_rows, rng_of, scores
from skanneal.likelihoods import LIKELIHOODS
from skanneal.likelihoods._draws import normals


def line(loading, counts):
    """Distribution function of eta's posterior, rank 1."""
    x = np.linspace(-8, 8, 4001)
    logits = np.outer(x, loading[:, 0])
    logits -= np.logaddexp.reduce(logits, axis=1)[:, None]
    density = np.exp(logits @ counts - x**2 / 2 - (logits @ counts - x**2 / 2).max())
    law = integrate.cumulative_simpson(density, x=x, initial=0)
    return lambda at: np.interp(at, x, law / law[-1])


def test_features_reach_their_posterior():
    """From the prior, 60 slices of 20,000 features with the same counts."""
    X = make_rows("logistic_normal")
    likelihood = LIKELIHOODS["logistic_normal"].of(X, rank=1, n_steps=60)
    likelihood.set_state({"loading": np.array([[1.3], [-0.4], [0.2]])})
    counts = np.array([[5.0, 1.0, 2.0, 0.0]])
    n = 20_000
    theta = likelihood.draw(
        np.repeat(counts, n, axis=0), likelihood.prior_draw(n, rng_of(23)), rng_of(24)
    )
    ks(theta[:, 0], line(likelihood.loading, counts[0, :3]))
    wrong = counts[0, :3] + [1.0, 0.0, 0.0]
    assert stats.kstest(theta[:, 0], line(likelihood.loading, wrong)).pvalue < 1e-6
    # without rows: fresh from the prior
    empty = likelihood.draw(np.zeros((n, 4)), np.full((n, 1), 9.0), rng_of(25))
    ks(empty[:, 0], "norm")


@pytest.mark.slow
def test_loading_reaches_its_posterior():
    """Two columns, rank 1: logits differ by eta (a - b), so that d = a - b has a posterior on a
    line and a + b keeps its prior."""
    X = np.array([[3, 1], [0, 2]])
    eta, counts = np.array([[1.2], [-0.7]]), np.array([[9.0, 2.0, 0.0], [1.0, 4.0, 0.0]])
    likelihood = LIKELIHOODS["logistic_normal"].of(X, rank=1, scale=0.8)
    rng, shown = rng_of(26), []
    for _ in range(4000):
        likelihood.set_state({"loading": 0.8 * normals((2, 1), rng.bit_generator)})
        for _ in range(25):
            likelihood.update(eta, counts, None, rng)
        shown.append(likelihood.loading[:, 0])
    a, b = np.array(shown).T

    def law(spread):
        d = np.linspace(-9, 9, 4001)
        log_density = -0.5 * d**2 / (2 * spread**2)
        for e, c in zip(eta[:, 0], counts):
            log_density -= c[0] * np.logaddexp(0, -e * d) + c[1] * np.logaddexp(0, e * d)
        density = np.exp(log_density - log_density.max())
        total = integrate.cumulative_simpson(density, x=d, initial=0)
        return lambda at: np.interp(at, d, total / total[-1])

    ks(a - b, law(0.8))
    ks(a + b, stats.norm(scale=0.8 * math.sqrt(2)).cdf)
    assert stats.kstest(a - b, law(1.2)).pvalue < 1e-6


def joint_draws(n, scale, n_sweeps=0, likelihood_counts=1.0, seed=27):
    """Parameters and data from the joint law, then sweeps over parameters given the data.

    Returns functions of both, one row per replication: whatever the number of sweeps, their law
    must be the same. `likelihood_counts`: what the counts are multiplied by, for a control."""
    rng, out = rng_of(seed), []
    likelihood = LIKELIHOODS["logistic_normal"].of(np.eye(4, dtype=int), rank=2, scale=scale)
    likelihood.n_steps = 1
    labels = np.arange(3, dtype=np.int32)
    for _ in range(n):
        likelihood.set_state({"loading": 0.8 * normals((4, 2), rng.bit_generator)})
        theta = likelihood.prior_draw(3, rng)
        X = np.array([rng.multinomial(12, p / p.sum()) for p in likelihood.features(theta)])
        statistics = likelihood_counts * likelihood.statistics(likelihood.encode(X), labels, 3)
        for _ in range(n_sweeps):
            likelihood.update(theta, statistics, None, rng)
            theta = likelihood.draw(statistics, theta, rng)
        p = likelihood.features(theta)
        out.append([
            likelihood.loading[0, 1],
            (likelihood.loading**2).sum(),
            theta[1, 0],
            (theta**2).sum(),
            (X * np.log(p)).sum(),
            (X[0] * p[0]).sum(),
            np.log(p).std(),
        ])  # fmt: skip
    return np.array(out)


@pytest.mark.slow
def test_joint_law_stays():
    before = joint_draws(3000, 0.8)
    after = joint_draws(3000, 0.8, n_sweeps=6, seed=28)
    for j in range(before.shape[1]):
        p_value = stats.ks_2samp(before[:, j], after[:, j]).pvalue
        assert p_value > LEVEL / before.shape[1], (j, p_value)
    ks(after[:, 0] / 0.8, "norm")
    ks(after[:, 1] / 0.64, stats.chi2(8).cdf)
    ks(after[:, 2], "norm")
    ks(after[:, 3], stats.chi2(6).cdf)
    for options in ({"scale": 0.5}, {"scale": 0.8, "likelihood_counts": 2.0}):
        wrong = joint_draws(1000, n_sweeps=6, seed=29, **options)
        columns = range(before.shape[1])
        found = [stats.ks_2samp(before[:, j], wrong[:, j]).pvalue for j in columns]
        assert min(found) < 1e-6, options


def test_importance_weights_have_the_marginal_as_mean():
    """f H / q over a row's proposals against the integral over eta, rank 1."""
    X = make_rows("logistic_normal")
    likelihood = LIKELIHOODS["logistic_normal"].of(X, rank=1)
    rows, n = likelihood.encode(X), 20_000
    for i in (0, 5):
        row = rows[i : i + 1]
        theta = likelihood.proposal_draw(rows[np.full(n, i)], rng_of(30))
        weights = np.exp(
            scores(likelihood, row, theta)[0].astype(float)
            + likelihood.log_prior(theta)
            - likelihood.proposal_logpdf(theta, row)
        )
        x = np.linspace(-9, 9, 4001)
        exact = integrate.simpson(
            np.exp(scores(likelihood, row, x[:, None])[0].astype(float)) * stats.norm.pdf(x), x=x
        )
        assert abs(weights.mean() - exact) < 4.5 * weights.std() / math.sqrt(n) + 1e-5 * exact
        assert weights.std() < weights.mean()  # and they hardly vary


def test_a_first_loading_says_what_the_rows_say():
    rng = rng_of(31)
    p = rng.dirichlet(np.full(40, 0.3), size=5)
    X = np.array([rng.multinomial(200, p[i % 5]) for i in range(100)])
    likelihood = LIKELIHOODS["logistic_normal"].of(X, rank=8)
    rows = likelihood.encode(X)
    labels = (np.arange(100) % 5).astype(np.int32)
    statistics = likelihood.statistics(rows, labels, 5)
    theta = likelihood.prior_draw(5, rng)
    for _ in range(40):
        theta = likelihood.draw(statistics, theta, rng)
        likelihood.update(theta, statistics, None, rng)
    assert np.abs(likelihood.features(theta) - p).max() < 0.05


def test_the_total_of_all_rows_is_the_sum_over_them():
    likelihood, rows, _ = make("logistic_normal")
    labels = (np.arange(len(rows)) % 3).astype(np.int32)
    theta = likelihood.prior_draw(4, rng_of(32))  # one feature without rows
    total = likelihood.total_log_lik(likelihood.statistics(rows, labels, 4), theta)
    each = scores(likelihood, rows, theta)[np.arange(len(rows)), labels]
    assert math.isclose(total, each.sum(dtype=float), rel_tol=1e-6)
