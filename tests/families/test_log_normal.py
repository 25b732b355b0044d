"""What the family of amounts has of its own: the Jacobian, units, medians, errors.

Random tests: fixed seeds, one try.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from oracles.cheap import CHEAP
from oracles.mixtures import hyper_vector
from oracles.reference import log_marginal, log_predictive
from skanneal import AnnealedDPMixture, CrossCatPY, PermutationDPMixture
from skanneal.families import FAMILIES, Table
from skanneal.schedules import PriorGibbs, SequentialGibbs

NAME = "log_normal"
HYPER = {"mu0": 0.2, "kappa0": 0.5, "nu0": 3.0, "sigma2_0": 0.7}


def amounts(n=60, seed=0):
    """Two clusters of amounts; a tenth of the cells are missing."""
    rng = np.random.default_rng(seed)
    X = np.exp(rng.normal(np.array([[0.0], [5.0]])[np.arange(n) % 2], 0.8, (n, 4)))
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def fitted(estimator=AnnealedDPMixture, **parameters):
    schedule = PriorGibbs if estimator is PermutationDPMixture else SequentialGibbs
    defaults = {"families": NAME, "schedule": schedule(n_sweeps=6), "n_chains": 1, "n_draws": 1}
    return estimator(**{**defaults, "random_state": 0, **parameters})


def test_scores_are_in_the_users_units():
    """Density of x itself, from cells that are standardised logarithms."""
    offset, scale = 1.25, 0.5
    cells = np.float32(np.random.default_rng(3).normal(size=12))
    values = np.exp(offset + scale * cells.astype(float)).tolist()
    users = {**HYPER, "mu0": offset + scale * 0.2, "sigma2_0": 0.7 * scale**2}
    table = Table(["f4"], [0], [offset], [scale])
    table.append([cells])
    block = FAMILIES[NAME](table, [0], [hyper_vector(NAME, HYPER)])
    block.build(np.arange(11), np.arange(11) % 3, 3)
    expected = sum(log_marginal(NAME, values[k:11:3], users) for k in range(3))
    shown = block.log_marginals().sum() + block.log_jacobian()
    assert shown == pytest.approx(expected, rel=1e-10)
    out = np.zeros((1, 3))
    block.score_rows(table, out, 11, 12)
    expected = [log_predictive(NAME, values[11], values[k:11:3], users) for k in range(3)]
    np.testing.assert_allclose(out[0], expected, rtol=1e-9)


def test_the_density_is_that_of_the_amount():
    """It sums to one over amounts; the control, without the Jacobian, does not."""
    x = np.exp(np.linspace(-60.0, 60.0, 24_001))
    model = fitted(hyperparameters={NAME: {"nu0": 6.0}}).fit(amounts()[:, :1])
    density = np.exp(model.score_samples(x[:, None]))
    assert np.trapezoid(density, x) == pytest.approx(1.0, abs=1e-3)
    assert np.trapezoid(density * x, x) > 1.5


@pytest.mark.parametrize("estimator", [AnnealedDPMixture, PermutationDPMixture, CrossCatPY])
def test_it_is_the_normal_family_on_the_logarithms(estimator):
    """The same clusters, draws and answers; densities are over x."""
    X = amounts()
    model = fitted(estimator).fit(X)
    normal = fitted(estimator, families="normal").fit(np.log(X))
    np.testing.assert_array_equal(model.labels_, normal.labels_)
    jacobian = -np.nansum(np.log(X), axis=1)
    np.testing.assert_allclose(
        model.score_samples(X), normal.score_samples(np.log(X)) + jacobian, atol=1e-6
    )
    (ours,), (theirs,) = model.draws_[0], normal.draws_[0]
    assert ours.log_joint == pytest.approx(theirs.log_joint + jacobian.sum(), abs=1e-3)
    for name, values in theirs.hyperparameters["normal"].items():
        np.testing.assert_array_equal(ours.hyperparameters[NAME][name], values)
    normal._reach = model._reach
    np.testing.assert_allclose(model.sample(50), np.exp(normal.sample(50)), rtol=1e-12)
    np.testing.assert_allclose(model.impute(X), np.exp(normal.impute(np.log(X))), rtol=1e-9)
    np.testing.assert_allclose(
        model.surprisal(X), normal.surprisal(np.log(X)) + np.log(X), atol=1e-6
    )
    given = model.sample(5, given={1: 3.0})
    assert (given[:, 1] == 3.0).all()
    assert (given > 0).all()


def test_moments():
    """What fills a gap is the median; its spread is that of a log-normal of this median."""
    family, median, deviation = FAMILIES[NAME], np.array([0.5, 20.0]), np.array([0.3, 1.2])
    numbers = np.log(median)
    np.testing.assert_allclose(family.in_units(numbers), stats.lognorm(1.0, scale=median).median())
    law = stats.lognorm(deviation, scale=median)
    np.testing.assert_allclose(family.spread_in_units(numbers, deviation), law.std())
    assert family.spread_in_units(np.zeros(1), np.zeros(1)) == 0.0
    wild = np.array([-1e6, 1e6])
    assert np.isfinite(family.in_units(wild)).all() and (family.in_units(wild) > 0).all()
    assert np.isfinite(family.spread_in_units(wild, 1e6)).all()
    X = amounts()
    filled, spread = fitted().fit(X).impute(X, return_std=True)
    gaps = np.isnan(X)
    assert np.array_equal(filled[~gaps], X[~gaps])
    assert (filled[gaps] > 0).all() and (spread[gaps] > 0).all() and np.isfinite(spread).all()


def test_another_unit():
    """Amounts in another currency: all is the same but for the densities' unit."""
    X = amounts()
    model = fitted().fit(X)
    other = clone(model).fit(1000 * X)
    np.testing.assert_array_equal(other.labels_, model.labels_)
    shift = np.log(1000) * (~np.isnan(X)).sum(axis=1)
    np.testing.assert_allclose(other.score_samples(1000 * X) + shift, model.score_samples(X), 1e-4)
    (ours,), (theirs,) = (m.draws_[0] for m in (model, other))
    before, after = (draw.hyperparameters[NAME] for draw in (ours, theirs))
    np.testing.assert_allclose(after["mu0"], before["mu0"] + np.log(1000), rtol=1e-4)
    np.testing.assert_allclose(after["sigma2_0"], before["sigma2_0"], rtol=1e-4)


