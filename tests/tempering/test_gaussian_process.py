"""The Gaussian process target: values and gradients on prefixes, priors, bad input."""

import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from oracles.gaussian_process_reference import CORRELATIONS, covariance, log_likelihood, log_prior
from skanneal.tempering import GaussianProcessTarget
from skanneal.tempering import _gaussian_process_bound as compiled

KERNELS = sorted(CORRELATIONS)
# Sizes beside the blocks of 8 lanes, 4 columns, 32 and 64 rows.
SHAPES = [(1, 1), (5, 2), (8, 3), (37, 1), (64, 4), (71, 8), (131, 20)]


def rows(n, d, seed=0):
    """Coordinates, observations and parameters."""
    rng = np.random.default_rng([seed, n, d])
    theta = np.r_[rng.normal(0.5, 0.5, d), 0.3, -1.0]
    return rng.normal(size=(n, d)), rng.normal(size=n), theta


def prefixes(n):
    return sorted({n, -(-2 * n // 3), -(-n // 3), 1}, reverse=True)


def by_sklearn(kernel, X, y, theta):
    """Value and gradient from scikit-learn."""
    lengths = np.exp(theta[:-2])
    nu = {"rbf": None, "matern32": 1.5, "matern52": 2.5}[kernel]
    base = Matern(lengths, nu=nu) if nu else RBF(lengths)
    model = ConstantKernel(np.exp(2 * theta[-2])) * base + WhiteKernel(np.exp(2 * theta[-1]))
    model = GaussianProcessRegressor(model, alpha=0.0, optimizer=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    value, slope = model.log_marginal_likelihood(model.kernel_.theta, eval_gradient=True)
    # scikit-learn's parameters are the logarithms of squares, the amplitude first.
    return value, np.r_[slope[1:-1], 2 * slope[0], 2 * slope[-1]]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("shape", SHAPES)
def test_value_and_gradient_of_every_prefix_are_those_of_sklearn(kernel, shape):
    X, y, theta = rows(*shape)
    order = np.random.default_rng(1).permutation(len(X))
    sizes = prefixes(len(X))
    bound = GaussianProcessTarget(X, y, kernel).bind(order, sizes)
    from_the_top, _ = bound.evaluate(theta)
    for level, size in enumerate(sizes):
        expected, slope = by_sklearn(kernel, X[order[:size]], y[order[:size]], theta)
        values, gradient = bound.evaluate(theta, level, True)
        np.testing.assert_allclose(values[0], expected, rtol=1e-9)
        np.testing.assert_allclose(from_the_top[level], expected, rtol=1e-9)
        np.testing.assert_allclose(gradient, slope, rtol=1e-9, atol=1e-9 * np.abs(slope).max())


@pytest.mark.parametrize("kernel", KERNELS)
def test_value_is_that_of_the_slow_formula(kernel):
    X, y, theta = rows(23, 3)
    target = GaussianProcessTarget(X, y, kernel)
    value, _ = target.log_likelihood(theta, np.arange(5, 20))
    np.testing.assert_allclose(value, log_likelihood(kernel, X[5:20], y[5:20], theta), rtol=1e-10)


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradient_is_the_slope_of_the_value(kernel):
    X, y, theta = rows(90, 5)
    bound = GaussianProcessTarget(X, y, kernel).bind(np.arange(90), [90, 50])
    for level in (0, 1):
        _, gradient = bound.evaluate(theta, level, True)
        for k in range(len(theta)):
            step = 1e-5 * np.eye(len(theta))[k]
            ahead, behind = (bound.evaluate(theta + s, level)[0][0] for s in (step, -step))
            np.testing.assert_allclose(gradient[k], (ahead - behind) / 2e-5, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kernel", KERNELS)
def test_large_offset_and_short_length_scale_cost_no_digits(kernel):
    """Distances come from differences: |a|^2 + |b|^2 - 2 a'b would keep none of them here."""
    rng = np.random.default_rng(0)
    X = 1e6 + np.arange(40)[:, None] * 2.0**-12
    X, y, theta = X[rng.permutation(40)], rng.normal(size=40), np.array([-8.0, 0.0, -1.0])
    value, gradient = GaussianProcessTarget(X, y, kernel).log_likelihood(theta, np.arange(40), True)
    near = X - 1e6
    expected, slope = by_sklearn(kernel, near, y, theta)
    np.testing.assert_allclose(value, expected, rtol=1e-9)
    np.testing.assert_allclose(gradient, slope, rtol=1e-9)


def test_prior_is_the_densities_with_their_jacobians():
    priors = {"length_scale": ([0.1, -0.4], 0.7), "sigma_f": (3, 2), "sigma_n": (1.5, 4)}
    X, y, theta = rows(4, 2)
    target = GaussianProcessTarget(X, y, priors=priors)
    expected = stats.norm.logpdf(theta[:2], [0.1, -0.4], 0.7).sum()
    for t, (shape, rate) in zip(theta[2:], ((3, 2), (1.5, 4))):
        expected += stats.gamma.logpdf(np.exp(t), shape, scale=1 / rate) + t
    bound = target.bind(np.arange(4), [4])
    for value, slope in (target.log_prior(theta, True), bound.prior(theta, True)):
        np.testing.assert_allclose(value, expected, rtol=1e-13)
        for k in range(4):
            step = 1e-6 * np.eye(4)[k]
            ahead, behind = (target.log_prior(theta + s)[0] for s in (step, -step))
            np.testing.assert_allclose(slope[k], (ahead - behind) / 2e-6, atol=1e-7)


def test_default_prior_is_the_papers():
    X, y, theta = rows(4, 3)
    value, _ = GaussianProcessTarget(X, y).log_prior(theta)
    np.testing.assert_allclose(value, log_prior(theta), rtol=1e-13)


def test_draws_from_the_prior():
    """Kolmogorov-Smirnov, three tests at 1e-4 each."""
    target = GaussianProcessTarget([[0.0], [1.0]], [0.0, 1.0])
    generator = np.random.Generator(np.random.PCG64(3))
    drawn = np.array([target.draw_prior(generator) for _ in range(4000)])
    laws = (stats.norm(0.5, 1), stats.gamma(4, scale=1), stats.gamma(2, scale=0.5))
    drawn[:, 1:] = np.exp(drawn[:, 1:])
    for k, law in enumerate(laws):
        assert stats.kstest(drawn[:, k], law.cdf).pvalue > 1e-4
    assert stats.kstest(drawn[:, 1], laws[2].cdf).pvalue < 1e-4  # the test can see


def test_rows_reordered():
    X, y, theta = rows(30, 3)
    target, sizes = GaussianProcessTarget(X, y), [30, 12]
    order = np.random.default_rng(2).permutation(30)
    one, two = target.bind(np.arange(30), sizes), target.bind(order, sizes)
    one.set_order(order)
    assert one.evaluate(theta)[0].tolist() == two.evaluate(theta)[0].tolist()
    assert one.get_order().tolist() == order.tolist()
    assert one.evaluate(theta, 1)[0].tolist() == two.evaluate(theta, 1)[0].tolist()


@pytest.mark.parametrize("kernel", KERNELS)
def test_covariances_are_exact_to_the_last_digits_on_every_instruction_set(kernel, monkeypatch):
    X, _, theta = rows(45, 3)
    X[7] = X[3]
    X[9] += 400.0  # out of reach: exactly zero but for Matern's
    expected = covariance(kernel, X, X[:21], theta)
    ways = []
    for level in "012":
        monkeypatch.setenv("SKANNEAL_SIMD", level)
        ways.append(np.array(compiled.covariance(kernel, X, X[:21], theta)))
        np.testing.assert_allclose(ways[-1], expected, rtol=1e-13, atol=1e-300)
    assert ways[0].tobytes() == ways[1].tobytes() == ways[2].tobytes()


def test_duplicate_rows_are_fine_with_noise_and_not_a_number_without():
    X, y, theta = rows(20, 2)
    X[1], y[1] = X[0], y[0]
    target = GaussianProcessTarget(X, y)
    value, _ = target.log_likelihood(theta, np.arange(20))
    np.testing.assert_allclose(value, log_likelihood("rbf", X, y, theta), rtol=1e-10)
    theta[-1] = -400.0
    values, gradient = target.bind(np.arange(20), [20, 5]).evaluate(theta, 0, True)
    assert np.isnan(values).all()
    assert np.isnan(gradient).all()


@pytest.mark.parametrize("theta", [[800.0, 0, 0], [-800.0, 0, 0], [0, 800.0, 0], [0, 0, 800.0]])
def test_parameters_out_of_range_do_no_harm(theta):
    """Overflow gives a number, an infinity or NaN, and the next call is as if it had not been."""
    X, y, good = rows(20, 1)
    bound = GaussianProcessTarget(X, y).bind(np.arange(20), [20])
    before = bound.evaluate(good, 0, True)
    bound.evaluate(theta, 0, True)
    after = bound.evaluate(good, 0, True)
    assert before[0].tolist() == after[0].tolist()
    assert before[1].tolist() == after[1].tolist()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"kernel": "cosine"}, "kernel must be one of"),
        ({"y": [1.0, np.nan, 0.0]}, "NaN"),
        ({"y": [1.0, 0.0]}, "inconsistent numbers of samples"),
        ({"X": [1.0, 2.0, 3.0]}, "Expected 2D array"),
        ({"X": [[1.0], [np.inf], [2.0]]}, "infinity"),
        ({"priors": {"lengthscale": (0, 1)}}, "lengthscale; it may name"),
        ({"priors": {"sigma_f": 3.0}}, "sigma_f.* must be a pair"),
        ({"priors": {"sigma_f": None}}, "sigma_f.* must be a pair of numbers, got None"),
        ({"priors": {"sigma_f": np.array(3.0)}}, "sigma_f.* must be a pair"),
        ({"priors": {"sigma_n": ("a", "b")}}, r"priors\['sigma_n'\] must hold numbers"),
        ({"priors": {"sigma_n": (0.0, 1.0)}}, "a positive shape and a positive rate"),
        ({"priors": {"length_scale": (0.0, -1.0)}}, "a positive standard deviation"),
        ({"priors": {"length_scale": ([0.0, 0.0], 1.0)}}, r"arrays of shape \(1,\)"),
        ({"priors": {"length_scale": (np.nan, 1.0)}}, "finite mean"),
    ],
)
def test_bad_input_is_named(arguments, message):
    sound = {"X": [[0.0], [1.0], [2.0]], "y": [0.0, 1.0, 0.0]}
    with pytest.raises(ValueError, match=message):
        GaussianProcessTarget(**(sound | arguments))


def test_priors_must_be_a_mapping():
    with pytest.raises(TypeError, match="priors must be None or a mapping"):
        GaussianProcessTarget([[0.0]], [0.0], priors=[("sigma_f", (1, 1))])
