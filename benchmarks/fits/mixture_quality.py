"""Held-out density of fitted mixtures against the true one, from 20 equal clusters.

    python benchmarks/fits/mixture_quality.py                           # 10 seeds, both families
    python benchmarks/fits/mixture_quality.py --families normal --seeds 3

20,000 rows of 40 columns from 20 clusters of equal size. Normal: means N(0, 1.2^2), variances 1.
Categorical: 4 levels, each cluster's and column's probabilities Dirichlet(0.5). One chain, defaults
otherwise, fits one after another. Printed: the gap, mean log density of 4,000 fresh rows under the
truth less that under the fit, in nats per row (0.03 to 0.07 is what estimating the clusters from so
many rows costs at best), the clusters found (20 in truth) and the seconds of the fit.
"""

import argparse
import csv
import time
from pathlib import Path

import numpy as np
from scipy.special import logsumexp

from skanneal import AnnealedDPMixture

N_CLUSTERS = 20
N_COLUMNS = 40
N_LEVELS = 4
MOST_GAP = 0.1  # nats per row
MOST_SECONDS = 10.0


def normal_table(rng, labels, fresh_labels):
    """Training rows, fresh rows and the fresh rows' true log densities."""
    means = rng.normal(0, 1.2, size=(N_CLUSTERS, N_COLUMNS))
    train = means[labels] + rng.normal(size=(len(labels), N_COLUMNS))
    fresh = means[fresh_labels] + rng.normal(size=(len(fresh_labels), N_COLUMNS))
    squares = ((fresh[:, None] - means) ** 2).sum(axis=-1)
    return train, fresh, mixed(-0.5 * squares - N_COLUMNS / 2 * np.log(2 * np.pi))


def categorical_table(rng, labels, fresh_labels):
    """As `normal_table`; codes of levels."""
    probabilities = rng.dirichlet(np.full(N_LEVELS, 0.5), size=(N_CLUSTERS, N_COLUMNS))
    edges = np.cumsum(probabilities, axis=-1)[..., :-1]

    def draw(labels):
        uniforms = rng.random((len(labels), N_COLUMNS, 1))
        return (uniforms > edges[labels]).sum(axis=-1)

    train, fresh = draw(labels), draw(fresh_labels)
    log_p = np.log(probabilities)
    by_column = [log_p[:, j, fresh[:, j]].T for j in range(N_COLUMNS)]
    return train, fresh, mixed(np.sum(by_column, axis=0))


def mixed(log_densities):
    """Log density of the mixture of equal weights, from (n_rows, n_clusters)."""
    return logsumexp(log_densities, axis=1) - np.log(N_CLUSTERS)


TABLES = {"normal": normal_table, "categorical": categorical_table}


def measure(family, seed, n_rows, n_fresh):
    """One fit: a row of the table."""
    rng = np.random.default_rng([seed, list(TABLES).index(family)])
    labels = rng.permutation(np.arange(n_rows) % N_CLUSTERS)
    fresh_labels = rng.integers(N_CLUSTERS, size=n_fresh)
    train, fresh, truth = TABLES[family](rng, labels, fresh_labels)
    model = AnnealedDPMixture(n_chains=1, random_state=seed)
    start = time.perf_counter()
    model.fit(train)
    seconds = time.perf_counter() - start
    return {
        "family": family,
        "seed": seed,
        "gap": float(truth.mean()) - model.score(fresh),
        "clusters": model.n_clusters_,
        "seconds": seconds,
    }


def verdict(family, rows):
    """A sentence: how many seeds are within the limits, and the worst."""
    good = sum(row["gap"] <= MOST_GAP and row["seconds"] <= MOST_SECONDS for row in rows)
    gaps = [row["gap"] for row in rows]
    return (
        f"{family}: {good} of {len(rows)} seeds within {MOST_GAP} nats and {MOST_SECONDS:g} s; "
        f"gap {np.mean(gaps):.4f} on average, {max(gaps):.4f} at most; "
        f"at most {max(row['seconds'] for row in rows):.2f} s"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--families", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--fresh", type=int, default=4_000, help="rows the gap is measured on")
    parser.add_argument("--output", type=Path, help="csv file to write")
    options = parser.parse_args()
    print(f"{'family':>12} {'seed':>5} {'gap':>8} {'clusters':>9} {'seconds':>8}")
    done = []
    for family in options.families:
        for seed in range(options.seeds):
            row = measure(family, seed, options.rows, options.fresh)
            done.append(row)
            print(
                f"{family:>12} {seed:5d} {row['gap']:8.4f} {row['clusters']:9d} "
                f"{row['seconds']:8.2f}",
                flush=True,
            )
    for family in options.families:
        print(verdict(family, [row for row in done if row["family"] == family]))
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        with open(options.output, "w", newline="") as file:
            writer = csv.DictWriter(file, list(done[0]))
            writer.writeheader()
            writer.writerows(done)


if __name__ == "__main__":
    main()
