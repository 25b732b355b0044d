"""The budget: each move has a share of the churn's work, whatever it finds."""

from types import SimpleNamespace

import numpy as np
import pytest

from oracles.mixtures import make_table
from skanneal.chains import ChainPlan, _budget, run_chain
from skanneal.chains._budget import (
    LEAST_COST,
    ONCE,
    OWN_CALLS,
    SHARES,
    WHILE_GROWING,
    Budget,
    churn_cost,
)
from skanneal.chains._clock import ChainClock
from skanneal.moves import (
    CALL,
    COLUMN_MOVES,
    MOVES,
    FeatureHyperparameters,
    MoveInfo,
    SplitMerge,
    row_work,
)
from skanneal.parallel import StopFlag
from skanneal.schedules import LinearAnneal

NAMES = ("split_merge", "column_block", "view_reallocation")


def state_of(n_inside, n_rows=10_000, n_views=3, n_columns=2):
    """What a budget asks of a state."""
    view = SimpleNamespace(n_tiles=1, blocks=[SimpleNamespace(columns=np.arange(n_columns))])
    return SimpleNamespace(
        subsample=SimpleNamespace(size=n_inside),
        table=SimpleNamespace(n_rows=n_rows),
        views=[view] * n_views,
    )


def moves_of(made, work=lambda state: CALL, accepted=0, names=NAMES):
    """A move of each name, which notes that it was made."""

    def sweep(name):
        def note(state, bit_generator, *, beta):
            made.append(name)
            return MoveInfo(1, accepted, work(state))

        return note

    return [SimpleNamespace(name=name, sweep=sweep(name)) for name in names]


def counts(n_inside, n_churns=200, burn_in=True, budget=None, **given):
    """How often each move is made after so many churns of so many rows."""
    made, state = [], state_of(n_inside)
    budget = Budget(moves_of(made, **given), ChainClock()) if budget is None else budget
    for _ in range(n_churns):
        segment = SimpleNamespace(start=0, stop=n_inside, beta=1.0)
        after(budget, state, segment, burn_in)
    return np.array([made.count(name) for name in NAMES])


def after(budget, state, segment, burn_in=True):
    """Make what can be paid after a segment."""
    budget.look(state, burn_in)
    budget.make(budget.moves, state, None, segment, burn_in, StopFlag())


def work_of(state):
    """The work of a churn."""
    fixed, each = churn_cost(state)
    return fixed + each * state.subsample.size


def test_every_move_has_a_share():
    structure = {*MOVES, *COLUMN_MOVES} - {"gibbs"}
    assert set(SHARES) == structure | {FeatureHyperparameters.name} and min(SHARES.values()) > 0.0
    assert set(SHARES) > WHILE_GROWING | ONCE


def test_shares_are_of_a_churns_work():
    """Here of 100 rows in three views of two columns, whose clusters fill one tile."""
    churn = OWN_CALLS * CALL + 100 * 3 * 2 * row_work(2)
    assert churn_cost(state_of(100)) == [OWN_CALLS * CALL, 3 * 2 * row_work(2)]
    expected = 200 * np.array([SHARES[name] for name in NAMES]) * churn / (2 * CALL)
    np.testing.assert_allclose(counts(100, work=lambda state: 2 * CALL), expected, atol=1.0)


@pytest.mark.parametrize("n_inside", [10, 1000, 9999])
def test_a_move_that_costs_what_the_churn_does_has_its_share_at_every_size(n_inside):
    expected = 200 * np.array([SHARES[name] for name in NAMES])
    np.testing.assert_allclose(counts(n_inside, work=work_of), expected, atol=1.0)


def test_at_full_data_moves_of_growing_subsamples_rest():
    assert (counts(10_000) > 0).tolist() == [True, True, False]
    assert (counts(9_999) > 0).all()


def test_what_moves_find_does_not_change_how_often_they_are_made():
    np.testing.assert_array_equal(counts(100, accepted=1), counts(100, accepted=0))


