"""The public estimators as a user finds them, and quick ones for tests that cross them all."""

import inspect

from sklearn.utils import estimator_checks

import skanneal
from skanneal.schedules import AcceleratedSchedule, LinearAnneal, SequentialGibbs

SCHEDULES = (SequentialGibbs(n_sweeps=3), AcceleratedSchedule(n_accelerated=3, n_exact=3))


def names():
    """The names of all public estimators."""
    return list(skanneal.__all__)


def default(name):
    """An estimator as it comes, but with fewer chains and draws, and fewer iterations."""
    make = getattr(skanneal, name)
    takes = inspect.signature(make).parameters
    fewer = {"n_chains": 1, "n_draws": 1, "schedule": LinearAnneal(n_sweeps=6)}
    if "n_warmup" in takes:
        fewer = {"n_chains": 2, "n_draws": 10, "n_warmup": 10}
    if make is skanneal.AcceleratedDPMixture:
        fewer |= {"n_chains": 1, "schedule": AcceleratedSchedule(n_exact=40)}
    if "estimator" in takes:
        fewer["estimator"] = default("AnnealedDPMixture")
    return make(**{name: value for name, value in fewer.items() if name in takes})


def quick(name, **given):
    """An estimator that fits a small table at once, going by the parameters that it has."""
    model = default(name)
    takes, kinds = model.get_params(deep=False), model._parameter_constraints.get("schedule", ())
    short = {"n_chains": 1, "random_state": 0}
    kinds = tuple(kind for kind in kinds if isinstance(kind, type))
    for schedule in SCHEDULES:
        if isinstance(schedule, kinds):
            short["schedule"] = schedule
    if "estimator" in takes:
        short["estimator"] = quick("CrossCatPY")
    return model.set_params(**{key: short[key] for key in short if key in takes} | given)


def failures(estimator):
    """Names of scikit-learn's checks that an estimator fails, or skips without need."""
    results = estimator_checks.check_estimator(estimator, on_skip=None, on_fail=None)
    outcomes = {(r["check_name"], r["status"]) for r in results}
    outcomes -= {("check_array_api_input", "skipped")}  # wants SCIPY_ARRAY_API in the environment
    assert outcomes, "no checks"
    return sorted(check for check, status in outcomes if status != "passed")
