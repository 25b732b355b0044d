"""Sparse tables whose arrays contradict each other: an error that says where, never a crash."""

import zipfile

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse import csr_array, save_npz

from oracles.cheap import ONE_DRAW
from skanneal import AcceleratedDPMixture, AnnealedDPMixture
from skanneal.families._sparse import entries
from skanneal.likelihoods import LIKELIHOODS
from skanneal.schedules import AcceleratedSchedule, SequentialGibbs
from skanneal.sharded._shards import RowSource

N, D = 30, 6
DENSE = np.random.default_rng(0).poisson(1.0, (N, D)) + 1
DENSE[:, 3:] = np.random.default_rng(1).poisson(0.5, (N, 3))
QUERIES = ("predict", "predict_proba", "score_samples", "new_cluster_proba", "impute", "score")
FORMATS = ("csr", "csc", "bsr", "coo", "lil", "dia", "dok")


def counts(format="csr"):
    return csr_array(DENSE).asformat(format).copy()


def far_index(X):
    X.indices[X.indptr[4] + 1] = 10**8


def just_outside(X):
    X.indices[X.indptr[4]] = X.shape[1]


def negative_index(X):
    X.indices[X.indptr[4]] = -5


def falling_pointers(X):
    X.indptr[5] = X.indptr[4] - 1


def far_pointers(X):
    X.indptr[5:9] = 10**9


def negative_pointers(X):
    X.indptr[4] = -3


def late_start(X):
    X.indptr[0] = 1


def few_pointers(X):
    X.indptr = X.indptr[:-2]


def many_pointers(X):
    X.indptr = np.append(X.indptr, X.indptr[-1]).astype(X.indptr.dtype)


def few_values(X):
    X.data = X.data[:-2]


def few_indices(X):
    X.indices = X.indices[:-2]


def fractional_indices(X):
    X.indices = X.indices.astype(float)


def square_indices(X):
    X.indices = X.indices[:, None]


def square_values(X):
    X.data = X.data[:, None]


def objects(X):
    X.data = X.data.astype(object)


FAULTS = {
    far_index: "malformed in row 4: an entry is in column 100000000, of 6",
    just_outside: "malformed in row 4: an entry is in column 6, of 6",
    negative_index: "malformed in row 4: an entry is in column -5, of 6",
    falling_pointers: "malformed in row 4: by indptr its entries",
    far_pointers: r"malformed in row 4: by indptr its entries are those from \d+ to 1000000000, of",
    negative_pointers: "malformed in row 3: by indptr its entries",
    late_start: "indptr must hold 31 numbers from 0 on",
    few_pointers: "indptr must hold 31 numbers from 0 on, got 29",
    many_pointers: "indptr must hold 31 numbers from 0 on, got 32",
    few_values: "entries, but .* indices",
    few_indices: "entries, but .* indices",
    fractional_indices: "indices must be an array of integers",
    square_indices: "indices must be an array of integers, of one dimension",
    square_values: "data must be an array of numbers, of one dimension",
    objects: "must hold numbers, got the dtype object",
}


@pytest.fixture(scope="module")
def annealed():
    model = AnnealedDPMixture(
        families="multinomial", schedule=SequentialGibbs(n_sweeps=2), n_chains=1, **ONE_DRAW
    )
    return model.set_params(random_state=0).fit(counts())


@pytest.fixture(scope="module")
def accelerated():
    return sharded().fit(counts())


def sharded(likelihood="multinomial"):
    schedule = AcceleratedSchedule(n_accelerated=1, n_exact=2, sync_every=1)
    return AcceleratedDPMixture(
        likelihood=likelihood, schedule=schedule, n_chains=1, random_state=0, **ONE_DRAW
    )


def spoilt(fault):
    X = counts()
    assert X.has_canonical_format  # SciPy keeps that in mind, whatever becomes of the arrays
    fault(X)
    return X


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
class TestFaults:
    def test_fits(self, annealed, accelerated, fault):
        X = spoilt(fault)
        for fit in (annealed.fit, accelerated.fit, lambda X: accelerated.fit([counts(), X])):
            with pytest.raises(ValueError, match=f"X(\\[1\\])? .*{FAULTS[fault]}"):
                fit(X)

    def test_queries(self, annealed, accelerated, fault):
        annealed.fit(counts())
        accelerated.fit(counts())
        X = spoilt(fault)
        for query in QUERIES:
            for model in (annealed, accelerated):
                if hasattr(model, query):
                    with pytest.raises(ValueError, match=FAULTS[fault]):
                        getattr(model, query)(X)

    @pytest.mark.parametrize("likelihood", ["multinomial", "logistic_normal", "poisson"])
    def test_likelihoods(self, likelihood, fault):
        with pytest.raises(ValueError, match=FAULTS[fault]):
            LIKELIHOODS[likelihood].of(spoilt(fault))


# ---------------------------------------------------------------------------------- other formats
def coo(change):
    X = counts("coo")
    rows, columns = np.array(X.row), np.array(X.col)
    change(rows, columns)
    X.row, X.col = rows, columns
    return X


