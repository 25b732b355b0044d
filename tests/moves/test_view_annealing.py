"""Annealed splits and merges of views, where hyperparameters are drawn on the way.

The move stands in the registry, whose tests in test_crosscat_moves.py hold hyperparameters fixed;
here each path draws them. Exact draws of the enumerated posterior make a few proposals and must
stay exact draws: one try each, a right move alarms once in 10,000. Planted faults must be seen.
"""

from functools import cache

import numpy as np
import pytest

from oracles.crosscat_chains import (
    REJECT,
    Case,
    content_of,
    draws_of,
    ends,
    joint_law,
    view_blocks,
    views_of,
)
from oracles.crosscat_enumeration import summed
from oracles.enumeration import check_counts, count_p_value
from oracles.mixtures import hyper_vector, make_table
from skanneal.moves import ViewAnnealing
from skanneal.moves._allocate import enter_rows, leave_rows
from skanneal.moves._view_annealing import stages
from skanneal.partition_priors import PitmanYor
from skanneal.states import CrossCat, Mixture, Subsample

SLOW = pytest.mark.slow


def case():
    """Two columns of numbers in two clusters each, with a narrow or a wide scale of clusters."""
    columns = []
    for values in ([-2.0, 2.0, -1.96875, 2.0], [1.5, -1.5, -1.53125, 1.5]):
        hyper = {"mu0": 0.0, "kappa0": 0.3, "nu0": 3.0}
        columns.append(("normal", values, [hyper | {"sigma2_0": scale} for scale in (0.1, 3.0)]))
    row_grid = [(0.0, 0.0), (0.7, 0.3), (2.0, 0.0)]
    return Case(columns, [(0.7, 0.0)], row_grid, row_weights=(0.1, 0.6, 0.3))


CASE = case()
STATISTICS = (
    views_of,
    lambda key: (views_of(key), content_of(key, 0), key[1][0]),
    lambda key: (len(set(content_of(key, 0)[0])), len(set(content_of(key, 1)[0])), key[1]),
    lambda key: (views_of(key), content_of(key, 0)[1]),
)


@cache
def law():
    return joint_law(CASE)


def grids_of(case):
    """The grid of each coordinate that differs between a column's hyperparameters."""
    grids = {}
    for j, ((family, _, _), mappings) in enumerate(zip(case.columns, case.mappings())):
        values = np.array([hyper_vector(family, mapping) for mapping in mappings]).T
        grids[j] = [np.unique(v) if len(set(v)) > 1 else None for v in values]
    return grids


def counts_after(make, n_starts, seed, n_rounds=2):
    moves = [make(CASE.grid_of("row"), grids_of(CASE))]
    return ends(CASE, draws_of(law(), n_starts, seed), moves, n_rounds, seed)


def annealing(base=ViewAnnealing, n_steps=2):
    return lambda grid, grids: base(grid, grids, n_steps=n_steps)


@pytest.mark.parametrize("n_steps", [0, 2, pytest.param(9, marks=SLOW)])
def test_hyperparameters_drawn_on_the_way(n_steps):
    counts = counts_after(annealing(n_steps=n_steps), 200, 1)
    for statistic in STATISTICS:
        check_counts(summed(counts, statistic), summed(law(), statistic))


@SLOW
@pytest.mark.parametrize("n_steps", [0, 2, 9])
def test_hyperparameters_drawn_on_the_way_by_many_chains(n_steps):
    counts = counts_after(annealing(n_steps=n_steps), 3000, 2)
    for statistic in STATISTICS:
        check_counts(summed(counts, statistic), summed(law(), statistic))


class KeptHyperparameters(ViewAnnealing):
    """What is drawn on the way is forgotten in the end."""

    def _make(self, *arguments):
        point, log_z, view = super()._make(*arguments)
        return point, log_z, view._replace(hyper={})


class Unnormalised(ViewAnnealing):
    """Normalisers that are not divided by t + alpha, of the views that are made."""

    def _make(self, state, features, rows, *arguments):
        point, log_z, view = super()._make(state, features, rows, *arguments)
        return point, log_z + view.prior.log_total(len(rows)), view


