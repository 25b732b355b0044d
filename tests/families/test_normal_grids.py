"""Hyperparameters of the normal families: what their grids reach, and what a fit says of the ends.

Random tests: fixed seeds, one try.
"""

import re
import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning

from oracles.cheap import CHEAP
from oracles.mixtures import make_table
from skanneal import AcceleratedDPMixture, AnnealedDPMixture, CrossCatPY, PermutationDPMixture
from skanneal.chains import ChainPlan
from skanneal.families import FAMILIES, Table
from skanneal.families._forms import diagonal, starts
from skanneal.schedules import AcceleratedSchedule, LinearAnneal, PriorGibbs

DRAWS = {"n_chains": 2, "n_draws": 10, "schedule": PriorGibbs(n_sweeps=30), "random_state": 0}
JOINT = FAMILIES["multivariate_normal"]


def table_of(X):
    """A table of a row family's cells."""
    hyper = dict(zip(JOINT.coordinate_names, (0.0, 1.0, X.shape[1] + 1.0, np.eye(X.shape[1]))))
    return make_table([("multivariate_normal", X, hyper)])


def normal_grids(X):
    """(nu0, grid of nu0 times sigma2_0) of one column."""
    _, _, nu0, variances = FAMILIES["normal"].grids(X[:, 0], 0)
    return nu0, nu0[-1] * variances


def joint_grids(X):
    """(nu0, grids of scale0's diagonal, one below another)."""
    d = X.shape[1]
    grids = JOINT.grids(table_of(X), np.arange(d))
    at = starts(JOINT.forms, d)
    return grids[at[2]], np.stack([grids[at[3] + place] for place in diagonal(d)])


