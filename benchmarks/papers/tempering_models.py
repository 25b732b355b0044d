"""The models of van de Meent, Paige and Wood (2014), section 4, for the tempering benchmarks."""

import math

import numpy as np

from skanneal.tempering import HMC, GaussianMeanTarget, GaussianProcessTarget, RandomWalk

PRIOR = {"length_scale": (0.5, 1.0), "sigma_f": (4.0, 1.0), "sigma_n": (2.0, 2.0)}
LEAPFROG = {"gaussian": 10, "gp": 5}  # the paper's
ALPHA = {"gaussian": 1, "gp": 3}  # the cost of an evaluation grows as rows^alpha


def gaussian(n_parameters, n_rows, seed=0):
    """Rows about a mean from the prior; the paper names no covariance: neighbours correlate."""
    rng = np.random.default_rng([seed, n_parameters])
    distance = np.abs(np.subtract.outer(np.arange(n_parameters), np.arange(n_parameters)))
    covariance = 0.5**distance
    root = np.linalg.cholesky(covariance)
    X = rng.normal(size=n_parameters) + rng.normal(size=(n_rows, n_parameters)) @ root.T
    return GaussianMeanTarget(X, covariance, prior_scale=1.0)


def gaussian_process(n_parameters, n_rows, seed=0):
    """Hyperparameters from the prior, coordinates of their mean length scale, a draw of y.

    The first rows of a larger problem are those of a smaller one, in X and in y.
    """
    d = n_parameters - 2
    rng = np.random.default_rng([seed, n_parameters])
    lengths = rng.lognormal(*PRIOR["length_scale"], size=d)
    sigma_f = rng.gamma(PRIOR["sigma_f"][0], 1 / PRIOR["sigma_f"][1])
    sigma_n = rng.gamma(PRIOR["sigma_n"][0], 1 / PRIOR["sigma_n"][1])
    X = rng.normal(size=(n_rows, d)) * lengths.mean()
    scaled = X / lengths
    squares = (scaled**2).sum(axis=1)
    distance = np.maximum(squares[:, None] + squares - 2 * scaled @ scaled.T, 0.0)
    K = sigma_f**2 * np.exp(-0.5 * distance) + sigma_n**2 * np.eye(n_rows)
    noise = np.random.default_rng([seed, n_parameters, 1])  # not after the coordinates' numbers
    y = np.linalg.cholesky(K) @ noise.normal(size=n_rows)
    return GaussianProcessTarget(X, y)


def target(model, n_parameters, n_rows, seed=0):
    """A target by the model's name."""
    return (gaussian if model == "gaussian" else gaussian_process)(n_parameters, n_rows, seed)


def prior_mean(model, n_parameters):
    """The paper's theta*: zero, or the logarithms of the prior's means."""
    if model == "gaussian":
        return np.zeros(n_parameters)
    mu, sigma = PRIOR["length_scale"]
    means = [math.exp(mu + sigma**2 / 2)] * (n_parameters - 2)
    means += [PRIOR[name][0] / PRIOR[name][1] for name in ("sigma_f", "sigma_n")]
    return np.log(means)


def paper_starts(model, n_parameters):
    """theta*, theta*/2 and 2 theta*, in the coordinates of the target."""
    centre = prior_mean(model, n_parameters)
    if model == "gaussian":
        return np.tile(centre, (3, 1))
    return centre + np.array([[0.0], [-math.log(2)], [math.log(2)]])


def paper_steps(inner, betas):
    """The paper's step of each level: 0.1 beta^-1/2, or 0.01 whatever the level."""
    return 0.1 / np.sqrt(betas) if inner == "mh" else np.full(len(betas), 0.01)


def paper_sampler(model, inner):
    """One step, or 10 and 5 leapfrog steps; `paper_steps` are their sizes."""
    if inner == "mh":
        return RandomWalk(adapt=False)
    return HMC(n_leapfrog=LEAPFROG[model], random_length=False, adapt=False)


def tuned_sampler(model, inner, longer=1):
    """Step sizes found in warm-up, level by level, for the same acceptance."""
    if inner == "mh":
        return RandomWalk(n_steps=longer)
    return HMC(n_leapfrog=LEAPFROG[model] * longer)
