"""CrossCat and the moves of features between its views, against exact laws by enumeration.

Every comparison is a chi-square test of independent states, fixed seeds, one try: a right move
alarms once in 10,000. Beside them stand wrong laws and broken moves that the same test must reject;
what it can tell apart is worked out from the transition matrices (test_power).
"""

import math
import types
from collections import Counter
from functools import cache, partial
from itertools import product

import numpy as np
import pytest

from oracles.bits import same_arrays
from oracles.crosscat_chains import (
    CHAIN_MOVES,
    COLUMN_MOVES,
    DATA,
    FEW_CONTROLS,
    MOVES,
    PRIORS,
    REJECT,
    SLOW,
    STATISTICS,
    Case,
    Rows,
    alone,
    big_state,
    chain_counts,
    check_all,
    check_stays,
    content_of,
    draws_of,
    ends,
    hypers_of,
    joint_law,
    key_of,
    law_of,
    make_case,
    make_state,
    moves_of,
    view_blocks,
    view_p_value,
    views_of,
    weighted_points,
)
from oracles.crosscat_enumeration import (
    CrossCatTarget,
    auxiliary_gibbs_matrix,
    auxiliary_sweep_matrix,
    block_sweep_law,
    feature_sets_matrix,
    law_error,
    row_scan_matrix,
    stationary_error,
    summed,
    view_labels,
    view_split_merge_matrix,
)
from oracles.enumeration import (
    canonical,
    check_counts,
    clusters,
    count_p_value,
    enumerate_posterior,
    log_eppf,
    partitions,
)
from oracles.mixtures import (
    in_cells,
    make_table,
    reference_log_likelihood,
)
from skanneal import moves as room
from skanneal.moves import (
    ColumnBlock,
    ColumnGibbs,
    ColumnSets,
    EachView,
    PartitionHyperparameters,
    SplitMerge,
    ViewReallocation,
    ViewSplitMerge,
    churn,
)
from skanneal.moves._column_kernels import choose_views
from skanneal.partition_priors import PitmanYor, PriorGrid
from skanneal.schedules import LinearAnneal
from skanneal.states import CrossCat, FreshView, Mixture, Subsample, state_from_arrays

EXACT, FAULT = 1e-10, 1e-3  # of one sweep by its matrix: right, and with a fault planted


# ------------------------------------------------------------------ cases


def hyper_case():
    """Everything inferred: pairs, and two columns' hyperparameters."""
    columns = list(DATA["agree"])
    for j, other in [(1, {"a": 3.0, "b": 0.4}), (2, {"rate": 2.0, "shape": 4.0})]:
        family, values, hyper = columns[j]
        names = list(other)
        choices = product(*[(hyper[name], other[name]) for name in names])
        columns[j] = family, values, [hyper | dict(zip(names, values)) for values in choices]
    return Case(columns, *PRIORS["PY"])


def weighted_case():
    """Pairs of unequal weight, and views of one cluster: concentration and discount are 0."""
    row_grid = [(0.0, 0.0), (0.7, 0.3), (2.0, 0.0)]
    weights = {"view_weights": (0.8, 0.2), "row_weights": (0.6, 0.1, 0.3)}
    return Case(DATA["differ"], PRIORS["PY"][0], row_grid, **weights)


@cache
def weighted_law():
    """joint_law of weighted_case(), kept."""
    return joint_law(weighted_case())


# ------------------------------------------------------------------ oracle
class NoShare(CrossCatTarget):
    """Every auxiliary weighs alpha + d V."""

    def log_share(self, n_views, n_auxiliary):
        return self.log_open(n_views)


class NoDiscountJoin(CrossCatTarget):
    def log_join(self, size):
        return math.log(size)


class NoDiscountOpen(CrossCatTarget):
    def log_open(self, n_views):
        return math.log(self.concentration)


class OwnViewCounts(CrossCatTarget):
    """V counts the view that the feature left empty."""

    def n_views(self, kept, emptied):
        return len(kept) + len(emptied)


FAULTS = [NoShare, NoDiscountJoin, NoDiscountOpen, OwnViewCounts]
PAIRS = [(1.0, 0.0), (0.8, 0.3), (-0.2, 0.5)]
every_pair = pytest.mark.parametrize("pair", PAIRS, ids=["DP", "PY", "negative"])


def vector(target):
    """The posterior as a vector over target.states()."""
    return np.array(list(target.posterior().values()))


@pytest.mark.parametrize(
    ("data", "n_states"), [("agree", 205), ("3x4", 15 + 3 * 15**2 + 15**3), ("4x4", 72_465)]
)
def test_states_are_counted_and_their_prior_sums_to_one(data, n_states):
    target = CrossCatTarget(DATA[data], (0.8, 0.3), [(0.7, 0.3)])
    silent = CrossCatTarget(DATA[data], (0.8, 0.3), [(0.7, 0.3)], beta=0.0)
    assert sum(1 for _ in target.states()) == n_states
    assert math.isclose(math.fsum(math.exp(silent.log_joint(s)) for s in silent.states()), 1.0)


def test_one_feature_is_a_mixture():
    case = Case(DATA["3x4"][1:2], [(0.3, 0.6)], [(0.7, 0.3)])
    law = summed(joint_law(case), lambda key: key[2][0][1][0])
    expected = enumerate_posterior(case.columns, 0.7, 0.3)
    assert all(math.isclose(law[labels], expected[labels]) for labels in expected)


def test_features_of_one_view_are_one_mixture():
    law = law_of("agree", "PY")
    together = {key[2][0][1][0]: p for key, p in law.items() if len(key[2]) == 1}
    total = math.fsum(together.values())
    expected = enumerate_posterior(DATA["agree"], *PRIORS["PY"][1][0])
    assert all(math.isclose(together[labels] / total, expected[labels]) for labels in expected)


