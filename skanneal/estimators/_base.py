"""What every mixture estimator shares: validate, encode, run chains, summarise."""

# SPDX-License-Identifier: BSD-3-Clause

import functools
import warnings
from collections.abc import Mapping
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin, DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._missing import is_scalar_nan
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..chains._chain import ChainPlan, run_chain
from ..encoding import (
    CountRowCodec,
    Encoder,
    grids_in_units,
    partition_grid,
    prepare,
    with_scale,
)
from ..families import FAMILIES, Table
from ..moves import MOVES, iterated_conditional_modes
from ..parallel import StopFlag, n_workers, run_tasks, spawn_seeds
from ..parallel._time_limit import TimeLimit
from ..predictive._draws import Draw
from ..predictive._queries import QueryMixin
from ..schedules import SCHEDULES, BaseSchedule, SequentialGibbs, resolve_schedule
from ..states import Mixture, Subsample
from ..summary import diagnose, point_estimate, relabel
from ._all_or_nothing import all_or_nothing
from ._named_schedule import NamedScheduleMixin

UNDIAGNOSED = ("seconds", "sweeps", "n_assigned", "burn_in")  # entries of the trace that only go up
DISAGREE = 1.1  # R-hat above which chains are said to disagree
ENOUGH_RECORDS = 20  # full-data records per chain below which nothing is said
ROUNDING = 1e-6  # nats between log joint densities that say nothing
SKETCH_ROWS = 2000


