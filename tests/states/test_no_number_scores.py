"""Scores that are NaN or infinite: no compiled step uses them as the place of anything."""

import numpy as np
import pytest

from skanneal.families import FAMILIES, Table
from skanneal.moves._order_programs import OrderProgram
from skanneal.partition_priors import PitmanYor
from skanneal.sharded._assign import block, draw_rows, move_all_but_last, sweep_tail, tiled
from skanneal.states import Mixture, Subsample


def numbers(n=20, mu0=np.nan):
    """A table and a mixture of one column whose scores are all NaN, all rows in one cluster."""
    table = Table(["f4"], [0])
    table.append([np.linspace(-1.0, 1.0, n).astype(np.float32)])
    blocks = [FAMILIES["normal"](table, [0], [[mu0, 1.0, 1.0, 1.0]])]
    subsample = Subsample(n)
    subsample.fill()
    mixture = Mixture(table, blocks, PitmanYor(1.0, 0.0), subsample)
    mixture.replace(np.arange(n), np.zeros(n, int))
    return table, mixture


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("share", [0.1, 1.0])
def test_draws(bad, share):
    rng = np.random.default_rng(0)
    scores = block(50, 70)
    scores[:] = rng.normal(size=scores.shape)
    scores[rng.random(scores.shape) < share] = bad
    drawn, log_mass = np.full(50, 99, np.int32), np.zeros(50)
    draw_rows(scores, tiled(np.zeros(70)), drawn, log_mass, np.random.PCG64(0))
    assert ((drawn >= -1) & (drawn < 70)).all()
    assert np.isneginf(log_mass[drawn < 0]).all() and np.isfinite(log_mass[drawn >= 0]).all()
    chosen = np.flatnonzero(drawn >= 0)
    assert np.isfinite(scores[chosen, drawn[chosen]]).all()
    if share == 1.0:
        assert (drawn == -1).all()


def test_a_row_without_a_draw_stays():
    room = np.array([7, 2, 1], dtype=np.int64)  # what lies before the members is not theirs
    labels, drawn = np.array([0, 0, 1], np.int32), np.array([-1, 1, -1], np.int32)
    move_all_but_last(labels, drawn, room[1:], np.zeros(2, np.uint8))
    assert labels.tolist() == [0, 1, 1] and drawn.tolist() == [0, 1, 1]
    assert room.tolist() == [7, 1, 2]


@pytest.mark.parametrize("in_tail", [False, True])
def test_a_row_that_nothing_produces(in_tail):
    n = 20
    _, tail = numbers(n)
    labels = np.full(n, -1, np.int32)
    room = np.array([7, 0], dtype=np.int64)
    drawn = np.full(n, -1, np.int32)
    if not in_tail:
        tail.replace(np.arange(0), np.arange(0))
        labels[:], drawn[:], room[1] = 0, 0, n
    log_mass = np.full(n, -np.inf)
    held, stop = np.zeros(1, np.uint8), np.zeros(1, np.int32)
    parts = labels, drawn, log_mass, room[1:], held, 0.0, 1.0
    done, stuck = sweep_tail(tail, *parts, np.random.PCG64(0), stop)
    assert (done, stuck) == (False, 0)
    assert room[0] == 7


@pytest.mark.parametrize("mu0", [np.nan, np.inf, 1e300])
def test_a_slot_that_is_drawn_is_open(mu0):
    n = 40
    _, mixture = numbers(n, mu0)
    rng = np.random.PCG64(0)
    for row in [*range(n)] * 3:
        others = mixture.sizes()
        others[mixture.labels_of([row])[0]] -= 1
        mixture.reseat_row(row, rng)
        k = mixture.labels_of([row])[0]
        assert others[k] > 0 or k == np.flatnonzero(others == 0)[0]


def test_cuts_without_a_weight():
    n = 6
    _, mixture = numbers(n)
    segments = OrderProgram(mixture)
    segments.forward(mixture, np.arange(n), np.zeros(n + 1))
    labels = segments.draw_exact(np.zeros(n + 1), np.random.PCG64(0))
    assert ((labels >= 0) & (labels < n)).all()
