"""Run one chain: a schedule's segments, the moves after each, a trace, kept draws.

A chain is a pure function of (model, schedule, seed); arrays go in and arrays come out. Its state
is a flat dict of arrays, and running on from it equals never having stopped, bit for bit.
"""

# SPDX-License-Identifier: BSD-3-Clause

import json
import os
import time

import numpy as np

from ..moves import (
    COLUMN_MOVES,
    MOVES,
    EachView,
    FeatureHyperparameters,
    PartitionHyperparameters,
    churn,
)
from ..parallel import StopFlag
from ..parallel._time_limit import LEAST, OutOfTime
from ..schedules import CustomAnneal, Pacer, Segment
from ..schedules._budget import SETTLED
from ..states import Subsample, state_from_arrays
from ._clock import ChainClock
from ._plan import ChainPlan, first_state

__all__ = ["Chain", "ChainPlan", "run_chain"]

FORMAT = 1
DEBUG = os.environ.get("SKANNEAL_DEBUG", "0") == "1"  # compare statistics with recomputations
N_RECORDS = 100  # of the trace, at equal fractions of the schedule's assignments
BLOCK_ROWS = 8192  # scored at a time
IDLE_AFTER = 8  # turns without an acceptance until a structure move misses most of its turns
IDLE_PERIOD = 8
LATE, LATE_SECONDS = 1.05, 0.1  # times the limit, and seconds more, that are not worth a warning
FIRST_COST = 1.0  # work per row that a move is taken to cost before it has been made
COST_MEMORY = 0.2  # weight of a move's last application in its mean cost per row


