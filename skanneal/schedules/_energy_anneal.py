"""Simulated annealing proper: all rows, and a likelihood whose exponent rises to 1."""

# SPDX-License-Identifier: BSD-3-Clause

from numbers import Real

from sklearn.utils._param_validation import Interval, StrOptions

from ._base import BaseAnneal


class EnergyAnneal(BaseAnneal):
    """Keep all rows and let the exponent of the likelihood rise to 1 (simulated annealing).

    The exponent rises in proportion to the assignments, from `beta_min` to 1 before the final
    sweeps.

    Parameters
    ----------
    n_sweeps : float or "auto", default=20
        Assignments divided by rows, final sweeps and sequential pass included. "auto": 20, then
        as many full-data sweeps as the chains need to agree.
    beta_min : float, default=0.1
        Exponent at the beginning, in [0, 1].
    start : {"prior", "sequential"}, default="prior"
        "prior": all rows are labelled from the partition prior. "sequential": rows are assigned one
        after another at `beta_min`; this pass is the first sweep.
    final_sweeps : float, default=2
        Sweeps at exponent 1 at the end; at most ``n_sweeps - 1``.
    max_time : float or None, default=None
        Seconds to which the schedule is stretched or compressed.
    selection : {"random", "window", "stratified"}, default="random"
        The order of the rows within a sweep: drawn for each sweep, fixed, or balanced over strata.

    Examples
    --------
    >>> from skanneal.schedules import EnergyAnneal
    >>> path = EnergyAnneal(n_sweeps=10, beta_min=0.2).path(50)
    >>> path.assignments.tolist(), path.betas.tolist()
    ([0, 400, 500], [0.2, 1.0, 1.0])
    """

    _parameter_constraints: dict = {
        **BaseAnneal._parameter_constraints,
        "beta_min": [Interval(Real, 0, 1, closed="both")],
        "start": [StrOptions({"prior", "sequential"})],
    }

    _names = {"energy_anneal": {}}

    def __init__(
        self,
        *,
        n_sweeps: float | str | None = 20,
        beta_min: float = 0.1,
        start: str = "prior",
        final_sweeps: float = 2,
        max_time: float | None = None,
        selection: str = "random",
    ) -> None:
        self.n_sweeps = n_sweeps
        self.beta_min = beta_min
        self.start = start
        self.final_sweeps = final_sweeps
        self.max_time = max_time
        self.selection = selection

    @property
    def _start(self):
        return "prior" if self.start == "prior" else "empty"

    def _knots(self, n_rows):
        annealed, total = self._stages(n_rows)
        beta = float(self.beta_min)
        rising = [(annealed, n_rows, 1.0), (total, n_rows, 1.0)]
        if self.start == "prior":
            return [(0, n_rows, beta), *rising]
        if annealed == n_rows:
            return [(0, 0, beta), *rising]
        return [(0, 0, beta), (n_rows, n_rows, beta), *rising]
