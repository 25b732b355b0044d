"""AcceleratedDPMixture as its users meet it."""

import copy
import pickle
import sys
import time
import warnings
from itertools import combinations_with_replacement

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array, save_npz
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV

from oracles.accelerated_fits import (
    ALGORITHMS,
    COUNTS,
    UNCOLLAPSED,
    Rates,
    counts,
    mixture,
    rows_for,
    two_clusters,
)
from oracles.backends import dask_cluster, kill_dask_worker, ray_cluster
from oracles.cheap import CHEAP
from oracles.scripts import run_script
from skanneal import AnnealedDPMixture
from skanneal.likelihoods import LIKELIHOODS, Likelihood
from skanneal.parallel import StopFlag
from skanneal.partition_priors import PitmanYor
from skanneal.schedules import AcceleratedSchedule
from skanneal.sharded import (
    AcceleratedStage,
    Auxiliary,
    ExactStage,
    Importance,
    SliceSampler,
    Uncollapsed,
)
from skanneal.sharded._segments import first_report
from skanneal.sharded._shards import RowSource

CONJUGATE_ONLY = ("sample", "surprisal", "score_outliers", "impute")


def await_stop(rows, *args, stop):
    """A segment that is never done."""
    while not stop.is_set():
        time.sleep(0.001)


class StopAfter(StopFlag):
    """A flag that is found set after so many looks."""

    def __init__(self, n_looks):
        super().__init__()
        self.n_looks = n_looks

    def is_set(self):
        self.n_looks -= 1
        if self.n_looks < 0:
            self.set()
        return super().is_set()


def same_bits(one, two):
    pairs = [
        (first.arrays, second.arrays)
        for ours, theirs in zip(one.draws_, two.draws_, strict=True)
        for first, second in zip(ours, theirs, strict=True)
    ]
    return np.array_equal(one.labels_, two.labels_) and all(
        np.array_equal(first[name], second[name]) for first, second in pairs for name in first
    )


def unchanged(model):
    """Has a fit left no attribute?"""
    return set(vars(model)) == set(model.get_params(deep=False))


class TestScikitLearn:
    def test_grid_search_over_schedules(self):
        X, _ = two_clusters()
        one, two = AcceleratedSchedule(n_accelerated=2, n_exact=3), AcceleratedSchedule(n_exact=5)
        grid = [
            {"schedule": [one, two]},
            {"schedule": [one], "schedule__n_accelerated": [1, 4], "algorithm": ["hybrid"]},
        ]
        search = GridSearchCV(mixture(), grid, cv=2, error_score="raise").fit(X)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        assert len(search.cv_results_["params"]) == 4 and one.n_accelerated == 2

    @pytest.mark.parametrize(
        ("likelihood", "name", "value"),
        [
            ("normal", "kappa0", 0.5),
            ("multivariate_normal", "kappa0", 0.5),
            ("multinomial", "pseudo_counts", 0.5),
            ("poisson", "rate", 0.5),
        ],
    )
    def test_hyperparameters_come_back_under_the_name_that_they_were_given_under(
        self, likelihood, name, value
    ):
        X = np.random.default_rng(0).poisson(4.0, size=(40, 2))
        model = mixture(likelihood=likelihood, hyperparameters={likelihood: {name: value}}).fit(X)
        (shown,) = model.draws_[0][0].hyperparameters.items()
        assert shown[0] == likelihood and np.all(np.equal(shown[1][name], value))
        assert set(model.families_) == {likelihood}
        assert set(model.hyperparameter_grids_) == {likelihood, "concentration", "discount"}
        assert name not in model.hyperparameter_grids_[likelihood]
        again = mixture(likelihood=likelihood, hyperparameters=dict([shown])).fit(X)
        assert again.hyperparameter_grids_[likelihood] == {}

    @pytest.mark.parametrize("likelihood", ["normal", "logistic_normal", Rates()])
    def test_clone_repr_pickle_and_copy(self, likelihood):
        X, _ = rows_for(likelihood) if isinstance(likelihood, str) else counts()
        model = mixture(likelihood=likelihood, n_shards=3).fit(X)
        assert "n_shards=3" in repr(model)
        assert same_bits(model, clone(model).fit(X))
        for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            assert same_bits(model, twin)
            np.testing.assert_array_equal(twin.score_samples(X), model.score_samples(X))


