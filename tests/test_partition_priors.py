"""Pitman-Yor and Dirichlet process priors against all partitions of a few rows.

Random tests: fixed seeds, one try, false alarm once in 10,000.
"""

import math
from collections import Counter

import numpy as np
import pytest

from enumeration import canonical, check_counts, clusters, count_p_value, log_eppf, partitions
from skanneal.moves import PartitionHyperparameters
from skanneal.partition_priors import PitmanYor, concentrations, first_prior, within

POINTS = [(1.0, 0.0), (0.3, 0.0), (5.0, 0.0), (1.0, 0.3), (0.4, 0.75), (-0.2, 0.5)]
every_point = pytest.mark.parametrize(("concentration", "discount"), POINTS)


def law(n, concentration, discount):
    """Probability of every partition of n rows."""
    sizes = {labels: [len(rows) for rows in clusters(labels)] for labels in partitions(n)}
    return {labels: math.exp(log_eppf(of, concentration, discount)) for labels, of in sizes.items()}


@every_point
@pytest.mark.parametrize("n", [1, 2, 4, 6])
def test_log_probability(n, concentration, discount):
    prior = PitmanYor(concentration, discount)
    total = 0.0
    for labels, probability in law(n, concentration, discount).items():
        sizes = [len(rows) for rows in clusters(labels)]
        log_probability = prior.log_probability([0, *sizes, 0])  # empty slots change nothing
        assert log_probability == pytest.approx(math.log(probability), abs=1e-12)
        factors = prior.log_number(len(sizes), n) + sum(prior.log_size(c) for c in sizes)
        assert log_probability == pytest.approx(factors, abs=1e-12)
        total += math.exp(log_probability)
    assert total == pytest.approx(1.0, abs=1e-12)


def test_no_rows():
    prior = PitmanYor(1.0, 0.3)
    assert prior.log_probability([]) == prior.log_probability([0, 0]) == 0.0
    assert not prior.grid_scores([0, 0], [[1.0, 0.0], [2.0, 0.5]]).any()
    assert prior.draw(0, np.random.PCG64(1)).shape == (0,)


@every_point
def test_rows_one_by_one(concentration, discount):
    """The probability is the product of the weights with which rows come in, in any order."""
    rng = np.random.default_rng(2)
    labels = canonical(rng.integers(4, size=40))
    total = 0.0
    counts = Counter()
    for i, label in enumerate(labels):
        weight = concentration + discount * len(counts)
        if counts[label]:
            weight = counts[label] - discount
        if i:
            total += math.log(weight / (i + concentration))
        counts[label] += 1
        counts = +counts
    prior = PitmanYor(concentration, discount)
    assert prior.log_probability(list(counts.values())) == pytest.approx(total, abs=1e-10)


@pytest.mark.parametrize("sizes", [[3, 1, 1], [5], [1] * 6, [40_000, 0, 3, 1, 1, 2000]])
@pytest.mark.parametrize("shuffled", [False, True])
def test_grid_scores(sizes, shuffled):
    grid = [(a, d) for d in (0.0, 0.2, 0.7) for a in (0.1, 1.0, 30.0)]
    if shuffled:
        grid = [grid[i] for i in np.random.default_rng(3).permutation(len(grid))]
    scores = PitmanYor(1.0, 0.0).grid_scores(np.array(sizes), np.array(grid))
    expected = [log_eppf([c for c in sizes if c], a, d) for a, d in grid]
    np.testing.assert_allclose(scores, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("n", "n_clusters"), [(2000, 300), (10_000, 742), (25_517, 1965), (60_000, 3674), (60_000, 20)]
)
def test_concentrations_reach_beyond_what_the_rows_ask_for(n, n_clusters):
    """The posterior mean on the grid is that of a fine grid without an end, within half a step."""
    sizes = [1] * (n_clusters - 1) + [n - n_clusters + 1]

    def mean(points):
        grid = np.column_stack([points, np.zeros(len(points))])
        scores = PitmanYor(1.0).grid_scores(sizes, grid)
        weights = np.exp(scores - scores.max())
        return weights @ points / weights.sum(), weights[-1] / weights.sum()

    found, at_end = mean(concentrations(n))
    assert at_end < 1e-3
    assert found == pytest.approx(mean(np.geomspace(0.1, 1e6, 2001))[0], rel=10**0.05 - 1)
    if n_clusters > 20:  # control: a grid that does not grow
        assert mean(concentrations(0))[1] > 0.9


