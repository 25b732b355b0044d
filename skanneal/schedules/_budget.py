"""Fit a path of subsample sizes into a number of seconds while its cost is being measured.

The path is a shape: its position runs from 0 to its number of assignments, and each stretch of it
is run at a speed, in real assignments per assignment of the shape. Speeds are chosen again as the
measured cost changes. Two rules bound them: the subsample never grows by more than one row per
assignment, and a stretch that does grow by one (a sequential pass) stays as it is. Once all rows
are in, sweeps follow as long as there is time for them, whatever the plan was.
"""

# SPDX-License-Identifier: BSD-3-Clause

from bisect import bisect_right
from math import ceil, exp, inf

import numpy as np
from scipy.optimize import brentq

from .._native._state_arrays import StateError, state_array
from ._cost import FEW, Cost, lower_median

# Before these shares of the time and of the shape are used, a cost is mostly fixed overhead.
_FIRST_TIME, _FIRST_SHAPE = 0.01, 0.05
# Planning costs about as much as a small segment, so speeds hold for this share of the time.
_HOLD = 0.005
# Shares of the time: what the pace starts from, how far it looks back, the most of one segment.
_PACE_START, _PACE_MEMORY, _PACE_JUMP = 0.02, 0.05, 0.05
_FURTHER = 0.35  # of the time is kept for the sweeps that follow the path, if they need as much
_PART = 0.05  # of a sweep: a shorter last segment is not worth its moves


