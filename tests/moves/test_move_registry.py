"""The registries of moves are the only lists of them: a new one is a file and its import."""

import importlib
import inspect
import pkgutil

import numpy as np
import pytest

from skanneal import AnnealedDPMixture, CrossCatPY, moves
from skanneal.chains import _budget
from skanneal.schedules import SequentialGibbs

X = np.where(np.arange(60) % 2, 4.0, -4.0)[:, None] + np.random.default_rng(0).normal(size=(60, 3))


def classes_of_the_room():
    """Every class in a module of the room that users may name: (name, class)."""
    for _, module, _ in pkgutil.iter_modules(moves.__path__):
        module = importlib.import_module(f"skanneal.moves.{module}")
        for _, member in inspect.getmembers(module, inspect.isclass):
            if member.__module__ == module.__name__ and hasattr(member, "acts_on"):
                if hasattr(member, "name"):  # a base has none
                    yield member.name, member


def test_every_move_of_the_room_is_registered():
    assert dict(classes_of_the_room()) == moves.MOVES | moves.COLUMN_MOVES
    assert not moves.MOVES.keys() & moves.COLUMN_MOVES.keys()


class Nothing:
    """A move that does nothing, however often it is asked to."""

    name, exact, tempered = "nothing", True, True
    sweeps = 0

    def __init__(self, *grid):
        assert len(grid) == (self.acts_on == "columns")

    def sweep(self, state, bit_generator, *, beta=1.0):
        type(self).sweeps += 1
        return moves.MoveInfo(0, 0, 1)


@pytest.mark.parametrize(
    ("estimator", "acts_on"),
    [(AnnealedDPMixture, "rows"), (CrossCatPY, "rows"), (CrossCatPY, "columns")],
)
def test_a_new_move_is_known_everywhere(estimator, acts_on, monkeypatch):
    move = type("Nothing", (Nothing,), {"acts_on": acts_on})
    registry = moves.MOVES if acts_on == "rows" else moves.COLUMN_MOVES
    options = {"schedule": SequentialGibbs(n_sweeps=3), "n_chains": 1, "random_state": 0}
    model = estimator(moves=("gibbs", "nothing"), **options)
    with pytest.raises(ValueError, match="moves must be 'auto' or names among"):
        model.fit(X)
    monkeypatch.setitem(registry, "nothing", move)
    monkeypatch.setitem(_budget.SHARES, "nothing", 1.0)
    model.fit(X)
    assert move.sweeps > 0
    np.testing.assert_array_equal(
        model.labels_, estimator(moves=("gibbs",), **options).fit(X).labels_
    )
    with pytest.raises(ValueError, match="names among .*'nothing'"):
        estimator(moves=("gibbs", "unheard of"), **options).fit(X)