def test_concentrations_go_on_with_equal_ratios():
    few = np.geomspace(0.1, 100.0, 31)
    for n in (0, 1, 1000, 1001, 12_345, 10**7):
        points = concentrations(n)
        np.testing.assert_array_equal(points[:31], few)
        np.testing.assert_allclose(np.diff(np.log10(points)), 0.1, rtol=1e-9)
        assert points[-1] >= max(100.0, n / 10) > points[-2]


class Singletons:
    """Every row a cluster of its own: the higher the concentration, the better."""

    def __init__(self, n):
        self.n, self.prior = n, PitmanYor(1.0)

    def sizes(self):
        return np.ones(self.n, dtype=np.int64)

    def set_prior(self, prior):
        self.prior = prior


@pytest.mark.parametrize("discounts", [(0.0,), (0.0, 0.5)])
def test_a_subsample_chooses_from_the_grid_of_its_own_size(discounts):
    grid = np.array([(a, d) for d in discounts for a in concentrations(30_000)])
    assert first_prior(grid).concentration == first_prior(within(grid, 0)).concentration <= 10.0
    for n, end in ((60, 100.0), (1000, 100.0), (5000, 10**2.7), (30_000, grid[:, 0].max())):
        np.testing.assert_allclose(within(grid, n)[:, 0].max(), end)
        state, bit_generator, found = Singletons(n), np.random.PCG64(1), 0.0
        for _ in range(50 if n < 5000 else 5):
            PartitionHyperparameters(grid).sweep(state, bit_generator)
            found = max(found, state.prior.concentration)
        assert found == pytest.approx(end)
    fixed = np.array([(500.0, d) for d in discounts])  # what a user has set is kept
    assert within(fixed, 10) is fixed


@every_point
def test_draw(concentration, discount):
    prior, bit_generator = PitmanYor(concentration, discount), np.random.PCG64(4)
    counts = Counter(tuple(prior.draw(5, bit_generator).tolist()) for _ in range(20_000))
    check_counts(counts, law(5, concentration, discount))
    # controls: the discount dropped or added, the number of clusters off by one
    wrong = 0.25 if discount == 0 else 0.0
    assert count_p_value(counts, law(5, abs(concentration), wrong)) < 1e-6
    if concentration > 0:
        assert count_p_value(counts, law(5, 1.4 * concentration + 0.2, discount)) < 1e-6


def test_draw_of_many_rows():
    """The mean number of clusters, within 5 standard errors (false alarm: 1 in a million)."""
    for concentration, discount in [(10.0, 0.0), (1.0, 0.5)]:
        prior, bit_generator = PitmanYor(concentration, discount), np.random.PCG64(5)
        n = 2000
        mean = 0.0
        for i in range(n):
            mean += 1.0 if i == 0 else (concentration + discount * mean) / (i + concentration)
        found = [prior.draw(n, bit_generator).max() + 1 for _ in range(400)]
        assert abs(np.mean(found) - mean) < 5 * np.std(found) / 20


def test_labels_are_contiguous_and_repeatable():
    prior = PitmanYor(2.0, 0.4)
    labels = prior.draw(3000, np.random.PCG64(6))
    assert labels.dtype == np.int64
    assert canonical(labels.tolist()) == tuple(labels.tolist())
    assert np.array_equal(labels, prior.draw(3000, np.random.PCG64(6)))


@pytest.mark.parametrize(
    ("concentration", "discount", "name"),
    [
        (1.0, 1.0, "discount"),
        (1.0, -0.1, "discount"),
        (0.0, 0.0, "concentration"),
        (-0.3, 0.3, "concentration"),
        (float("nan"), 0.0, "concentration"),
        (1.0, float("nan"), "discount"),
    ],
)
def test_parameters_out_of_range(concentration, discount, name):
    with pytest.raises(ValueError, match=name):
        PitmanYor(concentration, discount)
