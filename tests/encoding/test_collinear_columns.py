"""Columns that others determine: full covariances do not see them, and give them back."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from skanneal import (
    AcceleratedDPMixture,
    AnnealedDPMixture,
    CrossCatPY,
    PermutationDPMixture,
)
from skanneal.encoding._collinear import find_collinear
from skanneal.schedules import SequentialGibbs

QUICK = {"n_chains": 1, "schedule": SequentialGibbs(n_sweeps=8), "random_state": 0}
FULL = "multivariate_normal"
IRIS = load_iris().data
COPY, SUM = 4, 5  # of column 1; of column 0 and twice column 2
WIDE = np.column_stack([IRIS, IRIS[:, 1], 3.0 + IRIS[:, 0] + 2.0 * IRIS[:, 2]])


def fitted(X, families="auto", estimator=AnnealedDPMixture, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator(families=families, **QUICK | parameters).fit(X)


@pytest.fixture(scope="module")
def models():
    return fitted(IRIS), fitted(WIDE)


def cells(X):
    return list(((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32).T)


class Plain:
    """What `find_collinear` asks of a codec."""

    family, offset, scale, lowest = "normal", 0.0, 1.0, -np.inf


def found(X):
    columns = cells(X)
    return sorted(find_collinear([Plain] * len(columns), columns, range(len(columns))))


def test_later_columns_are_expressed_by_earlier_ones():
    assert found(WIDE) == [COPY, SUM]
    assert found(WIDE[:, ::-1]) == [4, 5]
    assert found(IRIS) == []


def with_gaps(rows, column):
    """WIDE, of which a column lacks some rows."""
    columns = cells(WIDE)
    columns[column][rows] = np.nan
    return columns


def found_among(columns):
    return find_collinear([Plain] * len(columns), columns, range(len(columns)))


def test_a_column_of_few_cells_does_not_end_the_search():
    rare = np.full(len(WIDE), np.nan)
    rare[:5] = np.arange(5.0) ** 2
    assert found_among([*cells(WIDE), rare]).keys() == {COPY, SUM}
    assert found_among([rare, *cells(WIDE)]).keys() == {COPY + 1, SUM + 1}


def test_of_two_columns_that_give_each_other_the_one_of_more_gaps_is_set_apart():
    assert found_among(with_gaps(slice(30), 1))[1].sources == [COPY]
    assert found_among(with_gaps(slice(30), COPY))[COPY].sources == [1]


@pytest.mark.parametrize("column", [1, 2, COPY, SUM])
def test_a_column_that_shares_few_rows_with_another_is_looked_at_by_itself(column):
    columns = with_gaps(slice(30), column)
    half = np.where(np.arange(len(WIDE)) < 60, IRIS[:, 3] ** 2, np.nan)
    columns[column][:50] = np.nan
    expected = {1: {1, SUM}, 2: {2, COPY}, COPY: {COPY, SUM}, SUM: {COPY, SUM}}[column]
    assert found_among([*columns, half]).keys() == expected


@pytest.mark.parametrize("gaps", [0.1, 0.3])
def test_a_copy_is_found_among_many_columns_with_gaps(gaps):
    """No row is complete, and the copy's source has as many gaps as any."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 40))
    X[:, 7] = 1.8 * X[:, 31] + 32.0
    columns = cells(X)
    for column in columns:
        column[rng.random(300) < gaps] = np.nan
    ((copy, codec),) = found_among(columns).items()
    assert {copy, *codec.sources} == {7, 31}


def test_what_is_nearly_a_sum_is_none():
    X = WIDE.copy()
    X[:, SUM] += 0.02 * np.random.default_rng(0).normal(size=len(X))
    assert found(X) == [COPY]


def test_a_sum_of_rounded_numbers_is_one():
    """As of the angles of the spine, which are given to hundredths."""
    X = 20.0 * np.random.default_rng(0).normal(size=(200, 3))
    assert found(np.column_stack([X, X.sum(axis=1)]).round(2)) == [3]


def test_few_rows_lie_in_a_plane_by_chance():
    assert found(np.random.default_rng(0).normal(size=(5, 6))) == []


def test_one_row_off_the_plane_is_enough():
    X = np.tile(WIDE, (200, 1))  # more rows than are decomposed
    assert found(X) == [COPY, SUM]
    X[1, SUM] += 0.1
    assert found(X) == [COPY]


