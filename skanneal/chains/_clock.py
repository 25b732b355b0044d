"""A chain's clock: what its moves take, and whether a time limit leaves room for them."""

# SPDX-License-Identifier: BSD-3-Clause

import time

import numpy as np

from ..parallel._time_limit import OutOfTime
from ..schedules._cost import lower_median

GUARD = 4.0  # times the seconds expected of moves: with less time left they may be thrown away
COPY_SHARE = 0.05  # of the seconds expected of moves: so much a copy of the state may take
LAST_TIMES = 3  # of a move, of which the median is what the next one is expected to take


class ChainClock:
    """Seconds of a chain, and of its moves.

    Parameters
    ----------
    names : iterable
        Of what is timed.

    Attributes
    ----------
    seconds : float
        Of the chain, up to its last complete segment.
    end : float
        Seconds of the chain at which its time is over.
    flag : StopFlag or None
        Set then, or with the one that asks the chain to stop; None without a limit.
    guarded : bool
        Whether moves are under way that can be taken back.
    """

    def __init__(self, names):
        self.seconds, self.end, self.flag, self.guarded = 0.0, np.inf, None, False
        self.last = {name: [] for name in names}  # seconds per row of S
        self._stop, self._began = None, time.perf_counter()

    def start(self):
        """Go on from `seconds`."""
        self._began = time.perf_counter() - self.seconds

    def limit(self, stop, max_time):
        """Let the time be over in so many seconds."""
        self._stop, self.flag = stop, stop.within(max_time)
        self.end = self.now() + max_time

    def now(self):
        """Seconds of the chain."""
        return time.perf_counter() - self._began

    def tick(self):
        """Take over the seconds of a complete segment."""
        self.seconds = self.now()

    def cancel(self):
        """Stop waiting for the end."""
        if self.flag is not None:
            self.flag.cancel()

    def poll(self):
        """Raise OutOfTime if moves that can be taken back are under way and the time is over."""
        if self.guarded and self.flag.is_set() and not self._stop.is_set():
            raise OutOfTime

    def note(self, name, began, n_rows):
        """Take in what began at `began` seconds, with so many rows in."""
        rate = (self.now() - began) / max(n_rows, 1)
        self.last[name] = [*self.last[name][1 - LAST_TIMES :], rate]

    def expected(self, name, n_rows, unknown=np.inf):
        """Seconds that it will take."""
        return lower_median(self.last[name]) * n_rows if self.last[name] else unknown

    def is_guard_due(self, expected, left, n_rows):
        """Whether moves are to be such that they can be taken back.

        That is when they may take longer than what is left, or where a copy costs next to nothing.
        """
        copy = self.expected("copy", n_rows, 0.0)
        return GUARD * expected > left or copy < COPY_SHARE * expected
