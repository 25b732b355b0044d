"""Columns of one value carry nothing: every fit is that of the table without them, to the bit."""

import pickle
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from oracles.cheap import CHEAP
from skanneal import (
    AcceleratedDPMixture,
    AnnealedDPMixture,
    CrossCatImputer,
    CrossCatPY,
    PermutationDPMixture,
)
from skanneal.displays import DependenceDisplay, ViewsDisplay
from skanneal.schedules import AcceleratedSchedule, PriorGibbs, SequentialGibbs

IRIS = load_iris().data
SHORT = {"n_chains": 1, "n_draws": 2, "random_state": 0}
LONG, QUICK = SequentialGibbs(n_sweeps=6), AcceleratedSchedule(n_accelerated=4, n_exact=6)
MODELS = {
    "annealed": lambda **kw: AnnealedDPMixture(families="normal", schedule=LONG, **SHORT, **kw),
    "multivariate": lambda **kw: AnnealedDPMixture(
        families="multivariate_normal", schedule=LONG, **SHORT, **kw
    ),
    "permutation": lambda **kw: PermutationDPMixture(
        families="normal", schedule=PriorGibbs(n_sweeps=4), **SHORT, **kw
    ),
    "crosscat": lambda **kw: CrossCatPY(schedule=LONG, **SHORT, **kw),
    "normal": lambda **kw: AcceleratedDPMixture(likelihood="normal", schedule=QUICK, **SHORT, **kw),
    "multivariate_normal": lambda **kw: AcceleratedDPMixture(
        likelihood="multivariate_normal", schedule=QUICK, **SHORT, **kw
    ),
    "kmeans": lambda **kw: AcceleratedDPMixture(
        likelihood="normal", init="kmeans", schedule=QUICK, **SHORT, **kw
    ),
    "collapsed": lambda **kw: AcceleratedDPMixture(
        likelihood="normal", algorithm="collapsed", schedule=QUICK, **SHORT, **kw
    ),
}
every_model = pytest.mark.parametrize("name", MODELS)


def with_constants(X, n, seed=0):
    """X with n columns of one value each, at random places, and the places of the others."""
    rng = np.random.default_rng(seed)
    order = np.sort(rng.permutation(X.shape[1] + n)[: X.shape[1]])
    out = np.tile(rng.normal(size=X.shape[1] + n) * 10.0, (len(X), 1))
    out[:, order] = X
    return out, order


@cache
def fitted(name, n):
    X, kept = with_constants(IRIS, n)
    return MODELS[name]().fit(X), X, kept


def draws_of(model):
    return [
        {name: np.asarray(array).tobytes() for name, array in draw.arrays.items()}
        for chain in model.draws_
        for draw in chain
    ]


@every_model
@pytest.mark.parametrize("n", [1, 3, 10])
@pytest.mark.few(4)
def test_draws_are_those_without_the_columns(name, n):
    plain, X0, _ = fitted(name, 0)
    model, X, kept = fitted(name, n)
    assert draws_of(model) == draws_of(plain)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    (family,) = plain.families_
    assert list(model.families_) == [family, "constant"]
    np.testing.assert_array_equal(model.families_[family], kept)
    np.testing.assert_array_equal(
        np.sort(np.r_[kept, model.families_["constant"]]), np.arange(X.shape[1])
    )
    shown = [m.draws_[0][0].hyperparameters for m in (model, plain)]
    np.testing.assert_equal(*shown)
    np.testing.assert_equal(model.hyperparameter_grids_, plain.hyperparameter_grids_)
    np.testing.assert_equal(model.trace_["log_joint"], plain.trace_["log_joint"])


@every_model
def test_queries_are_those_of_the_other_columns(name):
    plain, X0, _ = fitted(name, 0)
    model, X, kept = fitted(name, 3)
    first, second, _ = model.families_["constant"]
    wrong = X[:20].copy()
    wrong[3, first] += 1.0
    wrong[5, second] = -wrong[5, second]
    impossible = np.isin(np.arange(20), [3, 5])
    expected = plain.score_samples(X0[:20])
    np.testing.assert_array_equal(model.score_samples(X[:20]), expected)
    np.testing.assert_array_equal(
        model.score_samples(wrong), np.where(impossible, -np.inf, expected)
    )
    given = (
        model.score_samples(wrong, given=[int(first), int(kept[0])])
        if ("multivariate" not in name and "full" not in name)
        else None
    )
    if given is not None:
        np.testing.assert_array_equal(
            given, np.where(np.arange(20) == 5, -np.inf, plain.score_samples(X0[:20], given=[0]))
        )
    for query in ("predict", "predict_proba", "new_cluster_proba"):
        np.testing.assert_array_equal(
            getattr(model, query)(wrong), getattr(plain, query)(X0[:20]), err_msg=query
        )
    surprisal = model.surprisal(wrong)
    np.testing.assert_array_equal(surprisal[:, kept], plain.surprisal(X0[:20]))
    assert surprisal[3, first] == surprisal[5, second] == np.inf
    assert np.count_nonzero(np.delete(surprisal, kept, axis=1)) == 2
    rows = model.sample(50)
    np.testing.assert_array_equal(rows[:, kept], plain.sample(50))
    assert (np.delete(rows, kept, axis=1) == np.delete(X[0], kept)).all()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.score_samples(wrong), model.score_samples(wrong))


