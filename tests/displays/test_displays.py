"""The displays: what they compute from an estimator's public attributes, and what they draw."""

import subprocess
import sys
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, is_regressor
from sklearn.exceptions import NotFittedError

import skanneal
from skanneal.displays import (
    ClusterDisplay,
    CoassignmentDisplay,
    DependenceDisplay,
    FeatureDisplay,
    TraceDisplay,
    ViewsDisplay,
)
from skanneal.encoding import open_table
from skanneal.summary import coclustering, profile_clusters, rank_clusters

N_ROWS = 60


class Fitted(BaseEstimator):
    """The public attributes of a fitted estimator: 3 chains of 2 draws, the last chain shorter."""

    def fit(self, X, y=None):
        rng = np.random.default_rng(0)
        self.labels_ = self.component_labels_ = np.repeat([0, 1, 2], [15, 35, 10])
        self.features_ = np.arange(18.0).reshape(3, 6) ** 2
        self.draws_ = []
        for _ in range(3):
            self.draws_.append([])
            for _ in range(2):
                labels = self.labels_.astype(np.int32)
                labels[rng.integers(0, N_ROWS, size=6)] = 7
                self.draws_[-1].append(SimpleNamespace(labels=labels))
        n_assigned = np.minimum(np.arange(1, 21) * 6.0, N_ROWS)
        self.trace_ = {
            "seconds": np.cumsum(rng.random((3, 20)), axis=1),
            "sweeps": np.tile(np.arange(20) / 2, (3, 1)),
            "n_assigned": np.tile(n_assigned, (3, 1)),
            "log_joint": -10.0 * n_assigned + rng.normal(size=(3, 20)),
        }
        for values in self.trace_.values():
            values[2, 16:] = np.nan
        return self


@pytest.fixture
def fitted():
    return Fitted().fit(None)


@pytest.fixture(autouse=True)
def figures_are_closed():
    yield
    plt.close("all")


def make_frame():
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "size": np.repeat([1.0, -1.0, 4.0], [15, 35, 10]) + rng.normal(size=N_ROWS),
            "colour": pd.Categorical(np.resize(["red", "green", "blue"], N_ROWS)),
            "open": np.arange(N_ROWS) < 20,
            "count": rng.integers(0, 3, size=N_ROWS),
            "bytes": rng.integers(0, 10**6, size=N_ROWS),
        }
    )


DISPLAYS = {
    "trace": lambda estimator, **options: TraceDisplay.from_estimator(estimator, **options),
    "coassignment": lambda estimator, **options: CoassignmentDisplay.from_estimator(
        estimator, **options
    ),
    "cluster": lambda estimator, **options: ClusterDisplay.from_estimator(
        estimator, make_frame(), **options
    ),
    "feature": lambda estimator, **options: FeatureDisplay.from_estimator(
        estimator, (2, 3), **options
    ),
}


# -------------------------------------------------------------------------------------- all of them
@pytest.mark.parametrize("make", DISPLAYS.values(), ids=DISPLAYS)
def test_axes_are_made_or_taken(make, fitted):
    display = make(fitted)
    display.figure_.canvas.draw()
    assert display.ax_.figure is display.figure_
    _, ax = plt.subplots()
    n_figures = len(plt.get_fignums())
    assert make(fitted, ax=ax).ax_ is ax
    assert display.plot(ax=ax) is display and display.ax_ is ax
    assert len(plt.get_fignums()) == n_figures


@pytest.mark.parametrize("make", DISPLAYS.values(), ids=DISPLAYS)
def test_estimator_must_be_fitted(make):
    with pytest.raises(NotFittedError):
        make(Fitted())


