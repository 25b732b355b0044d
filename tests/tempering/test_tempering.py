"""Tempered sampling as its users meet it: targets, ladders, results, reproducibility, bad input."""

import pickle

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from skanneal import TemperedGaussianMean
from skanneal.parallel import StopFlag
from skanneal.schedules import CustomLadder, GeometricLadder, LinearAnneal
from skanneal.tempering import (
    HMC,
    INNER,
    METHODS,
    CallableTarget,
    GaussianMeanTarget,
    RandomWalk,
    Target,
    check_gradient,
    ess_per_second_scorer,
    sample,
)
from skanneal.tempering._chain import Plan, distinct_sizes, equal_rejection, run_chain
from skanneal.tempering._result import bennett, paper_ess

X = np.random.default_rng(0).normal(1.0, 1.0, (60, 2))
SHORT = {"n_chains": 2, "n_draws": 30, "n_warmup": 40, "random_state": 0}


def gaussian():
    return GaussianMeanTarget(X)


RECENTRED = GeometricLadder(n_levels=2, recentre=True)


class Python(Target):
    """The Gaussian mean in plain Python; `spoil(theta)` may change the likelihood."""

    has_gradient = True
    n_parameters, n_rows = 2, len(X)

    def __init__(self, independent=True, spoil=None, slope=1.0):
        self.independent, self.spoil, self.slope = independent, spoil, slope

    def log_prior(self, theta, gradient=False):
        return -0.5 * theta @ theta - np.log(2 * np.pi), -theta

    def log_likelihood(self, theta, rows, gradient=False):
        residuals = X[rows] - theta
        value = -0.5 * (residuals**2).sum() - len(rows) * np.log(2 * np.pi)
        if self.spoil is not None:
            value = self.spoil(theta, value)
        return value, self.slope * residuals.sum(axis=0)

    def draw_prior(self, generator):
        return generator.standard_normal(2)


# ---------------------------------------------------------------- targets
@pytest.mark.parametrize("independent", (True, False))
def test_python_and_compiled_targets_agree(independent):
    rng = np.random.default_rng(1)
    order, sizes = rng.permutation(len(X)), [60, 31, 8]
    slow = Python(independent).bind(order, sizes)
    fast = gaussian().bind(order, sizes)
    theta = rng.normal(size=2)
    for level in range(3):
        for one, two in zip(slow.evaluate(theta, level, True), fast.evaluate(theta, level, True)):
            assert np.allclose(one, two, rtol=1e-12)
    assert np.isclose(slow.prior(theta)[0], fast.prior(theta)[0], rtol=1e-12)


def test_values_of_the_gaussian_mean():
    """Against SciPy's density, with a full covariance; levels are prefixes of the order."""
    covariance = np.array([[2.0, 0.6], [0.6, 0.5]])
    target = GaussianMeanTarget(X, covariance, prior_scale=3.0)
    order, theta = np.random.default_rng(2).permutation(60), np.array([0.3, -1.0])
    values, _ = target.bind(order, [60, 20]).evaluate(theta)
    density = stats.multivariate_normal(theta, covariance)
    assert np.allclose(values, [density.logpdf(X).sum(), density.logpdf(X[order[:20]]).sum()])
    prior = stats.norm(0, 3).logpdf(theta).sum()
    assert np.isclose(target.bind(order, [60]).prior(theta)[0], prior)
    mean, posterior = target.posterior()
    precision = np.linalg.inv(covariance) * 60 + np.eye(2) / 9
    assert np.allclose(posterior, np.linalg.inv(precision))
    assert np.allclose(mean, posterior @ np.linalg.inv(covariance) @ X.sum(axis=0))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.few(2)
def test_callable_target(method):
    """A Bernoulli rate: the posterior of its logit by quadrature."""
    y = np.array([1, 0, 1, 1, 1, 0, 1, 1])
    target = CallableTarget(
        lambda theta: -0.5 * theta[0] ** 2,
        lambda theta, rows: y[rows].sum() * theta[0] - len(rows) * np.logaddexp(0, theta[0]),
        n_parameters=1,
        n_rows=8,
        draw_prior=lambda generator: generator.standard_normal(1),
    )
    grid = np.linspace(-6, 6, 4001)
    density = np.exp(-0.5 * grid**2 + 6 * grid - 8 * np.logaddexp(0, grid))
    expected = (grid * density).sum() / density.sum()
    result = sample(target, method=method, inner="mh", n_draws=500, random_state=1)
    spread = np.sqrt((grid**2 * density).sum() / density.sum() - expected**2)
    error = spread / np.sqrt(result.ess_bulk[0])
    assert abs(result.flat.mean() - expected) < 5 * error  # 5 comparisons: 3e-6 by chance


