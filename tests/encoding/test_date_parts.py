"""dates="periodic": which parts of dates there are, what they tell, and what they leave alone.

Random tests: fixed seeds, one try.
"""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import adjusted_rand_score

from skanneal import AnnealedDPMixture, CrossCatPY
from skanneal.encoding import Encoder, open_table
from skanneal.encoding._date_parts import PARTS, find_parts
from skanneal.schedules import SequentialGibbs

START = pd.Timestamp("1969-11-03 00:00")  # a Monday, before the times that are counted from 0
QUICK = {"n_chains": 1, "random_state": 0, "schedule": SequentialGibbs(n_sweeps=6)}


def dates(n_days, step, n=200):
    """Dates spread evenly over so many days, as multiples of the step."""
    days = pd.to_timedelta(np.linspace(0.0, n_days, n), "D").floor(step)
    return pd.Series(START + days, name="t")


def column(values):
    return open_table(pd.DataFrame({"t": values}), "X").column(0)


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (dates(27, "1D"), []),
        (dates(28, "1D"), ["weekday"]),
        (dates(3, "1min"), []),
        (dates(4, "1min"), ["hour"]),
        (dates(5 * 366, "1D"), ["weekday", "month"]),
        (dates(5 * 366, "1s"), ["hour", "weekday", "month"]),
        (dates(28, "7D"), []),  # Mondays
        (dates(28, "1min") - START, []),  # durations
        (pd.Series([START, pd.NaT]), []),
        (pd.Series(np.arange(100.0)), []),
    ],
)
def test_which_parts_are_taken(values, names):
    assert [part.name for part in find_parts(0, column(values))] == names


def test_parts_are_those_of_pandas():
    values = dates(3000, "1s", 5000)
    values[::7] += pd.Timedelta("1us") - pd.to_timedelta(values[::7].dt.second, "s")
    values = pd.concat([values, values.dt.floor("1D")], ignore_index=True)  # midnights, too
    expected = {
        "hour": values.dt.strftime("%H"),
        "weekday": values.dt.day_name(),
        "month": values.dt.month_name(),
    }
    own = column(values)
    for part in find_parts(0, own):
        levels = np.array(PARTS[part.name].levels)
        assert levels[part.encode(own)].tolist() == expected[part.name].tolist()


