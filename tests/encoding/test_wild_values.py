"""One wild value decides neither a column's scale nor the clusters of the other rows.

Fits are compared with that of the table without the wild rows: of 300 rows, within 0.05 nats per
held-out row. Seeds are fixed.
"""

import math
from functools import cache

import numpy as np
import pytest

from oracles.cheap import CHEAP
from skanneal import (
    AcceleratedDPMixture,
    AnnealedDPMixture,
    CrossCatPY,
    PermutationDPMixture,
)
from skanneal.encoding._codecs import NumberCodec
from skanneal.encoding._columns import read_array
from skanneal.families import FAMILIES, Table
from skanneal.families._scaling import (
    FENCE,
    LARGEST_CELL,
    MOST_CELLS,
    offset_and_scale,
    ordinary,
    some_of,
)
from skanneal.partition_priors import PitmanYor
from skanneal.schedules import AcceleratedSchedule
from skanneal.states import Mixture, Subsample

RNG = np.random.default_rng(0)

ORDINARY = {
    "normal": RNG.normal(size=1000),
    "cauchy, few rows": RNG.standard_cauchy(size=15),
    "lognormal": np.exp(RNG.normal(size=1000)),
    "a cluster of one row in twelve, far": np.r_[RNG.normal(size=1100), 1e6 + RNG.normal(size=100)],
    "mostly zero": np.r_[np.zeros(980), RNG.gamma(1.0, 50.0, size=20)],
    "just more than the middle zero": np.r_[np.zeros(937), RNG.gamma(1.0, 50.0, size=63)],
    "two values": np.r_[np.zeros(999), 1.0],
    "one value": np.full(50, 7.0),
    "near the largest float": 1e308 * RNG.uniform(-1.0, 1.0, size=100),
    "integers": RNG.poisson(3.0, size=500).astype(float),
}

WITH_WILD = {
    "a few rows": (RNG.normal(size=16), [1e7]),
    "many rows": (RNG.normal(size=3000), [1e7]),
    "both signs": (RNG.normal(size=100), [1e5, -1e12, 3e300, -1e300]),
    "one in twenty": (RNG.normal(size=95), 10.0 ** np.arange(3, 8)),
    "far from zero": (2952788047.4 + RNG.normal(size=200), [-1e15]),
    "mostly zero": (np.r_[np.zeros(290), RNG.gamma(2.0, 2.0, size=10)], [1e8]),
    "integers": (RNG.poisson(3.0, size=300).astype(float), [1e6]),
}


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_columns_are_taken_whole(name):
    values = ORDINARY[name]
    assert ordinary(values) is values


@pytest.mark.parametrize("name", WITH_WILD)
def test_wild_values_do_not_count(name):
    values, wild = WITH_WILD[name]
    together = np.random.default_rng(1).permutation(np.r_[values, wild])
    np.testing.assert_array_equal(np.sort(ordinary(together)), np.sort(values))
    found = offset_and_scale(together)
    np.testing.assert_allclose(found, (values.mean(), values.std()), rtol=1e-9)


def test_rare_values_of_a_large_column_give_its_scale():
    """However few they are, and wherever they stand: a column that varies has a scale."""
    values = np.zeros(3 * MOST_CELLS)
    for place in (0, 1, 2, 123_457, len(values) - 1):
        column = values.copy()
        column[[place, 300_000]] = 2.0, 3.0
        found = offset_and_scale(column)
        np.testing.assert_allclose(found, (column.mean(), column.std()), rtol=1e-9)


def test_groups_that_take_turns_are_all_seen():
    """Every second, third, ... value is from a wide group: it is not left out."""
    rng = np.random.default_rng(3)
    for period in (2, 3, 4, 6):
        values = rng.normal(scale=1e-3, size=3 * MOST_CELLS)
        values[::period] = rng.normal(size=len(values[::period]))
        assert ordinary(values) is values


