"""The dip against linear programs; trees of components, and where they are cut."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, is_valid_linkage, linkage
from scipy.optimize import linprog
from scipy.spatial.distance import squareform
from scipy.special import expit, logsumexp
from sklearn.metrics import adjusted_rand_score

from oracles.rings import components_of, on_ring, ring
from skanneal.summary import (
    _cluster_tree,
    cluster_tree,
    cut_tree,
    n_clusters_proba,
    valley_sureness,
)
from skanneal.summary._cluster_tree import (
    FEW_PAIRS,
    _at_passages,
    _least_sure,
    _pairs,
    _share_of_two,
    _valleys,
    pair_heights,
    surer,
    valley_tree,
)
from skanneal.summary._dip import dip, dip_evidence
from skanneal.summary._groups import FAR, Groups
from skanneal.summary._line import spread_ties
from skanneal.summary._one_or_two import log_odds


def distance_from_convex(points, below, above):
    """Twice the least t such that a convex function lies between above - t and below + t."""
    n = len(points)
    slopes = np.diff(np.eye(n), axis=0) / np.diff(points)[:, None]
    near = np.hstack([np.vstack([np.eye(n), -np.eye(n)]), -np.ones((2 * n, 1))])
    bends = np.hstack([-np.diff(slopes, axis=0), np.zeros((max(n - 2, 0), 1))])
    limits = np.concatenate([below, -above, np.zeros(len(bends))])
    cost = np.eye(n + 1)[-1]
    return 2 * linprog(cost, np.vstack([near, bends]), limits, bounds=(None, None)).fun


def dip_by_programs(values):
    """The dip by one linear program for each side of each mode."""
    points, heights = np.sort(values), np.linspace(0, 1, len(values) + 1)
    below, above = heights[:-1], heights[1:]
    sides = [
        (
            distance_from_convex(points[: m + 1], below[: m + 1], above[: m + 1]),
            distance_from_convex(-points[m:][::-1], 1 - above[m:][::-1], 1 - below[m:][::-1]),
        )
        for m in range(len(points))
    ]
    return min(map(max, sides)) / 2


@pytest.mark.parametrize("seed", range(6))
def test_dip_is_the_least_distance(seed):
    generator = np.random.default_rng(seed)
    values = generator.normal(size=9) + 4.0 * (generator.random(9) < 0.5)
    assert dip(values) == pytest.approx(dip_by_programs(values), abs=1e-9)


def test_dip_does_not_see_order_place_or_unit():
    values = np.random.default_rng(0).gamma(2.0, size=60)
    for other in (values[::-1], 7.0 - 3.0 * values):
        assert dip(other) == pytest.approx(dip(values), abs=1e-12)


def test_evidence_is_a_probability_under_uniform_numbers():
    """150 samples: with probability 0.1 each, from 5 to 27 have it but for 1 time in 400."""
    generator = np.random.default_rng(3)
    evidence = [dip_evidence(generator.random(80)) for _ in range(150)]
    assert 5 <= np.count_nonzero(np.exp(np.negative(evidence)) < 0.1) <= 27


def test_a_lattice_has_one_mode_when_its_ties_are_spread():
    values = np.random.default_rng(4).binomial(8, 0.5, 500).astype(float)
    assert dip_evidence(values) > 10 and dip_evidence(spread_ties(np.sort(values))) < 3
    np.testing.assert_allclose(np.round(spread_ties(np.sort(values))), np.sort(values), atol=1e-9)
    two = np.repeat([0.0, 1.0], 30)
    assert dip_evidence(spread_ties(two)) > 10


@pytest.mark.parametrize("seed", range(6))
def test_ties_are_spread_half_way_to_the_nearest_other_number(seed):
    generator = np.random.default_rng(seed)
    points = np.unique(generator.integers(0, 40, 2 + seed)).astype(float)
    values = np.sort(generator.choice(points, 30))
    points, counts = np.unique(values, return_counts=True)
    expected = []
    for point, count in zip(points, counts):
        nearest = min((abs(point - other) for other in points if other != point), default=0.0)
        spread = (np.arange(count) + 0.5) / count - 0.5
        expected.extend(point + (nearest * spread if len(points) > 2 else 0.0 * spread))
    np.testing.assert_allclose(spread_ties(values), expected, atol=1e-12)


def test_a_ring_is_one_cluster_and_what_lies_within_another():
    """Ten rings: of 200, 17 to 26 were cut; at that rate more than 4 are with probability 0.01."""
    generator, right = np.random.default_rng(1), []
    for _ in range(10):
        rows = np.r_[ring(generator, 300), generator.normal(0, 0.4, (100, 2))]
        joints = components_of(rows, np.r_[on_ring(8), np.zeros((1, 2))], 0.9)
        right.append(cut_tree(cluster_tree(joints)).tolist() == [*[0] * 8, 1])
    assert sum(right) >= 6


def test_control_valleys_of_the_mixture_itself_cut_the_ring():
    """Judged by the mixture's own density, without the rows, each component is a mode."""
    centres = on_ring(14)
    between = (centres + np.roll(centres, 1, axis=0)) / 2
    at_modes, at_saddles = (
        logsumexp(components_of(points, centres, 0.6), axis=1) for points in (centres, between)
    )
    assert (at_modes > at_saddles).all()


