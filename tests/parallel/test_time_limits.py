"""`max_time`: a limit of wall-clock time for whole fits, whatever is in them."""

import pickle
import time
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV

from oracles.public_estimators import names, quick
from oracles.waiting_times import Waiting
from skanneal import (
    AcceleratedDPMixture,
    AnnealedDPMixture,
    CrossCatImputer,
    CrossCatPY,
    MixtureOutlierDetector,
    PermutationDPMixture,
    TemperedGaussianMean,
    TemperedGPRegressor,
)
from skanneal.estimators import _annealed, _base_chains
from skanneal.moves import FeatureHyperparameters, SplitMerge
from skanneal.parallel._time_limit import TimeLimit
from skanneal.predictive import _tail
from skanneal.predictive._clusters import Clusters
from skanneal.schedules import (
    AcceleratedSchedule,
    EnergyAnneal,
    LinearAnneal,
    PriorGibbs,
    SequentialGibbs,
)
from skanneal.sharded import _draws
from skanneal.sharded._chain import ShardedRun
from skanneal.sharded._shards import RowSource, UnreadShard

BUSY = 1.0  # seconds granted to a machine that is busy elsewhere
PATIENCE = 30.0  # seconds after which a move that nobody stops gives up
PATHS = [SequentialGibbs(), PriorGibbs(), LinearAnneal(), EnergyAnneal()]
MIXTURES = [AnnealedDPMixture, PermutationDPMixture, CrossCatPY]
NORMAL = {"families": "normal"}  # so that the limit is the chains' alone: no family competes


def rows(n_rows=600, n_columns=3):
    generator = np.random.default_rng(0)
    side = np.where(np.arange(n_rows) % 2, 4.0, -4.0)
    return side[:, None] + generator.normal(size=(n_rows, n_columns))


def seconds_of(model, *data):
    began = time.perf_counter()
    model.fit(*data)
    return time.perf_counter() - began


def alike(chains, *_):
    """Stands for `chain_weights`: all chains count alike, and no row is scored."""
    return np.ones(len(chains)), None


def assert_refit(model, X):
    """The realised schedule gives the first chain's bits again."""
    again = clone(model).set_params(schedule=model.schedule_, max_time=None, n_chains=1)
    again.set_params(n_draws=len(model.draws_[0])).fit(X)
    for a, b in zip(model.draws_[0], again.draws_[0], strict=True):
        assert a.arrays.keys() == b.arrays.keys()
        assert all(np.array_equal(a.arrays[name], b.arrays[name]) for name in a.arrays)


# ------------------------------------------------------------------------------------ the limit
class Clock:
    """Stands for the module `time`."""

    def __init__(self):
        self.now = 100.0

    def perf_counter(self):
        return self.now

    def time(self):
        return 1e9 + self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("skanneal.parallel._time_limit.time", clock)
    return clock


def test_chains_in_turn_share_what_is_left(clock):
    limit = TimeLimit(12.0)
    clock.now += 2.0  # reading
    shares = []
    for chain, factor in enumerate((1.0, 0.4, 1.2, 1.0)):
        shares.append(limit.share(chain, 4, 1))
        clock.now += factor * shares[-1]
    assert shares == pytest.approx([2.5, 2.5, 3.25, 2.6])
    assert limit.taken == pytest.approx(12.0)
    assert 0 < limit.left < 1e-6 and 0 < limit.share(3, 4, 1) < 1e-6


@pytest.mark.parametrize(
    ("n_chains", "n_at_a_time", "rounds"),
    [(4, 1, [4, 3, 2, 1]), (4, 4, [1] * 4), (5, 2, [3, 3, 2, 2, 1]), (2, 8, [1, 1])],
)
def test_chains_at_a_time_begin_in_rounds(clock, n_chains, n_at_a_time, rounds):
    limit = TimeLimit(12.0)
    shares = [limit.share(chain, n_chains, n_at_a_time) for chain in range(n_chains)]
    assert shares == pytest.approx([12.0 / n for n in rounds])


def test_a_limit_travels_by_the_time_of_day(clock):
    limit = TimeLimit(12.0)
    clock.now += 2.0
    sent = pickle.dumps(limit)
    clock.now += 3.0  # in a queue
    there = pickle.loads(sent)
    assert there.seconds == 12.0 and there.left == pytest.approx(limit.left) == pytest.approx(7.0)
    assert not TimeLimit(None) and TimeLimit(None).share(0, 4, 1) is None


