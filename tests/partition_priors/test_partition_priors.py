"""Every partition prior against its weights and all partitions of a few rows.

Pitman-Yor and Dirichlet process priors against formulas of their own, too.

Random tests: fixed seeds, one try, false alarm once in 10,000.
"""

import math
import pickle
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from oracles.enumeration import (
    canonical,
    check_counts,
    clusters,
    count_p_value,
    log_eppf,
    partitions,
)
from oracles.finite_enumeration import log_finite
from oracles.mixtures import hyper_vector, make_table
from oracles.reference import EXAMPLES
from skanneal.chains import ChainPlan, run_chain
from skanneal.moves import PartitionHyperparameters
from skanneal.partition_priors import (
    PARTITION_PRIORS,
    Finite,
    PartitionPrior,
    PitmanYor,
    PriorGrid,
    concentrations,
    gamma_of,
    prior_from_arrays,
)
from skanneal.schedules import LinearAnneal
from skanneal.sharded._exact_stage import ExactStage
from skanneal.sharded._slice_sampler import SliceSampler
from skanneal.states import CrossCat, Mixture

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
        factors = prior.log_number(len(sizes), n) + sum(prior.log_size_weight(c) for c in sizes)
        assert log_probability == pytest.approx(factors, abs=1e-12)
        total += math.exp(log_probability)
    assert total == pytest.approx(1.0, abs=1e-12)


# ------------------------------------------------------------------------------ every prior
# Points of the grid at which a prior is tried.
TRIED = {
    "pitman_yor": POINTS,
    "finite": [(3.0, -1.0), (2.0, -1.0), (8.0, -1.0), (0.9, -0.3), (2.0, -0.5), (0.7, -0.7 / 50)],
}
CASES = [(name, point) for name in PARTITION_PRIORS for point in TRIED[name]]
every_prior = pytest.mark.parametrize(("name", "point"), CASES)


def weights_of(prior, sizes):
    """Weights of each cluster and of a new one, from the contract."""
    return np.array([*(size - prior.reduction for size in sizes), prior.open_weight(len(sizes))])


def log_by_weights(prior, labels):
    """Log probability of a partition as rows come in one by one."""
    total, counts = 0.0, {}
    for label in labels:
        if counts:
            weights = weights_of(prior, list(counts.values()))
            at = list(counts).index(label) if label in counts else -1
            if weights[at] == 0:
                return -math.inf
            total += math.log(weights[at] / weights.sum())
        counts[label] = counts.get(label, 0) + 1
    return total


@every_prior
def test_weights_add_up(name, point):
    prior = PARTITION_PRIORS[name](*point)
    for sizes in ([1], [3, 1], [2, 2, 1], [40, 1, 7, 2]):
        weights = weights_of(prior, sizes)
        assert (weights >= 0).all()
        if prior.log_probability(sizes) == -math.inf:
            assert weights[-1] == 0  # nor may there be one more
            continue
        assert weights.sum() == pytest.approx(prior.total_weight(sum(sizes)))
        with np.errstate(divide="ignore"):
            expected = np.log(weights / weights.sum())
        np.testing.assert_allclose(prior.log_weights(np.array(sizes)), expected, rtol=1e-12)
    assert prior.log_weights(np.zeros(0, np.int64)).tolist() == [0.0]  # the first row opens one


@every_prior
def test_probabilities_are_products_of_weights(name, point):
    prior, total = PARTITION_PRIORS[name](*point), 0.0
    for labels in partitions(6):
        sizes = [len(rows) for rows in clusters(labels)]
        log_probability = prior.log_probability([0, *sizes, 0])  # empty slots change nothing
        assert log_probability == pytest.approx(log_by_weights(prior, labels), abs=1e-12)
        factors = prior.log_number(len(sizes), 6) + sum(prior.log_size_weight(c) for c in sizes)
        assert log_probability == pytest.approx(factors, abs=1e-12)
        total += math.exp(log_probability)
    assert total == pytest.approx(1.0, abs=1e-12)


