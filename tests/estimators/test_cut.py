"""A fit that is cut again: labels, what predicts them, what goes on, and errors."""

import numpy as np
import pytest
from sklearn.base import clone

from skanneal import AcceleratedDPMixture, AnnealedDPMixture, CrossCatPY
from skanneal.schedules import AcceleratedSchedule, LinearAnneal
from skanneal.summary import cut_tree

pytestmark = pytest.mark.filterwarnings("ignore:The chains", "ignore:The rows are less probable")
SHORT = {"n_chains": 2, "n_draws": 4, "schedule": LinearAnneal(n_sweeps=15), "random_state": 0}
CUT = ("labels_", "n_clusters_", "probabilities_", "cluster_tree_", "valley_sureness_")
CUT += ("n_clusters_proba_",)


def rows():
    generator = np.random.default_rng(0)
    centres = np.repeat([[0, 0], [9, 0], [0, 30], [9, 30]], [60, 50, 40, 30], axis=0)
    return generator.normal(size=(180, 2)) + centres


def model_of(make, **parameters):
    if make is AcceleratedDPMixture:
        schedule = AcceleratedSchedule(n_accelerated=20, n_exact=20)
        return make(schedule=schedule, n_draws=3, random_state=0, **parameters)
    return make(**SHORT | parameters)


@pytest.mark.parametrize("make", [AnnealedDPMixture, CrossCatPY, AcceleratedDPMixture])
def test_clusters_are_cut_from_the_tree_and_predicted(make):
    X = rows()
    model = model_of(make).fit(X)
    before = {name: np.copy(getattr(model, name)) for name in CUT}
    components, density = model.component_labels_, model.score(X)
    for k in range(1, model.n_components_ + 1):
        assert model.cut(X, n_clusters=k) is model
        assert model.n_clusters_ == k == len(np.unique(model.labels_)) == model.n_clusters
        np.testing.assert_array_equal(model.predict(X), model.labels_)
        assert model.predict_proba(X).shape == (180, k)
        for name in ("cluster_tree_", "n_clusters_proba_"):  # what the rows say stays
            np.testing.assert_array_equal(getattr(model, name), before[name])
        of_tree = cut_tree(model.cluster_tree_, n_clusters=k)[components]
        same = of_tree[:, None] == of_tree
        assert ((model.labels_[:, None] == model.labels_) == same).mean() > 0.9
    np.testing.assert_array_equal(model.component_labels_, components)
    assert model.score(X) == density
    model.cut(X)
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(model, name), value)


@pytest.mark.parametrize("make", [AnnealedDPMixture, CrossCatPY, AcceleratedDPMixture])
def test_rounded_rows_have_one_label(make):
    """Chains have rounded cells with noise; labels are of the cells as they are, in the fit, asked
    again, and when it is cut again."""
    generator = np.random.default_rng(0)
    X = np.round(generator.normal(size=(600, 2)) + generator.integers(2, size=(600, 1)) * 3.0)
    name = "likelihood" if make is AcceleratedDPMixture else "families"
    model = model_of(make, **{name: "normal"}).fit(X)
    assert model.rounding_ and model.n_clusters_ > 1
    before = model.labels_, model.probabilities_
    for labels, probabilities in (before, (model.cut(X).labels_, model.probabilities_)):
        np.testing.assert_array_equal(model.predict(X), labels)
        said = model.predict_proba(X)[np.arange(600), labels]
        expected = said * (1.0 - model.new_cluster_proba(X))
        np.testing.assert_allclose(probabilities, expected, atol=0.01)


def test_near_clusters_join_before_far_ones():
    X = rows()
    model = model_of(AnnealedDPMixture).fit(X)
    assert model.n_clusters_ == 4
    model.cut(X, n_clusters=2)
    assert len(set(model.labels_[:110])) == len(set(model.labels_[110:])) == 1
    assert model.labels_[0] != model.labels_[-1]


def test_separation_cuts_too_and_a_fit_that_goes_on_keeps_to_the_cut():
    X = rows()
    model = model_of(AnnealedDPMixture, warm_start=True).fit(X)
    assert model.cut(X, separation=1 - 1e-12).separation == 1 - 1e-12
    fewer = model.n_clusters_
    assert 1 <= fewer <= 4 and model.n_clusters_proba_.argmax() == fewer
    assert model.cut(X, n_clusters=3).fit(X).n_clusters_ == 3
    assert clone(model).get_params()["n_clusters"] == 3
    model.cut(X, separation=0.9)
    assert model.n_clusters is None and model.n_clusters_ == 4
    assert model.n_clusters_proba_.argmax() == 4 and model.n_clusters_proba_[4] > 0.7


@pytest.mark.slow
def test_what_the_chains_say_of_clusters_is_of_the_new_ones():
    """Chains of few sweeps on rows without clusters, which do not agree."""
    X = np.random.default_rng(1).gamma(1.0, size=(150, 3))
    for seed in range(5):
        parameters = {"schedule": LinearAnneal(n_sweeps=3), "n_chains": 3, "random_state": seed}
        model = AnnealedDPMixture(**SHORT | parameters).fit(X)
        answers = model.convergence_["answers"]
        if answers and model.n_components_ > 1:
            break
    model.cut(X, n_clusters=1)
    said = model.convergence_["answers"]
    assert said["clusters"]["value"] == 1.0 and said["density"] == answers["density"]
    assert said["number of clusters"]["value"] == 1.0
    all_agree = all(answer["agrees"] for answer in said.values())
    assert model.convergence_["settled"] == all_agree


def test_errors_come_before_any_change():
    X = rows()
    model = model_of(AnnealedDPMixture).fit(X)
    labels = model.labels_
    for asked, message in (
        ({"n_clusters": 99}, "n_clusters=99 are more than the 4 components"),
        ({"n_clusters": 0}, "The 'n_clusters' parameter"),
        ({"separation": 1.0}, "The 'separation' parameter"),
    ):
        with pytest.raises(ValueError, match=message):
            model.cut(X, **asked)
    for other in (X[:50], X + 1.0):
        with pytest.raises(ValueError, match="X must be the training data"):
            model.cut(other, n_clusters=2)
    assert model.labels_ is labels and model.n_clusters is None and model.separation == 0.9
    components = model_of(AnnealedDPMixture, point_estimate="map").fit(X)
    with pytest.raises(ValueError, match="There is no tree to cut"):
        components.cut(X, n_clusters=2)
