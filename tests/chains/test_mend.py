"""Views that are made anew while a subsample grows."""

import math

import numpy as np
import pytest

from oracles.bits import same_arrays
from oracles.mixtures import make_table
from skanneal.chains import STARTS, ChainPlan, _mend, _starts
from skanneal.chains._column_groups import binned, column_groups, dependence, joined
from skanneal.chains._first_state import first_state
from skanneal.chains._mend import grown, mend_views, parts_of
from skanneal.chains._starts import begin_chain
from skanneal.parallel import Progress, StopFlag
from skanneal.partition_priors import PriorGrid
from skanneal.schedules import AcceleratingAnneal
from skanneal.states import FreshView, Subsample
from skanneal.summary._lead import Lead

PAIRS = PriorGrid([(0.0, 0.0), (0.5, 0.0), (2.0, 0.0)])


# ------------------------------------------------------------------ which columns depend
def slow_excess(a, b):
    """G - df of two columns and 2 df, from the definition."""
    kept = [(x, y) for x, y in zip(a, b) if x >= 0 and y >= 0]
    n, g = len(kept), 0.0
    for x, y in set(kept):
        expected = sum(u == x for u, _ in kept) * sum(v == y for _, v in kept) / n
        observed = kept.count((x, y))
        g += 2.0 * observed * math.log(observed / expected)
    n_a, n_b = len({x for x, _ in kept}), len({y for _, y in kept})
    df = max(n_a - 1, 0) * max(n_b - 1, 0)
    return g - df, 2.0 * df


def test_dependence_against_the_definition():
    rng = np.random.default_rng(0)
    bins = [rng.integers(-1, 4, 90), rng.integers(-1, 3, 90), np.full(90, -1), np.zeros(90, int)]
    bins.append(np.where(rng.random(90) < 0.7, bins[0], 5))
    excess, variance = dependence(bins)
    for j, a in enumerate(bins):
        for k, b in enumerate(bins):
            if j != k:
                slow = slow_excess(a.tolist(), b.tolist())
                assert (excess[j, k], variance[j, k]) == pytest.approx(slow, abs=1e-8)


def test_bins():
    rng = np.random.default_rng(1)
    numbers = rng.normal(size=100)
    numbers[:10] = np.nan
    levels = np.r_[np.arange(12), np.zeros(40), np.full(36, 5), np.full(12, 13)].astype(int)
    counts = rng.poisson(3.0, 100)
    columns = [
        ("normal", [None if x != x else x for x in numbers], {}),
        ("categorical", [None if x == 13 else x for x in levels.tolist()], {"n_levels": 13}),
        ("poisson", counts.tolist(), {}),
        ("normal", [None] * 100, {}),
    ]
    table = make_table([(f, v, {"pseudo_counts": np.ones(13)} if h else h) for f, v, h in columns])
    of_numbers = binned(table, 0)
    assert (of_numbers[:10] == -1).all() and np.bincount(of_numbers[10:]).tolist() == [18] * 5
    order = np.argsort(numbers[10:])
    assert (np.diff(of_numbers[10:][order]) >= 0).all()
    of_levels = binned(table, 1)
    assert (of_levels == -1).tolist() == (levels == 13).tolist()
    assert (of_levels[levels == 0] == 0).all() and (of_levels[levels == 5] == 1).all()
    assert of_levels.max() == 7 and (of_levels == 7).sum() == 5  # 12 levels, 5 of them in one bin
    order = np.argsort(counts, kind="stable")
    assert (np.diff(binned(table, 2)[order]) >= 0).all()
    assert (binned(table, 3) == -1).all()


def test_sets_are_joined_by_the_means_of_their_pairs():
    z = np.array([[0, 9, 3, 4], [9, 0, 3, 3], [3, 3, 0, 8], [4, 3, 8, 0]], dtype=float)
    variance = np.full((4, 4), 4.0)
    assert [group.tolist() for group in joined(2.0 * z, variance)] == [[0, 1, 2, 3]]
    z[0, 2] = z[2, 0] = 1.9  # a pair of sets has 2.975 on average, one of its pairs 4
    assert [group.tolist() for group in joined(2.0 * z, variance)] == [[0, 1], [2, 3]]
    assert joined(np.zeros((3, 3)), np.ones((3, 3))) == [] == joined(np.empty((0, 0)), np.empty(0))


def test_sets_of_columns_that_depend_by_chance_stay_apart():
    """All pairs between two sets of four columns with a common cause show the same accident."""
    wrong = sum(
        len(column_groups(plan_of(sets_of_four(600, seed)).table)) != 2 for seed in range(40)
    )
    assert wrong <= 3


# ------------------------------------------------------------------ views made anew
def sets_of_four(n_rows, seed, n_views=2):
    """Values of true and false: sets of four columns, each with two clusters of its own."""
    rng = np.random.default_rng(seed)
    sides = np.repeat(rng.random((n_rows, n_views)) < 0.5, 4, axis=1)
    return rng.random((n_rows, 4 * n_views)) < np.where(sides, 0.85, 0.2)


def plan_of(X, **options):
    at = range(X.shape[1])
    return ChainPlan(
        make_table([("bernoulli", column.tolist(), {}) for column in X.T]),
        {"bernoulli": np.arange(X.shape[1])},
        {j: np.ones(2) for j in at},
        {j: [None, None] for j in at},
        PAIRS,
        ("gibbs", "split_merge"),
        view_grid=PAIRS,
        starts=tuple(STARTS),
        **options,
    )


