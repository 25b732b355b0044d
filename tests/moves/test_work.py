"""The work that moves report is what they do: scores of cells, counted here one call at a time."""

import numpy as np
import pytest

from oracles.crosscat_chains import make_case, make_state
from oracles.mixtures import make_mixture, make_table, set_partition
from oracles.reference import EXAMPLES
from skanneal.moves import (
    CALL,
    COLUMN_MOVES,
    FeatureHyperparameters,
    Permutation,
    SplitMerge,
    row_work,
)
from skanneal.moves import _allocating_move as allocating
from skanneal.moves import _view_annealing as annealing
from skanneal.moves._column_move import ColumnMove
from skanneal.moves._info import MARGINAL
from skanneal.moves._order_programs import OrderProgram
from skanneal.states import CrossCat, Subsample


@pytest.fixture
def counted(monkeypatch):
    """A list of the work of each call that scores cells; clusters fill one tile."""
    found = []

    def n_columns(view):
        return sum(len(block.columns) for block in view.blocks)

    def count(owner, name, work):
        real = getattr(owner, name)

        def noted(*args):
            found.append(work(*args))
            return real(*args)

        monkeypatch.setattr(owner, name, noted)

    def of_path(view, order, start, stop, n_steps, *_):
        return (stop - start) * (1 + n_steps) * 2 * row_work(n_columns(view))

    def of_scores(state, columns, rows, labels, hyper=None):
        n_clusters = sum(of_partition.max() + 1 for of_partition in labels)
        return CALL + len(columns) * (len(rows) * len(labels) + MARGINAL * n_clusters)

    def of_views(state, view_of, fresh=()):
        moved = view_of != state.view_of
        changed = {*view_of[moved].tolist(), *state.view_of[moved].tolist()}
        n_columns = [view_of.tolist().count(v) for v in changed]
        return sum(CALL + state.subsample.size * row_work(n) for n in n_columns)

    def of_allocation(view, rows, *_):
        return 2 * len(rows) * row_work(n_columns(view))

    count(CrossCat, "column_scores", of_scores)
    count(CrossCat, "new_view", lambda *_: CALL)
    count(CrossCat, "reassign", of_views)
    count(ColumnMove, "_fresh", lambda move, state, n_views, bit_generator: CALL * n_views)
    count(allocating, "allocate", of_allocation)
    count(annealing, "enter_rows", of_path)
    count(annealing, "leave_rows", of_path)
    return found


@pytest.mark.parametrize("name", COLUMN_MOVES)
@pytest.mark.parametrize("together", [True, False])
def test_moves_of_columns(counted, name, together):
    """A call for each proposal, table of scores and view that is built or drawn; moves of single
    columns make one for every column."""
    case, bit_generator = make_case("4x4", "PY"), np.random.PCG64(3)
    parts = [tuple(range(4))] if together else [(f,) for f in range(4)]
    key = 0, (0,) * 4, tuple((part, ((0, 0, 1, 1), 0)) for part in parts)
    subsample = Subsample(4, "random", bit_generator)
    subsample.fill()
    move, n_proposing = COLUMN_MOVES[name](np.array(case.row_grid)), 0
    for _ in range(30):
        state = make_state(case, key, make_table(case.columns), subsample)
        counted.clear()
        info = move.sweep(state, bit_generator)
        n_calls = 1 + move.n_passes if name == "column_block" else info.proposed
        assert info.work == sum(counted) + CALL * n_calls
        n_proposing += sum(counted) > 0
    assert n_proposing > 0


@pytest.mark.parametrize("n_rows", [3, 12])
def test_split_merge(n_rows):
    """Of one cluster's rows all but the pair itself are scored and added; then row i is weighed."""
    rng = np.random.default_rng(0)
    columns = [("normal", rng.normal(size=n_rows).tolist(), EXAMPLES["normal"][1])] * 3
    mixture, bit_generator = make_mixture(columns, 1.0, 0.0, seed=1)
    for _ in range(5):
        set_partition(mixture, [0] * n_rows)
        info = SplitMerge(n_proposals=1).sweep(mixture, bit_generator)
        assert info.work == CALL + (2 * (n_rows - 2) + 1) * row_work(3)


def test_permutation():
    rng = np.random.default_rng(0)
    columns = [("normal", rng.normal(size=20).tolist(), EXAMPLES["normal"][1])] * 2
    mixture, bit_generator = make_mixture(columns, 1.0, 0.0, seed=1)
    set_partition(mixture, [0] * 20)
    info = Permutation("uniform", "quadratic").sweep(mixture, bit_generator)
    of_program = mixture.spare("order_program", OrderProgram).work
    assert of_program > 20 and info.work == CALL + of_program * row_work(2)


def test_draws_of_hyperparameters():
    """A marginal likelihood of each cluster for each coordinate that has a grid: points of a grid
    are scored together."""
    columns = [("normal", [0.0, 1.0, 2.0], EXAMPLES["normal"][1])] * 4
    mixture, bit_generator = make_mixture(columns, 1.0, 0.0, seed=1)
    set_partition(mixture, [0, 0, 1])
    grids = {j: [np.array([0.0, 1.0]), None, None, None] for j in (0, 2, 3)}
    info = FeatureHyperparameters(grids).sweep(mixture, bit_generator)
    assert info.proposed == 3 and info.work == 3 * 2 * MARGINAL


def test_partitions_of_one_cluster_are_scored_once(counted):
    case, bit_generator = make_case("4x4", "PY"), np.random.PCG64(3)
    subsample = Subsample(4, "random", bit_generator)
    subsample.fill()
    key = 0, (0,) * 4, ((tuple(range(4)), ((0, 0, 1, 1), 0)),)
    state = make_state(case, key, make_table(case.columns), subsample)
    labels = np.array([[2, 2, 2, 2], [0, 1, 0, 1], [0, 0, 0, 0], [0, 0, 0, 1], [1, 1, 1, 1]])
    columns, rows = np.arange(4), subsample.rows()
    expected = state.column_scores(columns, rows, labels.astype(np.int32))
    counted.clear()
    move = COLUMN_MOVES["column_sets"](np.array(case.row_grid))
    found = move.column_scores(state, columns, rows, labels.astype(np.int32))
    np.testing.assert_array_equal(found, expected)
    assert move.work == sum(counted) == CALL + 4 * (4 * 3 + MARGINAL * (3 + 2 + 2))
