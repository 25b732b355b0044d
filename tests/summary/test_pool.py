"""Rubin's rules, against figures worked out by hand, limits, and the coverage of intervals."""

import numpy as np
import pytest
from scipy import stats

from skanneal.summary import pool


def test_by_hand():
    """Means 1, 2, 6, variances 1, 2, 3: W = 2, B = 7, T = 2 + 28/3 = 34/3, share 28/34."""
    pooled = pool([1.0, 2.0, 6.0], [1.0, 2.0, 3.0])
    assert pooled.estimate == pytest.approx(3.0)
    assert pooled.variance == pytest.approx(34 / 3)
    assert pooled.fraction_missing == pytest.approx(28 / 34)
    assert pooled.df == pytest.approx(2 * (34 / 28) ** 2)
    reach = stats.t.ppf(0.975, pooled.df) * np.sqrt(34 / 3)
    np.testing.assert_allclose(pooled.interval, [3.0 - reach, 3.0 + reach])
    # Barnard and Rubin, of 10 degrees: 11/13 10 (1 - 28/34)
    observed = 11 / 13 * 10 * 6 / 34
    small = pool([1.0, 2.0, 6.0], [1.0, 2.0, 3.0], df_complete=10, level=0.9)
    assert small.df == pytest.approx(1 / (1 / pooled.df + 1 / observed))
    reach = stats.t.ppf(0.95, small.df) * np.sqrt(34 / 3)
    np.testing.assert_allclose(small.interval, [3.0 - reach, 3.0 + reach])


def test_several_parameters_are_each_pooled_alone():
    rng = np.random.default_rng(0)
    estimates, variances = rng.normal(size=(5, 3)), rng.random((5, 3))
    together = pool(estimates, variances, df_complete=20)
    for j in range(3):
        alone = pool(estimates[:, j], variances[:, j], df_complete=20)
        for one, of_all in zip(alone, together, strict=True):
            np.testing.assert_allclose(of_all[j], one)


def test_tables_without_gaps():
    """Equal estimates have the interval of the whole table, up to Barnard and Rubin's factor."""
    pooled = pool([2.0, 2.0], [4.0, 4.0])
    assert pooled.df == np.inf and pooled.fraction_missing == 0.0
    np.testing.assert_allclose(pooled.interval, 2.0 + 2.0 * stats.norm.ppf([0.025, 0.975]))
    assert pool([2.0, 2.0], [4.0, 4.0], df_complete=9).df == pytest.approx(9 * 10 / 12)
    assert pool([2.0, 2.0], [0.0, 0.0]).interval.tolist() == [2.0, 2.0]


def test_intervals_cover():
    """Of a normal mean with half of its cells missing: 2,000 tables of 30, drawn properly, within
    four standard errors of 95 %. The control: the variance within the tables alone."""
    rng = np.random.default_rng(0)
    n, m, n_tables = 30, 10, 2000
    covered = narrow = 0
    for _ in range(n_tables):
        x = rng.normal(size=n // 2)
        variance = x.var(ddof=1) * (len(x) - 1) / rng.chisquare(len(x) - 1, m)
        centre = x.mean() + np.sqrt(variance / len(x)) * rng.normal(size=m)
        fills = centre[:, None] + np.sqrt(variance)[:, None] * rng.normal(size=(m, n - len(x)))
        tables = np.hstack([np.tile(x, (m, 1)), fills])
        estimates, variances = tables.mean(axis=1), tables.var(axis=1, ddof=1) / n
        low, high = pool(estimates, variances, df_complete=n - 1).interval
        covered += low < 0.0 < high
        narrow += abs(estimates.mean()) < 2.0 * np.sqrt(variances.mean())
    error = np.sqrt(0.95 * 0.05 / n_tables)
    assert abs(covered / n_tables - 0.95) < 4 * error
    assert narrow / n_tables < 0.95 - 10 * error


@pytest.mark.parametrize(
    ("arguments", "options", "what"),
    [
        (([1.0], [1.0]), {}, "estimates must have the shape"),
        ((1.0, 1.0), {}, "estimates must have the shape"),
        (([1.0, 2.0], [1.0]), {}, "variances must have the shape of estimates"),
        (([1.0, np.nan], [1.0, 1.0]), {}, "must be finite"),
        (([1.0, 2.0], [1.0, -1.0]), {}, "variances must not be below 0"),
        (([1.0, 2.0], [1.0, 1.0]), {"df_complete": 0}, "df_complete must be above 0"),
        (([1.0, 2.0], [1.0, 1.0]), {"level": 95}, "level must be between 0 and 1"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, options, what):
    with pytest.raises(ValueError, match=what):
        pool(*arguments, **options)
