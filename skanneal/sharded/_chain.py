"""Chains of the uncollapsed algorithms: segments on shards, and what follows each.

All chains advance together: their segments are one flat list of tasks. What happens at a
synchronisation is small and is done here: hyperparameters, concentration and discount given the
partition, atoms that are not integrated out, a record of the trace; then the stage draws what the
next segment needs.
"""

# SPDX-License-Identifier: BSD-3-Clause

import time

import numpy as np

from .._native._packing import pack
from .._native._state_arrays import StateError, part
from ..chains import Trace, read_snapshot, write_snapshot
from ..moves._random import draw_index
from ..parallel import LEAST
from ..partition_priors import PitmanYor, PriorGrid
from ._accelerated_stage import AcceleratedStage
from ._auxiliary import Auxiliary, Importance
from ._exact_stage import ExactStage
from ._segments import first_report, labelled_log_lik, words
from ._slice_sampler import SliceSampler
from ._split_merge import split_and_merge
from ._uncollapsed import Uncollapsed

SPLIT_PASSES = 3  # a round of splits and merges reads rows on disk at most so often
LABEL_PASSES = 2  # time is kept to read rows on disk so often after the chains' end
STAGES = {
    "accelerated": (("accelerated", AcceleratedStage), ("exact", ExactStage)),
    "hybrid": (("all", ExactStage),),
    "auxiliary": (("all", Auxiliary),),
    "importance": (("all", Importance),),
    "slice": (("all", SliceSampler),),
}
ACCELERATED_SHARE = 0.5  # of max_time: the accelerated stage ends then at the latest
SEGMENT_SHARE = 0.1  # of max_time: a segment should take no longer
N_PRIOR_DRAWS = 256  # draws that estimate how probable a row is in a new cluster


