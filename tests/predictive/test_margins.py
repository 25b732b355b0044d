"""Margins of the data: densities, draws, conditional laws and fills are those of one law, which is
near the values' own and no worse than the model's.

Random tests: fixed seeds, one try; a false alarm has probability 1e-6 or less where one is stated.
"""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from skanneal import AnnealedDPMixture, CrossCatPY
from skanneal.predictive import _margins, _own_spread
from skanneal.predictive._margin_law import Walls, law_of_scores
from skanneal.predictive._monotone import Monotone
from skanneal.predictive._warps import BINS, LEVELS, STRENGTHS, Lines, shares
from skanneal.schedules import SequentialGibbs

QUICK = {
    "n_chains": 1,
    "n_draws": 3,
    "schedule": SequentialGibbs(n_sweeps=8),
    "random_state": 0,
    "margins": "data",
}


def fitted(X, estimator=AnnealedDPMixture, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator(**QUICK | parameters).fit(X)


def table(n, seed=0):
    """A bounded column, a skewed one and one that goes with the first."""
    rng = np.random.default_rng(seed)
    first = rng.uniform(size=n)
    return np.c_[first, rng.gamma(0.7, size=n), 3.0 * first + rng.normal(size=n)]


@pytest.fixture(scope="module")
def plain():
    """Normal margins that are wrong, in one view and in several; jointly normal rows."""
    X = table(300)
    return {
        "one view": fitted(X, families="normal"),
        "views": fitted(X, CrossCatPY, families="normal"),
        "rows": fitted(X, families="multivariate_normal"),
        "warped": warped(fitted(X, families="normal")),
        "warped rows": warped(fitted(X, families="multivariate_normal")),
        "warped t": warped(fitted(X, families="multivariate_t")),
    }


NAMES = ("one view", "views", "rows", "warped", "warped rows", "warped t")


def warped(model):
    """With components that are warped far more than their rows ask for: all the same one law."""
    rng = np.random.default_rng(0)
    for of_draw in model._margins.counts:
        for counts in of_draw:
            for place, of in counts.items():
                parts = rng.integers(2, size=(len(of), 8)) * rng.integers(
                    20, 200, size=(len(of), 8)
                )
                counts[place] = np.repeat(parts, BINS // 8, axis=1)
    return model


def density(model, cells, column, places):
    """exp(score_samples) of rows with these cells, at places of one column."""
    X = np.full((len(places), 3), np.nan)
    X[:] = cells
    X[:, column] = places
    return np.exp(model.score_samples(X))


def integrals(values, places):
    steps = np.diff(places) * 0.5 * (values[1:] + values[:-1])
    return np.r_[0.0, np.cumsum(steps)]


GRIDS = {
    0: np.linspace(-1.0, 2.0, 6001),
    1: np.r_[np.geomspace(1e-9, 1e-2, 2000), np.linspace(0.0101, 40.0, 20000)],
    2: np.linspace(-12.0, 16.0, 8001),
}


# ---- one law ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_draws_have_the_density_that_is_stated(plain, name):
    """By Kolmogorov's and Smirnov's test of 4,000 draws against the integral of exp(score_samples);
    the control: against its square."""
    model = plain[name]
    drawn = model.sample(4000, random_state=1)
    for column, places in GRIDS.items():
        cumulative = integrals(density(model, np.nan, column, places), places)
        assert cumulative[-1] == pytest.approx(1.0, abs=2e-3)
        ranks = np.interp(drawn[:, column], places, cumulative)
        assert stats.kstest(ranks, "uniform").pvalue > 1e-6
    assert stats.kstest(np.sqrt(ranks), "uniform").pvalue < 1e-6


@pytest.mark.parametrize("name", NAMES)
def test_conditional_densities_and_draws_are_ratios_of_joint_ones(plain, name):
    model = plain[name]
    X = table(50, seed=3)
    known = np.full_like(X, np.nan)
    known[:, 0] = X[:, 0]
    ratio = model.score_samples(X) - model.score_samples(known)
    assert np.allclose(model.score_samples(X, given=[0]), ratio, atol=1e-9)
    cells = [0.1, np.nan, np.nan]
    joint = density(model, cells, 2, GRIDS[2])
    cumulative = integrals(joint, GRIDS[2])
    alone = np.exp(model.score_samples([[0.1, np.nan, np.nan]]))
    steps = 4e-3  # an error of the integral: densities of warped ones have steps
    assert cumulative[-1] == pytest.approx(alone[0], rel=steps)
    given = model.sample(4000, given={0: 0.1}, random_state=2)
    assert (given[:, 0] == 0.1).all()
    ranks = np.interp(given[:, 2], GRIDS[2], cumulative / cumulative[-1])
    assert stats.kstest(ranks, "uniform").pvalue > 1e-6


@pytest.mark.parametrize("name", NAMES[:3])
def test_imputations_are_draws_of_that_law(plain, name):
    """Warped ones are left out: their draws differ in the first cell's density, by which `sample`
    weighs them, while an imputation is of each draw alike."""
    model = plain[name]
    given = model.sample(4000, given={0: 0.1}, random_state=2)
    gappy = np.full((400, 3), np.nan)
    gappy[:, 0] = 0.1
    filled = np.vstack(model.impute(gappy, n_imputations=6))
    assert stats.ks_2samp(filled[:, 2], given[:, 2]).pvalue > 1e-6
    assert (filled[:, 1] >= 0.0).all()


@pytest.mark.parametrize("name", NAMES)
def test_fills_are_the_means_of_that_law(plain, name):
    model = plain[name]
    filled, spread = model.impute([[0.9, np.nan, np.nan]], return_std=True)
    for column in (1, 2):
        values = density(model, [0.9, np.nan, np.nan], column, GRIDS[column])
        whole = integrals(values, GRIDS[column])[-1]
        mean = integrals(values * GRIDS[column], GRIDS[column])[-1] / whole
        off = (GRIDS[column] - mean) ** 2
        deviation = np.sqrt(integrals(values * off, GRIDS[column])[-1] / whole)
        assert filled[0][column] == pytest.approx(mean, abs=0.02 * deviation)
        assert spread[0][column] == pytest.approx(deviation, rel=0.05)


@pytest.mark.parametrize("name", NAMES)
def test_surprisals_are_ratios_of_densities(plain, name):
    model = plain[name]
    X = table(20, seed=4)
    others = X.copy()
    others[:, 1] = np.nan
    found = model.score_samples(others) - model.score_samples(X)
    assert np.allclose(model.surprisal(X)[:, 1], found, atol=1e-9)


def test_amounts_are_filled_with_the_mean_of_their_logarithms():
    """As the families' own fills are; the mean of amounts whose tail is long need not exist."""
    X = np.random.default_rng(0).gamma(1.5, size=(300, 2))
    model = fitted(X, families="log_normal")
    filled, spread = model.impute([[1.0, np.nan]], return_std=True)
    logs = np.log(model.sample(20_000, given={0: 1.0}, random_state=1)[:, 1])
    error = logs.std() / np.sqrt(len(logs))
    assert np.log(filled[0][1]) == pytest.approx(logs.mean(), abs=5.0 * error)
    assert np.isfinite(spread).all() and spread[0][1] > 0.0


@pytest.mark.parametrize("atoms", [[0.0], [5.0], [0.0, 5.0]])
@pytest.mark.parametrize("families", ["semi_continuous", "semi_continuous_log_normal"])
def test_atoms_count_as_numbers_where_gaps_are_filled(families, atoms):
    """Beside them stands the mean of what is elsewhere, of amounts that of their logarithms."""
    rng = np.random.default_rng(3)
    X = np.c_[rng.normal(size=400), 2.0 + rng.gamma(1.5, size=400)]
    X[X[:, 0] > 0.0, 1] *= 4.0
    at = rng.random(400) < 0.4
    X[at, 1] = rng.choice(atoms, at.sum())
    model = fitted(X, families={families: [1]}, n_chains=2)
    filled, spread = model.impute(np.array([[1.0, np.nan]]), return_std=True)
    drawn = model.sample(40_000, given={0: 1.0}, random_state=1)[:, 1]
    is_atom, is_amount = np.isin(drawn, atoms), families.endswith("log_normal")
    share, elsewhere = is_atom.mean(), drawn[~is_atom]
    middle = np.exp(np.log(elsewhere).mean()) if is_amount else elsewhere.mean()
    expected = share * drawn[is_atom].mean() + (1.0 - share) * middle
    assert filled[0, 1] == pytest.approx(expected, rel=0.03)
    assert 0.5 < spread[0, 1] < 50.0
    if not is_amount:
        assert spread[0, 1] == pytest.approx(drawn.std(), rel=0.03)


@pytest.mark.parametrize("name", ["one view", "rows", "warped", "warped rows"])
def test_the_mode_is_the_likeliest_centre(plain, name):
    """Of those of all components, under the law on the axis of the mixture's cells, up to what is
    lost by looking at the sixteen most probable components alone."""
    model, queries = plain[name], plain[name]._queries()
    row = model._encoded([[0.9, np.nan, np.nan]])
    table, law, at = queries.modelled(row)[0], queries.law, np.zeros(1, dtype=np.int64)

    def log_density(cell):
        columns = [table.column(j) for j in range(table.n_columns)]
        columns[2] = np.array([cell], dtype=np.float32)
        return law.log_density(law.table(columns))[0]

    centres = []
    for views in law.draws:
        view = law.view_of(views, 2)
        if view.is_joint(2):
            own = view.conditionals(2, table, at)[0][0]
            centres.extend(view.from_family(2, np.arange(len(own)), own))
        else:
            centres.extend(view.means(2))
    value, schema = queries.fill(row, "mode")[0][2][0], model._encoder.table_schema
    cell = np.array([(value - schema.offsets[2]) / schema.scales[2]], dtype=np.float32)
    found = log_density(queries.maps[2].to_model(cell)[0][0])
    others = np.array([log_density(centre) for centre in centres])
    assert found == pytest.approx(others.max(), abs=0.02)
    assert np.median(others) < found - 0.05


@pytest.mark.parametrize(
    "families", ["log_normal", "semi_continuous", "semi_continuous_log_normal"]
)
def test_amounts_and_atoms_have_one_law(families):
    """As numbers: with logarithms, and with an atom beside them, whose probability is stated."""
    rng = np.random.default_rng(1)
    X = np.c_[rng.gamma(0.7, size=300), rng.uniform(0.5, 1.0, size=300)]
    if families != "log_normal":
        X[rng.random(300) < 0.3, 0] = 0.0
    model = fitted(X, families=families)
    assert any(counts for of_draw in model._margins.counts for counts in of_draw)
    drawn = model.sample(4000, random_state=1)
    places = GRIDS[1][1:]
    values = np.exp(model.score_samples(np.c_[places, np.full(len(places), np.nan)]))
    atom = np.exp(model.score_samples([[0.0, np.nan]]))[0] if (X[:, 0] == 0.0).any() else 0.0
    cumulative = integrals(values, places)
    assert cumulative[-1] + atom == pytest.approx(1.0, abs=3e-3)
    assert np.mean(drawn[:, 0] == 0.0) == pytest.approx(atom, abs=0.04)
    elsewhere = drawn[drawn[:, 0] > 0.0, 0]
    ranks = np.interp(elsewhere, places, cumulative / cumulative[-1])
    assert stats.kstest(ranks, "uniform").pvalue > 1e-6


# ---- what a column is like ----------------------------------------------------------------------


def test_columns_stay_as_they_are(plain):
    """Draws are never negative where the rows never were, and a negative number has no density."""
    drawn = plain["one view"].sample(4000, random_state=1)
    assert (drawn[:, :2] >= 0.0).all() and (drawn[:, 2] < 0.0).any()
    assert plain["one view"].score_samples([[-0.1, 1.0, 1.0]])[0] == -np.inf
    given = plain["one view"].sample(5, given={0: -0.1})
    assert np.isfinite(given).all()


def test_rounded_bounded_columns_with_atoms():
    """Hours are whole and from 0 to 23; what is capped at 50 has its atom, which so few cells have
    that families="auto" alone overlooks it."""
    rng = np.random.default_rng(0)
    hours = rng.integers(0, 24, 600)
    capped = np.minimum(np.exp(3.0 + 0.6 * rng.normal(size=600)), 50.0)
    X = pd.DataFrame({"hour": hours, "capped": capped})
    share = np.mean(capped == 50.0)
    assert 0.02 < share < 0.1
    model = fitted(X, CrossCatPY)
    drawn = model.sample(4000, random_state=1)
    assert drawn["hour"].dtype == np.int64
    assert np.mean(drawn["hour"].between(0, 23)) > 0.999
    counts = [np.bincount(of.clip(0, 23), minlength=24) for of in (drawn["hour"], hours)]
    assert np.abs(counts[0] / 4000 - counts[1] / 600).max() < 0.02  # 5 standard errors
    assert np.mean(drawn["capped"] == 50.0) == pytest.approx(share, abs=0.02)
    assert (drawn["capped"] > 50.0).mean() < 0.002
    cap = pd.DataFrame({"hour": [np.nan], "capped": [50.0]})
    assert np.exp(model.score_samples(cap)[0]) == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize("families", ["normal", "multivariate_normal"])
def test_numbers_that_recur_are_drawn_as_they_are(families):
    """Where the family has no atoms, and no lattice rounds: as often, and to the last digit."""
    rng = np.random.default_rng(3)
    X = np.c_[rng.exponential(700.0, 500), rng.normal(size=500)]
    X[rng.random(500) < 0.4, 0] = 0.0
    X[rng.random(500) < 0.2, 1] = 1.3
    drawn = fitted(X, families=families).sample(4000, random_state=1)
    for j, number in enumerate([0.0, 1.3]):
        share = np.mean(X[:, j] == number)
        assert np.mean(drawn[:, j] == number) == pytest.approx(share, abs=0.04)
        assert not np.any((drawn[:, j] != number) & (np.abs(drawn[:, j] - number) < 1e-7))
    assert drawn[:, 0].min() == 0.0


@pytest.mark.parametrize("prior", ["pitman_yor", "finite"])
@pytest.mark.parametrize("seed", range(3))
def test_rows_far_away_have_a_density(seed, prior):
    """Near to that of the model's own margin, on both sides, and no warning of numbers."""
    rng = np.random.default_rng(seed)
    X = np.c_[rng.normal(size=100), np.exp(rng.normal(size=100)) * (rng.random(100) < 0.7)]
    families = {"normal": [0], "semi_continuous_log_normal": [1]}
    models = [
        fitted(X, families=families, partition_prior=prior, margins=own)
        for own in ("data", "model")
    ]
    far = np.full((12, 2), np.nan)
    far[:8, 0] = [-1e6, -100, -30, -8, 8, 30, 100, 1e6]
    far[8:, 1] = [30, 1e3, 1e5, 1e20]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        own, of_model = (model.score_samples(far) for model in models)
        assert np.isfinite(models[0].surprisal(far[:8])[:, 0]).all()
    assert (np.diff(own[:4]) > 0).all() and (np.diff(own[4:8]) < 0).all()
    assert (np.abs(own / of_model - 1.0) < 0.8).all()


def test_rows_of_counts_stay_as_they_are():
    """They have no margins; a number beside them has."""
    rng = np.random.default_rng(0)
    counts = rng.multinomial(20, [0.2, 0.3, 0.5], 60).astype(float)
    X = np.c_[counts, np.exp(rng.normal(size=60))]
    families = {"multinomial": [0, 1, 2], "normal": [3]}
    rows = [fitted(X, families=families, margins=own).score_samples(X) for own in ("data", "model")]
    assert np.isfinite(rows).all() and rows[0].mean() > rows[1].mean() + 0.1
    alone = [fitted(counts, families="multinomial", margins=own) for own in ("data", "model")]
    np.testing.assert_allclose(*(model.score_samples(counts) for model in alone))


def test_columns_far_from_zero_have_tails_to_both_sides():
    """They were never negative, but their values do not come up to 0."""
    X = 50.0 + np.random.default_rng(0).normal(size=(100, 1))
    model = fitted(X, families="normal")
    places = np.linspace(1e-3, 100.0, 40001)[:, None]
    density = np.exp(model.score_samples(places))
    assert integrals(density, places[:, 0])[-1] == pytest.approx(1.0, abs=5e-3)
    assert (np.diff(model.score_samples([[1.0], [25.0], [45.0], [47.0]])) > 0.5).all()


def test_fills_of_counts_are_not_negative():
    """A rounded column that was never negative reaches half a step below 0, and no fill does."""
    rng = np.random.default_rng(1)
    counts = rng.poisson(0.15, 100).astype(float)
    X = np.c_[counts, rng.normal(size=100) + 3.0 * counts]
    gaps = np.c_[np.full(9, np.nan), np.linspace(-9.0, 3.0, 9)]
    for families in ("normal", "multivariate_normal"):
        model = fitted(X, families=families)
        assert np.isfinite(model.score_samples([[-0.3, 0.0]]))
        assert (model.impute(gaps)[:, 0] >= 0.0).all()
    assert model.score_samples([[-0.6, 0.0]]) == -np.inf


@pytest.mark.parametrize("seed", range(3))
def test_a_number_at_a_wall_is_no_surprise_to_its_component(seed):
    """A narrow component of small numbers: one of them is 0, the least that can be."""
    rng = np.random.default_rng(seed)
    small = rng.random(150) < 0.3
    X = rng.normal(size=(150, 3)) * [1.0, 0.05, 1.0]
    X[small] += [20.0, 0.0, 9.0]
    X[:, 1] = np.abs(np.where(small, X[:, 1], 5.0 + 20.0 * X[:, 1]))
    X[np.flatnonzero(small)[0], 1] = 0.0
    model = fitted(X, families="normal", schedule=SequentialGibbs(n_sweeps=20))
    at_wall, near = model.score_samples([[20.0, 0.0, 9.0], [20.0, 0.02, 9.0]])
    assert at_wall > near - 1.0


def test_beyond_half_a_value_before_a_wall_places_are_one():
    """Walls that are an atom, hard or not; beyond a wall that is not hard places are farther."""
    rng = np.random.default_rng(0)
    X = np.c_[np.r_[rng.uniform(size=200), np.ones(60)], rng.normal(size=260)]
    model = fitted(X, families={"semi_continuous": [0], "normal": [1]})
    of = model._queries().maps[0]
    (low, first), (high, last) = of.low, of.high
    assert low == of.lowest < first < of.known[5] and of.known[-5] < last < high
    inside = [[low, 0.5 * (low + first), first], [last, 0.5 * (last + high), high - 1e-5]]
    for places in inside:
        cells, slopes = of.to_model(np.float32(places))
        assert np.ptp(cells) < 1e-5 and np.ptp(slopes) < 1e-3
    (before, after), slopes = of.to_model(np.float32([high - 1e-5, high + 0.1]))
    assert after > before and np.isfinite(slopes).all()
    assert of.to_model(np.float32([low - 0.1]))[1] == -np.inf


def test_numbers_that_recur_are_drawn_with_all_their_digits():
    """Fractions of nine digits, which single precision does not hold, among numbers of as many."""
    rng = np.random.default_rng(4)
    fractions = np.round(1.0 / np.arange(4, 16), 9)
    others = rng.beta(2.0, 8.0, 600).round(9)
    X = np.where(rng.random(600) < 0.6, rng.choice(fractions, 600), others)
    drawn = fitted(X[:, None], families="normal").sample(4000, random_state=1)[:, 0]
    near = np.abs(drawn[:, None] - fractions).min(axis=1) < 1e-7
    assert near.mean() == pytest.approx(0.6, abs=0.05)
    assert np.isin(drawn[near], fractions).all()


def test_numbers_that_recur_are_those_of_the_component():
    """Of two groups, far apart in the first column, each has numbers of its own in the second,
    between those of the other; the control draws by the ranks of the whole column."""
    rng = np.random.default_rng(6)
    group, numbers = rng.integers(2, size=600), np.sort(rng.uniform(size=40))
    own = np.where(group == 0, rng.choice(numbers[::2], 600), rng.choice(numbers[1::2], 600))
    X = np.c_[40.0 * group + rng.normal(size=600), own]
    model = fitted(X, families="normal", rounding=None)

    def astray():
        """The share of draws that have a number of the other group."""
        first, second = model.sample(4000, random_state=1).T
        of_one, of_other = (np.isin(second, numbers[i::2]) for i in (0, 1))
        assert (of_one | of_other).mean() > 0.95
        return np.where(first > 20.0, of_one, of_other).mean()

    assert astray() < 0.03
    model._margins.held, model._margins.law = [[{} for _ in of] for of in model._margins.held], None
    assert astray() > 0.3


def test_a_row_that_is_a_component_is_not_drawn_again():
    """Each of its numbers is shared by others.

    Single numbers are drawn as often as they recur, 90 seven times where the smooth law has ten: so
    draws are compared with it by five numbers together, and by their spread."""
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=300)
    X = np.rint(6.0 * rng.normal(size=(300, 4)) + np.where(group, 90, 30)[:, None])
    X[0] = odd = np.array([30.0, 90.0, 30.0, 90.0])
    model = fitted(X, families="normal")
    given = dict(enumerate(odd[:3]))
    drawn = model.sample(40_000, given=given, random_state=1)[:, 3]
    at = np.tile(odd, (501, 1))
    at[:, 3] += np.linspace(-2.5, 2.5, 501)
    share = 5.0 * np.exp(model.score_samples(at, given=[0, 1, 2])).mean()
    assert np.mean(abs(drawn - 90.0) <= 2.0) == pytest.approx(share, abs=0.03)
    assert np.mean(drawn == 90.0) < 0.15
    row = np.append(odd[:3], np.nan)[None]
    filled, spread = (of[0, 3] for of in model.impute(row, return_std=True))
    assert drawn.mean() == pytest.approx(filled, abs=0.1 * spread)
    assert drawn.std() == pytest.approx(spread, rel=0.05)
    several = np.array([of[0, 3] for of in model.impute(row, n_imputations=400)])
    assert np.mean(abs(several - 90.0) <= 2.0) == pytest.approx(share, abs=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_a_fit_has_no_warning_of_numbers(seed):
    X = np.random.default_rng(seed).normal(size=(300, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        CrossCatPY(margins="data", n_chains=1, n_draws=6, random_state=0).fit(X)


@pytest.mark.parametrize("n", [4, 40])
def test_a_map_that_moves_nothing_leaves_fills_and_their_spreads(n):
    """Of few rows, too, whose conditional laws have heavy tails."""

    class Nothing:
        to_data, lowest = staticmethod(np.asarray), -np.inf

    X = np.random.default_rng(8).normal(size=(n, 2))
    queries = fitted(X, families="multivariate_normal", margins="model")._queries()
    table = queries.table(queries.encoder.encode(None, [[0.5, np.nan], [4.0, np.nan]]))
    gaps = [np.zeros(2, dtype=bool), np.ones(2, dtype=bool)]
    for mapped, plain in zip(
        queries.law.fill(table, gaps, maps={1: Nothing}), queries.law.fill(table, gaps)
    ):
        np.testing.assert_allclose(mapped[1], plain[1], rtol=1e-6)


def temperatures(n, seed=0):
    """One in two units, with a rounding error, and a number that goes with it."""
    rng = np.random.default_rng(seed)
    celsius = rng.normal(12.0, 7.0, n)
    fahrenheit = 1.8 * celsius + 32.0 + 0.1 * rng.normal(size=n)
    load = 50.0 - 1.5 * celsius + 8.0 * rng.normal(size=n)
    return np.c_[celsius.round(2), fahrenheit.round(1), rng.gamma(4.0, 3.0, n), load]


@pytest.mark.parametrize("estimator", [AnnealedDPMixture, CrossCatPY])
@pytest.mark.parametrize("gaps", [0.0, 0.15])
def test_columns_that_nearly_determine_each_other_stay_on_their_line(estimator, gaps):
    """The control maps them all the same."""
    X, others = temperatures(300), temperatures(300, 1)
    X[np.random.default_rng(1).random(X.shape) < gaps] = np.nan
    kept = {"families": "multivariate_normal", "estimator": estimator}
    model, plain = fitted(X, **kept), fitted(X, margins="model", **kept)
    with pytest.warns(UserWarning, match=r"no effect on column 0, column 1, which .*; nor on colu"):
        estimator(**QUICK | {"families": "multivariate_normal"}).fit(X)
    assert model._margins.columns.keys().isdisjoint({0, 1})
    assert model.score(others) > plain.score(others) - 0.05
    gappy = others.copy()
    gappy[:, 3] = np.nan
    drawn = np.array([of[:, 3] for of in model.impute(gappy, n_imputations=20)])
    width = np.ptp(others[:, 3])
    assert others[:, 3].min() - width < drawn.min() and drawn.max() < others[:, 3].max() + width
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_margins, "nearly_determined", lambda *_: set())
        assert fitted(X, **kept).score(others) < plain.score(others) - 0.05


def test_what_a_column_has_of_its_own_is_its_scale_given_the_others():
    """Of one component, by the inverse of the covariances; and of two, which lie on two lines."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(4000, 3))
    X[:, 2] += X[:, 0] - 2.0 * X[:, 1]
    expected = 1.0 / np.sqrt(np.diag(np.linalg.inv(np.cov(X.T))))
    for shift in (0.0, 100.0):
        moved = X + shift * (np.arange(4000) % 2)[:, None] * [1.0, 1.0, -1.0]
        queries = fitted(moved, families="multivariate_normal", margins="model")._queries()
        (view,) = queries.predictor.draws[-1]
        found = _own_spread._conditional_scales(queries.predictor, view, {0, 1, 2})
        scales = [found[j] * queries.encoder.table_schema.scales[j] for j in range(3)]
        np.testing.assert_allclose(scales, expected, rtol=0.05)


@pytest.mark.parametrize("margins", ["data", "model"])
def test_rounded_numbers_are_drawn_as_they_were_given(margins):
    """Hundredths in single precision, and a few numbers that recur between them: no draw has digits
    that the fit has not, where the fit has the number more than once."""
    rng = np.random.default_rng(5)
    hundredths = rng.normal(0.5, 0.1, size=1000).round(2).astype(np.float32).astype(float)
    X = np.c_[np.where(rng.random(1000) < 0.04, 0.4444, hundredths), rng.normal(size=1000)]
    model = fitted(X, families="normal", margins=margins)
    assert model.rounding_[0] == pytest.approx(0.01, rel=1e-6)
    drawn = model.sample(4000, random_state=1)[:, 0]
    distinct, counts = np.unique(X[:, 0], return_counts=True)
    known = distinct[counts > 1]
    near = np.abs(drawn[:, None] - known).min(axis=1) < 1e-5
    assert near.mean() > 0.97 and np.isin(drawn[near], known).all()
    share = np.mean(X[:, 0] == 0.4444)
    if margins == "data":
        assert np.mean(drawn == 0.4444) == pytest.approx(share, abs=0.015)


@pytest.mark.parametrize(
    "name, draw",
    [
        ("normal", lambda rng, n: rng.normal(size=n)),
        ("skewed", lambda rng, n: rng.gamma(0.6, size=n)),
        ("bimodal", lambda rng, n: rng.normal(size=n) + 6.0 * (rng.random(n) < 0.3)),
        ("rounded", lambda rng, n: np.rint(8.0 * rng.gamma(1.5, size=n))),
        ("capped", lambda rng, n: np.minimum(rng.exponential(size=n), 1.5)),
        ("uniform", lambda rng, n: rng.uniform(size=n)),
    ],
)
@pytest.mark.few(3)
def test_held_out_rows_are_no_less_probable(name, draw):
    """Than under the mixture's own margins, by more than the error; where these are wrong, more
    so."""
    rng = np.random.default_rng(5)
    X, Y = draw(rng, 400)[:, None], draw(rng, 2000)[:, None]
    model = fitted(X, families="semi_continuous" if name == "capped" else "normal")
    ours = model.score_samples(Y)
    model._margins = None
    gain = ours - model.score_samples(Y)
    error = gain.std() / np.sqrt(len(gain))
    assert gain.mean() > -0.01 - 3.0 * error
    assert gain.min() > -np.log(402.0) - 0.1
    if name in ("uniform", "skewed"):
        assert gain.mean() > 0.005


def test_a_margin_that_is_right_is_left_alone():
    """The kernels of width 1 are the model's margin."""
    z = np.random.default_rng(0).normal(size=500)
    edges, below, above = law_of_scores(np.sort(z), Walls(), np.positive)
    assert np.allclose(below + above, 1.0)
    assert np.abs(below - stats.norm.cdf(edges)).max() < 0.03
    assert (below > stats.norm.cdf(edges) / 502.0).all()  # the tails are there
    assert (above > stats.norm.sf(edges) / 502.0).all()
    wrong = law_of_scores(np.sort(np.abs(z)), Walls(), np.positive)[1]
    assert wrong[np.searchsorted(edges, 0.0)] < 0.05


@pytest.mark.parametrize("side, lowest", [(-1.0, -np.inf), (1.0, -np.inf), (-1.0, -100.0)])
def test_tails_are_as_long_as_the_values_say(side, lowest):
    """Where the model is right but for a hundredth that is far wider. Of n more values about one is
    beyond the outermost of n; one as far out again comes once in dozens of tables, by the model."""
    n = 1000
    values = np.sort(side * np.random.default_rng(0).logistic(size=n))
    grid = np.sinh(np.linspace(-18.0, 18.0, 20001))
    below = 0.99 * stats.logistic.cdf(-abs(grid)) + 0.01 * stats.t(2).cdf(-abs(grid) / 10.0)
    z = np.sign(grid) * stats.norm.isf(below)
    scores = np.interp(values, grid, z)
    walls = Walls(lowest).mapped(lambda end: np.interp(end, grid, z))
    edges, *shares = law_of_scores(scores, walls, lambda at: np.interp(at, z, grid))
    place, share = (-1, shares[1]) if side > 0 else (0, shares[0])
    at = np.searchsorted(edges, np.interp([values[place], 2.0 * values[place]], grid, z))
    assert 0.2 < n * share[at[0]] < 3.0
    assert n * share[at[1]] < 0.03


# ---- components ---------------------------------------------------------------------------------


def skewed(n, seed):
    """Two groups of rows that the first column tells apart; the others have a mean and a variance
    of their own in neither, but are skewed upwards in one and downwards in the other."""
    rng = np.random.default_rng(seed)
    group, others = rng.integers(2, size=n), rng.exponential(size=(n, 7)) - 1.0
    return np.c_[9.0 * group + rng.normal(size=n), np.where(group[:, None], others, -others)]


def slow_shares(counts, strength):
    """The tree's evidence and mean by its definition, interval by interval."""
    log_evidence, means = 0.0, np.ones(BINS)
    for level in range(1, LEVELS + 1):
        width = BINS // 2**level
        for left in range(0, BINS, 2 * width):
            a = strength * level**2
            n = [counts[left : left + width].sum(), counts[left + width : left + 2 * width].sum()]
            for i, half in enumerate((left, left + width)):
                means[half : half + width] *= (a + n[i]) / (2 * a + sum(n))
            for i in range(2):  # by Polya's urn, one rank after another
                for m in range(n[i]):
                    log_evidence += np.log(2.0 * (a + m) / (2 * a + m + i * n[0]))
    return log_evidence, means


def test_shares_are_those_of_polya_trees():
    rng = np.random.default_rng(0)
    counts = rng.poisson(rng.choice([0.05, 0.5, 5.0], size=(4, BINS)))
    counts[3] = 0
    expected = []
    for of_component in counts:
        logs, trees = zip(*(slow_shares(of_component, c) for c in STRENGTHS))
        weights = np.exp(np.array(logs) - max(logs))
        expected.append(weights @ np.array(trees) / weights.sum())
    found = shares(counts)
    assert np.allclose(found, expected, rtol=1e-9)
    assert np.allclose(found.sum(axis=1), 1.0) and np.allclose(found[3], 1.0 / BINS)
    control = (STRENGTHS[0] + counts) / (STRENGTHS[0] + counts).sum(axis=1, keepdims=True)
    assert np.abs(found - control).max() > 0.01


def test_new_rows_of_skewed_components_are_more_probable():
    """Than without maps of their own: a column's margin is nearly the same in both groups but for
    its sign, and alone says little."""
    X, Y = skewed(400, 0), skewed(2000, 1)
    model = fitted(X, families="multivariate_normal")
    gain = model.score_samples(Y) - without_warps(model).score_samples(Y)
    assert gain.mean() > 0.05 + 3.0 * gain.std() / np.sqrt(len(gain))


def without_warps(model):
    """The same model with the columns' margins alone."""
    plain = copy.copy(model)
    plain._margins = copy.copy(model._margins)
    plain._margins.counts, plain._margins.law = [], None
    return plain


def test_a_right_family_is_hardly_warped():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(500, 2)), rng.normal(size=(2000, 2))
    model = fitted(X, families="multivariate_normal")
    loss = without_warps(model).score_samples(Y) - model.score_samples(Y)
    assert loss.mean() < 0.01


def test_maps_and_their_inverses():
    rng = np.random.default_rng(0)
    lines = Lines(*np.sort(rng.normal(size=(2, 3, BINS - 1)), axis=2))
    places = np.linspace(-5.0, 5.0, 1001)
    for k in range(3):
        moved, log_slopes = lines(k, places)
        assert np.allclose(lines.inverse(k, moved), places, atol=1e-9)
        step = 1e-7
        slopes = (lines(k, places + step)[0] - moved) / step
        assert np.mean(np.isclose(np.exp(log_slopes), slopes, rtol=1e-4)) > 0.99


def test_a_time_that_is_over_leaves_components_as_they_are():
    model = fitted(table(200), families="normal", max_time=1e-3)
    assert model._margins.counts == [] and np.isfinite(model.sample(9)).all()


# ---- what stays ---------------------------------------------------------------------------------


def test_clusters_and_dependence_are_those_of_the_mixture():
    X = table(200)
    ours, plain = fitted(X, CrossCatPY), fitted(X, CrossCatPY, margins="model")
    assert (ours.labels_ == plain.labels_).all() and (ours.predict(X) == plain.predict(X)).all()
    assert np.array_equal(ours.dependence_probability(), plain.dependence_probability())
    assert np.array_equal(ours.outlier_scores_, plain.outlier_scores_)
    assert not np.allclose(ours.score_samples(X), plain.score_samples(X))


def test_a_pickle_answers_the_same(plain):
    X = table(20, seed=6)
    again = pickle.loads(pickle.dumps(plain["views"]))
    assert np.array_equal(again.score_samples(X), plain["views"].score_samples(X))
    assert np.array_equal(again.sample(9), plain["views"].sample(9))


def test_gaps_and_constants():
    """A column without numbers, one of one number, and one with two cells."""
    X = table(60)
    X[:, 0], X[:, 1], X[2:, 2] = np.nan, 4.0, np.nan
    model = fitted(X)
    assert np.isfinite(model.score_samples(X)).all()
    drawn = model.sample(20)
    assert (drawn[:, 1] == 4.0).all() and np.isfinite(drawn[:, 2]).all()


def test_a_name_that_is_none():
    with pytest.raises(ValueError, match="margins"):
        AnnealedDPMixture(margins="normal").fit(table(20))


def test_increasing_functions_and_their_inverses():
    x = np.sort(np.random.default_rng(0).normal(size=200))
    curve = Monotone(x, np.cumsum(np.random.default_rng(1).exponential(size=200)))
    places = np.linspace(-6.0, 6.0, 1001)
    assert np.allclose(curve.inverse(curve(places)), places, atol=1e-9)
    step = 1e-6
    slopes = (curve(places + step) - curve(places - step)) / (2 * step)
    assert np.allclose(np.exp(curve.log_slope(places)), slopes, rtol=1e-3, atol=1e-6)
