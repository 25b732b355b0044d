"""Clusters of labelled tables, beside those of other packages.

    python benchmarks/fits/clustering.py DATA_FOLDER            # 40 minutes, then cut
    python benchmarks/fits/clustering.py DATA_FOLDER --methods default --seeds 2 --sets fcps_lsun

The folder has one npz file a table: `X` and one or more labellings `labels0`, `labels1`, ...
(Gagolewski's benchmark suite). At most 6,000 rows of a table are used, drawn by the seed. A method
is compared with each labelling, of which rows labelled 0 (noise) are left out, and has the best
score of them; one that is given the number of clusters is given each labelling's own. Results are
lines of `benchmarks/results/clustering.jsonl`.
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.cluster import HDBSCAN, AgglomerativeClustering, KMeans
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score
from sklearn.mixture import GaussianMixture

from skanneal import AnnealedDPMixture

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from harness.suite import Suite, files, settings, some_rows

MOST_ROWS = 6000
NUMBERS = [*range(1, 13), 14, 16, 18, 20, 23, 26, 30, 35, 40, 45, 50, 60, 70, 80, 90, 100, 110, 120]
PATIENCE = 4  # numbers of components in a row that are no better, before the search ends


class MixtureByBIC:
    """scikit-learn's Gaussian mixture with the number of components of lowest BIC."""

    def __init__(self, seed):
        self.seed = seed

    def __repr__(self):
        return "GaussianMixture(), number of components by BIC"

    def fit_predict(self, X):
        best, misses = (np.inf, None), 0
        for n_components in NUMBERS:
            if misses == PATIENCE or n_components > len(X) // 2:
                break
            model = GaussianMixture(n_components, random_state=self.seed).fit(X)
            bic = model.bic(X)
            misses = 0 if bic < best[0] else misses + 1
            best = min(best, (bic, model.predict(X)), key=lambda pair: pair[0])
        return best[1]


def default(seed):
    return AnnealedDPMixture(n_jobs=1, random_state=seed)


def given(n_clusters, seed):
    return AnnealedDPMixture(n_clusters=n_clusters, n_jobs=1, random_state=seed)


def hdbscan_5(seed):
    return HDBSCAN(min_cluster_size=5, copy=True)


def hdbscan_15(seed):
    return HDBSCAN(min_cluster_size=15, copy=True)


def gaussian_mixture_bic(seed):
    return MixtureByBIC(seed)


def gaussian_mixture_given(n_clusters, seed):
    return GaussianMixture(n_clusters, random_state=seed)


def kmeans_given(n_clusters, seed):
    return KMeans(n_clusters, n_init=10, random_state=seed)


def ward_given(n_clusters, seed):
    return AgglomerativeClustering(n_clusters, linkage="ward")


METHODS = {
    "scikit-learn": {
        method.__name__: method
        for method in (
            hdbscan_5,
            hdbscan_15,
            gaussian_mixture_bic,
            gaussian_mixture_given,
            kmeans_given,
            ward_given,
        )
    },
    "skanneal": {method.__name__: method for method in (default, given)},
}


def measure(path, method, seed):
    """Best ARI and AMI over the labellings; a negative label of a method is a cluster like any."""
    with np.load(path) as file:
        X = file["X"].astype(float)
        labellings = [file[name] for name in sorted(file.files) if name.startswith("labels")]
    if not labellings:
        raise ValueError(f"{path} has no labels: give the folder of the labelled tables itself.")
    rows = some_rows(len(X), MOST_ROWS, seed)
    X, labellings = X[rows], [labels[rows] for labels in labellings]
    found, scores, numbers, texts = {}, [], [], []
    for truth in labellings:
        key = len(np.unique(truth[truth > 0])) if method.__name__.endswith("given") else None
        if key not in found:
            model = method(seed) if key is None else method(key, seed)
            found[key] = model.fit_predict(X)
            texts.append(settings(model))
        scored = truth > 0
        pair = truth[scored], found[key][scored]
        scores.append((adjusted_rand_score(*pair), adjusted_mutual_info_score(*pair)))
        numbers.append(len(np.unique(found[key][found[key] >= 0])))
    best = int(np.argmax([ari for ari, _ in scores]))
    return {
        "settings": texts[0],
        "ari": round(float(scores[best][0]), 4),
        "ami": round(float(max(ami for _, ami in scores)), 4),
        "n_clusters": numbers[best],
    }


SUITE = Suite("clustering", files, METHODS, measure)

if __name__ == "__main__":
    SUITE.run(__doc__.splitlines()[0])
