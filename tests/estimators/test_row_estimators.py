"""Estimators on families of whole rows: densities by formula, queries, units, bad input."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import logsumexp
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import cross_val_score

from oracles.bits import same_arrays, same_bits
from oracles.mixtures import NUMBER_ROWS, hyper_vector, make_table, random_rows
from oracles.row_fits import (
    GIVEN,
    cluster_scores,
    integrated_score,
    mixed,
    mixed_model,
    mixture,
    slow_score,
    two_clusters,
)
from skanneal import CrossCatPY
from skanneal.chains import Chain, ChainPlan
from skanneal.families import FAMILIES
from skanneal.parallel import StopFlag
from skanneal.schedules import LinearAnneal, PriorGibbs, SequentialGibbs

every_family = pytest.mark.parametrize("family", NUMBER_ROWS)
NAMES = {
    "known_normal": ("covariance", "prior_mean", "prior_covariance"),
    "multivariate_normal": ("mu0", "kappa0", "nu0", "scale0"),
}


# ---- the slow oracle -----------------------------------------------------------------------------


@every_family
class TestDensities:
    def test_scores_equal_the_formula(self, family):
        X, side = two_clusters()
        model = mixture(family, n_draws=2, discount=0.3, point_estimate="map").fit(X)
        assert adjusted_rand_score(side, model.labels_) > 0.7
        queries = np.array([*X[:3], [12.0, -1.0], [0.0, 9.0]])
        expected = [slow_score(model, family, X, row) for row in queries]
        np.testing.assert_allclose(model.score_samples(queries), expected, rtol=1e-5, atol=1e-5)
        assert model.score(queries) == pytest.approx(np.mean(expected), rel=1e-5)

    def test_the_density_integrates_to_one(self, family):
        X, _ = two_clusters()
        model = mixture(family).fit(X)
        axis = np.sinh(np.linspace(-8, 8, 500))
        a, b = np.meshgrid(axis + 12, axis - 1, indexing="ij")
        density = np.exp(model.score_samples(np.column_stack([a.ravel(), b.ravel()])))
        inner = np.trapezoid(density.reshape(a.shape), b[0], axis=1)
        assert np.trapezoid(inner, a[:, 0]) == pytest.approx(1.0, abs=2e-3)

    def test_predictions_are_those_of_the_point_partition(self, family):
        X, _ = two_clusters()
        model = mixture(family, point_estimate="map").fit(X)
        queries = np.array([[12.0, -1.0], [12.3, -1.4], [10.0, -3.0], [14.5, 1.0]])
        draws = [draw for chain in model.draws_ for draw in chain]
        best = max(draws, key=lambda draw: draw.log_joint)
        expected, new = [], []
        for row in queries:
            scores = cluster_scores(best, family, X, row, labels=model.labels_)
            expected.append(np.exp(scores[:-1] - logsumexp(scores[:-1])))
            all_scores = [cluster_scores(draw, family, X, row) for draw in draws]
            whole = logsumexp([logsumexp(s) for s in all_scores])
            new.append(np.exp(logsumexp([s[-1] for s in all_scores]) - whole))
        np.testing.assert_allclose(model.predict_proba(queries), expected, rtol=1e-4, atol=1e-7)
        np.testing.assert_array_equal(model.predict(queries), np.argmax(expected, axis=1))
        np.testing.assert_allclose(model.new_cluster_proba(queries), new, rtol=1e-4)

    def test_surprisals_are_of_cells_given_the_other(self, family):
        X, _ = two_clusters()
        model = mixture(family).fit(X)
        queries = np.array([[12.0, -1.0], [10.0, 3.0]])
        shown = model.surprisal(queries)
        for row, surprisal in zip(queries, shown):
            whole = slow_score(model, family, X, row)
            for j in range(2):
                if family == "multivariate_normal":
                    other = slow_score(model, family, X, row, keep=(1 - j,))
                else:  # the members' cells of both columns tell of the mean of one
                    other = integrated_score(model, family, X, row, j)
                assert surprisal[j] == pytest.approx(other - whole, rel=1e-4, abs=1e-4)

    def test_samples(self, family):
        X, _ = two_clusters(400)
        model = mixture(family, schedule=SequentialGibbs(n_sweeps=8)).fit(X)
        rows = model.sample(40_000)
        assert rows.shape == (40_000, 2)
        # the new cluster's heavy tails are left out
        near = rows[np.abs(rows - X.mean(axis=0)).max(axis=1) < 12]
        assert len(near) > 0.98 * len(rows)
        np.testing.assert_allclose(near.mean(axis=0), X.mean(axis=0), atol=0.15)
        np.testing.assert_allclose(np.cov(near.T), np.cov(X.T), rtol=0.12, atol=0.1)
        side = near[:, 0] > 12
        inside = np.cov(near[side & (np.abs(near[:, 0] - 14) < 3)].T)
        assert 0.2 < inside[0, 1] < 0.7  # rows are drawn whole: cells within clusters correlate

    def test_numbers_far_from_zero(self, family):
        """An offset of 1e9 takes nothing from densities, samples and hyperparameters."""
        X, side = two_clusters()
        far = X + [1e9, -2e9]
        near, model = mixture(family).fit(X), mixture(family).fit(far)
        assert adjusted_rand_score(side, model.labels_) > 0.7
        np.testing.assert_allclose(
            model.score_samples(far), near.score_samples(X), rtol=1e-3, atol=1e-3
        )
        rows = model.sample(200)
        assert np.abs(np.median(rows, axis=0) - np.median(far, axis=0)).max() < 3


@every_family
class TestMixedWithColumns:
    def test_scores_add_up(self, family):
        """Beside gappy columns the row's density factorises within clusters."""
        X = mixed()
        model = mixed_model(family).fit(X)
        assert sorted(model.families_) == sorted(["normal", "categorical", family])
        assert model.families_[family].tolist() == [0, 3]
        gaps = X.assign(number=np.nan, level=None)
        training = X[["x", "y"]].to_numpy()
        scores = model.score_samples(gaps[:5])
        expected = [slow_score(model, family, training, row) for row in training[:5]]
        np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5)
        given = model.score_samples(X[:5], given=["x", "y"])
        np.testing.assert_allclose(model.score_samples(X[:5]) - expected, given, atol=1e-5)
        rest = model.score_samples(X[:5], given=["number", "level"])
        assert np.all(np.isfinite(rest))

    def test_queries(self, family):
        X = mixed()
        model = mixed_model(family).fit(X)
        filled = model.impute(X)
        assert filled[["x", "y"]].equals(X[["x", "y"]])
        assert filled.notna().all(axis=None)
        surprisal = model.surprisal(X)
        assert np.array_equal(np.isnan(surprisal), X.isna().to_numpy())
        assert model.predict(X).shape == (60,)
        rows = model.sample(500)
        assert list(rows) == list(X) and rows.notna().all(axis=None)
        assert np.corrcoef(rows["x"], rows["y"])[0, 1] > 0.3
        other = model.sample(30, given={"x": 10.0, "y": -3.0})
        assert (other["x"] == 10.0).all() and (other["y"] == -3.0).all()
        low = model.sample(400, given={"x": 10.0, "y": -3.0})["number"].median()
        high = model.sample(400, given={"x": 14.0, "y": 1.0})["number"].median()
        assert high - low > 1.5
        rows = model.sample(400, given={"number": 3.5, "level": "a"})
        assert rows[["x", "y"]].notna().all(axis=None)
        assert rows["x"].median() > 12

    def test_containers(self, family):
        X = mixed()
        model = mixed_model(family).fit(X)
        frame = pl.DataFrame({name: X[name].tolist() for name in X})
        again = mixed_model(family).fit(frame)
        assert same_bits(model, again)
        np.testing.assert_allclose(model.score_samples(X), again.score_samples(frame))
        assert isinstance(again.sample(3), pl.DataFrame)
        # columns of a row family in whatever order they are named
        turned = mixture(family, families={family: [3, 0]}, discount=0.2).fit(X)
        assert same_bits(model, turned)


