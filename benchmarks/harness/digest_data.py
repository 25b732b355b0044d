"""Small fixed tables of all sorts of cells, for `digest_cases.py`.

The rows are from three clusters, one after another.
"""

import numpy as np
import pandas as pd

N_ROWS = 70  # more than the 50 from which on moves beside the churn are made


def sides(seed=0):
    """A generator, and for each row which of three clusters it is from."""
    return np.random.default_rng(seed), np.arange(N_ROWS)[:, None] % 3


def times(n_columns=3, seed=0):
    """Positive numbers: what every family of numbers takes."""
    rng, side = sides(seed)
    return np.exp(0.8 * side + 0.3 * rng.normal(size=(N_ROWS, n_columns)))


def amounts(n_columns=3, seed=0):
    """Positive numbers, and zeros in place of three in ten."""
    zeros = np.random.default_rng(seed + 1).random((N_ROWS, n_columns)) < 0.3
    return np.where(zeros, 0.0, times(n_columns, seed))


def counts(n_columns=3, seed=0):
    rng, side = sides(seed)
    return rng.poisson(1 + 4 * ((side + np.arange(n_columns)) % 3)).astype(float)


def flags(n_columns=3, seed=0):
    rng, side = sides(seed)
    return rng.random((N_ROWS, n_columns)) < 0.1 + 0.4 * side


def levels(n_columns=3, seed=0):
    rng, side = sides(seed)
    return np.array(["red", "green", "blue"], dtype=object)[
        (side + (rng.random((N_ROWS, n_columns)) < 0.2)) % 3
    ]


CELLS = {
    "categorical": levels,
    "bernoulli": flags,
    "poisson": counts,
    "negative_binomial": counts,
    "semi_continuous": amounts,
    "semi_continuous_log_normal": amounts,
    "multinomial": counts,
    "logistic_normal": counts,
}
COUNTED = {name for name, maker in CELLS.items() if maker is counts}
MIXED = {"poisson": ["count"]}  # what the families of `mixed` are not by themselves
GIVEN = {"known_normal": {"covariance": 0.1}}  # hyperparameters that must be given


def cells(name, **parameters):
    """Rows for a family or likelihood."""
    return CELLS.get(name, times)(**parameters)


def with_gaps(X, seed=1):
    """A frame of the same cells, but for a tenth."""
    gaps = np.random.default_rng(seed).random(np.shape(X)) < 0.1
    return pd.DataFrame(X).astype(object).mask(gaps, None)


def mixed():
    """Columns of all sorts, with gaps; a constant one, and one far from 0."""
    columns = {
        "number": times(1)[:, 0],
        "colour": levels(1, 1)[:, 0],
        "wet": flags(1, 2)[:, 0],
        "count": counts(1, 3)[:, 0],
        "far": 2952788047.4 + times(1, 4)[:, 0],
        "other": times(1, 5)[::-1, 0],
    }
    return with_gaps(pd.DataFrame(columns)).assign(same=1.5)


def regression():
    X = times(2)
    return X, np.sin(X[:, 0]) + 0.1 * np.random.default_rng(2).normal(size=N_ROWS)
