"""CrossCatPY and CrossCatImputer as their users meet them; the queries have a file of their own."""

import copy
import pickle
import time
import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks

from oracles.cheap import CHEAP, ONE_DRAW, cheap_schedule
from oracles.crosscat_fits import (
    FAMILY,
    all_draws,
    canonical,
    crosscat,
    crosscat_frame,
    hyper_of,
    members,
)
from oracles.reference import log_marginal
from oracles.scripts import run_script
from skanneal import AnnealedDPMixture, CrossCatImputer, CrossCatPY
from skanneal.displays import CoassignmentDisplay, TraceDisplay
from skanneal.encoding import open_table
from skanneal.partition_priors import PitmanYor
from skanneal.schedules import SCHEDULES, LinearAnneal, PriorGibbs, SequentialGibbs

NAN = float("nan")
QUERIES = ("predict", "predict_proba", "new_cluster_proba", "score_samples", "surprisal")
TABLE_QUERIES = (*QUERIES, "impute", "transform", "row_similarity")
SCALARS = {
    "n_components",
    "log_joint",
    "concentration",
    "discount",
    "n_views",
    "view_concentration",
    "view_discount",
}


def quick(**parameters):
    """A quick estimator for arrays."""
    defaults = {"schedule": SequentialGibbs(n_sweeps=4), "n_chains": 1, "random_state": 0}
    return CrossCatPY(**(ONE_DRAW | defaults | parameters))


def two_views(n_rows=100, seed=0):
    """Four columns of numbers: the first and third, and the second and fourth, share clusters."""
    rng = np.random.default_rng(seed)
    sides = rng.choice([-4.0, 4.0], size=(2, n_rows))
    return sides[[0, 1, 0, 1]].T + rng.normal(size=(n_rows, 4))


def same_bits(one, two):
    """Whether two fits are equal bit for bit."""
    draws = list(zip(all_draws(one), all_draws(two), strict=True))
    return (
        all(a.arrays.keys() == b.arrays.keys() for a, b in draws)
        and all(np.array_equal(a.arrays[k], b.arrays[k]) for a, b in draws for k in a.arrays)
        and np.array_equal(one.view_labels_, two.view_labels_)
        and np.array_equal(one.row_labels_, two.row_labels_)
    )


class TestScikitLearn:
    @pytest.mark.parametrize(
        "check",
        [
            "check_set_output_transform_pandas",
            "check_set_output_transform_polars",
            "check_transformer_get_feature_names_out_pandas",
        ],
    )
    @pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names")
    @pytest.mark.few(1)
    def test_checks_of_transformers(self, check):
        getattr(estimator_checks, check)("CrossCatPY", quick())
        if check != "check_set_output_transform_pandas":  # a frame comes back with its own names
            getattr(estimator_checks, check)("CrossCatImputer", CrossCatImputer(quick()))

    def test_grid_search_over_schedules_in_a_pipeline(self):
        X = two_views(60)
        pipeline = make_pipeline(StandardScaler(), quick())
        grid = [
            {"crosscatpy__schedule": ["sequential_gibbs", PriorGibbs(n_sweeps=3)]},
            {
                "crosscatpy__schedule": [LinearAnneal()],
                "crosscatpy__schedule__n_sweeps": [5, 20],
                "crosscatpy__view_discount": [0.0],
            },
        ]
        search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(X)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        assert search.score(X) == pytest.approx(search.best_estimator_.score(X))

    @pytest.mark.slow
    def test_cross_validation_of_density_and_labels(self):
        X = two_views()
        options = {"schedule": SequentialGibbs(n_sweeps=4), "n_chains": 1, "random_state": 0}
        single = AnnealedDPMixture(**ONE_DRAW, **options)
        shared = np.hstack(
            [X, 4 * np.sign(X[:, :1]) + np.random.default_rng(1).normal(size=X.shape)]
        )
        for model in (quick(schedule=SequentialGibbs(n_sweeps=15)), single):
            assert np.isfinite(cross_val_score(model, X, cv=3)).all()
        scores = cross_val_score(
            quick(schedule=SequentialGibbs(n_sweeps=15)),
            shared,
            X[:, 0] > 0,
            scoring="adjusted_rand_score",
            cv=3,
        )
        assert scores.min() > 0.7

    @pytest.mark.slow
    def test_views_as_features_of_a_classifier(self):
        X = two_views(200)
        y = (X[:, 0] > 0) ^ (X[:, 1] > 0)  # what no single column tells, the views' clusters do
        for output, ways in (("onehot", 2), ("proba", 2), ("codes", 1)):
            model = quick(output=output, schedule=SequentialGibbs(n_sweeps=20))
            features = model.fit_transform(X)
            assert features.shape[1] == (model.n_views_ if ways == 1 else len_clusters(model))
            pipeline = make_pipeline(model, LogisticRegression()).fit(X, y)
            assert pipeline.predict(X).shape == y.shape

    def test_output(self):
        X = two_views()
        schedule = SequentialGibbs(n_sweeps=15)
        model = quick(output="codes", schedule=schedule, point_estimate="map").fit(X)
        codes = model.transform(X)
        proba = model.set_params(output="proba").transform(X)
        onehot = model.set_params(output="onehot").transform(X)
        n_clusters = [labels.max() + 1 for labels in model.row_labels_]
        names = [f"view{v}_cluster{c}" for v, n in enumerate(n_clusters) for c in range(n)]
        assert list(model.get_feature_names_out()) == names
        stops = np.cumsum(n_clusters)
        for v, (start, stop) in enumerate(zip(stops - n_clusters, stops)):
            np.testing.assert_allclose(proba[:, start:stop].sum(axis=1), 1)
            np.testing.assert_array_equal(proba[:, start:stop].argmax(axis=1), codes[:, v])
            np.testing.assert_array_equal(onehot[:, start:stop].argmax(axis=1), codes[:, v])
        assert (onehot.sum(axis=1) == model.n_views_).all() and set(onehot.ravel()) == {0.0, 1.0}
        largest = np.bincount(model.view_labels_).argmax()
        np.testing.assert_array_equal(codes[:, largest], model.predict(X))
        for library in ("pandas", "polars"):
            frame = model.set_output(transform=library).transform(X)
            assert list(frame.columns) == names and frame.shape == onehot.shape
        with pytest.raises(ValueError, match="input_features"):
            model.get_feature_names_out(["a"])

    def test_clone_pickle_and_copy(self):
        X = crosscat_frame()
        model = crosscat(missing_indicator=["size"]).fit(X)
        fresh = clone(model)
        assert not hasattr(fresh, "draws_")
        assert same_bits(model, fresh.fit(X))
        for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            assert same_bits(model, twin)
            np.testing.assert_array_equal(twin.score_samples(X), model.score_samples(X))
            np.testing.assert_array_equal(twin.mutual_information(), model.mutual_information())
            assert twin.impute(X).equals(model.impute(X))

    def test_repr(self):
        assert repr(CrossCatPY()) == "CrossCatPY()"
        assert repr(CrossCatImputer()) == "CrossCatImputer()"
        draw = crosscat().fit(crosscat_frame()).draws_[0][0]
        components = "+".join(map(str, draw.n_components))
        assert f"n_views={draw.n_views}, n_components={components}, log_joint=-" in repr(draw)

    def test_not_fitted(self):
        for query in TABLE_QUERIES:
            with pytest.raises(NotFittedError):
                getattr(CrossCatPY(), query)([[1.0]])
        for query in ("sample", "dependence_probability", "mutual_information", "row_similarity"):
            with pytest.raises(NotFittedError):
                getattr(CrossCatPY(), query)()
        for call in (CrossCatPY().get_feature_names_out, CrossCatImputer().get_feature_names_out):
            with pytest.raises(NotFittedError):
                call()
        with pytest.raises(NotFittedError):
            CrossCatPY().most_similar_rows([0])
        with pytest.raises(NotFittedError):
            CrossCatImputer().transform([[1.0]])

    def test_displays(self):
        model = quick(n_chains=2).fit(two_views())
        assert len(TraceDisplay.from_estimator(model, name="n_views").lines_) == 2
        CoassignmentDisplay.from_estimator(model, max_rows=10)