def test_a_tree_is_a_linkage_that_scipy_cuts_alike():
    generator = np.random.default_rng(2)
    rows = np.r_[generator.normal(size=(300, 2)), generator.normal(7, 1, (40, 2))]
    centres = np.r_[generator.normal(size=(4, 2)), [[7, 7]]]
    tree = cluster_tree(components_of(rows, centres, 1.0))
    assert is_valid_linkage(tree) and (np.diff(tree[:, 2]) >= 0).all()
    for n_clusters in (1, 2, 4, 5):
        own = cut_tree(tree, n_clusters=n_clusters)
        assert len(np.unique(own)) == n_clusters
        if n_clusters < 3:
            theirs = fcluster(tree, n_clusters, "maxclust")
            assert adjusted_rand_score(own, theirs) == 1.0
    np.testing.assert_array_equal(cut_tree(tree, probability=0.95), [0, 0, 0, 0, 1])


def slow_groups(joints, groups):
    """Of each row the groups' log densities, its group and the second most probable one. A row
    stays in the group of its most probable component."""
    joints = np.maximum(joints, joints.max(axis=1, keepdims=True) - 1e7)
    of_group = np.stack([logsumexp(joints[:, own], axis=1) for own in groups], axis=1)
    group_of = [next(g for g, own in enumerate(groups) if k in own) for k in range(joints.shape[1])]
    labels = np.array(group_of)[joints.argmax(axis=1)]
    others = np.where(labels[:, None] == np.arange(len(groups)), -np.inf, of_group)
    return of_group, labels, others.argmax(axis=1)


