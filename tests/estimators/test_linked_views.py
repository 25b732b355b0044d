"""Fits of CrossCatPY whose views are linked: one law whatever else is asked for, and a chain that
knows nothing of it."""

import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from skanneal import CrossCatPY
from skanneal.parallel import StopFlag, TimeLimit
from skanneal.schedules import SequentialGibbs

N, LEVEL = 120, 1e-4
QUICK = {"schedule": SequentialGibbs(n_sweeps=12), "n_draws": 3, "n_chains": 2, "random_state": 0}
OPTIONS = {
    "default": {},
    "margins": {"margins": "data"},
    "finite": {"partition_prior": "finite"},
    "indicator": {"missing_indicator": ["a"]},
    "one process": {"discount": 0.0, "concentration": 1.0},
    "together": {
        "margins": "data",
        "partition_prior": "finite",
        "missing_indicator": ["a", "d"],
        "point_estimate": "map",
    },
}


def frame(seed=0, gaps=0.0):
    """Levels of two groups, whose classes are the same in seven rows of ten."""
    rng = np.random.default_rng(seed)
    one = rng.integers(2, size=N)
    two = np.where(rng.random(N) < 0.7, one, 1 - one)
    flips = rng.random((N, 8)) < 0.05
    cells = np.column_stack([one] * 4 + [two] * 4) ^ flips
    X = pd.DataFrame(np.where(cells, "yes", "no"), columns=list("abcdefgh")).astype(object)
    return X.mask(rng.random(X.shape) < gaps, None)


def n_links(model):
    return [len(draw.arrays.get("link_views", ())) for chain in model.draws_ for draw in chain]


def apart(**options):
    """Views are drawn from a prior that has nearly each column in one of its own, and stay."""
    views = {"moves": ("gibbs", "split_merge"), "view_concentration": 1000.0}
    if options.get("partition_prior") == "finite":
        views["view_concentration"] = 100.0
    return CrossCatPY(**(QUICK | views | options))


@pytest.mark.parametrize("name", OPTIONS)
def test_one_law(name):
    """Densities of all rows that there can be sum to 1, those given cells are ratios, and drawn
    rows have them; the control, views without links, has other densities."""
    options = OPTIONS[name]
    X = frame(gaps=0.1 if "missing_indicator" in options else 0.0)
    model = apart(**options).fit(X)
    assert max(n_links(model)) > 0
    assert model.view_links_.shape[1] == 2 and model.view_links_.max(initial=0) < model.n_views_
    hidden = options.get("missing_indicator", [])
    cells = [["yes", "no", None] if c in hidden else ["yes", "no"] for c in "abdeh"]
    rows = pd.DataFrame(itertools.product(*cells), columns=list("abdeh"), dtype=object)
    rows = rows.reindex(columns=X.columns).astype(object)
    rows = rows.where(rows.notna(), None)
    density = np.exp(model.score_samples(rows))
    if not hidden:  # else a gap that is not asked for has a probability, too
        assert density.sum() == pytest.approx(1.0, abs=1e-6)
    given = rows.copy()
    given[["e", "h"]] = None
    ratio = model.score_samples(rows) - model.score_samples(given)
    got = model.score_samples(rows, given=[c for c in X if c not in "eh"])
    np.testing.assert_allclose(got, ratio, atol=1e-6)
    independent = apart(linked_views=False, **options).fit(X)
    assert np.abs(independent.score_samples(rows) - np.log(density)).max() > 0.1
    if not hidden:
        drawn = model.sample(2000)[list("abdeh")].to_numpy()
        counts = np.array(
            [(drawn == row).all(axis=1).sum() for row in rows[list("abdeh")].to_numpy()]
        )
        alone = np.exp(independent.score_samples(rows))
        for law, is_right in ((density, True), (alone, False)):
            groups = grouped(2000 * law / law.sum())
            observed, wanted = (np.bincount(groups, of) for of in (counts, 2000 * law / law.sum()))
            p_value = stats.chisquare(observed, wanted).pvalue
            assert p_value > LEVEL if is_right else p_value < 1e-6


def grouped(expected):
    """Cells in groups of ten or more expected rows, the rarest first."""
    order, groups = np.argsort(expected), np.empty(len(expected), dtype=int)
    groups[order] = np.cumsum(expected[order]) // 10.0
    return np.unique(groups, return_inverse=True)[1]


def test_the_chain_knows_nothing_of_it():
    """Trace, convergence, views and hyperparameters are the same; components are not."""
    X = frame()
    linked, plain = apart().fit(X), apart(linked_views=False).fit(X)
    for name, values in linked.trace_.items():
        if name != "seconds":
            np.testing.assert_array_equal(values, plain.trace_[name])
    assert linked.r_hat_ == plain.r_hat_ or np.isnan(list(plain.r_hat_.values())).any()
    moved = 0
    for one, two in zip(linked.draws_, plain.draws_):
        for draw, other in zip(one, two):
            np.testing.assert_array_equal(draw.view_labels, other.view_labels)
            assert draw.view_concentration == other.view_concentration
            moved += any((a != b).any() for a, b in zip(draw.row_labels, other.row_labels))
    assert moved > 0 and max(n_links(linked)) > 0 and max(n_links(plain)) == 0


def test_the_same_again():
    """By the number of jobs, and from a pickle."""
    X, query = frame(gaps=0.1), frame(1, gaps=0.3)
    model = apart().fit(X)
    other = apart(n_jobs=2).fit(X)
    loaded = pickle.loads(pickle.dumps(model))
    for again in (other, loaded):
        np.testing.assert_array_equal(again.score_samples(query), model.score_samples(query))
        np.testing.assert_array_equal(
            again.dependence_probability().to_numpy(), model.dependence_probability().to_numpy()
        )
    assert n_links(other) == n_links(model)


def test_no_time_and_interrupts(monkeypatch):
    """Draws that are not reached are left out, but one of each chain, so that none contradicts the
    others; after an interrupt no draw has links."""
    from skanneal.chains import _linked

    X = frame()
    for is_over in (False, True):
        monkeypatch.setattr(TimeLimit, "is_over", is_over)
        model = apart(max_time=0.5).fit(X)
        assert all("link_views" in draw.arrays for chain in model.draws_ for draw in chain)
        if is_over:
            assert {len(chain) for chain in model.draws_} == {1}
    monkeypatch.undo()
    whole = _linked.move_linked_rows
    stops = []

    def interrupted(*task):
        whole(*task)
        for flag in stops:
            flag.set()

    monkeypatch.setattr(_linked, "move_linked_rows", interrupted)
    linked = _linked.link_draws

    def noted(*task, stop=None):
        stops.append(stop)
        return linked(*task, stop=stop)

    monkeypatch.setattr("skanneal.estimators._crosscat.link_draws", noted)
    model = apart().fit(X)
    assert n_links(model) == [0] * 6
    assert np.isfinite(model.score_samples(X)).all()
    assert isinstance(stops[0], StopFlag)


def test_it_must_be_a_boolean():
    with pytest.raises(ValueError, match="linked_views"):
        CrossCatPY(linked_views="forest").fit(frame())
