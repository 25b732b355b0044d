"""Dependence of jointly normal numbers: its odds, from marginal likelihoods of some columns."""

import numpy as np
import pytest
from scipy.special import expit

from skanneal import CrossCatPY
from skanneal.families import FAMILIES, Table
from skanneal.predictive._covariance_odds import covariance_odds

MVN = FAMILIES["multivariate_normal"]
D, K = 5, 3
MU0, KAPPA0, DELTA = np.array([0.3, -0.2, 0.0, 0.1, 0.5]), 0.2, 2.5
PSI = np.array([0.5, 1.5, 1.0, 0.7, 2.0])


def hyper(columns):
    """Of a view of some of the columns: the flat vector."""
    d = len(columns)
    packed = np.diag(PSI[columns])[np.tril_indices(d)]
    return [np.r_[MU0[columns], KAPPA0, DELTA + d - 1.0, packed]]


@pytest.fixture(scope="module")
def rows():
    """Column 2 is the sum of the first two and noise, 3 differs between components, 4 is alone."""
    rng = np.random.default_rng(0)
    labels = np.r_[np.zeros(14, int), np.ones(9, int), np.full(1, 2)]
    X = rng.normal(size=(len(labels), D))
    X[:, 2] = X[:, 0] + X[:, 1] + 0.3 * X[:, 2]
    X[:, 3] += 3.0 * (labels == 1)
    return X.astype(np.float32), labels


def block_of(rows, columns, one=False):
    X, labels = rows
    table = Table(["f4"] * D, [0] * D)
    table.append(list(X.T))
    block = MVN(table, columns, hyper(columns))
    block.build(np.arange(len(X)), 0 * labels if one else labels, K)
    return block


def log_marginal(rows, columns, one=False):
    return block_of(rows, columns, one).log_marginals().sum() if len(columns) else 0.0


def test_pairs_and_relevance_are_those_of_marginal_likelihoods(rows):
    pairs, relevant = covariance_odds(block_of(rows, list(range(D))), np.arange(K))
    every, expected = list(range(D)), np.eye(D)
    for i in range(D):
        for j in set(every) - {i}:
            alone = log_marginal(rows, sorted([i, j]))
            alone -= log_marginal(rows, [i]) + log_marginal(rows, [j])
            given = log_marginal(rows, every)
            given += log_marginal(rows, [x for x in every if x not in (i, j)])
            given -= sum(log_marginal(rows, [x for x in every if x != y]) for y in (i, j))
            expected[i, j] = expit(np.logaddexp(alone, given) - np.log(2.0))
    assert pairs == pytest.approx(expected, abs=1e-6)
    differs = [expit(log_marginal(rows, [j]) - log_marginal(rows, [j], one=True)) for j in range(D)]
    assert relevant == pytest.approx(np.max(expected * differs, axis=1), abs=1e-6)
    # a sum and its terms; the terms given the sum; what is alone
    assert min(pairs[0, 2], pairs[1, 2], pairs[0, 1]) > 0.95 and pairs[4, :4].max() < 0.5
    assert relevant[3] > 0.95


def test_two_columns_have_one_kind_of_dependence(rows):
    pairs, _ = covariance_odds(block_of(rows, [0, 2]), np.arange(K))
    alone = log_marginal(rows, [0, 2]) - log_marginal(rows, [0]) - log_marginal(rows, [2])
    assert pairs[0, 1] == pytest.approx(expit(alone), abs=1e-6)


def test_a_column_alone_may_have_to_do_with_the_components(rows):
    pairs, relevant = covariance_odds(block_of(rows, [3]), np.arange(K))
    assert pairs.tolist() == [[1.0]]
    expected = expit(log_marginal(rows, [3]) - log_marginal(rows, [3], one=True))
    assert relevant == pytest.approx([expected], abs=1e-6)


def test_one_component_says_nothing_of_relevance(rows):
    block = block_of(rows, list(range(D)), one=True)
    _, relevant = covariance_odds(block, np.arange(1))
    assert np.array_equal(relevant, np.zeros(D))


def test_columns_of_one_view_need_not_depend_on_each_other():
    """In a table of lines and noise, whatever views a draw has."""
    rng = np.random.default_rng(1)
    lines = rng.normal(size=(150, 1)) + 0.4 * rng.normal(size=(150, 3))
    X = np.hstack([lines, rng.normal(size=(150, 3))])
    model = CrossCatPY(families="multivariate_normal", n_chains=2, random_state=0).fit(X)
    found = np.asarray(model.dependence_probability())
    assert np.array_equal(found, found.T) and (np.diag(found) == 1.0).all()
    assert found[:3, :3].min() > 0.99
    noise = np.r_[found[:3, 3:].ravel(), found[3:, 3:][np.triu_indices(3, 1)]]
    assert noise.mean() < 0.1


def test_columns_that_clusters_tell_apart_depend_on_each_other():
    """Within the clusters they do not."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(120, 2)) + 12.0 * (np.arange(120) % 3 == 0)[:, None]
    model = CrossCatPY(families="multivariate_normal", n_chains=1, random_state=0).fit(X)
    last = model._queries().predictor.draws[-1][0]
    within, _ = covariance_odds(last.features[0][0], last.slots[:-1])
    assert len(last.slots) > 2 and within[0, 1] < 0.7
    assert np.asarray(model.dependence_probability())[0, 1] > 0.99