@pytest.mark.parametrize("families", ["auto", FULL])
def test_the_fit_is_that_of_the_other_columns(models, families):
    plain, wide = models if families == "auto" else (fitted(IRIS, FULL), fitted(WIDE, FULL))
    (family,) = plain.families_
    assert {name: c.tolist() for name, c in wide.families_.items()} == {
        family: [0, 1, 2, 3],
        "collinear": [COPY, SUM],
    }
    np.testing.assert_array_equal(wide.labels_, plain.labels_)
    assert wide.draws_[0][0].log_joint == plain.draws_[0][0].log_joint
    np.testing.assert_array_equal(wide.score_samples(WIDE), plain.score_samples(IRIS))
    np.testing.assert_array_equal(wide.predict(WIDE), plain.predict(IRIS))


def test_fit_warns_by_name():
    X = pd.DataFrame(WIDE, columns=[*"abcd", "copy", "sum"])
    with pytest.warns(UserWarning, match="column 'sum' is a linear function of") as warned:
        AnnealedDPMixture(families=FULL, **QUICK).fit(X)
    (of_sum,) = (w for w in warned if "'sum'" in str(w.message))
    assert "column 'a', column 'c'" in str(of_sum.message) and of_sum.filename == __file__


def test_families_without_covariances_keep_all_columns():
    for model in (fitted(WIDE, "normal"), fitted(WIDE, "normal", estimator=CrossCatPY)):
        assert set(model.families_) <= {"normal", "log_normal"}
        assert sorted(np.concatenate([*model.families_.values()])) == [*range(6)]


def test_a_given_scale_keeps_all_columns():
    model = fitted(WIDE, FULL, hyperparameters={FULL: {"scale0": WIDE.var(axis=0)}})
    assert list(model.families_) == [FULL]


def test_another_value_has_density_zero(models):
    rows = WIDE[:3].copy()
    rows[0, COPY] += 0.5
    rows[1, SUM] = np.nan
    log_density = models[1].score_samples(rows)
    assert np.isneginf(log_density[0])
    np.testing.assert_array_equal(log_density[1:], models[0].score_samples(IRIS[1:3]))
    surprisal = models[1].surprisal(rows)
    assert np.isposinf(surprisal[0, COPY]) and np.isnan(surprisal[1, SUM])
    assert (surprisal[2, [COPY, SUM]] == 0).all()


def test_samples_lie_in_the_plane(models):
    rows = models[1].sample(50)
    np.testing.assert_allclose(rows[:, COPY], rows[:, 1], rtol=1e-5)
    np.testing.assert_allclose(rows[:, SUM], 3.0 + rows[:, 0] + 2.0 * rows[:, 2], rtol=1e-5)


@pytest.mark.parametrize("margins", ["model", "data"])
@pytest.mark.parametrize("estimator", [AnnealedDPMixture, CrossCatPY])
def test_samples_lie_in_the_plane_of_what_is_given(estimator, margins):
    """One, all or none of the columns that determine another; draws are possible rows."""
    model = fitted(WIDE, estimator=estimator, margins=margins)
    for given in ({0: 5.5}, {2: 1.5}, {0: 5.5, 2: 1.5}, {1: 3.0}, {0: 5.5, 2: 1.5, SUM: 11.5}):
        drawn = model.sample(20, given=given, random_state=0)
        assert all((drawn[:, j] == value).all() for j, value in given.items())
        np.testing.assert_allclose(drawn[:, COPY], drawn[:, 1], rtol=1e-6)
        np.testing.assert_allclose(drawn[:, SUM], 3.0 + drawn[:, 0] + 2.0 * drawn[:, 2], rtol=1e-6)
        assert np.isfinite(model.score_samples(drawn)).all()


def test_spreads_of_determined_cells():
    """Where nothing, one or both of what determines the sum is missing: none, that cell's times its
    weight, and the spread of imputations."""
    model = fitted(WIDE)
    X = WIDE[[0, 0, 0, 0]].copy()
    X[:, SUM] = X[1, 0] = X[2, 2] = X[3, 0] = X[3, 2] = np.nan
    spreads = model.impute(X, return_std=True)[1]
    np.testing.assert_allclose(spreads[:3, SUM], [0.0, spreads[1, 0], 2.0 * spreads[2, 2]])
    drawn = [own[3, SUM] for own in model.impute(X, n_imputations=400)]
    assert 0.75 < spreads[3, SUM] / np.std(drawn) < 1.33
    np.testing.assert_array_equal(spreads, model.impute(X, return_std=True)[1])


