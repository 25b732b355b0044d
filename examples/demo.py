"""Cluster the six tables of scikit-learn's comparison of clusterers: `make demo` runs this.

The tables are those of its example "Comparing different clustering algorithms on toy datasets". The
other clusterers are told the number of clusters, or have the parameters that the example sets for
all tables. AnnealedDPMixture has its defaults. Prints the number of clusters that each finds and
how well they match the truth, and draws the clusters into demo.png, or the path given on the
command line.
"""

import sys

import matplotlib
import numpy as np
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from skanneal import AnnealedDPMixture

N_ROWS = 500


def tables():
    """Yield the name of each table, its rows, and the true cluster of each row."""
    blobs, members = make_blobs(N_ROWS, random_state=170)
    square = np.random.RandomState(30).rand(N_ROWS, 2)
    for name, (X, truth) in {
        "circles": make_circles(N_ROWS, factor=0.5, noise=0.05, random_state=30),
        "moons": make_moons(N_ROWS, noise=0.05, random_state=30),
        "varied": make_blobs(N_ROWS, cluster_std=[1.0, 2.5, 0.5], random_state=170),
        "oblique": (blobs @ [[0.6, -0.6], [-0.4, 0.8]], members),
        "blobs": make_blobs(N_ROWS, random_state=30),
        "square": (square, np.zeros(N_ROWS, dtype=int)),
    }.items():
        yield name, StandardScaler().fit_transform(X), truth


def clusterers(n_clusters):
    """By the text that a picture shows: each clusterer for a table of so many clusters."""
    hdbscan = HDBSCAN(15, min_samples=3, allow_single_cluster=True, copy=True)
    return {
        "KMeans\ntold the number": KMeans(n_clusters, n_init=10, random_state=0),
        "GaussianMixture\ntold the number": GaussianMixture(n_clusters, random_state=0),
        "HDBSCAN\nthe example's parameters": hdbscan,
        "AnnealedDPMixture\ndefaults": AnnealedDPMixture(n_jobs=-1, random_state=1),
    }


def draw_picture(path, results):
    """Write a row of panels per clusterer, a column per table."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    methods = list(next(iter(results.values()))[1])
    figure, axes = plt.subplots(
        len(methods), len(results), figsize=(12, 8), layout="constrained", squeeze=False
    )
    palette = matplotlib.colormaps["tab10"]
    for column, (name, (X, fits)) in zip(axes.T, results.items()):
        column[0].set_title(name)
        for ax, (labels, text) in zip(column, fits.values()):
            colors = np.where(labels[:, None] < 0, 0.75, palette(labels % 10))
            ax.scatter(*X.T, c=colors, s=5, linewidths=0)
            ax.text(0.98, 0.02, text, transform=ax.transAxes, ha="right", va="bottom")
            ax.set(xticks=[], yticks=[], xlim=(-2.7, 2.7), ylim=(-2.9, 2.7))
    for ax, method in zip(axes[:, 0], methods):
        ax.set_ylabel(method)
    figure.savefig(path, dpi=100)


def match(truth, labels):
    """How well clusters match the truth: the adjusted Rand index or, of a table that is one
    cluster, the number of clusters."""
    n_clusters = labels.max() + 1
    if truth.any():
        return f"{adjusted_rand_score(truth, labels):.2f}"
    return f"{n_clusters} cluster{'s' if n_clusters > 1 else ''}"


def main(path="demo.png"):
    print(f"six tables of {N_ROWS} rows; adjusted Rand index, 1: the true clusters, 0: chance")
    results, agree = {}, []
    for name, X, truth in tables():
        fits = {}
        for method, clusterer in clusterers(truth.max() + 1).items():
            labels = clusterer.fit_predict(X)
            fits[method] = labels, match(truth, labels)
        ours = clusterer  # the last one
        agree.append(ours.convergence_["settled"])
        if not results:
            print(" " * 9, *(f"{method.partition(chr(10))[0]:>17}" for method in fits), "clusters")
        shown = (f"{text:>17}" for _, text in fits.values())
        print(f"{name:9}", *shown, f"{ours.n_clusters_:8}", flush=True)
        results[name] = X, fits
    print(f"chains agree: {'yes' if all(agree) else 'not on all tables'}")
    draw_picture(path, results)
    print(f"picture: {path}")


if __name__ == "__main__":
    main(*sys.argv[1:])
