"""Rounded numbers: the lattice is found, cells become uniform in their interval, clusters stay."""

import functools
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import kstest
from sklearn.base import BaseEstimator, clone

from oracles.cheap import CHEAP
from skanneal import AnnealedDPMixture, CrossCatImputer, CrossCatPY, PermutationDPMixture
from skanneal.encoding import Encoder
from skanneal.encoding._rounding import Lattice, find_lattice, lattice_of
from skanneal.families import FAMILIES
from skanneal.families._scaling import MOST_CELLS
from skanneal.schedules import PriorGibbs

SHORT = {"n_chains": 1, "random_state": 0, **CHEAP}
RNG = np.random.default_rng(0)
NORMAL = RNG.normal(size=1000)
WHOLE = np.rint(30 * NORMAL)
ZERO = RNG.random(1000) < 0.6
ALARM = 1e-4  # of each test of a distribution

ROUNDED = {
    "whole": (WHOLE, 1.0, 0.0),
    "tenths": (WHOLE / 10, 0.1, 0.0),
    "twentieths": (WHOLE / 20, 0.05, 0.0),
    "thirds": (WHOLE / 3, 1 / 3, 0.0),
    "inches": (2.54 * (WHOLE + 66), 2.54, 0.0),
    "quarters of an hour, in days": (18000 + WHOLE / 96, 1 / 96, 0.0),
    "fives": (5 * WHOLE, 5.0, 0.0),
    "half a standard deviation": (np.rint(2 * NORMAL) / 2, 0.5, 0.0),
    "halves of 1": (WHOLE + 0.5, 1.0, 0.5),
    "Fahrenheit": (1.8 * (37 + WHOLE / 10) + 32, 0.18, 0.14),
    "float32": ((WHOLE / 10).astype(np.float32), 0.1, 0.0),
    "a hundredth, few rows": (np.round(NORMAL[:200], 2), 0.01, 0.0),
    "wild values": (np.r_[WHOLE / 10, 1e7, -999], 0.1, 0.0),
    "few off the lattice": (np.r_[WHOLE, WHOLE[:40] + 0.37], 1.0, 0.0),
    "gaps filled with the mean": (np.where(RNG.random(1000) < 0.2, np.pi, WHOLE), 1.0, 0.0),
    "censored": (np.minimum(WHOLE / 10, 2.0), 0.1, 0.0),
    "zeros and counts": (np.where(ZERO, 0, 60 + WHOLE), 1.0, 0.0),
}
NOT_ROUNDED = {
    "no ties": NORMAL,
    "zeros and numbers": np.where(ZERO, 0, NORMAL),
    "zeros and six digits": np.where(ZERO, 0, np.round(NORMAL, 6)),
    "two values": np.where(ZERO, 0.5, 3.5),
    "drawn with repetition": RNG.choice(NORMAL, 1000),
    "hardly a tie": np.round(NORMAL[:100], 4),
    "roots of counts": np.sqrt(RNG.poisson(30, 1000)),
    "one row": NORMAL[:1],
    "nothing": NORMAL[:0],
}


def encode(X, named="normal", rounding="auto", **how):
    """The encoder, and what the fit has in place of each column, in the units of X."""
    encoder = Encoder()
    cells = encoder.fit_encode(BaseEstimator(), X, named, rounding=rounding, **how).noisy
    schema = encoder.table_schema
    return encoder, [
        c.astype(float) * s + o for c, s, o in zip(cells, schema.scales, schema.offsets)
    ]


# ---- the lattice --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ROUNDED)
def test_the_lattice_is_found(name):
    values, step, offset = ROUNDED[name]
    values = np.asarray(values, dtype=float)
    for order in (slice(None), np.random.default_rng(1).permutation(len(values))):
        lattice = find_lattice(values[order])
        assert lattice.step == pytest.approx(step, rel=1e-6)
        assert lattice.offset == pytest.approx(offset, abs=1e-6 * step)
    near = lattice.nearest(values)
    on = np.abs(values - near) < 0.01 * step
    assert on.mean() > 0.75
    if step == 0.1 and values.dtype == WHOLE.dtype and name != "float32":
        np.testing.assert_array_equal(near[on], values[on])  # 3.3, not 3.3000000000000003
    assert lattice_of(values, step).offset == pytest.approx(offset, abs=1e-6 * step)


def test_the_lattice_of_standardised_numbers():
    values = (WHOLE - WHOLE.mean()) / WHOLE.std()
    lattice = find_lattice(values)
    assert lattice.step == pytest.approx(1 / WHOLE.std(), rel=1e-9)
    np.testing.assert_allclose(lattice.nearest(values), values, atol=1e-9)


