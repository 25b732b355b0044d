"""Seeds for chains, and tasks that survive an interrupt."""

import _thread
import pickle
import re
import signal
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info

import skanneal
from skanneal import AnnealedDPMixture
from skanneal.parallel import StopFlag, run_tasks, spawn_seeds
from skanneal.predictive._tail import training_scores

PATIENCE = 30.0  # seconds after which a thread that should have ended counts as lost


def states(seeds):
    return [seed.generate_state(4).tolist() for seed in seeds]


def generator(seed, bit_generator=np.random.PCG64):
    return np.random.Generator(bit_generator(seed))


# ------------------------------------------------------------------------------------------ seeds
@pytest.mark.parametrize(
    "make",
    [
        lambda: 7,
        lambda: np.int64(7),
        lambda: np.random.RandomState(7),
        lambda: generator(7),
        lambda: generator(7, np.random.MT19937),
        lambda: np.random.SeedSequence(7),
    ],
)
def test_seeds_are_distinct_and_repeat(make):
    seeds = states(spawn_seeds(make(), 5))
    assert len(set(map(tuple, seeds))) == 5
    assert states(spawn_seeds(make(), 5)) == seeds
    assert states(spawn_seeds(make(), 3)) == seeds[:3]


@pytest.mark.parametrize("make", [np.random.RandomState, generator])
def test_instances_advance(make):
    random_state = make(0)
    assert states(spawn_seeds(random_state, 2)) != states(spawn_seeds(random_state, 2))


def test_seed_sequence_is_left_as_it_was():
    parent = np.random.SeedSequence([1, 2], spawn_key=(3,), pool_size=8)
    first = spawn_seeds(parent, 4)
    assert parent.n_children_spawned == 0
    assert states(spawn_seeds(parent, 4)) == states(first) == states(parent.spawn(4))


def test_none_is_the_global_random_state():
    state = np.random.get_state()  # noqa: NPY002
    try:
        np.random.seed(3)  # noqa: NPY002
        seeds = states(spawn_seeds(None, 2))
        np.random.seed(3)  # noqa: NPY002
        assert states(spawn_seeds(None, 2)) == seeds
        assert states(spawn_seeds(None, 2)) != seeds
    finally:
        np.random.set_state(state)  # noqa: NPY002


@pytest.mark.parametrize("random_state", [-1, 1.5, True, "0", np.random.PCG64(0)])
def test_bad_random_state(random_state):
    with pytest.raises(ValueError, match="random_state"):
        spawn_seeds(random_state, 1)


# ------------------------------------------------------------------------------------------ tasks
def draw(size, seed, stop):
    """A task as a chain is one: a pure function of its arguments."""
    assert not stop.is_set()
    return np.random.Generator(np.random.PCG64(seed)).random(size)


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 8])
def test_results_are_in_order_for_any_n_jobs(n_jobs):
    tasks = list(enumerate(spawn_seeds(0, 6)))
    results, interrupted = run_tasks(draw, tasks, n_jobs)
    assert not interrupted
    for result, task in zip(results, tasks, strict=True):
        np.testing.assert_array_equal(result, draw(*task, StopFlag()))


def test_processes_give_the_same():
    tasks = list(enumerate(spawn_seeds(0, 3)))
    with joblib.parallel_config("loky"):
        results, interrupted = run_tasks(draw, tasks, n_jobs=2)
    assert not interrupted
    for result, expected in zip(results, run_tasks(draw, tasks)[0], strict=True):
        np.testing.assert_array_equal(result, expected)


def test_no_tasks():
    assert run_tasks(draw, [], n_jobs=2) == ([], False)


def test_stop_flag_is_shared_through_its_array():
    stop = StopFlag()
    view = stop.array
    assert view.dtype == np.int32 and view.shape == (1,) and not stop.is_set()
    copy = pickle.loads(pickle.dumps(stop))
    stop.set()
    assert view[0] == 1 and stop.is_set() and not copy.is_set()


