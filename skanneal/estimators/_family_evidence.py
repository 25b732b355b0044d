"""Which family describes a table's numbers, decided by the density of rows not yet seen.

The candidates are the families that name columns of numbers as theirs (`default_for`). Each of them
in turn describes the columns that were left to "auto"; all other columns stay in the model. Some
rows are set aside to be judged. Chains of each candidate grow on the others by a short form of the
default schedule. Whenever their rows have doubled, the states that they have come to, averaged over
chains, give every judged row a density. All these densities are with respect to Lebesgue measure of
the same columns, so that they compare.

The order is settled when the leader is ahead of every rival by several standard errors, and would
still be ahead if each doubling to come brought the rival as much as the last one may have done: a
family of more parameters needs more rows, and may yet overtake. A standard error counts what
differs between rows and what differs between chains: one that is stuck in few components says
little of its family. If the order is never settled, the last margins decide, extrapolated to all
rows. Of candidates that differ by a trifle, or by no more than a standard error of the rows, the
first is chosen: it is the simpler one. No rival is waited for that cannot be ahead by more than a
trifle: a t of many degrees of freedom is a normal.

Work is counted in row steps, never timed, and depends on the table alone: the families do not
depend on the schedule, on the number of chains or on the machine. Only under a time limit the
competition ends early. It may take a third of the time, half as much as the fit that follows: a
stage begins if twice what the last one took is left of that, and one that is not over by then does
not count.
"""

# SPDX-License-Identifier: BSD-3-Clause

import functools
import math

import numpy as np
from scipy.special import logsumexp

from .._native._warning import warn
from ..chains import Chain
from ..families import FAMILIES, candidates
from ..parallel import run_tasks
from ..predictive._draws import Draw
from ..predictive._predictor import Predictor
from ..schedules import resolve_schedule

FEWEST_ROWS = 60  # of a table of fewer rows nothing can be told
MOST_COLUMNS = 50  # of a row family: a row step costs the square of their number
FEW_ROWS, FOLDS = 400, 4  # of a smaller table every row is judged, in so many folds
MOST_JUDGED = 1000
FIRST_ROWS, MOST_ROWS = 100, 16_384  # that a chain sees, at least and at most
ROWS_PER_COLUMN = 10  # at least, too: with fewer a family of covariances cannot show what it can do
CHAINS = 2  # of each candidate, where there are no folds
SWEEPS = 16  # of a chain, over all of its stages
CLEAR = 3.0  # standard errors
SHARE_OF_TIME = 1 / 3  # of a fit's limit
TRIFLE = 0.01  # nats per row


def choose_family(encoder, X, cells, plan_of, hyperparameters, seed, n_jobs, limit, names=None):
    """Choose the family of the columns of numbers that were left to "auto" by the evidence.

    Parameters
    ----------
    encoder : Encoder
        Fitted.
    X : array-like, frame or list of rows of shape (n_rows, n_columns)
    cells : list of ndarray
        What the encoder's fit made of X.
    plan_of : callable
        ``plan_of(encoder, table)`` returns the `ChainPlan` of a fit.
    hyperparameters : "infer" or mapping of str to values
        As the estimators take it.
    seed : SeedSequence
    n_jobs : int or None
        Chains that run at a time.
    limit : TimeLimit
        Of the whole fit.
    names : list of str or None, default=None
        The candidates; None is all families that name columns of numbers as theirs.

    Returns
    -------
    evidence : dict or None
        What becomes `family_evidence_`; None if no column was left to be decided.
    """
    names, columns = names or candidates("float"), encoder.open_numbers
    given = () if isinstance(hyperparameters, str) else hyperparameters
    if not len(columns) or any(name in given for name in names):
        return None
    if not all(FAMILIES[name].takes_gaps for name in names):
        columns = np.array([j for j in columns if not np.isnan(cells[j]).any()], dtype=np.int64)
    reason = None
    if len(columns) < 2:
        reason = "a single column without gaps"
    elif len(columns) > MOST_COLUMNS:
        reason = f"more than {MOST_COLUMNS} columns"
    elif len(cells[columns[0]]) < FEWEST_ROWS:
        reason = f"fewer than {FEWEST_ROWS} rows"
    if reason is not None:
        return _evidence(columns, names[0], reason)
    thinned = encoder.without_collinear(X, columns)  # of these covariances have no density
    competing, table = np.intersect1d(columns, thinned.open_numbers), thinned.table(cells)
    encoders = {name: thinned.with_family(competing, name) for name in names}
    plans = {name: plan_of(of, table) for name, of in encoders.items()}
    least = max(FIRST_ROWS, ROWS_PER_COLUMN * len(competing))
    contest = Contest(encoders, plans, least, seed, n_jobs, limit)
    while not contest.settled and contest.double():
        pass
    if not contest.densities:
        return _evidence(columns, names[0], "max_time, which left no time to compete")
    return contest.evidence(columns)


