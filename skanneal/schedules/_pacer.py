"""Step through a path of subsample sizes, segment by segment, inside a time budget if one is set.

Segments are clipped at the end of the path and where the energy exponent reaches 1, so that the
sweeps that end an energy schedule are whole sweeps of the posterior itself.
"""

# SPDX-License-Identifier: BSD-3-Clause

from bisect import bisect_right
from numbers import Real

import numpy as np

from .._native._state_arrays import StateError, check_ascending, state_array
from ._budget import Budget
from ._path import Path, Segment, size_after


class Pacer:
    """Hand out the segments of a path one after another.

    Made by ``schedule.pacer(n_rows)``. The caller asks for a segment, runs it, and asks again::

        while (segment := pacer.next(seconds)) is not None:
            ...

    Parameters
    ----------
    path : Path
        What to follow. With `max_time` it is the shape to stretch or compress.
    max_time : float or None, default=None
        Seconds from the chain's beginning in which the path is to be finished.
    further_sweeps : float, default=0.0
        Full-data sweeps the caller will add with `extend`; `max_time` leaves room for them.

    Attributes
    ----------
    assignments : int
        Assignments handed out so far.
    size : int
        Rows in the subsample after them.
    n_rows : int
        Rows of the data.

    Examples
    --------
    >>> from skanneal.schedules import SequentialGibbs
    >>> pacer = SequentialGibbs(n_sweeps=2).pacer(4)
    >>> while (segment := pacer.next()) is not None:
    ...     print(segment.start, segment.stop, pacer.size)
    0 1 1
    1 2 2
    2 4 4
    4 8 4
    """

    def __init__(self, path, *, max_time=None, further_sweeps=0.0):
        self.path = path
        self.n_rows = int(path.sizes[-1])
        self.max_time = max_time
        self.assignments = 0
        self.size = int(path.sizes[0])
        self._knots = np.column_stack([path.assignments, path.sizes])
        self._ready = _last_tempered_knot(path)
        self._finished = False
        self._burned_in = None  # assignments handed out when burn-in was over
        self._extra = 0
        self._extra_done = 0
        self._skipped = set(path.skipped) if max_time is None else set()
        self.is_further, self.is_optional = False, False
        self._budget = None
        if max_time is not None:
            self._budget = Budget(path, float(max_time), float(further_sweeps))

    @property
    def rest_seconds(self):
        """Seconds that the rows which are still out will take at least, as far as is known."""
        if self._budget is None:
            return 0.0
        return self._budget.pass_seconds(self.n_rows - self.size)

    @property
    def beta(self):
        """Energy exponent of the next segment."""
        if self._finished:
            return 1.0
        if self._budget is not None:
            return self._budget.beta
        return _beta_at(self.path, self.assignments)

    @property
    def done(self):
        """Whether nothing is left to run, sweeps added by `extend` included."""
        return self._finished and self._extra == 0

    @property
    def total(self):
        """Total number of assignments; an estimate while a time budget is running."""
        return self._scheduled + self._extra + self._extra_done

    @property
    def _scheduled(self):
        """Assignments without those added by `extend`; an estimate while a budget is running."""
        if self._budget is None:
            return int(self.path.assignments[-1])
        if self._finished:
            return self._budget.knots[-1][0]
        return self._budget.expected_total(self.assignments)

    @property
    def burn_in(self):
        """Whether moves may still adapt after what has been handed out; once over, it stays so."""
        return self._burned_in is None

    def _burn(self):
        """Note when burn-in is over."""
        if not self.burn_in:
            return
        of_path, total = self.path.burn_in, int(self.path.assignments[-1])
        of_path = total / 2 if of_path is None else of_path
        # in whole numbers where there is no budget: of_path exactly
        if self.assignments * total >= of_path * self._scheduled:
            self._burned_in = self.assignments

    def next(self, seconds=None, moves=0.0):
        """Return the next segment, or None if all is done.

        The caller runs the segment before it asks for another.

        Parameters
        ----------
        seconds : float or None, default=None
            Seconds since the chain began; needed only with `max_time`.
        moves : float, default=0.0
            Seconds that the last segment's moves took, however many its assignments were; the plan
            under `max_time` reckons with them.

        Returns
        -------
        segment : Segment or None
            None when done. With `max_time` this may be the first sign that the time is over.
        """
        segment = None
        # A segment that follows a complete schedule, or that time is left for, may be cut.
        self.is_further = self._finished
        timed = self._budget is not None
        self.is_optional = self._finished or (timed and self._budget.ends_well())
        if not self._finished:
            segment = self._timed(seconds, moves) if timed else self._follow()
        if segment is None and self._extra:
            segment = self._further()
        if segment is not None:
            self.assignments = segment.stop
            self.size = size_after(segment.knots, segment.stop)
            self._burn()
        return segment

    def skips(self, stop):
        """Whether nothing but the churn is run in a segment.

        Parameters
        ----------
        stop : int
            Assignments made at the segment's end.

        Returns
        -------
        skips : bool
        """
        return stop in self._skipped

    def skip(self, stop):
        """Note that nothing but the churn was run in a segment.

        Parameters
        ----------
        stop : int
            Assignments made at the segment's end.
        """
        self._skipped.add(stop)

    def cut(self, done):
        """End after so many assignments: the clock has cut the last segment, one of all rows.

        Parameters
        ----------
        done : int
            Assignments made; if any of the segment's, its moves are left out.
        """
        if self.is_further:
            self._extra_done -= self.assignments - done
            self._extra = 0
        elif self._budget is not None:
            self._budget.cut(done)
        if not self.burn_in and self._burned_in > done:
            self._burned_in = None  # over with that segment, of which no move is made
        self._finished = True
        self.assignments = done

    def jump(self, assignments):
        """Go on from a place on the path to which something else has brought the chain.

        Parameters
        ----------
        assignments : int
            Assignments made.
        """
        self.assignments = assignments
        self.size = size_after(self._knots, assignments)
        self._finished = assignments == self.path.assignments[-1]
        self._burn()

    def limit(self, max_time):
        """Give the rest of the schedule other limits.

        Parameters
        ----------
        max_time : float
            Seconds since the chain's beginning in which it is to be finished.
        """
        if self._budget is not None:
            self._budget.max_time = float(max_time)
        elif not self._finished:
            self._budget = Budget(self.path, float(max_time), 0.0)
            self._budget.join(self.assignments, self.size)
        self.max_time = max_time

    def extend(self, n_sweeps):
        """Append full-data sweeps that follow the schedule's end.

        Parameters
        ----------
        n_sweeps : float
            Sweeps to add, not negative.
        """
        if not isinstance(n_sweeps, Real) or not 0 <= n_sweeps < np.inf:
            raise ValueError(f"n_sweeps must be a number of sweeps, not {n_sweeps!r}.")
        self._extra += round(n_sweeps * self.n_rows)

    def realised(self):
        """Return the path whose segments are those handed out, without `extend`'s sweeps.

        With `max_time` and before the end, the rest is taken to be the shortest way to full data.
        `CustomAnneal.from_path` makes it a schedule.

        Returns
        -------
        path : Path
        """
        if self._budget is None:
            return self.path
        knots, betas = self._budget.realised(self._finished)
        knots = np.array(knots, dtype=np.int64)
        # more than all assignments: not over when the time was
        burned_in = knots[-1, 0] + 1 if self._burned_in is None else self._burned_in
        skipped = tuple(sorted(self._skipped))
        return Path(
            knots[:, 0], knots[:, 1], np.array(betas), self.path.start, int(burned_in), skipped
        )

    def to_arrays(self):
        """Return the pacer's state as a flat dict of arrays (see `from_arrays`)."""
        arrays = {
            "path_assignments": self.path.assignments,
            "path_sizes": self.path.sizes,
            "path_betas": self.path.betas,
            "path_start": np.array(self.path.start),
            "path_burn_in": _or_minus_one(self.path.burn_in),
            "burned_in": _or_minus_one(self._burned_in),
            "path_skipped": np.array(self.path.skipped, dtype=np.int64),
            "skipped": np.array(sorted(self._skipped), dtype=np.int64),
            "position": np.array(
                [self.assignments, self.size, self._finished, self._extra, self._extra_done]
            ),
        }
        if self._budget is not None:
            arrays |= self._budget.to_arrays()
        return arrays

    @classmethod
    def from_arrays(cls, arrays):
        """Rebuild a pacer; given the same seconds it goes on as the stored one would have.

        Parameters
        ----------
        arrays : mapping of str to ndarray
            What `to_arrays` returned.

        Returns
        -------
        pacer : Pacer
            Where the stored one was.

        Raises
        ------
        StateError
            For arrays that no pacer has stored.
        """
        columns = _path_columns(arrays)
        burn_ins = [
            int(state_array(arrays, key, "iu", ())) for key in ("path_burn_in", "burned_in")
        ]
        burn_in, burned_in = (None if value < 0 else value for value in burn_ins)
        skipped = [
            state_array(arrays, key, "iu", (None,)).tolist() for key in ("path_skipped", "skipped")
        ]
        start = str(state_array(arrays, "path_start", "U", ()))
        pacer = cls(Path(*columns, start, burn_in, tuple(skipped[0])))
        pacer._skipped = set(skipped[1])
        pacer._burned_in = burned_in
        position = state_array(arrays, "position", "iu", (5,), 0, 2**62).tolist()
        pacer.assignments, pacer.size, finished, pacer._extra, pacer._extra_done = position
        pacer._finished = bool(finished)
        if "budget_state" in arrays:
            pacer._budget = Budget.from_arrays(pacer.path, arrays)
            pacer.max_time = pacer._budget.max_time
        return pacer

    def _follow(self):
        """Next segment of the path as it stands."""
        start = self.assignments
        total = int(self.path.assignments[-1])
        stop = min(start + max(1, self.size), total)
        if start < self._ready:
            stop = min(stop, self._ready)
        self._finished = stop == total
        first = bisect_right(self.path.assignments, start) - 1
        last = int(np.searchsorted(self.path.assignments, stop))
        knots = self._knots[first : last + 1]
        return Segment(start, stop, knots, _beta_at(self.path, start))

    def _timed(self, seconds, moves):
        """Next segment inside the time budget, or None if the time is over."""
        if not isinstance(seconds, Real) or not seconds >= 0:
            raise ValueError(
                f"seconds must be the time since the chain began when max_time is set, "
                f"not {seconds!r}."
            )
        step, self._finished = self._budget.next(self.assignments, self.size, float(seconds), moves)
        if step is None:
            return None
        knots, beta = step
        knots = np.array(knots, dtype=np.int64)
        return Segment(int(knots[0, 0]), int(knots[-1, 0]), knots, beta)

    def _further(self):
        """Next full-data segment of those added by `extend`."""
        start, stop = self.assignments, self.assignments + min(self.n_rows, self._extra)
        self._extra -= stop - start
        self._extra_done += stop - start
        knots = np.array([[start, self.n_rows], [stop, self.n_rows]], dtype=np.int64)
        return Segment(start, stop, knots, 1.0)


