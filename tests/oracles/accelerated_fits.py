"""Quick fits of AcceleratedDPMixture, their rows, and a likelihood as a user would write it."""

import numpy as np

from skanneal import AcceleratedDPMixture
from skanneal.likelihoods import Likelihood
from skanneal.schedules import AcceleratedSchedule

ALGORITHMS = ("accelerated", "hybrid", "auxiliary", "importance", "slice", "collapsed")
UNCOLLAPSED = ALGORITHMS[:-1]
COUNTS = ("multinomial", "poisson", "logistic_normal")
SHORT = AcceleratedSchedule(n_accelerated=10, n_exact=30, sync_every=5)


def mixture(**parameters):
    """A quick estimator."""
    quick = {"likelihood": "normal", "schedule": SHORT, "n_draws": 1, "random_state": 0}
    return AcceleratedDPMixture(**(quick | parameters))


def two_clusters(n_rows=60, n_columns=2, seed=0):
    """Numbers around -4 and around 4, and which."""
    side = np.arange(n_rows) % 2
    noise = np.random.default_rng(seed).normal(size=(n_rows, n_columns))
    return np.where(side, 4.0, -4.0)[:, None] + noise, side


def counts(n_rows=60, n_columns=3, seed=0):
    """Rows of counts of two sorts, and which."""
    rng, side = np.random.default_rng(seed), np.arange(n_rows) % 2
    shares = np.linspace(1.0, 9.0, n_columns) ** 2
    shares = np.array([shares, shares[::-1]]) / shares.sum()
    return np.array([rng.multinomial(30, shares[s]) for s in side]), side


def rows_for(likelihood, **options):
    return (counts if likelihood in COUNTS else two_clusters)(**options)


class Rates(Likelihood):
    """A user's: x_j ~ Poisson(exp(theta_j)), theta_j ~ N(1, 2^2), one Metropolis step per draw."""

    def log_lik(self, rows, theta, out):
        out[:] = rows @ theta.T - np.exp(theta).sum(axis=1)

    def statistics(self, rows, labels, n_features):
        out = np.zeros((n_features, 1 + rows.shape[1]))
        np.add.at(out, labels[labels >= 0], np.c_[np.ones(len(rows)), rows][labels >= 0])
        return out

    def _log_density(self, statistics, theta):
        n, total = statistics[:, :1], statistics[:, 1:]
        return n * -np.exp(theta) + total * theta - 0.125 * (theta - 1.0) ** 2

    def draw(self, statistics, theta, rng):
        step = theta + 0.5 * rng.standard_normal(theta.shape)
        gain = self._log_density(statistics, step) - self._log_density(statistics, theta)
        return np.where(np.log(rng.random(theta.shape)) < gain, step, theta)

    def prior_draw(self, n, rng):
        return 1.0 + 2.0 * rng.standard_normal((n, 3))

    def log_prior(self, theta):
        return (-0.125 * (theta - 1.0) ** 2 - np.log(2.0 * np.sqrt(2.0 * np.pi))).sum(axis=1)

    def proposal_draw(self, rows, rng):
        return np.log(rows + 0.5) + 0.5 * rng.standard_normal(rows.shape)

    def proposal_logpdf(self, theta, row):
        z = (theta - np.log(row[0] + 0.5)) / 0.5
        return (-0.5 * z**2 - np.log(0.5 * np.sqrt(2.0 * np.pi))).sum(axis=1)
