"""The subsample grows in proportion to the assignments."""

# SPDX-License-Identifier: BSD-3-Clause

from ._base import BaseAnneal


class LinearAnneal(BaseAnneal):
    """Let the subsample grow in proportion to the assignments, then run full-data sweeps.

    For each row added, ``n_sweeps - final_sweeps - 1`` rows are removed and others assigned.

    Parameters
    ----------
    n_sweeps : float or "auto", default=20
        Assignments divided by rows, final sweeps included. "auto": 20, then as many full-data
        sweeps as the chains need to agree.
    final_sweeps : float, default=2
        Full-data sweeps at the end; at most ``n_sweeps - 1``.
    max_time : float or None, default=None
        Seconds to which the schedule is stretched or compressed.
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

    _names = {"linear_anneal": {}}

    def __init__(
        self,
        *,
        n_sweeps: float | str | None = 20,
        final_sweeps: float = 2,
        max_time: float | None = None,
        selection: str = "random",
    ) -> None:
        self.n_sweeps = n_sweeps
        self.final_sweeps = final_sweeps
        self.max_time = max_time
        self.selection = selection

    def _knots(self, n_rows):
        annealed, total = self._stages(n_rows)
        return [(0, 0, 1.0), (annealed, n_rows, 1.0), (total, n_rows, 1.0)]