def set_collinear_apart(encoder, X, proper):
    """Return the encoder without the columns that their family's covariances would not bear.

    Parameters
    ----------
    encoder : Encoder
    X : array-like, frame or list of rows of shape (n_rows, n_columns)
        What it was fitted to.
    proper : collection of str
        Families whose covariances are bounded by what the user gives.

    Warns
    -----
    UserWarning
        Naming the columns.
    """
    for name, columns in encoder.families_.items():
        family = FAMILIES.get(name)
        if family is not None and family.joint and family.bounds_density and name not in proper:
            encoder = encoder.without_collinear(X, columns)
    for codec, label, others in encoder.collinear:
        warn(
            f"{label} is a linear function of {others}: it is set apart, since the family "
            f"{codec.given_family!r} has no density for it.",
        )
    return encoder


def report(evidence):
    """Return the evidence as a line to print."""
    line = f"families    {evidence['winner']}"
    if evidence["decided_by"] != "evidence":
        return f"{line}, without a competition: {evidence['decided_by']}"
    margin, error = evidence["margin"], evidence["standard_error"]
    ahead = f"ahead by {margin:.3g}" if margin >= 0.0 else f"simpler, and behind by {-margin:.3g}"
    return f"{line}, {ahead} +- {error:.2g} nats per row after {evidence['n_rows'][-1]} rows"


