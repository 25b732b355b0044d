"""Columns of normal rows that views divide, one by one, against the formulas of whole rows."""

import math

import numpy as np
import pytest
from scipy import stats

from oracles.enumeration import clusters
from oracles.gaps_reference import observed_log_marginal, of_columns
from oracles.mixtures import hyper_vector, make_table
from oracles.reference import log_marginal
from skanneal.families import FAMILIES
from skanneal.families._division import (
    alone,
    by_column,
    grids_alone,
    joined,
    joined_grids,
    vectors_of,
)
from skanneal.families._normal_division import NormalColumns

FAMILY, D, N = "multivariate_normal", 4, 9
MEMBER = FAMILIES[FAMILY]
LABELS = (0, 1, 0, 2, 1, 0, 0, 1, 0)
HYPER = {
    "mu0": [0.5, -1.0, 0.25, 0.0],
    "kappa0": 0.3,
    "nu0": 5.5,
    "scale0": np.diag([0.4, 1.5, 0.8, 2.0]),
}


def rows_of(seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(N, D)) @ rng.normal(size=(D, D)) + HYPER["mu0"]


def vectors():
    """mu0, kappa0, delta and psi of each column alone."""
    own = [of_columns(HYPER, [j]) for j in range(D)]
    return np.array([hyper_vector(FAMILY, hyper) for hyper in own])


def slow(rows, columns):
    """Log marginal likelihood of columns in the clusters, gaps (None) integrated out."""
    hyper = of_columns(HYPER, columns)
    of_cluster = [[[rows[i][j] for j in columns] for i in own] for own in clusters(LABELS)]
    if not columns:
        return 0.0
    return math.fsum(observed_log_marginal(FAMILY, own, hyper) for own in of_cluster)


def columns_of(rows, held=(), gaps=None):
    out = NormalColumns(np.array(rows, dtype=float), np.array(LABELS), vectors(), gaps)
    out.hold(list(held))
    return out


@pytest.mark.parametrize("held", [[], [2], [0, 3], [3, 0, 1]])
def test_a_column_given_others(held):
    """Whether the view holds it already or not, in whatever order."""
    rows = rows_of()
    for j in range(D):
        expected = slow(rows, [*held, j]) - slow(rows, held) if j not in held else None
        if j in held:
            others = [c for c in held if c != j]
            expected = slow(rows, held) - slow(rows, others)
        assert columns_of(rows, held).score(j) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("columns", [[], [1], [3, 1, 0], [0, 1, 2, 3]])
def test_columns_together(columns):
    found = columns_of(rows_of()).together(columns)
    assert found == pytest.approx(slow(rows_of(), columns), rel=1e-10)


@pytest.mark.parametrize("held", [[], [1, 3], [2, 0, 1]])
def test_gaps_of_the_column_are_integrated_out(held):
    rows, gaps = rows_of(), np.zeros((N, D), dtype=bool)
    gaps[[0, 4], 2] = gaps[3, 2] = True  # of the last cluster its only cell
    holes = [[None if gaps[i, j] else cell for j, cell in enumerate(r)] for i, r in enumerate(rows)]
    others = [c for c in held if c != 2]
    expected = slow(holes, [*others, 2]) - slow(holes, others)
    assert columns_of(rows, held, gaps).score(2) == pytest.approx(expected, abs=1e-6)


def with_gaps(wild=0.0):
    """A view of many rows, cells of each column being fills in some; one fill may be wild."""
    rng = np.random.default_rng(5)
    rows, gaps = rng.normal(size=(60, D)) @ rng.normal(size=(D, D)), rng.random((60, D)) < 0.2
    rows[np.flatnonzero(gaps[:, 2])[0], 2] += wild
    view = NormalColumns(rows, np.arange(60) % 5, vectors(), gaps)
    view.hold([0, 3])
    return view


def test_rows_without_a_cell_are_taken_out_of_the_factor():
    """As if the rows had never been there."""
    for column in (1, 2):
        found = with_gaps()._without_gaps(column)
        assert found == pytest.approx(with_gaps()._seen(column).scores[-1], rel=1e-12)
        assert found == with_gaps().score(column)


def test_a_wild_fill_does_not_matter():
    """It would leave no digits of the others: then the rows themselves are asked."""
    tame = with_gaps()._seen(2).scores[-1]
    assert with_gaps(1e2)._without_gaps(2) == pytest.approx(tame, rel=1e-10)
    assert with_gaps(1e9)._without_gaps(2) is None
    assert with_gaps(1e9).score(2) == tame


def test_a_column_asked_for_alone():
    """Views of which one column is to be scored know no others than it and those held."""
    rows = rows_of()
    view = NormalColumns(rows, np.array(LABELS), vectors(), asked=[1])
    view.hold([0, 3])
    expected = columns_of(rows, [0, 3]).score(1)
    assert view.score(1) == pytest.approx(expected, rel=1e-12)
    assert np.isnan(view.score(2))
    assert view.together([2, 1]) == pytest.approx(slow(rows, [2, 1]), rel=1e-10)


