"""What a fit says of columns and rows that make its answers worse, and where it says nothing."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

from skanneal import AnnealedDPMixture
from skanneal.encoding import Encoder
from skanneal.encoding._codecs import NumberCodec
from skanneal.encoding._repeats import FIRST_ROWS, repeated_columns
from skanneal.schedules import SequentialGibbs

WORDS = np.array("the red room was cold and we had no warm water but staff were very kind".split())


def encoded(X, families="auto"):
    """The encoder of a table, and what was said of it."""
    encoder = Encoder()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        encoder.fit_encode(BaseEstimator(), X, families)
    return encoder, [str(one.message) for one in caught]


def comments(n, rng, n_words=8):
    return [" ".join(rng.choice(WORDS, size=n_words)) for _ in range(n)]


# ---- free text ----------------------------------------------------------------------------------


def with_text(n=60, seed=0):
    rng = np.random.default_rng(seed)
    text = comments(n, rng)
    text[1] = text[0]  # not an identifier
    return pd.DataFrame({"comment": text, "size": rng.normal(size=n)})


def test_free_text_is_left_out_with_a_word():
    encoder, (said,) = encoded(with_text())
    assert encoder.families_["identifier"].tolist() == [0]
    assert "free text" in said and "column 'comment'" in said
    assert "families={'categorical': ['comment']}" in said


def test_free_text_that_is_named_stays():
    encoder, said = encoded(with_text(), {"categorical": ["comment"]})
    assert encoder.families_["categorical"].tolist() == [0] and said == []
    declared = with_text().astype({"comment": "category"})
    assert encoded(declared)[0].families_["categorical"].tolist() == [0]


def test_text_clusters_as_if_it_were_not_there():
    X = with_text()
    model = AnnealedDPMixture(schedule=SequentialGibbs(n_sweeps=3), n_chains=1, random_state=0)
    with pytest.warns(UserWarning, match="free text"):
        labels = model.fit_predict(X)
    np.testing.assert_array_equal(labels, model.fit_predict(X[["size"]]))


def answers(n, rng):
    """Sentences of a form, which repeat."""
    return rng.choice(["I do not agree at all", "I agree very much", "I do not know that"], n)


def names(n, rng):
    first, last = (rng.choice([f"{letter}{end}" for letter in "ABCDEFGH" for end in ends], n)
                   for ends in (["nna", "tto", "rik"], ["mann", "berg", "dorf"]))  # fmt: skip
    return [f"{one} {other}" for one, other in zip(first, last)]


def dates(n, rng):
    return pd.Series(pd.to_datetime(rng.integers(0, 10**9, n), unit="s")).dt.strftime(
        "%A, %d %B %Y"
    )


def long_titles(n, rng):
    """Levels of many words, of which each occurs a few times."""
    return rng.choice(comments(n // 4, rng), n)


@pytest.mark.parametrize("kind", [answers, names, dates, long_titles])
@pytest.mark.parametrize("seed", range(3))
def test_levels_are_not_taken_for_text(kind, seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": list(kind(200, rng)), "b": rng.normal(size=200)})
    assert not [one for one in encoded(X)[1] if "free text" in one]


# ---- one of several -----------------------------------------------------------------------------


def one_hot(n=100, n_levels=4, seed=0, dtype=int):
    rng = np.random.default_rng(seed)
    levels = pd.Series(rng.choice(list("pqrstuvw")[:n_levels], size=n), name="colour")
    hot = pd.get_dummies(levels, prefix="colour", dtype=dtype)
    return pd.concat([pd.Series(rng.normal(size=n), name="size"), hot], axis=1)


@pytest.mark.parametrize("n_levels", [2, 3, 7])
@pytest.mark.parametrize("dtype", [int, bool, float])
def test_columns_made_of_one_are_named(n_levels, dtype):
    (said,) = encoded(one_hot(n_levels=n_levels, dtype=dtype))[1]
    assert "Exactly one is 1 in every row: column 'colour_p', column 'colour_q'" in said
    assert f"count it {n_levels} times" in said and "'size'" not in said
    assert ("and 2 more" in said) == (n_levels == 7)


def test_two_groups_side_by_side_are_two():
    X = one_hot()
    both = pd.concat([X, one_hot(n_levels=3, seed=1).iloc[:, 1:].add_prefix("x")], axis=1)
    said = encoded(both)[1]
    assert [f"count it {n} times" in one for n, one in zip((4, 3), said)] == [True, True]


def nearly(X):
    """A row that has none."""
    X = X.copy()
    X.loc[0, X.columns[1:]] = 0
    return X


@pytest.mark.parametrize(
    "X",
    [
        nearly(one_hot()),
        one_hot().iloc[:, :-1],
        one_hot().replace({0: 2, 1: 3}),
        one_hot(n=12, n_levels=2),
        pd.DataFrame({"a": [1] + [0] * 299, "b": [0] + [1] * 299}).iloc[:100],
    ],
    ids=["a row with none", "one dropped", "other levels", "few rows", "one odd row"],
)
def test_what_may_be_chance_or_is_not_exclusive_is_no_group(X):
    assert encoded(X)[1] == []


def test_named_columns_are_no_group():
    X = one_hot()
    assert encoded(X, {"bernoulli": list(X.columns[1:])})[1] == []


@pytest.mark.parametrize("seed", range(20))
def test_binary_columns_are_no_group_by_chance(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(3, 60)), int(rng.integers(2, 9))
    X = (rng.random((n, d)) < rng.uniform(0.05, 0.95, size=d)).astype(int)
    assert not [one for one in encoded(X)[1] if "Exactly one" in one]


# ---- rows without cells -------------------------------------------------------------------------


def test_rows_without_cells_are_counted():
    X = np.random.default_rng(0).normal(size=(30, 2))
    assert encoded(X)[1] == []
    X[3] = np.nan
    X[5, 0] = np.nan
    (said,) = encoded(X)[1]
    assert said.startswith("Row 3 has no observed cell.")
    X[7] = np.nan
    (said,) = encoded(X)[1]
    assert said.startswith("2 rows, row 3 first, have no observed cell.")


def test_a_row_with_only_a_name_has_no_cell():
    X = with_text()
    X.loc[4, "size"] = np.nan
    assert any(one.startswith("Row 4 has no observed cell") for one in encoded(X)[1])


# ---- the same fact twice ------------------------------------------------------------------------


def repeated(n=60, n_values=5, seed=0):
    """Levels, their names and a number for each."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(n_values, size=n)
    names, numbers = rng.permutation(list("abcdefghij")), rng.normal(size=10)
    return pd.DataFrame(
        {"code": names[codes], "name": names[::-1][codes], "x": rng.normal(size=n)}
    ).assign(number=numbers[codes])


