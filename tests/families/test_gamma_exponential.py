"""What the family of waiting times has of its own: units, draws, moments, far cells, errors.

Random tests: fixed seeds, one try; a goodness-of-fit test alarms falsely once in 10,000.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone

from oracles.cheap import CHEAP
from oracles.mixtures import hyper_vector, make_mixture
from oracles.reference import log_marginal, log_predictive
from skanneal import AnnealedDPMixture, CrossCatPY, PermutationDPMixture
from skanneal.families import FAMILIES, Table
from skanneal.schedules import PriorGibbs, SequentialGibbs

NAME = "gamma_exponential"
HYPER = {"a": 1.5, "b": 2.0}


def block_of(cells, scale=1.0, hyper=HYPER):
    """A block whose slot 0 holds all cells."""
    table = Table(["f4"], [0], [0.0], [scale])
    table.append([np.float32(cells)])
    block = FAMILIES[NAME](table, [0], [hyper_vector(NAME, hyper)])
    block.build(np.arange(len(cells)), np.zeros(len(cells), int), 1)
    return block


def times(n=60, seed=0):
    """Two clusters of waiting times; a tenth of the cells are missing, one is 0."""
    rng = np.random.default_rng(seed)
    X = rng.exponential(np.array([[1.0], [40.0]])[np.arange(n) % 2], (n, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    X[0, 0] = 0.0
    return X


def fitted(estimator=AnnealedDPMixture, **parameters):
    schedule = PriorGibbs if estimator is PermutationDPMixture else SequentialGibbs
    defaults = {"families": NAME, "schedule": schedule(n_sweeps=6), "n_chains": 1, "n_draws": 1}
    return estimator(**{**defaults, "random_state": 0, **parameters}).fit(times())


def test_scores_are_in_the_users_units():
    cells, scale = np.float32([0.5, 0.0, 2.0, 0.25]), 8.0
    users = {"a": HYPER["a"], "b": scale * HYPER["b"]}
    values = (scale * cells.astype(float)).tolist()
    block = block_of(cells, scale)
    expected = log_marginal(NAME, values, users)
    assert block.log_marginals()[0] + block.log_jacobian() == pytest.approx(expected, rel=1e-12)
    out = np.zeros((1, 1))
    block.score_rows(block.table, out, 2, 3)
    expected = log_predictive(NAME, values[2], values, users)
    assert out[0, 0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("cells", [[], [0.5, 0.0, 3.0]], ids=["empty", "three"])
def test_draws_follow_the_predictive(cells):
    block = block_of([*cells, 1.0])
    block.remove_row(len(cells), 0)
    shape, scale = HYPER["a"] + len(cells), HYPER["b"] + sum(cells)
    draws = block.sample_feature(0, np.zeros(20_000, int), np.random.PCG64(1))
    assert stats.kstest(draws, stats.lomax(shape, scale=scale).cdf).pvalue > 1e-4
    # control: the exponential of the posterior mean rate
    assert stats.kstest(draws, stats.expon(scale=scale / shape).cdf).pvalue < 1e-6


def test_moments_and_what_stands_for_infinite_ones():
    law = stats.lomax(4.5, scale=2.0 + 3.5)
    block = block_of([0.5, 0.0, 3.0])
    assert block.predictive_mean(0)[0] == pytest.approx(law.mean())
    assert block.predictive_variance(0)[0] == pytest.approx(law.var())
    # alpha = 1.5 counts as 2 in the mean and as 3 in the variance
    assert block.predictive_mean(0)[1] == 2.0
    assert block.predictive_variance(0)[1] == 12.0


def test_a_far_cell_leaves_the_others_sum():
    values = [0.3, 0.7, 1e14, 0.1]
    mixture, _ = make_mixture([(NAME, np.float32(values).astype(float).tolist(), HYPER)])
    mixture.subsample.fill()
    mixture.replace(np.arange(4), np.zeros(4, int))
    mixture.remove_row(2)
    (total,) = mixture.blocks[0].to_arrays()["total"][:, 0]
    assert total == np.float32([0.3, 0.7, 0.1]).astype(float).sum()


@pytest.mark.parametrize("estimator", [AnnealedDPMixture, PermutationDPMixture, CrossCatPY])
def test_estimators(estimator):
    model, X = fitted(estimator), times()
    assert np.isfinite(model.score_samples(X)).all()
    rows = model.sample(200)
    assert np.isfinite(rows).all() and (rows >= 0).all()
    filled, spread = model.impute(X, return_std=True)
    gaps = np.isnan(X)
    assert np.array_equal(filled[~gaps], X[~gaps])
    assert (filled[gaps] > 0).all() and (spread[gaps] > 0).all() and np.isfinite(spread).all()
    # in another unit, a power of two, all is the same but for the densities' unit
    other = clone(model).fit(64 * X)
    assert np.array_equal(other.labels_, model.labels_)
    shift = np.log(64) * (~gaps).sum(axis=1)
    np.testing.assert_allclose(other.score_samples(64 * X) + shift, model.score_samples(X), 1e-9)


def test_hyperparameters_are_in_the_users_units():
    model = fitted(hyperparameters={NAME: {"b": 30.0}})
    np.testing.assert_allclose(model.draws_[0][-1].hyperparameters[NAME]["b"], 30.0)
    (grid, *_) = fitted().hyperparameter_grids_[NAME]["b"]
    column = times()[:, 0]
    assert grid[0] == pytest.approx(0.1 * np.nanquantile(column[column > 0], 0.05), rel=1e-5)
    assert grid[-1] == pytest.approx(100 * np.nanmean(column[column > 0]), rel=1e-5)


def test_clusters_of_short_times_keep_their_scale():
    """Scales 1 to 3600 in one column: the prior of all leaves the shortest alone.

    With known labels, held-out rows would lose 14 / (2 * 1200) = 0.006 nats on average. The
    control has b at a tenth of the columns' mean, which is many times the shortest scale.
    """
    rng = np.random.default_rng(5)
    scales = np.array([1.0, 60.0, 3600.0])
    groups = rng.integers(3, size=1800)
    X = rng.exponential(scales[groups, None], size=(1800, 4))
    of_group = np.stack([-4 * np.log(s) - X[1200:].sum(axis=1) / s for s in scales], axis=1)
    truth = np.logaddexp.reduce(of_group - np.log(3.0), axis=1)
    model = AnnealedDPMixture(families=NAME, n_chains=1, random_state=0, **CHEAP).fit(X[:1200])
    assert model.n_clusters_ == 3
    assert np.mean(truth - model.score_samples(X[1200:])) < 0.02
    model.set_params(hyperparameters={NAME: {"b": 0.1 * X.mean()}}).fit(X[:1200])
    assert np.mean(truth - model.score_samples(X[1200:])) > 0.025


def test_constant_columns_are_columns_as_others():
    model = fitted()
    for value in (0.0, 5.0):
        model.fit(np.full((20, 2), value))
        assert list(model.families_) == [NAME]
        assert np.isfinite(model.score_samples([[value, value], [value + 1, value]])).all()


def test_it_is_never_chosen_by_itself():
    model = AnnealedDPMixture(n_chains=1, random_state=0, **CHEAP)
    assert NAME not in model.fit(times()).families_


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (-0.5, "column 'wait' must hold numbers of at least 0, got -0.5"),
        (np.inf, "infinity .* in column 'wait'"),
        (-np.inf, "infinity .* in column 'wait'"),
    ],
)
def test_errors_name_the_column(cell, message):
    model = AnnealedDPMixture(families=NAME, n_chains=1, n_draws=1, random_state=0)
    X = pd.DataFrame(np.abs(times()[:, :2]), columns=["other", "wait"])
    model.set_params(schedule=SequentialGibbs(n_sweeps=2)).fit(X)
    X.loc[3, "wait"] = cell
    for call in (model.fit, model.score_samples):
        with pytest.raises(ValueError, match=message):
            call(X)
