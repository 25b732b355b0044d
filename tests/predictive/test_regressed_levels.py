"""Missing levels by the mixture and a regression: the law of a fill, and what it mends."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from skanneal import CrossCatPY
from skanneal.predictive._regressed_levels import VARIANCE, RegressedLevels
from skanneal.schedules import SequentialGibbs
from skanneal.summary import pool

RATE = 1e-6  # of false alarms, for each comparison


def numbers_and_levels(n_rows, seed=0, slope=1.0):
    """A number, a level of two that goes with it, and one of three that does not; some gaps."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n_rows)
    frame = pd.DataFrame({"x": x})
    frame["c"] = np.where(rng.random(n_rows) < 1.0 / (1.0 + np.exp(1.0 - slope * x)), "yes", "no")
    frame["d"] = rng.choice(["p", "q", "r"], size=n_rows, p=[0.5, 0.3, 0.2])
    return frame


def with_gaps(frame, rng):
    """c and d are missing where x is large, and d in a few other rows."""
    out = frame.copy()
    for name in "cd":
        gone = rng.random(len(out)) < stats.norm.cdf(-0.3 + out["x"])
        out.loc[gone, name] = None
    return out


def fitted(frame, **options):
    options = {"n_chains": 1, "n_draws": 3, "random_state": 0} | options
    model = CrossCatPY(schedule=SequentialGibbs(n_sweeps=10), **options)
    queries = model.fit(frame)._queries()
    return queries, queries.encoder.encode(None, frame)


def test_levels_given_the_rest_are_ratios_of_densities():
    """In all draws together: the density of a row with each level, over their sum."""
    frame = with_gaps(numbers_and_levels(40), np.random.default_rng(1))
    frame.loc[3:6, "x"] = np.nan
    queries, columns = fitted(frame)
    found = queries.predictor.level_probabilities(queries.table(columns), [1, 2])
    for j, n_levels in ((1, 2), (2, 3)):
        logs = []
        for level in range(n_levels):
            cells = [np.full_like(of, level) if k == j else of for k, of in enumerate(columns)]
            logs.append(queries.predictor.log_density(queries.table(cells)))
        densities = np.exp(logs).T
        expected = densities / densities.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(found[j], expected, rtol=1e-9)
        own = columns[j].astype(int)
        assert (own < n_levels).any() and (own == n_levels).any()  # known ones do not count


def drawn(regressed, queries, predictor, seed, gappy, whole):
    """Missing levels by coefficients of their own."""
    draw = regressed.draw(queries, predictor, seed, gappy)
    return regressed.drawn(queries, draw, seed, gappy, whole)


def integrated(offset, x, y, offsets, at):
    """P(yes) in a row of this offset and x, on a grid of the intercept and the slope."""
    a, b = np.linspace(-8.0, 8.0, 321)[:, None], np.linspace(-8.0, 8.0, 321)
    logs = -0.5 * (a**2 + b**2) / VARIANCE
    for own_x, own_y, own_offset in zip(x, y, offsets):
        odds = own_offset + a + b * own_x
        logs = logs + (odds if own_y else 0.0) - np.log1p(np.exp(odds))
    weights = np.exp(logs - logs.max())
    chances = 1.0 / (1.0 + np.exp(-offset - a - b * at))
    return (weights * chances).sum() / weights.sum()