def test_costs_and_the_churns_work_are_frozen_after_burn_in():
    """Else the states in which a sweep costs little, or the churn much, would be favoured."""
    made, dear = [], [False]
    budget = Budget(moves_of(made, lambda state: CALL * (10 if dear[0] else 1)), ChainClock())
    counts(100, budget=budget)
    costs, churn = budget.costs.copy(), budget.churn.copy()
    assert set(costs) == set(NAMES)
    before = len(made)
    counts(100, burn_in=False, budget=budget)
    as_learned, dear[0] = len(made) - before, True
    for n_views in (3, 30):
        before, state = len(made), state_of(100, n_views=n_views)
        for _ in range(200):
            segment = SimpleNamespace(start=0, stop=100, beta=1.0)
            after(budget, state, segment, False)
        assert abs(len(made) - before - as_learned) <= len(NAMES)
    assert budget.costs == costs and budget.churn == churn
    before = len(made)
    counts(100, budget=budget)  # the control: while burn-in lasts, moves that cost more are rarer
    assert len(made) - before < as_learned / 2


def test_a_cost_is_a_mean_in_which_later_sweeps_count_more():
    made = []
    budget = Budget(moves_of(made, lambda state: CALL * len(made)), ChainClock())
    for _ in range(3):
        counts(100, n_churns=1, budget=budget)
    n = budget.n_averaged["split_merge"]
    at = np.flatnonzero(np.array(made) == "split_merge")
    fixed, each = budget.churn
    works = CALL * (at[:n] + 1) / (fixed + each * 100)
    assert n >= 2
    mean = np.average(works, weights=np.arange(1, n + 1))
    assert budget.costs["split_merge"] == pytest.approx(mean)
    assert budget.costs["split_merge"] != pytest.approx(works.mean())  # the control


def test_a_cost_that_is_not_known_is_that_of_the_first_sweep():
    made = []
    budget = Budget(moves_of(made, lambda state: CALL * (1 + 9 * len(made))), ChainClock())
    counts(100, burn_in=False, budget=budget)
    assert set(budget.costs) == set(NAMES)
    before, costs = len(made), budget.costs.copy()
    counts(100, burn_in=False, budget=budget)
    assert len(made) > before and budget.costs == costs


def test_a_budget_goes_on_where_it_was():
    made, other_made = [], []
    budget, other = (Budget(moves_of(m), ChainClock()) for m in (made, other_made))
    counts(100, n_churns=7, budget=budget)
    other.recall(budget.memory())
    made.clear()
    for one in (budget, other):
        counts(100, n_churns=50, budget=one)
    assert made == other_made and len(made) > 10


def test_a_move_that_costs_nothing_ends():
    assert counts(1, n_churns=1, work=lambda state: 0).max() <= 1 + 2 / LEAST_COST


@pytest.mark.parametrize(
    ("cost", "n_churns", "n_sweeps"), [(2.0, 1, 1), (2.0, 4, 1), (0.5, 1, 1), (0.5, 4, 4)]
)
def test_the_first_sweep_is_made_at_once_and_paid_for_afterwards(cost, n_churns, n_sweeps):
    """A move with a share of 1/2; what a sweep costs is in churns."""
    made, state = [], state_of(1)
    moves = moves_of(made, lambda state: cost * sum(churn_cost(state)))
    budget, segment = Budget(moves, ChainClock()), SimpleNamespace(start=0, stop=1, beta=1.0)
    for _ in range(n_churns):
        after(budget, state, segment, True)
    assert SHARES["split_merge"] == 0.5 and made.count("split_merge") == n_sweeps


