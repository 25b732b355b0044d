"""How odd rows are at three scales: a mixture of all rows, mixtures of few rows, one component.

A mixture of all rows has components of its own for outliers that resemble each other, and may
forgive them; one of few random rows, a *member*, has hardly any for what is rare; a single
component, of the *core* of the rows (_core.py), has none at all. Each of these models gives a row
the score of _tail.py, which becomes minus the log of the share of training rows that are as odd: of
rows that the member has not seen or, of the other two, of each row without itself. Members are told
apart by chance alone, and count alike in the mean of these logarithms.

At which of the scales an outlier is odd is not known. If an outlier were odd at scale m alone, the
share q_m of rows that are as odd would say how much more probable it is than an ordinary row, by a
factor of about 1 / q_m; the others would say nothing. So the factors of the scales, each of which
is as probable as another, are averaged: the score is minus the log of the harmonic mean of the
shares (Wilson 2019, "The harmonic mean p-value for combining dependent tests", PNAS 116).

In members and core numbers have full covariances, and ordered levels are numbers. They need no
labels and no competition of families: each member is a chain of a few sweeps. What was turned down,
as it ranked simulated outliers worse or no better: a single component of all rows in place of the
core, more mixtures of all rows, members in which numbers are independent, and scores of members by
the components that a row is likely of.

The mean is mapped once to its own law, that of the training rows, each judged by models that do not
know it. The law of rows simulated from the whole fit was turned down: it is off where rows are not
what the model takes them for, as those of a uniform distribution.
"""

# SPDX-License-Identifier: BSD-3-Clause

import functools
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.utils import _safe_indexing
from threadpoolctl import threadpool_limits

from ..chains import Chain, ChainPlan
from ..encoding import Encoder, ordered_as_numbers, prepare, training_cells
from ..families import FAMILIES, Table, candidates
from ..parallel import OfFit, OfMembers, run_tasks, seed_below, seeds_below
from ..predictive._calibration import Calibration
from ..predictive._draws import Draw
from ..predictive._predictor import Predictor
from ..predictive._tail import view_scores
from ..predictive._view import View
from ..schedules import resolve_schedule
from ..states import state_from_arrays
from ._core import core_of

SWEEPS = 16  # of a member
FEW_ROWS = 1000  # training rows that are scored, if the time is limited


class Common(NamedTuple):
    """What the members share: how they read rows, the plan of their chains, and the training rows
    as they are read in a query, in which rounded numbers have no noise."""

    encoder: Encoder
    plan: ChainPlan
    asked: Table


class Member:
    """A mixture of some of the training rows, calibrated on rows that it does not know.

    Attributes
    ----------
    rows : int array of shape (n_seen,)
        The training rows that it is made of.
    draw : Draw
        The mixture, as in an estimator's `draws_`.
    calibration : callable
        Takes scores; returns minus the log of the share of rows that are as odd.
    """

    def __init__(self, encoder, arrays, rows, scores):
        self.rows, self.draw = rows, Draw(arrays, encoder)
        self._schema = encoder.table_schema
        self.calibration = Calibration(scores)

    def __repr__(self):
        return f"Member(n_rows={len(self.rows)}, n_components={self.draw.n_components})"

    def log_shares(self, table):
        """Minus the log of the share of rows as odd: (n_rows,)."""
        maker = Predictor([self.draw], self._schema)
        ((view,),) = maker.draws
        return self.calibration(view_scores(view, table, maker))


class Scales:
    """The scores of a detector.

    Parameters
    ----------
    model : AnnealedDPMixture
        Fitted.
    calibration : Calibration
        Of the model's scores.
    encoder : Encoder
        Of the members.
    members : list of Member
    core : Member
        One component.
    law : Calibration
        Of the mean of the scales.
    """

    def __init__(self, model, calibration, encoder, members, core, law):
        self.model, self.calibration, self.law = model, calibration, law
        self.encoder, self.members, self.core = encoder, members, core

    def scores(self, X):
        """Minus the log of the share of rows as odd as these: (n_rows,)."""
        return self.law(self.means(X))

    def means(self, X):
        """The mean of the scales for new rows: (n_rows,)."""
        table = Table(*self.encoder.table_schema)
        table.append(self.encoder.apart.stored(self.encoder.encode(None, X)))
        scales = [self.calibration(scores_of_model(self.model, X)), self.core.log_shares(table)]
        if self.members:
            scales.append(np.mean([member.log_shares(table) for member in self.members], axis=0))
        return average(scales)


def scores_of_model(model, X):
    """The `score_outliers` of the mixture of all rows, which does not ask for the columns' names:
    they are the detector's, which the user knows by its own name."""
    return model._queries().outlier_scores(model._encoder.encode(None, X))


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


# ---- the fit of the members ----------------------------------------------------------------------