def len_clusters(model):
    return sum(labels.max() + 1 for labels in model.row_labels_)


class TestFit:
    def test_planted_views_and_clusters(self):
        rng = np.random.default_rng(0)
        sides = rng.integers(3, size=(2, 300))
        X = np.hstack([side[:, None] * 6 + rng.normal(size=(300, 4)) for side in sides])
        model = CrossCatPY(n_chains=2, random_state=0, **CHEAP).fit(X)
        assert model.view_labels_.tolist() == [0] * 4 + [1] * 4 and model.n_views_ == 2
        for labels, side in zip(model.row_labels_, sides):
            assert adjusted_rand_score(labels, side) > 0.95
        np.testing.assert_array_equal(model.component_labels_, model.row_labels_[0])
        assert model.n_clusters_ == model.labels_.max() + 1 and model.labels_.dtype == np.int64
        assert (model.dependence_probability()[:4, 4:] == 0).all()

    def test_fit_predict_and_fit_transform(self):
        X = two_views()
        model = quick()
        np.testing.assert_array_equal(model.fit_predict(X), model.labels_)
        np.testing.assert_array_equal(model.fit_transform(X), model.transform(X))

    def test_draws(self):
        X = crosscat_frame()
        model = crosscat(n_draws=3).fit(X)
        assert [len(chain) for chain in model.draws_] == [3, 3]
        for draw in all_draws(model):
            np.testing.assert_array_equal(draw.view_labels, canonical(draw.view_labels))
            assert draw.n_views == draw.view_labels.max() + 1 == len(draw.row_labels)
            assert draw.concentration.shape == draw.discount.shape == (draw.n_views,)
            assert 0 <= draw.view_discount < 1 and draw.view_concentration > 0
            for v, labels in enumerate(draw.row_labels):
                assert labels.shape == (40,)
                np.testing.assert_array_equal(np.bincount(labels), draw.sizes[v])
                assert len(draw.sizes[v]) == draw.n_components[v]
            largest = np.bincount(draw.view_labels).argmax()
            np.testing.assert_array_equal(draw.labels, draw.row_labels[largest])
            assert set(draw.hyperparameters) == set(FAMILY.values())
            assert len(draw.hyperparameters["normal"]["mu0"]) == 2

    def test_log_joint(self):
        """log p(views) + log p(clusters of each view) + log p(x | clusters), in X's units; each
        prior's point counts with its probability on the grid."""
        X = crosscat_frame()
        of_rows, of_columns = PitmanYor.grid(len(X), null=True), PitmanYor.grid(X.shape[1])
        for draw in all_draws(crosscat(missing_indicator=()).fit(X)):
            prior = PitmanYor(draw.view_concentration, draw.view_discount)
            total = prior.log_probability(np.bincount(draw.view_labels))
            total += of_columns.log_weights[of_columns.place(prior)]
            for v in range(draw.n_views):
                prior = PitmanYor(draw.concentration[v], draw.discount[v])
                total += prior.log_probability(draw.sizes[v])
                total += of_rows.log_weights[of_rows.place(prior)]
            for j, family in enumerate(FAMILY.values()):
                v = draw.view_labels[j]
                for c in range(draw.n_components[v]):
                    total += log_marginal(family, members(X, draw, j, v, c), hyper_of(draw, j))
            assert draw.log_joint == pytest.approx(total, abs=1e-3)

    def test_trace_and_diagnostics(self):
        model = crosscat(schedule=LinearAnneal(n_sweeps=6, final_sweeps=2)).fit(crosscat_frame())
        assert set(model.trace_) == SCALARS | {"seconds", "sweeps", "n_assigned"}
        assert len({values.shape for values in model.trace_.values()}) == 1
        assert set(model.r_hat_) == set(model.ess_) == SCALARS
        for chain, views, log_joint in zip(
            model.draws_, model.trace_["n_views"], model.trace_["log_joint"]
        ):
            assert views[-1] == chain[-1].n_views and log_joint[-1] == chain[-1].log_joint
        assert model.n_sweeps_ == 8 and model.n_iter_ == 8

    @pytest.mark.parametrize("name", SCHEDULES)
    @pytest.mark.few(3)
    def test_every_schedule_by_name(self, name):
        model = quick(schedule=cheap_schedule(name)).fit(two_views(30))
        assert model.trace_["n_assigned"][0, -1] == 30
        assert model.view_labels_.shape == (4,) and model.labels_.shape == (30,)

    @pytest.mark.parametrize("selection", ["random", "window", "stratified"])
    def test_every_selection(self, selection):
        schedule = LinearAnneal(n_sweeps=8, selection=selection)
        model = quick(schedule=schedule, missing_indicator=[0]).fit(two_views())
        assert model.trace_["n_assigned"][0, -1] == 100

    def test_moves(self):
        X, schedule = two_views(), SequentialGibbs(n_sweeps=20)
        auto = quick(schedule=schedule).fit(X)
        named = quick(moves=("gibbs", "split_merge", "column_block"), schedule=schedule)
        assert not same_bits(auto, named.fit(X))
        rest = ("column_sets", "view_split_merge", "view_reallocation")
        named.set_params(moves=("gibbs", "split_merge", "column_block", *rest))
        assert same_bits(auto, named.fit(X))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for moves in (("gibbs",), ["gibbs", "column_gibbs"]):
                quick(moves=moves).fit(X)

    @pytest.mark.parametrize("method", ["map", "vi", "binder"])
    @pytest.mark.few(1)
    def test_point_estimates(self, method):
        X = crosscat_frame(60)
        model = crosscat(n_chains=3, point_estimate=method).fit(X)
        np.testing.assert_array_equal(model.view_labels_, canonical(model.view_labels_))
        assert len(model.row_labels_) == model.n_views_
        for labels in model.row_labels_:
            np.testing.assert_array_equal(labels, canonical(labels))
        assert model.predict_proba(X).shape == (60, model.n_clusters_)
        assert model.transform(X).shape == (60, model.n_views_)

    def test_consensus_of_draws(self):
        """Two of three draws agree on everything: so does the point estimate."""
        X = two_views()
        model = quick(n_chains=3, point_estimate="vi", schedule=SequentialGibbs(n_sweeps=15)).fit(X)
        a, b, c = all_draws(model)
        b.arrays = a.arrays
        c.arrays = c.arrays | {"log_joint": np.array(1e9)}
        encoder = model._encoder
        table = model._queries().table(encoder.encode(model, X))
        found = model._summary([a, b, c], encoder, table, 1, None)
        np.testing.assert_array_equal(found["view_labels_"], a.view_labels)
        for labels, expected in zip(found["row_labels_"], a.row_labels):
            np.testing.assert_array_equal(labels, canonical(expected))
        model.point_estimate = "map"
        found = model._summary([a, b, c], encoder, table, 1, None)
        np.testing.assert_array_equal(found["view_labels_"], c.view_labels)

    def test_warm_start_goes_on_where_the_chain_was(self):
        X = crosscat_frame()
        whole = crosscat(n_draws=3, thin=2).fit(X)
        first = crosscat(n_draws=1, thin=2, warm_start=True).fit(X)
        first = pickle.loads(pickle.dumps(first)).set_params(n_draws=2).fit(X)
        for together, after in zip(whole.draws_, first.draws_):
            for a, b in zip(together[1:], after):
                assert all(np.array_equal(a.arrays[name], b.arrays[name]) for name in a.arrays)
        with pytest.raises(ValueError, match="the same law: X must be"):
            first.fit(crosscat_frame(seed=3))
        with pytest.raises(ValueError, match="the same law: X must be"):
            first.set_params(missing_indicator=["size"]).fit(X)

    def test_max_time_and_the_realised_schedule(self):
        X = two_views(300)
        began = time.perf_counter()
        model = quick(schedule=LinearAnneal(max_time=0.5)).fit(X)
        # a sweep takes some milliseconds; the rest is room for a machine that is busy elsewhere
        assert time.perf_counter() - began < 0.5 + 1.0
        assert model.trace_["n_assigned"][0, -1] == 300
        again = clone(model).set_params(schedule=model.schedule_).fit(X)
        assert same_bits(model, again)

    def test_an_error_keeps_the_earlier_fit(self, monkeypatch):
        def fail(*args, **kwargs):
            raise MemoryError("no more")

        fresh, model = quick(), quick().fit(pd.DataFrame({"a": [0.5, 1.5], "b": [1.0, 2.0]}))
        before = dict(vars(model))
        points = ("_crosscat.point_partitions", "_crosscat.crosscat_arrays")
        for where in ("_base_chains.run_chain", *points):
            with monkeypatch.context() as patch:
                patch.setattr(f"skanneal.estimators.{where}", fail)
                for estimator in (fresh, model):
                    with pytest.raises(MemoryError, match="no more"):
                        estimator.fit(pd.DataFrame({"c": [0.5, 1.5]}))
        assert set(vars(fresh)) == set(fresh.get_params(deep=False))
        assert all(vars(model)[name] is before[name] for name in before)