def fitted_remarks(X, word="repeats", **parameters):
    """What a fit says that has the word."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        AnnealedDPMixture(schedule=SequentialGibbs(n_sweeps=3), random_state=0, **parameters).fit(X)
    return [str(one.message) for one in said if word in str(one.message)]


def test_columns_that_repeat_another_are_named():
    first, second = fitted_remarks(repeated())
    assert first.startswith("column 'name' repeats column 'code'")
    assert second.startswith("column 'number' repeats column 'code'")


def test_gaps_that_two_columns_share_are_no_value():
    X = repeated()
    X.loc[:20, ["code", "name"]] = None
    assert len(fitted_remarks(X[["code", "name", "x"]])) == 1
    rng = np.random.default_rng(0)
    both = pd.DataFrame(rng.normal(size=(60, 2)), columns=list("ab"))
    both.iloc[:40] = np.nan
    assert fitted_remarks(both) == []


@pytest.mark.parametrize("seed", range(20))
def test_columns_divide_few_rows_alike_by_chance(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(3, 30)), int(rng.integers(2, 9))
    assert fitted_remarks((rng.random((n, d)) < 0.7).astype(int)) == []


def test_what_is_named_or_set_apart_or_differs_in_a_row_is_no_repeat():
    X = repeated()
    assert fitted_remarks(X, families={"categorical": ["name", "number"]}) == []
    X.loc[0, ["name", "number"]] = [X["name"][X["code"] != X["code"][0]].iloc[0], -1.0]
    assert fitted_remarks(X) == []
    rng = np.random.default_rng(0)
    rounded = pd.DataFrame({"a": rng.normal(size=200).round(1)})
    rounded["b"] = rounded["a"] + 0.2 * rng.normal(size=200)
    rounded["c"] = 2.0 * rounded["a"]
    assert fitted_remarks(rounded) == []
    assert len(fitted_remarks(rounded, "is a linear function of")) == 1


def test_repeats_are_looked_for_in_all_rows():
    rng = np.random.default_rng(0)
    codes = rng.integers(5, size=FIRST_ROWS + 10)
    codecs = [NumberCodec("normal", 0.0, 1.0)] * 2
    columns = [codes.astype(float), codes + 7.0]
    assert repeated_columns(codecs, columns, [0, 1]) == {1: 0}
    columns[1][-1] = 7.0 + (codes[-1] + 1) % 5
    assert repeated_columns(codecs, columns, [0, 1]) == {}
