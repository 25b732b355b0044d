"""How many components the posterior has where the truth is one: a Gaussian and nothing else.

    python benchmarks/fits/how_many.py                            # 40 minutes, then cut
    python benchmarks/fits/how_many.py --seeds 1 --sets n1000_d2

Default fits under the process prior and the finite one, of independent and of correlated columns.
A line of `benchmarks/results/how_many.jsonl` has the share of the draws with one component, of all
chains and of each, the weights of the chains, and the number of clusters. At the end the worst and
the mean share of each table are printed, and how often there was one cluster.
"""

import collections
import json
import sys
from pathlib import Path

import numpy as np

from skanneal import AnnealedDPMixture

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from fits.models import all_draws, n_components
from harness.suite import Suite

TABLES = [(n, d) for n in (100, 300, 1000, 5000) for d in (1, 2, 5, 11, 20) if n >= 300 or d < 11]


def tables(folder):
    """Rows and columns by name."""
    return {f"n{n}_d{d}": (n, d) for n, d in TABLES}


METHODS = {
    f"{prior} {family}": {"partition_prior": prior, "families": family}
    for prior in ("pitman_yor", "finite")
    for family in ("normal", "multivariate_normal")
}


def measure(table, method, seed):
    """The share of draws with one component, and the number of clusters."""
    n, d = table
    X = np.random.default_rng([seed, n, d]).normal(size=(n, d))
    model = AnnealedDPMixture(**method, n_jobs=1, random_state=seed).fit(X)
    numbers = n_components(model).reshape(len(model.draws_), -1)
    assert numbers.size == len(all_draws(model))
    of_chains = (numbers == 1).mean(axis=1)
    return {
        "one": round(float(np.average(of_chains, weights=model.chain_weights_)), 4),
        "of_chains": np.round(of_chains, 2).tolist(),
        "most": int(numbers.max()),
        "n_clusters": int(model.n_clusters_),
        "converged": bool(model.converged_),
    }


def count(path):
    """Print the shares of each table and method, and how often there was one cluster."""
    found = collections.defaultdict(list)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line["version"] == lines[-1]["version"]:
            found[line["method"], line["set"]].append(line)
    for (method, name), of in found.items():
        shares, clusters = [line["one"] for line in of], [line["n_clusters"] == 1 for line in of]
        print(
            f"{method:30s} {name:10s} one component: mean {np.mean(shares):.3f}, least "
            f"{min(shares):.3f}; one cluster in {sum(clusters)} of {len(clusters)}; converged "
            f"{sum(line['converged'] for line in of)}"
        )


if __name__ == "__main__":
    count(Suite("how_many", tables, {"skanneal": METHODS}, measure).run(__doc__))
