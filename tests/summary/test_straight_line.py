"""Valleys along straight lines: the formula, where densities see none, and where there is none."""

import numpy as np
import pytest

from oracles.rings import components_of, on_ring, ring
from skanneal.summary import cluster_tree, cut_tree
from skanneal.summary._cluster_tree import _valleys
from skanneal.summary._dip import dip_evidence
from skanneal.summary._fills import with_fills
from skanneal.summary._groups import Groups
from skanneal.summary._line import spread_ties
from skanneal.summary._straight_line import CHANCE, _evidence, _places, straight_evidence


def two_clusters(generator, n, n_columns, apart):
    """Rows of two t distributions with 4 degrees of freedom, and their normal components, one of
    them twice as wide as the other."""
    rows = generator.normal(size=(2 * n, n_columns))
    rows /= np.sqrt(generator.chisquare(4, size=(2 * n, 1)) / 4)
    centres = np.zeros((2, n_columns))
    centres[1, 0] = apart
    rows[n:] += centres[1]
    joints = [components_of(rows, c[None], w)[:, 0] for c, w in zip(centres, (1.0, 2.0))]
    return rows, np.stack(joints, axis=1) - [0.0, n_columns * np.log(2.0)]


def one_cluster(generator, n, n_columns):
    """Normal rows, and two sides of a border that is not sharp."""
    rows = generator.normal(size=(n, n_columns))
    return rows, generator.normal(size=n) < 3 * rows[:, 0]


def slow_place(rows, first, row):
    """A row's place on the line that other rows choose: a least-squares fit of the sides, whose
    direction is that of the discriminant, and a search over the sides."""
    while True:
        one, two = rows[first].mean(axis=0), rows[~first].mean(axis=0)
        centred = rows - rows.mean(axis=0)
        direction = np.linalg.lstsq(centred, first - first.mean(), rcond=None)[0]
        sides = np.array([direction @ (other - (one + two) / 2) > 0 for other in rows])
        if (sides == first).all():
            break
        first = sides
    return direction @ (row - (one + two) / 2) / np.std(centred @ direction)


