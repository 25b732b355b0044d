"""As many clusters as were asked for, and figures of their number that agree with each other."""

import pickle
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from oracles.accelerated_fits import Rates
from skanneal import AcceleratedDPMixture, AnnealedDPMixture, CrossCatPY, PermutationDPMixture
from skanneal.predictive._how_many import number_proba
from skanneal.predictive._raised_weights import alike, raised_weights
from skanneal.predictive._splits import split_largest
from skanneal.schedules import AcceleratedSchedule, LinearAnneal, SequentialGibbs
from skanneal.summary import n_clusters_proba

pytestmark = pytest.mark.filterwarnings("ignore:The chains", "ignore:The rows are less probable")
SHORT = {"n_chains": 1, "n_draws": 2, "schedule": LinearAnneal(n_sweeps=8), "random_state": 0}


def numbers(n=60, d=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def counts(n=60, d=4, seed=0):
    return np.random.default_rng(seed).poisson(6, (n, d))


def holed(X, share=0.2, seed=1):
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


def levels(n=60, seed=0):
    return pd.DataFrame(np.random.default_rng(seed).choice(list("abcd"), (n, 4)))


def mixed(n=60, seed=0):
    frame = pd.DataFrame(holed(numbers(n, 3, seed)), columns=["x", "y", "z"])
    return frame.assign(level=levels(n, seed)[0], count=counts(n, 1, seed)[:, 0])


def check_given(model, X, k):
    """k clusters everywhere, and each has a row that `predict` puts there."""
    assert model.n_clusters_ == k and np.unique(model.labels_).tolist() == list(range(k))
    assert (np.diff(np.bincount(model.labels_)) <= 0).all()
    assert model.n_components_ >= k and len(model.cluster_tree_) == model.n_components_ - 1
    assert model.component_labels_.max() == model.n_components_ - 1
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (len(X), k)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert np.isfinite(model.probabilities_).all()
    if not model.rounding_:  # queries are not jittered
        np.testing.assert_array_equal(model.predict(X), model.labels_)
        np.testing.assert_array_equal(probabilities.argmax(axis=1), model.labels_)


def test_the_replacement_of_kmeans_gives_three_clusters_of_iris(recwarn):
    X = load_iris().data
    model = AnnealedDPMixture(n_clusters=3, n_chains=1, random_state=0).fit(X)
    check_given(model, X, 3)
    assert not [w for w in recwarn if "n_clusters" in str(w.message)]


TABLES = {
    "normal": (numbers, {}),
    "multivariate_normal": (numbers, {"families": "multivariate_normal"}),
    "multivariate_normal with gaps": (
        lambda: holed(numbers()),
        {"families": "multivariate_normal"},
    ),
    "multivariate_t": (lambda: holed(numbers()), {"families": "multivariate_t"}),
    "log_normal": (lambda: np.exp(numbers()), {"families": "log_normal"}),
    "gamma_exponential": (lambda: np.exp(numbers()), {"families": "gamma_exponential"}),
    "poisson": (counts, {"families": "poisson"}),
    "negative_binomial": (counts, {"families": "negative_binomial"}),
    "multinomial": (counts, {"families": "multinomial"}),
    "levels": (levels, {}),
    "mixed": (mixed, {}),
    "finite": (numbers, {"partition_prior": "finite", "expected_clusters": (1, 2)}),
    "discount": (numbers, {"discount": "infer"}),
    "concentration": (numbers, {"concentration": 1e-8}),
    "vi": (numbers, {"point_estimate": "vi", "n_draws": 20}),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("k", [3, 25])
def test_clusters_are_given_where_the_posterior_has_fewer(name, k):
    make, parameters = TABLES[name]
    X = make()
    model = AnnealedDPMixture(**SHORT | parameters, n_clusters=k).fit(X)
    check_given(model, X, k)


@pytest.mark.parametrize("make", [PermutationDPMixture, CrossCatPY])
@pytest.mark.parametrize("k", [4, 60])
@pytest.mark.few(2)
def test_other_estimators_give_them_too(make, k):
    X = numbers()
    model = make(**SHORT, n_clusters=k).fit(X)
    check_given(model, X, k)
    if make is CrossCatPY:
        largest = model.row_labels_[np.bincount(model.view_labels_).argmax()]
        np.testing.assert_array_equal(largest, model.component_labels_)


@pytest.mark.parametrize("likelihood", ["multivariate_normal", "logistic_normal", Rates()])
@pytest.mark.few(1)
def test_shards_give_them_too(likelihood):
    X = numbers() if likelihood == "multivariate_normal" else counts(d=3) + 1
    schedule = AcceleratedSchedule(n_accelerated=5, n_exact=5)
    for k in (3, 40):
        model = AcceleratedDPMixture(
            likelihood=likelihood, schedule=schedule, n_clusters=k, random_state=0
        ).fit(X)
        assert model.n_clusters_ == k == len(np.unique(model.labels_))
        np.testing.assert_array_equal(model.predict(X), model.labels_)
        assert len(model.features_) == model.n_components_ >= k


@pytest.mark.parametrize("prior", ["pitman_yor", "finite"])
def test_every_row_may_be_a_cluster(prior):
    X = numbers(12, 3)
    model = AnnealedDPMixture(**SHORT, partition_prior=prior, n_clusters=12).fit(X)
    check_given(model, X, 12)


def test_no_more_than_rows_that_differ():
    """Equal rows are in one cluster, also where the cells are rounded and thus jittered."""
    generator = np.random.default_rng(0)
    X = generator.integers(0, 3, (80, 2)).astype(float)
    n_distinct = len(np.unique(X, axis=0))
    for rounding in ("auto", None):
        with pytest.warns(ConvergenceWarning, match="n_clusters=20 are more than there are rows"):
            model = AnnealedDPMixture(**SHORT, rounding=rounding, n_clusters=20).fit(X)
        check_given(model, X, n_distinct)


LOOSE = {"concentration": 10.0, "discount": 0.5, "random_state": 0}  # many components of few rows


def test_components_of_equal_rows_are_in_one_cluster():
    """A tree cut between two of them would ask for a cluster that no weights can give a row."""
    X = np.random.default_rng(0).integers(0, 6, (60, 2))
    n_distinct = len(np.unique(X, axis=0))
    once = LOOSE | {"n_chains": 1, "n_draws": 3}
    gibbs = {"families": "categorical", "schedule": SequentialGibbs(n_sweeps=5)}
    collapsed = {"likelihood": "poisson", "algorithm": "collapsed"}
    for model in (
        AnnealedDPMixture(**once, **gibbs),
        PermutationDPMixture(**once, **gibbs),
        AcceleratedDPMixture(
            schedule=AcceleratedSchedule(n_accelerated=3, n_exact=3), **once, **collapsed
        ),
    ):
        for k in (5, n_distinct):
            model.set_params(n_clusters=k).fit(X)
            check_given(model, X, k)
        if model.n_components_ > k:
            with pytest.warns(ConvergenceWarning, match=f"there are {k} clusters"):
                model.cut(X, n_clusters=model.n_components_)
            check_given(model, X, k)
        check_given(model.cut(X, n_clusters=7), X, 7)


def test_a_cut_has_as_many_clusters_as_its_components_tell_rows_apart():
    """One level of four is in no component of its own, so that no cut can part it."""
    X = pd.DataFrame({"a": np.random.default_rng(0).choice(list("abcd"), 90)})
    model = AnnealedDPMixture(n_chains=2, schedule="sequential_gibbs", **LOOSE)
    model.set_params(concentration=5.0).fit(X)
    k, shared = model.n_components_, pd.crosstab(X["a"], model.component_labels_) > 0
    assert k > 30 and np.linalg.matrix_rank(shared) == 3
    for asked in (k, 4):
        with pytest.warns(ConvergenceWarning, match=f"n_clusters={asked} .* there are 3 clusters"):
            model.cut(X, n_clusters=asked)
        check_given(model, X, 3)
    with pytest.warns(ConvergenceWarning, match=f"n_clusters={k} .* there are 4 clusters"):
        model.set_params(n_clusters=k).fit(X)
    check_given(model, X, 4)


def test_as_many_components_as_can_have_a_row_of_their_own():
    """Of rows a, a, b, a, c, c: {a, b} leaves a to {a}, and the second {c} has none."""
    logs = np.log([[0.5, 0.3, 0.1, 0.1], [0.6, 0.1, 0.2, 0.1], [0.1, 0.1, 0.4, 0.4]])
    labels = np.array([0, 0, 0, 1, 2, 3])
    rows = logs[[0, 0, 1, 0, 2, 2]] + np.arange(6.0)[:, None]
    assert alike(rows, labels).tolist() == [0, 1, 2, 2]


def test_noise_warm_start_and_a_time_limit_leave_the_number():
    X = numbers(200)
    noisy = AnnealedDPMixture(**SHORT, n_clusters=5, noise=0.05).fit(X)
    assert noisy.n_clusters_ == 5 and set(noisy.labels_) <= set(range(-1, 5))
    model = AnnealedDPMixture(**SHORT, n_clusters=5, warm_start=True).fit(X)
    check_given(model.fit(X), X, 5)
    limited = AnnealedDPMixture(n_clusters=5, n_chains=1, max_time=1.0, random_state=0).fit(X)
    check_given(limited, X, 5)


def test_draws_of_fewer_components_have_no_say():
    """Of three groups, two of which are two in some draws only."""
    X = np.r_[numbers(40), numbers(40, seed=1) + [2.0, 0.0], numbers(40, seed=2) + [20.0, 0.0]]
    model = AnnealedDPMixture(
        **SHORT | {"n_draws": 30}, families="multivariate_normal", n_clusters=3
    ).fit(X)
    sizes = [draw.n_components for draw in model.draws_[0]]
    assert 2 in sizes and max(sizes) > 2
    assert all(draw.n_components > 2 for draw in model._clusters.draws)
    check_given(model, X, 3)


def test_the_same_seed_gives_the_same_split():
    X = numbers()
    one, two = (AnnealedDPMixture(**SHORT, n_clusters=7).fit(X) for _ in range(2))
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_array_equal(one.probabilities_, two.probabilities_)


def test_the_largest_component_is_split_and_equal_rows_stay_together():
    keys = np.array([0, 0, 1, 2, 2, 3, 3, 3, 4, 5])
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1, 2])
    asked = []

    def split(rows, k, generator):
        asked.append((k, len(rows)))
        assert keys[rows[0]] != keys[rows[1]]
        return np.arange(len(rows)) % 2

    out = split_largest(labels, 5, lambda rows: keys[rows], split)
    # equal rows are first put together: 5 rows (0, 0, 1, 2, 2), 4 (3, 3, 3, 4) and one
    assert asked[0] == (0, 5) and len(np.unique(out)) == 5
    assert all(len(set(out[keys == key])) == 1 for key in range(6))
    assert split_largest(labels, 3, lambda rows: keys[rows], split) is None
    assert len(np.unique(split_largest(labels, 9, lambda rows: keys[rows], split))) == 6


