"""How probable each number of clusters is: against the products, and where the tree is cut."""

import numpy as np
import pytest

from skanneal.summary import cut_tree, n_clusters_proba, valley_sureness


def tree_of(heights):
    """A tree that adds one component after another, at these heights."""
    n = len(heights)
    first, second = np.arange(n) + 1, np.arange(n) + n
    if n:
        second[0] = 0
    nodes = np.sort(np.column_stack([first, second]), axis=1)
    return np.column_stack([nodes, np.sort(heights), np.arange(n) + 2])


def by_products(sureness, probability, unseen):
    """The definition, number by number."""
    odds = (1 - probability) / (1 - np.sort(sureness)[::-1])
    weights = [np.prod(odds[: k - 1]) for k in range(1, len(odds) + 2)]
    total = sum(weights)
    more = weights[-1] / total * unseen / (1 - unseen)
    return np.array([0.0, *(np.array(weights) / total), more]) / (1 + more)


@pytest.mark.parametrize("probability", [0.0, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("n_joins", [0, 1, 2, 7])
def test_it_is_the_product_of_the_odds_of_the_surest_joins(n_joins, probability):
    tree = tree_of(np.random.default_rng(n_joins).exponential(3.0, n_joins))
    for unseen in (0.0, 0.2, 0.6):
        said = n_clusters_proba(tree, probability, unseen)
        assert said.shape == (n_joins + 3,) and said[0] == 0.0
        expected = by_products(valley_sureness(tree), probability, unseen)
        np.testing.assert_allclose(said, expected, atol=1e-12)
        # of all components and more, `unseen` are more
        np.testing.assert_allclose(said[-1], unseen * (said[-2] + said[-1]), atol=1e-12)


def test_the_number_at_which_the_tree_is_cut_is_the_most_probable_one():
    """And another number is, if another sureness is asked for: so the two must be the same."""
    others = 0
    for seed in range(200):
        generator = np.random.default_rng(seed)
        tree = tree_of(generator.exponential(4.0, generator.integers(1, 12)))
        for probability in (0.0, 0.5, 0.9, 0.99):
            n_clusters = cut_tree(tree, probability).max() + 1
            assert n_clusters_proba(tree, probability).argmax() == n_clusters
            others += n_clusters_proba(tree, 0.7).argmax() != n_clusters
    assert others > 100


def test_probabilities_fall_on_both_sides_of_the_most_probable_number():
    for seed in range(50):
        said = n_clusters_proba(tree_of(np.random.default_rng(seed).exponential(3.0, 9)))[1:-1]
        top = said.argmax()
        assert (np.diff(said[: top + 1]) >= 0).all() and (np.diff(said[top:]) <= 0).all()


def test_heights_without_end():
    """Joins of clusters far apart: nothing overflows, and all of them are clusters."""
    for height in (700.0, 1e6, np.inf):
        said = n_clusters_proba(tree_of([height, height, 0.0]), unseen=0.0)
        np.testing.assert_allclose(said, [0, 0, 0, 1 / 1.1, 0.1 / 1.1, 0], atol=1e-9)


def test_one_component_may_hide_more_clusters():
    np.testing.assert_allclose(n_clusters_proba(np.empty((0, 4))), [0.0, 0.8, 0.2])


@pytest.mark.parametrize("name", ["probability", "unseen"])
@pytest.mark.parametrize("value", [-1, 1, 2.0, np.nan])
def test_shares_out_of_their_range_are_named(name, value):
    with pytest.raises(ValueError, match=f"{name} must be at least 0 and below 1, got"):
        n_clusters_proba(tree_of([9.0, 0.4]), **{name: value})


def test_what_is_no_tree_is_refused():
    with pytest.raises(ValueError, match="tree must be of shape"):
        n_clusters_proba([0.9, 0.2])
