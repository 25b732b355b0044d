"""How odd rows are at three scales: mixtures of all rows, mixtures of few rows, a single component.

A mixture of all rows has components of its own for outliers that resemble each other, and may
forgive them; one of few random rows has hardly any for what is rare; and one component of all rows
knows only what is far from everything. Each of these models, the *members*, gives a row the score
of _tail.py, which becomes minus the log of the share of training rows that are as odd: of rows that
the member has not seen or, if it is made of all rows, of each row without itself. Members of one
scale are told apart by chance alone, and count alike in the mean of these logarithms.

At which of the scales an outlier is odd is not known. If an outlier were odd at scale m alone, the
share q_m of rows that are as odd would say how much more probable it is than an ordinary row, by a
factor of about 1 / q_m; the others would say nothing. So the factors of the three scales, each of
which is as probable as the others, are averaged: the score is minus the log of the harmonic mean of
the shares (Wilson 2019, "The harmonic mean p-value for combining dependent tests", PNAS 116).

Of the mixtures of few rows, half have components in which the numbers are independent, and half
have full covariances; the single component has these. Of all rows there are beside the fit one
mixture of either sort. Ordered levels are numbers in all of them. They need no labels and no
competition of families: each is a chain of a few sweeps.

The mean is mapped once to its own law, that of the training rows, each judged by members that do
not know it. The law of rows simulated from the whole fit was turned down: it is off where rows are
not what the model takes them for, as those of a uniform distribution.
"""

# SPDX-License-Identifier: BSD-3-Clause

import functools
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.utils import _safe_indexing
from threadpoolctl import threadpool_limits

from ..chains import Chain, ChainPlan
from ..chains._first_state import first_state
from ..encoding import Encoder, ordered_as_numbers, prepare, training_cells
from ..families import FAMILIES, Table, candidates, family_of_logarithms
from ..moves import FeatureHyperparameters
from ..parallel import run_tasks
from ..predictive._calibration import Calibration
from ..predictive._draws import Draw
from ..predictive._patterns import patterns
from ..predictive._predictor import Predictor, View
from ..predictive._tail import ViewScores
from ..schedules import resolve_schedule
from ..states import Subsample, state_from_arrays
from ._base_chains import MEMBERS

SWEEPS = 16  # of a mixture
SINGLE_SWEEPS = 5  # of the hyperparameters of the single component
FEW_ROWS = 1000  # training rows that are scored, if the time is limited


class Sort(NamedTuple):
    """How members of one sort read rows, what their chains share, and the training rows as they are
    read in a query, in which rounded numbers have no noise."""

    encoder: Encoder
    plan: ChainPlan
    asked: Table


class Member:
    """A mixture of some of the training rows, calibrated on the others; or of all of them.

    Attributes
    ----------
    rows : int array of shape (n_seen,)
        The training rows that it is made of.
    draw : Draw
        The mixture, as in an estimator's `draws_`.
    calibration : callable
        Of scores, minus the log of the share of the other rows that are as odd; if there are none,
        of the rows themselves, each without itself.
    """

    def __init__(self, sort, encoder, arrays, rows, scores):
        self.rows, self.draw = rows, Draw(arrays, encoder)
        self._sort, self._schema = sort, encoder.table_schema
        self.calibration = Calibration(scores)

    def __repr__(self):
        return f"Member(n_rows={len(self.rows)}, n_components={self.draw.n_components})"

    def log_shares(self, tables):
        """Minus the log of the share of rows as odd: (n_rows,); tables : of each sort."""
        maker = Predictor([self.draw], self._schema)
        ((view,),) = maker.draws
        return self.calibration(_scores(view, tables[self._sort], maker))


