"""About how many rows draws differ: the formula over all pairs of draws, and borders by hand."""

import numpy as np
import pytest

from skanneal.summary._disagreement import disagreement


@pytest.mark.parametrize("weights", [np.ones(4), np.array([3.0, 0.5, 0.0, 2.0])])
def test_disagreement_is_that_of_all_pairs_of_draws(weights):
    shares = np.random.default_rng(0).random((4, 5))
    pairs = [(s, t) for s in range(4) for t in range(4) if s != t]
    each = [weights[s] * weights[t] for s, t in pairs]
    differ = [shares[s] * (1 - shares[t]) + shares[t] * (1 - shares[s]) for s, t in pairs]
    expected = np.average(differ, axis=0, weights=each)
    np.testing.assert_allclose(disagreement(shares, weights), expected)


def test_rows_between_the_borders_of_two_draws_are_counted():
    sides = [(np.arange(20) < border).astype(float) for border in (8, 11)]
    assert disagreement(sides, np.ones(2)).sum() == pytest.approx(3.0)
    assert disagreement(sides[:1] * 3, np.ones(3)).sum() == pytest.approx(0.0)


def test_a_single_draw_tells_nothing():
    shares = np.random.default_rng(3).random((2, 5))
    assert not disagreement(shares, [1.0, 0.0]).any()
