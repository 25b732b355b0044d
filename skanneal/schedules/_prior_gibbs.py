"""The cold start: all rows from the beginning, labelled from the prior."""

# SPDX-License-Identifier: BSD-3-Clause

from ._base import BaseSchedule


class PriorGibbs(BaseSchedule):
    """Label all rows from the partition prior, then run full-data sweeps.

    Parameters
    ----------
    n_sweeps : float or "auto", default=20
        Assignments divided by rows. Labelling from the prior is not counted. "auto": one
        sweep, then as many as the chains need to agree.
    max_time : float or None, default=None
        Seconds to which the schedule is stretched or compressed.
    selection : {"random", "window", "stratified"}, default="random"
        The order of the rows within a sweep: drawn for each sweep, fixed, or balanced over strata.

    Examples
    --------
    >>> from skanneal.schedules import PriorGibbs
    >>> PriorGibbs(n_sweeps=5).path(100).assignments.tolist()
    [0, 500]
    """

    _names = {"prior_gibbs": {}}
    _start = "prior"

    def __init__(
        self,
        *,
        n_sweeps: float | str | None = 20,
        max_time: float | None = None,
        selection: str = "random",
    ) -> None:
        self.n_sweeps = n_sweeps
        self.max_time = max_time
        self.selection = selection

    def _knots(self, n_rows):
        return [(0, n_rows, 1.0), (max(1, round(self._length() * n_rows)), n_rows, 1.0)]