def p_value(base, n_starts, n_rounds=8):
    counts = counts_after(annealing(base, 3), n_starts, 3, n_rounds)
    return min(count_p_value(summed(counts, f), summed(law(), f)) for f in STATISTICS)


@SLOW
@pytest.mark.parametrize(("base", "n_starts"), [(Unnormalised, 1500), (KeptHyperparameters, 1500)])
def test_faults_are_seen(base, n_starts):
    assert p_value(base, n_starts) < REJECT


def state_of(n_rows, seed):
    """A view of rows in two clusters."""
    rng = np.random.default_rng(seed)
    values = (4.0 * rng.integers(0, 2, n_rows) + rng.normal(size=n_rows)).tolist()
    columns = [("normal", values, {"mu0": 0.0, "kappa0": 0.1, "nu0": 3.0, "sigma2_0": 1.0})]
    return columns


class Noted:
    """Stands for a move of hyperparameters: it notes that it is made."""

    def __init__(self, name, path):
        self.name, self.path = name, path

    def sweep(self, view, bit_generator, *, beta=1.0):
        self.path.append(self.name)


def test_the_way_back_makes_the_steps_of_a_way_there_in_reverse_order(monkeypatch):
    """q(path) Z = p(s, x) q(backward path | s) holds of the reversed steps alone; before the first
    row all but the pair, which has a law of its own, are drawn from the prior."""
    subsample, n_rows = Subsample(11, "random", np.random.PCG64(5)), 11
    subsample.fill()
    columns = state_of(n_rows, 5)
    table = make_table(columns)
    view = Mixture(table, view_blocks(table, columns, [0]), PitmanYor(0.7, 0.3), subsample)
    view.replace(np.arange(n_rows), np.zeros(n_rows, dtype=np.int64))
    state = CrossCat(table, [view], [0], PitmanYor(0.7, 0.0), subsample)
    move = ViewAnnealing(np.array([[0.7, 0.3]]), n_steps=2)
    path, rows, bits = [], subsample.rows(), np.random.PCG64(6)
    for name, real in (("enter_rows", enter_rows), ("leave_rows", leave_rows)):

        def noted(view, order, start, stop, *rest, real=real):
            path.append((start, stop))
            return real(view, order, start, stop, *rest)

        monkeypatch.setattr(f"skanneal.moves._view_annealing.{name}", noted)
    move.draws = [Noted(name, path) for name in ("pair", "mu0", "kappa0", "sigma2_0")]
    move._make(state, np.array([0]), rows, 1.0, bits)
    there = path.copy()
    path.clear()
    move._unmake(state, 0, rows, 1.0, bits)
    stage = ["pair", "mu0", "kappa0", "sigma2_0"]
    assert there == [*stage[1:], (0, 4), *stage, (4, 8), *stage, (8, 11), *stage]
    assert path == there[3:][::-1]


def test_a_way_back_ends_without_rows():
    """No cluster is left when as many rows have left as have entered."""
    columns, bit_generator = state_of(50, 4), np.random.PCG64(4)
    table = make_table(columns)
    subsample = Subsample(50, "random", bit_generator)
    subsample.fill()
    view = Mixture(table, view_blocks(table, columns, [0]), PitmanYor(1.0, 0.2), subsample)
    order = np.random.default_rng(0).permutation(50)
    log_z = [enter_rows(view, order, *stage, 3, 1.0, bit_generator) for stage in stages(50)]
    assert np.isfinite(log_z).all() and view.sizes().sum() == 50
    view.validate()
    back = [
        leave_rows(view, order, *stage, 3, 1.0, bit_generator) for stage in reversed(stages(50))
    ]
    assert np.isfinite(back).all() and view.n_clusters == 0
    assert stages(3) == [(0, 3)] and stages(0) == [(0, 0)] and stages(8) == [(0, 4), (4, 8)]
