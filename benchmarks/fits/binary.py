"""Binary tables that densities are compared on: a mixture and a CrossCat, each with its defaults.

    python benchmarks/fits/binary.py DATA_FOLDER                  # 40 minutes, then cut
    python benchmarks/fits/binary.py DATA_FOLDER --sets plants --seeds 1

The folder has an npz file per table with `train`, `valid` and `test` as packed bits and
`n_columns`. Fits see the training rows alone. A line of `benchmarks/results/binary.jsonl` has the
mean log density of the test rows in nats and its standard error, and the components and views of
each chain's last draw.
"""

import numpy as np

from skanneal import AnnealedDPMixture, CrossCatPY
from suite import Suite, files


def measure(path, cls, seed):
    """The held-out density of a default fit."""
    with np.load(path) as file:
        count = int(file["n_columns"])
        train, test = (
            np.unpackbits(file[part], axis=1, count=count).astype(bool)
            for part in ("train", "test")
        )
    model = cls(families="bernoulli", n_jobs=1, random_state=seed).fit(train)
    density = model.score_samples(test)
    last = [chain[-1] for chain in model.draws_]
    return {
        "score": round(float(density.mean()), 4),
        "error": round(float(density.std(ddof=1) / np.sqrt(len(density))), 4),
        "components": [int(np.sum(draw.n_components)) for draw in last],
        "views": [getattr(draw, "n_views", 1) for draw in last],
        "sweeps": round(model.n_sweeps_, 1),
        "converged": bool(model.converged_),
    }


METHODS = {"mixture": AnnealedDPMixture, "crosscat": CrossCatPY}

if __name__ == "__main__":
    Suite("binary", files, {"skanneal": METHODS}, measure).run(__doc__)