def test_what_user_code_raises_comes_out():
    def spoil(theta, value):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        sample(Python(spoil=spoil), **SHORT)


def test_not_a_number_is_a_rejection():
    """It is counted and reported, and no draw lies where the likelihood is none."""

    def spoil(theta, value):
        return np.nan if theta[0] > 1.0 else value

    for method in METHODS:
        with pytest.warns(RuntimeWarning, match="not a number"):
            result = sample(Python(spoil=spoil), method=method, inner="mh", **SHORT)
        assert result.nan_rejections.sum() > 0
        assert result.draws[:, :, 0].max() <= 1.0
        assert np.isfinite(result.log_likelihood).all()


def test_several_updates_are_there_and_back():
    result = sample(gaussian(), inner=("mh", HMC(n_leapfrog=3)), **SHORT)
    assert result.acceptance.shape == (2, 2, 7)
    assert np.allclose(result.flat.mean(axis=0), gaussian().posterior()[0], atol=0.15)


# ---------------------------------------------------------------- gradients
def test_gradients_are_checked():
    check_gradient(Python())
    check_gradient(GaussianMeanTarget(X, [[2.0, 0.5], [0.5, 1.0]]), [3.0, -2.0])
    with pytest.raises(ValueError, match="gradient of the log likelihood of 60 rows of Python"):
        check_gradient(Python(slope=1.01))
    with pytest.raises(ValueError, match="does not belong"):
        sample(Python(slope=-1.0), check_gradient=True, **SHORT)


# ---------------------------------------------------------------- ladders
def test_ladders():
    betas, sizes = GeometricLadder().levels(1024)
    assert np.allclose(betas, 2.0 ** (-np.arange(7) / 2))
    assert sizes.tolist() == [1024, 724, 512, 362, 256, 181, 128]
    assert GeometricLadder().levels(1)[1].tolist() == [1]
    assert GeometricLadder(n_levels=1).levels(9)[1].tolist() == [9]
    assert CustomLadder().levels(4)[1].tolist() == [4, 2, 1, 0]
    assert distinct_sizes(np.array([1.0, 0.99, 0.98, 0.0]), 3).tolist() == [3, 2, 1, 0]


def test_equal_rejection():
    """Where rejection is a known function of beta, equal shares of it are found."""
    betas = np.array([1.0, 0.9, 0.5, 0.2, 0.1])
    moved = equal_rejection(betas, np.diff(-np.log(betas)))
    for _ in range(20):
        moved = equal_rejection(moved, np.diff(-np.log(moved)))
    assert np.allclose(moved, 0.1 ** (np.arange(5) / 4), rtol=1e-3)


@pytest.mark.parametrize("method", ("spt", "pt", "stt", "tt"))
@pytest.mark.few(1)
def test_adapted_ladder_is_frozen(method):
    """Nothing of it, nor of the steps, depends on the draws; ends stay, rejections even out."""
    target = GaussianMeanTarget(np.random.default_rng(1).normal(size=(400, 3)))
    start = CustomLadder(betas=[1.0, 0.97, 0.94, 0.2, 0.1], adapt=True)
    options = {"method": method, "schedule": start, "n_warmup": 1600, "random_state": 5}
    few = sample(target, n_draws=1, **options)
    many = sample(target, n_draws=1500, **options)
    for name in ("betas", "sizes", "step_sizes", "scale"):
        assert np.array_equal(getattr(few, name), getattr(many, name))
    assert (many.betas[:, 0] == 1).all() and (many.betas[:, -1] == 0.1).all()
    assert (np.diff(many.betas) < 0).all()
    assert not np.allclose(many.betas[:, 1:-1], start.betas[1:-1], atol=0.02)
    if method in ("spt", "pt"):
        fixed = sample(
            target, n_draws=1500, **(options | {"schedule": clone(start).set_params(adapt=False)})
        )
        assert np.ptp(many.swap_acceptance.mean(axis=0)) < 0.5 * np.ptp(
            fixed.swap_acceptance.mean(axis=0)
        )