@pytest.mark.parametrize("name", ["annealed", "crosscat"])
def test_gaps(name):
    """In fit and in queries, of a constant column and of others."""
    plain, X0, _ = fitted(name, 0)
    _, X, kept = fitted(name, 3)
    first = int(np.setdiff1d(np.arange(7), kept)[0])
    gappy = X.copy()
    gappy[::3, first] = np.nan
    model = MODELS[name]().fit(gappy)
    assert draws_of(model) == draws_of(plain)
    query = X[:10].copy()
    query[2, first] = query[3, kept[1]] = query[4, kept[1]] = query[4, first] = np.nan
    X0 = X0[:10].copy()
    X0[3:5, 1] = np.nan
    np.testing.assert_array_equal(model.score_samples(query), plain.score_samples(X0))
    filled, spread = model.impute(query, return_std=True)
    expected, expected_spread = plain.impute(X0, return_std=True)
    np.testing.assert_array_equal(filled[:, kept], expected)
    np.testing.assert_array_equal(spread[:, kept], expected_spread)
    assert (filled[:, first] == X[0, first]).all()
    assert not spread[:, first].any()
    assert np.isnan(model.surprisal(query)[[2, 4], first]).all()


@pytest.mark.parametrize("strategy", ["mean", "mode", "sample"])
def test_imputer(strategy):
    X = pd.DataFrame(
        {"a": [2.5, np.nan] * 20, "b": np.r_[np.arange(39.0), np.nan], "c": [7.0] * 40}
    )
    imputer = CrossCatImputer(MODELS["crosscat"](), strategy=strategy, random_state=0)
    filled = imputer.fit_transform(X)
    assert (filled["a"] == 2.5).all()
    assert (filled["c"] == 7.0).all()
    assert np.isfinite(filled["b"]).all()


def test_crosscat_has_them_in_no_view():
    plain, _, _ = fitted("crosscat", 0)
    model, X, kept = fitted("crosscat", 3)
    constant = model.families_["constant"]
    assert (model.view_labels_[constant] == -1).all()
    np.testing.assert_array_equal(model.view_labels_[kept], plain.view_labels_)
    assert model.n_views_ == plain.n_views_
    for query in ("dependence_probability", "mutual_information"):
        table = getattr(model, query)()
        if query == "dependence_probability":
            np.testing.assert_array_equal(np.diag(table), 1.0)
            table[constant, constant] = 0.0
        np.testing.assert_array_equal(table[np.ix_(kept, kept)], getattr(plain, query)())
        assert not table[constant].any()
        assert not table[:, constant].any()
    np.testing.assert_array_equal(model.mutual_information(constant), np.zeros((3, 3)))
    np.testing.assert_array_equal(model.row_similarity([0, 60]), plain.row_similarity([0, 60]))
    np.testing.assert_array_equal(
        model.row_similarity([0, 60], columns=[constant[0]]), np.ones((2, 150))
    )
    np.testing.assert_array_equal(model.transform(X), plain.transform(IRIS))
    assert len(DependenceDisplay.from_estimator(model).names) == 4
    shown = ViewsDisplay.from_estimator(model, X).names
    assert sorted(sum(shown, [])) == sorted(map(str, kept))


def test_a_missing_indicator_of_a_constant_column_is_modelled():
    rng = np.random.default_rng(0)
    side = np.arange(80) % 2
    X = np.column_stack([6.0 * side + rng.normal(size=80), np.where(side, 5.5, np.nan)])
    model = CrossCatPY(missing_indicator=[1], n_chains=1, random_state=0, **CHEAP).fit(X)
    assert list(model.families_) == ["normal", "constant"]
    score = model.score_samples([[6.0, 5.5], [6.0, np.nan], [6.0, 4.0]])
    assert score[0] > score[1] + 1.0  # present on that side
    assert score[2] == -np.inf
    rows = model.sample(400)
    assert set(np.unique(rows[~np.isnan(rows[:, 1]), 1])) == {5.5}
    assert 0.3 < np.isnan(rows[:, 1]).mean() < 0.7
    alone = CrossCatPY(missing_indicator=[0], n_chains=1, random_state=0, **CHEAP).fit(X[:, 1:])
    assert np.isfinite(alone.score_samples(X[:4, 1:])).all()
    assert alone.n_views_ == 1
    assert alone.predict(X[:4, 1:]).shape == (4,)


