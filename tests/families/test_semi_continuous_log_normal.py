"""Amounts with atoms and log-normal elsewhere: the rule, densities per unit of the amount, queries.

Random tests: fixed seeds, one try.
"""

import numpy as np
import pytest
from scipy import stats

from oracles.cheap import CHEAP, short
from oracles.mixtures import hyper_vector
from oracles.reference import AMOUNT_ATOMS, log_marginal, log_predictive
from skanneal import AnnealedDPMixture, CrossCatPY, PermutationDPMixture
from skanneal.families import FAMILIES, Table

NAME = "semi_continuous_log_normal"
HYPER = {"mu0": 0.2, "kappa0": 0.5, "nu0": 3.0, "sigma2_0": 0.7, "a": 0.6, "b": 1.7}
OFFSET, SCALE = 1.25, 0.5
LEAST = np.float32(-1e14)  # the cell of 0
SHARES, CENTRES = np.array([0.6, 0.2]), np.array([0.0, 4.0])  # of zeros; of the other logarithms


def amounts(n=200, seed=0, missing=0.1):
    """(rows, clusters): two clusters with zeros and skewed amounts elsewhere."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(2, size=n)
    X = np.exp(rng.normal(CENTRES[groups, None], 0.7, (n, 3)))
    X[rng.random(X.shape) < SHARES[groups, None]] = 0.0
    X[rng.random(X.shape) < missing] = np.nan
    return X, groups


def block_of(cells, hyper=HYPER, n_slots=3):
    """A block of one column in cell units, its first 12 rows dealt to the slots in turn."""
    atoms = np.r_[LEAST, np.float32((np.log(AMOUNT_ATOMS[1]) - OFFSET) / SCALE)]
    table = Table(["f4"], [0], [OFFSET], [SCALE], [atoms])
    table.append([np.where(cells == 0.0, LEAST, np.where(cells == 1.0, atoms[1], cells))])
    block = FAMILIES[NAME](table, [0], [hyper_vector(NAME, hyper)])
    block.build(np.arange(12), np.arange(12) % n_slots, n_slots)
    return block


# ---- the rule -----------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [AnnealedDPMixture, PermutationDPMixture, CrossCatPY])
@pytest.mark.few(2)
def test_it_is_chosen_where_what_is_elsewhere_is_skewed(estimator):
    X, _ = amounts()
    rng = np.random.default_rng(4)
    others = rng.normal(5.0, 1.0, (len(X), 2))
    others[rng.random(others.shape) < 0.4] = 0.0
    amount = amounts(seed=5)[0][:, :1]
    coded = np.where(amount == 0.0, -999.0, amount)  # "not measured": no logarithm
    X = np.hstack([X, others, coded])
    model = short(estimator).fit(X)
    chosen = {name: of.tolist() for name, of in model.families_.items()}
    assert chosen == {NAME: [0, 1, 2], "semi_continuous": [3, 4, 5]}
    assert model.atoms_[0].tolist() == [0.0]
    rows = model.sample(300)
    assert (rows[:, :3] >= 0.0).all() and 0.2 < np.mean(rows[:, :3] == 0.0) < 0.7
    filled, spread = model.impute(X, return_std=True)
    gaps = np.isnan(X)
    assert (filled[:, :3] >= 0.0).all() and (spread[gaps] > 0).all() and np.isfinite(filled).all()
    np.testing.assert_array_equal(filled[~gaps], X[~gaps])
    single = model.score_samples(X.astype(np.float32))
    np.testing.assert_allclose(single, model.score_samples(X), atol=1e-3)
    other = short(estimator, families={"semi_continuous": [0, 1]}).fit(X)
    assert other.families_[NAME].tolist() == [2]


def test_what_has_no_logarithm_is_refused():
    """Where the family was named; the control: "auto" finds such rows odd."""
    X, _ = amounts(missing=0.0)
    model, rows = short().fit(X), np.r_[[[-1.0, 1.0, 1.0]], X]
    assert np.isfinite(model.score_samples(rows)).all()
    with pytest.raises(ValueError, match="above 0, got -1"):
        short(families=model.families_).fit(X).score_samples(rows)
    single = short(families=NAME).fit(np.r_[0.0, X[X > 0]][:, None])
    assert single.atoms_[0].tolist() == [0.0]  # in however few rows


# ---- units --------------------------------------------------------------------------------------


def test_an_atom_has_a_probability_and_the_others_a_density():
    """Of the amount; without its Jacobian, the control, it is another number."""
    cells = np.random.default_rng(3).normal(size=14).astype(np.float32)
    cells[[0, 3, 4, 13]], cells[7] = 0.0, 1.0
    values = np.where(np.isin(cells, [0, 1]), cells, np.exp(OFFSET + SCALE * cells.astype(float)))
    users = {**HYPER, "mu0": OFFSET + SCALE * 0.2, "sigma2_0": 0.7 * SCALE**2}
    held = [values[k:12:3].tolist() for k in range(3)]
    block = block_of(cells)
    expected = sum(log_marginal(NAME, of, users) for of in held)
    assert block.log_marginals().sum() + block.log_jacobian() == pytest.approx(expected, rel=1e-10)
    of_logarithms = FAMILIES["semi_continuous"].log_jacobian(block)
    assert abs(block.log_marginals().sum() + of_logarithms - expected) > 1.0
    out = np.zeros((2, 3))
    block.score_rows(block.table, out, 12, 14)
    expected = [[log_predictive(NAME, values[i], of, users) for of in held] for i in (12, 13)]
    np.testing.assert_allclose(out, expected, rtol=1e-9)


def test_the_density_is_that_of_the_amount():
    """With the atoms it sums to one; the control, without the Jacobian, does not."""
    x = np.exp(np.linspace(-60.0, 60.0, 24_001))
    model = short(families=NAME, hyperparameters={NAME: {"nu0": 6.0}}).fit(amounts()[0][:, :1])
    density, of_zero = (np.exp(model.score_samples(of)) for of in (x[:, None], np.zeros((1, 1))))
    assert 0.2 < of_zero[0] < 0.6
    assert np.trapezoid(density, x) + of_zero[0] == pytest.approx(1.0, abs=1e-3)
    assert np.trapezoid(density * x, x) + of_zero[0] > 1.5


@pytest.mark.parametrize("slot", [0, 2])
def test_draws_and_what_stands_for_a_missing_cell(slot):
    """Of a slot with cells and of an empty one: outcomes' shares, their mean and spread, where the
    median stands for what is elsewhere, and a log-normal has its spread."""
    cells = np.random.default_rng(5).normal(size=12).astype(np.float32)
    cells[[0, 2, 6]], cells[4] = 0.0, 1.0
    hyper = {**HYPER, "nu0": 9.0}
    block = block_of(cells, hyper, n_slots=2)
    draws = block.sample_feature(0, np.full(40_000, slot), np.random.PCG64(1))
    values = block.in_units(OFFSET + SCALE * draws)
    held = np.where(cells > 1.0, 2.0, cells)[:12:2].tolist() if slot == 0 else []
    users = {**hyper, "mu0": OFFSET + SCALE * 0.2, "sigma2_0": 0.7 * SCALE**2}
    shares = np.exp([log_predictive(NAME, atom, held_as(held), users) for atom in AMOUNT_ATOMS])
    for atom, share in zip(AMOUNT_ATOMS, shares):
        at = np.isclose(values, atom, rtol=1e-6, atol=0.0)
        assert stats.binomtest(int(at.sum()), len(values), share).pvalue > 1e-4
    logs = np.log(values[(values > 0) & ~np.isclose(values, 1.0, rtol=1e-6)])
    median, u = np.exp(logs.mean()), np.exp(logs.var())
    mean = (1 - shares.sum()) * median + shares[1]
    square = (1 - shares.sum()) * (median**2 * u * (u - 1) + (median - mean) ** 2)
    square += shares @ (np.array(AMOUNT_ATOMS) - mean) ** 2
    shown = OFFSET + SCALE * block.predictive_mean(0)[slot]
    spread = block.spread_in_units(shown, SCALE * np.sqrt(block.predictive_variance(0)[slot]))
    assert block.in_units(shown) == pytest.approx(mean, rel=0.03)
    assert spread == pytest.approx(np.sqrt(square), rel=0.1)


@pytest.mark.parametrize("estimator", [AnnealedDPMixture, CrossCatPY])
def test_fills_and_their_spreads_are_those_of_draws(estimator):
    """The median stands for what is elsewhere, and a log-normal has its spread."""
    X = amounts(150, 1)[0]
    given = {NAME: {"kappa0": 1.0, "nu0": 6.0}}  # so that no component is very wide
    model = short(estimator, families=NAME, hyperparameters=given).fit(X)
    for first in (0.0, 60.0):
        row = np.array([[np.nan, first, 60.0]])
        value, spread = (of[0, 0] for of in model.impute(row, return_std=True))
        drawn = model.sample(40_000, given={1: first, 2: 60.0}, random_state=2)[:, 0]
        logs, zero = np.log(drawn[drawn > 0]), np.mean(drawn == 0.0)
        median, u = np.exp(logs.mean()), np.exp(logs.var())
        mean = (1 - zero) * median
        square = (1 - zero) * (median**2 * u * (u - 1) + (median - mean) ** 2) + zero * mean**2
        assert value == pytest.approx(mean, rel=0.05)
        assert spread == pytest.approx(np.sqrt(square), rel=0.1)


@pytest.mark.parametrize("seed", range(4))
def test_an_improbable_component_does_not_decide_on_the_spread(seed):
    """A new one is nearly as wide as the numbers go."""
    rng = np.random.default_rng(seed)
    X = np.exp(rng.normal(3.0 + rng.integers(2, size=(150, 1)), 1.0))
    X[rng.random(X.shape) < 0.4] = 0.0
    spread = short().fit(X).impute(np.array([[np.nan]]), return_std=True)[1]
    assert 0.0 < spread[0, 0] < 5.0 * X.std()


def held_as(values):
    """Only which are atoms counts for the atoms' probabilities: what is none becomes 2."""
    return [value if value in AMOUNT_ATOMS else 2.0 for value in values]