INTERRUPTED = """
import warnings
import numpy as np
from oracles.scripts import interrupt_chains
from skanneal import CrossCatPY
from skanneal.schedules import LinearAnneal

rng = np.random.default_rng(0)
X = rng.choice([-4.0, 4.0], size=(2, 2000))[[0, 1, 0]].T + rng.normal(size=(2000, 3))
model = CrossCatPY(schedule=LinearAnneal(n_sweeps=1e6), n_chains=2, n_jobs=2, random_state=0)
with interrupt_chains(2), warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model.fit(X)
assert any("interrupted" in str(w.message) and w.filename == __file__ for w in caught), caught
for (draw,) in model.draws_:
    assert all(sizes.sum() == 2000 for sizes in draw.sizes)
assert model.transform(X).shape == (2000, model.n_views_) and np.isfinite(model.score(X))
assert model.dependence_probability().shape == (3, 3) and len(model.sample(3)) == 3
print("usable")
"""


@pytest.mark.slow
def test_an_interrupt_leaves_a_usable_fit(tmp_path):
    result = run_script(INTERRUPTED, tmp_path)
    assert result.stdout == "usable\n", result.stderr


class TestReproducibility:
    @pytest.mark.slow
    def test_jobs_and_backends(self):
        X = crosscat_frame()
        one = crosscat(n_chains=3).fit(X)
        fits = [crosscat(n_chains=3, n_jobs=2).fit(X)]
        with joblib.parallel_config(backend="loky", n_jobs=2):
            fits.append(crosscat(n_chains=3).fit(X))
        for fit in fits:
            assert same_bits(one, fit)
            np.testing.assert_array_equal(one.score_samples(X), fit.score_samples(X))
            np.testing.assert_array_equal(one.mutual_information(), fit.mutual_information())

    def test_seeds(self):
        X = crosscat_frame()
        one = crosscat(random_state=np.random.SeedSequence(3)).fit(X)
        assert same_bits(one, crosscat(random_state=3).fit(X))
        assert not same_bits(one, crosscat(random_state=4).fit(X))

    def test_queries_are_of_the_fit_whatever_n_chains_is_by_now(self):
        X = two_views()
        model, gaps = quick().fit(X), np.where(np.eye(100, 4) > 0, np.nan, X)

        def answers():
            cells = model.sample(3), *model.impute(gaps, n_imputations=2)
            return np.concatenate([*cells, model.mutual_information(n_samples=50)])

        before = answers()
        model.set_params(n_chains=3)
        np.testing.assert_array_equal(answers(), before)

    def test_queries_leave_the_fit_as_it_is(self):
        X = crosscat_frame()
        model = crosscat().fit(X)
        before = pickle.dumps(model)
        for query in TABLE_QUERIES:
            getattr(model, query)(X)
        model.sample(3, given={"size": 1.0})
        model.mutual_information()
        assert pickle.dumps(model) == before