@pytest.mark.parametrize("regression", [True, False])
def test_a_fill_has_the_integrated_law(regression):
    """The share of a level in 500 fills of one cell, of one draw with its parameters: that of the
    regression integrated over its posterior. The control: the mixture alone, whose prior has each
    column in a view of its own, has another one."""
    n = 500
    frame = numbers_and_levels(25, slope=2.0)[["x", "c"]]
    frame.loc[0, "x"], frame.loc[0, "c"] = 2.0, None
    queries, columns = fitted(frame, view_concentration=1e6)
    regressed = RegressedLevels(queries, columns, columns)
    ((predictor, seed),) = queries.turns(1, np.random.SeedSequence(0), "n")
    table = queries.table(columns)
    mixed = predictor.level_probabilities(table, [1])[1]
    place = columns[0].astype(float)
    z = (place - place.mean()) / place.std()
    code = int(regressed.steps[1][0])
    offsets = np.log(mixed[:, code] / mixed[:, 1 - code])
    known = np.arange(1, 25)
    y = columns[1][known] == code
    expected = integrated(offsets[0], z[known], y, offsets[known], z[0])
    if not regression:
        assert abs(expected - mixed[0, code]) > 0.2
        return
    whole = [columns[0], np.zeros_like(columns[1])]
    task = columns, whole
    fills = [drawn(regressed, queries, predictor, own, *task)[0][1][0] for own in seed.spawn(n)]
    count = np.count_nonzero(np.array(fills) == code)
    assert RATE < stats.binomtest(count, n, expected).pvalue
    assert stats.binomtest(count, n, mixed[0, code]).pvalue < RATE


def test_every_level_gets_the_share_that_a_regression_on_nothing_would_give():
    """Three levels that depend on nothing: shares of fills are near those of known cells, and the
    most probable level is the most frequent one."""
    frame = with_gaps(numbers_and_levels(400), np.random.default_rng(1))
    queries, columns = fitted(frame)
    regressed = RegressedLevels(queries, columns, columns)
    gap = frame["d"].isna().to_numpy()
    values, masks = regressed.most_probable(queries, regressed.known(queries, columns, columns))
    np.testing.assert_array_equal(masks[2], gap)
    assert len(values[0]) == 0 and set(values[2]) == {regressed.steps[2][0]}
    shares = []
    for predictor, seed in queries.turns(20, np.random.SeedSequence(0), "n"):
        whole = [columns[0], *(np.where(of < n, of, 0) for of, n in zip(columns[1:], (2, 3)))]
        fills, _ = drawn(regressed, queries, predictor, seed, columns, whole)
        shares.append(np.bincount(fills[2], minlength=3) / gap.sum())
    known = np.bincount(columns[2][~gap], minlength=3) / (~gap).sum()
    # the rows with gaps are at another end of x, where a slope's error moves the shares
    assert np.abs(np.mean(shares, axis=0) - known).max() < 0.15


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_pooled_intervals_of_a_proportion_cover_where_gaps_go_by_a_number():
    """40 tables of 100 rows. If 93 % of such intervals hold the right value, fewer than LEAST of
    them do in less than one of 100,000 runs. The control: without the regression they are fewer."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    truth = (weights / weights.sum() / (1.0 + np.exp(1.0 - nodes))).sum()
    covered = []
    for seed in range(40):
        frame = with_gaps(numbers_and_levels(100, seed), np.random.default_rng([seed, 5]))
        queries, columns = fitted(frame[["x", "c"]], n_draws=20)
        regressed = RegressedLevels(queries, columns, columns)
        gap, shares = frame["c"].isna().to_numpy(), {"regression": [], "mixture": []}
        for predictor, own in queries.turns(20, np.random.SeedSequence(seed), "n"):
            code = np.array(columns[1])
            code[gap] = queries.drawn(columns, predictor, own)[0][1]
            shares["mixture"].append(np.mean(code == queries.encoder.levels_[1].index("yes")))
            whole = [columns[0], code]
            code[gap] = drawn(regressed, queries, predictor, own, columns, whole)[0][1]
            shares["regression"].append(np.mean(code == queries.encoder.levels_[1].index("yes")))
        pooled = [pool(of, np.multiply(of, np.subtract(1, of)) / 99) for of in shares.values()]
        covered.append([of.interval[0] < truth < of.interval[1] for of in pooled])
    with_it, without = np.sum(covered, axis=0)
    assert with_it >= LEAST and without < with_it


LEAST = int(stats.binom.ppf(1e-5, 40, 0.93))
