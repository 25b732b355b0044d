"""Whether clusters that overlap are told apart, and shapes of many components left whole.

    python benchmarks/fits/told_apart.py                        # 40 minutes, then cut
    python benchmarks/fits/told_apart.py --seeds 1 --sets normal_k2_d5_n400_e05

2 to 5 normal clusters of which 1, 3, 5 or 10 rows in 100 are given to the wrong one by the rule
that knows them (Bayes's rule), in 2 to 30 columns, 100 to 1,500 rows; 6, 10 and 20 of more unequal
widths, of which 7 in 100 are; and one or two of the shapes of `shapes.py`, and exponential ones. A
line of `benchmarks/results/told_apart.jsonl` has the adjusted Rand index of the labels, of the
components and of Bayes's rule. At the end there are their means, and the share of right numbers.
For the method "pairs_as_they_are" pairs of components are a share of as many as there are, however
few.
"""

import collections
import contextlib
import json
import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np
from sklearn.metrics import adjusted_rand_score

from skanneal import AnnealedDPMixture
from skanneal.summary import _cluster_tree

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from fits.shapes import SHAPES
from harness.suite import Suite

PROBED = 20_000  # rows by which the share in error is found
HALVINGS = 22  # of the interval of distances


def exponential(rng, n, d):
    return rng.exponential(size=(n, d))


def one_or_two(shape, two, n, d, seed):
    """One cluster of a shape, or two: rows, labels, and what is known at best."""
    rng = np.random.default_rng([seed, n, d, two])
    X, labels = shape(rng, n, d), np.arange(n) % 2 * two
    X[:, 1] += SHAPES.get(shape, 8.0) * labels
    return X, labels, labels


def normals(k, d, n, error, seed):
    """Normal clusters, as far apart as makes the share of rows in error that is wanted."""
    rng = np.random.default_rng([seed, k, d, n, round(1000 * error)])
    centres = rng.normal(size=(k, d))
    widths = rng.uniform(0.5, 1.5, k) if k > 5 else rng.uniform(0.7, 1.3, k)
    shares = rng.dirichlet(np.full(k, 5.0))

    def bayes(X, apart):
        squares = [((X - apart * c) ** 2).sum(axis=1) / w**2 for c, w in zip(centres, widths)]
        return (np.log(shares) - d * np.log(widths) - 0.5 * np.stack(squares, axis=1)).argmax(1)

    labels, noise = rng.choice(k, PROBED, p=shares), rng.normal(size=(PROBED, d))
    low, high = 0.0, 60.0
    for _ in range(HALVINGS):
        apart = (low + high) / 2
        X = apart * centres[labels] + noise * widths[labels, None]
        low, high = (apart, high) if (bayes(X, apart) != labels).mean() > error else (low, apart)
    labels = rng.choice(k, n, p=shares)
    X = high * centres[labels] + rng.normal(size=(n, d)) * widths[labels, None]
    return X, labels, bayes(X, high)


def tables(folder):
    """What makes a table, and with what, by name."""
    out = {
        f"normal_k{k}_d{d}_n{n}_e{round(100 * error):02d}": (normals, (k, d, n, error))
        for n in (100, 400, 1500)
        for error in (0.01, 0.03, 0.05, 0.1)
        for k, d in ((2, 2), (2, 5), (3, 2), (3, 5), (4, 10), (5, 2), (2, 30))
        if n > 100 or d < 10
    }
    out |= {
        f"unequal_k{k}_d{d}_n2000_e07": (normals, (k, d, 2000, 0.07))
        for k in (6, 10, 20)
        for d in (2, 5)
    }
    return out | {
        f"{('one', 'two')[two]}_{shape.__name__}_d{d}_n{n}": (one_or_two, (shape, two, n, d))
        for n in (300, 1500)
        for d in (2, 5)
        for shape in (*SHAPES, exponential)
        for two in (False, True)
    }


def default(seed):
    return AnnealedDPMixture(n_jobs=1, random_state=seed)


METHODS = {
    "default": contextlib.nullcontext,
    "pairs_as_they_are": lambda: patch.object(_cluster_tree, "FEW_PAIRS", 1),
}


def measure(table, method, seed):
    """Indices of the labels, the components and Bayes's rule."""
    make, asked = table
    X, labels, known = make(*asked, seed)
    with method():
        model = default(seed).fit(X)
    found = {"ari": model.labels_, "components": model.component_labels_, "bayes": known}
    return {
        **{name: round(adjusted_rand_score(labels, of), 4) for name, of in found.items()},
        "n_clusters": model.n_clusters_,
        "n_components": model.n_components_,
        "n_true_clusters": len(np.unique(labels)),
    }


def count(path):
    """Print means over the tables of each sort, and the share of those with the right number."""
    of_sort = collections.defaultdict(list)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line["version"] == lines[-1]["version"]:
            parts = line["set"].split("_")
            sort = parts[:2] if parts[0] in ("one", "two") else [parts[0], *parts[3:]]
            sort = [line["method"], *sort]
            right = line["n_clusters"] == line["n_true_clusters"]
            of_sort[" ".join(sort)].append(
                [line["ari"], line["components"], line["bayes"], float(right)]
            )
    print("sort, tables, index of labels, of components, of Bayes's rule, right numbers")
    for sort, found in sorted(of_sort.items()):
        print(f"{sort:40s} {len(found):3d}", *(f"{mean:.3f}" for mean in np.mean(found, axis=0)))


if __name__ == "__main__":
    count(Suite("told_apart", tables, {"skanneal": METHODS}, measure).run(__doc__))
