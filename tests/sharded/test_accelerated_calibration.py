"""AcceleratedDPMixture's algorithms with the logistic-normal multinomial, whose posterior nobody
knows: chains that begin at draws from the model keep its law, and ranks are uniform
(accelerated_calibration.py). One try; LEVEL per comparison, 1e-4 over the file."""

import pytest

from oracles.accelerated_calibration import Unweighted, World, end_counts, ranks
from oracles.accelerated_enumeration import chi_square
from skanneal.sharded import (
    Auxiliary,
    ExactStage,
    Importance,
    SliceSampler,
)

LEVEL = 1e-4 / 80
DIRICHLET = [(0.4, 0.0), (2.0, 0.0)]
PITMAN_YOR = [(0.4, 0.3), (2.0, 0.2)]
ONE, TWO = [0] * 5, [0, 1, 1, 0, 1]
STAGES = [
    (ExactStage(2), TWO),
    (Auxiliary(2), ONE),
    (Importance(2), ONE),
    (SliceSampler(2), TWO),
]


def _id(value):
    return getattr(value, "name", None)


each_stage = pytest.mark.parametrize(
    "stage, shard_of", STAGES, ids=lambda x: getattr(x, "name", "")
)
each_grid = pytest.mark.parametrize("grid", [DIRICHLET, PITMAN_YOR], ids=["DP", "PY"])


def law_p_value(stage, world, n_draws, seed):
    return chi_square(end_counts(world, stage, n_draws, seed=seed), world.law())


def rank_p_values(stage, world, n_truths, seed):
    found = ranks(world, stage, n_truths, seed=seed)
    uniform = dict.fromkeys(range(8), 1 / 8)
    return {name: chi_square(counts, uniform) for name, counts in found.items()}


@each_stage
@pytest.mark.parametrize(
    "grid", [DIRICHLET, pytest.param(PITMAN_YOR, marks=pytest.mark.slow)], ids=["DP", "PY"]
)
@pytest.mark.few(1)
def test_prior_law_is_kept(stage, shard_of, grid):
    assert law_p_value(stage, World(grid, shard_of), 250, 1) > LEVEL


@pytest.mark.slow
@each_stage
@each_grid
def test_ranks_are_uniform(stage, shard_of, grid):
    assert min(rank_p_values(stage, World(grid, shard_of), 600, 2).values()) > LEVEL


@pytest.mark.slow
def test_unweighted_auxiliaries_are_seen():
    assert law_p_value(Importance(2), World(DIRICHLET, ONE, Unweighted), 400, 3) < LEVEL
