"""What parts by peaks of the density are worth where normal laws overlap.

    python benchmarks/fits/peaks.py --seeds 20                  # 40 minutes, then cut

A table has 3 to 50 normal clusters of unequal widths, round ones (`round`) or such that are
stretched and turned (`stretched`), in 2 to 8 columns and 1,000 to 6,000 rows, so far apart that the
Bayes rule, which knows them, errs in 3, 8 or 15 % of the rows. It is fitted by default, and with
parts by peaks wherever a component lies beneath several of the clusters that these show, also if
whole components show more (`peaks_first`). A line of `benchmarks/results/peaks.jsonl` has the
adjusted Rand indices of the labels, of the components and of the Bayes rule, and the numbers of
clusters. At the end there are their means.
"""

import json
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from skanneal import AnnealedDPMixture
from skanneal.predictive import _clusters

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from fits.laws import Gaussians
from harness.suite import Suite

NUMBERS, COLUMNS, ROWS = (3, 6, 12, 25, 50), (2, 3, 5, 8), (1000, 3000, 6000)
ERRORS = 0.03, 0.08, 0.15
PROBED, HALVINGS = 5_000, 14


def drawn(stretched, seed):
    """The rows, their clusters, and those by the Bayes rule."""
    rng = np.random.default_rng([seed, stretched])
    k, d, n, error = (rng.choice(of) for of in (NUMBERS, COLUMNS, ROWS, ERRORS))
    shares, centres = rng.dirichlet(np.full(k, 5.0)), rng.normal(size=(k, d))
    factors = rng.uniform(0.6, 1.6, (k, 1, 1)) * np.eye(d)
    if stretched:
        turns = [np.linalg.qr(rng.normal(size=(d, d)))[0] for _ in range(k)]
        factors = factors @ turns * np.exp(rng.normal(0.0, 0.4, (k, 1, d)))
    covariances = factors @ factors.transpose(0, 2, 1)
    low, high = 0.0, 40.0
    for _ in range(HALVINGS):
        apart = (low + high) / 2
        law = Gaussians(shares, apart * centres, covariances)
        labels = law.labels(rng, PROBED)
        in_error = (law.bayes(law.sample(rng, labels)) != labels).mean()
        low, high = (apart, high) if in_error > error else (low, apart)
    labels = law.labels(rng, n)
    X = law.sample(rng, labels)
    return X, labels, law.bayes(X)


def default(X, seed):
    return AnnealedDPMixture(n_jobs=1, random_state=seed).fit(X)


def peaks_first(X, seed):
    with mock.patch.object(_clusters, "show_as_many", lambda *given: True):
        return default(X, seed)


def measure(stretched, method, seed):
    """Indices and numbers of clusters."""
    X, labels, by_bayes = drawn(stretched, seed)
    model = method(X, seed)
    indices = {
        "ari": model.labels_,
        "components": model.component_labels_,
        "bayes": by_bayes,
    }
    return {name: round(adjusted_rand_score(labels, of), 4) for name, of in indices.items()} | {
        "n_clusters": model.n_clusters_,
        "n_true_clusters": len(np.unique(labels)),
        "parted": model._clusters.joins.parted,
        "shape": list(X.shape),
    }


def count(path):
    """Print means of the last version's lines."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines = pd.DataFrame([line for line in lines if line["version"] == lines[-1]["version"]])
    lines["right"] = lines["n_clusters"] == lines["n_true_clusters"]
    columns = ["ari", "components", "bayes", "right", "parted"]
    print(lines.groupby(["set", "method"])[columns].mean().round(3))


if __name__ == "__main__":
    methods = {"skanneal": {"default": default, "peaks_first": peaks_first}}
    laws = {"round": 0, "stretched": 1}
    count(Suite("peaks", lambda folder: laws, methods, measure).run(__doc__))
