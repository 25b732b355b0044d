"""Stacked weights of chains, from log densities that are made up."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

from skanneal.summary import counted_chains, stacking_weights


def value(weights, log_densities):
    """What stacking maximises."""
    return np.mean(logsumexp(log_densities, axis=0, b=np.array(weights)[:, None]))


def best_on_a_grid(log_densities, n=50):
    """By looking at all weights that are multiples of 1 / n."""
    grid = [w for w in itertools.product(range(n + 1), repeat=len(log_densities)) if sum(w) == n]
    return max(value(np.array(w) / n, log_densities) for w in grid)


class TestStacking:
    def test_what_the_climb_finds(self):
        """Three chains, each with rows of its own; the sets of equal weights all lose."""
        rng = np.random.default_rng(0)
        log_densities = rng.normal(scale=0.2, size=(3, 400))
        log_densities[
            np.searchsorted([280, 380], np.arange(400), side="right"), np.arange(400)
        ] += 4
        weights = stacking_weights(log_densities)
        assert weights.sum() == pytest.approx(1.0)
        assert value(weights, log_densities) > best_on_a_grid(log_densities) - 3e-4
        assert value(weights, log_densities) > value([1 / 3] * 3, log_densities) + 0.05
        np.testing.assert_allclose(weights, [0.7, 0.25, 0.05], atol=0.03)

    @pytest.mark.parametrize("seed", range(5))
    def test_chains_that_agree(self, seed):
        """What distinguishes them is noise, which has a maximiser of its own."""
        rng = np.random.default_rng([7, seed])
        for n_rows, spread in itertools.product((30, 300, 3000), (0.01, 0.1, 1.0)):
            log_densities = rng.normal(size=n_rows) + rng.normal(scale=spread, size=(4, n_rows))
            np.testing.assert_array_equal(stacking_weights(log_densities), [0.25] * 4)

    def test_bad_chains(self):
        rng = np.random.default_rng(2)
        log_densities = rng.normal(size=300) + rng.normal(scale=0.05, size=(5, 300))
        log_densities[[1, 4]] -= rng.exponential(0.6, size=(2, 300))
        weights = stacking_weights(log_densities)
        np.testing.assert_array_equal(weights, np.array([1, 0, 1, 1, 0]) / 3)
        np.testing.assert_array_equal(counted_chains(weights), [0, 2, 3])
        order = np.array([4, 0, 1, 3, 2])
        shifted = log_densities[order] + rng.normal(scale=50, size=300)
        np.testing.assert_array_equal(stacking_weights(shifted), weights[order])

    def test_a_difference_that_does_not_matter(self):
        """0.008 nats between two chains, in every row alike: 0.004 to be gained; and half of it."""
        base = np.random.default_rng(1).normal(size=1000)
        np.testing.assert_array_equal(stacking_weights([base, base - 0.008]), [1.0, 0.0])
        np.testing.assert_array_equal(stacking_weights([base, base - 0.004]), [0.5, 0.5])

    def test_rows_that_cannot_be(self):
        base = np.zeros(50)
        never = np.full(50, -np.inf)
        np.testing.assert_array_equal(stacking_weights([never, base]), [0.0, 1.0])
        np.testing.assert_array_equal(stacking_weights([never, never]), [0.5, 0.5])
        at_one = np.where(np.arange(50) == 3, -np.inf, 0.0)
        np.testing.assert_array_equal(stacking_weights([at_one, at_one]), [0.5, 0.5])
        np.testing.assert_array_equal(stacking_weights([base]), [1.0])
        np.testing.assert_array_equal(stacking_weights(np.empty((2, 0))), [0.5, 0.5])

    @pytest.mark.parametrize("wrong", [[1.0], np.empty((0, 3)), [[np.nan]], [[np.inf]]])
    def test_errors(self, wrong):
        with pytest.raises(ValueError, match="log_densities"):
            stacking_weights(wrong)
