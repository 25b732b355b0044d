"""Which model CrossCatImputer takes by itself, and that its fills are plausible."""

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer

from skanneal import AnnealedDPMixture, CrossCatImputer, CrossCatPY
from skanneal.encoding import open_table
from skanneal.estimators._family_evidence import MOST_COLUMNS
from skanneal.estimators._imputer_model import ObservedRange, default_model

RNG = np.random.default_rng(0)
N = 60
NUMBERS = {"a": RNG.normal(size=N), "b": RNG.integers(0, 5, N), "c": RNG.integers(0, 2, N) * 1.0}
WORDS = {name: RNG.choice(["yes", "no"], N) for name in "uvw"}
FLAGS = {"f": RNG.random(N) < 0.5}
NAMES = {"patient": np.arange(N)}


def model_of(columns):
    return default_model(open_table(pd.DataFrame(columns), "X"))[0]


@pytest.mark.parametrize(
    ("columns", "numbers"),
    [
        (NUMBERS, [0, 1, 2]),  # whole numbers of few values, too
        (NUMBERS | WORDS, [0, 1, 2]),
        (NAMES | NUMBERS | FLAGS, [1, 2, 3]),
        ({"day": pd.Timestamp("2024-01-01") + pd.to_timedelta(NUMBERS["b"], "D")} | NUMBERS, None),
        (WORDS | FLAGS, CrossCatPY),
        ({"a": NUMBERS["a"]}, CrossCatPY),
        (NUMBERS | WORDS | FLAGS, CrossCatPY),  # fewer than half
        ({f"x{j}": NUMBERS["a"] for j in range(MOST_COLUMNS + 1)}, CrossCatPY),
    ],
)
def test_the_model_goes_by_the_columns_that_hold_numbers(columns, numbers):
    model = model_of(columns)
    if numbers is CrossCatPY:
        assert type(model) is CrossCatPY
        return
    numbers = list(range(len(columns))) if numbers is None else numbers
    assert type(model) is AnnealedDPMixture
    assert model.families == {"multivariate_normal": numbers}


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
    assert np.nanmin(X[:, 2]) <= min(drawn) and max(drawn) <= np.nanmax(X[:, 2])


def test_the_range_of_a_column():
    frame = pd.DataFrame({"x": [1.0, np.nan, 4.0, 3.0], "two": [2.0, 5.0, np.nan, 5.0]})
    table = open_table(frame, "X")
    many, two = (ObservedRange.of(table.column(j)) for j in range(2))
    assert many.nearest(np.array([0.0, 2.5, 9.0])).tolist() == [1.0, 2.5, 4.0]
    assert two.nearest(np.array([0.0, 3.4, 3.6, 9.0])).tolist() == [2.0, 2.0, 5.0, 5.0]
