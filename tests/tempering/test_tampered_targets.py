"""A target or a fit of the tempered samplers that was changed: an error, and nothing read beyond.

Compiled evaluators read wherever a target's arrays, an order of its rows and a theta end.
"""

import pickle

import numpy as np
import pytest

from skanneal import TemperedGaussianMean, TemperedGPRegressor
from skanneal.schedules import CustomLadder
from skanneal.tempering import (
    CallableTarget,
    GaussianMeanTarget,
    GaussianProcessTarget,
    check_gradient,
    sample,
)
from skanneal.tempering._levels import Levels

N, D = 12, 3
X = np.random.default_rng(0).normal(size=(N, D))
Y = X[:, 0] - X[:, 1]
FEW = {"n_draws": 10, "n_warmup": 10, "n_chains": 1, "random_state": 0}
ARRAYS = {
    "X": GaussianProcessTarget,
    "y": GaussianProcessTarget,
    "location": GaussianProcessTarget,
    "scale": GaussianProcessTarget,
    "shape": GaussianProcessTarget,
    "rate": GaussianProcessTarget,
    "constant": GaussianProcessTarget,
    "whitener": GaussianMeanTarget,
    "whitened": GaussianMeanTarget,
}
CHANGES = {
    "shorter": lambda a: a[:-1],
    "longer": lambda a: np.concatenate([a, a]),
    "empty": lambda a: a[:0],
    "one more dimension": lambda a: a[None],
    "narrower": lambda a: a[:, :-1] if a.ndim == 2 else a[:1],
}


def target_of(make):
    return make(X, Y) if make is GaussianProcessTarget else make(X)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_of_a_target(name, change):
    target = target_of(ARRAYS[name])
    setattr(target, name, CHANGES[change](getattr(target, name)).copy())
    words = f"the target's {name} must have the shape"
    with pytest.raises(ValueError, match=words):
        target.bind(np.arange(N), [N])
    with pytest.raises(ValueError, match=words):
        sample(target, init=np.zeros(target.n_parameters), **FEW)


@pytest.mark.parametrize("make", [GaussianProcessTarget, GaussianMeanTarget])
def test_orders_and_sizes(make):
    target = target_of(make)
    for order in (np.arange(N + 1), np.arange(N - 1), np.r_[:11, 10], np.r_[:11, 10**9], [[0] * N]):
        with pytest.raises(ValueError, match="every one of 12 rows once"):
            target.bind(order, [N])
        with pytest.raises(ValueError, match="every one of 12 rows once"):
            target.bind(np.arange(N), [N]).set_order(order)
    for sizes in ([N + 1], [N, -1], [], [[N]]):
        with pytest.raises(ValueError, match="sizes must lie between 0 and the 12 rows"):
            target.bind(np.arange(N), sizes)


@pytest.mark.parametrize("make", [GaussianProcessTarget, GaussianMeanTarget])
def test_thetas_and_levels(make):
    target = target_of(make)
    bound, theta = target.bind(np.arange(N), [N, 5]), np.zeros(target.n_parameters)
    for wrong in (theta[:-1], np.r_[theta, 0.0], theta[None], np.float64(0.0)):
        for call in (bound.prior, bound.evaluate):
            with pytest.raises(ValueError, match="theta must have the shape"):
                call(wrong)
        with pytest.raises(ValueError, match="thetas must have the shape"):
            bound.evaluate_many([wrong], 0)
    for level in (-1, 2):
        with pytest.raises(ValueError, match="level must be in 0 .. 1"):
            bound.evaluate(theta, level)
        with pytest.raises(ValueError, match="level must be in 0 .. 1"):
            bound.evaluate_many([theta], level)


def test_rows_of_a_likelihood_are_rows_of_the_target():
    target = target_of(GaussianProcessTarget)
    for rows in ([0, N], [-1], [2, 2], [10**9]):
        with pytest.raises(ValueError, match="every one of 12 rows once"):
            target.log_likelihood(np.zeros(D + 2), np.array(rows))


