"""Data, models and movers of the paper on the permutation-augmented sampler.

Synthetic means are N(0, 2 I) and N(0, 100 I) in the model, covariances I. MNIST: every pixel
standardised (which gives the paper's range of log joint), leading principal components, covariance
16 I. AP news: word counts of 2246 documents; log joints without the multinomial coefficients, which
are the same for all partitions.
"""

import functools
import os
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import gammaln
from sklearn.exceptions import ConvergenceWarning

from papers.processor_time import processor_clock
from skanneal import PermutationDPMixture
from skanneal.moves import MOVES, Permutation, SplitMerge

MEAN_VARIANCE, PRIOR_VARIANCE = 2.0, 100.0  # of the synthetic clusters' means, and in the model
MNIST_VARIANCE = 16.0
POINTS = 10_000


class UniformPairs(SplitMerge):
    """Dahl's split-merge: both rows of a pair are uniform."""

    def __init__(self, grid=None):
        super().__init__(n_proposals=20, grid=grid, uniform_pairs=True)


class MeanOfBurnIn(Permutation):
    """The paper's reference number of clusters, at which tau is taken after burn-in: their mean
    number in burn-in. The package's is their number at its end."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.counts = []

    def sweep(self, state, bit_generator, *, beta=1.0):
        """One order."""
        if self.burn_in:
            self.counts.append(state.n_clusters)
        elif self.counts:
            self.tuning = round(np.mean(self.counts))
        return super().sweep(state, bit_generator, beta=beta)


def synthetic(rng, n_rows, n_clusters, n_dims):
    """Points, and the clusters they come from."""
    means = rng.normal(0, MEAN_VARIANCE**0.5, (n_clusters, n_dims))
    labels = rng.integers(n_clusters, size=n_rows)
    return means[labels] + rng.normal(size=(n_rows, n_dims)), labels


def data_file(name):
    """Path of a file in the folder that ``run.py --data`` names."""
    return Path(os.environ["SKANNEAL_DATA"], name)


def mnist(rng, n_rows, n_dims):
    """Leading principal components of standardised pixels of random digits."""
    with np.load(data_file("mnist.npz")) as file:
        X = file["X_train"]
    X = X[np.sort(rng.permutation(len(X))[:n_rows])].astype(float)
    X = X[:, X.std(axis=0) > 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    _, vectors = np.linalg.eigh(X.T @ X)
    return X @ vectors[:, ::-1][:, :n_dims]


def ap_news():
    """Word counts, and the sum of the documents' log multinomial coefficients."""
    with np.load(data_file("ap_news.npz")) as file:
        arrays = file["data"].astype(np.int64), file["indices"], file["indptr"]
        X = csr_matrix(arrays, shape=tuple(file["shape"]))
    X = X[:, np.flatnonzero(X.sum(axis=0))]
    log_coefficients = gammaln(X.sum(axis=1) + 1.0).sum() - gammaln(X.data + 1.0).sum()
    return X, float(log_coefficients)


def normal_options(variance):
    """Of an estimator: normal clusters of this covariance."""
    known = {"covariance": variance, "prior_mean": 0.0, "prior_covariance": PRIOR_VARIANCE}
    return {"families": "known_normal", "hyperparameters": {"known_normal": known}}


@functools.cache
def problem(kind, *sizes):
    """Data, the estimator's options, and what to subtract from the log joint."""
    if kind == "synthetic":
        rng = np.random.default_rng([0, *sizes])
        return synthetic(rng, POINTS, *sizes)[0], normal_options(1.0), 0.0
    if kind == "mnist":
        rng = np.random.default_rng([1, *sizes])
        return mnist(rng, *sizes), normal_options(MNIST_VARIANCE), 0.0
    X, log_coefficients = ap_news()
    return X, {"families": "multinomial"}, log_coefficients


def fit(X, seed, *, uniform_pairs=False, mean_of_burn_in=False, **options):
    """A fitted model of one chain, whose clock counts processor seconds."""
    model = PermutationDPMixture(n_chains=1, n_jobs=1, random_state=seed, **options)
    papers = {"split_merge": UniformPairs} if uniform_pairs else {}
    papers |= {"permutation": MeanOfBurnIn} if mean_of_burn_in else {}
    with processor_clock(), mock.patch.dict(MOVES, papers), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # what is shown is how it gets there
        return model.fit(X)
