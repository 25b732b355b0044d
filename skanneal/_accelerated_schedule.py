"""The schedule of the accelerated parallel sampler: two stages, synchronised now and then."""

# SPDX-License-Identifier: BSD-3-Clause

from numbers import Integral, Real

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval


class AcceleratedSchedule(BaseEstimator):
    """Sub-iterations of the accelerated and of the exact stage.

    A sub-iteration gives every row one turn. Algorithms other than "accelerated" run
    ``n_accelerated + n_exact`` sub-iterations of their own.

    Parameters
    ----------
    n_accelerated : int, default=50
        Sub-iterations of the accelerated stage, which is burn-in.
    n_exact : int, default=950
        Sub-iterations of the exact stage.
    sync_every : int, default=10
        Sub-iterations between two synchronisations, where shards exchange statistics and features,
        and hyperparameters and features are drawn.
    max_time : float or None, default=None
        Seconds after which no further segment is begun, if the last ones say that it would end
        later; the accelerated stage takes at most half of them.

    Examples
    --------
    >>> from skanneal.schedules import AcceleratedSchedule
    >>> AcceleratedSchedule(n_accelerated=25, n_exact=40).segments("accelerated")
    [10, 10, 5]
    """

    _parameter_constraints: dict = {
        "n_accelerated": [Interval(Integral, 0, None, closed="left")],
        "n_exact": [Interval(Integral, 0, None, closed="left")],
        "sync_every": [Interval(Integral, 1, None, closed="left")],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
    }

    def __init__(self, *, n_accelerated=50, n_exact=950, sync_every=10, max_time=None):
        self.n_accelerated = n_accelerated
        self.n_exact = n_exact
        self.sync_every = sync_every
        self.max_time = max_time

    def _validate_params(self):
        super()._validate_params()
        if self.n_accelerated + self.n_exact == 0:
            raise ValueError("AcceleratedSchedule: n_accelerated + n_exact must be at least 1")

    def segments(self, stage):
        """Lengths of a stage's segments, in sub-iterations.

        Parameters
        ----------
        stage : {"accelerated", "exact", "all"}
            "all" is what an algorithm of one stage runs.

        Returns
        -------
        list of int
        """
        n = {"accelerated": self.n_accelerated, "exact": self.n_exact}.get(
            stage, self.n_accelerated + self.n_exact
        )
        whole, rest = divmod(n, self.sync_every)
        return [self.sync_every] * whole + [rest] * (rest > 0)
