"""What every schedule is: a hyperparameter object that reduces to a path.

A path is the subsample's size after each assignment of a row to a cluster. Work is counted in
sweeps, assignments divided by the number of rows, so that schedules with equal ``n_sweeps`` do
equal work. See Obermeyer, Glidden and Jonas (2014), "Scaling nonparametric Bayesian inference via
subsample-annealing".
"""

# SPDX-License-Identifier: BSD-3-Clause

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import Interval, StrOptions

from .._native._doc_link import DocLink
from ._pacer import Pacer
from ._path import Path

SELECTIONS = ("random", "window", "stratified")


class BaseSchedule(DocLink, BaseEstimator):
    """Base of the schedules: a subclass stores its parameters and writes `_knots`.

    `_knots(n_rows)` returns (assignment, size, beta) triples from 0 assignments to all rows, for
    `_length()` sweeps; `_way` is that length where `n_sweeps` is "auto";
    `_start` says whether the rows are labelled from the prior first, `_burn_in` in how many
    assignments moves may adapt (None: half), `_skipped` after which nothing but the churn is run,
    `races` whether `CrossCatPY` may choose between starts and mend views on the way, `runner` what
    runs it: "chain", or "island" for many particles, which estimate the evidence.
    `_names` are the strings that an estimator's `schedule` may be, each with the parameters it
    stands for.
    """

    _parameter_constraints: dict = {
        "n_sweeps": [Interval(Real, 1, None, closed="left"), StrOptions({"auto"})],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "selection": [StrOptions(set(SELECTIONS))],
    }
    _names: dict = {}
    _way = 1.0
    _start = "empty"
    _burn_in = None
    _skipped = ()
    races = True
    runner = "chain"

    @property
    def is_auto(self) -> Any:
        """Whether the chains are to go on beyond the path, until they agree."""
        return isinstance(self.n_sweeps, str)

    def path(self, n_rows: Any) -> Any:
        """Return subsample size and energy exponent by assignment.

        With ``n_sweeps="auto"`` it is the schedule's own way to the full data.

        Parameters
        ----------
        n_rows : int
            Rows of the data, at least 1.

        Returns
        -------
        path : Path
            From 0 assignments to the schedule's last.
        """
        if not isinstance(n_rows, Integral) or n_rows < 1:
            raise ValueError(f"n_rows must be a positive integer, not {n_rows!r}.")
        self._validate_params()
        knots = self._knots(int(n_rows))
        # Stages without assignments leave two knots in one place: the first is the stage's start.
        kept = [knots[0]] + [b for a, b in zip(knots, knots[1:]) if b[0] > a[0]]
        assignments, sizes, betas = zip(*kept)
        return Path(
            np.array(assignments, dtype=np.int64),
            np.array(sizes, dtype=np.int64),
            np.array(betas, dtype=np.float64),
            self._start,
            self._burn_in,
            self._skipped,
        )

    def pacer(
        self, n_rows: Any, max_time: float | None = None, *, further_sweeps: Any = 0.0
    ) -> Any:
        """Return a pacer at the schedule's beginning.

        Parameters
        ----------
        n_rows : int
            Rows of the data, at least 1.
        max_time : float or None, default=None
            Seconds for the whole schedule, in place of the schedule's own `max_time`.
        further_sweeps : float, default=0.0
            Full-data sweeps that the caller will add with ``pacer.extend``; a time limit leaves
            room for them.

        Returns
        -------
        pacer : Pacer
            One chain's; every chain needs its own.
        """
        path = self.path(n_rows)
        max_time = self.max_time if max_time is None else max_time
        if max_time is not None and not (isinstance(max_time, Real) and 0 < max_time < np.inf):
            raise ValueError(f"max_time must be a positive number of seconds, not {max_time!r}.")
        if not isinstance(further_sweeps, Real) or not 0 <= further_sweeps < np.inf:
            raise ValueError(f"further_sweeps must be a number >= 0, not {further_sweeps!r}.")
        return Pacer(path, max_time=max_time, further_sweeps=further_sweeps)

    def validated(self) -> Any:
        """Return a copy whose parameters have been checked.

        Returns
        -------
        schedule : BaseSchedule
            The caller's own, free to be changed.
        """
        copy = clone(self)
        copy._validate_params()
        return copy

    def _validate_params(self):
        """Check the parameters one by one, then together; errors name the parameter."""
        super()._validate_params()
        self._check_together()

    def _check_together(self):
        """Raise a ValueError where parameters do not fit each other."""

    def _length(self):
        """Return the path's number of sweeps, or None where other parameters determine it."""
        return self._way if self.is_auto else self.n_sweeps


class BaseAnneal(BaseSchedule):
    """Base of the schedules that anneal and end with `final_sweeps` of all rows."""

    _way = 20.0

    _parameter_constraints: dict = {
        **BaseSchedule._parameter_constraints,
        "final_sweeps": [Interval(Real, 0, None, closed="left")],
    }

    def _check_together(self):
        """Raise a ValueError unless a sweep is left before the final ones."""
        n_sweeps = self._length()
        if n_sweeps is not None and n_sweeps - self.final_sweeps < 1:
            raise ValueError(
                f"final_sweeps={self.final_sweeps!r} of {type(self).__name__} leaves less than "
                f"one of n_sweeps={n_sweeps!r} to bring all rows in."
            )

    def _stages(self, n_rows):
        """Return the assignments before the final sweeps, and all of them."""
        n_sweeps = self._length()
        before = max(n_rows, round((n_sweeps - self.final_sweeps) * n_rows))
        return before, max(before, round(n_sweeps * n_rows))
