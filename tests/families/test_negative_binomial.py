"""What the family of overdispersed counts has of its own: large counts, draws, the size.

Random tests: fixed seeds, one try; a goodness-of-fit test alarms falsely once in 10,000.
"""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from oracles.cheap import CHEAP
from oracles.enumeration import check_counts, count_p_value
from oracles.mixtures import hyper_vector
from oracles.reference import log_marginal, log_predictive
from skanneal import AnnealedDPMixture, CrossCatPY, PermutationDPMixture
from skanneal.families import FAMILIES, Table
from skanneal.families._negative_binomial import SIZES
from skanneal.schedules import PriorGibbs, SequentialGibbs

NAME = "negative_binomial"
HYPER = {"r": 1.75, "a": 6.0, "b": 2.0}


def block_of(counts, hyper=HYPER, n_slots=1):
    """A block whose slots hold all counts, in turn."""
    table = Table(["u4"], [0])
    table.append([np.array(counts, dtype=np.uint32)])
    block = FAMILIES[NAME](table, [0], [hyper_vector(NAME, hyper)])
    block.build(np.arange(len(counts)), np.arange(len(counts)) % n_slots, n_slots)
    return block


def overdispersed(n=60, seed=0, missing=0.1):
    """Two clusters of counts of size 2."""
    rng = np.random.default_rng(seed)
    means = np.array([3.0, 60.0])[np.arange(n) % 2, None]
    X = rng.poisson(rng.gamma(2.0, means / 2.0, (n, 4))).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return X


def fitted(estimator=AnnealedDPMixture, **parameters):
    schedule = PriorGibbs if estimator is PermutationDPMixture else SequentialGibbs
    defaults = {"families": NAME, "schedule": schedule(n_sweeps=6), "n_chains": 1, "n_draws": 1}
    return estimator(**{**defaults, "random_state": 0, **parameters})


@pytest.mark.parametrize("mean", [1e4, 1e7, 2e9])
@pytest.mark.parametrize("r", [0.1, 2.0, 500.0])
def test_large_counts_keep_their_digits(mean, r):
    """Against 45 digits. The log-gamma functions' own doubles, the control, do not."""
    rng = np.random.default_rng(3)
    counts = np.minimum(rng.gamma(5.0, mean / 5.0, 40), 4e9).astype(np.int64).tolist()
    hyper = {"r": r, "a": 1.5, "b": 0.3 * mean}
    block = block_of([*counts, int(mean)], hyper)
    block.remove_row(40, 0)
    expected = log_predictive(NAME, int(mean), counts, hyper)
    out = np.zeros((1, 1))
    block.score_rows(block.table, out, 40, 41)
    # the oracle's C(x) is in doubles: its error is what the difference of two counts is free of
    others = log_predictive(NAME, int(mean), counts[:20], hyper)
    half = block_of([*counts[:20], int(mean)], hyper)
    half.remove_row(20, 0)
    shown = np.zeros((1, 1))
    half.score_rows(half.table, shown, 20, 21)
    assert out[0, 0] - shown[0, 0] == pytest.approx(expected - others, abs=1e-5)
    assert block.row_scores(40)[0] == pytest.approx(out[0, 0], rel=1e-6)
    block.insert_row(40, 0)
    assert block.row_score_without(40, 0) == pytest.approx(out[0, 0], rel=1e-6)


def test_draws_follow_the_predictive():
    held = [0, 9, 1, 7]
    block = block_of([*held, 3])
    block.remove_row(4, 0)
    support = range(60)
    for k, cells in ((0, held), (1, [])):
        draws = block.sample_feature(0, np.full(20_000, k), np.random.PCG64(1))
        law = {x: np.exp(log_predictive(NAME, x, cells, HYPER)) for x in support}
        law["more"] = 1.0 - sum(law.values())
        counts = Counter(x if x in law else "more" for x in draws.astype(int).tolist())
        check_counts(counts, law)
        # control: one row more
        other = {x: np.exp(log_predictive(NAME, x, [*cells, 20], HYPER)) for x in support}
        other["more"] = 1.0 - sum(other.values())
        assert count_p_value(counts, other) < 1e-6
        assert draws.mean() == pytest.approx(block.predictive_mean(0)[k], rel=0.05)
        assert draws.var() == pytest.approx(block.predictive_variance(0)[k], rel=0.3)