def slow_dip(places):
    """The dip test of as many rows of either side, a quarter of each left out."""
    above, below = np.sort(places[places > 0]), np.sort(places[places <= 0])[::-1]
    n = min(len(above), len(below))
    first, last = below[n - 1 - n // 4], above[n - 1 - n // 4]
    near = [place for place in (*above[:n], *below[:n]) if first <= place <= last]
    return max(dip_evidence(spread_ties(np.sort(near))) - np.log(2), 0.0)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.few(1)
def test_evidence_is_that_of_the_formula(seed):
    """Two clusters of unequal size in sheared columns. The sides begin with a tenth of the rows
    exchanged, or at random."""
    generator = np.random.default_rng(seed)
    rows = np.r_[generator.normal(size=(90, 3)), generator.normal(size=(50, 3)) + [3.5, 1.0, 0.0]]
    rows, order = rows @ generator.normal(size=(3, 3)), generator.permutation(140)
    exchanged = generator.random(140) < (0.5 if seed == 3 else 0.1)
    rows, first = rows[order], (order < 90) ^ exchanged
    of_all = slow_dip(np.array([slow_place(rows, first, row) for row in rows]))
    places, numbers = np.zeros(140), np.random.Generator(np.random.PCG64(0)).random((5, 140))
    for order in numbers.argsort(axis=1):
        for tenth in order.reshape(10, 14):
            others = np.setdiff1d(order, tenth)
            places[tenth] += [slow_place(rows[others], first[others], rows[i]) for i in tenth]
    expected = min(of_all, slow_dip(places))
    expected *= expected > CHANCE
    assert straight_evidence(rows, first) == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert straight_evidence(rows, first, least=expected + 0.1) == 0.0
    assert (expected > 0) == (seed < 3)


def test_clusters_are_told_apart_where_their_densities_show_no_valley():
    """Ten times two clusters, four standard deviations apart in one of 20 columns. The control has
    nothing but the valleys that densities show."""
    with_line, without = [], []
    for seed in range(10):
        rows, joints = two_clusters(np.random.default_rng(seed), 250, 20, apart=4.0)
        with_line.append(cluster_tree(joints, numbers=rows)[0, 2] > CHANCE)
        without.append(_valleys(Groups(joints), [], [1.0], None)[0, 2] > CHANCE)
    assert sum(with_line) >= 8 and sum(without) <= 2


def test_one_cluster_is_not_cut():
    """Of 20, each cut with probability 0.1 at most, more than 6 are 1 time in 400. The control puts
    each row on a line that it has chosen itself."""
    cut, by_themselves = [], []
    for seed in range(20):
        rows, first = one_cluster(np.random.default_rng(seed), 400, 20)
        cut.append(straight_evidence(rows, first) > CHANCE)
        rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
        by_themselves.append(_evidence(_places(rows, first, rows.T @ rows, rows)) > CHANCE)
    assert sum(cut) <= 6 and sum(by_themselves) > 10


def test_units_and_columns_that_depend_on_each_other_do_not_matter():
    rows, joints = two_clusters(np.random.default_rng(0), 250, 20, apart=4.0)
    height = cluster_tree(joints, numbers=rows)[0, 2]
    other = np.c_[1e6 + 1e3 * rows, rows[:, :1] - rows[:, 1:2], np.ones(len(rows))]
    assert cluster_tree(joints, numbers=other)[0, 2] == pytest.approx(height, abs=1e-3)


def test_gaps_are_filled_with_what_other_numbers_lead_one_to_expect():
    """Clusters with gaps in 5 % of the cells are told apart. Of a column that others add up to
    nothing is lost. Rows that lack more than a fifth have no part."""
    generator = np.random.default_rng(3)
    rows, joints = two_clusters(generator, 250, 20, apart=4.0)
    gappy = np.where(generator.random(rows.shape) < 0.05, np.nan, rows)
    assert cluster_tree(joints, numbers=gappy)[0, 2] > CHANCE
    sums = np.c_[rows, 3.0 + 1e3 * rows[:, :2].sum(axis=1)]
    few = sums.copy()
    few[::5, 20] = np.nan
    few[:40, :5] = np.nan
    filled = with_fills(few)
    np.testing.assert_array_equal(filled[:40], few[:40])
    assert np.sqrt(np.mean((filled - sums)[40::5, 20] ** 2)) < 0.05 * sums[:, 20].std()
    np.testing.assert_array_equal(filled[:, :20], few[:, :20])
    height = cluster_tree(joints, numbers=rows)[0, 2]
    more = np.r_[rows, rows[:30] - 9.0]
    more[500:, :5] = np.nan
    assert cluster_tree(np.r_[joints, joints[:30]], numbers=more)[0, 2] == pytest.approx(
        height, abs=1e-9
    )


def test_fills_are_those_of_a_regression():
    """One column has gaps: its fills solve the normal equations of all rows, fills among them."""
    rows = np.random.default_rng(4).normal(size=(300, 5)) @ np.random.default_rng(5).normal(
        size=(5, 5)
    )
    gappy = rows.copy()
    gappy[::7, 2] = np.nan
    known = ~np.isnan(gappy[:, 2])
    others = np.c_[np.ones(300), np.delete(rows, 2, axis=1)]
    column = np.where(known, rows[:, 2], rows[known, 2].mean())
    for _ in range(4):
        slopes = np.linalg.lstsq(others, column, rcond=None)[0]
        column = np.where(known, rows[:, 2], others @ slopes)
    np.testing.assert_allclose(with_fills(gappy)[:, 2], column, rtol=1e-3, atol=1e-3)
    assert with_fills(rows) is rows


@pytest.mark.filterwarnings("error")
def test_fills_of_few_rows_and_of_empty_columns():
    one = np.array([[1.0, 2.0, 3.0, 4.0, np.nan]])
    np.testing.assert_array_equal(with_fills(one), [[1.0, 2.0, 3.0, 4.0, 0.0]])
    empty = np.c_[np.arange(24.0).reshape(6, 4) ** 2, np.full(6, np.nan)]
    np.testing.assert_array_equal(with_fills(empty)[:, :4], empty[:, :4])
    assert np.isfinite(with_fills(empty)).all()
    gaps_only = np.full((3, 2), np.nan)
    assert with_fills(gaps_only) is gaps_only


def test_too_few_rows_say_nothing():
    rows, first = one_cluster(np.random.default_rng(0), 40, 20)
    rows[first] += 100.0
    assert straight_evidence(rows, first) == 0.0
    assert straight_evidence(rows[:, :5], first) > CHANCE
    assert straight_evidence(rows[:, :5], np.ones(40, dtype=bool)) == 0.0


def test_groups_of_several_components_have_no_straight_line():
    """Two halves of a ring, projected on a line, have a valley between them that is not there."""
    generator = np.random.default_rng(1)
    rows = ring(generator, 1500)
    joints = components_of(rows, on_ring(8), 0.9)
    halves = np.isin(joints.argmax(axis=1), range(4))
    assert straight_evidence(rows, halves) > 10
    assert not cut_tree(cluster_tree(joints, numbers=rows)).any()
