"""Gaps are filled in every container, for every family of columns, however little fit saw of it."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skanneal import AnnealedDPMixture, CrossCatImputer, CrossCatPY
from skanneal.schedules import SequentialGibbs

SHORT = {"schedule": SequentialGibbs(n_sweeps=2), "n_chains": 1, "n_draws": 1, "random_state": 0}
N_ROWS = 12
CELLS = {
    "normal": [1.5, 2.5, None] * 4,
    "poisson": [3, None, 5] * 4,
    "bernoulli": [True, False, None] * 4,
    "categorical": ["a", None, "b"] * 4,
}
NOTHING = [None] * N_ROWS
BESIDE = np.linspace(0.0, 1.0, N_ROWS).tolist()


def as_objects(column):
    return np.array([*zip(BESIDE, column)], dtype=object)


def as_floats(column):
    column = [{"a": 1.0, "b": 2.0}.get(cell, cell) for cell in column]
    return np.array([*zip(BESIDE, column)], dtype=float)


CONTAINERS = {
    "array of objects": as_objects,
    "array of floats": as_floats,
    "rows": lambda column: [list(row) for row in zip(BESIDE, column)],
    "pandas": lambda column: pd.DataFrame({"x": BESIDE, "y": column}),
    "polars": lambda column: pl.DataFrame({"x": BESIDE, "y": column}),
}


def cells_of(table):
    """The second column's cells as a list of objects, None where they are missing."""
    if isinstance(table, pd.DataFrame):
        column = table["y"].tolist()
    elif isinstance(table, pl.DataFrame):
        column = table["y"].to_list()
    else:
        column = [row[1] for row in table]
    return [None if cell is pd.NA or cell is None or cell != cell else cell for cell in column]


def models(family):
    named = {"families": {family: [1]}}
    yield AnnealedDPMixture(**named, **SHORT).fit, "impute"
    yield CrossCatPY(**named, **SHORT).fit, "impute"
    yield CrossCatImputer(CrossCatPY(**named, **SHORT)).fit, "transform"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("family", CELLS)
@pytest.mark.few(3)
def test_gaps_of_a_column_that_fit_saw_in_part(family, container):
    X = CONTAINERS[container](CELLS[family])
    before = cells_of(X)
    for fit, method in models(family):
        model = fit(X)
        filled = getattr(model, method)(X)
        # scikit-learn asks an array of a transformer of rows
        expected = np.ndarray if method == "transform" and isinstance(X, list) else type(X)
        assert type(filled) is expected
        after = cells_of(filled)
        assert None not in after
        assert all(a == b for a, b in zip(after, before) if b is not None)
        if family in ("bernoulli", "categorical"):
            assert set(after) <= set(before)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("levels", [[1.0, 2.0], [1, 2], ["a", "b"], [True, False]])
def test_a_polars_column_of_no_type_takes_that_of_its_levels(levels):
    X = pl.DataFrame({"x": BESIDE, "y": levels * (N_ROWS // 2)})
    model = AnnealedDPMixture(families={"categorical": [1]}, **SHORT).fit(X)
    filled = model.impute(pl.DataFrame({"x": BESIDE, "y": NOTHING}))
    assert set(filled["y"].to_list()) <= set(levels)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("family", CELLS)
@pytest.mark.few(3)
def test_gaps_of_a_column_that_fit_saw_nothing_of(family, container):
    X = CONTAINERS[container](NOTHING)
    for estimator in (AnnealedDPMixture, CrossCatPY):
        model = estimator(families={family: [1]}, **SHORT).fit(X)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            filled = model.impute(X)
        assert type(filled) is type(X)
        if family == "categorical":  # no level is known
            assert cells_of(filled) == NOTHING
            (warning,) = caught
            assert "column 1" in str(warning.message) or "column 'y'" in str(warning.message)
            assert warning.filename == __file__
        else:
            assert None not in cells_of(filled)
            assert not caught


OF_PANDAS = "float64 Float64 Int64 boolean str string object category datetime64[ns] timedelta64[s]"
OF_POLARS = [pl.Null, pl.String, pl.Float32, pl.Int64, pl.Boolean, pl.Date, pl.Enum(["a", "b"])]
UNSEEN = {name: make(NOTHING) for name, make in CONTAINERS.items()}
UNSEEN |= {
    dtype: pd.DataFrame({"x": BESIDE, "y": pd.Series(NOTHING, dtype=dtype)})
    for dtype in OF_PANDAS.split()
}
UNSEEN["declared"] = UNSEEN["category"].astype({"y": pd.CategoricalDtype(["a", "b"])})
UNSEEN |= {
    f"polars {dtype}": pl.DataFrame({"x": BESIDE, "y": pl.Series(NOTHING, dtype=dtype)})
    for dtype in OF_POLARS
}
UNSEEN["NaN among objects"] = as_objects([np.nan] * N_ROWS)
UNSEEN["rows of NaN"] = as_objects([np.nan] * N_ROWS).tolist()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", UNSEEN)
def test_nothing_is_known_of_a_column_that_fit_saw_nothing_of(name):
    """Whatever its dtype; a family that is named would say what it holds."""
    X = UNSEEN[name]
    model = AnnealedDPMixture(**SHORT).fit(X)
    assert model.families_["categorical"].tolist() == [1]
    with pytest.warns(UserWarning, match="No cell was observed in fit"):
        filled = model.impute(X)
    sample = model.sample(N_ROWS, random_state=0)
    for table in (filled, sample):
        assert type(table) is type(X) and cells_of(table) == NOTHING
        if isinstance(X, pd.DataFrame | pl.DataFrame):
            assert [*map(str, table.dtypes)] == [*map(str, X.dtypes)]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.few(2)
def test_the_imputer_drops_or_fills_with_zero_what_fit_saw_nothing_of(container):
    X = CONTAINERS[container](NOTHING)
    with pytest.warns(UserWarning, match="no cell is observed"):
        dropped = CrossCatImputer(CrossCatPY(**SHORT)).fit_transform(X)
    assert np.shape(dropped) == (N_ROWS, 1)
    kept = CrossCatImputer(CrossCatPY(**SHORT), keep_empty_features=True).fit_transform(X)
    assert cells_of(kept) == [0.0] * N_ROWS


def test_the_imputer_checks_what_it_is_set_to():
    """Also what was set since the fit."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    X[0, 1] = np.nan
    model = AnnealedDPMixture(schedule=SequentialGibbs(n_sweeps=2), n_chains=1)
    for wrong in ([1.0], {}, np.zeros(2)):
        with pytest.raises(ValueError, match="missing_values must be a number, text, None"):
            CrossCatImputer(model, missing_values=wrong).fit(X)
    imputer = CrossCatImputer(model, random_state=0).fit(X)
    with pytest.raises(ValueError, match="The 'strategy' parameter of CrossCatImputer"):
        imputer.set_params(strategy="median").transform(X)
    assert np.isfinite(imputer.set_params(strategy="mode").transform(X)).all()
