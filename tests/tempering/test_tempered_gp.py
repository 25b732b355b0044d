"""TemperedGPRegressor as its users meet it, and its sampler calibrated against the prior."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV

from oracles import gaussian_process_reference as reference
from skanneal import TemperedGPRegressor
from skanneal.schedules import GeometricLadder
from skanneal.tempering import (
    GaussianProcessTarget,
    ess_per_second_scorer,
    log_predictive_density_scorer,
    sample,
)

SHORT = {"n_chains": 2, "n_draws": 30, "n_warmup": 30, "random_state": 0}
RECENTRED = GeometricLadder(n_levels=2, recentre=True)


@pytest.fixture(autouse=True)
def _quiet():
    """Short chains disagree now and then."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def wave(n=30, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, d))
    return X, 5.0 + 3.0 * (np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=n))


def mixture_by_hand(model, X, y, queries):
    """Means and covariances of new observations under the draws that predictions average."""
    flat = model.draws_.reshape(-1, model.draws_.shape[-1])
    step = len(flat) / model.n_predict
    kept = [flat[int((s + 0.5) * step)] for s in range(model.n_predict)]
    centre, scale = (y.mean(), y.std()) if model.normalize_y else (0.0, 1.0)
    parts = [
        reference.predict(model.kernel, X, (y - centre) / scale, theta, queries) for theta in kept
    ]
    return [(centre + scale * mean, scale**2 * cov) for mean, cov in parts]


@pytest.mark.parametrize("kernel", ["rbf", "matern32", "matern52"])
@pytest.mark.parametrize("normalize_y", [True, False])
def test_predictions_are_the_mixture(kernel, normalize_y):
    X, y = wave(20)
    model = TemperedGPRegressor(kernel=kernel, normalize_y=normalize_y, n_predict=3, **SHORT)
    model.fit(X, y)
    queries = np.vstack([X[:2], wave(4, seed=1)[0], [[9.0, 9.0]]])
    parts = mixture_by_hand(model, X, y, queries)
    means = np.array([mean for mean, _ in parts])
    mean = means.mean(axis=0)
    second = sum(cov + np.outer(m, m) for m, cov in parts) / len(parts)
    cov = second - np.outer(mean, mean)
    np.testing.assert_allclose(model.predict(queries), mean, rtol=1e-8)
    np.testing.assert_allclose(model.predict(queries, return_cov=True)[1], cov, atol=1e-7)
    got, std = model.predict(queries, return_std=True)
    np.testing.assert_allclose(got, mean, rtol=1e-8)
    np.testing.assert_allclose(std, np.sqrt(np.diag(cov)), rtol=1e-7)
    at = np.linspace(2, 8, len(queries))
    densities = [stats.norm.pdf(at, m, np.sqrt(np.diag(cov))) for m, cov in parts]
    expected = np.log(np.mean(densities, axis=0))
    np.testing.assert_allclose(model.log_predictive_density(queries, at), expected, rtol=1e-7)
    assert log_predictive_density_scorer(model, queries, at) == pytest.approx(expected.mean())


def test_samples_have_the_mixtures_moments():
    X, y = wave(20)
    model = TemperedGPRegressor(n_predict=4, **SHORT).fit(X, y)
    queries = np.array([[0.0, 0.0], [0.1, 0.0], [1.9, -1.9]])
    mean, cov = model.predict(queries, return_cov=True)
    samples = model.sample_y(queries, 20_000, random_state=1)
    assert samples.shape == (3, 20_000)
    error = np.sqrt(np.diag(cov) / 20_000)
    assert np.all(np.abs(samples.mean(axis=1) - mean) < 5 * error)
    np.testing.assert_allclose(np.cov(samples), cov, atol=0.05 * np.diag(cov).max())
    again = model.sample_y(queries, 20_000, random_state=1)
    assert samples.tobytes() == again.tobytes()
    assert (model.sample_y(queries, 5, random_state=2) != samples[:, :5]).any()


def test_log_marginal_likelihood():
    X, y = wave(15)
    model = TemperedGPRegressor(**SHORT).fit(X, y)
    normal = (y - y.mean()) / y.std()
    theta = model.draws_[1, 3]
    value, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
    np.testing.assert_allclose(value, reference.log_likelihood("rbf", X, normal, theta), rtol=1e-9)
    np.testing.assert_allclose(model.result_.log_likelihood[1, 3], value, rtol=1e-9)
    assert gradient.shape == (4,)
    with pytest.raises(ValueError, match=r"theta must have shape \(4,\): log_length_scale\[0\]"):
        model.log_marginal_likelihood([0.0])


