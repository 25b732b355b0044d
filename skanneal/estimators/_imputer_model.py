"""What an imputer fits where no model is given, and what keeps its fills plausible.

Numbers mostly depend on each other along a line, and all the others together predict a missing one
best: clusters with full covariances give each number a regression on the others. A few large
clusters predict a missing cell better than the many that describe the rows best, each of which has
a regression of its own on few rows (measured: benchmarks/fits/imputation.py). Hence the small
concentration, under which a further cluster must earn log(1 / CONCENTRATION), some 20 nats.

A number has its logarithms in such a cluster where these go better along a line with the others
(_box_cox.py).

In such a cluster a level depends on no number, so a few clusters tell next to nothing of levels. A
CrossCat, which may have many clusters and finds the columns that help to predict which, fills the
levels, and numbers of two values that are levels to it. It makes its usual number of sweeps where
most columns are levels, and fewer elsewhere. Regressions correct what it says of levels, and what
the few clusters say of numbers, which learn from levels only by them (_imputer_fills.py).

Where there is nothing but levels or a single column, or where too many columns are numbers for
covariances, the CrossCat fills everything. Too many are more than MOST_NUMBERS. The gaps of a row
cost the cube of the number of columns, yet with so few clusters a fit of 100 columns is still
cheaper than that of a CrossCat.

If a row is far from all others, a regression may predict a number far from all observed ones. So
expected numbers stay within the range of the observed cells. Draws do not: they have the spread
that the model says, which multiple imputation needs.
"""

# SPDX-License-Identifier: BSD-3-Clause

from typing import NamedTuple

import numpy as np

from ..encoding import auto_family
from ..encoding._codecs import as_numbers
from ..encoding._identifiers import is_identifier
from ..encoding._levels import present_values
from ..families import FAMILIES, candidates, default_family
from ..schedules import LinearAnneal
from ._annealed_dp import AnnealedDPMixture
from ._box_cox import columns_of_logarithms
from ._crosscat import CrossCatPY

CONCENTRATION = 1e-9
MOST_NUMBERS = 100
N_SWEEPS, N_DRAWS = 10, 10  # of each chain
ADVICE = "Raise `max_time`, if it is set, or give as `estimator` a model that makes more sweeps."


class DefaultModel(NamedTuple):
    """Models of a table whose gaps are to be filled.

    Attributes
    ----------
    first : AnnealedDPMixture or CrossCatPY
        Unfitted, as is `second`; in what their fits warn of, each has the name that the imputer has
        for it, with advice for who has not made the model.
    second : CrossCatPY or None
        Of what the first does not fill.
    of_second : list of int
        The columns that the second fills.
    ranges : dict of int to (float, float)
        The least and the largest observed number, of the columns of numbers.
    """

    first: AnnealedDPMixture | CrossCatPY
    second: CrossCatPY | None
    of_second: list
    ranges: dict


def default_model(table):
    """Return the DefaultModel of a container, as `open_table` gives it, each of whose columns has
    an observed cell."""
    columns = [table.column(j) for j in range(table.shape[1])]
    values = {
        j: present_values(column)
        for j, column in enumerate(columns)
        if column.levels is None and column.dtype != "boolean"
    }
    ranges = {j: (float(of.min()), float(of.max())) for j, of in values.items()}
    two = [
        j
        for j, of in values.items()
        if _are_two(of, *ranges[j]) and auto_family(columns[j]) == default_family("levels")
    ]
    ranges = {j: ends for j, ends in ranges.items() if j not in two}
    numbers = [j for j in ranges if _has_gaps(columns[j]) or not is_identifier(columns[j])]
    of_second = [j for j in range(len(columns)) if j not in ranges]
    levels = CrossCatPY()
    if not (1 if of_second else 2) <= len(numbers) <= MOST_NUMBERS:
        return DefaultModel(_called(levels, "`estimator_`"), None, [], ranges)
    schedule = LinearAnneal(n_sweeps=N_SWEEPS)
    mixture = AnnealedDPMixture(
        families={_whole_rows(): numbers},
        concentration=CONCENTRATION,
        schedule=schedule,
        n_draws=N_DRAWS,
    )
    mixture._of_logarithms = columns_of_logarithms(
        {j: as_numbers(columns[j], _whole_rows()) for j in numbers}
    )
    if not of_second:
        return DefaultModel(_called(mixture, "`estimator_`"), None, [], ranges)
    if 2 * len([*numbers, *two]) >= len(columns):
        levels.set_params(schedule=schedule, n_draws=N_DRAWS)
    _called(mixture, "`estimator_`, the model of numbers")
    _called(levels, "`estimator_of_levels_`, the model of levels")
    return DefaultModel(mixture, levels, of_second, ranges)


def _called(model, name):
    """The model, under this name in its warnings, which are of what fills depend on."""
    model._called, model._advice, model._asked = f"{name}: ", ADVICE, ("density",)
    return model


def _has_gaps(column):
    """Whether cells are missing: then they are to be filled, also where the others number rows."""
    return column.missing is not None and column.missing.any()


def _are_two(values, low, high):
    """Whether a column has these two values and no other."""
    return low < high and bool(np.all((values == low) | (values == high)))


def _whole_rows():
    """Name of the first family of whole rows that "auto" may give to numbers."""
    return next(name for name in candidates("float") if FAMILIES[name].joint)