def test_fewer_tasks_share_what_is_left_if_each_needs_more(clock):
    limit = TimeLimit(12.0)
    limit.needed = 5.0
    assert [limit.share(task, 4, 1) for task in range(4)] == [6.0, 6.0, 6.0, 12.0]
    clock.now += 6.0
    assert limit.share(1, 4, 1) == 6.0 and not limit.is_over
    clock.now += 1.0
    assert limit.is_over and not TimeLimit(None).is_over


# ------------------------------------------------------------------------------------ estimators
@pytest.mark.filterwarnings("ignore:max_time:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_limit_is_for_all_chains_together(n_jobs):
    options = {"n_chains": 6, "n_draws": 1, "random_state": 0, **NORMAL}
    model = AnnealedDPMixture(n_jobs=n_jobs, max_time=3.0, **options)
    assert seconds_of(model, rows()) < 3.0 + BUSY
    assert 1 < len(model.draws_) <= 6  # fewer, with a warning, where the machine is busy elsewhere
    assert_refit(model, rows())


@pytest.mark.parametrize(
    ("own", "of_schedule"), [(0.3, None), (None, 0.3), (0.3, 30.0), (0.3, 0.01)]
)
def test_the_estimator_s_limit_takes_the_place_of_the_schedule_s(own, of_schedule):
    schedule = LinearAnneal(max_time=of_schedule)
    options = {"n_chains": 1, "schedule": schedule, "random_state": 0, **NORMAL}
    model = AnnealedDPMixture(max_time=own, **options)
    assert seconds_of(model, rows()) < 0.3 + BUSY
    assert model.trace_["seconds"][0, -1] > 0.15
    assert (
        model.schedule_.max_time is None and model.get_params()["schedule__max_time"] == of_schedule
    )


@pytest.mark.parametrize("max_time", [0.01, 0.2])
@pytest.mark.parametrize("schedule", PATHS, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("estimator", MIXTURES)
@pytest.mark.filterwarnings("ignore:max_time:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.few(4)
def test_wherever_the_clock_cuts_the_realised_schedule_refits(estimator, schedule, max_time):
    X = rows()
    options = {"n_chains": 1, "schedule": schedule, "random_state": 0, **NORMAL}
    model = estimator(max_time=max_time, **options)
    assert seconds_of(model, X) < max_time + BUSY
    assert model.draws_[0][0].row_labels if estimator is CrossCatPY else [model.labels_]
    assert model.trace_["n_assigned"][0, -1] == len(X)
    assert_refit(model, X)


def stuck(real, at):
    """A move that never ends by itself, the `at`-th time, and leaves the state in disorder."""
    calls = [0]

    def sweep(self, state, bit_generator, *, beta=1.0):
        calls[0] += 1
        info = real(self, state, bit_generator, beta=beta)
        deadline = time.perf_counter() + PATIENCE
        while calls[0] == at and time.perf_counter() < deadline:
            self.poll()
            time.sleep(0.001)
        assert calls[0] != at, "nobody stopped the move"
        return info

    return sweep


@pytest.mark.parametrize("schedule", PATHS, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("estimator", MIXTURES)
@pytest.mark.parametrize("move", [SplitMerge, FeatureHyperparameters])
@pytest.mark.filterwarnings("ignore:max_time:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.few(3)
def test_a_move_that_does_not_end_in_time_is_taken_back(estimator, schedule, move, monkeypatch):
    """As if it had never been begun: the refit, without a clock, does not begin it."""
    X, real = rows(200), move.sweep
    options = {"n_chains": 1, "schedule": schedule, "random_state": 0, **NORMAL}
    model = estimator(max_time=0.3, **options)
    monkeypatch.setattr(move, "sweep", stuck(real, 1))
    assert seconds_of(model, X) < 0.3 + BUSY
    monkeypatch.setattr(move, "sweep", real)
    assert len(model.schedule_.skipped) > 0
    assert_refit(model, X)


def test_further_draws_that_are_not_whole_are_left_out():
    model = AnnealedDPMixture(
        n_chains=2,
        schedule=LinearAnneal(),
        n_draws=5,
        thin=10**6,
        max_time=0.4,
        random_state=0,
        **NORMAL,
    )
    assert seconds_of(model, rows()) < 0.4 + BUSY
    assert [len(chain) for chain in model.draws_] == [1, 1]
    assert_refit(model, rows())


@pytest.mark.parametrize("estimator", MIXTURES)
@pytest.mark.few(1)
def test_a_warm_start_keeps_its_own_limit(estimator):
    X = rows(200)
    model = estimator(n_chains=2, n_draws=1, warm_start=True, random_state=0).fit(X)
    before = model.n_sweeps_
    model.set_params(n_draws=3, thin=10**6, max_time=0.3)
    assert seconds_of(model, X) < 0.3 + BUSY
    assert model.n_sweeps_ > before and [len(chain) for chain in model.draws_] == [1, 1]


def test_too_little_time_is_said(monkeypatch):
    monkeypatch.setattr("skanneal.chains._run.LATE_SECONDS", -60.0)  # any time is too late
    X = rows(60)
    with pytest.warns(ConvergenceWarning, match=r"max_time=1e-06 .* the fit took .* seconds"):
        model = CrossCatPY(max_time=1e-6, n_chains=1, random_state=0).fit(X)
    assert model.trace_["n_assigned"][0, -1] == len(X)


@pytest.mark.parametrize("max_time", [1.0, pytest.param(5.0, marks=pytest.mark.slow)])
def test_reading_counts(max_time, tmp_path, monkeypatch):
    """From disk every segment reads its rows: none is begun that cannot be done with it."""
    np.save(tmp_path / "X.npy", rows(200))
    real = UnreadShard.read

    def slow(self):
        time.sleep(0.4)
        return real(self)

    monkeypatch.setattr(UnreadShard, "read", slow)
    monkeypatch.setattr(RowSource.__init__, "__defaults__", ("X", 0))  # nothing stays in memory
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    # A pass takes 0.8 seconds: the first statistics, segments, the features at the end.
    model = AcceleratedDPMixture(max_time=max_time, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert seconds_of(model, X) < max(max_time, 1.6) + BUSY
    assert any("max_time=1 is too short" in str(w.message) for w in caught) == (max_time == 1.0)
    assert model.labels_.shape == (200,) and (model.n_sweeps_ > 0) == (max_time > 1.0)


@pytest.mark.parametrize(("seconds", "n_averaged"), [(1000.0, 8), (40.0, 4), (12.0, 0)])
def test_clusters_are_averaged_over_the_draws_that_there_is_time_for(
    clock, monkeypatch, seconds, n_averaged
):
    """Of 5,000 rows and 8 draws, which take 40 seconds, and labels half as much again."""
    real = Clusters.joints

    def joints(of, table, clusters):
        clock.now += len(of.draws) * table.n_rows / 1000
        return real(of, table, clusters)

    monkeypatch.setattr(Clusters, "joints", joints)
    schedule = AcceleratedSchedule(n_accelerated=2, n_exact=4)
    options = {"likelihood": "normal", "schedule": schedule, "n_draws": 8, "random_state": 0}
    model = AcceleratedDPMixture(max_time=seconds, **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(rows(5000))
    assert len(model.draws_[0]) == 8
    assert len(model._clusters.draws) == max(n_averaged, 1)
    assert clock.now - 100.0 <= seconds
    said = any("score the clusters of all rows" in str(w.message) for w in caught)
    assert said == np.isnan(model.probabilities_).all() == (n_averaged == 0)
    assert adjusted_rand_score(model.labels_, np.arange(5000) % 2) == 1.0
    np.testing.assert_array_equal(model.predict(rows(5000)), model.labels_)


@pytest.mark.parametrize(
    ("seconds", "interrupted", "most"),
    [(1e6, False, 2000), (150.0, False, 725), (1.0, False, 300), (None, True, 300)],
)
def test_rows_are_asked_of_a_new_component_as_often_as_there_is_time_for(
    clock, monkeypatch, seconds, interrupted, most
):
    """Where no closed form integrates its atom out; a row takes a tenth of a second here."""
    n_asked, real = [0], _draws.log_new_cluster

    def log_new_cluster(likelihood, rows, *rest):
        clock.now += 0.1 * len(rows)
        n_asked[0] += len(rows)
        return real(likelihood, rows, *rest)

    monkeypatch.setattr(_draws, "log_new_cluster", log_new_cluster)
    if interrupted:
        monkeypatch.setattr(
            ShardedRun, "interrupted", property(lambda run: run.chains[0].done >= 2)
        )
    X = np.random.default_rng(0).exponential(np.where(np.arange(1000) % 2, 1.0, 30.0))[:, None]
    schedule = AcceleratedSchedule(n_accelerated=0, n_exact=4, sync_every=2)
    model = AcceleratedDPMixture(
        likelihood=Waiting(),
        algorithm="hybrid",
        init=2,
        schedule=schedule,
        max_time=seconds,
        random_state=0,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    said = any("score the clusters of all rows" in str(w.message) for w in caught)
    assert said == np.isnan(model.probabilities_).all() == (most < 1000)
    assert n_asked[0] <= most + 120  # these forecast how long rows take, or are alone


@pytest.mark.parametrize(("seconds", "n_averaged", "n_scored"), [(1000.0, 4, 4), (100.0, 2, 1)])
@pytest.mark.parametrize(
    ("estimator", "options"),
    [
        (AnnealedDPMixture, NORMAL),
        (PermutationDPMixture, NORMAL),
        (CrossCatPY, NORMAL),
        (AcceleratedDPMixture, {"likelihood": "normal", "algorithm": "collapsed"}),
    ],
)
def test_what_follows_the_chains_is_within_the_limit(
    clock, monkeypatch, estimator, options, seconds, n_averaged, n_scored
):
    """Of 100 seconds the chains take 80, the clusters 4 and 8, and scores 5 for each draw."""
    scored = []

    def run_chain(*arguments, max_time, **named):
        clock.now += max_time
        result = real_run_chain(*arguments, max_time=0.1, **named)
        return result | {"in_time": True}  # on a busy machine, too

    def joints(of, table, clusters):
        clock.now += len(of.draws) * table.n_rows / 1000
        return real_joints(of, table, clusters)

    def state_of(*arguments):
        clock.now += 5.0
        scored.append(1)
        return real_state(*arguments)

    real_run_chain, real_state = _base_chains.run_chain, _tail.state_of
    real_joints = Clusters.joints
    monkeypatch.setattr(_base_chains, "run_chain", run_chain)
    monkeypatch.setattr(_annealed, "chain_weights", alike)
    monkeypatch.setattr(Clusters, "joints", joints)
    monkeypatch.setattr(_tail, "state_of", state_of)
    model = estimator(n_chains=4, n_draws=1, max_time=seconds, random_state=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the chains have hardly begun
        model.fit(rows(4000, 2))
    assert (len(model._clusters.draws), len(scored)) == (n_averaged, n_scored)
    assert 0.8 * seconds < clock.now - 100.0 <= seconds


@pytest.mark.parametrize(
    ("seconds", "n_run", "ends"), [(1000.0, 4, 800.0), (100.0, 2, 80.0), (30.0, 1, 30.0)]
)
@pytest.mark.parametrize("estimator", [AnnealedDPMixture, CrossCatPY])
@pytest.mark.few(3)
def test_chains_that_cannot_be_completed_in_time_are_not_begun(
    clock, monkeypatch, estimator, seconds, n_run, ends
):
    """A chain takes its share of four fifths of the time, and 30 seconds at least: of 100 the first
    chain, whose share is 20, shows that one more can be completed, but not three."""

    def run_chain(*arguments, max_time, **named):
        clock.now += max(max_time, 30.0)
        *_, state, _ = arguments
        begun.extend([arguments[2].spawn_key] if state is None else [])
        result = real(*arguments, max_time=0.01, **named)
        return result | {"in_time": max_time > 30.0}

    real, begun = _base_chains.run_chain, []
    monkeypatch.setattr(_base_chains, "run_chain", run_chain)
    monkeypatch.setattr(_annealed, "chain_weights", alike)
    options = {"n_chains": 4, "n_draws": 1, "warm_start": True, "random_state": 0, **NORMAL}
    model = estimator(max_time=seconds, **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(rows(300))
    assert len(model.draws_) == len(model.chain_weights_) == n_run
    assert clock.now - 100.0 == pytest.approx(ends)
    said = any(f"of 4 chains {n_run} were run" in str(w.message) for w in caught)
    assert said == (n_run < 4)
    model.set_params(max_time=1000.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(rows(300))  # chains that were not begun are begun now
    assert len(model.draws_) == len(set(begun)) == len(begun) == 4  # each with a seed of its own


@pytest.mark.parametrize("estimator", [AnnealedDPMixture, CrossCatPY])
def test_rows_that_there_is_no_time_to_score_have_no_score(clock, monkeypatch, estimator):
    """A draw of 2,000 rows takes 40 seconds, which 1,000 of them forecast; 20 are left."""

    def log_tails(self, start, stop, **options):
        clock.now += 0.02 * (stop - start)
        return real(self, start, stop, **options)

    def run_chain(*arguments, max_time, **named):
        clock.now += max_time
        result = real_run_chain(*arguments, max_time=0.1, **named)
        return result | {"in_time": True}  # on a busy machine, too

    real, real_run_chain = _tail.ViewScores.log_tails, _base_chains.run_chain
    monkeypatch.setattr(_tail.ViewScores, "log_tails", log_tails)
    monkeypatch.setattr(_base_chains, "run_chain", run_chain)
    options = {"n_chains": 1, "n_draws": 1, "random_state": 0, **NORMAL}
    inner, X = estimator(schedule=SequentialGibbs(n_sweeps=1), **options), rows(2000, 2)
    model = MixtureOutlierDetector(inner, max_time=100.0)
    with pytest.warns(ConvergenceWarning, match="`outlier_scores_` are nan"):
        model.fit(X)
    assert np.isnan(model.outlier_scores_).all() and np.isfinite(model.offset_)
    assert clock.now - 100.0 <= 80.0 + 2 * 20.0 + 2 * 20.0  # a forecast, and where outliers begin
    small = clone(inner).set_params(max_time=100.0).fit(X[:500])
    assert np.isfinite(small.outlier_scores_).all()


@pytest.mark.parametrize(
    "model", [TemperedGaussianMean(n_draws=10**7), TemperedGPRegressor(n_draws=10**5)], ids=str
)
@pytest.mark.few(1)
def test_tempered_estimators(model):
    X = rows(40)
    model = clone(model).set_params(max_time=1.0, n_chains=4, random_state=0)
    assert seconds_of(model, X, X[:, 0]) < 1.0 + BUSY
    assert model.draws_.shape[0] == 4 and model.draws_.shape[1] > 1


def test_too_little_time_for_draws_is_said():
    model = TemperedGaussianMean(max_time=1e-6, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_time was over before every chain"):
        model.fit(rows(40))
    assert model.draws_.shape[:2] == (4, 1)


@pytest.mark.parametrize(("own", "of_inner"), [(None, 0.4), (0.4, 30.0)])
@pytest.mark.parametrize("estimator", [CrossCatImputer, MixtureOutlierDetector])
def test_an_estimator_around_another_limits_it(estimator, own, of_inner):
    X = rows(200)
    X[::7, 0] = np.nan
    inner = CrossCatPY(n_chains=2, n_draws=1, max_time=of_inner)
    model = estimator(inner, max_time=own, random_state=0)
    assert seconds_of(model, X) < 0.4 + BUSY
    assert inner.max_time == of_inner and model.estimator_.max_time == 0.4


def test_a_grid_search_over_limits():
    model = AnnealedDPMixture(n_chains=1, n_draws=1, random_state=0)
    search = GridSearchCV(model, {"max_time": [0.05, 0.1]}, cv=2).fit(rows(100))
    assert search.best_params_["max_time"] in (0.05, 0.1)


@pytest.mark.parametrize("max_time", [0, -1.0, np.inf, np.nan, "1"])
@pytest.mark.parametrize("name", names())
def test_bad_limits(name, max_time):
    with pytest.raises(ValueError, match="max_time"):
        quick(name, max_time=max_time).fit(rows(20), rows(20)[:, 0])


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (AnnealedDPMixture(), "schedule='anneal'"),
        (AcceleratedDPMixture(), "schedule=None"),
        (TemperedGPRegressor(), "schedule=None"),
    ],
)
def test_parameters_of_a_schedule_that_is_no_object(model, named):
    with pytest.raises(ValueError, match=rf"schedule__max_time.*{named}.*object"):
        model.set_params(schedule__max_time=1.0)
    schedule = AcceleratedSchedule() if isinstance(model, AcceleratedDPMixture) else LinearAnneal()
    model = clone(model).set_params(schedule=schedule, schedule__max_time=1.0)
    assert model.schedule.max_time == 1.0
