"""Rows from any container, dealt to shards, and segments run on them by any backend."""

import _thread
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array, csr_matrix, issparse, save_npz
from threadpoolctl import threadpool_info

from skanneal.components import Table
from skanneal.shards import RowSource, ShardPool, Shards

N, D = 203, 5


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.poisson(0.7, size=(N, D)).astype(float)


# -------------------------------------------------------------------------------------- containers
CUTS = [0, 60, 61, 150, N]
CONTAINERS = {}


def container(function):
    CONTAINERS[function.__name__] = function
    return function


def parts(X):
    return [X[start:stop] for start, stop in zip(CUTS, CUTS[1:])]


@container
def array(X, folder):
    return X


@container
def integers_in_fortran_order(X, folder):
    return np.asfortranarray(X.astype(np.uint8))


@container
def memory_map(X, folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


@container
def slice_of_memory_map(X, folder):
    """Every other column of a map that begins within a file."""
    wide = np.zeros((N + 7, 2 * D + 1))
    wide[3 : 3 + N, 1::2] = X
    wide.tofile(folder / "X.bin")
    shape = N + 6, 2 * D + 1
    return np.memmap(folder / "X.bin", float, "r", 8 * (2 * D + 1), shape)[2 : 2 + N, 1::2]


@container
def array_over_memory_map(X, folder):
    """As scikit-learn's validation returns it: the map is only the base."""
    np.save(folder / "X.npy", X[::-1])
    return np.asarray(np.load(folder / "X.npy", mmap_mode="r")[::-1])


@container
def csr(X, folder):
    return csr_matrix(X)


@container
def csc(X, folder):
    return csc_array(X)


@container
def arrays(X, folder):
    return parts(X)


@container
def sparse_arrays(X, folder):
    return [csr_array(part) for part in parts(X)]


@container
def files(X, folder):
    for i, part in enumerate(parts(X)):
        np.save(folder / f"{i}.npy", part.astype(np.float32 if i == 1 else np.int16))
    return [str(folder / f"{i}.npy") for i in range(len(CUTS) - 1)]


@container
def sparse_files(X, folder):
    """Two of them compressed."""
    for i, part in enumerate(parts(X)):
        save_npz(folder / f"{i}.npz", csr_array(part), compressed=i % 2 == 0)
    return [folder / f"{i}.npz" for i in range(len(CUTS) - 1)]


def dense(rows):
    return rows.toarray() if issparse(rows) else np.asarray(rows, dtype=float)


ON_DISK = {
    "memory_map",
    "slice_of_memory_map",
    "array_over_memory_map",
    "files",
    "sparse_files",
}
SELECTIONS = [
    slice(None),
    slice(40, 160, 3),
    np.array([0, 59, 60, 61, 62, 149, 150, N - 1]),
    np.random.default_rng(1).permutation(N)[:90],
    np.array([7, 7, 200, 7]),
    np.array([], dtype=np.int64),
]


@pytest.mark.parametrize("name", CONTAINERS)
def test_source_reads_the_rows_asked_for(name, X, tmp_path):
    first = RowSource(CONTAINERS[name](X, tmp_path), resident_bytes=0)
    assert (first.n_rows, first.n_columns) == X.shape
    assert first.is_lazy == (name in ON_DISK)
    for source in (first, pickle.loads(pickle.dumps(first))):
        for rows in SELECTIONS:
            np.testing.assert_array_equal(dense(source.rows(rows)), X[rows])
        assert source.rows(SELECTIONS[3]).dtype == source.dtype
        with pytest.raises(IndexError):
            source.rows(np.array([0, N]))


@pytest.mark.parametrize("name", sorted(ON_DISK))
def test_source_on_disk_travels_as_a_name(name, X, tmp_path):
    # twice, since a worker may send on what it was sent
    source = RowSource(CONTAINERS[name](X, tmp_path), resident_bytes=0)
    sent = pickle.dumps(pickle.loads(pickle.dumps(source)))
    assert len(sent) < 400 + 650 * (len(CUTS) - 1) < X.nbytes


def test_small_files_are_kept(X, tmp_path):
    source = RowSource(CONTAINERS["files"](X, tmp_path))
    assert not source.is_lazy
    shards = Shards(source, 2, np.asarray)
    assert shards.encoded(0) is shards.encoded(0)


def written(folder, name, array):
    np.save(folder / name, array)
    return folder / f"{name}.npy"


def written_sparse(folder, array, format):
    save_npz(folder / "sparse.npz", csr_array(array).asformat(format))
    return folder / "sparse.npz"


def text_file(folder):
    (folder / "rows.npy").write_text("1, 2, 3")
    return folder / "rows.npy"


FAULTS = {  # what is given -> the error, and words it must have
    "empty list": (lambda X, folder: [], ValueError, "X is an empty list"),
    "a list of rows": (lambda X, folder: X.tolist(), TypeError, r"X\[0\] must be an array"),
    "a frame": (lambda X, folder: {"a": X}, TypeError, "X must be an array.*got dict"),
    "masked": (lambda X, folder: np.ma.masked_array(X), TypeError, "MaskedArray"),
    "one dimension": (lambda X, folder: X[0], ValueError, "two dimensions, got 1"),
    "text": (lambda X, folder: X.astype(str), ValueError, "numbers, got the dtype <U"),
    "complex file": (
        lambda X, folder: [written(folder, "z", X * 1j)],
        ValueError,
        r"X\[0\] \(.*z.npy'\) must hold numbers, got the dtype complex128",
    ),
    "absent file": (
        lambda X, folder: [X, folder / "gone.npy"],
        FileNotFoundError,
        r"X\[1\] \(.*gone.npy'\) is no file",
    ),
    "unknown file": (
        lambda X, folder: [__file__],
        ValueError,
        r"X\[0\] \(.*test_shards.py'\): a shard file must be .npy or .npz",
    ),
    "text file": (
        lambda X, folder: [text_file(folder)],
        ValueError,
        r"X\[0\] \(.*rows.npy'\) cannot be mapped",
    ),
    "objects": (
        lambda X, folder: [written(folder, "o", X.astype(object))],
        ValueError,
        r"X\[0\] \(.*o.npy'\) cannot be mapped",
    ),
    "another width": (
        lambda X, folder: [X, written(folder, "w", X[:, 1:])],
        ValueError,
        r"X\[1\] \(.*w.npy'\) has 4 columns, but X\[0\] has 5",
    ),
    "sparse and dense": (
        lambda X, folder: [X, csr_array(X)],
        ValueError,
        r"X\[1\] is sparse, but X\[0\] is dense",
    ),
    "another sparse format": (
        lambda X, folder: [written_sparse(folder, X, "csc")],
        ValueError,
        r"X\[0\] \(.*sparse.npz'\) must be in the format CSR, got b'csc'",
    ),
    "another npz": (
        lambda X, folder: [np.savez(folder / "a.npz", X), folder / "a.npz"][1:],
        ValueError,
        r"X\[0\] \(.*a.npz'\) is no file of scipy.sparse.save_npz",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_bad_sources(fault, X, tmp_path):
    make, error, words = FAULTS[fault]
    with pytest.raises(error, match=words):
        RowSource(make(X, tmp_path))


# ----------------------------------------------------------------------------------------- dealing
def dealt_one_by_one(n, n_shards):
    turn = max(1, min(64, n // (16 * n_shards)))
    hands = [[] for _ in range(n_shards)]
    for i in range(n):
        hands[(i // turn) % n_shards].append(i)
    return hands


@pytest.mark.parametrize(
    "n, n_shards", [(1, 1), (5, 5), (5, 2), (31, 2), (32, 2), (203, 3), (4096, 4), (5000, 3)]
)
def test_dealing(n, n_shards):
    shards = Shards(np.arange(n, dtype=float)[:, None], n_shards, np.ravel)
    hands = dealt_one_by_one(n, n_shards)
    assert shards.sizes.tolist() == [len(hand) for hand in hands]
    for p, hand in enumerate(hands):
        assert shards.rows_of(p).dtype == np.int64
        assert shards.rows_of(p).tolist() == hand
        assert shards.encoded(p).tolist() == hand


@pytest.mark.parametrize("n_shards, error", [(0, ValueError), (6, ValueError), (1.0, TypeError)])
def test_bad_number_of_shards(n_shards, error):
    with pytest.raises(error, match="n_shards must be"):
        Shards(np.zeros((5, 1)), n_shards, np.asarray)


class InBlocks:
    """An encoder that takes blocks; it counts them."""

    def __init__(self):
        self.n_blocks = 0

    def encode(self, X):
        return dense(X) + 1.0

    def encode_blocks(self, blocks):
        encoded = [self.encode(block) for block in blocks]
        self.n_blocks += len(encoded)
        return np.concatenate(encoded)


@pytest.mark.parametrize("name", CONTAINERS)
@pytest.mark.parametrize("resident_bytes", [0, 2**28])
def test_shards_are_the_same_from_any_container(name, resident_bytes, X, tmp_path, monkeypatch):
    monkeypatch.setattr("skanneal._row_source._BLOCK_BYTES", 256)
    source = RowSource(CONTAINERS[name](X, tmp_path), resident_bytes=resident_bytes)
    in_blocks = InBlocks()
    for encode in (InBlocks.encode.__get__(object()), in_blocks.encode):
        shards = Shards(source, 3, encode)
        for p in range(3):
            np.testing.assert_array_equal(shards.encoded(p), X[dealt_one_by_one(N, 3)[p]] + 1.0)
    assert in_blocks.n_blocks >= 6


# ---------------------------------------------------------------------------------------- backends
def segment(rows, seed, theta, stop):
    """Some numbers that hang on the rows, their order and the arguments, to the last bit."""
    assert rows.flags.aligned and theta.flags.aligned
    assert all(info["num_threads"] == 1 for info in threadpool_info() if info["user_api"] == "blas")
    rng = np.random.default_rng(seed)
    return (rows @ theta)[rng.permutation(len(rows))], rows.sum() / 3, len(rows)


def table_of(X):
    table = Table(["f4"] * D, [0] * D)
    table.append(list(dense(X).T))
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


TASKS = [(p, (seed, np.full(D, 0.1 * seed))) for seed in range(1, 4) for p in range(3)]
TABLE_TASKS = [(1, (2,)), (0, (0,))]


def expected_of(X):
    with joblib.parallel_config("threading"):
        return run_on(X / 7, dense, segment, TASKS), run_on(X, table_of, of_table, TABLE_TASKS)


def assert_same_as_threads(X, folder, backend, n_jobs=2):
    """Arrays and Tables that are placed, and rows that the workers read themselves."""
    expected, columns = expected_of(X)
    on_disk = np.load(written(folder, "sevenths", X / 7), mmap_mode="r")
    with joblib.parallel_config(backend):
        for source in (X / 7, RowSource(on_disk, resident_bytes=0)):
            np.testing.assert_equal(run_on(source, dense, segment, TASKS, n_jobs), expected)
        np.testing.assert_equal(run_on(X, table_of, of_table, TABLE_TASKS, n_jobs), columns)


def test_one_or_more_threads(X, tmp_path):
    for n_jobs in (1, 2, 5):
        assert_same_as_threads(X, tmp_path, "threading", n_jobs)


class Mishap:
    """A function for segments that does something to its process, every time or the first time."""

    def __init__(self, what, once=None):
        self.what, self.once = what, once

    def __call__(self, rows, stop):
        if self.once is None or self._is_first():
            self.what()
        return rows.sum()

    def _is_first(self):
        try:
            self.once.touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def divide():
    return 1 // 0


def sleep():
    time.sleep(PATIENCE)


PATIENCE = 60.0  # seconds after which what should have happened counts as not happened


def assert_survives_a_dead_worker(X, folder):
    expected = [X[dealt_one_by_one(N, 2)[p]].sum() for p in range(2)]
    with ShardPool(Shards(X, 2, dense), n_jobs=2) as pool:
        mishap = Mishap(die, once=folder / "dead")
        assert pool.run(mishap, [(0, ()), (1, ())]) == (expected, False)
        assert mishap.once.exists()
        assert pool.run(Mishap(int), [(1, ())]) == (expected[1:], False)


def assert_gives_up_on_a_deadly_segment(X):
    with ShardPool(Shards(X, 2, dense), n_jobs=2) as pool:
        with pytest.raises(RuntimeError, match="Workers died on a segment again and again"):
            pool.run(Mishap(die), [(0, ()), (1, ())])


def assert_raises_once(X, folder):
    """An error of the function itself: as it is, and not tried again."""
    with ShardPool(Shards(X, 2, dense), n_jobs=2) as pool:
        with pytest.raises(ZeroDivisionError, match="^integer division or modulo by zero$"):
            pool.run(Mishap(divide, once=folder / "divided"), [(0, ())])
        assert pool.run(Mishap(int), [(0, ())])[0] == [X[dealt_one_by_one(N, 2)[0]].sum()]


def assert_interrupted_in_another_process(X, folder):
    mark = folder / "begun"

    def interrupt():
        deadline = time.monotonic() + PATIENCE
        while not mark.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    with ShardPool(Shards(X, 2, dense), n_jobs=2) as pool:
        thread = threading.Thread(target=interrupt)
        thread.start()
        start = time.monotonic()
        results = pool.run(Mishap(sleep, once=mark), [(0, ()), (1, ())])
        assert time.monotonic() - start < PATIENCE
        thread.join()
    assert results == ([None, None], True)


@pytest.fixture
def python_handler():
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, old)


def test_threads_are_interrupted(X, python_handler):
    begun = threading.Barrier(3, timeout=PATIENCE)

    def watch(rows, stop):
        begun.wait()
        deadline = time.monotonic() + PATIENCE
        while not stop.is_set() and time.monotonic() < deadline:
            time.sleep(0.001)
        return "what there is"

    def interrupt():
        begun.wait()
        _thread.interrupt_main()

    with ShardPool(Shards(X, 3, dense), n_jobs=2) as pool:
        thread = threading.Thread(target=interrupt)
        thread.start()
        results = pool.run(watch, [(p, ()) for p in range(3)])
        thread.join()
    assert results == (["what there is"] * 2 + [None], True)


def test_threads_raise_an_error_once(X, tmp_path):
    assert_raises_once(X, tmp_path)


@pytest.fixture
def processes(tmp_path, monkeypatch):
    """loky, with a look at what it leaves behind."""
    monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path))
    with joblib.parallel_config("loky"):
        yield
    assert not list(tmp_path.glob("skanneal-*"))


def test_processes(X, tmp_path, processes):
    assert_same_as_threads(X, tmp_path, "loky")


def test_processes_die_or_raise(X, tmp_path, processes, python_handler, monkeypatch):
    assert_raises_once(X, tmp_path)
    monkeypatch.setattr("skanneal._placement.N_ATTEMPTS", 2)  # new workers take seconds to start
    assert_survives_a_dead_worker(X, tmp_path)
    assert_gives_up_on_a_deadly_segment(X)
    assert_interrupted_in_another_process(X, tmp_path)


def test_files_are_removed_if_placing_fails(X, processes):
    lock = threading.Lock()
    with pytest.raises(TypeError, match="cannot pickle"):
        ShardPool(Shards(X, 2, lambda X: lock), n_jobs=2).__enter__()


@pytest.fixture(scope="module")
def dask():
    distributed = pytest.importorskip("distributed", reason="needs dask[distributed]")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            protocol="tcp",
            dashboard_address=None,
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_dask(X, tmp_path, dask):
    assert_same_as_threads(X, tmp_path, "dask")


def test_dask_workers_die_or_raise(X, tmp_path, dask, python_handler):
    with joblib.parallel_config("dask"):
        assert_raises_once(X, tmp_path)
        assert_survives_a_dead_worker(X, tmp_path)


def test_dask_worker_dies_at_rest(X, dask):
    """With the shards that it holds, between two runs."""
    dask.wait_for_workers(2)
    expected = [X[dealt_one_by_one(N, 2)[p]].sum() for p in range(2)]
    with joblib.parallel_config("dask"), ShardPool(Shards(X, 2, dense)) as pool:
        pids = dask.run(os.getpid)
        os.kill(next(iter(pids.values())), signal.SIGKILL)
        assert pool.run(Mishap(int), [(0, ()), (1, ())]) == (expected, False)


def nested(X, folder):
    with ShardPool(Shards(X, 2, dense), n_jobs=2) as pool:
        return type(pool._placement).__name__, pool.run(Mishap(int), [(0, ()), (1, ())])


def test_dask_within_a_task_of_dask(X, tmp_path, dask):
    """As many searches at once as there are workers: none waits for a worker."""
    expected = [X[dealt_one_by_one(N, 2)[p]].sum() for p in range(2)]
    with joblib.parallel_config("dask"):
        found = joblib.Parallel()(joblib.delayed(nested)(X, tmp_path) for _ in range(3))
    assert found == [("OnThreads", (expected, False))] * 3


@pytest.mark.slow
def test_dask_gives_up_or_is_interrupted(X, tmp_path, dask, python_handler):
    with joblib.parallel_config("dask"):
        assert_interrupted_in_another_process(X, tmp_path)
        assert_gives_up_on_a_deadly_segment(X)


@pytest.fixture(scope="module")
def ray():
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AUTH_MODE", "disabled")
        ray = pytest.importorskip("ray", reason="needs ray")
        from ray.util.joblib import register_ray

        register_ray()
        here = str(Path(__file__).parent)
        environment = {"PYTHONPATH": os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])}
        ray.init(
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            runtime_env={"env_vars": environment},
        )
        yield ray
        ray.shutdown()


@pytest.mark.slow
def test_ray(X, tmp_path, ray):
    assert_same_as_threads(X, tmp_path, "ray")


@pytest.mark.slow
def test_ray_workers_die_or_raise(X, tmp_path, ray, python_handler):
    with joblib.parallel_config("ray"):
        assert_raises_once(X, tmp_path)
        assert_survives_a_dead_worker(X, tmp_path)
        assert_gives_up_on_a_deadly_segment(X)
        assert_interrupted_in_another_process(X, tmp_path)


# ------------------------------------------------------------------------------------------ memory
LARGE = """
import resource
from pathlib import Path
import numpy as np
from skanneal.shards import ShardPool, Shards

MIB, N, D = 2**20, 3 * 2**17, 128           # 384 MiB of float64
def allowed():
    lines = Path("/proc/self/status").read_text().splitlines()
    data = next(int(line.split()[1]) for line in lines if line.startswith("VmData"))
    return 1024 * data + 150 * MIB          # beyond what the imports took

def total(rows, stop):
    return rows.sum(dtype=np.float64)

paths = [Path(f"{i}.npy") for i in range(3)]
for i, path in enumerate(paths):            # files with holes, a few numbers but zero
    part = np.lib.format.open_memmap(path, "w+", np.float64, (N // 3, D))
    part[::1000, i] = i + 1.0
    del part
with open("all.bin", "wb") as file:
    file.truncate(N * D * 8)
whole = np.memmap("all.bin", np.float64, "r+", shape=(N, D))
whole[::500, 5] = 2.0
whole = np.memmap("all.bin", np.float64, "r", shape=(N, D))

limit = allowed()
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
for source, expected in ((whole, 2.0 * len(range(0, N, 500))),
                         (paths, 6.0 * len(range(0, N // 3, 1000)))):
    shards = Shards(source, 16, np.float32)
    assert shards.is_lazy
    with ShardPool(shards, n_jobs=2) as pool:
        results, _ = pool.run(total, [(p, ()) for p in range(16)])
    assert sum(results) == expected, (results, expected)
print("worked through")
try:
    np.array(whole)
except MemoryError:
    print("does not fit")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is on memory as Linux counts it")
def test_rows_larger_than_memory(tmp_path):
    root = str(Path(__file__).parents[1])
    paths = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(LARGE)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.stdout == "worked through\ndoes not fit\n", done.stderr
