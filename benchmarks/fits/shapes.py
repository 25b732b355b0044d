"""Whether one cluster of any shape is found as one, and two of them as two.

    python benchmarks/fits/shapes.py                            # 40 minutes, then cut
    python benchmarks/fits/shapes.py --seeds 1 --sets one_ring_d2_n300

One cluster, or two equal ones clearly apart: normal, t with 4 degrees of freedom, uniform on a
square, Gamma, ring and crescent, in 2, 5 and 10 columns, with 300, 1,000 and 5,000 rows. Ring and
crescent lie in the first two columns; the others are noise of the same width. Results are lines of
`benchmarks/results/shapes.jsonl`. At the end the fits that found the right number are counted.
"""

import collections
import json
import sys
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score

from skanneal import AnnealedDPMixture

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from harness.suite import Suite

NOISE = 0.1  # of ring and crescent, whose radius is 1


def normal(rng, n, d):
    return rng.normal(size=(n, d))


def t(rng, n, d):
    return rng.normal(size=(n, d)) / np.sqrt(rng.chisquare(4, size=(n, 1)) / 4)


def square(rng, n, d):
    return rng.random((n, d))


def gamma(rng, n, d):
    return rng.gamma(2.0, size=(n, d))


def _arc(rng, n, d, end):
    angle = rng.uniform(0.0, end, n)
    rows = NOISE * rng.normal(size=(n, d))
    rows[:, :2] += np.c_[np.cos(angle), np.sin(angle)]
    return rows


def ring(rng, n, d):
    return _arc(rng, n, d, 2 * np.pi)


def crescent(rng, n, d):
    return _arc(rng, n, d, np.pi)


# the distance of two centres along the second column: some ten widths, more where tails are heavy
SHAPES = {normal: 8.0, t: 30.0, square: 2.0, gamma: 20.0, ring: 4.0, crescent: 3.0}


def tables(folder):
    """How many clusters, their shape, columns and rows, by name."""
    return {
        f"{('one', 'two')[two]}_{shape.__name__}_d{d}_n{n}": (two, shape, n, d)
        for n in (300, 1000, 5000)
        for d in (2, 5, 10)
        for shape in SHAPES
        for two in (False, True)
    }


def default(seed):
    return AnnealedDPMixture(n_jobs=1, random_state=seed)


def measure(table, method, seed):
    """Clusters found in a table."""
    two, shape, n, d = table
    rng = np.random.default_rng([seed, n, d, two])
    X = shape(rng, n, d)
    labels = np.arange(n) % 2 * two
    X[:, 1] += SHAPES[shape] * labels
    model = method(seed).fit(X)
    ari = adjusted_rand_score(labels, model.labels_)
    return {"n_clusters": model.n_clusters_, "n_true_clusters": 1 + two, "ari": round(ari, 4)}


def count(path):
    """Print how many fits found the right number."""
    right = collections.defaultdict(list)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line["version"] == lines[-1]["version"]:
            number, shape, columns, rows = line["set"].split("_")
            found = line["n_clusters"] == line["n_true_clusters"]
            for key in (shape, columns, rows, "all"):
                right[number, key].append(found)
    for (number, key), found in right.items():
        print(f"{number} {key:10s} {sum(found)} of {len(found)}")


if __name__ == "__main__":
    count(Suite("shapes", tables, {"skanneal": {"default": default}}, measure).run(__doc__))
