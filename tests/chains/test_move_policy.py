"""Which moves follow a churn: one while the subsample grows, all at full data."""

from collections import Counter
from types import SimpleNamespace

import pytest

from skanneal.chains._clock import ChainClock
from skanneal.chains._move_policy import Turns
from skanneal.moves import MoveInfo

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
    policy = Turns(moves_of(made, accepted), ChainClock())
    for _ in range(n_churns):
        made.append([])
        policy.make(state_of(n_inside, n_rows), None, STEPS, False, None)
    return made


def moves_of(made, accepted=0):
    """A move of each name, which notes that it was made."""

    def sweep(name):
        def note(state, bit_generator, *, beta):
            made[-1].append(name)
            return MoveInfo(1, accepted, 1)

        return note

    return [
        SimpleNamespace(sweep=sweep(name), weight=w, only_while_growing=name == "split")
        for name, w in WEIGHTS.items()
    ]


def shares(made):
    return Counter(name for names in made for name in names)


def test_one_move_follows_while_the_subsample_grows():
    made = turns_of(100, 10_000, 90, accepted=1)
    assert {len(names) for names in made} == {1}
    assert shares(made) == {name: 10 * weight for name, weight in WEIGHTS.items()}


def test_what_moves_find_does_not_change_their_turns():
    assert turns_of(100, 10_000, 90, accepted=1) == turns_of(100, 10_000, 90, accepted=0)


@pytest.mark.parametrize("n_rows", [100, 10**6])
def test_at_full_data_all_moves_follow_but_those_of_growing_subsamples(n_rows):
    kept = [name for name in WEIGHTS if name != "split"]
    assert turns_of(n_rows, n_rows, 5) == [kept] * 5


def test_turns_go_on_where_they_were():
    policy, other = Turns(moves_of([]), ChainClock()), Turns(moves_of([]), ChainClock())
    first = [policy._turn()[0] for _ in range(13)]
    other.recall(policy.memory())
    assert [policy._turn() for _ in range(9)] == [other._turn() for _ in range(9)]
    assert len(set(first)) == len(WEIGHTS)


def test_a_chain_without_moves_has_no_turns():
    policy = Turns([], ChainClock())
    for n_inside in (10, 100):
        assert policy.make(state_of(n_inside, 100), None, STEPS, False, None)[1] == 0.0
        assert policy.expected(state_of(n_inside, 100), STEPS) == 0.0


def test_what_moves_are_expected_to_take():
    """Before a turn the longest; a churn of all rows has all that are made there."""
    clock = ChainClock()
    policy = Turns(moves_of([]), clock)
    for i, seconds in enumerate((1.0, 2.0, 4.0, 6.0, 8.0)):
        clock._last[i] = [seconds]
    assert policy.expected(state_of(10, 8000), STEPS) == 80.0  # the longest may be next
    assert policy.expected(state_of(8000, 8000), STEPS) == 8000 * (1.0 + 2.0 + 4.0 + 8.0)
    assert policy._of_full_data(state_of(10, 4000), 0.0) == 10 * 15.0
