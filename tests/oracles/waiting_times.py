"""A likelihood that is not conjugate: waiting times with a log-normal rate."""

import numpy as np

from skanneal.likelihoods import LIKELIHOODS, Likelihood

ROOT = np.sqrt(2.0 * np.pi)


class Waiting(Likelihood):
    """x ~ Exponential(e^theta), theta ~ N(mu, 2^2), mu ~ N(0, 3^2); mu moves in place."""

    def __init__(self):
        self.mu = np.zeros(1)

    def log_lik(self, rows, theta, out):
        out[:] = theta - rows * np.exp(theta)

    def statistics(self, rows, labels, n_features):
        kept = labels >= 0
        n = np.bincount(labels[kept], minlength=n_features)
        return np.stack([n, np.bincount(labels[kept], rows[kept, 0], n_features)], axis=1)

    def draw(self, statistics, theta, rng):
        n, total = statistics.T
        step = theta + rng.standard_normal(len(theta)) / np.sqrt(n + 0.25)

        def log_density(t):
            return n * t - total * np.exp(t) + self.log_prior(t)

        gain = log_density(step) - log_density(theta)
        return np.where(np.log(rng.random(len(theta))) < gain, step, theta)

    def prior_draw(self, n, rng):
        return self.mu[0] + 2.0 * rng.standard_normal(n)

    def log_prior(self, theta):
        return -0.125 * (theta - self.mu[0]) ** 2 - np.log(2.0 * ROOT)

    def proposal_draw(self, rows, rng):
        return rng.standard_normal(len(rows)) - np.log(rows[:, 0])

    def proposal_logpdf(self, theta, row):
        return -0.5 * (theta + np.log(row[0, 0])) ** 2 - np.log(ROOT)

    def update(self, theta, statistics, sizes, rng):
        variance = 1.0 / (1.0 / 9.0 + len(theta) / 4.0)
        mean = variance * theta.sum() / 4.0
        self.mu[:] = mean + np.sqrt(variance) * rng.standard_normal()

    def state(self):
        return {"mu": self.mu}

    def set_state(self, state):
        self.mu = state["mu"]


def not_conjugate(name, **methods):
    """A subclass of a built-in likelihood as the error message for such an object proposes it."""
    return type("Own", (LIKELIHOODS[name],), {"conjugate": False, **methods})