@pytest.mark.parametrize(
    "drawn, error, message",
    [
        (np.zeros(1), ValueError, "returned 1 numbers for 8 parameters"),
        (0.0, ValueError, "returned 1 numbers for 8 parameters"),
        ([], ValueError, "returned 0 numbers for 8 parameters"),
        (np.zeros(9), ValueError, "returned 9 numbers for 8 parameters"),
        (["a"] * 8, ValueError, "returns must hold numbers: could not convert"),
        ([1j] * 8, TypeError, "returns must hold numbers: .* 'complex'"),
    ],
)
def test_prior_draws(drawn, error, message):
    """Of the start, of the hottest level once chains have started, and of checked gradients."""
    answers = iter(())
    target = CallableTarget(
        lambda theta: -0.5 * theta @ theta,
        lambda theta, rows: -float(theta[0] ** 2),
        n_parameters=8,
        n_rows=N,
        prior_gradient=lambda theta: -theta,
        likelihood_gradient=lambda theta, rows: np.r_[-2 * theta[0], np.zeros(7)],
        draw_prior=lambda generator: next(answers, drawn),
    )
    message = f"draw_prior of CallableTarget {message}"
    with pytest.raises(error, match=message):
        sample(target, method="none", **FEW)
    with pytest.raises(error, match=message):
        check_gradient(target)
    answers = iter(np.zeros((2, 8)))  # the starts of the two levels
    with pytest.raises(error, match=message):
        sample(target, method="pt", inner="mh", schedule=CustomLadder(betas=[1.0, 0.0]), **FEW)


def test_a_level_takes_a_theta_of_its_length():
    target = target_of(GaussianMeanTarget)
    bit_generator = np.random.PCG64(0)
    levels = Levels(target, target.bind(np.arange(N), [N]), [0], [1.0], bit_generator, 1, False)
    for wrong in (np.zeros(D - 1), np.zeros(D + 1), 0.0):
        with pytest.raises(ValueError, match="theta must have the shape"):
            levels.set_theta(0, wrong)


FITTED = {
    "target.X": lambda a: a[:, :-1],
    "target.y": lambda a: a[:-1],
    "draws": lambda a: a[:, :-1],
    "factors": lambda a: [one[:-1] for one in a],
    "weights": lambda a: [one[:-1] for one in a],
}
QUERIES = {
    "target.X": ("predict", "sample_y", "log_predictive_density", "log_marginal_likelihood"),
    "target.y": ("log_marginal_likelihood",),
    "draws": ("predict", "sample_y", "log_predictive_density"),
    "factors": ("sample_y", "log_predictive_density"),
    "weights": ("predict", "sample_y", "log_predictive_density"),
}
ARGUMENTS = {
    "predict": (X,),
    "sample_y": (X,),
    "log_predictive_density": (X, Y),
    "log_marginal_likelihood": (np.zeros(D + 2),),
}


@pytest.fixture(scope="module")
def regressor():
    return pickle.dumps(TemperedGPRegressor(**FEW).fit(X, Y))


@pytest.mark.parametrize("path", FITTED)
def test_a_regressor_that_was_changed(regressor, path):
    model = pickle.loads(regressor)
    holder, name = model._mixture, path.split(".")[-1]
    holder = holder.target if path.startswith("target") else holder
    setattr(holder, name, FITTED[path](getattr(holder, name)))
    for query in QUERIES[path]:
        with pytest.raises(ValueError):
            getattr(model, query)(*ARGUMENTS[query])
    again = model.fit(X, Y)  # from the beginning: there is no state that a fit would go on from
    np.testing.assert_array_equal(again.draws_, pickle.loads(regressor).draws_)


@pytest.mark.parametrize("change", [lambda a: a[..., :-1], lambda a: a[..., :0], lambda a: a[0, 0]])
def test_a_mean_that_was_changed(change):
    model = TemperedGaussianMean(**FEW).fit(X)
    draws = model.draws_
    model.draws_ = change(draws)
    if model.draws_.size != D:  # a single draw is a draw
        with pytest.raises(ValueError):
            model.score_samples(X)
    np.testing.assert_array_equal(model.fit(X).draws_, draws)
