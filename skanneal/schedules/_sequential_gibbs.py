"""Rows enter one after another, each placed once, before the full-data sweeps."""

# SPDX-License-Identifier: BSD-3-Clause

from ._base import BaseSchedule


class SequentialGibbs(BaseSchedule):
    """Assign the rows one after another, then run full-data sweeps.

    Parameters
    ----------
    n_sweeps : float or "auto", default=20
        Assignments divided by rows; the sequential pass is the first sweep. "auto": that
        pass, then as many sweeps as the chains need to agree.
    max_time : float or None, default=None
        Seconds to which the full-data sweeps are stretched or compressed. The sequential pass is
        always run.
    selection : {"random", "window", "stratified"}, default="random"
        Which row enters next, and which is reassigned.

    Examples
    --------
    >>> from skanneal.schedules import SequentialGibbs
    >>> path = SequentialGibbs(n_sweeps=5).path(100)
    >>> path.assignments.tolist(), path.sizes.tolist()
    ([0, 100, 500], [0, 100, 100])
    """

    _names = {"sequential_gibbs": {}}

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
        total = max(n_rows, round(self._length() * n_rows))
        return [(0, 0, 1.0), (n_rows, n_rows, 1.0), (total, n_rows, 1.0)]
