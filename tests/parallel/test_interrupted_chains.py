"""Ctrl-C while some chains have finished, others run, and others wait, in threads or processes."""

import pytest

from oracles.scripts import run_script

# The chains named in `endless` do not return until they are stopped. A Ctrl-C comes a second after
# all of `awaited` have begun: finished ones have come back by then.
SCRIPT = """
import os, signal, sys, threading, time, warnings
from pathlib import Path

import joblib
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skanneal import AnnealedDPMixture
from skanneal.estimators import _base_chains
from skanneal.schedules import SequentialGibbs

PATIENCE = 60.0  # seconds
signal.signal(signal.SIGINT, signal.default_int_handler)
X = np.random.default_rng(0).normal(np.where(np.arange(80) % 2, 4.0, -4.0)[:, None], 1.0)
given = {"schedule": SequentialGibbs(n_sweeps=5), "thin": 5, "random_state": 0, "n_jobs": 2}
folder, original = Path(__file__).parent, _base_chains.chain_task


def to_this_process():
    os.kill(os.getpid(), signal.SIGINT)


def to_all_processes():  # as a terminal sends it
    os.killpg(os.getpgid(0), signal.SIGINT)


def fit(model, endless=(), awaited=(), send=to_this_process):
    def chain_task(n_tasks, n_at_a_time, limit, number, *arguments, stop):
        (folder / f"{number}").touch()
        result = original(n_tasks, n_at_a_time, limit, number, *arguments, stop=stop)
        deadline = time.monotonic() + PATIENCE
        while number in endless and not stop.is_set() and time.monotonic() < deadline:
            time.sleep(0.01)
        return result

    def interrupt():
        deadline = time.monotonic() + PATIENCE
        while not all((folder / f"{i}").exists() for i in awaited):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(1.0)
        send()

    for i in range(10):
        (folder / f"{i}").unlink(missing_ok=True)
    _base_chains.chain_task = chain_task
    thread = threading.Thread(target=interrupt)
    if awaited:
        thread.start()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X)
    finally:
        if awaited:
            thread.join()
    said = [w for w in caught if "interrupted" in str(w.message)]
    assert all(w.category is ConvergenceWarning for w in said)
    assert not any("not used" in str(w.message) for w in caught), [str(w.message) for w in caught]
    assert len(said) == bool(awaited)
    return model


def log_joints(model):
    return [[draw.log_joint for draw in chain] for chain in model.draws_]


def mixture(**parameters):
    return AnnealedDPMixture(**given | parameters)
"""

PROCESSES = (
    SCRIPT
    + """
# Five chains, two at a time: 0 and 1 finish, 2 and 3 run until they are stopped, 4 never begins.
os.setpgrp()
alone = log_joints(mixture(n_chains=4, n_jobs=1).fit(X))
with joblib.parallel_config("loky"):
    for send in (to_this_process, to_all_processes):
        model = fit(mixture(n_chains=5), endless=(2, 3), awaited=(2, 3), send=send)
        assert log_joints(model) == alone
        assert model.labels_.shape == (80,) and np.isfinite(model.score(X))

    # None has finished, and the workers are there for the next fit.
    model = fit(mixture(n_chains=2), endless=(0, 1), awaited=(0, 1), send=to_all_processes)
    assert log_joints(model) == alone[:2]
    assert log_joints(fit(mixture(n_chains=4))) == alone
print("usable")
"""
)

THREADS = (
    SCRIPT
    + """
# Chain 0 finishes, 1 and 2 run until they are stopped, 3 has not begun.
alone = log_joints(mixture(n_chains=1).fit(X))
model = fit(mixture(n_chains=4), endless=(1, 2), awaited=(1, 2))
assert len(model.draws_) == 3 and log_joints(model)[:1] == alone
warm = fit(mixture(n_chains=4, warm_start=True))
first = log_joints(warm)
fit(warm, endless=(1, 2), awaited=(1, 2))
assert len(warm.draws_) == 4 and log_joints(warm)[3] == first[3]
assert log_joints(warm)[0] != first[0]
assert len(fit(warm).draws_) == 4
print("usable")
"""
)


@pytest.mark.parametrize("script", [PROCESSES, THREADS], ids=["processes", "threads"])
@pytest.mark.slow
def test_finished_chains_are_kept(script, tmp_path):
    result = run_script(script, tmp_path)
    assert result.stdout == "usable\n", result.stderr
