"""Basins of a density."""

import numpy as np
import pytest

from skanneal.summary._basins import basins
from skanneal.summary._dip import dip_evidence, scaled_dip


def by_the_formula(log_densities, first, second, log_heights, least):
    """Groups of rows as sets, joined edge by edge in falling order of heights; two groups that meet
    stay apart for good if sqrt(m) E / (2 m) of both is above `least`."""
    groups, apart = [{i} for i in range(len(log_densities))], []
    for edge in sorted(range(len(first)), key=lambda e: (-log_heights[e], e)):
        a, b = (next(group for group in groups if row[edge] in group) for row in (first, second))
        if a is b or any({frozenset(a), frozenset(b)} == pair for pair in apart):
            continue
        excess = [
            sum(1.0 - np.exp(log_heights[edge] - log_densities[i]) for i in group)
            for group in (a, b)
        ]
        m = 2 * min(len(a), len(b))
        if min(excess) / (2 * m) * np.sqrt(m) > least:
            apart.append({frozenset(a), frozenset(b)})
            continue
        before = frozenset(a), frozenset(b)
        groups = [group for group in groups if group is not a and group is not b] + [a | b]
        apart = [
            {frozenset(a | b) if group in before else group for group in pair} for pair in apart
        ]
    return groups


def some(seed, n_rows=40):
    """Densities of rows, and edges with heights no greater than those of their rows."""
    generator = np.random.default_rng(seed)
    log_densities = generator.normal(scale=1.5, size=n_rows)
    first = generator.integers(0, n_rows, 4 * n_rows)
    second = (first + generator.integers(1, n_rows, len(first))) % n_rows
    heights = np.minimum(log_densities[first], log_densities[second])
    return log_densities, first, second, heights - generator.exponential(0.3, len(first))


@pytest.mark.parametrize("least", [0.1, 0.3, 0.45])
@pytest.mark.parametrize("seed", range(8))
def test_basins_are_those_of_the_formula(seed, least):
    found = basins(*some(seed), least)
    groups = by_the_formula(*some(seed), least)
    assert sorted(map(sorted, groups)) == sorted(
        np.flatnonzero(found == k).tolist() for k in range(found.max() + 1)
    )


def test_the_settings_give_one_basin_and_several():
    numbers = {
        int(basins(*some(seed), least).max()) + 1 for seed in range(8) for least in (0.1, 0.45)
    }
    assert 1 in numbers and max(numbers) > 3


def test_rows_that_no_way_joins_are_apart():
    assert basins([0.0, 0.0, 0.0], [0], [1], [-1.0], 9.0).tolist() == [0, 0, 1]


def two_peaks(drop, n_rows=400):
    """A chain of rows that are as dense as two peaks with a saddle `drop` nats below them."""
    places = np.linspace(0.0, 4 * np.pi, n_rows)
    log_densities = drop * (np.cos(places) - 1.0) / 2
    first = np.arange(n_rows - 1)
    heights = np.minimum(log_densities[first], log_densities[first + 1])
    return log_densities, first, first + 1, heights


@pytest.mark.parametrize("drop, n_basins", [(0.05, 1), (2.0, 3)])
def test_a_deep_saddle_parts_and_a_ripple_does_not(drop, n_basins):
    assert basins(*two_peaks(drop), scaled_dip(np.log(2.0))).max() + 1 == n_basins


@pytest.mark.parametrize("evidence", [0.1, np.log(2.0), 3.0])
def test_a_scaled_dip_has_its_evidence(evidence, monkeypatch):
    monkeypatch.setattr("skanneal.summary._dip.dip", lambda values: scaled_dip(evidence) / 2)
    assert dip_evidence(np.zeros(4)) == pytest.approx(evidence)
