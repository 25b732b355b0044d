"""Numbers that are filled by few components and a regression on levels: what the imputer says."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from skanneal import AnnealedDPMixture, CrossCatImputer


def groups(n_rows, seed=0, difference=1.0):
    """x, y that goes with x and with a level, a whole number, a level of no use; y, the whole
    number and the level are missing, the more often the larger x is."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n_rows)
    side = rng.random(n_rows) < 0.5
    frame = pd.DataFrame({"x": x, "y": 0.7 * x + difference * side + rng.normal(size=n_rows)})
    frame["n"] = np.rint(40.0 + 5.0 * rng.normal(size=n_rows))
    frame["side"] = np.where(side, "a", "b")
    frame["other"] = rng.choice(list("pqr"), n_rows)
    gappy = frame.copy()
    for name in ("y", "n", "side"):
        gappy.loc[rng.random(n_rows) < stats.norm.cdf(x - 0.6), name] = None
    return frame, gappy


def coefficients(frame):
    """Of y on x and the level."""
    z = np.column_stack([frame["x"], frame["side"] == "a", np.ones(len(frame))]).astype(float)
    return np.linalg.lstsq(z, frame["y"], rcond=None)[0][:2]


RATE = 1e-5  # of false alarms, for each comparison


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_differences_of_groups_are_what_they_are_without_gaps():
    """30 tables of 120 rows: on average the slope and the difference of the groups are those of
    the tables without gaps. The control: the mixture without the regression."""
    off = []
    for seed in range(30):
        frame, gappy = groups(120, seed)
        imputer = CrossCatImputer(random_state=seed).fit(gappy)
        tables = imputer.imputations(gappy, 10)
        alone = imputer.estimator_.impute(gappy, n_imputations=10)
        alone = [table.assign(side=of["side"]) for table, of in zip(alone, tables)]
        of_both = [
            np.mean([coefficients(of) for of in several], axis=0) for several in (tables, alone)
        ]
        off.append(of_both - coefficients(frame))
    p_values = stats.ttest_1samp(off, 0.0).pvalue
    assert p_values[0].min() > RATE > p_values[1, 1]


@pytest.fixture(scope="module")
def filled():
    frame, gappy = groups(200, seed=3)
    return frame, gappy, CrossCatImputer(random_state=0).fit(gappy)


@pytest.mark.parametrize("strategy", ["mean", "mode", "sample"])
@pytest.mark.few(1)
def test_fills_go_by_the_level(filled, strategy):
    """Where the level is known; the model of numbers by itself does not know it."""
    frame, gappy, imputer = filled
    imputer = CrossCatImputer(strategy=strategy, random_state=0).fit(gappy)
    table, rows = imputer.transform(gappy), gappy["y"].isna() & gappy["side"].notna()
    alone = imputer.estimator_.impute(gappy)
    apart = [
        np.subtract(*(of[rows & (frame["side"] == level)].mean() for level in "ab"))
        for of in (table["y"] - 0.7 * table["x"], alone["y"] - 0.7 * alone["x"])
    ]
    assert abs(apart[0] - 1.0) < 0.4 and apart[1] < 0.5
    pd.testing.assert_frame_equal(table[gappy.notna()], gappy)


def test_drawn_levels_and_numbers_go_together(filled):
    """Where both are missing."""
    _, gappy, imputer = filled
    both = gappy["y"].isna() & gappy["side"].isna()
    tables = imputer.imputations(gappy, 10)
    off = np.array([table["y"] - 0.7 * table["x"] for table in tables])[:, both]
    side = np.array([table["side"] == "a" for table in tables])[:, both]
    assert abs(off[side].mean() - off[~side].mean() - 1.0) < 0.5
    mixed = np.roll(side, 1, axis=0)  # the control: levels of another table
    assert off[mixed].mean() - off[~mixed].mean() < 0.5


def test_levels_that_are_clusters_go_with_their_numbers():
    """Two numbers and the level on which their place depends are all missing: drawn together they
    are where rows of this level are."""
    rng = np.random.default_rng(3)
    level = rng.integers(3, size=200)
    centre = 10.0 * (level - 1.0)
    frame = pd.DataFrame({"x": centre + rng.normal(size=200), "y": centre + rng.normal(size=200)})
    frame["level"], frame["z"] = np.array(list("abc"))[level], rng.normal(size=200)
    gappy = frame.copy()
    gappy.loc[:29, ["x", "y", "level"]] = None
    imputer = CrossCatImputer(random_state=0).fit(gappy)
    drawn = pd.concat([table[:30] for table in imputer.imputations(gappy, 20)])
    right = drawn["level"].map({"a": -10.0, "b": 0.0, "c": 10.0})
    assert (abs(drawn[["x", "y"]].sub(right, axis=0)) < 4.0).all(axis=1).mean() > 0.95
    assert drawn["level"].value_counts(normalize=True).between(0.2, 0.5).all()


