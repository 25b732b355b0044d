"""About how many rows draws differ: the formula over all pairs of draws, and borders by hand."""

import numpy as np
import pytest

from skanneal.summary._disagreement import disagreement, mean_square_difference, share_in_doubt


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


def test_the_share_in_doubt_is_a_mean_over_pairs_of_draws():
    generator = np.random.default_rng(3)
    shares, weights = generator.dirichlet(np.ones(4), size=(3, 6)), np.array([1.0, 2.0, 0.5])
    total = count = 0.0
    for s in range(3):
        for t in range(3):
            if s != t:
                same = sum(shares[s, i, k] * shares[t, i, k] for i in range(6) for k in range(4))
                total += weights[s] * weights[t] * (1.0 - same / 6)
                count += weights[s] * weights[t]
    assert share_in_doubt(shares, weights) == pytest.approx(total / count)
    assert share_in_doubt(shares[:1], [1.0]) == 0.0


@pytest.mark.parametrize("weights", [np.ones(4), np.array([1.0, 2.0, 0.5, 1.0])])
def test_the_mean_square_difference_is_that_of_all_pairs_of_draws(weights):
    shares = list(np.random.default_rng(5).random((4, 30)))
    pairs = [(s, t) for s in range(4) for t in range(4) if s != t]
    squares = [np.mean((shares[s] - shares[t]) ** 2) for s, t in pairs]
    expected = np.average(squares, weights=[weights[s] * weights[t] for s, t in pairs])
    assert mean_square_difference(shares, weights) == pytest.approx(expected)
    assert mean_square_difference(shares[:1] * 3, np.ones(3)) == pytest.approx(0.0)
    own = np.mean([2 * np.mean(p * (1 - p)) for p in shares])  # what is beyond each one's doubt
    beyond = disagreement(shares, np.ones(4)).mean() - own
    assert mean_square_difference(shares, np.ones(4)) == pytest.approx(beyond)
    assert mean_square_difference(shares[:2], [1.0, 0.0]) == 1.0 == mean_square_difference([], [])
