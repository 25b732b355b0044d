"""Fit a path of subsample sizes into a number of seconds while its cost is being measured.

The path is a shape: its position runs from 0 to its number of assignments, and each stretch of it
is run at a speed, in real assignments per assignment of the shape. Speeds are chosen again as the
measured cost changes. Two rules bound them: the subsample never grows by more than one row per
assignment, and a stretch that does grow by one (a sequential pass) stays as it is.
"""

# SPDX-License-Identifier: BSD-3-Clause

from bisect import bisect_right
from math import ceil, exp, inf, log

import numpy as np
from scipy.optimize import brentq

# Old segments count less by this factor each: the cost follows the subsample as it grows.
_FORGET = 0.8
# Before these shares of the time and of the shape are used, a cost is mostly fixed overhead.
_FIRST_TIME, _FIRST_SHAPE = 0.01, 0.05
SETTLED = 50  # rows in the subsample from which on a chain runs more than the churn
# Planning costs about as much as a small segment, so speeds hold for this share of the time.
_HOLD = 0.005


class Cost:
    """Seconds per assignment as a function of the subsample's size.

    A segment of ``m`` assignments at size ``n`` takes ``overhead + m * level * (n / n0) ** power``
    with ``0 <= power <= 1``. The overhead is the least time of any segment seen: short segments
    come first and consist of little else.
    """

    _STATE = ("least", "weight", "count", "seconds", "x", "y", "xx", "xy")

    def __init__(self):
        self.least = inf
        # Sums over segments, weighted by length, in which old segments fade.
        self.weight = self.count = self.seconds = self.x = self.y = self.xx = self.xy = 0.0

    def update(self, size, length, seconds):
        """Take in a segment: its mean size, its assignments and its seconds."""
        seconds = max(seconds, 1e-9)
        self.least = min(self.least, seconds)
        x, y = log(max(size, 1.0)), log(max(seconds - self.least, 0.05 * seconds) / length)
        values = (1.0, 1.0 / length, seconds / length, x, y, x * x, x * y)
        for name, value in zip(self._STATE[1:], values):
            setattr(self, name, _FORGET * getattr(self, name) + length * value)

    def per_assignment(self, sizes):
        """Return the expected seconds per assignment at each size."""
        mean_x = self.x / self.weight
        spread = self.xx / self.weight - mean_x**2
        slope = self.xy / self.weight - mean_x * self.y / self.weight
        # The small constant pulls the power to 0 where sizes hardly differ.
        power = min(max(slope / (spread + 0.02), 0.0), 1.0)
        # Some of the time is always the rows': all-overhead would make rows free.
        overhead = min(self.least, 0.95 * self.seconds / self.count)
        level = (self.seconds - overhead * self.count) / self.weight
        sizes = np.maximum(sizes, 1.0)
        return overhead / sizes + level * (sizes / exp(mean_x)) ** power


