"""`describe_clusters`: clusters and components, to be read and to be sorted; and how sure it is."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from skanneal import AcceleratedDPMixture, AnnealedDPMixture, CrossCatPY
from skanneal.displays import (
    ClusterDisplay,
    ClusterTreeDisplay,
    CoassignmentDisplay,
    DensityDisplay,
)
from skanneal.schedules import AcceleratedSchedule, SequentialGibbs
from skanneal.summary._sides import probability_above

QUICK = {"schedule": "sequential_gibbs", "n_chains": 1, "n_draws": 4, "random_state": 0}
LONG = ["column", "level", "value", "overall", "difference", "probability"]


def two_groups(n=150):
    rng = np.random.default_rng(0)
    group = np.arange(n) % 3 == 0
    return pd.DataFrame(
        {
            "length": rng.normal(size=n) + 9 * group,
            "colour": np.where(rng.random(n) < np.where(group, 0.9, 0.2), "red", "blue"),
            "wet": rng.random(n) < np.where(group, 0.1, 0.7),
            "shape": rng.choice(["disk", "ring", "rod"], n),
            "day": pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.random(n) + group, "D"),
            "noise": rng.normal(size=n),
        }
    )


def heap(n=240):
    """One cluster, whose normal components are several: it is skewed."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.gamma(2.0, size=(n, 2)) ** 1.5, columns=["a", "b"])
    X["kind"] = rng.choice(["p", "q"], n)
    return X


@pytest.fixture(scope="module")
def grouped():
    X = two_groups()
    return AnnealedDPMixture(**QUICK).fit(X), X


@pytest.fixture(scope="module")
def whole():
    X = heap()
    model = AnnealedDPMixture(families={"normal": ["a", "b"]}, **QUICK).fit(X)
    assert model.n_clusters_ == 1 and model.n_components_ > 2
    return model, X


@pytest.fixture(autouse=True)
def figures_are_closed():
    yield
    plt.close("all")


# ---- one cluster --------------------------------------------------------------------------------


def test_one_cluster_is_apart_from_nothing(whole):
    model, X = whole
    frame = model.describe_clusters(X)
    assert frame["apart"].tolist() == [f"no sure valley; {model.n_components_} components"]
    assert frame["size"].tolist() == frame["low"].tolist() == frame["high"].tolist() == [len(X)]
    long = model.describe_clusters(X, form="long")
    assert (long["difference"] == 0.0).all() and long["probability"].isna().all()
    assert long["value"].equals(long["overall"])
    asked = AnnealedDPMixture(families={"normal": ["a", "b"]}, n_clusters=1, **QUICK).fit(X)
    says = asked.describe_clusters(X)["apart"][0]
    assert says == f"one cluster was asked for; {asked.n_components_} components"
    single = AnnealedDPMixture(concentration=1e-9, **QUICK).fit(X[["kind"]])
    assert single.describe_clusters(X[["kind"]])["apart"].tolist() == ["a single component"]


def test_components_are_described(whole):
    model, X = whole
    frame = model.describe_clusters(X, level="components", n_features=1)
    assert frame.index.name == "component" and len(frame) == model.n_components_
    assert frame["size"].tolist() == np.bincount(model.component_labels_).tolist()
    assert model.component_labels_[frame["typical_row"]].tolist() == frame.index.tolist()
    assert (frame["low"] <= frame["high"]).all() and frame["high"][0] > 0
    largest = np.abs(
        X[["a", "b"]].groupby(model.component_labels_).mean() - X[["a", "b"]].mean()
    ) / X[["a", "b"]].std(ddof=0)
    named = frame["apart"].str[0].replace({"k": None})
    for c in named.dropna().index:
        assert named[c] == largest.loc[c].idxmax()


def test_only_the_training_rows_are_described(whole):
    """Also where they are as many."""
    model, X = whole
    for other in (X.sample(frac=1.0, random_state=1), X[::-1]):
        with pytest.raises(ValueError, match="its cells are not those of the fit"):
            model.describe_clusters(other)
    with pytest.raises(ValueError, match="X must be the training data: it has 10 rows"):
        model.describe_clusters(X[:10])


