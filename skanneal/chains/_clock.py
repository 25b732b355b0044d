"""A chain's clock: how long its moves take, and whether a time limit leaves room for them."""

# SPDX-License-Identifier: BSD-3-Clause

import time
from collections import defaultdict

import numpy as np

from ..parallel import OutOfTime
from ..schedules._cost import lower_median

GUARD = 4.0  # moves are guarded unless so many times what they should take is left
COPY_SHARE = 0.05  # a copy of the state is cheap if it takes less than this share of the moves
LAST_TIMES = 3  # the time expected of a move is the median of so many last ones


class ChainClock:
    """The seconds that a chain has run, and those that its moves take.

    Attributes
    ----------
    seconds : float
        How long the chain had run at the end of its last complete segment.
    end : float
        The chain's time is over when it has run for so many seconds.
    flag : StopFlag or None
        It is set at `end`, or with the flag that asks the chain to stop; None without a limit.
    guarded : bool
        Whether moves are under way that can be taken back.
    """

    def __init__(self):
        self.seconds, self.end, self.flag, self.guarded = 0.0, np.inf, None, False
        self._last = defaultdict(list)  # name -> seconds per row of the subsample
        self._stop, self._began = None, time.perf_counter()

    def start(self):
        """Go on from `seconds`."""
        self._began = time.perf_counter() - self.seconds

    def limit(self, stop, max_time):
        """Let the time be over in so many seconds, or when `stop` is set."""
        self._stop, self.flag = stop, stop.within(max_time)
        self.end = self.now() + max_time

    def now(self):
        """Return for how many seconds the chain has run."""
        return time.perf_counter() - self._began

    def tick(self):
        """Note that a segment is complete."""
        self.seconds = self.now()

    def cancel(self):
        """Stop waiting for the end: the flag is not set any more."""
        if self.flag is not None:
            self.flag.cancel()

    def poll(self):
        """Raise OutOfTime if moves that can be taken back are under way and the time is over."""
        if self.guarded and self.flag.is_set() and not self._stop.is_set():
            raise OutOfTime

    def note(self, name, began, n_rows):
        """Note that the work called `name` began at `began` seconds and ends now.

        Its duration is taken to be proportional to `n_rows`, the rows that are in.
        """
        rate = (self.now() - began) / max(n_rows, 1)
        self._last[name] = [*self._last[name][1 - LAST_TIMES :], rate]

    def expected(self, name, n_rows, unknown=np.inf):
        """Return the seconds that this work will take, or `unknown` if it was never noted."""
        return lower_median(self._last[name]) * n_rows if self._last[name] else unknown

    def is_guard_due(self, expected, left, n_rows):
        """Return whether moves are to be guarded, so that they can be taken back.

        They are if they may take longer than the time left, or if a copy of the state is cheap.
        """
        copy = self.expected("copy", n_rows, 0.0)
        return GUARD * expected > left or copy < COPY_SHARE * expected