# ---------------------------------------------------------------- results
def test_result():
    result = sample(gaussian(), method="spt", n_draws=200, n_warmup=100, random_state=0)
    assert result.draws.shape == (4, 200, 2)
    assert result.swap_acceptance.shape == (4, 6) and result.round_trips.shape == (4,)
    assert (result.r_hat < 1.1).all() and (result.ess_bulk > 100).all()
    assert (result.ess_tail > 50).all() and (result.ess_paper > 0).all()
    expected = gaussian().bind(np.arange(60), [60]).evaluate(result.draws[1, 3])[0]
    assert np.isclose(result.log_likelihood[1, 3], expected)
    assert np.isnan(result.log_evidence) and np.isnan(result.pass_acceptance).all()
    assert "TemperingResult" in repr(result)
    assert sample(gaussian(), method="tt", **SHORT).pass_acceptance.min() > 0


def test_to_arviz():
    result = sample(gaussian(), **SHORT)
    tree = result.to_arviz()
    assert np.array_equal(tree["posterior"]["theta"].values, result.draws)
    assert tree["sample_stats"]["lp"].shape == (2, 30)


def test_paper_ess():
    """Independent chains of a normal: Var / B is near 1; chains apart: below."""
    draws = np.random.default_rng(0).normal(size=(3, 400))
    assert 0.1 * 1200 < paper_ess(draws) <= 1200
    assert paper_ess(draws + np.arange(3)[:, None]) < 20


