"""The point estimates of AcceleratedDPMixture: where "map" ends, and what goes with it."""

import math

import numpy as np
import pytest

from oracles.accelerated_fits import ALGORITHMS, UNCOLLAPSED, Rates, counts, mixture, rows_for
from skanneal.likelihoods import LIKELIHOODS
from skanneal.partition_priors import PitmanYor
from skanneal.schedules import AcceleratedSchedule
from skanneal.sharded._point import Instantiated, point_of
from skanneal.states import Mixture

ALPHA = 20.0  # high: draws have rows that would leave
RAW = {"concentration": ALPHA, "schedule": AcceleratedSchedule(n_accelerated=2, n_exact=3)}
CONJUGATE = [name for name, cls in LIKELIHOODS.items() if cls.conjugate]


def best_draw(model):
    return max((d for chain in model.draws_ for d in chain), key=lambda draw: draw.log_joint)


def log_partition(labels):
    """log p(partition) of a Dirichlet process, from its weights row by row."""
    seen, total = {}, 0.0
    for i, label in enumerate(labels):
        total += math.log(seen.get(label, ALPHA) / (ALPHA + i))
        seen[label] = seen.get(label, 0) + 1
    return total


class Joint:
    """log p(partition, x) with the hyperparameters of a model's point."""

    def __init__(self, model, X):
        self.likelihood = model.likelihood_
        block = Mixture.from_arrays(model._point.arrays, self.likelihood.schema).blocks[0]
        self.likelihood.set_state({"hyper": [block.get_hyper(f) for f in range(block.n_features)]})
        self.rows = self.likelihood.encode(X)

    def statistics(self, labels):
        labels = np.unique(labels, return_inverse=True)[1].astype(np.int32)
        return self.likelihood.statistics(self.rows, labels, int(labels.max()) + 1)

    def __call__(self, labels):
        log_lik = self.likelihood.log_marginal(self.statistics(labels)).sum()
        log_lik += self.likelihood.log_jacobian(len(self.rows))
        return log_partition(labels.tolist()) + float(log_lik)


def gain_of_a_move(joint, labels):
    """The most that any row's move would add."""
    top, gain = joint(labels), -np.inf
    for i in range(len(labels)):
        for k in range(labels.max() + 2):
            moved = labels.copy()
            moved[i] = k
            gain = max(gain, joint(moved) - top if k != labels[i] else -np.inf)
    return gain


@pytest.mark.parametrize("likelihood", CONJUGATE)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.few(8)
def test_no_row_would_leave(likelihood, algorithm):
    X, _ = rows_for(likelihood, n_rows=30)
    model = mixture(likelihood=likelihood, algorithm=algorithm, **RAW).fit(X)
    joint, raw = Joint(model, X), best_draw(model).labels
    assert gain_of_a_move(joint, model.component_labels_) < 1e-3
    away = np.r_[raw[:-1], raw.max() + 1]  # control: a row is taken from where it belongs
    assert gain_of_a_move(joint, away) > 1e-3
    assert joint(model.component_labels_) >= joint(raw)
    assert model._point.log_joint == pytest.approx(joint(model.component_labels_), rel=1e-6)
    statistics = joint.statistics(model.component_labels_)
    expected = joint.likelihood.features(joint.likelihood.mean(statistics))
    np.testing.assert_allclose(model.features_, expected, rtol=1e-6)
    assert model.predict_proba(X).shape == (30, model.n_clusters_)


@pytest.mark.parametrize("likelihood", ["logistic_normal", "own"])
@pytest.mark.parametrize("algorithm", UNCOLLAPSED)
def test_no_row_would_leave_instantiated_features(likelihood, algorithm):
    X, _ = counts(n_rows=40)
    own = Rates() if likelihood == "own" else likelihood
    model = mixture(likelihood=own, algorithm=algorithm, **RAW).fit(X)
    point, labels = model._point, model.component_labels_
    rows, theta = point.likelihood.encode(X), point.theta
    fit = np.empty((40, len(theta)), np.float32)
    point.likelihood.log_lik(rows, point.likelihood.prepare(theta), fit)
    sizes = np.bincount(labels)
    assert np.array_equal(point.sizes, sizes) and np.array_equal(point.labels, labels)
    for i, k in enumerate(labels):
        if sizes[k] > 1:
            others = np.log(sizes - np.eye(len(sizes))[k]) + fit[i]
            assert others[k] >= others.max() - 1e-4
    log_joint = log_partition(labels.tolist()) + point.likelihood.log_prior(theta).sum()
    log_joint += fit[np.arange(40), labels].sum(dtype=float) + point.likelihood.log_jacobian(40)
    assert point.log_joint == pytest.approx(log_joint, rel=1e-4)
    np.testing.assert_array_equal(model.features_, point.features)


def test_a_row_alone_is_weighed_without_its_feature(monkeypatch):
    """Its own feature fits it as no other; with the feature integrated out it joins the rest.

    This takes long, so it is asked of no other row."""
    rows = np.array([[3.0, 3.0, 3.0]] * 9 + [[4.0, 3.0, 3.0]])
    weights = np.tile(np.log([9.0, 9.0]), (10, 1))  # log n_k f: the last row fits its own best
    weights[:9, 1] = -np.inf
    draw = type("Draw", (), {"sizes": np.array([9, 1]), "prior": PitmanYor(1.0)})()
    labels, asked = np.array([0] * 9 + [1]), []
    monkeypatch.setattr("skanneal.sharded._point.weights_in_components", lambda *_: weights)
    for of_new, expected in ((np.log(0.5), 0), (np.log(20.0), 1)):

        def weight_in_new(draw, of_rows, answer=of_new):
            asked.append(of_rows.tolist())
            return np.array([answer])

        monkeypatch.setattr("skanneal.sharded._point.weight_in_new", weight_in_new)
        found, moved = Instantiated(draw).assign_greedily(rows, labels)
        assert found[-1] == expected and moved == 1 - expected
    assert asked == [rows[-1:].tolist()] * 2


def test_the_greedy_passes_end_when_they_are_told(monkeypatch):
    X, _ = rows_for("normal", n_rows=60)
    settled = mixture(**RAW).fit(X)
    monkeypatch.setattr(
        "skanneal.estimators._accelerated_dp.point_of",
        lambda *given: point_of(*given[:-2], lambda: True, given[-1]),
    )
    cut = mixture(**RAW).fit(X)
    assert np.array_equal(
        np.unique(best_draw(cut).labels, return_inverse=True)[1], cut.component_labels_
    )
    assert not np.array_equal(cut.component_labels_, settled.component_labels_)