# ------------------------------------------------------------------------------------- interrupts
@pytest.fixture
def python_handler():
    """Python's own SIGINT handler: a shell that starts pytest in the background takes it away."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


class Chains:
    """Tasks that wait to be stopped; they note who began and who returned."""

    def __init__(self, n_awaited):
        self.n_awaited = n_awaited
        self.begun, self.ended = [], []
        self.ready = threading.Event()

    def run(self, i, stop):
        self.begun.append(i)
        if len(self.begun) == self.n_awaited:
            self.ready.set()
        deadline = time.monotonic() + PATIENCE
        while not stop.is_set() and time.monotonic() < deadline:
            time.sleep(0.001)
        assert stop.is_set(), "nobody asked to stop"
        time.sleep(0.05)  # the last block before a chain looks at the flag
        self.ended.append(i)
        return f"partial {i}"

    def fail(self, i, error, stop):
        """Task 0 raises when the others are under way."""
        if i > 0:
            return self.run(i, stop)
        assert self.ready.wait(PATIENCE)
        raise error

    def interrupt_when_ready(self):
        def interrupt():
            if self.ready.wait(PATIENCE):
                _thread.interrupt_main()

        thread = threading.Thread(target=interrupt)
        thread.start()
        return thread


@pytest.mark.parametrize("n_jobs, n_begun", [(1, 1), (2, 2), (3, 3)])
def test_interrupt_keeps_partial_results(python_handler, n_jobs, n_begun):
    chains = Chains(n_awaited=n_begun)
    thread = chains.interrupt_when_ready()
    results, interrupted = run_tasks(chains.run, [(i,) for i in range(5)], n_jobs)
    thread.join()
    assert interrupted
    # Every task that began has ended, and none began after the interrupt.
    assert sorted(chains.begun) == sorted(chains.ended) == list(range(n_begun))
    assert results == [f"partial {i}" if i < n_begun else None for i in range(5)]


def test_interrupt_under_a_foreign_handler(python_handler):
    """KeyboardInterrupt may then be raised anywhere in the main thread; threads are joined."""

    def foreign(signum, frame):
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, foreign)
    chains = Chains(n_awaited=2)
    thread = chains.interrupt_when_ready()
    try:
        results, interrupted = run_tasks(chains.run, [(i,) for i in range(3)], n_jobs=2)
        assert signal.getsignal(signal.SIGINT) is foreign
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    thread.join()
    assert interrupted
    assert sorted(chains.begun) == sorted(chains.ended)
    assert results == [f"partial {i}" if i in chains.ended else None for i in range(3)]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_interrupt_raised_by_a_task(n_jobs):
    chains = Chains(n_awaited=1 if n_jobs > 1 else 0)
    if n_jobs == 1:
        chains.ready.set()
    tasks = [(i, KeyboardInterrupt()) for i in range(n_jobs)]
    results, interrupted = run_tasks(chains.fail, tasks, n_jobs)
    assert interrupted
    assert results == [None, "partial 1"][:n_jobs]


def test_interrupt_outside_the_main_thread():
    """Signals are not ours there; run_tasks must work all the same."""
    outcome = []
    thread = threading.Thread(target=lambda: outcome.append(run_tasks(lambda i, stop: i, [(4,)])))
    thread.start()
    thread.join()
    assert outcome == [([4], False)]


def test_error_stops_and_awaits_the_others(python_handler):
    chains = Chains(n_awaited=1)
    with pytest.raises(ZeroDivisionError):
        run_tasks(chains.fail, [(i, ZeroDivisionError()) for i in range(2)], n_jobs=2)
    assert chains.begun == chains.ended == [1]


def test_second_interrupt_raises(python_handler):
    """A task that ignores the flag can still be stopped from the keyboard, if not kept from it."""

    def deaf(stop):
        _thread.interrupt_main()
        while not stop.is_set():
            time.sleep(0.001)
        _thread.interrupt_main()
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            time.sleep(0.001)
        return "too late"

    assert run_tasks(deaf, [()]) == ([None], True)


# ------------------------------------------------------------------------------------------- BLAS
@pytest.mark.parametrize("fails", [False, True])
def test_blas_has_one_thread_within_a_fit_alone(monkeypatch, fails):
    found, before = [], threadpool_info()

    def look(*arguments):
        found.extend(threadpool_info())
        if fails:
            raise RuntimeError("no scores")
        return training_scores(*arguments)

    monkeypatch.setattr("skanneal.estimators._annealed.training_scores", look)
    expected = pytest.raises(RuntimeError, match="no scores") if fails else nullcontext()
    with expected:
        AnnealedDPMixture(n_chains=1, random_state=0).fit(np.arange(40.0).reshape(20, 2) % 7)
    of_blas = [info["num_threads"] for info in found if info["user_api"] == "blas"]
    assert of_blas and set(of_blas) == {1}
    assert threadpool_info() == before


def test_seeds_are_named_and_not_told_by_place():
    """`spawn` of a SeedSequence, and places among seeds, stand in one file."""
    root = Path(skanneal.__file__).parent
    by_place = re.compile(r"\.spawn\(|(spawn_seeds|seeds_below)\(.*\)\[")
    found = [
        file.relative_to(root).as_posix()
        for file in sorted(root.rglob("*.py"))
        if by_place.search(file.read_text(encoding="utf-8"))
    ]
    assert found == ["parallel/_seeds.py"]
