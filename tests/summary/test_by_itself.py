"""How sure pairs of components are by themselves."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit, logit

from skanneal.summary import _cluster_tree, cluster_tree, cut_tree
from skanneal.summary._by_itself import CONSTANT, OF_ODDS, OF_ROWS, evidence_by_itself, log_factors
from skanneal.summary._cluster_tree import _by_itself
from skanneal.summary._groups import FAR, Groups


def test_a_factor_is_that_of_the_formula():
    for odds, differ, n in [(12.0, 0.02, 300), (-4.0, 0.1, 50), (0.0, 1.0, 10)]:
        expected = CONSTANT + OF_ODDS * np.sign(odds) * np.log(1 + abs(odds))
        expected += OF_ROWS * np.log(n / differ)
        assert log_factors([odds], [differ], [n])[0] == pytest.approx(expected)


def test_what_is_beyond_all_measure_says_no_more():
    most = log_factors([300.0], [1e-4], [100])
    assert log_factors([1e6], [0.0], [100]) == most  # draws that are the same
    assert log_factors([300.0], [1e-4], [2]) == log_factors([300.0], [1e-4], [6])


@pytest.mark.parametrize("seed", range(4))
def test_the_share_is_the_mean_of_the_probabilities(seed):
    """By root finding: the share at which the mean probability, with one pair of each sort more, is
    the share."""
    rng = np.random.default_rng(seed)
    factors, counts = rng.normal(0.0, 4.0, 7), rng.uniform(0.2, 1.0, 7)

    def beyond(share):
        found = counts @ expit(logit(share) + factors) + 1.0
        return found / (counts.sum() + 2.0) - share

    share = brentq(beyond, 1e-9, 1 - 1e-9)
    evidence, of_share = evidence_by_itself(factors, counts)
    assert of_share == pytest.approx(-np.log(1 - share), rel=1e-6)
    np.testing.assert_allclose(-np.expm1(-evidence), expit(logit(share) + factors), rtol=1e-5)


def in_places(places, centres, scales=1.0):
    """Joints of normal components in rows of one column."""
    return -0.5 * ((places[:, None] - centres) / scales) ** 2 - np.log(scales)


def pairs_of(joints, draws, odds):
    """What `_by_itself` says of components with these odds."""
    judges, weights = [Groups(of) for of in draws], np.ones(len(draws))
    return _by_itself(odds, Groups(joints), judges, weights, None)


def odds_of(n, value):
    out = np.full((n, n), value)
    np.fill_diagonal(out, -FAR)
    return out


def test_pairs_about_which_draws_agree_are_surer():
    """Two normal laws that overlap, and two pieces of one whose border each draw has elsewhere."""
    rng = np.random.default_rng(0)
    rows = np.r_[rng.normal(-1.5, 1.0, 200), rng.normal(1.5, 1.0, 200)]
    odds, centres = odds_of(2, 12.0), np.array([-1.5, 1.5])
    agree = [in_places(rows, centres + shift) for shift in rng.normal(0.0, 0.05, 9)]
    differ = [in_places(rows, centres + shift) for shift in rng.normal(0.0, 0.8, 9)]
    joints = in_places(rows, centres)
    sure, unsure = (pairs_of(joints, draws, odds)[0, 1] for draws in (agree, differ))
    assert sure > -np.log(0.1) > unsure
    np.testing.assert_array_equal(pairs_of(joints, agree, odds), pairs_of(joints, agree, odds).T)


def test_of_no_draws_nothing_is_said_and_what_one_draw_has_is_not_agreed():
    rows = np.linspace(-4.0, 4.0, 200)
    joints, odds = in_places(rows, np.array([-1.5, 1.5])), odds_of(2, 30.0)
    assert not pairs_of(joints, [], odds).any()
    alone = in_places(rows, np.array([-1.5, 90.0]))  # has no row of the second component
    assert pairs_of(joints, [joints, alone, alone], odds)[0, 1] < 1.0
    assert pairs_of(joints, [joints, joints, alone], odds)[0, 1] > 2.0


def test_pairs_are_cut_by_themselves(monkeypatch):
    """Of three components two are surely clusters though the third pair is one; the control: by
    the share alone nothing is cut."""
    rng = np.random.default_rng(1)
    rows = np.r_[rng.normal(-3.0, 1.0, 300), rng.normal(0.2, 1.0, 150), rng.normal(0.6, 1.0, 150)]
    centres = np.array([-3.0, 0.2, 0.6])
    joints = in_places(rows, centres)
    draws = [in_places(rows, centres + shift) for shift in rng.normal(0.0, 0.03, 9)]
    odds = odds_of(3, 0.0)
    odds[0, 1] = odds[1, 0] = odds[0, 2] = odds[2, 0] = 60.0
    odds[1, 2] = odds[2, 1] = -60.0
    monkeypatch.setattr(_cluster_tree, "_pairs", lambda *given: (odds.copy(), np.full(3, 150.0)))
    valleys = np.array([[1, 2, 0.0, 2], [0, 3, 0.0, 3]])
    monkeypatch.setattr(_cluster_tree, "valley_tree", lambda *given: valleys)
    assert cut_tree(cluster_tree(joints, draws), 0.9).tolist() == [0, 1, 1]
    monkeypatch.setattr(_cluster_tree, "_by_itself", lambda odds, *given: np.zeros(odds.shape))
    assert cut_tree(cluster_tree(joints, draws), 0.9).tolist() == [0, 0, 0]