def test_scores_alone_are_those_of_one_pass():
    """What a table of scores holds of a column by itself."""
    rows = np.float32(rows_of()).astype(float)
    table = make_table([(FAMILY, [tuple(row) for row in rows.tolist()], HYPER)])
    labels = np.array([LABELS, [0] * N], dtype=np.int32)
    scores = NormalColumns.column_scores(
        table, np.arange(D), vectors(), np.arange(N), labels, np.array([3, 1])
    )
    for j in range(D):
        assert scores[j, 0] == pytest.approx(slow(rows, [j]), rel=1e-6)
        one = log_marginal(FAMILY, [[x] for x in rows[:, j]], of_columns(HYPER, [j]))
        assert scores[j, 1] == pytest.approx(float(one), rel=1e-6)


def law_of_sum(rows, others, gaps):
    """Student's t of the sum of a column's gaps in the first cluster, of the regression on
    others."""
    own = [i for i, label in enumerate(LABELS) if label == 0 and i not in gaps]
    hyper, z = of_columns(HYPER, [*others, 2]), np.array(rows)[:, others] - 0.0
    design = np.column_stack([np.ones(N), z - hyper["mu0"][:-1]])
    psi = np.diag(hyper["scale0"])
    precision = np.diag(np.r_[hyper["kappa0"], psi[:-1]]) + design[own].T @ design[own]
    y = np.array(rows)[own, 2] - hyper["mu0"][-1]
    coefficients = np.linalg.solve(precision, design[own].T @ y)
    degrees = hyper["nu0"] + len(own)
    s = psi[-1] + y @ y - coefficients @ precision @ coefficients
    u = design[gaps].sum(axis=0)
    square = s / degrees * (len(gaps) + u @ np.linalg.solve(precision, u))
    centre = len(gaps) * hyper["mu0"][-1] + u @ coefficients
    return stats.t(degrees, centre, np.sqrt(square))


@pytest.mark.parametrize("others", [[], [0, 3]])
@pytest.mark.parametrize("gaps", [[5], [0, 2, 5, 6]])
def test_fills_have_the_law_of_the_regression(others, gaps):
    """A right one fails once in 10,000; rows of one cluster share their coefficients."""
    rows, missing = rows_of(), np.zeros((N, D), dtype=bool)
    missing[gaps, 2] = True
    view, generator = columns_of(rows, [*others, 2], missing), np.random.default_rng(0)
    drawn = np.array([view.draw(2, generator) for _ in range(600)])
    law = law_of_sum(rows, others, gaps)
    assert stats.kstest(drawn.sum(axis=1), law.cdf).pvalue > 1e-4
    if len(gaps) > 1 and not others:
        assert stats.spearmanr(drawn[:, 0], drawn[:, 1]).pvalue < 1e-6


def test_wild_cells_and_no_rows():
    """A pivot is never below the prior's, and rounding makes nothing infinite."""
    rows = rows_of()
    rows[2] = 1e14
    rows[6, :3] = -1e14
    view = columns_of(rows, [0, 1])
    assert np.isfinite([view.score(j) for j in range(D)]).all()
    empty = NormalColumns(np.empty((0, D)), np.empty(0, dtype=int), vectors())
    empty.hold([0, 1])
    assert empty.score(2) == empty.score(1) == empty.together([0, 3]) == 0.0


def test_a_block_has_the_hyperparameters_of_its_columns():
    rows = [tuple(row) for row in np.float32(rows_of()).tolist()]
    table, own = make_table([(FAMILY, rows, HYPER)]), dict(enumerate(vectors()))
    block = MEMBER(table, [3, 1], vectors_of(MEMBER, [1, 3], own))
    block.build(np.arange(N), np.array(LABELS), 16)
    expected = slow(rows, [1, 3])
    assert block.log_marginals().sum() == pytest.approx(expected, rel=1e-9)
    found = by_column(block)
    assert found.keys() == {1, 3}
    for j in found:
        np.testing.assert_allclose(found[j], own[j])


def test_hyperparameters_and_grids_of_columns_together_and_alone():
    flat = hyper_vector(FAMILY, HYPER)
    np.testing.assert_allclose(alone(MEMBER, flat, D), vectors())
    np.testing.assert_allclose(joined(MEMBER, vectors()), flat)
    grids = [None] * len(flat)
    grids[D], grids[D + 1] = np.array([0.1, 1.0]), np.array([5.5])
    for j in (0, 2):
        grids[D + 2 + j * (j + 3) // 2] = np.array([0.5, 2.0]) + j
    of_columns, shared = grids_alone(MEMBER, grids, D)
    assert [of[3] is None for of in of_columns] == [False, True, False, True]
    assert shared[1].tolist() == [0.1, 1.0] and shared[2].tolist() == [2.5]
    again = joined_grids(MEMBER, of_columns, shared)
    assert all((a is None) == (b is None) for a, b in zip(again, grids, strict=True))
    assert all(np.array_equal(a, b) for a, b in zip(again, grids) if b is not None)
    drawn_at_once = joined_grids(MEMBER, of_columns)
    assert drawn_at_once[D] is None and drawn_at_once[D + 1] is None
