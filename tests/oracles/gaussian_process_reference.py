"""Gaussian process regression by its formulas, in slow plain Python.

With K_ij = sigma_f^2 k(r_ij) + sigma_n^2 [i = j] and k* the covariances of a new point with the
rows, all by loops over pairs and coordinates:

log likelihood  -1/2 y'K^-1 y - 1/2 log det K - n/2 log 2 pi
predictive      mean k*'K^-1 y, variance sigma_f^2 + sigma_n^2 - k*'K^-1 k*
"""

import math

import numpy as np

CORRELATIONS = {
    "rbf": lambda r: math.exp(-r * r / 2),
    "matern32": lambda r: (1 + math.sqrt(3) * r) * math.exp(-math.sqrt(3) * r),
    "matern52": lambda r: (1 + math.sqrt(5) * r + 5 * r * r / 3) * math.exp(-math.sqrt(5) * r),
}


def covariance(kernel, A, B, theta):
    """Covariances of f between two sets of rows."""
    lengths = [math.exp(t) for t in theta[:-2]]
    out = np.empty((len(A), len(B)))
    for i, a in enumerate(A):
        for j, b in enumerate(B):
            r = math.sqrt(sum(((p - q) / s) ** 2 for p, q, s in zip(a, b, lengths)))
            out[i, j] = math.exp(2 * theta[-2]) * CORRELATIONS[kernel](r)
    return out


def log_likelihood(kernel, X, y, theta):
    """Log marginal likelihood of rows."""
    K = covariance(kernel, X, X, theta) + math.exp(2 * theta[-1]) * np.eye(len(X))
    sign, log_det = np.linalg.slogdet(K)
    assert sign > 0
    fit = np.asarray(y) @ np.linalg.inv(K) @ np.asarray(y)
    return -0.5 * (fit + log_det + len(X) * math.log(2 * math.pi))


def predict(kernel, X, y, theta, queries):
    """Mean and covariance of new observations."""
    noise = math.exp(2 * theta[-1])
    inverse = np.linalg.inv(covariance(kernel, X, X, theta) + noise * np.eye(len(X)))
    cross = covariance(kernel, queries, X, theta)
    prior = covariance(kernel, queries, queries, theta) + noise * np.eye(len(queries))
    return cross @ inverse @ np.asarray(y), prior - cross @ inverse @ cross.T


def log_prior(theta, length_scale=(0.5, 1.0), sigma_f=(4.0, 1.0), sigma_n=(2.0, 2.0)):
    """Log density of the logarithms: normal for length scales, gamma and a Jacobian for sigmas."""
    out = 0.0
    for t in theta[:-2]:
        z = (t - length_scale[0]) / length_scale[1]
        out -= z * z / 2 + math.log(length_scale[1]) + math.log(2 * math.pi) / 2
    for t, (shape, rate) in zip(theta[-2:], (sigma_f, sigma_n)):
        sigma = math.exp(t)
        density = rate**shape * sigma ** (shape - 1) * math.exp(-rate * sigma) / math.gamma(shape)
        out += math.log(density) + t
    return out
