"""A competition of models for rows that they have not seen.

Some rows are set aside to be judged. Chains of each candidate grow on the others by a short form of
the default schedule. Whenever their rows have doubled, the states that they have come to, averaged
over chains, give every judged row, or cell, a density. All these densities are with respect to one
measure, so they can be compared.

The order is settled when the leader is surely ahead of every rival and is surely forecast to stay
ahead at all rows: a family of more parameters needs more rows, and may yet overtake (see Lead). If
the order is never settled, the last leads decide, extrapolated to all rows. If candidates are
level, the first of them is chosen, which is the simplest. The contest does not wait for a rival
that cannot be ahead by more than a trifle: a t of many degrees of freedom is nearly normal.

Work is counted in row steps, never timed, and depends on the table alone: the families do not
depend on the schedule, on the number of chains or on the machine. Only under a time limit the
competition ends early: a stage begins if twice what the last one took is left, and one that is not
over by then does not count.
"""

# SPDX-License-Identifier: BSD-3-Clause

import functools
import math

import numpy as np
from scipy.special import logsumexp

from ..chains import Chain
from ..parallel import run_tasks, spawn_seeds
from ..predictive._draws import Draw
from ..predictive._predictor import Predictor
from ..schedules import resolve_schedule
from ..summary._lead import Lead

FEW_ROWS, FOLDS = 400, 4  # every row of a smaller table is judged, in FOLDS folds
MOST_JUDGED = 1000
CHAINS = 2  # each candidate has so many, unless there are folds
SWEEPS = 16  # of a chain, unless a contest asks for another number
TRIFLE = 0.01  # nats per row


class Order:
    """Order the candidates by the density that they give to judged rows or cells, stage by stage.

    Parameters
    ----------
    densities : list of float64 array of shape (n_candidates, n_chains, n_judged)
        Log densities, for the stages that are over. In folds each is by one chain.
    sizes : list of int
        Rows that a chain has seen by the end of each stage, of those to come, too.
    n_rows : int
        Of the table.
    """

    def __init__(self, densities, sizes, n_rows):
        self.densities, self.sizes, self.n_rows = densities, sizes, n_rows

    @property
    def leader(self):
        """Index of the candidate that is best if it goes on gaining as 1 / rows lets it; the first
        of those that are level with it."""
        stages = [averaged(of_stage) for of_stage in self.densities[-2:]]
        means = [of_stage.mean(axis=1) for of_stage in stages]
        to_come = (means[-1] - means[0]) * (1 - self._size / self.n_rows)
        best = int((means[-1] + to_come).argmax())
        for i, rows in enumerate(stages[-1]):
            lead = Lead.of(stages[-1][best] - rows)
            if lead._replace(mean=lead.mean + to_come[best] - to_come[i]).is_tie(TRIFLE):
                return i
        return best

    @property
    def settled(self):
        """Whether the order is not going to change, or nothing more can be asked.

        It is not if every rival is behind for sure, now and by the forecast for all rows, or cannot
        be ahead by more than a trifle.
        """
        if len(self.densities) in (0, 1, len(self.sizes)):
            return len(self.densities) == len(self.sizes)
        doublings = math.log2(self.n_rows / self._size)
        pairs = zip(*(self._leads(of_stage) for of_stage in self.densities[-2:]))
        both = [(now, now.forecast(before, doublings)) for before, now in pairs]
        n = len(both)
        return all(
            all(lead.is_sure(n_rivals=n) for lead in leads)
            or all((-lead).is_hopeless(TRIFLE, n) for lead in leads)
            for leads in both
        )

    @property
    def leads(self):
        """The Lead of the leader over each rival."""
        return self._leads(self.densities[-1])

    @property
    def means(self):
        """Mean log density by candidate and stage."""
        return np.array([averaged(of_stage).mean(axis=1) for of_stage in self.densities]).T

    def _leads(self, densities):
        ahead = densities[self.leader] - np.delete(densities, self.leader, axis=0)
        mean = averaged(densities)
        rows = mean[self.leader] - np.delete(mean, self.leader, axis=0)
        return [Lead.of(*pair) for pair in zip(rows, ahead.mean(axis=2))]

    @property
    def _size(self):
        return self.sizes[len(self.densities) - 1]


