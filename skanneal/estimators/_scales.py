"""How odd rows are at three scales: the whole fit, mixtures of few rows, and a single component.

A mixture of all rows has components of its own for outliers that resemble each other, and forgives
them too much; one of few random rows has none for what is rare; and one component of all rows knows
only what is far from everything. Each of these models, the *members*, gives a row a score (of the
whole fit see _tail.py, of the others _odd_shares.py), which becomes minus the log of the share of
training rows that are as odd: of rows that the member has not seen or, if it is made of all rows,
of each row without itself. Nothing is known of the outliers, so the three scales count alike in the
mean of these, and so do the mixtures of few rows.

Of the mixtures of few rows, half have components in which the numbers are independent, and half
have full covariances; the single component has these. Ordered levels are numbers in all of them.
They need no labels, no tails of training rows and no competition of families: each is a chain of a
few sweeps.

The mean of shares is no share. So it is mapped once to its own law, that of the training rows, each
judged by members that do not know it. The law of rows simulated from the whole fit was turned down:
it is off where rows are not what the model takes them for, as those of a uniform distribution.
"""

# SPDX-License-Identifier: BSD-3-Clause

import functools
from typing import NamedTuple

import numpy as np
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
from ..predictive._odd_shares import OddShares
from ..predictive._predictor import Predictor, View
from ..schedules import resolve_schedule
from ..states import Subsample, state_from_arrays
from ._base_chains import MEMBERS

SWEEPS = 16  # of a mixture of few rows
SINGLE_SWEEPS = 5  # of the hyperparameters of the single component
FEW_ROWS = 1000  # training rows that are scored, if the time is limited


class Sort(NamedTuple):
    """How members of one sort read rows, and what their chains share."""

    encoder: Encoder
    plan: ChainPlan


class Member:
    """A mixture of some of the training rows, calibrated on the others.

    Attributes
    ----------
    rows : int array of shape (n_seen,)
        The training rows that it is made of.
    draw : Draw
        The mixture, as in an estimator's `draws_`.
    calibration : callable
        Of scores, minus the log of the share of the other rows that are as odd.
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
        table = tables[self._sort]
        return self.calibration(OddShares(view, table, maker).scores(0, table.n_rows))


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
    law : Calibration
        Of the mean of the scales.
    """

    def __init__(self, model, calibration, encoders, single, members, law):
        self.model, self.calibration, self.law = model, calibration, law
        self.encoders, self.single, self.members = encoders, single, members

    def scores(self, X):
        """Minus the log of the share of rows as odd as these: (n_rows,)."""
        return self.law(self.means(X))

    def means(self, X):
        """The mean of the scales for new rows: (n_rows,)."""
        tables = [_table(encoder, encoder.encode(None, X)) for encoder in self.encoders]
        fine = self.calibration(self.model.score_outliers(X))
        scales = [fine, self.single.log_shares(tables)]
        if self.members:
            scales.append(np.mean([member.log_shares(tables) for member in self.members], axis=0))
        return np.mean(scales, axis=0)


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
    seed_of_rows, *seeds = model._seed(MEMBERS).spawn(1 + n_members)
    sorts = sorts_of(model, X, n_seen)
    n_rows = sorts[0].plan.table.n_rows
    judged = np.arange(n_rows)
    if limit:
        judged = np.unique(np.linspace(0, n_rows - 1, FEW_ROWS).astype(np.int64))
    fine = model.outlier_scores_[judged]
    if np.isnan(fine).any():
        fine = model.score_outliers(_safe_indexing(X, judged))
    tasks = []
    for i, (seen, seed) in enumerate(zip(_subsets(seed_of_rows, n_rows, n_seen), seeds)):
        tasks.append((sorts[i % len(sorts)], seen, np.setdiff1d(judged, seen), seed))
    with threadpool_limits(1, user_api="blas"):
        arrays, of_single = _single(sorts[-1], judged)
        results, interrupted = run_tasks(functools.partial(_grown, limit), tasks, n_jobs=n_jobs)
    single = Member(len(sorts) - 1, sorts[-1].encoder, arrays, np.arange(n_rows), of_single)
    members, sums, counts = [], np.zeros(n_rows), np.zeros(n_rows)
    for i, result in enumerate(results):
        if result is not None:
            (sort, seen, others, _), (arrays, scores) = tasks[i], result
            members.append(Member(i % len(sorts), sort.encoder, arrays, seen, scores))
            sums[others] += members[-1].calibration(scores)
            counts[others] += 1
    calibration, means = Calibration(fine), np.full(n_rows, np.nan)
    with np.errstate(invalid="ignore"):
        middle = sums[judged] / counts[judged]  # nan of a row that all members have seen
    means[judged] = np.nanmean([calibration(fine), single.calibration(of_single), middle], axis=0)
    law, encoders = Calibration(means[judged], sure=1.0), [sort.encoder for sort in sorts]
    return Scales(model, calibration, encoders, single, members, law), means, interrupted


def _subsets(seed, n_rows, n_seen):
    """Yield random rows, without end."""
    generator = np.random.Generator(np.random.PCG64(seed))
    while True:
        yield np.sort(np.argsort(generator.random(n_rows), kind="stable")[:n_seen])


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
        sorts.append(Sort(own, plan))
    return sorts


def _grown(limit, *task, stop):
    """What `_of_few_rows` returns of a task; None if it was stopped, or the time was over."""
    if limit.is_over:
        return None
    with limit.flag(stop) as flag:
        return _of_few_rows(*task, stop=flag)


def _of_few_rows(sort, seen, others, seed, *, stop):
    """The draw of a chain that sees some rows, and the scores of others."""
    encoder, plan = sort
    schedule = resolve_schedule("anneal").set_params(n_sweeps=SWEEPS)
    chain = Chain.begin(plan._replace(table=plan.table.take(seen)), schedule, seed)
    if not chain.run(stop):
        return None
    arrays, table = chain.draw(), plan.table.take(others)
    view = View(state_from_arrays(arrays, table.empty_like(), trusted=True))
    odd = OddShares(view, table, Predictor([], encoder.table_schema))
    return arrays, odd.scores(0, table.n_rows)


def _single(sort, judged):
    """The draw of one component of all rows, and the scores of some, each without itself."""
    encoder, plan, bits = *sort, np.random.PCG64(0)
    n_rows = plan.table.n_rows
    plan = plan._replace(init=np.zeros(n_rows, dtype=np.int64))
    state = first_state(plan, Subsample(n_rows), "prior", bits)
    move = FeatureHyperparameters(plan.grids)
    for _ in range(SINGLE_SWEEPS):
        move.sweep(state, bits)
    arrays = state.to_arrays(numbered=True) | {"log_joint": np.array(state.log_joint())}
    view = View(state_from_arrays(arrays, plan.table, trusted=True))
    odd = OddShares(view, plan.table, Predictor([], encoder.table_schema))
    return arrays, odd.scores(0, n_rows, without=True)[judged]
