"""Find groups among tumours without knowing a diagnosis: `make demo` runs this.

Each row is a tumour, each column one of 30 measurements of its cells' nuclei; the diagnoses are
kept back until the end. Prints how the families were chosen, the clusters and who is in them, and
the log density of tumours that were held out, beside that of scikit-learn's Gaussian mixture. Draws
the clusters into demo.png, or the path given on the command line.
"""

import sys
import warnings

import matplotlib
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import train_test_split

from skanneal import AnnealedDPMixture

SHOWN = "worst concave points", "worst area"
DIAGNOSES = "malignant", "benign"  # 0 and 1
MARKERS = "^", "o"


def best_gaussian_mixture(X, held_out):
    """Score the Gaussian mixture of 1 to 10 components that the BIC prefers."""
    fits = [GaussianMixture(k, random_state=0).fit(X) for k in range(1, 11)]
    return min(fits, key=lambda fit: fit.bic(X)).score(held_out)


def draw_picture(path, X, diagnoses, labels):
    """Write the tumours, coloured by cluster, and each cluster's diagnoses."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(
        1, 2, figsize=(12, 5.4), width_ratios=(1.3, 1), layout="constrained"
    )
    colors = matplotlib.colormaps["tab10"](labels % 10)
    for diagnosis, marker in enumerate(MARKERS):
        rows = diagnoses == diagnosis
        left.scatter(
            *(X.loc[rows, column] for column in SHOWN),
            c=colors[rows],
            marker=marker,
            s=22,
            alpha=0.75,
            linewidths=0,
        )
        left.scatter([], [], c="0.4", marker=marker, label=f"{DIAGNOSES[diagnosis]} in truth")
    left.set(xlabel=SHOWN[0], ylabel=SHOWN[1], title="Tumours, coloured by cluster")
    left.legend(frameon=False)
    n_rows = np.bincount(labels)
    malignant = np.bincount(labels[diagnoses == 0], minlength=len(n_rows))
    clusters, colors = np.arange(len(n_rows)), matplotlib.colormaps["tab10"](range(len(n_rows)))
    right.bar(clusters, malignant, color=colors)
    bars = right.bar(clusters, n_rows - malignant, bottom=malignant, color=colors, alpha=0.3)
    shares = [f"{share:.0%}" for share in malignant / n_rows]
    right.bar_label(bars, shares, padding=2)
    right.set(xlabel="cluster", ylabel="tumours", title="Malignant in truth (dark, and above)")
    right.set_xticks(clusters, clusters + 1)
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


def main(path="demo.png"):
    X, diagnoses = load_breast_cancer(return_X_y=True, as_frame=True)
    X, held_out, diagnoses, _ = train_test_split(X, diagnoses.to_numpy(), random_state=0)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a line of its own says it
        model = AnnealedDPMixture(n_jobs=-1, random_state=0).fit(X)
    order = np.argsort(-np.bincount(model.labels_), kind="stable")
    labels = np.argsort(order)[model.labels_]  # from the largest cluster on
    evidence = model.family_evidence_

    print(f"{len(X)} tumours, {X.shape[1]} measurements each, no diagnosis")
    print(f"family chosen           {evidence['winner']}")
    print(f"  ahead by              {evidence['margin']:.1f} nats per tumour")
    print(f"clusters found          {model.n_clusters_}")
    for cluster, n_rows in enumerate(np.bincount(labels)):
        malignant = np.mean(diagnoses[labels == cluster] == 0)
        print(f"  {cluster + 1}: {n_rows:3d} tumours       {malignant:.0%} malignant")
    agreement = adjusted_rand_score(diagnoses, labels)
    print(f"adjusted Rand index     {agreement:.2f}   (0: chance, 1: exactly the diagnoses)")
    print(f"held-out log density    {model.score(held_out):.2f}   per tumour")
    print(f"  of a Gaussian mixture {best_gaussian_mixture(X, held_out):.2f}")
    print(f"chains agree            {'yes' if model.converged_ else 'no: see convergence_'}")
    draw_picture(path, X, diagnoses, labels)
    print(f"picture                 {path}")


if __name__ == "__main__":
    main(*sys.argv[1:])
