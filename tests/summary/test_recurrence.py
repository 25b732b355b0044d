"""Whether borders recur: the formula over all pairs of draws, known cases, basins by hand."""

import numpy as np
import pytest
from scipy.special import softmax

from skanneal.summary._recurrence import (
    SURE,
    disagreement,
    recurrence,
    sureness_in_basins,
)


def some_shares(generator, n_draws, n_rows=5, n_groups=3):
    return generator.dirichlet(np.ones(n_groups), (n_draws, n_rows))


@pytest.mark.parametrize("weights", [np.ones(4), np.array([3.0, 0.5, 0.0, 2.0])])
def test_disagreement_is_that_of_all_pairs_of_draws(weights):
    shares = some_shares(np.random.default_rng(0), 4)
    pairs = [(s, t) for s in range(4) for t in range(4) if s != t]
    each = [weights[s] * weights[t] for s, t in pairs]
    differ = [1 - (shares[s] * shares[t]).sum(axis=1) for s, t in pairs]
    between, within = disagreement(shares, weights)
    np.testing.assert_allclose(between, np.average(differ, axis=0, weights=each))
    twice = [1 - (of_draw**2).sum(axis=1) for of_draw in shares]
    np.testing.assert_allclose(within, np.average(twice, axis=0, weights=weights))


def test_equal_draws_recur_and_draws_sure_of_their_own_borders_do_not():
    one = some_shares(np.random.default_rng(1), 1)[0]
    between, within = disagreement([one] * 3, np.ones(3))
    np.testing.assert_allclose(between, within)
    sums = np.round(between.sum(), 9), np.round(within.sum(), 9)
    assert recurrence(*sums) == SURE
    sure = np.eye(3)[np.random.default_rng(2).integers(0, 3, (4, 20))]
    assert recurrence(*(of.sum() for of in disagreement(sure, np.ones(4)))) == 0.0


def test_a_single_draw_and_rows_beyond_doubt_tell_nothing():
    assert not np.any(disagreement(some_shares(np.random.default_rng(3), 2), [1.0, 0.0]))
    assert recurrence(0.0, 0.0) == 0.0


def test_the_share_that_is_unknown_is_the_probability_of_an_arbitrary_border():
    assert recurrence(10.0, 9.0) == pytest.approx(-np.log(0.1))


def known(misplaced, n_draws=8):
    """Log odds that draws which differ about so many rows per component know their borders."""
    return 2 * max(np.log(2 / (misplaced + 1 / (n_draws + 2))), 0)


def test_two_components_are_parted_as_long_as_their_basin_is_sure():
    """Components 0 and 1 join at 0.5, 2 and 3 at 1, all at 3. Draws differ about 0 and 1 by more
    rows than about 2 and 3, and about the basin of all by as many as these have together."""
    tree = np.array([[0, 1, 0.5, 2], [2, 3, 1.0, 2], [4, 5, 3.0, 4]])
    unknown, counted = np.array([1.0, 2.0, 0.1, 0.3]), np.ones(4, dtype=bool)
    found = sureness_in_basins(tree, unknown, counted, np.ones(8), -0.5)
    first, second, whole = (np.logaddexp(0, known(m) - 0.5) for m in (1.5, 0.2, 0.85))
    assert whole < 3.0 < second
    assert found[0, 1] == found[1, 0] == pytest.approx(first)
    assert found[2, 3] == found[0, 2] == found[3, 1] == pytest.approx(3.0)
    surer = sureness_in_basins(tree, unknown, counted, np.ones(8), 3.0)
    np.testing.assert_allclose(surer[~np.eye(4, dtype=bool)], np.logaddexp(0, known(0.85) + 3.0))
    few = sureness_in_basins(tree, unknown, np.arange(4) != 3, np.ones(8), 3.0)
    assert few[0, 2] == pytest.approx(np.logaddexp(0, known(3.4 / 3) + 3.0))
    assert not sureness_in_basins(tree, unknown, counted, [1.0, 0.0], 3.0).any()
    unsure = sureness_in_basins(tree, 10 * unknown, counted, np.ones(8), 3.0)
    np.testing.assert_allclose(unsure[~np.eye(4, dtype=bool)], np.logaddexp(0, 3.0))


@pytest.mark.parametrize("n", [400, 6400])
def test_draws_of_clusters_differ_about_as_many_rows_whatever_their_number(n):
    """Centres that are known as well as samples of so many rows tell them, and centres anywhere in
    a tenth of the way, as those of pieces: about those draws differ by more rows, the more rows."""
    generator, unknown = np.random.default_rng(n), []
    rows = generator.normal(size=n) + 2.5 * (np.arange(n) % 2)
    for error in (1 / np.sqrt(n / 2), 0.25):
        centres = np.array([0.0, 2.5]) + error * generator.normal(size=(9, 2))
        shares = [softmax(-0.5 * (rows[:, None] - of_draw) ** 2, axis=1) for of_draw in centres]
        unknown.append(np.subtract(*disagreement(shares, np.ones(9))).sum() / 2)
    assert unknown[0] < 0.5 and unknown[1] > n / 500