@pytest.mark.parametrize(
    "method, schedule", [("stt", None), ("spt", None), ("none", None), ("stt", RECENTRED)]
)
@pytest.mark.few(2)
def test_same_bits_for_any_number_of_jobs(method, schedule):
    X, y = wave(25)
    model = TemperedGPRegressor(method=method, schedule=schedule, **SHORT)
    one, two = (clone(model).set_params(n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    assert one.draws_.tobytes() == two.draws_.tobytes()
    assert one.predict(X).tobytes() == two.predict(X).tobytes()
    assert (clone(one).set_params(random_state=1).fit(X, y).draws_ != one.draws_).any()


def test_a_schedule_asks_for_tempering():
    X, y = wave(25)
    ladder = GeometricLadder(n_levels=3)
    for given, same in (
        ({}, {"method": "none"}),
        ({"schedule": ladder}, {"method": "stt", "schedule": ladder}),
    ):
        models = [TemperedGPRegressor(**options, **SHORT).fit(X, y) for options in (given, same)]
        assert models[0].draws_.tobytes() == models[1].draws_.tobytes()
        assert models[0].sizes_.tolist() == models[1].sizes_.tolist()


def test_units_do_not_matter():
    """Columns in other units move the length scales alone, y in other units moves predictions."""
    X, y = wave(25)
    units = np.array([1e3, 1e-2])
    model = TemperedGPRegressor(n_warmup=0, n_draws=20, n_chains=2, random_state=0)
    plain, other = clone(model).fit(X, y), clone(model).fit(X * units + 7.0, 100.0 * y - 3.0)
    shift = np.r_[np.log(units), 0.0, 0.0]
    np.testing.assert_allclose(other.draws_, plain.draws_ + shift, atol=1e-9)
    mean, std = plain.predict(X, return_std=True)
    got = other.predict(X * units + 7.0, return_std=True)
    np.testing.assert_allclose(got, (100.0 * mean - 3.0, 100.0 * std), rtol=1e-8)


def test_a_failed_fit_leaves_nothing():
    X, y = wave(20)
    model = TemperedGPRegressor(**SHORT)
    bad = {"length_scale": (np.zeros(3), 1.0)}  # for three columns
    untouched = clone(model).set_params(priors=bad)
    with pytest.raises(ValueError, match="length_scale"):
        untouched.fit(X, y)
    assert not hasattr(untouched, "n_features_in_")
    model.fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="length_scale"):
        model.set_params(priors=bad).fit(X[:, :1], y)
    assert model.n_features_in_ == 2
    assert model.predict(X).tobytes() == before.tobytes()


def test_fitted_attributes():
    X, y = wave(20)
    model = TemperedGPRegressor(**SHORT).fit(pd.DataFrame(X, columns=["a", "b"]), y)
    assert model.draws_.shape == (2, 30, 4)
    assert model.parameter_names_[:2] == ["log_length_scale[0]", "log_length_scale[1]"]
    for block in (model.ess_, model.r_hat_):
        assert set(block) == {"length_scale", "sigma_f", "sigma_n"}
        assert np.shape(block["length_scale"]) == (2,)
    assert model.acceptance_.shape[0] == 2
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert model.score(pd.DataFrame(X, columns=["a", "b"]), y) > 0.8
    restored = pickle.loads(pickle.dumps(model))
    query = pd.DataFrame(X, columns=["a", "b"])
    assert restored.predict(query).tobytes() == model.predict(query).tobytes()


def test_ladder_and_kernel_are_tuned_by_grid_search():
    X, y = wave(24)
    model = TemperedGPRegressor(**SHORT)
    ladders = [GeometricLadder(n_levels=2, beta_min=0.5), GeometricLadder(n_levels=3)]
    search = GridSearchCV(model, {"schedule": ladders}, scoring=ess_per_second_scorer, cv=2)
    assert (search.fit(X, y).cv_results_["mean_test_score"] > 0).all()
    kernels = {"kernel": ["rbf", "matern32"]}
    search = GridSearchCV(model, kernels, scoring=log_predictive_density_scorer, cv=2).fit(X, y)
    assert search.best_params_["kernel"] in kernels["kernel"]


def test_single_row_duplicate_rows_constant_columns_and_constant_y():
    model = TemperedGPRegressor(**SHORT)
    mean, std = model.fit([[1.0]], [2.0]).predict([[1.0], [50.0]], return_std=True)
    assert np.isfinite(np.r_[mean, std]).all()
    assert std[0] < std[1]
    X, y = wave(12)
    twice = model.fit(np.vstack([X, X]), np.r_[y, y + 0.01])
    assert np.abs(twice.predict(X) - y).mean() < np.abs(y - y.mean()).mean()
    flat = np.column_stack([X[:, :1], np.full(12, 0.1)])
    assert np.isfinite(model.fit(flat, y).predict(flat)).all()
    np.testing.assert_allclose(model.fit(X, np.full(12, 0.1)).predict(X), 0.1)


@pytest.mark.parametrize(
    "parameters, data, message",
    [
        ({"kernel": "cosine"}, {}, "'kernel' parameter"),
        ({"n_predict": 0}, {}, "'n_predict' parameter"),
        ({"method": "sst"}, {}, "'method' parameter"),
        ({"priors": {"noise": (1, 1)}}, {}, "priors names noise"),
        ({"priors": {"length_scale": ([0, 0, 0], 1)}}, {}, r"arrays of shape \(2,\)"),
        ({}, {"y": [np.nan] * 12}, "NaN"),
        ({}, {"y": [1.0] * 11}, "inconsistent numbers of samples"),
        ({}, {"X": np.zeros(12)}, "Expected 2D array"),
    ],
)
def test_bad_input_is_named_and_leaves_nothing(parameters, data, message):
    X, y = wave(12)
    model = TemperedGPRegressor(**SHORT).set_params(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(**({"X": X, "y": y} | data))
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_bad_queries_are_named():
    X, y = wave(12)
    model = TemperedGPRegressor(**SHORT).fit(X, y)
    with pytest.raises(ValueError, match="exclude each other"):
        model.predict(X, return_std=True, return_cov=True)
    with pytest.raises(ValueError, match="n_samples must be a positive integer"):
        model.sample_y(X, 0)
    with pytest.raises(ValueError, match="3 features"):
        model.predict(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="y contains NaN"):
        model.log_predictive_density(X, np.full(12, np.nan))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.log_predictive_density(X, y[:3])


# ---- calibration --------------------------------------------------------------------------------

N_RANKED, N_BINS = 15, 8  # draws that a true parameter is ranked among; equal bins of the 16 ranks


def ranks(method, n_simulations, seed, priors=None, thin=16, schedule=None):
    """Ranks of parameters drawn from the prior among draws given data drawn from them."""
    rng = np.random.default_rng(seed)
    out = []
    for i in range(n_simulations):
        X = rng.normal(size=(32, 2))
        truth = np.r_[rng.normal(0.5, 1.0, 2), np.log(rng.gamma(4.0, 1.0))]
        truth = np.r_[truth, np.log(rng.gamma(2.0, 0.5))]
        K = reference.covariance("rbf", X, X, truth) + np.exp(2 * truth[-1]) * np.eye(32)
        y = np.linalg.cholesky(K) @ rng.normal(size=32)
        result = sample(
            GaussianProcessTarget(X, y, priors=priors),
            method=method,
            schedule=schedule,
            n_chains=1,
            n_draws=N_RANKED * thin,
            n_warmup=150,
            random_state=np.random.SeedSequence([seed, i]),
        )
        out.append((result.draws[0, thin - 1 :: thin] < truth).sum(axis=0))
    return np.array(out)


def least_p(found):
    """Smallest chi-square p-value of the four rank histograms, times four."""
    bins = found * N_BINS // (N_RANKED + 1)
    counts = [np.bincount(column, minlength=N_BINS) for column in bins.T]
    return 4 * min(stats.chisquare(count).pvalue for count in counts)


@pytest.mark.slow
@pytest.mark.parametrize(
    "method, schedule",
    [("none", None), ("stt", None), ("spt", None), ("stt", RECENTRED), ("spt", RECENTRED)],
)
def test_posterior_is_calibrated(method, schedule):
    """Each method at a false-alarm rate of 1e-3; one try."""
    assert least_p(ranks(method, 256, 1, schedule=schedule)) > 1e-3


@pytest.mark.slow
def test_calibration_sees_a_missing_jacobian():
    """Without it a gamma prior's shape is less by 1, a normal logarithm's mean by its variance."""
    wrong = {"length_scale": (-0.5, 1.0), "sigma_f": (3.0, 1.0), "sigma_n": (1.0, 2.0)}
    assert least_p(ranks("none", 256, 1, wrong)) < 1e-3
