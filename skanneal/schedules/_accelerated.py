"""The schedule of the accelerated parallel sampler: two stages, synchronised now and then."""

# SPDX-License-Identifier: BSD-3-Clause

import itertools
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from .._native._doc_link import DocLink


class AcceleratedSchedule(DocLink, BaseEstimator):
    """The numbers of sub-iterations of the accelerated and of the exact stage.

    A sub-iteration gives every row one turn. Algorithms other than "accelerated" run
    ``n_accelerated + n_exact`` sub-iterations of their own.

    Parameters
    ----------
    n_accelerated : int, default=50
        Sub-iterations of the accelerated stage, which is burn-in.
    n_exact : int, default=950
        Sub-iterations of the exact stage.
    sync_every : int or list of int, default=10
        Sub-iterations between two synchronisations, in which shards exchange statistics and
        features, and hyperparameters and features are drawn. A list gives the number for one
        segment after another; its last number holds for all further segments.
    max_time : float or None, default=None
        Seconds of wall clock for the whole fit. A segment is not begun if, judged by the last one,
        it would end too late. A segment that does not end in time is dropped, except that the first
        of a stage is kept as far as it got. Segments get fewer sub-iterations if they take more
        than a tenth of the time. The accelerated stage takes at most half of the time.

    Examples
    --------
    >>> from skanneal.schedules import AcceleratedSchedule
    >>> AcceleratedSchedule(n_accelerated=25, n_exact=40).segments("accelerated")
    [10, 10, 5]
    """

    _parameter_constraints: dict = {
        "n_accelerated": [Interval(Integral, 0, None, closed="left")],
        "n_exact": [Interval(Integral, 0, None, closed="left")],
        "sync_every": [Interval(Integral, 1, None, closed="left"), list, tuple],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
    }

    def __init__(
        self,
        *,
        n_accelerated: int = 50,
        n_exact: int = 950,
        sync_every: int | Sequence[int] = 10,
        max_time: float | None = None,
    ) -> None:
        self.n_accelerated = n_accelerated
        self.n_exact = n_exact
        self.sync_every = sync_every
        self.max_time = max_time

    def _validate_params(self):
        super()._validate_params()
        if self.n_accelerated + self.n_exact == 0:
            raise ValueError("AcceleratedSchedule: n_accelerated + n_exact must be at least 1")
        if not isinstance(self.sync_every, Integral):
            lengths = self.sync_every
            if not len(lengths) or not all(isinstance(n, Integral) and n > 0 for n in lengths):
                raise ValueError(
                    f"AcceleratedSchedule: sync_every must be a positive integer or a list of such,"
                    f" got {lengths!r}"
                )

    def segments(self, stage: Any) -> Any:
        """Lengths of a stage's segments, in sub-iterations.

        Parameters
        ----------
        stage : {"accelerated", "exact", "all"}
            "all" is for an algorithm with one stage.

        Returns
        -------
        list of int
        """
        lengths = self._lengths()
        if stage == "all":
            return list(_cut(lengths, self.n_accelerated + self.n_exact))
        first = list(_cut(lengths, self.n_accelerated))
        return first if stage == "accelerated" else list(_cut(lengths, self.n_exact))

    def _lengths(self):
        """The given lengths, the last of them again and again."""
        given = [self.sync_every] if isinstance(self.sync_every, Integral) else self.sync_every
        return itertools.chain(map(int, given), itertools.repeat(int(given[-1])))


def _cut(lengths, total):
    """Lengths as long as they last, the last one cut so that they add up."""
    while total > 0:
        length = min(next(lengths), total)
        total -= length
        yield length
