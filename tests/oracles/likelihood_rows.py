"""Rows for every likelihood whose parameters are drawn, and what it says of them."""

import numpy as np
import pytest
from scipy import stats

from skanneal.likelihoods import LIKELIHOODS

LEVEL, N_ROWS = 1e-4, 23
NUMBERS = ["normal", "multivariate_normal"]
every = pytest.mark.parametrize("name", LIKELIHOODS)
HYPER = {
    "multinomial": [[0.6, 1.1, 0.8]],
    "poisson": [[1.5, 0.6], [0.7, 1.0], [2.0, 0.4]],
    "normal": [[0.3, 0.5, 3.0, 0.7], [0.0, 1.0, 5.0, 0.4], [-0.2, 0.3, 4.0, 1.1]],
    "multivariate_normal": [[0.3, -0.1, 0.2, 0.5, 6.0, 0.9, 0.3, 0.7, -0.2, 0.1, 1.2]],
}


def make_rows(name, n_rows=N_ROWS, seed=0):
    """Rows of three columns that a likelihood can be of."""
    rng = np.random.default_rng(seed)
    if name in NUMBERS:
        return rng.normal([0.0, 50.0, -3.0], [1.0, 7.0, 0.01], (n_rows, 3))
    X = rng.poisson([2.0, 0.5, 4.0], (n_rows, 3))
    if name != "poisson":
        X[X.sum(axis=1) == 0, 1] = 1
    return X


def make(name, **options):
    """(likelihood, its rows, X)."""
    X = make_rows(name, **options)
    if name == "logistic_normal":
        likelihood = LIKELIHOODS[name].of(X, rank=2, scale=0.8)
    else:
        likelihood = LIKELIHOODS[name].of(X, HYPER[name])
    return likelihood, likelihood.encode(X), X


def rng_of(seed):
    return np.random.default_rng(seed)


def scores(likelihood, rows, theta):
    out = np.full((len(rows), len(theta)), np.nan, dtype=np.float32)
    likelihood.log_lik(rows, likelihood.prepare(theta), out)
    return out


def ks(sample, law):
    p_value = stats.kstest(sample, law).pvalue
    assert p_value > LEVEL, p_value
    return p_value


def partition(likelihood, rows, n_features=4, seed=15):
    labels = rng_of(seed).integers(n_features, size=len(rows)).astype(np.int32)
    labels[:n_features] = np.arange(n_features)
    statistics = likelihood.statistics(rows, labels, n_features)
    return labels, statistics, np.bincount(labels, minlength=n_features)