class Contest:
    """A competition of candidates, stage by stage.

    Parameters
    ----------
    encoders : dict of str to Encoder
        Of each candidate; of equal candidates the first wins.
    plans : dict of str to ChainPlan
        Under the same names.
    least : int
        Rows that a chain sees at first, if there are as many.
    seed : SeedSequence
    n_jobs : int or None
        Chains that run at a time.
    limit : TimeLimit
        Of the fit, of which the competition may take SHARE_OF_TIME.

    Attributes
    ----------
    end : TimeLimit
        Of the competition.
    sizes : list of int
        Rows that a chain has seen by the end of each stage.
    splits : list of (int array, int array)
        Of each chain: rows that it judges, and rows that it may see.
    densities : list of float64 array of shape (n_candidates, n_chains, n_judged)
        Log density of every judged row, for the stages that are over. In folds a row is judged by
        one chain.
    row_steps : int
        Rows scored so far.
    """

    def __init__(self, encoders, plans, least, seed, n_jobs, limit):
        self.encoders, self.plans, self.n_jobs = encoders, plans, n_jobs
        self.end = limit.part(SHARE_OF_TIME)
        self.n_rows = n = next(iter(plans.values())).table.n_rows
        seed_of_order, seed_of_chains = seed.spawn(2)
        generator = np.random.Generator(np.random.PCG64(seed_of_order))
        order = np.argsort(generator.random(n), kind="stable")
        n_judged = min(-(-n // FOLDS), MOST_JUDGED)
        starts = range(0, n, n_judged) if n < FEW_ROWS else [0] * CHAINS
        self.splits = [
            (order[start : start + n_judged], np.r_[order[start + n_judged :], order[:start]])
            for start in starts
        ]
        self._n_judging = 1 if n < FEW_ROWS else CHAINS
        self.sizes = [min(n - n_judged, MOST_ROWS)]
        while self.sizes[0] >= 2 * least:
            self.sizes.insert(0, self.sizes[0] // 2)
        self.densities, self.row_steps, self._took = [], 0, 0.0
        pairs = [(name, *split) for name in plans for split in self.splits]
        self._tasks = [
            (encoders[name], plans[name], seen[: self.sizes[-1]], judged, of_chain)
            for (name, judged, seen), of_chain in zip(pairs, seed_of_chains.spawn(len(pairs)))
        ]
        self._states = [None] * len(pairs)

    def double(self):
        """Run the next stage; return whether there was time for it."""
        began = self.end.taken
        if self.end and self.end.seconds - began <= 2.0 * self._took:
            return False
        stage = len(self.densities)
        until = math.inf if stage + 1 == len(self.sizes) else self.sizes[stage]
        tasks = [(*task, state, until) for task, state in zip(self._tasks, self._states)]
        task = functools.partial(within, self.end)
        results, interrupted = run_tasks(task, tasks, n_jobs=self.n_jobs)
        if interrupted:
            raise KeyboardInterrupt
        if any(result is None for result in results):
            return False
        densities, self._states, row_steps = zip(*results)
        shape = len(self.plans), self._n_judging, -1
        self.densities.append(np.concatenate(densities).reshape(shape))
        self.row_steps += sum(row_steps)
        self._took = self.end.taken - began
        return True

    @property
    def leader(self):
        """Index of the candidate that is best if it goes on gaining as 1 / rows lets it; the first
        of those that are no more than a trifle, or a standard error, behind."""
        stages = [_averaged(of_stage) for of_stage in self.densities[-2:]]
        means = [of_stage.mean(axis=1) for of_stage in stages]
        gain = means[-1] - means[0]
        expected = means[-1] + gain * (1 - self._size / self.n_rows)
        rows = stages[-1][expected.argmax()] - stages[-1]
        error = rows.std(axis=1) / math.sqrt(rows.shape[1])
        return int(np.argmax(expected >= expected.max() - np.maximum(TRIFLE, error)))

    @property
    def settled(self):
        """Whether the order is not going to change, or nothing more can be asked."""
        if len(self.densities) in (0, 1, len(self.sizes)):
            return len(self.densities) == len(self.sizes)
        (before, error_before), (margin, error) = map(self._margins, self.densities[-2:])
        loss, error_of_loss = before - margin, np.hypot(error_before, error)
        to_come = math.log2(self.n_rows / self._size) * (loss + CLEAR * error_of_loss)
        clear = margin > np.maximum(CLEAR * error, to_come)
        never = CLEAR * error + np.maximum(to_come, 0.0) - margin < TRIFLE
        return bool((clear | never).all())

    def _margins(self, densities):
        """By how much the leader gives a row more than each rival does, and the standard error."""
        ahead = densities[self.leader] - np.delete(densities, self.leader, axis=0)
        averaged = _averaged(densities)
        rows = averaged[self.leader] - np.delete(averaged, self.leader, axis=0)
        variance = rows.var(axis=1) / rows.shape[1]
        if ahead.shape[1] > 1:
            variance += ahead.mean(axis=2).var(axis=1, ddof=1) / ahead.shape[1]
        return rows.mean(axis=1), np.sqrt(variance)

    @property
    def _size(self):
        return self.sizes[len(self.densities) - 1]

    def evidence(self, columns):
        """Return what becomes `family_evidence_`."""
        margin, error = self._margins(self.densities[-1])
        nearest = margin.argmin()
        names = list(self.plans)
        means = np.array([_averaged(of_stage).mean(axis=1) for of_stage in self.densities]).T
        return _evidence(
            columns,
            names[self.leader],
            "evidence",
            margin=float(margin[nearest]),
            standard_error=float(error[nearest]),
            n_rows=np.array(self.sizes[: len(self.densities)]),
            log_density=dict(zip(names, means)),
            row_steps=self.row_steps,
        )


def _averaged(densities):
    """Log of the density averaged over chains: (n_candidates, n_judged)."""
    return logsumexp(densities, axis=1) - math.log(densities.shape[1])


def within(end, *task, stop):
    """What `grow` returns of a task, or None if the time is over before."""
    if not end:
        return grow(*task, stop=stop)
    flag = stop.within(end.left)
    try:
        return grow(*task, stop=flag)
    finally:
        flag.cancel()


def grow(encoder, plan, seen, judged, seed, state, until, *, stop):
    """Let a chain grow on the rows that it may see, or go on from a state, until so many are in.

    Returns
    -------
    densities : ndarray of shape (n_judged,)
        Log density of the judged rows.
    state : dict of arrays
    row_steps : int
        Rows scored. None is returned instead if the chain was stopped.
    """
    alone = plan._replace(
        table=plan.table.take(np.sort(seen)),
        moves=("gibbs", "split_merge"),
        even_work=False,
        init=None,
        strata=None,
    )
    if state is None:
        chain = Chain.begin(alone, resolve_schedule("anneal").set_params(n_sweeps=SWEEPS), seed)
    else:
        chain = Chain.from_arrays(state, alone)
    before = chain.position
    if not chain.run(stop, until):
        return None
    reached = Predictor([Draw(chain.state.to_arrays(), encoder)], encoder.table_schema)
    densities = reached.log_density(plan.table.take(judged))
    return densities, chain.to_arrays(), chain.position - before + len(judged)


def _evidence(columns, winner, decided_by, **figures):
    """The dict that `family_evidence_` is; without figures where there was no competition."""
    nothing = {
        "margin": np.nan,
        "standard_error": np.nan,
        "n_rows": np.empty(0, dtype=np.int64),
        "log_density": {},
        "row_steps": 0,
    }
    return {"winner": winner, "decided_by": decided_by, "columns": columns} | nothing | figures
