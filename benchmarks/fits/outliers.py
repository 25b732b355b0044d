"""Outliers of labelled tables, beside those that other packages find.

    python benchmarks/fits/outliers.py DATA_FOLDER              # 40 minutes, then cut
    python benchmarks/fits/outliers.py DATA_FOLDER --methods default --seeds 2 --sets 45_wine

The folder has one npz file a table: `X`, and `y`, which is 1 for an outlier (ADBench). At most
5,000 rows of a table are used, drawn by the seed; a method is fitted to 70 % of them without `y`,
outliers among them, and scores the other 30 %. Results are lines of
`benchmarks/results/outliers.jsonl`: area under the ROC curve, average precision and, of the
detector, which says what share of rows is as odd, how many of the held-out rows have shares below
0.1, 0.05 and 0.01.
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.mixture import BayesianGaussianMixture
from sklearn.model_selection import train_test_split
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skanneal import AnnealedDPMixture, MixtureOutlierDetector

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from harness.suite import Suite, files, settings, some_rows

MOST_ROWS = 5000
SHARES = 0.1, 0.05, 0.01


def default(seed):
    return AnnealedDPMixture(n_jobs=1, random_state=seed)


def full_covariance(seed):
    return AnnealedDPMixture(families="multivariate_normal", n_jobs=1, random_state=seed)


def isolation_forest(seed):
    return IsolationForest(random_state=seed)


def bayesian_mixture_20(seed):
    mixture = BayesianGaussianMixture(n_components=20, random_state=seed)
    return make_pipeline(StandardScaler(), mixture)


def local_outlier_factor(seed):
    return make_pipeline(StandardScaler(), LocalOutlierFactor(novelty=True))


def robust_covariance(seed):
    return make_pipeline(StandardScaler(), EllipticEnvelope(random_state=seed))


def neighbours(seed):
    return make_pipeline(StandardScaler(), FarNeighbours())


def ecod(seed):
    from pyod.models.ecod import ECOD

    return ECOD()


def copod(seed):
    from pyod.models.copod import COPOD

    return COPOD()


class FarNeighbours(NearestNeighbors):
    """The distance of the 50th of the nearest training rows, or of the last if they are fewer."""

    def score_samples(self, X):
        return -self.kneighbors(X, min(50, len(self._fit_X)))[0][:, -1]


def detector(seed):
    return MixtureOutlierDetector(random_state=seed)


def tail(model, X):
    return model.score_outliers(X)


def density(model, X):
    return -model.score_samples(X)


def decision(model, X):
    return model.decision_function(X)


# how the estimator is made, and how its rows are scored, higher for odder rows
METHODS = {
    "scikit-learn": {
        "isolation_forest": (isolation_forest, density),
        "bayesian_mixture_20": (bayesian_mixture_20, density),
        "local_outlier_factor": (local_outlier_factor, density),
        "robust_covariance": (robust_covariance, density),
        "neighbours": (neighbours, density),
    },
    "skanneal": {
        "detector": (detector, density),
        "default": (default, tail),
        "full_covariance": (full_covariance, tail),
        "density_of_full_covariance": (full_covariance, density),
    },
    "pyod": {"ecod": (ecod, decision), "copod": (copod, decision)},
}


def halves(path, seed):
    """Training rows, held-out rows, and which of these are outliers."""
    with np.load(path) as file:
        X, y = file["X"].astype(float), file["y"].astype(int)
    rows = some_rows(len(X), MOST_ROWS, seed)
    parts = train_test_split(X[rows], y[rows], test_size=0.3, stratify=y[rows], random_state=seed)
    train, fresh, _, odd = parts
    return train, fresh, odd


def measure(path, method, seed):
    """How well the scores of held-out rows tell the outliers."""
    return of_halves(halves(path, seed), method, seed)


def of_halves(parts, method, seed):
    """The same of training rows, held-out rows, and which of these are outliers."""
    train, fresh, odd = parts
    make, score = method
    model = make(seed)
    text = settings(model)
    scores = score(model.fit(train), fresh)
    return {"settings": text} | of_scores(model, scores, odd)


def of_scores(model, scores, odd, weights=None):
    """What is said of scores; weights say how much each row counts."""
    said = {
        "auc": round(float(roc_auc_score(odd, scores)), 4),
        "average_precision": round(
            float(average_precision_score(odd, scores, sample_weight=weights)), 4
        ),
    }
    if isinstance(model, MixtureOutlierDetector):
        shares = np.exp(-scores)
        said["below"] = {
            str(p): round(float(np.average(shares < p, weights=weights)), 4) for p in SHARES
        }
    return said


SUITE = Suite("outliers", files, METHODS, measure)

if __name__ == "__main__":
    SUITE.run(__doc__.splitlines()[0])
