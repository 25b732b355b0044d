"""Independent tasks over independent seeds, side by side through joblib.

A task is pure: it depends on its arguments alone and returns plain arrays, so that results do not
depend on the number of jobs or on the backend. Chains, and the shards of a chain, are one flat list
of tasks, never nested calls.

Threads are preferred: the compiled kernels release the GIL and nothing has to be pickled. joblib
leaves threads running after an interrupt, so here an interrupt only sets a `StopFlag` which the
tasks watch: each returns what it has, and all threads have ended when `run_tasks` returns. loky's
processes follow the flag through a file. Those of other backends may be on other machines, and do
not see it: what they had returned before the interrupt is kept, the rest lost.
"""

# SPDX-License-Identifier: BSD-3-Clause

import contextlib
import os
import tempfile
import warnings

from joblib.parallel import get_active_backend
from sklearn.utils.parallel import Parallel, delayed

from ._interrupts import interrupt_sets
from ._ledger import Ledger
from ._stop_flag import StopFlag


def n_workers(n_jobs):
    """Return how many tasks run at a time.

    Parameters
    ----------
    n_jobs : int or None
        As in joblib; None is 1 unless a ``parallel_config`` says more.

    Returns
    -------
    n_workers : int
    """
    backend, configured = get_active_backend(prefer="threads")
    n_jobs = configured if n_jobs is None else n_jobs
    return backend.effective_n_jobs(backend.default_n_jobs if n_jobs is None else n_jobs)


def run_tasks(function, tasks, n_jobs=None, verbose=0):
    """Call a function once per task, in parallel, and keep what an interrupt leaves.

    On Ctrl-C (SIGINT, as long as Python's own handler is in place) no exception is raised: the
    stop flag is set, tasks under way are expected to return their last complete state soon, and
    tasks not yet begun are left out. A second Ctrl-C raises KeyboardInterrupt in the main thread
    and drops the task there; other threads are awaited all the same, unless a third one cuts that
    short. A task in the main thread sees the first one only after Python has had its turn: a
    kernel that runs for long without the GIL must call ``PyErr_CheckSignals`` now and then.

    loky's processes are asked in the same way, and awaited. In those of other backends tasks under
    way cannot be asked: the results that have come back are kept, and joblib forgets the tasks
    (Dask). A backend that returns all results together (Ray, multiprocessing) keeps none.

    An error in one task stops the others too, and is raised when they have returned.

    Parameters
    ----------
    function : callable
        ``function(*task, stop=flag)`` with a `StopFlag`; pure otherwise.
    tasks : iterable of tuple
        Positional arguments, one tuple per call.
    n_jobs : int or None, default=None
        Number of tasks at a time, as in joblib; None is 1 unless a ``parallel_config`` says more.
    verbose : int, default=0
        joblib's verbosity.

    Returns
    -------
    results : list
        In the order of the tasks. After an interrupt, None for each task that did not begin, that
        raised KeyboardInterrupt itself, or that another process had not finished.
    interrupted : bool
        Whether there was an interrupt.

    Examples
    --------
    >>> from skanneal.parallel import run_tasks
    >>> run_tasks(lambda base, exponent, stop: base**exponent, [(2, 3), (3, 2)], n_jobs=2)
    ([8, 9], False)
    """
    tasks = list(tasks)
    backend, _ = get_active_backend(prefer="threads")
    one_by_one = getattr(backend, "supports_return_generator", False)
    parallel = Parallel(
        n_jobs=n_jobs,
        prefer="threads",
        return_as="generator_unordered" if one_by_one else "list",
        batch_size=1,  # the results of a batch come back together
        verbose=verbose,
    )
    run = delayed(_run_numbered)

    def dispatch(stop, ledger):
        numbered = parallel(run(function, *item, stop, ledger) for item in enumerate(tasks))
        if ledger.folder is not None:
            at_a_time = min(n_workers(n_jobs), len(tasks))
            numbered = _until_all_are_back(numbered, stop, ledger, at_a_time)
        # `update` runs no Python code of its own: KeyboardInterrupt is raised in joblib's
        # generator, which then ends the workers' tasks, not here between two results.
        ledger.results.update(numbered)
        return [ledger.results.get(i) for i in range(len(tasks))]

    with _shared_folder(backend) as folder:
        return keep_on_interrupt(dispatch, len(tasks), folder=folder)


@contextlib.contextmanager
def _shared_folder(backend):
    """A folder through which the backend's processes are asked to stop, or None."""
    if type(backend).__name__ != "LokyBackend":
        yield None
        return
    where = os.environ.get("JOBLIB_TEMP_FOLDER")
    with tempfile.TemporaryDirectory(prefix="skanneal-", dir=where) as folder:
        yield folder


def _until_all_are_back(numbered, stop, ledger, n_workers):
    """Results as they come; after an interrupt without waiting for workers that start only now."""
    for i, result in numbered:
        yield i, result
        if stop.asked and not ledger.unreturned - {i} and len(ledger.begun) < n_workers:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # joblib's, of tasks that are cancelled
                numbered.close()
            return


def _run_numbered(function, i, task, stop, ledger):
    with stop.followed():
        return i, run_task(function, i, task, stop, ledger)


def keep_on_interrupt(dispatch, n_tasks, seconds=None, folder=None):
    """Run tasks by any means, and keep what an interrupt leaves.

    Parameters
    ----------
    dispatch : callable
        ``dispatch(stop, ledger)`` returns the list of results. A task of this process is called
        through `run_task`, with the flag and the ledger, so that it is awaited. Results that other
        processes return are kept if they are put into ``ledger.results`` as they come.
    n_tasks : int
        Number of tasks.
    seconds : float, optional
        The flag is set after so long.
    folder : str, optional
        Where tasks of other processes say that they have begun, and look for a file that asks them
        to stop.

    Returns
    -------
    results : list
        As `run_tasks` returns them.
    interrupted : bool
        Whether there was an interrupt.
    """
    path = None if folder is None else os.path.join(folder, "stop")
    stop, ledger = StopFlag(seconds, path), Ledger(folder)
    try:
        with interrupt_sets(stop, ledger):
            results = dispatch(stop, ledger)
    except KeyboardInterrupt:
        stop.set()
        ledger.join()
        results = [ledger.results.get(i) for i in range(n_tasks)]
    except BaseException:
        stop.set()
        ledger.join()
        raise
    finally:
        stop.cancel()
    return results, stop.asked


def run_task(function, i, task, stop, ledger):
    """Call ``function(*task, stop=stop)`` as task i; return None if it is too late to begin."""
    if not ledger.begin(i, stop):
        return None
    try:
        result = ledger.results[i] = function(*task, stop=stop)
        return result
    except BaseException:
        stop.set()  # the other tasks' work is of no use any more
        raise
    finally:
        ledger.end()
