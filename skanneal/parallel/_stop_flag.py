"""The flag that asks running tasks to end early."""

# SPDX-License-Identifier: BSD-3-Clause

import threading

import numpy as np


class StopFlag:
    """Asks running tasks to return what they have.

    Threads share one flag. A copy sent to another process is on its own.

    Parameters
    ----------
    seconds : float, optional
        The flag sets itself after so long, unless `cancel` is called before.

    Attributes
    ----------
    array : ndarray of int32 of shape (1,)
        Not zero once the flag is set. Compiled kernels poll it without the GIL.
    seconds : float or None
        As given to the constructor.
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
        self.asked = True
        self.array[0] = 1
        for heir in self._heirs:
            heir.set()

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