def slow_evidence(joints, groups, a, b):
    """What one draw says of a valley between two groups."""
    of_group, labels, _ = slow_groups(joints, groups)
    n = min(np.count_nonzero(labels == a), np.count_nonzero(labels == b))
    if n == 0:
        return 0.0
    odds = of_group[:, a] - of_group[:, b]
    in_a, in_b = (
        sorted(np.flatnonzero(labels == g), key=lambda row: sign * odds[row])[:n]
        for g, sign in ((a, 1.0), (b, -1.0))
    )
    rows = np.r_[in_a, in_b]
    drops = [
        np.median(of_group[own, g]) - np.median(of_group[other, g])
        for g, own, other in ((a, in_a, in_b), (b, in_b, in_a))
    ]
    if min(drops) <= 0:
        drops = [1.0, 1.0]
    places = (of_group[rows, a] / drops[0] - of_group[rows, b] / drops[1]) * min(drops)
    last = sorted(places[:n], reverse=True)[n // 4]
    first = sorted(places[n:])[n // 4]
    near = [place for place in places if first <= place <= last]
    return dip_evidence(spread_ties(np.sort(near))) if near else 0.0


def slow_rows(joints, groups, a, b):
    """How many rows the smaller of two groups has."""
    labels = slow_groups(joints, groups)[1]
    return min(np.count_nonzero(labels == a), np.count_nonzero(labels == b))


def slow_median(values, weights):
    """The most that half of the draws reach."""
    return max(
        least
        for least in values
        if sum(w for w, own in zip(weights, values) if own >= least) >= 0.5 * sum(weights)
    )


def slow_passages(evidence, rows, alone, joints, groups, a, b):
    """Evidence of a valley, or that of a passage which would show it and does not."""
    sizes, out = np.bincount(joints.argmax(axis=1), minlength=joints.shape[1]), [evidence]
    for i in groups[a]:
        for j in groups[b]:
            own, m = alone.get(frozenset([i, j]), (np.inf, 0))
            large = all(sizes[k] >= 0.2 * max(sizes[groups[g]]) for k, g in ((i, a), (j, b)))
            if large and own < np.log(10) < evidence * m / rows:
                out.append(own)
    return min(out)


def slow_fair(evidence, joints, draws, weights, groups, a, b):
    """Evidence of a valley, less the logarithm of the number of places of its border: one more than
    the rows that two draws put on different sides."""
    if evidence <= 0:
        return evidence
    labels = slow_groups(joints, groups)[1]
    rows = np.isin(labels, [a, b])
    shares, own = [], []
    for draw, weight in zip(draws, weights):
        of_group, in_draw, _ = slow_groups(draw, groups)
        if min(np.count_nonzero(in_draw == g) for g in (a, b)) >= 3:
            shares.append(expit(of_group[rows, a] - of_group[rows, b]))
            own.append(weight)
    pairs = [(s, t) for s in range(len(own)) for t in range(len(own)) if s != t]
    total = sum(own[s] * own[t] for s, t in pairs)
    if total == 0:
        return evidence
    between = sum(
        own[s] * own[t] * (shares[s] * (1 - shares[t]) + shares[t] * (1 - shares[s])).sum()
        for s, t in pairs
    )
    return max(evidence - np.log1p(between / total), 0.0)


def slow_overlap(joints, first, second):
    """The Bhattacharyya coefficient of two groups' components, one by one."""
    shares = [np.exp(row - logsumexp(row)) for row in joints]

    def total(one, other):
        return sum(np.sqrt(p[a] * p[b]) for p in shares for a in one for b in other)

    return total(first, second) / np.sqrt(total(first, first) * total(second, second))


def slow_tree(joints, draws=None, weights=(1.0,)):
    """The heights by the formula, everything anew after every merge."""
    return slow_joins(joints, draws, weights)[0]


def slow_joins(joints, draws=None, weights=(1.0,)):
    """The same, and the components of each group that is made."""
    made = []
    groups, heights, n_joins = [[k] for k in range(joints.shape[1])], [], joints.shape[1] - 1
    draws, alone = [joints] if draws is None else draws, {}
    while len(groups) > 1:
        _, labels, second = slow_groups(joints, groups)
        sizes = np.bincount(labels, minlength=len(groups))
        few = [g for g in np.argsort(sizes, kind="stable") if 0 < sizes[g] < 3]
        if few:
            pair = {few[0], np.bincount(second[labels == few[0]]).argmax()}
        else:
            found = {}
            for pair in {frozenset(both) for both in zip(labels, second)}:
                a, b = sorted(pair)
                reached, rows = (
                    slow_median([of(draw, groups, a, b) for draw in draws], weights)
                    for of in (slow_evidence, slow_rows)
                )
                if len(groups[a]) == len(groups[b]) == 1:
                    alone[frozenset([groups[a][0], groups[b][0]])] = reached, rows
                reached = slow_passages(reached, rows, alone, joints, groups, a, b)
                reached = reached - np.log(n_joins)
                reached = slow_fair(reached, joints, draws, weights, groups, a, b)
                overlap = slow_overlap(joints, groups[a], groups[b])
                found[pair] = reached if reached >= 0.0 else -1.0, -overlap
            pair = min(found, key=found.get)
            heights.append(max([*heights, found[pair][0]]))
        heights += [0.0] * bool(few)
        a, b = sorted(pair)
        groups[a] = sorted(groups[a] + groups[b])
        made.append(groups[a])
        del groups[b]
        groups.sort()
    return heights, made


def heights_of(joints, draws=(), weights=(1.0,)):
    """The heights of the tree of valleys alone."""
    judges = [Groups(of_draw) for of_draw in draws]
    return _valleys(Groups(joints), judges, weights, None)[:, 2]


@pytest.mark.parametrize("seed", range(4))
def test_heights_are_those_of_the_formula(seed):
    """Of components of unequal spread, one of them with two rows."""
    generator = np.random.default_rng(seed)
    centres, spreads = generator.normal(0, 4, (6, 2)), generator.uniform(0.5, 2.0, 6)
    rows = np.concatenate(
        [c + s * generator.normal(size=(40, 2)) for c, s in zip(centres, spreads)]
    )
    rows = np.r_[rows, [[30.0, 30.0], [30.0, 31.0]]]
    joints = [
        components_of(rows, c[None], s)[:, 0] - 2 * np.log(s) for c, s in zip(centres, spreads)
    ]
    joints.append(components_of(rows, np.array([[30.0, 30.5]]), 1.0)[:, 0])
    joints = np.stack(joints, axis=1)
    heights = heights_of(joints)
    np.testing.assert_allclose(heights, np.maximum(slow_tree(joints), 0.0), rtol=1e-9, atol=1e-9)
    assert heights.max() > 3


@pytest.mark.parametrize("seed", range(4))
def test_pieces_without_a_valley_join_in_the_order_of_their_overlap(seed):
    """Two clusters of pieces, some of them small: the groups are those of the formula."""
    generator = np.random.default_rng(seed)
    rows = np.r_[generator.gamma(2.0, size=(150, 2)), generator.gamma(2.0, size=(150, 2)) + [7, 0]]
    centres, spreads = rows[generator.choice(300, 9, replace=False)], generator.uniform(0.6, 1.6, 9)
    joints = -((rows[:, None] - centres) ** 2).sum(axis=2) / (2 * spreads**2) - 2 * np.log(spreads)
    tree, made = valley_tree(joints), [[k] for k in range(9)]
    for first, second in tree[:, :2].astype(int):
        made.append(sorted(made[first] + made[second]))
    assert made[9:] == slow_joins(joints)[1]


def test_what_speaks_for_a_valley_goes_before_overlap():
    """Overlaps decide between pairs for which nothing speaks, and where evidence is equal."""
    overlaps = np.ones((4, 4))
    overlaps[0, 1], overlaps[1, 2], overlaps[2, 3] = 0.9, 0.2, 0.1
    pairs = [(0, 1), (1, 2), (2, 3)]
    for said, first in (
        ((0.0, -1.5, -3.0), (1, 2)),
        ((-0.1, -1.5, -3.0), (0, 1)),
        ((2.0, 1.0, 1.0), (1, 2)),
        ((2.0, 1.0, 0.5), (2, 3)),
    ):
        assert _least_sure(pairs, dict(zip(pairs, said)), overlaps) == first


@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0, 1.0), (5.0, 1.0, 1.0, 1.0, 0.0)])
def test_heights_are_what_half_of_the_draws_reach(weights):
    """Judges whose components lie elsewhere; of one of them two components are one. The control
    is judged by the partition itself."""
    generator = np.random.default_rng(len(weights))
    centres = generator.normal(0, 3, (5, 2))
    rows = np.concatenate([centre + generator.normal(size=(50, 2)) for centre in centres])
    draws = [
        components_of(rows, centres + generator.normal(0, 0.4, centres.shape), 1.0) for _ in weights
    ]
    draws[1][:, 0] = np.logaddexp(draws[1][:, 0], draws[1][:, 3])
    draws[1][:, 3] = -np.inf
    joints = components_of(rows, centres, 1.0)
    heights = heights_of(joints, draws, weights)
    expected = np.maximum(slow_tree(joints, draws, weights), 0.0)
    np.testing.assert_allclose(heights, expected, rtol=1e-9, atol=1e-9)
    assert heights.max() > 3
    one_judge = np.maximum(slow_tree(joints), 0.0)
    assert not np.allclose(heights, one_judge, rtol=1e-3)


