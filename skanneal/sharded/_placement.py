"""Where the shards stand and segments run: threads, processes, Dask or Ray.

Each class places all shards when it is made, runs segments on them, and clears up when closed. A
worker that dies loses nothing: a segment is pure and runs again, `N_ATTEMPTS` times in all.
"""

# SPDX-License-Identifier: BSD-3-Clause

import functools
import os
import pickle
import tempfile
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor, wait

import numpy as np
from joblib.externals.loky.process_executor import TerminatedWorkerError
from joblib.parallel import get_active_backend
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import ThreadpoolController

from ..parallel import StopFlag, n_workers, run_task

try:
    from cloudpickle import dumps  # it sends classes of a script or a notebook along
except ImportError:
    from joblib.externals.cloudpickle import dumps  # versions of joblib that bring their own

N_ATTEMPTS = 4
_LONGEST_WAIT = 0.1  # seconds
_PAUSE = 1.0  # seconds until a scheduler has found out about dead workers
_ALIGNMENT = 64  # bytes: a cache line


def place(shards, n_jobs):
    """Place the shards for the backend that joblib would use here.

    Parameters
    ----------
    shards : Shards
    n_jobs : int or None
        As in joblib.

    Returns
    -------
    placement : OnThreads, OnProcesses, OnDask or OnRay
    """
    backend, _ = get_active_backend(prefer="threads")
    name = type(backend).__name__
    if name == "DaskDistributedBackend":
        # A task of Dask's that waits for others would hold up the worker that they need.
        return OnThreads(shards, 1) if _in_dask_worker() else OnDask(shards, backend.client)
    if name == "RayBackend":
        return OnRay(shards, backend.ray_remote_args or {})
    n_jobs = n_workers(n_jobs)
    if n_jobs == 1 or getattr(backend, "supports_sharedmem", False):
        return OnThreads(shards, n_jobs)
    return OnProcesses(shards, n_jobs)


class OnThreads:
    """Segments in this process, which holds the shards already.

    The threads are our own: joblib polls for results every 10 ms, and a segment of a small shard
    takes no longer than that.
    """

    def __init__(self, shards, n_jobs):
        self._shards = shards
        self._executor = ThreadPoolExecutor(n_jobs, "skanneal") if n_jobs > 1 else None

    def run(self, function, tasks, stop, ledger):
        """Results of the tasks, in order."""

        def on_shard(p, args, stop):
            return function(self._shards.encoded(p), *args, stop=stop)

        def call(i):
            return run_task(on_shard, i, tasks[i], stop, ledger)

        if self._executor is None:
            return [call(i) for i in range(len(tasks))]
        futures = [self._executor.submit(call, i) for i in range(len(tasks))]
        # Wait in short turns: a signal that reaches another thread does not wake this one.
        while wait(futures, timeout=_LONGEST_WAIT).not_done:
            pass
        return [future.result() for future in futures]

    def close(self):
        """Let the threads end."""
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)


class OnProcesses:
    """Segments in joblib's processes, on files that they map into memory."""

    def __init__(self, shards, n_jobs):
        self._n_jobs, self._is_lazy = n_jobs, shards.is_lazy
        folder = os.environ.get("JOBLIB_TEMP_FOLDER")
        self._folder = tempfile.TemporaryDirectory(prefix="skanneal-", dir=folder)
        try:
            for p in range(shards.n_shards):
                _write(shards.handle(p), self._path(p))
        except BaseException:
            self.close()
            raise

    def _path(self, p):
        return os.path.join(self._folder.name, str(p))

    def run(self, function, tasks, stop, ledger):
        """Results of the tasks, in order."""
        work = delayed(_work_on_file)
        for attempt in range(N_ATTEMPTS):
            parallel = Parallel(n_jobs=self._n_jobs, prefer="threads", return_as="list")
            try:
                return parallel(
                    work(self._path(p), self._is_lazy, function, args, stop.seconds)
                    for p, args in tasks
                )
            except TerminatedWorkerError as error:
                if attempt == N_ATTEMPTS - 1:
                    raise _given_up(error) from error

    def close(self):
        """Remove the files; a worker that still maps one keeps its memory for a while."""
        self._folder.cleanup()