def test_weights_are_raised_no_more_than_needed():
    """Three components, of which the second is never the most probable; the least that makes it
    so in its best row."""
    logs = np.log([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.2, 0.1, 0.7]])
    raised = raised_weights(logs)
    assert raised[0] == raised[2] == 0.0
    assert raised[1] == pytest.approx(np.log(2.0), abs=1e-5) and raised[1] > np.log(2.0)
    assert (logs + raised).argmax(axis=1).tolist() == [0, 1, 2]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.few(2)
def test_raised_weights_give_each_cluster_a_row(seed):
    generator = np.random.default_rng(seed)
    logs = generator.normal(size=(40, 30)) * 3 + np.linspace(0, 40, 30)
    assert len(np.unique(logs.argmax(axis=1))) < 30
    assert len(np.unique((logs + raised_weights(logs)).argmax(axis=1))) == 30


# ---- figures that agree -------------------------------------------------------------------------


def shapes(seed):
    generator = np.random.default_rng(seed)
    n = generator.integers(1, 5)
    centres = generator.normal(0, 4, (n, 2))
    return centres[generator.integers(0, n, 150)] + generator.gamma(2.0, 0.5, (150, 2))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("make", [AnnealedDPMixture, CrossCatPY, AcceleratedDPMixture])
@pytest.mark.few(2)
def test_the_number_of_clusters_is_one_more_than_sure_valleys(make, seed):
    parameters = SHORT
    if make is AcceleratedDPMixture:
        parameters = {"schedule": AcceleratedSchedule(n_accelerated=20, n_exact=20)}
        parameters |= {"n_draws": 3, "random_state": 0}
    X = shapes(seed)
    for separation in (0.0, 0.9):
        model = make(**parameters, separation=separation).fit(X)
        sureness = model.valley_sureness_
        assert sureness.shape == (model.n_components_ - 1,)
        assert (np.diff(sureness) <= 0).all() and ((sureness >= 0) & (sureness <= 1)).all()
        np.testing.assert_allclose(sureness, 1 - np.exp(-model.cluster_tree_[::-1, 2]))
        n_sure = 1 + (sureness >= separation).sum()
        assert model.n_clusters_ <= n_sure
        probabilities = model.n_clusters_proba_
        assert probabilities.shape == (model.n_components_ + 2,)
        np.testing.assert_allclose(probabilities.sum(), 1.0)
        np.testing.assert_allclose(probabilities[model.n_clusters_], probabilities.max())
        if (model._clusters.clusters >= 0).all():  # each is the most probable one of a row
            assert model.n_clusters_ == n_sure