class TestParameters:
    @pytest.mark.filterwarnings("ignore:The chains do not agree")  # on 40 rows, with short chains
    @pytest.mark.slow
    def test_discounts_and_concentrations(self):
        X = crosscat_frame()
        fixed = crosscat(concentration=2.0, discount=0.25).fit(X)
        for draw in all_draws(fixed):
            assert (draw.concentration == 2.0).all() and (draw.discount == 0.25).all()
            assert draw.view_concentration == 2.0 and draw.view_discount == 0.25  # copied
        mixed = crosscat(concentration=2.0, view_concentration=0.5, view_discount=0.0).fit(X)
        for draw in all_draws(mixed):
            assert (draw.concentration == 2.0).all()
            assert draw.view_concentration == 0.5 and draw.view_discount == 0.0
        grids = mixed.hyperparameter_grids_
        assert grids["view_concentration"].tolist() == [0.5] and len(grids["discount"]) > 5
        inferred = crosscat(n_draws=20, thin=1, view_discount=0.0).fit(X)
        assert len({draw.view_concentration for draw in all_draws(inferred)}) > 3
        assert len({tuple(draw.discount) for draw in all_draws(inferred)}) > 3
        assert {draw.view_discount for draw in all_draws(inferred)} == {0.0}

    def test_more_view_concentration_gives_more_views(self):
        X = np.full((20, 12), NAN)  # the prior alone
        schedule = SequentialGibbs(n_sweeps=10)
        few, many = (
            quick(view_concentration=a, view_discount=0.0, schedule=schedule).fit(X)
            for a in (0.01, 100.0)
        )
        assert few.n_views_ < 4 < 7 < many.n_views_

    def test_fixed_hyperparameters_are_of_the_columns_shown(self):
        X = crosscat_frame()
        fixed = {
            "normal": {"mu0": [2.0, 30.0]},
            "bernoulli": {"a": [0.7], "b": [1.9]},
            "poisson": (1.5, 0.3),
        }
        model = crosscat(hyperparameters=fixed, missing_indicator=["wet", "size"]).fit(X)
        for draw in all_draws(model):
            hyper = draw.hyperparameters
            np.testing.assert_allclose(hyper["normal"]["mu0"], [2.0, 30.0], rtol=1e-9)
            assert hyper["bernoulli"]["a"].tolist() == [0.7]
            assert hyper["poisson"]["rate"].tolist() == [0.3]
        grids = model.hyperparameter_grids_
        assert grids["bernoulli"] == {} and set(grids["normal"]) == {"kappa0", "nu0", "sigma2_0"}
        counts = [a for k, a in draw.arrays.items() if k.endswith("bernoulli/pseudo_counts")]
        assert len(np.concatenate(counts)) == 6  # the indicators are there, and inferred

    @pytest.mark.parametrize(
        "parameters, message",
        [
            ({"view_discount": 1.0}, "view_discount must be in"),
            ({"view_concentration": "x"}, "'view_concentration' parameter of CrossCatPY"),
            ({"view_concentration": NAN}, "view_concentration must be 'infer' or a number"),
            (
                {"view_concentration": -0.5, "view_discount": 0.2},
                "view_concentration must be above minus the discount, got -0.5 with view_discount",
            ),
            ({"concentration": -0.5, "discount": 0.2}, "concentration must be above minus"),
            ({"moves": ("column_block",)}, "'gibbs' with them"),
            ({"moves": ("gibbs", "columns")}, r"among \['column_block', 'column_gibbs'"),
            ({"missing_indicator": ["height"]}, "missing_indicator names the column 'height'"),
            ({"missing_indicator": [True]}, "missing_indicator is a mask of 1 columns"),
            ({"missing_indicator": 1.5}, "'missing_indicator' parameter of CrossCatPY"),
            ({"output": "labels"}, "'output' parameter of CrossCatPY"),
        ],
    )
    def test_errors_name_the_parameter(self, parameters, message):
        model = crosscat(**parameters)
        with pytest.raises(ValueError, match=message):
            model.fit(crosscat_frame())
        assert set(vars(model)) == set(model.get_params(deep=False))

    @pytest.mark.slow
    def test_forms_of_missing_indicator(self):
        X = crosscat_frame()
        one = crosscat(missing_indicator=["colour", "size"]).fit(X)
        for form in ((0, 1), [-5, 0], np.isin(list(FAMILY), ["size", "colour"]), ("size", 1)):
            assert same_bits(one, crosscat(missing_indicator=form).fit(X))
        assert same_bits(
            crosscat(missing_indicator="size").fit(X), crosscat(missing_indicator=0).fit(X)
        )


