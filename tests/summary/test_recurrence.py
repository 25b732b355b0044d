"""Whether borders recur: the formula over all pairs of draws, known cases."""

import numpy as np
import pytest

from skanneal.summary._recurrence import SURE, disagreement, recurrence


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