class Scales:
    """The scores of a detector.

    Parameters
    ----------
    model : AnnealedDPMixture
        Fitted.
    calibration : Calibration
        Of the model's scores.
    encoders : list of Encoder
        Of each sort of members.
    single : Member
    members : list of Member
        Mixtures of few rows.
    whole : list of Member
        Mixtures of all rows.
    law : Calibration
        Of the mean of the scales.
    """

    def __init__(self, model, calibration, encoders, single, members, whole, law):
        self.model, self.calibration, self.law = model, calibration, law
        self.encoders, self.single, self.members, self.whole = encoders, single, members, whole

    def scores(self, X):
        """Minus the log of the share of rows as odd as these: (n_rows,)."""
        return self.law(self.means(X))

    def means(self, X):
        """The mean of the scales for new rows: (n_rows,)."""
        tables = [_table(encoder, encoder.encode(None, X)) for encoder in self.encoders]
        fine = [self.calibration(self.model.score_outliers(X))]
        fine += [member.log_shares(tables) for member in self.whole]
        scales = [np.mean(fine, axis=0), self.single.log_shares(tables)]
        if self.members:
            scales.append(np.mean([member.log_shares(tables) for member in self.members], axis=0))
        return average(scales)


def average(scales):
    """Minus the log of the harmonic mean of shares, of the scales that say something of a row.

    Parameters
    ----------
    scales : array-like of shape (n_scales, n_rows)
        Minus the logs of shares; nan where nothing is said.

    >>> average(-np.log([[0.5, 0.01], [0.5, np.nan]])).round(2)
    array([0.69, 4.61])
    """
    known = ~np.isnan(scales)
    return logsumexp(np.where(known, scales, -np.inf), axis=0) - np.log(known.sum(axis=0))


def _table(encoder, columns):
    table = Table(*encoder.table_schema)
    table.append(encoder.apart.stored(columns))
    return table


# ---- the fit of the members ----------------------------------------------------------------------


def fit_scales(model, X, n_members, n_seen, n_jobs, limit):
    """Fit the members beside a model.

    Parameters
    ----------
    model : AnnealedDPMixture
        Fitted to X.
    X : array-like or frame of shape (n_rows, n_columns)
    n_members : int
        Mixtures of few rows.
    n_seen : int
        Rows of each.
    n_jobs : int or None
    limit : TimeLimit

    Returns
    -------
    scales : Scales
    means : ndarray of shape (n_rows,)
        The mean of the scales for each training row, of members that do not know it; nan for rows
        that there was no time to score.
    interrupted : bool
    """
    sorts = sorts_of(model, X, n_seen)
    n_rows = sorts[0].plan.table.n_rows
    judged = np.arange(n_rows)
    if limit:
        judged = np.unique(np.linspace(0, n_rows - 1, FEW_ROWS).astype(np.int64))
    fine = model.outlier_scores_[judged]
    if np.isnan(fine).any():
        fine = model.score_outliers(_safe_indexing(X, judged))
    calibration, tasks = Calibration(fine), _tasks(model, sorts, judged, n_members, n_seen)
    with threadpool_limits(1, user_api="blas"):
        single, of_single = _single(sorts, judged)
        results, interrupted = run_tasks(functools.partial(_grown, limit), tasks, n_jobs=n_jobs)
    members, whole, of_all = [], [], [calibration(fine)]
    sums, counts = np.zeros(n_rows), np.zeros(n_rows)
    for (number, sort, seen, others, _), result in zip(tasks, results):
        if result is None:
            continue
        member = Member(number, sort.encoder, result[0], seen, result[1])
        shares = member.calibration(result[1])
        if len(seen) == n_rows:
            whole.append(member)
            of_all.append(shares)
        else:
            members.append(member)
            sums[others] += shares
            counts[others] += 1
    means = np.full(n_rows, np.nan)
    with np.errstate(invalid="ignore"):
        middle = sums[judged] / counts[judged]  # nan of a row that all members have seen
    means[judged] = average([np.mean(of_all, axis=0), of_single, middle])
    law, encoders = Calibration(means[judged], sure=1.0), [sort.encoder for sort in sorts]
    return Scales(model, calibration, encoders, single, members, whole, law), means, interrupted