def test_clusters_and_density_of_fresh_rows():
    """Three clusters of amounts over four decades; rows not seen, against the truth.

    The normal family, the control, takes more components and loses more than half a nat a row.
    """
    rng = np.random.default_rng(7)
    centres, deviations = np.log([1.0, 30.0, 2000.0]), np.array([0.6, 0.9, 0.5])
    groups = rng.integers(3, size=1200)
    X = np.exp(rng.normal(centres[groups, None], deviations[groups, None], size=(1200, 4)))
    laws = [stats.lognorm(s, scale=np.exp(m)) for m, s in zip(centres, deviations)]
    of_group = np.stack([law.logpdf(X[800:]).sum(axis=1) for law in laws], axis=1)
    truth = np.logaddexp.reduce(of_group - np.log(3.0), axis=1)
    parameters = {"n_chains": 1, "random_state": 0, **CHEAP}
    model = AnnealedDPMixture(families=NAME, **parameters).fit(X[:800])
    assert model.n_clusters_ == 3
    assert np.mean(truth - model.score_samples(X[800:])) < 0.04
    control = AnnealedDPMixture(families="normal", **parameters).fit(X[:800])
    assert np.mean(truth - control.score_samples(X[800:])) > 0.5
    assert control.n_components_ > 3


def test_a_column_of_one_value_is_set_apart():
    X = np.column_stack([amounts(20)[:, 0], np.full(20, 3.3)])
    model = fitted().fit(X)
    assert model.families_["constant"].tolist() == [1]
    assert (model.sample(4)[:, 1] == 3.3).all()
    alone = fitted().fit(X[:, 1:])
    np.testing.assert_allclose(alone.score_samples([[3.3], [3.4]]), [0.0, -np.inf], atol=1e-12)
    assert np.isfinite(alone.draws_[0][0].log_joint)


def test_auto_takes_it_for_amounts_and_not_for_their_logarithms():
    assert fitted(families="auto").fit(amounts()).families_[NAME].tolist() == [0, 1, 2, 3]
    assert NAME not in fitted(families="auto").fit(np.log(amounts())).families_


def test_later_rows_may_have_a_zero_where_nobody_asked_for_logarithms():
    """It counts as half of the least number of the fit, so that no fold of a validation fails."""
    X = amounts()
    model = fitted(families="auto").fit(X)
    least = np.nanmin(X[:, 0])
    rows = np.repeat(X[:1], 3, axis=0)
    rows[:, 0] = [0.0, least / 2.0, least]
    scores = model.score_samples(rows)
    assert scores[0] == scores[1] != scores[2] and np.isfinite(scores).all()
    X[5, 0] = 0.0
    assert np.isfinite(cross_val_score(fitted(families="auto"), X, cv=3)).all()
    with pytest.raises(ValueError, match="above 0, got 0"):
        fitted().fit(X[6:]).score_samples(rows)
    assert np.isfinite(model.score_samples(-np.ones((1, 4)))).all()  # nor does one of a refund


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (0.0, "column 'price' must hold numbers above 0, got 0"),
        (-2.5, "column 'price' must hold numbers above 0, got -2.5"),
        (np.inf, "infinity .* in column 'price'"),
    ],
)
def test_errors_name_the_column(cell, message):
    X = pd.DataFrame(amounts()[:, :2], columns=["other", "price"])
    model = fitted(schedule=SequentialGibbs(n_sweeps=2)).fit(X)
    X.loc[3, "price"] = cell
    for call in (model.fit, model.score_samples):
        with pytest.raises(ValueError, match=message):
            call(X)