def of_blocks():
    X = scipy.sparse.bsr_array(DENSE, blocksize=(3, 2)).copy()
    X.indices[X.indptr[2]] = 3
    return X


def of_columns():
    X = counts("csc")
    X.indices[X.indptr[2] + 1] = N
    return X


def of_lists(change):
    X = counts("lil")
    change(X)
    return X


def of_keys():
    X = counts("dok")
    X._dict[N, 2] = 1
    return X


OTHERS = {
    "coo row": (lambda: coo(lambda i, j: i.put(3, 10**8)), r"row 100000000 and column \d"),
    "coo column": (lambda: coo(lambda i, j: j.put(3, -1)), r"row \d and column -1"),
    "bsr": (of_blocks, "malformed in row 6: an entry is in column 3, of 3"),
    "csc": (of_columns, "malformed in column 2: an entry is in row 30, of 30"),
    "lil column": (
        lambda: of_lists(lambda X: X.rows[2].__setitem__(0, 77)),
        "row 2 and column 77",
    ),
    "lil values": (
        lambda: of_lists(lambda X: X.data[2].pop()),
        "its rows and its values differ in number",
    ),
    "dok": (of_keys, "row 30 and column 2"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_formats(case):
    make, words = OTHERS[case]
    with pytest.raises(ValueError, match=words):
        entries(make(), "X")


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, float])
def test_sound_tables_are_read(format, kind, dtype):
    X = DENSE.astype(dtype)
    made = getattr(scipy.sparse, f"{format}_{kind}")(X)
    read = entries(made, "X")
    np.testing.assert_array_equal(read.toarray(), X)
    assert read.has_canonical_format and read.data.all()


def test_duplicates_that_scipy_has_forgotten_are_summed():
    X = csr_array((np.full(4, 200, np.uint8), [0, 1, 2, 3], [0, 4]), (1, 4))
    assert X.has_canonical_format
    X.indices[:] = 2, 2, 1, 1
    assert entries(X, "X").toarray().tolist() == [[0, 400, 400, 0]]


def test_unused_entries_behind_the_last_row_are_no_fault():
    X = counts()
    X.data, X.indices = np.append(X.data, 7), np.append(X.indices, 10**8).astype(np.int32)
    np.testing.assert_array_equal(entries(X, "X").toarray(), DENSE)


@pytest.mark.parametrize(
    "value, words",
    [
        (-2, r"Row 4 of X: column \d must hold non-negative integers below 2\*\*31, got -2"),
        (0.5, r"Row 4 of X: column \d must hold non-negative integers"),
        (2**31, r"Row 4 of X: column \d must hold non-negative integers"),
        (np.nan, "missing cell"),
        (np.inf, "infinity"),
    ],
)
def test_values_that_are_no_counts(annealed, value, words):
    X = counts().astype(float)
    X.data[X.indptr[4]] = value
    with pytest.raises(ValueError, match=words):
        annealed.fit(X)


# --------------------------------------------------------------------------------------- the files
def npz(folder, X, compressed=False, **changed):
    """A file of save_npz, some of whose arrays are others."""
    arrays = {"format": b"csr", "shape": X.shape, "data": X.data}
    arrays |= {"indices": X.indices, "indptr": X.indptr} | changed
    arrays = {name: array for name, array in arrays.items() if array is not None}
    write = np.savez_compressed if compressed else np.savez
    write(folder / "a.npz", allow_pickle=True, **arrays)
    return folder / "a.npz"


CHANGED = {
    "more rows": ({"shape": (N + 1, D)}, "31 rows have 31 pointers"),
    "endless": ({"shape": (2**62, D)}, "rows have 31 pointers"),
    "negative shape": ({"shape": (-1, D)}, "shape must be two integers"),
    "three dimensions": ({"shape": (N, D, 1)}, "shape must be two integers"),
    "a fraction": ({"shape": (30.5, 6.0)}, "shape must be two integers"),
    "no shape": ({"shape": None}, "is no file of scipy.sparse.save_npz"),
    "no indices": ({"indices": None}, "is no file of scipy.sparse.save_npz"),
    "object indices": ({"indices": np.array([{}])}, "is no file of scipy.sparse.save_npz"),
    "object values": ({"data": np.array([{}])}, "is no file of scipy.sparse.save_npz"),
    "object format": ({"format": np.array({})}, "is no file of scipy.sparse.save_npz"),
    "text": ({"data": np.array(["a"])}, "must hold numbers, got the dtype <U1"),
    "fractions": ({"indptr": np.zeros(N + 1)}, "indptr is an array of .* dtype float64"),
    "square": ({"indices": np.zeros((2, 2), int)}, r"indices is an array of the shape \(2, 2\)"),
    "few values": ({"data": np.ones(3)}, "indices have 3 values"),
    "two formats": ({"format": np.array(["csr", "csr"])}, "is no file of scipy.sparse.save_npz"),
}


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("case", CHANGED)
def test_shard_files(case, compressed, tmp_path):
    changed, words = CHANGED[case]
    shards = [counts(), npz(tmp_path, counts(), compressed, **changed)]
    with pytest.raises(ValueError, match=rf"X\[1\] \(.*a.npz'\) .*{words}"):
        sharded().fit(shards)