def test_another_unit():
    """Densities elsewhere change by the unit, an atom's probability does not."""
    X, _ = amounts()
    model, other = (short().fit(unit * X) for unit in (1.0, 64.0))
    np.testing.assert_array_equal(other.labels_, model.labels_)
    shift = np.log(64) * (X > 0).sum(axis=1)
    np.testing.assert_allclose(
        other.score_samples(64 * X) + shift, model.score_samples(X), atol=1e-4
    )
    np.testing.assert_allclose(other.impute(64 * X), 64 * model.impute(X), rtol=1e-4)


# ---- fits ---------------------------------------------------------------------------------------


def test_clusters_and_density_of_fresh_rows():
    """Against the truth; the control, normal elsewhere, needs more components and says less."""
    X, groups = amounts(1400, 5, missing=0.0)
    fresh = X[800:]
    of_amounts = np.stack([stats.lognorm(0.7, scale=np.exp(m)).logpdf(fresh) for m in CENTRES])
    of_zero, of_others = np.log(SHARES)[:, None, None], np.log1p(-SHARES)[:, None, None]
    laws = np.where(fresh == 0.0, of_zero, of_others + of_amounts)
    truth = np.logaddexp.reduce(laws.sum(axis=2) - np.log(2.0), axis=0)
    parameters = {"n_chains": 1, "random_state": 0, **CHEAP}
    model = AnnealedDPMixture(**parameters).fit(X[:800])
    assert model.n_clusters_ == model.n_components_ == 2
    agree = np.mean(model.labels_ == groups[:800])
    assert max(agree, 1 - agree) > 0.9
    assert abs(np.mean(truth - model.score_samples(fresh))) < 0.04
    control = AnnealedDPMixture(families="semi_continuous", **parameters).fit(X[:800])
    assert control.n_components_ > 2
    assert np.mean(truth - control.score_samples(fresh)) > 0.04
