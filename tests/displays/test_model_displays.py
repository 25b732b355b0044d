"""The displays that ask a model: densities, ladders, Gaussian processes; every one's trace."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from oracles.places import ROOT
from oracles.public_estimators import names, quick
from skanneal import displays
from skanneal.displays import (
    ClusterDisplay,
    ClusterTreeDisplay,
    CoassignmentDisplay,
    DensityDisplay,
    DependenceDisplay,
    FeatureDisplay,
    GPDisplay,
    LadderDisplay,
    TraceDisplay,
    ViewsDisplay,
)
from skanneal.families import FAMILIES

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def rows(n_rows=60):
    side = np.where(np.arange(n_rows) % 2, 4.0, -4.0)
    return side[:, None] + np.random.default_rng(0).normal(size=(n_rows, 2))


# ------------------------------------------------------------------------------------------ trace
@pytest.mark.parametrize("name", names())
@pytest.mark.few(3)
def test_the_trace_of_every_estimator_with_r_hat_in_the_legend(name):
    given = {"n_chains": 2, "n_draws": 30}
    model = quick(name)
    around = "estimator" in model.get_params(deep=False)
    model.set_params(**{f"estimator__{k}" if around else k: v for k, v in given.items()})
    model.fit(rows(), rows()[:, 0])
    display = TraceDisplay.from_estimator(model, x="sweeps")
    assert len(display.lines_) == 2
    title = display.ax_.get_legend().get_title().get_text()
    assert title == f"R-hat {display.r_hat:.2f}"
    r_hats = getattr(model, "estimator_", model).r_hat_
    assert display.r_hat == r_hats.get("log_joint", display.r_hat)
    styles = [line.get_linestyle() for line in display.lines_]
    assert len(set(styles)) == 2  # without colours they are told apart


def test_r_hat_of_a_parameter():
    model = quick("TemperedGPRegressor", n_chains=2, n_draws=30).fit(rows(), rows()[:, 0])
    display = TraceDisplay.from_estimator(model, name="log_sigma_f")
    assert display.r_hat == pytest.approx(float(model.r_hat_["sigma_f"]))


# ---------------------------------------------------------------------------- the wrong estimator
@pytest.fixture(scope="module")
def mixture():
    return quick("AnnealedDPMixture", point_estimate="vi").fit(rows())


@pytest.mark.parametrize(
    ("make", "given", "message"),
    [
        (ClusterTreeDisplay, (), ".* point_estimate='clusters': .* no cluster_tree_"),
        (LadderDisplay, (), "a tempered estimator: .* no result_"),
        (FeatureDisplay, ((1, 2),), "an AcceleratedDPMixture: .* no features_"),
        (ViewsDisplay, (rows(),), "a CrossCatPY: .* no view_labels_"),
        (DependenceDisplay, (), "a CrossCatPY: .* no view_labels_"),
        (GPDisplay, (rows(), rows()[:, 0]), "a regressor whose predict takes return_std"),
    ],
)
def test_a_fitted_estimator_without_what_is_drawn(mixture, make, given, message):
    with pytest.raises(ValueError, match=f"{make.__name__} draws {message}") as caught:
        make.from_estimator(mixture, *given)
    assert not isinstance(caught.value, NotFittedError)
    with pytest.raises(NotFittedError):
        make.from_estimator(clone(mixture), *given)


@pytest.mark.parametrize(
    "make", [TraceDisplay, CoassignmentDisplay, ClusterDisplay, DensityDisplay]
)
def test_a_fitted_scaler_has_nothing_to_draw(make):
    given = () if make in (TraceDisplay, CoassignmentDisplay) else (rows(),)
    with pytest.raises(ValueError, match=f"{make.__name__} draws .* this StandardScaler has no"):
        make.from_estimator(StandardScaler().fit(rows()), *given)


def test_a_regressor_in_a_pipeline_is_drawn():
    X, y = rows(), rows()[:, 0]
    model = make_pipeline(StandardScaler(), quick("TemperedGPRegressor")).fit(X, y)
    assert np.isfinite(GPDisplay.from_estimator(model, X, y, grid_resolution=5).std).all()


# ---------------------------------------------------------------------------------------- density
def test_contours_enclose_the_shares():
    """Of a standard normal density in the plane, the radius of share p is sqrt(-2 log(1 - p))."""
    x = np.linspace(-6, 6, 601)
    log_density = -0.5 * (x[:, None] ** 2 + x**2)
    points = np.zeros((4, 2))
    display = DensityDisplay(x, x, log_density, points, np.array([0, 0, 0, 1])).plot()
    for share, level in zip((0.95, 0.8, 0.5), display.contours_.levels):
        assert np.sqrt(-2 * level) == pytest.approx(np.sqrt(-2 * np.log(1 - share)), abs=0.02)
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == [
        "cluster of 3",
        "cluster of 1",
        *[f"{p} of the mass" for p in ("50%", "80%", "95%")],
    ]


def test_other_columns_are_integrated_out():
    X = pd.DataFrame(rows(), columns=["a", "b"]).assign(c=list("xyz") * 20)
    X.loc[3, "a"] = np.nan
    model = quick("AnnealedDPMixture").fit(X)
    display = DensityDisplay.from_estimator(model, X, columns=(1, 0), grid_resolution=12)
    assert display.ax_.get_xlabel() == "b" and display.ax_.get_ylabel() == "a"
    at = X.iloc[:1].assign(a=display.y[4], b=display.x[7], c=None)
    assert display.log_density[4, 7] == pytest.approx(model.score_samples(at)[0])
    assert np.isnan(display.points[3, 1])
    with pytest.raises(ValueError, match="two columns of numbers"):
        DensityDisplay.from_estimator(model, X, columns=(0, 2))


def test_densities_of_arrays_and_of_models_without_gaps():
    model = quick("AcceleratedDPMixture").fit(rows())
    display = DensityDisplay.from_estimator(model, rows(), grid_resolution=9)
    corner = [[display.x[-1], display.y[0]]]
    assert display.log_density[0, -1] == pytest.approx(model.score_samples(corner)[0])
    _, ax = plt.subplots()
    assert display.plot(ax).ax_ is ax


COLUMNS = {  # of the sorts of cells that are drawn, two columns each
    "number": rows(),
    "non_negative": np.exp(rows()),
    "logarithm": np.exp(rows()),
    "number_or_atom": np.where(np.arange(60)[:, None] % 3, rows(), 0.0),
    "logarithm_or_atom": np.where(np.arange(60)[:, None] % 3, np.exp(rows()), 0.0),
    "count": np.random.default_rng(0).poisson(3, (60, 2)),
}
OTHER_COLUMNS = np.random.default_rng(0).integers(0, 2, (60, 2))
OTHER_COLUMNS[~OTHER_COLUMNS.any(axis=1)] = 1  # rows of counts have one above 0


@pytest.mark.parametrize("family", FAMILIES)
def test_a_grid_keeps_to_what_the_family_describes(family):
    """Every family is drawn, with a finite density everywhere, or refused by its name."""
    cells = FAMILIES[family].cells
    X = COLUMNS.get(cells, OTHER_COLUMNS)
    given = {"known_normal": {"covariance": np.eye(2)}} if family == "known_normal" else {}
    model = quick("AnnealedDPMixture", families=family, hyperparameters=given).fit(X)
    if cells not in COLUMNS:
        with pytest.raises(ValueError, match=f"column 0 is of the family '{family}'"):
            DensityDisplay.from_estimator(model, X)
        return
    display = DensityDisplay.from_estimator(model, X, grid_resolution=12)
    assert np.isfinite(display.log_density).all()
    assert display.log_density.shape == (len(display.y), len(display.x))
    for axis, own in ((display.x, X[:, 0]), (display.y, X[:, 1])):
        assert (np.diff(axis) > 0).all() and axis[-1] > own.max()
        if cells.startswith("number"):
            assert axis[0] < own.min()
        if cells == "count":
            assert (axis == axis.round()).all()
        if cells.endswith("_or_atom"):
            assert not np.isin(axis, own).any()


def test_what_cannot_be_drawn_is_named():
    X = pd.DataFrame(rows(), columns=["a", "b"]).assign(one=1.0)
    X["d"] = pd.date_range("2020-01-01", periods=60, freq="7h")
    model = quick("AnnealedDPMixture").fit(X)
    for columns, message in (
        ((0, 3), "column 'd' holds dates or durations"),
        ((2, 0), "column 'one' is of the family 'constant'"),
        *((wrong, "positions of two") for wrong in ((0,), (0, 0), (0, 4), (-1, 0), 1, ("a", "b"))),
    ):
        with pytest.raises(ValueError, match=f"columns must be .*{message}"):
            DensityDisplay.from_estimator(model, X, columns=columns)
    with pytest.raises(ValueError, match="X must be the training data: it has 10 rows"):
        DensityDisplay.from_estimator(model, X[:10])
    for n_points in (1, 2.5):
        with pytest.raises(ValueError, match="grid_resolution must be an integer, at least 2"):
            DensityDisplay.from_estimator(model, X, grid_resolution=n_points)
    wide = np.hstack([rows(), rows()])
    whole = quick("AcceleratedDPMixture").fit(wide)
    with pytest.raises(ValueError, match="X must have two columns, not 4"):
        DensityDisplay.from_estimator(whole, wide)


# ----------------------------------------------------------------------------------------- ladder
@pytest.mark.parametrize(("method", "last"), [("stt", "rows"), ("pt", "power")])
def test_the_ladder(method, last):
    model = quick("TemperedGaussianMean", method=method, n_chains=2).fit(rows())
    display = LadderDisplay.from_estimator(model)
    assert np.array_equal(display.acceptance, model.result_.swap_acceptance)
    ticks = [label.get_text() for label in display.ax_.get_xticklabels()]
    assert len(ticks) == model.betas_.shape[1] and last in ticks[-1]
    assert np.array_equal(display.lines_[-1].get_ydata(), display.acceptance.mean(axis=0))


def test_no_ladder():
    model = quick("TemperedGaussianMean", method="none").fit(rows())
    with pytest.raises(ValueError, match="one rung"):
        LadderDisplay.from_estimator(model)


# ------------------------------------------------------------------------------- Gaussian process
@pytest.mark.parametrize("named", [False, True])
def test_the_gaussian_process(named):
    X = pd.DataFrame(rows(), columns=["a", "b"]) if named else rows()
    y = rows()[:, 0]
    model = quick("TemperedGPRegressor").fit(X, y)
    display = GPDisplay.from_estimator(model, X, y, column=1, grid_resolution=15)
    at = np.array([[np.median(rows()[:, 0]), display.x[6]]])
    mean, std = model.predict(
        pd.DataFrame(at, columns=["a", "b"]) if named else at, return_std=True
    )
    assert display.mean[6] == pytest.approx(mean[0])
    # the root of a small difference of two variances: rounding is some 1e-6 of it
    assert display.std[6] == pytest.approx(std[0], rel=1e-4)
    assert display.ax_.get_xlabel() == ("b" if named else "column 1")
    assert np.array_equal(display.line_.get_ydata(), display.mean)


def test_the_cut_of_the_tree_is_named():
    tree = np.array([[0, 1, 0.4, 2], [2, 3, 9.0, 3]])
    display = ClusterTreeDisplay(tree, separation=0.99).plot()
    assert display.ax_.get_legend().get_texts()[0].get_text() == "separation 0.99"


def test_the_cut_of_the_tree_is_that_of_the_fit():
    model = quick("AnnealedDPMixture", separation=0.99, point_estimate="clusters").fit(rows())
    model.set_params(separation=0.5)
    assert ClusterTreeDisplay.from_estimator(model).separation == 0.99
    model.cut(rows(), n_clusters=1).set_params(n_clusters=None)
    assert ClusterTreeDisplay.from_estimator(model).separation is None


def test_a_dollar_sign_begins_no_formula():
    """In names of columns and in levels: of a formula this would be none that can be drawn."""
    X = pd.DataFrame(rows(), columns=["price $^ in $", "$5 to $10"])
    model, of_views = (quick(name).fit(X) for name in ("AnnealedDPMixture", "CrossCatPY"))
    drawn = [
        DensityDisplay.from_estimator(model, X).ax_.get_xlabel(),
        ClusterDisplay.from_estimator(model, X).ax_.get_xticklabels()[0].get_text(),
        DependenceDisplay.from_estimator(of_views).ax_.get_yticklabels()[0].get_text(),
        ViewsDisplay.from_estimator(of_views, X).axes_[0].get_xticklabels()[0].get_text(),
    ]
    assert {name.replace("\\$", "$") for name in drawn} <= set(X)
    assert "$" not in "".join(drawn).replace("\\$", "")
    for number in plt.get_fignums():
        plt.figure(number).canvas.draw()


def test_every_display_is_in_the_reference():
    page = (ROOT / "doc" / "api.md").read_text(encoding="utf-8")
    assert all(f"   {name}\n" in page for name in displays.__all__)
