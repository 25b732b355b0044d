"""Independent tasks over independent seeds, side by side through joblib.

A task is pure: it depends on its arguments alone and returns plain arrays, so that results do not
depend on the number of jobs or on the backend. Chains, and the shards of a chain, are one flat list
of tasks, never nested calls.

Threads are preferred: the compiled kernels release the GIL and nothing has to be pickled. joblib
leaves threads running after an interrupt, so here an interrupt only sets a `StopFlag` which the
tasks watch: each returns what it has, and all threads have ended when `run_tasks` returns. Other
processes do not see the flag: what they had returned before the interrupt is kept, the rest lost.
"""

# SPDX-License-Identifier: BSD-3-Clause

import contextlib
import numbers
import signal
import threading

import numpy as np
from joblib.parallel import get_active_backend
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

_ENTROPY_WORDS = 4  # of 32 bits: as many as SeedSequence draws from the operating system


def spawn_seeds(random_state, n):
    """Seeds for n independent streams of random numbers.

    Parameters
    ----------
    random_state : int, None, RandomState, Generator or SeedSequence
        An int or a SeedSequence gives the same seeds at every call. A RandomState or a Generator
        advances, so that every call gives others; None stands for NumPy's global RandomState, as
        everywhere in scikit-learn.
    n : int
        Number of seeds.

    Returns
    -------
    seeds : list of SeedSequence

    Raises
    ------
    ValueError
        If `random_state` is none of these, or a negative int.

    Examples
    --------
    >>> from skanneal.parallel import spawn_seeds
    >>> first, second = spawn_seeds(0, 2)
    >>> first.spawn_key, second.spawn_key
    ((0,), (1,))
    """
    return _root(random_state).spawn(n)


def _root(random_state):
    """A SeedSequence of our own: `spawn` changes its parent, which may be the caller's."""
    if isinstance(random_state, np.random.SeedSequence):
        return np.random.SeedSequence(
            random_state.entropy,
            spawn_key=random_state.spawn_key,
            pool_size=random_state.pool_size,
        )
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ValueError(f"random_state must not be negative, got {random_state}.")
        return np.random.SeedSequence(int(random_state))
    if isinstance(random_state, np.random.Generator):
        # Raw output: NumPy guarantees the streams of bit generators, not those of a Generator.
        words = random_state.bit_generator.random_raw(_ENTROPY_WORDS)
    elif random_state is None or isinstance(random_state, np.random.RandomState):
        words = check_random_state(random_state).randint(
            2**32, size=_ENTROPY_WORDS, dtype=np.uint32
        )
    else:
        raise ValueError(
            "random_state must be an int, None, a RandomState, a Generator or a SeedSequence, got"
            f" {random_state!r}."
        )
    return np.random.SeedSequence(words.tolist())