def test_a_valley_is_what_most_draws_see():
    generator = np.random.default_rng(7)
    rows = np.r_[generator.normal(size=(100, 2)), generator.normal(9, 1, (100, 2))]
    sees = components_of(rows, np.array([[0.0, 0.0], [9.0, 9.0]]), 1.0)
    misses = np.c_[np.logaddexp(*sees.T), np.full(200, -np.inf)]
    assert cut_tree(cluster_tree(sees, [sees, sees, misses])).tolist() == [0, 1]
    assert cut_tree(cluster_tree(sees, [sees, misses, misses])).tolist() == [0, 0]


def u_of_bars(generator, bend):
    """Two bars with a gap, or the U that they are with a bend; and its components."""
    along, width = np.linspace(0, 8, 400), 0.12 * generator.normal(size=(2, 400))
    rows = [np.c_[along, width[0]], np.c_[along, 2 + width[1]]]
    centres = [np.c_[np.arange(0.5, 8), np.full(8, y)] for y in (0, 2)]
    if bend:
        angle = np.pi * generator.uniform(-0.5, 0.5, 150)
        on_bend = np.c_[8 + np.cos(angle), 1 + np.sin(angle)]
        rows.append(on_bend + 0.12 * generator.normal(size=(150, 2)))
        centres.append([[8.5, 0.1], [9.0, 1.0], [8.5, 1.9]])
    return components_of(np.concatenate(rows), np.concatenate(centres), 0.5)


def test_groups_are_one_where_they_are_so_anywhere():
    """Most of the border between the arms of a U is a gap. The control has no bend."""
    whole = 0
    for seed in range(8):
        whole += not cut_tree(cluster_tree(u_of_bars(np.random.default_rng(seed), True))).any()
        arms = cut_tree(cluster_tree(u_of_bars(np.random.default_rng(seed), False)))
        assert arms.tolist() == 8 * [0] + 8 * [1]
    assert whole >= 4


