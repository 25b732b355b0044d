"""Bad input: a clear error that names what is wrong, or the right answer where there is one."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

from oracles.cheap import ONE_DRAW, cheap_schedule, short
from skanneal import AnnealedDPMixture, CrossCatPY
from skanneal.schedules import (
    SCHEDULES,
    AcceleratingAnneal,
    CustomAnneal,
    EnergyAnneal,
    LinearAnneal,
    PriorGibbs,
    SequentialGibbs,
)

NAN = float("nan")
QUERIES = (
    "predict",
    "predict_proba",
    "new_cluster_proba",
    "score_samples",
    "surprisal",
    "score_outliers",
    "impute",
    "score",
)
X = np.random.default_rng(0).normal(size=(20, 2))


def mixture(**parameters):
    defaults = {"schedule": SequentialGibbs(n_sweeps=3), "n_chains": 1, "random_state": 0}
    return AnnealedDPMixture(**(ONE_DRAW | defaults | parameters))


def spoilt(value):
    """X with one cell replaced."""
    bad = X.astype(complex) if isinstance(value, complex) else X.copy()
    bad[3, 1] = value
    return bad


BAD_TABLES = {
    "no rows": (X[:0], ValueError, r"0 sample\(s\)"),
    "no columns": (X[:, :0], ValueError, r"0 feature\(s\)"),
    "empty list": ([], ValueError, "Expected 2D array"),
    "a scalar": (3.0, ValueError, "Expected 2D array, got scalar"),
    "one dimension": (X[:, 0], ValueError, "Reshape your data"),
    "three dimensions": (X[None], ValueError, "dim 3"),
    "infinity": (spoilt(np.inf), ValueError, "infinity.* in column 1"),
    "minus infinity": (spoilt(-np.inf), ValueError, "infinity.* in column 1"),
    "infinity in a list": ([[0.5, 1.5], [1.5, np.inf]], ValueError, "infinity.* in column 1"),
    "complex": (spoilt(1j), ValueError, "Complex data not supported"),
    "complex in a list": ([[0.5, 1.5], [1.5, 2j]], ValueError, "column 1 holds complex"),
    "ragged list": (
        [[0.5, 1.5], [1.5]],
        ValueError,
        "differ in length: row 0 has 2 .* row 1 has 1",
    ),
    "ragged arrays": ([np.ones(2), np.ones(3)], ValueError, "differ in length"),
    "strings": ("ab", ValueError, "Expected 2D array"),
    "masked": (np.ma.masked_greater(X, 1), TypeError, r"Masked arrays.*filled"),
    "records": (np.zeros(3, dtype=[("a", float), ("b", float)]), TypeError, "Structured arrays"),
    "lazy": (pl.LazyFrame({"a": [0.5], "b": [0.5]}), TypeError, r"X\.collect\(\)"),
    "equal names": (
        pd.DataFrame(X, columns=["a", "a"]),
        ValueError,
        r"unique, but \['a'\] are not",
    ),
    "names of mixed types": (
        pd.DataFrame(X, columns=["a", 1]),
        TypeError,
        "Feature names are only",
    ),
    "dictionaries in cells": ([[0.5, {}], [0.5, {}]], TypeError, "dict.*column 1"),
    "periods": (
        pd.DataFrame({"a": [0.5], "when": pd.period_range("2024", periods=1)}),
        TypeError,
        "column 'when' holds times of day, periods",
    ),
    "csr": (scipy.sparse.csr_matrix(X), TypeError, "Sparse input .*'multinomial'.*toarray"),
    "coo array": (scipy.sparse.coo_array(X), TypeError, "Sparse input .*'multinomial'.*toarray"),
    "sparse column": (
        pd.DataFrame({"a": X[:, 0], "b": pd.arrays.SparseArray(X[:, 1])}),
        TypeError,
        "column 'b' is sparse",
    ),
}


@pytest.mark.parametrize("case", BAD_TABLES)
class TestBadTables:
    def test_fit(self, case):
        table, error, message = BAD_TABLES[case]
        model = mixture()
        with pytest.raises(error, match=message):
            model.fit(table)
        assert set(vars(model)) == set(model.get_params(deep=False))

    @pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names")
    def test_queries(self, case):
        table, error, message = BAD_TABLES[case]
        model = mixture().fit(X)
        for query in QUERIES:
            with pytest.raises(error, match=message):
                getattr(model, query)(table)


class TestColumnsOfQueries:
    @pytest.mark.parametrize("library", [pd, pl])
    def test_frames(self, library):
        frame = library.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": ["x", "y"] * 10})
        model = mixture().fit(frame)
        renamed = library.DataFrame({"a": X[:, 0], "z": X[:, 1], "c": ["x", "y"] * 10})
        more = library.DataFrame({**{name: frame[name] for name in "abc"}, "d": X[:, 0]})
        numbers = library.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 1]})
        text = library.DataFrame({"a": ["x"] * 20, "b": X[:, 1], "c": ["x", "y"] * 10})
        for query in QUERIES:
            call = getattr(model, query)
            with pytest.raises(ValueError, match="must be in the same order"):
                call(frame[["b", "a", "c"]])
            with pytest.raises(ValueError, match="unseen at fit time:\n- z\n.*missing:\n- b"):
                call(renamed)
            with pytest.raises(ValueError, match="now missing:\n- b"):
                call(frame[["a", "c"]])
            with pytest.raises(ValueError, match="unseen at fit time:\n- d"):
                call(more)
            with pytest.raises(ValueError, match="column 'a' holds 'x', but .* 'normal' needs num"):
                call(text)
        # numbers where there were levels are levels that the fit has not seen: low, not an error
        assert (model.score_samples(numbers) < model.score_samples(frame)).all()

    def test_arrays(self):
        model = mixture().fit(X)
        for query in QUERIES:
            with pytest.raises(ValueError, match="X has 1 features, but .* expecting 2 features"):
                getattr(model, query)(X[:, :1])

    @pytest.mark.parametrize(
        "family, cell, message",
        [
            ("poisson", -1.0, "column 0 must hold non-negative integers"),
            ("poisson", 0.5, "column 0 must hold non-negative integers"),
            ("bernoulli", 2.0, "column 0 must hold False, True, 0 or 1"),
        ],
    )
    def test_cells_that_the_family_cannot_be(self, family, cell, message):
        counts = (X > 0).astype(float)
        model = mixture(families=family).fit(counts)
        for call in (mixture(families=family).fit, *(getattr(model, q) for q in QUERIES)):
            with pytest.raises(ValueError, match=message):
                call([[cell, 1.0], [0.0, 1.0]])


class TestBadParameters:
    @pytest.mark.parametrize(
        "families, message",
        [
            ("gaussian", "families='gaussian' is neither 'auto' nor a family; the families are"),
            (["normal", "normal"], "'families' parameter"),
            ({"gaussian": [0]}, "unknown family 'gaussian'; the families are 'normal'"),
            ({"normal": [0], "poisson": [0]}, "column 'a' to two families, 'normal' and 'poisson'"),
            ({"normal": ["a"], "poisson": [0, 1]}, "column 'a' to two families"),
            ({"normal": ["z"]}, "the column 'z', which is absent"),
            ({"normal": [2]}, "the column 2, which is absent"),
            ({"normal": [True]}, "mask of 1 columns, but there are 2"),
        ],
    )
    def test_families(self, families, message):
        with pytest.raises(ValueError, match=message):
            mixture(families=families).fit(pd.DataFrame(X, columns=["a", "b"]))

    @pytest.mark.parametrize(
        "schedule, message",
        [
            ("annealing", "'schedule' parameter"),
            (None, "'schedule' parameter"),
            (SequentialGibbs, "'schedule' parameter"),
            (SequentialGibbs(n_sweeps=0.5), "'n_sweeps' parameter of SequentialGibbs"),
            (PriorGibbs(n_sweeps="many"), "'n_sweeps' parameter of PriorGibbs"),
            (LinearAnneal(n_sweeps=2, final_sweeps=1.5), "final_sweeps=1.5 of LinearAnneal"),
            (LinearAnneal(final_sweeps=-1), "'final_sweeps' parameter"),
            (LinearAnneal(max_time=0), "'max_time' parameter"),
            (LinearAnneal(max_time=-1.0), "'max_time' parameter"),
            (LinearAnneal(selection="newest"), "'selection' parameter"),
            (AcceleratingAnneal(passes=0), "'passes' parameter"),
            (AcceleratingAnneal(small_size=10, big_size=5), "big_size=5 of AcceleratingAnneal"),
            (EnergyAnneal(beta_min=2), "'beta_min' parameter"),
            (EnergyAnneal(start="cold"), "'start' parameter"),
            (CustomAnneal([0.2, 0.1]), "size"),
            (CustomAnneal([0, 5, 20], at=[0, 10]), "at has 2 points and size has 3"),
            (CustomAnneal([0, 5, 30], at=[0, 10, 60]), "size"),
            (CustomAnneal(lambda t: 2 * t), "size"),
        ],
    )
    def test_schedules(self, schedule, message):
        model = mixture(schedule=schedule)
        with pytest.raises(ValueError, match=message):
            model.fit(X)
        assert set(vars(model)) == set(model.get_params(deep=False))

    @pytest.mark.parametrize(
        "parameters, message",
        [
            ({"concentration": 0}, "concentration must be above minus the discount, got 0"),
            ({"concentration": -0.5, "discount": 0.5}, "concentration must be above minus"),
            ({"concentration": -0.1, "discount": "infer"}, "concentration must be above minus"),
            ({"concentration": NAN}, "concentration must be 'infer' or a number, .*, got nan"),
            ({"concentration": np.inf}, "concentration must be 'infer' or a number, .*, got inf"),
            ({"concentration": "high"}, "'concentration' parameter"),
            ({"discount": 1.0}, "discount must be in"),
            ({"discount": -0.1}, "discount must be in"),
            ({"hyperparameters": "guess"}, "'hyperparameters' parameter"),
            ({"moves": "gibbs"}, "'moves' parameter"),
            (
                {"moves": ("split_merge",)},
                "moves must be 'auto' or names among .*'gibbs' with them",
            ),
            ({"moves": ("gibbs", "leap")}, "moves must be .*'leap'"),
            ({"moves": ("gibbs", ["split_merge"])}, "moves must be"),
            ({"moves": ()}, "moves must be"),
            ({"point_estimate": "mean"}, "'point_estimate' parameter"),
            ({"n_chains": 0}, "'n_chains' parameter"),
            ({"n_draws": 0}, "'n_draws' parameter"),
            ({"thin": 1.5}, "'thin' parameter"),
            ({"random_state": -1}, "'random_state' parameter"),
            ({"random_state": "seed"}, "'random_state' parameter"),
            ({"random_state": True}, "random_state must be"),
            ({"warm_start": "yes"}, "'warm_start' parameter"),
        ],
    )
    def test_others(self, parameters, message):
        with pytest.raises(ValueError, match=message):
            mixture(**parameters).fit(X)

    def test_errors_come_before_the_work(self, monkeypatch):
        monkeypatch.setattr("skanneal.estimators._base_chains.run_chain", None)
        for parameters in (
            {"hyperparameters": {"normal": {"nu0": -1}}},
            {"families": {"normal": [9]}},
            {"schedule": LinearAnneal(n_sweeps=1)},
            {"concentration": -1},
        ):
            with pytest.raises(ValueError):
                mixture(**parameters).fit(X)

    @pytest.mark.parametrize("strata", [[0, 1], np.zeros((20, 1)), 3, "ab"])
    def test_strata(self, strata):
        with pytest.raises(ValueError, match=r"strata must have shape \(20,\)"):
            mixture(schedule=SequentialGibbs(selection="stratified")).fit(X, strata=strata)

    @pytest.mark.parametrize("n_samples", [0, -1, 1.5, "3", None])
    def test_n_samples(self, n_samples):
        with pytest.raises(ValueError, match="n_samples must be a positive integer"):
            mixture().fit(X).sample(n_samples)

    def test_warm_start_on_something_else(self):
        model = mixture(warm_start=True).fit(X)
        before = dict(vars(model))
        for other in (X[:10], X[:, :1], X * 3, X[::-1], X.astype(str)):
            with pytest.raises(ValueError, match="warm_start goes on with the same rows"):
                model.fit(other)
        with pytest.raises(ValueError, match="warm_start: the earlier fit had 1 chains, .* 2"):
            model.set_params(n_chains=2).fit(X)
        model.set_params(n_chains=1)
        assert all(vars(model)[name] is value for name, value in before.items() if name[-1] == "_")
        model.fit(X.tolist())  # the same rows in another container

    @pytest.mark.parametrize(
        ("changed", "named"),
        [
            ({"families": "semi_continuous"}, "families"),
            ({"families": "multivariate_normal"}, "families"),
            ({"families": {"normal": [0], "semi_continuous": [1]}}, "families"),
            ({"concentration": 50.0}, "concentration"),
            ({"expected_clusters": (2, 5)}, "expected_clusters"),
            ({"discount": 0.5}, "discount"),
            ({"hyperparameters": {"normal": {"kappa0": 5.0}}}, "hyperparameters"),
            ({"partition_prior": "finite"}, "partition_prior"),
            ({"families": "normal", "n_draws": 2, "max_time": 5.0, "n_clusters": 1}, None),
        ],
    )
    @pytest.mark.parametrize("estimator", [AnnealedDPMixture, CrossCatPY])
    def test_warm_start_with_another_law(self, estimator, changed, named):
        """Chains of another law are refused; what is no part of the law may change."""
        if estimator is CrossCatPY and "n_clusters" in changed:
            changed = {"n_draws": 2, "max_time": 5.0}
        rows = np.random.default_rng(0).normal(size=(30, 2))
        model = short(estimator, families="normal", warm_start=True).fit(rows)
        model.set_params(**changed)
        if named is None:
            model.fit(rows)
        else:
            with pytest.raises(ValueError, match=f"the same law: {named} must be as in"):
                model.fit(rows)


# ---- odd tables for which there is a right answer ------------------------------------------------

LEVELS = np.array(list("ab"), dtype=object)
ODD_TABLES = {
    "one row": X[:1],
    "one cell": X[:1, :1],
    "one column": X[:, :1],
    "two rows": X[:2],
    "a missing row": spoilt(NAN) + np.where(np.arange(20) == 5, NAN, 0.0)[:, None],
    "a missing column": X * [1.0, NAN],
    "nothing but missing": X * NAN,
    "a missing column of objects": [[x, None] for x in X[:, 0]],
    "a constant column": X * [1.0, 0.0] + [0.0, 2952788047.4],
    "nothing but constants": np.full((20, 2), 7.5),
    "equal rows": np.repeat(X[:2], 10, axis=0),
    "one level": [["a"]] * 20,
    "one level per row": [[str(i)] for i in range(20)],
    "more columns than rows": np.tile(X, 20)[:5],
    "huge": X * 1e300,
    "tiny": X * 1e-300,
    "an outlier": spoilt(1e15),
    "booleans": X > 0,
    "bytes": (X > 0).astype("S"),
    "integers": np.arange(60).reshape(20, 3),
}


@pytest.mark.parametrize("case", ODD_TABLES)
@pytest.mark.filterwarnings("error", "ignore:.*no observed cell", "ignore:No cell was observed")
class TestOddTables:
    @pytest.mark.few(10)
    def test_fit_and_queries(self, case):
        table = ODD_TABLES[case]
        n_rows, n_columns = len(table), len(table[0])
        model = mixture(n_chains=2, n_draws=2).fit(table)
        assert sorted(set(model.labels_)) == list(range(model.n_clusters_))
        assert model.labels_.shape == (n_rows,)
        assert np.isfinite(model.score_samples(table)).all()
        proba = model.predict_proba(table)
        np.testing.assert_allclose(proba.sum(axis=1), 1)
        assert ((model.new_cluster_proba(table) > 0) & (model.new_cluster_proba(table) < 1)).all()
        assert model.surprisal(table).shape == (n_rows, n_columns)
        assert len(model.impute(table)) == n_rows
        assert len(model.sample(4)) == 4

    @pytest.mark.parametrize("schedule", SCHEDULES)
    @pytest.mark.few(14)
    def test_every_schedule(self, case, schedule):
        model = mixture(schedule=cheap_schedule(schedule)).fit(ODD_TABLES[case])
        assert model.trace_["n_assigned"][0, -1] == len(ODD_TABLES[case])


class TestRightAnswers:
    def test_a_missing_row_has_density_one_and_the_prior_of_the_clusters(self):
        model = mixture(concentration=2.0, discount=0.1, point_estimate="map").fit(X)
        assert model.score_samples([[NAN, NAN]]) == pytest.approx(0, abs=1e-12)
        np.testing.assert_allclose(
            model.predict_proba([[NAN, NAN]])[0],
            (np.bincount(model.labels_) - 0.1) / (20 - 0.1 * model.n_clusters_),
        )
        assert model.new_cluster_proba([[NAN, NAN]])[0] == pytest.approx(
            (2 + 0.1 * model.draws_[0][0].n_components) / 22
        )

    def test_a_column_of_one_level_changes_nothing(self):
        with_level = pd.DataFrame({"a": X[:, 0], "b": "x"})
        model = mixture().fit(with_level)
        np.testing.assert_allclose(
            model.score_samples(with_level),
            model.score_samples(with_level.assign(b=pd.Series([None] * 20, dtype="string"))),
            atol=1e-12,
        )

    def test_a_missing_column_stays_unknown(self):
        table = pd.DataFrame({"a": X[:, 0], "b": pd.Series([None] * 20, dtype="string")})
        model = mixture().fit(table)
        with pytest.warns(UserWarning, match="nothing is known"):
            filled = model.impute(table)
        assert filled["b"].isna().all() and model.sample(3)["b"].isna().all()

    def test_equal_rows_are_one_cluster(self):
        table = np.repeat([[-5.0, 5.0], [5.0, -5.0]], 10, axis=0)
        model = mixture(schedule=LinearAnneal(n_sweeps=20), random_state=1).fit(table)
        assert model.n_clusters_ == 2
        assert model.labels_.tolist() == [0] * 10 + [1] * 10

    def test_one_row(self):
        model = mixture().fit([[2.0, "a"]])
        assert model.labels_.tolist() == [0] and model.predict([[50.0, "b"]]).tolist() == [0]
        assert np.isfinite(model.score_samples([[2.0, "a"], [50.0, "b"]])).all()
