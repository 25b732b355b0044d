"""The base of what runs chains: their parameters, their run, and whether they agree."""

# SPDX-License-Identifier: BSD-3-Clause

import functools
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, Self

import joblib
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval
from threadpoolctl import threadpool_limits

from .._native._doc_link import DocLink
from .._native._warning import warn
from ..chains import Chain, run_chain, side_by_side
from ..parallel import OfFit, Progress, StopFlag, n_workers, run_tasks, seed_below, spawn_seeds
from ._callbacks import CallbackSupportMixin, Round, begin_fit, end_fit
from ._grid_ends import complaints_of_grid_ends
from ._verdict import disagreement, final_stage, judged

ENOUGH_RECORDS = 20  # fewer records of a concentration do not show that it stays at an end
# Parameters of the law that chains draw from.
LAW = (
    "hyperparameters",
    "partition_prior",
    "concentration",
    "discount",
    "expected_clusters",
    "view_concentration",
    "view_discount",
    "expected_views",
)
INTERRUPTED = "The fit was interrupted: it keeps the last complete state of each chain."


class BaseChains(CallbackSupportMixin, DocLink, BaseEstimator):
    """Base of the estimators that run chains; see a subclass for parameters and attributes.

    A fit works within ``self._all_or_nothing()``, collects its attributes in a dictionary, and ends
    with ``return self._keep(fitted, complaints)``.
    """

    _parameter_constraints: dict = {
        "n_chains": [Interval(Integral, 1, None, closed="left")],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "thin": [Interval(Integral, 1, None, closed="left")],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state", np.random.Generator, np.random.SeedSequence],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
    }
    _advice = (
        "Give it more sweeps (a larger number as the schedule's n_sweeps, or warm_start), or look "
        "at `trace_`."
    )
    _called = ""  # before what a fit warns of: by what name its user knows the model, and a colon
    _asked = None  # the answers that its user asks for, by their names; None for all

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``schedule__max_time`` and the like are those of a schedule object.

        Parameters
        ----------
        **params : dict
            By name.

        Returns
        -------
        self : estimator

        Raises
        ------
        ValueError
            If there is no such parameter, or if `schedule` is a name or None, which have none.
        """
        schedule = params.get("schedule", self.schedule)
        nested = [name for name in params if name.startswith("schedule__")]
        if nested and not isinstance(schedule, BaseEstimator):
            raise ValueError(
                f"{nested[0]} is a parameter of a schedule object, but schedule={schedule!r} is "
                f"none: set schedule to an object of skanneal.schedules first."
            )
        return super().set_params(**params)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "draws_")

    @contextmanager
    def _all_or_nothing(self, n_rounds=1):
        """Give the estimator the attributes it had back if the block fails or is interrupted.

        BLAS has one thread within: its matrices are small, and threads that wait for the next one
        keep cores from other chains.

        n_rounds : how often the chains are run, None where the run itself decides.
        """
        begin_fit(self, n_rounds)
        before = dict(vars(self))
        try:
            with threadpool_limits(1, user_api="blas"):
                yield
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    def _keep(self, fitted, complaints=()):
        """Set the attributes of a complete fit in place of an earlier fit's, and warn of what is
        wrong with it.
        """
        for name in vars(self).get("_kept", ()):
            vars(self).pop(name, None)
        vars(self).update(fitted, _kept=tuple(fitted))
        end_fit(self)
        for complaint in complaints:
            warn(self._called + complaint, ConvergenceWarning)
        return self

    # ---- the run --------------------------------------------------------------------------------

    def _seed(self, purpose):
        """A fit's seed for a purpose of `OfFit`; see `_seeds` for OfFit.START."""
        return seed_below(self.random_state, self.n_chains + purpose)

    def _seeds(self):
        """Return the chains' seeds and that of their start: at once, since a `random_state` that is
        a generator gives others at every call."""
        *of_chains, of_start = spawn_seeds(self.random_state, self.n_chains + OfFit.START + 1)
        return of_chains, of_start

    @property
    def _goes_on(self):
        """Whether this fit begins where the one before ended."""
        return self.warm_start and hasattr(self, "_states")

    def _law_of(self, of_data):
        """What must be the same if a fit goes on from an earlier one, as hashes by what a user
        calls it: what is known of the data, and the parameters of the law that chains draw from."""
        given = self.get_params(deep=False)
        of_parameters = {name: given[name] for name in LAW if name in given}
        return {name: joblib.hash(value) for name, value in (of_data | of_parameters).items()}

    def _first_states(self, law):
        """The state that each chain begins with, None for the schedule's own start; `law` is that
        of `_law_of`."""
        if not self._goes_on:
            return [None] * self.n_chains
        if len(self._states) != self.n_chains:
            raise ValueError(
                f"warm_start: the earlier fit had {len(self._states)} chains, n_chains is now "
                f"{self.n_chains}"
            )
        changed = [name for name, value in law.items() if self._law.get(name) != value]
        if changed:
            raise ValueError(
                f"warm_start goes on with the same rows and the same law: {' and '.join(changed)} "
                f"must be as in the earlier fit. Set warm_start=False for another fit."
            )
        return self._states

    def _run_chains(self, limit, plans, schedules, seeds, states, n_draws, thin):
        """(Results of the chains, without those that were left out by an interrupt, or because the
        time was over before they began; interrupted).

        A chain that goes on from an earlier fit is never left out: one that did not begin, or that
        was lost with its process, is where it was. If that is so of all, there are no results.
        """
        limit = limit.for_chains  # one for all, which learns what a chain needs
        with Round(self, len(plans)) as chains:
            tasks = [
                (limit, number, *own, n_draws, thin, state, chains.chain(number))
                for number, (*own, state) in enumerate(zip(plans, schedules, seeds, states))
            ]
            task = functools.partial(chain_task, len(tasks), n_workers(self.n_jobs))
            results, interrupted = run_tasks(task, tasks, n_jobs=self.n_jobs)
        interrupted |= chains.stops or any(r is not None and not r["complete"] for r in results)
        if any(result is not None for result in results):
            stop = StopFlag()
            stop.set()
            for i, state in enumerate(states):
                if results[i] is None and state is not None:
                    results[i] = task(*tasks[i][:-1], Progress(), stop=stop)
        return [result for result in results if result is not None], interrupted

    # ---- what the chains leave behind -----------------------------------------------------------

    def _of_chains(self, draws, traces, states, n_rows, verdict=None):
        """Fitted attributes; `verdict` is what `judged` says of the chains, unless asked before."""
        if verdict is None:
            verdict = judged(traces, [[draw.arrays for draw in chain] for chain in draws], n_rows)
        trace = side_by_side(traces)
        return {
            "draws_": draws,
            "trace_": trace,
            "n_sweeps_": float(np.nanmax(trace["sweeps"])),
            **verdict,
            "_states": states,
        }

    def _complaints(self, fitted, n_rows, **grids):
        """What to say of chains that disagree or that stay at the end of a grid.

        grids : by the name of the parameter, the PriorGrid of (value, discount) pairs.
        """
        trace = fitted["trace_"]
        complaints = disagreement(fitted["convergence_"], self._advice, self._asked)
        for name, grid in grids.items():
            points = np.unique(grid.points[:, 0])
            values = trace[name][final_stage(trace, n_rows)] if len(points) > 1 else np.empty(0)
            at_end = np.isclose(values, points[-1])
            if len(at_end) >= ENOUGH_RECORDS and np.mean(at_end) > 0.5:
                complaints.append(
                    f"The {name} stays at the last point of its grid, {points[-1]:g}: the data ask "
                    f"for more clusters than that. Give {name} as a number above it, or infer the "
                    f"discount."
                )
        return complaints + complaints_of_grid_ends(fitted)


def check_states(states, plan):
    """Raise ValueError for the first state of an earlier fit that no chain of the plan can have."""
    for state in states:
        if state is not None:
            Chain.from_arrays(state, plan).recount()


def chain_task(n_tasks, n_at_a_time, limit, number, *arguments, stop):
    """A chain with its share of what is left of the time; None if that is too little for another
    one. One that is to stop at once takes none."""
    if number and limit.is_over and not stop.is_set():
        return None
    seconds, began = limit.share(number, n_tasks, n_at_a_time), limit.taken
    result = run_chain(*arguments, stop=stop, max_time=seconds)
    if not result["in_time"]:  # it did only what every chain must do
        limit.needed = max(limit.needed, limit.taken - began)
    return result | {"number": number}
