"""Clusters of fits: shapes that take several components, invariance, queries."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from skanneal import AnnealedDPMixture, CrossCatPY, PermutationDPMixture
from skanneal.displays import ClusterTreeDisplay
from skanneal.predictive import _clusters
from skanneal.predictive._clusters import Clusters
from skanneal.predictive._judges import gathered
from skanneal.schedules import LinearAnneal
from skanneal.summary import rank_clusters

pytestmark = pytest.mark.filterwarnings("ignore:The chains", "ignore:The rows are less probable")
SHORT = {"n_chains": 2, "n_draws": 4, "schedule": LinearAnneal(n_sweeps=15), "random_state": 0}
SHORT["point_estimate"] = "clusters"


def normal(generator, n):
    return generator.normal(size=(n, 2))


def heavy(generator, n):
    return generator.standard_t(4, size=(n, 2))


def square(generator, n):
    return generator.uniform(-1.7, 1.7, size=(n, 2))


def skewed(generator, n):
    return generator.gamma(2.0, size=(n, 2))


def ring(generator, n):
    angle = generator.uniform(0, 2 * np.pi, n)
    return np.c_[np.cos(angle), np.sin(angle)] * 2 + generator.normal(0, 0.25, (n, 2))


SHAPES = (normal, heavy, square, skewed, ring)


def fitted(X, **parameters):
    return AnnealedDPMixture(families="multivariate_normal", **SHORT | parameters).fit(X)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.few(3)
def test_one_shape_is_one_cluster_and_two_are_two(shape):
    generator = np.random.default_rng(7)
    one, other = shape(generator, 400), shape(generator, 400)
    # With separation=0.9 one fit in ten would be cut.
    assert fitted(one, separation=0.99).n_clusters_ == 1
    model = fitted(np.r_[one, other + [15.0, 0.0]])
    truth = np.repeat([0, 1], 400)
    assert model.n_clusters_ == 2 and adjusted_rand_score(model.labels_, truth) > 0.97


def test_control_components_of_a_ring_are_many():
    model = fitted(ring(np.random.default_rng(7), 400), point_estimate="map")
    assert model.n_clusters_ == model.n_components_ > 3


@pytest.fixture(scope="module")
def groups():
    """Three groups of 200, 120 and 60 rows, and a fit of them."""
    generator = np.random.default_rng(3)
    centres = np.repeat([[0, 0, 0], [9, 0, 2], [0, 9, -3]], [200, 120, 60], axis=0)
    X = generator.normal(size=(380, 3)) + centres
    return X, AnnealedDPMixture(**SHORT).fit(X)


@pytest.mark.parametrize(
    ("limit", "n_draws", "n_judges"),
    [("CELLS", 4, 3), ("_TREE_CELLS", 16, 3), ("ROWS_TIMES_DRAWS", 2, 3)],
)
def test_fewer_draws_of_many_rows_or_components(monkeypatch, limit, n_draws, n_judges):
    """An odd number of those that clusters are averaged over judges valleys."""
    judged, given = [], _clusters.valley_tree
    monkeypatch.setattr(_clusters, limit, 1)

    def watched(*args, **options):
        judged.append(len(args[1]))
        return given(*args, **options)

    monkeypatch.setattr(_clusters, "valley_tree", watched)
    X = np.repeat(np.eye(3) * 9, 30, axis=0) + np.random.default_rng(0).normal(size=(90, 3))
    model = fitted(X, n_draws=10)
    assert len(model._clusters.draws) == n_draws
    assert judged[0] == n_judges  # further trees are those of single chains, for what they say
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    assert model.n_clusters_ == 3


def test_labels_are_what_predict_says_the_largest_first(groups):
    X, model = groups
    assert np.bincount(model.labels_).tolist() == [200, 120, 60]
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (380, 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), model.labels_)
    assert model.probabilities_.shape == (380,) and np.median(model.probabilities_) > 0.9
    share = model.n_components_proba_
    assert share.sum() == pytest.approx(1.0) and share.argmax() == 3


@pytest.mark.parametrize("n_clusters", [1, 2, 3])
@pytest.mark.few(1)
def test_a_number_of_clusters_cuts_the_tree(groups, n_clusters):
    X, _ = groups
    assert AnnealedDPMixture(**SHORT, n_clusters=n_clusters).fit(X).n_clusters_ == n_clusters


def test_more_clusters_than_rows_are_warned_of(groups):
    X, _ = groups
    with pytest.warns(ConvergenceWarning, match="n_clusters=50 are more than there are rows"):
        assert AnnealedDPMixture(**SHORT, n_clusters=50).fit(X[::10]).n_clusters_ == 38


def test_rows_that_are_in_no_cluster_are_noise_if_asked_for(groups):
    X, _ = groups
    model = AnnealedDPMixture(**SHORT, noise=0.5).fit(X)
    far = np.full((1, 3), 60.0)
    assert model.predict(far).tolist() == [-1]
    assert (model.predict(X) == model.labels_).all() and (model.labels_ >= 0).mean() > 0.95


def test_a_row_that_only_a_new_component_explains_has_the_nearest_cluster():
    """Its densities in the components there are underflow beside that of a new one."""
    rates = np.where(np.arange(90) % 3 > 0, 10.0, 1000.0)
    X = np.random.default_rng(0).poisson(rates[:, None], (90, 5))
    model = AnnealedDPMixture(families="poisson", **SHORT).fit(X)
    far = np.full((1, 5), 30_000)
    assert model.new_cluster_proba(far) > 1.0 - 1e-9
    assert model.n_clusters_ == 2 and model.predict(far) == 1 == model.labels_[0]
    assert np.isfinite(model.predict_proba(far)).all()


def test_units_and_order_of_columns_do_not_matter(groups):
    X, model = groups
    for other in (X * [1000.0, 0.01, 1.0] + [5.0, -2.0, 0.0], X[:, ::-1]):
        labels = AnnealedDPMixture(**SHORT).fit(other).labels_
        assert adjusted_rand_score(labels, model.labels_) > 0.95


@pytest.mark.parametrize("make", [PermutationDPMixture, CrossCatPY])
def test_other_estimators_have_clusters_too(groups, make):
    X, _ = groups
    # after 15 sweeps the columns are still in several views in one fit of ten
    model = make(**SHORT | {"schedule": LinearAnneal(n_sweeps=40)}).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.n_clusters_ == 3
    assert len(model.cluster_tree_) == model.n_components_ - 1
    assert len(model.component_labels_) == len(X)


def test_description(groups):
    X, model = groups
    frame = model.describe_clusters(X, n_features=1)
    assert frame["size"].tolist() == [200, 120, 60]
    assert (frame["low"] <= frame["size"]).all() and (frame["size"] <= frame["high"]).all()
    assert model.labels_[frame["typical_row"]].tolist() == [0, 1, 2]
    assert frame["apart"][1].startswith("0 ") and frame["apart"][2].startswith("1 ")
    own = X[model.labels_ == 2, 1].mean()
    assert frame["apart"][2] == f"1 {own:.4g} (all: {X[:, 1].mean():.4g})"
    with pytest.raises(ValueError, match="training data"):
        model.describe_clusters(X[:5])


def test_components_of_a_draw_are_added_up_without_small_ones():
    """Components of 40, 9, 7 and 30 rows; the first three lie in one of the point estimate's, and
    the third is too small."""
    joints = np.random.default_rng(0).normal(size=(6, 4))
    shares = np.array([[0.9, 0.1, 0.0], [0.6, 0.4, 0.0], [1.0, 0.0, 0.0], [0.2, 0.8, 0.0]])
    out = gathered(joints, shares, np.array([40, 9, 7, 30]))
    np.testing.assert_allclose(out[:, 0], np.log(np.exp(joints[:, 0]) + np.exp(joints[:, 1])))
    np.testing.assert_array_equal(out[:, 1], joints[:, 3])
    assert np.isneginf(out[:, 2]).all()


def test_a_tree_is_drawn(groups):
    _, model = groups
    display = ClusterTreeDisplay.from_estimator(model)
    assert len(display.ax_.get_xticklabels()) == model.n_components_


@pytest.mark.parametrize("n_in_block", [7, 40])
def test_rows_are_given_to_be_in_a_cluster_that_has_rows(n_in_block):
    """By the formula, also where a cluster is seen to have no row only in the end."""
    rng = np.random.default_rng(0)
    joints = 2.0 * rng.normal(size=(40, 6))  # of five components, and of a new one
    joints[:, 2] -= 4.0  # the third is the most probable one of no row
    joints[:, 3] -= 9.0 * (np.arange(40) < 30)  # and the fourth of none of the first thirty

    class Given(Clusters):
        noise = None

        def __init__(self):
            pass

        def joints(self, table, clusters):
            members = clusters[:, None] == np.unique(clusters)
            for start in range(0, 40, n_in_block):
                stop = min(start + n_in_block, 40)
                known = np.log(np.exp(joints[start:stop, :-1]) @ members)
                yield start, stop, np.column_stack([known, joints[start:stop, -1]])

    found = Given()
    clusters = np.array([0, 1, 2, 3, 0])
    found._label(SimpleNamespace(n_rows=40), clusters)
    shares = np.exp(joints)
    of_cluster = np.stack([shares[:, [0, 4]].sum(axis=1), shares[:, 1], shares[:, 3]], axis=1)
    best = of_cluster.argmax(axis=1)
    assert (shares[:, 2] < of_cluster.max(axis=1)).all() and (best[:30] < 2).all()
    assert (best == 2).any()
    ranks, _ = rank_clusters(best)
    np.testing.assert_array_equal(found.labels, ranks)
    known = of_cluster.max(axis=1) / of_cluster.sum(axis=1)
    expected = known * (1.0 - shares[:, 5] / shares.sum(axis=1))
    np.testing.assert_allclose(found.confidence, expected)
    assert found.n_clusters == 3 and found.clusters[2] == -1
