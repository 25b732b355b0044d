"""AnnealedDPMixture as its users meet it: fits, queries, reproducibility, scikit-learn's ways."""

import copy
import pickle
import time
import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from oracles.bits import same_bits
from oracles.cheap import ONE_DRAW, cheap_schedule
from oracles.reference import is_missing, log_predictive, observed
from oracles.scripts import run_script
from skanneal import AnnealedDPMixture
from skanneal.estimators._annealed import sketch
from skanneal.partition_priors import PitmanYor
from skanneal.schedules import (
    SCHEDULES,
    CustomAnneal,
    EnergyAnneal,
    LinearAnneal,
    PriorGibbs,
    SequentialGibbs,
)

NAN = float("nan")
SHORT = SequentialGibbs(n_sweeps=4)
QUERIES = ("predict", "predict_proba", "new_cluster_proba", "score_samples", "surprisal", "impute")
FAMILY_OF_MIXED = {
    "number": "normal",
    "colour": "categorical",
    "wet": "bernoulli",
    "count": "poisson",
}


def mixture(**parameters):
    """A quick estimator."""
    defaults = {"schedule": SHORT, "n_chains": 1, "random_state": 0}
    return AnnealedDPMixture(**(ONE_DRAW | defaults | parameters))


def two_clusters(n_rows=60, n_columns=2, seed=0):
    """Numbers around -4 and around 4."""
    rng = np.random.default_rng(seed)
    centres = np.where(np.arange(n_rows) % 2, 4.0, -4.0)
    return centres[:, None] + rng.normal(size=(n_rows, n_columns))


def mixed_frame(n_rows=40, seed=0, missing=True):
    """A column of every family, two clusters, a tenth of the cells missing."""
    rng = np.random.default_rng(seed)
    side = np.arange(n_rows) % 2
    X = pd.DataFrame(
        {
            "number": 3.0 * side + rng.normal(size=n_rows),
            "colour": np.where(rng.random(n_rows) < 0.2, "blue", np.where(side, "red", "green")),
            "wet": rng.random(n_rows) < 0.2 + 0.6 * side,
            "count": rng.poisson(1 + 5 * side),
        }
    )
    X = X.astype(object)
    if missing:
        X = X.mask(rng.random(X.shape) < 0.1, None)
    return X


def mixed_model(**parameters):
    """An estimator for `mixed_frame`."""
    return mixture(
        **(
            {
                "families": {"poisson": ["count"]},
                "n_chains": 2,
                "n_draws": 2,
                "thin": 2,
                "discount": 0.2,
            }
            | parameters
        )
    )


# ---- the slow oracle: what a fit says, from the public attributes of its draws ------------------


def column_hyper(draw, family, i):
    """Hyperparameters of the family's i-th column, as tests/oracles/reference.py takes them."""
    return {name: values[i] for name, values in draw.hyperparameters[family].items()}


def cluster_scores(model, draw, columns, cells, labels=None):
    """log w_c + log p(row | cluster c) for one row, the new cluster last.

    columns: list of (family, training cells), levels as codes; cells: the row's, likewise.
    """
    labels = draw.labels if labels is None else labels
    sizes = np.bincount(labels)
    weights = np.r_[sizes - draw.discount, draw.concentration + draw.discount * len(sizes)]
    out = np.log(weights / (sizes.sum() + draw.concentration))
    position = dict.fromkeys(model.families_, 0)
    for (family, training), cell in zip(columns, cells):
        hyper = column_hyper(draw, family, position[family])
        position[family] += 1
        for c in range(len(sizes) + 1):
            members = [training[i] for i in np.flatnonzero(labels == c)]
            out[c] += log_predictive(family, cell, members, hyper)
    return out


def slow_score(model, columns, cells):
    """score_samples of one row."""
    draws = [draw for chain in model.draws_ for draw in chain]
    scores = [logsumexp(cluster_scores(model, draw, columns, cells)) for draw in draws]
    return logsumexp(scores) - np.log(len(draws))


def oracle_columns(X):
    """The training columns of `mixed_frame`, levels coded in sorted order."""
    out = []
    for name, family in FAMILY_OF_MIXED.items():
        cells = X[name].tolist()
        out.append((family, [code(name, cell, X) for cell in cells]))
    return out


def code(name, cell, X):
    """A cell as the oracle takes it; a level that X lacks becomes a code that no level has."""
    if name != "colour" or is_missing(cell):
        return cell
    levels = sorted(X["colour"].dropna().unique())
    return levels.index(cell) if cell in levels else 99


def oracle_rows(query, X):
    return [[code(name, cell, X) for name, cell in row.items()] for _, row in query.iterrows()]


def same_trace(one, two):
    return all(
        np.array_equal(one.trace_[name], two.trace_[name], equal_nan=True)
        for name in one.trace_
        if name != "seconds"
    )