def n_workers(n_jobs):
    """How many tasks run at a time.

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


class StopFlag:
    """Asks running tasks to return what they have.

    Threads share one flag. A copy sent to another process is on its own.

    Parameters
    ----------
    seconds : float, optional
        The flag sets itself after so long, until `cancel` is called.

    Attributes
    ----------
    array : ndarray of int32 of shape (1,)
        Not zero once the flag is set. Compiled kernels poll it without the GIL.
    seconds : float or None
        As given.
    asked : bool
        Whether `set` was called.

    Examples
    --------
    >>> from skanneal.parallel import StopFlag
    >>> stop = StopFlag()
    >>> stop.set()
    >>> stop.is_set(), int(stop.array[0])
    (True, 1)
    """

    def __init__(self, seconds=None):
        self.array = np.zeros(1, dtype=np.int32)
        self.seconds, self.asked = seconds, False
        self._timer, self._heirs = None, []
        if seconds is not None:
            self._timer = threading.Timer(max(0.0, seconds), self._expire)
            self._timer.daemon = True
            self._timer.start()

    def within(self, seconds):
        """A flag that is set with this one, or after so long."""
        heir = StopFlag(seconds)
        self._heirs.append(heir)
        if self.is_set():
            heir.set()
        return heir

    def _expire(self):
        self.array[0] = 1

    def set(self):
        """Ask to stop; it cannot be taken back."""
        self.asked = True
        self.array[0] = 1
        for heir in self._heirs:
            heir.set()

    def cancel(self):
        """Stop the clock."""
        if self._timer is not None:
            self._timer.cancel()

    def is_set(self):
        """Whether `set` was called or the time is up.

        Returns
        -------
        is_set : bool
        """
        return bool(self.array[0])


def run_tasks(function, tasks, n_jobs=None, verbose=0):
    """Call a function once per task, in parallel, and keep what an interrupt leaves.

    On Ctrl-C (SIGINT, as long as Python's own handler is in place) no exception is raised: the
    stop flag is set, tasks under way are expected to return their last complete state soon, and
    tasks not yet begun are left out. A second Ctrl-C raises KeyboardInterrupt in the main thread
    and drops the task there; other threads are awaited all the same, unless a third one cuts that
    short. A task in the main thread sees the first one only after Python has had its turn: a
    kernel that runs for long without the GIL must call ``PyErr_CheckSignals`` now and then.

    In other processes tasks under way cannot be asked: the results that have come back are kept,
    and joblib ends the workers (loky) or forgets their tasks (Dask). A backend that returns all
    results together (Ray, multiprocessing) keeps none.

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
        # `update` runs no Python code of its own: KeyboardInterrupt is raised in joblib's
        # generator, which then ends the workers, not here between two results.
        ledger.results.update(numbered)
        return [ledger.results[i] for i in range(len(tasks))]

    return keep_on_interrupt(dispatch, len(tasks))


def _run_numbered(function, i, task, stop, ledger):
    return i, run_task(function, i, task, stop, ledger)


def keep_on_interrupt(dispatch, n_tasks, seconds=None):
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
        After so long the flag is set.

    Returns
    -------
    results : list
        As `run_tasks` returns them.
    interrupted : bool
        Whether there was an interrupt.
    """
    stop, ledger = StopFlag(seconds), _Ledger()
    try:
        with _interrupt_sets(stop, ledger):
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
    """Call ``function(*task, stop=stop)`` as task number i; None where it is too late to begin."""
    if not ledger.begin(stop):
        return None
    try:
        result = ledger.results[i] = function(*task, stop=stop)
        return result
    except BaseException:
        stop.set()  # the other tasks' work is of no use any more
        raise
    finally:
        ledger.end()


class _Ledger:
    """Which tasks of this process are under way, and the results there are, by task number."""

    def __init__(self):
        self.results = {}
        self.n_running = 0
        self.changed = threading.Condition()

    def __reduce__(self):
        # Locks cannot travel: in another process a ledger of its own, which nobody reads.
        return _Ledger, ()

    def begin(self, stop):
        """Count a task in, unless it is too late to begin."""
        with self.changed:
            if stop.asked:
                return False
            self.n_running += 1
            return True

    def end(self):
        with self.changed:
            self.n_running -= 1
            self.changed.notify_all()

    def join(self):
        """Wait for the tasks under way; call it once the stop flag is set."""
        with self.changed:
            self.changed.wait_for(lambda: self.n_running == 0)


@contextlib.contextmanager
def _interrupt_sets(stop, ledger):
    """Let the first SIGINT set the stop flag instead of raising KeyboardInterrupt.

    Raised between any two bytecodes of a task in the main thread, the exception would leave its
    state torn. Elsewhere than in the main thread signals cannot be handled, and a handler that is
    not Python's own is somebody's wish: nothing is changed then.
    """
    before = signal.getsignal(signal.SIGINT)
    ours = before is signal.default_int_handler or isinstance(before, InterruptNote)
    if not _in_main_thread() or not ours:
        yield
        return

    def set_flag(signum, frame):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        stop.set()
        # No lock here: this may run while this very thread holds it. With no task in this process
        # the work is done in others, which the flag does not reach.
        if ledger.n_running == 0:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, set_flag)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class InterruptNote:
    """Between tasks: the first SIGINT is noted, and raises nothing that would tear a state.

    A context manager, inside of which `run_tasks` handles the signal as ever.

    Attributes
    ----------
    noted : bool
        Whether there was an interrupt between tasks.

    Examples
    --------
    >>> import signal
    >>> from skanneal.parallel import InterruptNote
    >>> with InterruptNote() as note:
    ...     signal.raise_signal(signal.SIGINT)
    >>> note.noted
    True
    """

    def __init__(self):
        self.noted = False

    def __call__(self, signum, frame):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self.noted = True

    def __enter__(self):
        is_pythons = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if _in_main_thread() and is_pythons:
            signal.signal(signal.SIGINT, self)
        return self

    def __exit__(self, *error):
        if signal.getsignal(signal.SIGINT) is self:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _in_main_thread():
    return threading.current_thread() is threading.main_thread()
