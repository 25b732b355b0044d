"""Whether pairs of columns that depend on each other are found in small tables.

    python benchmarks/fits/pairs.py                            # 40 minutes, then cut

Five pairs of columns; the rows of each pair fall into two clusters, five standard deviations
apart, which have nothing to do with those of the other pairs. The error of a default fit of
`CrossCatPY` is the sum, over the 45 pairs of columns, of how far the probability that they depend
on each other is from the truth. Results are lines of `benchmarks/results/pairs.jsonl`; at the end
the errors of each size are printed.
"""

import collections
import json
import sys
from pathlib import Path

import numpy as np

from skanneal import CrossCatPY

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from harness.suite import Suite

N_PAIRS, DISTANCE = 5, 5.0


def sizes(folder):
    """Numbers of rows by name."""
    return {f"n{n}": n for n in (40, 60, 100, 200)}


def default(seed):
    return CrossCatPY(n_jobs=1, random_state=seed)


def measure(n, method, seed):
    """The error of the dependence probabilities."""
    rng = np.random.default_rng([seed, n])
    clusters = np.repeat(rng.integers(0, 2, (n, N_PAIRS)), 2, axis=1)
    X = rng.normal(size=clusters.shape) + DISTANCE * clusters
    model = method(seed).fit(X)
    pair = np.arange(2 * N_PAIRS) // 2
    wrong = np.abs(model.dependence_probability() - (pair[:, None] == pair))
    error = wrong[np.triu_indices(2 * N_PAIRS, 1)].sum()
    return {"error": round(float(error), 4), "converged": bool(model.converged_)}


def count(path):
    """Print the errors of each size."""
    errors = collections.defaultdict(list)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line["version"] == lines[-1]["version"]:
            errors[line["set"]].append(line["error"])
    for name, of in errors.items():
        print(f"{name:6s} mean {np.mean(of):.3f}, worst {max(of):.3f}:", *of)


if __name__ == "__main__":
    count(Suite("pairs", sizes, {"skanneal": {"default": default}}, measure).run(__doc__))
