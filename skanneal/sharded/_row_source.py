"""Rows in memory or on disk, read by index: arrays, memory maps, CSR, lists of shard files.

A file is opened as a memory map, of which only the rows asked for are read. The exception is a
compressed .npz: its file is read whole, one such file at a time and per thread.
"""

# SPDX-License-Identifier: BSD-3-Clause

import math
import mmap
import os
import threading
import zipfile
import zlib

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from ..families._sparse import check_indices, check_pointers, checked

_RESIDENT_BYTES = 2**28
_BLOCK_BYTES = 2**24
_ENTRIES = ("data", "indices", "indptr")
_UNREADABLE = (  # what the standard library and NumPy raise for a file of another format
    ValueError,
    KeyError,
    EOFError,
    OSError,
    OverflowError,
    MemoryError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)


class RowSource:
    """The rows of a table, wherever they are.

    Parameters
    ----------
    X : ndarray, memory map, sparse matrix or list
        A list holds the shards of the rows, one after another: paths of .npy files, or of .npz
        files as `scipy.sparse.save_npz` writes them from CSR; or arrays, memory maps, CSR.
    name : str, default="X"
        What error messages call it.
    resident_bytes : int, default=2**28
        Rows on disk that take no more than this are read once and kept, as if they had come in
        memory.

    Attributes
    ----------
    n_rows, n_columns : int
    dtype : numpy dtype
        One that holds the numbers of all parts.
    is_lazy : bool
        Whether the rows are on disk and should not be held in memory.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.sharded._shards import RowSource
    >>> source = RowSource([np.zeros((3, 2)), np.ones((2, 2))])
    >>> source.n_rows, source.is_lazy
    (5, False)
    >>> source.rows(np.array([1, 4]))
    array([[0., 0.],
           [1., 1.]])
    """

    def __init__(self, X, name="X", resident_bytes=_RESIDENT_BYTES):
        if isinstance(X, (list, tuple)):
            if len(X) == 0:
                raise ValueError(f"{name} is an empty list: it must hold at least one shard.")
            self._parts = [_open_part(part, f"{name}[{i}]") for i, part in enumerate(X)]
        else:
            self._parts = [_open_array(X, name)]
        first = self._parts[0]
        self.n_columns, self.is_sparse = first.shape[1], first.is_sparse
        for part in self._parts:
            if part.shape[1] != self.n_columns:
                raise ValueError(
                    f"{part.label} has {part.shape[1]} columns, but {first.label} has"
                    f" {self.n_columns}."
                )
            if part.is_sparse != self.is_sparse:
                words = {True: "sparse", False: "dense"}
                raise ValueError(
                    f"{part.label} is {words[part.is_sparse]}, but {first.label} is"
                    f" {words[self.is_sparse]}."
                )
        self._starts = np.cumsum([0, *(part.shape[0] for part in self._parts)])
        self.n_rows = int(self._starts[-1])
        self.dtype = np.result_type(*(part.dtype for part in self._parts))
        self.nbytes = sum(part.nbytes for part in self._parts)
        self.is_lazy = self.nbytes > resident_bytes and any(p.on_disk for p in self._parts)

    def rows(self, rows):
        """Some rows, read from wherever they are.

        Parameters
        ----------
        rows : slice or int64 array
            Which.

        Returns
        -------
        X : C-contiguous ndarray, or csr_array, of shape (n_rows, n_columns)
            Not to be written to: it may be a view of the user's array.
        """
        X = self._take(rows)
        return X if self.is_sparse else np.ascontiguousarray(X)

    def _take(self, rows):
        if len(self._parts) == 1:
            return self._parts[0].take(rows)
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(self.n_rows))
        if len(rows) and not 0 <= rows.min() <= rows.max() < self.n_rows:
            raise IndexError(f"row index out of 0..{self.n_rows - 1}")
        part = np.searchsorted(self._starts, rows, side="right") - 1
        taken = [
            self._parts[part[start]].take(rows[start:stop] - self._starts[part[start]])
            for start, stop in _pieces(np.diff(part) != 0, len(rows))
        ]
        if not taken:
            return self._parts[0].take(rows)
        X = vstack(taken, format="csr") if self.is_sparse else np.concatenate(taken)
        return X.astype(self.dtype, copy=False)

    def check(self, checked_rows):
        """Read all rows once, some megabytes at a time, and check them.

        Parameters
        ----------
        checked_rows : callable
            ``checked_rows(X, name, first)`` raises an error that names `name`, a part of the
            source, and the row; X begins with row `first` of this part.
        """
        for part in self._parts:
            for start in range(0, part.shape[0], self._n_block):
                checked_rows(part.take(slice(start, start + self._n_block)), part.label, start)

    @property
    def _n_block(self):
        return max(1, _BLOCK_BYTES * max(self.n_rows, 1) // max(self.nbytes, 1))

    def blocks(self, rows):
        """The rows asked for, some megabytes at a time.

        Parameters
        ----------
        rows : int64 array
            Which.

        Yields
        ------
        X : ndarray or csr_array
            As `rows` returns them.
        """
        for start in range(0, len(rows), self._n_block):
            yield self.rows(rows[start : start + self._n_block])


def _pieces(is_break, n):
    """Ranges between breaks: is_break[i] says whether one ends after i."""
    stops = [*(np.flatnonzero(is_break) + 1).tolist(), n]
    return zip([0, *stops[:-1]], stops) if n else []


def _open_part(part, label):
    if isinstance(part, (str, os.PathLike)):
        return _open_file(os.path.abspath(part), f"{label} ({os.fspath(part)!r})")
    return _open_array(part, label)


def _open_file(path, label):
    if not os.path.isfile(path):
        raise FileNotFoundError(f"{label} is no file.")
    if path.endswith(".npz"):
        return _CsrFile(path, label)
    if not path.endswith(".npy"):
        raise ValueError(f"{label}: a shard file must be .npy or .npz.")
    try:
        array = np.lib.format.open_memmap(path, mode="r")  # np.load would open other files, too
    except _UNREADABLE as error:
        raise ValueError(f"{label} cannot be mapped as an array: {error}") from error
    return _Dense(array, label)


def _open_array(X, label):
    if issparse(X):
        return _Csr(X, label)
    if isinstance(X, np.ma.MaskedArray) or not isinstance(X, np.ndarray):
        raise TypeError(
            f"{label} must be an array, a memory map, a CSR matrix, or the path of a .npy or .npz"
            f" file, got {type(X).__name__}."
        )
    return _Dense(X, label)


class _Part:
    """What the parts share: shape, dtype, nbytes, label, on_disk, is_sparse, take(rows)."""

    on_disk = False
    is_sparse = False

    def __init__(self, shape, dtype, nbytes, label):
        self.shape, self.dtype, self.nbytes, self.label = shape, np.dtype(dtype), nbytes, label
        if len(shape) != 2:
            raise ValueError(f"{label} must have two dimensions, got {len(shape)}.")
        if self.dtype.kind not in "biuf":
            raise ValueError(f"{label} must hold numbers, got the dtype {self.dtype}.")


class _Dense(_Part):
    """An array or a memory map."""

    def __init__(self, array, label):
        super().__init__(array.shape, array.dtype, array.nbytes, label)
        # a view without memmap's subclass, whose every slice is one more memmap
        self._array, self._map = np.asarray(array), _map_of(array)
        self.on_disk = self._map is not None
        root = _root_of(array)
        self._file = root.base if self.on_disk else None
        self._end = _mapped_end(root) if self.on_disk else 0

    def take(self, rows):
        if self.on_disk and self._file.size() < self._end:  # to read beyond the end ends a process
            raise ValueError(f"{self.label} has become shorter since it was mapped.")
        taken = self._array[rows]
        return taken.copy() if self.on_disk and isinstance(rows, slice) else taken

    def __reduce__(self):
        if self.on_disk:
            return _mapped_again, (*self._map, self.label)
        return _Dense, (self._array, self.label)


def _root_of(array):
    """The array that an array is a view of, or itself."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _mapped_end(root):
    """Up to which byte of its file a memory map goes."""
    return root.offset - root.offset % mmap.ALLOCATIONGRANULARITY + len(root.base)


def _map_of(array):
    """Where in which file an array is mapped: what `_mapped_again` needs; None if it is not.

    The attribute `offset` of a slice of a memory map is its parent's, hence by addresses.
    """
    root = _root_of(array)
    # A map copied on write may differ from its file.
    if not isinstance(root, np.memmap) or root.filename is None or root.mode == "c":
        return None
    offset = root.offset + array.ctypes.data - root.ctypes.data
    return os.path.abspath(root.filename), array.dtype, offset, array.shape, array.strides


def _mapped_again(path, dtype, offset, shape, strides, label):
    if 0 in shape:
        return _Dense(np.empty(shape, dtype), label)
    spans = [(n - 1) * stride for n, stride in zip(shape, strides)]
    before, behind = sum(s for s in spans if s < 0), sum(s for s in spans if s > 0)
    span = behind - before + dtype.itemsize
    bytes_ = np.memmap(path, np.uint8, "r", offset=offset + before, shape=(span,))
    array = np.ndarray(shape, dtype, buffer=bytes_, offset=-before, strides=strides)
    return _Dense(array, label)


class _Csr(_Part):
    """A sparse matrix or array in memory."""

    is_sparse = True

    def __init__(self, X, label):
        nbytes = X.nnz * (X.dtype.itemsize + 4)
        super().__init__(X.shape, X.dtype, nbytes, label)
        self._X = checked(X, label)

    def take(self, rows):
        return self._X[rows]


class _CsrFile(_Part):
    """A .npz file of `scipy.sparse.save_npz`; its arrays are mapped unless they are compressed.

    Every reading checks what it reads, since the file may have changed.
    """

    is_sparse = True
    on_disk = True

    def __init__(self, path, label):
        try:
            with zipfile.ZipFile(path) as archive:
                format_, shape = (
                    _Member(archive, path, name).read(archive) for name in ("format", "shape")
                )
                members = {name: _Member(archive, path, name) for name in _ENTRIES}
            format_ = format_.item()
        except _UNREADABLE as error:
            raise ValueError(f"{label} is no file of scipy.sparse.save_npz: {error}") from error
        if format_ not in (b"csr", "csr"):
            raise ValueError(f"{label} must be in the format CSR, got {format_!r}.")
        if shape.dtype.kind not in "iu" or shape.shape != (2,) or shape.min() < 0:
            raise ValueError(f"{label} is malformed: its shape must be two integers, got {shape}.")
        nbytes = sum(members[name].nbytes for name in _ENTRIES)
        super().__init__(tuple(shape.tolist()), members["data"].dtype, nbytes, label)
        for name, kinds in zip(_ENTRIES, ("biuf", "iu", "iu")):
            member = members[name]
            if len(member.shape) != 1 or member.dtype.kind not in kinds:
                raise ValueError(
                    f"{label} is malformed: {name} is an array of the shape {member.shape} and the"
                    f" dtype {member.dtype}."
                )
        (n_entries,), (n_pointers,) = members["indices"].shape, members["indptr"].shape
        if members["data"].shape[0] != n_entries or n_pointers != self.shape[0] + 1:
            raise ValueError(
                f"{label} is malformed: its {self.shape[0]} rows have {n_pointers} pointers, and"
                f" its {n_entries} indices have {members['data'].shape[0]} values."
            )
        self._path, self._members = path, members
        self._is_compressed = any(m.offset is None for m in members.values())

    def take(self, rows):
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(self.shape[0]))
        rows = np.asarray(rows, dtype=np.int64)
        try:
            if self._is_compressed:
                data, indices, indptr = _decompressed(self._path, self._members)
            else:
                data, indices, indptr = (self._members[name].map() for name in _ENTRIES)
        except _UNREADABLE as error:
            raise ValueError(f"{self.label} cannot be read: {error}") from error
        starts, stops = indptr[rows].astype(np.int64), indptr[rows + 1].astype(np.int64)
        number = rows.__getitem__
        check_pointers(starts, stops, len(indices), self.label, number=number)
        # the entries of consecutive rows are copied at once
        runs = [(starts[i], stops[j - 1]) for i, j in _pieces(np.diff(rows) != 1, len(rows))]
        pointers = np.concatenate([[0], np.cumsum(stops - starts)])
        data, indices = (
            np.concatenate([a[:0], *(a[i:j] for i, j in runs)]) for a in (data, indices)
        )
        check_indices(indices, pointers[:-1], self.shape[1], self.label, number=number)
        return csr_array((data, indices, pointers), shape=(len(rows), self.shape[1]))


class _Member:
    """Where an array stands in an .npz file."""

    def __init__(self, archive, path, name):
        info = archive.getinfo(f"{name}.npy")
        with archive.open(info) as stream:
            version = np.lib.format.read_magic(stream)
            if version not in ((1, 0), (2, 0)):
                raise ValueError(f"{name} has a header of version {version}")
            read = getattr(np.lib.format, f"read_array_header_{version[0]}_{version[1]}")
            self.shape, _, self.dtype = read(stream)
            header = stream.tell()
        self.path, self.name = path, name
        self.nbytes = math.prod(self.shape) * self.dtype.itemsize
        if self.dtype.hasobject or min(self.shape, default=0) < 0:
            raise ValueError(f"{name} has the dtype {self.dtype} and the shape {self.shape}")
        if header + self.nbytes != info.file_size:
            raise ValueError(f"{name} has not the {self.nbytes} bytes that its header promises")
        self.offset = None
        if info.compress_type == zipfile.ZIP_STORED:
            with open(path, "rb") as file:
                # the local header: 30 bytes, then a name and extras of the lengths at its end
                file.seek(info.header_offset + 26)
                lengths = np.frombuffer(file.read(4), "<u2")
            self.offset = info.header_offset + 30 + int(lengths.sum()) + header

    def read(self, archive):
        with archive.open(f"{self.name}.npy") as stream:
            array = np.lib.format.read_array(stream, allow_pickle=False)
        if array.shape != self.shape or array.dtype != self.dtype:
            raise ValueError(f"{self.name} has changed since the file was opened")
        return array

    def map(self):
        if self.nbytes == 0:
            return np.empty(self.shape, self.dtype)
        return np.asarray(
            np.memmap(self.path, self.dtype, "r", offset=self.offset, shape=self.shape)
        )


_last = threading.local()


def _decompressed(path, members):
    """A compressed file's arrays; the thread's last ones are kept, as blocks come in order."""
    # by size and time too: a file of that name may have been written anew
    status = os.stat(path)
    key = path, status.st_size, status.st_mtime_ns
    if getattr(_last, "key", None) != key:
        _last.arrays = _last.key = None
        with zipfile.ZipFile(path) as archive:
            _last.arrays = [members[name].read(archive) for name in _ENTRIES]
        _last.key = key
    return _last.arrays