class BaseMixtureEstimator(
    NamedScheduleMixin, QueryMixin, ClusterMixin, DensityMixin, BaseEstimator
):
    """Base of the mixture estimators; see a subclass for parameters and attributes."""

    _parameter_constraints: dict = {
        "families": [StrOptions({"auto", *FAMILIES}), Mapping],
        "schedule": [StrOptions(SCHEDULES.keys()), BaseSchedule],
        "concentration": [StrOptions({"infer"}), Real],
        "discount": [StrOptions({"infer"}), Real],
        "hyperparameters": [StrOptions({"infer"}), Mapping],
        "moves": [StrOptions({"auto"}), tuple, list],
        "point_estimate": [StrOptions({"map", "vi", "binder"})],
        "n_chains": [Interval(Integral, 1, None, closed="left")],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "thin": [Interval(Integral, 1, None, closed="left")],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state", np.random.Generator, np.random.SeedSequence],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
    }
    _moves = tuple(MOVES)  # what `moves` may name
    _auto_moves = ("gibbs", "split_merge")
    _draw_type = Draw
    _length = "n_sweeps"  # the schedule's parameter for longer chains

    # ---- fit ------------------------------------------------------------------------------------

    def _fit(self, X, strata):
        """The whole fit; attributes are set at its end, all of them or none."""
        schedule = resolve_schedule(self.schedule)
        limit = TimeLimit(self.max_time, schedule.max_time)
        schedule.set_params(max_time=None)
        moves = self._resolve_moves()
        self._priors()  # whose errors come before any work
        resume = self.warm_start and hasattr(self, "_states")
        encoder = Encoder()
        with all_or_nothing(self):
            columns = encoder.fit_encode(
                self,
                X,
                self.families,
                indicators=self._indicators(),
                proper=with_scale(self.hyperparameters),
            )
            self._check_families(encoder)
            table = Table(*encoder.table_schema)
            table.append(encoder.apart.stored(columns, 0.0))
            del columns
            hyper, grids = prepare(self.hyperparameters, encoder, table)
            seeds = spawn_seeds(self.random_state, self.n_chains + 1)
            schedule = self._started(schedule, table.n_rows)
            priors = self._priors(table.n_rows, table.n_columns)
            model = ChainPlan(
                table,
                encoder.table_families,
                hyper,
                grids,
                moves=moves,
                **priors,
                **self._running(priors, table.n_rows),
            )
            fingerprint = encoder.fingerprint(table)
            if resume:
                states = self._earlier_states(fingerprint)
            else:
                states = [None] * self.n_chains
                model = model._replace(strata=self._strata(strata, schedule, model, seeds[-1]))
            models = [model] * self.n_chains
            results, interrupted = self._run_chains(limit, models, schedule, seeds, states)
            results = [result for result in results if result["trace"]["n_components"][-1] > 0]
            if not results:
                raise KeyboardInterrupt
            fitted = self._results(encoder, model, results)
            late = limit and not all(result["in_time"] for result in results)
        self.__dict__.update(fitted, _fingerprint=fingerprint)
        self._warn_of_disagreement(table.n_rows)
        self._warn_of_edge(priors, table.n_rows)
        if late and not interrupted:
            warnings.warn(
                f"max_time={limit.seconds:g} was over before each chain had given every row a "
                f"cluster: the fit took {limit.taken:.3g} seconds. Give more time, or fewer rows, "
                f"columns or chains.",
                ConvergenceWarning,
                stacklevel=4,
            )
        if interrupted:
            warnings.warn(
                "The fit was interrupted: it keeps the last complete state of each chain.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return self

    def _run_chains(self, limit, models, schedule, seeds, states):
        """(Results of the chains, without those that an interrupt left out; interrupted).

        A chain that goes on from an earlier fit is never left out: one that did not begin, or that
        was lost with its process, is where it was. If that is so of all, there are no results.
        """
        tasks = [
            (limit, number, model, schedule, seed, self.n_draws, self.thin, state, self.verbose)
            for number, (model, seed, state) in enumerate(zip(models, seeds, states))
        ]
        task = functools.partial(chain_task, len(tasks), n_workers(self.n_jobs))
        results, interrupted = run_tasks(task, tasks, n_jobs=self.n_jobs)
        if any(result is not None for result in results):
            stop = StopFlag()
            stop.set()
            for i, state in enumerate(states):
                if results[i] is None and state is not None:
                    results[i] = task(*tasks[i], stop=stop)
        return [result for result in results if result is not None], interrupted

    def _resolve_moves(self):
        if isinstance(self.moves, str):
            return self._auto_moves
        known = self._moves
        unknown = [move for move in self.moves if not (isinstance(move, str) and move in known)]
        if unknown or "gibbs" not in self.moves:
            raise ValueError(
                f"moves must be 'auto' or names among {sorted(known)}, 'gibbs' with them; "
                f"got {self.moves!r}"
            )
        return tuple(self.moves)

    def _started(self, schedule, n_rows):
        """The schedule from the start that the estimator asks for."""
        return schedule

    def _running(self, priors, n_rows):
        """What else of ChainPlan says how a chain runs."""
        return {}

    def _priors(self, n_rows=0, n_columns=0):
        """The grids of partition priors, by their names in ChainPlan."""
        return {"prior_grid": partition_grid(self.concentration, self.discount, n_rows)}

    def _indicators(self):
        """Columns whose presence is modelled."""
        return ()

    def _check_families(self, encoder):
        """Refuse families that this estimator cannot use."""

    def _earlier_states(self, fingerprint):
        if len(self._states) != self.n_chains:
            raise ValueError(
                f"warm_start: the earlier fit had {len(self._states)} chains, n_chains is now "
                f"{self.n_chains}"
            )
        if fingerprint != self._fingerprint:
            raise ValueError(
                "warm_start goes on with the same rows: X or families differ from the earlier fit's"
            )
        return self._states

    def _strata(self, strata, schedule, model, seed):
        """Codes of the rows' strata for stratified selection, given or from a sketch."""
        n_rows = model.table.n_rows
        if strata is not None:
            if np.shape(strata) != (n_rows,):
                raise ValueError(f"strata must have shape ({n_rows},), got {np.shape(strata)}")
            codes = {}  # in order of appearance: labels of any sort, missing ones among them
            labels = (None if is_scalar_nan(label) else label for label in strata)
            return np.array([codes.setdefault(label, len(codes)) for label in labels])
        if schedule.selection != "stratified":
            return None
        return sketch(model, seed)

    def _results(self, encoder, model, results):
        """The fitted attributes; R-hat and ESS are of the final full-data stage."""
        chains = [[self._draw_type(draw, encoder) for draw in r["draws"]] for r in results]
        trace = _padded([r["trace"] for r in results])
        r_hats, esses = self._diagnosed(trace, model.table.n_rows)
        return {
            "families_": encoder.families_,
            "hyperparameter_grids_": grids_in_units(model, encoder.shown_families),
            "draws_": chains,
            "trace_": trace,
            "schedule_": results[0]["schedule"],
            "n_sweeps_": float(np.nanmax(trace["sweeps"])),
            "r_hat_": r_hats,
            "ess_": esses,
            "_encoder": encoder,
            "_states": [r["state"] for r in results],
            **self._summary([draw for chain in chains for draw in chain], encoder, model),
        }

    @staticmethod
    def _diagnosed(trace, n_rows):
        """R-hat and ESS of the final full-data stage, burn-in left out."""
        full = _final(trace, n_rows)
        scalars = [name for name in trace if name not in UNDIAGNOSED]
        final = {name: np.where(full, trace[name], np.nan) for name in scalars}
        if full.any() and np.ptp(trace["log_joint"][full]) < ROUNDING:
            final["log_joint"][full] = trace["log_joint"][full][0]
        return diagnose(final)

    def _summary(self, draws, encoder, model):
        """The point estimate: `labels_` and what `predict` asks."""
        log_joints = [draw.log_joint for draw in draws]
        labels = point_estimate([draw.labels for draw in draws], log_joints, self.point_estimate)
        best = draws[int(np.argmax(log_joints))]
        point = Draw(_point_arrays(best, labels, model.table, self.point_estimate), encoder)
        return {
            "labels_": point.labels.astype(np.int64),
            "n_clusters_": point.n_components,
            "_point": point,
        }

    def _warn_of_disagreement(self, n_rows, stacklevel=5):
        full = self.trace_["n_assigned"] == n_rows
        worst = self.r_hat_["log_joint"]
        if full.sum(axis=1).min() >= ENOUGH_RECORDS and worst > DISAGREE:
            warnings.warn(
                f"Chains disagree: R-hat of the log joint density is {worst:.2f}. Raise the "
                f"schedule's {self._length}, or look at `trace_`.",
                ConvergenceWarning,
                stacklevel=stacklevel,  # the caller of fit
            )

    def _warn_of_edge(self, priors, n_rows, stacklevel=5):
        final = _final(self.trace_, n_rows)
        for grid, name in (("prior_grid", "concentration"), ("view_grid", "view_concentration")):
            points = np.unique(priors[grid][:, 0]) if grid in priors else [0.0]
            at_end = np.isclose(self.trace_[name][final], points[-1]) if len(points) > 1 else []
            if len(at_end) >= ENOUGH_RECORDS and np.mean(at_end) > 0.5:
                warnings.warn(
                    f"The {name} stays at the last point of its grid, {points[-1]:g}: the data ask "
                    f"for more clusters than that. Give {name} as a number above it, or infer the "
                    f"discount.",
                    ConvergenceWarning,
                    stacklevel=stacklevel,  # the caller of fit
                )

    def fit_predict(self, X, y=None, **fit_params):
        """Fit and return `labels_`.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            As in `fit`.
        y : None
            Not used.
        **fit_params : dict
            Handed to `fit`.

        Returns
        -------
        labels : ndarray of shape (n_rows,), int64
            The point-estimate partition.
        """
        return self.fit(X, **fit_params).labels_

    @property
    def n_iter_(self):
        """Sweeps run, rounded up: scikit-learn's name for `n_sweeps_`."""
        check_is_fitted(self, "n_sweeps_")
        return int(np.ceil(self.n_sweeps_))

    def __sklearn_is_fitted__(self):
        return hasattr(self, "draws_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.sparse = (
            isinstance(self.families, str) and self.families == CountRowCodec.family
        )
        return tags


def chain_task(n_tasks, n_at_a_time, limit, number, *arguments, stop):
    """A chain with its share of what is left of the time."""
    seconds = limit.share(number, n_tasks, n_at_a_time)
    return run_chain(*arguments, stop=stop, max_time=seconds)


def _final(trace, n_rows):
    """Which records are of the final full-data stage, burn-in left out: (n_chains, n_records)."""
    full = trace["n_assigned"] == n_rows
    return full & (trace["burn_in"] == 0) if "burn_in" in trace else full


def _padded(traces):
    """Chains side by side, padded with nan: dict of arrays (n_chains, n_records)."""
    longest = max(len(trace["sweeps"]) for trace in traces)
    return {
        name: np.array([np.r_[t[name], np.full(longest - len(t[name]), np.nan)] for t in traces])
        for name in traces[0]
    }


def _point_arrays(draw, labels, table, method):
    """A draw with another partition of the training rows; of "map", the best one near it."""
    subsample = Subsample(table.n_rows)
    subsample.fill()
    mixture = Mixture.from_arrays(draw.arrays, table, subsample)
    rows = np.arange(table.n_rows)
    mixture.replace(rows, labels)
    if method == "map" and iterated_conditional_modes(mixture):
        mixture.replace(rows, relabel(mixture.get_labels()))
    return mixture.to_arrays() | {"log_joint": np.array(mixture.log_joint())}


def sketch(model, seed):
    """Strata from a quick look: cluster a few rows, then send every row to its cluster.

    Rows for which a new cluster is more probable than any of those found are a stratum of their
    own: that is where what is rare lies.

    Returns
    -------
    strata : ndarray of shape (n_rows,), int64
    """
    table = model.table
    generator = np.random.Generator(np.random.PCG64(seed))
    order = np.argsort(generator.random(table.n_rows), kind="stable")
    rows = np.sort(order[:SKETCH_ROWS])
    small = table.take(rows)
    single = {"view_grid": None, "moves": ("gibbs", "split_merge")}
    result = run_chain(model._replace(table=small, **single), SequentialGibbs(n_sweeps=3), seed)
    mixture = Mixture.from_arrays(result["draws"][0], table.empty_like())
    strata = np.empty(table.n_rows, dtype=np.int64)
    for start in range(0, table.n_rows, 8192):
        stop = min(start + 8192, table.n_rows)
        scores, log_weights = mixture.score_rows(table, start, stop)
        strata[start:stop] = (scores + log_weights).argmax(axis=1)
    return np.unique(strata, return_inverse=True)[1]
