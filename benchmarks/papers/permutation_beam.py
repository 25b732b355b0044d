"""Figure 2 of Liang, Jordan and Taskar (2007): the terms of g(r), and what a beam keeps of them.

The paper does not say of which points and in which order; here 500 points of 40 clusters, in
several dimensions and sorts of order.
"""

import numpy as np

from papers.permutation_models import PRIOR_VARIANCE, synthetic
from skanneal.families import FAMILIES, Table
from skanneal.families._forms import flatten
from skanneal.moves import Permutation
from skanneal.moves._order_programs import OrderProgram
from skanneal.partition_priors import PitmanYor
from skanneal.states import Mixture, Subsample

POINTS, CLUSTERS, TOLERANCE = 500, 40, 1e-32
DIMS = (2, 5, 10, 40, 80)
ORDERS = ("uniform, true clusters", "projection, true clusters", "projection, random clusters")
PROFILES, PROFILE_DIMS, LONGEST = range(400, 415), 10, 40


def known_mixture(X, labels):
    """A mixture's state over points of covariance I, with these labels."""
    n_rows, n_dims = X.shape
    table = Table(["f4"] * n_dims, [0] * n_dims)
    table.append(list(X.T.astype(np.float32)))
    family = FAMILIES["known_normal"]
    values = [np.eye(n_dims), np.zeros(n_dims), PRIOR_VARIANCE * np.eye(n_dims)]
    block = family(table, np.arange(n_dims), [flatten(family.forms, values, n_dims)])
    subsample = Subsample(n_rows)
    subsample.fill()
    mixture = Mixture(table, [block], PitmanYor(5.0, 0.0), subsample)
    mixture.replace(np.arange(n_rows), labels)
    return mixture


def ordered_by(labels, keys, rng):
    """Clusters in random order, rows within each by their keys."""
    return np.lexsort((keys, rng.random(labels.max() + 1)[labels]))


def forward(mixture, order, law, tolerance):
    """The program's segments: number kept at each point, log g, (sizes, log contributions)."""
    move, n = Permutation(law, "beam", tolerance), len(order)
    move.tuning = mixture.n_clusters
    log_tau = move._log_tau(move._log_number(mixture, n, law))
    segments = OrderProgram(mixture)
    segments.follow(mixture)
    segments.forward(mixture, order, move._log_size(mixture, n, law) + log_tau, 1.0, tolerance)
    log_g = segments.log_sums()
    first, log_b = segments.kept()
    return (
        np.array([len(f) for f in first]),
        log_g[-1],
        [(r + 1 - f, b + log_g[f]) for r, (f, b) in enumerate(zip(first, log_b, strict=True))],
    )


def measure_beam(n_dims, order_name, seed):
    """How many points keep so many sizes, and the beam's share of the sum over all segments."""
    rng = np.random.default_rng([2, seed])
    X, labels = synthetic(rng, POINTS, CLUSTERS, n_dims)
    if order_name.endswith("random clusters"):
        labels = rng.integers(CLUSTERS, size=POINTS)
    labels = np.unique(labels, return_inverse=True)[1]
    law = order_name.split(",")[0]
    keys = rng.random(POINTS) if law == "uniform" else X @ rng.normal(size=n_dims)
    mixture, order = known_mixture(X, labels), ordered_by(labels, keys, rng)
    kept, log_beam, _ = forward(mixture, order, law, TOLERANCE)
    _, log_all, profiles = forward(mixture, order, law, 0.0)
    return {
        "kept": np.bincount(kept).tolist(),
        "share": float(np.exp(log_beam - log_all)),
        "profiles": [profile(*profiles[r - 1]) for r in PROFILES] if n_dims == PROFILE_DIMS else [],
    }


def profile(sizes, weights):
    """Log contributions of the shortest segments, shortest first."""
    return [[int(s) for s in sizes[-LONGEST:][::-1]], [float(w) for w in weights[-LONGEST:][::-1]]]
