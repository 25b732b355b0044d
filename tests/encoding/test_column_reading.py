"""What a column is taken for: by its values, whatever its dtype, container and gaps."""

import datetime
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator
from sklearn.metrics import adjusted_rand_score, homogeneity_score

from oracles.cheap import CHEAP
from skanneal import AcceleratedDPMixture, AnnealedDPMixture, CrossCatPY
from skanneal.encoding import Encoder
from skanneal.schedules import AcceleratedSchedule, SequentialGibbs

NAN = float("nan")
SHORT = {"n_chains": 1, "random_state": 2, **CHEAP}
CONTAINERS = {
    "array": lambda cells: np.array(cells, dtype=float)[:, None],
    "float32": lambda cells: np.array(cells, dtype=np.float32)[:, None],
    "objects": lambda cells: np.array(cells, dtype=object)[:, None],
    "rows": lambda cells: [[cell] for cell in cells],
    "pandas": lambda cells: pd.DataFrame({"x": np.array(cells, dtype=float)}),
    "Int64": lambda cells: pd.DataFrame({"x": pd.array(cells, dtype="Int64")}),
    "Float64": lambda cells: pd.DataFrame({"x": pd.array(cells, dtype="Float64")}),
    "polars": lambda cells: pl.DataFrame({"x": cells}),
    "polars floats": lambda cells: pl.DataFrame({"x": pl.Series(cells, dtype=pl.Float64)}),
}
every_container = pytest.mark.parametrize("container", CONTAINERS)


def read(X, named="auto"):
    encoder = Encoder()
    encoder.fit_encode(BaseEstimator(), X, named)
    return encoder


def families(X, named="auto"):
    return [codec.family for codec in read(X, named).codecs]


# ---- levels -------------------------------------------------------------------------------------


@every_container
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize(
    ("n_values", "n", "family"),
    [
        (20, 39, "categorical"),  # of 38 cells after the first 19 repeat one
        (20, 38, "normal"),
        (21, 500, "normal"),
        (15, 15, "normal"),
        (7, 100, "categorical"),
    ],
)
def test_whole_numbers_that_repeat_are_levels(container, gaps, n_values, n, family):
    cells = np.resize(np.arange(n_values) * 3 - 5, n).tolist() + [None] * gaps
    assert families(CONTAINERS[container](cells)) == [family]


@every_container
def test_the_cells_do_not_hang_on_the_container(container):
    cells = [3, 1, None, 3, 1, 1, 7, 7]
    codes = Encoder().fit_encode(BaseEstimator(), CONTAINERS[container](cells)).exact[0]
    assert codes.tolist() == [1, 0, 3, 1, 0, 0, 2, 2]


@pytest.mark.parametrize("unit", [1.0, 0.5, 0.1, 1 / 3])
def test_a_few_values_are_levels_in_any_unit(unit):
    assert families(np.resize(np.arange(8) * unit, 100)[:, None]) == ["categorical"]


def test_more_fractions_are_numbers():
    assert families(np.resize(np.arange(9) * 0.5, 100)[:, None]) == ["normal"]


def test_ratings_with_gaps_cluster_as_ratings_do():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    ratings = np.clip(np.rint(1.1 * rng.normal(size=(300, 6)) + 2.5 + 3 * y[:, None]), 1, 7)
    gappy = np.where(rng.random(ratings.shape) < 0.02, np.nan, ratings)
    models = [AnnealedDPMixture(**SHORT).fit(X) for X in (ratings, ratings.astype(int), gappy)]
    assert [list(model.families_) for model in models] == [["categorical"]] * 3
    np.testing.assert_array_equal(models[0].labels_, models[1].labels_)
    assert all(adjusted_rand_score(y, model.labels_) > 0.95 for model in models)


# ---- columns of one value -----------------------------------------------------------------------