def test_a_few_rows_in_a_gap_are_no_passage():
    """Their component is small beside those of both bars."""
    generator = np.random.default_rng(0)
    along = np.tile(np.linspace(0, 8, 400), 2)
    rows = np.c_[along, np.repeat([0.0, 2.0], 400) + 0.12 * generator.normal(size=800)]
    across = np.c_[4 + 0.12 * generator.normal(size=8), np.linspace(0.4, 1.6, 8)]
    rows = np.r_[rows, across]
    bars = np.c_[np.tile(np.arange(0.5, 8), 2), np.repeat([0.0, 2.0], 8)]
    clusters = cut_tree(cluster_tree(components_of(rows, np.r_[bars, [[4.0, 1.0]]], 0.5)))
    assert clusters[:16].tolist() == 8 * [0] + 8 * [1]


def test_a_passage_counts_where_it_would_show_the_valley():
    assert _at_passages(30.0, 100, [(1.0, 5), (3.0, 50)]) == 30.0
    assert _at_passages(30.0, 100, [(1.0, 5), (2.0, 50), (1.5, 10)]) == 1.5


def test_a_small_cluster_beside_a_large_one_is_seen():
    generator = np.random.default_rng(4)
    rows = np.r_[generator.normal(size=(2000, 2)), generator.normal(9, 1, (25, 2))]
    tree = cluster_tree(components_of(rows, np.array([[0.0, 0.0], [9.0, 9.0]]), 1.0))
    assert cut_tree(tree, probability=0.95).tolist() == [0, 1]


def test_tails_join_their_own_cores(monkeypatch):
    """Between thin tails of two clusters no valley is sure, and the same of a tail and its core:
    the latter overlap. The control joins what is least sure, however far apart."""
    spreads, sizes = np.array([1.0, 2.2, 1.0, 2.2]), np.array([150, 30, 150, 30])
    centres = np.array([[0.0, 0.0], [0.0, 0.0], [7.0, 0.0], [7.0, 0.0]])

    def right(seed):
        generator = np.random.default_rng(seed)
        parts = zip(centres, spreads, sizes)
        rows = np.concatenate([c + s * generator.normal(size=(n, 2)) for c, s, n in parts])
        squares = ((rows[:, None] - centres) ** 2).sum(axis=2)
        joints = np.log(sizes / spreads**2) - squares / (2.0 * spreads**2)
        return cut_tree(valley_tree(joints)).tolist() == [0, 0, 1, 1]

    own = sum(map(right, range(40)))
    monkeypatch.setattr(
        _cluster_tree, "_least_sure", lambda pairs, said, _: min(pairs, key=lambda p: (said[p], p))
    )
    assert own >= 32 > 28 >= sum(map(right, range(40)))


def test_components_without_rows_or_alone():
    rows = np.random.default_rng(5).normal(size=(50, 2))
    joints = components_of(rows, np.array([[0.0, 0.0], [60.0, 60.0]]), 1.0)
    assert cut_tree(cluster_tree(joints)).tolist() == [0, 0]
    joints[:, 1] = -np.inf  # impossible everywhere
    assert cut_tree(cluster_tree(joints)).tolist() == [0, 0]
    assert cluster_tree(joints[:, :1]).shape == (0, 4)
    assert cut_tree(np.empty((0, 4))).tolist() == [0]


def test_a_long_cluster_is_one_where_tails_show_the_distance():
    """Of 20 small components in a line. The control has the tails of Student's t: rows of one half
    are nearly all as improbable under the other, and pile up."""
    rows = np.random.default_rng(6).uniform(0, 20, 500)
    squares = (rows[:, None] - np.arange(0.5, 20)) ** 2 / 0.25
    of_distance, heavy = -4.0 * (np.sqrt(1 + squares / 3) - 1), -2.0 * np.log1p(squares / 3)
    assert not cut_tree(cluster_tree(of_distance)).any()
    assert cluster_tree(heavy)[-1, 2] > 10 > cluster_tree(of_distance)[-1, 2]


def in_same(tree, height):
    """Which components are in one cluster where a tree is cut: (n, n)."""
    labels = fcluster(tree, height, "distance")
    return labels[:, None] == labels


@pytest.mark.parametrize("seed", range(3))
def test_a_cut_is_the_common_refinement_of_valleys_and_pairs(seed):
    generator = np.random.default_rng(seed)
    points = generator.normal(size=(7, 2))
    tree = linkage(points, "average")
    pairs = generator.exponential(size=(7, 7))
    pairs = np.triu(pairs, 1) + np.triu(pairs, 1).T
    chains = linkage(squareform(pairs), "single")
    both = surer(tree, pairs)
    assert is_valid_linkage(both)
    for height in generator.uniform(0, 2, 8):
        expected = in_same(tree, height) & in_same(chains, height)
        np.testing.assert_array_equal(in_same(both, height), expected)


