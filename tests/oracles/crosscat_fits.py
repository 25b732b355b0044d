"""Quick fits of CrossCatPY, their table, and what their draws hold."""

import numpy as np
import pandas as pd

from oracles.reference import is_missing
from skanneal import CrossCatPY
from skanneal.schedules import SequentialGibbs

FAMILY = {
    "size": "normal",
    "colour": "categorical",
    "wet": "bernoulli",
    "weight": "normal",
    "count": "poisson",
    "shape": "categorical",
}
LEVELS = {"colour": ["blue", "green", "red"], "shape": ["round", "square"]}


def hidden_sides(n_rows, seed):
    """The two partitions of the rows behind a frame."""
    return np.random.default_rng([seed, 1]).random((2, n_rows)) < 0.5


def crosscat_frame(n_rows=40, seed=0, missing=0.1):
    """A column of every family; the first three share one partition, the others another."""
    rng = np.random.default_rng(seed)
    one, two = hidden_sides(n_rows, seed)
    X = pd.DataFrame(
        {
            "size": 4.0 * one + rng.normal(size=n_rows),
            "colour": np.where(rng.random(n_rows) < 0.2, "blue", np.where(one, "red", "green")),
            "wet": rng.random(n_rows) < np.where(one, 0.9, 0.1),
            "weight": 50 - 40.0 * two + 5 * rng.normal(size=n_rows),
            "count": rng.poisson(np.where(two, 1, 9)),
            "shape": np.where(rng.random(n_rows) < np.where(two, 0.9, 0.2), "round", "square"),
        }
    ).astype(object)
    return X.mask(rng.random(X.shape) < missing, None)


def crosscat(**parameters):
    """A quick estimator for `crosscat_frame`."""
    defaults = {
        "families": {"poisson": ["count"]},
        "schedule": SequentialGibbs(n_sweeps=6),
        "n_chains": 2,
        "n_draws": 2,
        "thin": 2,
        "random_state": 1,
    }
    return CrossCatPY(**(defaults | parameters))


def canonical(labels):
    """Clusters numbered in order of appearance."""
    seen = {}
    return np.array([seen.setdefault(label, len(seen)) for label in labels])


def all_draws(model):
    return [draw for chain in model.draws_ for draw in chain]


def code(name, cell):
    """A cell as the oracle takes it; an unknown level becomes a code that no level has."""
    if name not in LEVELS or is_missing(cell):
        return cell
    return LEVELS[name].index(cell) if cell in LEVELS[name] else 99


def hyper_of(draw, j):
    """Hyperparameters of column j."""
    families = list(FAMILY.values())
    place = families[:j].count(families[j])
    return {name: values[place] for name, values in draw.hyperparameters[families[j]].items()}


def members(X, draw, j, v, c):
    """Training cells of column j in cluster c of view v; a new cluster has none."""
    name = list(FAMILY)[j]
    return [code(name, X[name][i]) for i in np.flatnonzero(draw.row_labels[v] == c)]
