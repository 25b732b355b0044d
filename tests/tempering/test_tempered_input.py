"""What tempered estimators make of the same values in other containers, and of extreme ones."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import ConvergenceWarning

from oracles import gaussian_process_reference as reference
from skanneal import TemperedGaussianMean, TemperedGPRegressor
from skanneal.tempering import GaussianMeanTarget, GaussianProcessTarget
from skanneal.tempering._gaussian_process_bound import covariance

KERNELS = ("rbf", "matern32", "matern52")
SHORT = {"n_chains": 2, "n_draws": 30, "n_warmup": 30, "random_state": 0}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.sin(2 * X[:, 0]) + 0.1 * RNG.normal(size=40)


@pytest.fixture(autouse=True)
def _strict():
    """Short chains disagree now and then; nothing else may be warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


# ---------------------------------------------------------------- order in memory
def strided(values):
    """The same values with gaps between them."""
    wide = np.full((2 * len(values), *values.shape[1:]), np.nan)
    wide[::2] = values
    return wide[::2]


CONTAINERS = {
    "Fortran": (np.asfortranarray, strided),
    "strided": (strided, strided),
    "reversed": (lambda X: np.ascontiguousarray(X[::-1])[::-1], lambda y: y[::-1].copy()[::-1]),
    "pandas": (lambda X: pd.DataFrame(np.asfortranarray(X)), pd.Series),
    "polars": (lambda X: pl.DataFrame(X), lambda y: pl.Series(y)),
    "sparse frame": (lambda X: pd.DataFrame(X).astype(pd.SparseDtype(float, 0.0)), pd.Series),
    "list": (lambda X: X.tolist(), lambda y: y.tolist()),
}


@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
@pytest.mark.parametrize("container", sorted(CONTAINERS))
@pytest.mark.few(3)
def test_the_same_values_give_the_same_bits(container):
    rows, column = CONTAINERS[container]
    plain, other = (TemperedGPRegressor(**SHORT).fit(*d) for d in ((X, Y), (rows(X), column(Y))))
    assert plain.draws_.tobytes() == other.draws_.tobytes()
    queries, asked = X[5:20], rows(X[5:20])
    for query in (
        lambda model, q: model.predict(q),
        lambda model, q: model.predict(q, return_std=True)[1],
        lambda model, q: model.predict(q, return_cov=True)[1],
        lambda model, q: model.sample_y(q, 3),
    ):
        assert query(plain, queries).tobytes() == query(other, asked).tobytes()
    densities = (
        plain.log_predictive_density(queries, Y[5:20]),
        other.log_predictive_density(asked, column(Y[5:20])),
    )
    assert densities[0].tobytes() == densities[1].tobytes()
    plain, other = (TemperedGaussianMean(**SHORT).fit(data) for data in (X, rows(X)))
    assert plain.draws_.tobytes() == other.draws_.tobytes()
    assert plain.score_samples(queries).tobytes() == other.score_samples(asked).tobytes()


def test_targets_do_not_see_the_order_in_memory():
    wide = RNG.normal(size=(300, 7))  # sums of many rows round by their order
    for make in (GaussianMeanTarget, lambda rows: GaussianProcessTarget(rows, rows[:, 0])):
        one, other = (make(order(wide)) for order in (np.ascontiguousarray, np.asfortranarray))
        theta = np.full(one.n_parameters, 0.1)
        for target in (one, other):
            assert (
                target.bind(np.arange(300), [300]).evaluate(theta)[0][0]
                == (one.bind(np.arange(300), [300]).evaluate(theta)[0][0])
            )


# ---------------------------------------------------------------- extreme numbers
def answers(model, queries, y):
    """All that a fitted process is asked, the covariances left out."""
    return [
        *model.predict(queries, return_std=True),
        model.sample_y(queries, 2),
        model.log_predictive_density(queries, y),
    ]