@pytest.mark.parametrize("name", NOT_ROUNDED)
def test_no_lattice_is_found(name):
    assert find_lattice(NOT_ROUNDED[name]) is None


# ---- the jitter ---------------------------------------------------------------------------------


def phases(X, **how):
    """Where in its interval each cell of the fit is, from 0 to 1; steps of 0.5."""
    X = np.asarray(X, dtype=float)
    return np.column_stack(encode(X, **how)[1]) / 0.5 - X / 0.5 + 0.5


@pytest.mark.parametrize("in_order", [False, True])
def test_the_lattice_of_a_large_column_is_found_in_some_of_its_cells(in_order):
    values = np.random.default_rng(2).normal(size=3 * MOST_CELLS)
    values = np.sort(values) if in_order else values
    assert find_lattice(np.round(values, 4)) == pytest.approx((1e-4, 0.0))
    assert find_lattice(values.astype(np.float32).astype(float)) is None


@pytest.mark.parametrize(("per_cell", "found"), [(3, True), (30, False)])
def test_few_cells_share_their_value_with_another_of_some_where_few_of_all_do(per_cell, found):
    """Whole numbers of which there are 3 per cell: 28 % of all cells have a tie, 11 % of a third
    of them. With 30 per cell it is 3 %."""
    n = 3 * MOST_CELLS
    values = np.random.default_rng(3).integers(0, per_cell * n, n).astype(float)
    assert (find_lattice(values) is not None) == found


def test_cells_are_uniform_in_their_interval():
    X = np.rint(4 * np.random.default_rng(0).normal(size=(3000, 2))) / 2
    within = phases(X)
    assert ((within > -1e-5) & (within < 1 + 1e-5)).all()
    for column in within.T:
        assert kstest(column, "uniform").pvalue > ALARM
    # neither the columns' jitter nor that of neighbouring rows hangs together, nor on the value
    for a, b in (
        (within[:, 0], within[:, 1]),
        (within[1:, 0], within[:-1, 0]),
        (within[:, 0], X[:, 0]),
    ):
        assert abs(np.corrcoef(a, b)[0, 1]) * np.sqrt(len(a)) < 3.9
    triangular = (within[:, 0] + within[:, 1]) / 2  # the control
    assert kstest(triangular, "uniform").pvalue < ALARM


def test_the_jitter_is_that_of_the_rounded_column():
    X = np.rint(4 * np.random.default_rng(0).normal(size=(300, 2))) / 2
    first = phases(X)
    np.testing.assert_array_equal(phases(X), first)
    assert (first[:, 0] != first[:, 1]).all()
    gappy = X.copy()
    gappy[::7, 0] = np.nan
    moved = phases(gappy)
    assert np.isnan(moved[::7, 0]).all()
    np.testing.assert_allclose(
        np.delete(moved, np.s_[::7], 0), np.delete(first, np.s_[::7], 0), atol=1e-5
    )
    other = phases(np.column_stack([NORMAL[:300], X[:, 0]]))  # a column that is not rounded
    np.testing.assert_array_equal(other[:, 1], first[:, 0])


def test_queries_are_not_jittered():
    X = WHOLE[:200, None] / 10
    encoder, estimator = Encoder(), BaseEstimator()
    (cells,), (exact,) = encoder.fit_encode(estimator, X, "normal", rounding="auto")
    (asked,) = encoder.encode(estimator, X)
    np.testing.assert_array_equal(exact, asked)
    _, _, (offset,), (scale,) = encoder.table_schema[:4]
    assert np.abs(asked - cells).max() > 0.04 / scale
    np.testing.assert_allclose(asked * scale + offset, X[:, 0], atol=1e-5)
    assert (offset, scale) == pytest.approx((X.mean(), X.std()))  # of the values as they came


@pytest.mark.parametrize("family", [name for name, f in FAMILIES.items() if f.cells != "count_row"])
def test_families_say_whether_they_are_jittered(family):
    X = np.rint(3 * np.abs(NORMAL[:300]))[:, None] + 1.0
    X = np.minimum(X, 1) * (X > 3) if family == "bernoulli" else X
    encoder, estimator = Encoder(), BaseEstimator()
    (cells,), _ = encoder.fit_encode(estimator, X, family, rounding="auto")
    jittered = not np.array_equal(cells, encoder.encode(estimator, X)[0])
    assert jittered == bool(encoder.jitter.steps) == FAMILIES[family].jittered


