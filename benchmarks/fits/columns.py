"""Clusters of columns as people have them: correlated, rounded, with zeros, constants and copies.

    python benchmarks/fits/columns.py --methods default      # half an hour
    python benchmarks/fits/columns.py --sets iris wine "breast cancer" digits zeros amounts
    python benchmarks/fits/columns.py --methods default --sets "ratings, floats" --seeds 2

- labelled tables: scikit-learn's own, digits as 16 principal components; and two simulated ones
  whose groups overlap, with rounded numbers, and zeros in place of what was not measured: `zeros`
  has normal columns, `amounts` skewed ones as well;
- "gaussian d n / step": n rows of d independent normal columns, rounded to this part of a standard
  deviation, which are one cluster;
- ratings from 1 to 7 of two groups of people: as integers, as floats, and with 2 % of gaps;
- iris with other columns beside its own, which should change nothing: `same` is the adjusted Rand
  index between the clusters and those of the same method without these columns.

Simulated tables are drawn anew for each seed. Results are lines of
`benchmarks/results/columns.jsonl`.
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score

from skanneal import AnnealedDPMixture

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from harness.suite import Suite, settings

STEPS = 2, 5, 10, 20  # a standard deviation is so many steps of rounding
SHAPES = [(d, n) for n in (1000, 3000) for d in (1, 2, 5, 10)]


def default(seed):
    return AnnealedDPMixture(n_jobs=1, random_state=seed)


def clusters(seed):
    return AnnealedDPMixture(families="multivariate_normal", n_jobs=1, random_state=seed)


def components(seed):
    """Each component a cluster."""
    return clusters(seed).set_params(point_estimate="map")


METHODS = {
    "skanneal": {
        "default": default,
        "multivariate_normal": clusters,
        "multivariate_normal_map": components,
    }
}


# ---- tables: functions of the seed that give rows and labels -------------------------------------


def bundled(load, seed):
    return load(return_X_y=True)


def digits(seed):
    X, y = load_digits(return_X_y=True)
    return PCA(16, random_state=0).fit_transform(X), y


def two_groups(rng):
    """Standard normal columns of 768 rows, 35 % of which are shifted by half to one deviation."""
    y = (rng.random(768) < 0.35).astype(int)
    shifts = np.array([0.5, 1.0, 0.5, 0.5, 0.5, 0.7, 0.5, 0.6])
    mixing = np.eye(8) + 0.25 * rng.standard_normal((8, 8))
    return rng.standard_normal((768, 8)) @ mixing + shifts * y[:, None], y


def zeros(seed):
    """Rounded normal columns, three with zeros in place of 5, 30 and 48 % of their numbers."""
    rng = np.random.default_rng(seed)
    Z, y = two_groups(rng)
    means = np.array([60.0, 120.0, 70.0, 30.0, 150.0, 32.0, 50.0, 40.0])
    deviations = np.array([10.0, 30.0, 12.0, 8.0, 40.0, 6.0, 10.0, 9.0])
    steps = np.array([1.0, 1.0, 2.0, 1.0, 5.0, 0.1, 0.5, 1.0])
    X = np.rint((means + deviations * Z) / steps) * steps
    for column, share in ((2, 0.05), (3, 0.30), (4, 0.48)):
        X[rng.random(len(X)) < share, column] = 0.0
    return X, y


def amounts(seed):
    """The same with a count and three skewed columns, of which one has the most zeros."""
    X, y = zeros(seed)
    Z, _ = two_groups(np.random.default_rng(seed))  # those of `zeros`
    rng = np.random.default_rng([seed, 1])
    X[:, 0] = rng.poisson(3.0 * np.exp(0.5 * Z[:, 0]))
    X[:, 4] = np.where(X[:, 4] == 0.0, 0.0, np.rint(120.0 * np.exp(0.7 * Z[:, 4])))
    X[:, 6] = np.round(0.4 * np.exp(0.6 * Z[:, 6]), 3)
    X[:, 7] = 21.0 + np.rint(10.0 * np.exp(0.6 * Z[:, 7]))
    return X, y


def gaussian(d, n, step, seed):
    X = np.random.default_rng(seed).standard_normal((n, d))
    return np.rint(X * step) / step, np.zeros(n, dtype=int)


def ratings(gaps, dtype, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 1000)
    X = np.clip(np.rint(2.5 + 3.0 * y[:, None] + 1.1 * rng.standard_normal((1000, 6))), 1, 7)
    X[rng.random(X.shape) < gaps] = np.nan
    return X.astype(dtype), y


def beside_iris(columns, seed):
    """Iris with columns that `columns` makes of the seed and of iris."""
    X, y = load_iris(return_X_y=True)
    return np.column_stack([X, columns(np.random.default_rng(seed), X)]), y


def constants(number, rng, X):
    return np.broadcast_to(rng.standard_normal(number), (len(X), number))


def duplicate(rng, X):
    return X[:, [2]]


def identifier(rng, X):
    return 1000.0 + rng.permutation(len(X))


IRIS = {
    "1 constant": partial(constants, 1),
    "2 constants": partial(constants, 2),
    "3 constants": partial(constants, 3),
    "duplicate": duplicate,
    "identifier": identifier,
}


def sets(folder):
    tables = {
        "iris": partial(bundled, load_iris),
        "wine": partial(bundled, load_wine),
        "breast cancer": partial(bundled, load_breast_cancer),
        "digits": digits,
        "zeros": zeros,
        "amounts": amounts,
        "ratings, integers": partial(ratings, 0.0, int),
        "ratings, floats": partial(ratings, 0.0, float),
        "ratings, gaps": partial(ratings, 0.02, float),
    }
    tables |= {f"iris, {name}": partial(beside_iris, made) for name, made in IRIS.items()}
    tables |= {
        f"gaussian {d} {n} / {step}": partial(gaussian, d, n, step)
        for d, n in SHAPES
        for step in STEPS
    }
    return tables


def measure(table, method, seed):
    """The number of clusters, their ARI, and whether columns beside iris's changed them."""
    X, y = table(seed)
    model = method(seed)
    text = settings(model)
    labels = model.fit_predict(X)
    record = {
        "settings": text,
        "n_clusters": len(np.unique(labels)),
        "ari": round(float(adjusted_rand_score(y, labels)), 4),
        "families": {name: len(of) for name, of in model.families_.items()},
    }
    if getattr(table, "func", None) is beside_iris:
        alone = method(seed).fit_predict(load_iris().data)
        record["same"] = round(float(adjusted_rand_score(alone, labels)), 4)
    return record


SUITE = Suite("columns", sets, METHODS, measure)

if __name__ == "__main__":
    SUITE.run(__doc__.splitlines()[0])
