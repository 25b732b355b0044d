"""What a default fit costs, whether it arrives, and what gaps and choosing a number cost beside.

    python benchmarks/fits/cost.py                            # scikit-learn's tables, and simulated
    python benchmarks/fits/cost.py DATA_FOLDER --seeds 10     # and those of a folder

Each table is fitted by default on one thread (`default`), and again with a tenth of its cells
missing (`gaps`). The rival is what `GaussianMixture` asks its users to do: full covariances, one
fit for each number of components from 1 to 20, and the best by BIC (`gaussian_mixture`). The folder
has `classics`, tables as CSV files, `clustering` and `outliers`, numbers as `X` of NPZ files.
A line of `benchmarks/results/cost.jsonl` has the processor seconds of the fit, the number of
clusters, and whether the chains agreed in everything (`converged`) or on each answer (`settled`).
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from skanneal import AnnealedDPMixture

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from harness.suite import Suite, records

BUNDLED = {
    "iris": load_iris,
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
    "diabetes": load_diabetes,
}
BLOBS = 3_000, 30_000, 300_000, 1_000_000  # rows of twenty Gaussians in five dimensions
CLASSICS = "faithful", "galaxy", "penguins"
REAL = {
    "s1": ("clustering", "sipu_s1"),
    "birch1": ("clustering", "sipu_birch1"),
    "pendigits": ("outliers", "28_pendigits"),
    "magic": ("outliers", "22_magic.gamma"),
}
GAPS, MOST_COMPONENTS = 0.1, 20
OF_GAPS = 1000  # begins the seed of which cells are missing


def blobs(n_rows, seed):
    """Rows of twenty round Gaussians, some of which overlap."""
    rng = np.random.default_rng(seed)
    centres = 2.5 * rng.normal(size=(20, 5))
    of, wide = rng.integers(20, size=n_rows), rng.uniform(0.5, 1.5, (20, 1))
    return centres[of] + wide[of] * rng.normal(size=(n_rows, 5))


def tables(folder):
    """Functions of a seed that give a table, by its name."""
    found = {name: lambda seed, load=load: load().data for name, load in BUNDLED.items()}
    if folder is not None:
        for name in CLASSICS:
            path = folder / "classics" / f"{name}.csv.gz"
            found[name] = lambda seed, path=path: pd.read_csv(path)
        for name, (kind, stem) in REAL.items():
            path = folder / kind / f"{stem}.npz"
            found[name] = lambda seed, path=path: np.load(path)["X"].astype(float)
    for n_rows in BLOBS:
        found[f"blobs {n_rows:,}"] = lambda seed, n_rows=n_rows: blobs(n_rows, seed)
    return found


def of_fit(blanked):
    """A method: a default fit, a share of whose cells is missing."""

    def method(X, seed):
        X = pd.DataFrame(X)
        out = np.random.default_rng([OF_GAPS, seed]).random(X.shape) < blanked
        return X.mask(out), AnnealedDPMixture(n_jobs=1, random_state=seed)

    return method


class BestByBic:
    """Gaussian mixtures of full covariances, one for each number, and which has the least BIC."""

    def __init__(self, seed):
        self.seed = seed

    def fit(self, X):
        """Fit them all."""
        X = StandardScaler().fit_transform(X)
        most = min(MOST_COMPONENTS, len(X))
        fits = [GaussianMixture(k, random_state=self.seed).fit(X) for k in range(1, most + 1)]
        self.n_clusters_ = 1 + int(np.argmin([fit.bic(X) for fit in fits]))
        return self


def gaussian_mixture(X, seed):
    """The rival, on the columns of numbers."""
    return pd.DataFrame(X).select_dtypes("number").dropna().to_numpy(), BestByBic(seed)


def measure(load, method, seed):
    """The seconds of one fit, and what it says."""
    X, model = method(load(seed), seed)
    began = time.process_time()
    model.fit(X)
    record = {"fit": round(time.process_time() - began, 2), "n_clusters": int(model.n_clusters_)}
    if hasattr(model, "converged_"):
        settled = bool(model.convergence_["settled"])
        record |= {"converged": bool(model.converged_), "settled": settled}
    return record


METHODS = {
    "skanneal": {"default": of_fit(0.0), "gaps": of_fit(GAPS)},
    "scikit-learn": {"gaussian_mixture": gaussian_mixture},
}
SUITE = Suite("cost", tables, METHODS, measure)


def summary(folder):
    """Print the median and worst seconds of each table and method, and how many arrived."""
    for (_, method), by_set in records("cost", folder).items():
        for name, of_set in by_set.items():
            seconds = [record["fit"] for record in of_set]
            print(
                json.dumps(
                    {
                        "set": name,
                        "method": method,
                        "seeds": len(of_set),
                        "median": round(float(np.median(seconds)), 2),
                        "worst": max(seconds),
                        "converged": sum(record.get("converged", False) for record in of_set),
                        "settled": sum(record.get("settled", False) for record in of_set),
                        "clusters": [record["n_clusters"] for record in of_set],
                    }
                )
            )


if __name__ == "__main__":
    summary(SUITE.run(__doc__.splitlines()[0]).parent)
