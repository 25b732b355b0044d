"""An interrupted tempered run keeps its draws and says so; one without any leaves nothing."""

import contextlib
import signal
import threading
import time
import warnings
from collections import Counter

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skanneal import TemperedGaussianMean, TemperedGPRegressor
from skanneal.parallel import TimeLimit
from skanneal.tempering import CallableTarget, GaussianMeanTarget, sample
from skanneal.tempering._chain import run_chain
from skanneal.tempering._result import TemperingResult

X = np.random.default_rng(0).normal(size=(20, 2))
Y = X[:, 0] + 0.1 * np.random.default_rng(1).normal(size=20)
SIZES = {"n_chains": 3, "n_warmup": 20, "random_state": 0}
ESTIMATORS = [
    TemperedGaussianMean(n_draws=40, **SIZES),
    TemperedGaussianMean(n_draws=40, method="spt", **SIZES),
    TemperedGPRegressor(n_draws=40, **SIZES),
    TemperedGPRegressor(n_draws=40, method="stt", **SIZES),
]


@pytest.fixture(autouse=True)
def _python_handler():
    """Python's own: a shell that starts pytest in the background takes it away."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def interrupting(n_kept):
    """`run_chain` of chains one after another, with an interrupt in the one after `n_kept` draws.

    Draws are counted over all chains; the chain that the interrupt meets keeps what it has.
    """
    left = [n_kept]

    def run(target, plan, seed, start, stop, progress):
        n = min(plan.n_draws, left[0])
        left[0] -= n
        if n == plan.n_draws:
            return run_chain(target, plan, seed, start)
        signal.raise_signal(signal.SIGINT)
        assert stop.is_set()
        return run_chain(target, plan._replace(n_draws=n), seed, start)

    return run


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.parametrize("n_kept, shape", [(90, (2, 40)), (30, (1, 30)), (1, (1, 1))])
@pytest.mark.few(5)
def test_draws_so_far_are_kept(estimator, n_kept, shape, monkeypatch):
    whole = clone(estimator).fit(X, Y)
    monkeypatch.setattr("skanneal.tempering._sample.run_chain", interrupting(n_kept))
    model = clone(estimator)
    with pytest.warns(ConvergenceWarning, match="keeps the draws made so far") as caught:
        model.fit(X, Y)
    assert sum("so far" in str(warning.message) for warning in caught) == 1
    assert all(warning.filename == __file__ for warning in caught)
    assert model.draws_.shape[:2] == shape and model.result_.interrupted
    assert model.draws_.tobytes() == whole.draws_[: shape[0], : shape[1]].tobytes()
    assert all(entry.shape == shape for entry in model.trace_.values())
    if isinstance(model, TemperedGPRegressor):
        assert np.isfinite(model.predict(X, return_std=True)).all()
    assert np.isfinite(model.score(X, Y))
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.fit(X, Y).draws_.tobytes() == whole.draws_.tobytes()


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_nothing_is_left_where_nothing_was_drawn(estimator, monkeypatch):
    model, fitted = clone(estimator), clone(estimator).fit(X, Y)
    before = dict(vars(fitted))
    monkeypatch.setattr("skanneal.tempering._sample.run_chain", interrupting(0))
    for one in (model, fitted):
        with pytest.raises(KeyboardInterrupt):
            one.fit(X[:10, :1], Y[:10])
    assert vars(model).keys() == estimator.get_params().keys()
    assert all(vars(fitted)[name] is value for name, value in before.items())
    assert vars(fitted).keys() == before.keys()


def test_an_interrupt_after_the_last_draw_loses_nothing(monkeypatch):
    """The covariances of predictions are factored all the same: that takes a moment."""
    whole = clone(ESTIMATORS[2]).fit(X, Y)
    condition = "skanneal.tempering._gp_mixture.GaussianProcessMixture._condition"
    make = type(whole._mixture)._condition
    raised = []

    def interrupted(self, theta):
        if not raised:
            raised.append(signal.raise_signal(signal.SIGINT))
        return make(self, theta)

    monkeypatch.setattr(condition, interrupted)
    with pytest.warns(ConvergenceWarning, match="keeps the draws made so far"):
        model = clone(ESTIMATORS[2]).fit(X, Y)
    assert model.draws_.tobytes() == whole.draws_.tobytes()
    assert model.predict(X).tobytes() == whole.predict(X).tobytes()


@pytest.mark.parametrize("n_jobs", (1, 3))
@pytest.mark.few(1)
def test_sample_keeps_the_draws_so_far(n_jobs):
    """The signal comes in the middle of an evaluation, when all chains have come about as far: of
    chains of unequal lengths those would be kept that together have most draws."""
    n_calls, raised = Counter(), []

    def log_likelihood(theta, rows):
        n_calls[threading.get_ident()] += 1
        least, most = min(n_calls.values()), max(n_calls.values())
        if len(n_calls) == n_jobs and least >= max(10_000, 0.9 * most) and not raised:
            raised.append(signal.raise_signal(signal.SIGINT))
        return -0.5 * ((X[rows, 0] - theta[0]) ** 2).sum()

    target = CallableTarget(
        lambda theta: -0.5 * theta @ theta, log_likelihood, n_parameters=1, n_rows=20
    )
    options = {"method": "none", "inner": "mh", "init": [0.0], "n_jobs": n_jobs, **SIZES}
    with pytest.warns(ConvergenceWarning, match="keeps the draws made so far"):
        result = sample(target, n_draws=10**6, **options)
    assert result.interrupted and result.draws.shape[0] == n_jobs
    assert 100 < result.draws.shape[1] < 10**6
    again = sample(target, n_draws=result.draws.shape[1], **options)
    assert again.draws[:n_jobs].tobytes() == result.draws.tobytes()


def test_short_chains_do_not_cost_the_draws_of_long_ones():
    """Only an interrupt leaves a chain out: what time allows may depend on where a chain is."""
    target = GaussianMeanTarget(X)
    whole = sample(target, method="none", n_draws=50, **SIZES)
    names = ("draws", "log_prior", "log_likelihood", "elapsed")
    other = ("n_warmup", "seconds", "seconds_warmup", "betas", "sizes", "acceptance")
    other += ("swap_acceptance", "pass_acceptance", "exchange_acceptance", "round_trips")
    other += ("step_sizes", "scale", "nan_rejections")
    records = [
        {name: getattr(whole, name)[chain] for name in (*names, *other)} | {"work": None}
        for chain in range(3)
    ]
    records[1] |= {name: records[1][name][:3] for name in names}
    kept = TemperingResult(records, "none", ["a", "b"], True)
    assert kept.draws.tobytes() == whole.draws[[0, 2]].tobytes()
    assert TemperingResult(records, "none", ["a", "b"], False).draws.shape == (3, 3, 2)


def test_time_set_aside_is_that_of_factors_alone(monkeypatch):
    """Setting the number of threads is slow where many libraries are loaded, and happens once."""

    @contextlib.contextmanager
    def slow(*arguments, **options):
        time.sleep(0.03)
        yield
        time.sleep(0.03)

    monkeypatch.setattr("skanneal.estimators._tempered_gp.threadpool_limits", slow)
    model = clone(ESTIMATORS[2])
    assert model._time_for(model._target_of(X, Y), TimeLimit(3.0)) > 2.0
