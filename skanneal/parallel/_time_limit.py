"""A limit of wall-clock time for a whole fit, and what of it a chain may use."""

# SPDX-License-Identifier: BSD-3-Clause

import contextlib
import math
import time

LEAST = 1e-9  # seconds that are left when the time is over
AFTER_INTERRUPT = 1.0  # seconds that a fit may at least take to end
CHAINS_SHARE = 0.8  # of a fit's time, at most: the point estimate, labels and scores follow


class OutOfTime(Exception):
    """Raised within a move when the time is over: what it has done so far is thrown away."""


class TimeLimit:
    """Seconds of wall clock, counted from here.

    A copy that is sent to another process ends at the same moment: it travels by the time of day.

    Parameters
    ----------
    seconds : float or None
        None is no limit.

    Attributes
    ----------
    seconds : float or None
        The limit.
    needed : float
        Seconds that a task takes at least, as far as those before it have shown.

    Examples
    --------
    >>> from skanneal.parallel import TimeLimit
    >>> TimeLimit(2.0).seconds
    2.0
    >>> TimeLimit(None).left
    inf
    """

    def __init__(self, seconds):
        self.seconds = seconds
        self.began, self.needed = time.perf_counter(), LEAST

    def __reduce__(self):
        return _begun_at, (self.seconds, time.time() - self.taken)

    def __bool__(self):
        return self.seconds is not None

    @property
    def taken(self):
        """Seconds since the beginning."""
        return time.perf_counter() - self.began

    @property
    def left(self):
        """Seconds that are left, always more than 0; infinity without a limit."""
        return math.inf if self.seconds is None else max(LEAST, self.seconds - self.taken)

    @property
    def is_over(self):
        """Whether no task can be done any more in what is left."""
        return self.left <= self.needed

    def part(self, share):
        """Return the limit that ends after this share of the seconds, counted from the same moment.

        Parameters
        ----------
        share : float

        Returns
        -------
        part : TimeLimit
        """
        part = TimeLimit(None if self.seconds is None else share * self.seconds)
        part.began = self.began
        return part

    @contextlib.contextmanager
    def flag(self, stop):
        """Yield a flag that is set when the time is over, or with `stop`; `stop` if no limit."""
        if self.seconds is None:
            yield stop
            return
        flag = stop.within(self.left)
        try:
            yield flag
        finally:
            flag.cancel()

    @property
    def for_chains(self):
        """The limit that chains have, so that time is left for the passes over the rows that follow
        them."""
        return self.part(CHAINS_SHARE)

    @property
    def of_interrupted(self):
        """The limit of a fit whose chains an interrupt ends now: as if `for_chains` ended here, or
        a second from now if that is later."""
        seconds = max(self.taken / CHAINS_SHARE, self.taken + AFTER_INTERRUPT)
        limit = TimeLimit(seconds if self.seconds is None else min(seconds, self.seconds))
        limit.began = self.began
        return limit

    def share(self, task, n_tasks, n_workers):
        """What a task that begins now may take.

        Tasks run in rounds of `n_workers`; those of this round and of the later ones get equal
        parts of what is left, if that is what they need; else fewer of them can be done.

        Parameters
        ----------
        task, n_tasks : int
            Its number, and how many there are.
        n_workers : int
            How many run at a time.

        Returns
        -------
        seconds : float or None
            None without a limit.
        """
        if self.seconds is None:
            return None
        rounds = math.ceil(n_tasks / n_workers) - task // n_workers
        return self.left / max(1, min(rounds, int(self.left / self.needed)))


def _begun_at(seconds, time_of_day):
    limit = TimeLimit(seconds)
    limit.began = time.perf_counter() - (time.time() - time_of_day)
    return limit
