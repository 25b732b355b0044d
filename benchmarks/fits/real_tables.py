"""Kinds of problem that are real tables: scikit-learn's own, and others from a folder of data.

Half of the rows, drawn by the seed, are held out. Nothing is known of the law behind them; classes,
where a table has them, are one of the places from which reference runs start.
"""

from functools import partial, update_wrapper
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from sklearn import datasets

from fits.laws import Gaussians
from fits.problems import Problem, from_law, generator, kind

MOST_ROWS = 2000  # for training


def halves(name, seed, X, y, families, estimator="AnnealedDPMixture"):
    """The problem of a table whose rows are dealt into two halves."""
    order = generator(name, seed).permutation(len(X))
    half = min(len(X) // 2, MOST_ROWS)
    train, fresh = X[order[:half]], X[order[half : 2 * half]]
    kept = np.array([len(np.unique(column)) > 1 for column in train.T])  # a constant has no density
    classes = np.zeros(len(X), dtype=int) if y is None else np.unique(y, return_inverse=True)[1]
    return Problem(
        train[:, kept],
        fresh[:, kept],
        families,
        [classes[order[:half]]],
        np.zeros(int(kept.sum()), dtype=int),
        estimator=estimator,
    )


@kind
def wine(seed):
    """scikit-learn's wines: 178 rows of 13 chemical measurements, from three cultivars."""
    X, y = datasets.load_wine(return_X_y=True)
    return halves("wine", seed, X, y, "normal")


@kind
def digits(seed):
    """scikit-learn's digits: 1,797 pictures of 8 by 8 grey values, as counts from 0 to 16."""
    X, y = datasets.load_digits(return_X_y=True)
    return halves("digits", seed, X, y, "poisson")


@kind
def breast_cancer(seed):
    """scikit-learn's tumours: 569 rows of 30 measurements, for `CrossCatPY`."""
    X, y = datasets.load_breast_cancer(return_X_y=True)
    return halves("breast_cancer", seed, X, y, "normal", "CrossCatPY")


# ---- from a folder -------------------------------------------------------------------------------

FROM_FOLDER = {}  # kinds that `read_from` registers


def kind_in_folder(function):
    """Note a function of a seed and a folder as a kind that needs the folder."""
    FROM_FOLDER[function.__name__] = function
    return function


def read_from(folder):
    """Register the kinds that need a folder of data sets, in the layout that they name."""
    for function in FROM_FOLDER.values():
        kind(update_wrapper(partial(function, folder=Path(folder)), function))


@kind_in_folder
def s4(seed, folder):
    """Points of the benchmark S4: 15 overlapping groups in two dimensions."""
    with np.load(folder / "clustering" / "sipu_s4.npz") as file:
        X, y = file["X"].astype(float), file["labels0"]
    return halves("s4", seed, X, y, "multivariate_normal")


@kind_in_folder
def s4_like(seed, folder):
    """Points drawn from 15 overlapping Gaussians that have the means and covariances of the groups
    of S4: 4,000 rows.
    """
    with np.load(folder / "clustering" / "sipu_s4.npz") as file:
        X, y = file["X"].astype(float), file["labels0"]
    of_groups = [X[y == label] for label in np.unique(y[y > 0])]
    weights = np.array([len(rows) for rows in of_groups], dtype=float)
    means = [rows.mean(axis=0) for rows in of_groups]
    law = Gaussians(weights / weights.sum(), means, [np.cov(rows.T) for rows in of_groups])
    return from_law(law, generator("s4_like", seed), 4000, "multivariate_normal")


@kind_in_folder
def plants(seed, folder):
    """In which of 69 states and provinces a plant grows, yes or no, for `CrossCatPY`."""
    with np.load(folder / "binary" / "plants.npz") as file:
        X = np.unpackbits(file["train"], axis=1, count=int(file["n_columns"])).astype(float)
    return halves("plants", seed, X, None, "bernoulli", "CrossCatPY")


@kind_in_folder
def census(seed, folder):
    """Persons of the American Community Survey: 35 categorical columns, for `CrossCatPY`."""
    with np.load(folder / "acs_temporal_match2.npz") as file:
        X = file["X"].astype(float)
    return halves("census", seed, X, None, "categorical", "CrossCatPY")


@kind_in_folder
def news(seed, folder):
    """News of the Associated Press: the 500 most frequent words of 2,246 documents."""
    with np.load(folder / "ap_news.npz") as file:
        parts = file["data"].astype(int), file["indices"], file["indptr"]
        X = csr_matrix(parts, shape=tuple(file["shape"]))
    frequent = np.argsort(-np.asarray(X.sum(axis=0)).ravel())[:500]
    return halves("news", seed, X[:, frequent].toarray(), None, "multinomial")
