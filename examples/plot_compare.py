"""
Four ways to cluster, side by side
===================================

KMeans, GaussianMixture, HDBSCAN and AnnealedDPMixture cluster four tables with two columns. KMeans
is told the number of clusters. The Gaussian mixture has one to ten components, chosen by its
information criterion.
"""

# %%
# The tables
# ----------
# They have blobs of unequal size and spread, long oblique clusters, two crescents, and one cloud
# without clusters.

import numpy as np
from sklearn.datasets import make_blobs, make_moons

rng = np.random.default_rng(0)
unequal = make_blobs(
    [250, 100, 25], centers=[[0, 0], [6, 0], [3, 4]], cluster_std=[1.5, 0.7, 0.3], random_state=0
)
oblique = make_blobs([130, 130, 130], random_state=170)
tables = {
    "unequal": unequal,
    "oblique": (oblique[0] @ [[0.6, -0.6], [-0.4, 0.8]], oblique[1]),
    "crescents": make_moons(400, noise=0.06, random_state=0),
    "one cloud": (rng.normal(size=(300, 2)), np.zeros(300, dtype=int)),
}

# %%
# The clusterings
# ---------------
# AnnealedDPMixture has the same settings for all tables.

from sklearn.cluster import HDBSCAN, KMeans
from sklearn.mixture import GaussianMixture

from skanneal import AnnealedDPMixture


def by_bic(X):
    fits = [GaussianMixture(k, random_state=0).fit(X) for k in range(1, 11)]
    return min(fits, key=lambda fit: fit.bic(X)).predict(X)


def ours(X):
    model = AnnealedDPMixture(n_chains=2, random_state=0)
    return model.fit_predict(X)


results = {}
for name, (X, truth) in tables.items():
    results[name] = {
        "KMeans, told the number": KMeans(len(set(truth)), random_state=0).fit_predict(X),
        "GaussianMixture by BIC": by_bic(X),
        "HDBSCAN": HDBSCAN(min_cluster_size=10, copy=True).fit_predict(X),
        "AnnealedDPMixture": ours(X),
    }

# %%
# The picture
# -----------
# The number in each corner is the adjusted Rand index with the truth: 1 is perfect, 0 is chance.
# HDBSCAN calls the grey points noise. The components of the Gaussian mixture cut a crescent into
# pieces. So do those of AnnealedDPMixture, but it joins components where no valley lies between
# them.

import matplotlib.pyplot as plt
from sklearn.metrics import adjusted_rand_score

figure, axes = plt.subplots(4, 4, figsize=(10, 10), layout="constrained")
palette = plt.colormaps["tab10"]
for row, (name, (X, truth)) in zip(axes, tables.items()):
    for ax, (method, labels) in zip(row, results[name].items()):
        colors = np.where(labels[:, None] < 0, 0.75, palette(labels % 10))
        ax.scatter(*X.T, c=colors, s=8, linewidths=0)
        score = adjusted_rand_score(truth, labels)
        ax.text(0.97, 0.03, f"{score:.2f}", transform=ax.transAxes, ha="right", va="bottom")
        ax.set(xticks=[], yticks=[])
        ax.set_title(method if ax in axes[0] else "", fontsize="medium")
    row[0].set_ylabel(name)
plt.show()
