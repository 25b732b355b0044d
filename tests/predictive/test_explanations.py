"""`explain_outliers`: the oddest rows, the cells to blame, and what would have been expected."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array

from skanneal import AcceleratedDPMixture, AnnealedDPMixture, CrossCatPY, MixtureOutlierDetector
from skanneal.predictive._draws import CrossCatDraw, Draw
from skanneal.predictive._queries import MixtureQueries
from skanneal.schedules import AcceleratedSchedule
from skanneal.states import state_from_arrays

QUICK = {"schedule": "sequential_gibbs", "n_chains": 1, "n_draws": 3, "random_state": 0}
PLANTED = {"r7": "b", "r30": "colour", "r55": "c"}


def table(n=80):
    """Two groups, rounded numbers, a date, gaps; three planted cells, told by their rows."""
    rng = np.random.default_rng(3)
    group = np.arange(n) % 2
    X = pd.DataFrame(
        {
            "a": (rng.normal(size=n) + 8 * group).round(1),
            "b": rng.normal(size=n) - 8 * group,
            "c": rng.normal(size=n),
            "colour": np.where(group, "red", "blue"),
            "day": pd.Timestamp("2020-01-06") + pd.to_timedelta(rng.integers(0, 300, n), "D"),
        },
        index=[f"r{i}" for i in range(n)],
    )
    X.loc["r3", "a"] = X.loc["r4", "b"] = np.nan
    X.loc["r7", "b"], X.loc["r30", "colour"], X.loc["r55", "c"] = 12.0, "red", -9.0
    return X


@pytest.fixture(scope="module", params=[AnnealedDPMixture, CrossCatPY])
def fitted(request):
    X = table()
    return request.param(**QUICK, dates="periodic").fit(X), X


def test_the_planted_cells_are_found(fitted):
    model, X = fitted
    frame = model.explain_outliers(X, n=5)
    assert list(frame) == ["score", "column", "value", "expected", "excess"] and len(frame) == 5
    assert frame["column"].loc[list(PLANTED)].to_dict() == PLANTED
    assert frame.loc["r7", "value"] == 12.0 and abs(frame.loc["r7", "expected"] + 8.0) < 1.5
    assert frame.loc["r30", "value"] == "red" and frame.loc["r30", "expected"] == "blue"
    assert frame["score"].is_monotonic_decreasing
    np.testing.assert_array_equal(frame["score"], np.sort(model.outlier_scores_)[::-1][:5])


def test_a_row_in_a_component_of_its_own_is_compared_with_the_others():
    """With the row in its component nothing is odd about it."""
    X = np.random.default_rng(0).normal(size=(60, 4))
    X[0, 2] = 40.0
    model = AnnealedDPMixture(families="normal", **QUICK).fit(X)
    alone = [(draw.labels == draw.labels[0]).sum() == 1 for draw in model.draws_[0]]
    assert all(alone)
    surprisal = model.surprisal(X)
    seen = surprisal[0] - np.median(surprisal, axis=0)
    line = model.explain_outliers(X, n=1).iloc[0]
    assert line["column"] == 2 and line["excess"] > seen[2] + 1.0
    assert abs(line["expected"]) < 1.0 and line.name == 0


def test_queries_without_a_row_are_those_of_draws_without_it(fitted):
    """Draws from which the row was taken out, and back in before the next one's turn."""
    model, X = fitted
    queries, columns = model._queries(), model._encoded(X)
    training = model._training_table(X)
    make = CrossCatDraw if isinstance(model, CrossCatPY) else Draw
    cells = [c[[7, 30]] for c in columns]
    answers = [of_row.surprisal(cells) for of_row in queries.without(training, [7, 3, 30])]
    for row, got in zip([7, 3, 30], answers):
        draws = []
        for draw in queries.draws:
            state = state_from_arrays(draw.arrays, training)
            for view in state.views:
                view.remove_row(row)
            draws.append(make(state.to_arrays() | {"log_joint": np.array(0.0)}, model._encoder))
        rest = MixtureQueries(draws, model._point, model._encoder, queries.draw_weights)
        np.testing.assert_allclose(got, rest.surprisal(cells), rtol=1e-6)
    assert not np.allclose(answers[0], answers[2], rtol=1e-3)


def test_the_table_of_the_fit_is_known_again(fitted):
    """By its cells, the noise in rounded ones included; any other table is new."""
    model, X = fitted
    same = pl.DataFrame({name: X[name].tolist() for name in X}, strict=False)
    assert model._training_table(X) is not None
    assert model._training_table(same.fill_nan(None)) is not None
    other = X.copy()
    other.loc["r9", "a"] += 0.1
    for new in (other, X.iloc[::-1], X.iloc[:50]):
        assert model._training_table(new) is None
    scores = model.explain_outliers(other, n=3)["score"]
    np.testing.assert_array_equal(scores, np.sort(model.score_outliers(other))[::-1][:3])


def test_new_rows_are_compared_with_a_reference(fitted):
    model, X = fitted
    new = pd.DataFrame(X.iloc[[1]])
    new["b"] = 30.0
    line = model.explain_outliers(new, reference=X).loc["r1"]
    assert line["column"] == "b" and line["value"] == 30.0 and line["excess"] > 3.0
    with pytest.raises(ValueError, match="X has one row.* give reference"):
        model.explain_outliers(new)


def test_a_cell_is_expected_given_all_others_of_the_row():
    """What `impute` puts there, the other cells that are to blame being known."""
    X = table()
    model = AnnealedDPMixture(**QUICK).fit(X)
    new = X.iloc[[10]].assign(a=30.0, b=30.0, c=9.0)
    lines = model.explain_outliers(new, n_cells=3, reference=X)
    assert set(lines["column"]) == set("abc")
    for _, line in lines.iterrows():
        known = new.assign(**{line["column"]: np.nan})
        assert line["expected"] == pytest.approx(model.impute(known)[line["column"]].iloc[0])