class TestFit:
    @pytest.mark.parametrize("algorithm", ALGORITHMS)
    @pytest.mark.parametrize("likelihood", [*LIKELIHOODS, "own"])
    @pytest.mark.few(6)
    def test_every_algorithm(self, likelihood, algorithm):
        X, side = counts() if likelihood == "own" else rows_for(likelihood, n_columns=3)
        before = X.copy()
        given = Rates() if likelihood == "own" else likelihood
        model = mixture(likelihood=given, algorithm=algorithm, n_draws=2, thin=3, init=5)
        conjugate = likelihood not in ("own", "logistic_normal")
        if algorithm == "collapsed" and not conjugate:
            with pytest.raises(ValueError, match="'collapsed' integrates atoms out"):
                model.fit(X)
            assert unchanged(model)
            return
        assert model.fit(X) is model
        np.testing.assert_array_equal(X, before)
        if likelihood != "multivariate_normal":  # of so few rows one covariance explains as much
            assert adjusted_rand_score(side, model.labels_) > 0.6
            assert adjusted_rand_score(side, model.predict(X)) > 0.6
        assert model.labels_.dtype == np.int64 and model.n_sweeps_ == 40 + 3
        assert model.algorithm_ == algorithm and model.n_features_in_ == X.shape[1]
        probabilities = model.predict_proba(X)
        assert probabilities.shape == (60, model.n_clusters_)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-12)
        new = model.new_cluster_proba(X)
        assert new.shape == (60,) and (new > 0).all() and (new < 0.5).all()
        scores = model.score_samples(X)
        assert np.isfinite(scores).all() and model.score(X) == pytest.approx(scores.mean())
        for name in CONJUGATE_ONLY:
            assert hasattr(model, name) == conjugate
        if conjugate:
            assert model.sample(4).shape == (4, X.shape[1])
            assert model.surprisal(X).shape == X.shape
            assert np.isfinite(model.score_outliers(X)).all()
            np.testing.assert_array_equal(model.impute(X), X)
        assert len(model.features_) == model.n_components_
        assert [len(chain) for chain in model.draws_] == [2]

    @pytest.mark.parametrize("likelihood", LIKELIHOODS)
    @pytest.mark.few(1)
    def test_features(self, likelihood):
        """Means, variances, shares and rates of each component's rows, in the user's units."""
        X, _ = rows_for(likelihood, n_rows=400)
        X = X if likelihood in COUNTS else 100.0 + 0.1 * X
        model = mixture(likelihood=likelihood).fit(X)
        for feature, k in zip(model.features_, range(model.n_components_), strict=True):
            of = X[model.component_labels_ == k]
            if len(of) < 50:  # the prior counts
                continue
            mean = of.mean(axis=0)
            if likelihood == "normal":
                assert feature.shape == (2, 2)
                np.testing.assert_allclose(feature, [mean, of.var(axis=0)], rtol=0.3)
            elif likelihood == "multivariate_normal":
                assert feature.shape == (3, 2)
                np.testing.assert_allclose(feature[1:], np.cov(of.T), rtol=0.5, atol=2e-3)
            expected = mean if likelihood not in ("multinomial", "logistic_normal") else mean / 30
            shown = feature[0] if feature.ndim > 1 else feature
            atol = 0.05 if likelihood == "logistic_normal" else 0.02  # its features are drawn
            np.testing.assert_allclose(shown, expected, rtol=0.02, atol=atol)

    @pytest.mark.parametrize("method", ["vi", "binder"])
    @pytest.mark.parametrize("likelihood", ["poisson", "logistic_normal"])
    def test_point_estimates(self, likelihood, method):
        X, side = counts()
        model = mixture(likelihood=likelihood, point_estimate=method, n_draws=5, thin=2).fit(X)
        assert adjusted_rand_score(side, model.labels_) > 0.6
        assert model.features_.shape == (model.n_clusters_, 3)
        assert model.predict_proba(X).shape == (60, model.n_clusters_)

    @pytest.mark.parametrize("algorithm", ["accelerated", "hybrid", "collapsed"])
    def test_trace_and_draws(self, algorithm):
        X, _ = two_clusters()
        model = mixture(algorithm=algorithm, n_chains=3, n_draws=4, thin=7).fit(X)
        assert [len(chain) for chain in model.draws_] == [4, 4, 4]
        assert model.n_sweeps_ == 40 + 3 * 7 and model.n_iter_ == 61
        trace = model.trace_
        assert set(trace) == {
            *("seconds", "sweeps", "n_assigned", "n_components"),
            *("log_joint", "concentration", "discount", "burn_in"),
        }
        assert (trace["n_assigned"] == 60).all() and (np.diff(trace["seconds"]) >= 0).all()
        in_stage = trace["sweeps"] <= 10 if algorithm == "accelerated" else False
        np.testing.assert_array_equal(
            trace["burn_in"], np.broadcast_to(in_stage, trace["sweeps"].shape)
        )
        if algorithm != "collapsed":  # every five sub-iterations, and with every draw
            expected = [*range(5, 45, 5), 47, 54, 61]
            np.testing.assert_array_equal(trace["sweeps"], [expected] * 3)
        last = [chain[-1].log_joint for chain in model.draws_]
        np.testing.assert_allclose(trace["log_joint"][:, -1], last, rtol=1e-9)
        assert set(model.r_hat_) == {"n_components", "log_joint", "concentration", "discount"}

    @pytest.mark.parametrize("init", ["one", "kmeans", 5])
    def test_starts(self, init):
        X, side = counts()
        model = mixture(algorithm="hybrid", likelihood="multinomial", init=init).fit(X)
        assert adjusted_rand_score(side, model.labels_) > 0.9

    @pytest.mark.parametrize("likelihood", ["normal", "logistic_normal"])
    @pytest.mark.parametrize("algorithm", ["accelerated", "slice"])
    @pytest.mark.few(2)
    def test_warm_start(self, likelihood, algorithm):
        X, _ = rows_for(likelihood)
        options = {"likelihood": likelihood, "algorithm": algorithm, "n_draws": 2, "thin": 5}
        model = mixture(warm_start=True, **options).fit(X)
        draws = [draw.log_joint for draw in model.draws_[0]]
        assert model.fit(X).n_sweeps_ == 45 + 10 and len(model.draws_[0]) == 2
        through = mixture(**(options | {"n_draws": 4})).fit(X)
        if likelihood == "normal":  # else every draw asks for features of the prior
            assert [d.log_joint for d in through.draws_[0]] == draws + [
                d.log_joint for d in model.draws_[0]
            ]
        with pytest.raises(ValueError, match="warm_start goes on with the same rows"):
            model.fit(X[:-1])
        with pytest.raises(ValueError, match="warm_start.*n_shards"):
            model.set_params(n_shards=3).fit(X)
        with pytest.raises(ValueError, match="warm_start.*1 chains, n_chains is now 2"):
            model.set_params(n_shards=2, n_chains=2).fit(X)
        assert model.n_sweeps_ == 55

    def test_warm_start_knows_units_and_likelihoods(self):
        X, _ = two_clusters()
        model = mixture(warm_start=True).fit(X)
        for change in ({"likelihood": "multivariate_normal"}, {"algorithm": "collapsed"}):
            with pytest.raises(ValueError, match="warm_start goes on with"):
                clone_with_state(model, **change).fit(X)
        with pytest.raises(ValueError, match="warm_start goes on with"):
            model.fit(2.0 * X)


