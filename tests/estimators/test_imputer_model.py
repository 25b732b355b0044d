"""Which model CrossCatImputer takes by itself, and that its fills are plausible."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer

from skanneal import AnnealedDPMixture, CrossCatImputer, CrossCatPY
from skanneal.encoding import open_table
from skanneal.estimators import _imputer_model
from skanneal.estimators._imputer_model import MOST_NUMBERS, default_model
from skanneal.schedules import LinearAnneal

RNG = np.random.default_rng(0)
N = 60
NUMBERS = {"a": RNG.normal(size=N), "b": RNG.integers(0, 5, N), "c": RNG.integers(0, 2, N) * 1.0}
WORDS = {name: RNG.choice(["yes", "no"], N) for name in "uvw"}
FLAGS = {"f": RNG.random(N) < 0.5}
NAMES = {"patient": np.arange(N)}
DAYS = pd.Series(pd.Timestamp("2024-01-01") + pd.to_timedelta(NUMBERS["b"], "D"))


def models_of(columns):
    return default_model(open_table(pd.DataFrame(columns), "X"))


@pytest.mark.parametrize(
    ("columns", "numbers", "others"),
    [
        (NUMBERS, [0, 1], [2]),  # whole numbers of few values, too, but two are levels
        ({name: NUMBERS[name] for name in "ab"}, [0, 1], None),
        (NUMBERS | WORDS, [0, 1], [2, 3, 4, 5]),
        (NAMES | NUMBERS | FLAGS, [1, 2], [3, 4]),
        ({"day": DAYS} | NUMBERS, [0, 1, 2], [3]),
        ({"day": DAYS.where(DAYS == DAYS[0], DAYS.max())} | NUMBERS, [0, 1, 2], [3]),
        (WORDS | FLAGS, None, None),
        ({"a": NUMBERS["a"]}, None, None),
        ({"a": NUMBERS["a"]} | WORDS | FLAGS, [0], [1, 2, 3, 4]),
        ({f"x{j}": NUMBERS["a"] for j in range(63)}, [*range(63)], None),
        ({f"x{j}": NUMBERS["a"] for j in range(MOST_NUMBERS + 1)}, None, None),
    ],
)
def test_the_models_go_by_the_columns_that_hold_numbers(columns, numbers, others):
    models = models_of(columns)
    if numbers is None:
        assert type(models.first) is CrossCatPY and models.second is None
        return
    assert type(models.first) is AnnealedDPMixture
    assert models.first.families == {"multivariate_normal": numbers}
    if others is None:
        assert models.second is None and models.of_second == []
        return
    assert type(models.second) is CrossCatPY and models.of_second == others


@pytest.mark.parametrize(("n", "fill"), [(2, 1.875), (4, None)])
def test_two_values_are_levels_if_they_repeat_as_elsewhere(n, fill):
    """Two numbers that differ are two measurements, and a gap has their mean."""
    X = np.array([[1.5], [2.25]] * (n // 2) + [[np.nan]])
    model = CrossCatPY(n_chains=1, random_state=0).fit(X)
    assert ("categorical" in model.families_) == (fill is None)
    models = default_model(open_table(X, "X"))
    assert models.ranges == ({} if fill is None else {0: (1.5, 2.25)})
    filled = CrossCatImputer(random_state=0).fit_transform(X)[n, 0]
    assert filled == pytest.approx(fill, abs=0.01) if fill else filled in (1.5, 2.25)


def on_a_plane(n_rows, noise, seed=0):
    """Rows whose third column the first two tell, and a flag that goes with it; some gaps."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 2))
    third = X.sum(axis=1) + noise * rng.normal(size=n_rows)
    X = np.column_stack([X, third, third > 0])
    gaps = np.zeros(X.shape, dtype=bool)
    gaps[: n_rows // 5, 2], gaps[n_rows // 5 : n_rows // 3, 3] = True, True
    return X, gaps


def test_a_missing_number_is_told_by_the_others_and_a_flag_stays_one():
    X, gaps = on_a_plane(120, 0.1)
    imputer = CrossCatImputer(random_state=0)
    filled = imputer.fit_transform(np.where(gaps, np.nan, X))
    assert np.abs(filled - X)[gaps[:, 2], 2].mean() < 0.2
    assert set(filled[:, 3]) == {0.0, 1.0} and (filled != X)[gaps[:, 3], 3].mean() < 0.3
    by_mean = SimpleImputer().fit_transform(np.where(gaps, np.nan, X))
    assert np.abs(filled - X)[gaps].mean() < 0.3 * np.abs(by_mean - X)[gaps].mean()


def test_fills_stay_within_what_was_observed():
    """The row beyond the others would else be given the sum of its cells, 5."""
    X, gaps = on_a_plane(60, 0.01)
    X = np.where(gaps, np.nan, X)[:, :3]
    far = np.array([[2.5, 2.5, np.nan]])
    imputer = CrossCatImputer(random_state=0).fit(X)
    assert imputer.estimator_.impute(far)[0, 2] > np.nanmax(X[:, 2]) + 0.5  # without a range
    assert imputer.transform(far)[0, 2] == np.nanmax(X[:, 2])
    drawn = [filled[0, 2] for filled in imputer.imputations(far, 10)]
    assert np.nanmax(X[:, 2]) < min(drawn)  # a draw has the model's law


def levels_beside_numbers(n_rows=150, seed=0):
    """Six numbers that depend on each other, and two levels that depend on each other alone; in
    part of the rows the first level is missing, in some of these a number, too."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n_rows, 6)) @ rng.normal(size=(6, 6))
    frame = pd.DataFrame(numbers, columns=list("abcdef"))
    code = rng.integers(0, 3, n_rows)
    frame["one"] = np.array(list("xyz"))[code]
    frame["two"] = np.array(list("uvw"))[np.where(rng.random(n_rows) < 0.9, code, 0)]
    holed = frame.copy()
    holed.loc[:49, "one"] = None
    holed.loc[25:49, "a"] = np.nan
    return frame, holed


@pytest.mark.slow
def test_levels_are_filled_by_what_they_depend_on():
    """Far better than by the clusters that fill the numbers; draws are made in the same way."""
    frame, holed = levels_beside_numbers()
    imputer = CrossCatImputer(random_state=0).fit(holed)
    filled, of_numbers = imputer.transform(holed), imputer.estimator_.impute(holed)
    wrong, before = ((of["one"] != frame["one"])[:50].mean() for of in (filled, of_numbers))
    assert wrong < 0.5 * before
    np.testing.assert_allclose(filled["a"], of_numbers["a"], atol=0.3 * frame["a"].std())
    imputer.set_params(strategy="sample")
    pd.testing.assert_frame_equal(imputer.transform(holed), imputer.imputations(holed, 1)[0])


def test_draws_of_levels_go_by_the_numbers_that_were_drawn():
    """Where a number and a level that it tells are both missing: they go together in each table as
    they do in whole rows. The control: the number of one table beside the level of the next."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    frame = pd.DataFrame({"x": x, "y": x + rng.normal(size=200)})
    frame["side"] = np.where(frame["y"] > 0, "over", "under")
    frame.loc[:79, ["y", "side"]] = np.nan
    imputer = CrossCatImputer(random_state=0).fit(frame)
    tables = imputer.imputations(frame, 5)
    over = [(table["y"] > 0)[:80] for table in tables]
    side = [(table["side"] == "over")[:80] for table in tables]
    together = np.mean([np.mean(a == b) for a, b in zip(over, side, strict=True)])
    apart = np.mean([np.mean(a == b) for a, b in zip(over, side[1:] + side[:1], strict=True)])
    assert together > 0.9 > 0.8 > apart


def test_regressions_fill_what_the_second_model_fills():
    """Whole numbers of few values are levels to a CrossCat, but the mixture fills them."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(80, 2)), columns=["x", "y"])
    frame["k"] = rng.integers(0, 3, 80).astype(float)
    frame["c"] = rng.choice(["no", "yes"], 80)
    frame.iloc[:9, 1:] = np.nan
    imputer = CrossCatImputer(random_state=0).fit(frame)
    filled, numbers = imputer.transform(frame), imputer.estimator_.impute(frame)
    for name in "xyk":
        assert abs(filled[name] - numbers[name]).max() < 0.5 * frame[name].std()
    encoder = imputer.estimator_of_levels_._queries().encoder
    assert encoder.table_schema.n_levels[2] > 0  # to no avail
    assert imputer._fills.levels.filled == [3]


def test_fills_beyond_what_the_model_of_levels_reads(monkeypatch):
    """The regression on the line gives negative numbers in a column of positive, skewed ones, if it
    is not one of logarithms."""
    monkeypatch.setattr(_imputer_model, "columns_of_logarithms", lambda columns: [])
    rng = np.random.default_rng(0)
    x = rng.normal(size=150)
    frame = pd.DataFrame({"x": x, "amount": np.exp(1.5 * x + 0.2 * rng.normal(size=150))})
    frame["n"] = rng.poisson(np.exp(0.5 * x))
    frame = frame.astype({"n": "Int64"})
    frame["c"] = rng.choice(["no", "yes"], 150)
    frame.loc[frame["x"] < -0.8, ["amount", "n", "c"]] = None
    imputer = CrossCatImputer(random_state=0).fit(frame)
    assert imputer.estimator_.impute(frame)["amount"].min() < 0.0
    for filled in [imputer.transform(frame), *imputer.imputations(frame, 2)]:
        assert not filled.isna().any().any()


def test_warnings_say_which_model_is_meant_and_what_the_imputer_can_do(monkeypatch):
    """All chains are made to disagree; a model that is given speaks as it does by itself."""
    monkeypatch.setattr(
        "skanneal.estimators._base_chains.disagreement",
        lambda _, advice, asked: [f"At odds. {advice}"],
    )
    X = pd.DataFrame(NUMBERS | WORDS)[["a", "b", "u"]]
    short = CrossCatPY(n_chains=1, schedule=LinearAnneal(n_sweeps=5))
    for columns, estimator, names in (
        (X, None, ["`estimator_`, the model of n", "`estimator_of_levels_`, the model of levels"]),
        (X[["a", "b"]], None, ["`estimator_`: At odds"]),
        (X, short, ["At odds. Give it more sweeps"]),
    ):
        imputer = CrossCatImputer(estimator, max_time=0.5, random_state=0)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            imputer.fit(columns)
        texts = [str(one.message) for one in said if "At odds" in str(one.message)]
        assert len(texts) == len(names) and all(map(str.startswith, texts, names))
        assert all(("n_sweeps" in text) == (estimator is short) for text in texts)


def test_an_indicator_never_takes_the_place_of_a_column():
    X = pd.DataFrame({"x": NUMBERS["a"], "missingindicator_x": NUMBERS["a"]})
    X.loc[0, "x"] = np.nan
    with pytest.raises(ValueError, match="column 'missingindicator_x', which add_indicator=True"):
        CrossCatImputer(add_indicator=True).fit(X)