def near(generator, centres, by):
    """The centres of nine draws, which lie about others."""
    return [centres + by * generator.normal(size=centres.shape) for _ in range(9)]


def two_that_overlap(generator):
    """Rows of two normal clusters without a valley, their components, and those of nine draws."""
    centres = np.array([[0.0, 0.0], [2.4, 0.0]])
    rows = np.repeat(centres, [700, 300], axis=0) + generator.normal(size=(1000, 2))
    draws = near(generator, centres, by=0.05)
    return rows, *(components_of(rows, of, 1.0) + np.log([0.7, 0.3]) for of in [centres, *draws])


def test_normal_clusters_without_a_valley_are_two():
    """The control is valleys alone."""
    _, joints, *draws = two_that_overlap(np.random.default_rng(0))
    assert cut_tree(cluster_tree(joints, draws)).tolist() == [0, 1]
    assert heights_of(joints, draws, np.ones(9))[0] < -np.log(0.1)


@pytest.mark.parametrize("with_numbers", [False, True])
def test_pairs_have_the_median_of_the_draws_on_both_lines(with_numbers):
    rows, joints, *draws = two_that_overlap(np.random.default_rng(1))
    numbers = rows if with_numbers else None
    odds = []
    for of_draw in draws:
        order = np.argsort(of_draw.argmax(axis=1), kind="stable")
        own = numbers[order] if with_numbers else None
        odds.append(log_odds(*of_draw[order].T, own))
    assert np.ptp(odds) > 0.1
    height = cluster_tree(joints, draws, None, numbers)[0, 2]
    assert height == pytest.approx(np.log(FEW_PAIRS) + np.logaddexp(0.0, np.median(odds)))


def test_pieces_of_a_square_are_one_even_if_all_draws_have_the_same():
    generator, centres = np.random.default_rng(1), np.array([[-1.0, 0.0], [1.0, 0.0]])
    square = generator.uniform(-1, 1, (400, 2)) * [2.0, 1.0]
    draws = [components_of(square, of_draw, 0.6) for of_draw in near(generator, centres, 0.02)]
    halves = components_of(square, centres, 0.6)
    assert cut_tree(cluster_tree(halves, draws)).tolist() == [0, 0]


def test_a_valley_whose_place_the_draws_choose_is_less_sure_by_the_number_of_places():
    """Of a cube each draw sees a shallow valley along another column. The control are draws that
    all see the same one."""
    generator = np.random.default_rng(2)
    rows = generator.uniform(0.05, 1.0, (400, 5)) * generator.choice([-1.0, 1.0], (400, 5))
    along = [np.column_stack([99 * rows[:, j], -99 * rows[:, j]]) for j in range(5)]
    alone = [heights_of(joints)[0] for joints in along]
    alike = heights_of(along[0], [along[0]] * 5, np.ones(5))
    assert alike[0] == pytest.approx(alone[0], abs=0.1) and alone[0] > 8
    assert heights_of(along[0], along, np.ones(5))[0] < alone[0] - 4


def test_a_component_that_most_draws_do_not_have_goes_with_its_rows():
    generator = np.random.default_rng(9)
    rows = np.r_[generator.normal(size=(80, 1)), generator.normal(12, 1, (80, 1))]
    joints = components_of(rows, np.array([[0.0], [12.0], [13.5]]), 1.0)
    draw = np.c_[joints[:, :2], np.full(160, -np.inf)]
    groups, judge = Groups(joints), Groups(draw)
    assert len(groups.rows[2]) > 10
    pairs, sizes = _pairs(groups, [judge], [1.0])
    assert pairs[2].tolist() == [FAR, -FAR, -FAR] and pairs[0, 1] > 4
    assert sizes.tolist() == [80, 80, 0]


@pytest.mark.parametrize("n_rows", [10, 60])
def test_a_small_component_is_a_cluster_by_its_own_pair(n_rows):
    """The tail of one of four clusters, which are two wherever they are pairs, has a component of a
    few rows. The control: so many rows that it is not small are a cluster as the others are."""
    generator = np.random.default_rng(3)
    centres = np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0], [5.0, 5.0], [-1.6, 0.0]])
    sizes = [100] * 4 + [n_rows]
    rows = np.repeat(centres, sizes, axis=0) + 0.8 * generator.normal(size=(sum(sizes), 2))
    joints = components_of(rows, centres, 0.8) + np.log(sizes)
    heights = pair_heights(joints, [joints])
    assert heights[0, 1] == heights[2, 3] == heights[0, 3] > -np.log(0.2)
    odds = _pairs(Groups(joints), [Groups(joints)], [1.0])[0][0, 4]
    expected = np.logaddexp(0.0, odds) if n_rows == 10 else heights[0, 1]
    assert heights[0, 4] == pytest.approx(expected) and (n_rows == 60 or expected < 2.0)