def _tasks(model, sorts, judged, n_members, n_seen):
    """What `_grown` takes, after the limit, for each mixture of few rows and of all rows; none if
    no mixture is wanted."""
    n_rows, n_whole = sorts[0].plan.table.n_rows, len(sorts) if n_members else 0
    seed_of_rows, *seeds = model._seed(MEMBERS).spawn(1 + n_members + n_whole)
    generator = np.random.Generator(np.random.PCG64(seed_of_rows))
    orders = (np.argsort(generator.random(n_rows), kind="stable") for _ in range(n_members))
    subsets = [np.sort(order[:n_seen]) for order in orders]
    rows = [(seen, np.setdiff1d(judged, seen)) for seen in subsets]
    rows += [(np.arange(n_rows), judged)] * n_whole
    numbers = [i % len(sorts) for i in (*range(n_members), *range(n_whole))]
    return [(number, sorts[number], *of, seed) for number, of, seed in zip(numbers, rows, seeds)]


def sorts_of(model, X, n_seen):
    """The Sorts of members: numbers that are independent, and if there are several, covariances."""
    encoder = model._encoder
    cells = training_cells(encoder, encoder.encode(None, X), X)
    encoder, cells = ordered_as_numbers(encoder, X).put(encoder, cells)
    names = candidates("float")
    plain = {*names, family_of_logarithms(names[0])}
    numbers = [j for j in encoder.apart.kept if encoder.codecs[j].family in plain]
    grid = model._prior_grids(n_seen)["concentration"]
    sorts = []
    for name in (names[0], next(name for name in names if FAMILIES[name].joint)):
        own = encoder.with_family(numbers, name)
        if FAMILIES[name].joint:
            own = own.without_collinear(X, numbers)
            if len(numbers) < 2:
                break
        table = own.table(cells)
        plan = ChainPlan(
            table,
            own.table_families,
            *prepare("infer", own, table),
            grid,
            ("gibbs", "split_merge"),
        )
        sorts.append(Sort(own, plan, own.table(own.encode(None, X))))
    return sorts


def _grown(limit, _number, *task, stop):
    """What `_mixture` returns of a task; None if it was stopped, or the time was over."""
    if limit.is_over:
        return None
    with limit.flag(stop) as flag:
        return _mixture(*task, stop=flag)


def _mixture(sort, seen, judged, seed, *, stop):
    """The draw of a chain that sees some rows, and the scores of others; of some, each without
    itself, if it sees all."""
    encoder, plan, asked = sort
    schedule = resolve_schedule("anneal").set_params(n_sweeps=SWEEPS)
    n_rows = plan.table.n_rows
    all_rows = len(seen) == n_rows
    table = plan.table if all_rows else plan.table.take(seen)
    chain = Chain.begin(plan._replace(table=table), schedule, seed)
    if not chain.run(stop):
        return None
    arrays, maker = chain.draw(), Predictor([], encoder.table_schema)
    if all_rows:
        return arrays, _scores_without(arrays, table, asked, maker)[judged]
    table = asked.take(judged)
    view = View(state_from_arrays(arrays, table.empty_like(), trusted=True))
    return arrays, _scores(view, table, maker)


def _single(sorts, judged):
    """The Member that is one component of all rows, and what it says of some, each without
    itself."""
    encoder, plan, asked = sorts[-1]
    everything, bits = np.arange(plan.table.n_rows), np.random.PCG64(0)
    plan = plan._replace(init=np.zeros_like(everything))
    state = first_state(plan, Subsample(len(everything)), "prior", bits)
    move = FeatureHyperparameters(plan.grids)
    for _ in range(SINGLE_SWEEPS):
        move.sweep(state, bits)
    arrays = state.to_arrays(numbered=True) | {"log_joint": np.array(state.log_joint())}
    maker = Predictor([], encoder.table_schema)
    scores = _scores_without(arrays, plan.table, asked, maker)[judged]
    member = Member(len(sorts) - 1, encoder, arrays, everything, scores)
    return member, member.calibration(scores)


def _scores(view, table, maker):
    """The scores of rows that a mixture does not know: (n_rows,)."""
    return -ViewScores(view, table, patterns(table), maker).log_tails(0, table.n_rows)


def _scores_without(arrays, table, asked, maker):
    """The scores of a mixture's own rows, each without itself: (n_rows,)."""
    view = View(state_from_arrays(arrays, table, trusted=True))
    scores = ViewScores(view, asked, patterns(asked), maker)
    return -scores.log_tails(0, table.n_rows, training=True)
