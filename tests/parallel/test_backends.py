"""Every estimator's fit on Dask and on Ray has the bits of the fit with one job."""

import joblib
import numpy as np
import pytest

from harness.digest_records import flatten
from harness.digests import compare
from oracles.backends import dask_cluster, ray_cluster
from oracles.public_estimators import names, quick
from skanneal.parallel import _tasks

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def dask():
    with dask_cluster() as client:
        yield client


@pytest.fixture(scope="module")
def ray():
    with ray_cluster() as ray:
        yield ray


def of_two_chains(name, seed=0):
    """A quick estimator of two chains, or with one inside."""
    model = quick(name, random_state=seed)
    if "estimator" in model.get_params(deep=False):
        return model.set_params(estimator__n_chains=2, estimator__random_state=seed)
    return model.set_params(n_chains=2)


def fitted(name, seed=0):
    """What a fit of a small table shows, by name, as arrays."""
    side = np.where(np.arange(60) % 2, 4.0, -4.0)
    X = side[:, None] + np.random.default_rng(0).normal(size=(60, 2))
    return dict(flatten(of_two_chains(name, seed).fit(X, X[:, 0])))


def assert_bits_of_one_job(backend, name, monkeypatch):
    one_job, here = fitted(name), []
    run_task = _tasks.run_task

    def noted(*arguments):
        here.append(arguments)
        return run_task(*arguments)

    monkeypatch.setattr(_tasks, "run_task", noted)  # in this process, not in the workers
    with joblib.parallel_config(backend, n_jobs=2):
        assert compare(one_job, fitted(name)) is None
    assert not here, "the chains ran in this process"


@pytest.mark.parametrize("name", names())
@pytest.mark.slow
def test_dask(name, dask, monkeypatch):
    assert_bits_of_one_job("dask", name, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_ray(name, ray, monkeypatch):
    assert_bits_of_one_job("ray", name, monkeypatch)


@pytest.mark.parametrize("name", names())
@pytest.mark.few(1)
def test_another_seed_has_other_bits(name):
    """A comparison that saw nothing would pass above."""
    assert compare(fitted(name), fitted(name, seed=1)) is not None