class TestScikitLearn:
    def test_grid_search_over_schedules_in_a_pipeline(self):
        X = two_clusters()
        pipeline = make_pipeline(StandardScaler(), mixture())
        grid = [
            {"annealeddpmixture__schedule": ["sequential_gibbs", PriorGibbs(n_sweeps=3)]},
            {
                "annealeddpmixture__schedule": [LinearAnneal()],
                "annealeddpmixture__schedule__n_sweeps": [5, 20],
            },
        ]
        search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(X)
        assert len(search.cv_results_["params"]) == 4
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        n_sweeps = [
            p.get("annealeddpmixture__schedule__n_sweeps") for p in search.cv_results_["params"]
        ]
        assert n_sweeps == [None, None, 5, 20]
        assert search.predict(X).shape == (60,)
        assert search.score(X) == pytest.approx(search.best_estimator_.score(X))

    def test_grid_search_prefers_the_better_density(self):
        X = two_clusters(200)
        search = GridSearchCV(
            mixture(),
            {"hyperparameters": ["infer", {"normal": {"mu0": 50.0, "kappa0": 100.0}}]},
            cv=2,
        ).fit(X)
        assert search.best_params_["hyperparameters"] == "infer"

    def test_label_scorers_and_cross_validation(self):
        X = two_clusters()
        scores = cross_val_score(
            mixture(n_draws=10), X, np.arange(60) % 2, scoring="adjusted_rand_score", cv=3
        )
        assert (scores == 1.0).all()

    def test_strata_pass_through_grid_search(self):
        X = two_clusters()
        schedule = LinearAnneal(n_sweeps=3, final_sweeps=1, selection="stratified")
        search = GridSearchCV(
            mixture(schedule=schedule), {"n_draws": [1, 2]}, cv=2, error_score="raise"
        )
        search.fit(X, strata=np.arange(60) % 3)
        assert search.best_estimator_.n_clusters_ == 2

    def test_clone_pickle_and_copy(self):
        X = mixed_frame()
        model = mixed_model(schedule=LinearAnneal(n_sweeps=4)).fit(X)
        fresh = clone(model)
        assert not hasattr(fresh, "draws_") and fresh.schedule is not model.schedule
        assert same_bits(model, fresh.fit(X))
        for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)):
            assert same_bits(model, twin)
            np.testing.assert_array_equal(twin.score_samples(X), model.score_samples(X))
            assert twin.impute(X).equals(model.impute(X))

    def test_repr_and_parameters(self):
        assert repr(AnnealedDPMixture()) == "AnnealedDPMixture()"
        model = AnnealedDPMixture(schedule=LinearAnneal(n_sweeps=7))
        assert model.get_params()["schedule__n_sweeps"] == 7
        assert "n_components=" in repr(mixture().fit(two_clusters()).draws_[0][0])

    @pytest.mark.parametrize("query", QUERIES)
    def test_not_fitted(self, query):
        with pytest.raises(NotFittedError):
            getattr(AnnealedDPMixture(), query)([[1.0]])
        with pytest.raises(NotFittedError):
            AnnealedDPMixture().sample()