def _or_minus_one(number):
    """The number as an array; None as -1."""
    return np.array(-1 if number is None else number)


def _last_tempered_knot(path):
    """Return the assignment from which the exponent stays 1 (0 if it always is)."""
    tempered = np.flatnonzero(path.betas != 1.0)
    if len(tempered) == 0:
        return 0
    return int(path.assignments[min(tempered[-1] + 1, len(path.betas) - 1)])


def _beta_at(path, assignment):
    """Return the energy exponent at an assignment; at a knot it is the knot's own."""
    return float(np.interp(assignment, path.assignments, path.betas))


def _path_columns(arrays):
    """The knots of a stored path: assignments, sizes and exponents."""
    assignments = state_array(arrays, "path_assignments", "iu", (None,), 0)
    if len(assignments) < 2 or assignments[0] != 0:
        raise StateError("path_assignments", "does not begin at 0 and go on")
    check_ascending(assignments, "path_assignments")
    n_knots = (len(assignments),)
    sizes = state_array(arrays, "path_sizes", "iu", n_knots, 0)
    if not 1 <= sizes[1:].min() <= sizes.max() <= sizes[-1]:
        raise StateError("path_sizes", f"does not hold 1 to {sizes[-1]} rows, all at the end")
    if int(assignments[-1]) * int(sizes[-1]) >= 2**62:
        raise StateError("path_assignments", "goes on for too long")
    return assignments, sizes, state_array(arrays, "path_betas", "f", n_knots, 0.0)