def test_a_shard_file_that_promises_few_columns(tmp_path):
    path = npz(tmp_path, counts(), shape=(N, 3))
    with pytest.raises(ValueError, match=r"a.npz'\) is malformed in row 0: .* column \d, of 3"):
        sharded().fit([path])


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("fault", list(FAULTS)[:6], ids=lambda fault: fault.__name__)
def test_entries_of_shard_files(fault, lazy, compressed, tmp_path, monkeypatch):
    if lazy:
        monkeypatch.setattr(RowSource.__init__, "__defaults__", ("X", 0))
    shards = [counts(), npz(tmp_path, spoilt(fault), compressed)]
    with pytest.raises(ValueError, match=rf"X\[1\] \(.*a.npz'\) .*{FAULTS[fault]}"):
        sharded().fit(shards)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("likelihood", ["multinomial", "poisson", "normal"])
def test_cells_of_shard_files(likelihood, lazy, tmp_path, monkeypatch):
    if lazy:
        monkeypatch.setattr(RowSource.__init__, "__defaults__", ("X", 0))
    bad = DENSE.astype(float)
    bad[17, 2] = np.nan
    np.save(tmp_path / "a.npy", bad)
    with pytest.raises(ValueError, match=r"Row 17, column 2 of X\[1\] \(.*a.npy'\) must hold"):
        sharded(likelihood).fit([DENSE.astype(float), tmp_path / "a.npy"])


@pytest.mark.parametrize("compressed", [False, True])
def test_a_file_that_changes_after_it_was_opened(compressed, tmp_path):
    path = npz(tmp_path, counts(), compressed)
    source = RowSource([path], resident_bytes=0)
    source.rows(np.arange(3))
    npz(tmp_path, spoilt(far_index), compressed)
    with pytest.raises(ValueError, match="malformed in row 4"):
        source.rows(np.array([2, 4]))
    save_npz(path, csr_array((2, 2)), compressed=compressed)
    with pytest.raises(ValueError, match=r"a.npz'\) "):
        source.rows(np.array([2, 4]))


def test_a_memory_map_that_becomes_shorter(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((10000, 5)))
    source = RowSource([tmp_path / "a.npy"], resident_bytes=0)
    source.rows(np.arange(3))
    with open(tmp_path / "a.npy", "r+b") as file:
        file.truncate(4096)
    with pytest.raises(ValueError, match=r"a.npy'\) has become shorter"):
        source.rows(np.arange(9000, 9010))


def header(shape, descr="<f8", version=(1, 0)):
    """An .npy file that promises an array, followed by eight bytes."""
    text = str({"descr": descr, "fortran_order": False, "shape": shape}).ljust(117) + "\n"
    length = len(text).to_bytes(2 if version == (1, 0) else 4, "little")
    return np.lib.format.magic(*version) + length + text.encode() + bytes(8)


HEADERS = {
    "huge": header((10**15, 5)),
    "overflow": header((2**62, 4)),
    "negative": header((-1, 5)),
    "objects": header((1, 1), "|O"),
    "another version": header((10**6, 5), version=(3, 0)),
    "no array": b"PK\x03\x04" + bytes(100),
    "empty": b"",
    "cut": header((1, 1))[:40],
}


@pytest.mark.parametrize("case", HEADERS)
def test_headers_that_promise_what_is_not_there(case, tmp_path):
    (tmp_path / "a.npy").write_bytes(HEADERS[case])
    with pytest.raises(ValueError, match=r"X\[0\] \(.*a.npy'\) (cannot be mapped|must have two)"):
        RowSource([tmp_path / "a.npy"])
    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        for member in ("shape", "data", "indices", "indptr"):
            path = npz(tmp_path, counts(), **{member: None})
            with zipfile.ZipFile(path, "a", compression) as archive:
                archive.writestr(f"{member}.npy", HEADERS[case])
            with pytest.raises(ValueError, match=r"X\[0\] \(.*a.npz'\) is no file of"):
                RowSource([path])


@pytest.mark.parametrize("compressed", [False, True])
def test_files_that_are_cut_or_overwritten(compressed, tmp_path):
    whole = npz(tmp_path, counts(), compressed).read_bytes()
    rng = np.random.default_rng(0)
    read = 0
    for i in range(60):
        damaged = bytearray(whole)
        if i < 10:
            del damaged[int(rng.integers(len(whole))) :]
        else:
            at = rng.integers(len(whole), size=3)
            for place in at:
                damaged[place] = int(rng.integers(256))
        (tmp_path / "a.npz").write_bytes(damaged)
        try:
            source = RowSource([tmp_path / "a.npz"])
            source.check(LIKELIHOODS["multinomial"].checked_rows)
            read += 1
        except ValueError as error:
            assert "X[0] (" in str(error)
    assert read < 60