@pytest.mark.parametrize(
    "odds, not_two",
    [((3.0,), 1.0 / 3.0), ((3.0, 3.0), 2.0 / 3.0), ((3.0,) * 3, 1.0), ((3.0,) * 4, 1.0)],
)
def test_the_share_of_pairs_that_are_two_is_that_of_pairs_that_were_asked(odds, not_two):
    """Of five components; the rest are no neighbours, or one is within the other. Of few pairs it
    is a share of three."""
    pairs = np.full((5, 5), FAR)
    pairs[3, 4] = pairs[4, 3] = -np.inf
    for j, of_pair in enumerate(odds, 1):
        pairs[0, j] = pairs[j, 0] = of_pair
    alive = np.ones(5, dtype=bool)
    assert _share_of_two(pairs, alive) == pytest.approx(np.logaddexp(0.0, 3.0) - np.log(not_two))
    alive[1:] = False  # merged with the first: no pair is left
    assert _share_of_two(pairs, alive) == 0.0


@pytest.mark.parametrize("height", [0.0, 2.0, 5000.0])
def test_pairs_that_one_valley_parts_count_as_one(height):
    """Two groups of two: four pairs across, which are two for sure, and one in each group."""
    odds, alive = np.full((4, 4), 40.0), np.ones(4, dtype=bool)
    odds[0, 1], odds[2, 3] = -1.0, 2.0
    valleys = np.array([[0, 1, 0.0, 2], [2, 3, 0.0, 2], [4, 5, height, 4]])
    across = 4 * np.exp(-height) + (1 - np.exp(-height))
    share = (expit(-1.0) + expit(2.0) + across) / (2 + across)
    found = _share_of_two(odds, alive, valleys)
    assert found == pytest.approx(-np.log(1 - share))
    assert (found < _share_of_two(odds, alive)) == (height > 0.0)


def test_pieces_are_no_clusters_because_their_groups_are_two(monkeypatch):
    """Two stretches of a line, in two pieces each. That all pieces of one are two with those of the
    other does not make the pieces clusters; the control: it does where all pairs count alike."""
    odds = np.full((4, 4), 40.0)
    odds[0, 1] = odds[1, 0] = odds[2, 3] = odds[3, 2] = 1.5
    sizes = np.full(4, 50.0)
    monkeypatch.setattr(_cluster_tree, "_pairs", lambda *given: (odds.copy(), sizes))
    rows = np.r_[np.linspace(0.0, 2.0, 100), np.linspace(6.0, 8.0, 100)]
    joints = -8.0 * (rows[:, None] - [0.5, 1.5, 6.5, 7.5]) ** 2
    assert cut_tree(cluster_tree(joints), 0.9).tolist() == [0, 0, 1, 1]
    whole = _cluster_tree._share_of_two
    monkeypatch.setattr(
        _cluster_tree, "_share_of_two", lambda odds, alive, valleys: whole(odds, alive)
    )
    assert cut_tree(cluster_tree(joints), 0.9).tolist() == [0, 1, 2, 3]


def in_a_row(places):
    """Rows of normal components at these places of the first column, and nine draws."""
    generator = np.random.default_rng(3)
    centres = np.column_stack([places, np.zeros(len(places))])
    rows = np.concatenate([centre + generator.normal(size=(150, 2)) for centre in centres])
    joints = components_of(rows, centres, 1.0)
    return joints, [components_of(rows, of, 1.0) for of in near(generator, centres, 0.09)]


def test_a_doubtful_pair_is_two_in_a_table_where_others_are_plainly_two():
    """The first two overlap; others are apart beyond doubt, or overlap as much."""
    plain, doubtful = (
        cut_tree(cluster_tree(*in_a_row(places)))
        for places in ([0.0, 2.4, 8.0, 13.0], [0.0, 2.4, 4.8, 7.2])
    )
    assert plain.tolist() == [0, 1, 2, 3] and doubtful[0] == doubtful[1]


def pieces_and_clusters():
    """Rows of four normal laws, and logs of joint densities: of these, and of a draw's pieces."""
    generator = np.random.default_rng(8)
    centres = np.array([0.0, 4.0, 8.0, 12.0])
    rows = np.repeat(centres, 80) + generator.normal(size=320)

    def joints(of):
        return -0.5 * (rows[:, None] - of) ** 2

    pieces = [joints(np.roll(centres, shift)) for shift in range(4)]  # no two put a row into one
    return joints(centres), [joints(centres)] * 4, pieces


