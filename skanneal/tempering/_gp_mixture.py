"""Predictions of a Gaussian process averaged over draws of its hyperparameters."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.linalg import lapack
from scipy.special import logsumexp

from ._bound import check_shape
from ._draws import standard_normals
from ._gaussian_process_bound import covariance

CELLS = 2**21  # of the matrix of cross covariances at a time
JITTER = 1e-12  # share of the variance that a matrix without a factor is first given


class GaussianProcessMixture:
    """Draws of hyperparameters with the factors of their covariance matrices.

    Each draw stands for a Gaussian process given the training rows; a prediction is their equal
    mixture. A factor takes N (N + 1) / 2 numbers (rectangular full packed format).

    Parameters
    ----------
    target : GaussianProcessTarget
        The training rows and the kernel.
    draws : ndarray of shape (n_draws, n_parameters)
        Logarithms of length scales, sigma_f and sigma_n.
    """

    def __init__(self, target, draws):
        self.target, self.draws = target, draws
        self.factors, self.weights = zip(*map(self._condition, draws))

    def _condition(self, theta):
        """The packed factor of the covariance of the rows, and K^-1 y."""
        X, y, kernel = self.target.X, self.target.y, self.target.kernel
        K = covariance(kernel, X, X, theta)
        K[np.diag_indices_from(K)] = np.exp(2.0 * theta[-2:]).sum()
        L = cholesky(K, np.exp(2.0 * theta[-2:]).sum())
        factor, _ = lapack.dtrttf(L, uplo="L")
        weights, _ = lapack.dpftrs(len(y), factor, y, uplo="L")
        return factor, weights

    def _given_rows(self, X, s):
        """Means of f under draw s, and V with f's covariance = prior - V'V."""
        cross = covariance(self.target.kernel, self.target.X, X, self.draws[s])
        mean = cross.T @ self.weights[s]
        check_shape("a draw's factor", self.factors[s], (len(cross) * (len(cross) + 1) // 2,))
        return mean, lapack.dtfsm(1.0, self.factors[s], cross, uplo="L")

    def _chunks(self, n):
        size = max(1, CELLS // len(self.target.y))
        return [slice(start, min(start + size, n)) for start in range(0, n, size)]

    def means(self, X):
        """Mean of every draw, (n_draws, n)."""
        out = np.empty((len(self.draws), len(X)))
        for s, theta in enumerate(self.draws):
            for part in self._chunks(len(X)):
                cross = covariance(self.target.kernel, self.target.X, X[part], theta)
                out[s, part] = cross.T @ self.weights[s]
        return out

    def moments(self, X):
        """Mean and variance of a new observation under every draw, both (n_draws, n)."""
        means = np.empty((len(self.draws), len(X)))
        variances = np.empty_like(means)
        for s, theta in enumerate(self.draws):
            signal, noise = np.exp(2.0 * theta[-2:])
            for part in self._chunks(len(X)):
                means[s, part], V = self._given_rows(X[part], s)
                variances[s, part] = np.maximum(signal - (V * V).sum(axis=0), 0.0) + noise
        return means, variances

    def joint(self, X, s):
        """Mean and covariance of new observations at all rows of X under draw s."""
        mean, V = self._given_rows(X, s)
        theta = self.draws[s]
        K = covariance(self.target.kernel, X, X, theta) - V.T @ V
        K[np.diag_indices_from(K)] += np.exp(2.0 * theta[-1])
        return mean, K

    def covariance(self, X):
        """Mean and covariance of the mixture at all rows of X."""
        means, total = np.empty((len(self.draws), len(X))), np.zeros((len(X), len(X)))
        for s in range(len(self.draws)):
            means[s], K = self.joint(X, s)
            total += K
        mean = means.mean(axis=0)
        apart = means - mean
        return mean, (total + apart.T @ apart) / len(self.draws)

    def sample(self, X, n_samples, generator):
        """New observations at all rows of X, each sample of one draw: (n, n_samples)."""
        n_draws = len(self.draws)
        chosen = (generator.random(n_samples) * n_draws).astype(np.intp).clip(max=n_draws - 1)
        noise = standard_normals(generator.bit_generator, len(X) * n_samples)
        noise = noise.reshape(len(X), n_samples)
        out = np.empty((len(X), n_samples))
        for s in np.unique(chosen):
            mean, K = self.joint(X, s)
            L = np.tril(cholesky(K, np.exp(2.0 * self.draws[s, -2:]).sum()))
            out[:, chosen == s] = mean[:, None] + L @ noise[:, chosen == s]
        return out

    def log_density(self, X, y):
        """Log of the mean over draws of the density of each y alone, (n,)."""
        means, variances = self.moments(X)
        logs = -0.5 * ((y - means) ** 2 / variances + np.log(2.0 * np.pi * variances))
        return logsumexp(logs, axis=0) - np.log(len(self.draws))


def cholesky(K, variance):
    """Lower factor of a covariance matrix; what is above the diagonal is of no meaning.

    A matrix that is singular to working precision gets a little more on its diagonal: a share of
    the variance that its entries are rounded by. What is left of a variance where the training rows
    say all may itself be rounding, negative even, and no multiple of it would help.
    """
    share, diagonal = 0.0, np.diag_indices_from(K)
    given = K[diagonal].copy()
    while share <= 10.0 * len(K):  # beyond n the diagonal dominates
        L, info = lapack.dpotrf(K, lower=1, clean=0)
        if info == 0:
            return L
        share = max(JITTER, 10.0 * share)
        K[diagonal] = given + share * variance
    raise FloatingPointError("a covariance matrix has entries that are not numbers.")