def test_matplotlib_is_asked_for_only_to_draw():
    script = """
import sys
sys.modules["matplotlib"] = None
import numpy as np
from skanneal.displays import ClusterDisplay, CoassignmentDisplay, FeatureDisplay, TraceDisplay
displays = [
    TraceDisplay(np.ones((1, 3)), np.ones((1, 3))),
    CoassignmentDisplay(np.eye(2), np.arange(2)),
    ClusterDisplay(np.ones((1, 1)), np.array([False]), ["a"], ["0"]),
    FeatureDisplay(np.ones((1, 2, 2)), [3]),
]
for display in displays:
    try:
        display.plot()
    except ImportError as error:
        assert f"{type(display).__name__}.plot requires matplotlib" in str(error)
    else:
        raise AssertionError
"""
    subprocess.run([sys.executable, "-P", "-W", "ignore", "-c", script], check=True)


# -------------------------------------------------------------------------------------------- trace
@pytest.mark.parametrize("x", ["seconds", "sweeps"])
def test_trace_lines_are_the_full_data_records(fitted, x):
    display = TraceDisplay.from_estimator(fitted, x=x)
    assert len(display.lines_) == 3
    for chain, line in enumerate(display.lines_):
        np.testing.assert_array_equal(line.get_xdata(), fitted.trace_[x][chain])
        full = fitted.trace_["n_assigned"][chain] == N_ROWS
        expected = np.where(full, fitted.trace_["log_joint"][chain], np.nan)
        np.testing.assert_array_equal(line.get_ydata(), expected)
    assert display.ax_.get_xlabel().lower() == x
    assert display.ax_.get_ylabel() == "Log joint density"
    # The records on subsamples reach up to -60, those on all rows stay near -600.
    assert display.ax_.get_ylim()[1] < -500
    assert len(display.ax_.get_legend().get_texts()) == 3


def test_trace_on_all_rows_throughout(fitted):
    fitted.trace_["n_assigned"] = np.where(
        np.isnan(fitted.trace_["n_assigned"]), np.nan, float(N_ROWS)
    )
    display = TraceDisplay.from_estimator(fitted)
    assert display.ax_.get_ylim()[1] > -100
    assert not display.ax_.texts


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.slow
def test_every_estimator_with_a_trace_is_drawn():
    rng = np.random.default_rng(0)
    X, drawn = rng.normal(size=(12, 2)), []
    for make in (getattr(skanneal, name) for name in skanneal.__all__):
        if not hasattr(make, "fit"):
            continue
        estimator = make(random_state=0).fit(X, *([X[:, 0]] if is_regressor(make()) else []))
        if hasattr(estimator, "trace_"):
            for x in ("seconds", "sweeps"):
                display = TraceDisplay.from_estimator(estimator, x=x)
                assert np.isfinite(display.ax_.dataLim.bounds).all()
            drawn.append(make)
            plt.close("all")
    assert len(drawn) >= 6


