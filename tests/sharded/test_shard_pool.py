"""Segments on shards: any backend gives the same, and none loses work to a worker that dies."""

import threading
import time

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info

from oracles.backends import (
    PATIENCE,
    Mishap,
    dask_cluster,
    die,
    divide,
    interrupt_when,
    kill_dask_worker,
    ray_cluster,
    sleep,
)
from skanneal.families import Table
from skanneal.sharded._shards import RowSource, ShardPool, Shards

N, D = 203, 5
TASKS = [(p, (seed, np.full(D, 0.1 * seed))) for seed in range(1, 4) for p in range(3)]
TABLE_TASKS = [(1, (2,)), (0, (0,))]
BOTH = [(0, ()), (1, ())]


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).random((N, D))


# ------------------------------------------------------------------------------------ same results
def segment(rows, seed, theta, stop):
    """Some numbers that hang on the rows, their order and the arguments, to the last bit."""
    assert rows.flags.aligned and theta.flags.aligned
    assert all(info["num_threads"] == 1 for info in threadpool_info() if info["user_api"] == "blas")
    rng = np.random.default_rng(seed)
    return (rows @ theta)[rng.permutation(len(rows))], rows.sum(), len(rows)


def table_of(X):
    table = Table(["f4"] * D, [0] * D)
    table.append(list(X.T))
    return table


def of_table(table, j, stop):
    return table.column(j)


def run_on(source, encode, function, tasks, n_jobs=None):
    with ShardPool(Shards(source, 3, encode), n_jobs) as pool:
        results, interrupted = pool.run(function, tasks)
        again, _ = pool.run(function, tasks[::-1])
    assert not interrupted
    np.testing.assert_equal(again[::-1], results)
    return results


def in_this_thread(X):
    """What the tasks return, without a pool."""
    rows = [X[Shards(X, 3, np.asarray).rows_of(p)] for p in range(3)]
    sums = [
        (
            (rows[p] @ theta)[np.random.default_rng(seed).permutation(len(rows[p]))],
            rows[p].sum(),
            len(rows[p]),
        )
        for p, (seed, theta) in TASKS
    ]
    return sums, [rows[p][:, j].astype(np.float32) for p, (j,) in TABLE_TASKS]


def assert_same(X, folder, backend, n_jobs=2):
    """Arrays and Tables that are placed, and rows that the workers read themselves."""
    sums, columns = in_this_thread(X)
    np.save(folder / "X.npy", X)
    on_disk = RowSource(np.load(folder / "X.npy", mmap_mode="r"), resident_bytes=0)
    assert on_disk.is_lazy
    with joblib.parallel_config(backend):
        for source in (X, on_disk):
            # of this very function, hence by value: as from a script or a notebook
            encode = lambda rows: rows + 0.0  # noqa: E731
            np.testing.assert_equal(run_on(source, encode, segment, TASKS, n_jobs), sums)
        np.testing.assert_equal(run_on(X, table_of, of_table, TABLE_TASKS, n_jobs), columns)


# ----------------------------------------------------------------------------------------- mishaps
def sums_of(X):
    return [X[Shards(X, 2, np.asarray).rows_of(p)].sum() for p in range(2)]


def pool_of(X):
    return ShardPool(Shards(X, 2, np.asarray), n_jobs=2)


def assert_survives_a_dead_worker(X, folder):
    mishap = Mishap(die, once=folder / "dead")
    with pool_of(X) as pool:
        assert pool.run(mishap, BOTH) == (sums_of(X), False)
        assert mishap.once.exists()
        assert pool.run(Mishap(int), BOTH) == (sums_of(X), False)


def assert_gives_up_on_a_deadly_segment(X):
    with pool_of(X) as pool:
        with pytest.raises(RuntimeError, match="Workers died on a segment again and again"):
            pool.run(Mishap(die), BOTH)


def assert_raises_at_once(X, folder):
    """An error of the function itself: as it is, and not tried again."""
    with pool_of(X) as pool:
        with pytest.raises(ZeroDivisionError, match="^integer division or modulo by zero$"):
            pool.run(Mishap(divide, once=folder / "divided"), BOTH[:1])
        assert pool.run(Mishap(int), BOTH) == (sums_of(X), False)


def assert_is_interrupted(X, folder):
    """What runs in other processes is dropped."""
    mark = folder / "begun"
    with pool_of(X) as pool, interrupt_when(mark.exists):
        start = time.monotonic()
        assert pool.run(Mishap(sleep, once=mark), BOTH) == ([None, None], True)
        assert time.monotonic() - start < PATIENCE


# ----------------------------------------------------------------------------------------- threads
@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_threads(n_jobs, X, tmp_path):
    assert_same(X, tmp_path, "threading", n_jobs)
    assert_raises_at_once(X, tmp_path)


def await_stop(rows, stop):
    """What there is, once the flag is set."""
    deadline = time.monotonic() + PATIENCE
    while not stop.is_set() and time.monotonic() < deadline:
        time.sleep(0.001)
    return "what there is" if stop.is_set() else "nobody asked to stop"