def clone_with_state(model, **parameters):
    return copy.deepcopy(model).set_params(**parameters)


class TestDensities:
    def test_counts_sum_to_one(self):
        X, _ = counts()
        every = np.array(
            [
                np.bincount(cells, minlength=3)
                for cells in combinations_with_replacement(range(3), 4)
            ]
        )
        # without a closed form each row's own proposals estimate its new-cluster term
        for likelihood, tolerance in (("multinomial", 1e-9), ("logistic_normal", 2e-3)):
            model = mixture(likelihood=likelihood, n_draws=2, discount=0.2).fit(X)
            total = np.exp(model.score_samples(every)).sum()
            assert total == pytest.approx(1.0, abs=tolerance)

    def test_poisson_counts_sum_to_one(self):
        X, _ = counts(n_columns=1)
        model = mixture(likelihood="poisson").fit(X)
        grid = np.arange(3000)[:, None]
        assert np.exp(model.score_samples(grid)).sum() == pytest.approx(1.0, abs=1e-4)

    @pytest.mark.parametrize("likelihood", ["normal", "multivariate_normal"])
    @pytest.mark.parametrize("scale", [1.0, 1e-3])
    def test_numbers_integrate_to_one(self, likelihood, scale):
        X, _ = two_clusters(n_columns=1)
        model = mixture(likelihood=likelihood, n_draws=2).fit(scale * X + 7.0)
        grid = np.linspace(-400, 400, 160_001) * scale
        density = np.exp(model.score_samples(grid[:, None] + 7.0))
        assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=2e-3)

    def test_a_new_cluster_without_a_closed_form_or_a_proposal(self):
        """Its density is the mean over draws from the base measure."""

        class Alone(Rates):
            proposal_draw = Likelihood.proposal_draw
            proposal_logpdf = Likelihood.proposal_logpdf

        X, _ = counts()
        model = mixture(likelihood=Alone(), algorithm="hybrid").fit(X)
        (draw,) = model.draws_[0]
        far = np.array([[500.0, 500.0, 500.0], *X[:2]])
        from scipy.special import logsumexp

        out = np.empty((3, draw.n_components + len(draw.arrays["prior_theta"])))
        theta = np.concatenate([draw.theta, draw.arrays["prior_theta"]])
        for i, x in enumerate(far):
            out[i] = [x @ t - np.exp(t).sum() for t in theta]
        n, K = 60, draw.n_components
        joint = np.c_[
            out[:, :K] + np.log(draw.sizes / (n + draw.concentration)),
            logsumexp(out[:, K:], axis=1)
            - np.log(len(theta) - K)
            + np.log(draw.concentration / (n + draw.concentration)),
        ]
        expected = logsumexp(joint, axis=1)
        np.testing.assert_allclose(model.score_samples(far), expected, rtol=1e-5)
        new = np.exp(joint[:, -1] - expected)
        np.testing.assert_allclose(model.new_cluster_proba(far), new, rtol=1e-3, atol=1e-12)