@pytest.mark.parametrize(("cost", "every"), [(0.01, 1), (0.9, 1), (2.0, 2), (5.0, 5)])
def test_hyperparameters_are_drawn_at_most_once_after_a_churn(cost, every):
    """What a draw costs is in shares of churns. What is left of the share of a cheap one is not
    saved up."""
    cost = cost * SHARES["hyperparameters"]
    made, moves = [], {"hyperparameters": cost, "split_merge": 0.1}
    budget = Budget(
        [
            move
            for name, of_move in moves.items()
            for move in moves_of(made, lambda state, c=of_move: c * work_of(state), names=[name])
        ],
        ChainClock(),
    )
    counts(100, n_churns=200, budget=budget)
    made.clear()
    counts(100, n_churns=200, budget=budget)
    assert made.count("hyperparameters") == pytest.approx(200 / every, abs=1)
    assert made.count("split_merge") == pytest.approx(1000, abs=1)  # the control: often in a churn
    assert budget.credit["hyperparameters"] <= max(cost, SHARES["hyperparameters"])


def test_what_a_draw_of_hyperparameters_costs_is_that_of_the_last_one():
    """Beside a churn of few rows it is large, and a mean would be slow to follow as rows enter."""
    made = []
    budget = Budget(moves_of(made, lambda state: 1e9, names=["hyperparameters"]), ChainClock())
    for n_inside in (100, 9_000, 9_000):
        segment = SimpleNamespace(start=0, stop=n_inside, beta=1.0)
        budget.credit["hyperparameters"] = 1e9
        after(budget, state_of(n_inside), segment, True)
    assert len(made) == 3
    assert budget.costs["hyperparameters"] == pytest.approx(1e9 / work_of(state_of(9_000)))


def test_a_chain_without_moves():
    budget = Budget([], ChainClock())
    segment = SimpleNamespace(start=0, stop=10, beta=1.0)
    assert budget.make([], state_of(10), None, segment, True, StopFlag()) is None
    assert budget.expected(state_of(10), segment) == 0.0


def test_what_moves_are_expected_to_take():
    made, clock = [], ChainClock()
    budget, segment = Budget(moves_of(made), clock), SimpleNamespace(start=0, stop=100, beta=1.0)
    budget.churn = [float(CALL), 0.0]
    budget.credit["split_merge"] = 0.5
    assert budget.expected(state_of(100), segment) == np.inf  # split_merge is due, and unknown
    for name, rate in zip(NAMES, (1.0, 2.0, 4.0)):
        clock._last[name] = [rate]
    budget.costs, budget.credit["split_merge"] = dict.fromkeys(NAMES, 0.125), 0.0
    n_sweeps = np.array([SHARES[name] // 0.125 for name in NAMES])
    assert budget.expected(state_of(100), segment) == 100 * n_sweeps @ [1.0, 2.0, 4.0]
    assert budget.expected(state_of(10_000), segment) == 10_000 * n_sweeps[:2] @ [1.0, 2.0]


def test_a_share_is_changed_by_one_line(monkeypatch):
    """Of split-merge twice as much: a chain makes twice as many sweeps of it."""
    rng, made = np.random.default_rng(0), []
    table = make_table([("normal", rng.normal(size=60).tolist(), {}) for _ in range(2)])
    sweep = SplitMerge.sweep
    monkeypatch.setattr(
        SplitMerge, "sweep", lambda *args, **named: made.append(1) or sweep(*args, **named)
    )
    plan = ChainPlan(
        table,
        {"normal": np.arange(2)},
        {j: np.array([0.0, 1.0, 2.0, 1.0]) for j in range(2)},
        {},
        np.array([[1.0, 0.0]]),
        ("gibbs", "split_merge"),
    )
    n_sweeps = []
    for share in (SHARES["split_merge"], 2.0 * SHARES["split_merge"]):
        made.clear()
        monkeypatch.setitem(_budget.SHARES, "split_merge", share)
        run_chain(plan, LinearAnneal(n_sweeps=60), np.random.SeedSequence(1))
        n_sweeps.append(len(made))
    assert n_sweeps[1] / n_sweeps[0] == pytest.approx(2.0, rel=0.15)
