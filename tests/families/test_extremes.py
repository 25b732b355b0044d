"""Hyperparameters and data near the ends of float64: densities are finite, or an error says whose
fault it is."""

import re
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from skanneal import AcceleratedDPMixture, AnnealedDPMixture, CrossCatPY
from skanneal.encoding._limits import LIMITS, POSITIVE
from skanneal.families import FAMILIES
from skanneal.partition_priors._pitman_yor import HIGHEST
from skanneal.schedules import AcceleratedSchedule, PriorGibbs

LIKELIHOODS = ("normal", "multivariate_normal", "multinomial", "poisson")
LARGEST = np.finfo(float).max
VALUES = [1e-320, 1e-100, 1e-20, 1e20, 1e100, -1e308, 1e308, LARGEST, 2**70, 10**400]
VALUES += [Fraction(1, 3), Fraction(1, 10**400), Decimal("0.5"), Decimal("1e400"), "1e400", None]
EACH = [(family, name) for family in FAMILIES for name in FAMILIES[family].names()]


def rows(family, n=16):
    """Two columns; of numbers the cells are the values or their logarithms: -1 and 1, half each."""
    rng = np.random.default_rng(0)
    if family in ("poisson", "negative_binomial", "multinomial"):
        return rng.poisson(4.0, size=(n, 2))
    if family in ("bernoulli", "categorical"):
        return np.c_[np.arange(n) % 2, np.arange(n) // 2 % 2]
    numbers = np.c_[np.arange(n) % 2, np.arange(n) // 2 % 2] * 2.0  # of mean 1 and spread 1
    if FAMILIES[family].cells.startswith("logarithm"):
        return np.exp(numbers - 1.0)
    return numbers if FAMILIES[family].cells == "non_negative" else numbers - 1.0


def models(family, given):
    """Estimators with these hyperparameters of a family, the others inferred where they may be."""
    given = dict.fromkeys(getattr(FAMILIES[family], "required", ()), 1.0) | given
    short = {"schedule": PriorGibbs(n_sweeps=2), "n_draws": 1, "random_state": 0}
    fixed = {family: given}
    yield AnnealedDPMixture(families=family, hyperparameters=fixed, **short)
    if family in LIKELIHOODS:
        for algorithm in ("accelerated", "collapsed"):
            yield AcceleratedDPMixture(
                likelihood=family,
                hyperparameters=fixed,
                algorithm=algorithm,
                schedule=AcceleratedSchedule(n_accelerated=1, n_exact=1),
                random_state=0,
            )


def check_finite(model, X):
    assert len(model.labels_) == len(X) and np.isfinite(model.labels_).all()
    assert np.isfinite(model.score_samples(X)).all()
    assert np.isfinite(model.trace_["log_joint"]).all()


@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{str(value):.12}")
@pytest.mark.parametrize("family, name", EACH)
@pytest.mark.few(40)
def test_hyperparameters(family, name, value):
    X, where = rows(family), f"hyperparameters[{family!r}][{name!r}]"
    for model in models(family, {name: value}):
        try:
            model.fit(X)
        except ValueError as error:
            assert where in str(error)
        else:
            check_finite(model, X)


def form(family, name):
    """The form of a hyperparameter."""
    return dict(zip(FAMILIES[family].coordinate_names, FAMILIES[family].forms))[name]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.few(1)
def test_limits_together(family):
    """At the ends of the limits, all hyperparameters at a time and all pairs of ends: finite."""
    names = FAMILIES[family].names()
    ends = [LIMITS.get(form(family, name), POSITIVE)[:2] for name in names]
    if family == "multinomial":
        ends = [(1e-9, 1e9)]
    if family.startswith("multivariate_"):
        ends[2] = (2.0, 1e12)
    X = rows(family)
    for values in product(*ends):
        for model in models(family, dict(zip(names, values))):
            check_finite(model.fit(X), X)


@pytest.mark.parametrize("name", ["concentration", "discount"])
@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{str(value):.12}")
def test_partition_priors(name, value):
    X = rows("normal")
    model = AnnealedDPMixture(schedule=PriorGibbs(n_sweeps=2), n_draws=1, random_state=0)
    model.set_params(**{name: value})
    try:
        model.fit(X)
    except (ValueError, TypeError) as error:
        assert re.search(rf"\b{name}\b", str(error))
    else:
        check_finite(model, X)
        assert abs(value) <= HIGHEST


NEAR = {
    "wide": lambda u: u * LARGEST,
    "close": lambda u: LARGEST * (1.0 - 1e-10 * np.abs(u)),
    "ends": lambda u: np.where(u > 0, LARGEST, -LARGEST),
    "one": lambda u: np.where(u == u.max(), LARGEST, u),
    "small": lambda u: u * np.finfo(float).tiny,
    "least": lambda u: np.round(u * 9) * 5e-324,
}


@pytest.mark.parametrize("family", ["normal", "multivariate_normal", "poisson", "multinomial"])
@pytest.mark.parametrize("of", NEAR)
@pytest.mark.few(12)
def test_data(family, of):
    X = NEAR[of](np.random.default_rng(0).uniform(-1, 1, size=(24, 2)))
    if family in ("poisson", "multinomial"):
        X = np.abs(X)
    for model in models(family, {}):
        try:
            model.fit(X)
        except ValueError as error:
            assert "column" in str(error).lower()
        else:
            check_finite(model, X)


@pytest.mark.parametrize("name", ["view_concentration", "view_discount"])
@pytest.mark.parametrize("value", [2**70, 10**400, 1e308, Fraction(2, 1) ** 40])
def test_views(name, value):
    with pytest.raises(ValueError, match=f"{name} must be"):
        CrossCatPY(**{name: value}).fit(rows("normal"))
