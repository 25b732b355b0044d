"""Estimators among other tools: pipelines, frames, metadata routing, ArviZ, links to the pages."""

import inspect

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks

import skanneal
from oracles.public_estimators import names, quick
from skanneal import schedules, tempering
from skanneal.schedules import LinearAnneal

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names"),
]
MIXTURES = ("AnnealedDPMixture", "PermutationDPMixture", "AcceleratedDPMixture")


def rows(n_rows=60):
    side = np.where(np.arange(n_rows) % 2, 4.0, -4.0)
    return side[:, None] + np.random.default_rng(0).normal(size=(n_rows, 2))


# -------------------------------------------------------------------------------------- transform
@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.few(1)
def test_transform_gives_the_clusters_probabilities(name):
    X = pd.DataFrame(rows(), columns=["a", "b"])
    model = quick(name).fit(X)
    out = model.transform(X)
    assert np.array_equal(out, model.predict_proba(X)) and out.shape == (60, model.n_clusters_)
    columns = [f"{name.lower()}{i}" for i in range(model.n_clusters_)]
    assert model.get_feature_names_out().tolist() == columns
    assert np.array_equal(quick(name).fit_transform(X), out)
    assert model.set_output(transform="pandas").transform(X).columns.tolist() == columns
    assert isinstance(model.set_output(transform="polars").transform(X), pl.DataFrame)
    step = make_pipeline(StandardScaler(), quick(name)).set_output(transform="pandas")
    assert step.fit_transform(X).shape[0] == 60


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.few(2)
@pytest.mark.parametrize(
    "check", [name for name in dir(estimator_checks) if name.startswith("check_set_output")]
)
def test_set_output(name, check):
    getattr(estimator_checks, check)(name, quick(name))


@pytest.mark.parametrize("name", MIXTURES)
def test_names_of_what_transform_gives(name):
    estimator_checks.check_transformer_get_feature_names_out(name, quick(name))
    estimator_checks.check_transformer_get_feature_names_out_pandas(name, quick(name))


# ---------------------------------------------------------------------------------------- routing
@pytest.mark.parametrize(
    "name",
    [n for n in names() if "strata" in inspect.signature(getattr(skanneal, n).fit).parameters],
)
@pytest.mark.few(1)
def test_strata_are_routed(name):
    """A pipeline hands them to the step that asks for them."""
    X, strata = rows(), np.arange(60) % 3
    schedule = LinearAnneal(n_sweeps=4, selection="stratified")
    model = quick(name, schedule=schedule)
    alone = quick(name, schedule=schedule).fit(StandardScaler().fit_transform(X), strata=strata)
    without = quick(name, schedule=schedule).fit(StandardScaler().fit_transform(X))
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), model.set_fit_request(strata=True))
        routed = pipeline.fit(X, strata=strata)[-1]
    joint = [np.nanmax(m.trace_["log_joint"]) for m in (alone, routed, without)]
    assert joint[0] == joint[1] != joint[2]


# ------------------------------------------------------------------------------------------ ArviZ
@pytest.mark.parametrize("name", [n for n in names() if hasattr(getattr(skanneal, n), "to_arviz")])
def test_to_arviz(name):
    X = pd.DataFrame(rows(), columns=["a", "b"])
    given = {"n_chains": 2, "n_draws": 6}
    for parameter in {"families", "likelihood"} & set(getattr(skanneal, name)().get_params()):
        given[parameter] = "normal"
    model = quick(name, **given).fit(X, X["a"])
    tree = model.to_arviz()
    posterior, log_joint = tree["posterior"], tree["sample_stats"]["lp"].to_numpy()
    assert {posterior.sizes[name] for name in ("chain", "draw")} == {2, 6}
    if name.startswith("Tempered"):
        assert np.array_equal(posterior["theta"], model.draws_)
        return
    for c, chain in enumerate(model.draws_):
        for d, draw in enumerate(chain):
            assert log_joint[c, d] == draw.log_joint
            assert posterior["n_components"][c, d] == np.sum(draw.n_components)
            assert posterior["concentration"][c, d] == pytest.approx(np.mean(draw.concentration))
    of_column = posterior["normal_mu0"].sel(normal_column="b").to_numpy()
    assert of_column[1, 2] == model.draws_[1][2].hyperparameters["normal"]["mu0"][1]


def test_what_depends_on_the_numbers_of_clusters_is_not_exported():
    X = pd.DataFrame({"a": list("xyxyxy") * 10, "b": np.arange(60) % 3 == 0, "c": rows()[:, 0]})
    model = quick("CrossCatPY", n_chains=2, n_draws=3).fit(X)
    exported = set(model.to_arviz()["posterior"].data_vars)
    scalars = {"n_components", "n_views", "concentration", "discount"}
    assert exported >= scalars | {"view_concentration", "view_discount"}
    assert all("_" in name for name in exported - scalars)  # the rest by family and name
    assert not any("label" in name or "size" in name for name in exported)
    levels = model.to_arviz()["posterior"]["categorical_pseudo_counts"]
    assert levels.dims == ("chain", "draw", "categorical_column", "categorical_level")


# ------------------------------------------------------------------------------------------ links
def public(module):
    members = (getattr(module, name) for name in module.__all__)
    kept = [m for m in members if inspect.isclass(m) and issubclass(m, BaseEstimator)]
    return [(module.__name__, make) for make in kept if not make.__name__.startswith("Base")]


@pytest.mark.parametrize(
    ("module", "make"), [*public(skanneal), *public(schedules), *public(tempering)]
)
def test_the_html_representation_links_to_the_page(module, make):
    page = f"/generated/{module}.{make.__name__}.html"
    link = make.__new__(make)._get_doc_link()
    assert link.startswith("https://skanneal.") and link.endswith(page)


def test_the_link_is_in_the_representation():
    html = quick("CrossCatPY")._repr_html_()
    assert "generated/skanneal.CrossCatPY.html" in html and "https://scikit-learn.org/1" not in html