def total(rows, stop):
    return float(rows.sum())


def test_threads_are_interrupted(X):
    begun = []

    def watch(rows, stop):
        begun.append(rows)
        return await_stop(rows, stop)

    with ShardPool(Shards(X, 3, np.asarray), n_jobs=2) as pool:
        with interrupt_when(lambda: len(begun) == 2):
            results = pool.run(watch, [(p, ()) for p in range(3)])
    assert results == (["what there is"] * 2 + [None], True)


def test_threads_whose_time_is_up(X):
    with ShardPool(Shards(X, 3, np.asarray), n_jobs=2) as pool:
        results = pool.run(await_stop, [(p, ()) for p in range(3)], seconds=0.5)
        assert results == (["what there is"] * 3, False)  # the third had no time, but its turn
        assert pool.run(total, BOTH, seconds=PATIENCE) == pool.run(total, BOTH)


def test_blas_is_left_as_it_was(X):
    before = threadpool_info()
    with pool_of(X):
        pass
    assert threadpool_info() == before


# --------------------------------------------------------------------------------------- processes
@pytest.fixture
def loky(tmp_path, monkeypatch):
    """With a look at what it leaves behind."""
    monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path))
    with joblib.parallel_config("loky"):
        yield
    assert not list(tmp_path.glob("skanneal-*"))


def test_processes(X, tmp_path, loky):
    assert_same(X, tmp_path, "loky")


def test_processes_whose_time_is_up(X, loky):
    with pool_of(X) as pool:
        assert pool.run(await_stop, BOTH, seconds=0.5) == (["what there is"] * 2, False)


def mapped(rows, stop):
    """Whether the rows stand in a file: no process holds a copy."""
    root = rows
    while isinstance(root.base, np.ndarray):
        root = root.base
    return not rows.flags.writeable and isinstance(memoryview(root.base).obj, np.memmap)


def test_processes_map_the_shards(X, loky):
    with pool_of(X) as pool:
        assert pool.run(mapped, BOTH) == ([True, True], False)


@pytest.mark.slow
def test_processes_die_or_raise(X, tmp_path, loky, monkeypatch):
    assert_raises_at_once(X, tmp_path)
    # new workers take seconds to start
    monkeypatch.setattr("skanneal.sharded._placement.N_ATTEMPTS", 2)
    assert_survives_a_dead_worker(X, tmp_path)
    assert_gives_up_on_a_deadly_segment(X)
    assert_is_interrupted(X, tmp_path)


def test_files_are_removed_if_placing_fails(X, loky):
    lock = threading.Lock()
    with pytest.raises(TypeError, match="cannot pickle"):
        ShardPool(Shards(X, 2, lambda rows: lock), n_jobs=2).__enter__()


# -------------------------------------------------------------------------------------------- Dask
@pytest.fixture(scope="module")
def dask():
    with dask_cluster() as client:
        yield client


def test_dask(X, tmp_path, dask):
    assert_same(X, tmp_path, "dask")


def test_dask_workers_die_or_raise(X, tmp_path, dask):
    with joblib.parallel_config("dask"):
        assert_raises_at_once(X, tmp_path)
        assert_survives_a_dead_worker(X, tmp_path)


@pytest.mark.slow
def test_dask_worker_dies_at_rest(X, dask):
    """With the shards that it holds, between two runs."""
    dask.wait_for_workers(2)
    with joblib.parallel_config("dask"), pool_of(X) as pool:
        kill_dask_worker(dask)
        assert pool.run(Mishap(int), BOTH) == (sums_of(X), False)


def nested(X):
    with pool_of(X) as pool:
        return type(pool._placement).__name__, pool.run(Mishap(int), BOTH)


def test_dask_within_a_task_of_dask(X, dask):
    """More searches at once than workers: none waits for a worker that another holds."""
    dask.wait_for_workers(2)  # for one alone joblib runs tasks where it is
    with joblib.parallel_config("dask"):
        found = joblib.Parallel()(joblib.delayed(nested)(X) for _ in range(3))
    assert found == [("OnThreads", (sums_of(X), False))] * 3


@pytest.mark.slow
def test_dask_gives_up_or_is_interrupted(X, tmp_path, dask):
    with joblib.parallel_config("dask"):
        assert_is_interrupted(X, tmp_path)
        assert_gives_up_on_a_deadly_segment(X)


# --------------------------------------------------------------------------------------------- Ray
@pytest.fixture(scope="module")
def ray():
    with ray_cluster() as ray:
        yield ray


@pytest.mark.slow
def test_ray(X, tmp_path, ray):
    assert_same(X, tmp_path, "ray")


@pytest.mark.slow
def test_ray_workers_die_or_raise(X, tmp_path, ray):
    with joblib.parallel_config("ray"):
        assert_raises_at_once(X, tmp_path)
        assert_survives_a_dead_worker(X, tmp_path)
        assert_gives_up_on_a_deadly_segment(X)
        assert_is_interrupted(X, tmp_path)