def test_bennett():
    """Normals of two scales: log of the ratio of their constants."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(0, 1, 4000), rng.normal(0, 1.5, 3000)

    def log_ratio(x):
        return -0.5 * x**2 + 0.5 * (x / 1.5) ** 2

    assert abs(bennett(log_ratio(b), -log_ratio(a)) - np.log(1 / 1.5)) < 0.05
    impossible = np.full(3, -np.inf)
    assert np.isnan(bennett(impossible, np.zeros(3))) and np.isnan(bennett(np.zeros(3), impossible))


def test_verbose(capsys):
    sample(gaussian(), verbose=1, **SHORT)
    assert capsys.readouterr().out.count("chain") == 2


# ---------------------------------------------------------------- reproducibility, interrupts
@pytest.mark.parametrize("method", METHODS)
def test_same_bits_for_any_n_jobs(method):
    options = SHORT | {"method": method, "n_chains": 3}
    if method == "spt":
        options["resample"] = True
    one = sample(gaussian(), n_jobs=1, **options)
    two = sample(gaussian(), n_jobs=2, **options)
    assert np.array_equal(one.draws, two.draws)
    assert np.array_equal(one.log_likelihood, two.log_likelihood)
    assert not np.array_equal(one.draws[0], one.draws[1])


def test_processes_give_the_same_bits():
    import joblib

    one = sample(gaussian(), **SHORT)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        two = sample(pickle.loads(pickle.dumps(gaussian())), **SHORT)
    assert np.array_equal(one.draws, two.draws)


def test_stop_keeps_what_is_drawn():
    stop = StopFlag()
    calls = []

    def spoil(theta, value):
        calls.append(1)
        if len(calls) > 4000:
            stop.set()
        return value

    plan = Plan(
        method="none",
        betas=np.ones(1),
        adapt_ladder=False,
        samplers=(RandomWalk(),),
        metric="unit",
        swaps="sequential",
        n_exchanges=0,
        n_base_moves=1.0,
        recentre=False,
        n_draws=10**6,
        n_warmup=10,
        max_time=None,
    )
    record = run_chain(Python(spoil=spoil), plan, np.random.SeedSequence(0), np.zeros(2), stop=stop)
    assert 3000 < len(record["draws"]) < 10**5


@pytest.mark.slow
def test_warm_up_adapts_within_max_time():
    """Units and re-centred levels come at their shares of the time, as without a limit."""
    scales = np.array([1.0, 100.0])
    target = GaussianMeanTarget(
        np.random.default_rng(0).normal(size=(50, 2)) * scales, np.diag(scales**2), 1000.0
    )
    result = sample(
        target,
        schedule=RECENTRED,
        n_chains=1,
        n_draws=10**7,
        n_warmup=10**7,
        max_time=3.0,
        random_state=0,
    )
    assert (result.scale[:, 1] / result.scale[:, 0] > 10).all()
    assert result.swap_acceptance.min() > 0.99


def test_max_time():
    result = sample(gaussian(), n_draws=10**7, n_warmup=10**7, max_time=0.3, n_chains=2)
    assert 1 < result.draws.shape[1] < 10**7
    assert (result.seconds + result.seconds_warmup < 1.5).all()


# ---------------------------------------------------------------- bad input
@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"method": "best"}, ValueError, "method must be one of"),
        ({"inner": "gibbs"}, ValueError, "inner must be"),
        ({"inner": ()}, ValueError, "inner must name"),
        ({"inner": RandomWalk(step_size=-1.0)}, ValueError, "step_size"),
        ({"inner": HMC(n_leapfrog=0)}, ValueError, "n_leapfrog"),
        ({"schedule": LinearAnneal()}, ValueError, "schedule must be a ladder"),
        ({"schedule": GeometricLadder(beta_min=0.0)}, ValueError, "beta_min"),
        ({"schedule": CustomLadder(betas=[0.5, 0.1])}, ValueError, "betas must"),
        ({"schedule": CustomLadder(betas=[1.0, 0.1, 0.1])}, ValueError, "betas must fall"),
        ({"n_chains": 0}, ValueError, "n_chains"),
        ({"n_draws": 2.5}, ValueError, "n_draws"),
        ({"n_warmup": -1}, ValueError, "n_warmup"),
        ({"max_time": 0}, ValueError, "max_time"),
        ({"metric": "dense"}, ValueError, "metric"),
        ({"swaps": "odd"}, ValueError, "swaps"),
        ({"resample": True}, ValueError, "resample"),
        ({"resample": "yes", "method": "spt"}, ValueError, "resample"),
        ({"init": [0.0]}, ValueError, "init must have shape"),
        ({"init": [0.0, np.nan]}, ValueError, "init must hold finite"),
        ({"init": [[1, 2], [3]]}, ValueError, "init must hold numbers"),
        ({"init": "abc"}, ValueError, "init must hold numbers"),
        ({"init": [1j, 2]}, TypeError, "init must hold numbers"),
        ({"schedule": CustomLadder(betas=["a", "b"])}, ValueError, "betas must be numbers"),
        ({"schedule": CustomLadder(betas=[1, 1j])}, ValueError, "betas must be numbers"),
        ({"random_state": -1}, ValueError, "random_state"),
        ({"n_base_moves": -0.5}, ValueError, "n_base_moves"),
        ({"n_base_moves": "few"}, ValueError, "n_base_moves"),
        ({"schedule": GeometricLadder(recentre=1)}, ValueError, "recentre"),
        (
            {"schedule": RECENTRED, "method": "tt"},
            ValueError,
            "recentre=True needs levels of fewer",
        ),
        ({"schedule": CustomLadder(recentre=True)}, ValueError, "recentre=True needs rows"),
        ({"schedule": GeometricLadder(adapt=True, recentre=True)}, ValueError, "adapt=False"),
        ({"schedule": RECENTRED, "method": "spt", "resample": 1}, ValueError, "resample=False"),
    ],
)
def test_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        sample(gaussian(), **options)


def test_bad_targets():
    with pytest.raises(TypeError, match="target must be"):
        sample(lambda theta: 0.0)
    with pytest.raises(ValueError, match="n_parameters of Target"):
        sample(Target())
    plain = CallableTarget(lambda t: 0.0, lambda t, rows: 0.0, n_parameters=1, n_rows=3)
    with pytest.raises(ValueError, match="needs gradients"):
        sample(plain, init=[0.0])
    with pytest.raises(ValueError, match="init must be given"):
        sample(plain, inner="mh")
    with pytest.raises(ValueError, match="together"):
        CallableTarget(max, max, n_parameters=1, n_rows=1, prior_gradient=max)
    with pytest.raises(TypeError, match="log_prior must be callable"):
        CallableTarget(1.0, max, n_parameters=1, n_rows=1)
    for names in (["a", "b"], [], "a", [1], 5):
        named = CallableTarget(max, max, n_parameters=1, n_rows=3, parameter_names=names)
        with pytest.raises(ValueError, match="parameter_names of CallableTarget must be None or 1"):
            sample(named, inner="mh", init=[0.0])
    nowhere = Python(spoil=lambda theta, value: np.nan)
    with pytest.raises(ValueError, match="is not finite"):
        sample(nowhere, **SHORT)
    with pytest.raises(ValueError, match="start given by init"):
        sample(nowhere, init=[0.0, 0.0], **SHORT)


@pytest.mark.parametrize("wrong", [None, "a", 1j, [1.0, 2.0]])
@pytest.mark.parametrize("name", ["log_prior", "log_likelihood"])
def test_values_that_are_no_numbers_are_named(name, wrong):
    functions = {"log_prior": lambda theta: 0.0, "log_likelihood": lambda theta, rows: 0.0}
    target = CallableTarget(
        **functions | {name: lambda *given: wrong},
        n_parameters=1,
        n_rows=3,
        prior_gradient=lambda theta: -theta,
        likelihood_gradient=lambda theta, rows: wrong,
    )
    with pytest.raises(TypeError, match=f"the value of {name} of CallableTarget must be a number"):
        sample(target, inner="mh", init=[0.0], **SHORT)


def test_answers_without_a_gradient_are_named():
    target = CallableTarget(
        lambda theta: 0.0,
        lambda theta, rows: 0.0,
        n_parameters=1,
        n_rows=3,
        prior_gradient=lambda theta: -theta,
        likelihood_gradient=lambda theta, rows: "ab",
    )
    with pytest.raises(ValueError, match="the gradient of log_likelihood must hold numbers"):
        sample(target, init=[0.0], **SHORT)
    target.log_prior = lambda theta, gradient: 0.0
    with pytest.raises(TypeError, match="log_prior of CallableTarget must return a value and a"):
        sample(target, init=[0.0], **SHORT)


def test_a_bool_of_numpy_is_a_bool():
    plain, other = (
        sample(gaussian(), method="spt", resample=resample, **SHORT)
        for resample in (True, np.True_)
    )
    np.testing.assert_array_equal(plain.draws, other.draws)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((np.array([[np.nan]]),), "finite"),
        ((np.zeros(3),), "rows and columns"),
        ((X, np.eye(3)), "does not fit"),
        ((X, -1.0), "positive definite"),
        ((X, [[1.0, 2.0], [0.0, 1.0]]), "symmetric"),
        ((X, None, 0.0), "prior_scale"),
    ],
)
def test_bad_gaussian_targets(arguments, message):
    with pytest.raises(ValueError, match=message):
        GaussianMeanTarget(*arguments)


@pytest.mark.parametrize("rows", (X[:1], np.repeat(X[:1], 5, axis=0), X[:2]))
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.few(6)
def test_few_and_equal_rows(rows, method):
    target = GaussianMeanTarget(rows)
    result = sample(target, method=method, n_draws=400, random_state=0)
    assert np.allclose(result.flat.mean(axis=0), target.posterior()[0], atol=0.25)


# ---------------------------------------------------------------- the estimator
@pytest.mark.parametrize("inner", sorted(INNER))
@pytest.mark.parametrize("covariance", (None, 2.0, [1.0, 3.0], [[2.0, 0.5], [0.5, 1.0]]))
@pytest.mark.few(3)
def test_predictive_density(covariance, inner):
    """The mixture over draws is near the closed form."""
    model = TemperedGaussianMean(
        covariance=covariance, inner=inner, n_draws=1000, n_warmup=500, random_state=0
    ).fit(X)
    mean, posterior = GaussianMeanTarget(X, covariance).posterior()
    expected = stats.multivariate_normal(mean, posterior + model.covariance_).logpdf(X)
    assert np.allclose(model.score_samples(X), expected, atol=0.05)
    assert model.score(X) == pytest.approx(model.score_samples(X).mean())
    assert model.ess_["theta"].shape == model.r_hat_["theta"].shape == (2,)
    assert not hasattr(model, "predict")


def test_ladders_are_tuned():
    search = GridSearchCV(
        TemperedGaussianMean(n_draws=50, n_warmup=50, n_chains=2, random_state=0),
        {"method": ["spt", "none"], "schedule": [GeometricLadder(), GeometricLadder(n_levels=3)]},
        scoring=ess_per_second_scorer,
        cv=2,
    ).fit(X)
    assert (search.cv_results_["mean_test_score"] > 0).all()


def test_disagreement_is_said():
    with pytest.warns(ConvergenceWarning, match="disagree"):
        TemperedGaussianMean(
            method="none",
            inner=RandomWalk(step_size=1e-3, adapt=False),
            n_warmup=0,
            random_state=0,
        ).fit(X)
    failed = TemperedGaussianMean(covariance=-np.eye(2))
    with pytest.raises(ValueError, match="positive definite"):
        failed.fit(X)
    assert not hasattr(failed, "draws_")