@pytest.mark.parametrize("margins", ["model", "data"])
@pytest.mark.parametrize("estimator", [AnnealedDPMixture, CrossCatPY])
def test_a_day_of_the_week_may_be_to_blame(estimator, margins):
    """One Saturday; the control: without the parts of dates there is nothing odd about it."""
    X = on_working_days()
    for dates, blamed in (("periodic", True), ("elapsed", False)):
        model = estimator(**QUICK, dates=dates, margins=margins).fit(X)
        frame = model.explain_outliers(X, n=8)
        odd = frame[frame["excess"] > 2.5]
        assert (odd["column"].get(9) == "day") == blamed


@pytest.mark.parametrize("margins", ["model", "data"])
@pytest.mark.few(1)
def test_a_gap_may_be_to_blame(margins):
    """One missing cell where an indicator tells, and gaps of a column that is set apart; the
    control: without indicators none of them is."""
    X = on_working_days()
    X.loc[3, "a"] = X.loc[[20, 40, 60], "one"] = np.nan
    for indicators, blamed in ((["a", "one"], {3: "a", 20: "one", 40: "one", 60: "one"}), ((), {})):
        chains = QUICK | {"n_chains": 2}
        model = CrossCatPY(**chains, missing_indicator=indicators, margins=margins).fit(X)
        frame = model.explain_outliers(X, n=16, n_cells=3)
        odd = frame[(frame["excess"] > 2.5) & frame["value"].isna()]
        assert odd["column"].to_dict() == blamed


def on_working_days(n=200):
    """But for the tenth row; two further columns, one of them constant."""
    rng = np.random.default_rng(4)
    days = rng.choice(pd.bdate_range("2022-01-03", periods=520), n)
    days[9] = pd.Timestamp("2022-11-05")
    return pd.DataFrame({"a": rng.normal(size=n), "day": days, "one": np.ones(n)})


def test_several_cells_of_a_row(fitted):
    model, X = fitted
    frame = model.explain_outliers(X, n=4, n_cells=2)
    assert frame.groupby(level=0).size().max() == 2
    for _, lines in frame.groupby(level=0):
        assert lines["excess"].is_monotonic_decreasing and (lines["excess"] > 0).all()
        assert lines["score"].nunique() == 1
    ordinary = X.iloc[np.argsort(model.outlier_scores_)[:2]].iloc[[0, 0, 0]]
    lines = model.explain_outliers(ordinary)  # three equal rows: no cell is odder than usual
    assert lines["column"].tolist() == [None] * 3 and lines["excess"].isna().all()


def test_cells_keep_their_types(fitted):
    """A date and a duration are expected to be one, and a None among names stays None."""
    _, X = fitted
    X = X.assign(wait=pd.to_timedelta(np.exp(X["c"]), "h"))
    frame = AnnealedDPMixture(**QUICK).fit(X).explain_outliers(X, n=80)
    kinds = {"day": pd.Timestamp, "wait": pd.Timedelta, "colour": str, "a": float}
    of_columns = dict(list(frame.groupby("column")))
    for name, kind in kinds.items():
        assert {*map(type, of_columns[name]["expected"])} == {kind}
    alone = AnnealedDPMixture(**QUICK).fit(X[["c"]]).explain_outliers(X[["c"]], n=80)
    assert set(alone["column"]) == {"c", None}  # half of the rows are less odd than the median


def test_other_containers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    X[4, 1] = 11.0
    model = AnnealedDPMixture(families="normal", **QUICK).fit(X)
    for asked, name in ((X, 1), (X.tolist(), 1), (pl.DataFrame(X, schema=list("abc")), "b")):
        named = model if name == 1 else AnnealedDPMixture(families="normal", **QUICK).fit(asked)
        frame = named.explain_outliers(asked, n=2)
        assert frame.index[0] == 4 and frame.index.name == "row"
        assert frame.iloc[0]["column"] == name and frame.iloc[0]["value"] == 11.0


def test_estimators_around_a_mixture():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    X[4, 1] = 11.0
    detector = MixtureOutlierDetector(AnnealedDPMixture(families="normal", **QUICK)).fit(X)
    frame = detector.explain_outliers(X, 3, n_cells=2)
    pd.testing.assert_frame_equal(frame, detector.estimator_.explain_outliers(X, 3, n_cells=2))
    schedule = AcceleratedSchedule(n_accelerated=5, n_exact=10)
    model = AcceleratedDPMixture(likelihood="normal", schedule=schedule, random_state=0).fit(X)
    assert model.explain_outliers(X, 1).iloc[0]["column"] == 1


def test_rows_of_counts_have_no_single_cells():
    """A family of whole rows says which cell is odd, but fills none alone."""
    rng = np.random.default_rng(0)
    X = rng.multinomial(30, [0.4, 0.3, 0.3], size=60)
    X[5] = [0, 0, 30]
    model = AnnealedDPMixture(families="multinomial", **QUICK).fit(X)
    line = model.explain_outliers(X, 1).loc[5]
    sparse = AnnealedDPMixture(families="multinomial", **QUICK).fit(csr_array(X))
    assert sparse.explain_outliers(csr_array(X), 1).loc[5, "value"] == line["value"]
    assert line["expected"] is None and line["score"] > 4


def test_wrong_arguments(fitted, monkeypatch):
    model, X = fitted
    for name in ("n", "n_cells"):
        for wrong in (0, 1.5, "all"):
            with pytest.raises(ValueError, match=f"{name} must be a positive integer"):
                model.explain_outliers(X, **{name: wrong})
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="explain_outliers requires pandas"):
        model.explain_outliers(X)
