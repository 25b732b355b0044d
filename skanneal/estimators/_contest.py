"""A competition of models for rows that they have not seen.

Each chain sets a quarter of the rows aside, a *fold*, and judges them. It grows on the others by a
short form of the default schedule. Whenever its rows have doubled, the state that it has come to
gives every judged row, or cell, a density. All these densities are with respect to one measure, so
they can be compared. At first each candidate has two chains. If more than a little is still open
when they are at their end, as where a few rows far out decide or the luck of a chain, two further
chains of each candidate that is not surely behind judge the other folds.

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

from ..chains import Chain
from ..parallel import run_tasks, spawn_seeds
from ..predictive._draws import Draw
from ..predictive._predictor import Predictor
from ..schedules import resolve_schedule
from ..summary._lead import Lead

FOLDS, FIRST_FOLDS = 4, 2  # a chain judges one; so many are judged at first
MOST_JUDGED = 1000  # rows of a fold
SWEEPS = 1 / 2  # of a chain, as a share of those of the default schedule
TRIFLE = 0.01  # nats per row that a candidate must be ahead of a simpler one, or go on for
WORTH = 0.1  # nats per row that a candidate may be ahead, for which the other folds are judged


class Order:
    """Order the candidates by the density that they give to judged rows or cells, stage by stage.

    Parameters
    ----------
    densities : list of float64 array of shape (n_candidates, n_judged)
        Log densities, for the stages that are over. The last one may have further rows.
    folds : int array of shape (n_judged,)
        Which chain judges these rows.
    sizes : list of int
        Rows that a chain has seen by the end of each stage, of those to come, too.
    n_rows : int
        Of the table.
    """

    def __init__(self, densities, folds, sizes, n_rows):
        self.densities, self.folds, self.sizes, self.n_rows = densities, folds, sizes, n_rows

    @property
    def leader(self):
        """Index of the candidate that is best if it goes on gaining as 1 / rows lets it; the first
        of those that are level with it."""
        before, now = self.densities[-2:][0], self.densities[-1]
        gains = (now[:, : before.shape[1]] - before).mean(axis=1)
        to_come = gains * (1 - self._size / self.n_rows)
        best = int((now.mean(axis=1) + to_come).argmax())
        for i, rows in enumerate(now):
            lead = Lead.of(now[best] - rows, self.folds)
            if lead._replace(mean=lead.mean + to_come[best] - to_come[i]).is_tie(TRIFLE):
                return i
        return best

    def is_settled(self, worth):
        """Whether the order is not going to change.

        It is not if every rival is behind for sure, now and by the forecast for all rows, or cannot
        be ahead by more than what matters. There is no forecast where chains begin with all their
        rows.

        Parameters
        ----------
        worth : float
            The least lead that matters, in nats per row.
        """
        if len(self.densities) < min(2, len(self.sizes)):
            return False
        doublings = math.log2(self.n_rows / self._size)
        of_rivals = list(zip(*map(self._leads, reversed(self.densities[-2:]))))
        n, both = len(of_rivals), []
        for now, *before in of_rivals:
            both.append([now, *(now.forecast(lead, doublings) for lead in before)])
        return all(
            all(lead.is_sure(n_rivals=n) for lead in leads)
            or all((-lead).is_hopeless(worth, n) for lead in leads)
            for leads in both
        )

    @property
    def leads(self):
        """The Lead of the leader over each rival."""
        return self._leads(self.densities[-1])

    @property
    def behind(self):
        """By how much candidates that are surely behind are so: dict of index to nats per row."""
        leads, leader = self.leads, self.leader
        leads.insert(leader, Lead(0.0, 0.0))
        n = len(leads) - 1
        return {i: lead.mean for i, lead in enumerate(leads) if lead.is_sure(n_rivals=n)}

    @property
    def means(self):
        """Mean log density by candidate and stage."""
        return np.array([of_stage.mean(axis=1) for of_stage in self.densities]).T

    def _leads(self, densities):
        ahead = densities[self.leader] - np.delete(densities, self.leader, axis=0)
        return [Lead.of(rows, self.folds[: len(rows)]) for rows in ahead]

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
    n_sweeps : float or None, default=None
        Of a chain, over all of its stages; None is half as many as the default schedule makes.
    first_folds : int, default=FIRST_FOLDS
        How many folds are judged in all stages.

    Attributes
    ----------
    sizes : list of int
        Rows that a chain has seen by the end of each stage.
    folds : int array of shape (n_judged,)
        Which chain of a candidate judges each of the rows.
    judged : list of float64 array of shape (n_candidates, n_judged, ...)
        What the judge says, for the stages that are over; in the end of all folds.
    row_steps : int
        Rows scored so far.
    """

    def __init__(
        self,
        encoders,
        plans,
        judge,
        least,
        most,
        seeds,
        n_jobs,
        end,
        n_sweeps=None,
        first_folds=FIRST_FOLDS,
    ):
        self.plans, self.n_jobs, self.end = plans, n_jobs, end
        self.n_rows = n = next(iter(plans.values())).table.n_rows
        of_order, of_chains = seeds
        generator = np.random.Generator(np.random.PCG64(of_order))
        order = np.argsort(generator.random(n), kind="stable")
        n_judged = min(-(-n // FOLDS), MOST_JUDGED)
        starts = np.arange(0, n, n_judged)[:FOLDS]
        splits = [
            (order[start : start + n_judged], np.r_[order[start + n_judged :], order[:start]])
            for start in starts
        ]
        self.folds = np.concatenate([np.full(len(rows), f) for f, (rows, _) in enumerate(splits)])
        self.sizes = [min(n - n_judged, most)]
        while self.sizes[0] >= 2 * least:
            self.sizes.insert(0, self.sizes[0] // 2)
        self.judged, self.row_steps, self._took = [], 0, 0.0
        if n_sweeps is None:
            path = resolve_schedule("anneal").path(self.sizes[-1])
            n_sweeps = SWEEPS * path.assignments[-1] / self.sizes[-1]
        pairs = [(name, *split) for name in plans for split in splits]
        tasks = [
            (encoders[name], plans[name], judge, seen[: self.sizes[-1]], judged, seed, n_sweeps)
            for (name, judged, seen), seed in zip(pairs, spawn_seeds(of_chains, len(pairs)))
        ]
        of_candidates = [tasks[i : i + len(splits)] for i in range(0, len(tasks), len(splits))]
        self._first = [task for own in of_candidates for task in own[:first_folds]]
        self._others = [own[first_folds:] for own in of_candidates]
        self._states = [None] * len(self._first)

    def decided(self):
        """Go on until the order is settled, or nothing more can be judged; return the Order."""
        order = self.order([])
        while len(self.judged) < len(self.sizes) and not order.is_settled(TRIFLE):
            if not self.next_stage():
                return order
            order = self.order(self.judged)
        if not order.is_settled(WORTH) and self.judge_others(order):
            order = self.order(self.judged)
        return order

    def order(self, densities):
        """The Order of the candidates by the rows of which no density is nan.

        densities : list of float64 array of shape (n_candidates, n_judged)
            Of the stages that are over.
        """
        known = np.ones(max((of_stage.shape[1] for of_stage in densities), default=0), dtype=bool)
        for of_stage in densities:
            known[: of_stage.shape[1]] &= ~np.isnan(of_stage).any(axis=0)
        densities = [of_stage[:, known[: of_stage.shape[1]]] for of_stage in densities]
        return Order(densities, self.folds[: len(known)][known], self.sizes, self.n_rows)

    def next_stage(self):
        """Run the next stage; return whether there was time for it."""
        stage = len(self.judged)
        until = math.inf if stage + 1 == len(self.sizes) else self.sizes[stage]
        tasks = [(*task, state, until) for task, state in zip(self._first, self._states)]
        results = self._run(tasks)
        if results is None:
            return False
        judged, self._states, _ = zip(*results)
        self.judged.append(self._by_candidate(judged, len(self.plans)))
        return True

    def judge_others(self, order):
        """Let those judge the other folds who are not surely behind, after the last stage; return
        whether there were any folds, and time for it. The others are taken to be as far behind
        there as before."""
        behind = order.behind
        live = [i for i in range(len(self.plans)) if i not in behind]
        tasks = [(*task, None, math.inf) for i in live for task in self._others[i]]
        results = self._run(tasks) if tasks else None
        if results is None:
            return False
        judged = self._by_candidate([result[0] for result in results], len(live))
        rows = np.empty((len(self.plans), *judged.shape[1:]))
        rows[live] = judged
        for i, lead in behind.items():
            rows[i] = rows[order.leader] - lead
        self.judged[-1] = np.concatenate([self.judged[-1], rows], axis=1)
        return True

    def _run(self, tasks):
        """What `grow` returns of each task; None if there was no time for all of them."""
        began = self.end.taken
        if self.end and self.end.seconds - began <= 2.0 * self._took:
            return None
        task = functools.partial(within, self.end)
        results, interrupted = run_tasks(task, tasks, n_jobs=self.n_jobs)
        if interrupted:
            raise KeyboardInterrupt
        if any(result is None for result in results):
            return None
        self.row_steps += sum(row_steps for *_, row_steps in results)
        self._took = self.end.taken - began
        return results

    def _by_candidate(self, judged, n):
        """What the judge said of n candidates, each of whose folds follow each other."""
        return np.concatenate(judged).reshape(n, -1, *judged[0].shape[1:])


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