@every_pair
def test_auxiliary_gibbs_is_exact(pair):
    target = CrossCatTarget(DATA["agree"], pair, [(0.7, 0.3)])
    for feature, n_auxiliary in product(range(3), (1, 2, 3)):
        matrix = auxiliary_gibbs_matrix(target, feature, n_auxiliary)
        assert stationary_error(target, matrix) < EXACT


ONCE, TWICE = [2, 0, 1], [0, 1, 2, 1, 0, 2]


@pytest.mark.parametrize(
    ("pair", "order"),
    [
        *((pair, ONCE) for pair in PAIRS),
        *(pytest.param(pair, TWICE, marks=() if pair == PAIRS[1] else SLOW) for pair in PAIRS),
    ],
)
@pytest.mark.few(1)
def test_the_block_sweep_is_exact(pair, order):
    """One pass or two on one pool."""
    target = CrossCatTarget(DATA["differ"], pair, [(0.7, 0.3)])
    after = block_sweep_law(target, vector(target), order, 0.2)
    assert law_error(target, after) < EXACT


@SLOW
def test_the_block_sweep_is_exact_with_many_fresh_views():
    target = CrossCatTarget(DATA["agree"], (0.8, 0.3), [(0.7, 0.3)])
    after = block_sweep_law(target, vector(target), [0, 1, 2], 2.0)
    assert law_error(target, after) < EXACT


@every_pair
@pytest.mark.parametrize("data", ["agree", "differ"])
@pytest.mark.few(3)
def test_views_split_and_merge_exactly(pair, data):
    target = CrossCatTarget(DATA[data], pair, [(0.7, 0.3)])
    assert stationary_error(target, view_split_merge_matrix(target, {0: 1.0})) < EXACT


@every_pair
def test_new_feature_sets_are_exact(pair):
    target = CrossCatTarget(DATA["agree"], pair, [(0.7, 0.3)])
    assert stationary_error(target, feature_sets_matrix(target)) < EXACT
    assert stationary_error(target, row_scan_matrix(target)) < EXACT


def test_a_view_of_a_grid_of_pairs_keeps_its_own():
    """Two rows, every view's pair one of two: the pair goes with the view."""
    columns = [(family, values[:2], hyper) for family, values, hyper in DATA["agree"]]
    target = CrossCatTarget(columns, (0.8, 0.3), [(0.7, 0.3), (2.0, 0.0)], beta=0.5)
    for feature in range(3):
        assert stationary_error(target, auxiliary_gibbs_matrix(target, feature, 2)) < EXACT
    assert stationary_error(target, feature_sets_matrix(target)) < EXACT
    views = view_split_merge_matrix(target, {0: 0.3, 1: 0.7})
    assert stationary_error(target, views) < EXACT
    assert stationary_error(target, row_scan_matrix(target)) < EXACT
    assert law_error(target, block_sweep_law(target, vector(target), [0, 1, 2], 0.5)) < EXACT


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.few(2)
def test_planted_faults_are_seen(fault):
    data = DATA["agree"], (0.8, 0.3), [(0.7, 0.3)]
    target, faulty = CrossCatTarget(*data), fault(*data)
    for feature in range(3):
        assert stationary_error(target, auxiliary_gibbs_matrix(faulty, feature, 2)) > FAULT
    after = block_sweep_law(faulty, vector(target), [0, 1, 2], 0.2)
    assert law_error(target, after) > FAULT
    if fault in (NoDiscountJoin, NoDiscountOpen):
        assert stationary_error(target, feature_sets_matrix(faulty)) > FAULT


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_fixed_pool_without_refill_is_seen(size):
    for pair in [(1.0, 0.0), (0.8, 0.3)]:
        target = CrossCatTarget(DATA["agree"], pair, [(0.7, 0.3)])
        after = block_sweep_law(target, vector(target), [0, 1, 2], size, {size: 1.0})
        assert law_error(target, after) > FAULT


def test_feature_sets_without_the_ratio_are_seen():
    target = CrossCatTarget(DATA["agree"], (0.8, 0.3), [(0.7, 0.3)])
    matrix = feature_sets_matrix(target, lambda *state: 0.0)
    assert stationary_error(target, matrix) > FAULT


def test_faulty_splits_of_views_are_seen():
    for data, pair in product(["agree", "differ"], [(1.0, 0.0), (0.8, 0.3)]):
        target = CrossCatTarget(DATA[data], pair, [(0.7, 0.3)])
        faults = [
            {"log_views": lambda n_others: 0.0},
            {"log_g": lambda t, features, *view: sum(t.log_lik[f][view[1]] for f in features)},
        ]
        for fault in faults:
            matrix = view_split_merge_matrix(target, {0: 1.0}, **fault)
            assert stationary_error(target, matrix) > FAULT


# ------------------------------------------------------------------ states of the package


# ------------------------------------------------------------------ moves leave their law
EVERY = list(room.COLUMN_MOVES.values())
# (data, prior, moves, starts)
FIXED = [
    *product(["agree", "differ"], ["PY"], COLUMN_MOVES, [2000]),
    *product(["agree", "differ"], ["DP", "steep"], MOVES, [1000]),
    *product(["3x4", "4x3", "4x4"], ["DP", "PY"], [*COLUMN_MOVES, "all"], [1000]),
]
INFERRED = [
    *product(["agree", "differ"], PRIORS, COLUMN_MOVES),
    *product(["4x3", "3x4"], ["DP", "PY"], ["all"]),
]


@pytest.mark.parametrize("moves", COLUMN_MOVES)
@pytest.mark.parametrize(("data", "prior"), [("agree", "steep"), ("differ", "PY")])
@pytest.mark.few(3)
def test_moves_leave_the_posterior_by_few_chains(data, prior, moves):
    """150 exact draws, two rounds of each column move alone with row Gibbs."""
    check_stays(make_case(data, prior), law_of(data, prior), MOVES[moves], 150)