def weekends(n=200, seed=0):
    """(table, groups): of weekends or of working days, a number that goes with it; some gaps."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 2
    days = 7 * rng.integers(0, 200, n) + np.where(
        group, rng.integers(5, 7, n), rng.integers(0, 5, n)
    )
    X = pd.DataFrame({"t": START + pd.to_timedelta(days, "D"), "y": START, "x": 0.0})
    X["y"] = START + pd.to_timedelta(7 * rng.integers(0, 200, n) + 6 * group, "D")
    X["x"] = np.where(group, 1.5, -1.5) + rng.normal(size=n)
    X.loc[:9, "t"], X.loc[10:19, "x"] = pd.NaT, np.nan
    return X, group


@pytest.fixture(scope="module")
def fits():
    X, _ = weekends()
    kept = {"families": "normal", **QUICK}
    return {d: AnnealedDPMixture(dates=d, **kept).fit(X) for d in ("elapsed", "periodic")}


def test_parts_tell_clusters_apart(fits):
    _, group = weekends()
    assert fits["elapsed"].date_parts_ == []
    assert fits["periodic"].date_parts_ == ["t: weekday", "y: weekday"]
    found = {name: adjusted_rand_score(group, model.labels_) for name, model in fits.items()}
    assert found["periodic"] > 0.9 > 0.7 > found["elapsed"]


def test_parts_tell_of_other_cells_and_a_date_that_is_filled_is_one(fits):
    X, group = weekends()
    filled = fits["periodic"].impute(X)
    assert (filled.dtypes == X.dtypes).all() and filled.notna().all().all()
    assert (np.sign(filled["x"][10:20]) == np.where(group[10:20], 1, -1)).all()
    several = fits["periodic"].impute(X, n_imputations=3)
    assert all(
        one["t"]
        .between(X["t"].min() - pd.Timedelta("4000D"), X["t"].max() + pd.Timedelta("4000D"))
        .all()
        for one in several
    )
    rows = fits["periodic"].sample(20, given={"t": START})
    assert (rows["t"] == START).all() and rows["y"].dtype == X["y"].dtype


def test_densities_leave_the_parts_out(fits):
    """Over time a density integrates to one; the control, with the parts, does not."""
    model = fits["periodic"]
    days = np.linspace(-20_000.0, 20_000.0, 40_001)
    X = pd.DataFrame({"t": START + pd.to_timedelta(days, "D"), "y": pd.NaT, "x": np.nan})
    X["y"] = X["y"].astype(X["t"].dtype)
    assert np.exp(model.score_samples(X)).sum() == pytest.approx(1.0, abs=0.02)
    queries = model._queries()
    with_parts = queries.predictor.log_density(queries.table(model._encoder.encode(model, X)))
    assert np.exp(with_parts).sum() < 0.5
    surprisal = np.asarray(model.surprisal(X))
    np.testing.assert_allclose(surprisal[:, 0], -model.score_samples(X), rtol=1e-9)


def test_all_that_is_said_given_a_date_knows_its_parts(fits):
    """Fills, draws and densities of another cell are of one law; the control, of the elapsed time,
    does not tell a Sunday from a Monday."""
    model = fits["periodic"]
    for day, sign in (("1971-01-03", 1), ("1971-01-04", -1)):  # a Sunday, a Monday
        date = pd.Timestamp(day)
        row = pd.DataFrame({"t": [date], "y": [pd.NaT], "x": [np.nan]}).astype(weekends()[0].dtypes)
        at = np.linspace(-12.0, 12.0, 2_401)
        rows = pd.concat([row] * len(at), ignore_index=True).assign(x=at)
        density = np.exp(model.score_samples(rows, given=["t"]))
        assert density.sum() * (at[1] - at[0]) == pytest.approx(1.0, abs=1e-3)
        mean = (at * density).sum() * (at[1] - at[0])
        drawn = model.sample(4000, given={"t": date}, random_state=1)["x"]
        assert sign * mean > 1.0 > abs(fits["elapsed"].impute(row)["x"][0])
        assert model.impute(row)["x"][0] == pytest.approx(mean, abs=1e-3)
        assert drawn.mean() == pytest.approx(mean, abs=5 * drawn.std() / np.sqrt(len(drawn)))
        expected = -model.score_samples(rows[:1], given=["t"])
        np.testing.assert_allclose(np.asarray(model.surprisal(rows[:1]))[:, 2], expected, rtol=1e-9)
        of_date = model.score_samples(rows[:1]) - model.score_samples(rows[:1].assign(t=pd.NaT))
        np.testing.assert_allclose(np.asarray(model.surprisal(rows[:1]))[:, 0], -of_date, rtol=1e-9)


@pytest.mark.parametrize("estimator", [AnnealedDPMixture, CrossCatPY])
def test_fits_go_on_with_their_parts(estimator):
    X, _ = weekends(60)
    model = estimator(dates="periodic", families="normal", warm_start=True, **QUICK).fit(X)
    assert model.fit(X).date_parts_ == ["t: weekday", "y: weekday"]
    assert len(model.sample(2).columns) == 3 and np.isfinite(model.score(X))


def test_clusters_are_described_by_parts_and_dates():
    X, _ = weekends()
    model = AnnealedDPMixture(dates="periodic", families="normal", n_clusters=2, **QUICK).fit(X)
    apart = model.describe_clusters(X, n_features=30)["apart"]
    assert apart.str.contains("y: weekday = Sunday 100%").any()
    assert apart.str.contains(r"; t 197\d-\d\d-\d\d \(all: 197\d-").all()
    assert not apart.str.contains("-0%").any()


def test_a_query_without_dates_has_no_parts():
    X, _ = weekends(60)
    encoder = Encoder()
    encoder.fit_encode(AnnealedDPMixture(), X, dates="periodic")
    cells = encoder.encode(None, X.assign(t=pd.Series([None] * 60, dtype=object)))
    assert set(cells[3]) == {7} and len(set(cells[4])) > 1


def test_sparse_rows_have_no_dates():
    counts = np.random.default_rng(0).multinomial(20, [0.2, 0.3, 0.5], 40)
    scores = [
        AnnealedDPMixture(families="multinomial", dates=dates, **QUICK).fit(X).score_samples(X)
        for X in (csr_array(counts), counts)
        for dates in ("elapsed", "periodic")
    ]
    assert all(np.array_equal(scores[0], other) for other in scores[1:])