def test_numbers_that_hardly_vary():
    """A constant with a gap, in fit or later alone, and a column of one known number."""
    _, gappy = groups(60)
    for own in ([0, 1], []):
        table = gappy.assign(constant=3.0, single=np.nan)
        table.loc[own, "constant"], table.loc[5, "single"] = np.nan, 7.0
        imputer = CrossCatImputer(random_state=0).fit(table)
        later = table.assign(constant=np.nan)
        filled = imputer.transform(later)
        assert (filled["constant"] == 3.0).all() and (abs(filled["single"] - 7.0) < 0.1).all()
        for filled in imputer.imputations(later, 2):
            assert (filled["constant"] == 3.0).all() and filled["single"].notna().all()


def test_whole_numbers_that_may_number_the_rows_are_filled_if_some_are_missing():
    _, gappy = groups(60)
    gappy["year"] = np.arange(1940.0, 2000.0)
    gappy.loc[7:9, "year"] = np.nan
    filled = CrossCatImputer(random_state=0).fit_transform(gappy)
    assert filled["year"].between(1940, 1999).all()


def test_draws_are_rounded_as_the_column_is_and_differ(filled):
    _, gappy, imputer = filled
    gaps = gappy["n"].isna()
    tables = imputer.imputations(gappy, 3)
    drawn = np.array([table.loc[gaps, "n"] for table in tables])
    np.testing.assert_array_equal(drawn, np.rint(drawn))
    assert (drawn[0] != drawn[1]).mean() > 0.5
    again = pickle.loads(pickle.dumps(imputer)).imputations(gappy, 3)
    assert all(map(pd.DataFrame.equals, tables, again))


def test_later_rows_of_their_own():
    """All numbers missing, all levels missing, a level that is new: each alone or together."""
    frame, gappy = groups(150, seed=4, difference=3.0)
    imputer = CrossCatImputer(random_state=0).fit(gappy)
    rows = frame.iloc[[0, 0, 0]].reset_index(drop=True)
    rows.loc[0, ["x", "y", "n"]] = np.nan
    rows.loc[1, ["y", "side", "other"]] = None
    rows.loc[2, ["y", "other"]] = [np.nan, "new"]
    found = imputer.transform(rows)
    assert found.notna().all().all()
    assert all(table.notna().all().all() for table in imputer.imputations(rows, 2))


def test_columns_that_others_determine_still_do():
    frame, gappy = groups(150, seed=5)
    gappy["twice"] = 2.0 * gappy["y"]
    imputer = CrossCatImputer(random_state=0).fit(gappy)
    for table in [imputer.transform(gappy), *imputer.imputations(gappy, 2)]:
        np.testing.assert_allclose(table["twice"], 2.0 * table["y"])


def test_the_model_that_a_user_gives_is_not_corrected():
    _, gappy = groups(80)
    imputer = CrossCatImputer(AnnealedDPMixture(n_chains=1, random_state=0)).fit(gappy)
    pd.testing.assert_frame_equal(imputer.transform(gappy), imputer.estimator_.impute(gappy))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_amounts_that_go_with_one_far_away_are_far_away():
    """Others are within reach of those of the fit, and next to none of them is at its end."""
    rng = np.random.default_rng(5)
    logs = rng.normal(size=(200, 1)) + 0.4 * rng.normal(size=(200, 2))
    frame = pd.DataFrame(np.exp(logs), columns=["x", "y"])
    frame["side"] = rng.choice(["a", "b"], 200)
    frame.loc[::9, "y"] = np.nan
    frame.loc[::13, "side"] = None
    imputer = CrossCatImputer(random_state=0).fit(frame)
    largest = frame["x"].max()
    new = pd.DataFrame({"x": [1e4 * largest, largest], "y": np.nan, "side": "a"})
    far, near = np.array([of["y"] for of in imputer.imputations(new, 20)]).T
    assert np.log(far).mean() > np.log(1e3 * largest) and (far > 0.0).all()
    assert (near < 20.0 * frame["y"].max()).all()
