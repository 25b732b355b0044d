"""Finite mixtures: the hyperprior of M, and every move against enumerated laws.

Every comparison is a chi-square test of independent states, fixed seeds, one try: a right move
alarms once in 10,000. M is often below the number of rows, so that all components are taken. Beside
the moves stand broken ones that the same test must reject.
"""

import math
import warnings
from collections import Counter
from functools import cache

import numpy as np
import pytest

from oracles.crosscat_chains import (
    DATA,
    FEW_CONTROLS,
    MOVES,
    Case,
    chain_counts,
    check_all,
    check_stays,
    draws_of,
    ends,
    joint_law,
    moves_of,
    weighted_points,
)
from oracles.crosscat_enumeration import summed
from oracles.enumeration import canonical, check_counts, count_p_value, marginal
from oracles.finite_enumeration import FiniteCrossCat, finite_law
from oracles.mixtures import hyper_vector, make_mixture, make_table, set_partition
from oracles.reference import EXAMPLES
from skanneal import AnnealedDPMixture, CrossCatPY, PermutationDPMixture
from skanneal.chains import ChainPlan, run_chain
from skanneal.moves import (
    COLUMN_MOVES,
    PERMUTATIONS,
    Gibbs,
    PartitionHyperparameters,
    Permutation,
    SplitMerge,
)
from skanneal.partition_priors import Finite, PriorGrid
from skanneal.schedules import LinearAnneal, SequentialGibbs

REJECT = 1e-6  # what a control's p-value must be below
N = 5


# ------------------------------------------------------------------ the hyperprior of M
def bnb(k):
    """Beta-negative-binomial (1, 1, 1), from its definition: B(2, 1 + k) / B(1, 1)."""
    return math.exp(math.lgamma(2) + math.lgamma(1 + k) - math.lgamma(3 + k))


@pytest.mark.parametrize("n", [0, 1, 60, 61, 1000, 10**6])
def test_the_grid_of_numbers_of_components(n):
    grid = Finite.grid(n)
    numbers = -grid.points[:, 0] / grid.points[:, 1]
    assert numbers[:60].tolist() == [*range(1, 61)]
    assert (grid.points[:, 1] == -1.0).all() and (numbers == np.rint(numbers)).all()
    assert (numbers[60:] <= 1.05 * numbers[59:-1] + 1).all()
    assert numbers[-1] <= max(60, n / 4) <= 1.05 * numbers[-1] + 1
    weights = np.exp(grid.log_weights)
    assert weights.sum() == pytest.approx(1.0)
    assert weights[:59] == pytest.approx([bnb(k) for k in range(59)], rel=1e-9)
    if n == 1000:  # a point stands for the numbers up to the next
        for i in (60, 80):
            stands_for = range(int(numbers[i]), int(numbers[i + 1]))
            assert weights[i] == pytest.approx(sum(bnb(m - 1) for m in stands_for), rel=1e-9)
    # a subsample chooses from the numbers for its own rows, and begins with more than one component
    for rows in (0, 10, 400, n):
        of_rows = Finite.grid(min(rows, n)).points[:, 0]
        np.testing.assert_array_equal(numbers[grid.within(min(rows, n))], of_rows)
    assert numbers[grid.first()] > 1


def test_a_given_concentration_is_shared():
    grid = Finite.grid(200, 2.5)
    numbers = [Finite(*point).max_clusters for point in grid.points]
    np.testing.assert_allclose(grid.points[:, 0], 2.5)
    np.testing.assert_allclose(-grid.points[:, 1] * numbers, 2.5)
    np.testing.assert_allclose(grid.log_weights, Finite.grid(200).log_weights)


def test_expected_clusters_and_the_null_view():
    grid = Finite.grid(1000, expected_clusters=(5, 30))
    numbers, weights = grid.points[:, 0], np.exp(grid.log_weights)
    assert weights[numbers <= 5].sum() == pytest.approx(0.1)
    assert weights[numbers >= 30].sum() == pytest.approx(0.1)
    many = Finite.grid(200, expected_clusters=(50, 100))  # more than a quarter of the rows
    assert many.points[-2, 0] < 100 <= many.points[-1, 0] and len(many.within(200)) == len(many)
    assert np.exp(many.log_weights)[:50].sum() == pytest.approx(0.1)
    assert Finite.grid(200, expected_clusters=(5, 30)).points[-1, 0] == 60
    null = np.exp(Finite.grid(1000, expected_clusters=(5, 30), null=True).log_weights)
    np.testing.assert_allclose(null, 0.5 * weights + 0.5 * (numbers == 1), atol=1e-12)
    assert np.isfinite(Finite.grid(10**5, expected_clusters=(1, 3)).log_weights).all()


