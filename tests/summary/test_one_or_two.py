"""Two normal laws against one bump: known laws, controls."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm
from sklearn.mixture import GaussianMixture

from skanneal.summary import _one_or_two
from skanneal.summary._discriminant import discriminant_places
from skanneal.summary._one_or_two import (
    _EDGES,
    _MIDDLES,
    _STEPS,
    _WIDTH,
    _bumps,
    _on_line,
    _places,
    log_odds,
)
from skanneal.summary._two_normals import log_two_normals


def by_two(rows, means, spreads):
    """Log joints of numbers by two normal components."""
    return tuple(norm.logpdf(rows, m, s) for m, s in zip(means, spreads))


def two_normals(generator, n, apart):
    rows = generator.normal(size=2 * n) + apart * (np.arange(2 * n) % 2)
    return by_two(rows, (0.0, apart), (1.0, 1.0))


def halves(generator, n):
    """A flat law, cut in the middle by the two normal laws that describe it best."""
    return by_two(generator.uniform(-1, 1, n), (-0.52, 0.52), (0.33, 0.33))


def narrow_and_wide(generator, n):
    """One skewed law, and two normal ones that describe it."""
    return by_two(generator.gamma(2.0, size=n), (1.1, 3.2), (0.6, 1.4))


@pytest.mark.parametrize("seed", range(4))
def test_two_that_overlap_are_two_and_one_of_any_shape_is_one(seed):
    generator = np.random.default_rng(seed)
    assert log_odds(*two_normals(generator, 200, 3.8)) > 5
    assert log_odds(*halves(generator, 400)) < 0
    assert log_odds(*narrow_and_wide(generator, 400)) < 3


def test_control_with_normal_bumps_alone_a_flat_law_is_two(monkeypatch):
    normal = np.diff(norm.cdf(_EDGES[1:-1]), prepend=0.0, append=1.0)[None]
    monkeypatch.setattr(_one_or_two, "_bumps", lambda: np.log(normal))
    assert log_odds(*halves(np.random.default_rng(0), 400)) > 5


def test_a_core_within_its_halo_is_not_a_second_cluster():
    core_and_halo = by_two(np.random.default_rng(5).standard_t(3, size=400), (0.0, 0.0), (1.0, 3.0))
    assert log_odds(*core_and_halo) == -np.inf
    same = np.zeros(6)
    assert log_odds(same, same) == -np.inf


def test_order_and_units_do_not_matter():
    first, second = two_normals(np.random.default_rng(2), 90, 3.0)
    order = np.random.default_rng(3).permutation(180)
    other = log_odds(second[order], first[order])
    assert other == pytest.approx(log_odds(first, second), abs=0.05)


@pytest.mark.parametrize("n_columns", [2, 10])
def test_between_normal_components_the_line_of_densities_is_straight(n_columns):
    """Whatever their widths. As a control, it is not where drops are those of the medians."""
    generator = np.random.default_rng(6)
    centres, widths = np.zeros((2, n_columns)), np.array([0.7, 1.3])
    centres[1, 0] = 1.2 * np.sqrt(n_columns)
    sides = np.arange(20_000) % 2
    rows = centres[sides] + widths[sides, None] * generator.normal(size=(20_000, n_columns))
    first, second = (
        norm.logpdf(rows, centre, width).sum(axis=1) for centre, width in zip(centres, widths)
    )
    places = _places(first, second, sides == 0)
    assert np.corrcoef(places, rows[:, 0])[0, 1] < -0.998
    medians = [
        np.median(log[sides == own]) - np.median(log[sides != own])
        for own, log in enumerate((first, second))
    ]
    bent = first / medians[0] - second / medians[1]
    assert np.corrcoef(bent, rows[:, 0])[0, 1] > -0.97


def test_both_lines_count_alike():
    """Rows with gaps have no place on the straight line."""
    generator = np.random.default_rng(7)
    rows = generator.normal(size=(600, 2))
    rows[::2, 0] += 3.0
    logs = [-0.5 * (((rows - centre) / 0.9) ** 2).sum(axis=1) for centre in ([0, 0.3], [3, 0])]
    by_density = log_odds(*logs)
    assert by_density > 0
    shares = expit(logs[0] - logs[1])
    straight = _on_line(discriminant_places(rows, shares), shares)
    assert log_odds(*logs, rows) == pytest.approx((by_density + straight) / 2)
    rows[::3, 1] = np.nan
    whole = np.arange(600) % 3 > 0
    fewer = _on_line(discriminant_places(rows[whole], shares[whole]), shares[whole])
    assert log_odds(*logs, rows) == pytest.approx((by_density + fewer) / 2)
    assert fewer < straight


def test_bumps_are_laws_in_standard_units():
    bumps = np.exp(_bumps())
    np.testing.assert_allclose(bumps.sum(axis=1), 1.0, atol=1e-9)
    middles = (_EDGES[1:] + _EDGES[:-1]) / 2
    assert np.abs(bumps @ middles).max() < 0.2
    # one of them is the normal law, one the flat one
    normal = np.diff(norm.cdf(_EDGES[1:-1]), prepend=0.0, append=1.0)
    flat = np.diff(np.clip(_EDGES[1:-1] / np.sqrt(12) + 0.5, 0, 1), prepend=0.0, append=1.0)
    for law in (normal, flat):
        assert np.abs(bumps - law).sum(axis=1).min() < 0.1


def test_two_normal_laws_climb_to_the_most_probable_ones():
    generator = np.random.default_rng(4)
    rows = np.r_[generator.normal(-1.0, 0.4, 300), generator.normal(0.9, 0.7, 200)]
    rows = (rows - rows.mean()) / rows.std()
    bins = np.searchsorted(_EDGES[1:-1], rows)
    counts = np.bincount(bins, minlength=64).astype(float)
    of_first = np.bincount(bins, rows < 0, minlength=64).astype(float)
    found = log_two_normals(counts, of_first, _MIDDLES, _WIDTH, _STEPS)
    model = GaussianMixture(2, random_state=0, tol=1e-8, max_iter=500).fit(rows[:, None])
    expected = model.score(rows[:, None]) * len(rows) + len(rows) * np.log(_EDGES[1] - _EDGES[0])
    assert found == pytest.approx(expected, abs=1.5)
