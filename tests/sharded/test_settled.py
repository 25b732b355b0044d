"""What AcceleratedDPMixture says of fits that have not come to an end, and of those that have."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from oracles.accelerated_fits import counts, two_clusters
from skanneal import AcceleratedDPMixture
from skanneal.schedules import AcceleratedSchedule


def said(X, **parameters):
    """Messages of a fit, all of them at this line's caller."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        AcceleratedDPMixture(random_state=0, **{"likelihood": "normal"} | parameters).fit(X)
    assert all(warning.filename == __file__ for warning in caught)
    return [str(warning.message) for warning in caught]


def many_clusters(n_rows=3000):
    rng = np.random.default_rng(0)
    return rng.normal(0, 2, (30, 6))[np.arange(n_rows) % 30] + rng.normal(size=(n_rows, 6))


def test_a_fit_on_its_way_is_told():
    schedule = AcceleratedSchedule(n_accelerated=1, n_exact=40, sync_every=1)
    (message,) = said(many_clusters(), schedule=schedule)
    assert "still climbing" in message and "n_exact" in message


def test_a_fit_that_its_time_cut_short_is_told():
    schedule = AcceleratedSchedule(n_exact=10**6, max_time=1.0)
    messages = said(many_clusters(30_000), schedule=schedule)
    assert messages and all("max_time" in message for message in messages)


@pytest.mark.parametrize("likelihood", ["normal", "multivariate_normal", "multinomial", "poisson"])
@pytest.mark.few(1)
def test_nothing_is_said_of_a_fit_that_has_settled(likelihood):
    X = counts(90)[0] if likelihood in ("multinomial", "poisson") else two_clusters(90)[0]
    schedule = AcceleratedSchedule(n_exact=3000)  # few rows and many columns settle slowly
    assert said(X, likelihood=likelihood, schedule=schedule) == []


@pytest.mark.slow  # a busy machine needs longer
def test_nothing_is_said_of_a_settled_fit_with_a_time_limit():
    X, _ = two_clusters(90)
    assert said(X, schedule=AcceleratedSchedule(n_exact=10**6, max_time=5.0)) == []
    assert said(X, algorithm="collapsed", schedule=AcceleratedSchedule(max_time=5.0)) == []