@every_prior
def test_draws_follow_the_weights(name, point):
    prior, bit_generator = PARTITION_PRIORS[name](*point), np.random.PCG64(14)
    of = {
        labels: math.exp(prior.log_probability([len(c) for c in clusters(labels)]))
        for labels in partitions(4)
    }
    counts = Counter(tuple(prior.draw(4, bit_generator).tolist()) for _ in range(5000))
    check_counts(counts, of)
    wrong = {labels: weight * 1.5 ** max(labels) for labels, weight in of.items()}  # a control
    norm = sum(wrong.values())
    assert count_p_value(counts, {labels: w / norm for labels, w in wrong.items()}) < 1e-6


@every_prior
def test_parts_agree_with_probabilities(name, point):
    prior = PARTITION_PRIORS[name](*point)
    apart, joined = [3, 4, 2], [7, 2]
    split = -math.inf
    if prior.log_probability(joined) > split:
        split = prior.log_probability(apart) - prior.log_probability(joined)
    assert prior.log_split(2, 3, 4) == pytest.approx(split, abs=1e-12)
    assert prior.log_split(2, 3, np.array([4, 4])) == pytest.approx([split, split], abs=1e-12)
    openings = prior.log_openings(5)
    expected = [prior.log_number(k, 5) + prior.log_total(5) for k in range(1, 6)]
    assert openings[1:6] == pytest.approx(expected, abs=1e-12) and len(openings) == 7
    grid = np.array(TRIED[name])
    scores = prior.grid_scores([3, 1, 1], grid)
    kind = type(prior)
    expected = [kind(*other).log_probability([3, 1, 1]) for other in grid]
    np.testing.assert_allclose(scores, expected, rtol=1e-10)
    log_weights = np.arange(len(grid)) / 3
    others = [(kind(*other), weight) for other, weight in zip(grid, log_weights)]
    terms = [
        [weight + other.log_number(k, 5) for k in range(1, 6)]
        for other, weight in others
        if other.reduction == prior.reduction
    ]
    mean = np.logaddexp.reduce(terms) - np.logaddexp.reduce(log_weights)
    found = prior.log_openings_over(PriorGrid(grid, log_weights), 5)[1:6]
    assert found == pytest.approx(mean, abs=1e-12)
    for k in (1, 4):
        possible = np.isfinite(found[k - 1])
        opening = prior.log_opening_over(PriorGrid(grid, log_weights), k, 5)
        expected = found[k] - found[k - 1] if possible else -np.inf
        assert opening == pytest.approx(expected, abs=1e-10)


@every_prior
def test_a_prior_is_its_point(name, point):
    prior = PARTITION_PRIORS[name](*point)
    assert (prior.name, prior.point) == (name, point)
    assert prior.scalars() == dict(zip(prior.coordinates, point))
    grid = PriorGrid(TRIED[name], np.log(np.arange(1.0, len(TRIED[name]) + 1)))
    other = grid.prior(1, type(prior))
    assert type(other) is type(prior) and other.point == TRIED[name][1] and grid.place(other) == 1
    assert other.log_weight == pytest.approx(np.log(2.0 / sum(range(len(grid) + 1))))
    copies = [pickle.loads(pickle.dumps(prior))]
    copies += [prior_from_arrays(prior.to_arrays(of), of) for of in ("", "view_")]
    stored = prior_from_arrays(other.to_arrays("view_"), "view_")
    assert stored.log_weight == pickle.loads(pickle.dumps(other)).log_weight == other.log_weight
    for copy in copies:
        assert type(copy) is type(prior)
        assert copy.point == point and copy.reduction == prior.reduction


@every_prior
def test_expected_clusters(name, point):
    """The mean number of clusters, within 5 standard errors (false alarm: 1 in a million)."""
    prior, bit_generator = PARTITION_PRIORS[name](*point), np.random.PCG64(15)
    (mean,) = prior.expected_clusters(np.array([point]), 60)
    found = [prior.draw(60, bit_generator).max() + 1 for _ in range(3000)]
    assert abs(np.mean(found) - mean) < 5 * np.std(found) / math.sqrt(3000)