class TestReproducibility:
    @pytest.mark.parametrize("likelihood", ["normal", "logistic_normal", Rates()])
    @pytest.mark.few(1)
    def test_jobs_and_backends(self, likelihood):
        X, _ = rows_for(likelihood) if isinstance(likelihood, str) else counts()
        model = mixture(likelihood=likelihood, n_chains=2, n_shards=3)
        one = clone(model).fit(X)
        assert same_bits(one, clone(model).set_params(n_jobs=2).fit(X))
        with joblib.parallel_config(backend="loky", n_jobs=2):
            assert same_bits(one, clone(model).fit(X))
        assert not same_bits(one, clone(model).set_params(random_state=1).fit(X))

    @pytest.mark.parametrize("algorithm", ["accelerated", "hybrid", "slice"])
    @pytest.mark.parametrize("n_draws", [1, 3])
    @pytest.mark.few(2)
    def test_max_time(self, algorithm, n_draws):
        X, _ = two_clusters(300)
        schedule = AcceleratedSchedule(n_exact=10**4, max_time=0.6)
        model = mixture(algorithm=algorithm, schedule=schedule, n_draws=n_draws)
        began = time.perf_counter()
        model.fit(X)
        # segments take milliseconds; the rest is room for a machine that is busy elsewhere
        assert time.perf_counter() - began < 0.6 + 1.0
        assert model.schedule_.max_time is None and clone(model).schedule.max_time == 0.6
        again = clone(model).set_params(schedule=model.schedule_, n_draws=len(model.draws_[0]))
        again.fit(X)
        assert same_bits(model, again) and again.n_sweeps_ == model.n_sweeps_

    @pytest.mark.parametrize("algorithm", ["accelerated", "hybrid", "auxiliary", "slice"])
    def test_time_is_up_before_every_row_had_a_turn(self, algorithm):
        X, _ = two_clusters(300)
        schedule = AcceleratedSchedule(max_time=1e-9)
        with pytest.warns(
            ConvergenceWarning, match="max_time=1e-09 is too short for .* to give every row"
        ):
            model = mixture(algorithm=algorithm, schedule=schedule, n_draws=3).fit(X)
        assert len(model.draws_[0]) == 1
        assert model.n_sweeps_ == 0 and np.isfinite(model.score(X))
        realised = model.schedule_  # of no whole segment: as documented, no fit can repeat it
        assert realised.n_accelerated == realised.n_exact == 0
        with pytest.raises(ValueError, match="n_exact"):
            clone(model).set_params(schedule=realised).fit(X)

    @pytest.mark.parametrize(
        "stage", [AcceleratedStage, ExactStage, Auxiliary, Importance, SliceSampler]
    )
    @pytest.mark.parametrize("name", ["multinomial", "logistic_normal"])
    @pytest.mark.few(4)
    def test_a_segment_that_is_cut_reports_what_it_has(self, stage, name):
        X, _ = counts(5000)
        likelihood = LIKELIHOODS[name].of(X)
        rows, rng = likelihood.encode(X), np.random.default_rng(0)
        labels, theta = rng.integers(4, size=len(X)).astype(np.int32), None
        if not likelihood.conjugate:
            theta = likelihood.prior_draw(4, rng)
        n_moved = []
        for n_looks in (0, 1, 2, 6, 1000):
            state = Uncollapsed(likelihood, PitmanYor(1.0), [labels])
            state.theta = theta
            state.gather([first_report(rows, labels, 4, likelihood, StopFlag())])
            segment, (arguments,) = stage(3).plan(state, 1, np.random.default_rng(1))
            state.gather([segment(rows, *arguments, stop=StopAfter(n_looks))])
            expected = likelihood.statistics(rows, state.labels[0], state.n_clusters)
            assert np.allclose(state.statistics, expected)
            n_moved.append(np.count_nonzero(state.labels[0] != labels))
        assert n_moved[0] == 0 < n_moved[-1] and n_moved == sorted(n_moved)

    def test_a_segment_that_ends_too_late_is_as_if_never_begun(self, monkeypatch):
        X, _ = two_clusters(300)
        segment = AcceleratedStage.plan

        def late(self, state, n_steps, generator):
            function, arguments = segment(self, state, n_steps, generator)
            return await_stop, arguments

        monkeypatch.setattr(AcceleratedStage, "plan", late)
        schedule = AcceleratedSchedule(n_exact=10**4, max_time=1.0)
        with pytest.warns(ConvergenceWarning, match="a turn in stage accelerated: "):
            model = mixture(schedule=schedule).fit(X)
        assert model.schedule_.n_accelerated == 0 < model.schedule_.n_exact
        assert same_bits(model, clone(model).set_params(schedule=model.schedule_).fit(X))

    def test_generators_advance(self):
        X = np.random.default_rng(0).normal(size=(40, 2))
        model = mixture(random_state=np.random.default_rng(3))
        one, two = copy.copy(model.fit(X)), model.fit(X)
        assert not same_bits(one, two)
        assert same_bits(one, mixture(random_state=np.random.default_rng(3)).fit(X))


