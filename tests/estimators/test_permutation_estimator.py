"""PermutationDPMixture as its users meet it."""

import copy
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV

from oracles.cheap import CHEAP
from skanneal import AnnealedDPMixture, PermutationDPMixture
from skanneal.moves import EXACT_ROWS, PERMUTATIONS, PROGRAMS
from skanneal.schedules import (
    SCHEDULES,
    AcceleratingAnneal,
    CustomAnneal,
    EnergyAnneal,
    LinearAnneal,
    PriorGibbs,
    SequentialGibbs,
)

INITS = (None, "one", 5, "sequential")


def mixture(**parameters):
    """A quick estimator."""
    defaults = {"n_chains": 1, "n_draws": 1, "random_state": 0}
    return PermutationDPMixture(**(defaults | parameters))


def three_clusters(n_rows=150, n_columns=4, seed=0):
    """Rows around three centres, and which."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n_rows) % 3
    return rng.normal(0, 6, (3, n_columns))[labels] + rng.normal(size=(n_rows, n_columns)), labels


def same_bits(one, two):
    pairs = [
        (first.arrays, second.arrays)
        for ours, theirs in zip(one.draws_, two.draws_, strict=True)
        for first, second in zip(ours, theirs, strict=True)
    ]
    return np.array_equal(one.labels_, two.labels_) and all(
        np.array_equal(first[name], second[name]) for first, second in pairs for name in first
    )


class TestScikitLearn:
    @pytest.mark.slow
    def test_grid_search_over_moves_and_schedules(self):
        X, _ = three_clusters()
        grid = {
            "moves": [("gibbs", "permutation"), "auto"],
            "schedule": ["anneal", SequentialGibbs(n_sweeps=6)],
        }
        search = GridSearchCV(mixture(), grid, cv=2, error_score="raise").fit(X)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()

    def test_clone_pickle_and_copy(self):
        X, _ = three_clusters()
        model = mixture(init="one", program=1e-6).fit(X)
        assert same_bits(model, clone(model).fit(X))
        for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            assert same_bits(model, twin)
            np.testing.assert_array_equal(twin.score_samples(X), model.score_samples(X))


class TestFit:
    @pytest.mark.parametrize("init", INITS)
    @pytest.mark.parametrize("permutation", PERMUTATIONS)
    @pytest.mark.few(4)
    def test_clusters_are_found(self, init, permutation):
        X, labels = three_clusters()
        model = mixture(init=init, permutation=permutation).fit(X)
        assert adjusted_rand_score(labels, model.labels_) > 0.98
        assert adjusted_rand_score(labels, model.predict(X)) > 0.98

    @pytest.mark.parametrize("program", PROGRAMS)
    @pytest.mark.parametrize("concentration", ["infer", "marginal", 0.5])
    @pytest.mark.few(4)
    def test_programs(self, program, concentration):
        X, labels = three_clusters(60)
        model = mixture(program=program, concentration=concentration, init="one").fit(X)
        assert adjusted_rand_score(labels, model.labels_) > 0.95
        inferred = len(np.unique(model.trace_["concentration"])) > 1
        assert inferred == (concentration != 0.5)

    @pytest.mark.parametrize("name", [name for name in SCHEDULES if name != "smc"])
    @pytest.mark.few(3)
    def test_every_schedule_by_name(self, name):
        X, _ = three_clusters(90)
        model = mixture(schedule=name, discount="infer").fit(X)
        assert 2 <= model.n_clusters_ <= 5

    def test_particles_do_not_take_the_move(self):
        with pytest.raises(ValueError, match="'permutation' does not go with Sequential"):
            mixture(schedule="smc").fit(three_clusters(90)[0])

    def test_families_are_mixed_and_gaps_stay(self):
        X, labels = three_clusters(90)
        frame = pd.DataFrame(X[:, :2], columns=["a", "b"])
        frame["c"] = np.array(["x", "y", "z"])[labels]
        frame["n"] = np.random.default_rng(0).poisson(4 * labels + 1)
        frame = frame.mask(np.random.default_rng(1).random(frame.shape) < 0.1)
        families = {"poisson": ["n"], "normal": ["a", "b"]}
        model = mixture(families=families, init="one").fit(frame)
        assert adjusted_rand_score(labels, model.labels_) > 0.9
        assert model.impute(frame).notna().all(axis=None)

    def test_burn_in_is_half_of_the_sweeps(self):
        X, _ = three_clusters()
        model = mixture(init="one", schedule=PriorGibbs(n_sweeps=12), n_draws=4, thin=3).fit(X)
        sweeps, burn_in = model.trace_["sweeps"][0], model.trace_["burn_in"][0]
        np.testing.assert_array_equal(burn_in, sweeps < 6)
        assert sweeps[-1] == 21

    def test_no_burn_in_without_permutations(self):
        X, _ = three_clusters(60)
        assert "burn_in" not in mixture(moves=("gibbs", "split_merge")).fit(X).trace_

    def test_moves_work_alike(self, monkeypatch):
        """Each other move works as much as its share of the churn, to one application."""
        X, _ = three_clusters(600)
        from skanneal.chains._budget import OWN_CALLS, SHARES
        from skanneal.moves import CALL, Permutation, SplitMerge, row_work

        done = {Permutation: [], SplitMerge: []}
        for move, works in done.items():

            def sweep(self, *args, sweep=move.sweep, works=works, **options):
                info = sweep(self, *args, **options)
                works.append(info.work)
                return info

            monkeypatch.setattr(move, "sweep", sweep)
        schedule = PriorGibbs(n_sweeps=60)
        model = mixture(families="normal", init=3, schedule=schedule).fit(X)
        churned = 60 * (OWN_CALLS * CALL + 600 * 2 * row_work(X.shape[1]))
        assert model.n_clusters_ < 15
        for move, works in done.items():
            share = SHARES[move.name] * churned
            assert abs(sum(works) - share) <= max(works) + 0.25 * share

    def test_annealed_dp_takes_the_move(self):
        X, labels = three_clusters()
        options = {"moves": ("gibbs", "permutation"), "n_chains": 1, "random_state": 0}
        model = AnnealedDPMixture(**CHEAP, **options).fit(X)
        assert adjusted_rand_score(labels, model.labels_) > 0.98

    def test_warm_start_goes_on(self):
        X, _ = three_clusters()
        model = mixture(init="one", schedule=PriorGibbs(n_sweeps=8), warm_start=True).fit(X)
        model.fit(X)
        assert model.n_sweeps_ == 9 and model.trace_["burn_in"][0, -1] == 0
        through = mixture(init="one", schedule=PriorGibbs(n_sweeps=8), n_draws=2).fit(X)
        first, second = model.draws_[0][-1].arrays, through.draws_[0][-1].arrays
        assert all(np.array_equal(first[name], second[name]) for name in first)


class TestReproducibility:
    @pytest.mark.slow
    def test_jobs_and_backends(self):
        X, _ = three_clusters(90)
        model = mixture(n_chains=3).fit(X)
        assert same_bits(model, mixture(n_chains=3, n_jobs=2).fit(X))
        with joblib.parallel_config(backend="loky", n_jobs=2):
            assert same_bits(model, mixture(n_chains=3).fit(X))

    @pytest.mark.parametrize("init", [None, "one", "sequential"])
    @pytest.mark.few(1)
    def test_the_realised_schedule_refits(self, init):
        X, _ = three_clusters(600)
        schedule = LinearAnneal(max_time=0.3) if init is None else PriorGibbs(max_time=0.3)
        model = mixture(schedule=schedule, init=init).fit(X)
        assert isinstance(model.schedule_, CustomAnneal)
        again = mixture(schedule=model.schedule_, init=init).fit(X)
        assert same_bits(model, again)


class TestBadInput:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"init": 0}, "init"),
            ({"init": 61}, "init=61 clusters are more than the 60 rows"),
            ({"init": "none"}, "init"),
            ({"init": "one", "schedule": "linear_anneal"}, "init='one'.*schedule"),
            ({"init": "one", "schedule": AcceleratingAnneal()}, "init='one'.*schedule"),
            ({"init": 3, "schedule": "sequential_gibbs"}, "init=3.*schedule"),
            ({"init": "one", "schedule": EnergyAnneal()}, "init='one'.*schedule"),
            ({"init": "sequential", "schedule": LinearAnneal()}, "init='sequential'.*schedule"),
            ({"permutation": "random"}, "permutation"),
            ({"program": "cubic"}, "program"),
            ({"program": 1.0}, "program"),
            ({"moves": ("permutation",)}, "moves"),
            ({"moves": ("gibbs", "slice")}, "moves"),
            ({"concentration": "integrated"}, "concentration"),
        ],
    )
    def test_parameters(self, parameters, message):
        X, _ = three_clusters(60)
        model = mixture(**parameters)
        with pytest.raises(ValueError, match=message):
            model.fit(X)
        assert not hasattr(model, "draws_")

    def test_more_rows_than_the_exact_program_holds(self):
        X = np.zeros((EXACT_ROWS + 1, 1))
        with pytest.raises(ValueError, match="program='exact'.*use program='beam'"):
            mixture(program="exact").fit(X)

    def test_one_row_and_equal_rows(self):
        for X in ([[1.0]], np.ones((20, 2))):
            model = mixture(init="one").fit(X)
            assert model.n_clusters_ == 1