def test_a_prior_that_holds_so_many_clusters():
    prior = Finite(2.0, -0.5)
    assert prior.holding(4) is prior
    more = prior.holding(7)
    assert (more.max_clusters, more.discount) == (7, -0.5)


# ------------------------------------------------------------------ moves of rows
def column(family, start):
    values, hyper = EXAMPLES[family]
    values = [None if i == start else v for i, v in enumerate([*values, *values][:N])]
    return family, values, hyper


COLUMNS = [column("normal", 1), column("bernoulli", 0), column("poisson", 3)]
# (M, gamma) and their probabilities
POINTS = {
    "two": ([(2, 1.0)], [1.0]),
    "three": ([(3, 0.4)], [1.0]),
    "eight": ([(8, 0.7)], [1.0]),
    "static": ([(1, 1.0), (2, 1.0), (3, 1.0), (4, 1.0), (9, 1.0)], [0.1, 0.3, 0.15, 0.05, 0.4]),
    "dynamic": ([(1, 1.5), (2, 0.75), (3, 0.5), (12, 0.125)], [0.3, 0.15, 0.35, 0.2]),
}
INFERRED = ("static", "dynamic")


@cache
def law(points, beta=1.0):
    return finite_law(COLUMNS, *POINTS[points], beta=beta)


def grid_of(points, weighted=True):
    pairs, weights = POINTS[points]
    return PriorGrid(
        [(gamma * m, -gamma) for m, gamma in pairs], np.log(weights) if weighted else None
    )


def draws(law, n, seed):
    """n independent draws of a law."""
    keys = list(law)
    rng = np.random.default_rng([seed, 1])  # not the stream that the moves take from PCG64(seed)
    return [keys[i] for i in rng.choice(len(keys), n, p=list(law.values()))]


def after(moves, points, n_runs, seed, *, beta=1.0):
    """Counts of (partition, point) after moves, from exact draws."""
    mixture, bit_generator = make_mixture(COLUMNS, seed=seed)
    grid, counts = grid_of(points), Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for labels, i in draws(law(points, beta), n_runs, seed):
            mixture.set_prior(grid.prior(i, Finite))
            set_partition(mixture, labels)
            for move in moves:
                move.sweep(mixture, bit_generator, beta=beta)
            end = canonical(mixture.get_labels().tolist())
            assert mixture.n_clusters <= mixture.prior.max_clusters
            assert np.isfinite(mixture.log_joint())
            counts[end, grid.place(mixture.prior)] += 1
    mixture.validate()
    return counts


def check(counts, law):
    for position in (0, 1):
        check_counts(marginal(counts, position), marginal(law, position))
    check_counts(counts, law)


def permutation(law, program, grid=None):
    made = Permutation(law, program, 0.2 if program == "beam" else 1e-32, grid)
    made.tuning = 3  # a number of clusters at which some points have no more components
    return made


def moves_with(grid):
    """Every way of the moves of rows, the number of components integrated out or not."""
    split_merge = SplitMerge(n_proposals=6, grid=grid)
    return {
        "gibbs": [Gibbs()],
        "split_merge": [split_merge] * 2,
        **{
            f"{orders}, {program}": [permutation(orders, program, grid)] * 4
            for orders in PERMUTATIONS
            for program in ("exact", "quadratic", "beam")
        },
        "all": [Gibbs(), split_merge, permutation("projection", "beam", grid)],
    }


# by default the form that estimators infer
STATIC_FIRST = ["static", pytest.param("dynamic", marks=pytest.mark.slow)]


@pytest.mark.parametrize("moves", moves_with(None))
@pytest.mark.parametrize("points", POINTS)
@pytest.mark.few(4)
def test_moves_leave_the_posterior(points, moves):
    """Given the number of components."""
    check(after(moves_with(None)[moves], points, 400, 1), law(points))


