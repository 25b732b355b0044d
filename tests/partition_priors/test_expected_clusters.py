"""Expected numbers of clusters and of views: any that are possible, and an error for others."""

import re

import numpy as np
import pytest

from oracles.cheap import short
from skanneal import (
    AcceleratedDPMixture,
    AnnealedDPMixture,
    CrossCatPY,
    PermutationDPMixture,
)
from skanneal.partition_priors import PitmanYor
from skanneal.schedules import AcceleratedSchedule

N, D = 12, 3
X = np.random.default_rng(0).normal(size=(N, D))
MODELS = {
    "annealed": lambda **given: short(AnnealedDPMixture, **given),
    "discount": lambda **given: short(AnnealedDPMixture, discount="infer", **given),
    "crosscat": lambda **given: short(CrossCatPY, **given),
    "permutation": lambda **given: short(PermutationDPMixture, **given),
    "accelerated": lambda **given: short(
        AcceleratedDPMixture,
        schedule=AcceleratedSchedule(n_accelerated=1, n_exact=2, sync_every=1),
        likelihood="normal",
        **given,
    ),
}
every_model = pytest.mark.parametrize("name", MODELS)
POSSIBLE = [(1, 1.0001), (1, 2), (1, N), (N - 1, N), (N - 0.5, N), (1, N - 0.001)]


@every_model
@pytest.mark.parametrize("expected", POSSIBLE)
@pytest.mark.few(8)
def test_any_possible_number_may_be_expected(name, expected):
    model = MODELS[name](expected_clusters=expected).fit(X)
    assert np.isfinite(model.score_samples(X)).all()


@every_model
@pytest.mark.parametrize("high", [N + 0.001, N + 1, 10 * N])
@pytest.mark.parametrize("low", [1, N - 0.5])
def test_more_clusters_than_rows_are_refused(name, low, high):
    model = MODELS[name](expected_clusters=(low, high))
    words = f"expected_clusters=({low}, {high}) is impossible with {N} rows"
    with pytest.raises(ValueError, match=re.escape(words)):
        model.fit(X)


@pytest.mark.parametrize("name", ["annealed", "crosscat", "permutation"])
def test_finitely_many_components_may_be_more_than_the_rows(name):
    for expected in [*POSSIBLE, (N, N + 1), (1, 10 * N)]:
        model = MODELS[name](partition_prior="finite", expected_clusters=expected).fit(X)
        assert np.isfinite(model.score_samples(X)).all()


def test_views_are_at_most_the_columns():
    for expected in [(1, 2), (1, D), (D - 1, D), (D - 0.5, D)]:
        short(CrossCatPY, expected_views=expected).fit(X)
    words = rf"expected_views=\(1, {D + 1}\) is impossible with {D} columns"
    with pytest.raises(ValueError, match=words):
        short(CrossCatPY, expected_views=(1, D + 1)).fit(X)


@pytest.mark.parametrize("n", [2, N, 1000])
@pytest.mark.parametrize("discount", [0.0, 0.9, "infer"])
def test_numbers_that_no_point_expects_leave_the_nearest_one(n, discount):
    """The grid ends before n clusters are expected, and a discount may expect many at its least."""
    means = PitmanYor.expected_clusters(PitmanYor.grid(n, "infer", discount).points, n)
    for expected, nearest in [((1, 1.0001), means.min()), ((n - 0.001, n), means.max())]:
        grid = PitmanYor.grid(n, "infer", discount, expected)
        assert np.exp(grid.log_weights).sum() == pytest.approx(1.0)
        mean = np.exp(grid.log_weights) @ PitmanYor.expected_clusters(grid.points, n)
        assert mean == pytest.approx(nearest, rel=0.05)