@pytest.mark.parametrize("n", [10, MOST_CELLS, MOST_CELLS + 1, 5 * MOST_CELLS // 4, 7 * MOST_CELLS])
def test_some_of_the_values(n):
    some = some_of(np.arange(n))
    assert np.all(np.diff(some) > 0) and (n > MOST_CELLS or len(some) == n)
    if n > MOST_CELLS:
        assert len(some) == min(n // 2, MOST_CELLS)
        assert np.diff(some, prepend=-1, append=n).max() <= 2 * n / len(some) + 1


@pytest.mark.parametrize("share", [1 / 16, 1 / 100])
def test_what_is_just_inside_the_fences_leaves_the_variance_on_its_grid(share):
    """The worst that the fences let in: the least variance of every grid stays below the true."""
    n = 20_000
    values = np.random.default_rng(2).normal(size=n)
    low, high = np.quantile(values, [1 / 16, 15 / 16])
    near = int(n * share) - 1
    values[np.argsort(values)[-near:]] = high + 0.999 * FENCE * (high - low)
    values[np.argsort(values)[:near]] = low - 0.999 * FENCE * (high - low)
    assert ordinary(values) is values
    assert 1e-4 * values.var() < 1.0


def test_cells_of_the_others_keep_their_digits_and_the_wild_one_its_place():
    values = np.r_[np.random.default_rng(3).normal(3.0, 2.0, size=300), 1e14, -1e300]
    codec = NumberCodec.fit(read_array("column", values), "normal")
    cells = codec.encode(read_array("column", values))
    restored = codec.offset + codec.scale * cells.astype(float)
    np.testing.assert_allclose(restored[:300], values[:300], atol=1e-6)
    np.testing.assert_allclose(restored[300], 1e14, rtol=1e-6)
    assert cells[301] == np.float32(-LARGEST_CELL)


# ---- statistics and scores ----------------------------------------------------------------------


def mixture_of(family, cells, labels):
    """A mixture over float32 cells, all rows in."""
    table = Table(["f4"] * cells.shape[1], [0] * cells.shape[1])
    table.append(list(cells.T))
    subsample = Subsample(len(cells))
    subsample.fill()
    block = FAMILIES[family](table, np.arange(cells.shape[1]))
    mixture = Mixture(table, [block], PitmanYor(1.0, 0.0), subsample)
    mixture.replace(np.arange(len(cells)), labels)
    return mixture


@pytest.mark.parametrize("family", ["normal", "multivariate_normal", "known_normal"])
@pytest.mark.parametrize("wild", [1e7, 1e10, LARGEST_CELL])
@pytest.mark.parametrize("gappy", [False, True])
def test_a_wild_row_leaves_no_trace_in_the_cluster_it_leaves(family, wild, gappy):
    """Its square would take the digits of the others' squares with it."""
    if gappy and family != "normal":
        return
    cells = np.random.default_rng(4).normal(size=(40, 3)).astype(np.float32)
    cells[7] = wild, -wild, wild
    if gappy:
        cells[3, 1] = np.nan
    labels = np.arange(40) // 20
    mixture = mixture_of(family, cells, labels)
    mixture.remove_row(7)
    rest = np.delete(np.arange(40), 7)
    anew = mixture_of(family, cells, labels)
    anew.replace(rest, labels[rest])
    for name, value in anew.to_arrays().items():
        np.testing.assert_allclose(mixture.to_arrays()[name], value, rtol=1e-9, err_msg=name)
    np.testing.assert_allclose(mixture.scores(0)[1], anew.scores(0)[1], rtol=1e-5)
    mixture.insert_row(7, mixture.open_slot)
    log_prior, log_lik = mixture.scores(7)
    assert np.isfinite(log_lik).all()
    assert np.argmax(log_prior + log_lik) == 2  # itself, alone


@pytest.mark.parametrize("wild", [1e3, 1e10, LARGEST_CELL])
def test_the_marginal_likelihood_of_a_wild_row_alone(wild):
    """Against |Psi0 + c v v'| = |Psi0| (1 + c v' Psi0^-1 v), where no digit cancels."""
    d, row = 3, wild * np.array([1.0, -0.7, 0.4])
    mixture = mixture_of("multivariate_normal", row[None].astype(np.float32), [0])
    (block,) = mixture.blocks
    kappa0, nu0, psi = 0.1, d + 1.0, 0.3 * (d + 1.0)  # the family's defaults
    v = row.astype(np.float32).astype(float)
    log_det = math.log1p(kappa0 / (kappa0 + 1.0) * (v @ v) / psi)
    expected = (
        math.lgamma(0.5 * (nu0 + 1.0))
        - math.lgamma(0.5 * (nu0 + 1.0 - d))
        + 0.5 * d * (math.log(kappa0 / (kappa0 + 1.0)) - math.log(math.pi))
        - 0.5 * d * math.log(psi)
        - 0.5 * (nu0 + 1.0) * log_det
    )
    for _ in range(2):
        assert block.log_marginals()[0] == pytest.approx(expected, abs=1e-6)
        for value in (2.0 * kappa0, kappa0):  # the factor is made anew from the statistics
            block.set_hyper(0, d, value)
            block.refresh_all()


# ---- fits ---------------------------------------------------------------------------------------

SCHEDULE = AcceleratedSchedule(n_accelerated=20, n_exact=100)
MODELS = {
    "annealed": lambda: AnnealedDPMixture(n_chains=1, random_state=0, **CHEAP),
    "multivariate": lambda: AnnealedDPMixture(
        families="multivariate_normal", n_chains=1, random_state=0, **CHEAP
    ),
    "permutation": lambda: PermutationDPMixture(n_chains=1, n_draws=1, random_state=0),
    "crosscat": lambda: CrossCatPY(n_chains=1, random_state=0, **CHEAP),
    "normal": lambda: AcceleratedDPMixture(likelihood="normal", schedule=SCHEDULE, random_state=0),
    "multivariate_normal": lambda: AcceleratedDPMixture(
        likelihood="multivariate_normal",
        schedule=SCHEDULE,
        n_shards=1,
        init="kmeans",
        random_state=0,
    ),
}
WILD_ROWS = {
    "one row": lambda X: [np.full(3, 1e7)],
    "one cell": lambda X: [[-1e300, X[0, 1], X[0, 2]]],
    "several": lambda X: [
        np.full(3, 1e300),
        [X[0, 0], -1e12, X[0, 2]],
        [X[1, 0], X[1, 1], 1e6],
    ],
}


def clean(n_rows, seed):
    side = np.arange(n_rows) % 2
    return np.where(side, 3.0, -3.0)[:, None] + np.random.default_rng(seed).normal(
        size=(n_rows, 3)
    ), side


def share_apart(labels, side):
    """The share of the rows that are on their cluster's side; a raw draw may have many clusters."""
    counts = np.zeros((labels.max() + 1, 2))
    np.add.at(counts, (labels, side), 1)
    return counts.max(axis=1).sum() / counts.sum()


@cache
def score_without_wild_rows(name):
    return MODELS[name]().fit(clean(300, 5)[0]).score(clean(2000, 6)[0])


@pytest.mark.parametrize("wild", WILD_ROWS)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.few(2)
def test_wild_rows_are_outliers_and_nothing_else_changes(name, wild):
    X, side = clean(300, 5)
    rows = np.array(WILD_ROWS[wild](X))
    model = MODELS[name]().fit(np.r_[rows, X])
    labels = model.component_labels_
    for i in range(len(rows)):
        assert np.count_nonzero(labels == labels[i]) == 1
    assert share_apart(labels[len(rows) :], side) > 0.99
    assert abs(model.score(clean(2000, 6)[0]) - score_without_wild_rows(name)) < 0.05
    assert np.isfinite(model.score_samples(rows)).all()


def test_a_wild_row_in_a_file_that_is_read_in_parts(tmp_path):
    """Scales come from some rows of the file: with the wild row among them, and without it."""
    X, side = clean(6000, 7)
    scores = []
    for place, value in ((None, 0.0), (0, 1e7), (1, -1e300)):
        Y = X.copy()
        if place is not None:
            Y[place] = value
        np.save(tmp_path / "rows.npy", Y)
        model = AcceleratedDPMixture(
            likelihood="normal",
            schedule=AcceleratedSchedule(n_accelerated=20, n_exact=40),
            random_state=0,
        ).fit([tmp_path / "rows.npy"])
        if place is not None:
            assert np.count_nonzero(model.component_labels_ == model.component_labels_[place]) == 1
        assert share_apart(model.labels_[2:], side[2:]) > 0.99
        scores.append(model.score(clean(2000, 6)[0]))
    assert np.ptp(scores) < 0.05