@pytest.mark.parametrize("unit", [2.0**-1030, 2.0**-500, 2.0**533, 2.0**990])
def test_units_of_y_do_not_matter(unit):
    """1e160 and beyond: y is normalised without its squares."""
    plain = TemperedGPRegressor(**SHORT).fit(X, Y)
    model = TemperedGPRegressor(**SHORT).fit(X, Y * unit)
    digits = 1e-9 if unit > 1e-300 else 1e-3  # the smallest numbers have few
    np.testing.assert_allclose(model.draws_, plain.draws_, rtol=1e-9, atol=digits)
    mean, std, drawn, densities = answers(model, X, Y * unit)
    expected = answers(plain, X, Y)
    for got, right in zip((mean, std, drawn), expected):
        np.testing.assert_allclose(got / unit, right, rtol=digits, atol=digits)
    np.testing.assert_allclose(densities + np.log(unit), expected[3], rtol=digits, atol=digits)
    if unit > 1e154:
        with pytest.raises(ValueError, match="return_cov: covariances in the units of y overflow"):
            model.predict(X, return_cov=True)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("unit", [2.0**-990, 2.0**533, 2.0**990])
def test_units_of_x_do_not_matter(kernel, unit):
    units = np.array([unit, 1.0, 1.0])
    plain = TemperedGPRegressor(kernel=kernel, **SHORT).fit(X, Y)
    model = TemperedGPRegressor(kernel=kernel, **SHORT).fit(X * units, Y)
    shift = np.r_[np.log(units), 0.0, 0.0]
    np.testing.assert_allclose(model.draws_[:, :3] - shift, plain.draws_[:, :3], atol=1e-6)
    assert all(np.isfinite(part).all() for part in answers(model, X * units, Y))


@pytest.mark.parametrize("kernel", KERNELS)
def test_rows_out_of_reach_have_no_covariance(kernel):
    """Matern's polynomial overflows where the exponential is 0."""
    theta = np.array([0.2, 0.4, -1.0])
    for far in (1e30, 1e154, 1e160, 1e300):
        rows = np.array([[0.0], [0.5], [far]])
        got = covariance(kernel, rows, rows[:2], theta)
        expected = reference.covariance(kernel, rows[:2], rows[:2], theta)
        np.testing.assert_allclose(got, np.vstack([expected, [[0.0, 0.0]]]), rtol=1e-13)
        target = GaussianProcessTarget(rows, [0.1, 0.3, -0.2], kernel)
        _, gradient = target.log_likelihood(theta, np.arange(3), True)
        assert np.isfinite(gradient).all()
        model = TemperedGPRegressor(kernel=kernel, **SHORT).fit(X[:, :1], Y)
        mean, std = model.predict([[far], [-far]], return_std=True)
        assert np.isfinite([mean, std]).all() and np.ptp(std) == 0.0
        cov = model.predict([[far], [far], [-far]], return_cov=True)[1]
        assert cov[0, 1] > 0.5 * cov[0, 0]
        np.testing.assert_allclose(np.diag(cov), std[0] ** 2)


def test_observations_without_noise_are_sampled():
    """Next to nothing is left of the variances, less than they are rounded by."""
    x = np.linspace(0, 1, 60)[:, None]
    for y in (3 * x[:, 0], np.sin(6 * x[:, 0]), np.zeros(60), np.full(60, 1e200)):
        model = TemperedGPRegressor(**SHORT).fit(x, y)
        samples = model.sample_y(np.vstack([x, x[:1]]), 4)
        near = np.abs(samples[:60] - y[:, None]) < 1e-3 * max(1.0, np.abs(y).max())
        assert np.isfinite(samples).all()
        assert near.all() or np.ptp(y) == 0.0