@every_model
def test_a_table_of_constants_alone(name):
    X = np.tile([2.5, -1.0, 1e300], (40, 1))
    model = MODELS[name]().fit(X)
    assert model.n_clusters_ == 1
    assert not model.labels_.any()
    np.testing.assert_array_equal(model.families_["constant"], [0, 1, 2])
    np.testing.assert_allclose(model.score_samples(X[:3]), 0.0, atol=1e-12)
    other = X[:1] + [[1.0, 0.0, 0.0]]
    assert model.score_samples(other) == -np.inf
    np.testing.assert_array_equal(model.predict_proba(other), [[1.0]])
    np.testing.assert_array_equal(model.sample(3), X[:3])
    np.testing.assert_array_equal(model.surprisal(other), [[np.inf, 0.0, 0.0]])
    assert 0.0 <= model.new_cluster_proba(X[:1])[0] <= 1.0
    assert model.draws_[0][0].hyperparameters == {}
    filled = model.impute([[np.nan, -1.0, np.nan]]) if name in ("annealed", "crosscat") else X[:1]
    np.testing.assert_array_equal(filled, X[:1])
    if name == "crosscat":
        assert model.n_views_ == 1
        assert (model.view_labels_ == -1).all()
        np.testing.assert_array_equal(model.dependence_probability(), np.eye(3))
        np.testing.assert_array_equal(model.transform(X), np.zeros((40, 1)))


# ---- what is not set apart ----------------------------------------------------------------------


def test_what_has_a_proper_density_is_not_set_apart():
    X = np.column_stack([IRIS, np.full(150, 3.5)])
    model = AnnealedDPMixture(
        schedule=LONG, hyperparameters={"normal": {"sigma2_0": 0.5}}, **SHORT
    ).fit(X)
    assert list(model.families_) == ["normal"]
    assert np.isfinite(model.score_samples(X + 0.1)).all()
    for family in ("bernoulli", "poisson", "categorical"):
        of = {family: [4], "normal": range(4)}
        X[:, 4] = 1.0
        model = AnnealedDPMixture(families=of, schedule=LONG, **SHORT).fit(X)
        assert "constant" not in model.families_
        other = X[:1].copy()
        other[0, 4] = 0.0
        assert np.isfinite(model.score_samples(other)[0])
    covariance = {"known_normal": {"covariance": 0.3}}
    model = AnnealedDPMixture(
        families="known_normal", hyperparameters=covariance, schedule=LONG, **SHORT
    ).fit(X)
    assert list(model.families_) == ["known_normal"]


def test_one_present_cell_is_no_constant():
    X = IRIS.copy()
    X[1:, 0] = np.nan
    assert "constant" not in MODELS["annealed"]().fit(X).families_
    assert list(MODELS["annealed"]().fit(IRIS[:1]).families_) == ["normal"]


def test_values_that_are_given_count_the_constant_columns():
    """As many as columns are given to the family, whichever turn out to be constant."""
    X, kept = with_constants(IRIS, 2)
    mu0 = np.arange(6.0)
    for name, family in (("annealed", "normal"), ("multivariate", "multivariate_normal")):
        plain = MODELS[name](hyperparameters={family: {"mu0": mu0[kept]}}).fit(IRIS)
        model = MODELS[name](hyperparameters={family: {"mu0": mu0}}).fit(X)
        assert draws_of(model) == draws_of(plain)
        np.testing.assert_allclose(
            model.draws_[0][0].hyperparameters[family]["mu0"], mu0[kept], atol=1e-12
        )
        with pytest.raises(ValueError, match=r"one per column of the family \(6\)"):
            MODELS[name](hyperparameters={family: {"mu0": mu0[kept]}}).fit(X)
    with pytest.raises(ValueError, match="has density 0"):
        model.sample(given={int(np.setdiff1d(np.arange(6), kept)[0]): 99.0})


def test_another_constant_is_other_data():
    X, _ = with_constants(IRIS, 1)
    model = MODELS["annealed"]().set_params(warm_start=True).fit(X)
    model.fit(X)
    moved = X.copy()
    moved[:, model.families_["constant"]] += 1.0
    with pytest.raises(ValueError, match="warm_start"):
        model.fit(moved)


def test_a_column_of_a_file_that_varies_beyond_its_first_rows(tmp_path):
    """What is constant in the rows that types are taken from may vary in others."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(9000, 2)), np.full((9000, 2), 4.0)])
    X[:, 0] += 8.0 * (np.arange(9000) % 2)
    X[1, 2] = 4.5
    np.save(tmp_path / "rows.npy", X)
    model = MODELS["normal"]().fit([tmp_path / "rows.npy"])
    np.testing.assert_array_equal(model.families_["constant"], [3])
    np.testing.assert_array_equal(model.families_["normal"], [0, 1, 2])
    assert np.isfinite(model.score_samples(X[:4])).all()
    np.save(tmp_path / "fewer.npy", np.ascontiguousarray(X[:, :3]))
    plain = MODELS["normal"]().fit([tmp_path / "fewer.npy"])
    assert draws_of(model) == draws_of(plain)