def test_a_cluster_without_a_row_is_no_evidence_of_a_number():
    """Nor is one asked for; and there are no more clusters than rows."""
    tree = np.array([[2, 3, 0.5, 2], [1, 4, 4.0, 3], [0, 5, 9.0, 4]])
    found = SimpleNamespace(tree=tree, n_clusters=3)
    np.testing.assert_array_equal(number_proba(found, 0.9, None, 50), n_clusters_proba(tree))
    found.n_clusters = 2
    lost = number_proba(found, 0.9, None, 50)
    assert lost.argmax() == 2 and lost.shape == (6,)
    np.testing.assert_allclose(lost[3] / lost[2], 0.1 * np.exp(0.5))
    np.testing.assert_array_equal(number_proba(found, 0.9, 2, 50), n_clusters_proba(tree))
    assert number_proba(found, 0.9, None, 4)[-1] == 0.0 < lost[-1]


def test_how_probable_each_number_is_survives_pickling_and_needs_clusters():
    X = shapes(1)
    model = AnnealedDPMixture(**SHORT).fit(X)
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(model)).n_clusters_proba_, model.n_clusters_proba_
    )
    assert not hasattr(AnnealedDPMixture(**SHORT, point_estimate="map").fit(X), "n_clusters_proba_")
    assert AnnealedDPMixture(**SHORT).fit(X[:1]).n_clusters_proba_.tolist() == [0.0, 1.0, 0.0]