@pytest.mark.parametrize("moves", list(moves_with(None))[1:])
@pytest.mark.parametrize("points", STATIC_FIRST)
@pytest.mark.few(2)
def test_moves_that_integrate_leave_the_posterior(points, moves):
    """The number of components integrated out and drawn anew."""
    grid = grid_of(points)
    made = [*moves_with(grid)[moves], PartitionHyperparameters(grid)]
    check(after(made, points, 600, 2), law(points))


@pytest.mark.slow
@pytest.mark.parametrize("integrated", [False, True])
@pytest.mark.parametrize("moves", moves_with(None))
@pytest.mark.parametrize("points", INFERRED)
def test_moves_leave_the_posterior_in_long_runs(points, moves, integrated):
    grid = grid_of(points)
    made = [*moves_with(grid if integrated else None)[moves], PartitionHyperparameters(grid)]
    check(after(made, points, 10_000, 3), law(points))


def test_the_tempered_posterior_is_left():
    made = [*moves_with(grid_of("static"))["all"], PartitionHyperparameters(grid_of("static"))]
    counts = after(made, "static", 600, 4, beta=0.5)
    check(counts, law("static", 0.5))
    assert count_p_value(marginal(counts, 0), marginal(law("static"), 0)) < REJECT


def chain_ends(grid, moves, n_chains, seed):
    """Last draws of whole chains, hyperparameters' moves in their places."""
    hyper = {j: hyper_vector(family, h) for j, (family, _, h) in enumerate(COLUMNS)}
    families = {family: np.array([j]) for j, (family, _, _) in enumerate(COLUMNS)}
    fixed = {j: [None] * len(vector) for j, vector in hyper.items()}
    plan = ChainPlan(
        make_table(COLUMNS), families, hyper, fixed, grid, moves, partition_prior="finite"
    )
    counts = Counter()
    for child in np.random.SeedSequence(seed).spawn(n_chains):
        (draw,) = run_chain(plan, LinearAnneal(n_sweeps=24, final_sweeps=18), child)["draws"]
        place = grid.place(Finite(float(draw["concentration"]), float(draw["discount"])))
        counts[canonical(draw["labels"].tolist()), place] += 1
    return counts


@pytest.mark.parametrize("points", STATIC_FIRST)
@pytest.mark.slow
def test_chains_arrive(points):
    """From no rows, the moves in their default order with the draws of M."""
    moves = ("gibbs", "split_merge", "permutation")
    check(chain_ends(grid_of(points), moves, 120, 5), law(points))


# ------------------------------------------------------------------ broken moves of rows
def test_without_the_weights_of_the_components_it_fails():
    """Control: the numbers of components are taken for equally probable."""
    grid = grid_of("static", weighted=False)
    counts = after([SplitMerge(6, grid), PartitionHyperparameters(grid)], "static", 1000, 6)
    assert count_p_value(counts, law("static")) < REJECT


def test_without_a_new_number_of_components_it_fails():
    """Control: the number is integrated out of the splits, but stays what it was."""
    move = SplitMerge(n_proposals=30, grid=grid_of("static"))
    move.integrated.draw = lambda *_: None
    mixture, bit_generator = make_mixture(COLUMNS, seed=7)
    counts = Counter()
    for labels, i in draws(law("static"), 2000, 7):
        mixture.set_prior(grid_of("static").prior(i, Finite))
        set_partition(mixture, labels)
        move.sweep(mixture, bit_generator)
        counts[canonical(mixture.get_labels().tolist()), i] += 1
    check_counts(marginal(counts, 0), marginal(law("static"), 0))  # which alone is right
    assert count_p_value(counts, law("static")) < REJECT


@pytest.mark.parametrize("spare", [0, 1])
def test_a_component_too_many_fails(spare):
    """Control: Gibbs steps with weights written here, for M components or one more."""
    m, gamma = POINTS["three"][0][0]
    mixture, _ = make_mixture(COLUMNS)
    mixture.set_prior(Finite(gamma * m, -gamma))
    rng, counts = np.random.default_rng(8), Counter()
    set_partition(mixture, [0] * N)
    for u in rng.random((1500, 8 * N)):
        for t, point in enumerate(u):
            mixture.remove_row(t % N)
            log_prior, log_lik = mixture.scores(t % N)
            opening = gamma * (m + spare - mixture.n_clusters)
            log_prior[mixture.open_slot] = math.log(opening) if opening > 0 else -math.inf
            weights = np.cumsum(np.exp(log_prior + log_lik))
            slot = int(np.searchsorted(weights, point * weights[-1], side="right"))
            mixture.insert_row(t % N, slot)
        counts[canonical(mixture.get_labels().tolist())] += 1
    p_value = count_p_value(counts, marginal(law("three"), 0))
    assert p_value < REJECT if spare else p_value > 1e-4


