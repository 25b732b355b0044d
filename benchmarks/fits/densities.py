"""Held-out log density of tables of numbers, beside that of scikit-learn's mixtures.

    python benchmarks/fits/densities.py                          # scikit-learn's tables, minutes
    python benchmarks/fits/densities.py --sets iris --seeds 2
    python benchmarks/fits/densities.py DATA_FOLDER              # and FROM_FOLDER's, an hour

The folder has one npz file a table, with `X` (ADBench). A model is fitted to 70 % of the rows,
drawn by the seed, and scores the other 30 %: mean log density per row in nats, in the units of the
table. scikit-learn's mixtures are fitted to standardised columns, and their densities converted.
Results are lines of `benchmarks/results/densities.jsonl`.
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from skanneal import AnnealedDPMixture

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from harness.suite import Suite, files, settings

LOADERS = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}
FROM_FOLDER = "43_WDBC", "40_vowels", "44_Wilt", "22_magic.gamma", "41_Waveform"
NUMBERS = range(1, 11)  # of components, among which the information criterion chooses


class Standardised:
    """A mixture of standardised columns, whose densities are those of the columns as they came."""

    def __init__(self, fit, text):
        self._fit, self._text = fit, text

    def __repr__(self):
        return self._text

    def fit(self, X):
        self._scaler = StandardScaler().fit(X)
        self._model = self._fit(self._scaler.transform(X))
        return self

    def score(self, X):
        return self._model.score(self._scaler.transform(X)) - np.log(self._scaler.scale_).sum()


def default(seed):
    return AnnealedDPMixture(n_jobs=1, random_state=seed)


def normal(seed):
    return AnnealedDPMixture(families="normal", n_jobs=1, random_state=seed)


def multivariate_normal(seed):
    return AnnealedDPMixture(families="multivariate_normal", n_jobs=1, random_state=seed)


def gaussian_mixture_bic(seed):
    def fit(X):
        fits = [GaussianMixture(k, random_state=seed).fit(X) for k in NUMBERS]
        return min(fits, key=lambda model: model.bic(X))

    return Standardised(fit, "GaussianMixture(), 1 to 10 components by BIC")


def bayesian_mixture_20(seed):
    model = BayesianGaussianMixture(n_components=20, max_iter=1000, random_state=seed)
    return Standardised(model.fit, repr(model))


METHODS = {
    "skanneal": {"default": default, "normal": normal, "multivariate_normal": multivariate_normal},
    "scikit-learn": {
        "gaussian_mixture_bic": gaussian_mixture_bic,
        "bayesian_mixture_20": bayesian_mixture_20,
    },
}


def sets(folder):
    """What gives each table: those that scikit-learn brings along and, if any, the folder's."""
    tables = {name: lambda load=load: load().data for name, load in LOADERS.items()}
    paths = {} if folder is None else files(folder)
    for name in FROM_FOLDER:
        if name in paths:
            tables[name] = lambda path=paths[name]: np.load(path)["X"].astype(float)
    return tables


def measure(load, method, seed):
    """Mean log density of the held-out rows."""
    X = load()
    train, fresh = train_test_split(X, test_size=0.3, random_state=seed)
    model = method(seed)
    text = settings(model)
    return {"settings": text, "log_density": round(float(model.fit(train).score(fresh)), 3)}


SUITE = Suite("densities", sets, METHODS, measure)

if __name__ == "__main__":
    SUITE.run(__doc__.splitlines()[0])