INTERRUPTED = """
import contextlib, signal, warnings
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from oracles.scripts import interrupt_chains, interrupt_shards
from skanneal import AcceleratedDPMixture, AnnealedDPMixture
from skanneal.schedules import AcceleratedSchedule

rng = np.random.default_rng(0)
X = np.where(np.arange(400) % 2, 4.0, -4.0)[:, None] + rng.normal(size=(400, 3))

class Killer:
    "Ctrl-C between two segments; or within one."
    def __init__(self, after):
        self.left = after
    def __call__(self, i, chain):
        self.left -= 1
        if self.left == 0:
            signal.raise_signal(signal.SIGINT)

for algorithm in ("accelerated", "slice", "collapsed"):
    for n_jobs in (1, 2):
        for between in (True, False)[algorithm == "collapsed":]:
            schedule = AcceleratedSchedule(n_accelerated=5, n_exact=10**5, sync_every=1)
            model = AcceleratedDPMixture(algorithm=algorithm, schedule=schedule, n_jobs=n_jobs,
                                         n_draws=3, random_state=0)
            if between:
                model._on_record, interrupt = Killer(after=8), contextlib.nullcontext()
            elif algorithm == "collapsed":
                interrupt = interrupt_chains(1)  # there is one chain
            else:
                interrupt = interrupt_shards(after=20)
            with interrupt, warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model.fit(X)
            assert any("interrupted" in str(w.message) and w.category is ConvergenceWarning
                       and w.filename == __file__ for w in caught), caught
            assert not between or model.n_sweeps_ == 8
            assert model.labels_.shape == (400,) and np.isfinite(model.score(X))
            assert model.predict_proba(X).shape == (400, model.n_clusters_)
            assert model.trace_["sweeps"][0, -1] == model.n_sweeps_
            short = AcceleratedSchedule(n_accelerated=2, n_exact=3)
            model.__dict__.pop("_on_record", None)
            assert len(model.set_params(schedule=short).fit(X[:100]).labels_) == 100
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
print("usable")
"""


class TestInterruptsAndErrors:
    @pytest.mark.slow
    def test_an_interrupt_leaves_a_usable_fit(self, tmp_path):
        result = run_script(INTERRUPTED, tmp_path)
        assert result.stdout == "usable\n", result.stderr

    def test_no_complete_state_no_fit(self, monkeypatch):
        def interrupted(self, function, tasks, seconds=None):
            return [None] * len(list(tasks)), True

        monkeypatch.setattr("skanneal.sharded._shards.ShardPool.run", interrupted)
        model = mixture()
        with pytest.raises(KeyboardInterrupt):
            model.fit(two_clusters()[0])
        assert unchanged(model)

    @pytest.mark.parametrize(
        "where",
        [
            "sharded._fit.first_labels",
            "estimators._accelerated_dp.ShardedRun",
            "estimators._accelerated_dp.read",
            "estimators._base_chains.side_by_side",
        ],
    )
    def test_an_error_at_any_stage_keeps_the_earlier_fit(self, where, monkeypatch):
        def fail(*args, **kwargs):
            raise MemoryError("no more")

        fresh, model = mixture(), mixture().fit(pd.DataFrame({"a": [0.5, 1.5]}))
        before = dict(vars(model))
        monkeypatch.setattr(f"skanneal.{where}", fail)
        for estimator in (fresh, model):
            with pytest.raises(MemoryError, match="no more"):
                estimator.fit(pd.DataFrame({"b": [0.5, 1.5], "c": [1.0, 2.0]}))
        assert unchanged(fresh)
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[name] is before[name] for name in before)


