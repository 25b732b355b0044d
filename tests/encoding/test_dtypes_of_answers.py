"""A column's dtype that cannot hold what goes into it, frames that are none of those taken."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

from oracles.cheap import short
from skanneal import AnnealedDPMixture, CrossCatImputer, CrossCatPY
from skanneal.encoding._containers import build_table
from skanneal.encoding._pandas import _pandas_series

N = 12
SIDE = np.linspace(0.0, 1.0, N).tolist()
SURROGATE = ["a", "\ud800", "\ud800"] * 4  # no UTF-8 has half a pair
GAPS = [None] * 4


def rows(cells):
    return [list(row) for row in zip(SIDE, cells)]


def pandas(cells):
    return pd.DataFrame({"x": SIDE, "y": pd.Series(cells, dtype=object)})


def polars(cells):
    return pl.DataFrame({"x": SIDE, "y": pl.Series(cells, dtype=pl.Object)})


def array(cells):
    return np.array(rows(cells), dtype=object)


def second(table):
    """The cells of the second column."""
    if isinstance(table, (pd.DataFrame, pl.DataFrame)):
        return list(table["y"])
    return [row[1] for row in table]


@pytest.mark.parametrize("make", [AnnealedDPMixture, CrossCatPY])
@pytest.mark.parametrize("container", [rows, array, pandas, polars])
@pytest.mark.few(4)
def test_half_a_pair_is_a_level_as_any_other(container, make):
    model = short(make).fit(container(SURROGATE))
    gaps = container(GAPS + SURROGATE[4:])
    for query in ("predict", "score_samples", "surprisal", "explain_outliers"):
        assert len(getattr(model, query)(gaps))
    assert set(second(model.impute(gaps))) <= set(SURROGATE)
    assert set(second(model.sample(30, random_state=0))) == set(SURROGATE)


TEXT = GAPS + ["a"] * 8
CANNOT = {
    "polars String": lambda: pl.DataFrame({"x": SIDE, "y": pl.Series(TEXT, dtype=pl.String)}),
    "polars Categorical": lambda: pl.DataFrame(
        {"x": SIDE, "y": pl.Series(TEXT, dtype=pl.Categorical)}
    ),
    "polars Null": lambda: pl.DataFrame({"x": SIDE, "y": pl.Series([None] * N, dtype=pl.Null)}),
    "pandas datetime64": lambda: pd.DataFrame(
        {"x": SIDE, "y": pd.Series([None] * N, dtype="datetime64[us]")}
    ),
}


@pytest.mark.parametrize("of", CANNOT)
@pytest.mark.parametrize("container", [pandas, polars])
@pytest.mark.few(4)
def test_a_dtype_that_cannot_hold_half_a_pair(container, of):
    model = short(AnnealedDPMixture, families={"categorical": [1]}).fit(container(SURROGATE))
    table = CANNOT[of]()
    assert np.isfinite(model.score_samples(table)).all()
    with pytest.raises(ValueError, match=f"^column 'y' has the dtype {of.split()[1]}.*in fit"):
        model.impute(table)


@pytest.mark.parametrize("container", ["polars", "pandas"])
def test_a_sample_in_a_dtype_that_cannot_hold_it(container):
    dtype = {"polars": "String", "pandas": "datetime64[us]"}[container]
    number = {"polars": "Float64", "pandas": "float64"}[container]
    layout = {"container": container, "names": ["x", "y"], "dtypes": [[number], [dtype]]}
    with pytest.raises(ValueError, match="^column 'y' has the dtype " + re.escape(dtype)):
        build_table(layout, [np.array(SIDE), np.array(SURROGATE, dtype=object)])


class Nulls:
    """What a pandas column of Arrow's nulls has for a dtype."""

    kind, numpy_dtype = "O", np.dtype(object)

    def __str__(self):
        return "null[pyarrow]"


@pytest.mark.parametrize("cells", [["a", "b", None], [1.5, 2.5, 0.5], [True, False, True]])
def test_a_pandas_column_of_nulls_becomes_what_fit_saw(cells):
    given = np.array(cells, dtype=object if "a" in cells else None)
    series = _pandas_series(given, Nulls())
    assert series.tolist()[:2] == cells[:2] and series.isna().tolist() == [c is None for c in cells]
    assert given.dtype.kind == "O" or series.dtype == given.dtype


@pytest.mark.parametrize("cells", [["a", "b", "c"] * 4, [True, False, True] * 4, [1.5, 2.5] * 6])
def test_a_polars_column_of_nulls_becomes_what_fit_saw(cells):
    model = short(AnnealedDPMixture).fit(pl.DataFrame({"x": SIDE, "y": cells}))
    nulls = pl.DataFrame({"x": SIDE, "y": pl.Series([None] * N, dtype=pl.Null)})
    filled = model.impute(nulls)["y"]
    assert filled.dtype == pl.Series(cells).dtype and filled.null_count() == 0


class ArrowTable:
    """What a table of Arrow has: columns, a conversion, and an array of all."""

    column_names, num_rows = ["x", "y"], N
    shape = N, 2

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("was converted")

    def to_pandas(self):
        return pandas(["a", "b", "c"] * 4)


@pytest.mark.parametrize("make", [AnnealedDPMixture, CrossCatPY, CrossCatImputer])
def test_frames_that_are_not_taken(make):
    table = ArrowTable()
    words = rf"^X is a {__name__}.ArrowTable, but .*pandas or polars frame.*X.to_pandas\(\)"
    model = make(short(CrossCatPY)) if make is CrossCatImputer else short(make)
    with pytest.raises(TypeError, match=words):
        model.fit(table)
    model.fit(table.to_pandas())
    queries = ["transform"] if make is CrossCatImputer else ["impute", "predict", "score_samples"]
    for query in queries:
        with pytest.raises(TypeError, match=words):
            getattr(model, query)(table)
