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
    make_state,
    moves_of,
    view_p_value,
)
from oracles.joint_views import FAMILY, JointTarget, joint_column
from oracles.mixtures import make_table
from skanneal.families._normal_division import NormalColumns
from skanneal.moves import (
    CALL,
    ColumnBlock,
    ColumnGibbs,
    EachView,
    FeatureHyperparameters,
    SharedHyperparameters,
)
from skanneal.moves._joint_columns import JointColumns
from skanneal.states import Subsample

LINE = [-2.0, -1.0, 0.5, 2.0, 1.25]
NEAR = [-1.75, -1.25, 0.75, 2.25, 1.0]
OTHER = [0.5, -1.5, 1.0, -0.5, 1.75]


def case(n_rows=4, kind="joint", **options):
    """Two joint columns on a line; the third is another joint one or, "mixed", one of levels.
    "gaps": one cell of each of the first two is missing."""
    cells = [values[:n_rows] for values in (LINE, NEAR, OTHER)]
    if kind == "gaps":
        cells[0] = [None, *cells[0][1:]]
        cells[1] = [*cells[1][:-1], None]
    columns = [joint_column(values, **options) for values in cells]
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


KINDS = ["joint", "mixed", "gaps"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("moves", COLUMN_MOVES)
@pytest.mark.few(3)
def test_moves_leave_the_posterior_by_few_chains(moves, kind):
    own = case(3, kind)
    stays(own, law_of(3, kind), moves_of(own, MOVES[moves]), 40)


@SLOW
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("moves", [*COLUMN_MOVES, "all"])
def test_moves_leave_the_posterior(moves, kind):
    """Five rows and 800 exact draws; with gaps, whose integrals are numerical, four rows."""
    n_rows = 4 if kind == "gaps" else 5
    own = case(n_rows, kind)
    stays(own, law_of(n_rows, kind), moves_of(own, MOVES[moves]), 800)


@pytest.mark.parametrize("n_starts", [40, pytest.param(1500, marks=SLOW)])
@pytest.mark.parametrize("kind", ["joint", "mixed"])
def test_views_of_one_cluster(kind, n_starts):
    """A view's prior allows one cluster only with probability 1/2."""
    own = case(3, kind)._replace(row_grid=[(0.0, 0.0), (0.7, 0.3)])
    stays(own, joint_law(own), moves_of(own, MOVES["column_block"]), n_starts)


@pytest.mark.parametrize("n_starts", [15, pytest.param(1500, marks=SLOW)])
def test_hyperparameters_of_columns_and_of_the_family(n_starts):
    """A column's scale and the kappa0 of all columns are drawn too."""
    own, law = inferred(), inferred_law()
    stays(own, law, moves_of(own, MOVES["column_block"])[:-1], n_starts, hyperparameter_moves())


@SLOW
@pytest.mark.parametrize("moves", ["column_sets", "view_split_merge", "view_reallocation"])
def test_moves_of_several_columns_with_hyperparameters(moves):
    own, law = inferred(), inferred_law()
    stays(own, law, moves_of(own, MOVES[moves])[:-1], 1000, hyperparameter_moves())


def test_each_joint_column_counts_as_a_call():
    """Else a budget lets their moves take nearly all of a chain's time."""
    own, bit_generator = case(4), np.random.PCG64(0)
    subsample = Subsample(4, "random", bit_generator)
    subsample.fill()
    key = 0, (0, 0, 0), (((0, 1, 2), ((0, 0, 1, 1), 0)),)
    state = make_state(own, key, make_table(own.columns), subsample)
    works = [
        ColumnBlock(np.array(own.row_grid)).sweep(state, bit_generator).work for _ in range(10)
    ]
    assert min(works) >= CALL * (2 + len(own.columns))  # the sweep, its views' sums and the columns


def test_a_view_scores_other_columns_by_the_new_fills_of_one_that_came():
    """As if it were made anew of the table, in which they are by then."""
    own, subsample = case(4, "gaps"), Subsample(4, "random", np.random.PCG64(0))
    subsample.fill()
    key = 0, (0, 0, 0), (((0,), ((0, 0, 1, 1), 0)), ((1, 2), ((0, 1, 1, 0), 0)))
    state = make_state(own, key, make_table(own.columns), subsample)
    joint = JointColumns(state, [])
    joint.scores(0)
    joint.move(0, 1, np.random.default_rng(0))
    anew = JointColumns(state, [])
    anew.view_of = joint.view_of
    np.testing.assert_allclose(joint.scores(2), anew.scores(2), rtol=1e-10)


PSI, KAPPA0 = [0.05, 1.5], [0.1, 2.0]


def inferred():
    """Three rows; every column's scale is one of two, and so is kappa0."""
    return case(3, psi=PSI, kappa0=KAPPA0)


@cache
def inferred_law():
    return joint_law(inferred())


def hyperparameter_moves():
    of_column = [None, None, None, np.array(PSI)]
    shared = {FAMILY: [None, np.array(KAPPA0), None, None]}
    features = FeatureHyperparameters(dict.fromkeys(range(3), of_column))
    return [EachView(features), SharedHyperparameters(shared)]


# ------------------------------------------------------------------ controls
def p_value(own, law, moves, n_starts):
    counts = ends(own, draws_of(law, n_starts, 2), moves_of(own, MOVES[moves]), 4, 2)
    return view_p_value(counts, law)


@SLOW
def test_columns_scored_by_themselves_fail(monkeypatch):
    """The score of a column does not know of the others in a view."""
    hold = NormalColumns.hold
    monkeypatch.setattr(NormalColumns, "hold", lambda self, columns: hold(self, []))
    assert p_value(case(4), law_of(4, "joint"), "column_block", 400) < REJECT


@SLOW
@pytest.mark.parametrize("moves", ["column_sets", "view_split_merge"])
def test_sets_of_columns_scored_by_themselves_fail(monkeypatch, moves):
    def together(self, columns):
        alone = NormalColumns(self.cells, self.labels, self.hyper)
        alone.hold([])
        return sum(alone.score(column) for column in columns)

    monkeypatch.setattr(NormalColumns, "together", together)
    assert p_value(case(4), law_of(4, "joint"), moves, 1500) < REJECT


@SLOW
@pytest.mark.parametrize("faulty", [False, True])
def test_fills_that_a_column_takes_along_fail(monkeypatch, faulty):
    """A column's fills are integrated out of its scores, but stay as they are in its new view."""

    def kept(self, column, generator):
        return self.cells[self.gaps[:, column], column]

    if faulty:
        monkeypatch.setattr(NormalColumns, "draw", kept)
    own = case(3, "gaps", psi=0.05)
    law, moves = joint_law(own), [ColumnGibbs(own.grid_of("row"))]
    p = view_p_value(ends(own, draws_of(law, 400, 2), moves, 6, 2), law)
    assert p < REJECT if faulty else p > 1e-4
