"""The order of joins: slow rules, brute force, and what it leaves alone."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import is_valid_linkage, linkage
from sklearn.metrics import adjusted_rand_score

from oracles.rings import components_of
from skanneal.summary import cluster_tree, cut_tree
from skanneal.summary._tree_order import Joins


def random_joins(seed, n=8):
    generator = np.random.default_rng(seed)
    evidence = linkage(generator.normal(size=(n, 2)) * 3, "single")
    overlaps, distances = generator.random((2, n, n))
    overlaps, distances = overlaps + overlaps.T, distances + distances.T
    return Joins(evidence, generator.integers(1, 40, n).astype(float), overlaps, distances)


def slow_partitions(joins, probability):
    """The partition after every join, by the rules as they are written."""
    within = cut_tree(joins.evidence, probability)
    groups = [[k] for k in range(len(within))]
    out = []
    while len(groups) > 1:
        pairs = [(g, h) for g in range(len(groups)) for h in range(g)]
        inner = [(g, h) for g, h in pairs if within[groups[g][0]] == within[groups[h][0]]]
        sizes = [joins.sizes[group].sum() for group in groups]
        small = [g for g in range(len(groups)) if sizes[g] < 0.2 * np.median(sizes)]
        if inner:
            some = [g for g in small if any(g in pair for pair in inner)]
            if some:
                smallest = min(some, key=lambda g: sizes[g])
                inner = [pair for pair in inner if smallest in pair]
            overlaps = [
                joins.overlaps[np.ix_(groups[g], groups[h])].sum() / np.sqrt(sizes[g] * sizes[h])
                for g, h in inner
            ]
            g, h = inner[int(np.argmax(overlaps))]
        else:
            if small:
                pairs = [pair for pair in pairs if int(np.argmin(sizes)) in pair]
            apart = [
                joins.distances[np.ix_(groups[g], groups[h])].min() * min(sizes[g], sizes[h])
                for g, h in pairs
            ]
            g, h = pairs[int(np.argmin(apart))]
        groups[h] = groups[h] + groups.pop(g)
        labels = np.empty(len(within), dtype=int)
        for number, group in enumerate(groups):
            labels[group] = number
        out.append(labels)
    return out


@pytest.mark.parametrize("seed", range(12))
def test_joins_are_those_of_the_rules(seed):
    joins = random_joins(seed)
    for probability in (0.3, 0.8, 0.99):
        tree = joins.tree(probability)
        for n_clusters, labels in zip(range(7, 0, -1), slow_partitions(joins, probability)):
            assert adjusted_rand_score(cut_tree(tree, n_clusters=n_clusters), labels) == 1.0


@pytest.mark.parametrize("seed", range(4))
def test_heights_and_sure_clusters_stay(seed):
    joins = random_joins(seed)
    for probability in (0.0, 0.5, 0.9):
        tree = joins.tree(probability)
        assert is_valid_linkage(tree)
        np.testing.assert_array_equal(tree[:, 2], joins.evidence[:, 2])
        sure = cut_tree(joins.evidence, probability)
        assert adjusted_rand_score(sure, cut_tree(tree, probability)) == 1.0


def test_a_few_rows_are_no_cluster_that_is_asked_for():
    """Three rows beside two clusters, all of them sure; the control has forty there."""
    centres = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 25.0]])
    evidence = np.array([[0, 1, 20.0, 2], [2, 3, 30.0, 3]])
    for n, expected in ((3, [0, 1, 0]), (40, [0, 0, 1])):
        generator = np.random.default_rng(0)
        rows = [c + generator.normal(size=(m, 2)) for c, m in zip(centres, (40, 40, n))]
        rows = np.concatenate(rows)
        tree = Joins.of(evidence, components_of(rows, centres, 1.0), rows).tree(0.9)
        assert cut_tree(tree, n_clusters=2).tolist() == expected
        assert cut_tree(tree, 0.9).tolist() == [0, 1, 2]


def test_the_nearest_of_sure_clusters_join_first_and_control_the_least_sure():
    """Two dense clusters near each other and a sparse one far away: of many rows the near ones are
    the surer, so that by evidence the sparse one would join first."""
    generator = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [7.0, 0.0], [60.0, 0.0]])
    rows = np.concatenate(
        [c + generator.normal(size=(n, 2)) for c, n in zip(centres, (90, 90, 60))]
    )
    joints = components_of(rows, centres, 1.0)
    evidence = np.array([[1, 2, 20.0, 2], [0, 3, 30.0, 3]])
    assert cut_tree(evidence, n_clusters=2).tolist() == [0, 1, 1]
    tree = Joins.of(evidence, joints, rows).tree(0.9)
    assert cut_tree(tree, n_clusters=2).tolist() == [0, 0, 1]
    assert cut_tree(Joins.of(evidence, joints).tree(0.9), n_clusters=2).tolist() == [0, 0, 1]


def test_distances_are_those_of_rows_in_any_unit():
    generator = np.random.default_rng(1)
    rows = generator.normal(size=(60, 3)) + 4 * np.repeat(np.eye(3), 20, axis=0)
    joints = components_of(rows, 4 * np.eye(3), 1.0)
    labels = joints.argmax(axis=1)
    scaled = rows / rows.std(axis=0)
    apart = np.linalg.norm(scaled[:, None] - scaled, axis=2)
    core = np.sort(apart, axis=1)[:, 5]
    reach = np.maximum(apart, np.maximum(core[:, None], core))
    expected = [[reach[np.ix_(labels == a, labels == b)].min() for b in range(3)] for a in range(3)]
    gaps = np.r_[rows * [1.0, 1e3, 1e-4], [[np.nan, 0.0, 0.0]]]
    tree = cluster_tree(joints)
    for numbers, of in ((rows, joints), (gaps, np.r_[joints, joints[:1]])):
        found = Joins.of(tree, of, numbers).distances
        off = ~np.eye(3, dtype=bool)
        np.testing.assert_allclose(found[off], np.array(expected)[off], rtol=1e-2)


def test_overlaps_are_those_of_shares():
    shares = np.random.default_rng(2).dirichlet(np.ones(3), 30)
    joins = Joins.of(np.array([[0, 1, 1.0, 2], [2, 3, 2.0, 3]]), np.log(shares) + 5.0)
    np.testing.assert_allclose(joins.overlaps[0, 2], np.sqrt(shares[:, 0] * shares[:, 2]).sum())
    np.testing.assert_allclose(joins.sizes, shares.sum(axis=0))
    own = shares.argmax(axis=1)
    of_rows = [
        np.log(shares[i, own[i]] / shares[i, 3 - own[i] - 2]) for i in range(30) if own[i] in (0, 1)
    ]
    assert joins.distances[0, 1] == pytest.approx(min(of_rows))


@pytest.mark.parametrize("seed", range(4))
def test_components_that_are_alike_join_first(seed):
    joins, alike = random_joins(seed), np.array([3, 1, 2, 3, 4, 1, 6, 3])
    tree = joins.tree(0.8, alike)
    assert is_valid_linkage(tree)
    np.testing.assert_array_equal(tree[:, 2], joins.evidence[:, 2])
    assert adjusted_rand_score(cut_tree(tree, n_clusters=5), alike) == 1.0
    np.testing.assert_array_equal(joins.tree(0.8, np.arange(8)), joins.tree(0.8))
