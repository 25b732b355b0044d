"""Where warnings point, and how often they show: at the line of the user's that asked for the work.

Every public estimator is made to complain of a fit, in each of the ways that users have for it.
"""

import re
import threading
import warnings

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline

import skanneal
from oracles import public_estimators as public
from oracles.places import ROOT
from skanneal._native import _warning
from skanneal.estimators._base_chains import BaseChains
from skanneal.tempering import CallableTarget, sample

PACKAGE = ROOT / "skanneal"
PLANTED = "planted: what a fit has to say"

WAYS = {
    "fit": lambda model, X, y: model.fit(X, y),
    "a pipeline": lambda model, X, y: in_steps(model).fit(X, y),
    "a search": lambda model, X, y: in_folds(model, X, y, random_state=[0, 1]),
    "a search of pipelines": lambda model, X, y: in_folds(
        make_pipeline(model), X, y, verbose=[False]
    ),
    "a thread": lambda model, X, y: in_thread(lambda: model.fit(X, y)),
}


def in_steps(model):
    return make_pipeline("passthrough", model)


def in_folds(model, X, y, **grid):
    return GridSearchCV(model, grid, cv=2, scoring=lambda *_: 0.0).fit(X, y)


def in_thread(task):
    thread = threading.Thread(target=task)
    thread.start()
    thread.join()


def table(n_rows=24):
    rng = np.random.default_rng(0)
    return rng.poisson(3.0, size=(n_rows, 3)).astype(float), rng.normal(size=n_rows)


@pytest.fixture
def complaining(monkeypatch):
    """Every fit that runs chains has something to say."""
    keep = BaseChains._keep
    monkeypatch.setattr(
        BaseChains, "_keep", lambda self, fitted, said=(): keep(self, fitted, [*said, PLANTED])
    )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", public.names())
@pytest.mark.few(6)
def test_a_warning_points_at_the_user(name, way, complaining):
    with pytest.warns(UserWarning, match=PLANTED) as caught:
        WAYS[way](public.quick(name), *table())
    assert {one.filename for one in caught if str(one.message) == PLANTED} == {__file__}


@pytest.mark.parametrize("ask", ["fit_predict", "fit_transform"])
def test_a_warning_of_a_method_that_fits_points_at_the_user(ask, complaining):
    for name in public.names():
        if hasattr(getattr(skanneal, name), ask):
            with pytest.warns(UserWarning, match=PLANTED) as caught:
                getattr(public.quick(name), ask)(table()[0])
            assert {one.filename for one in caught if str(one.message) == PLANTED} == {__file__}


def test_a_warning_of_a_query_points_at_the_user():
    X = np.array([["ab"[i % 2], f"row {i}"] for i in range(30)], dtype=object)
    X[0, 1] = None
    with pytest.warns(UserWarning, match="Left out"):
        model = public.quick("CrossCatPY").fit(X)
    with pytest.warns(UserWarning, match="No cell was observed") as caught:
        model.impute(X)
    assert [one.filename for one in caught] == [__file__]


def test_a_warning_of_a_function_points_at_the_user():
    def nowhere(theta, rows):
        return np.nan if theta[0] else 0.0

    target = CallableTarget(lambda theta: 0.0, nowhere, n_rows=2, n_parameters=1)
    with pytest.warns(RuntimeWarning, match="not a number") as caught:
        sample(target, n_chains=1, n_draws=2, n_warmup=2, random_state=0, inner="mh", init=[0.0])
    assert [one.filename for one in caught] == [__file__]


def test_no_other_module_warns_by_itself():
    """One place knows the distance to the user's line."""
    own = re.compile(r"\bwarnings\.warn|stacklevel|from warnings import")
    found = [
        path.relative_to(PACKAGE).as_posix()
        for path in sorted(PACKAGE.rglob("*.py*"))
        if path.suffix in {".py", ".pyx"} and own.search(path.read_text(encoding="utf-8"))
    ]
    assert found == ["_native/_warning.py"]


@pytest.mark.parametrize(("action", "times"), [("default", 1), ("always", 5)])
def test_a_cross_validation_says_it_once(action, times):
    """Unless all is asked for: so that nobody's own filter is overruled."""
    (X, y), folds = table(), KFold(5)
    X[:, 1] = np.nan
    steps = make_pipeline(public.quick("CrossCatImputer"), KNeighborsRegressor(3))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        cross_val_score(steps, X, y, cv=folds)
    said = [(str(one.message), one.filename) for one in caught]
    assert said == [("Dropped, as no cell is observed: column 1.", __file__)] * times


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (lambda: None, "default"),
        (lambda: warnings.simplefilter("always", UserWarning), "always"),
        (lambda: warnings.simplefilter("error", RuntimeWarning), "default"),
        (lambda: warnings.filterwarnings("ignore", "The chai"), "ignore"),
        (lambda: warnings.filterwarnings("ignore", "chains"), "default"),
        (lambda: warnings.filterwarnings("once", module="my_mod"), "once"),
        (lambda: warnings.filterwarnings("once", module="mod"), "default"),
        (lambda: warnings.simplefilter("error", lineno=7), "error"),
        (lambda: warnings.simplefilter("error", lineno=8), "default"),
    ],
)
def test_the_action_is_that_of_python_s_filters(filters, expected):
    with warnings.catch_warnings():
        warnings.resetwarnings()
        filters()
        assert _warning._action("The chains", UserWarning, "my_module", 7) == expected