class TestFit:
    def test_labels(self):
        X = two_clusters()
        model = mixture(n_chains=2, n_draws=2)
        labels = model.fit_predict(X)
        assert labels is model.labels_ and labels.dtype == np.int64
        assert sorted(set(labels)) == list(range(model.n_clusters_)) and model.n_clusters_ == 2
        np.testing.assert_array_equal(model.predict(X), labels)
        best = max((draw for chain in model.draws_ for draw in chain), key=lambda d: d.log_joint)
        assert np.array_equal(best.labels[:, None] == best.labels, labels[:, None] == labels)

    @pytest.mark.parametrize("method", ["map", "vi", "binder"])
    def test_point_estimates(self, method):
        X = np.random.default_rng(1).normal(size=(40, 2)) * [1, 3]
        model = mixture(n_chains=3, n_draws=2, point_estimate=method, concentration=5.0).fit(X)
        assert sorted(set(model.labels_)) == list(range(model.n_clusters_))
        assert model.predict_proba(X).shape == (40, model.n_clusters_)

    @pytest.mark.parametrize("name", SCHEDULES)
    def test_every_schedule_by_name(self, name):
        model = mixture(schedule=cheap_schedule(name)).fit(two_clusters(30))
        assert type(model.schedule_) is type(SCHEDULES[name])
        assert model.trace_["n_assigned"][0, -1] == 30
        assert model.labels_.shape == (30,)

    @pytest.mark.parametrize("selection", ["random", "window", "stratified"])
    @pytest.mark.parametrize("schedule", [LinearAnneal, EnergyAnneal])
    @pytest.mark.few(3)
    def test_every_selection(self, schedule, selection):
        model = mixture(schedule=schedule(n_sweeps=10, selection=selection)).fit(two_clusters())
        assert not set(model.labels_[::2]) & set(model.labels_[1::2])
        assert model.n_clusters_ <= 3

    def test_moves(self):
        X = two_clusters()
        gibbs, both, auto = (
            mixture(moves=moves).fit(X) for moves in (("gibbs",), ["gibbs", "split_merge"], "auto")
        )
        assert same_bits(both, auto) and not same_bits(gibbs, auto)

    def test_draws(self):
        model = mixed_model().fit(mixed_frame())
        assert [len(chain) for chain in model.draws_] == [2, 2]
        for draw in model.draws_[0] + model.draws_[1]:
            assert draw.labels.shape == (40,)
            assert sorted(set(draw.labels)) == list(range(draw.n_components))
            np.testing.assert_array_equal(np.bincount(draw.labels), draw.sizes)
            assert draw.discount == 0.2 and draw.concentration > 0 and np.isfinite(draw.log_joint)
            assert set(draw.hyperparameters) == set(model.families_)

    def test_log_joint_is_the_chain_rule_of_predictives(self):
        X = mixed_frame(20)
        model = mixed_model().fit(X)
        columns, rows = oracle_columns(X), oracle_rows(X, X)
        draw = model.draws_[1][1]
        grid = PitmanYor.grid(20, "infer", model.discount)
        total = grid.log_weights[grid.place(PitmanYor(draw.concentration, draw.discount))]
        for i in range(20):
            seen = draw.labels[:i]
            clusters = list(dict.fromkeys(seen))
            labels = np.array([clusters.index(label) for label in seen], dtype=int)
            own = draw.labels[i]
            c = clusters.index(own) if own in clusters else len(clusters)
            before = [(family, cells[:i]) for family, cells in columns]
            if i == 0:  # the first row opens a cluster with probability one
                total += sum(
                    log_predictive(family, cell, [], column_hyper(draw, family, 0))
                    for (family, _), cell in zip(columns, rows[0])
                )
            else:
                total += cluster_scores(model, draw, before, rows[i], labels)[c]
        assert draw.log_joint == pytest.approx(total, abs=1e-4)

    @pytest.mark.filterwarnings("ignore:The chains do not agree")
    @pytest.mark.parametrize("n_draws, thin", [(1, 1), (3, 1), (3, 4)])
    @pytest.mark.few(1)
    def test_sweeps_add_up(self, n_draws, thin):
        X = two_clusters()
        for s in (1, 5, 6.5):
            model = mixture(
                schedule=SequentialGibbs(n_sweeps=s),
                n_draws=n_draws,
                thin=thin,
                warm_start=True,
                n_chains=2,
            ).fit(X)
            total = s + (n_draws - 1) * thin
            assert model.n_sweeps_ == total and model.n_iter_ == np.ceil(total)
            np.testing.assert_array_equal(model.trace_["sweeps"][:, -1], total)
            model.fit(X)
            assert model.n_sweeps_ == total + n_draws * thin
            np.testing.assert_array_equal(model.trace_["sweeps"][:, -1], total + n_draws * thin)
            assert [len(chain) for chain in model.draws_] == [n_draws] * 2

    def test_n_sweeps_includes_final_sweeps(self):
        model = mixture(schedule=LinearAnneal(n_sweeps=8, final_sweeps=3)).fit(two_clusters())
        sweeps, n_assigned = model.trace_["sweeps"][0], model.trace_["n_assigned"][0]
        assert sweeps[-1] == 8
        np.testing.assert_array_equal(n_assigned, np.ceil(np.minimum(12 * sweeps, 60).round(9)))

    def test_trace(self):
        model = mixture(n_chains=3, n_draws=3, schedule=LinearAnneal(n_sweeps=6)).fit(
            two_clusters()
        )
        shapes = {values.shape for values in model.trace_.values()}
        assert shapes == {model.trace_["sweeps"].shape} and model.trace_["sweeps"].shape[0] == 3
        assert set(model.trace_) == {
            "seconds",
            "sweeps",
            "n_assigned",
            "n_components",
            "log_joint",
            "concentration",
            "discount",
        }
        assert (np.diff(model.trace_["sweeps"], axis=1) > 0).all()
        assert (np.diff(model.trace_["seconds"], axis=1) >= 0).all()
        for chain, sweeps, log_joint in zip(
            model.draws_, model.trace_["sweeps"], model.trace_["log_joint"]
        ):
            at = [np.flatnonzero(sweeps == s)[0] for s in (6, 7, 8)]
            np.testing.assert_array_equal([draw.log_joint for draw in chain], log_joint[at])

    def test_warm_start_goes_on_where_the_chain_was(self):
        X = mixed_frame()
        whole = mixed_model(n_draws=3, thin=2).fit(X)
        first = mixed_model(n_draws=1, thin=2, warm_start=True).fit(X)
        first = pickle.loads(pickle.dumps(first)).set_params(n_draws=2).fit(X)
        for together, after in zip(whole.draws_, first.draws_):
            for a, b in zip(together[1:], after):
                assert all(np.array_equal(a.arrays[name], b.arrays[name]) for name in a.arrays)

    def test_strata(self):
        X = two_clusters()
        model = mixture(schedule=LinearAnneal(n_sweeps=4, selection="stratified"))
        names = np.array(["b", "a", "c"])[np.arange(60) % 3]
        one = clone(model).fit(X, strata=names)
        assert same_bits(one, clone(model).fit(X, strata=np.arange(60) % 3 + 7))
        assert same_bits(one, clone(model).fit(X, strata=pd.Series(names)))
        assert not same_bits(one, clone(model).fit(X, strata=np.arange(60) < 30))
        gaps = np.where(np.arange(60) % 3 == 0, NAN, np.arange(60) % 3)
        assert same_bits(one, clone(model).fit(X, strata=gaps))
        np.testing.assert_array_equal(clone(model).fit_predict(X, strata=names), one.labels_)
        assert same_bits(clone(model).fit(X), clone(model).set_params(n_jobs=2).fit(X))

    def test_sketch_sets_the_rare_apart(self, monkeypatch):
        X = np.random.default_rng(0).normal(size=(3000, 3))
        X[:15] += 12
        found = []
        monkeypatch.setattr(
            "skanneal.estimators._annealed.sketch",
            lambda *given: found.append(sketch(*given)) or found[0],
        )
        mixture(schedule=LinearAnneal(n_sweeps=2, final_sweeps=0, selection="stratified")).fit(X)
        (strata,) = found
        rare = set(strata[:15])
        assert len(rare) == 1 and not rare & set(strata[15:])

    def test_chains_that_disagree(self):
        rng = np.random.default_rng(0)
        centres = rng.normal(size=(20, 8)) * 30
        X = centres[np.arange(400) % 20] + rng.normal(size=(400, 8))
        model = mixture(
            schedule=PriorGibbs(n_sweeps=25),
            moves=("gibbs",),
            n_chains=4,
            concentration=1.0,
            hyperparameters={"normal": {"mu0": 0.0, "kappa0": 0.01, "nu0": 4.0, "sigma2_0": 1.0}},
        )
        with pytest.warns(ConvergenceWarning, match="not on the density.* n_sweeps") as record:
            model.fit(X)
        assert record[0].filename == __file__
        assert model.r_hat_["log_joint"] > 1.1
        assert model.n_clusters_ == 20  # components beneath several clusters are parted
        with warnings.catch_warnings():  # all chains in the one partition: rounding alone differs
            warnings.simplefilter("error")
            model.set_params(schedule=SequentialGibbs(n_sweeps=25)).fit(X)
        assert np.isnan(model.r_hat_["log_joint"]) and model.n_components_ == 20

    def test_diagnostics_where_the_final_stage_is_short_and_long(self):
        names = {"n_components", "log_joint", "concentration", "discount"}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = mixture(n_chains=2, schedule=SequentialGibbs(n_sweeps=2)).fit(two_clusters())
            assert set(model.r_hat_) == set(model.ess_) == names
            assert np.isnan([*model.r_hat_.values(), *model.ess_.values()]).all()
            model = mixture(n_chains=4, schedule=SequentialGibbs(n_sweeps=200)).fit(two_clusters())
        assert model.r_hat_["log_joint"] < 1.1 and model.ess_["log_joint"] > 50
        assert np.isnan(model.r_hat_["discount"])


