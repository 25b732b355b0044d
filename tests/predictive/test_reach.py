"""How far draws lie from the amounts of the fit: the law of a draw is its component's, given that
it lies within reach. The oracle of the reach is plain Python; the law of a component is Student's
t, cut off where the reach ends.

Random tests: fixed seeds, one try, each at a false-alarm rate of 1e-4.
"""

import math

import numpy as np
import pytest
from scipy import stats

from skanneal import AnnealedDPMixture, CrossCatPY, PermutationDPMixture
from skanneal.families import MISSING_COUNT, Table
from skanneal.predictive._reach import EXCESSES, reach_of

RARE = 1e-4
NAN = float("nan")
LOGARITHMS = {"log_normal": [0]}


def table_of(cells, atoms=(), logarithms=True):
    atoms = [np.asarray(atoms, dtype=np.float32)]
    table = Table(["f4"], np.zeros(1, np.int64), np.zeros(1), np.ones(1), atoms, [logarithms])
    table.append([np.asarray(cells, dtype=np.float32)])
    return table


def slow_end(cells):
    ordered = sorted(cells)
    k = math.isqrt(len(cells))
    excesses = [x - ordered[-k - 1] for x in ordered[-k:]]
    return ordered[-1] + EXCESSES * sum(excesses) / k


@pytest.mark.parametrize("n", [2, 3, 4, 9, 100])
def test_reach_is_that_of_an_exponential_tail(n):
    cells = np.random.default_rng(n).normal(size=n).astype(np.float32).tolist()
    ((low, high),) = reach_of(table_of([*cells, NAN]), LOGARITHMS).values()
    np.testing.assert_allclose(high, slow_end(cells), rtol=1e-12)
    np.testing.assert_allclose(low, -slow_end([-x for x in cells]), rtol=1e-12)


def test_atoms_do_not_count():
    cells = [1.0, 2.0, 3.0, 5.0]
    with_atoms = table_of([*cells, -40.0, -40.0, NAN], [-40.0])
    families = {"semi_continuous_log_normal": [0]}
    assert reach_of(with_atoms, families) == reach_of(table_of(cells), LOGARITHMS)


@pytest.mark.parametrize("cells", [[], [NAN], [1.0], [2.0, 2.0, NAN]])
def test_a_column_that_does_not_vary_has_no_reach(cells):
    assert reach_of(table_of(cells), LOGARITHMS) == {}


def test_numbers_and_levels_have_no_reach():
    assert reach_of(table_of([1.0, 2.0, 4.0], logarithms=False), {"normal": [0]}) == {}
    levels = Table(["u1"], np.array([3]))
    levels.append([np.array([0, 2, 1], np.uint8)])
    assert reach_of(levels, {"categorical": [0]}) == {}


def test_missing_counts_do_not_count():
    table = Table(["u4"], np.zeros(1, np.int64))
    table.append([np.array([4, 10, MISSING_COUNT, 7], np.uint32)])
    assert reach_of(table, {"negative_binomial": [0]}) == {0: (-2.0, 16.0)}


def drawn(model, n, seed):
    return np.asarray(model.sample(n, random_state=seed), dtype=np.float64)


def test_the_law_of_a_component_is_that_within_reach():
    X = np.exp(np.random.default_rng(5).normal(size=(8, 1)))
    model = AnnealedDPMixture(
        families="log_normal", concentration=1e-9, n_chains=1, n_draws=1, random_state=0
    ).fit(X)
    (view,) = model._queries().predictor.draws[0]
    centre, square, degrees = (of[0] for of in view.student_law(0))
    law = stats.t(degrees, centre, math.sqrt(square))
    low, high = model._reach[0]
    out = law.cdf(low) + law.sf(high)
    assert out > 0.01  # else the controls below could not fail

    def given_reach(x):
        return (law.cdf(np.clip(x, low, high)) - law.cdf(low)) / (1.0 - out)

    scale, offset = model._encoder.codecs[0].scale, model._encoder.codecs[0].offset
    found = (np.log(drawn(model, 20_000, 1)[:, 0]) - offset) / scale
    assert low <= found.min() and found.max() <= high
    assert stats.kstest(found, given_reach).pvalue > RARE
    assert stats.kstest(found, law.cdf).pvalue < RARE
    clipped = np.clip(law.rvs(20_000, random_state=np.random.default_rng(0)), low, high)
    assert stats.kstest(clipped, given_reach).pvalue < RARE


