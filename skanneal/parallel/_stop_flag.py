"""The flag that asks running tasks to end early."""

# SPDX-License-Identifier: BSD-3-Clause

import contextlib
import signal
import threading
from pathlib import Path

import numpy as np

_LOOK_SECONDS = 0.02  # between two looks at the file that asks tasks of other processes


class StopFlag:
    """Asks running tasks to return what they have.

    Threads share one flag. A copy sent to another process follows the original through a file, if
    there is one, and is on its own otherwise.

    Parameters
    ----------
    seconds : float, optional
        The flag sets itself after so long, unless `cancel` is called before.
    path : str or Path, optional
        A file that does not exist yet, in a folder that the other processes see. `set` makes it.

    Attributes
    ----------
    array : ndarray of int32 of shape (1,)
        Not zero once the flag is set. Compiled kernels poll it without the GIL.
    seconds : float or None
        As given to the constructor.
    path : Path or None
        As given to the constructor.

    Examples
    --------
    >>> from skanneal.parallel import StopFlag
    >>> stop = StopFlag()
    >>> stop.set()
    >>> stop.is_set(), int(stop.array[0])
    (True, 1)
    """

    def __init__(self, seconds=None, path=None):
        self.array = np.zeros(1, dtype=np.int32)
        self.seconds, self.path = seconds, None if path is None else Path(path)
        self._asked, self._follows = False, False
        self._timer, self._heirs = None, []
        if seconds is not None:
            self._timer = threading.Timer(max(0.0, seconds), self._expire)
            self._timer.daemon = True
            self._timer.start()

    def __reduce__(self):
        return _copied, (self.path, self.is_set())

    @property
    def asked(self):
        """Whether `set` was called, on this flag or on one that shares its file."""
        return self._asked or (self.path is not None and self.path.exists())

    def within(self, seconds):
        """Return another flag, which is set with this one, or after so many seconds."""
        heir = StopFlag(seconds)
        self._heirs.append(heir)
        if self.is_set():
            heir.set()
        return heir

    def _expire(self):
        self.array[0] = 1

    def set(self):
        """Ask to stop; it cannot be taken back."""
        self._asked = True
        self.array[0] = 1
        for heir in self._heirs:
            heir.set()
        if self.path is not None:
            self.path.touch()

    @contextlib.contextmanager
    def followed(self):
        """Let a copy in another process be set as soon as the original is.

        An interrupt from the keyboard reaches the other processes too. They leave it to the one
        that sent the flag, which asks them by the file, from here on to the end of the process: it
        would tear a task, or break the pool if it came between two.
        """
        if not self._follows or self.path is None:
            yield
            return
        with contextlib.suppress(ValueError):  # not the main thread, which alone gets signals
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        done = threading.Event()
        watcher = threading.Thread(target=self._follow, args=(done,), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()

    def _follow(self, done):
        while not done.wait(_LOOK_SECONDS):
            if self.path.exists():
                self.set()
                return

    def cancel(self):
        """Do not set the flag when the time is up."""
        if self._timer is not None:
            self._timer.cancel()

    def is_set(self):
        """Return whether `set` was called or the time is up.

        Returns
        -------
        is_set : bool
        """
        return bool(self.array[0])


def _copied(path, is_set):
    flag = StopFlag(path=path)
    flag._follows = True
    flag.array[0] = is_set
    return flag