class Other(PitmanYor):
    """A new prior: in Python, and with the weights of Pitman and Yor."""

    name = "other"


class WithoutSticks(PitmanYor):
    """A prior without weights by stick breaking."""

    name = "without_sticks"
    stick_breaking = PartitionPrior.stick_breaking


@pytest.mark.parametrize("view_grid", [None, np.array([(1.0, 0.2), (2.0, 0.2)])])
def test_a_new_prior_needs_one_line(view_grid, monkeypatch):
    """Its chains make the draws of Pitman and Yor, with priors of its own kind."""
    values, hyper = EXAMPLES["normal"]
    columns = [("normal", values[:8], hyper), ("normal", values[:8][::-1], hyper)]
    vectors = {j: hyper_vector("normal", hyper) for j in range(2)}
    moves = ("gibbs", "split_merge", "permutation")
    moves += () if view_grid is None else ("column_gibbs", "column_block", "column_sets")
    moves += () if view_grid is None else ("view_split_merge", "view_reallocation")
    plan = ChainPlan(
        make_table(columns),
        {"normal": np.arange(2)},
        vectors,
        {j: [None] * len(vector) for j, vector in vectors.items()},
        PriorGrid([(0.5, 0.3), (2.0, 0.3)]),
        moves,
        view_grid=view_grid,
        partition_prior="other",
    )
    seed = np.random.SeedSequence(1)
    with pytest.raises(KeyError, match="other"):
        run_chain(plan, LinearAnneal(n_sweeps=8), seed)
    monkeypatch.setitem(PARTITION_PRIORS, "other", Other)
    (draw,) = run_chain(plan, LinearAnneal(n_sweeps=8), seed)["draws"]
    usual = run_chain(plan._replace(partition_prior="pitman_yor"), LinearAnneal(n_sweeps=8), seed)
    for key, value in usual["draws"][0].items():
        np.testing.assert_array_equal(draw[key], value)
    kind = Mixture if view_grid is None else CrossCat
    state = kind.from_arrays(draw, plan.table.empty_like())
    assert type(state.prior) is Other
    assert {type(view.prior) for view in state.views} == {Other}


@pytest.mark.parametrize("stage", [SliceSampler(2), ExactStage(2)])
def test_what_breaks_sticks_refuses_other_priors(stage):
    state = SimpleNamespace(prior=WithoutSticks(1.0), members=np.ones((1, 1), np.int64))
    generator = np.random.Generator(np.random.PCG64(1))
    with pytest.raises(ValueError, match="'without_sticks' has no weights by stick breaking"):
        stage.plan(state, 1, generator)


# ------------------------------------------------------------------------------ finite mixtures
COMPONENTS = [(1, 1.0), (2, 1.0), (3, 0.3), (4, 2.5), (7, 0.1), (50, 0.02)]
every_component = pytest.mark.parametrize(("n_components", "gamma"), COMPONENTS)


@every_component
@pytest.mark.parametrize("n", [1, 2, 4, 6])
def test_finite_log_probability(n_components, gamma, n):
    prior = Finite(gamma * n_components, -gamma)
    assert prior.max_clusters == n_components
    total = 0.0
    for labels in partitions(n):
        sizes = [len(rows) for rows in clusters(labels)]
        expected = log_finite(sizes, n_components, gamma)
        assert prior.log_probability(sizes) == pytest.approx(expected, abs=1e-11)
        assert prior.grid_scores(sizes, [prior.point])[0] == pytest.approx(expected, abs=1e-11)
        total += math.exp(expected)
    assert total == pytest.approx(1.0, abs=1e-11)
    # control: infinitely many components weigh otherwise
    infinite = PitmanYor(gamma * n_components).log_probability([1] * n)
    assert n == 1 or abs(infinite - log_finite([1] * n, n_components, gamma)) > 1e-3