class Chain:
    """One chain between two segments; see `run_chain` for the usual way in.

    Parameters
    ----------
    model : ChainPlan
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

    def __init__(self, model, schedule, seed, further_sweeps=0.0, max_time=None):
        self._set_up(model)
        self.bit_generator = np.random.PCG64(seed)
        n_rows = model.table.n_rows
        self.pacer = schedule.pacer(n_rows, max_time, further_sweeps=further_sweeps)
        subsample = Subsample(n_rows, schedule.selection, self.bit_generator, model.strata)
        self.state = first_state(model, subsample, self.bit_generator)
        if self.pacer.path.start == "prior":
            subsample.fill()
            for view in self.state.views:
                labels = self._first_labels(view, n_rows)
                view.replace(np.arange(n_rows), labels)
        self.trace = {}
        self.clock.tick()
        self.position, self.unfinished = 0, None  # assignments done; what a stop left of a segment

    def _first_labels(self, view, n_rows):
        if isinstance(self.model.init, np.ndarray):
            return self.model.init
        if self.model.init is None:
            return view.prior.draw(n_rows, self.bit_generator)
        return (np.random.Generator(self.bit_generator).random(n_rows) * self.model.init).astype(
            int
        )

    def _set_up(self, model):
        self.model = model
        self.structure = [
            COLUMN_MOVES[name](model.prior_grid)
            if name in COLUMN_MOVES
            else EachView(MOVES[name](**model.options.get(name, {})))
            for name in model.moves
            if name != "gibbs"
        ]
        inner = [getattr(move, "move", move) for move in self.structure]
        self.adaptive = [move for move in inner if hasattr(move, "burn_in")]
        self.hyperparameters = [EachView(PartitionHyperparameters(model.prior_grid))]
        if model.view_grid is not None:
            self.hyperparameters.append(PartitionHyperparameters(model.view_grid))
        self.hyperparameters.append(EachView(FeatureHyperparameters(model.grids)))
        n_moves = len(self.structure)
        self.idle, self.credit, self.costs = [0] * n_moves, [0] * n_moves, [None] * n_moves
        self.clock = ChainClock((*range(n_moves), "hyperparameters", "copy"))
        self.took = {"moves": 0.0, "missing": 0.0}  # seconds, of the last segment: see Pacer.next
        self.reached = None  # seconds when a sweep of the posterior had first been made
        for move in (*self.structure, *self.hyperparameters):
            move.poll = self.clock.poll
        self.tuning = (
            None  # work that a row of the churn is reckoned at: its tiles, and its own cluster
        )
        self.verbose = 0

    # ---- running --------------------------------------------------------------------------------

    def limit(self, stop, max_time):
        """Let the chain end after so many seconds from here on.

        What may be left out is cut then, so that the chain ends at a complete state; if its rows
        are not all in, it goes on until they are, without moves.
        """
        self.clock.start()
        self.clock.limit(stop, max_time)
        self.pacer.limit(self.clock.end)

    def run(self, stop=None):
        """Run to the end of the pacer's path; False if it was stopped before."""
        self.clock.start()
        interval = max(1, self.pacer.total // N_RECORDS)
        while not _raised(stop):
            segment = self.unfinished or self.pacer.next(self.clock.now(), **self.took)
            if segment is None:
                return True
            segment = self._churn(segment, stop)
            if segment is None:
                return not (_raised(stop) or self.pacer.is_further)
            full = self.state.subsample.size == self.model.table.n_rows
            for move in self.adaptive:
                move.burn_in = self.pacer.burn_in
            whole = self._move(segment, full, stop)
            self.clock.tick()
            if full and segment.beta == 1.0 and self.reached is None:
                self.reached = self.clock.seconds
            crossed = segment.stop // interval > segment.start // interval
            if crossed or full or self.pacer.done:
                self.record()
            if not whole:
                return False
        return False

    def _churn(self, segment, stop):
        """Run a segment's assignments; the segment as far as it got, None if nothing follows.

        The clock cuts only what follows a complete schedule, or what time was left for.
        """
        n_rows = self.model.table.n_rows
        may_end = self.clock.flag is not None and self.pacer.is_optional
        may_end = may_end and self.state.subsample.size == n_rows
        watched = self.clock.flag if may_end else stop
        done = churn(
            self.state.views,
            self.state.subsample,
            self.bit_generator,
            segment.knots,
            segment.start,
            segment.stop,
            segment.beta,
            None if watched is None else watched.array,
        )
        self.position, self.unfinished = done, None
        if done == segment.stop:
            return segment
        if _raised(stop):
            self.unfinished = segment._replace(start=done)
            return None
        self.pacer.cut(done)
        if self.pacer.is_further or done == segment.start:
            return None
        self.pacer.skip(done)
        return segment._replace(stop=done)

    def _skip(self, stop):
        """Note that moves are left out; False if that makes the draw incomplete."""
        if not self.pacer.is_further:
            self.pacer.skip(stop)
        return not self.pacer.is_further

    def _move(self, segment, full, stop):
        """Structure and hyperparameter moves, after each full churn.

        While S grows, structure moves take turns, one per churn, and one that has accepted nothing
        for long misses most of its turns; at full data all are run, so that what is kept comes from
        one fixed kernel. They all wait for SETTLED rows: with few rows a tiny variance within
        clusters and one cluster per row explain the data as well as anything, as does one view for
        every feature, and high-dimensional data seldom leave that again.

        Moves for which a time limit leaves no room are left out, all of a segment's, and those
        that are not done in time are taken back; the realised schedule says so. Returns whether the
        state may be kept as a draw.
        """
        self.took = {"moves": 0.0, "missing": 0.0}
        self.state.compact()
        if DEBUG:
            self.state.validate()
        waits = not full and self.state.subsample.size < SETTLED
        if waits or self.pacer.skips(segment.stop):
            return True
        if self.clock.flag is None:
            self._make_moves(segment, full, stop)
            return True
        left = self.clock.end - self.clock.now() - self.pacer.rest_seconds
        expected = self._expected(segment, full)
        if left <= 0.0 or (not full and left < expected < np.inf):
            return self._skip(segment.stop)
        if not self.clock.is_guard_due(expected, left, self.state.subsample.size):
            self._make_moves(segment, full, stop)
            return True
        before = self._before_moves()
        self.clock.guarded = True
        try:
            self._make_moves(segment, full, stop)
        except OutOfTime:
            self._take_back(before)
            return self._skip(segment.stop)
        finally:
            self.clock.guarded = False
        return True

    def _expected(self, segment, full):
        """Seconds that the moves will take; infinity if one has never been made."""
        n_rows, due = self.state.subsample.size, [1] * len(self.structure)
        if self.model.even_work:
            work = self._work(segment)
            needed = [n_rows * (FIRST_COST if cost is None else cost) for cost in self.costs]
            due = [int((credit + work) / of) for credit, of in zip(self.credit, needed)]
        seconds = [n * self.clock.expected(i, n_rows) for i, n in enumerate(due) if n]
        others = self.clock.expected("hyperparameters", n_rows)
        # where they take turns, the longest may be next
        return (sum if full or self.model.even_work else max)([*seconds, 0.0]) + others

    def _before_moves(self):
        began = self.clock.now()
        tunings = [move.tuning for move in self.adaptive]
        reckoned = self.idle.copy(), self.credit.copy(), self.costs.copy(), self.tuning
        before = self.state.to_arrays(), self.bit_generator.state, tunings, reckoned
        self.clock.note("copy", began, self.state.subsample.size)
        return before

    def _take_back(self, before):
        arrays, self.bit_generator.state, tunings, reckoned = before
        self.state = state_from_arrays(arrays, self.model.table, self.state.subsample)
        for move, tuning in zip(self.adaptive, tunings):
            move.tuning = tuning
        self.idle, self.credit, self.costs, self.tuning = reckoned

    def _make_moves(self, segment, full, stop):
        n_rows, clock = self.state.subsample.size, self.clock
        began, turns = clock.now(), ()
        if self.model.even_work:
            self._share_work(segment, stop)
            began = clock.now()  # what they took follows the churn's length
        else:
            turns = self._turns(full)
            for i in turns:
                move_began = clock.now()
                info = self.structure[i].sweep(self.state, self.bit_generator, beta=segment.beta)
                self.idle[i] = 0 if info.accepted else self.idle[i] + 1
                clock.note(i, move_began, n_rows)
            others = (i for i in range(len(self.structure)) if i not in turns)
            self.took["missing"] = sum(clock.expected(i, n_rows, 0.0) for i in others)
        hyperparameters_began = clock.now()
        for move in self.hyperparameters:
            move.sweep(self.state, self.bit_generator, beta=segment.beta)
        clock.note("hyperparameters", hyperparameters_began, n_rows)
        self.took["moves"] = clock.now() - began

    def _share_work(self, segment, stop):
        """Every structure move, until it has worked as much as the churn (see MoveInfo).

        Once burn-in is over, work and costs are reckoned as they were then: a number of moves that
        depended on the state would favour the states in which it stops.
        """
        burn_in, n_rows = self.pacer.burn_in, self.state.subsample.size
        if burn_in or self.tuning is None:
            self.tuning = self.state.n_tiles + 1
        work = self._work(segment)
        for i, move in enumerate(self.structure):
            self.credit[i] += work
            # by row of the subsample, which grows
            cost = FIRST_COST if self.costs[i] is None else self.costs[i]
            while self.credit[i] >= cost * n_rows and not _raised(stop):
                self.clock.poll()
                began = self.clock.now()
                info = move.sweep(self.state, self.bit_generator, beta=segment.beta)
                self.clock.note(i, began, n_rows)
                if burn_in:
                    memory = 1.0 if self.costs[i] is None else COST_MEMORY
                    self.costs[i] = cost = cost + memory * (info.work / n_rows - cost)
                self.credit[i] -= max(1.0, info.work if burn_in else cost * n_rows)

    def _work(self, segment):
        """What a segment's assignments are worth to each structure move."""
        return (segment.stop - segment.start) * (self.tuning or self.state.n_tiles + 1)

    def _turns(self, full):
        """Indices of the structure moves to be run now."""
        n_moves = len(self.structure)
        if full or n_moves == 0:
            return range(n_moves)
        # Each move gains its weight, the richest one pays for all: turns in proportion to weights,
        # evenly spread.
        weights = [move.weight for move in self.structure]
        self.credit = [credit + weight for credit, weight in zip(self.credit, weights)]
        i = self.credit.index(max(self.credit))
        self.credit[i] -= sum(weights)
        if self.idle[i] >= IDLE_AFTER and self.idle[i] % IDLE_PERIOD:
            self.idle[i] += 1
            return ()
        return (i,)

    def record(self):
        """Append the state's scalars to the trace."""
        state = self.state
        now = {
            "seconds": self.clock.seconds,
            "sweeps": self.position / state.table.n_rows,
            "n_assigned": state.subsample.size,
            **state.scalars(),
        }
        if self.adaptive:
            now["burn_in"] = self.pacer.burn_in
        for name, value in now.items():
            self.trace.setdefault(name, []).append(float(value))
        if self.verbose:
            views = f"views {now['n_views']:4d}  " if "n_views" in now else ""
            print(
                f"{now['seconds']:8.1f} s  sweep {now['sweeps']:6.2f}  "
                f"rows {now['n_assigned']:9d}  {views}components {now['n_components']:5d}  "
                f"log joint {now['log_joint']:.6g}",
                flush=True,
            )

    def draw(self):
        """What a kept draw is: the state without the subsample, the generator and the tuning.

        Clusters are numbered 0 .. K - 1 in the order of their slots.
        """
        state = self._completed()
        return state.to_arrays(numbered=True) | {"log_joint": np.array(state.log_joint())}

    def _completed(self):
        """The state, or where an interrupt left rows out, a copy with them in.

        Each goes to its most probable cluster, so that chains stopped at different sizes compare.
        """
        state, table = self.state, self.model.table
        if state.subsample.size in (0, table.n_rows):
            return state
        full = state_from_arrays(state.to_arrays(), table, Subsample(table.n_rows))
        for view in full.views:
            labels = view.get_labels().astype(np.int64)
            used = np.flatnonzero(view.sizes())
            for start in range(0, table.n_rows, BLOCK_ROWS):
                block = labels[start : start + BLOCK_ROWS]
                out = np.flatnonzero(block < 0)
                if len(out):
                    scores, log_weights = view.score_rows(table, start, start + len(block))
                    block[out] = used[(scores + log_weights)[out, :-1].argmax(axis=1)]
            view.replace(np.arange(table.n_rows), labels)
        return full

    # ---- state as arrays ------------------------------------------------------------------------

    def to_arrays(self):
        """Everything needed to run on: a flat dict of arrays."""
        header = {
            "format": FORMAT,
            "families": list(self.model.families),
            "idle": self.idle,
            "credit": self.credit,
            "costs": self.costs,
            "tuning": [self.tuning, *[move.tuning for move in self.adaptive]],
            "generator": self.bit_generator.state,
            "position": self.position,
            "unfinished": None,
        }
        if self.unfinished is not None:
            rest = self.unfinished
            header["unfinished"] = [rest.start, rest.stop, rest.knots.tolist(), rest.beta]
        arrays = {f"state/{k}": v for k, v in self.state.to_arrays().items()}
        arrays |= {f"subsample/{k}": v for k, v in self.state.subsample.to_arrays().items()}
        arrays |= {f"pacer/{k}": v for k, v in self.pacer.to_arrays().items()}
        arrays |= {f"trace/{k}": np.array(v) for k, v in self.trace.items()}
        arrays["seconds"] = np.array(self.clock.seconds)
        arrays["header"] = np.array(json.dumps(header))
        return arrays

    @classmethod
    def from_arrays(cls, arrays, model):
        """The chain whose to_arrays() gave `arrays`, on the same model."""
        header = json.loads(str(arrays["header"]))
        if header["format"] != FORMAT:
            raise ValueError(f"state of format {header['format']}, this version reads {FORMAT}")
        parts = {}
        for name, value in arrays.items():
            part, _, rest = name.partition("/")
            parts.setdefault(part, {})[rest] = value
        new = cls.__new__(cls)
        new._set_up(model)
        new.idle, new.credit = header["idle"], header["credit"]
        new.costs = header["costs"]
        for tuned, tuning in zip([new, *new.adaptive], header["tuning"]):
            tuned.tuning = tuning
        new.bit_generator = np.random.PCG64()
        new.bit_generator.state = header["generator"]
        new.pacer = Pacer.from_arrays(parts["pacer"])
        subsample = Subsample.from_arrays(parts["subsample"])
        new.state = state_from_arrays(parts["state"], model.table, subsample)
        new.trace = {name: list(value) for name, value in parts.get("trace", {}).items()}
        new.clock.seconds = float(arrays["seconds"])
        new.position, new.unfinished = header["position"], None
        if header["unfinished"] is not None:
            start, stop, knots, beta = header["unfinished"]
            new.unfinished = Segment(start, stop, np.array(knots, dtype=np.int64), beta)
        return new


def run_chain(
    model, schedule, seed, n_draws=1, thin=1, state=None, verbose=0, stop=None, max_time=None
):
    """Run one chain from its beginning, or on from a state.

    Parameters
    ----------
    model : ChainPlan
        Data, prior and moves.
    schedule : BaseSchedule
        Validated.
    seed : numpy.random.SeedSequence
        Of this chain alone; not used with `state`.
    n_draws, thin : int
        The first draw is the schedule's end state, each further one `thin` full-data sweeps later.
        With `state`, every draw comes `thin` sweeps after the one before.
    state : dict of arrays, optional
        A chain's to_arrays().
    verbose : int, default=0
        Above 0: print a line per record of the trace.
    stop : StopFlag, optional
        Raised to end early, with the state as it then is.
    max_time : float or None, default=None
        Seconds from here on that the chain may take; None is the schedule's own `max_time`, if it
        has one.

    Returns
    -------
    dict
        "draws" (list of flat dicts of arrays), "trace" (dict of float arrays), "state" (flat dict
        of arrays), "schedule" (what was run, as a schedule without a time limit), "complete",
        "in_time" (whether all rows were in, and once through a sweep, in time or nearly so).
    """
    began, stop = time.perf_counter(), StopFlag() if stop is None else stop
    max_time = schedule.max_time if max_time is None else max_time
    if state is None:
        chain = Chain(model, schedule, seed, (n_draws - 1) * thin, max_time)
    else:
        chain = Chain.from_arrays(state, model)
        chain.pacer.extend(thin)
    if max_time is not None:
        chain.limit(stop, max(max_time - (time.perf_counter() - began), LEAST))
    try:
        draws, complete = _drawn(chain, n_draws, thin, stop, verbose)
    finally:
        chain.clock.cancel()
    timed = max_time is not None and state is None
    if timed:
        schedule = CustomAnneal.from_path(chain.pacer.realised(), selection=schedule.selection)
    return {
        "draws": draws,
        "trace": {name: np.array(values) for name, values in chain.trace.items()},
        "state": chain.to_arrays(),
        "schedule": schedule,
        "complete": complete,
        "in_time": not timed or (chain.reached or np.inf) <= LATE * chain.clock.end + LATE_SECONDS,
    }


def _drawn(chain, n_draws, thin, stop, verbose):
    """(draws, whether the chain was not stopped); a draw that would not be whole is left out."""
    chain.verbose = verbose
    draws, complete = [], True
    while complete and len(draws) < n_draws:
        if draws:
            if chain.clock.seconds >= chain.clock.end:
                break
            chain.pacer.extend(thin)
        complete = chain.run(stop)
        if complete or not draws:
            draws.append(chain.draw())
    if not chain.trace or _raised(stop):
        chain.record()
    return draws, complete or not _raised(stop)


def _raised(stop):
    return stop is not None and stop.is_set()