def standardised(n_rows, d):
    X = np.random.default_rng(1).normal(size=(n_rows, d))
    return (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.parametrize("d", [1, 2, 20, 60])
def test_the_scale_reaches_what_one_gaussian_asks_for(d):
    """It is chi-squared(nu0) times the variance: see families/_normal_grids.py."""
    nu0, grids = joint_grids(standardised(500, d))
    for grid in grids:
        assert grid[-1] > stats.chi2(nu0[-1]).ppf(0.95)
        assert np.all(grid[1:] / grid[:-1] <= 2.0 + 1e-9)


def test_one_column_has_one_prior_in_both_families():
    X = 3.0 * standardised(500, 1)
    for one, other in zip(normal_grids(X), joint_grids(X)):
        np.testing.assert_allclose(np.squeeze(other), one, rtol=1e-6)
    mu0, kappa0, nu0, sigma2_0 = FAMILIES["normal"].default_hyper(0)
    joint = JOINT.default_hyper(table_of(X), np.arange(1))
    np.testing.assert_allclose(joint, [mu0, kappa0, nu0, nu0 * sigma2_0])


@pytest.mark.parametrize("d", [1, 3])
def test_the_start_is_on_the_grid_of_degrees_and_within_the_scales(d):
    nu0, grids = joint_grids(standardised(500, d))
    start = JOINT.default_hyper(table_of(standardised(500, d)), np.arange(d))
    assert start[d + 1] in nu0
    for place, grid in zip(diagonal(d), grids):
        assert grid[0] <= start[d + 2 + place] <= grid[-1]


def test_no_common_shape_traps_a_chain():
    """Fifteen overlapping Gaussians of many shapes, the schedule short.

    With up to d + 32 degrees of freedom chains ended with 45, 82 and 116 components.
    """
    rng = np.random.default_rng(5)
    means, turns = rng.uniform(0, 7, (15, 2)), np.eye(2) + 0.3 * rng.normal(size=(15, 2, 2))
    labels = rng.integers(15, size=4000)
    X = means[labels] + np.einsum("nij,nj->ni", turns[labels], rng.normal(size=(4000, 2)))
    model = AnnealedDPMixture(families="multivariate_normal", n_chains=3, random_state=0, **CHEAP)
    assert np.mean([chain[0].n_components for chain in model.fit(X).draws_]) <= 40


def test_no_cluster_per_row_of_a_small_subsample_traps_a_chain():
    """One Gaussian of many columns, whose subsamples of 50 rows are best told apart.

    With hyperparameters drawn from 50 rows on, both chains ended with more than 200 components.
    """
    X = np.random.default_rng(0).normal(size=(700, 20))
    schedule = LinearAnneal(n_sweeps=20, final_sweeps=2)
    model = AnnealedDPMixture(
        families="multivariate_normal", schedule=schedule, n_chains=2, random_state=0
    )
    assert max(chain[0].n_components for chain in model.fit(X).draws_) <= 5


@pytest.mark.parametrize(
    ("family", "n_rows", "d", "settled"),
    [
        ("multivariate_normal", 1000, 20, 230),  # 20 means, 210 variances and covariances
        ("multivariate_normal", 200, 20, 200),
        ("multivariate_normal", 1000, 2, 50),
        ("normal", 1000, 20, 50),
        ("normal", 100, 20, 25),
        ("normal", 30, 20, 10),
    ],
)
def test_a_chain_waits_for_the_rows_that_a_component_takes(family, n_rows, d, settled):
    table = Table(["f4"] * d, [0] * d)
    table.append([np.zeros(n_rows, np.float32)] * d)
    plan = ChainPlan(table, {family: np.arange(d)}, {}, {}, np.ones((1, 2)), ())
    assert plan.settled_rows == settled


# ------------------------------------------------------------------ what a fit says
def said(model, X):
    """What a fit says of hyperparameters at the ends of their grids."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(X)
    return [str(w.message) for w in caught if "point of its grid in" in str(w.message)]


# Clusters with means so far off ask for variances as large.
FAR = {"mu0": 1e4, "kappa0": 10.0, "nu0": 20.0}
STIFF = {"nu0": 2000.0}  # a scale of 2000 variances is what it asks for


@pytest.mark.parametrize("estimator", [AnnealedDPMixture, PermutationDPMixture])
def test_a_scale_that_cannot_be_reached_is_told(estimator):
    (message,) = said(estimator(hyperparameters={"normal": FAR}, **DRAWS), standardised(200, 1))
    assert message.startswith("sigma2_0 of the family 'normal' stays at the last point")
    assert "grid in column 0: the hyperparameters that were given ask for" in message


@pytest.mark.parametrize("families", ["normal", "multivariate_normal"])
def test_small_units_are_no_end(families):
    """The control: the end of a grid that small is told of as well."""
    X, grids = 1e-7 * standardised(200, 2), {"normal": FAR | {"mu0": 1e-3}}
    assert said(AnnealedDPMixture(families=families, **DRAWS), X) == []
    assert said(AnnealedDPMixture(families="normal", hyperparameters=grids, **DRAWS), X) != []


def test_the_diagonal_of_a_matrix_is_told_of():
    given = {"multivariate_normal": STIFF}
    model = AnnealedDPMixture(families="multivariate_normal", hyperparameters=given, **DRAWS)
    (message,) = said(model, standardised(200, 2))
    assert message.startswith("scale0 of") and re.search(
        "grid in column (0, column )?[01]: ", message
    )


@pytest.mark.slow
def test_only_the_columns_at_fault_are_named():
    X = standardised(200, 6)
    given = {"normal": FAR | {"mu0": [0.0, 1e4, 0.0, 1e4, 1e4, 1e4]}}
    (message,) = said(CrossCatPY(hyperparameters=given, **DRAWS), X)
    assert "grid in column 1, column 3, column 4 and 1 more: " in message


def test_likelihoods_on_shards_are_told_of_too():
    model = AcceleratedDPMixture(
        hyperparameters={"normal": FAR},
        n_draws=20,
        n_chains=1,
        schedule=AcceleratedSchedule(n_accelerated=0, n_exact=30),
        random_state=0,
    )
    assert len(said(model, standardised(200, 2))) == 1


def test_nothing_is_said_of_few_draws():
    model = AnnealedDPMixture(hyperparameters={"normal": FAR}, **(DRAWS | {"n_draws": 9}))
    assert not said(model, standardised(200, 2))


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
@pytest.mark.parametrize("families", ["normal", "multivariate_normal"])
@pytest.mark.few(1)
def test_nothing_is_said_of_ordinary_tables(load, families):
    assert not said(AnnealedDPMixture(families=families, **DRAWS), load().data)


def test_an_end_that_restricts_names_a_hyperparameter():
    for family in FAMILIES.values():
        assert set(family.restricting_ends) <= set(family.coordinate_names)
