"""Whether tables of levels alone are cut where they should be.

    python benchmarks/fits/levels.py                            # 40 minutes, then cut
    python benchmarks/fits/levels.py --seeds 1 --sets coins classes

The columns of "coins", "skewed" and "four" are independent: coins that are fair or not, and four
equal levels. "classes" are one to five latent classes, in each of which columns are independent. A
seed draws the table: 30 to 1,000 rows of 3 to 20 columns. "by_dips" is what the default would do if
valleys between levels were as sure as dips are. A line of `benchmarks/results/levels.jsonl` has the
adjusted Rand index of the labels, that of Bayes's rule, and the numbers of clusters. At the end
there are their means.
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
from harness.suite import Suite

ROWS, COLUMNS = (30, 50, 100, 300, 1000), (3, 5, 10, 20)


def coins(rng, d):
    return np.full((1, d, 2), 0.5)


def skewed(rng, d):
    of_one = rng.uniform(0.05, 0.95, (1, d))
    return np.stack([1.0 - of_one, of_one], axis=2)


def four(rng, d):
    return np.full((1, d, 4), 0.25)


def classes(rng, d):
    evenness = np.full(rng.integers(2, 5), rng.choice([0.2, 0.5, 1.0]))
    return rng.dirichlet(evenness, size=(rng.integers(1, 6), d))


LAWS = {law.__name__: (law, number) for number, law in enumerate((coins, skewed, four, classes))}


def drawn(law, number, seed):
    """A table, its classes, and those by Bayes's rule."""
    rng = np.random.default_rng([seed, number])
    n, d = int(rng.choice(ROWS)), int(rng.choice(COLUMNS))
    levels = law(rng, d)  # probabilities by class, column and level
    weights = rng.dirichlet(np.full(len(levels), 5.0))
    labels = rng.choice(len(levels), n, p=weights)
    cells = np.array([[rng.choice(len(p), p=p) for p in levels[k]] for k in labels])
    with np.errstate(divide="ignore"):
        logs = np.log(weights) + np.log(levels[:, np.arange(d), cells]).sum(axis=2).T
    table = pd.DataFrame(cells, columns=[f"column {j}" for j in range(d)])
    return table.astype(str).astype("category"), labels, logs.argmax(axis=1)


def default(table, seed):
    return AnnealedDPMixture(n_jobs=1, random_state=seed).fit(table)


def by_dips(table, seed):
    with mock.patch.object(_clusters, "two_groups", lambda *given: None):
        return default(table, seed)


def measure(law, method, seed):
    """Indices of the labels and of Bayes's rule, and numbers of clusters."""
    table, labels, by_bayes = drawn(*law, seed)
    model = method(table, seed)
    return {
        "ari": round(adjusted_rand_score(labels, model.labels_), 4),
        "bayes": round(adjusted_rand_score(labels, by_bayes), 4),
        "n_clusters": model.n_clusters_,
        "n_true_clusters": len(np.unique(labels)),
        "shape": list(table.shape),
    }


def count(path):
    """Print means of the last version's lines."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines = pd.DataFrame([line for line in lines if line["version"] == lines[-1]["version"]])
    lines["right"] = lines["n_clusters"] == lines["n_true_clusters"]
    lines["cut"] = lines["n_clusters"] > 1
    print(lines.groupby(["set", "method"])[["ari", "bayes", "right", "cut"]].mean().round(3))


if __name__ == "__main__":
    methods = {"skanneal": {"default": default, "by_dips": by_dips}}
    count(Suite("levels", lambda folder: LAWS, methods, measure).run(__doc__))
