"""Columns with atoms: the rule that finds them, probabilities beside densities, units, queries.

Random tests: fixed seeds, one try.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone

from oracles.cheap import CHEAP, short
from oracles.mixtures import hyper_vector
from oracles.reference import ATOMS, log_marginal, log_predictive
from skanneal import AnnealedDPMixture, CrossCatPY, PermutationDPMixture
from skanneal.encoding._atoms import atoms_of
from skanneal.families import FAMILIES, Table

NAME = "semi_continuous"
HYPER = {"mu0": 0.2, "kappa0": 0.5, "nu0": 3.0, "sigma2_0": 0.7, "a": 0.6, "b": 1.7}
SHARES, CENTRES = np.array([0.7, 0.1]), np.array([2.0, 8.0])  # of zeros; of what is elsewhere


def amounts(n=120, seed=0, missing=0.1):
    """(rows, clusters): two clusters with zeros and numbers elsewhere."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(2, size=n)
    X = rng.normal(CENTRES[groups, None], 1.0, (n, 4))
    X[rng.random(X.shape) < SHARES[groups, None]] = 0.0
    X[rng.random(X.shape) < missing] = np.nan
    return X, groups


# ---- the rule -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [100, 1000, 20_000])
def test_atoms_are_found(n):
    rng = np.random.default_rng(1)
    zeros = np.where(rng.random(n) < 0.2, 0.0, rng.exponential(size=n))
    assert atoms_of(zeros).tolist() == [0.0]
    assert atoms_of(np.where(zeros == 0, -999.0, zeros.round(2))).tolist() == [-999.0]
    assert atoms_of(np.clip(rng.normal(size=n), -0.5, 0.5)).tolist() == [-0.5, 0.5]
    both = np.where(rng.random(n) < 0.2, 0.5, zeros)
    assert atoms_of(both).tolist() == [0.0, 0.5]


@pytest.mark.parametrize("n", [100, 1000, 20_000])
@pytest.mark.parametrize("steps", [1, 3, 10, 100, 1e6])
@pytest.mark.few(5)
def test_rounding_makes_no_atoms(n, steps):
    """`steps` of the lattice to a standard deviation."""
    rng = np.random.default_rng(2)
    for values in (rng.normal(size=n), rng.exponential(size=n), rng.uniform(-1.7, 1.7, size=n)):
        assert not len(atoms_of(np.round(values * steps) / steps))


def test_few_values_are_no_atoms():
    assert not len(atoms_of(np.repeat(np.arange(8.0), 50)))
    assert not len(atoms_of(np.empty(0)))
    assert not len(atoms_of(np.r_[np.zeros(9), np.arange(1.0, 30.0)]))
    assert len(atoms_of(np.r_[np.zeros(10), np.arange(1.0, 30.0)]))


@pytest.mark.parametrize("n, steps", [(1000, 4), (1000, 10), (20_000, 4), (20_000, 20)])
def test_rows_rounded_more_coarsely_than_others_make_no_atoms(n, steps):
    """Half of the rows on a lattice; a zero is an atom among them, and so are few values."""
    rng = np.random.default_rng(3)
    uniform = rng.uniform(0.1, 3, size=n)
    values = np.where(rng.random(n) < 0.5, np.round(uniform * steps) / steps, uniform)
    assert (np.unique(values, return_counts=True)[1] >= 10).sum() > 8
    assert not len(atoms_of(values))
    zeros = np.where(rng.random(n) < 0.5, 0.0, values)
    assert atoms_of(zeros).tolist() == [0.0]
    doses = rng.choice(np.linspace(0.2, 2.8, 8), size=n)
    assert len(atoms_of(np.where(rng.random(n) < 0.5, doses, uniform))) == 8
    rates = rng.choice(np.geomspace(0.2, 2.8, 12), size=n)  # many, and on no lattice
    assert len(atoms_of(np.where(rng.random(n) < 0.5, rates, uniform))) == 12


