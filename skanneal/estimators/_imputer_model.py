"""What an imputer fits where no model is given, and what keeps its fills plausible.

Numbers mostly depend on each other along a line, and all the others together predict a missing one
best: clusters with full covariances give each number a regression on the others. A few large
clusters predict a missing cell better than the many that describe the rows best, each of which has
a regression of its own on few rows (measured: benchmarks/fits/imputation.py). Hence the small
concentration, under which a further cluster must earn log(1 / CONCENTRATION), some 20 nats. Where
most columns are not numbers, or too many are for covariances, a CrossCat finds which columns help
to predict which.

If a row is far from all others, a regression may predict a number far from all observed ones. So
fills stay within the range of the observed cells, and in a column of two values, such as 0 and 1, a
fill is one of the two.
"""

# SPDX-License-Identifier: BSD-3-Clause

from typing import NamedTuple

import numpy as np

from ..encoding._identifiers import is_identifier
from ..encoding._levels import present_values
from ..families import FAMILIES, candidates
from ..schedules import LinearAnneal
from ._annealed_dp import AnnealedDPMixture
from ._crosscat import CrossCatPY
from ._family_evidence import MOST_COLUMNS

CONCENTRATION = 1e-9
N_SWEEPS, N_DRAWS = 10, 10  # of each chain


class ObservedRange(NamedTuple):
    """The range of a column's observed cells.

    Attributes
    ----------
    low, high : float
    only : bool
        Whether these are the only two values.
    """

    low: float
    high: float
    only: bool

    @classmethod
    def of(cls, column):
        """Return the range of a column of numbers."""
        values = present_values(column)
        low, high = float(values.min()), float(values.max())
        return cls(low, high, bool(np.all((values == low) | (values == high))))

    def nearest(self, values):
        """Return the nearest values that the column may have."""
        if self.only:
            return np.where(values - self.low < self.high - values, self.low, self.high)
        return np.clip(values, self.low, self.high)


def default_model(table):
    """Return the model of a table whose gaps are to be filled.

    Parameters
    ----------
    table : container
        As `open_table` gives it; each column has an observed cell.

    Returns
    -------
    model : AnnealedDPMixture or CrossCatPY
        Unfitted.
    ranges : dict of int to ObservedRange
        Of the columns of numbers, by position.
    """
    columns = [table.column(j) for j in range(table.shape[1])]
    ranges = {
        j: ObservedRange.of(column)
        for j, column in enumerate(columns)
        if column.levels is None and column.dtype != "boolean"
    }
    numbers = [j for j in ranges if not is_identifier(columns[j])]
    if not max(2, len(columns) / 2) <= len(numbers) <= MOST_COLUMNS:
        return CrossCatPY(), ranges
    mixture = AnnealedDPMixture(
        families={_whole_rows(): numbers},
        concentration=CONCENTRATION,
        schedule=LinearAnneal(n_sweeps=N_SWEEPS),
        n_draws=N_DRAWS,
    )
    return mixture, ranges


def _whole_rows():
    """Name of the first family of whole rows that "auto" may give to numbers."""
    return next(name for name in candidates("float") if FAMILIES[name].joint)