@pytest.mark.parametrize("model", [AnnealedDPMixture, CrossCatPY])
def test_a_fit_encodes_its_table_once(monkeypatch, model):
    """Rounded numbers, amounts, a column that others determine, and levels with a gap."""

    def encode(*arguments):
        raise AssertionError("the table of the fit was read as a query is")

    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 3)).round(1)
    X = np.column_stack([X, X[:, 0] - X[:, 1], np.exp(2 * X[:, 2]).round(2)])
    X = pd.DataFrame(X, columns=list("abcde"))
    X["level"] = rng.choice(["a", "b", None], size=120)
    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(Encoder, "encode", encode)
        fit = model(**SHORT).fit(X)
    assert len(fit.rounding_) == 5 and not np.isnan(fit.outlier_scores_).any()


def test_positive_amounts_stay_positive():
    X = (np.rint(np.abs(3 * NORMAL)) + 0.25)[:, None]
    _, (logs,) = encode(X, "log_normal")
    assert np.isfinite(logs).all()
    assert (np.exp(logs)[X[:, 0] == 0.25] < 0.25).any()


@pytest.mark.parametrize(
    "container", ["array", "float32", "objects", "rows", "pandas", "polars", "integers"]
)
def test_the_container_makes_no_difference(container):
    make = {
        "array": np.array,
        "float32": lambda X: X.astype(np.float32),
        "objects": lambda X: X.astype(object),
        "rows": np.ndarray.tolist,
        "pandas": lambda X: pd.DataFrame(X, columns=["x"]).convert_dtypes(),
        "polars": lambda X: pl.DataFrame({"x": X[:, 0]}),
        "integers": lambda X: X.astype(int),
    }[container]
    X = WHOLE[:300, None]
    encoder, (cells,) = encode(make(X), "auto")
    assert list(encoder.jitter.steps.values()) == [1.0]
    np.testing.assert_array_equal(cells, encode(X, "auto")[1][0])


# ---- what users say -----------------------------------------------------------------------------


def frame():
    return pd.DataFrame({"a": WHOLE[:200] / 10, "b": NORMAL[:200], "c": WHOLE[::-1][:200]})


@pytest.mark.parametrize(
    ("rounding", "steps"),
    [
        ("auto", {"a": 0.1, "c": 1.0}),
        (None, {}),
        ({"a": None, "b": 0.5}, {"b": 0.5, "c": 1.0}),
        ({"c": 2, 0: None}, {"c": 2}),
    ],
)
def test_rounding(rounding, steps):
    encoder, columns = encode(frame(), rounding=rounding)
    assert encoder.jitter.steps == steps
    for name, cells in zip(frame(), columns):
        off = np.abs(cells - frame()[name])
        assert off.max() <= 0.5 * steps.get(name, 0.0) + 1e-5
        assert off.max() >= 0.4 * steps.get(name, 0.0)


@pytest.mark.parametrize(
    ("rounding", "message"),
    [
        ({"z": 1.0}, "rounding names the column 'z', which is absent"),
        ({"a": 0.0}, r"rounding\['a'\] must be a positive number or None, got 0.0"),
        ({"a": "1"}, "must be a positive number or None, got '1'"),
        ({"c": 1.0}, "a step for column 'c', but its family 'categorical' takes cells as they are"),
    ],
)
def test_bad_rounding(rounding, message):
    with pytest.raises(ValueError, match=message):
        AnnealedDPMixture(rounding=rounding, families={"categorical": ["c"]}, **SHORT).fit(frame())


@pytest.mark.parametrize("estimator", [AnnealedDPMixture, PermutationDPMixture, CrossCatPY])
@pytest.mark.few(1)
def test_estimators_show_the_steps(estimator):
    model = estimator(n_chains=1, random_state=0, schedule=PriorGibbs(n_sweeps=2))
    assert model.fit(frame()).rounding_ == {"a": 0.1, "c": 1.0}
    assert clone(model).set_params(rounding=None).fit(frame()).rounding_ == {}
    assert clone(model).fit(frame().to_numpy()).rounding_ == {0: 0.1, 2: 1.0}


# ---- fits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("families", ["normal", "multivariate_normal"])
def test_a_rounded_cluster_is_one_cluster(families):
    X = np.rint(2 * np.random.default_rng(5).normal(size=(500, 1))) / 2
    model = AnnealedDPMixture(families=families, **SHORT)
    assert model.fit(X).n_clusters_ == 1
    control = clone(model).set_params(rounding=None, n_chains=3).fit(X)
    assert max(chain[-1].n_components for chain in control.draws_) > 3


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 3, 10])
@pytest.mark.parametrize("parts", [2, 5, 20])
def test_rounded_clusters_are_found(d, parts):
    """At least 9 of 10 fits of one Gaussian, rounded to parts of its deviation."""
    found = []
    for seed in range(10):
        X = np.rint(parts * np.random.default_rng(seed).normal(size=(1000, d))) / parts
        found.append(AnnealedDPMixture(families="normal", random_state=seed).fit(X).n_clusters_)
    assert found.count(1) >= 9