def test_gaps_are_filled_from_the_other_columns(models):
    rows = WIDE[:4].copy()
    rows[0, COPY] = rows[1, SUM] = rows[2, SUM] = np.nan
    filled, deviation = models[1].impute(rows, return_std=True)
    np.testing.assert_allclose(filled, WIDE[:4], rtol=1e-5)
    assert (deviation == 0).all()


def test_a_determined_column_cannot_be_given(models):
    with pytest.raises(ValueError, match="column 4 is determined by column 1: give"):
        models[1].sample(2, given={COPY: 3.0})
    with pytest.raises(ValueError, match="column 4 is determined by column 1: give"):
        models[1].score_samples(WIDE, given=[COPY])
    known = [models[1].score_samples(WIDE, given=given) for given in ([1], [1, COPY])]
    np.testing.assert_array_equal(*known)


def test_warm_start_goes_on_with_the_same_columns():
    model = fitted(WIDE, warm_start=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(WIDE)
    assert model.families_["collinear"].tolist() == [COPY, SUM]


def copies(n_rows=200, seed=2):
    """Two independent columns, the first also in other units, and their sum."""
    x, y = np.random.default_rng(seed).normal(size=(2, n_rows))
    return np.column_stack([x, 1.8 * x + 32.0, y, x + y])


@pytest.mark.parametrize(
    "estimator", [AnnealedDPMixture, CrossCatPY, PermutationDPMixture, AcceleratedDPMixture]
)
def test_copies_do_not_part_rows_where_columns_are_independent(estimator):
    """The control names the family: components then follow the line."""
    X = copies()
    with pytest.warns(UserWarning, match="the family 'normal' would part the rows along it"):
        model = estimator(random_state=0).fit(X)
    assert model.families_["collinear"].tolist() == [1, 3] and model.n_components_ < 5
    drawn = model.sample(50, random_state=0)
    np.testing.assert_allclose(drawn[:, 1], 1.8 * drawn[:, 0] + 32.0, rtol=1e-5)
    np.testing.assert_allclose(drawn[:, 3], drawn[:, 0] + drawn[:, 2], atol=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        name = "likelihood" if estimator is AcceleratedDPMixture else "families"
        named = estimator(**{name: "normal"}, random_state=0).fit(X)
    assert "collinear" not in named.families_ and named.n_components_ > 8


def test_what_is_determined_depends_on_what_determines_it_and_on_no_more():
    x, y, z = np.random.default_rng(3).normal(size=(3, 200))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CrossCatPY(n_chains=2, random_state=0).fit(np.column_stack([x, 3.0 * x, y, z]))
    found = model.dependence_probability()
    assert model.families_["collinear"].tolist() == [1]
    assert found[0, 1] == found[1, 0] == found[1, 1] == 1.0
    np.testing.assert_array_equal(found[1, 2:], found[0, 2:])
    assert found[0, 2:].max() < 0.5
    np.testing.assert_array_equal(
        model.dependence_probability([2, 1]), found[np.ix_([2, 1], [2, 1])]
    )


@pytest.mark.parametrize("factor", [1.0, 7.5])
def test_a_multiple_of_an_amount_is_what_the_amount_is(factor):
    for seed in range(2):
        x, y = np.random.default_rng(seed).normal(size=(2, 500))
        X = np.exp(np.column_stack([x, x, y])) * [1.0, factor, 1.0]
        model = fitted(X, n_chains=2)
        assert model.families_["log_normal"].tolist() == [0, 2]
        assert model.families_["collinear"].tolist() == [1]
        shown = model.family_evidence_["logarithms"]
        assert sorted(shown["columns"]) == [0, 1, 2] and shown["chosen"].all()
        drawn = model.sample(200, random_state=0)
        assert drawn.min() > 0.0
        np.testing.assert_allclose(drawn[:, 1], factor * drawn[:, 0], rtol=1e-5)
    X = np.column_stack([np.exp(x), 90.0 + np.exp(x), np.exp(y)])
    assert fitted(X, n_chains=2).families_["log_normal"].tolist() == [0, 2]  # it competes by itself
    X[:9, 0] = np.nan  # the other one, of fewer gaps, is not set apart for it
    assert 2 in fitted(X, n_chains=2).families_["log_normal"]
