"""Schedules: how the subsample, or the energy, changes while a chain runs.

Every schedule is a hyperparameter object and reduces to a path, the subsample's size after each
assignment of a row to a cluster. Work is counted in sweeps, assignments divided by the number of
rows, so that schedules with equal ``n_sweeps`` do equal work. See Obermeyer, Glidden and Jonas
(2014), "Scaling nonparametric Bayesian inference via subsample-annealing".
"""

# SPDX-License-Identifier: BSD-3-Clause

from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import Interval, StrOptions

from ._accelerated import AcceleratedSchedule
from ._curves import as_curve, as_positions, curve_knots, exact_knots
from ._ladders import BaseLadder, CustomLadder, GeometricLadder
from ._pacer import Path, PathPacer, Segment, size_at

__all__ = [
    "SCHEDULES",
    "AcceleratedSchedule",
    "AcceleratingAnneal",
    "BaseLadder",
    "BaseSchedule",
    "CustomAnneal",
    "CustomLadder",
    "EnergyAnneal",
    "GeometricLadder",
    "LinearAnneal",
    "Pacer",
    "Path",
    "PriorGibbs",
    "Segment",
    "SequentialGibbs",
    "resolve_schedule",
    "size_at",
]

SELECTIONS = ("random", "window", "stratified")


class Pacer(PathPacer):
    """Hand out the segments of a schedule one after another.

    Made by ``schedule.pacer(n_rows)``. The caller asks for a segment, runs it, and asks again::

        while (segment := pacer.next(seconds)) is not None:
            ...

    Parameters
    ----------
    path : Path
        What to follow. With `max_time` it is the shape to stretch or compress.
    max_time : float or None, default=None
        Seconds from the chain's beginning in which the path is to be finished.
    further_sweeps : float, default=0.0
        Full-data sweeps the caller will add with `extend`; `max_time` leaves room for them.
    selection : {"random", "window", "stratified"}, default="random"
        Handed on to the schedule that `realised` returns.

    Attributes
    ----------
    assignments : int
        Assignments handed out so far.
    size : int
        Rows in the subsample after them.
    n_rows : int
        Rows of the data.

    Examples
    --------
    >>> from skanneal.schedules import SequentialGibbs
    >>> pacer = SequentialGibbs(n_sweeps=2).pacer(4)
    >>> while (segment := pacer.next()) is not None:
    ...     print(segment.start, segment.stop, pacer.size)
    0 1 1
    1 2 2
    2 4 4
    4 8 4
    """

    def __init__(self, path, *, max_time=None, further_sweeps=0.0, selection="random"):
        super().__init__(path, max_time=max_time, further_sweeps=further_sweeps)
        self.selection = selection

    def realised(self):
        """Return the schedule that gives the same segments again, without a time limit.

        Sweeps added by `extend` are not part of it: a fit with the returned schedule adds them
        again.

        Returns
        -------
        schedule : CustomAnneal
            Its knots are numbers of assignments and sizes: it fits data of as many rows only.
        """
        path = self.realised_path()
        return CustomAnneal(
            path.sizes,
            at=path.assignments,
            n_sweeps=None,
            energy=None if np.all(path.betas == 1.0) else path.betas,
            start=path.start,
            selection=self.selection,
            burn_in=path.burn_in,
            skipped=path.skipped or None,
        )

    def to_arrays(self):
        """Return the pacer's state as a flat dict of arrays (see `from_arrays`)."""
        return super().to_arrays() | {"selection": np.array(self.selection)}

    @classmethod
    def from_arrays(cls, arrays):
        """Rebuild a pacer; given the same seconds it goes on as the stored one would have.

        Parameters
        ----------
        arrays : mapping of str to ndarray
            What `to_arrays` returned.

        Returns
        -------
        pacer : Pacer
            Where the stored one was.
        """
        pacer = super().from_arrays(arrays)
        pacer.selection = str(arrays["selection"])
        return pacer