@every_family
class TestRuns:
    def test_equal_seeds_equal_bits(self, family):
        X, _ = two_clusters()
        first = mixture(family).fit(X)
        assert same_bits(first, mixture(family, n_jobs=2).fit(X))
        again = pickle.loads(pickle.dumps(first))
        np.testing.assert_array_equal(again.score_samples(X), first.score_samples(X))
        assert not same_bits(first, mixture(family, random_state=1, n_draws=2).fit(X))

    def test_warm_start_goes_on(self, family):
        X, _ = two_clusters()
        straight = mixture(family, n_draws=3, thin=2).fit(X)
        first = mixture(family, warm_start=True).fit(X)
        first.set_params(n_draws=2, thin=2).fit(X)
        last = [chain[-1].arrays for chain in straight.draws_]
        for one, two in zip(last, [chain[-1].arrays for chain in first.draws_]):
            assert all(np.array_equal(one[name], two[name]) for name in one)

    @pytest.mark.parametrize("schedule", ["anneal", "energy_anneal", "prior_gibbs"])
    @pytest.mark.few(2)
    def test_schedules(self, family, schedule):
        X, side = two_clusters(120)
        model = mixture(family, schedule=schedule, n_chains=4).fit(X)
        assert adjusted_rand_score(side, model.labels_) > 0.6

    def test_stratified(self, family):
        X, _ = two_clusters(120)
        schedule = LinearAnneal(n_sweeps=4, selection="stratified")
        assert mixture(family, schedule=schedule).fit(X).n_clusters_ >= 2

    def test_cross_validation(self, family):
        X, _ = two_clusters(120)
        assert cross_val_score(mixture(family), X, cv=2).min() > -5

    @pytest.mark.parametrize("start", ["empty", "prior"])
    def test_a_resumed_chain_is_bit_for_bit(self, family, start):
        n = 160
        rng = np.random.default_rng(27)
        column = random_rows(family, n, rng)
        if family == "multivariate_normal":
            column[2]["nu0"] = 5.0
        table = make_table([column])
        columns = np.arange(3)
        grids = {0: FAMILIES[family].grids(table, columns)}
        hyper = {0: hyper_vector(family, column[2])}
        prior_grid = np.array([(a, d) for d in (0.0, 0.3) for a in (0.5, 2.0, 8.0)])
        moves = ("gibbs", "split_merge")
        model = ChainPlan(table, {family: columns}, hyper, grids, prior_grid, moves)
        schedule = LinearAnneal(n_sweeps=6, final_sweeps=2)
        if start == "prior":
            schedule = PriorGibbs(n_sweeps=4)
        straight = Chain.begin(model, schedule, np.random.SeedSequence(28))
        straight.run()
        chain, n_stored = Chain.begin(model, schedule, np.random.SeedSequence(28)), 0
        while (segment := chain.pacer.next(0.0)) is not None:
            assert chain.make_assignments(segment, StopFlag())
            chain.make_moves(segment, StopFlag())
            chain = Chain.from_arrays(pickle.loads(pickle.dumps(chain.to_arrays())), model)
            chain.state.validate()
            n_stored += 1
        assert n_stored > 3
        assert same_arrays(chain.draw(), straight.draw())