class AcceleratedChain:
    """One chain between two segments.

    Parameters
    ----------
    shards : Shards
    likelihood : Likelihood
        The chain's own: its global parameters change.
    prior_grid : PriorGrid or array of shape (n_points, 2)
        (concentration, discount) pairs.
    labels : int array of shape (n_rows,)
        Where the rows are at first: 0 .. K - 1.
    seed : numpy.random.SeedSequence
    """

    def __init__(self, shards, likelihood, prior_grid, labels, seed):
        self.shards, self.prior_grid = shards, PriorGrid.of(prior_grid)
        self.generator = np.random.Generator(np.random.PCG64(seed))
        prior = self.prior_grid.prior(self.prior_grid.first(), PitmanYor)
        dealt = [labels[shards.rows_of(p)].astype(np.int32) for p in range(shards.n_shards)]
        self.state = Uncollapsed(likelihood, prior, dealt)
        self.trace = Trace()
        self.seconds, self.done = 0.0, 0
        self.n_tried = self.n_accepted = 0  # splits and merges of atoms

    def first_tasks(self):
        """Arguments of `first_report` for every shard."""
        n_features = 1 + max(int(labels.max()) for labels in self.state.labels)
        sent = n_features, self.state.likelihood
        return [(p, (labels, *sent)) for p, labels in enumerate(self.state.labels)]

    def tasks(self, stage, n_steps):
        """(function, [(shard, arguments)]) of the next segment."""
        function, arguments = stage.plan(self.state, n_steps, self.generator)
        return function, list(enumerate(arguments))

    def synchronise(self, reports):
        """Take over the shards' reports and draw what is global.

        Update global parameters, then draw the atoms given them: an update may have integrated the
        atoms out, as those of the built-in conjugate likelihoods do.
        """
        state, generator = self.state, self.generator
        state.gather(reports)
        likelihood = state.likelihood
        if likelihood.conjugate:
            state.theta = None
            likelihood.update(None, state.statistics, state.sizes, generator)
        else:
            theta = state.theta
            if theta is None:  # the first atoms: an update given draws from H would know nothing
                theta = likelihood.prior_draw(state.n_clusters, generator)
                theta = likelihood.draw(state.statistics, theta, generator)
            likelihood.update(theta, state.statistics, state.sizes, generator)
            state.theta = likelihood.draw(state.statistics, theta, generator)
        if len(self.prior_grid) > 1:
            scores = state.prior.grid_scores(state.sizes, self.prior_grid.points)
            place = draw_index(scores + self.prior_grid.log_weights, generator)
            state.prior = self.prior_grid.prior(place, PitmanYor)

    def log_lik_tasks(self):
        """Arguments of `labelled_log_lik` for every shard, if the rows have to be asked."""
        state, likelihood = self.state, self.state.likelihood
        if likelihood.conjugate:
            return []
        if hasattr(likelihood, "total_log_lik"):
            state.log_lik = likelihood.total_log_lik(state.statistics, state.theta)
            return []
        return [(p, (labels, state.theta, likelihood)) for p, labels in enumerate(state.labels)]

    def record(self, burn_in):
        """Append to the trace."""
        now = {
            "seconds": self.seconds,
            "sweeps": self.done,
            "n_assigned": self.shards.n_rows,
            "burn_in": burn_in,
        }
        self.trace.record(now | self.state.scalars())

    def labels(self):
        """Atom of every row, in the order of X: int32 (n_rows,)."""
        out = np.empty(self.shards.n_rows, np.int32)
        for p, labels in enumerate(self.state.labels):
            out[self.shards.rows_of(p)] = labels
        return out

    def draw(self):
        """The state as a draw: a flat dict of arrays that answers queries."""
        state, likelihood = self.state, self.state.likelihood
        arrays = {
            "labels": self.labels(),
            **state.prior.to_arrays(),
            "log_joint": np.array(state.log_joint()),
        }
        if likelihood.conjugate:
            return arrays | likelihood.arrays(state.statistics, state.sizes) | likelihood.state()
        arrays |= pack({"likelihood": likelihood.state()})
        prior_theta = likelihood.prior_draw(N_PRIOR_DRAWS, self.generator)
        return arrays | {
            "features/size": state.sizes,
            "theta": state.theta,
            "prior_theta": prior_theta,
            "proposal_seed": np.array(words(self.generator), dtype=np.uint64),
        }

    def to_arrays(self):
        """Everything needed to run on: a flat dict of arrays."""
        header = {
            "generator": self.generator.bit_generator.state,
            "seconds": self.seconds,
            "done": self.done,
        }
        parts = {"state": self.state.to_arrays(), "trace": self.trace.to_arrays()}
        return write_snapshot(header, parts)

    @classmethod
    def from_arrays(cls, arrays, shards, likelihood, prior_grid):
        """The chain whose to_arrays() gave `arrays`, on the same shards; StateError for others."""
        header, parts = read_snapshot(arrays)
        new = cls.__new__(cls)
        new.shards, new.prior_grid = shards, PriorGrid.of(prior_grid)
        with part("state"):
            own = parts.get("state", {})
            new.state = Uncollapsed.from_arrays(own, likelihood, shards.sizes)
        with part("trace"):
            new.trace = Trace.from_arrays(parts.get("trace", {}))
        new.generator = np.random.Generator(np.random.PCG64())
        try:
            new.generator.bit_generator.state = header["generator"]
            new.seconds, new.done = float(header["seconds"]), int(header["done"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise StateError("header", f"does not fit ({error})") from error
        new.n_tried = new.n_accepted = 0
        return new


class ShardedRun:
    """Chains on a pool, one segment of all of them after another.

    Parameters
    ----------
    pool : ShardPool
    chains : list of AcceleratedChain
    note : InterruptNote
        Of interrupts between segments.
    progress : list of Progress, optional
        Of each chain.
    on_record : callable, optional
        Called with (index of the chain, chain) after every record, outside the time.
    """

    def __init__(self, pool, chains, note, progress=(), on_record=None):
        self.pool, self.chains, self.note = pool, chains, note
        self.progress, self.on_record = progress, on_record
        self.expect(0, None)
        self._dropped = False  # was a segment cut short?
        self.reading = 0.0  # seconds that a pass over rows on disk takes, whatever is done to them

    @property
    def interrupted(self):
        """Whether there was an interrupt."""
        return self._dropped or self.note.noted

    def first(self):
        """Statistics of the labels that the chains begin with."""
        self.clock = time.perf_counter()
        results = self._run(first_report, [chain.first_tasks() for chain in self.chains])
        if results is not None:
            self._synchronise(results, 0, None)
            if self.pool.shards.is_lazy:
                self.reading = time.perf_counter() - self.clock
        return results is not None

    def end(self, limit):
        """Seconds since the chains' beginning at which they have to end; None without a limit.

        Passes over the rows follow, in which the point estimate climbs and rows get their labels.
        """
        if not limit:
            return None
        left = min(limit.for_chains.left, limit.left - LABEL_PASSES * self.reading)
        return self.chains[0].seconds + max(left, 0.0)

    def stage(self, stage, lengths, deadline=None, max_time=None, further=0):
        """Run a stage's segments until they end, the time is up or there is an interrupt.

        Parameters
        ----------
        stage : Stage
        lengths : list of int
        deadline : float, optional
            Seconds since the chains' beginning. A segment that is not done by then is dropped.
        max_time : float, optional
            Seconds of the whole schedule. A segment takes at most about a tenth of them, and none
            is begun that would end after the deadline if it took as long as the last one. If even
            the first is too late, what it has done counts, without splits and merges, but its
            length is not returned.
        further : int, default=0
            Sub-iterations that follow, for which time is left.

        Returns
        -------
        list of int
            Lengths of the segments that were run.
        """
        done, most, last, total = [], 1, 0.0, sum(lengths)
        lengths = iter(lengths)
        while total > 0 and not self.interrupted:
            n_steps = min(next(lengths, total), stage.steps, total)
            if max_time is not None:
                n_steps = min(n_steps, most)
                coming = last * (n_steps + further) / done[-1] if done else 0.0
                if done and self.chains[0].seconds + coming > deadline:
                    break
            left = None if deadline is None else deadline - self.chains[0].seconds
            passes = 1 + SPLIT_PASSES * (stage.n_pairs > 0)
            hurried = left is not None and left < passes * self.reading
            if hurried and (done or left < self.reading):
                break
            began = self.clock = time.perf_counter()
            before = [chain.generator.bit_generator.state for chain in self.chains]
            plans = [chain.tasks(stage, n_steps) for chain in self.chains]
            results = self._run(plans[0][0], [plan[1] for plan in plans], left)
            late = hurried or left is not None and time.perf_counter() - began >= left
            if results is None or (late and (done or max_time is None)):
                for chain, state in zip(self.chains, before):  # as if it had never been begun
                    chain.generator.bit_generator.state = state
                    chain.seconds += time.perf_counter() - began
                break
            self._synchronise(results, 0 if late else n_steps, stage, not late)
            if late:
                break
            done.append(n_steps)
            total -= n_steps
            last = time.perf_counter() - began
            if max_time is not None:  # most of a segment is often its first sub-iteration
                share = last / (max_time * SEGMENT_SHARE)
                most = most * 2 if share < 0.5 else most if share < 1.0 else max(1, most // 2)
        for chain in self.chains:
            if not chain.trace:
                chain.record(stage.burn_in)
        return done

    def _synchronise(self, results, n_steps, stage, pairs=True):
        """What follows a segment of every chain; `pairs` of rows try splits and merges."""
        for chain, own in zip(self.chains, results):
            chain.synchronise(own)
        if pairs and stage is not None and stage.n_pairs:
            self._split_and_merge(stage.n_pairs)
        self._measure()
        seconds = time.perf_counter() - self.clock
        for i, chain in enumerate(self.chains):
            chain.seconds += seconds
            chain.done += n_steps
            if stage is None:
                continue
            chain.record(stage.burn_in)
            if self.on_record is not None:
                self.on_record(i, chain)
        if stage is not None:
            for progress in self.progress:
                self.note.noted |= progress(self.share)

    def expect(self, work, end):
        """Note what is ahead: sub-iterations, and the chains' seconds at which they have to end."""
        chain = self.chains[0]
        self._ahead = chain.done, work, chain.seconds, np.inf if end is None else end

    @property
    def share(self):
        """The share of the work, or of the time if that is limited, that is behind the chains."""
        done, work, seconds, end = self._ahead
        of_work = (self.chains[0].done - done) / max(work, 1)
        of_time = (self.chains[0].seconds - seconds) / max(end - seconds, LEAST)
        return min(max(of_work, of_time), 1.0)

    def say(self, stage):
        """Say where the last stage has led to, a line per chain."""
        for progress, chain in zip(self.progress, self.chains):
            last = {name: values[-1] for name, values in chain.trace.items()}
            progress.say(
                f"{stage}, {chain.done} sub-iterations, {chain.seconds:.1f} s: "
                f"{last['n_components']:.0f} components, log joint {last['log_joint']:.6g}"
            )

    def _split_and_merge(self, n_pairs):
        """The move of every chain; an interrupt drops what is not complete."""
        moves = [split_and_merge(c.state, n_pairs, c.generator) for c in self.chains]
        asked = [self._advanced(i, move, None) for i, move in enumerate(moves)]
        while any(asked):  # whoever asks is in the same round
            (function, *_) = next(filter(None, asked))
            results = self._run(function, [own[1] if own else [] for own in asked])
            if results is None:
                return
            asked = [
                self._advanced(i, move, own) if was else None
                for i, (move, own, was) in enumerate(zip(moves, results, asked))
            ]

    def _advanced(self, i, move, results):
        """What a move asks for next; None once it is done."""
        try:
            return move.send(results)
        except StopIteration as end:
            self.chains[i].n_tried += end.value.proposed
            self.chains[i].n_accepted += end.value.accepted
            return None

    def _measure(self):
        """The log likelihoods of the states as they now are, without which none can be kept."""
        tasks = [chain.log_lik_tasks() for chain in self.chains]
        if not any(tasks):
            return
        results = self._run(labelled_log_lik, tasks)
        if results is None:  # after an interrupt these states are all that is left
            shards = self.pool.shards
            results = [[labelled_log_lik(shards.encoded(p), *a) for p, a in own] for own in tasks]
        for chain, own in zip(self.chains, results):
            chain.state.log_lik = sum(own)

    def _run(self, function, tasks, seconds=None):
        """Results of every chain's tasks; None if there was an interrupt."""
        flat = [task for own in tasks for task in own]
        results, interrupted = self.pool.run(function, flat, seconds)
        self._dropped |= interrupted
        if interrupted or any(result is None for result in results):
            return None
        results = iter(results)
        return [[next(results) for _ in own] for own in tasks]
