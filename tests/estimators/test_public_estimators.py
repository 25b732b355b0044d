"""What every public estimator keeps, found through `skanneal.__all__`: scikit-learn's checks, and a
place in the pages.
"""

import re

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.utils import estimator_checks

import skanneal
from oracles.places import ROOT
from oracles.public_estimators import default, failures, names, quick

PAGES = ("doc/api.md", "doc/design.md")


def absent(page):
    """The public estimators that a page does not name."""
    words = set(re.findall(r"\w+", (ROOT / page).read_text(encoding="utf-8")))
    return [name for name in names() if name not in words]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", names())
@pytest.mark.few(4)
def test_check_estimator(name):
    assert failures(default(name)) == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "name", [n for n in names() if repr(default(n)) != repr(getattr(skanneal, n)())]
)
def test_check_estimator_with_all_iterations(name):
    assert failures(getattr(skanneal, name)()) == []


@pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "check",
    [
        "check_param_validation",
        "check_dataframe_column_names_consistency",
        "check_inplace_ensure_writeable",
    ],
)
@pytest.mark.parametrize("name", names())
@pytest.mark.few(12)
def test_checks_outside_the_public_run(name, check):
    getattr(estimator_checks, check)(name, quick(name))


def changes():
    """What may leave other attributes: a name, a parameter and two of its values."""
    for name in names():
        if "n_clusters" in quick(name).get_params():
            yield name, "point_estimate", ("clusters", "map")
    yield "AcceleratedDPMixture", "likelihood", ("normal", "logistic_normal")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("name", "parameter", "values"), list(changes()))
@pytest.mark.few(2)
def test_a_fit_leaves_exactly_its_own_attributes(name, parameter, values):
    """Two fits that differ in what they leave, on the way from one to the other."""
    X = np.random.default_rng(0).poisson(9.0, size=(60, 3))
    X[:30] += 40
    before, after = [quick(name, **{parameter: value}).fit(X) for value in values]
    assert set(vars(before)) - set(vars(after))
    assert set(vars(before.set_params(**{parameter: values[1]}).fit(X))) == set(vars(after))


@pytest.mark.parametrize("page", PAGES)
def test_every_estimator_is_on_the_page(page):
    assert absent(page) == []


class DummyMixture(BaseEstimator):
    """An estimator that fits nothing and forgets its parameter."""

    def __init__(self, n_chains=4):
        self.chains = n_chains

    def fit(self, X, y=None):
        return self


def test_a_line_beside_the_others_makes_an_estimator_public():
    path = ROOT / "skanneal" / "estimators" / "__init__.py"
    line = f"from {__name__} import DummyMixture\n\nif not _typing"
    source = path.read_text(encoding="utf-8").replace("\nif not _typing", line)
    namespace = {"__name__": "skanneal.estimators", "__package__": "skanneal.estimators"}
    exec(compile(source, path, "exec"), namespace)
    assert namespace["__all__"] == sorted([*skanneal.__all__, "DummyMixture"])


def test_a_new_estimator_is_found_checked_and_missed_on_the_pages(monkeypatch):
    monkeypatch.setattr(skanneal, "DummyMixture", DummyMixture, raising=False)
    monkeypatch.setattr(skanneal, "__all__", [*skanneal.__all__, "DummyMixture"])
    assert "DummyMixture" in names()
    assert failures(default("DummyMixture")) != []
    assert all(absent(page) == ["DummyMixture"] for page in PAGES)