def test_moments_are_those_of_the_predictive():
    block, x = block_of([0, 9, 1, 7]), np.arange(4000)
    law = np.exp([log_predictive(NAME, value, [0, 9, 1, 7], HYPER) for value in x[:400]])
    mean = law @ x[:400]
    assert block.predictive_mean(0)[0] == pytest.approx(mean, rel=1e-6)
    variance = law @ (x[:400] - mean) ** 2
    assert block.predictive_variance(0)[0] == pytest.approx(variance, rel=1e-5)


def test_a_given_size_is_kept_through_arrays():
    """A size that the grid does not have: the sums are those of this one."""
    counts = [0, 9, 1, 7, 600, 4]
    block = block_of(counts)
    again = FAMILIES[NAME].from_arrays(block.to_arrays(), block.table).spare(1)
    again.build(np.arange(6), np.zeros(6, int), 1)
    assert HYPER["r"] not in SIZES
    for each in (block, again, block.spare(1)):
        each.build(np.arange(6), np.zeros(6, int), 1)
        expected = log_marginal(NAME, counts, HYPER)
        assert each.log_marginals()[0] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("estimator", [AnnealedDPMixture, PermutationDPMixture, CrossCatPY])
def test_estimators(estimator):
    X = overdispersed()
    model = fitted(estimator).fit(X)
    assert np.isfinite(model.score_samples(X)).all()
    rows = model.sample(200)
    assert (rows >= 0).all() and np.array_equal(rows, np.rint(rows))
    filled, spread = model.impute(X, return_std=True)
    gaps = np.isnan(X)
    assert np.array_equal(filled[~gaps], X[~gaps])
    assert (filled[gaps] > 0).all() and (spread[gaps] > 0).all() and np.isfinite(spread).all()


def test_clusters_size_and_density_of_fresh_rows():
    """Against the truth; the control, the Poisson family, takes many clusters and loses."""
    X = overdispersed(1400, 5, missing=0.0)
    laws = [stats.nbinom(2.0, 2.0 / (2.0 + mean)) for mean in (3.0, 60.0)]
    of_group = np.stack([law.logpmf(X[800:]).sum(axis=1) for law in laws], axis=1)
    truth = np.logaddexp.reduce(of_group - np.log(2.0), axis=1)
    parameters = {"n_chains": 1, "random_state": 0, **CHEAP}
    model = AnnealedDPMixture(families=NAME, **parameters).fit(X[:800])
    assert model.n_clusters_ == 2
    sizes = model.draws_[0][0].hyperparameters[NAME]["r"]
    assert ((sizes > 1.2) & (sizes < 3.5)).all()
    assert abs(np.mean(truth - model.score_samples(X[800:]))) < 0.04
    control = AnnealedDPMixture(families="poisson", **parameters).fit(X[:800])
    assert control.n_components_ > 10
    assert np.mean(truth - control.score_samples(X[800:])) > 0.1


@pytest.mark.parametrize("cell", [-1.0, 0.5, 2.0**32])
def test_errors_name_the_column(cell):
    X = pd.DataFrame(overdispersed()[:, :2], columns=["other", "visits"])
    model = fitted(schedule=SequentialGibbs(n_sweeps=2)).fit(X)
    X.loc[3, "visits"] = cell
    for call in (model.fit, model.score_samples):
        with pytest.raises(ValueError, match="column 'visits' must hold non-negative integers"):
            call(X)