def test_samples_are_rounded_as_the_data_were():
    X = pd.DataFrame({"whole": WHOLE[:200].astype(int), "tenth": WHOLE[200:400] / 10})
    model = AnnealedDPMixture(**SHORT).fit(X)
    rows = model.sample(50)
    assert [str(dtype) for dtype in rows.dtypes] == ["int64", "float64"]
    assert (rows["tenth"] == np.round(rows["tenth"], 1)).all()
    assert (model.sample(5, given={"tenth": 0.123})["tenth"] == 0.123).all()
    X.loc[:9, "tenth"] = np.nan
    imputer = CrossCatImputer(AnnealedDPMixture(**SHORT), strategy="sample", random_state=0)
    filled = imputer.fit_transform(X)["tenth"]
    assert (filled == np.round(filled, 1)).all()
    filled = imputer.set_params(strategy="mean").fit_transform(X)["tenth"]
    assert (filled != np.round(filled, 1)).any()


@pytest.mark.parametrize("family", ["log_normal", "semi_continuous_log_normal"])
@pytest.mark.parametrize("given", [None, {"y": 0.5}])
def test_rounded_draws_are_numbers_that_the_family_has(family, given):
    """Amounts near the least step, which would be rounded to 0 where there is no 0."""
    rng = np.random.default_rng(0)
    x = np.where(np.arange(90) < 30, 1.0, rng.integers(1, 6, 90))
    X = pd.DataFrame({"x": x, "y": rng.normal(size=90)})
    model = AnnealedDPMixture(families={family: ["x"]}, **SHORT).fit(X)
    assert model.rounding_ == {"x": 1.0}
    gappy = pd.DataFrame({"x": np.full(500, np.nan), "y": 0.5})
    for drawn in (
        model.sample(500, given=given, random_state=0),
        model.impute(gappy, n_imputations=1)[0],
    ):
        assert drawn["x"].min() == 1.0 and (drawn["x"] % 1.0 == 0.0).all()
        assert np.isfinite(model.score_samples(drawn)).all()


def test_the_nearest_number_above_the_lowest():
    values = np.array([-1.0, 0.1, 0.3, 0.8])
    for offset, above in ((0.0, [0.5, 0.5, 0.5, 1.0]), (0.25, [0.25, 0.25, 0.25, 0.75])):
        assert Lattice(0.5, offset).nearest(values, 0.0).tolist() == above


@pytest.mark.filterwarnings("error")
def test_numbers_too_large_to_be_counted_in_steps_stay():
    values = np.array([-1e308, 0.26, 1e308])
    assert Lattice(0.1, 0.0).nearest(values).tolist() == [-1e308, 0.3, 1e308]


def draws(model):
    return [draw.arrays["labels"].tobytes() for chain in model.draws_ for draw in chain]


def test_samples_have_an_atom_that_is_off_the_lattice():
    """A price that is capped at a hundred thousand and one."""
    rng = np.random.default_rng(0)
    X = np.minimum(100.0 * rng.integers(100, 1200, size=(400, 1)), 100_001.0)
    model = AnnealedDPMixture(families="semi_continuous", **CHEAP, random_state=0).fit(X)
    assert list(model.rounding_.values()) == [100.0]
    gappy = np.full((200, 1), np.nan)
    for drawn in (model.sample(200), model.impute(gappy, n_imputations=1)[0]):
        at = drawn == 100_001.0
        assert 0.05 < at.mean() < 0.35
        assert (drawn[~at] % 100.0 == 0.0).all() and (drawn[~at] != 100_000.0).mean() > 0.97


def test_bits():
    """The noise is the same for any number of jobs, for any seed, and in a warm start."""
    X = WHOLE[:120].reshape(60, 2)
    make = functools.partial(AnnealedDPMixture, n_chains=2, random_state=3, **CHEAP)
    model = make().fit(X)
    assert draws(make(n_jobs=2).fit(X)) == draws(model)
    assert make().fit(X).score(X) == model.score(X)
    cells = [make(random_state=seed)._read(X)[1].noisy for seed in (3, 4)]
    np.testing.assert_array_equal(*cells)
    again = AnnealedDPMixture(n_chains=1, warm_start=True, **CHEAP).fit(X)
    n_sweeps = again.n_sweeps_
    assert again.fit(X).n_sweeps_ > n_sweeps
