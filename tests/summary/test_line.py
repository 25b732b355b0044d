"""The second line between two groups: the formula in plain Python, and what it is for."""

import numpy as np
import pytest

from skanneal.summary._line import near_border


def distances(logs, sides):
    """Places of the rows of two groups of one size by their distances, in ascending order."""
    from_each, scales = [], []
    for g in (0, 1):
        top = max(logs[row, g] for row in sides[g])
        from_each.append([max(top - f, 0.0) ** 0.5 for f in logs[:, g]])
        scales.append(np.median([from_each[g][row] for row in sides[1 - g]]))
    place = [b / scales[1] - a / scales[0] for a, b in zip(*from_each)]
    n_far = len(sides[0]) // 4
    last = sorted((place[row] for row in sides[0]), reverse=True)[n_far]
    first = sorted(place[row] for row in sides[1])[n_far]
    return sorted(min(scales) * y for y in place if first <= y <= last)


@pytest.mark.parametrize("seed", range(4))
def test_places_by_distances_are_those_of_the_formula(seed):
    generator = np.random.default_rng(seed)
    centres, widths = np.array([[0.0, 0.0], [4.0, 1.0]]), generator.uniform(0.6, 1.6, 2)
    rows = np.repeat(centres, 30, axis=0) + generator.normal(size=(60, 2))
    logs = -((rows[:, None] - centres) ** 2).sum(axis=2) / (2 * widths**2) - 2 * np.log(widths)
    sides = np.arange(30), np.arange(30, 60)
    places = near_border(np.asfortranarray(logs), *sides, 0, 1, distances=True)
    np.testing.assert_allclose(places, distances(logs, sides), rtol=1e-12, atol=1e-12)
    assert not np.allclose(
        places[[0, -1]], near_border(np.asfortranarray(logs), *sides, 0, 1)[[0, -1]]
    )


def test_a_group_within_another_has_no_distances():
    """Most rows of the second are where the first is densest."""
    generator = np.random.default_rng(5)
    squares = np.sort(generator.exponential(size=40))
    logs = np.asfortranarray(np.c_[np.r_[squares[20:], squares[:20]] * -1.0, np.zeros(40)])
    sides = np.arange(20), np.arange(20, 40)
    assert np.median(logs[20:, 0]) > logs[:20, 0].max()
    by_distance, by_density = (near_border(logs, *sides, 0, 1, by) for by in (True, False))
    np.testing.assert_array_equal(by_distance, by_density)