def test_few_cells_at_atoms_are_for_the_user_to_name():
    """Three in a hundred: "auto" leaves the column to the families of numbers."""
    X = np.random.default_rng(8).normal(size=(1000, 2))
    X[:30, 0] = 0.0
    assert NAME not in short(CrossCatPY).fit(X).families_
    assert short(CrossCatPY, families={NAME: [0]}).fit(X).atoms_[0].tolist() == [0.0]


# ---- units --------------------------------------------------------------------------------------


def test_an_atom_has_a_probability_and_the_others_a_density():
    """In the user's units; counting the atoms as densities, the control, is another number."""
    offset, scale = 1.25, 0.5
    atoms = np.float32((np.array(ATOMS) - offset) / scale)
    cells = np.float32(np.random.default_rng(3).normal(size=14))
    cells[[0, 3, 4, 13]], cells[7] = atoms[1], atoms[0]
    values = (offset + scale * cells.astype(float)).tolist()
    users = {**HYPER, "mu0": offset + scale * 0.2, "sigma2_0": 0.7 * scale**2}
    table = Table(["f4"], [0], [offset], [scale], [atoms])
    table.append([cells])
    block = FAMILIES[NAME](table, [0], [hyper_vector(NAME, HYPER)])
    block.build(np.arange(12), np.arange(12) % 3, 3)
    expected = sum(log_marginal(NAME, values[k:12:3], users) for k in range(3))
    shown = block.log_marginals().sum() + block.log_jacobian()
    assert shown == pytest.approx(expected, rel=1e-10)
    as_densities = block.log_marginals().sum() - 12 * np.log(scale)
    assert abs(as_densities - expected) > 1.0
    out = np.zeros((2, 3))
    block.score_rows(table, out, 12, 14)
    expected = [
        [log_predictive(NAME, values[i], values[k:12:3], users) for k in range(3)] for i in (12, 13)
    ]
    np.testing.assert_allclose(out, expected, rtol=1e-9)


@pytest.mark.parametrize("slot", [0, 1])
def test_draws_and_moments(slot):
    """Of a slot with cells and of an empty one."""
    table = Table(["f4"], [0], atoms=[np.float32(ATOMS)])
    cells = np.float32([0.0, 1.5, 0.0, 2.0, -0.5, 0.25, 0.0])
    table.append([cells])
    hyper = {**HYPER, "nu0": 9.0}
    block = FAMILIES[NAME](table, [0], [hyper_vector(NAME, hyper)])
    block.build(np.arange(7), np.zeros(7, int), 2)
    draws = block.sample_feature(0, np.full(40_000, slot), np.random.PCG64(1))
    held = cells.tolist() if slot == 0 else []
    for atom in ATOMS:
        share = np.exp(log_predictive(NAME, atom, held, hyper))
        assert stats.binomtest(int(np.sum(draws == atom)), len(draws), share).pvalue > 1e-4
    assert abs(draws.mean() - block.predictive_mean(0)[slot]) < 5 * draws.std() / 200
    assert draws.var() == pytest.approx(block.predictive_variance(0)[slot], rel=0.1)