@every_component
def test_no_cluster_beyond_the_last(n_components, gamma):
    """Exactly none, whatever concentration and discount multiply to in floating point."""
    prior = Finite(gamma * n_components, -gamma)
    assert prior.open_weight(n_components) == prior.open_weight(n_components + 1) == 0.0
    assert prior.open_weight(n_components - 1) == gamma
    labels = [prior.draw(300, np.random.PCG64(seed)) for seed in range(20)]
    assert max(of.max() for of in labels) < n_components
    assert prior.log_weights(np.ones(n_components, np.int64))[-1] == -np.inf
    assert prior.log_split(n_components, 3, np.array([1, 2])).tolist() == [-np.inf] * 2


@every_component
def test_finite_expected_clusters(n_components, gamma):
    """The formula with Gamma functions, and one component, which has all rows."""
    point = np.array([(gamma * n_components, -gamma)])
    (found,) = Finite(*point[0]).expected_clusters(point, 9)
    without = 0.0
    if n_components > 1:
        a, b = gamma * n_components, gamma * (n_components - 1)
        without = math.exp(
            math.lgamma(a) - math.lgamma(b) + math.lgamma(9 + b) - math.lgamma(9 + a)
        )
    assert found == pytest.approx(n_components * (1.0 - without), rel=1e-9)


@pytest.mark.parametrize(
    ("concentration", "discount", "name"),
    [
        (1.0, 0.0, "discount"),
        (1.0, float("-inf"), "discount"),
        (1.0, float("nan"), "discount"),
        (2.5, -1.0, "concentration"),
        (0.0, -1.0, "concentration"),
        (float("inf"), -1.0, "concentration"),
        (float("nan"), -1.0, "concentration"),
    ],
)
def test_points_that_are_no_finite_mixture(concentration, discount, name):
    with pytest.raises(ValueError, match=name):
        Finite(concentration, discount)


# ------------------------------------------------------------------------------ Pitman and Yor
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
    few = np.geomspace(0.01, 100.0, 41)
    for n in (0, 1, 1000, 1001, 12_345, 10**7):
        points = concentrations(n)
        np.testing.assert_array_equal(points[:41], few)
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
    points = np.array([(a, d) for d in discounts for a in concentrations(30_000)])
    grid = PriorGrid(points)
    assert points[grid.first()][0] <= 10.0
    for n, end in ((60, 100.0), (1000, 100.0), (5000, 10**2.7), (30_000, points[:, 0].max())):
        np.testing.assert_allclose(points[grid.within(n), 0].max(), end)
        state, bit_generator, found = Singletons(n), np.random.PCG64(1), 0.0
        for _ in range(50 if n < 5000 else 5):
            PartitionHyperparameters(grid).sweep(state, bit_generator)
            found = max(found, state.prior.concentration)
        assert found == pytest.approx(end)
    fixed = PriorGrid([(500.0, d) for d in discounts])  # what a user has set is kept
    assert len(fixed.within(10)) == len(fixed)


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
        (-0.1, 0.0, "concentration"),
        (-0.4, 0.3, "concentration"),
        (float("nan"), 0.0, "concentration"),
        (1.0, float("nan"), "discount"),
    ],
)
def test_parameters_out_of_range(concentration, discount, name):
    with pytest.raises(ValueError, match=name):
        PitmanYor(concentration, discount)


# ------------------------------------------------------------------------------ hyperpriors
def law_of_number(grid, n):
    """Probability of 1 .. n clusters of n rows under a grid, by the recursion over rows."""
    out = np.zeros(n)
    for (alpha, d), log_weight in zip(grid.points, grid.log_weights):
        law = np.zeros(n + 1)
        law[1] = 1.0
        for i in range(1, n):
            opening = (alpha + d * np.arange(n + 1)) / (i + alpha)
            law = law * (1.0 - opening) + np.r_[0.0, law[:-1] * opening[:-1]]
        out += math.exp(log_weight) * law[1:]
    return out