# ------------------------------------------------------------------ moves of columns
def crosscat_case(data):
    """Fewer components than rows and fewer views than columns, at some of the points."""
    views = [(2.0, -1.0), (1.0, -1.0), (4.0, -1.0)]
    rows = [(1.0, -1.0), (2.0, -1.0), (0.9, -0.3)]
    weights = {"view_weights": (0.5, 0.2, 0.3), "row_weights": (0.5, 0.2, 0.3)}
    kind = {"kind": Finite, "target": FiniteCrossCat}
    return Case(DATA[data], views, rows, **weights, **kind)


@cache
def crosscat_law(data):
    return joint_law(crosscat_case(data))


@pytest.mark.parametrize("moves", [*COLUMN_MOVES, "all"])
@pytest.mark.few(1)
def test_columns_move_between_finitely_many_views(moves):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_stays(crosscat_case("differ"), crosscat_law("differ"), MOVES[moves], 120, seed=9)


@pytest.mark.slow
@pytest.mark.parametrize("moves", [*COLUMN_MOVES, "all"])
@pytest.mark.parametrize("data", ["differ", "agree"])
def test_columns_move_between_finitely_many_views_in_long_runs(data, moves):
    check_stays(crosscat_case(data), crosscat_law(data), MOVES[moves], 2000, seed=10)


@pytest.mark.slow
def test_crosscat_chains_arrive():
    moves = ("gibbs", "split_merge", *COLUMN_MOVES)
    schedule = LinearAnneal(n_sweeps=16, final_sweeps=12)
    counts = chain_counts(crosscat_case("differ"), moves, schedule, 40, 11)
    check_all(counts, crosscat_law("differ"))


@pytest.mark.parametrize(
    "moves",
    [m if m in FEW_CONTROLS else pytest.param(m, marks=pytest.mark.slow) for m in COLUMN_MOVES],
)
@pytest.mark.few(1)
def test_column_moves_without_the_weights_fail(moves):
    """Control: the numbers of components are taken for equally probable."""
    case, law = crosscat_case("differ"), crosscat_law("differ")
    equal = case._replace(row_weights=None, view_weights=None)
    counts = ends(case, draws_of(law, 600, 12), moves_of(equal, MOVES[moves]), 2, 12)
    assert count_p_value(summed(counts, weighted_points), summed(law, weighted_points)) < REJECT


# ------------------------------------------------------------------ estimators
def two_groups():
    rng = np.random.default_rng(13)
    return np.concatenate([rng.normal(-4, 1, (60, 2)), rng.normal(4, 1, (60, 2))])


ESTIMATORS = (AnnealedDPMixture, PermutationDPMixture, CrossCatPY)
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)
QUICK = {"partition_prior": "finite", "n_chains": 1, "random_state": 0}


@every_estimator
@pytest.mark.parametrize("concentration", ["infer", 2.0])
@pytest.mark.parametrize("point_estimate", ["map", "vi"])
@pytest.mark.few(2)
def test_estimators(estimator, concentration, point_estimate):
    X = two_groups()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = estimator(
            concentration=concentration, point_estimate=point_estimate, n_draws=30, **QUICK
        ).fit(X)
        assert model.n_clusters_ == 2
        assert np.isfinite(model.score_samples(X)).all()
        assert np.isfinite(model.surprisal(X)).all()
        assert (model.new_cluster_proba(X) < 0.05).all()  # one row is three sd from its centre
        model.sample(5)
    for draw in model.draws_[0]:
        prior = Finite(np.ravel(draw.concentration)[0], np.ravel(draw.discount)[0])
        assert np.max(draw.n_components) <= prior.max_clusters or estimator is CrossCatPY
        assert concentration == "infer" or prior.concentration == concentration
    assert np.isfinite(model.trace_["log_joint"][model.trace_["n_assigned"] > 0]).all()