class TestContainers:
    def test_frames_and_lists(self):
        X, _ = two_clusters()
        X = np.round(X, 3)
        X[:, 1] = np.rint(X[:, 1])
        frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1].astype(int)})
        model = mixture().fit(X)
        for table in (frame, pl.DataFrame(frame.to_dict("list")), X.tolist(), X.astype(object)):
            before = copy.deepcopy(table)
            other = mixture().fit(table)
            assert same_bits(model, other)
            for query in ("predict_proba", "score_samples", "new_cluster_proba", "surprisal"):
                np.testing.assert_array_equal(
                    getattr(model, query)(X), getattr(other, query)(table)
                )
            assert pickle.dumps(table) == pickle.dumps(before) or table.equals(before)
        named = mixture().fit(frame)
        assert list(named.feature_names_in_) == ["a", "b"]
        assert not hasattr(named.fit(X), "feature_names_in_")
        assert isinstance(mixture().fit(frame).sample(3), pd.DataFrame)

    def test_kmeans_sees_the_same_numbers(self):
        """To the last digit, though k-means finds other centres of cells in float32."""
        X, _ = two_clusters()
        frame = pd.DataFrame(X).rename(columns=str)
        dated = frame.assign(day=np.datetime64("2020-01-01") + np.arange(len(X)))
        days = np.column_stack([X, 18262.0 + np.arange(len(X))])
        for array, tables in (
            (X, (X.tolist(), X.astype(object), frame.astype("Float64"), pl.DataFrame(X))),
            (days, (dated, pl.DataFrame(dated.to_dict("list")))),
        ):
            given = {"likelihood": "normal", "rounding": None, "init": "kmeans"}
            model = mixture(**given).fit(array)
            for table in tables:
                assert same_bits(model, mixture(**given).fit(table))

    @pytest.mark.parametrize("likelihood", ["multinomial", "logistic_normal"])
    @pytest.mark.few(1)
    def test_sparse_counts(self, likelihood):
        X, _ = counts(n_columns=6)
        model = mixture(likelihood=likelihood, init="kmeans").fit(X)
        sparse = csr_array(X)
        other = mixture(likelihood=likelihood, init="kmeans").fit(sparse)
        assert same_bits(model, other)
        np.testing.assert_array_equal(model.score_samples(X), other.score_samples(sparse))
        assert (sparse != csr_array(X)).nnz == 0
        assert other.__sklearn_tags__().input_tags.sparse

    @pytest.mark.parametrize("likelihood", ["multinomial", "normal", "poisson", "own"])
    @pytest.mark.parametrize("lazy", [False, True])
    @pytest.mark.few(1)
    def test_rows_on_disk(self, likelihood, lazy, tmp_path, monkeypatch):
        X, _ = counts() if likelihood == "own" else rows_for(likelihood)
        X = X.astype(np.float64)
        np.save(tmp_path / "all.npy", X)
        np.save(tmp_path / "first.npy", X[:25])
        np.save(tmp_path / "second.npy", X[25:])
        sources = [
            np.load(tmp_path / "all.npy", mmap_mode="r"),
            [tmp_path / "first.npy", str(tmp_path / "second.npy")],
        ]
        if likelihood == "multinomial":
            save_npz(tmp_path / "first.npz", csr_array(X[:25]), compressed=False)
            save_npz(tmp_path / "second.npz", csr_array(X[25:]))
            sources.append([tmp_path / "first.npz", tmp_path / "second.npz"])
        if lazy:
            monkeypatch.setattr(RowSource.__init__, "__defaults__", ("X", 0))
        given = Rates() if likelihood == "own" else likelihood
        init = "kmeans" if likelihood == "multinomial" else 5
        model = mixture(likelihood=given, init=init, n_shards=3, n_jobs=2)
        expected = clone(model).fit(X)
        for source in sources:
            # all rows are in the head from which scales and grids are taken: the same, then
            assert same_bits(expected, clone(model).fit(source))
        if likelihood != "own":
            collapsed = mixture(likelihood=likelihood, algorithm="collapsed")
            if lazy:
                with pytest.raises(ValueError, match="'collapsed' holds all rows"):
                    collapsed.fit(sources[0])
            else:
                assert same_bits(clone(collapsed).fit(X), collapsed.fit(sources[0]))

    @pytest.mark.parametrize("algorithm", ALGORITHMS)
    @pytest.mark.parametrize("likelihood", LIKELIHOODS)
    @pytest.mark.few(4)
    def test_odd_rows(self, likelihood, algorithm):
        """One row, constant columns, equal rows, few columns: no warning but that a chain of few
        sweeps still climbs."""
        if algorithm == "collapsed" and likelihood == "logistic_normal":
            return
        X, _ = rows_for(likelihood, n_rows=20)
        constant = X.copy()
        constant[:, 1] = 3
        for rows in (X[:1], constant, np.repeat(X[:1], 12, axis=0), np.abs(X[:, :1]) + 1):
            rows = np.rint(rows) if likelihood in COUNTS else rows
            model = mixture(likelihood=likelihood, algorithm=algorithm, n_shards=1)
            model.set_params(n_shards=min(2, len(rows)))
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(rows)
            assert np.isfinite(model.score_samples(rows)).all()
            assert 1 <= model.n_clusters_ <= len(rows)