class Budget:
    """Choose each segment so that the whole path takes a given time.

    Parameters
    ----------
    path : Path
        The shape to stretch or compress.
    max_time : float
        Seconds from the chain's beginning.
    further_sweeps : float
        Full-data sweeps that follow the path and have to fit in too.
    """

    _STATE = (
        "max_time",
        "further_sweeps",
        "position",
        "speed",
        "final_speed",
        "expected",
        "planned_at",
        "last_seconds",
        "last_size",
        "last_length",
        "settled",
    )

    def __init__(self, path, max_time, further_sweeps):
        self.max_time = max_time
        self.further_sweeps = further_sweeps
        self.cost = Cost()
        self._path = path
        self._at = path.assignments.tolist()
        self._sizes = path.sizes.tolist()
        self._n_rows = self._sizes[-1]
        # The shape's final stage: all rows, the posterior itself.
        self._tempered_until = _end_of(path.betas != 1.0, self._at)
        self._final_from = max(_end_of(path.sizes != self._n_rows, self._at), self._tempered_until)
        self.position = 0.0
        self.speed = self.final_speed = 1.0
        self.expected = float(self._at[-1])
        self.planned_at = self.last_seconds = -inf
        self.last_size = self.last_length = self.settled = 0.0
        self.knots = [(0, self._sizes[0])]
        self.betas = [self.beta]

    @property
    def beta(self):
        """Energy exponent at the present position of the shape."""
        return float(np.interp(self.position, self._path.assignments, self._path.betas))

    def expected_total(self, assignments):
        """Return the number of assignments the schedule is expected to make in all."""
        return max(assignments, round(self.expected))

    def next(self, start, size, seconds):
        """Choose the next segment.

        Parameters
        ----------
        start, size : int
            Assignments made and rows held so far.
        seconds : float
            Time since the chain began.

        Returns
        -------
        step : (list of (int, int), float) or None
            The segment's knots, the first at `start` and the last at its end, and its exponent;
            None if nothing is left to do.
        finished : bool
            Whether this is the schedule's last segment, or none is left.
        """
        self._measure(start, seconds)
        if seconds < self.max_time:
            step, finished = self._walk(start, size)
        else:
            step, finished = self._shortest(start, size)
        if finished and not self._ends_well(step):
            finished = step is None
            if step is None:
                self.position = float(self._at[-1])
                step = [(start, size), (start + size, size)], 1.0
        if step is not None:
            self._record(step)
        elif finished:
            self.betas[-1] = 1.0
        return step, finished

    def realised(self, finished):
        """Return the knots and exponents run so far, led on to full data if not finished."""
        knots, betas = list(self.knots), list(self.betas)
        start, size = knots[-1]
        if start == 0:
            path = self._path
            return np.column_stack([path.assignments, path.sizes]), path.betas
        if finished:
            return knots, betas
        if size < self._n_rows:
            start += self._n_rows - size
            knots.append((start, self._n_rows))
            betas.append(1.0)
        if betas[-2] != 1.0:
            betas[-1] = 1.0
            knots.append((start + self._n_rows, self._n_rows))
            betas.append(1.0)
        return knots, betas

    def to_arrays(self):
        """Return the state as a flat dict of arrays."""
        return {
            "budget_state": np.array([getattr(self, name) for name in self._STATE], dtype=float),
            "budget_cost": np.array([getattr(self.cost, name) for name in Cost._STATE]),
            "budget_knots": np.array(self.knots, dtype=np.int64),
            "budget_betas": np.array(self.betas),
        }

    @classmethod
    def from_arrays(cls, path, arrays):
        """Rebuild a budget for a path from the arrays of `to_arrays`."""
        budget = cls(path, 0.0, 0.0)
        for name, value in zip(cls._STATE, arrays["budget_state"].tolist()):
            setattr(budget, name, value)
        for name, value in zip(Cost._STATE, arrays["budget_cost"].tolist()):
            setattr(budget.cost, name, value)
        budget.knots = [(start, size) for start, size in arrays["budget_knots"].tolist()]
        budget.betas = arrays["budget_betas"].tolist()
        return budget

    def _measure(self, start, seconds):
        """Take in the time of the last segment and plan again if that is due."""
        if self.last_length > 0:
            self.cost.update(self.last_size, self.last_length, seconds - self.last_seconds)
            early = seconds < _FIRST_TIME * self.max_time
            early = early and self.position < _FIRST_SHAPE * self._at[-1]
            held = seconds - self.planned_at < _HOLD * self.max_time
            # A plan of which one segment is left is checked before the schedule ends by it.
            held = held and self.expected - start > self.last_length
            if not early and not held and seconds < self.max_time:
                self._plan(start, seconds)
        self.last_seconds = seconds

    def _plan(self, start, seconds):
        """Choose the speeds at which the rest of the shape takes the rest of the time."""
        self.planned_at = seconds
        full = float(self.cost.per_assignment(self._n_rows))
        rest = self.max_time - seconds - self.further_sweeps * self._n_rows * full
        end = self._at[-1]
        if self.position >= self._final_from:
            left = max(rest, 0.0) / full
            self.final_speed = left / max(end - self.position, 1e-12)
            self.expected = start + left
            return
        widths, slopes, costs = self._cells()
        final = end - self._final_from
        share = final / self._final_from

        def assignments(speed):
            growing = np.where(slopes >= 1.0, 1.0, np.maximum(slopes, speed)) * widths
            # At least the shape's share of all assignments is kept for the final stage.
            return growing, max(speed * final, share * (start + growing.sum())) if final else 0.0

        def time(speed):
            growing, at_full = assignments(speed)
            return growing @ costs + at_full * full

        self.speed = _solve_increasing(time, rest)
        growing, at_full = assignments(self.speed)
        self.final_speed = at_full / final if final else 0.0
        self.expected = start + growing.sum() + at_full

    def _cells(self):
        """Cut the shape before its final stage into cells; return widths, slopes, unit costs."""
        span = self._final_from - self.position
        # Squared: the sizes, and with them the costs, differ most where the subsample is small.
        fine = self.position + span * np.linspace(0.0, 1.0, 33) ** 2
        knots = self._path.assignments[self._path.assignments <= self._final_from]
        edges = np.unique(np.concatenate([fine, knots[knots > self.position]]))
        sizes = np.interp(edges, self._path.assignments, self._path.sizes)
        widths = np.diff(edges)
        # The shape's own slopes, not differences of rounded cells: 1 must come out as 1.
        piece = np.searchsorted(self._path.assignments, edges[:-1] + 0.5 * widths) - 1
        slopes = (np.diff(self._path.sizes) / np.diff(self._path.assignments))[piece]
        return widths, slopes, self.cost.per_assignment(0.5 * (sizes[:-1] + sizes[1:]))

    def _walk(self, start, size):
        """Run the shape for one full churn from the present position."""
        end = float(self._at[-1])
        while True:
            beta = self.beta
            limit = max(1, size)
            stop_at = end if self.position >= self._tempered_until else float(self._tempered_until)
            knots, left = [(start, size)], float(limit)
            while left > 0 and self.position < stop_at:
                left -= self._move(left)
                self._add_knot(knots, start + round(limit - left), self._shape_size())
            if self.position >= end:
                # The speeds' rounding may have left a few rows outside.
                last, reached = knots[-1]
                rows = min(self._n_rows - reached, start + limit - last)
                self._add_knot(knots, last + rows, reached + rows)
                finished = knots[-1][1] == self._n_rows
                if finished or len(knots) > 1:
                    return ((knots, beta) if len(knots) > 1 else None), finished
            if len(knots) > 1:
                return (knots, beta), False

    def _move(self, left):
        """Advance to the next knot of the shape or by `left` assignments; return those used."""
        piece = bisect_right(self._at, self.position) - 1
        upper = self._at[piece + 1]
        growth, width = self._sizes[piece + 1] - self._sizes[piece], upper - self._at[piece]
        speed = self.final_speed if self.position >= self._final_from else self.speed
        rate = 1.0 if growth >= width else max(growth / width, speed)
        used = (upper - self.position) * rate
        if used <= left:
            self.position = float(upper)
            return used
        self.position += left / rate
        return left

    def _shape_size(self):
        """Return the shape's size at the present position."""
        # The slack keeps a sum of fractions from opening the next row's place too soon.
        return ceil(np.interp(self.position, self._path.assignments, self._path.sizes) - 1e-6)

    def _add_knot(self, knots, assignment, size):
        """Append a knot, bringing its size within the bounds every path keeps."""
        last, reached = knots[-1]
        if assignment > last:
            highest = min(self._n_rows, reached + assignment - last)
            knots.append((assignment, min(max(size, 1), highest)))

    def _shortest(self, start, size):
        """The time is over: grow to full data by a sequential pass, or do nothing more."""
        rows = min(max(1, size), self._n_rows - size)
        if rows == 0:
            return None, True
        knots = [(start, size), (start + rows, size + rows)]
        return (knots, self.beta), size + rows == self._n_rows

    def _ends_well(self, step):
        """Whether the schedule may end after a step, or now.

        Every row has to have been drawn, and an energy schedule needs a sweep at exponent 1 (unless
        its shape has none), or its draws would not be draws from the posterior.
        """
        if step is None and len(self.knots) == 1:
            return False
        beta = self.betas[-2] if step is None else step[1]
        end = self._at[-1]
        return beta == 1.0 or self.position >= end == self._tempered_until

    def _record(self, step):
        """Note a segment's knots for `realised` and its length for the cost."""
        knots, beta = step
        (start, size), (stop, reached) = knots[0], knots[-1]
        self.last_size, self.last_length = 0.5 * (size + reached), float(stop - start)
        if reached >= SETTLED and not self.settled:
            # What has cost so little would make it look as if costs rose with the size.
            self.cost, self.settled = Cost(), 1.0
        self.betas[-1] = beta
        for number, knot in enumerate(knots[1:], start=1):
            # Inside a segment the exponent is not read, but it must not be 1 before its end.
            value = self.beta if number == len(knots) - 1 else beta
            flat = len(self.knots) > 1 and self.knots[-2][1] == self.knots[-1][1] == knot[1]
            if flat and self.betas[-2] == self.betas[-1] == value:
                self.knots.pop()
                self.betas.pop()
            self.knots.append(knot)
            self.betas.append(value)


def _end_of(condition, assignments):
    """Return the assignment after which no knot fulfils the condition (0 if none does)."""
    places = np.flatnonzero(condition)
    if len(places) == 0:
        return 0
    return assignments[min(places[-1] + 1, len(assignments) - 1)]


def _solve_increasing(function, value):
    """Return x >= 0 with function(x) = value, or 0 if function(0) is already as large."""
    if function(0.0) >= value:
        return 0.0
    low, high = 0.0, 1.0
    while function(high) < value:
        low, high = high, 8.0 * high
        if high > 1e15:
            return low
    return brentq(lambda x: function(x) - value, low, high, rtol=1e-6)
