"""Ctrl-C at any point of AcceleratedDPMixture.fit: the last complete state, or the fit of before.

The signal is raised in the main thread, by whatever is called at the point in question.
"""

import pickle
import signal

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from oracles.scripts import interrupt_chains, run_script
from oracles.waiting_times import Waiting
from skanneal import AcceleratedDPMixture
from skanneal.estimators import _accelerated_dp as estimator
from skanneal.estimators import _base_chains as base
from skanneal.schedules import AcceleratedSchedule
from skanneal.sharded import (
    AcceleratedStage,
    Auxiliary,
    ExactStage,
    Importance,
    SliceSampler,
)
from skanneal.sharded import _chain as chains
from skanneal.sharded import _fit as fit
from skanneal.sharded import _split_merge as feature_split_merge

SCHEDULE = AcceleratedSchedule(n_accelerated=4, n_exact=6, sync_every=2)
STAGE = {
    "accelerated": ExactStage,
    "hybrid": ExactStage,
    "auxiliary": Auxiliary,
    "importance": Importance,
    "slice": SliceSampler,
}


def rows(n=60):
    return np.random.default_rng(0).exponential(np.where(np.arange(n) % 2, 1.0, 30.0))[:, None]


def mixture(algorithm, **parameters):
    given = {"likelihood": Waiting(), "schedule": SCHEDULE, "random_state": 0, "n_chains": 2}
    if algorithm == "collapsed":
        given["likelihood"] = "normal"
    return AcceleratedDPMixture(
        algorithm=algorithm, **given | {"n_draws": 3, "thin": 3} | parameters
    )


def interrupting(function, at=1):
    """The function, after a Ctrl-C at its at-th call."""
    left = [at]

    def interrupted(*args, **kwargs):
        left[0] -= 1
        if left[0] == 0:
            signal.raise_signal(signal.SIGINT)
        return function(*args, **kwargs)

    return interrupted


def in_segment(cls, at):
    """The stage, with a Ctrl-C in its at-th segment."""
    plan, left = cls.plan, [at]

    def interrupted(self, state, n_steps, generator):
        function, arguments = plan(self, state, n_steps, generator)
        left[0] -= 1
        return (interrupting(function) if left[0] == 0 else function), arguments

    return interrupted


def patched(monkeypatch, owner, name, at=1):
    monkeypatch.setattr(owner, name, interrupting(getattr(owner, name), at))


def state_of(model):
    """What a fit is, to compare with."""
    return pickle.dumps({name: value for name, value in vars(model).items() if name[-1] == "_"})


def assert_usable(model, X, warned, n_chains=2):
    assert any(w.category is ConvergenceWarning and "interrupted" in str(w.message) for w in warned)
    assert len(model.draws_) == n_chains and model.labels_.shape == (len(X),)
    assert np.isfinite(model.score_samples(X)).all()
    assert model.trace_["sweeps"].shape[0] == n_chains
    assert np.nanmax(model.trace_["sweeps"]) == model.n_sweeps_
    assert model.draws_[0][0].log_joint in model.trace_["log_joint"][0]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if model.algorithm_ != "collapsed":  # which would go on to the schedule's end
        model.set_params(warm_start=True).fit(X)


BEFORE = {"read": estimator, "first_labels": fit, "first_report": chains}


@pytest.mark.parametrize("where", BEFORE)
@pytest.mark.parametrize("algorithm", ["accelerated", "slice"])
def test_before_there_is_a_state(algorithm, where, monkeypatch):
    X, fresh = rows(), mixture(algorithm)
    patched(monkeypatch, BEFORE[where], where)
    before = dict(vars(fresh))
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(X)
    assert vars(fresh) == before


