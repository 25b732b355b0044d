"""Components beneath several clusters: found, parted, and labelled by peaks."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from skanneal import AnnealedDPMixture, CrossCatPY
from skanneal.predictive import _clusters
from skanneal.predictive._draws import state_of
from skanneal.predictive._loo import compared_rows
from skanneal.predictive._parts import (
    beneath,
    main_peaks,
    neighbourhood,
    parted,
    show_as_many,
)
from skanneal.schedules import LinearAnneal

pytestmark = pytest.mark.filterwarnings("ignore:The chains", "ignore:The rows are less probable")
SHORT = {"n_chains": 2, "n_draws": 4, "schedule": LinearAnneal(n_sweeps=30), "random_state": 0}
SHORT["point_estimate"] = "clusters"
CENTRES = np.array([(i, j) for i in range(3) for j in range(3)], dtype=float)


def cores_on_a_cloud(seed, n_rows=1500, centres=CENTRES, width=1.1):
    """Narrow clusters, nine on a lattice, a third of the rows in one wide law about all of them,
    and the nearest centre of each row."""
    generator = np.random.default_rng(seed)
    n_cloud = int(0.35 * n_rows)
    own = generator.integers(0, len(centres), n_rows - n_cloud)
    cores = centres[own] + 0.16 * generator.normal(size=(len(own), 2))
    cloud = centres.mean(axis=0) + width * generator.normal(size=(n_cloud, 2))
    X = np.r_[cores, cloud]
    return X, ((X[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1), len(own)


def no_pairs(log_joints, *given, **named):
    """In place of `pair_heights`."""
    return np.zeros((log_joints.shape[1],) * 2)


def fitted(X, **parameters):
    return AnnealedDPMixture(families="multivariate_normal", **SHORT | parameters).fit(X)


@pytest.fixture(scope="module")
def model():
    return fitted(cores_on_a_cloud(0)[0])


def test_cores_on_a_cloud_are_clusters(model):
    X, nearest, n_cores = cores_on_a_cloud(0)
    assert model.n_clusters_ == 9
    assert adjusted_rand_score(model.labels_[:n_cores], nearest[:n_cores]) > 0.95
    assert adjusted_rand_score(model.labels_, nearest) > 0.85  # a third are between the cores
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(model.predict_proba(X).argmax(axis=1), model.labels_)


def test_control_whole_components_join_the_cores(monkeypatch):
    monkeypatch.setattr(_clusters, "beneath", lambda *given: False)
    assert fitted(cores_on_a_cloud(0)[0]).n_clusters_ <= 3


def test_peaks_are_judged_by_pairs(monkeypatch):
    """Fewer rows, where valleys are not sure: pairs of peaks tell what they leave together."""
    X, nearest, n_cores = cores_on_a_cloud(3, n_rows=300)
    model = fitted(X)
    assert model.n_clusters_ == 9
    assert adjusted_rand_score(model.labels_[:n_cores], nearest[:n_cores]) > 0.9
    monkeypatch.setattr(_clusters, "pair_heights", no_pairs)
    assert fitted(X).n_clusters_ < 9


@pytest.mark.parametrize(("n_components", "n_rows"), [(3, 4000), (40, 4000), (50, 5000)])
def test_valleys_are_looked_for_in_more_rows_of_many_components(n_components, n_rows):
    assert _clusters.looked_rows(n_components) == n_rows


def test_rows_times_components_are_bounded():
    assert _clusters.looked_rows(130) == 13_000
    assert _clusters.looked_rows(400) == 5_000
    assert _clusters.looked_rows(5000) == 4000


def test_components_are_parts_of_clusters(model):
    """All that is said of components is of the parts."""
    assert model.cluster_tree_.shape == (model.n_components_ - 1, 4)
    assert model.n_components_ == model.component_labels_.max() + 1 == len(model._point.sizes)
    assert model.n_components_ > model.n_clusters_


@pytest.mark.parametrize("asked", [{"n_clusters": 4}, {"n_clusters": 9}, {"separation": 0.9}])
def test_another_cut_keeps_the_parts(asked):
    X = cores_on_a_cloud(0)[0]
    model = fitted(X)
    before = model.component_labels_
    model.cut(X, **asked)
    assert model.n_clusters_ == asked.get("n_clusters", 9)
    np.testing.assert_array_equal(model.component_labels_, before)
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_parts_are_the_rows_of_a_component_in_a_basin(model):
    """Of each part of three rows or more the statistics are those of its rows."""
    X = cores_on_a_cloud(0)[0]
    table = model._queries().table(model._encoded(X))
    draw = model.draws_[0][0]
    around = neighbourhood(draw, table, compared_rows(table.n_rows))
    found = np.random.default_rng(0).integers(0, 4, table.n_rows)
    new = parted(draw, draw.main_view, draw.labels, around, found, table)
    counts = np.zeros((draw.n_components, 4), dtype=int)
    np.add.at(counts, (draw.labels, found), 1)
    expected = []
    for k, own in enumerate(counts):
        parts = [b for b in range(4) if own[b] >= 3]
        main = int(own.argmax())
        for b in parts if len(parts) > 1 else [main]:
            rest = [r for r in range(4) if r not in parts] if b == main else []
            expected.append(
                np.flatnonzero((draw.labels == k) & np.isin(found, [b, *rest])).tolist()
                if len(parts) > 1
                else np.flatnonzero(draw.labels == k).tolist()
            )
    assert sorted(expected) == sorted(
        np.flatnonzero(new.labels == k).tolist() for k in range(new.n_components)
    )
    cells = np.column_stack([table.column(j) for j in range(2)])
    means = np.array([cells[new.labels == k].mean(axis=0) for k in range(new.n_components)])
    held = np.reshape(new.arrays["multivariate_normal/mean"], (2, new.n_components)).T
    np.testing.assert_allclose(held, means, atol=1e-4)
    assert state_of(new, table).log_joint() == pytest.approx(new.log_joint)
    assert draw.n_components == len(counts)  # the draw itself is as it was


def test_parting_again_changes_nothing(model):
    table = model._queries().table(model._encoded(cores_on_a_cloud(0)[0]))
    draw = model.draws_[0][0]
    around = neighbourhood(draw, table, compared_rows(table.n_rows))
    found = np.random.default_rng(0).integers(0, 4, table.n_rows)
    new = parted(draw, 0, draw.labels, around, found, table)
    again = parted(new, 0, new.labels, around, found, table)
    np.testing.assert_array_equal(again.labels, new.labels)


def test_an_edge_is_as_low_as_half_way():
    """Every row is a neighbour of most others, so that without the places between them the rows of
    two groups would be about one peak."""
    generator = np.random.default_rng(4)
    X = np.repeat([[0.0, 0.0], [9.0, 9.0]], 8, axis=0) + generator.normal(size=(16, 2))
    model = fitted(X)
    table = model._queries().table(model._encoded(X))
    draw = next(draw for draw in model.draws_[0] if draw.n_components == 2)
    mixture = state_of(draw, table).views[0]
    around = neighbourhood(draw, table, np.arange(16))
    found, of_each = around.peaks([mixture], np.ones(1))
    np.testing.assert_array_equal(found, np.repeat([0, 1], 8))
    np.testing.assert_array_equal(of_each[0], found)
    scores, log_weights = mixture.score_rows(table, 0, 16)
    of_rows = np.log(np.exp(scores + log_weights).sum(axis=1))
    none = np.empty(0, dtype=np.int64)
    assert around.basins(of_rows, none, none).max() == 0


def test_a_component_is_beneath_groups_of_which_none_has_half_of_it():
    rows, groups = np.arange(6), np.array([0, 0, 1, 1, 2, 2])
    spread, held = np.zeros(6, dtype=int), np.array([0, 0, 0, 1, 1, 1])
    assert beneath([spread], rows, groups)
    assert not beneath([held], rows, groups)
    assert not beneath([spread, held], rows, groups)  # most draws must have one
    assert beneath([spread, held, spread], rows, groups)


def test_parts_must_show_as_many_clusters_as_whole_components():
    """A component beneath all groups is no cluster; one that has no row here is one."""
    labels = np.repeat(np.arange(4), 3)
    groups = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 0, 1, 2])
    assert show_as_many(groups, labels, np.arange(4))
    assert not show_as_many(groups, labels, np.arange(5))
    half = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 0, 0, 1])  # of component 3 most is in a group
    assert not show_as_many(half, labels, np.arange(4))
    assert show_as_many(half, labels, np.array([0, 1, 2, 2]))


def test_fewer_clusters_by_peaks_leave_components_whole(model, monkeypatch):
    assert model._clusters.joins.parted
    asked = []
    monkeypatch.setattr(_clusters, "show_as_many", lambda *given: asked.append(given))
    whole = fitted(cores_on_a_cloud(0)[0])
    assert not whole._clusters.joins.parted and whole.n_components_ < model.n_components_
    groups, labels, clusters = asked[0]
    assert len(groups) == len(labels) == 1500 and len(np.unique(groups)) == model.n_clusters_
    np.testing.assert_array_equal(labels, whole.component_labels_)
    assert len(clusters) == whole.n_components_


def test_a_component_is_about_the_peak_of_most_of_its_rows():
    labels = np.array([0, 0, 0, 1, 1, 2])
    peaks = main_peaks(labels, np.arange(5), np.array([1, 1, 0, 0, 0]))
    assert peaks[:2].tolist() == [1, 0] and peaks[2] not in peaks[:2]


@pytest.mark.parametrize("spoil", ["gap", "level", "atom"])
def test_places_in_between_are_of_numbers_without_gaps_alone(spoil):
    X = cores_on_a_cloud(1, 120)[0].astype(object)
    if spoil == "gap":
        X[3, 0] = np.nan
    if spoil == "level":
        X = np.c_[X, np.where(np.arange(len(X)) % 2, "a", "b")]
    if spoil == "atom":
        X[: len(X) // 2, 0] = 0.0
    few = SHORT | {"schedule": LinearAnneal(n_sweeps=4), "n_draws": 2}
    model = AnnealedDPMixture(**few).fit(X)
    table = model._queries().table(model._encoded(X))
    assert neighbourhood(model._point, table, np.arange(table.n_rows)) is None


def test_views_of_numbers_are_parted_too():
    """Of a lattice the columns would be independent: here they depend on each other."""
    centres = 0.6 * np.array([(i, 2 * i % 7) for i in range(7)])
    X, _, _ = cores_on_a_cloud(0, centres=centres, width=1.4)
    beside = np.random.default_rng(5).integers(0, 3, len(X)).astype(str)
    model = CrossCatPY(families={"multivariate_normal": [0, 1]}, **SHORT | {"random_state": 1})
    model.fit(np.c_[X.astype(object), beside])
    own = model.view_labels_
    assert own[0] == own[1] != own[2] and model.n_clusters_ == 7 and model._clusters.joins.parted
    np.testing.assert_array_equal(model.row_labels_[own[0]], model.component_labels_)
