"""Views whose numbers are jointly normal in each cluster, against exact laws by enumeration.

As in test_crosscat_moves.py: exact draws make a few moves and must stay exact draws, one try each;
a right move alarms once in 10,000. The control scores a column as if it were alone in its view.
"""

from functools import cache

import numpy as np
import pytest

from oracles.crosscat_chains import (
    COLUMN_MOVES,
    MOVES,
    REJECT,
    SLOW,
    Case,
    check_all,
    column,
    draws_of,
    ends,
    joint_law,
    moves_of,
    view_p_value,
)
from oracles.joint_views import FAMILY, JointTarget, joint_column
from skanneal.families._normal_division import NormalColumns
from skanneal.moves import EachView, FeatureHyperparameters, SharedHyperparameters

LINE = [-2.0, -1.0, 0.5, 2.0, 1.25]
NEAR = [-1.75, -1.25, 0.75, 2.25, 1.0]
OTHER = [0.5, -1.5, 1.0, -0.5, 1.75]


def case(n_rows=4, kind="joint", **options):
    """Two joint columns on a line; the third is another joint one or, "mixed", one of levels."""
    columns = [joint_column(values[:n_rows], **options) for values in (LINE, NEAR, OTHER)]
    if kind == "mixed":
        columns[2] = column("categorical", [0, 0, 2, 2, 1][:n_rows])
    return Case(columns, [(0.8, 0.3)], [(0.7, 0.3)], target=JointTarget)


@cache
def law_of(n_rows, kind):
    return joint_law(case(n_rows, kind))


def stays(case, law, make, n_starts, more=(), seed=1):
    counts = ends(case, draws_of(law, n_starts, seed), [*make, *more], 2, seed)
    check_all(counts, law)
    return counts


@pytest.mark.parametrize("kind", ["joint", "mixed"])
@pytest.mark.parametrize("moves", [*COLUMN_MOVES, "all"])
def test_moves_leave_the_posterior_by_few_chains(moves, kind):
    own = case(4, kind)
    stays(own, law_of(4, kind), moves_of(own, MOVES[moves]), 120)