def test_a_cluster_that_noise_has_emptied_has_no_typical_row():
    X = np.r_[np.random.default_rng(0).normal(size=(40, 2)), [[3.0, 3.0], [3.2, 3.1]]]
    options = {"schedule": SequentialGibbs(n_sweeps=10), "n_chains": 1, "random_state": 0}
    frame = AnnealedDPMixture(noise=0.7, n_clusters=3, **options).fit(X).describe_clusters(X)
    assert frame["size"].tolist() == [39, 2, 0]
    assert frame["typical_row"].isna().tolist() == [False, False, True]
    whole = AnnealedDPMixture(n_clusters=3, **options).fit(X)
    frame = whole.describe_clusters(X)
    assert whole.labels_[frame["typical_row"]].tolist() == [0, 1, 2]


@pytest.mark.parametrize("make", [AnnealedDPMixture, CrossCatPY])
@pytest.mark.parametrize("method", ["map", "vi"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_any_point_estimate_is_described(make, method):
    X = two_groups(60)
    model = make(point_estimate=method, **QUICK).fit(X)
    frames = [model.describe_clusters(X, level=level) for level in ("clusters", "components")]
    assert frames[0]["size"].tolist() == np.bincount(model.labels_).tolist()
    assert [frame.index.name for frame in frames] == ["cluster", "component"]
    for column in frames[0]:
        assert frames[0][column].tolist() == frames[1][column].tolist()


def test_components_of_other_estimators():
    X = two_groups(90)[["length", "noise"]].to_numpy()
    schedule = AcceleratedSchedule(n_accelerated=5, n_exact=20)
    for method in ("clusters", "map"):
        options = {"likelihood": "normal", "schedule": schedule, "point_estimate": method}
        model = AcceleratedDPMixture(**options, n_draws=3, random_state=0).fit(X)
        frame = model.describe_clusters(X, level="components")
        assert frame["size"].tolist() == np.bincount(model.component_labels_).tolist()


# ---- to be read, to be sorted -------------------------------------------------------------------


def test_two_levels_are_named_once(grouped):
    """By the one that is more frequent in the cluster."""
    model, X = grouped
    for c, text in model.describe_clusters(X, n_features=20)["apart"].items():
        parts = text.split("; ")
        for column, levels in (("colour", ("red", "blue")), ("wet", ("True", "False"))):
            (part,) = (part for part in parts if part.startswith(f"{column} = "))
            cells = X[column].astype(str)
            own, overall = (
                cells[rows].value_counts(normalize=True)
                for rows in (model.labels_ == c, slice(None))
            )
            level = max(levels, key=lambda level: own.get(level, 0.0) - overall[level])
            shares = f"{own[level]:.0%} (all: {overall[level]:.0%})"
            assert part == f"{column} = {level} {shares}"
    long = model.describe_clusters(X, form="long")
    assert long.groupby(["cluster", "column"]).size().max() == 3  # the levels of shape
    assert set(long["level"].dropna()) == {"red", True, "disk", "ring", "rod"}


def test_the_long_form_by_pandas(grouped):
    model, X = grouped
    long = model.describe_clusters(X, form="long")
    assert list(long) == ["cluster", *LONG]
    assert len(long) == model.n_clusters_ * (len(X.columns) + 2)
    for c, lines in long.groupby("cluster"):
        size = lines["difference"].abs()
        assert size.is_monotonic_decreasing and size.iloc[0] > 0.5
        of = lines.set_index("column")
        inside = X[model.labels_ == c]
        for name in ("length", "noise"):
            mean, deviation = X[name].mean(), X[name].std(ddof=0)
            assert of.loc[name, "value"] == pytest.approx(inside[name].mean())
            assert of.loc[name, "overall"] == pytest.approx(mean)
            shift = (inside[name].mean() - mean) / deviation
            assert of.loc[name, "difference"] == pytest.approx(shift)
        share = (inside["colour"] == "red").mean()
        assert of.loc["colour", "value"] == pytest.approx(share)
        assert abs(of.loc["day", "value"] - inside["day"].mean()) < pd.Timedelta("1s")
        assert (of.loc[["length", "colour", "wet", "day"], "probability"] > 0.999).all()
        assert (of["probability"] > 0.3).all()
    components = model.describe_clusters(X, level="components", form="long")
    assert components.columns[0] == "component"


def test_numbers_are_levels_where_the_model_has_them_as_levels():
    """However few values a column has: dates and what is named "normal" have means in their units,
    and floats that are levels have shares."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.choice([0, 31, 60], 60), "D"),
            "stay": pd.to_timedelta(rng.choice([1, 2], 60), "h"),
            "number": rng.integers(0, 3, 60),
            "rating": rng.choice([1.0, 2.0, 5.0], 60),
            "flag": rng.integers(0, 2, 60),
        }
    )
    families = {"normal": ["number"], "bernoulli": ["flag"]}
    model = AnnealedDPMixture(families=families, n_clusters=2, **QUICK).fit(X)
    long = model.describe_clusters(X, form="long").query("cluster == 0").set_index("column")
    assert set(long.index[long["level"].isna()]) == {"day", "stay", "number"}
    assert set(long.loc["rating", "level"]) == {1.0, 2.0, 5.0} and long.loc["flag", "level"] == 1
    means = X[["day", "stay"]][model.labels_ == 0].mean()
    for name, mean in means.items():
        assert abs(long.loc[name, "value"] - mean) < pd.Timedelta("1s")
    text = model.describe_clusters(X, n_features=9)["apart"][0]
    own, overall = (mean.round("D") for mean in (means["day"], X["day"].mean()))
    assert f"day {own:%Y-%m-%d} (all: {overall:%Y-%m-%d})" in text
    drawn = ClusterDisplay.from_estimator(model, X).feature_names
    assert sorted(drawn[:3]) == ["day", "number", "stay"] and "rating = 5.0" in drawn[3:]


def test_wrong_arguments(grouped):
    model, X = grouped
    wrongs = {"level": "rows"}, {"form": "wide"}, {"n_features": -1}, {"n_features": 2.5}
    for wrong in wrongs:
        (name,) = wrong
        with pytest.raises(ValueError, match=f"{name} must be "):
            model.describe_clusters(X, **wrong)
    with pytest.raises(ValueError, match="training data"):
        model.describe_clusters(X[:7], level="components")


# ---- the probability ----------------------------------------------------------------------------


def tables(rng, n, is_level, difference):
    """Cells and a partition into two, the first a quarter of the rows; is the first higher?"""
    labels = np.arange(n) % 4 > 0
    if is_level:
        logit = rng.normal() + difference * np.where(labels, 0.0, 1.0)
        values = rng.random(n) < 1.0 / (1.0 + np.exp(-logit))
    else:
        values = rng.normal(size=n) + difference * np.where(labels, 0.0, 1.0)
    return values, [labels.astype(np.int64)]


@pytest.mark.parametrize("is_level", [False, True])
@pytest.mark.parametrize("n", [40, 200])
def test_without_a_difference_it_is_uniform(n, is_level):
    """False alarms: the mean and the tails of 800 probabilities, five standard errors."""
    rng = np.random.default_rng([n, is_level])
    drawn = [tables(rng, n, is_level, 0.0) for _ in range(800)]
    above = np.array([probability_above(v, None, p, np.ones(1), 2)[0] for v, p in drawn])
    assert abs(above.mean() - 0.5) < 5 * np.sqrt(1 / 12 / 800)
    tail = np.mean((above > 0.95) | (above < 0.05))
    assert tail < 0.1 + 5 * np.sqrt(0.09 / 800)
    if not is_level:
        assert stats.kstest(above, "uniform").pvalue > 1e-5
        # the control: the share of draws in which the cluster's mean is higher is never in doubt
        sides = [float(v[p[0] == 0].mean() > v.mean()) for v, p in drawn]
        assert stats.kstest(sides, "uniform").pvalue < 1e-5


@pytest.mark.parametrize("is_level", [False, True])
def test_it_comes_true_as_often_as_it_says(is_level):
    """Differences from a wide law: what is said to be probable is so as often."""
    rng = np.random.default_rng(5)
    said, true = [], []
    for _ in range(1000):
        difference = rng.normal() * 1.5
        values, partition = tables(rng, 60, is_level, difference)
        said.append(probability_above(values, None, partition, np.ones(1), 2)[0])
        true.append(difference > 0)
    said, true = np.array(said), np.array(true)
    for low in np.arange(0.0, 1.0, 0.2):
        there = (said >= low) & (said < low + 0.2)
        error = 5 * np.sqrt(0.25 / there.sum()) + 0.04
        assert abs(said[there].mean() - true[there].mean()) < error
    assert true[said > 0.99].mean() > 0.98


def test_it_is_an_average_over_draws_and_antisymmetric():
    rng = np.random.default_rng(0)
    values = rng.normal(size=40)
    partitions = [rng.integers(0, 2, 40) for _ in range(3)]
    each = np.array([probability_above(values, None, [p], np.ones(1), 2) for p in partitions])
    np.testing.assert_allclose(each.sum(axis=1), 1.0)
    weights = np.array([1.0, 0.5, 0.25])
    mean = probability_above(values, None, partitions, weights, 2)
    np.testing.assert_allclose(mean, weights @ each / weights.sum())
    t = stats.ttest_ind(*(values[partitions[0] == c] for c in (0, 1)), equal_var=False)
    assert each[0, 0] == pytest.approx(1 - t.pvalue / 2 if t.statistic > 0 else t.pvalue / 2)


def test_little_to_compare():
    """One cell inside, none, equal cells, gaps, and a large offset."""
    labels = [np.array([0, 1, 1, 1, 2, 2])]

    def above(values, missing=None):
        return probability_above(np.array(values), missing, labels, np.ones(1), 4)

    got = above([5.0, 1.0, 2.0, 1.5, 9.0, 9.5])
    assert got[0] == 0.5 and got[2] > 0.9 and got[1] < 0.1 and np.isnan(got[3])
    np.testing.assert_array_equal(above([1.0] * 6)[:3], 0.5)
    apart = probability_above(np.repeat([0.0, 3.0], 3), None, [np.repeat([0, 1], 3)], np.ones(1), 2)
    assert apart.tolist() == [0.0, 1.0]
    gone = np.array([False, False, False, False, True, True])
    assert np.isnan(above([5.0, 1.0, 2.0, 1.5, 9.0, 9.5], gone)[2])
    assert np.isnan(above([5.0, 1.0, 2.0, 1.5, 9.0, 9.5], np.ones(6, bool))).all()
    plain, far = (above(np.array([5, 1, 2, 1.5, 9, 9.5]) + c) for c in (0.0, 2952788047.0))
    np.testing.assert_allclose(plain, far, rtol=1e-5)


# ---- displays -----------------------------------------------------------------------------------


def drawn(make, *arguments, **options):
    """The display, drawn without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        display = make.from_estimator(*arguments, **options)
        display.figure_.canvas.draw()
    return display


def test_displays_show_the_components_of_one_cluster(whole):
    model, X = whole
    says = f"no sure valley; {model.n_components_} components"
    display = drawn(ClusterDisplay, model, X)
    assert len(display.values) == model.n_components_
    assert np.ptp(display.values[:, ~display.is_level], axis=0).min() > 0.1
    assert display.ax_.get_title() == says and display.ax_.get_ylabel() == "Component"
    display = drawn(CoassignmentDisplay, model)
    assert display.ax_.get_title() == says and display.ax_.get_ylabel() == "Component"
    np.testing.assert_array_equal(display.labels, model.component_labels_[display.rows])
    display = drawn(DensityDisplay, model, X, grid_resolution=5)
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert f"component of {np.bincount(model.component_labels_).max():,}" in texts
    display = drawn(ClusterTreeDisplay, model)
    assert display.ax_.get_title() == says or [t.get_text() for t in display.ax_.texts] == [says]


def test_trees_with_and_without_a_valley():
    """The line of the cut is in sight; where no valley is sure at all, words stand for the tree."""
    low = np.array([[0, 1, 0.0, 2], [2, 3, 0.4, 3]])
    display = ClusterTreeDisplay(low, separation=0.9).plot()
    assert display.ax_.get_title() == "no sure valley; 3 components"
    assert display.ax_.get_ylim()[1] > -np.log(0.1)
    high = low + [[0, 0, 0, 0], [0, 0, 8.0, 0]]
    display = ClusterTreeDisplay(high, separation=0.9).plot()
    assert display.ax_.get_title() == "" and display.ax_.get_ylim()[1] > 8.4
    for tree, says in (
        (low * [1, 1, 0, 1], "no sure valley; 3 components"),
        (low[:0], "a single component"),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            display = ClusterTreeDisplay(tree, separation=0.9).plot()
        assert [text.get_text() for text in display.ax_.texts] == [says]


def test_a_single_component_is_said(whole):
    X = whole[1][["kind"]]
    model = AnnealedDPMixture(concentration=1e-9, **QUICK).fit(X)
    for display in (drawn(ClusterDisplay, model, X), drawn(ClusterTreeDisplay, model)):
        assert [text.get_text() for text in display.ax_.texts] == ["a single component"]