class Budget:
    """Choose each segment so that the whole path takes a given time.

    Parameters
    ----------
    path : Path
        The shape to stretch or compress.
    max_time : float
        Seconds from the chain's beginning.
    further_sweeps : float
        Full-data sweeps that follow the path, as far as there is time for them.
    """

    _STATE = (
        "max_time",
        "further_sweeps",
        "position",
        "speed",
        "expected",
        "planned_at",
        "last_seconds",
        "last_size",
        "last_length",
        "settled",
        "taken",
        "foreseen",
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
        self.speed = 1.0
        self.expected = float(self._at[-1])
        self.planned_at = self.last_seconds = -inf
        self.last_size = self.last_length = self.settled = 0.0
        self.taken = self.foreseen = _PACE_START * max_time  # seconds of late, and as expected
        self.full = []  # the last sweeps of the full data: assignments, seconds, those of moves
        self.knots = [(0, self._sizes[0])]
        self.betas = [self.beta]

    @property
    def beta(self):
        """Energy exponent at the present position of the shape."""
        return float(np.interp(self.position, self._path.assignments, self._path.betas))

    def expected_total(self, assignments):
        """Return the number of assignments the schedule is expected to make in all."""
        return max(assignments, round(self.expected))

    def next(self, start, size, seconds, moves=0.0):
        """Choose the next segment.

        Parameters
        ----------
        start, size : int
            Assignments made and rows held so far.
        seconds : float
            Time since the chain began.
        moves : float, default=0.0
            Seconds that the last segment's moves took, however many its assignments were.

        Returns
        -------
        step : (list of (int, int), float) or None
            The segment's knots, the first at `start` and the last at its end, and its exponent;
            None if nothing is left to do.
        finished : bool
            Whether this is the schedule's last segment, or none is left.
        """
        self._measure(start, seconds, moves)
        if seconds >= self.max_time:
            step, finished = self._shortest(start, size)
        elif self.position >= self._final_from and size == self._n_rows:
            step, finished = self._final(start, seconds)
        else:
            step, finished = self._walk(start, size, seconds)
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

    def ends_well(self):
        """Whether the schedule may end as it is."""
        return self._ends_well(None)

    def pass_seconds(self, n_rows):
        """Seconds that it takes at least to let so many rows in; 0 while nothing is known."""
        if not self.cost.first:
            return 0.0
        return n_rows * float(self.cost.per_assignment([self.last_size, self._n_rows]).min())

    def cut(self, done):
        """End at `done` assignments, within the last segment recorded, one of all rows."""
        while self.knots[-1][0] > done:
            self.knots.pop()
            self.betas.pop()
        if self.knots[-1][0] < done:
            self.knots.append((done, self._n_rows))
            self.betas.append(1.0)

    def join(self, assignments, size):
        """Begin where a chain without a limit has got to on the same path."""
        before = [(a, n) for a, n in zip(self._at, self._sizes) if a < assignments]
        self.position = float(assignments)
        if before:
            self.knots = [*before, (assignments, size)]
            self.betas = [*self._path.betas.tolist()[: len(before)], self.beta]

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
            "budget_first": np.array(self.cost.first, dtype=float),
            "budget_full": np.array(self.full, dtype=float),
            "budget_knots": np.array(self.knots, dtype=np.int64),
            "budget_betas": np.array(self.betas),
        }

    @classmethod
    def from_arrays(cls, path, arrays):
        """Rebuild a budget for a path from the arrays of `to_arrays`; StateError for others."""
        knots = state_array(arrays, "budget_knots", "iu", (None, 2), 0, 2**62)
        for key, *shape in (
            ("budget_state", len(cls._STATE)),
            ("budget_cost", len(Cost._STATE)),
            ("budget_betas", len(knots)),
        ):
            if np.shape(arrays.get(key)) != tuple(shape) or arrays[key].dtype.kind != "f":
                raise StateError(key, f"must hold {shape[0]} numbers")
        budget = cls(path, 0.0, 0.0)
        for name, value in zip(cls._STATE, arrays["budget_state"].tolist()):
            setattr(budget, name, value)
        for name, value in zip(Cost._STATE, arrays["budget_cost"].tolist()):
            setattr(budget.cost, name, value)
        budget.cost.first = [tuple(segment) for segment in arrays["budget_first"].tolist()]
        budget.full = [tuple(segment) for segment in arrays["budget_full"].tolist()]
        budget.knots = [(start, size) for start, size in arrays["budget_knots"].tolist()]
        budget.betas = arrays["budget_betas"].tolist()
        return budget

    def _measure(self, start, seconds, moves):
        """Take in the time of the last segment and plan again if that is due."""
        if self.last_length > 0:
            took = seconds - self.last_seconds
            if moves > 0.0 and not self.settled:
                # What has cost so little would make it look as if costs rose with the size.
                self.cost, self.settled = Cost(), 1.0
                self.taken = self.foreseen = _PACE_START * self.max_time
            self._keep_pace(took)
            self.cost.update(self.last_size, self.last_length, took, moves)
            if self.last_size == self._n_rows:
                self.full = [*self.full[1 - FEW :], (self.last_length, took, moves)]
            early = seconds < _FIRST_TIME * self.max_time or len(self.cost.first) < FEW
            early = early and self.position < _FIRST_SHAPE * self._at[-1]
            held = seconds - self.planned_at < _HOLD * self.max_time
            # A plan of which one segment is left is checked before the schedule ends by it.
            held = held and self.expected - start > self.last_length
            if not early and not held and seconds < self.max_time:
                self._plan(start, seconds)
        self.last_seconds = seconds

    def _keep_pace(self, took):
        """Compare the last segment's time with what was expected of it.

        Costs say what a segment takes when nothing holds it up; the pace says how much longer it is
        on average, of late. One segment counts with little, however long it was held up: the time
        that it has cost is gone, but says nothing about the next ones.
        """
        if not self.cost.first:
            return
        expected = float(self.cost.per_assignment(self.last_size)) * self.last_length
        fade = exp(-expected / (_PACE_MEMORY * self.max_time))
        self.taken = fade * self.taken + min(took, expected + _PACE_JUMP * self.max_time)
        self.foreseen = fade * self.foreseen + expected

    @property
    def _pace(self):
        return self.taken / self.foreseen

    def _plan(self, start, seconds):
        """Choose the speeds at which the rest of the shape takes the rest of the time."""
        self.planned_at = seconds
        pace = self._pace
        full = pace * self.cost.of_sweep(self._n_rows)[0] / self._n_rows
        further = self.further_sweeps * self._n_rows * full
        rest = self.max_time - seconds - min(further, _FURTHER * self.max_time)
        end = self._at[-1]
        if self.position >= self._final_from:
            self.expected = start + max(rest, 0.0) / full
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
            return pace * (growing @ costs) + at_full * full

        self.speed = _solve_increasing(time, rest)
        growing, at_full = assignments(self.speed)
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

    def _walk(self, start, size, seconds):
        """Run the shape for one full churn from the present position."""
        beta, end = self.beta, start + max(1, size)
        tempered = self.position < self._tempered_until
        stop_at = float(self._tempered_until if tempered else self._final_from)
        knots, left = [(start, size)], float(end - start)
        while left > 0 and self.position < stop_at:
            left -= self._move(left)
            self._add_knot(knots, end - round(left), self._shape_size())
        if self.position < self._final_from and len(knots) > 1:
            return (knots, beta), False
        if self.position < self._final_from:  # the tempered stretch is at its end
            return self._walk(start, size, seconds)
        # The speeds' rounding may have left a few rows outside.
        last, reached = knots[-1]
        rows = min(self._n_rows - reached, end - last)
        self._add_knot(knots, last + rows, reached + rows)
        last, reached = knots[-1]
        if last == start:
            return self._final(start, seconds)
        if reached < self._n_rows or last == end or tempered:
            return (knots, beta), False
        rest = end - last
        if self.cost.first:  # segments are full churns, but for the last one
            sweep, share = self._sweep()
            growing = float(self.cost.per_assignment(0.5 * (size + reached))) * (last - start)
            left = self.max_time - seconds - self._reserve() - growing - share * sweep
            affordable = left / ((1.0 - share) * sweep) * self._n_rows
            rest = min(rest, max(0, round(affordable)))
        self._add_knot(knots, last + rest, self._n_rows)
        return (knots, beta), last + rest < end

    def _final(self, start, seconds):
        """Go on with full-data sweeps as long as there is time for them."""
        length = self._n_rows
        if self.cost.first:
            left = self.max_time - seconds - self._reserve()
            sweep, share = self._sweep()
            part = (left / sweep - share) / (1.0 - share)
            if part < 1.0:
                length = round(part * length) if part >= _PART else 0
            # What was measured once may have been held up.
            if len(self.cost.first) == 1 and left > _PACE_START * self.max_time:
                length = self._n_rows
        if length == 0:
            self.position = float(self._at[-1])
            return None, True
        knots = [(start, self._n_rows), (start + length, self._n_rows)]
        return (knots, 1.0), length < self._n_rows

    def _sweep(self):
        """Seconds of a sweep of the full data if nothing holds it up, and the moves' share."""
        expected = self.cost.of_sweep(self._n_rows)
        if not self.full:
            return expected
        rows = lower_median([(took - moves) / length for length, took, moves in self.full])
        moves = lower_median([moves for *_, moves in self.full])
        seconds = self._n_rows * rows + moves
        measured = seconds, min(moves / seconds, 0.95)  # some of the time is always the rows'
        return measured if len(self.full) > 2 else min(measured, expected)

    def _reserve(self):
        """Seconds that the sweeps which follow the path will take."""
        if not self.further_sweeps:
            return 0.0
        return min(self.further_sweeps * self._pace * self._sweep()[0], _FURTHER * self.max_time)

    def _move(self, left):
        """Advance to the next knot of the shape or by `left` assignments; return those used."""
        piece = bisect_right(self._at, self.position) - 1
        upper = self._at[piece + 1]
        growth, width = self._sizes[piece + 1] - self._sizes[piece], upper - self._at[piece]
        rate = 1.0 if growth >= width else max(growth / width, self.speed)
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