def fit_scales(model, X, n_members, n_seen, n_jobs, limit):
    """Fit the members beside a model.

    Parameters
    ----------
    model : AnnealedDPMixture
        Fitted to X.
    X : array-like or frame of shape (n_rows, n_columns)
    n_members : int
    n_seen : int
        Rows of each.
    n_jobs : int or None
    limit : TimeLimit

    Returns
    -------
    scales : Scales
    means : ndarray of shape (n_rows,)
        The mean of the scales for each training row, of models that do not know it; nan for rows
        that there was no time to score.
    interrupted : bool
    """
    common = common_of(model, X, n_seen)
    n_rows = common.plan.table.n_rows
    judged = np.arange(n_rows)
    if limit:
        judged = np.unique(np.linspace(0, n_rows - 1, FEW_ROWS).astype(np.int64))
    fine = model.outlier_scores_[judged]
    if np.isnan(fine).any():
        fine = scores_of_model(model, rows_at(X, judged))
    calibration, tasks = Calibration(fine), _tasks(model, common, judged, n_members, n_seen)
    with threadpool_limits(1, user_api="blas"):
        of_rows = common.plan, common.asked, common.encoder.table_schema
        rows, arrays, of_core = core_of(*of_rows, judged, model._seed(OfFit.CORE))
        core = Member(common.encoder, arrays, rows, of_core)
        results, interrupted = run_tasks(functools.partial(_grown, limit), tasks, n_jobs=n_jobs)
    members, sums, counts = [], np.zeros(n_rows), np.zeros(n_rows)
    for (_, seen, others, _), result in zip(tasks, results):
        if result is None:
            continue
        arrays, scores = result
        member = Member(common.encoder, arrays, seen, scores)
        members.append(member)
        sums[others] += member.calibration(scores)
        counts[others] += 1
    means = np.full(n_rows, np.nan)
    with np.errstate(invalid="ignore"):
        of_few = sums[judged] / counts[judged]  # nan for a row that all members have seen
    means[judged] = average([calibration(fine), core.calibration(of_core), of_few])
    law = Calibration(means[judged], sure=1.0)
    return Scales(model, calibration, common.encoder, members, core, law), means, interrupted


def rows_at(X, at):
    """Some of the rows of a table, or of what NumPy makes one."""
    return _safe_indexing(X if hasattr(X, "__getitem__") else np.asarray(X), at)


def _tasks(model, common, judged, n_members, n_seen):
    """What `_grown` takes, after the limit, for each member."""
    n_rows = common.plan.table.n_rows
    seed = model._seed(OfFit.MEMBERS)
    generator = np.random.Generator(np.random.PCG64(seed_below(seed, OfMembers.ROWS)))
    orders = (np.argsort(generator.random(n_rows), kind="stable") for _ in range(n_members))
    subsets = (np.sort(order[:n_seen]) for order in orders)
    seeds = seeds_below(seed, OfMembers.MEMBERS, n_members)
    return [(common, seen, np.setdiff1d(judged, seen), own) for seen, own in zip(subsets, seeds)]


def common_of(model, X, n_seen):
    """Return what all members share, each of which sees `n_seen` rows."""
    encoder = model._encoder
    cells = training_cells(encoder, encoder.encode(None, X), X)
    encoder, cells = ordered_as_numbers(encoder, X).put(encoder, cells)
    names = candidates("float")
    plain = {*names, *(of for of, family in FAMILIES.items() if family.logarithms_of in names)}
    numbers = [j for j in encoder.apart.kept if encoder.codecs[j].family in plain]
    own = encoder.with_family(numbers, names[0])
    if len(numbers) > 1:
        joint = next(name for name in names if FAMILIES[name].joint)
        own = encoder.with_family(numbers, joint).without_collinear(cells.exact, numbers)
    table = own.table(cells.noisy)
    plan = ChainPlan(
        table,
        own.table_families,
        *prepare("infer", own, table),
        model._prior_grids(n_seen)["concentration"],
        ("gibbs", "split_merge"),
    )
    return Common(own, plan, own.table(cells.exact))


def _grown(limit, *task, stop):
    """What `_mixture` returns of a task; None if it was stopped, or the time was over."""
    if limit.is_over:
        return None
    with limit.flag(stop) as flag:
        return _mixture(*task, stop=flag)


def _mixture(common, seen, judged, seed, *, stop):
    """The draw of a chain that sees some rows, and the scores of others."""
    encoder, plan, asked = common
    schedule = resolve_schedule("anneal").set_params(n_sweeps=SWEEPS)
    chain = Chain.begin(plan._replace(table=plan.table.take(seen)), schedule, seed)
    if not chain.run(stop):
        return None
    arrays, table = chain.draw(), asked.take(judged)
    view = View(state_from_arrays(arrays, table.empty_like(), trusted=True))
    return arrays, view_scores(view, table, Predictor([], encoder.table_schema))
