"""Run one chain: a schedule's segments, the moves after each, a trace, kept draws.

A chain is a pure function of (model, schedule, seed); arrays go in and arrays come out. Its state
is a flat dict of arrays, and running on from it equals never having stopped, bit for bit.
"""

# SPDX-License-Identifier: BSD-3-Clause

import json
import os
import time
from typing import NamedTuple

import numpy as np

from ._budget import SETTLED
from .components import FAMILIES, Table
from .moves import (
    COLUMN_MOVES,
    MOVES,
    EachView,
    FeatureHyperparameters,
    PartitionHyperparameters,
    churn,
)
from .partition_priors import first_prior
from .schedules import Pacer, Segment
from .states import CrossCat, Mixture, Subsample, state_from_arrays

FORMAT = 1
DEBUG = os.environ.get("SKANNEAL_DEBUG", "0") == "1"  # compare statistics with recomputations
N_RECORDS = 100  # of the trace, at equal fractions of the schedule's assignments
BLOCK_ROWS = 8192  # scored at a time
IDLE_AFTER = 8  # turns without an acceptance until a structure move misses most of its turns
IDLE_PERIOD = 8
FIRST_COST = 1.0  # work per row that a move is taken to cost before it has been made
COST_MEMORY = 0.2  # weight of a move's last application in its mean cost per row


class Model(NamedTuple):
    """What chains share: data, prior and moves.

    Attributes
    ----------
    table : Table
        Encoded rows.
    families : dict of str to int array
        Columns of each family.
    hyper : dict of int to float array
        For each column, the hyperparameters to start from, in cell units; a row family's under its
        first column.
    grids : dict of int to list of (array or None)
        Under the same columns, the grids of the coordinates that are inferred.
    prior_grid : array of shape (n_points, 2)
        (concentration, discount) pairs, sorted by discount; one point if fixed.
    moves : tuple of str
        Names in MOVES or COLUMN_MOVES. "gibbs" is the churn itself.
    options : dict of str to dict
        Parameters of moves, by name.
    even_work : bool
        Whether every move works as much as the churn, at all sizes of the subsample; else moves
        take turns while it grows.
    init : int, int array of shape (n_rows,) or None
        Where all rows are labelled at first: number of clusters they are dealt to at random, or
        the labels; None draws from the partition prior.
    strata : int array of shape (n_rows,) or None
        For stratified selection.
    view_grid : array of shape (n_points, 2) or None
        The same pairs for the partition of features into views; None: one mixture.
    """

    table: Table
    families: dict
    hyper: dict
    grids: dict
    prior_grid: np.ndarray
    moves: tuple
    strata: np.ndarray | None = None
    view_grid: np.ndarray | None = None
    options: dict = {}
    even_work: bool = False
    init: int | np.ndarray | None = None