def test_rows_of_a_family_are_drawn_again_as_a_whole():
    """Logarithms that lie on a line stay there."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=10)
    X = np.exp(np.column_stack([x, 3.0 * x + 0.01 * rng.normal(size=10)]))
    model = AnnealedDPMixture(
        families="multivariate_log_normal", concentration=1e-9, random_state=0
    ).fit(X)
    within = np.log(drawn(model, 5000, 1))
    model._reach = {}
    whole = np.log(drawn(model, 5000, 1))
    assert np.mean(np.abs(within - whole).max(axis=1) > 0.0) > 0.01  # were drawn again
    assert np.abs(within[:, 1] - 3.0 * within[:, 0]).max() < 0.5


@pytest.mark.parametrize("estimator", [AnnealedDPMixture, CrossCatPY])
def test_where_a_component_hardly_reaches_inside_cells_are_at_the_ends(estimator):
    """As components of rows at a limit of detection, which are all but degenerate."""
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(200, 3)) @ np.array([[1, 0.8, 0.3], [0, 0.5, 0.2], [0, 0, 0.4]]))
    X[:, 1:] = np.maximum(X[:, 1:], 0.5)
    model = estimator(families="multivariate_log_normal", n_chains=1, random_state=0).fit(X)
    assert (drawn(model, 5000, 0).max(axis=0) < 10.0 * X.max(axis=0)).all()
    gappy = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    for filled in model.impute(gappy, n_imputations=10):
        assert (filled.max(axis=0) < 10.0 * X.max(axis=0)).all()


def test_what_goes_with_a_cell_that_is_far_away_is_far_away():
    logs = np.random.default_rng(1).normal(size=(100, 1)) * np.array([[1.0, 1.0]])
    logs[:, 1] += 0.1 * np.random.default_rng(2).normal(size=100)
    model = AnnealedDPMixture(
        families="multivariate_log_normal", concentration=1e-9, random_state=0
    ).fit(np.exp(logs))
    codec, (_, high) = model._encoder.codecs[1], model._reach[1]
    end = high * codec.scale + codec.offset
    rows = model.sample(200, given={0: np.exp(end + 1.0)}, random_state=0)
    assert abs(np.log(rows[:, 1]).mean() - end - 1.0) < 0.4
    (filled,) = model.impute(np.array([[np.exp(end + 1.0), NAN]]), n_imputations=1)
    assert abs(np.log(filled[0, 1]) - end - 1.0) < 0.8


def test_components_keep_their_shares():
    """Also one of which much is out of reach: a draw keeps its component, and is drawn again."""
    rng = np.random.default_rng(2)
    X = np.exp(np.r_[rng.normal(size=40), 30.0 + 0.1 * rng.normal(size=3)])[:, None]
    model = AnnealedDPMixture(families="log_normal", random_state=0).fit(X)
    share = np.mean(drawn(model, 20_000, 1) > np.exp(20.0))
    model._reach = {}
    whole = np.mean(drawn(model, 20_000, 2) > np.exp(20.0))
    assert abs(share - whole) < 4.0 * math.sqrt(0.1 / 20_000) + 0.01
    assert share > 0.03


@pytest.mark.parametrize("margins", ["model", "data"])
@pytest.mark.parametrize("estimator", [AnnealedDPMixture, CrossCatPY, PermutationDPMixture])
@pytest.mark.few(2)
def test_amounts_have_means(estimator, margins):
    """Beside zeros and levels, where a forest binds outcomes, and in gaps; a control without."""
    rng = np.random.default_rng(11)
    amounts = np.exp(1.5 * rng.normal(size=(80, 3)) + rng.normal(size=(80, 1)))
    amounts[rng.random(80) < 0.4, 2] = 0.0
    X = np.column_stack([amounts, amounts[:, 2] > 0.0]).astype(object)
    X[:, 3] = np.where(X[:, 3] > 0, "some", "none")
    families = {"log_normal": [0, 1], "semi_continuous_log_normal": 2, "categorical": 3}
    model = estimator(families=families, margins=margins, random_state=0).fit(X)
    rows = model.sample(20_000, random_state=1)
    found, largest = np.array(rows[:, :3], dtype=np.float64), amounts.max(axis=0)
    assert (found.mean(axis=0) < 4.0 * amounts.mean(axis=0)).all()
    assert 0.2 < np.mean(found[:, 2] == 0.0) < 0.6
    assert np.mean((found[:, 2] > 0.0) == (rows[:, 3] == "some")) > 0.9
    gappy = X.copy()
    gappy[:40, 0] = gappy[30:60, 2] = None
    for filled in model.impute(gappy, n_imputations=20):
        assert (np.array(filled[:, :3], dtype=np.float64) < 200.0 * largest).all()
    model._reach = {}
    found = np.array(model.sample(20_000, random_state=1)[:, :3], dtype=np.float64)
    assert margins == "data" or found.mean() > 1e3 * amounts.mean()


@pytest.mark.parametrize("family", ["gamma_exponential", "negative_binomial"])
def test_waiting_times_and_counts_have_means(family):
    rng = np.random.default_rng(0)
    sizes = np.exp(rng.normal(size=(100, 3)))
    X = rng.exponential(sizes) if family == "gamma_exponential" else rng.poisson(sizes)
    model = AnnealedDPMixture(families=family, random_state=0).fit(X)
    rows = drawn(model, 20_000, 1)
    assert (rows.max(axis=0) < 4.0 * X.max(axis=0)).all()
    assert (rows.mean(axis=0) < 1.5 * X.mean(axis=0)).all()
    model._reach = {}
    assert drawn(model, 20_000, 1).max() > 30.0 * X.max()


def test_replicates_are_within_reach():
    amounts = np.exp(np.random.default_rng(11).normal(size=(60, 2)))
    model = AnnealedDPMixture(families="log_normal", random_state=0).fit(amounts)
    tables = model.sample(60, n_replicates=200, random_state=1)
    assert max(table.max() for table in tables) < 30.0 * amounts.max()