def state_of(plan, n_inside, columns, seed=0):
    bit_generator = np.random.PCG64(seed)
    subsample = Subsample(plan.table.n_rows, "random", bit_generator)
    for _ in range(n_inside):
        subsample.enter_row(bit_generator)
    state = first_state(plan._replace(columns="apart"), subsample, "empty", bit_generator)
    labels = np.zeros(n_inside, dtype=np.int32)
    for view in state.views:
        view.replace(subsample.rows(), labels)
    if columns == "together":
        whole = FreshView(state.views[0].prior, labels)
        state.reassign(np.full(plan.table.n_columns, state.n_views), [whole])
    return state


TRUE = [0, 0, 0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize("columns", ["together", "apart"])
def test_true_views_are_found(columns):
    for seed in range(5):
        plan = plan_of(sets_of_four(1200, seed))
        state = state_of(plan, 600, columns)
        assert mend_views(plan, state, np.random.PCG64(seed), StopFlag()) > 0
        assert np.unique(state.view_of, return_inverse=True)[1].tolist() in (TRUE, TRUE[::-1])
        state.validate()
        # What is right stays, and no random number of the chain's own is drawn.
        before = state.to_arrays()
        assert mend_views(plan, state, np.random.PCG64(seed), StopFlag()) == 0
        assert same_arrays(before, state.to_arrays())


def test_rows_that_nobody_has_seen_judge(monkeypatch):
    """Groups of columns that do not belong together are tried, and left as they were."""
    plan = plan_of(sets_of_four(1200, 0))
    state = state_of(plan, 600, "together")
    mend_views(plan, state, np.random.PCG64(0), StopFlag())
    before = state.to_arrays()
    wrong, tried = [np.array([0, 1, 6, 7]), np.array([2, 3, 4, 5])], []
    monkeypatch.setattr(_mend, "column_groups", lambda table: wrong)
    monkeypatch.setattr(_mend, "parts_of", lambda *given: tried.append(given) or parts_of(*given))
    assert mend_views(plan, state, np.random.PCG64(1), StopFlag()) == 0 and len(tried) == 2
    assert same_arrays(before, state.to_arrays())
    monkeypatch.setattr(_mend, "_gain", lambda *given: Lead(1.0, 0.0))  # the control: no judge
    assert mend_views(plan, state, np.random.PCG64(1), StopFlag()) > 0


def test_what_was_far_behind_is_not_tried_again(monkeypatch):
    """On more rows, in a race; a group that may yet catch up is."""
    plan, made, behind = plan_of(sets_of_four(1200, 0)), [], set()
    state = state_of(plan, 600, "together")
    mend_views(plan, state, np.random.PCG64(0), StopFlag())
    wrong = [np.array([0, 1, 6, 7]), np.array([2, 3, 4, 5])]
    monkeypatch.setattr(_mend, "column_groups", lambda table: wrong)
    monkeypatch.setattr(_mend, "grown", lambda *given: made.append(given) or grown(*given))
    gains = iter([Lead(-3.5, 1.0), Lead(-2.5, 1.0), Lead(-4.0, 1.0)])
    monkeypatch.setattr(_mend, "_gain", lambda *given: next(gains))
    for n_tried, known in ((2, {(0, 1, 6, 7)}), (1, {(0, 1, 6, 7), (2, 3, 4, 5)}), (0, None)):
        made.clear()
        assert mend_views(plan, state, np.random.PCG64(1), StopFlag(), behind) == 0
        assert len(made) == 3 * n_tried  # the group, and what it leaves of two views
        assert known is None or behind == known


def test_independent_columns_make_no_groups():
    rng = np.random.default_rng(3)
    wrong = sum(len(column_groups(plan_of(rng.random((500, 6)) < 0.4).table)) for _ in range(40))
    assert wrong <= 25  # a pair is above 3 with probability 0.022: more in 1 of 1,000 runs


def test_what_is_not_mended(monkeypatch):
    plan = plan_of(sets_of_four(1200, 0))
    raised = StopFlag()
    raised.set()
    assert mend_views(plan, state_of(plan, 600, "together"), np.random.PCG64(0), raised) == 0
    assert mend_views(plan, state_of(plan, 1180, "together"), np.random.PCG64(0), StopFlag()) == 0
    for name, value in (("MOST_COLUMNS", 7), ("MOST_ROWS", 599), ("MOST_TRIES", 0)):
        with monkeypatch.context() as changed:
            changed.setattr(_mend, name, value)
            state = state_of(plan, 600, "together")
            assert mend_views(plan, state, np.random.PCG64(0), StopFlag()) == 0


def test_a_chain_is_mended_at_the_sizes_of_the_race(monkeypatch):
    """Also once the race is over; columns that begin apart are in the true views in the end."""
    plan, found = plan_of(sets_of_four(2000, 5, 4), columns="apart"), []

    def noted(plan, state, *arguments):
        found.append(state.subsample.size)
        return mend_views(plan, state, *arguments)

    monkeypatch.setattr(_starts, "mend_views", noted)
    schedule = AcceleratingAnneal(n_sweeps=6, passes=10, small_size=50, big_size=1e6)
    chain = begin_chain(plan, schedule, np.random.SeedSequence(1), 0, None, StopFlag(), Progress())
    assert len(found) == 3 and found[0] >= 250 and found[1] >= 500 and found[2] >= 1000
    sets = chain.state.view_of.reshape(4, 4)
    assert (sets == sets[:, :1]).all() and len(np.unique(sets)) == chain.state.n_views == 4