class Chain:
    """One chain between two segments; see `run_chain` for the usual way in.

    Parameters
    ----------
    model : Model
        Data, prior and moves.
    schedule : BaseSchedule
        Validated.
    seed : numpy.random.SeedSequence
        Of this chain alone.
    further_sweeps : float
        Full-data sweeps that will follow for further draws.
    """

    def __init__(self, model, schedule, seed, further_sweeps=0.0):
        self._set_up(model)
        self.bit_generator = np.random.PCG64(seed)
        n_rows = model.table.n_rows
        self.pacer = schedule.pacer(n_rows, further_sweeps=further_sweeps)
        subsample = Subsample(n_rows, schedule.selection, self.bit_generator, model.strata)
        self.state = first_state(model, subsample, self.bit_generator)
        if self.pacer.path.start == "prior":
            subsample.fill()
            for view in self.state.views:
                labels = self._first_labels(view, n_rows)
                view.replace(np.arange(n_rows), labels)
        self.trace = {}
        self.seconds = 0.0
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
        self.row_seconds = [0.0] * n_moves  # of each move when it was last made, per row of S
        self.took = {"moves": 0.0, "missing": 0.0}  # seconds, of the last segment: see Pacer.next
        self.tuning = (
            None  # work that a row of the churn is reckoned at: its tiles, and its own cluster
        )
        self.verbose = 0

    # ---- running --------------------------------------------------------------------------------

    def run(self, stop=None):
        """Run to the end of the pacer's path; False if the stop flag was raised before."""
        began = time.perf_counter() - self.seconds
        interval = max(1, self.pacer.total // N_RECORDS)
        while not _raised(stop):
            segment = self.unfinished or self.pacer.next(time.perf_counter() - began, **self.took)
            if segment is None:
                return True
            if not self._churn(segment, stop):
                return False
            full = self.state.subsample.size == self.model.table.n_rows
            for move in self.adaptive:
                move.burn_in = self.pacer.burn_in
            self._move(segment, full, stop)
            self.seconds = time.perf_counter() - began
            crossed = segment.stop // interval > segment.start // interval
            if crossed or full or self.pacer.done:
                self.record()
        return False

    def _churn(self, segment, stop):
        flag = None if stop is None else stop.array
        done = churn(
            self.state.views,
            self.state.subsample,
            self.bit_generator,
            segment.knots,
            segment.start,
            segment.stop,
            segment.beta,
            flag,
        )
        self.position = done
        self.unfinished = None if done == segment.stop else segment._replace(start=done)
        return self.unfinished is None

    def _move(self, segment, full, stop):
        """Structure and hyperparameter moves, after each full churn.

        While S grows, structure moves take turns, one per churn, and one that has accepted nothing
        for long misses most of its turns; at full data all are run, so that what is kept comes from
        one fixed kernel. They all wait for SETTLED rows: with few rows a tiny variance within
        clusters and one cluster per row explain the data as well as anything, as does one view for
        every feature, and high-dimensional data seldom leave that again.
        """
        self.state.compact()
        if DEBUG:
            self.state.validate()
        self.took = {"moves": 0.0, "missing": 0.0}
        if not full and self.state.subsample.size < SETTLED:
            return
        began, turns = time.perf_counter(), ()
        if self.model.even_work:
            self._share_work(segment, stop)
            began = time.perf_counter()  # what they took follows the churn's length
        else:
            turns = self._turns(full)
            for i in turns:
                self._make(i, segment)
        for move in self.hyperparameters:
            move.sweep(self.state, self.bit_generator, beta=segment.beta)
        if not self.model.even_work:
            rates = [self.row_seconds[i] for i in range(len(self.structure)) if i not in turns]
            self.took["missing"] = self.state.subsample.size * sum(rates)
        self.took["moves"] = time.perf_counter() - began

    def _make(self, i, segment):
        """One structure move."""
        began = time.perf_counter()
        info = self.structure[i].sweep(self.state, self.bit_generator, beta=segment.beta)
        self.idle[i] = 0 if info.accepted else self.idle[i] + 1
        self.row_seconds[i] = (time.perf_counter() - began) / self.state.subsample.size

    def _share_work(self, segment, stop):
        """Every structure move, until it has worked as much as the churn (see MoveInfo).

        Once burn-in is over, work and costs are reckoned as they were then: a number of moves that
        depended on the state would favour the states in which it stops.
        """
        burn_in = self.pacer.burn_in
        if burn_in or self.tuning is None:
            self.tuning = self.state.n_tiles + 1
        work, n_rows = (segment.stop - segment.start) * self.tuning, self.state.subsample.size
        for i, move in enumerate(self.structure):
            self.credit[i] += work
            # by row of the subsample, which grows
            cost = FIRST_COST if self.costs[i] is None else self.costs[i]
            while self.credit[i] >= cost * n_rows and not _raised(stop):
                info = move.sweep(self.state, self.bit_generator, beta=segment.beta)
                if burn_in:
                    memory = 1.0 if self.costs[i] is None else COST_MEMORY
                    self.costs[i] = cost = cost + memory * (info.work / n_rows - cost)
                self.credit[i] -= max(1.0, info.work if burn_in else cost * n_rows)

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
            "seconds": self.seconds,
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
                f"rows {now['n_assigned']:9d}  {views}clusters {now['n_clusters']:5d}  "
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
        arrays["seconds"] = np.array(self.seconds)
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
        new.seconds = float(arrays["seconds"])
        new.position, new.unfinished = header["position"], None
        if header["unfinished"] is not None:
            start, stop, knots, beta = header["unfinished"]
            new.unfinished = Segment(start, stop, np.array(knots, dtype=np.int64), beta)
        return new


def first_state(model, subsample, bit_generator):
    """A state without rows; the features' partition, if there is one, drawn from its prior."""
    prior = first_prior(model.prior_grid)
    if model.view_grid is not None:
        view_prior = first_prior(model.view_grid)
        view_of = view_prior.draw(model.table.n_columns, bit_generator)
        return CrossCat.start(
            model.table, model.families, model.hyper, view_of, view_prior, prior, subsample
        )
    blocks = []
    for name, columns in model.families.items():
        family = FAMILIES[name]
        hyper = [model.hyper[int(j)] for j in family.key_columns(columns)]
        blocks.append(family(model.table, columns, hyper))
    return Mixture(model.table, blocks, prior, subsample)


def run_chain(model, schedule, seed, n_draws=1, thin=1, state=None, stop=None, verbose=0):
    """Run one chain from its beginning, or on from a state.

    Parameters
    ----------
    model : Model
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
    stop : StopFlag, optional
        Raised to end early, with the state as it then is.
    verbose : int, default=0
        Above 0: print a line per record of the trace.

    Returns
    -------
    dict
        "draws" (list of flat dicts of arrays), "trace" (dict of float arrays), "state" (flat dict
        of arrays), "schedule" (what was run, as a schedule without a time limit), "complete".
    """
    if state is None:
        chain = Chain(model, schedule, seed, further_sweeps=(n_draws - 1) * thin)
    else:
        chain = Chain.from_arrays(state, model)
        chain.pacer.extend(thin)
    chain.verbose = verbose
    draws, complete = [], True
    while complete and len(draws) < n_draws:
        if draws:
            if _out_of_time(schedule, chain) and state is None:
                break
            chain.pacer.extend(thin)
        complete = chain.run(stop)
        if complete or not draws:
            draws.append(chain.draw())
    if not chain.trace or not complete:
        chain.record()
    return {
        "draws": draws,
        "trace": {name: np.array(values) for name, values in chain.trace.items()},
        "state": chain.to_arrays(),
        "schedule": chain.pacer.realised() if schedule.max_time is not None else schedule,
        "complete": complete,
    }


def _out_of_time(schedule, chain):
    return schedule.max_time is not None and chain.seconds >= schedule.max_time


def _raised(stop):
    return stop is not None and stop.is_set()