def test_the_posterior_of_the_number_of_components_is_that_of_the_draws():
    model = AnnealedDPMixture(**SHORT | {"n_draws": 20}).fit(shapes(0))
    sizes = [draw.n_components for draw in model.draws_[0]]
    np.testing.assert_allclose(model.n_components_proba_, np.bincount(sizes) / 20)


@pytest.mark.parametrize("make", [AnnealedDPMixture, CrossCatPY])
@pytest.mark.few(1)
def test_blocks_of_rows_give_what_all_rows_at_once_do(make, monkeypatch):
    X = np.r_[numbers(150, 3), numbers(100, 3, seed=1) + 6.0, numbers(50, 3, seed=2) - 6.0]
    whole = make(**SHORT | {"n_draws": 6}, separation=0.5).fit(X)
    whole_probabilities = whole.predict_proba(X)
    monkeypatch.setattr("skanneal.predictive._predictor.BLOCK_BYTES", 8 * 16 * 7)
    blocks = make(**SHORT | {"n_draws": 6}, separation=0.5).fit(X)
    np.testing.assert_array_equal(blocks.labels_, whole.labels_)
    np.testing.assert_allclose(blocks.probabilities_, whole.probabilities_, rtol=1e-12)
    np.testing.assert_allclose(blocks.predict_proba(X), whole_probabilities, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("question", ["predict", "score_samples", "new_cluster_proba"])
@pytest.mark.few(1)
def test_no_array_of_rows_times_components_is_held(question, monkeypatch):
    """Of 30,000 rows and 60 components, which in float64 are 14.4 MB."""
    model = AnnealedDPMixture(**SHORT, families="normal", n_clusters=60).fit(numbers(200))
    model._clusters.raised = None
    X = numbers(30_000)
    monkeypatch.setattr("skanneal.predictive._predictor.BLOCK_BYTES", 1 << 17)
    tracemalloc.start()
    try:
        getattr(model, question)(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert model._clusters.shares[0].shape[1] == 60
    assert peak < 0.4 * 8 * 60 * len(X)
