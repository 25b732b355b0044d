"""A curve of the user's own, or the path that another schedule has taken."""

# SPDX-License-Identifier: BSD-3-Clause

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from ._base import BaseAnneal
from ._curves import as_curve, as_positions, curve_knots, exact_knots


class CustomAnneal(BaseAnneal):
    """Follow your own curve for the size of the subsample and, optionally, for the exponent.

    It is followed to the letter, so that a fit with a time limit can be repeated by the schedule
    that it stores: in `CrossCatPY` chains have no rivals, and their views are not mended.

    Parameters
    ----------
    size : callable or array-like of shape (n_points,)
        The subsample's share of the rows as a function of the share of the assignments: a callable
        on [0, 1] that rises from a value in [0, 1) to 1, or an array of floats in [0, 1] that ends
        at 1. An array of integers holds sizes and ends at the number of rows. An array may also
        fall. The subsample grows by at most one row per assignment; a steeper curve is followed as
        closely as this allows.
    at : array-like of shape (n_points,) or None, default=None
        Where the values of `size` hold. Floats from 0 to 1 are shares of the assignments; integers
        are numbers of assignments and need integers in `size`. None means equally spaced. Between
        the points the size changes linearly.
    n_sweeps : float, "auto" or None, default=None
        Assignments divided by rows, final sweeps included. None: 20 or, with integers in `at`, as
        many as these say. "auto": as None, then as many full-data sweeps as the chains need to
        agree.
    exponent : callable, array-like of shape (n_points,) or None, default=None
        Exponent of the likelihood, in the same form as `size`, ending at 1; None is 1 throughout.
    start : {"empty", "prior"}, default="empty"
        Begin without rows, or with all rows labelled from the partition prior.
    final_sweeps : float, default=0
        Full-data sweeps after the curve; at most ``n_sweeps - 1``.
    max_time : float or None, default=None
        Seconds to which the schedule is stretched or compressed.
    selection : {"random", "window", "stratified"}, default="random"
        Which rows leave and enter the subsample.
    burn_in : int or None, default=None
        Number of assignments during which moves may adapt, or may not leave the posterior
        invariant; None is half of them.
    skipped : array-like of int or None, default=None
        Numbers of assignments after which the other moves are left out. The schedule that a fit
        with a time limit stores has some where the time was too short for them.

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

    races = False
    _parameter_constraints: dict = {
        **BaseAnneal._parameter_constraints,
        "size": [callable, "array-like"],
        "at": ["array-like", None],
        "n_sweeps": [*BaseAnneal._parameter_constraints["n_sweeps"], None],
        "exponent": [callable, "array-like", None],
        "start": [StrOptions({"empty", "prior"})],
        "burn_in": [Interval(Integral, 0, None, closed="left"), None],
        "skipped": ["array-like", None],
    }

    def __init__(
        self,
        size: Any,
        *,
        at: ArrayLike | None = None,
        n_sweeps: float | str | None = None,
        exponent: Any = None,
        start: str = "empty",
        final_sweeps: float = 0,
        max_time: float | None = None,
        selection: str = "random",
        burn_in: Any = None,
        skipped: Any = None,
    ) -> None:
        self.size = size
        self.at = at
        self.n_sweeps = n_sweeps
        self.exponent = exponent
        self.start = start
        self.final_sweeps = final_sweeps
        self.max_time = max_time
        self.selection = selection
        self.burn_in = burn_in
        self.skipped = skipped

    @classmethod
    def from_path(cls, path: Any, *, selection: str = "random") -> Any:
        """Return the schedule that follows a path, without a time limit.

        With the path of ``pacer.realised()`` it gives that pacer's segments again; sweeps added by
        ``pacer.extend`` are not part of it.

        Parameters
        ----------
        path : Path
            The path to follow.
        selection : {"random", "window", "stratified"}, default="random"
            Which rows leave and enter the subsample.

        Returns
        -------
        schedule : CustomAnneal
            Its points are numbers of assignments and sizes, so it only fits data with the same
            number of rows.
        """
        return cls(
            path.sizes,
            at=path.assignments,
            exponent=None if np.all(path.betas == 1.0) else path.betas,
            start=path.start,
            selection=selection,
            burn_in=path.burn_in,
            skipped=path.skipped or None,
        )

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
        """Return `size`, `exponent` and `at`, checked, and as arrays unless they are callables."""
        sizes = as_curve("size", self.size, allow_sizes=True)
        exponents = None if self.exponent is None else as_curve("exponent", self.exponent)
        return sizes, exponents, as_positions(self.at)

    def _check_together(self):
        sizes, exponents, at = self._curves()
        skipped = np.asarray(() if self.skipped is None else self.skipped)
        if skipped.ndim != 1 or (len(skipped) and skipped.dtype.kind not in "iu"):
            raise ValueError("skipped must be a one-dimensional array of integers (assignments).")
        super()._check_together()
        if at is None:
            return
        for name, curve in (("size", sizes), ("exponent", exponents)):
            if curve is not None and not callable(curve) and len(curve) != len(at):
                raise ValueError(f"at has {len(at)} points and {name} has {len(curve)}.")
        if at.dtype.kind == "i":
            if callable(sizes) or sizes.dtype.kind != "i":
                raise ValueError("at holds integers (assignments): size must hold integers (rows).")
            if callable(exponents):
                raise ValueError("at holds integers (assignments): exponent must be an array.")

    def _length(self):
        """Return `n_sweeps`; where it is no number, None if `at` says how many, else 20."""
        if isinstance(self.n_sweeps, Real):
            return self.n_sweeps
        at = as_positions(self.at)
        return self._way if at is None or at.dtype.kind == "f" else None

    def _knots(self, n_rows):
        sizes, exponents, at = self._curves()
        n_sweeps, final = self._length(), round(self.final_sweeps * n_rows)
        if at is not None and at.dtype.kind == "i":
            knots = exact_knots(at, sizes, exponents, n_rows, self.start)
            total = knots[-1][0] + final
            if n_sweeps is not None and round(n_sweeps * n_rows) != total:
                raise ValueError(
                    f"n_sweeps={n_sweeps!r} of CustomAnneal is not the {total / n_rows:g} sweeps "
                    f"that at and final_sweeps give."
                )
        else:
            total = max(n_rows, round(n_sweeps * n_rows))
            annealed = max(n_rows, total - final)
            knots = curve_knots(sizes, exponents, at, annealed, n_rows, self.start)
        return [*knots, (total, n_rows, 1.0)]