@pytest.mark.parametrize("value", ["a", 3, 3.0, 0.5])
def test_one_value_is_set_apart(value):
    y = np.arange(60) % 2
    X = pd.DataFrame({"x": 6.0 * y + np.random.default_rng(0).normal(size=60), "c": [value] * 60})
    X.loc[:4, "c"] = None
    model, plain = (AnnealedDPMixture(**SHORT).fit(table) for table in (X, X[["x"]]))
    assert model.families_["constant"].tolist() == [1]
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    query = X[3:6].copy()
    query.loc[4:, "c"] = [value, "b" if value == "a" else 4]
    log_other = -np.log(55 + 2) if value != 0.5 else -np.inf
    np.testing.assert_allclose(
        model.score_samples(query) - plain.score_samples(query[["x"]]), [0.0, 0.0, log_other]
    )
    np.testing.assert_allclose(np.asarray(model.surprisal(query))[:, 1], [NAN, 0.0, -log_other])
    assert model.impute(X)["c"].tolist() == [value] * 60
    assert model.sample(5)["c"].tolist() == [value] * 5
    assert model.sample(5, given={"c": value})["c"].tolist() == [value] * 5
    with pytest.raises(ValueError, match="in all rows of the fit"):
        model.sample(given={"c": "b" if value == "a" else 4})


def test_what_may_have_another_value_is_not_set_apart():
    X = pd.DataFrame({"x": [0.5, 1.5, 2.0], "b": [True] * 3})
    X["declared"] = pd.Categorical(["a"] * 3, categories=["a", "b"])
    assert families(X) == ["normal", "bernoulli", "categorical"]
    X["named"] = "a"
    assert families(X, {"categorical": ["named"]})[3] == "categorical"


def test_a_table_of_constant_levels_is_one_cluster():
    X = pd.DataFrame({"a": ["x"] * 30, "b": [1] * 30})
    model = CrossCatPY(**SHORT).fit(X)
    assert model.n_clusters_ == 1
    assert (model.view_labels_ == -1).all()
    np.testing.assert_allclose(model.score_samples(X[:2]), 0.0, atol=1e-12)
    assert model.sample(3).equals(X[:3])


# ---- identifiers --------------------------------------------------------------------------------


