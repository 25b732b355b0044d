"""The map of when tempering pays: its target, and what is read off its lines."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from papers import tempering_pays as pays
from skanneal.tempering import check_gradient, sample


@pytest.mark.parametrize("barrier", [2, 32])
def test_barriers_are_as_high_as_they_are_called(barrier):
    """The log likelihood of a mode less that of the point between the modes."""
    target, rows = pays.target(barrier, 64, 3), np.arange(64)
    top = np.array([pays.root_of(barrier, 64), 0.0, 0.0])
    heights = [target.log_likelihood(theta, rows)[0] for theta in (top, -top, 0 * top)]
    assert heights[0] == pytest.approx(heights[1])
    assert heights[0] - heights[2] == pytest.approx(barrier)


def test_gradient():
    target = pays.target(8, 64, 3)
    assert check_gradient(target, np.array([0.3, -0.2, 0.1])) is None


def test_both_modes_are_drawn():
    """About as often, by parallel tempering over a low barrier."""
    target = pays.target(2, 64, 2)
    result = sample(target, method="pt", inner="mh", n_draws=2000, random_state=0)
    assert 0.4 < (result.flat[:, 0] > 0).mean() < 0.6


def test_names_and_their_inverse():
    assert pays.setting_of(pays.data_of(8, 512, 20)) == (8, 512, 20)


def test_gains():
    """By seed; a seed in which neither method agrees is left out."""
    agreed = {"r_hat": 1.0, "bulk": 100.0, "kept_seconds": 2.0}
    stuck = {"r_hat": 2.0, "bulk": 4.0, "kept_seconds": 2.0}
    ways = {"none": {0: stuck, 1: stuck}, "pt": {0: agreed, 1: stuck}}
    assert pays.gains(ways, "pt") == [pytest.approx(np.log(25))]
