"""Shards of the rows, and segments of chains run on them side by side.

The rows are dealt to shards in turns; a segment is a pure function of a shard's encoded rows and
of small arguments, such as a state and a seed. Threads share the shards. For other processes the
shards are placed once (see `_placement`), and only arguments and results travel after.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numbers

import numpy as np
from threadpoolctl import threadpool_limits

from ..parallel import keep_on_interrupt
from ._placement import place
from ._row_source import RowSource

__all__ = ["RowSource", "ShardPool", "Shards"]

_LONGEST_TURN = 64  # rows that are read and encoded together
_N_TURNS = 16  # least turns of a shard, if it has as many rows: sizes differ by one turn


class Shards:
    """The rows, dealt in turns and encoded.

    With ``turn = max(1, min(64, n_rows // (16 * n_shards)))``, the t-th `turn` of consecutive rows
    goes to shard ``t % n_shards``, whatever the container.

    Parameters
    ----------
    source : RowSource, or what it takes
        The rows. In memory, every shard is encoded here and kept. On disk, a shard is read and
        encoded anew by whoever runs a segment on it, and dropped afterwards.
    n_shards : int
        Number of shards, at most the number of rows.
    encode : callable
        ``encode(X)`` turns a shard's rows into what segments are given. If it has an attribute
        ``encode_blocks``, or is a method of an object that has one, ``encode_blocks(iterator)`` is
        called instead with the same rows in blocks. It must pickle for processes.

    Attributes
    ----------
    n_rows, n_shards : int
    sizes : int64 array of shape (n_shards,)
        Number of rows of each shard.
    is_lazy : bool
        Whether shards are read when they are needed.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.sharded._shards import Shards
    >>> shards = Shards(np.arange(10.0).reshape(5, 2), n_shards=2, encode=np.negative)
    >>> shards.sizes, shards.rows_of(1), shards.encoded(1)
    (array([3, 2]), array([1, 3]), array([[-2., -3.],
           [-6., -7.]]))
    """

    def __init__(self, source, n_shards, encode):
        if not isinstance(source, RowSource):
            source = RowSource(source)
        if isinstance(n_shards, bool) or not isinstance(n_shards, numbers.Integral):
            raise TypeError(f"n_shards must be an int, got {n_shards!r}.")
        if not 1 <= n_shards <= source.n_rows:
            raise ValueError(
                f"n_shards must be between 1 and the number of rows, {source.n_rows}, got"
                f" {n_shards}."
            )
        self.n_rows, self.n_shards = source.n_rows, int(n_shards)
        self.is_lazy, self.encode = source.is_lazy, encode
        self.sizes = np.array([len(self.rows_of(p)) for p in range(self.n_shards)])
        self._shards = [UnreadShard(source, self.n_shards, p, encode) for p in range(self.n_shards)]
        if not self.is_lazy:
            self._shards = [shard.read() for shard in self._shards]

    def rows_of(self, p):
        """Indices of a shard's rows.

        Parameters
        ----------
        p : int
            Number of the shard.

        Returns
        -------
        rows : int64 array of shape (sizes[p],)
        """
        return _dealt(self.n_rows, self.n_shards, p)

    def encoded(self, p):
        """A shard's encoded rows, read from disk if they are not kept.

        Parameters
        ----------
        p : int
            Number of the shard.

        Returns
        -------
        rows : object
            What `encode` returned.
        """
        shard = self._shards[p]
        return shard.read() if self.is_lazy else shard

    def handle(self, p):
        """What stands for a shard in another process: its encoded rows, or an `UnreadShard`."""
        return self._shards[p]


class UnreadShard:
    """The rows of a shard and how to encode them, in an object that is small when pickled."""

    def __init__(self, source, n_shards, p, encode):
        self.source, self.n_shards, self.p, self.encode = source, n_shards, p, encode

    def read(self):
        """The encoded rows."""
        rows = _dealt(self.source.n_rows, self.n_shards, self.p)
        owner = getattr(self.encode, "__self__", self.encode)
        encode_blocks = getattr(owner, "encode_blocks", None)
        if encode_blocks is not None:
            encoded = encode_blocks(self.source.blocks(rows))
        else:
            encoded = self.encode(self.source.rows(rows))
        # Match the layout after pickling: the order of summation, hence the bits, depends on it.
        return np.ascontiguousarray(encoded) if isinstance(encoded, np.ndarray) else encoded


def _dealt(n_rows, n_shards, p):
    """Indices of the rows that shard p is dealt."""
    turn = max(1, min(_LONGEST_TURN, n_rows // (_N_TURNS * n_shards)))
    starts = np.arange(p * turn, n_rows, n_shards * turn, dtype=np.int64)
    rows = (starts[:, None] + np.arange(turn)).ravel()
    return rows[: np.searchsorted(rows, n_rows)]


class ShardPool:
    """Runs segments on shards, with the shards placed once where the segments will run.

    Threads are preferred; `joblib.parallel_config` selects another backend. It is a context
    manager: workers' copies and temporary files exist inside the `with` alone. There BLAS runs on
    one thread, in this process and in workers, since its results depend on their number.

    Parameters
    ----------
    shards : Shards
        The rows.
    n_jobs : int or None, default=None
        Number of segments at a time, as in joblib; None is 1 unless a ``parallel_config`` says
        more. Dask and Ray decide by themselves how many they run at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.sharded._shards import ShardPool, Shards
    >>> def count(rows, threshold, stop):
    ...     return int((rows > threshold).sum())
    >>> shards = Shards(np.arange(10.0).reshape(5, 2), n_shards=2, encode=np.asarray)
    >>> with ShardPool(shards, n_jobs=2) as pool:
    ...     results, interrupted = pool.run(count, [(0, (3,)), (1, (3,)), (1, (6,))])
    >>> results, interrupted
    ([4, 2, 1], False)
    """

    def __init__(self, shards, n_jobs=None):
        self.shards, self.n_jobs = shards, n_jobs
        self._placement = None

    def __enter__(self):
        self._placement = place(self.shards, self.n_jobs)
        self._blas = threadpool_limits(1, user_api="blas")
        return self

    def __exit__(self, *error):
        self._blas.restore_original_limits()
        self._placement.close()
        self._placement = None

    def run(self, function, tasks, seconds=None):
        """Run one segment per task, and keep what an interrupt leaves.

        Parameters
        ----------
        function : callable
            ``function(rows, *args, stop=flag)`` with a shard's encoded rows and a `StopFlag`; pure
            otherwise. In another process it gets a flag of its own, which only `seconds` sets, and
            must pickle; rows and arguments may then be read-only.
        tasks : iterable of (int, tuple)
            Numbers of shards, and arguments.
        seconds : float, optional
            After so long the flag of every task is set. In another process the time runs from the
            task's own beginning.

        Returns
        -------
        results : list
            In the order of the tasks; not to be written to, since Ray's are read-only. After an
            interrupt, None for each task that did not begin or that ran in another process.
        interrupted : bool
            Whether there was an interrupt (see `skanneal.parallel.run_tasks`).

        Raises
        ------
        RuntimeError
            If worker processes died on a task again and again. An error in `function` is raised as
            it is, at once.
        """
        tasks = list(tasks)
        return keep_on_interrupt(
            lambda stop, ledger: self._placement.run(function, tasks, stop, ledger),
            len(tasks),
            seconds,
        )