@pytest.mark.parametrize(("data", "prior"), [("agree", "DP"), ("4x3", "PY"), ("4x4", "PY")])
@pytest.mark.few(1)
def test_all_moves_leave_the_posterior_by_few_chains(data, prior):
    check_stays(make_case(data, prior), law_of(data, prior), MOVES["all"], 50)


@pytest.mark.parametrize("moves", COLUMN_MOVES)
@pytest.mark.few(1)
def test_inferred_pairs_by_few_chains(moves):
    """Every view's pair and the features' pair inferred too."""
    check_stays(make_case("differ", "PY", True), law_of("differ", "PY", True), MOVES[moves], 100)


@pytest.mark.slow
def test_everything_inferred_by_few_chains():
    check_stays(hyper_case(), joint_law(hyper_case()), MOVES["all"], 50)


@pytest.mark.parametrize("moves", [*COLUMN_MOVES, "all"])
@pytest.mark.few(1)
def test_weighted_pairs_and_null_views_by_few_chains(moves):
    """The hyperprior's weights, one cluster of all rows among its points."""
    check_stays(weighted_case(), weighted_law(), MOVES[moves], 120)


@pytest.mark.slow
def test_annealed_chains_with_null_views_by_few():
    schedule, moves = LinearAnneal(n_sweeps=12, final_sweeps=8), CHAIN_MOVES["column_block"]
    check_all(chain_counts(weighted_case(), moves, schedule, 60, 13), weighted_law())


@pytest.mark.parametrize(
    "moves",
    [m if m in FEW_CONTROLS else pytest.param(m, marks=SLOW) for m in COLUMN_MOVES],
)
@pytest.mark.few(1)
def test_moves_that_ignore_the_weights_fail(moves):
    """Control: each move takes the pairs for equally probable."""
    case, law = weighted_case(), weighted_law()
    equal = case._replace(row_weights=None, view_weights=None)
    counts = ends(case, draws_of(law, 400, 8), moves_of(equal, MOVES[moves]), 2, 8)
    assert count_p_value(summed(counts, weighted_points), summed(law, weighted_points)) < REJECT


def flat_case():
    """The same with a weak likelihood, so that columns often change views, and pairs that differ in
    how many views they expect."""
    return weighted_case()._replace(beta=0.1, view_grid=[(0.1, 0.0), (5.0, 0.0)])


def block_moves(case, make):
    """The block move, which draws the columns' pair, and moves of the rows and of their pairs."""
    rows = case.grid_of("row")
    return [make(rows, case.grid_of("view")), Rows(), EachView(PartitionHyperparameters(rows))]


@pytest.mark.parametrize("n_starts", [200, pytest.param(4000, marks=SLOW)])
def test_the_block_draws_the_columns_pair(n_starts):
    """Views of one cluster among the fresh ones, and the pair drawn after each pass."""
    case, law = flat_case(), joint_law(flat_case())
    for n_auxiliary in (0.5, 2.0):
        moves = block_moves(case, partial(ColumnBlock, n_auxiliary=n_auxiliary))
        check_all(ends(case, draws_of(law, n_starts, 3), moves, 2, 3), law)


class WrongWeight(ColumnBlock):
    """Views of one cluster are opened too seldom."""

    def __init__(self, *grids):
        super().__init__(*grids)
        self.single_weight /= 3.0


class EverySingle(ColumnBlock):
    """Each empty view of one cluster counts for itself."""

    def _choose(self, state, view_of, scores, single, bit_generator):
        scores = scores + np.where(single & (np.arange(len(single)) >= state.n_views), 1.0, 0.0)
        return super()._choose(state, view_of, scores, single, bit_generator)


class OldSizes(ColumnBlock):
    """The pair is drawn given where the columns were."""

    def _draw_prior(self, state, view_of, bit_generator):
        super()._draw_prior(state, np.zeros_like(view_of), bit_generator)


@pytest.mark.parametrize("make", [WrongWeight, EverySingle, OldSizes])
def test_faulty_blocks_with_views_of_one_cluster_fail(make):
    case, law = flat_case(), joint_law(flat_case())
    counts = ends(case, draws_of(law, 1500, 4), block_moves(case, make), 3, 4)
    assert count_p_value(summed(counts, pair_and_points), summed(law, pair_and_points)) < REJECT


def pair_and_points(key):
    """The columns' pair, their partition, and how many views have the point of one cluster."""
    return key[0], views_of(key), sum(content[1] == 0 for _, content in key[2])


@pytest.mark.parametrize(
    ("n_views", "goes"), [(1, [1, 0]), (1, [0, 1, 1]), (3, [1, 1, 0, 1]), (2, [0, 0, 1, 0, 0])]
)
def test_the_ratio_of_a_reallocation_is_that_of_its_formula(n_views, goes):
    """log A, written from the formula of the move: of sets of features of unequal sizes, of which
    the chosen feature can be one of m, and one of n after the merge."""

    def rising(x, k):
        return math.prod(x + i for i in range(k))

    alpha, d, h = 0.7, 0.25, (0.2, 0.5, 0.3)
    t, q = (0.1, 0.6, 0.3), 0.037
    grid = PriorGrid([(0.0, 0.0), (0.7, 0.3), (2.0, 0.0)], np.log(h))
    move = ViewReallocation(grid)
    move._log_proposal = lambda state: np.log(t)
    state = types.SimpleNamespace(prior=PitmanYor(alpha, d))
    whole, parts = (1, math.log(3e-5)), [(2, math.log(0.004)), (0, math.log(0.03))]
    goes = np.array(goes, dtype=bool)
    n, m = len(goes), int(goes.sum())
    found = move._log_ratio(state, n_views, whole, parts, goes, math.log(q))
    constants = 0.004 * 0.03 / 3e-5
    pairs = (h[2] / t[2]) * (h[0] / t[0]) / (h[1] / t[1])
    choices = n / ((n_views + 1) * m * q)
    views = (alpha + d * n_views) * rising(1 - d, m - 1) * rising(1 - d, n - m - 1)
    expected = constants * pairs * choices * views / rising(1 - d, n - 1)
    assert math.exp(found) == pytest.approx(expected, rel=1e-12)