class TestReproducibility:
    def test_jobs_and_backends(self):
        X = mixed_frame()
        one = mixed_model(n_chains=3).fit(X)
        fits = [mixed_model(n_chains=3, n_jobs=1).fit(X), mixed_model(n_chains=3, n_jobs=2).fit(X)]
        for backend in ("threading", "loky"):
            with joblib.parallel_config(backend=backend, n_jobs=2):
                fits.append(mixed_model(n_chains=3).fit(X))
        for fit in fits:
            assert same_bits(one, fit) and same_trace(one, fit)
            np.testing.assert_array_equal(one.score_samples(X), fit.score_samples(X))

    def test_nested_in_grid_search(self):
        X = two_clusters()
        searches = [
            GridSearchCV(mixture(n_chains=2, n_jobs=inner), {"thin": [1, 2]}, cv=2, n_jobs=outer)
            for inner, outer in ((None, None), (2, 2))
        ]
        one, two = (search.fit(X) for search in searches)
        np.testing.assert_array_equal(
            one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"]
        )
        assert same_bits(one.best_estimator_, two.best_estimator_)

    def test_int_and_seed_sequence_stay(self):
        X = two_clusters()
        seed = np.random.SeedSequence(5)
        model = mixture(random_state=seed)
        one = clone(model).fit(X)
        assert same_bits(one, model.fit(X)) and same_bits(one, model.fit(X))
        assert seed.n_children_spawned == 0
        assert same_bits(one, mixture(random_state=5).fit(X))
        assert not same_bits(one, mixture(random_state=6).fit(X))

    @pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
    def test_generators_advance(self, make):
        X = np.random.default_rng(0).normal(size=(40, 2))
        model = mixture(random_state=make(3))
        one, two = copy.copy(model.fit(X)), model.fit(X)
        assert not same_bits(one, two)
        assert same_bits(one, mixture(random_state=make(3)).fit(X))

    def test_none_is_the_global_state(self):
        X = np.random.default_rng(0).normal(size=(40, 2))
        np.random.seed(3)  # noqa: NPY002
        one, two = mixture(random_state=None).fit(X), mixture(random_state=None).fit(X)
        np.random.seed(3)  # noqa: NPY002
        assert same_bits(one, mixture(random_state=None).fit(X)) and not same_bits(one, two)

    def test_chains_differ(self):
        X = np.random.default_rng(0).normal(size=(40, 2))
        chains = mixture(n_chains=3).fit(X).draws_
        assert len({chain[0].log_joint for chain in chains}) == 3

    def test_queries_do_not_depend_on_the_batch(self):
        X = mixed_frame()
        model = mixed_model().fit(X)
        for query in ("score_samples", "predict_proba", "new_cluster_proba", "surprisal"):
            whole = getattr(model, query)(X)
            rows = np.concatenate([getattr(model, query)(X.iloc[i : i + 1]) for i in range(40)])
            np.testing.assert_allclose(rows, whole, rtol=1e-12, atol=1e-14)


class TestTime:
    @pytest.mark.parametrize(
        "schedule",
        [
            SequentialGibbs(max_time=0.6),
            LinearAnneal(max_time=0.6),
            EnergyAnneal(max_time=0.6),
        ],
    )
    @pytest.mark.few(1)
    def test_max_time_is_obeyed_and_the_realised_schedule_refits(self, schedule):
        X = two_clusters(300)
        began = time.perf_counter()
        model = mixture(families="normal", schedule=schedule).fit(X)
        elapsed = time.perf_counter() - began
        # a sweep takes a millisecond; the rest is room for a machine that is busy elsewhere
        assert elapsed < 0.6 + 1.0
        assert model.trace_["seconds"][0, -1] > 0.4
        assert isinstance(model.schedule_, CustomAnneal) and model.schedule_.max_time is None
        again = clone(model).set_params(schedule=model.schedule_).fit(X)
        assert same_bits(model, again) and again.n_sweeps_ == model.n_sweeps_
        assert clone(model).schedule.max_time == 0.6

    def test_too_little_time_still_assigns_every_row(self):
        model = mixture(schedule=LinearAnneal(n_sweeps=50, max_time=1e-6)).fit(two_clusters(300))
        assert (model.draws_[0][0].labels >= 0).all()
        assert (
            model.n_sweeps_ < 25
        )  # it is about 1, but a busy machine tells late that time is over
        assert model.trace_["n_assigned"][0, -1] == 300

    def test_traces_of_chains_that_differ_in_length_end_with_nan(self):
        model = mixture(schedule=LinearAnneal(max_time=0.1), n_chains=3).fit(two_clusters(300))
        for values in model.trace_.values():
            gone = np.isnan(values)
            assert not gone.all(axis=0).any() and (np.diff(gone.astype(int), axis=1) >= 0).all()
        assert model.n_sweeps_ == np.nanmax(model.trace_["sweeps"])


INTERRUPTED = """
import warnings
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from oracles.scripts import interrupt_chains
from skanneal import AnnealedDPMixture
from skanneal.schedules import LinearAnneal, SequentialGibbs

rng = np.random.default_rng(0)
X = np.where(np.arange(2000) % 2, 4.0, -4.0)[:, None] + rng.normal(size=(2000, 3))
for schedule in (LinearAnneal(n_sweeps=1e6), SequentialGibbs(n_sweeps=1e6)):
    for n_jobs in (1, 2):
        model = AnnealedDPMixture(schedule=schedule, n_chains=2, n_jobs=n_jobs, random_state=0)
        with interrupt_chains(n_jobs), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X)
        assert any("interrupted" in str(w.message) and w.category is ConvergenceWarning
                   and w.filename == __file__ for w in caught), caught
        assert len(model.draws_) == n_jobs, len(model.draws_)
        for (draw,) in model.draws_:
            assert draw.sizes.sum() == 2000 and draw.labels.min() == 0
        assert model.labels_.shape == (2000,) and np.isfinite(model.score(X))
        assert model.predict_proba(X).shape == (2000, model.n_clusters_)
        assert len(model.sample(3)) == 3
        model.set_params(schedule="anneal", n_chains=n_jobs).fit(X[:100])
        assert model.n_clusters_ == 2 and len(model.labels_) == 100
print("usable")
"""