class TestContainers:
    def tables(self, X):
        plain = X.to_numpy().tolist()
        types = (pl.Float64, pl.String, pl.Boolean, pl.Float64, pl.Int64, pl.String)
        numbers = {"size": float, "weight": float, "wet": "boolean", "count": "Int64"}
        return [
            plain,
            np.array(plain, dtype=object),
            pl.DataFrame(plain, schema=dict(zip(FAMILY, types)), orient="row"),
            X.astype(numbers),
            X.astype(numbers | {"colour": "category", "shape": "category"}),
        ]

    @pytest.mark.slow
    def test_they_agree(self):
        X = crosscat_frame()
        options = {"families": {"poisson": [4]}, "missing_indicator": [1, 2, 4]}
        model = crosscat(**options).fit(X)
        for table in self.tables(X):
            before = copy.deepcopy(table)
            other = crosscat(**options).fit(table)
            assert same_bits(model, other), type(table)
            for query in (*QUERIES, "transform", "row_similarity"):
                np.testing.assert_array_equal(
                    getattr(other, query)(table), getattr(model, query)(X)
                )
            assert type(other.impute(table)) is type(table)
            rows = other.sample(40)
            assert type(rows) is type(table)
            if isinstance(table, pd.DataFrame):
                assert table.equals(before) and (rows.dtypes == table.dtypes).all()
            elif isinstance(table, pl.DataFrame):
                assert table.equals(before) and rows.schema == table.schema
                assert rows["wet"].null_count() > 0 and rows["size"].null_count() == 0

    def test_select_and_append(self):
        X = crosscat_frame(5)
        masks = [np.arange(5) > 2, np.arange(5) < 1]
        for table in self.tables(X):
            wide = open_table(table, "X").append(["a", "b"], masks)
            assert type(wide) is type(table)
            wide = open_table(wide, "X")
            assert wide.shape == (5, 8)
            assert wide.column(6).values.tolist() == masks[0].tolist()
            some = open_table(wide.select(np.array([7, 1])), "X")
            assert some.shape == (5, 2) and some.column(0).values.tolist() == masks[1].tolist()
            assert some.column(1).levels == open_table(table, "X").column(1).levels

    def test_read_only_memory_map(self, tmp_path):
        X = two_views()
        X[3, 1] = NAN
        np.save(tmp_path / "X.npy", X)
        mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
        model = quick().fit(mapped)
        assert same_bits(model, quick().fit(X))
        np.testing.assert_array_equal(model.impute(mapped), model.impute(X))
        imputer = CrossCatImputer(quick()).fit(mapped)
        np.testing.assert_array_equal(imputer.transform(mapped), imputer.transform(X))


def ask_everything(model, X):
    """Every query, with finite answers."""
    n_rows, n_columns = np.shape(X)
    for query in QUERIES[:-1]:
        assert np.isfinite(getattr(model, query)(X)).all()
    assert model.surprisal(X).shape == (n_rows, n_columns)
    assert model.transform(X).shape == (n_rows, model.n_views_)
    assert np.shape(model.impute(X)) == np.shape(model.sample(n_rows)) == (n_rows, n_columns)
    questions = model.dependence_probability, model.mutual_information
    dependence, information = (np.asarray(question()) for question in questions)
    assert dependence.shape == information.shape == (n_columns, n_columns)
    assert (information >= 0).all() and (np.diag(dependence) == 1).all()
    assert model.row_similarity([0, 1], X).shape == (2, n_rows)
    model.most_similar_rows([0], 1)


class TestUnusualTables:
    def test_a_single_column(self):
        for X in (two_views(40)[:, :1], [["a"], ["b"], ["a"], [None]]):
            model = quick().fit(X)
            assert model.view_labels_.tolist() == [0] and model.n_views_ == 1
            ask_everything(model, X)

    def test_one_row(self):
        model = quick().fit([[1.5, 2.0]])
        assert model.labels_.tolist() == [0] and np.isfinite(model.score([[1.5, 2.0]]))

    def test_constant_columns(self):
        X = pd.DataFrame({"a": [1.0] * 30, "b": ["x"] * 30, "c": [True] * 30, "d": [3] * 30})
        model = quick().fit(X)
        ask_everything(model, X)
        gappy = X.astype(object).mask(np.random.default_rng(0).random(X.shape) < 0.3, None)
        assert model.impute(gappy).to_numpy().tolist() == X.to_numpy().tolist()

    def test_more_columns_than_rows(self):
        X = np.random.default_rng(0).normal(size=(8, 60))
        ask_everything(quick().fit(X), X)

    def test_seven_hundred_levels(self):
        rng = np.random.default_rng(0)
        X = pd.DataFrame(rng.integers(700, size=(1500, 3)).astype(str), columns=list("abc"))
        model = quick(schedule=SequentialGibbs(n_sweeps=2)).fit(X)
        assert sum(len(levels) for levels in model._encoder.levels_) > 1700
        ask_everything(model, X.iloc[:200])
        assert np.isfinite(model.score(pd.DataFrame([["x", "y", "5"]], columns=list("abc"))))

    def test_nothing_observed(self):
        X = np.full((10, 3), NAN)
        model = quick().fit(X)
        ask_everything(model, X)
        np.testing.assert_allclose(model.score_samples(X), 0, atol=1e-12)

    def test_other_levels_in_a_query(self):
        X = crosscat_frame()
        model = crosscat().fit(X)
        strange = X.iloc[:5].assign(colour="violet")
        known = model.score_samples(X.iloc[:5].assign(colour="blue"))
        assert (model.score_samples(strange) < known).all()
        assert np.isfinite(np.asarray(model.surprisal(strange))[:, 1]).all()
        filled = model.impute(strange.assign(shape=None))
        assert (filled["colour"] == "violet").all() and filled["shape"].notna().all()