def test_pairs_are_proposed_by_the_hyperprior_and_by_what_they_cost():
    """A tenth for one cluster of all rows; the others by h / (1 + E(K)), E(K) by enumeration."""
    case, subsample = weighted_case(), Subsample(3, "random", np.random.PCG64(0))
    subsample.fill()
    state = make_state(case, fixed_starts(case)[0], make_table(case.columns), subsample)
    weights = [
        h / (1 + sum((max(p) + 1) * math.exp(log_eppf(sizes(p), *pair)) for p in partitions(3)))
        for h, pair in list(zip(case.row_weights, case.row_grid))[1:]
    ]
    expected = [0.1, *(0.9 * weight / sum(weights) for weight in weights)]
    for base in ViewSplitMerge, ViewReallocation:
        log_proposal = base(case.grid_of("row"))._log_proposal(state)
        np.testing.assert_allclose(np.exp(log_proposal), expected, rtol=1e-9)


@SLOW
@pytest.mark.parametrize("moves", [*COLUMN_MOVES, "all"])
def test_weighted_pairs_and_null_views(moves):
    check_stays(weighted_case(), weighted_law(), MOVES[moves], 1000)


@SLOW
@pytest.mark.parametrize(("data", "prior", "moves", "n_starts"), FIXED)
def test_moves_leave_the_posterior(data, prior, moves, n_starts):
    """1000 exact draws and more, which is what test_power asks for, two rounds of moves."""
    check_stays(make_case(data, prior), law_of(data, prior), MOVES[moves], n_starts)


@SLOW
@pytest.mark.parametrize(("data", "prior", "moves"), INFERRED)
def test_inferred_pairs(data, prior, moves):
    check_stays(make_case(data, prior, True), law_of(data, prior, True), MOVES[moves], 1000)


@SLOW
@pytest.mark.parametrize("moves", [*COLUMN_MOVES, "all"])
def test_everything_inferred(moves):
    """The features' own hyperparameters go with them from view to view."""
    check_stays(hyper_case(), joint_law(hyper_case()), MOVES[moves], 1000)


@pytest.mark.parametrize("moves", COLUMN_MOVES)
@pytest.mark.few(3)
def test_the_tempered_posterior_is_left(moves):
    """Exponent 0.5; the same states reject exponent 1."""
    case, law = make_case("differ", "PY", False, 0.5), law_of("differ", "PY", False, 0.5)
    counts = check_stays(case, law, MOVES[moves], 150, seed=2)
    assert count_p_value(counts, law_of("differ", "PY")) < REJECT


@pytest.mark.parametrize("prior", ["PY", pytest.param("DP", marks=SLOW)])
def test_silent_likelihood_returns_the_prior(prior):
    """From a fixed start: both levels have their prior, which is written down here anew."""
    case = make_case("silent", prior)
    start = next(iter(law_of("silent", prior)))
    counts = ends(case, [start] * 80, moves_of(case, MOVES["all"]), 3, 3)
    check_all(counts, law_of("silent", prior))
    pair, row_pair = case.view_grid[0], case.row_grid[0]
    views = {p: math.exp(log_eppf(sizes(p), *pair)) for p in partitions(3)}
    check_counts(summed(counts, views_of), views)
    rows = {p: math.exp(log_eppf(sizes(p), *row_pair)) for p in partitions(3)}
    check_counts(summed(counts, lambda key: content_of(key, 1)[0]), rows)
    # a control: another discount of the features
    other = {p: math.exp(log_eppf(sizes(p), pair[0], 0.8)) for p in partitions(3)}
    assert count_p_value(summed(counts, views_of), other) < REJECT


def sizes(labels):
    return [len(rows) for rows in clusters(labels)]


# ------------------------------------------------------------------ from a fixed start
# Rounds of moves that forget the start.
ROUNDS = {
    "column_gibbs": 5,
    "column_block": 5,
    "column_sets": 12,
    "view_split_merge": 8,
    "view_reallocation": 20,
    "view_annealing": 40,
    "all": 5,
}


def fixed_starts(case):
    """All in one place, and everything apart: the farthest from most of the posterior."""
    features, rows = range(len(case.columns)), range(case.n_rows)
    indices = (0,) * len(features)
    together = (tuple(features), (tuple(0 for _ in rows), 0))
    apart = tuple(((f,), (tuple(rows), 0)) for f in features)
    return [(0, indices, (together,)), (0, indices, apart)]


@pytest.mark.parametrize("prior", ["PY", *[pytest.param(p, marks=SLOW) for p in ("DP", "steep")]])
def test_rounds_forget_the_start(prior):
    """By the matrices: chi-square distance to the posterior after as many rounds as are made."""
    pair, row_pair = (grid[0] for grid in PRIORS[prior])
    target = CrossCatTarget(DATA["agree"], pair, [row_pair])
    pi, rows = vector(target), row_scan_matrix(target)
    sets, views = feature_sets_matrix(target), view_split_merge_matrix(target, {0: 1.0})
    rounds = {
        "column_gibbs": auxiliary_sweep_matrix(target, 3) @ rows,
        "column_sets": sets @ sets @ rows,
        "view_split_merge": np.linalg.matrix_power(views, 4) @ rows,
    }
    for moves, matrix in rounds.items():
        laws = np.linalg.matrix_power(matrix, ROUNDS[moves])
        assert ((laws - pi) ** 2 / pi).sum(axis=1).max() < 1e-5