class TestClustersOfFullCovariance:
    @pytest.mark.slow
    def test_crossed_ellipses(self):
        """Components that differ in their covariances alone, in more than two columns."""
        rng = np.random.default_rng(3)
        side = rng.integers(2, size=1500)
        stretch = np.where(side, 1, -1)
        X = rng.normal(size=(1500, 4))
        X[:, 1] = 0.15 * X[:, 1] + stretch * X[:, 0]
        X[:, 3] = 0.15 * X[:, 3] - stretch * X[:, 2]
        X = X * [1.0, 100.0, 0.01, 5.0] + 7.0
        model = mixture("multivariate_normal", schedule="anneal").fit(X)
        assert adjusted_rand_score(side, model.component_labels_) > 0.85
        assert model.n_components_ == 2
        separate = mixture("multivariate_normal", families="normal", n_chains=1).fit(X)
        assert adjusted_rand_score(side, separate.component_labels_) < 0.6


# ---- hyperparameters -----------------------------------------------------------------------------


class TestHyperparameters:
    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ({"covariance": 2.0}, 2.0 * np.eye(2)),
            ({"covariance": [1.0, 3.0]}, np.diag([1.0, 3.0])),
            ({"covariance": [[2, 0.5], [0.5, 1]]}, [[2, 0.5], [0.5, 1]]),
            (pd.DataFrame([[2, 0.5], [0.5, 1]]), [[2, 0.5], [0.5, 1]]),
        ],
    )
    def test_covariances(self, given, expected):
        X, _ = two_clusters()
        given = given if isinstance(given, dict) else {"covariance": given}
        model = mixture("known_normal", hyperparameters={"known_normal": given}).fit(X)
        shown = model.draws_[0][0].hyperparameters["known_normal"]
        np.testing.assert_allclose(shown["covariance"], expected, rtol=1e-12)
        np.testing.assert_allclose(shown["prior_mean"], X.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(shown["prior_covariance"], np.diag(X.var(axis=0)), rtol=1e-9)
        assert model.hyperparameter_grids_["known_normal"] == {}

    @pytest.mark.parametrize(
        ("given", "mean", "spread"),
        [
            ((1.0, 3.0, 16.0), [3, 3], 16 * np.eye(2)),
            ({"covariance": 1.0, "prior_mean": [1, 2]}, [1, 2], None),
            (
                {"covariance": 1.0, "prior_covariance": [[4, 1], [1, 9]]},
                None,
                [[4, 1], [1, 9]],
            ),
        ],
    )
    def test_priors_of_known_normal(self, given, mean, spread):
        X, _ = two_clusters()
        model = mixture("known_normal", hyperparameters={"known_normal": given}).fit(X)
        shown = model.draws_[0][0].hyperparameters["known_normal"]
        if mean is not None:
            np.testing.assert_allclose(shown["prior_mean"], mean, rtol=1e-12)
        if spread is not None:
            np.testing.assert_allclose(shown["prior_covariance"], spread, rtol=1e-12)

    def test_multivariate_normal(self):
        X, _ = two_clusters()
        given = {"mu0": [11, -2], "kappa0": 0.5, "nu0": 4.5, "scale0": [[2, 0.5], [0.5, 1]]}
        hyper = {"multivariate_normal": given}
        model = mixture("multivariate_normal", hyperparameters=hyper).fit(X)
        shown = model.draws_[1][0].hyperparameters["multivariate_normal"]
        for name, value in given.items():
            np.testing.assert_allclose(shown[name], value, rtol=1e-12)
        assert isinstance(shown["kappa0"], float)
        assert model.hyperparameter_grids_["multivariate_normal"] == {}

    def test_inferred_and_reported(self):
        X, _ = two_clusters()
        scaled = X * [1.0, 100.0]
        model = mixture("multivariate_normal", n_draws=8, n_chains=1).fit(scaled)
        grids = model.hyperparameter_grids_["multivariate_normal"]
        assert set(grids) == {"kappa0", "nu0", "scale0"} and len(grids["scale0"]) == 2
        assert grids["nu0"].tolist() == [3.0]
        seen = {name: set() for name in ("kappa0", "nu0", "first", "second")}
        for draw in model.draws_[0]:
            hyper = draw.hyperparameters["multivariate_normal"]
            np.testing.assert_allclose(hyper["mu0"], scaled.mean(axis=0), rtol=1e-9)
            assert hyper["scale0"][0, 1] == 0.0
            for name in ("kappa0", "nu0"):
                assert np.isclose(grids[name], hyper[name]).any()
                seen[name].add(hyper[name])
            for j, name in enumerate(("first", "second")):
                assert np.isclose(grids["scale0"][j], hyper["scale0"][j, j], rtol=1e-9).any()
                seen[name].add(hyper["scale0"][j, j])
        assert seen.pop("nu0") == {3.0}
        assert all(len(values) > 1 for values in seen.values())
        np.testing.assert_allclose(
            grids["scale0"][1] / grids["scale0"][0], X.var(axis=0)[1] / X.var(axis=0)[0] * 1e4
        )
        one = {"multivariate_normal": {"nu0": 6.0}}
        model = mixture("multivariate_normal", hyperparameters=one, n_draws=4).fit(X)
        draws = [d.hyperparameters["multivariate_normal"] for c in model.draws_ for d in c]
        assert {draw["nu0"] for draw in draws} == {6.0}
        assert len({draw["kappa0"] for draw in draws}) > 1

    @every_family
    def test_what_a_draw_says_can_be_given(self, family):
        X, _ = two_clusters()
        first = mixture(family).fit(X).draws_[0][0].hyperparameters
        second = mixture(family, hyperparameters=first).fit(X).draws_[1][0].hyperparameters
        assert list(first[family]) == list(NAMES[family])
        for name in first[family]:
            np.testing.assert_allclose(second[family][name], first[family][name], rtol=1e-12)

    @pytest.mark.parametrize(
        ("family", "given", "message"),
        [
            ("known_normal", "infer", r"needs hyperparameters\['known_normal'\]\['covariance'\]"),
            ("known_normal", {"prior_mean": 0}, r"needs .*\['covariance'\]"),
            ("known_normal", {"covariance": 0.0}, r"\['covariance'\] must be positive, got 0"),
            ("known_normal", {"covariance": [1, -1]}, r"\['covariance'\] must be positive, got -1"),
            ("known_normal", {"covariance": np.eye(3)}, r"\['covariance'\].*\(2, 2\).*\(3, 3\)"),
            ("known_normal", {"covariance": [1, 2, 3]}, r"\['covariance'\].*shape \(3,\)"),
            ("known_normal", {"covariance": [[1, 0.5], [0.2, 1]]}, "must be a symmetric matrix"),
            ("known_normal", {"covariance": [[1, 2], [2, 1]]}, "must be positive definite"),
            ("known_normal", {"covariance": [[1, 1], [1, 1]]}, "must be positive definite"),
            ("known_normal", {"covariance": [[1, 0], [0, -1]]}, "positive definite: a variance"),
            ("known_normal", {"covariance": np.nan}, "must be finite"),
            ("known_normal", {"covariance": "x"}, "must be numbers, got 'x'"),
            ("known_normal", {"covariance": 1e-320}, "out of all proportion"),
            ("known_normal", {"covariance": 1, "prior_covariance": [[1, 2], [2, 1]]}, "definite"),
            ("known_normal", {"covariance": 1, "prior_mean": [1, 2, 3]}, r"\(2\), got shape"),
            ("known_normal", {"cov": 1}, "are covariance, prior_mean, prior_covariance; got"),
            ("multivariate_normal", {"nu0": 1.0}, r"\['nu0'\] must be above .* less one, 1"),
            ("multivariate_normal", {"kappa0": 0}, r"\['kappa0'\] must be positive, got 0"),
            ("multivariate_normal", {"kappa0": [1, 2]}, r"\['kappa0'\] must be one number"),
            ("multivariate_normal", {"mu0": np.inf}, r"\['mu0'\] must be finite"),
            ("multivariate_normal", {"scale0": [[1, 2], [2, 1]]}, "positive definite"),
            ("multivariate_normal", (1, 2), r"a mapping or a tuple \(mu0, kappa0, nu0, scale0\)"),
        ],
    )
    def test_errors_name_the_hyperparameter(self, family, given, message):
        X, _ = two_clusters()
        hyper = given if given == "infer" else {family: given}
        model = mixture(family, hyperparameters=hyper)
        with pytest.raises(ValueError, match=message):
            model.fit(X)
        assert set(vars(model)) == set(model.get_params(deep=False))


# ---- bad input -----------------------------------------------------------------------------------


@every_family
class TestBadInput:
    def test_cells_that_are_no_numbers(self, family):
        with pytest.raises(ValueError, match=f"holds 'a', but the family '{family}' needs numbers"):
            mixture(family).fit([[1.0, "a"], [2.0, "b"]])

    def test_given_cells_are_there(self, family):
        model = mixed_model(family).fit(mixed())
        with pytest.raises(ValueError, match="missing value for column 'x': leave it out"):
            model.sample(3, given={"x": None, "y": 1.0})

    def test_crosscat(self, family):
        X = mixed()
        message = f"'{family}' describes whole rows, but CrossCatPY.*AnnealedDPMixture"
        model = CrossCatPY(families={family: ["x", "y"]}, n_chains=1, schedule="sequential_gibbs")
        if family == "multivariate_normal":  # whose columns views divide
            assert len(model.fit(X).families_[family]) == 2
            return
        with pytest.raises(ValueError, match=message):
            model.fit(X)
        assert set(vars(model)) == set(model.get_params(deep=False))

    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize(
        "odd",
        ["one row", "two rows", "constant", "equal rows", "collinear", "outlier", "one column"],
    )
    def test_odd_tables(self, family, odd):
        X, _ = two_clusters(20)
        X = {
            "one row": X[:1],
            "two rows": X[:2],
            "constant": X * [1.0, 0.0] + [0.0, 2952788047.4],
            "equal rows": np.repeat(X[:2], 10, axis=0),
            "collinear": X[:, [0, 0]],
            "outlier": np.where(np.arange(40).reshape(20, 2) == 7, 1e15, X),
            "one column": X[:, :1],
        }[odd]
        hyper = {family: {"covariance": 1.0}} if GIVEN[family] else "infer"
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*is a linear function of")  # as it should say
            model = mixture(family, hyperparameters=hyper).fit(X)
        assert np.all(np.isfinite(model.score_samples(X)))
        assert np.all(np.isfinite(model.sample(5)))
        assert np.all(np.isfinite(model.surprisal(X)))