class TestBadQueries:
    @pytest.fixture(scope="class")
    @classmethod
    def model(cls):
        return crosscat().fit(crosscat_frame())

    @pytest.mark.parametrize(
        "given, error, message",
        [
            ({"size": "x"}, ValueError, "column 'size' holds 'x', but the family 'normal' needs"),
            ({"size": np.inf}, ValueError, "infinity.* in column 'size'"),
            ({"size": None}, ValueError, "missing value for column 'size'.*missing_indicator"),
            ({"size": 1j}, ValueError, "column 'size' holds complex"),
            ({"size": [1, 2]}, TypeError, "not 'list' .column 'size'"),
            ({"size": pd.Timestamp("2024-01-01")}, TypeError, "'size' held neither"),
            ({"colour": 3}, ValueError, "column 'colour' has no level 3"),
            ({"colour": "violet"}, ValueError, "column 'colour' has no level 'violet'"),
            ({"wet": 2}, ValueError, "column 'wet' must hold False, True"),
            ({"count": 2.5}, ValueError, "column 'count' must hold non-negative integers"),
            ({"count": -1}, ValueError, "column 'count' must hold non-negative integers"),
            ({"height": 1}, ValueError, "given names the column 'height', which is absent"),
            ({6: 1}, ValueError, "given names the column 6, which is absent"),
            ({"size": 1.0, 0: 1.0}, ValueError, "given has column 'size' twice"),
            (["size"], TypeError, "given must be a mapping"),
        ],
    )
    def test_sample_given(self, model, given, error, message):
        with pytest.raises(error, match=message):
            model.sample(3, given=given)

    def test_given_forms(self, model):
        one = model.sample(3, given={"wet": True, "count": 4, "colour": "red"})
        for given in (
            {2: 1, 4: 4.0, "colour": "red"},
            pd.Series({"wet": np.True_, "count": np.int32(4), "colour": "red"}, dtype=object),
        ):
            assert one.equals(model.sample(3, given=given))
        assert one["wet"].all() and (one["count"] == 4).all() and (one["colour"] == "red").all()

    @pytest.mark.parametrize("columns", ["height", ["size", "height"], [6], [True, False], 1.5])
    def test_unknown_columns(self, model, columns):
        X = crosscat_frame(3)
        for ask, name in (
            (lambda: model.score_samples(X, given=columns), "given"),
            (lambda: model.dependence_probability(columns), "columns"),
            (lambda: model.mutual_information(columns), "columns"),
            (lambda: model.row_similarity([0], columns=columns), "columns"),
            (lambda: model.most_similar_rows([0], columns=columns), "columns"),
        ):
            with pytest.raises(ValueError, match=f"{name} (names the column|is a mask of 2)"):
                ask()

    @pytest.mark.parametrize("rows", [[40], [-41], [0.5], ["a"], [True, False]])
    def test_unknown_rows(self, model, rows):
        with pytest.raises(ValueError, match="rows must be positions or a mask of the 40"):
            model.row_similarity(rows)
        with pytest.raises(ValueError, match="others must be positions or a mask of the 40"):
            model.row_similarity(None, rows)

    def test_no_columns_and_no_other_rows(self, model):
        for ask in (model.row_similarity, model.most_similar_rows):
            with pytest.raises(ValueError, match="columns names no column"):
                ask([0], columns=[])
        alone = crosscat().fit(crosscat_frame()[:1])
        with pytest.raises(ValueError, match="there is no other row"):
            alone.most_similar_rows([0])

    def test_counts_of_things(self, model):
        for n in (0, 40, 2.5):
            with pytest.raises(ValueError, match="n_neighbors must be from 1 to 39"):
                model.most_similar_rows([0], n)
        for n in (0, 1, 10.5):
            with pytest.raises(ValueError, match="n_samples must be an integer above 1"):
                model.mutual_information(n_samples=n)

    def test_other_columns(self, model):
        X = crosscat_frame(3)
        for query in TABLE_QUERIES:
            with pytest.raises(ValueError, match="feature names should match|6 features"):
                getattr(model, query)(X.drop(columns=["size"]))