class TestBadInput:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"n_shards": 61}, "n_shards=61 is more than the rows"),
            ({"n_shards": 0}, "n_shards"),
            ({"init": 61}, "init=61 clusters are more than the rows"),
            ({"init": "none"}, "init"),
            ({"algorithm": "gibbs"}, "algorithm"),
            ({"likelihood": "gaussian"}, "likelihood"),
            ({"likelihood": "multinomial"}, "column 0 must hold non-negative integers"),
            ({"likelihood": "poisson"}, "column 0 must hold non-negative integers"),
            ({"likelihood": "logistic_normal"}, "column 0 must hold non-negative integers"),
            ({"likelihood": LIKELIHOODS["normal"].of(np.eye(2))}, "likelihood.*Name a conjugate"),
            ({"schedule": AcceleratedSchedule(n_exact=0)}, "n_exact"),
            ({"schedule": AcceleratedSchedule(sync_every=0)}, "sync_every"),
            ({"schedule": AcceleratedSchedule(sync_every=[3, 0])}, "sync_every"),
            ({"schedule": AcceleratedSchedule(max_time=0)}, "max_time"),
            ({"schedule": "anneal"}, "schedule"),
            ({"hyperparameters": {"poisson": {"shape": 1.0}}}, "by its name 'normal'.*poisson"),
            ({"hyperparameters": {"normal": {"mean": 1.0}}}, "mu0, kappa0, nu0, sigma2_0; got"),
            ({"hyperparameters": {"normal": {"kappa0": -1.0}}}, "kappa0.*positive"),
            ({"concentration": -1.0}, "concentration"),
            ({"n_auxiliary": 0}, "n_auxiliary"),
            ({"n_jobs": 0}, "n_jobs"),
        ],
    )
    def test_parameters(self, parameters, message):
        model = mixture(**parameters)
        with pytest.raises(ValueError, match=message):
            model.fit(two_clusters()[0])
        assert unchanged(model)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"width": 2}, "are rank, scale; got"),
            ({"rank": 0}, r"\['rank'\] must be a positive integer"),
            ({"rank": 1.5}, r"\['rank'\] must be a positive integer"),
            ({"scale": -1.0}, r"\['scale'\] must be a positive number"),
            (3, "must be a mapping"),
        ],
    )
    def test_hyperparameters_of_the_logistic_normal(self, options, message):
        given = {"logistic_normal": options}
        model = mixture(likelihood="logistic_normal", hyperparameters=given)
        with pytest.raises(ValueError, match=message):
            model.fit(counts()[0])
        assert unchanged(model)

    @pytest.mark.parametrize("likelihood", LIKELIHOODS)
    def test_cells(self, likelihood):
        X, _ = rows_for(likelihood)
        X = pd.DataFrame(X.astype(float)).rename(columns=str)
        model = mixture(likelihood=likelihood).fit(X)
        for value, message in ((np.nan, "column '1' has a missing cell"), (np.inf, "infinity")):
            bad = X.copy()
            bad.loc[3, "1"] = value
            fresh = mixture(likelihood=likelihood)
            with pytest.raises(ValueError, match=message):
                fresh.fit(bad)
            assert unchanged(fresh)
            for query in ("predict", "predict_proba", "score_samples", "new_cluster_proba"):
                with pytest.raises(ValueError, match=message):
                    getattr(model, query)(bad)
        if likelihood in ("normal", "poisson"):  # whose cells know nothing of each other
            bad = X.copy()
            bad.loc[3, "1"] = np.nan
            assert np.isfinite(model.impute(bad)).all(axis=None)
        with pytest.raises(ValueError, match="2 features|3 features|columns|names"):
            model.predict(X[["0"]])

    def test_rows_of_zeros(self):
        X, _ = counts()
        X[7] = 0
        for likelihood in ("multinomial", "logistic_normal"):
            with pytest.raises(ValueError, match="Row 7 of X has no counts above 0"):
                mixture(likelihood=likelihood).fit(X)

    def test_whole_numbers_are_numbers(self):
        """Of two clusters with equal proportions, counts of one total would know nothing."""
        side = np.arange(120) % 2
        X = np.array([[20, 40], [60, 120]])[side]
        X = X + np.random.default_rng(0).integers(-5, 6, X.shape)
        for cells in (X, X.astype(np.uint8), X.astype(float), pd.DataFrame(X)):
            model = mixture(likelihood="auto").fit(cells)
            assert model.families_.keys() == {model.family_evidence_["winner"]}
            assert adjusted_rand_score(side, model.labels_) == 1.0
        assert mixture().fit(counts()[0]).families_.keys() == {"normal"}
        other = AnnealedDPMixture(n_chains=1, random_state=0, **CHEAP).fit(X)
        assert other.families_.keys() == {other.family_evidence_["winner"]}

    def test_sparse(self):
        X = csr_array(counts()[0])
        for likelihood in ("auto", "normal", "poisson"):
            with pytest.raises((TypeError, ValueError), match="sparse"):
                mixture(likelihood=likelihood).fit(X)
        with pytest.raises(TypeError, match="sparse.*'multinomial'"):
            mixture(likelihood="auto").fit(X)

    def test_shard_files(self, tmp_path):
        np.save(tmp_path / "a.npy", np.ones((3, 2)))
        np.save(tmp_path / "b.npy", np.ones((3, 3)))
        with pytest.raises(ValueError, match="3 columns"):
            mixture().fit([tmp_path / "a.npy", tmp_path / "b.npy"])
        with pytest.raises(FileNotFoundError, match="c.npy"):
            mixture().fit([tmp_path / "a.npy", tmp_path / "c.npy"])


def faulty(**methods):
    """Rates with some methods exchanged."""
    return type("Faulty", (Rates,), methods)()


FAULTS = {
    "log_lik nan": ("log_lik", lambda self, rows, theta, out: out.fill(np.nan)),
    "log_lik inf": ("log_lik", lambda self, rows, theta, out: out.fill(np.inf)),
    "log_lik returns": ("log_lik", lambda self, rows, theta, out: rows @ theta.T),
    "statistics shape": ("statistics", lambda self, rows, labels, n: np.zeros((n + 1, 4))),
    "statistics nan": ("statistics", lambda self, rows, labels, n: np.full((n, 4), np.nan)),
    "statistics list": ("statistics", lambda self, rows, labels, n: [0.0] * n),
    "draw shape": ("draw", lambda self, statistics, theta, rng: theta[:, :1]),
    "draw nan": ("draw", lambda self, statistics, theta, rng: theta * np.nan),
    "prior_draw shape": ("prior_draw", lambda self, n, rng: np.zeros((n + 1, 3))),
    "prior_draw type": ("prior_draw", lambda self, n, rng: np.zeros((n, 3), np.float32)),
    "log_prior shape": ("log_prior", lambda self, theta: theta),
    "log_prior nan": ("log_prior", lambda self, theta: np.full(len(theta), np.nan)),
    "proposal_draw shape": ("proposal_draw", lambda self, rows, rng: rows[:, :2] * 1.0),
    "proposal_logpdf": ("proposal_logpdf", lambda self, theta, row: np.nan * theta[:, 0]),
    "encode length": ("encode", lambda self, X: np.asarray(X)[:-1]),
}


