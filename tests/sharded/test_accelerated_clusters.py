"""Clusters and outlier scores of AcceleratedDPMixture: with atoms or without, of rows on disk."""

from functools import partial

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from oracles.accelerated_fits import Rates, counts, mixture, two_clusters
from skanneal.displays import ClusterTreeDisplay
from skanneal.schedules import AcceleratedSchedule
from skanneal.sharded._row_source import RowSource


def blocks(seed=0):
    """Two uniform blocks of whole numbers, which normal components cut, and which."""
    rng, side = np.random.default_rng(seed), np.repeat([0, 1], 150)
    steps = [rng.integers(-half, half + 1, 300) for half in (5, 8)]
    return np.array([[25, 50], [65, 130]])[side] + np.transpose(steps), side


def clusters(**parameters):
    return mixture(**{"point_estimate": "clusters", "n_draws": 3} | parameters)


@pytest.mark.parametrize("likelihood", ["auto", "normal"])
@pytest.mark.slow
def test_blocks_are_clusters_whatever_their_components(likelihood):
    X, side = blocks()
    schedule = AcceleratedSchedule(n_exact=300)
    model = clusters(likelihood=likelihood, schedule=schedule).fit(X)
    assert adjusted_rand_score(side, model.labels_) == 1.0
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert len(model.cluster_tree_) == model.n_components_ - 1
    assert len(model.features_) == model.n_components_ == model.component_labels_.max() + 1
    assert len(model.valley_sureness_) == model.n_components_ - 1
    assert model.n_clusters_ == 1 + (model.valley_sureness_ >= 0.9).sum()
    odd = np.r_[X, [[45, 90]]]  # between the blocks
    scores = mixture(likelihood=likelihood, n_draws=3).fit(odd).outlier_scores_
    assert scores.shape == (301,) and scores.argmax() == 300
    frame = model.describe_clusters(X)
    assert frame["size"].tolist() == [150, 150]
    assert mixture(likelihood=likelihood, n_clusters=1).fit(X).n_clusters_ == 1
    assert clusters(likelihood=likelihood, n_clusters=90).fit(X).n_clusters_ == 90
    with pytest.warns(ConvergenceWarning, match="n_clusters=301 are more than there are rows"):
        clusters(likelihood=likelihood, n_clusters=301).fit(X)
    display = ClusterTreeDisplay.from_estimator(model)
    assert len(display.ax_.get_xticklabels()) == model.n_components_


@pytest.mark.parametrize(
    ("likelihood", "algorithm"),
    [(Rates(), "hybrid"), ("logistic_normal", "accelerated"), ("multinomial", "collapsed")],
)
@pytest.mark.few(2)
def test_every_sort_of_likelihood_has_clusters(likelihood, algorithm):
    X, side = counts()
    model = clusters(likelihood=likelihood, algorithm=algorithm, init=2).fit(X)
    assert adjusted_rand_score(side, model.labels_) > 0.9
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.probabilities_.shape == (60,) and np.median(model.probabilities_) > 0.8
    all_noise = clusters(likelihood=likelihood, algorithm=algorithm, init=5, noise=1.0).fit(X)
    assert (all_noise.labels_ == -1).all()


@pytest.mark.parametrize("likelihood", ["normal", Rates()])
def test_rows_on_disk_have_the_same_clusters(likelihood, tmp_path, monkeypatch):
    X = two_clusters()[0] if isinstance(likelihood, str) else counts()[0].astype(float)
    np.save(tmp_path / "x.npy", X)
    on_disk = np.load(tmp_path / "x.npy", mmap_mode="r")
    expected = clusters(likelihood=likelihood).fit(X)
    monkeypatch.setattr("skanneal.sharded._data.RowSource", partial(RowSource, resident_bytes=0))
    model = clusters(likelihood=likelihood).fit(on_disk)
    for name in ("labels_", "probabilities_", "cluster_tree_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(expected, name))