class TestInterruptsAndErrors:
    @pytest.mark.slow
    def test_an_interrupt_leaves_a_usable_fit(self, tmp_path):
        result = run_script(INTERRUPTED, tmp_path)
        assert result.stdout == "usable\n", result.stderr

    def test_an_error_leaves_no_attribute(self):
        model = mixture()
        with pytest.raises(ValueError, match="infinity"):
            model.fit([[1.0], [np.inf]])
        assert set(vars(model)) == set(model.get_params(deep=False))

    @pytest.mark.parametrize(
        "where",
        [
            "estimators._base_chains.run_chain",
            "estimators._annealed.prepare",
            "predictive._point.point_estimate",
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
        assert set(vars(fresh)) == set(fresh.get_params(deep=False))
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[name] is before[name] for name in before)


class TestContainers:
    def test_mixed_containers_agree_and_stay(self):
        X = mixed_frame()
        model = mixed_model(families={"poisson": [3]}).fit(X)
        plain = [
            [None if is_missing(cell) else cell for cell in row] for row in X.to_numpy().tolist()
        ]
        schema = {"number": pl.Float64, "colour": pl.String, "wet": pl.Boolean, "count": pl.Int64}
        tables = [
            plain,
            np.array(plain, dtype=object),
            pl.DataFrame(plain, schema=schema, orient="row"),
            X.astype({"number": float, "wet": "boolean", "count": "Int64"}),
        ]
        for table in tables:
            before = copy.deepcopy(table)
            other = mixed_model(families={"poisson": [3]}).fit(table)
            assert same_bits(model, other), type(table)
            for query in ("score_samples", "predict_proba", "new_cluster_proba", "surprisal"):
                np.testing.assert_array_equal(
                    getattr(other, query)(table), getattr(model, query)(X)
                )
            filled = other.impute(table)
            assert type(filled) is type(table)
            cells = [
                list(row)
                for row in (
                    filled.rows()
                    if isinstance(filled, pl.DataFrame)
                    else filled.to_numpy().tolist()
                    if hasattr(filled, "to_numpy")
                    else filled
                )
            ]
            expected = model.impute(X).to_numpy().tolist()
            for row, other_row in zip(cells, expected):
                assert row[:3] == other_row[:3] and row[3] == pytest.approx(other_row[3])
            if isinstance(table, pd.DataFrame | pl.DataFrame):
                assert table.equals(before)
            else:
                assert pickle.dumps(table) == pickle.dumps(before)

    def test_read_only_memory_map(self, tmp_path):
        X = two_clusters()
        X[3, 1] = NAN
        path = tmp_path / "X.npy"
        np.save(path, X)
        stored = path.read_bytes()
        mapped = np.load(path, mmap_mode="r")
        model, other = mixture().fit(X), mixture().fit(mapped)
        assert same_bits(model, other)
        for query in QUERIES:
            np.testing.assert_array_equal(getattr(other, query)(mapped), getattr(model, query)(X))
        assert path.read_bytes() == stored

    @pytest.mark.parametrize("dtype", [np.float32, "F", "reversed"])
    def test_layouts_and_dtypes(self, dtype):
        X = two_clusters().astype(np.float32)
        Y = {"F": np.asfortranarray(X), "reversed": X[::-1][::-1]}.get(dtype, X.astype(np.float64))
        assert same_bits(mixture().fit(X), mixture().fit(Y))

    def test_large_arrays_are_mapped_into_workers(self):
        X = np.random.default_rng(0).normal(size=(60_000, 6))
        model = mixture(
            n_chains=2,
            schedule=SequentialGibbs(n_sweeps=1),
            hyperparameters={"normal": {"mu0": 0.0, "kappa0": 1.0, "nu0": 1.0, "sigma2_0": 1.0}},
        )
        one = clone(model).fit(X)
        with joblib.parallel_config(backend="loky", n_jobs=2):
            assert same_bits(one, clone(model).fit(X))


@pytest.fixture(scope="module")
def fitted():
    X = mixed_frame()
    return mixed_model().fit(X), X


@pytest.fixture
def query():
    query = mixed_frame(12, seed=1)
    query.loc[0] = [None, None, None, None]
    query.loc[1] = [0.5, "violet", True, 2]  # a level of which the fit knows nothing
    query.loc[2] = [1e4, "red", False, 300]
    return query


class TestQueries:
    def test_score_samples_against_the_oracle(self, fitted, query):
        model, X = fitted
        columns = oracle_columns(X)
        expected = [slow_score(model, columns, row) for row in oracle_rows(query, X)]
        np.testing.assert_allclose(model.score_samples(query), expected, rtol=2e-6, atol=2e-6)
        assert model.score(query) == pytest.approx(np.mean(expected), rel=1e-5)
        assert expected[0] == pytest.approx(0, abs=1e-12)

    def test_the_oracle_notices_a_wrong_hyperparameter(self, fitted, query):
        model, X = fitted
        columns, row = oracle_columns(X), oracle_rows(query, X)[1]
        draw = copy.deepcopy(model.draws_[0][0])
        right = logsumexp(cluster_scores(model, draw, columns, row))
        draw.arrays["normal/kappa0"] = draw.arrays["normal/kappa0"] * 1.01 + 0.01
        assert abs(logsumexp(cluster_scores(model, draw, columns, row)) - right) > 1e-5

    def test_new_cluster_proba_against_the_oracle(self, fitted, query):
        model, X = fitted
        columns = oracle_columns(X)
        draws = [draw for chain in model.draws_ for draw in chain]
        expected = []
        for row in oracle_rows(query, X):
            scores = [cluster_scores(model, draw, columns, row) for draw in draws]
            new = logsumexp([score[-1] for score in scores])
            expected.append(np.exp(new - logsumexp([logsumexp(score) for score in scores])))
        np.testing.assert_allclose(model.new_cluster_proba(query), expected, rtol=1e-5)

    def test_new_cluster_proba_far_away(self):
        X = two_clusters(200)
        model = mixture(n_chains=2).fit(X)
        far = model.new_cluster_proba([[1e4, -1e4], [0.0, 1e7]])
        near = model.new_cluster_proba(X)
        assert (far > 0.99).all() and (far <= 1).all() and near.max() < 0.5 and near.min() > 0

    def test_predict_proba_against_the_oracle(self, fitted, query):
        model, X = fitted
        model = clone(model).set_params(point_estimate="map").fit(X)
        columns = oracle_columns(X)
        best = max((draw for chain in model.draws_ for draw in chain), key=lambda d: d.log_joint)
        proba = model.predict_proba(query)
        assert proba.shape == (12, model.n_clusters_)
        np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-12)
        np.testing.assert_array_equal(model.predict(query), proba.argmax(axis=1))
        for row, got in zip(oracle_rows(query, X), proba):
            scores = cluster_scores(model, best, columns, row, labels=model.labels_)[:-1]
            np.testing.assert_allclose(
                got, np.exp(scores - logsumexp(scores)), rtol=1e-5, atol=1e-9
            )

    def test_surprisal_is_a_difference_of_scores(self, fitted, query):
        model, _ = fitted
        surprisal = np.asarray(model.surprisal(query))
        assert surprisal.shape == query.shape
        whole = model.score_samples(query)
        for j, name in enumerate(query.columns):
            without = query.copy()
            without[name] = None
            expected = model.score_samples(without) - whole
            expected[query[name].isna()] = NAN
            np.testing.assert_allclose(surprisal[:, j], expected, rtol=1e-9, atol=1e-9)

    def test_impute(self, fitted, query):
        model, X = fitted
        before = query.copy()
        filled = model.impute(query)
        assert type(filled) is pd.DataFrame and query.equals(before)
        assert filled.notna().to_numpy().all() and list(filled.columns) == list(X.columns)
        there = query.notna().to_numpy()
        np.testing.assert_array_equal(filled.to_numpy()[there], query.to_numpy()[there])
        columns = oracle_columns(X)
        draws = [draw for chain in model.draws_ for draw in chain]
        levels = sorted(X["colour"].dropna().unique())
        for i in np.flatnonzero(~there.all(axis=1)):
            row = oracle_rows(query.iloc[[i]], X)[0]
            scores = [cluster_scores(model, draw, columns, row) for draw in draws]
            total = logsumexp(np.concatenate(scores))
            if query["number"].isna()[i]:
                mean = sum(
                    np.exp(s - total) @ centres(draw, columns[0][1])
                    for s, draw in zip(scores, draws)
                )
                assert filled["number"][i] == pytest.approx(mean, abs=1e-5)
            if query["colour"].isna()[i]:
                chances = [
                    slow_score(model, columns, [row[0], level, *row[2:]])
                    for level in range(len(levels))
                ]
                assert filled["colour"][i] == levels[int(np.argmax(chances))]

    def test_every_query_takes_missing_cells_even_where_the_fit_had_none(self):
        X = mixed_frame(missing=False)
        model = mixed_model().fit(X)
        gaps = mixed_frame(seed=3)
        assert gaps.isna().to_numpy().any()
        for query in QUERIES:
            answer = getattr(model, query)(gaps)
            assert len(answer) == 40
            if query not in ("impute", "surprisal"):
                assert np.isfinite(answer).all()
        assert np.array_equal(np.isnan(model.surprisal(gaps)), gaps.isna().to_numpy())

    @pytest.mark.parametrize("discount", [0.0, 0.5])
    def test_density_integrates_to_one(self, discount):
        X = two_clusters(n_columns=1)
        model = mixture(discount=discount, n_chains=2).fit(100 + 7 * X)
        u = np.linspace(-25, 25, 20_001)  # sinh reaches into the heavy tails of a new cluster
        points = 100 + 30 * np.sinh(u)
        density = np.exp(model.score_samples(points[:, None])) * 30 * np.cosh(u)
        assert np.trapezoid(density, u) == pytest.approx(1, abs=1e-4)

    def test_probabilities_sum_to_one(self):
        X = pd.DataFrame({"a": list("xyzzy") * 4, "b": [True, False] * 10})
        model = mixture(n_chains=2).fit(X)
        every = pd.DataFrame([(a, b) for a in "xyz" for b in (True, False)], columns=["a", "b"])
        assert np.exp(model.score_samples(every)).sum() == pytest.approx(1, rel=1e-12)
        model = mixture(families="poisson").fit([[3], [5], [40], [4], [44]])
        counts = np.arange(20_000)[:, None]
        assert np.exp(model.score_samples(counts)).sum() == pytest.approx(1, abs=1e-6)

    def test_an_unseen_level_gets_the_least_pseudo_count(self):
        X = [["a"], ["b"], ["b"], ["c"], ["b"]]
        model = mixture(concentration=1.5, hyperparameters={"categorical": [0.5, 1.0, 2.0]}).fit(X)
        ((draw,),) = model.draws_
        weights = np.r_[draw.sizes, 1.5] / 6.5
        expected = np.log(np.sum(weights * 0.5 / (np.r_[draw.sizes, 0] + 3.5 + 0.5)))
        np.testing.assert_allclose(model.score_samples([["z"], ["never"]]), expected, rtol=1e-12)
        assert np.exp(model.score_samples([["a"], ["b"], ["c"]])).sum() == pytest.approx(1)

    def test_noise_on_a_large_offset_against_the_oracle(self):
        X = 2952788047.4 + two_clusters(30, 1)
        model = mixture().fit(X)
        columns = [("normal", X[:, 0].tolist())]
        for x in X[:6, 0]:
            expected = slow_score(model, columns, [x])
            assert model.score_samples([[x]])[0] == pytest.approx(expected, abs=2e-6)

    @pytest.mark.parametrize(
        "scale, shift",
        [
            (1.0, 2952788047.4),
            (3.7, -12.0),
            (1e-7, 0.0),
            (1e9, 1e10),
            (1e150, 0.0),
        ],
    )
    @pytest.mark.slow
    def test_offset_and_scale_do_not_show(self, scale, shift):
        X = two_clusters(100, 3)
        X[:, 0] = (X[:, 0] + 2952788047.4) - 2952788047.4  # what float64 keeps of it up there
        X[7, 0] = NAN
        Y = X.copy()
        Y[:, 0] = scale * X[:, 0] + shift
        one, two = mixture(n_draws=2).fit(X), mixture(n_draws=2).fit(Y)
        np.testing.assert_array_equal(one.labels_, two.labels_)
        log_scale = np.where(np.isnan(X[:, 0]), 0, np.log(scale))
        np.testing.assert_allclose(
            two.score_samples(Y), one.score_samples(X) - log_scale, rtol=0, atol=1e-6
        )
        for a, b in zip(one.draws_[0], two.draws_[0]):
            assert b.log_joint == pytest.approx(a.log_joint - log_scale.sum(), abs=1e-3)

    def test_sample_has_the_density_of_score_samples(self):
        X = two_clusters(n_columns=1)
        model = mixture(n_chains=2, n_draws=2, random_state=1).fit(X)
        rows = model.sample(20_000, random_state=1)
        assert rows.shape == (20_000, 1) and rows.dtype == X.dtype
        u = np.linspace(-20, 20, 20_001)
        points = 2 * np.sinh(u)

        def cdf(scores):
            density = np.exp(scores) * 2 * np.cosh(u)
            cumulative = np.r_[0, np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(u))]
            return lambda x: np.interp(x, points, cumulative / cumulative[-1])

        right = cdf(model.score_samples(points[:, None]))
        assert stats.kstest(rows[:, 0], right).pvalue > 1e-4
        wrong = cdf(model.score_samples(points[:, None] - 0.1))
        assert stats.kstest(rows[:, 0], wrong).pvalue < 1e-4

    def test_sample_has_the_joint_probabilities_of_score_samples(self):
        rng = np.random.default_rng(0)
        side = rng.random(200) < 0.4
        X = pd.DataFrame(
            {
                "level": np.where(side, "a", rng.choice(list("abc"), 200)),
                "flag": rng.random(200) < np.where(side, 0.9, 0.2),
                "count": rng.poisson(np.where(side, 4, 0.5)),
            }
        )
        model = mixture(families={"poisson": ["count"]}, n_chains=2).fit(X)
        rows = model.sample(20_000, random_state=1)
        assert list(rows.columns) == list(X.columns)
        assert [str(a) for a in rows.dtypes] == [str(a) for a in X.dtypes]
        cells = pd.DataFrame(
            [(a, b, c) for a in "abc" for b in (True, False) for c in range(8)], columns=X.columns
        )
        seen = rows.value_counts().reindex(pd.MultiIndex.from_frame(cells), fill_value=0).to_numpy()

        def p_value(probabilities):
            expected = np.r_[probabilities, 1 - probabilities.sum()] * len(rows)
            return stats.chisquare(np.r_[seen, len(rows) - seen.sum()], expected).pvalue

        right = np.exp(model.score_samples(cells))
        assert p_value(right) > 1e-4
        alone = 0.0  # as if the columns were drawn on their own
        for name in X.columns:
            one = cells.astype(object)
            one.loc[:, one.columns != name] = None
            alone = alone + model.score_samples(one)
        assert p_value(np.exp(alone)) < 1e-4

    def test_sample_containers_and_seeds(self):
        X = mixed_frame()
        model = mixed_model().fit(X)
        rows = model.sample(5)
        assert type(rows) is pd.DataFrame and list(rows.columns) == list(X.columns)
        assert rows.equals(model.sample(5))
        assert not rows.equals(copy.copy(model).set_params(random_state=9).sample(5))
        rows = mixed_model(families={"poisson": [3]}).fit(X.to_numpy().tolist()).sample(2)
        assert type(rows) is list and len(rows) == 2 and len(rows[0]) == 4