# ---- fits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [AnnealedDPMixture, PermutationDPMixture, CrossCatPY])
@pytest.mark.few(1)
def test_it_is_chosen_where_there_are_atoms(estimator):
    X, _ = amounts()
    frame = pd.DataFrame(X, columns=list("abcd")).assign(
        e=np.random.default_rng(4).normal(size=120)
    )
    model = short(estimator).fit(frame)
    assert {name: of.tolist() for name, of in model.families_.items()} == {
        "normal": [4],
        NAME: [0, 1, 2, 3],
    }
    assert {j: atoms.tolist() for j, atoms in model.atoms_.items()} == dict.fromkeys(
        range(4), [0.0]
    )
    assert np.isfinite(model.score_samples(frame)).all()
    rows = model.sample(200).to_numpy()
    assert 0.2 < np.mean(rows[:, :4] == 0.0) < 0.7
    assert (rows[:, 4] != 0.0).all()
    filled, spread = model.impute(frame, return_std=True)
    spread = spread.to_numpy()
    gaps = np.isnan(frame.to_numpy())
    assert np.array_equal(filled.to_numpy()[~gaps], frame.to_numpy()[~gaps])
    assert np.isfinite(filled.to_numpy()).all() and (spread[gaps] > 0).all()
    # one's own choice
    other = short(estimator, families={"normal": list("abc")}).fit(frame)
    assert list(other.atoms_) == [3]  # of numbers or of logarithms, whichever goes better
    # a query in float32 has the same atoms
    single = model.score_samples(frame.astype("float32"))
    np.testing.assert_allclose(single, model.score_samples(frame), atol=1e-3)


def test_another_unit():
    """A power of two: all is the same but for the densities' unit, which an atom has not."""
    X, _ = amounts()
    model = short().fit(X)
    other = clone(model).fit(64 * X)
    np.testing.assert_array_equal(other.labels_, model.labels_)
    elsewhere = (~np.isnan(X) & (X != 0)).sum(axis=1)
    shift = np.log(64) * elsewhere
    np.testing.assert_allclose(other.score_samples(64 * X) + shift, model.score_samples(X), 1e-9)
    (ours,), (theirs,) = (m.draws_[0] for m in (model, other))
    assert theirs.log_joint + shift.sum() == pytest.approx(ours.log_joint)
    filled = other.impute(64 * X)
    np.testing.assert_allclose(filled, 64 * model.impute(X), rtol=1e-6)


def test_clusters_and_density_of_fresh_rows():
    """Against the truth, whose density is over counting and Lebesgue measure, as the family's is.

    The control, the normal family, makes clusters of the zeros, with densities that mean nothing.
    """
    X, groups = amounts(1400, 5, missing=0.0)
    laws = np.stack([stats.norm(m, 1.0).logpdf(X[800:]) for m in CENTRES])
    of_zero, of_others = np.log(SHARES)[:, None, None], np.log1p(-SHARES)[:, None, None]
    cells = np.where(X[800:] == 0.0, of_zero, of_others + laws)
    truth = np.logaddexp.reduce(cells.sum(axis=2) - np.log(2.0), axis=0)
    parameters = {"n_chains": 1, "random_state": 0, **CHEAP}
    model = AnnealedDPMixture(**parameters).fit(X[:800])
    assert model.n_clusters_ == 2
    agree = np.mean(model.labels_ == groups[:800])
    assert max(agree, 1 - agree) > 0.9
    assert abs(np.mean(truth - model.score_samples(X[800:]))) < 0.04
    control = AnnealedDPMixture(families="normal", **parameters).fit(X[:800])
    assert control.n_clusters_ > 4
    assert np.mean(control.score_samples(X[800:]) - truth) > 1.0


def test_named_without_atoms_it_is_the_normal_family():
    """No value repeats: which of one outcome it is says nothing."""
    X = np.random.default_rng(6).normal(size=(60, 2))
    of_normal = {name: HYPER[name] for name in FAMILIES["normal"].names()}
    model, normal = (
        short(families=name, hyperparameters={name: given}).fit(X)
        for name, given in ((NAME, HYPER), ("normal", of_normal))
    )
    assert model.atoms_ == {}
    np.testing.assert_array_equal(model.labels_, normal.labels_)
    np.testing.assert_allclose(model.score_samples(X), normal.score_samples(X), atol=1e-6)


def test_a_column_of_one_value_is_set_apart():
    X = np.column_stack([amounts(40)[0][:, 0], np.full(40, 3.3)])
    model = short(families=NAME).fit(X)
    assert model.families_["constant"].tolist() == [1]
    assert (model.sample(4)[:, 1] == 3.3).all()
