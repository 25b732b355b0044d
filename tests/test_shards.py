"""Rows from any container, dealt to shards, and segments run on them by any backend."""

import pickle

import joblib
import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array, csr_matrix, issparse, save_npz

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
    """Some numbers that hang on the rows, their order and the arguments."""
    rng = np.random.default_rng(seed)
    return (rows @ theta)[rng.permutation(len(rows))], len(rows)


def table_of(X):
    table = Table(["f4"] * D, [0] * D)
    table.append(list(dense(X).T))
    return table


def of_table(table, j, stop):
    return table.column(j)


def run_on(source, encode, function, tasks, **options):
    with ShardPool(Shards(source, 3, encode), **options) as pool:
        results, interrupted = pool.run(function, tasks)
        again, _ = pool.run(function, tasks[::-1])
    assert not interrupted
    assert len(results) == len(tasks)
    for result, other in zip(results, again[::-1]):
        np.testing.assert_equal(result, other)
    return results


TASKS = [(p, (seed, np.full(D, 0.1 * seed))) for seed in range(1, 4) for p in range(3)]


def assert_same_as_threads(X, folder, containers=("array", "sparse_files")):
    """Under the backend in force; also Tables, and rows that the workers read themselves."""
    with joblib.parallel_config("threading"):
        expected = run_on(X, dense, segment, TASKS)
        columns = run_on(X, table_of, of_table, [(1, (2,)), (0, (0,))])
    for name in containers:
        (folder / name).mkdir()
        source = RowSource(CONTAINERS[name](X, folder / name), resident_bytes=0)
        found = run_on(source, dense, segment, TASKS, n_jobs=2)
        np.testing.assert_equal(found, expected)
    np.testing.assert_equal(
        run_on(X, table_of, of_table, [(1, (2,)), (0, (0,))], n_jobs=2), columns
    )


def test_threads(X, tmp_path):
    assert_same_as_threads(X, tmp_path)


def test_processes(X, tmp_path, monkeypatch):
    monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path))
    with joblib.parallel_config("loky"):
        assert_same_as_threads(X, tmp_path)
    assert not list(tmp_path.glob("skanneal-*"))