@pytest.mark.parametrize(
    "parameters, data, message",
    [
        ({}, {"y": Y * 1e302}, "y holds values up to 1.*e.302, near the largest"),
        ({"normalize_y": False}, {"y": Y * 1e160}, "y holds values up to .* squares overflow"),
        (
            {},
            {"X": np.c_[X[:, 0], np.where(Y < Y.max(), 1.7e308, -1.7e308)]},
            "column 1 of X .*too large",
        ),
        ({}, {"X": X * [1.0, 1.0, 1e-310]}, "column 2 of X .*too small to divide by"),
    ],
)
def test_what_cannot_be_computed_is_named(parameters, data, message):
    model = TemperedGPRegressor(**SHORT).set_params(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(**({"X": X, "y": Y} | data))
    assert not hasattr(model, "draws_")


def test_queries_that_cannot_be_computed_are_named():
    model = TemperedGPRegressor(**SHORT).fit(X * 1e-3, Y)
    with pytest.raises(ValueError, match="column 2 of X holds values too far"):
        model.predict([[0.0, 0.0, 1.7e308]])
    with pytest.raises(ValueError, match=r"y\[1\] is too far"):
        model.log_predictive_density(X[:2], [0.0, 1e160])
    mean = TemperedGaussianMean(**SHORT).fit(X)
    with pytest.raises(ValueError, match="row 1 of X is too far from the mean"):
        mean.score_samples([[0.0, 0.0, 0.0], [1e160, 0.0, 0.0]])


@pytest.mark.parametrize(
    "parameters, rows, message",
    [
        ({"prior_scale": 1e-200}, X, "prior_scale must be a positive number, from"),
        ({"prior_scale": 1e200}, X, "prior_scale must be a positive number, from"),
        ({"prior_scale": 2**2000}, X, "prior_scale must be a positive number, from"),
        ({"prior_scale": 1e100, "covariance": 1e-200}, X, "prior_scale reaches more than"),
        ({"covariance": 1e-320}, X, "covariance must give standard deviations from"),
        ({"covariance": [1.0, 1e305, 1.0]}, X, "covariance must give standard deviations from"),
        ({"covariance": [2**2000, 1, 1]}, X, "covariance must be"),
        ({}, X * [1.0, 1e160, 1.0], "X reaches more than .* column 1"),
    ],
)
def test_numbers_without_a_square_are_named(parameters, rows, message):
    with pytest.raises(ValueError, match=message):
        TemperedGaussianMean(**SHORT, **parameters).fit(rows)


def test_masked_arrays_are_refused():
    """Their hidden values would count as any others."""
    hidden = np.ma.masked_array(X, X > 1), np.ma.masked_array(Y, Y > 1)
    process, mean = TemperedGPRegressor(**SHORT).fit(X, Y), TemperedGaussianMean(**SHORT).fit(X)
    for name, calls in {
        "X": (
            lambda: TemperedGaussianMean(**SHORT).fit(hidden[0]),
            lambda: TemperedGPRegressor(**SHORT).fit(hidden[0], Y),
            lambda: GaussianMeanTarget(hidden[0]),
            lambda: GaussianProcessTarget(hidden[0], Y),
            lambda: mean.score_samples(hidden[0]),
            lambda: process.predict(hidden[0]),
        ),
        "y": (
            lambda: TemperedGPRegressor(**SHORT).fit(X, hidden[1]),
            lambda: GaussianProcessTarget(X, hidden[1]),
            lambda: process.log_predictive_density(X, hidden[1]),
            lambda: process.score(X, hidden[1]),
        ),
    }.items():
        for call in calls:
            with pytest.raises(TypeError, match=f"Masked arrays are not supported: {name} is one"):
                call()


def test_observations_that_are_no_numbers_are_named():
    words, process = ["a", "b"] * 20, TemperedGPRegressor(**SHORT).fit(X, Y)
    for call in (
        lambda: TemperedGPRegressor(**SHORT).fit(X, words),
        lambda: TemperedGPRegressor(normalize_y=False, **SHORT).fit(X, words),
        lambda: GaussianProcessTarget(X, words),
        lambda: process.log_predictive_density(X, words),
    ):
        with pytest.raises(ValueError, match="y must hold numbers: could not convert .*'a'"):
            call()
