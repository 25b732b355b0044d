"""Binary tables that densities are compared on: a mixture and a CrossCat, each with its defaults,
a mixture and a CrossCat whose components bind their columns by forests (`margins="data"`), and
beside them the tree of Chow and Liu (1968). The CrossCat with forests has more chains and draws
than others: where rows are many and views large, densities gain by averaging.

    python benchmarks/fits/binary.py DATA_FOLDER                  # 40 minutes, then cut
    python benchmarks/fits/binary.py DATA_FOLDER --sets plants --seeds 1

The folder has an npz file per table with `train`, `valid` and `test` as packed bits and
`n_columns`. Fits see the training rows alone. A line of `benchmarks/results/binary.jsonl` has the
mean log density of the test rows in nats and its standard error, and of ours the components and
views of each chain's last draw.
"""

import sys
from pathlib import Path

import numpy as np
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from skanneal import AnnealedDPMixture, CrossCatPY

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from harness.suite import Suite, files


def ours(cls, **parameters):
    """The log densities of the test rows under a default fit, and what is told of it."""

    def densities(train, test, seed):
        own = parameters | {"n_jobs": 1, "random_state": seed}
        model = cls(families="bernoulli", **own).fit(train)
        last = [chain[-1] for chain in model.draws_]
        return model.score_samples(test), {
            "components": [int(np.sum(draw.n_components)) for draw in last],
            "views": [getattr(draw, "n_views", 1) for draw in last],
            "sweeps": round(model.n_sweeps_, 1),
            "converged": bool(model.converged_),
        }

    return densities


def chow_liu(train, test, seed):
    """The same of the tree of columns with the most mutual information; it has no chance in it.

    A pair of columns has a Dirichlet(1/4, ..., 1/4) for its four cells.
    """
    ones = train.astype(float)
    both, n = ones.T @ ones, len(train)
    counts = np.empty((2, 2, *both.shape))  # [x, y, i, j]: rows with x in column i and y in j
    counts[1, 1] = both
    counts[1, 0] = np.diag(both)[:, None] - both
    counts[0, 1] = np.diag(both)[None, :] - both
    counts[0, 0] = n - counts[1, 1] - counts[1, 0] - counts[0, 1]
    joint = (counts + 0.25) / (n + 1.0)
    conditional = np.log(joint / joint.sum(axis=1, keepdims=True))  # of y given x
    single = np.log(joint[:, :, 0].sum(axis=0))  # [y, j]
    information = (joint * (conditional - single[None, :, None, :])).sum(axis=(0, 1))
    np.fill_diagonal(information, 0.0)
    # The tree takes 0 for no edge, so the lengths are made positive.
    tree = minimum_spanning_tree(1.0 + information.max() - information)
    order, parent = breadth_first_order(tree, 0, directed=False)
    cells = test.astype(int)
    density = single[cells[:, 0], 0]
    for j in order[1:]:
        density = density + conditional[cells[:, parent[j]], cells[:, j], parent[j], j]
    return density, {}


def measure(path, densities, seed):
    """The held-out density."""
    with np.load(path) as file:
        count = int(file["n_columns"])
        train, test = (
            np.unpackbits(file[part], axis=1, count=count).astype(bool)
            for part in ("train", "test")
        )
    density, told = densities(train, test, seed)
    return {
        "score": round(float(density.mean()), 4),
        "error": round(float(density.std(ddof=1) / np.sqrt(len(density))), 4),
    } | told


METHODS = {
    "skanneal": {
        "mixture": ours(AnnealedDPMixture),
        "forests": ours(AnnealedDPMixture, margins="data"),
        "crosscat": ours(CrossCatPY),
        "crosscat_forests": ours(CrossCatPY, margins="data", n_chains=8, n_draws=200),
    },
    "scipy": {"chow_liu": chow_liu},
}

if __name__ == "__main__":
    Suite("binary", files, METHODS, measure).run(__doc__)
