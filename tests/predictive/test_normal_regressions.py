"""Normal rows with a shared regression: fills by the formula, and the sampler's invariant law."""

import numpy as np
import pytest
from scipy import stats

from skanneal.predictive._normal_regressions import Components, Prior

RATE = 1e-6  # of false alarms, for each comparison
N_COMPONENTS, D, N_REGRESSORS = 2, 3, 2
PRIOR = Prior(
    np.array([0.5, -1.0, 0.0]), 0.7, 6.0, np.diag([2.0, 1.0, 4.0]) + 0.5,
    np.array([[1.0, 2.0, 0.5], [3.0, 0.25, 1.0]]),
)  # fmt: skip
LOG_SHARES = np.log([0.7, 0.3])


def from_prior(generator):
    sigmas = stats.invwishart(PRIOR.nu0, PRIOR.scale0).rvs(N_COMPONENTS, random_state=generator)
    means = [generator.multivariate_normal(PRIOR.mu0, sigma / PRIOR.kappa0) for sigma in sigmas]
    slopes = generator.normal(size=(N_REGRESSORS, D)) / np.sqrt(PRIOR.precisions)
    roots = np.linalg.inv(np.linalg.cholesky(sigmas))
    return Components(np.array(means), slopes, roots)


def rows_of(components, n_rows, generator):
    """Rows with gaps, their regressors and their components."""
    z = generator.normal(size=(n_rows, N_REGRESSORS))
    labels = (generator.random(n_rows) > np.exp(LOG_SHARES[0])).astype(int)
    noise = np.linalg.solve(components.roots[labels], generator.normal(size=(n_rows, D, 1)))
    cells = components.means[labels] + z @ components.slopes + noise[:, :, 0]
    cells[generator.random(cells.shape) < 0.4] = np.nan
    return cells, z, labels


def test_shares_and_expected_fills_are_those_of_the_formula():
    generator = np.random.default_rng(0)
    components = from_prior(generator)
    cells, z, _ = rows_of(components, 40, generator)
    shares = components.shares(cells, z, np.tile(LOG_SHARES, (40, 1)))
    expected = components.expected(cells, z, shares)
    for row, own, share, found in zip(cells, z, shares, expected):
        known, logs, fills = ~np.isnan(row), [], []
        for log_share, mean, root in zip(LOG_SHARES, components.means, components.roots):
            sigma, centre = np.linalg.inv(root.T @ root), mean + own @ components.slopes
            part = sigma[np.ix_(known, known)]
            away = row[known] - centre[known]
            density = stats.multivariate_normal(np.zeros(known.sum()), part) if known.any() else 0
            logs.append(log_share + (density.logpdf(away) if known.any() else 0.0))
            fill = centre + sigma[:, known] @ np.linalg.solve(part, away)
            fills.append(np.where(known, row, fill))
        right = np.exp(logs) / np.exp(logs).sum()
        np.testing.assert_allclose(share, right, rtol=1e-9)
        np.testing.assert_allclose(found, right @ fills, rtol=1e-9)
        np.testing.assert_allclose(found[known], row[known])


def after_a_step(seed, drawn):
    """Parameters one step of the sampler after they made some rows: of the prior still. The
    control fills gaps by what is expected of them."""
    generator = np.random.default_rng(seed)
    components = from_prior(generator)
    cells, z, labels = rows_of(components, 15, generator)
    whole = components.filled(cells, z, labels, generator if drawn else None)
    return components.drawn(PRIOR, whole, z, labels, generator)


@pytest.mark.parametrize("drawn", [True, False])
def test_a_step_leaves_the_posterior_invariant(drawn):
    """By Geweke's test: parameters of the prior, rows of these, then a step from both."""
    found = [after_a_step([seed, 1], drawn) for seed in range(1500)]
    of_prior = [from_prior(np.random.default_rng([seed, 2])) for seed in range(1500)]

    def p_values(pick, law=None):
        values = np.array([pick(of) for of in found])
        return stats.kstest(values, law or np.array([pick(of) for of in of_prior])).pvalue

    least = [
        p_values(lambda of, k=k: np.log(np.diagonal(of.roots[k])).sum())
        for k in range(N_COMPONENTS)
    ]
    least += [p_values(lambda of, k=k: of.means[k, 1]) for k in range(N_COMPONENTS)]
    least += [
        p_values(lambda of, at=at: of.slopes[at], stats.norm(scale=precision**-0.5).cdf)
        for at, precision in np.ndenumerate(PRIOR.precisions)
    ]
    # what belongs together: a regression on one thing that two components share
    least += [p_values(lambda of: (of.means[0] + of.slopes[0]) @ of.roots[0] @ np.ones(D))]
    assert (min(least) > RATE) == drawn


@pytest.mark.parametrize("factor", [1.0, 30.0])
def test_draws_have_the_integrated_posterior(factor):
    """One number, one regressor, one component, some gaps: the margin of the slope on a grid. The
    control: a sampler whose prior is another one."""
    generator = np.random.default_rng(0)
    z = np.linspace(-1.0, 2.0, 12)
    y = 0.3 + 1.5 * z + 0.5 * generator.normal(size=12)
    gaps, mu0, kappa0, nu0, scale0, precision = np.arange(12) % 3 == 0, 0.2, 0.5, 3.0, 0.8, 2.0
    b = np.linspace(-4.0, 6.0, 2001)
    rest = y[~gaps, None] - z[~gaps, None] * b  # of each slope a normal-inverse-gamma posterior
    n = len(rest)
    mean = rest.mean(axis=0)
    squares = scale0 + ((rest - mean) ** 2).sum(axis=0)
    squares += kappa0 * n / (kappa0 + n) * (mean - mu0) ** 2
    logs = -0.5 * (nu0 + n) * np.log(squares) - 0.5 * precision * b**2
    weights = np.exp(logs - logs.max())
    cumulative = np.cumsum(weights) / weights.sum()
    prior = Prior(np.array([mu0]), kappa0, nu0, np.array([[scale0]]), np.array([[precision]]))
    prior = prior._replace(precisions=factor * prior.precisions)
    cells, labels = np.where(gaps, np.nan, y)[:, None], np.zeros(12, int)
    now = Components.near(prior, np.nan_to_num(cells), z[:, None], labels)
    slopes = []
    for t in range(6000):
        whole = now.filled(cells, z[:, None], labels, generator)
        now = now.drawn(prior, whole, z[:, None], labels, generator)
        if t % 6 == 5:
            slopes.append(now.slopes[0, 0])
    p_value = stats.kstest(slopes, lambda x: np.interp(x, b, cumulative)).pvalue
    assert (p_value > RATE) == (factor == 1.0)


def test_regressors_that_are_alike_or_many_are_no_errors():
    """More regressors than rows, two of them equal; a component without rows."""
    generator = np.random.default_rng(0)
    z = generator.normal(size=(5, 8))
    z[:, 1] = z[:, 0]
    prior = PRIOR._replace(precisions=np.ones((8, D)))
    start = from_prior(generator)._replace(slopes=np.zeros((8, D)))
    found = start.drawn(prior, generator.normal(size=(5, D)), z, np.zeros(5, int), generator)
    assert all(np.isfinite(of).all() for of in found)
