"""Whether a row that is in a cluster with probability p is in it that often.

    python benchmarks/fits/reliability.py                       # some minutes
    python benchmarks/fits/reliability.py --seeds 2 --sets "3 normal"

Tables of 1,000 rows are simulated from clusters that overlap at their borders. A mixture is fitted
by default, its clusters are matched with the true ones, and `predict_proba` of 10,000 further rows
is compared with the clusters that they were drawn from. Results are lines of
`benchmarks/results/reliability.jsonl`: of each tenth of the probabilities how many there were,
their mean, and the share of them that came true. At the end they are added up over all tables of
which as many clusters were found as there are.
"""

import json
import sys
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment

from skanneal import AnnealedDPMixture

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from harness.lines import RESULTS
from harness.suite import Suite

N_ROWS, N_HELD_OUT, TENTHS = 1000, 10_000, 10


def normal(centres):
    """Normal clusters of equal shares at these centres."""

    def rows(rng, n):
        labels = rng.integers(len(centres), size=n)
        return np.asarray(centres)[labels] + rng.normal(size=(n, len(centres[0]))), labels

    return rows


def unequal(rng, n):
    """Two normal clusters of 80 and 20 %, one three times as wide as the other."""
    labels = (rng.random(n) < 0.2).astype(int)
    wide = np.where(labels == 0, 3.0, 1.0)[:, None]
    return np.array([[0.0, 0.0], [9.0, 0.0]])[labels] + wide * rng.normal(size=(n, 2)), labels


def skewed(rng, n):
    """Two clusters of Gamma-distributed columns, which take several components each."""
    labels = rng.integers(2, size=n)
    gamma = rng.gamma(3.0, size=(n, 2))
    return np.where(labels[:, None] == 0, gamma, 14.0 - gamma), labels


def levels(rng, n):
    """Two clusters of eight columns of three levels."""
    labels = rng.integers(2, size=n)
    likely = rng.random((n, 8)) < 0.8
    other = rng.integers(3, size=(n, 8))
    return np.where(likely, 2 * labels[:, None], other), labels


def simulations(folder):
    """The tables by name."""
    return {
        "2 normal": normal([[0, 0], [4, 0]]),
        "3 normal": normal([[0, 0, 0], [4, 0, 0], [0, 4.5, 0]]),
        "4 normal of 8 columns": normal(3.5 * np.eye(4, 8)),
        "unequal": unequal,
        "skewed": skewed,
        "levels": levels,
    }


def default(seed):
    return AnnealedDPMixture(n_jobs=1, random_state=seed)


def measure(simulate, method, seed):
    """The bins of one table."""
    rng = np.random.default_rng(seed)
    X, labels = simulate(rng, N_ROWS)
    held_out, truth = simulate(rng, N_HELD_OUT)
    model = method(seed).fit(X)
    probabilities = model.predict_proba(held_out)
    both = np.zeros((model.n_clusters_, labels.max() + 1))
    np.add.at(both, (model.labels_, labels), 1)
    its, true = linear_sum_assignment(-both)
    said = probabilities[:, its].ravel()
    came = (truth[:, None] == true).ravel()
    tenth = np.minimum((said * TENTHS).astype(int), TENTHS - 1)
    count = np.bincount(tenth, minlength=TENTHS)
    return {
        "n_clusters": model.n_clusters_,
        "n_true_clusters": both.shape[1],
        "count": count.tolist(),
        "said": np.bincount(tenth, said, TENTHS).round(3).tolist(),
        "came_true": np.bincount(tenth, came, TENTHS).astype(int).tolist(),
    }


def table(path):
    """Print the bins, added up."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    last = lines[-1]["version"]
    lines = [line for line in lines if line["version"] == last]
    right = [line for line in lines if line["n_clusters"] == line["n_true_clusters"]]
    print(f"{len(right)} of {len(lines)} fits have as many clusters as there are")
    total = {key: np.sum([line[key] for line in right], axis=0) for key in BINS}
    print("probabilities  mean said  came true")
    for count, said, came in zip(*total.values()):
        print(f"{count:13d}  {said / count:9.3f}  {came / count:9.3f}")
    gap = np.abs(total["said"] - total["came_true"]).sum() / total["count"].sum()
    print(f"expected calibration error {gap:.4f}")


BINS = "count", "said", "came_true"

if __name__ == "__main__":
    Suite("reliability", simulations, {"skanneal": {"default": default}}, measure).run(__doc__)
    table(RESULTS / "reliability.jsonl")