def centres(draw, cells):
    """Predictive mean of the first normal column in each cluster, a new one last."""
    hyper = column_hyper(draw, "normal", 0)
    out = []
    for c in range(draw.n_components + 1):
        members = observed([cells[i] for i in np.flatnonzero(draw.labels == c)])
        out.append(
            (hyper["kappa0"] * hyper["mu0"] + sum(members)) / (hyper["kappa0"] + len(members))
        )
    return np.array(out)


FIXED = {
    "normal": {"mu0": 1.25, "kappa0": 0.5, "nu0": 3.0, "sigma2_0": 2.5},
    "categorical": {"pseudo_counts": [0.5, 1.0, 2.0]},
    "bernoulli": {"a": 0.7, "b": 1.9},
    "poisson": {"shape": 1.5, "rate": 0.3},
}


class TestHyperparameters:
    def test_all_fixed(self):
        model = mixed_model(hyperparameters=FIXED).fit(mixed_frame())
        for draw in model.draws_[0] + model.draws_[1]:
            for family, values in FIXED.items():
                for name, value in values.items():
                    np.testing.assert_allclose(
                        draw.hyperparameters[family][name][0], value, rtol=1e-12
                    )
        grids = model.hyperparameter_grids_
        assert [grids[family] for family in FIXED] == [{}] * len(FIXED)

    @pytest.mark.parametrize(
        "given, name, expected",
        [
            ({"normal": {"mu0": [1.0, 20.0, 3.0]}}, "mu0", [1, 20, 3]),
            ({"normal": {"sigma2_0": np.array([1.0, 2.0, 3.0])}}, "sigma2_0", [1, 2, 3]),
            ({"normal": (0.5, 2, 3.0, [4.0, 5.0, 6.0])}, "sigma2_0", [4, 5, 6]),
            ({"normal": [0.5, 2, 3.0, 4.0]}, "kappa0", [2, 2, 2]),
        ],
    )
    def test_forms_of_normal(self, given, name, expected):
        X = 1000 + 30 * two_clusters(n_columns=3)
        model = mixture(hyperparameters=given, families="normal").fit(X)
        got = model.draws_[0][0].hyperparameters["normal"][name]
        np.testing.assert_allclose(got, expected, rtol=1e-9)

    @pytest.mark.parametrize(
        "given, expected",
        [
            (0.25, [[0.25] * 3, [0.25] * 2]),
            ({"pseudo_counts": 0.25}, [[0.25] * 3, [0.25] * 2]),
            ([np.array([1.0, 2.0, 3.0]), [4.0, 5.0]], [[1, 2, 3], [4, 5]]),
            ({"pseudo_counts": [[1, 2, 3], 7]}, [[1, 2, 3], [7, 7]]),
        ],
    )
    def test_forms_of_categorical(self, given, expected):
        X = [["a", "x"], ["b", "y"], ["c", "x"], ["a", "y"]]
        model = mixture(hyperparameters={"categorical": given}).fit(X)
        got = model.draws_[0][0].hyperparameters["categorical"]["pseudo_counts"]
        assert [values.tolist() for values in got] == expected

    def test_what_a_draw_says_can_be_given(self):
        X = mixed_frame()
        first = mixed_model().fit(X).draws_[0][0].hyperparameters
        second = mixed_model(hyperparameters=first).fit(X).draws_[1][1].hyperparameters
        for family in first:
            for name in first[family]:
                np.testing.assert_allclose(second[family][name], first[family][name], rtol=1e-12)

    def test_families_and_names_left_out_are_inferred(self):
        X = mixed_frame()
        model = mixed_model(hyperparameters={"normal": {"nu0": 7.0}}, n_draws=6).fit(X)
        draws = model.draws_[0] + model.draws_[1]
        values = {
            (family, name): {
                float(np.ravel(draw.hyperparameters[family][name][0])[0]) for draw in draws
            }
            for family in FIXED
            for name in FIXED[family]
        }
        assert values.pop(("normal", "nu0")) == {7.0}
        assert all(len(seen) > 1 for seen in values.values())
        grids = model.hyperparameter_grids_
        for (family, name), seen in values.items():
            grid = grids[family][name][0]
            grid = grid[0] if family == "categorical" else grid
            assert all(np.isclose(grid, value, rtol=1e-9).any() for value in seen)

    def test_user_units(self):
        """Fixed in the units of X, they mean the same whatever the encoding does."""
        X = 1000 + 30 * two_clusters(n_columns=1)
        fixed = {"normal": {"mu0": 900.0, "kappa0": 0.2, "nu0": 4.0, "sigma2_0": 700.0}}
        model = mixture(hyperparameters=fixed).fit(X)
        columns = [("normal", X[:, 0].tolist())]
        for x in (850.0, 1100.0, 5000.0):
            assert model.score_samples([[x]])[0] == pytest.approx(
                slow_score(model, columns, [x]), rel=1e-6
            )

    @pytest.mark.parametrize(
        "given, message",
        [
            ({"gaussian": {"mu0": 1}}, "families that no column has: .'gaussian'"),
            ({"poisson": {"rate": 1}}, "families that no column has: .'poisson'"),
            ({"normal": {"mu": 1, 3: 4}}, "'normal' are mu0, kappa0, nu0, sigma2_0; got .3, 'mu'"),
            (
                {"normal": 3},
                r"'normal' must be a mapping or a tuple \(mu0, kappa0, nu0, sigma2_0\)",
            ),
            ({"normal": (1, 2)}, "'normal' must be a mapping or a tuple"),
            ({"normal": {"kappa0": 0}}, r"\['normal'\]\['kappa0'\] must be positive, got 0"),
            ({"normal": {"mu0": np.inf}}, r"\['normal'\]\['mu0'\] must be finite, got inf"),
            (
                {"normal": {"sigma2_0": NAN}},
                r"\['normal'\]\['sigma2_0'\] must be finite, got nan",
            ),
            ({"normal": {"nu0": "x"}}, r"\['normal'\]\['nu0'\] must be numbers, got 'x'"),
            (
                {"normal": {"nu0": [1, 2, 3]}},
                r"\['nu0'\].* one per column of the family \(2\), got",
            ),
            ({"categorical": [1, 2]}, r"\['pseudo_counts'\].* one per level \(3\)"),
            ({"categorical": []}, r"\['pseudo_counts'\].* one per level \(3\)"),
            ({"categorical": -1}, r"\['pseudo_counts'\] must be positive, got -1"),
            ({"categorical": [[1, 1, 1]] * 2}, r"\['pseudo_counts'\] has 2 arrays for 1 columns"),
        ],
    )
    def test_errors_name_the_hyperparameter(self, given, message):
        X = [[0.5, 1.5, "a"], [1.5, 2.5, "b"], [0.1, 0.2, "c"]]
        with pytest.raises(ValueError, match=message):
            mixture(hyperparameters=given).fit(X)

    def test_concentration_and_discount(self):
        X = np.random.default_rng(0).normal(size=(60, 2))
        draws = {"n_draws": 30, "thin": 1}
        fixed = mixture(concentration=2.5, discount=0.25, **draws).fit(X)
        assert {(d.concentration, d.discount) for d in fixed.draws_[0]} == {(2.5, 0.25)}
        assert (fixed.trace_["concentration"] == 2.5).all() and (
            fixed.trace_["discount"] == 0.25
        ).all()
        one = mixture(concentration="infer", discount=0.25, **draws).fit(X)
        assert len({d.concentration for d in one.draws_[0]}) > 3
        assert {d.discount for d in one.draws_[0]} == {0.25}
        two = mixture(concentration="infer", discount="infer", **draws).fit(X)
        assert len({d.discount for d in two.draws_[0]}) > 2
        for draw in two.draws_[0]:
            assert draw.concentration in two.hyperparameter_grids_["concentration"]
            assert draw.discount in two.hyperparameter_grids_["discount"]
        mixture(concentration=-0.2, discount=0.5).fit(X)

    def test_more_concentration_gives_more_clusters(self):
        X = np.full((60, 1), NAN)  # the prior alone
        few, many = (
            mixture(concentration=a, schedule=SequentialGibbs(n_sweeps=10)).fit(X)
            for a in (0.01, 100.0)
        )
        assert few.n_components_ < 5 < 20 < many.n_components_
