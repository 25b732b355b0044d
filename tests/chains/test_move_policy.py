"""Which moves follow a churn: turns while the subsample grows, and on large tables."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from oracles.crosscat_chains import (
    CHAIN_MOVES,
    REJECT,
    SLOW,
    chain_counts,
    check_all,
    law_of,
    make_case,
    view_p_value,
)
from skanneal.chains import _move_policy
from skanneal.chains._clock import ChainClock
from skanneal.chains._move_policy import FEW_ROWS, IDLE_PERIOD, Turns
from skanneal.moves import SMALL_TABLE, EachView, MoveInfo, SplitMerge
from skanneal.schedules import LinearAnneal

WEIGHTS = {"split_merge": 4, "block": 2, "sets": 1, "split": 1, "merge": 1}
STEPS = SimpleNamespace(beta=1.0)


def state_of(n_inside, n_rows):
    """What a policy asks of a state."""
    return SimpleNamespace(
        subsample=SimpleNamespace(size=n_inside), table=SimpleNamespace(n_rows=n_rows)
    )


def turns_of(n_inside, n_rows, n_churns, accepted=0):
    """The names of the moves after each churn."""
    made = []

    def sweep(name):
        def note(state, bit_generator, *, beta):
            made[-1].append(name)
            return MoveInfo(1, accepted, 1)

        return note

    moves = [
        SimpleNamespace(
            sweep=sweep(name), weight=w, acts_on="rows" if name == "split_merge" else "columns"
        )
        for name, w in WEIGHTS.items()
    ]
    policy = Turns(moves, ChainClock())
    for _ in range(n_churns):
        made.append([])
        policy.make(state_of(n_inside, n_rows), None, STEPS, False, None)
    return made


def shares(made):
    return Counter(name for names in made for name in names)


def test_one_move_follows_while_the_subsample_grows():
    made = turns_of(100, 10_000, 90, accepted=1)
    assert {len(names) for names in made} == {1}
    assert shares(made) == {name: 10 * weight for name, weight in WEIGHTS.items()}


def test_idle_moves_miss_most_turns_while_the_subsample_grows_only():
    made = turns_of(100, 10_000, 900)
    assert shares(made)["split_merge"] < 400 / IDLE_PERIOD + 10
    full = turns_of(10_000, 10_000, 900)
    assert full == turns_of(10_000, 10_000, 900, accepted=1)


def test_most_churns_of_few_rows_of_a_large_table_in_views_have_no_moves():
    """The others come at even distances, whatever else the policy remembers."""
    of_columns = [SimpleNamespace(acts_on="columns", weight=1)]
    policy = Turns(of_columns, ChainClock())
    rests = [policy.rests(state_of(FEW_ROWS - 1, SMALL_TABLE + 1)) for _ in range(4)]
    again = Turns(of_columns, ChainClock())
    again.recall(policy.memory())
    rests += [again.rests(state_of(FEW_ROWS - 1, SMALL_TABLE + 1)) for _ in range(5)]
    assert rests == [True, True, False] * 3
    for few, inside, rows in [
        (of_columns, FEW_ROWS, SMALL_TABLE + 1),
        (of_columns, FEW_ROWS - 1, SMALL_TABLE),
        ([SimpleNamespace(acts_on="rows", weight=1)], FEW_ROWS - 1, SMALL_TABLE + 1),
    ]:
        policy = Turns(few, ChainClock())
        assert not any(policy.rests(state_of(inside, rows)) for _ in range(6))


@pytest.mark.parametrize("n_rows", [100, SMALL_TABLE])
def test_all_moves_follow_on_small_tables(n_rows):
    assert turns_of(n_rows, n_rows, 5) == [list(WEIGHTS)] * 5


@pytest.mark.parametrize(("n_rows", "n_turns"), [(2001, 4), (5000, 2), (8000, 1), (10**6, 1)])
def test_moves_of_columns_share_turns_on_large_tables(n_rows, n_turns):
    """In a cycle of five turns, which their weights fill."""
    made = turns_of(n_rows, n_rows, 50)
    assert {len(names) for names in made} == {1 + n_turns}
    counts = shares(made)
    assert counts.pop("split_merge") == 50
    assert counts == {name: 10 * n_turns * WEIGHTS[name] for name in counts} and len(counts) == 4
    assert made[:5] * 10 == made


def test_a_mixture_has_its_moves_after_each_churn(monkeypatch):
    monkeypatch.delitem(WEIGHTS, "block")
    for name in ("sets", "split", "merge"):
        monkeypatch.delitem(WEIGHTS, name)
    assert turns_of(10_000, 10_000, 3) == [["split_merge"]] * 3


def test_what_moves_are_expected_to_take():
    """Before a turn the longest of those that share it; a churn of all rows has all of them in
    proportion."""
    clock = ChainClock()
    moves = [SimpleNamespace(weight=w, acts_on="columns") for w in WEIGHTS.values()]
    moves[0].acts_on = "rows"
    policy = Turns(moves, clock)
    for i, seconds in enumerate((1.0, 2.0, 4.0, 6.0, 8.0)):
        clock._last[i] = [seconds]

    def expected(n_inside, n_rows):
        state = SimpleNamespace(
            subsample=SimpleNamespace(size=n_inside), table=SimpleNamespace(n_rows=n_rows)
        )
        return policy.expected(state, STEPS)

    assert expected(10, 8000) == 80.0  # the longest may be next
    assert expected(8000, 8000) == 8000 * (1.0 + 8.0)
    assert expected(4000, 4000) == 4000 * (1.0 + 2 * 8.0)
    assert expected(100, 100) == 100 * 21.0
    state = SimpleNamespace(subsample=SimpleNamespace(size=10), table=SimpleNamespace(n_rows=4000))
    assert policy._of_full_data(state) == 10 * (1.0 + 2 * 5.0)


def chains_with_turns(monkeypatch, case, n_sweeps, n_chains):
    """Counts of chains of all moves; with all rows the moves of columns have a turn per sweep."""
    monkeypatch.setattr(_move_policy, "SMALL_TABLE", 0.5)
    schedule = LinearAnneal(n_sweeps=n_sweeps, final_sweeps=n_sweeps - 4)
    return chain_counts(case, CHAIN_MOVES["all"], schedule, n_chains, 11)


def test_turns_at_full_data_leave_the_posterior_by_few(monkeypatch):
    counts = chains_with_turns(monkeypatch, make_case("differ", "PY"), 24, 60)
    check_all(counts, law_of("differ", "PY"))


@SLOW
@pytest.mark.parametrize(("data", "prior", "other"), [("agree", "DP", "PY"), ("4x4", "PY", "DP")])
def test_turns_at_full_data_leave_the_posterior(monkeypatch, data, prior, other):
    """1000 chains; the control is the posterior under another prior."""
    counts = chains_with_turns(monkeypatch, make_case(data, prior), 60, 1000)
    check_all(counts, law_of(data, prior))
    assert view_p_value(counts, law_of(data, other)) < REJECT


def test_views_of_large_tables_share_what_a_sweep_of_few_rows_works(monkeypatch):
    def note(self, *given, **named):
        tries.append(self._tries(100))
        return MoveInfo(0, 0, 0)

    monkeypatch.setattr(SplitMerge, "sweep", note)
    tries, each = [], EachView(SplitMerge())
    for n_rows in (SMALL_TABLE, SMALL_TABLE + 1):
        state = SimpleNamespace(table=SimpleNamespace(n_rows=n_rows), views=[None] * 4)
        each.sweep(state, np.random.PCG64(0))
    assert tries == [(100, 20.0)] * 4 + [(100, 10.0)] * 4
