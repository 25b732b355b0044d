"""Answers about cells and about pairs of columns have the names that the table has."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skanneal import AnnealedDPMixture, CrossCatPY

NAMES = ["height", "colour", "weight"]


def table(n=40):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "height": rng.normal(size=n),
            "colour": rng.choice(["red", "blue"], n),
            "weight": rng.normal(size=n),
        },
        index=[f"row {i}" for i in range(n)],
    )
    X.iloc[3, 0] = X.iloc[4, 1] = None
    return X


def as_polars(X):
    return pl.DataFrame({name: [None if x != x else x for x in X[name]] for name in X})


def as_array(X):
    return X.to_numpy(dtype=object)


def rows(X):
    return as_array(X).tolist()


@pytest.fixture(scope="module")
def models():
    options = {"schedule": "sequential_gibbs", "n_chains": 1, "n_draws": 2, "random_state": 0}
    return [make(**options).fit(table()) for make in (AnnealedDPMixture, CrossCatPY)]


@pytest.mark.parametrize("convert", [pd.DataFrame, as_polars, as_array, rows])
def test_cells(models, convert):
    """Surprisal and spread are of the sort of the table that is asked about."""
    X = table()
    for model in models:
        asked = convert(X)
        surprisal, (_, spread) = model.surprisal(asked), model.impute(asked, return_std=True)
        for answer in (surprisal, spread):
            assert np.shape(answer) == X.shape
            if convert is pd.DataFrame:
                assert answer.columns.equals(X.columns) and answer.index.equals(X.index)
            elif convert is as_polars:
                assert isinstance(answer, pl.DataFrame) and answer.columns == NAMES
            else:
                assert type(answer) is np.ndarray
        np.testing.assert_array_equal(np.isnan(np.asarray(surprisal)), X.isna().to_numpy())
        np.testing.assert_array_equal(np.asarray(spread) > 0, X.isna().to_numpy())


@pytest.mark.parametrize("convert", [pd.DataFrame, as_polars, as_array, rows])
def test_pairs_of_columns(convert):
    """They are of the sort of the table that was fitted, in the order that was asked for."""
    X = convert(table())
    options = {"schedule": "sequential_gibbs", "n_chains": 1, "n_draws": 2, "random_state": 0}
    model = CrossCatPY(**options).fit(X)
    named = convert in (pd.DataFrame, as_polars)
    asked = ["weight", "colour"] if named else [2, 1]
    whole = np.asarray(model.dependence_probability())
    for columns, names in ((None, NAMES), (asked, ["weight", "colour"])):
        information = model.mutual_information(columns, n_samples=20, return_std=True)
        dependence = model.dependence_probability(columns)
        places = [NAMES.index(name) for name in names]
        np.testing.assert_array_equal(np.asarray(dependence), whole[np.ix_(places, places)])
        for answer in (dependence, *information):
            assert np.shape(answer) == (len(names), len(names))
            if convert is pd.DataFrame:
                assert answer.columns.tolist() == answer.index.tolist() == names
            elif convert is as_polars:
                assert isinstance(answer, pl.DataFrame) and answer.columns == names
            else:
                assert type(answer) is np.ndarray
    assert type(model.row_similarity([0, 1])) is np.ndarray
    assert type(model.predict_proba(X)) is np.ndarray


def test_columns_of_pandas_that_are_no_text(models):
    """Any labels come back as they are."""
    X = table()
    X.columns = pd.Index([10, 20, 30], name="sensor")
    model = CrossCatPY(schedule="sequential_gibbs", n_chains=1, n_draws=1, random_state=0).fit(X)
    assert model.surprisal(X).columns.equals(X.columns)
    assert model.dependence_probability().columns.tolist() == [10, 20, 30]
