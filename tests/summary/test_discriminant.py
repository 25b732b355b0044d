"""Places on the line that tells two components best apart: the formula, and rows that choose it."""

import numpy as np
import pytest

from skanneal.summary import _discriminant
from skanneal.summary._discriminant import discriminant_places


def slow_place(rows, shares, i):
    """The place of row i on the line that all other rows choose, by the definition."""
    others = np.arange(len(rows)) != i
    x, first, second = rows[others], shares[others], 1 - shares[others]
    means = [np.average(x, axis=0, weights=weights) for weights in (first, second)]
    scatter = sum(
        weights * (x - mean).T @ (x - mean) for weights, mean in zip((first, second), means)
    )
    return np.linalg.solve(scatter, means[0] - means[1]) @ (rows[i] - sum(means) / 2)


def two_clusters(generator, n, n_columns, apart):
    rows = generator.normal(size=(n, n_columns))
    second = np.arange(n) % 3 == 0
    rows[second] = apart + 2.0 * rows[second]
    return rows, second


@pytest.mark.parametrize("seed", range(3))
def test_places_are_those_of_the_definition(seed):
    generator = np.random.default_rng(seed)
    rows, _ = two_clusters(generator, 50, 4, 1.0)
    rows = rows @ generator.normal(size=(4, 4)) + generator.normal(size=4)
    shares = generator.random(50)
    shares[:2] = 0.0, 1.0
    expected = [slow_place(rows, shares, i) for i in range(50)]
    np.testing.assert_allclose(discriminant_places(rows, shares), expected, atol=1e-8)


def test_units_do_not_matter():
    generator = np.random.default_rng(3)
    rows, second = two_clusters(generator, 60, 3, 2.0)
    shares = np.where(second, 0.1, 0.9)
    places = discriminant_places(rows, shares)
    other = discriminant_places(1e6 * rows @ np.diag([1.0, 1e-9, 30.0]) + 5.0, shares)
    np.testing.assert_allclose(other, places, rtol=1e-5)


def test_rows_do_not_choose_their_own_places():
    """Sides that chance has made are not apart, whatever the columns. As a control, they are on the
    line that all rows have chosen together."""
    generator = np.random.default_rng(4)
    rows, shares = generator.normal(size=(200, 40)), (np.arange(200) % 2).astype(float)
    places = discriminant_places(rows, shares)
    apart = places[shares == 1].mean() - places[shares == 0].mean()
    assert abs(apart) < 0.5 * places.std()
    means = rows[shares == 1].mean(axis=0), rows[shares == 0].mean(axis=0)
    within = np.cov((rows - np.where(shares[:, None] == 1, *means)).T)
    along = rows @ np.linalg.solve(within, means[0] - means[1])
    assert along[shares == 1].mean() - along[shares == 0].mean() > 0.8 * along.std()


def test_there_is_no_line_where_rows_do_not_tell_one(monkeypatch):
    generator = np.random.default_rng(5)
    rows, second = two_clusters(generator, 60, 3, 2.0)
    shares = np.where(second, 0.1, 0.9)
    assert discriminant_places(rows[:6], shares[:6]) is None
    assert discriminant_places(rows, np.ones(60)) is None
    constant = np.column_stack([rows, np.ones(60), rows.sum(axis=1)])
    assert np.isfinite(discriminant_places(constant, shares)).all()
    monkeypatch.setattr(_discriminant, "MOST_WORK", 60 * 9 - 1)
    assert discriminant_places(rows, shares) is None