def check_arrives(case, law, moves, n_starts, seed=4):
    """From both fixed starts, enough rounds of moves lead to exact draws."""
    starts = fixed_starts(case) * (n_starts // 2)
    counts = ends(case, starts, moves_of(case, MOVES[moves]), ROUNDS[moves], seed)
    check_all(counts, law)


@pytest.mark.parametrize("moves", COLUMN_MOVES)
@pytest.mark.few(1)
def test_moves_arrive_by_few_chains(moves):
    check_arrives(make_case("agree", "PY"), law_of("agree", "PY"), moves, 40)


@SLOW
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("moves", ROUNDS)
def test_moves_arrive(prior, moves):
    check_arrives(make_case("agree", prior), law_of("agree", prior), moves, 600)


# ------------------------------------------------------------------ broken moves
class GibbsFault(ColumnGibbs):
    """One feature at a time, its prior weights written here: views by size, fresh ones."""

    def __init__(self, row_grid, *, share=True, join=True, opening=True, own=False):
        super().__init__(row_grid)
        self.share, self.join, self.opening, self.own = share, join, opening, own

    def _fresh(self, state, n_views, bit_generator):
        self.alone = n_views < self.n_auxiliary
        return super()._fresh(state, n_views, bit_generator)

    def _log_prior(self, prior, sizes, n_auxiliary):
        alpha, d = prior.concentration, prior.discount
        n_views = np.count_nonzero(sizes) + (self.alone if self.own else 0)
        opens = alpha + (d * n_views if self.opening else 0.0)
        joins = sizes - (d if self.join else 0.0)
        empty = np.log(opens / (n_auxiliary if self.share else 1))
        return np.where(sizes > 0, np.log(np.maximum(joins, 1e-300)), empty)


class BlockFault(ColumnBlock):
    """The block sweep's choices written here, on the move's own table of scores."""

    def __init__(self, row_grid, *, share=True, join=True, opening=True, own=False):
        super().__init__(row_grid, n_auxiliary=3, n_passes=1)
        self.share, self.join, self.opening, self.own = share, join, opening, own

    def _choose(self, state, view_of, scores, single, bit_generator):
        alpha, d = state.prior.concentration, state.prior.discount
        generator = np.random.Generator(bit_generator)
        view_of = view_of.copy()
        for f in range(len(view_of)):
            size = np.bincount(np.delete(view_of, f), minlength=scores.shape[1])
            n_views = np.count_nonzero(size) + (self.own and size[view_of[f]] == 0)
            opens = alpha + (d * n_views if self.opening else 0.0)
            share = opens / (self.n_auxiliary if self.share else 1)
            prior = np.where(size > 0, size - (d if self.join else 0.0), share)
            weights = np.cumsum(prior * np.exp(scores[f] - scores[f].max()))
            view_of[f] = np.searchsorted(weights, generator.random() * weights[-1], side="right")
        return view_of


class FixedPool(ColumnBlock):
    """One fresh view, always, and no refill."""

    def __init__(self, row_grid):
        super().__init__(row_grid, n_auxiliary=1, n_passes=1)

    def sweep(self, state, bit_generator, *, beta=1.0):
        fresh = self._fresh(state, 1, bit_generator)
        scores = beta * self._scores(state, np.arange(state.table.n_columns), fresh)
        view_of = state.view_of
        columns = state.single_columns
        single = np.zeros(scores.shape[1], dtype=bool)
        weights = state.prior, 1.0, 0.0
        chosen = choose_views(view_of, columns, scores, single, *weights, bit_generator)
        state.reassign(chosen, fresh)


class SetsFault(ColumnSets):
    """Seats without the discount, or accepts whatever the likelihood says."""

    def __init__(self, row_grid, *, discount=True, ratio=True):
        super().__init__(row_grid, n_proposals=3)
        self.discount, self.ratio = discount, ratio

    def sweep(self, state, bit_generator, *, beta=1.0):
        prior = state.prior
        if not self.discount:
            state.set_prior(PitmanYor(prior.concentration, 0.0))
        super().sweep(state, bit_generator, beta=beta)
        state.set_prior(prior)

    def _scores(self, state, columns, fresh):
        return super()._scores(state, columns, fresh) * (1.0 if self.ratio else 0.0)


class ViewsFault(ViewSplitMerge):
    """Forgets that a split chooses among fewer views, or which features it chooses."""

    def __init__(self, row_grid, *, views=True, subset=True):
        super().__init__(row_grid, n_proposals=4)
        self.right_views, self.right_subset = views, subset

    def _log_ratio(self, state, log_g, *others):
        right = super()._log_ratio(state, log_g, *others)
        return right if self.right_views else right - np.log1p(1.0 / len(log_g))

    def _log_g(self, state, features, others, sizes, beta):
        right = super()._log_g(state, features, others, sizes, beta)
        m = len(features)
        subset = [math.log((n + m - 1) * math.comb(int(n + m), m)) for n in sizes]
        return right if self.right_subset else right + np.array(subset)


class ReallocationFault(ViewReallocation):
    """Forgets how many views there are to split, which features went, or the proposed pairs."""

    def __init__(self, row_grid, *, views=True, choice=True, pairs=True):
        super().__init__(row_grid, n_proposals=4)
        self.right_views, self.right_choice, self.right_pairs = views, choice, pairs

    def _log_ratio(self, state, n_views, whole, parts, goes, log_choice):
        log_choice = log_choice if self.right_choice else 0.0
        right = super()._log_ratio(state, n_views, whole, parts, goes, log_choice)
        return right if self.right_views else right + np.log(n_views + 1.0)

    def _log_proposal(self, state):
        right = super()._log_proposal(state)
        return right if self.right_pairs else right + 1.0


def copies_a_view(base):
    """The move with fresh views that copy the rows' partition of the first view there is."""

    class Copies(base):
        def _fresh(self, state, n_views, bit_generator):
            rows = state.subsample.rows()
            first = state.views[0]
            return [FreshView(first.prior, first.labels_of(rows)) for _ in range(n_views)]

    return Copies


def p_value_after(make, data, n_starts, n_rounds=3):
    """Of the partition of features, from exact draws."""
    case, law = make_case(data, "steep"), law_of(data, "steep")
    starts = draws_of(law, n_starts, 5)
    return view_p_value(ends(case, starts, moves_of(case, alone(make)), n_rounds, 5), law)


@pytest.mark.parametrize("make", [GibbsFault, BlockFault, SetsFault, ViewsFault, ReallocationFault])
@pytest.mark.parametrize(
    ("data", "n_starts"), [("differ", 100), pytest.param("agree", 3000, marks=SLOW)]
)
@pytest.mark.few(2)
def test_the_controls_are_right_without_their_fault(make, data, n_starts):
    assert p_value_after(make, data, n_starts) > 1e-4


CONTROLS = {
    "gibbs, no share": ("agree", lambda grid: GibbsFault(grid, share=False)),
    "gibbs, joins without discount": ("agree", lambda grid: GibbsFault(grid, join=False)),
    "gibbs, opens without discount": ("agree", lambda grid: GibbsFault(grid, opening=False)),
    "gibbs, own view counted": ("agree", lambda grid: GibbsFault(grid, own=True)),
    "gibbs, fresh views copy": ("agree", copies_a_view(ColumnGibbs)),
    "block, no share": ("agree", lambda grid: BlockFault(grid, share=False)),
    "block, joins without discount": ("agree", lambda grid: BlockFault(grid, join=False)),
    "block, opens without discount": ("agree", lambda grid: BlockFault(grid, opening=False)),
    "block, own view counted": ("agree", lambda grid: BlockFault(grid, own=True)),
    "block, fixed pool": ("agree", FixedPool),
    "block, fresh views copy": ("differ", copies_a_view(ColumnBlock)),
    "sets, no discount": ("agree", lambda grid: SetsFault(grid, discount=False)),
    "sets, no ratio": ("differ", lambda grid: SetsFault(grid, ratio=False)),
    "sets, fresh views copy": ("agree", copies_a_view(ColumnSets)),
    "views, number": ("agree", lambda grid: ViewsFault(grid, views=False)),
    "views, subset": ("agree", lambda grid: ViewsFault(grid, subset=False)),
    "reallocation, number": ("agree", lambda grid: ReallocationFault(grid, views=False)),
    "reallocation, choice": ("agree", lambda grid: ReallocationFault(grid, choice=False)),
    "reallocation, pairs": ("agree", lambda grid: ReallocationFault(grid, pairs=False)),
}


@pytest.mark.parametrize(
    "control",
    [
        "gibbs, no share",
        "block, opens without discount",
        "sets, no ratio",
        "views, subset",
        "reallocation, choice",
    ],
)
@pytest.mark.few(2)
def test_broken_moves_fail_by_few_chains(control):
    data, make = CONTROLS[control]
    assert p_value_after(make, data, 120) < REJECT


@SLOW
@pytest.mark.parametrize("control", CONTROLS)
def test_broken_moves_fail(control):
    data, make = CONTROLS[control]
    assert p_value_after(make, data, 3000) < REJECT


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.few(2)
def test_power(fault):
    """By the matrices: the counts that a fault would give are at p < 1e-4 from 1000 draws."""
    pair, row_pair = (grid[0] for grid in PRIORS["steep"])
    data = DATA["agree"], pair, [row_pair]
    target, faulty = CrossCatTarget(*data), fault(*data)
    rows, law = row_scan_matrix(target), target.posterior()
    matrices = [auxiliary_sweep_matrix(faulty, 2) @ rows]
    if fault in (NoDiscountJoin, NoDiscountOpen):
        sets = feature_sets_matrix(faulty)
        matrices.append(sets @ sets @ rows)
    for matrix in matrices:
        after = vector(target) @ matrix @ matrix
        views = summed(dict(zip(law, 1000 * after, strict=True)), view_labels)
        assert count_p_value(views, summed(law, view_labels)) < 1e-4


def test_fresh_views_of_one_pair_only_fail():
    """Control: fresh views must draw their pair from the whole hyperprior."""
    case, law = make_case("agree", "PY", True), law_of("agree", "PY", True)
    moves = [ColumnBlock(np.array(case.row_grid[:1]), n_auxiliary=4), Rows()]
    counts = ends(case, draws_of(law, 200, 6), moves, 3, 6)
    statistic = STATISTICS["hyperparameters"]
    assert count_p_value(summed(counts, statistic), summed(law, statistic)) < REJECT


@pytest.mark.slow
def test_moves_take_the_prior_from_the_state():
    """Control: the posterior of another discount is not left."""
    case, law = make_case("agree", "steep"), law_of("agree", "steep")
    other = case._replace(view_grid=[(0.1, 0.0)])
    for make in EVERY:
        starts = [(0, indices, views) for _, indices, views in draws_of(law, 140, 7)]
        counts = ends(other, starts, moves_of(other, alone(make)), 2, 7)
        assert view_p_value(counts, law) < REJECT


# ------------------------------------------------------------------ corners
@pytest.mark.parametrize("make", EVERY)
@pytest.mark.parametrize("n_features", [1, 2])
@pytest.mark.few(5)
def test_few_features(make, n_features):
    """Negative concentrations too: the only feature opens a view with probability 1."""
    case = Case(DATA["3x4"][1 : 1 + n_features], [(-0.2, 0.5)], [(0.7, 0.3)])
    law = joint_law(case)
    counts = ends(case, draws_of(law, 100, 8), moves_of(case, alone(make)), 2, 8)
    for statistic in (views_of, lambda key: content_of(key, 0), lambda key: key):
        check_counts(summed(counts, statistic), summed(law, statistic))


@pytest.mark.parametrize("make", EVERY)
@pytest.mark.parametrize("n_inside", [0, 1, pytest.param(2, marks=SLOW), 3])
@pytest.mark.few(3)
def test_moves_look_at_the_subsample_only(make, n_inside):
    """With some rows out, the law is that of the rows in S; the others keep no label."""
    bit_generator = np.random.PCG64(9)
    columns = DATA["3x4"]
    table = make_table(columns)
    subsample = Subsample(4, "random", bit_generator)
    for _ in range(n_inside):
        subsample.enter_row(bit_generator)
    rows = np.sort(subsample.rows())
    inside = [(family, [values[row] for row in rows], hyper) for family, values, hyper in columns]
    case = Case(inside, *(grid[:1] for grid in PRIORS["steep"]))
    law = joint_law(case)
    counts, move = Counter(), make(np.array(case.row_grid))
    for key in draws_of(law, 50, 9):
        state = make_state(Case(columns, *case[1:]), key, table, subsample)
        for _ in range(2):
            move.sweep(state, bit_generator)
            for view in state.views:
                for row in rows:
                    view.reseat_row(row, bit_generator)
        counts[key_of(case, state)] += 1
        for view in state.views:
            assert np.array_equal(np.flatnonzero(view.get_labels() >= 0), rows)
    state.validate()
    check_counts(summed(counts, views_of), summed(law, views_of))
    check_counts(counts, law)


def test_moves_report_what_they_did():
    case = make_case("4x4", "PY")
    bit_generator = np.random.PCG64(10)
    subsample = Subsample(4, "random", bit_generator)
    subsample.fill()
    state = make_state(case, fixed_starts(case)[0], make_table(case.columns), subsample)
    grid = np.array(case.row_grid)
    for move in (make(grid) for make in EVERY):
        for _ in range(20):
            before = key_of(case, state)
            info = move.sweep(state, bit_generator)
            assert 0 <= info.accepted <= info.proposed
            assert info.work >= 0
            if key_of(case, state) != before:
                assert info.accepted > 0


# ------------------------------------------------------------------ annealed chains


def test_annealed_chains_by_few():
    """40 chains, the last 8 of 12 sweeps with all rows."""
    case, law = make_case("differ", "PY"), law_of("differ", "PY")
    schedule = LinearAnneal(n_sweeps=12, final_sweeps=8)
    counts = chain_counts(case, CHAIN_MOVES["column_block"], schedule, 40, 11)
    check_all(counts, law)


@SLOW
@pytest.mark.parametrize("moves", CHAIN_MOVES)
@pytest.mark.parametrize(
    ("data", "prior", "inferred"),
    [("agree", "DP", False), ("differ", "PY", False), ("4x4", "PY", False), ("4x3", "PY", True)],
)
def test_annealed_chains(data, prior, inferred, moves):
    """1000 chains; the control is the posterior under another prior."""
    schedule = LinearAnneal(n_sweeps=30, final_sweeps=20)
    case = make_case(data, prior, inferred)
    counts = chain_counts(case, CHAIN_MOVES[moves], schedule, 1000, 12)
    check_all(counts, law_of(data, prior, inferred))
    other = "PY" if prior == "DP" else "DP"
    assert view_p_value(counts, law_of(data, other, inferred)) < REJECT


# ------------------------------------------------------------------ contracts of the state


ROW_GRID = np.array([(0.5, 0.0), (2.0, 0.0), (0.5, 0.4), (2.0, 0.4)])


def every_move():
    return [
        ColumnGibbs(ROW_GRID),
        EachView(SplitMerge()),
        ColumnBlock(ROW_GRID),
        ColumnSets(ROW_GRID),
        ViewSplitMerge(ROW_GRID),
        ViewReallocation(ROW_GRID),
        EachView(PartitionHyperparameters(ROW_GRID)),
        PartitionHyperparameters(ROW_GRID),
    ]


def shuffle_about(state, bit_generator, moves, n_rounds, knots):
    """Churn along a path and move, again and again."""
    for _ in range(n_rounds):
        churn(state.views, state.subsample, bit_generator, knots, 0, int(knots[-1, 0]))
        for move in moves:
            move.sweep(state, bit_generator)
        state.compact()


# S falls to 5 rows, rises to all 40, and falls to 30: rows leave, enter and are resampled.
KNOTS = np.array([[0, 30], [5, 5], [60, 40], [70, 30]])


def reference_log_joint(columns, state):
    """By the formulas, from labels and priors alone."""
    log_joint = log_eppf(state.sizes().tolist(), state.prior.concentration, state.prior.discount)
    log_joint += sum(prior.log_weight for prior in [state.prior, *(v.prior for v in state.views)])
    for v, view in enumerate(state.views):
        labels = canonical(view.get_labels().tolist())
        own = [columns[f] for f in np.flatnonzero(state.view_of == v)]
        pair = view.prior.concentration, view.prior.discount
        log_joint += log_eppf(sizes(labels), *pair) + reference_log_likelihood(own, labels)
    return log_joint


def check_statistics(columns, state):
    """The state's own checks; a rebuilt state and the formulas give the same log joint."""
    state.validate()
    rows = state.subsample.rows()
    expected = reference_log_joint(columns, state)
    assert math.isclose(state.log_joint(), expected, rel_tol=1e-9)
    rebuilt = 0.0
    for v, view in enumerate(state.views):
        own = np.flatnonzero(state.view_of == v)
        fresh = Mixture(
            state.table, view_blocks(state.table, columns, own), view.prior, state.subsample
        )
        fresh.replace(rows, view.get_labels()[rows])
        rebuilt += fresh.log_likelihood()
    ours = sum(view.log_likelihood() for view in state.views)
    assert math.isclose(ours, rebuilt, rel_tol=1e-9)


@pytest.mark.slow
def test_statistics_after_many_moves():
    """Some 3,000 steps of features and 5,000 assignments of rows."""
    columns, state, bit_generator = big_state(13)
    for _ in range(5):
        shuffle_about(state, bit_generator, every_move(), 12, KNOTS)
        check_statistics(columns, state)


@SLOW
def test_statistics_after_very_many_moves():
    """Over 100,000 steps of features and as many assignments of rows."""
    columns, state, bit_generator = big_state(14)
    moves = [*every_move(), ColumnBlock(ROW_GRID), ColumnBlock(ROW_GRID, n_passes=1)]
    for _ in range(20):
        shuffle_about(state, bit_generator, moves, 80, KNOTS)
        check_statistics(columns, state)


def test_running_on_from_arrays_is_running_on():
    """Bit for bit, whatever the state has been through."""
    columns, state, bit_generator = big_state(15)
    moves = every_move()
    shuffle_about(state, bit_generator, moves, 3, KNOTS)
    for n_rounds in (1, 3):
        arrays = state.to_arrays()
        subsample = Subsample.from_arrays(state.subsample.to_arrays())
        twin = state_from_arrays(arrays, state.table, subsample)
        assert isinstance(twin, CrossCat)
        assert same_arrays(twin.to_arrays(), arrays)
        twin_generator = np.random.PCG64()
        twin_generator.state = bit_generator.state
        shuffle_about(state, bit_generator, moves, n_rounds, KNOTS)
        shuffle_about(twin, twin_generator, every_move(), n_rounds, KNOTS)
        assert same_arrays(twin.to_arrays(), state.to_arrays())
        assert same_arrays(twin.subsample.to_arrays(), state.subsample.to_arrays())
        assert twin_generator.state == bit_generator.state
        assert twin.log_joint() == state.log_joint()
        twin.validate()


def test_a_state_without_rows_answers_the_same():
    """A draw predicts with a table that has no rows."""
    columns, state, bit_generator = big_state(16, n_rows=30)
    shuffle_about(state, bit_generator, every_move(), 3, np.array([[0, 30], [30, 30]]))
    empty = make_table([(family, [], hyper) for family, _, hyper in columns])
    for numbered in (False, True):
        alone = state_from_arrays(state.to_arrays(numbered), empty)
        for ours, theirs in zip(state.views, alone.views, strict=True):
            for a, b in zip(ours.score_rows(state.table), theirs.score_rows(state.table)):
                assert np.array_equal(a, b)


def test_log_joint_is_the_formulas():
    """In draws of the posterior; with exponent 0 it is the prior."""
    for data, prior in [("agree", "DP"), ("differ", "PY"), ("4x4", "PY")]:
        case = make_case(data, prior)
        arguments = case.columns, case.view_grid[0], case.row_grid
        target, silent = CrossCatTarget(*arguments), CrossCatTarget(*arguments, beta=0.0)
        subsample = Subsample(case.n_rows)
        subsample.fill()
        table = make_table(case.columns)
        for key in draws_of(law_of(data, prior), 50, 17):
            state = make_state(case, key, table, subsample)
            assert math.isclose(state.log_joint(), target.log_joint(key[2]), rel_tol=1e-9)
            assert math.isclose(state.log_joint(0.0), silent.log_joint(key[2]), abs_tol=1e-9)


@pytest.mark.parametrize("data", ["agree", "differ", "4x4"])
def test_the_table_of_column_scores_is_the_oracles(data):
    """Every column under every partition of the rows at once, and of some of the rows."""
    case = make_case(data, "DP")
    target = CrossCatTarget(case.columns)
    subsample = Subsample(case.n_rows)
    subsample.fill()
    key = fixed_starts(case)[1]
    state = make_state(case, key, make_table(case.columns), subsample)
    all_labels = list(partitions(case.n_rows))
    labels = np.array(all_labels, dtype=np.int32)
    order = np.arange(case.n_rows)[::-1].copy()
    columns = np.arange(len(case.columns))[::-1].copy()
    scores = state.column_scores(columns, order, labels[:, order].copy())
    expected = [[target.log_lik[f][p, 0] for p in all_labels] for f in columns]
    assert scores.shape == (len(columns), len(all_labels))
    assert np.allclose(scores, expected, rtol=0, atol=1e-9)


def test_column_scores_of_many_rows():
    """More rows than are read at a time, many slots, gaps: against the formulas."""
    columns, state, _ = big_state(18, n_rows=300, n_inside=290)
    rng = np.random.default_rng(18)
    rows = state.subsample.rows()
    n_slots = [1, 3, 40, 290, 17]
    labels = np.array([rng.permutation(np.arange(290) % n) for n in n_slots], dtype=np.int32)
    scores = state.column_scores(np.arange(len(columns)), rows, labels)
    for f, column in enumerate(columns):
        for v in range(len(n_slots)):
            whole = np.full(300, -1)
            whole[rows] = labels[v]
            expected = reference_log_likelihood(in_cells([column]), whole.tolist())
            assert math.isclose(scores[f, v], expected, rel_tol=1e-9, abs_tol=1e-9)


def test_reassigned_features_keep_their_hyperparameters():
    """All into two fresh views: the views' own partitions, the same hyperparameters."""
    columns, state, bit_generator = big_state(19)
    hyper = {j: vector.tolist() for j, vector in hypers_of(state).items()}
    rows, prior = state.subsample.rows(), PitmanYor(1.0, 0.2)
    fresh = [
        FreshView(prior, prior.draw(len(rows), bit_generator).astype(np.int32)) for _ in range(3)
    ]
    view_of = state.n_views + np.resize([0, 2, 0, 2, 2, 0, 0, 2], len(columns))
    state.reassign(view_of, fresh)
    assert state.view_of.tolist() == np.resize([0, 1, 0, 1, 1, 0, 0, 1], len(columns)).tolist()
    assert {j: vector.tolist() for j, vector in hypers_of(state).items()} == hyper
    for view, source in zip(state.views, fresh[::2], strict=True):
        assert np.array_equal(view.labels_of(rows), source.labels)
    check_statistics(columns, state)