@pytest.mark.parametrize("algorithm", [*STAGE, "collapsed"])
@pytest.mark.few(3)
def test_nothing_new_leaves_the_earlier_fit(algorithm, monkeypatch):
    X, model = rows(), mixture(algorithm, warm_start=True).fit(rows())
    before = state_of(model)
    if algorithm == "collapsed":
        patched(monkeypatch, base, "chain_task")
    else:
        monkeypatch.setattr(STAGE[algorithm], "plan", in_segment(STAGE[algorithm], 1))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert state_of(model) == before


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("at", [3, 7, 9])  # of two chains: in the exact stage, between draws
@pytest.mark.parametrize("algorithm", STAGE)
@pytest.mark.few(3)
def test_in_a_segment(algorithm, at, n_jobs, monkeypatch):
    X, model = rows(), mixture(algorithm, n_jobs=n_jobs)
    monkeypatch.setattr(STAGE[algorithm], "plan", in_segment(STAGE[algorithm], at))
    with pytest.warns(ConvergenceWarning) as warned:
        model.fit(X)
    assert model.schedule_.n_exact <= model.n_sweeps_
    assert_usable(model, X, warned)


def test_in_the_accelerated_stage(monkeypatch):
    X, model = rows(), mixture("accelerated")
    monkeypatch.setattr(AcceleratedStage, "plan", in_segment(AcceleratedStage, 3))
    with pytest.warns(ConvergenceWarning, match="which is approximate") as warned:
        model.fit(X)
    schedule = model.schedule_
    assert (schedule.n_accelerated, schedule.n_exact, model.n_sweeps_) == (2, 0, 2)
    assert_usable(model, X, warned)


POINTS = {
    "features near rows": (feature_split_merge, "launch_atoms"),
    "sides of a split": (feature_split_merge, "divide_rows"),
    "log likelihoods": (chains, "labelled_log_lik"),
    "a synchronisation": (chains.AcceleratedChain, "synchronise"),
    "a record": (chains.AcceleratedChain, "record"),
    "a draw": (chains.AcceleratedChain, "draw"),
    "the summary": (base, "side_by_side"),
}


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.few(2)
def test_outside_of_segments(point, n_jobs, monkeypatch):
    X, model = rows(), mixture("hybrid", n_jobs=n_jobs)
    patched(monkeypatch, *POINTS[point], 1 if point == "the summary" else 5)
    with pytest.warns(ConvergenceWarning) as warned:
        model.fit(X)
    for draw, of_trace in zip(model.draws_, model.trace_["log_joint"], strict=True):
        assert draw[0].log_joint in of_trace
    assert_usable(model, X, warned)


def test_the_collapsed_algorithm(monkeypatch):
    X, long = rows(), AcceleratedSchedule(n_accelerated=0, n_exact=10**6)
    for n_jobs, n_chains in ((1, 1), (2, 2)):
        model = mixture("collapsed", schedule=long, n_jobs=n_jobs)
        with interrupt_chains(n_jobs), pytest.warns(ConvergenceWarning) as warned:
            model.fit(X)
        assert_usable(model, X, warned, n_chains)  # on one thread the second never began
    patched(monkeypatch, estimator, "features_of")
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        mixture("collapsed").fit(X)


PROCESSES = """
import os, signal, threading, warnings
import joblib, numpy as np
from skanneal import AcceleratedDPMixture
from skanneal.schedules import AcceleratedSchedule

X = np.random.default_rng(0).normal(np.where(np.arange(60) % 2, 4.0, -4.0)[:, None], 1.0)

def on_record(i, chain):
    if len(chain.trace["sweeps"]) == 8 and i == 0:  # within the next segment
        threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()

schedule = AcceleratedSchedule(n_accelerated=4, n_exact=10**6, sync_every=2)
model = AcceleratedDPMixture(schedule=schedule, n_jobs=2, n_chains=2, n_draws=3, random_state=0)
model._on_record = on_record
with joblib.parallel_config("loky"), warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model.fit(X)
assert any("interrupted" in str(w.message) for w in caught)
assert 16 <= model.n_sweeps_ < 1000 and model.schedule_.n_exact == model.n_sweeps_ - 4
assert [len(of_chain) for of_chain in model.draws_] == [1, 1] and np.isfinite(model.score(X))
print("usable")
"""


@pytest.mark.slow
def test_other_processes(tmp_path):
    result = run_script(PROCESSES, tmp_path)  # joblib's own threads complain of what they must drop
    assert result.stdout == "usable\n", result.stderr
