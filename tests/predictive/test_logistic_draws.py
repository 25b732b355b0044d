"""Coefficients of a logistic regression: the mode, and draws against the integrated posterior."""

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

from skanneal.predictive import _logistic_draws
from skanneal.predictive._logistic_draws import LogisticPosterior

N_DRAWS = 2000
RATE = 1e-6  # of false alarms, for each comparison
PRECISIONS = np.array([0.25, 0.25])


def rare_answers():
    """Eight rows, two of which say yes, and both to the right: the posterior is skewed."""
    x = np.linspace(-1.0, 1.0, 8)
    return np.column_stack([np.ones(8), x]), x > 0.6, np.linspace(-1.0, 0.5, 8)


def posterior(rows=None):
    return LogisticPosterior(*(rows or rare_answers()), PRECISIONS)


def on_a_grid(rows):
    """The posterior's weights on a grid of both coefficients, by the formula alone."""
    z, y, offsets = rows
    a, b = np.linspace(-14.0, 10.0, 481), np.linspace(-10.0, 14.0, 481)
    odds = offsets[:, None, None] + z[:, 1, None, None] * b + a[:, None]
    logs = np.where(y[:, None, None], odds, 0.0) - np.log1p(np.exp(odds))
    logs = logs.sum(axis=0) - 0.5 * PRECISIONS[0] * a[:, None] ** 2 - 0.5 * PRECISIONS[1] * b**2
    weights = np.exp(logs - logs.max())
    return a, b, weights / weights.sum()


def test_the_mode_is_where_an_optimiser_finds_it():
    found = posterior()
    best = minimize(lambda b: -found.log_density(b), np.zeros(2), tol=1e-10)
    np.testing.assert_allclose(found.mode, best.x, atol=1e-4)
    step = 1e-4  # the curvature, by second differences
    for i, along in enumerate(step * np.eye(2)):
        around = found.log_density(found.mode + along) + found.log_density(found.mode - along)
        second = (around - 2.0 * found.log_density(found.mode)) / step**2
        assert (found.factor @ found.factor.T)[i, i] == pytest.approx(-second, rel=1e-4)


@pytest.mark.parametrize("n_slices", [_logistic_draws.N_SLICES, 0])
def test_draws_have_the_integrated_posterior(monkeypatch, n_slices):
    """Both margins; the control: draws of the normal approximation alone have not."""
    monkeypatch.setattr(_logistic_draws, "N_SLICES", n_slices)
    a, b, weights = on_a_grid(rare_answers())
    found, generator = posterior(), np.random.default_rng(0)
    draws = np.array([found.draw(generator) for _ in range(N_DRAWS)])

    def p_value(values, grid, own):
        ends = grid + 0.5 * (grid[1] - grid[0])
        return stats.kstest(values, lambda x: np.interp(x, ends, np.cumsum(own))).pvalue

    of_both = p_value(draws[:, 0], a, weights.sum(axis=1)), p_value(draws[:, 1], b, weights.sum(0))
    assert (min(of_both) > RATE) == (n_slices > 0)


def test_answers_that_a_line_separates_leave_it_finite():
    """Without a prior the mode would be at infinity; offsets may be far off."""
    x = np.linspace(-1.0, 1.0, 40)
    rows = np.column_stack([np.ones(40), x]), x > 0, np.where(x > 0, -300.0, 300.0)
    found = posterior(rows)
    assert np.isfinite(found.mode).all()
    assert np.isfinite(found.draw(np.random.default_rng(0))).all()
    slope = rows[0].T @ (rows[1] - 1 / (1 + np.exp(-rows[2] - rows[0] @ found.mode)))
    np.testing.assert_allclose(slope, PRECISIONS * found.mode, atol=1e-3)
