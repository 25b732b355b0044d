"""Rows from any container, on disk or not, dealt to shards and encoded."""

import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array, csr_matrix, issparse, save_npz

from skanneal.sharded._shards import RowSource, Shards

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
    monkeypatch.setattr("skanneal.sharded._row_source._BLOCK_BYTES", 256)
    source = RowSource(CONTAINERS[name](X, tmp_path), resident_bytes=resident_bytes)
    in_blocks = InBlocks()
    for encode in (InBlocks.encode.__get__(object()), in_blocks.encode):
        shards = Shards(source, 3, encode)
        for p in range(3):
            np.testing.assert_array_equal(shards.encoded(p), X[dealt_one_by_one(N, 3)[p]] + 1.0)
    assert in_blocks.n_blocks >= 6


# ------------------------------------------------------------------------------------------ memory
LARGE = """
import resource
from pathlib import Path
import numpy as np
from skanneal.sharded._shards import ShardPool, Shards

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
@pytest.mark.slow
def test_rows_larger_than_memory(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(LARGE)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "worked through\ndoes not fit\n", done.stderr
