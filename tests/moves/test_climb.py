"""The climb to a partition that no single row betters, by the joint density of every neighbour."""

import numpy as np
import pytest

from oracles.mixtures import make_mixture, set_partition
from skanneal.moves import iterated_conditional_modes

N = 80
NORMAL = {"mu0": 0.0, "kappa0": 0.1, "nu0": 2.0, "sigma2_0": 0.5}


def mixture_of(seed):
    """Three groups that overlap, so that rows between them change sides for several passes."""
    rng, group = np.random.default_rng(seed), np.arange(N) % 3
    numbers = (rng.normal(size=N) + 1.8 * group).tolist()
    answers = (rng.random(N) < 0.2 + 0.3 * group).astype(int).tolist()
    columns = [("normal", numbers, NORMAL), ("bernoulli", answers, {"a": 1.0, "b": 1.0})]
    mixture, _ = make_mixture(columns)
    set_partition(mixture, rng.integers(4, size=N))
    return mixture


def best_gain(mixture):
    """By how much the best move of a single row, to any cluster or a new one, raises the joint."""
    labels, height = np.asarray(mixture.get_labels()).copy(), mixture.log_joint()
    gains = []
    for row in range(N):
        for k in range(labels.max() + 2):
            other = labels.copy()
            other[row] = k
            mixture.replace(np.arange(N), np.unique(other, return_inverse=True)[1])
            gains.append(mixture.log_joint() - height)
    mixture.replace(np.arange(N), labels)
    return max(gains)


@pytest.mark.parametrize("seed", range(5))
def test_no_single_row_betters_the_end(seed):
    mixture = mixture_of(seed)
    heights = [mixture.log_joint()]
    assert best_gain(mixture) > 0.1
    while iterated_conditional_modes(mixture, max_passes=1):
        heights.append(mixture.log_joint())
    assert len(heights) > 2 and (np.diff(heights) > -1e-4).all()
    assert best_gain(mixture) < 1e-3  # scores are of single precision
    at_once = mixture_of(seed)
    iterated_conditional_modes(at_once, max_passes=100)
    assert best_gain(at_once) < 1e-3 and at_once.log_joint() > heights[0]
    assert iterated_conditional_modes(at_once, max_passes=100) == 0


def test_a_climb_that_ends_early_can_be_bettered():
    gains = []
    for seed in range(4):
        mixture = mixture_of(seed)
        iterated_conditional_modes(mixture, max_passes=1)
        gains.append(best_gain(mixture))
    assert max(gains) > 0.1


def test_a_climb_keeps_to_the_fewest_and_the_most_clusters():
    mixture = mixture_of(0)
    iterated_conditional_modes(mixture, fewest_clusters=4)
    assert mixture.n_clusters >= 4
    mixture = mixture_of(0)
    before = np.asarray(mixture.get_labels()).copy()
    assert iterated_conditional_modes(mixture, most_clusters=3) == 0  # it has four to begin with
    np.testing.assert_array_equal(mixture.get_labels(), before)