def identifier(n, which, rng):
    return {
        "text": [f"id{i}" for i in rng.permutation(n)],
        "run": (rng.permutation(n) + 1000).tolist(),
        "sample": rng.choice(n * (n - 1) // 41, n, replace=False).tolist(),
    }[which]


@every_container
@pytest.mark.parametrize("gaps", [False, True])
def test_runs_of_whole_numbers_are_identifiers(container, gaps):
    cells = identifier(42, "run", np.random.default_rng(0)) + [None] * gaps
    other = pd.DataFrame({"other": np.linspace(0, 1, len(cells)) ** 2})
    X = pd.DataFrame({"x": pd.array(cells, dtype="Int64"), **other})
    if container in ("Int64", "polars"):
        X = X if container == "Int64" else pl.DataFrame({"x": cells, "other": other["other"]})
    elif container == "rows":
        X = [[None if cell is pd.NA else cell for cell in row] for row in X.astype(object).values]
    else:
        X = X.astype({"x": "Float64"}).to_numpy(dtype=object if container == "objects" else float)
    with pytest.warns(UserWarning, match=r"Left out.*column ('x'|0)\. To keep.*\[('x'|0)\]"):
        assert families(X) == ["identifier", "normal"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        name = "x" if hasattr(X, "columns") else 0
        assert families(X, {"normal": [name]}) == ["normal", "normal"]


@pytest.mark.parametrize(
    ("cells", "taken"),
    [
        ([f"{i}" for i in range(21)], True),
        ([f"{i}" for i in range(20)], False),
        ([f"{i}" for i in range(40)] + ["0"], False),
        (list(range(42)), True),
        (list(range(41)), False),
        (list(range(60)) + [0], False),
        (list(range(0, 6000, 100)), False),  # all differ, as measured quantities may
        (identifier(1000, "sample", np.random.default_rng(1)), True),
        ([i + 0.5 for i in range(60)], False),
        (pd.date_range("2020", periods=60), False),
    ],
)
def test_identifiers_are_no_accident(cells, taken):
    X = pd.DataFrame({"x": cells, "y": np.linspace(0, 1, len(cells)) ** 2})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert (families(X)[0] == "identifier") is taken
    assert sum("Left out" in str(warning.message) for warning in caught) == taken


def test_measured_whole_numbers_are_no_identifiers():
    """Of 400 tables none: that all differ where a tie was to be expected has odds of e^-20."""
    rng = np.random.default_rng(0)
    for _ in range(400):
        scale = 10.0 ** rng.uniform(1, 6)
        X = np.column_stack([np.rint(scale * rng.normal(size=100)), rng.normal(size=100)])
        assert families(X)[0] != "identifier"


def test_a_table_of_identifiers_alone_is_kept():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert families(np.arange(200).reshape(100, 2)) == ["normal", "normal"]
        assert families([[f"{i}"] for i in range(50)]) == ["categorical"]


@pytest.mark.parametrize("model", [AnnealedDPMixture(**SHORT), CrossCatPY(**SHORT)])
@pytest.mark.parametrize("which", ["text", "run"])
def test_the_fit_is_that_without_the_identifier(model, which):
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = pd.DataFrame({"id": identifier(80, which, rng), "x": 6.0 * y + rng.normal(size=80)})
    with pytest.warns(UserWarning, match="column 'id'") as caught:
        labels = model.fit(X).labels_
    assert caught[0].filename == __file__
    plain = type(model)(**SHORT).fit(X[["x"]])
    np.testing.assert_array_equal(labels, plain.labels_)
    assert model.families_["identifier"].tolist() == [0]
    query = X[:3].copy()
    query["id"] = ["new", None, "id1"] if which == "text" else [7, None, 1]
    np.testing.assert_array_equal(model.score_samples(query), plain.score_samples(query[["x"]]))
    with pytest.warns(UserWarning, match="taken for an identifier.*'id': they stay"):
        filled = model.impute(query)
    assert filled["id"].isna().tolist() == [False, True, False]
    rows = model.sample(4)
    assert rows["id"].isna().all()
    assert rows["x"].notna().all()
    with pytest.raises(ValueError, match="'id' was taken for an identifier"):
        model.sample(given={"id": 3})


def test_text_with_nearly_as_many_levels_as_rows_is_told():
    """Such as dates in text: two rows are of one day, so that they are no identifier."""
    days = [f"2024-{1 + i // 28:02d}-{1 + i % 28:02d}" for i in range(60)]
    X = pd.DataFrame({"joined": [*days, days[0]], "x": np.arange(61) % 9 + 0.5})
    with pytest.warns(UserWarning, match="half as many levels as rows: column 'joined'.*dates"):
        assert read(X).families_["categorical"].tolist() == [0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(X, {"categorical": ["joined"]})
        read(X.assign(joined=pd.to_datetime(X["joined"])))
        read(pd.DataFrame({"joined": days[:30] * 2}))


# ---- dates --------------------------------------------------------------------------------------

DAYS = [18262.0, 18270.0, NAN, 18263.0]  # 2020-01-01 and so on
DATES = [
    None if np.isnan(day) else datetime.date(1970, 1, 1) + datetime.timedelta(day) for day in DAYS
]
NOON = datetime.timedelta(hours=12)
TIMES = [
    date and datetime.datetime.combine(date, datetime.time(12), datetime.UTC) for date in DATES
]
NAIVE = [time and time.replace(tzinfo=None) for time in TIMES]
ZONE = "America/New_York"
DATED = {
    "array": (np.array(DATES, "M8[D]")[:, None], DAYS),
    "array of seconds": (np.array(DATES, "M8[s]")[:, None], DAYS),
    "rows": ([[date] for date in DATES], DAYS),
    "rows of times": ([[time] for time in NAIVE], np.add(DAYS, 0.5)),
    "objects": (np.array(DATES, dtype=object)[:, None], DAYS),
    "pandas": (pd.DataFrame({"x": pd.to_datetime(NAIVE)}), np.add(DAYS, 0.5)),
    "pandas dates": (pd.DataFrame({"x": pd.Series(DATES, dtype=object)}), DAYS),
    "pandas zone": (
        pd.DataFrame({"x": pd.to_datetime(TIMES).tz_convert(ZONE)}),
        np.add(DAYS, 0.5),
    ),
    "polars dates": (pl.DataFrame({"x": DATES}), DAYS),
    "polars": (pl.DataFrame({"x": pl.Series(NAIVE, dtype=pl.Datetime("ms"))}), np.add(DAYS, 0.5)),
    "polars zone": (
        pl.DataFrame({"x": pl.Series(TIMES, dtype=pl.Datetime("us", ZONE))}),
        np.add(DAYS, 0.5),
    ),
    "durations": (np.array([[1], [9], ["NaT"], [2]], "m8[h]"), [1 / 24, 9 / 24, NAN, 2 / 24]),
    "pandas durations": (
        pd.DataFrame({"x": pd.to_timedelta([12, 36, None, 24], "h")}),
        [0.5, 1.5, NAN, 1.0],
    ),
    "polars durations": (
        pl.DataFrame({"x": [NOON, 3 * NOON, None, 2 * NOON]}),
        [0.5, 1.5, NAN, 1.0],
    ),
}


@pytest.mark.parametrize("name", DATED)
def test_dates_are_days_and_come_back(name):
    X, days = DATED[name]
    encoder = Encoder()
    (cells,) = encoder.fit_encode(BaseEstimator(), X).exact
    assert [codec.family for codec in encoder.codecs] == ["normal"]
    _, _, (offset,), (scale,) = encoder.table_schema[:4]
    np.testing.assert_allclose(cells * scale + offset, days, rtol=1e-7)
    again = encoder.decode([np.asarray(days, dtype=float)])
    filled = encoder.decode([np.full(4, days[0])], like=X)
    assert type(again) is type(filled) is type(X)
    if hasattr(X, "columns"):
        assert str(again["x"].dtype) == str(filled["x"].dtype) == str(X["x"].dtype)
    old, again, filled = (
        table["x"].to_list() if hasattr(table, "columns") else [row[0] for row in table]
        for table in (X, again, filled)
    )
    assert [again[i] for i in (0, 1, 3)] == [old[i] for i in (0, 1, 3)]
    assert again[2] is None or again[2] != again[2]
    assert filled == [old[0], old[1], old[0], old[3]]
    assert type(filled[2]) is type(old[0])


@pytest.mark.parametrize("kind", ["M8", "m8"])
@pytest.mark.parametrize("unit", ["D", "s", "ms", "us", "ns"])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_days_beyond_what_a_dtype_holds_are_the_last_that_it_does(kind, unit):
    """As skewed durations are drawn; the order stays, and no container makes them missing."""
    array = np.array([[0], [9]], f"{kind}[D]").astype(f"{kind}[{unit}]")
    tables = [array] if unit == "D" else [array, pd.DataFrame(array)]
    for X in tables if unit in ("D", "s") else [*tables, pl.DataFrame(array)]:
        encoder = Encoder()
        encoder.fit_encode(BaseEstimator(), X)
        days = np.array([-np.inf, -1e12, -3.0, 3.0, 1e12, np.inf])
        table = np.asarray(encoder.decode([days]))
        again = table[:, 0].astype(f"{kind}[D]").astype(np.int64)
        last = 106_750 if unit == "ns" else 106_751_990
        assert again.tolist() == [-last, -last, -3, 3, last, last]


@pytest.mark.parametrize("family", ["log_normal", "semi_continuous_log_normal", "normal"])
def test_a_short_duration_is_none_of_0_where_the_family_has_no_0(family):
    """It would be rounded to 0, which could not be read again."""
    X = pd.DataFrame({"x": pd.Series([1, 5, 900], dtype="timedelta64[s]")})
    encoder, estimator = Encoder(), BaseEstimator()
    encoder.fit_encode(estimator, X, family)
    drawn = encoder.decode([np.array([NAN, 0.0, 0.2, 0.8, 7.0]) / 86_400])
    least = 0.0 if family == "normal" else 1.0
    np.testing.assert_array_equal(drawn["x"].dt.total_seconds(), [NAN, 0.0, least, 1.0, 7.0])
    assert np.isfinite(encoder.encode(estimator, drawn[2:])[0]).all()


def test_dates_are_dates_in_queries():
    encoder, estimator = Encoder(), BaseEstimator()
    encoder.fit_encode(estimator, [[datetime.date(2020, 1, 1)], [datetime.date(2020, 1, 3)]])
    (cells,) = encoder.encode(estimator, np.array([["2020-01-02T00:00"], ["NaT"]], "M8[m]"))
    np.testing.assert_allclose(cells, [0.0, NAN], atol=1e-6)
    assert np.isnan(encoder.encode(estimator, [[None]])[0])
    for wrong, what in ((3.0, "neither"), (datetime.timedelta(1), "durations")):
        with pytest.raises(TypeError, match=f"column 0 held dates in fit, but holds {what}"):
            encoder.encode(estimator, [[wrong]])
    encoder.fit_encode(estimator, [[1.5], [2.5]])
    with pytest.raises(TypeError, match="held neither dates nor durations in fit, but holds dates"):
        encoder.encode(estimator, [[datetime.date(2020, 1, 1)]])


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_a_date_may_be_given_as_text(unit, zone):
    dates = pd.date_range("2020-01-01", periods=40, tz=zone).as_unit(unit)
    X = pd.DataFrame({"when": dates, "x": np.arange(40.0)})
    model = AnnealedDPMixture(schedule=SequentialGibbs(n_sweeps=2), n_chains=1, random_state=0)
    model.fit(X)
    given = {"when": dates[4]}, {"when": "2020-01-05"}, {"when": "2020-01-05T00:00"}
    drawn = [model.sample(3, given=cells, random_state=0) for cells in given]
    assert (drawn[0]["when"] == dates[4]).all()
    for other in drawn[1:]:
        pd.testing.assert_frame_equal(drawn[0], other)
    with pytest.raises(ValueError, match="column 'when' held dates in fit, and 'soon' is none"):
        model.sample(3, given={"when": "soon"})


ACCELERATED = {
    "schedule": AcceleratedSchedule(n_accelerated=20, n_exact=80),
    "random_state": 0,
}


def test_accelerated_chains_read_tables_as_the_others_do():
    """Dates, identifiers, constants, sums and rounded numbers in one table."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    X = pd.DataFrame(
        {
            "row": rng.permutation(120),
            "day": np.datetime64("2020-01-01")
            + np.rint(400 * y + 9 * rng.normal(size=120)).astype(int),
            "size": np.rint(9.0 * y + 2.0 * rng.normal(size=120)) / 2,
            "one": 4.0,
        }
    )
    X["x"] = 0.5 * X["size"] + 0.3 * rng.normal(size=120)
    X["both"] = X["size"] + X["x"]
    with pytest.warns(UserWarning) as said:
        model = AcceleratedDPMixture(init="kmeans", **ACCELERATED).fit(X)
    assert [w.filename for w in said] == [__file__] * 2
    assert "column 'row'" in str(said[0].message) and "linear function" in str(said[1].message)
    columns = {family: X.columns[at].tolist() for family, at in model.families_.items()}
    assert columns.pop("identifier") == ["row"] and columns.pop("constant") == ["one"]
    assert len(columns.pop("collinear")) == 1 and len(columns) == 1
    assert model.family_evidence_["winner"] in columns
    assert model.rounding_ == {"day": 1.0, "size": 0.5}
    assert 2 <= model.n_clusters_ < 5
    for labels in (model.labels_, model.predict(X)):
        assert homogeneity_score(y, labels) == 1.0
    rows = model.sample(30)
    assert rows["day"].dtype == X["day"].dtype and (rows["one"] == 4.0).all()
    assert (rows["size"] * 2 == np.rint(rows["size"] * 2)).all()
    gappy = X.assign(day=X["day"].where(X.index > 0))
    assert abs(model.impute(gappy)["day"][0] - X["day"][0]) < pd.Timedelta(days=40)


def test_a_rounded_table_is_that_of_its_steps_without_rounding():
    """The noise is a seed's: another fit has other cells, a fit without it the values."""
    X = np.round(np.random.default_rng(0).normal(size=(100, 2)), 1)
    models = [
        AcceleratedDPMixture(likelihood="normal", rounding=rounding, **ACCELERATED).fit(X)
        for rounding in ("auto", {0: 0.1, 1: 0.1}, None)
    ]
    auto, given, none = (model.draws_[0][0].log_joint for model in models)
    assert auto == given != none
    assert models[0].rounding_ == {0: 0.1, 1: 0.1} and models[2].rounding_ == {}
    again = models[0].set_params(warm_start=True).fit(X)  # on the same noise
    assert again.n_sweeps_ == 101


def test_dates_in_a_fit():
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    day = np.datetime64("2020-01-01") + np.rint(400.0 * y + 9.0 * rng.normal(size=80)).astype(int)
    X = pd.DataFrame({"day": day, "x": 6.0 * y + rng.normal(size=80)})
    X.loc[0, "day"] = pd.NaT
    model = AnnealedDPMixture(**SHORT).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1.0
    filled = model.impute(X)["day"][0]
    assert abs(filled - pd.Timestamp("2020-01-01")) < pd.Timedelta(days=20)
    rows = model.sample(20, given={"day": datetime.datetime(2021, 2, 4)})
    assert (rows["day"] == pd.Timestamp("2021-02-04")).all()
    assert rows["x"].mean() > 4.0