class OnDask:
    """Segments on a Dask cluster, each where its shard is if there is a place free.

    Shards, arguments and results cross as bytes. Arrays that Dask ships by itself can come out
    unaligned. NumPy sums unaligned numbers in another order, which gives other bits.
    """

    def __init__(self, shards, client):
        self._shards, self._client, self._placed = shards, client, {}
        self._place(range(shards.n_shards))

    def _place(self, numbers):
        handles = [dumps(self._shards.handle(p)) for p in numbers]
        # without hashing: equal shards of two fits must not be released together
        self._placed.update(zip(numbers, self._client.scatter(handles, hash=False)))

    def _place_again(self, numbers):
        """Place shards that were lost, when the scheduler has found out which workers are dead."""
        for attempt in range(N_ATTEMPTS):
            time.sleep(_PAUSE)
            try:
                return self._place(numbers)
            except TimeoutError as error:  # no worker has come up for half a minute
                raise _given_up(error) from error
            except OSError as error:  # a connection to one that is dead
                if attempt == N_ATTEMPTS - 1:
                    raise _given_up(error) from error

    def run(self, function, tasks, stop, ledger):
        """Results of the tasks, in order."""
        from distributed import KilledWorker

        results, waiting = {}, dict(enumerate(tasks))
        for attempt in range(N_ATTEMPTS):
            if attempt > 0:
                self._place_again(sorted({p for p, _ in waiting.values()}))
            futures = {
                i: self._submit(function, *task, stop.seconds) for i, task in waiting.items()
            }
            try:
                for i, future in futures.items():
                    try:
                        results[i] = pickle.loads(future.result())
                        del waiting[i]
                    except CancelledError as error:  # the shard was lost with its worker
                        lost = error
            except KilledWorker as error:  # Dask itself has tried several times
                raise _given_up(error) from error
            finally:
                self._client.cancel([futures[i] for i in waiting])
            if not waiting:
                return [results[i] for i in range(len(tasks))]
        raise _given_up(lost) from lost

    def _submit(self, function, p, args, seconds):
        call = dumps((self._shards.is_lazy, function, args, seconds))
        return self._client.submit(_work_on_bytes, self._placed[p], call, pure=False)

    def close(self):
        """Let the cluster forget the shards."""
        self._placed.clear()


class OnRay:
    """Segments on a Ray cluster, with the shards in its object store."""

    def __init__(self, shards, options):
        import ray

        self._ray, self._is_lazy = ray, shards.is_lazy
        errors = ray.exceptions
        self._deadly = errors.WorkerCrashedError, errors.OutOfMemoryError, errors.ObjectLostError
        self._placed = [ray.put(shards.handle(p)) for p in range(shards.n_shards)]
        # Ray itself runs a task again whose worker died
        self._work = ray.remote(_work).options(**{"max_retries": N_ATTEMPTS - 1, **options})

    def run(self, function, tasks, stop, ledger):
        """Results of the tasks, in order."""
        futures = [
            self._work.remote(self._placed[p], self._is_lazy, function, args, stop.seconds)
            for p, args in tasks
        ]
        try:
            return self._ray.get(futures)
        except self._ray.exceptions.RayTaskError as error:
            self._cancel(futures)
            raise error.cause from None
        except self._deadly as error:
            self._cancel(futures)
            raise _given_up(error) from error
        except KeyboardInterrupt:
            self._cancel(futures)
            raise

    def _cancel(self, futures):
        for future in futures:
            self._ray.cancel(future, force=True)

    def close(self):
        """Let the object store forget the shards."""
        self._placed.clear()


def _work(placed, is_lazy, function, args, seconds):
    """A segment in a worker."""
    stop = StopFlag(seconds)
    try:
        with _blas().limit(limits=1, user_api="blas"):
            rows = placed.read() if is_lazy else placed
            return function(rows, *args, stop=stop)
    finally:
        stop.cancel()


def _work_on_bytes(placed, call):
    return dumps(_work(pickle.loads(placed), *pickle.loads(call)))


def _work_on_file(path, *call):
    return _work(_mapped(path), *call)


def _write(handle, path):
    """Pickle to two files: one for arrays' cells, to be mapped, one for everything else."""
    cells, spans = [], []
    head = dumps(handle, protocol=5, buffer_callback=cells.append)
    with open(path + ".cells", "wb") as file:
        for buffer in cells:
            file.write(bytes(-file.tell() % _ALIGNMENT))
            spans.append((file.tell(), file.write(buffer.raw())))
    with open(path, "wb") as file:
        pickle.dump((head, spans), file)


_open_shards = {}


def _mapped(path):
    """What `_write` wrote, with its arrays mapped; this fit's shards are kept open.

    The name of a fit's folder is its own, so that a path says which fit's shard this is.
    """
    if path not in _open_shards:
        folder = os.path.dirname(path)
        for other in [p for p in _open_shards if os.path.dirname(p) != folder]:
            del _open_shards[other]
        with open(path, "rb") as file:
            head, spans = pickle.load(file)
        size = os.path.getsize(path + ".cells")
        cells = np.memmap(path + ".cells", mode="r") if size else b""
        buffers = [memoryview(cells)[start : start + n] for start, n in spans]
        _open_shards[path] = pickle.loads(head, buffers=buffers)
    return _open_shards[path]


@functools.cache
def _blas():
    """The BLAS libraries of this process."""
    return ThreadpoolController()


def _in_dask_worker():
    from distributed.worker import thread_state

    return hasattr(thread_state, "execution_state")


def _given_up(error):
    return RuntimeError(
        "Workers died on a segment again and again: most often they run out of memory, or a user's"
        f" likelihood ends the process. The last one: {error}"
    )
