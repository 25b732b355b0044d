"""Cluster handwritten digits without saying that there are ten: `make demo` runs this.

Prints the number of clusters, how well they match the ten digits, and the log density of images
that were held out, beside that of a single Gaussian. Draws a map of the images and the mean images
of the largest clusters into demo.png, or the path given on the command line.
"""

import sys
import warnings

import matplotlib
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.manifold import TSNE
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import train_test_split

from skanneal import AnnealedDPMixture

N_COMPONENTS = 16
SHOWN = 36  # clusters, the largest


def draw_map(ax, positions, labels, colors):
    """Scatter the images, each in the colour of its cluster."""
    ax.scatter(*positions.T, c=colors[labels], s=9, linewidths=0)
    for label in range(min(SHOWN, labels.max() + 1)):
        x, y = np.median(positions[labels == label], axis=0)
        ax.annotate(
            str(label + 1),
            (x, y),
            ha="center",
            va="center",
            fontsize=8,
            fontweight="bold",
            bbox={"boxstyle": "round,pad=0.2", "fc": "white", "ec": colors[label], "alpha": 0.9},
        )
    ax.set(xticks=[], yticks=[], title="The images, coloured by cluster (a t-SNE map)")
    ax.spines[:].set_visible(False)


def draw_means(subfigure, images, labels, colors, n_columns=6):
    """Draw the mean image of the largest clusters, framed in the cluster's colour."""
    n_clusters = min(SHOWN, labels.max() + 1)
    n_rows = -(-n_clusters // n_columns)
    axes = subfigure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for label, ax in enumerate(axes):
        if label >= n_clusters:
            ax.axis("off")
            continue
        members = labels == label
        ax.imshow(images[members].mean(axis=0).reshape(8, 8), cmap="gray_r")
        ax.set(xticks=[], yticks=[])
        ax.set_title(f"{label + 1}: {members.sum()} images", fontsize=7, pad=3)
        ax.spines[:].set(color=colors[label], linewidth=2.5)
    subfigure.suptitle(
        f"The mean images of the {n_clusters} largest of {labels.max() + 1} clusters"
    )


def draw_picture(path, images, points, labels):
    """Write the map and the mean images, clusters numbered from the largest."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    order = np.argsort(-np.bincount(labels), kind="stable")
    labels = np.argsort(order)[labels]
    colors = matplotlib.colormaps["gist_rainbow"](np.linspace(0, 0.97, len(order)))
    colors[1::2, :3] *= 0.65
    positions = TSNE(max_iter=500, random_state=0).fit_transform(points)
    figure = plt.figure(figsize=(13, 6.2), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1), wspace=0.03)
    draw_map(left.subplots(), positions, labels, colors)
    draw_means(right, images, labels, colors)
    figure.savefig(path, dpi=110)


def main(path="demo.png"):
    images, digits = load_digits(return_X_y=True)
    images, held_out, digits, _ = train_test_split(images, digits, random_state=0)
    pca = PCA(N_COMPONENTS, random_state=0).fit(images)
    points, held_out = pca.transform(images), pca.transform(held_out)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a line of its own says it
        model = AnnealedDPMixture(random_state=0).fit(points)
    gaussian = GaussianMixture(1).fit(points)

    agreement = adjusted_rand_score(digits, model.labels_)
    print(f"{len(points)} images of handwritten digits, as {N_COMPONENTS} principal components")
    print(f"clusters found          {model.n_clusters_}")
    print(f"adjusted Rand index     {agreement:.2f}   (0: chance, 1: exactly the ten digits)")
    print(f"held-out log density    {model.score(held_out):.2f}   per image")
    print(f"  of a single Gaussian  {gaussian.score(held_out):.2f}")
    print(f"chains agree            {'yes' if model.converged_ else 'no: see convergence_'}")
    draw_picture(path, images, points, model.labels_)
    print(f"picture                 {path}")


if __name__ == "__main__":
    main(*sys.argv[1:])