def test_trace_of_a_tempered_estimator():
    """One record per draw, parameters by name; time goes on from warm-up."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    options = {"n_chains": 2, "n_draws": 25, "n_warmup": 30, "random_state": 0}
    model = skanneal.TemperedGPRegressor(**options).fit(X, X[:, 0])
    for i, name in enumerate(model.parameter_names_):
        display = TraceDisplay.from_estimator(model, name=name, x="sweeps")
        for chain, line in enumerate(display.lines_):
            assert line.get_xdata().tolist() == list(range(31, 56))
            np.testing.assert_array_equal(line.get_ydata(), model.draws_[chain, :, i])
        assert display.ax_.get_ylabel() == name
    result, trace = model.result_, model.trace_
    np.testing.assert_array_equal(trace["log_joint"], result.log_prior + result.log_likelihood)
    assert (np.diff(trace["seconds"]) >= 0).all()
    assert (trace["seconds"][:, 0] >= result.seconds_warmup).all()
    assert (trace["seconds"][:, -1] <= result.seconds_warmup + result.seconds + 0.1).all()


def test_trace_of_any_entry_and_style(fitted):
    display = TraceDisplay.from_estimator(fitted, name="sweeps", color="red")
    assert display.ax_.get_ylabel() == "Sweeps"
    assert {line.get_color() for line in display.lines_} == {"red"}
    display = TraceDisplay([0, 1, 2], [3.0, 5.0, 4.0], name="r", x_name="hours").plot()
    assert display.ax_.get_xlabel() == "hours" and display.ax_.get_legend() is None


@pytest.mark.parametrize("option", ["name", "x"])
def test_trace_of_unknown_entry(fitted, option):
    with pytest.raises(
        ValueError, match=f"{option} must be .*log_joint|{option} must be 'seconds'"
    ):
        TraceDisplay.from_estimator(fitted, **{option: "speed"})


# ------------------------------------------------------------------------------------- coassignment
def test_coassignment_is_sorted_by_cluster(fitted):
    display = CoassignmentDisplay.from_estimator(fitted)
    assert sorted(display.rows) == list(range(N_ROWS))
    np.testing.assert_array_equal(display.labels, np.repeat([1, 0, 2], [35, 15, 10]))
    np.testing.assert_array_equal(display.labels, fitted.labels_[display.rows])
    draws = [draw.labels for chain in fitted.draws_ for draw in chain]
    np.testing.assert_array_equal(display.coassignment, coclustering(draws, display.rows))
    assert [tick.get_text() for tick in display.ax_.get_yticklabels()] == ["1", "0", "2"]


def test_coassignment_shows_each_cluster_in_proportion(fitted):
    display = CoassignmentDisplay.from_estimator(fitted, max_rows=12)
    assert display.coassignment.shape == (12, 12)
    assert len(set(display.rows)) == 12
    counts = np.bincount(display.labels)
    assert np.abs(counts - np.array([3, 7, 2])).max() <= 1
    with pytest.raises(ValueError, match="max_rows"):
        CoassignmentDisplay.from_estimator(fitted, max_rows=0)


# ----------------------------------------------------------------------------------------- clusters
def profile_of(X, labels, as_levels=()):
    ranks, sizes = rank_clusters(labels)
    return profile_clusters(open_table(X, "X"), ranks, len(sizes), as_levels)


def test_profile_by_pandas(fitted):
    """Means and frequencies against groupby; clusters from the largest: 1, 0, 2."""
    X = make_frame()
    profile = profile_of(X, fitted.labels_, as_levels=[X.columns.get_loc("count")])
    table = pd.DataFrame(profile.values, index=[1, 0, 2], columns=profile.names)
    for name in ("size", "bytes"):
        means = X[name].groupby(fitted.labels_).mean()
        expected = (means - X[name].mean()) / X[name].std(ddof=0)
        np.testing.assert_allclose(table[name].sort_index(), expected)
    for column, level in [("colour", "red"), ("colour", "blue"), ("open", True), ("count", 2)]:
        expected = (X[column] == level).groupby(fitted.labels_).mean()
        np.testing.assert_allclose(table[f"{column} = {level}"].sort_index(), expected, atol=1e-12)
    assert "open = False" not in table
    assert profile.is_level.tolist() == [" = " in name for name in profile.names]
    assert ((profile.spread >= 0) & (profile.spread <= 1)).all()


@pytest.mark.parametrize(
    "convert",
    [
        lambda X: pl.DataFrame({name: X[name].tolist() for name in X}),
        lambda X: X.to_numpy(dtype=object),
        lambda X: list(zip(*(X[name].tolist() for name in X))),
    ],
    ids=["polars", "objects", "rows"],
)
def test_profile_of_other_containers(fitted, convert):
    X = make_frame()
    expected, profile = (profile_of(each, fitted.labels_) for each in (X, convert(X)))
    order = np.argsort(expected.values[0], kind="stable")
    order_here = np.argsort(profile.values[0], kind="stable")
    np.testing.assert_allclose(profile.values[0, order_here], expected.values[0, order])
    np.testing.assert_allclose(np.sort(profile.spread), np.sort(expected.spread))


def test_profile_leaves_missing_cells_out():
    X = pd.DataFrame(
        {
            "a": [1.0, np.nan, 3.0, np.nan],
            "b": ["x", None, "y", "x"],
            "c": [np.nan] * 4,
            "d": pd.array([True, None, False, True], dtype="boolean"),
        }
    )
    profile = profile_of(X, [0, 0, 1, 2])
    table = pd.DataFrame(profile.values, columns=profile.names)
    np.testing.assert_allclose(table["a"], [-1, 1, np.nan])
    assert "b = x" not in table
    np.testing.assert_allclose(table["b = y"], [0, 1, 0])
    np.testing.assert_allclose(table["d = True"], [1, 0, 1])
    assert table["c"].isna().all()


def test_profile_keeps_small_differences_at_a_large_offset():
    noise = np.array([0.0, 1.0, 5.0, 6.0])
    labels = [0, 0, 1, 1]
    plain, shifted = (profile_of((noise + c)[:, None], labels) for c in (0.0, 2952788047.0))
    np.testing.assert_allclose(shifted.values, plain.values, rtol=1e-6)


def test_constant_columns_and_one_cluster():
    profile = profile_of(np.full((4, 1), 3.5), [0, 0, 1, 1])
    assert profile.values.tolist() == [[0.0], [0.0]] and profile.spread.tolist() == [0.0]
    display = ClusterDisplay.from_estimator(Fitted().fit(None), np.full((N_ROWS, 1), 3.5))
    assert display.values.shape == (3, 1)


def test_clusters_shown(fitted):
    display = ClusterDisplay.from_estimator(fitted, make_frame())
    assert display.cluster_names == ["1  (n = 35)", "0  (n = 15)", "2  (n = 10)"]
    n_numbers = (~display.is_level).sum()
    assert not display.is_level[:n_numbers].any() and n_numbers == 3, "numbers first"
    levels, numbers = display.meshes_
    assert numbers.get_array().size == 3 * 3 and levels.get_array().size == 3 * 4
    ticks = [tick.get_text() for tick in display.ax_.get_xticklabels()]
    assert ticks == display.feature_names


def test_most_telling_features_and_largest_clusters_are_shown(fitted):
    display = ClusterDisplay.from_estimator(fitted, make_frame(), max_features=2, max_clusters=1)
    assert set(display.feature_names) == {"size", "open = True"}
    assert display.cluster_names == ["1  (n = 35)"]
    assert display.values.shape == (1, 2)


def test_clusters_need_the_training_rows(fitted):
    with pytest.raises(ValueError, match="X must be the training data: it has 59 rows"):
        ClusterDisplay.from_estimator(fitted, make_frame().iloc[1:])


# ----------------------------------------------------------------------------------------- features
def pictures_of(display):
    """What is drawn between the gaps of the sheet, in its order."""
    sheet = np.ma.filled(display.image_.get_array(), np.nan)
    height, width = display.pictures.shape[1:]
    tops = [i for i in range(len(sheet)) if (i == 0 or np.isnan(sheet[i - 1]).all())]
    tops = [i for i in tops if not np.isnan(sheet[i]).all()]
    found = []
    for top in tops:
        rows, left = sheet[top : top + height], 0
        while left < rows.shape[1]:
            if np.isnan(rows[0, left]):
                left += 1
                continue
            found.append(rows[:, left : left + width])
            left += width
    return np.array(found)


def test_features_are_pictures_by_size(fitted):
    display = FeatureDisplay.from_estimator(fitted, (2, 3))
    expected = fitted.features_[[1, 0, 2]]
    np.testing.assert_array_equal(display.pictures, expected.reshape(3, 2, 3))
    assert display.sizes.tolist() == [35, 15, 10]
    assert [text.get_text() for text in display.ax_.texts] == ["35", "15", "10"]
    low, high = expected.min(axis=1, keepdims=True), expected.max(axis=1, keepdims=True)
    scaled = ((expected - low) / (high - low)).reshape(3, 2, 3)
    np.testing.assert_allclose(pictures_of(display), scaled)
    few = FeatureDisplay.from_estimator(fitted, (2, 3), n_features=1, cmap="viridis")
    assert few.sizes.tolist() == [35] and few.image_.get_cmap().name == "viridis"


def test_features_of_any_number_are_all_on_the_sheet():
    rng = np.random.default_rng(2)
    for n in (1, 6, 7, 50):
        pictures = rng.random((n, 5, 4))
        pictures[:, 0, 0], pictures[:, 4, 3] = 0, 1
        display = FeatureDisplay(pictures, np.arange(n, 0, -1)).plot()
        np.testing.assert_allclose(pictures_of(display), pictures)
    flat = FeatureDisplay(np.full((1, 2, 2), 0.3), [1000]).plot()
    assert pictures_of(flat).tolist() == [[[0, 0], [0, 0]]]
    assert flat.ax_.texts[0].get_text() == "1,000"


def test_features_must_fill_the_pictures(fitted):
    for shape in ((2, 2), (6,), (1, 2, 3)):
        with pytest.raises(ValueError, match="image_shape must be .* product is 6"):
            FeatureDisplay.from_estimator(fitted, shape)
    with pytest.raises(ValueError, match="n_features must be at least 1, got 0"):
        FeatureDisplay.from_estimator(fitted, (2, 3), n_features=0)


# -------------------------------------------------------------------------------------------- views
class FittedViews(BaseEstimator):
    """The public attributes of a fitted CrossCat: columns 1 and 3 in the larger view with 4."""

    def fit(self, X, y=None):
        self.view_labels_ = np.array([0, 1, 0, 1, 1])
        self.row_labels_ = [np.arange(N_ROWS) % 4, np.repeat([0, 1], [20, 40])]
        self.labels_ = self.row_labels_[1]
        self.n_features_in_ = 5
        self.feature_names_in_ = make_frame().columns.to_numpy()
        return self

    def dependence_probability(self):
        out = (self.view_labels_ == self.view_labels_[:, None]).astype(float)
        out[1, 3] = out[3, 1] = 0.5  # column 4 holds its view together
        out[0, 1] = out[1, 0] = 0.25
        return out


def test_dependence_is_sorted_by_view_and_strength():
    model = FittedViews().fit(None)
    display = DependenceDisplay.from_estimator(model)
    assert display.names == ["bytes", "colour", "count", "size", "open"]
    order = [4, 1, 3, 0, 2]
    np.testing.assert_array_equal(
        display.image_.get_array(), model.dependence_probability()[np.ix_(order, order)]
    )
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == display.names
    _, ax = plt.subplots()
    assert DependenceDisplay.from_estimator(model, ax=ax).ax_ is ax
    del model.feature_names_in_
    assert DependenceDisplay.from_estimator(model).names == ["4", "1", "3", "0", "2"]


def test_views_show_the_rows_sorted_by_cluster():
    model, X = FittedViews().fit(None), make_frame()
    X.loc[3, "bytes"] = np.nan
    display = ViewsDisplay.from_estimator(model, X)
    assert display.names == [["bytes", "colour", "count"], ["size", "open"]]
    assert [len(np.unique(labels)) for labels in display.labels] == [2, 4]
    larger_first = np.r_[20:60, 0:20]
    shown = display.cells[0][:, 1]
    np.testing.assert_array_equal(shown, X["colour"].cat.codes.to_numpy()[larger_first] / 2)
    at = np.flatnonzero(larger_first == 3)
    assert np.flatnonzero(np.isnan(display.cells[0][:, 0])).tolist() == at.tolist()
    ranks = X["bytes"].rank().to_numpy()[larger_first]
    np.testing.assert_allclose(display.cells[0][:, 0], (ranks - 0.5) / (N_ROWS - 1))
    assert len(display.axes_) == len(display.images_) == 2
    display.figure_.canvas.draw()
    few = ViewsDisplay.from_estimator(model, X, max_rows=12, figure=plt.figure())
    assert [cells.shape for cells in few.cells] == [(12, 3), (12, 2)]
    with pytest.raises(ValueError, match="training data"):
        ViewsDisplay.from_estimator(model, X.head())
    with pytest.raises(ValueError, match="max_rows"):
        ViewsDisplay.from_estimator(model, X, max_rows=0)


@pytest.mark.parametrize("make", [DependenceDisplay, ViewsDisplay])
def test_views_must_be_fitted(make):
    with pytest.raises(NotFittedError):
        make.from_estimator(FittedViews(), *([make_frame()] if make is ViewsDisplay else []))