def test_a_discount_keeps_its_share_of_the_gamma_law():
    """Uniform and independent, then restricted to the grid: so it is not uniform any more."""
    n, half = 300, 10**0.05
    grid, (shape, scale) = PitmanYor.grid(n), gamma_of(None, n)
    weights, expected, found = np.exp(grid.log_weights), {}, {}
    for d in (0.0, 0.1, 0.5):
        of_d = np.isclose(grid.points[:, 1], d)
        alphas, found[d] = grid.points[of_d, 0], weights[of_d].sum()
        ends = [(0.01 / half, d), (alphas.max() * half, d)]
        least, most = PitmanYor.expected_clusters(ends, n) - 1.0
        law = stats.gamma(shape, scale=scale)
        expected[d] = law.cdf(most) - (law.cdf(least) if d else 0.0)
    assert found[0.5] / found[0.0] == pytest.approx(expected[0.5] / expected[0.0], rel=1e-9)
    assert found[0.1] / found[0.0] == pytest.approx(expected[0.1] / expected[0.0], rel=1e-9)
    # the figures of the page on algorithms
    assert [round(found[0.0], 2), round(found[0.5], 3)] == [0.29, 0.016]
    assert weights[grid.points[:, 1] > 0.65].sum() < 0.001


@pytest.mark.parametrize(
    ("n", "expected_clusters", "low", "high"),
    [(300, None, 1, 17), (900, None, 1, 30), (300, (1, 30), 1, 30), (400, (3, 40), 3, 40)],
)
@pytest.mark.few(2)
def test_most_of_the_prior_is_on_the_expected_numbers(n, expected_clusters, low, high):
    """A tenth below and above; the binomial nature of K at n rows costs some hundredths."""
    law = law_of_number(PitmanYor.grid(n, "infer", 0.0, expected_clusters), n)
    assert law.sum() == pytest.approx(1.0, abs=1e-10)
    assert law[:low].sum() == pytest.approx(0.1, abs=0.03)
    assert law[high - 1 :].sum() == pytest.approx(0.1, abs=0.03)
    flat = PriorGrid(PitmanYor.grid(n, "infer", 0.0).points)  # control: equal weights
    assert law_of_number(flat, n)[high - 1 :].sum() > 0.2


def test_the_prior_of_the_discount_is_uniform_but_for_what_it_makes_impossible():
    grid = PitmanYor.grid(1000, "infer", "infer", (2, 900))
    weights = np.exp(grid.log_weights)
    share = [weights[np.isclose(grid.points[:, 1], d)].sum() for d in np.linspace(0, 0.9, 10)]
    assert share[0] < 1.15 * share[2] and np.all(np.diff(share) < 0)
    few = PitmanYor.grid(1000, "infer", "infer", (2, 20))
    assert np.exp(few.log_weights[few.points[:, 1] > 0.55]).sum() < 1e-3


def test_the_null_point_is_one_cluster():
    grid = PitmanYor.grid(50, null=True)
    assert tuple(grid.points[0]) == (0.0, 0.0)
    assert grid.log_weights[0] == pytest.approx(math.log(0.5))
    assert grid.points[grid.first()].sum() > 0
    null = grid.prior(0, PitmanYor)
    assert null.log_probability([50]) == 0.0 and null.log_probability([49, 1]) == -np.inf
    assert not null.draw(50, np.random.PCG64(1)).any()
    assert null.log_weights(np.array([3])).tolist() == [0.0, -np.inf]
    assert null.expected_clusters(grid.points, 50)[0] == 1.0


@pytest.mark.parametrize("n", [0, 1, 2, 10**7])
def test_grids_of_any_number_of_rows(n):
    for discount in (0.0, 0.5, "infer"):
        grid = PitmanYor.grid(n, "infer", discount)
        assert np.isfinite(grid.log_weights).all() and len(grid) >= 30
        assert np.exp(grid.log_weights).sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("low", "high", "mean"), [(10, 11, 10.5), (1, 2, 1.5), (1, 30, None), (5, 1000, None)]
)
def test_gamma_of(low, high, mean):
    """Quantiles of the negative binomial; a narrow interval counts as its middle."""
    shape, scale = gamma_of((low, high), 10**6)
    if mean:
        assert 1 + shape * scale == pytest.approx(mean)
        return
    more = stats.nbinom(shape, 1 / (1 + scale))
    assert more.cdf(low - 1) == pytest.approx(0.1, abs=1e-6)
    assert more.sf(high - 2) == pytest.approx(0.1, abs=1e-6)
