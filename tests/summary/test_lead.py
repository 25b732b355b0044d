"""Leads: against the formulas, and how often luck alone makes one sure."""

import numpy as np
import pytest
from scipy import stats

from skanneal.summary._lead import Lead, errors_for

PLAYS = 20_000


def test_mean_and_error_are_those_of_the_rows_or_of_the_folds():
    rows = np.array([0.0, 1.0, 2.0, 5.0])
    apart, alike = np.array([0, 0, 1, 1]), np.array([3, 0, 0, 3])
    assert Lead.of(rows) == pytest.approx((2.0, np.sqrt(3.5 / 4)))
    assert Lead.of(rows, apart) == pytest.approx((2.0, np.sqrt((1.5**2 + 1.5**2) / 2)))
    assert Lead.of(rows, alike) == Lead.of(rows)  # folds' means differ by less than rows do
    assert Lead.of(rows, np.zeros(4, int)) == Lead.of(rows)  # one fold says nothing of chains
    assert -Lead(1.0, 0.5) == Lead(-1.0, 0.5)


@pytest.mark.parametrize(("n_folds", "luck"), [(4, 0.0), (4, 1.0), (4, 0.2)])
def test_the_error_has_what_chains_bring(n_folds, luck):
    """On average it is no smaller than the standard deviation of the mean; that of rows is."""
    rng = np.random.default_rng(n_folds)
    folds = np.repeat(np.arange(n_folds), 25)
    plays = rng.normal(size=(4000, 100)) + luck * rng.normal(size=(4000, n_folds))[:, folds]
    spread = plays.mean(axis=1).std()
    errors = np.array([[Lead.of(play, of).error for of in (folds, None)] for play in plays[:1000]])
    with_folds, of_rows = np.sqrt(np.square(errors).mean(axis=0))
    assert spread * 0.97 < with_folds < 1.25 * spread
    assert luck == 0.0 or of_rows < 0.95 * spread


def test_the_line_goes_through_both_points():
    before, now = Lead(1.0, 0.2), Lead(3.0, 0.1)
    assert now.forecast(before, 0) == now
    assert now.forecast(before, 2.0) == pytest.approx((7.0, np.sqrt(9 * 0.01 + 4 * 0.04)))


def test_what_is_sure_what_is_a_tie_and_what_is_hopeless():
    error = 0.01
    said = [
        (lead.is_sure(0.02), lead.is_tie(0.005), lead.is_hopeless(0.02))
        for lead in (Lead(mean, error) for mean in (0.04, 0.03, 0.011, 0.01, -0.009, -0.011))
    ]
    assert said == [
        (True, False, False),
        (False, False, False),
        (False, False, False),
        (False, True, False),
        (False, True, False),
        (False, True, True),
    ]
    assert not Lead(0.04, error).is_sure(0.05)  # sure, and yet not worth it


@pytest.mark.parametrize("n_rivals", [1, 3, 10])
def test_luck_makes_a_lead_as_seldom_sure_over_many_rivals_as_over_one(n_rivals):
    """The greatest of as many independent leads, none of which is real. The control is judged as
    if it were the only one."""
    rng = np.random.default_rng(n_rivals)
    greatest = rng.normal(size=(PLAYS, n_rivals)).max(axis=1)
    wrong = np.mean([Lead(mean, 1.0).is_sure(n_rivals=n_rivals) for mean in greatest])
    chance = stats.norm.sf(3.0)
    bound = chance + 4.0 * np.sqrt(chance / PLAYS)
    assert wrong < bound and errors_for(n_rivals) >= 3.0
    if n_rivals == 10:
        assert np.mean([Lead(mean, 1.0).is_sure() for mean in greatest]) > bound
