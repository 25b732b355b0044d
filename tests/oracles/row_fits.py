"""Fits of families of whole rows, and slow scores of rows under their draws."""

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from oracles.reference import log_predictive
from skanneal import AnnealedDPMixture
from skanneal.schedules import SequentialGibbs

GIVEN = {
    "known_normal": {"covariance": [[1.0, 0.4], [0.4, 0.5]]},
    "multivariate_normal": {},
}


def mixture(family, **parameters):
    """A quick estimator of two columns of a row family."""
    defaults = {
        "families": family,
        "hyperparameters": {family: GIVEN[family]} if GIVEN[family] else "infer",
        "schedule": SequentialGibbs(n_sweeps=8),
        "n_chains": 2,
        "n_draws": 1,
        "random_state": 0,
    }
    return AnnealedDPMixture(**(defaults | parameters))


def two_clusters(n_rows=60, seed=0):
    """Correlated pairs of numbers around two places."""
    rng = np.random.default_rng(seed)
    side = np.arange(n_rows) % 2
    noise = rng.multivariate_normal([0, 0], GIVEN["known_normal"]["covariance"], n_rows)
    return np.array([[10.0, -3.0], [14.0, 1.0]])[side] + noise, side


def mixed(n_rows=60, seed=0):
    """A frame whose first and last column are a row, the others gappy numbers and levels."""
    X, side = two_clusters(n_rows, seed)
    rng = np.random.default_rng(seed + 1)
    number = 3.0 * side + rng.normal(size=n_rows)
    number[rng.random(n_rows) < 0.3] = np.nan
    level = pd.Series(np.where(rng.random(n_rows) < 0.1 + 0.8 * side, "a", "b"), dtype=object)
    level[rng.random(n_rows) < 0.2] = None
    return pd.DataFrame({"x": X[:, 0], "number": number, "level": level, "y": X[:, 1]})


def mixed_model(family, **parameters):
    return mixture(family, families={family: ["x", "y"]}, discount=0.2, **parameters)


def cluster_scores(draw, family, training, row, keep=(0, 1), labels=None):
    """log w_c + log p(some cells of a row | cluster c), the new cluster last."""
    labels = draw.labels if labels is None else labels
    sizes = np.bincount(labels)
    weights = np.r_[sizes - draw.discount, draw.concentration + draw.discount * len(sizes)]
    keep, hyper = list(keep), dict(draw.hyperparameters[family])
    if family == "multivariate_normal":  # what the law of some columns is
        hyper["nu0"] = hyper["nu0"] - (2 - len(keep))
    for name, value in hyper.items():
        if np.ndim(value):
            hyper[name] = value[np.ix_(*[keep] * np.ndim(value))]
    out = np.log(weights / (sizes.sum() + draw.concentration))
    for c in range(len(sizes) + 1):
        members = training[labels == c][:, keep].tolist()
        out[c] += log_predictive(family, [row[i] for i in keep], members, hyper)
    return out


def slow_score(model, family, training, row, keep=(0, 1)):
    draws = [draw for chain in model.draws_ for draw in chain]
    scores = [logsumexp(cluster_scores(d, family, training, row, keep)) for d in draws]
    return logsumexp(scores) - np.log(len(draws))


def integrated_score(model, family, training, row, j):
    """slow_score with the j-th cell integrated out."""
    grid = np.linspace(-15, 15, 241) + row[j]
    rows = np.tile(row, (len(grid), 1))
    rows[:, j] = grid
    scores = [slow_score(model, family, training, one) for one in rows]
    return np.log(np.trapezoid(np.exp(scores), grid))