class TestImputer:
    def gappy(self, seed=0):
        X = two_views(80, seed=seed)
        X[np.random.default_rng([seed, 2]).random(X.shape) < 0.2] = NAN
        return X

    def test_observed_cells_stay_and_gaps_are_filled_by_the_model(self):
        X = self.gappy()
        before = X.copy()
        imputer = CrossCatImputer(quick(schedule=LinearAnneal(n_sweeps=60), random_state=2))
        filled = imputer.fit_transform(X)
        np.testing.assert_array_equal(X, before)
        gaps = np.isnan(X)
        np.testing.assert_array_equal(filled[~gaps], X[~gaps])
        np.testing.assert_array_equal(filled, imputer.estimator_.impute(X))
        truth = two_views(80)
        error = np.abs(filled - truth)[gaps].mean()
        assert error < 0.6 * np.abs(SimpleImputer().fit_transform(X) - truth)[gaps].mean()
        query = self.gappy(seed=1)
        np.testing.assert_array_equal(imputer.transform(query), imputer.estimator_.impute(query))

    def test_default_estimator_and_seeds(self):
        X = self.gappy()[:30]
        one = CrossCatImputer(random_state=3).fit(X)
        assert one.estimator_.random_state == 3
        np.testing.assert_array_equal(
            one.transform(X), CrossCatImputer(random_state=3).fit_transform(X)
        )
        kept = CrossCatImputer(quick(random_state=5), random_state=3).fit(X)
        assert kept.estimator_.random_state == 5

    def test_a_single_mixture_as_the_model(self):
        X = self.gappy()
        options = {"schedule": SequentialGibbs(n_sweeps=4), "n_chains": 1, "random_state": 0}
        model = AnnealedDPMixture(**ONE_DRAW, **options)
        filled = CrossCatImputer(model).fit_transform(X)
        np.testing.assert_array_equal(filled, clone(model).fit(X).impute(X))

    def test_mode_is_a_centre_and_mean_falls_between(self):
        rng = np.random.default_rng(0)
        side = rng.random(400) < 0.3
        X = np.column_stack([np.where(side, 5.0, -5.0) + 0.1 * rng.normal(size=400), side])
        X = pd.DataFrame(X, columns=["x", "side"]).astype({"side": bool}).astype(object)
        options = {"schedule": SequentialGibbs(n_sweeps=10), "n_chains": 2, "random_state": 0}
        options |= ONE_DRAW
        gap = pd.DataFrame({"x": [None, None], "side": [None, True]}, dtype=object)
        found = {
            strategy: CrossCatImputer(CrossCatPY(**options), strategy=strategy).fit(X)
            for strategy in ("mean", "mode")
        }
        mean, mode = (found[strategy].transform(gap) for strategy in ("mean", "mode"))
        assert mean["x"][0] == pytest.approx(-2.0, abs=0.5)
        assert mode["x"][0] == pytest.approx(-5.0, abs=0.1)
        assert mode["x"][1] == pytest.approx(5.0, abs=0.1)
        assert mean["side"].tolist() == mode["side"].tolist() == [False, True]
        density = found["mode"].estimator_.score_samples
        grid = pd.DataFrame({"x": np.linspace(-8, 8, 400), "side": None}, dtype=object)
        best = pd.DataFrame({"x": mode["x"][:1], "side": None}, dtype=object)
        assert density(best)[0] > density(grid).max() - 0.1

    def test_mode_of_counts_is_whole(self):
        X = [
            [3, "a"],
            [4, "a"],
            [3, "a"],
            [None, "a"],
            [40, "b"],
            [44, "b"],
            [39, "b"],
            [None, "b"],
        ]
        schedule = LinearAnneal(n_sweeps=60)
        model = quick(families={"poisson": [0]}, schedule=schedule, random_state=3)
        filled = CrossCatImputer(model, strategy="mode").fit_transform(X)
        assert filled.shape == (8, 2) and filled[3, 0] == int(filled[3, 0])
        assert filled[3, 0] < 15 < filled[7, 0]

    @pytest.mark.slow
    def test_samples_have_the_mean_and_spread_of_impute(self):
        """400 tables, each of its own components' parameters: |error| of means beyond 4.5 standard
        errors is chance."""
        X = crosscat_frame()
        model = crosscat()
        row = X.iloc[[5]].assign(weight=None, shape=None, count=None)
        imputer = CrossCatImputer(model, strategy="sample", random_state=0).fit(X)
        expected, spread = imputer.estimator_.impute(row, return_std=True)
        spread = np.asarray(spread)
        drawn = pd.concat(imputer.imputations(row, 400), ignore_index=True)
        assert (drawn["size"] == row["size"].iloc[0]).all()
        for name in ("weight", "count"):
            values, j = drawn[name].to_numpy(float), list(FAMILY).index(name)
            assert abs(values.mean() - expected[name].iloc[0]) < 4.5 * spread[0, j] / 400**0.5
            # tails are heavy, so that a single draw may double the standard deviation
            near = np.clip(values - expected[name].iloc[0], *spread[0, j] * np.array([-4, 4]))
            assert near.std() == pytest.approx(spread[0, j], rel=0.4)
        share = (drawn["shape"] == expected["shape"].iloc[0]).mean()
        assert abs(share - (1 - spread[0, 5])) < 4.5 * 0.5 / 400**0.5
        # the gaps of a row are drawn together: count and shape come from one cluster
        chances = pd.crosstab(drawn["count"].astype(int) > 4, drawn["shape"], normalize=True)
        alone = np.outer(chances.sum(axis=1), chances.sum(axis=0))
        assert imputer.transform(row).equals(imputer.transform(row))
        assert np.abs(chances.to_numpy() - alone).max() < 1

    @pytest.mark.slow
    def test_containers_and_dtypes(self):
        X = crosscat_frame()
        types = (pl.Float64, pl.String, pl.Boolean, pl.Float64, pl.Int64, pl.String)
        categories = {"colour": "category", "size": float, "weight": float, "wet": "boolean"}
        for table in (
            X.astype(categories),
            pl.DataFrame(X.to_numpy().tolist(), schema=dict(zip(FAMILY, types)), orient="row"),
            X.to_numpy(),
        ):
            imputer = CrossCatImputer(crosscat(families={"poisson": [4]}), strategy="mode")
            filled = imputer.fit_transform(table)
            assert type(filled) is type(table)
            if isinstance(table, pd.DataFrame):
                assert (filled.dtypes == table.dtypes).all() and filled.notna().all().all()
                assert (filled.index == table.index).all()
            elif isinstance(table, pl.DataFrame):
                assert (
                    filled.schema == table.schema and filled.null_count().sum_horizontal()[0] == 0
                )
        rows = imputer.fit_transform(X.to_numpy().tolist())
        assert isinstance(rows, np.ndarray) and rows.dtype == object
        assert CrossCatImputer(quick()).fit_transform([[0.5, 1], [NAN, 2]]).dtype == np.float64

    @pytest.mark.parametrize("missing", [-1, "?", None])
    def test_missing_values(self, missing):
        frame = crosscat_frame()[["weight", "colour", "shape"]]
        frame["weight"] = frame["weight"].astype(object).where(frame["weight"].notna(), None)
        marked = frame.astype(object).where(frame.notna(), missing)
        if missing == -1:
            marked["weight"] = marked["weight"].astype(float)
        model = quick()
        expected = CrossCatImputer(model).fit_transform(frame)
        if missing == "?":  # among numbers a word makes words of them all
            marked["weight"] = frame["weight"]
            message = r"NaN in column 'weight', but missing_values='\?'"
            with pytest.raises(ValueError, match=message):
                CrossCatImputer(model, missing_values=missing).fit(marked)
            marked, expected = marked[["colour", "shape"]], frame[["colour", "shape"]]
            expected = CrossCatImputer(model).fit_transform(expected)
        imputer = CrossCatImputer(model, missing_values=missing)
        filled = imputer.fit_transform(marked)
        assert filled.astype(object).equals(expected.astype(object))
        assert list(filled.columns) == list(marked.columns)

    def test_whole_numbers_stay_whole_where_nothing_is_filled(self):
        X = np.array([[1, 5], [2, -1], [3, 7], [4, 8]])
        imputer = CrossCatImputer(quick(), missing_values=-1).fit(X)
        assert imputer.transform(X[[0, 2]]).dtype == X.dtype
        filled = imputer.transform(X)
        assert filled.dtype == np.float64 and filled[1, 1] > 0

    def test_add_indicator(self):
        X = self.gappy()
        X[:, 2] = two_views(80)[:, 2]
        imputer = CrossCatImputer(quick(), add_indicator=True).fit(X)
        filled = imputer.transform(X)
        assert filled.shape == (80, 7)
        np.testing.assert_array_equal(filled[:, 4:], np.isnan(X[:, [0, 1, 3]]))
        assert imputer.indicator_.features_.tolist() == [0, 1, 3]
        names = ["x0", "x1", "x2", "x3", *(f"missingindicator_x{j}" for j in (0, 1, 3))]
        assert imputer.get_feature_names_out().tolist() == names
        for library in (pd, pl):
            frame = library.DataFrame({name: X[:, j] for j, name in enumerate("abcd")})
            filled = clone(imputer).fit_transform(frame)
            assert type(filled) is type(frame)
            assert list(filled.columns)[4:] == [f"missingindicator_{name}" for name in "abd"]
            assert filled["missingindicator_b"].to_numpy().tolist() == np.isnan(X[:, 1]).tolist()
            named = clone(imputer).set_output(transform="pandas").fit(frame)
            assert list(named.transform(frame).columns) == list(filled.columns)
        full = two_views(20)
        imputer = CrossCatImputer(quick(), add_indicator=True).fit(full)
        np.testing.assert_array_equal(imputer.transform(full), full)

    def test_empty_columns(self):
        X = pd.DataFrame(self.gappy(), columns=list("abcd")).assign(b=NAN)
        with pytest.warns(UserWarning, match="no cell is observed: column 'b'") as record:
            imputer = CrossCatImputer(quick()).fit(X)
        assert record[0].filename == __file__
        assert list(imputer.transform(X).columns) == list("acd")
        assert imputer.get_feature_names_out().tolist() == list("acd")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", "Row 76 has no observed cell")
            kept = CrossCatImputer(quick(), keep_empty_features=True).fit(X)
        query = X.fillna({"b": 7.0})
        query.iloc[40:] = NAN
        filled = kept.transform(query)
        assert list(filled.columns) == list("abcd") == kept.get_feature_names_out().tolist()
        assert filled["b"].tolist() == [7.0] * 40 + [0.0] * 40
        assert filled.drop(columns="b").iloc[:40].equals(imputer.transform(X).iloc[:40])
        with pytest.raises(ValueError, match="no observed cell"):
            CrossCatImputer(quick()).fit(X[["b"]])

    @pytest.mark.slow
    def test_in_a_pipeline_and_grid_search(self):
        X, y = self.gappy(), np.sign(two_views(80)[:, 0])
        pipeline = make_pipeline(CrossCatImputer(quick()), StandardScaler(), LogisticRegression())
        grid = {
            "crosscatimputer__strategy": ["mean", "mode"],
            "crosscatimputer__estimator__schedule": ["sequential_gibbs", "prior_gibbs"],
        }
        search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(X, y)
        assert search.best_score_ > 0.9

    def test_bad_parameters_and_columns(self):
        X = self.gappy()
        for parameters, message in (
            ({"strategy": "median"}, "'strategy' parameter of CrossCatImputer"),
            ({"estimator": LogisticRegression()}, "'estimator' parameter of CrossCatImputer"),
            ({"missing_values": -1}, "Input X contains NaN in column 0, but missing_values=-1"),
        ):
            imputer = CrossCatImputer(**parameters)
            with pytest.raises(ValueError, match=message):
                imputer.fit(X)
            assert set(vars(imputer)) == set(imputer.get_params(deep=False))
        imputer = CrossCatImputer(quick()).fit(X)
        with pytest.raises(ValueError, match="4 features"):
            imputer.transform(X[:, :2])
        with pytest.raises(ValueError, match="infinity"):
            imputer.transform(np.full((1, 4), np.inf))

    def test_pickle(self):
        X = self.gappy()
        imputer = CrossCatImputer(quick(), add_indicator=True).fit(X)
        np.testing.assert_array_equal(
            pickle.loads(pickle.dumps(imputer)).transform(X), imputer.transform(X)
        )