class TestFaultyLikelihoods:
    @pytest.mark.parametrize("fault", FAULTS)
    def test_the_error_names_class_and_method(self, fault):
        name, method = FAULTS[fault]
        algorithm = "importance" if name.startswith("proposal") else "hybrid"
        model = mixture(likelihood=faulty(**{name: method}), algorithm=algorithm)
        with pytest.raises((TypeError, ValueError), match=f"Faulty.{name} must"):
            model.fit(counts()[0])
        assert unchanged(model)

    @pytest.mark.parametrize("name", ["log_lik", "statistics", "draw", "prior_draw", "log_prior"])
    def test_a_method_is_missing(self, name):
        model = mixture(likelihood=faulty(**{name: getattr(Likelihood, name)}), algorithm="slice")
        with pytest.raises(TypeError, match=f"Faulty must define the method {name}"):
            model.fit(counts()[0])
        assert unchanged(model)

    def test_proposals_where_they_are_needed(self):
        likelihood = faulty(proposal_draw=Likelihood.proposal_draw)
        for algorithm in ("accelerated", "importance"):
            with pytest.raises(TypeError, match="must define the method proposal_draw"):
                mixture(likelihood=likelihood, algorithm=algorithm).fit(counts()[0])
        mixture(likelihood=likelihood, algorithm="hybrid").fit(counts()[0])

    @pytest.mark.parametrize("algorithm", UNCOLLAPSED)
    def test_a_row_that_nothing_reaches(self, algorithm):
        def log_lik(self, rows, theta, out):
            Rates.log_lik(self, rows, theta, out)
            out[rows[:, 0] == 99] = -np.inf

        X, _ = counts()
        X[5, 0] = 99
        model = mixture(likelihood=faulty(log_lik=log_lik), algorithm=algorithm)
        with pytest.raises(ValueError, match="Faulty.log_lik: row .* likelihood 0 in every"):
            model.fit(X)
        assert unchanged(model)

    def test_a_query_that_nothing_reaches(self):
        def log_lik(self, rows, theta, out):
            Rates.log_lik(self, rows, theta, out)
            out[rows[:, 0] == 99] = -np.inf

        X, _ = counts()
        model = mixture(likelihood=faulty(log_lik=log_lik)).fit(X)
        X[5, 0] = 99
        assert model.score_samples(X)[5] == -np.inf
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)

    def test_hyperparameters_are_its_own(self):
        model = mixture(likelihood=Rates(), hyperparameters={"multinomial": 1.0})
        with pytest.raises(ValueError, match="a likelihood object has its own"):
            model.fit(counts()[0])


# ---- clusters of machines ------------------------------------------------------------------------

CASES = {"normal": "normal", "logistic_normal": "logistic_normal"}


@pytest.fixture(scope="module")
def dask():
    with dask_cluster() as client:
        yield client


def threads_and(backend, likelihood):
    X, _ = rows_for(likelihood)
    model = mixture(likelihood=likelihood, n_chains=2, n_shards=3)
    expected = clone(model).fit(X)
    with joblib.parallel_config(backend):
        assert same_bits(expected, clone(model).fit(X))


class TestClusters:
    @pytest.mark.parametrize("likelihood", CASES)
    @pytest.mark.slow  # tests/parallel/test_backends.py has a default case
    def test_dask(self, likelihood, dask):
        threads_and("dask", likelihood)

    @pytest.mark.slow
    def test_a_dask_worker_dies(self, dask):
        X, _ = two_clusters()
        expected = mixture(n_shards=3).fit(X)
        dask.wait_for_workers(2)
        killed = []

        def kill(i, chain):
            if len(chain.trace["sweeps"]) == 3:
                killed.append(kill_dask_worker(dask))

        model = mixture(n_shards=3)
        model._on_record = kill
        with joblib.parallel_config("dask"):
            assert same_bits(expected, model.fit(X))
        assert len(killed) == 1

    @pytest.mark.slow
    def test_ray(self):
        with ray_cluster():
            for likelihood in CASES:
                threads_and("ray", likelihood)


# ---- memory --------------------------------------------------------------------------------------

LARGE = """
import resource
from pathlib import Path
import numpy as np
from skanneal import AcceleratedDPMixture, AnnealedDPMixture
from skanneal.schedules import AcceleratedSchedule

MIB, N, D = 2**20, 3 * 2**16, 192           # 288 MiB of float64
def allowed():
    lines = Path("/proc/self/status").read_text().splitlines()
    data = next(int(line.split()[1]) for line in lines if line.startswith("VmData"))
    return 1024 * data + 250 * MIB          # beyond what the imports took

X = np.lib.format.open_memmap("X.npy", "w+", np.float64, (N, D))
for start in range(0, N, 2**14):
    X[start : start + 2**14, 0] = np.where(np.arange(2**14) % 2, 4.0, -4.0)
    X[start : start + 2**14, 1] = np.arange(2**14) % 7
del X
X = np.load("X.npy", mmap_mode="r")
limit = allowed()
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
model = AcceleratedDPMixture(
    likelihood="normal",
    schedule=AcceleratedSchedule(n_accelerated=1, n_exact=1),
    n_shards=32,
    random_state=0,
)
model.fit(X)
assert model.labels_.shape == (N,) and model.draws_[0][0].sizes.sum() == N
print("fitted")
try:
    np.array(X)
except MemoryError:
    print("does not fit")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the limit is on memory as Linux counts it")
def test_rows_larger_than_memory(tmp_path):
    result = run_script(LARGE, tmp_path, timeout=600)
    assert result.stdout == "fitted\ndoes not fit\n", result.stderr
