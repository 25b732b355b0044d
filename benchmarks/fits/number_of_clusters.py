"""Whether a number of clusters that is said to be probable is the true one so often.

    python benchmarks/fits/number_of_clusters.py                # 40 minutes, then cut
    python benchmarks/fits/number_of_clusters.py --seeds 1 --sets overlap_k3

Tables are simulated whose form is drawn by the seed: 2 to 5 normal clusters of which 1, 3, 5 or 10
rows in 100 are given to the wrong one by the rule that knows them, with 100 to 5,000 rows in 2 to
30 columns; 6 to 20 of more unequal widths in 2 and 5 columns, of which 3 or 7 in 100 are; and one
or two of the shapes of `told_apart.py`. A line of `benchmarks/results/number_of_clusters.jsonl` has
the true number, the number found, and the probabilities of `n_clusters_proba_`. Of 2 to 5 clusters
there is a yardstick, which is told that clusters are normal and as wide in each direction: their
mixture by maximum likelihood, and the probabilities of 1 to 8 clusters by BIC. At the end stated
probabilities are compared with how often they came true.
"""

import collections
import json
import sys
from pathlib import Path

import numpy as np
from scipy.special import softmax
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from skanneal import AnnealedDPMixture

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from fits.shapes import SHAPES
from fits.told_apart import exponential, normals, one_or_two
from harness.suite import Suite

ERRORS = 0.01, 0.03, 0.05, 0.1
MOST = 8  # clusters by BIC
EDGES = 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 1.01


def overlap(k):
    """A few normal clusters."""

    def draw(seed):
        rng = np.random.default_rng([seed, k])
        n, d = rng.choice([100, 200, 400, 1000, 2000, 5000]), rng.choice([2, 3, 5, 10, 20, 30])
        return normals(k, int(d), int(n), float(rng.choice(ERRORS)), seed)

    return draw


def unequal(seed):
    """Many normal clusters."""
    rng = np.random.default_rng([seed, 6])
    k, d, n = rng.integers(6, 21), rng.choice([2, 5]), rng.choice([1000, 2000, 4000])
    return normals(int(k), int(d), int(n), float(rng.choice([0.03, 0.07])), seed)


def shapes(two):
    """One cluster or two of a shape."""

    def draw(seed):
        rng = np.random.default_rng([seed, two])
        shape = [*SHAPES, exponential][rng.integers(len(SHAPES) + 1)]
        n, d = rng.choice([100, 300, 1000, 2000]), rng.choice([2, 5, 10])
        return one_or_two(shape, two, int(n), int(d), seed)

    return draw


def tables(folder):
    """What draws a table, by name."""
    out = {f"overlap_k{k}": overlap(k) for k in (2, 3, 4, 5)}
    return out | {"one_shape": shapes(0), "two_shapes": shapes(1), "unequal": unequal}


def default(seed):
    return AnnealedDPMixture(n_jobs=1, random_state=seed)


def by_bic(X, seed):
    """Probabilities of 1 to 8 clusters, by exp(-BIC / 2)."""
    options = {"covariance_type": "spherical", "n_init": 3, "random_state": seed}
    mixtures = [GaussianMixture(k, **options).fit(X) for k in range(1, MOST + 1)]
    return softmax([-mixture.bic(X) / 2 for mixture in mixtures])


def measure(draw, method, seed):
    """The true number, the one found, and what is said of each."""
    X, labels, known = draw(seed)
    model = method(seed).fit(X)
    record = {
        "shape": list(X.shape),
        "n_true_clusters": len(np.unique(labels)),
        "n_clusters": model.n_clusters_,
        "proba": np.round(model.n_clusters_proba_, 4).tolist(),
        "ari": round(adjusted_rand_score(labels, model.labels_), 4),
        "bayes": round(adjusted_rand_score(labels, known), 4),
    }
    if 1 < record["n_true_clusters"] <= 5 and (known != labels).any():
        record["by_bic"] = [0.0, *np.round(by_bic(X, seed), 4).tolist()]
    return record


def reliability(said, true):
    """Mean of the probabilities of each bin, share of them that came true, and how many.

    said : list of list of float
        Of each table, the probabilities of 0, 1, 2 and so on; the last is that of more.
    """
    true = [min(number, len(of) - 1) for of, number in zip(said, true)]
    came = np.concatenate([np.arange(len(of)) == number for of, number in zip(said, true)])
    said = np.concatenate(said)
    for low, high in zip(EDGES, EDGES[1:]):
        of = (said >= low) & (said < high)
        if of.any():
            yield said[of].mean(), came[of].mean(), of.sum()


def count(path):
    """Print, of each sort, how often the number is right, and what was said of that."""
    of_sort = collections.defaultdict(list)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line["version"] == lines[-1]["version"]:
            of_sort[line["set"].split("_")[0]].append(line)
    of_sort["all"] = sum(of_sort.values(), [])
    for sort, found in of_sort.items():
        report(sort, found, "proba")
        several = [line for line in found if line["n_clusters"] > 1]
        if sort == "overlap" and several:
            report("overlap, more than one cluster found", several, "proba")
        if rows := [line for line in found if "by_bic" in line and sort == "overlap"]:
            report("overlap, by BIC", rows, "by_bic")


def report(sort, lines, name):
    """Print what the probabilities of this name are worth in tables of one sort."""
    said, true = ([line[key] for line in lines] for key in (name, "n_true_clusters"))
    found = [int(np.argmax(of)) for of in said]
    right = np.equal(found, true)
    stated = np.mean([max(of) for of in said])
    print(f"{sort}: {len(right)} tables, right number {right.mean():.3f}, said {stated:.3f}")
    for mean, share, n in reliability(said, true):
        print(f"    said {mean:.3f}, came true {share:.3f} of {n}")
    if name == "by_bic":
        return
    all_of_them = [len(of) - 2 == number for of, number in zip(said, found)]
    more = [k > number for k, number, whole in zip(true, found, all_of_them) if whole]
    print(f"    of {len(more)} whose components are all clusters {sum(more)} have more clusters")


SUITE = Suite("number_of_clusters", tables, {"skanneal": {"default": default}}, measure)

if __name__ == "__main__":
    count(SUITE.run(__doc__))
