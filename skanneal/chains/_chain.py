"""One chain: a schedule's segments, the moves after each, a trace, draws.

A chain is a pure function of its plan, its schedule and its seed. It can be saved as a flat dict of
arrays, and running on from that equals never having stopped, bit for bit.
"""

# SPDX-License-Identifier: BSD-3-Clause

import os

import numpy as np

from .._native._state_arrays import StateError, part, state_array
from ..moves import churn
from ..parallel import OutOfTime, Progress, StopFlag
from ..schedules import Pacer, Segment
from ..states import Subsample, draw_arrays, recount, state_from_arrays
from ._clock import ChainClock
from ._completed import completed
from ._first_state import first_state
from ._moves import ChainMoves
from ._snapshot import read_snapshot, write_snapshot
from ._trace import Trace

DEBUG = os.environ.get("SKANNEAL_DEBUG", "0") == "1"  # compare statistics with recomputations
N_RECORDS = 100  # of the trace, at equal fractions of the schedule's assignments


class Chain:
    """One chain between two segments.

    `begin` and `from_arrays` make one; `run_chain` is the usual way in.

    Parameters
    ----------
    plan : ChainPlan
        Data, prior and moves.
    state : Mixture or CrossCat
    pacer : Pacer
        It gives the segments.
    bit_generator : numpy.random.BitGenerator
        Of this chain alone.
    clock : ChainClock

    Attributes
    ----------
    trace : Trace
    position : int
        Assignments that have been made.
    unfinished : Segment or None
        The rest of a segment after a stop.
    reached : float or None
        The chain's seconds when it had first made a full-data sweep of the posterior.
    progress : Progress
        Receives the chain's progress and, at the end of each stage, its result.
    to_come : int
        Assignments that `extend` will add later: they count in the share of the work that is done.
    log_evidence : float
        The estimate of the island that the chain comes from; nan if there was no island.
    """

    def __init__(self, plan, state, pacer, bit_generator, clock):
        self.plan, self.state, self.pacer = plan, state, pacer
        self.bit_generator, self.clock = bit_generator, clock
        self.moves = ChainMoves(plan, clock)
        self.trace = Trace()
        self.position, self.unfinished, self.reached = 0, None, None
        self.progress, self.to_come = Progress(), 0
        self._origin, self._stage = (0, 0.0), None
        self.log_evidence = np.nan

    @classmethod
    def begin(cls, plan, schedule, seed, further_sweeps=0.0, max_time=None):
        """Return a chain at its beginning.

        Parameters
        ----------
        plan : ChainPlan
            Data, prior and moves.
        schedule : BaseSchedule
            Validated.
        seed : numpy.random.SeedSequence
            Of this chain alone.
        further_sweeps : float
            Full-data sweeps that will follow for further draws.
        max_time : float or None
            Seconds, from here on, that all of it may take.
        """
        clock, bit_generator = ChainClock(), np.random.PCG64(seed)
        n_rows = plan.table.n_rows
        pacer = schedule.pacer(n_rows, max_time, further_sweeps=further_sweeps)
        subsample = Subsample(n_rows, schedule.selection, bit_generator, plan.strata)
        state = first_state(plan, subsample, pacer.path.start, bit_generator)
        new = cls(plan, state, pacer, bit_generator, clock)
        clock.tick()
        return new

    @property
    def is_full(self):
        """Whether all rows are in."""
        return self.state.subsample.size == self.state.table.n_rows

    def taking_over(self, other):
        """Return the chain where it is, with the plan and the learned costs of another."""
        new = Chain(other.plan, self.state, self.pacer, self.bit_generator, self.clock)
        new.trace, new.position, new.reached = self.trace, self.position, self.reached
        new.moves.recall(other.moves.memory())
        return new

    def copy(self, plan, bit_generator):
        """Return a chain of its own at the same place of the path, with the same state, but with a
        plan of other moves and other random numbers. Its trace begins there."""
        subsample = Subsample.from_arrays(self.state.subsample.to_arrays())
        state = state_from_arrays(self.state.to_arrays(), plan.table, subsample, trusted=True)
        pacer = Pacer.from_arrays(self.pacer.to_arrays())
        new = Chain(plan, state, pacer, bit_generator, ChainClock())
        new.position = self.position
        return new

    # ---- running --------------------------------------------------------------------------------

    def limit(self, stop, max_time):
        """Let the chain end after so many seconds from here on.

        Optional work is cut then, so that the chain ends at a complete state; if rows are still
        missing, it goes on until all are in, without moves.
        """
        self.clock.start()
        self.clock.limit(stop, max_time)
        self.pacer.limit(self.clock.end)

    def run(self, stop=None, until=np.inf):
        """Run to the end of the pacer's path, or until so many rows are in; return False if the
        chain was stopped before."""
        stop = StopFlag() if stop is None else stop
        self.clock.start()
        interval = max(1, self.pacer.total // N_RECORDS)
        while not stop.is_set():
            if self.state.subsample.size >= until:
                return True
            segment = self.unfinished or self.pacer.next(self.clock.now(), **self.moves.took)
            if segment is None:
                return True
            segment = self.make_assignments(segment, stop)
            if segment is None:
                return not (stop.is_set() or self.pacer.is_further)
            for move in self.moves.adaptive:
                move.burn_in = self.pacer.burn_in
            whole = self.make_moves(segment, stop)
            self.clock.tick()
            if self.is_full and segment.beta == 1.0 and self.reached is None:
                self.reached = self.clock.seconds
            crossed = segment.stop // interval > segment.start // interval
            if crossed or self.is_full or self.pacer.done:
                self.record()
            if self.progress(self.share):
                stop.set()
            if not whole:
                return False
        return False

    @property
    def share(self):
        """The share of the work, or of the time if that is limited, that the chain has done."""
        position, seconds = self._origin
        of_work = (self.position - position) / (self.pacer.total + self.to_come - position)
        of_time = (self.clock.seconds - seconds) / (self.clock.end - seconds)
        return min(max(of_work, of_time), 1.0)

    def make_assignments(self, segment, stop):
        """Make a segment's assignments.

        The clock cuts only segments after a complete schedule, or segments that time was left for.

        Returns
        -------
        segment : Segment or None
            The segment as far as it got; None if no moves follow it.
        """
        may_end = self.clock.flag is not None and self.pacer.is_optional and self.is_full
        watched = self.clock.flag if may_end else stop
        done = churn(
            self.state.views,
            self.state.subsample,
            self.bit_generator,
            segment.knots,
            segment.start,
            segment.stop,
            segment.beta,
            watched.array,
        )
        self.position, self.unfinished = done, None
        if done == segment.stop:
            return segment
        if stop.is_set():
            self.unfinished = segment._replace(start=done)
            return None
        self.pacer.cut(done)
        if self.pacer.is_further or done == segment.start:
            return None
        self.pacer.skip(done)
        return segment._replace(stop=done)

    def make_moves(self, segment, stop):
        """Make the moves that follow a segment; return whether the state may be kept as a draw.

        All moves wait until enough rows are in (`settled_rows`). With few rows, one cluster per row
        with a tiny variance, or one view per column, explains the data as well as any other state,
        and a chain on a table of many columns seldom leaves such a state again. On a small table
        moves wait for fewer rows, since the sweeps of all rows alone seldom split merged views.

        If a time limit leaves no room for a segment's moves, all of them are left out; moves that
        are not done in time are undone. The realised schedule records both.
        """
        self.moves.skip()
        self.state.compact()
        if DEBUG:
            self.state.validate()
        waits = self.state.subsample.size < self.moves.settled_rows
        if waits or self.pacer.skips(segment.stop):
            return True
        if self.clock.flag is None:
            self._make_moves(segment, stop)
            return True
        left = self.clock.end - self.clock.now() - self.pacer.rest_seconds
        expected = self.moves.expected(self.state, segment)
        if left <= 0.0 or (not self.is_full and left < expected < np.inf):
            return self._leave_out(segment)
        if not self.clock.is_guard_due(expected, left, self.state.subsample.size):
            self._make_moves(segment, stop)
            return True
        return self._made_in_time(segment, stop) or self._leave_out(segment)

    def _make_moves(self, segment, stop):
        self.moves.make(self.state, self.bit_generator, segment, self.pacer.burn_in, stop)

    def _made_in_time(self, segment, stop):
        """Make the moves, but undo them if the time ends first; return whether they were in
        time."""
        began = self.clock.now()
        arrays, generator = self.state.to_arrays(), self.bit_generator.state
        memory = self.moves.memory()
        self.clock.note("copy", began, self.state.subsample.size)
        self.clock.guarded = True
        try:
            self._make_moves(segment, stop)
        except OutOfTime:
            own = self.plan.table, self.state.subsample
            self.state = state_from_arrays(arrays, *own, trusted=True)
            self.bit_generator.state = generator
            self.moves.recall(memory)
            return False
        finally:
            self.clock.guarded = False
        return True

    def _leave_out(self, segment):
        """Note that a segment's moves are left out; return whether the state is whole anyway."""
        if not self.pacer.is_further:
            self.pacer.skip(segment.stop)
        return not self.pacer.is_further

    # ---- what is kept ---------------------------------------------------------------------------

    def record(self):
        """Append the state's scalars to the trace."""
        state = self.state
        now = {
            "seconds": self.clock.seconds,
            "sweeps": self.position / state.table.n_rows,
            "n_assigned": state.subsample.size,
            **state.scalars(),
        }
        if self.moves.adaptive:
            now["burn_in"] = self.pacer.burn_in
        stage = "draws" if self.pacer.is_further else "schedule"
        if self._stage not in (stage, None):
            self.end_stage()
        self._stage = stage
        self.trace.record(now)

    def end_stage(self):
        """Report the last stage's result."""
        now = {name: values[-1] for name, values in self.trace.items()}
        views = f"{now['n_views']:.0f} views, " if "n_views" in now else ""
        out = self.state.table.n_rows - now["n_assigned"]
        self.progress.say(
            f"{self._stage}, {now['sweeps']:.1f} sweeps, {now['seconds']:.1f} s: {views}"
            f"{now['n_components']:.0f} components, log joint {now['log_joint']:.6g}"
            + (f", {out:.0f} rows are out" if out else "")
        )

    def draw_fills(self):
        """Draw all missing cells that are part of the state anew, one row after another.

        A row step seldom does so. Without this, draws that are few sweeps apart would have mostly
        the same fills, and with them nearly the same parameters."""
        rows = self.state.subsample.rows()
        for view in self.state.views:
            with_gaps = rows[np.isin(rows, view.table.with_gaps)]
            view.draw_fills(with_gaps, self.bit_generator)

    def draw(self):
        """Return what is kept of a draw: the state, without the subsample, generator and tuning."""
        return draw_arrays(completed(self.state))

    def to_arrays(self):
        """Return everything needed to run on: a flat dict of arrays."""
        unfinished = self.unfinished
        if unfinished is not None:
            unfinished = unfinished._replace(knots=unfinished.knots.tolist())
        header = {
            "families": list(self.plan.families),
            **self.moves.memory(),
            "generator": self.bit_generator.state,
            "position": self.position,
            "unfinished": unfinished,
            "log_evidence": self.log_evidence,
        }
        parts = {
            "state": self.state.to_arrays(),
            "subsample": self.state.subsample.to_arrays(),
            "pacer": self.pacer.to_arrays(),
            "trace": self.trace.to_arrays(),
        }
        return write_snapshot(header, parts) | {"seconds": np.array(self.clock.seconds)}

    @classmethod
    def from_arrays(cls, arrays, plan):
        """Return the chain whose to_arrays() gave `arrays`, on the same plan.

        Raise StateError if they are not the arrays of a chain, or do not fit the plan's rows.
        """
        header, parts = read_snapshot(arrays)
        clock = ChainClock()
        clock.seconds = float(state_array(arrays, "seconds", "f", (), 0.0))
        with part("subsample"):
            subsample = Subsample.from_arrays(parts.get("subsample", {}))
            if subsample.n_rows != plan.table.n_rows:
                raise StateError("order", f"holds {subsample.n_rows} rows, not the table's")
        with part("state"):
            state = state_from_arrays(parts.get("state", {}), plan.table, subsample)
        with part("pacer"):
            pacer = Pacer.from_arrays(parts.get("pacer", {}))
            if pacer.n_rows != plan.table.n_rows:
                raise StateError("path_sizes", f"ends with {pacer.n_rows} rows, not the table's")
        with part("trace"):
            trace = Trace.from_arrays(parts.get("trace", {}))
        new = cls(plan, state, pacer, np.random.PCG64(), clock)
        new.trace = trace
        try:
            new._recall(header)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise StateError("header", f"does not fit ({error})") from error
        return new

    def _recall(self, header):
        """Take back what `to_arrays` has put into the header."""
        self.bit_generator.state = header["generator"]
        self.moves.recall(header)
        self.position = int(header["position"])
        self._origin = self.position, self.clock.seconds
        self.log_evidence = float(header.get("log_evidence", np.nan))
        if header["unfinished"] is not None:
            rest = Segment(*header["unfinished"])
            self.unfinished = rest._replace(knots=np.array(rest.knots, dtype=np.int64))
        start = stop = self.position
        if self.unfinished is not None:
            start, stop = self.unfinished.start, self.unfinished.stop
        if (self.position, self.pacer.assignments) != (start, stop):
            raise ValueError(f"{self.position} assignments, of {self.pacer.assignments}")

    def recount(self):
        """Raise StateError unless columns have the plan's families, and labels and counts of every
        view are those of the rows that are in."""
        of_plan = {j: name for name, at in self.plan.families.items() for j in at.tolist()}
        blocks = [block for view in self.state.views for block in view.blocks]
        if {j: block.family for block in blocks for j in block.columns.tolist()} != of_plan:
            raise StateError("state", "has other families than the fit")
        for v, view in enumerate(self.state.views):
            with part("state" if view is self.state else f"state/view{v}"):
                recount(view)