def test_a_new_cluster_where_no_component_is_left():
    """If all components have rows, a row far off is in one of them."""
    model = AnnealedDPMixture(n_draws=1, **QUICK).fit(two_groups())
    ((draw,),) = model.draws_
    far = model.new_cluster_proba([[400.0, -400.0]])
    assert far == [0.0] if draw.concentration == draw.n_components else far > 0.5


@pytest.mark.parametrize("init", ["one", 40, "sequential"])
@pytest.mark.few(1)
def test_any_start(init):
    """More clusters at first than the first number of components."""
    model = PermutationDPMixture(init=init, **QUICK).fit(two_groups())
    assert model.n_clusters_ == 2
    assert np.isfinite(model.trace_["log_joint"]).all()


@every_estimator
@pytest.mark.parametrize(
    ("parameter", "value", "match"),
    [
        ("discount", 0.1, "^discount "),
        ("moves", ("gibbs",), "^moves .*split_merge"),
        ("concentration", 0.0, "^concentration "),
        ("concentration", -0.5, "^concentration "),
        ("expected_clusters", (3, 2), "^expected_clusters "),
        ("partition_prior", "infinite", "partition_prior"),
    ],
)
def test_what_does_not_go_with_it_is_refused(estimator, parameter, value, match):
    with pytest.raises(ValueError, match=match):
        estimator(**QUICK | {parameter: value}).fit(two_groups())


def test_a_discount_is_refused_that_is_another_estimators_default():
    with pytest.raises(ValueError, match="^discount "):
        AnnealedDPMixture(discount="infer", **QUICK).fit(two_groups())
    for name in ("discount", "view_discount"):
        with pytest.raises(ValueError, match=f"^{name} "):
            CrossCatPY(**QUICK, **{name: 0.0}).fit(two_groups())


def test_marginal_is_what_infer_is():
    fits = [
        PermutationDPMixture(concentration=how, **QUICK).fit(two_groups())
        for how in ("infer", "marginal")
    ]
    np.testing.assert_array_equal(fits[0].trace_["log_joint"], fits[1].trace_["log_joint"])


@pytest.mark.parametrize("family", ["normal", "multivariate_normal", "multivariate_t"])
@pytest.mark.parametrize(("n_columns", "most"), [(1, 0.01), (2, 0.1), (20, 0.794)])
def test_centres_are_spread_where_components_are_counted(family, n_columns, most):
    """A component fills a tenth of their volume at most: kappa0^(d / 2) <= 0.1."""
    X = np.random.default_rng(0).normal(size=(30, n_columns))
    quick = {"families": family, "n_chains": 1, "schedule": SequentialGibbs(n_sweeps=1)}
    counted, other = (
        AnnealedDPMixture(partition_prior=prior, random_state=0, **quick).fit(X)
        for prior in ("finite", "pitman_yor")
    )
    grid, whole = (model.hyperparameter_grids_[family]["kappa0"] for model in (counted, other))
    grid, whole = (np.atleast_2d(values)[0] for values in (grid, whole))
    np.testing.assert_array_equal(grid, whole[whole <= most * 1.001])
    assert len(grid) < len(whole) == (11 if family == "normal" else 9)
    drawn = counted.draws_[0][0].hyperparameters[family]["kappa0"]
    assert np.isin(np.atleast_1d(drawn), grid).all()


def test_given_centres_stay_and_views_keep_the_grid():
    X = np.random.default_rng(0).normal(size=(30, 1))
    quick = {"n_chains": 1, "schedule": SequentialGibbs(n_sweeps=1), "partition_prior": "finite"}
    given = AnnealedDPMixture(
        families="normal", hyperparameters={"normal": {"kappa0": 5.0}}, **quick
    ).fit(X)
    assert given.draws_[0][0].hyperparameters["normal"]["kappa0"] == [5.0]
    views = CrossCatPY(families="normal", **quick).fit(X)
    assert views.hyperparameter_grids_["normal"]["kappa0"][0].max() == pytest.approx(10.0)


def test_one_gaussian_column_is_one_component():
    """Of these numbers the probability was 0.66 with centres near each other, and is 0.96."""
    X = np.random.default_rng([0, 1000, 1]).normal(size=(1000, 1))
    model = AnnealedDPMixture(families="normal", partition_prior="finite", random_state=0).fit(X)
    numbers = [draw.n_components for chain in model.draws_ for draw in chain]
    assert np.mean(np.array(numbers) == 1) > 0.8 and model.n_clusters_ == 1