class BaseSchedule(BaseEstimator):
    """Base of the schedules: a subclass stores its parameters and writes `_knots`.

    `_knots(n_rows)` returns (assignment, size, beta) triples from 0 assignments to all rows;
    `_start` says whether the rows are labelled from the prior first, `_burn_in` in how many
    assignments moves may adapt (None: half), `_skipped` after which nothing but the churn is run.
    """

    _parameter_constraints: dict = {
        "n_sweeps": [Interval(Real, 1, None, closed="left")],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "selection": [StrOptions(set(SELECTIONS))],
    }
    _start = "empty"
    _burn_in = None
    _skipped = ()

    def path(self, n_rows):
        """Return subsample size and energy exponent by assignment.

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

    def pacer(self, n_rows, max_time=None, *, further_sweeps=0.0):
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
        return Pacer(
            path, max_time=max_time, further_sweeps=further_sweeps, selection=self.selection
        )

    def _validate_params(self):
        """Check the parameters one by one, then together; errors name the parameter."""
        super()._validate_params()
        self._check_together()

    def _check_together(self):
        """Raise a ValueError where parameters do not fit each other."""

    def _check_final_sweeps(self):
        """Raise a ValueError unless a sweep is left before the final ones."""
        if self.n_sweeps is not None and self.n_sweeps - self.final_sweeps < 1:
            raise ValueError(
                f"final_sweeps={self.final_sweeps!r} of {type(self).__name__} leaves less than "
                f"one of n_sweeps={self.n_sweeps!r} to bring all rows in."
            )

    def _stages(self, n_rows):
        """Return the assignments before the final sweeps, and all of them."""
        before = max(n_rows, round((self.n_sweeps - self.final_sweeps) * n_rows))
        return before, max(before, round(self.n_sweeps * n_rows))


class PriorGibbs(BaseSchedule):
    """Label all rows from the partition prior, then run full-data sweeps.

    Parameters
    ----------
    n_sweeps : float, default=20
        Assignments divided by rows. Labelling from the prior is not counted.
    max_time : float or None, default=None
        Seconds to stretch or compress the schedule to.
    selection : {"random", "window", "stratified"}, default="random"
        The order of the rows within a sweep: drawn anew, fixed, or balanced over strata.

    Examples
    --------
    >>> from skanneal.schedules import PriorGibbs
    >>> PriorGibbs(n_sweeps=5).path(100).assignments.tolist()
    [0, 500]
    """

    _start = "prior"

    def __init__(self, *, n_sweeps=20, max_time=None, selection="random"):
        self.n_sweeps = n_sweeps
        self.max_time = max_time
        self.selection = selection

    def _knots(self, n_rows):
        return [(0, n_rows, 1.0), (max(1, round(self.n_sweeps * n_rows)), n_rows, 1.0)]


class SequentialGibbs(BaseSchedule):
    """Assign the rows one after another, then run full-data sweeps.

    Parameters
    ----------
    n_sweeps : float, default=20
        Assignments divided by rows; the sequential pass is the first sweep.
    max_time : float or None, default=None
        Seconds to stretch or compress the full-data sweeps to. The sequential pass is always run.
    selection : {"random", "window", "stratified"}, default="random"
        Which row enters next, and which is reassigned.

    Examples
    --------
    >>> from skanneal.schedules import SequentialGibbs
    >>> path = SequentialGibbs(n_sweeps=5).path(100)
    >>> path.assignments.tolist(), path.sizes.tolist()
    ([0, 100, 500], [0, 100, 100])
    """

    def __init__(self, *, n_sweeps=20, max_time=None, selection="random"):
        self.n_sweeps = n_sweeps
        self.max_time = max_time
        self.selection = selection

    def _knots(self, n_rows):
        total = max(n_rows, round(self.n_sweeps * n_rows))
        return [(0, 0, 1.0), (n_rows, n_rows, 1.0), (total, n_rows, 1.0)]


class LinearAnneal(BaseSchedule):
    """Let the subsample grow in proportion to the assignments, then run full-data sweeps.

    For each row added, ``n_sweeps - final_sweeps - 1`` rows are removed and others assigned.

    Parameters
    ----------
    n_sweeps : float, default=20
        Assignments divided by rows, final sweeps included.
    final_sweeps : float, default=2
        Full-data sweeps at the end; at most ``n_sweeps - 1``.
    max_time : float or None, default=None
        Seconds to stretch or compress the schedule to.
    selection : {"random", "window", "stratified"}, default="random"
        Which rows leave and enter the subsample.

    Examples
    --------
    >>> from skanneal.schedules import LinearAnneal, size_at
    >>> pacer = LinearAnneal(n_sweeps=3, final_sweeps=1).pacer(4)
    >>> while (segment := pacer.next()) is not None:
    ...     sizes = size_at(segment.knots, range(segment.start + 1, segment.stop + 1))
    ...     print(sizes.tolist())
    [1]
    [1]
    [2]
    [2, 3]
    [3, 4, 4]
    [4, 4, 4, 4]
    """

    _parameter_constraints: dict = {
        **BaseSchedule._parameter_constraints,
        "final_sweeps": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(self, *, n_sweeps=20, final_sweeps=2, max_time=None, selection="random"):
        self.n_sweeps = n_sweeps
        self.final_sweeps = final_sweeps
        self.max_time = max_time
        self.selection = selection

    def _check_together(self):
        self._check_final_sweeps()

    def _knots(self, n_rows):
        annealed, total = self._stages(n_rows)
        return [(0, 0, 1.0), (annealed, n_rows, 1.0), (total, n_rows, 1.0)]


class AcceleratingAnneal(BaseSchedule):
    """Churn much while the subsample is small and less and less as it grows.

    A subsample of n rows gets `passes` remove/assign pairs per added row up to `small_size` rows;
    beyond, ``1 + pairs`` falls along a straight line in log-log scale to 1 at `big_size`. This is
    the schedule of Loom (Obermeyer, Glidden and Jonas, 2014).

    Parameters
    ----------
    n_sweeps : float or None, default=None
        Assignments divided by rows, final sweeps included. None: as many as the curve gives, which
        is ``1 + passes + final_sweeps`` for up to `small_size` rows; a number rescales the pairs.
    passes : float, default=500
        Remove/assign pairs per added row while the subsample is small.
    small_size : float, default=4e3
        Rows up to which `passes` holds.
    big_size : float, default=1e9
        Rows from which no pairs are made.
    final_sweeps : float, default=2
        Full-data sweeps at the end; at most ``n_sweeps - 1``.
    max_time : float or None, default=None
        Seconds to stretch or compress the schedule to.
    selection : {"random", "window", "stratified"}, default="random"
        Which rows leave and enter the subsample.

    Examples
    --------
    >>> from skanneal.schedules import AcceleratingAnneal
    >>> path = AcceleratingAnneal(final_sweeps=0).path(100_000)
    >>> round(path.assignments[-1] / 100_000 - 1)
    179
    """

    _parameter_constraints: dict = {
        **LinearAnneal._parameter_constraints,
        "n_sweeps": [Interval(Real, 1, None, closed="left"), None],
        "passes": [Interval(Real, 0, None, closed="neither")],
        "small_size": [Interval(Real, 0, None, closed="neither")],
        "big_size": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        *,
        n_sweeps=None,
        passes=500,
        small_size=4e3,
        big_size=1e9,
        final_sweeps=2,
        max_time=None,
        selection="random",
    ):
        self.n_sweeps = n_sweeps
        self.passes = passes
        self.small_size = small_size
        self.big_size = big_size
        self.final_sweeps = final_sweeps
        self.max_time = max_time
        self.selection = selection

    def _check_together(self):
        self._check_final_sweeps()
        if self.big_size <= self.small_size:
            raise ValueError(
                f"big_size={self.big_size!r} of AcceleratingAnneal must be larger than "
                f"small_size={self.small_size!r}."
            )

    def _pairs(self, sizes):
        """Return the remove/assign pairs made while the subsample grows from 0 to each size."""
        small, big = float(self.small_size), float(self.big_size)
        power = np.log1p(self.passes) / np.log(big / small)
        # Integral of (1 + passes) (n / small)^-power - 1 from small to n, in u = log(n / small).
        u = np.log(np.clip(sizes, small, big) / small)
        grown = u if power == 1.0 else np.expm1((1.0 - power) * u) / (1.0 - power)
        falling = (1.0 + self.passes) * small * grown - small * np.expm1(u)
        return self.passes * np.minimum(sizes, small) + falling

    def _knots(self, n_rows):
        first = min(n_rows, max(1, int(self.small_size)))
        # Steps of about 4 % of the size: the chords lie within 0.1 % of the curve.
        n_steps = int(np.ceil(np.log(n_rows / first) / 0.04)) + 1
        grid = np.unique(np.rint(np.geomspace(first, n_rows, n_steps)).astype(np.int64))
        sizes = np.concatenate([[0], grid[:-1], [n_rows]]) if len(grid) > 1 else [0, n_rows]
        pairs = self._pairs(np.asarray(sizes, dtype=float))
        if self.n_sweeps is not None:
            pairs *= (self.n_sweeps - self.final_sweeps - 1) * n_rows / pairs[-1]
        assignments = np.asarray(sizes, dtype=np.int64) + np.rint(pairs).astype(np.int64)
        knots = [(int(a), int(n), 1.0) for a, n in zip(assignments, sizes)]
        final = round(self.final_sweeps * n_rows)
        if self.n_sweeps is not None:
            final = round(self.n_sweeps * n_rows) - knots[-1][0]
        return [*knots, (knots[-1][0] + final, n_rows, 1.0)]


class EnergyAnneal(BaseSchedule):
    """Keep all rows and let the exponent of the likelihood rise to 1: simulated annealing proper.

    The exponent rises in proportion to the assignments, from `beta_min` to 1 before the final
    sweeps.

    Parameters
    ----------
    n_sweeps : float, default=20
        Assignments divided by rows, final sweeps and sequential pass included.
    beta_min : float, default=0.1
        Exponent at the beginning, in [0, 1].
    start : {"prior", "sequential"}, default="prior"
        Label all rows from the partition prior, or assign them one after another at `beta_min`;
        that pass is the first sweep.
    final_sweeps : float, default=2
        Sweeps at exponent 1 at the end; at most ``n_sweeps - 1``.
    max_time : float or None, default=None
        Seconds to stretch or compress the schedule to.
    selection : {"random", "window", "stratified"}, default="random"
        The order of the rows within a sweep: drawn anew, fixed, or balanced over strata.

    Examples
    --------
    >>> from skanneal.schedules import EnergyAnneal
    >>> path = EnergyAnneal(n_sweeps=10, beta_min=0.2).path(50)
    >>> path.assignments.tolist(), path.betas.tolist()
    ([0, 400, 500], [0.2, 1.0, 1.0])
    """

    _parameter_constraints: dict = {
        **LinearAnneal._parameter_constraints,
        "beta_min": [Interval(Real, 0, 1, closed="both")],
        "start": [StrOptions({"prior", "sequential"})],
    }

    def __init__(
        self,
        *,
        n_sweeps=20,
        beta_min=0.1,
        start="prior",
        final_sweeps=2,
        max_time=None,
        selection="random",
    ):
        self.n_sweeps = n_sweeps
        self.beta_min = beta_min
        self.start = start
        self.final_sweeps = final_sweeps
        self.max_time = max_time
        self.selection = selection

    @property
    def _start(self):
        return "prior" if self.start == "prior" else "empty"

    def _check_together(self):
        self._check_final_sweeps()

    def _knots(self, n_rows):
        annealed, total = self._stages(n_rows)
        beta = float(self.beta_min)
        rising = [(annealed, n_rows, 1.0), (total, n_rows, 1.0)]
        if self.start == "prior":
            return [(0, n_rows, beta), *rising]
        if annealed == n_rows:
            return [(0, 0, beta), *rising]
        return [(0, 0, beta), (n_rows, n_rows, beta), *rising]


class CustomAnneal(BaseSchedule):
    """Follow a curve of one's own for the subsample's size and, if wanted, the energy.

    Parameters
    ----------
    beta : callable or array-like of shape (n_points,)
        The subsample's share of the rows as a function of the share of the assignments: a callable
        that rises from [0, 1) to 1 on [0, 1], or an array of floats in [0, 1] that ends at 1. An
        array of integers holds sizes and ends at the number of rows. An array may also fall. The
        subsample grows by at most one row per assignment: a steeper curve is followed as closely
        as that allows.
    at : array-like of shape (n_points,) or None, default=None
        Where the values of `beta` hold: floats from 0 to 1 are shares of the assignments, integers
        are numbers of assignments and need integers in `beta`; None is equally spaced. Between the
        points the size changes linearly.
    n_sweeps : float or None, default=None
        Assignments divided by rows, final sweeps included. None: 20, or with integers in `at` as
        many as they say.
    energy : callable, array-like of shape (n_points,) or None, default=None
        Exponent of the likelihood, given as `beta` is given, ending at 1; None is 1 throughout.
    start : {"empty", "prior"}, default="empty"
        Begin without rows, or with all rows labelled from the partition prior.
    final_sweeps : float, default=0
        Full-data sweeps after the curve; at most ``n_sweeps - 1``.
    max_time : float or None, default=None
        Seconds to stretch or compress the schedule to.
    selection : {"random", "window", "stratified"}, default="random"
        Which rows leave and enter the subsample.
    burn_in : int or None, default=None
        Assignments in which moves may adapt, or do more than leaves the posterior as it is; None is
        half of them.
    skipped : array-like of int or None, default=None
        Numbers of assignments after which the moves that follow a churn are left out. What became
        of a schedule under a time limit has some where the time was too short for them.

    Examples
    --------
    >>> from skanneal.schedules import CustomAnneal
    >>> path = CustomAnneal([0, 5, 20, 20], at=[0, 50, 80, 100]).path(20)
    >>> path.sizes.tolist()
    [0, 5, 20, 20]
    >>> path = CustomAnneal(lambda t: t**2, n_sweeps=10).path(100)
    >>> int(path.sizes[path.assignments.searchsorted(500)])
    25
    """

    _parameter_constraints: dict = {
        **LinearAnneal._parameter_constraints,
        "beta": [callable, "array-like"],
        "at": ["array-like", None],
        "n_sweeps": [Interval(Real, 1, None, closed="left"), None],
        "energy": [callable, "array-like", None],
        "start": [StrOptions({"empty", "prior"})],
        "burn_in": [Interval(Integral, 0, None, closed="left"), None],
        "skipped": ["array-like", None],
    }

    def __init__(
        self,
        beta,
        *,
        at=None,
        n_sweeps=None,
        energy=None,
        start="empty",
        final_sweeps=0,
        max_time=None,
        selection="random",
        burn_in=None,
        skipped=None,
    ):
        self.beta = beta
        self.at = at
        self.n_sweeps = n_sweeps
        self.energy = energy
        self.start = start
        self.final_sweeps = final_sweeps
        self.max_time = max_time
        self.selection = selection
        self.burn_in = burn_in
        self.skipped = skipped

    @property
    def _start(self):
        return self.start

    @property
    def _burn_in(self):
        return self.burn_in

    @property
    def _skipped(self):
        return () if self.skipped is None else tuple(int(stop) for stop in self.skipped)

    def _curves(self):
        """Return `beta`, `energy` and `at`, checked and as arrays where they are not callables."""
        sizes = as_curve("beta", self.beta, allow_sizes=True)
        energy = None if self.energy is None else as_curve("energy", self.energy)
        return sizes, energy, as_positions(self.at)

    def _check_together(self):
        sizes, energy, at = self._curves()
        skipped = np.asarray(() if self.skipped is None else self.skipped)
        if skipped.ndim != 1 or (len(skipped) and skipped.dtype.kind not in "iu"):
            raise ValueError("skipped must be a one-dimensional array of integers (assignments).")
        if self._n_sweeps(at) is not None and self._n_sweeps(at) - self.final_sweeps < 1:
            raise ValueError(
                f"final_sweeps={self.final_sweeps!r} of CustomAnneal leaves less than one of "
                f"n_sweeps={self._n_sweeps(at)!r} to bring all rows in."
            )
        if at is None:
            return
        for name, curve in (("beta", sizes), ("energy", energy)):
            if curve is not None and not callable(curve) and len(curve) != len(at):
                raise ValueError(f"at has {len(at)} points and {name} has {len(curve)}.")
        if at.dtype.kind == "i":
            if callable(sizes) or sizes.dtype.kind != "i":
                raise ValueError(
                    "at holds integers (assignments): beta must hold integers (sizes)."
                )
            if callable(energy):
                raise ValueError("at holds integers (assignments): energy must be an array.")

    def _n_sweeps(self, at):
        """Return `n_sweeps`, or 20 where neither it nor `at` says how many."""
        if self.n_sweeps is None and (at is None or at.dtype.kind == "f"):
            return 20
        return self.n_sweeps

    def _knots(self, n_rows):
        sizes, energy, at = self._curves()
        n_sweeps, final = self._n_sweeps(at), round(self.final_sweeps * n_rows)
        if at is not None and at.dtype.kind == "i":
            knots = exact_knots(at, sizes, energy, n_rows, self.start)
            total = knots[-1][0] + final
            if n_sweeps is not None and round(n_sweeps * n_rows) != total:
                raise ValueError(
                    f"n_sweeps={n_sweeps!r} of CustomAnneal is not the {total / n_rows:g} sweeps "
                    f"that at and final_sweeps give."
                )
        else:
            total = max(n_rows, round(n_sweeps * n_rows))
            annealed = max(n_rows, total - final)
            knots = curve_knots(sizes, energy, at, annealed, n_rows, self.start)
        return [*knots, (total, n_rows, 1.0)]


# One instance per name an estimator's `schedule` may be; "anneal" is the estimators' default.
SCHEDULES = {
    "anneal": AcceleratingAnneal(passes=60, small_size=200, big_size=1e7),
    "prior_gibbs": PriorGibbs(),
    "sequential_gibbs": SequentialGibbs(),
    "linear_anneal": LinearAnneal(),
    "accelerating_anneal": AcceleratingAnneal(),
    "energy_anneal": EnergyAnneal(),
}


def resolve_schedule(schedule):
    """Return a validated copy of a schedule given by name or as an object.

    Parameters
    ----------
    schedule : str or BaseSchedule
        A name in `SCHEDULES`, or a schedule.

    Returns
    -------
    schedule : BaseSchedule
        The caller's own, free to be changed.

    Examples
    --------
    >>> from skanneal.schedules import resolve_schedule
    >>> resolve_schedule("prior_gibbs")
    PriorGibbs()
    """
    if isinstance(schedule, str) and schedule in SCHEDULES:
        schedule = SCHEDULES[schedule]
    if not isinstance(schedule, BaseSchedule):
        names = ", ".join(repr(name) for name in SCHEDULES)
        raise ValueError(f"schedule must be a schedule object or one of {names}, not {schedule!r}.")
    schedule = clone(schedule)
    schedule._validate_params()
    return schedule
