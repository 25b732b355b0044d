"""The schedule of Loom: much churn while the subsample is small, less and less as it grows."""

# SPDX-License-Identifier: BSD-3-Clause

from numbers import Real

import numpy as np
from sklearn.utils._param_validation import Interval

from ._base import BaseAnneal


class AcceleratingAnneal(BaseAnneal):
    """Exchange many rows while the subsample is small, and fewer and fewer as it grows.

    Up to `small_size` rows, the subsample gets `passes` remove/assign pairs per added row. Beyond
    that, ``1 + pairs`` falls along a straight line on a log-log scale, to 1 at `big_size`. This is
    the schedule of Loom (Obermeyer, Glidden and Jonas, 2014).

    Parameters
    ----------
    n_sweeps : float, "auto" or None, default=None
        Assignments divided by rows, final sweeps included. None: as many as the curve gives, which
        is ``1 + passes + final_sweeps`` for up to `small_size` rows. A number rescales the pairs.
        "auto": as None, then as many full-data sweeps as the chains need to agree.
    passes : float, default=500
        Remove/assign pairs per added row while the subsample is small.
    small_size : float, default=4e3
        Number of rows up to which `passes` holds.
    big_size : float, default=1e9
        Number of rows from which on no pairs are made.
    final_sweeps : float, default=2
        Full-data sweeps at the end; at most ``n_sweeps - 1``.
    max_time : float or None, default=None
        Seconds to which the schedule is stretched or compressed.
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
        **BaseAnneal._parameter_constraints,
        "n_sweeps": [*BaseAnneal._parameter_constraints["n_sweeps"], None],
        "passes": [Interval(Real, 0, None, closed="neither")],
        "small_size": [Interval(Real, 0, None, closed="neither")],
        "big_size": [Interval(Real, 0, None, closed="neither")],
    }

    _way = None
    # "anneal" is the estimators' default.
    _names = {
        "anneal": {"n_sweeps": "auto", "passes": 60, "small_size": 200, "big_size": 1e7},
        "accelerating_anneal": {},
    }

    def __init__(
        self,
        *,
        n_sweeps: float | str | None = None,
        passes: float = 500,
        small_size: float = 4e3,
        big_size: float = 1e9,
        final_sweeps: float = 2,
        max_time: float | None = None,
        selection: str = "random",
    ) -> None:
        self.n_sweeps = n_sweeps
        self.passes = passes
        self.small_size = small_size
        self.big_size = big_size
        self.final_sweeps = final_sweeps
        self.max_time = max_time
        self.selection = selection

    def _check_together(self):
        super()._check_together()
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
        pairs, n_sweeps = self._pairs(np.asarray(sizes, dtype=float)), self._length()
        if n_sweeps is not None:
            pairs *= (n_sweeps - self.final_sweeps - 1) * n_rows / pairs[-1]
        assignments = np.asarray(sizes, dtype=np.int64) + np.rint(pairs).astype(np.int64)
        knots = [(int(a), int(n), 1.0) for a, n in zip(assignments, sizes)]
        final = round(self.final_sweeps * n_rows)
        if n_sweeps is not None:
            final = round(n_sweeps * n_rows) - knots[-1][0]
        return [*knots, (knots[-1][0] + final, n_rows, 1.0)]