def test_components_are_clusters_only_where_draws_agree_about_most_rows():
    own, same, pieces = pieces_and_clusters()
    assert pair_heights(own, same).max() > 3.0  # sure by 0.95
    assert pair_heights(own, pieces).max() == 0.0


def table_about_peaks(near_by):
    """Logs of joint densities of five components, of which the first two are about one peak, and
    the last two are as far from each other as asked."""
    generator = np.random.default_rng(9)
    centres = np.array([0.0, 0.4, 6.0, 12.0, 12.0 + near_by])
    rows = np.repeat(centres, 100) + generator.normal(size=500)
    return -0.5 * (rows[:, None] - centres) ** 2, np.array([7, 7, 2, 0, 5])


def test_what_is_about_one_peak_counts_as_one_component():
    joints, peaks = table_about_peaks(6.0)
    heights = pair_heights(joints, peaks=peaks)
    assert heights[0, 1] == heights[1, 0] == 0.0
    apart = peaks[:, None] != peaks
    assert heights[apart].min() > 3.0  # sure by 0.95, though the first two components are one
    assert pair_heights(joints).max() < 3.0
    np.testing.assert_array_equal(heights[0], heights[1])


def test_a_pair_of_peaks_has_its_own_say():
    """Where the share of pairs is low, pairs that are plainly two are two by themselves."""
    joints, peaks = table_about_peaks(0.5)
    heights = pair_heights(joints, peaks=peaks)
    assert heights[3, 4] < 2.0  # the share: one pair in three is one
    assert heights[1, 2] > 3.0
    assert heights[2, 3] > 3.0
    assert pair_heights(joints).max() < 2.0  # of components a single pair cannot tell


@pytest.mark.parametrize("n_clusters", [0, -1, 2.0, "two"])
def test_a_number_of_clusters_is_at_least_one(n_clusters):
    tree = np.array([[0, 1, 0.4, 2], [2, 3, 9.0, 3]])
    for given in (tree, np.empty((0, 4))):
        with pytest.raises(ValueError, match="n_clusters must be None or an integer, at least 1"):
            cut_tree(given, n_clusters=n_clusters)


@pytest.mark.parametrize("function", [cut_tree, valley_sureness, n_clusters_proba])
def test_what_is_no_tree_is_refused(function):
    for wrong in (np.zeros(3), np.zeros((2, 3)), 4.0):
        with pytest.raises(ValueError, match="tree must be of shape"):
            function(wrong)
    with pytest.raises(ValueError, match="tree must hold numbers"):
        function(np.array([[0, 1, np.nan, 2]]))
    with pytest.raises(ValueError, match=r"probability must be (in \[0, 1\]|at least 0)"):
        cut_tree(np.empty((0, 4)), 1.5) if function is cut_tree else n_clusters_proba([], -0.1)


def test_densities_of_components_are_numbers():
    joints = np.zeros((6, 2))
    for wrong in (joints[0], np.where(np.arange(2), np.nan, joints)):
        with pytest.raises(ValueError, match="without nan"):
            cluster_tree(wrong)
        with pytest.raises(ValueError, match="without nan"):
            cluster_tree(joints, [wrong])


@pytest.mark.parametrize("weights", [[np.inf, 1.0], [1.0], [-1.0, 1.0]])
def test_weights_of_draws_are_checked(weights):
    joints = np.zeros((6, 2))
    with pytest.raises(ValueError, match="draw_weights must hold 2 finite numbers"):
        cluster_tree(joints, [joints, joints], weights)


class Factor:
    """The log of a Bayes factor that is the same for all groups, and what was merged."""

    def __init__(self, log_factor):
        self.log_factor, self.asked, self.merged = log_factor, [], []

    def __call__(self, a, b):
        self.asked.append((a, b))
        return self.log_factor

    def merge(self, a, b):
        self.merged.append((a, b))


def test_no_valley_is_surer_than_a_factor_says():
    """Of three clusters far apart; groups are merged in the factor as in the tree."""
    centres = np.array([0.0, 20.0, 60.0])
    rows = np.repeat(centres, 60) + np.random.default_rng(0).normal(size=180)
    joints = -0.5 * (rows[:, None] - centres) ** 2
    factor = Factor(1.5)
    tree = valley_tree(joints, factor=factor)
    assert valley_tree(joints)[:, 2].min() > 5.0
    np.testing.assert_allclose(tree[:, 2], np.log1p(np.exp(1.5)))
    assert len(factor.merged) == 2 and factor.asked
    sure, doubtful = (pair_heights(joints, factor=Factor(of)).max() for of in (50.0, -50.0))
    assert sure > 3.0 and doubtful < 0.5
