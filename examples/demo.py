"""Find the cultivars of wines without being told of them: `make demo` runs this.

Each row is a wine, each column one of 13 chemical measurements; the cultivars are kept back until
the end. Prints how the family was chosen, the clusters and who is in them, and what
scikit-learn's clusterers make of the same table. Draws the clusters into demo.png, or the path
given on the command line.
"""

import sys
import warnings

import matplotlib
import numpy as np
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from skanneal import AnnealedDPMixture

SHOWN = "flavanoids", "color_intensity"
MARKERS = "o^s"  # of the cultivars


def draw_picture(path, shown, counts, labels, cultivar):
    """Write two columns of the wines, coloured by cluster, and the cultivars in each cluster."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(
        1, 2, figsize=(12, 5.4), width_ratios=(1.3, 1), layout="constrained"
    )
    palette = matplotlib.colormaps["tab10"]
    for number, marker in enumerate(MARKERS):
        rows = cultivar == number
        left.scatter(*shown[rows].T, c=palette(labels[rows] % 10), marker=marker, s=28, alpha=0.75)
        left.scatter([], [], c="0.4", marker=marker, label=f"cultivar {number + 1} in truth")
    left.set(xlabel=SHOWN[0], ylabel=SHOWN[1], title="Wines, coloured by cluster")
    left.legend(frameon=False)
    clusters, bottom = np.arange(len(counts)), np.zeros(len(counts))
    for number, shade in enumerate((1.0, 0.55, 0.25)):
        heights = counts[:, number]
        bars = right.bar(clusters, heights, bottom=bottom, color=palette(clusters), alpha=shade)
        texts = [f"{n} of cultivar {number + 1}" if n > 3 else "" for n in heights]
        right.bar_label(bars, texts, label_type="center")
        bottom += heights
    right.set(xlabel="cluster", ylabel="wines", title="Cultivars in truth")
    right.set_xticks(clusters, clusters + 1)
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


def main(path="demo.png"):
    wines = load_wine()
    X, cultivar = wines.data, wines.target

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a line of its own says it
        model = AnnealedDPMixture(n_jobs=-1, random_state=0).fit(X)
    counts = np.zeros((model.n_clusters_, 3), dtype=int)
    np.add.at(counts, (model.labels_, cultivar), 1)

    print(f"{len(X)} wines, {X.shape[1]} measurements each, no cultivar")
    print(f"family chosen           {model.family_evidence_['winner']}")
    print(f"clusters found          {model.n_clusters_}")
    for cluster, row in enumerate(counts):
        print(f"  {cluster + 1}: {row.sum():3d} wines         of the cultivars {row.tolist()}")
    print("adjusted Rand index     0: chance, 1: exactly the cultivars")
    for name, labels in (
        ("AnnealedDPMixture", model.labels_),
        ("KMeans, told three", KMeans(3, n_init=10, random_state=0).fit_predict(X)),
        ("HDBSCAN", HDBSCAN(copy=True).fit_predict(X)),
    ):
        print(f"  {name:21} {adjusted_rand_score(cultivar, labels):.2f}")
    print(f"chains agree            {'yes' if model.converged_ else 'no: see convergence_'}")
    shown = X[:, [wines.feature_names.index(name) for name in SHOWN]]
    draw_picture(path, shown, counts, model.labels_, cultivar)
    print(f"picture                 {path}")


if __name__ == "__main__":
    main(*sys.argv[1:])