class Contest:
    """A competition of candidates, stage by stage.

    Parameters
    ----------
    encoders : dict of str to Encoder
        Of each candidate; of equal candidates the first wins.
    plans : dict of str to ChainPlan
        Under the same names.
    judge : callable
        ``judge(predictor, encoder, table, seed)`` is what a chain's state says of judged rows, the
        first axis: an array that may have others.
    least, most : int
        Rows that a chain sees at first, and at the end, if there are as many.
    seeds : (SeedSequence, SeedSequence)
        The first draws the order of the rows; below the second is one for each chain.
    n_jobs : int or None
        Chains that run at a time.
    end : TimeLimit
        Of the competition.
    n_sweeps : float, default=SWEEPS
        Of a chain, over all of its stages.

    Attributes
    ----------
    sizes : list of int
        Rows that a chain has seen by the end of each stage.
    splits : list of (int array, int array)
        Of each chain: rows that it judges, and rows that it may see.
    judged : list of float64 array of shape (n_candidates, n_chains, n_judged, ...)
        What the judge says, for the stages that are over. In folds a row is judged by one chain.
    row_steps : int
        Rows scored so far.
    """

    def __init__(self, encoders, plans, judge, least, most, seeds, n_jobs, end, n_sweeps=SWEEPS):
        self.plans, self.n_jobs, self.end = plans, n_jobs, end
        self.n_rows = n = next(iter(plans.values())).table.n_rows
        of_order, of_chains = seeds
        generator = np.random.Generator(np.random.PCG64(of_order))
        order = np.argsort(generator.random(n), kind="stable")
        n_judged = min(-(-n // FOLDS), MOST_JUDGED)
        starts = range(0, n, n_judged) if n < FEW_ROWS else [0] * CHAINS
        self.splits = [
            (order[start : start + n_judged], np.r_[order[start + n_judged :], order[:start]])
            for start in starts
        ]
        self._n_judging = 1 if n < FEW_ROWS else CHAINS
        self.sizes = [min(n - n_judged, most)]
        while self.sizes[0] >= 2 * least:
            self.sizes.insert(0, self.sizes[0] // 2)
        self.judged, self.row_steps, self._took = [], 0, 0.0
        pairs = [(name, *split) for name in plans for split in self.splits]
        self._tasks = [
            (encoders[name], plans[name], judge, seen[: self.sizes[-1]], judged, seed, n_sweeps)
            for (name, judged, seen), seed in zip(pairs, spawn_seeds(of_chains, len(pairs)))
        ]
        self._states = [None] * len(pairs)

    def order(self, densities):
        """The Order by these densities, of the stages that are over."""
        return Order(densities, self.sizes, self.n_rows)

    def double(self):
        """Run the next stage; return whether there was time for it."""
        began = self.end.taken
        if self.end and self.end.seconds - began <= 2.0 * self._took:
            return False
        stage = len(self.judged)
        until = math.inf if stage + 1 == len(self.sizes) else self.sizes[stage]
        tasks = [(*task, state, until) for task, state in zip(self._tasks, self._states)]
        task = functools.partial(within, self.end)
        results, interrupted = run_tasks(task, tasks, n_jobs=self.n_jobs)
        if interrupted:
            raise KeyboardInterrupt
        if any(result is None for result in results):
            return False
        judged, self._states, row_steps = zip(*results)
        shape = len(self.plans), self._n_judging, -1, *judged[0].shape[1:]
        self.judged.append(np.concatenate(judged).reshape(shape))
        self.row_steps += sum(row_steps)
        self._took = self.end.taken - began
        return True


def averaged(densities):
    """Log of the density averaged over chains: (n_candidates, n_judged)."""
    return logsumexp(densities, axis=1) - math.log(densities.shape[1])


def within(end, *task, stop):
    """What `grow` returns of a task, or None if the time is over before."""
    with end.flag(stop) as flag:
        return grow(*task, stop=flag)


def grow(encoder, plan, judge, seen, judged, seed, n_sweeps, state, until, *, stop):
    """Let a chain grow on the rows that it may see, or go on from a state, until so many are in; it
    is over after so many sweeps.

    Returns
    -------
    said : ndarray of shape (n_judged, ...)
        What the judge says of the judged rows.
    state : dict of arrays
    row_steps : int
        Rows scored. None is returned instead if the chain was stopped.
    """
    alone = plan._replace(
        table=plan.table.take(np.sort(seen)),
        moves=("gibbs", "split_merge"),
        init=None,
        strata=None,
        view_grid=None,
    )
    if state is None:
        schedule = resolve_schedule("anneal").set_params(n_sweeps=n_sweeps)
        chain = Chain.begin(alone, schedule, seed)
    else:
        chain = Chain.from_arrays(state, alone)
    before = chain.position
    if not chain.run(stop, until):
        return None
    reached = Predictor([Draw(chain.state.to_arrays(), encoder)], encoder.table_schema)
    said = judge(reached, encoder, plan.table.take(judged), seed)
    return said, chain.to_arrays(), chain.position - before + len(judged)
