"""Whether a fit finds a partition as probable as the true one, climbed.

    python benchmarks/fits/truth.py DATA_FOLDER                 # 40 minutes, then cut
    python benchmarks/fits/truth.py DATA_FOLDER --sets sipu_s3 sipu_s4 --seeds 1

The tables are those of `clustering.py`. A chain with the families of a default fit, and with the
hyperparameters of its first chain to begin with, starts at each of a table's labellings, and makes
80 sweeps of Gibbs and split-merge moves. Of its draws the best one is climbed, as the best one of
the fit is: each row moves to its best component, until none moves. A line of
`benchmarks/results/truth.jsonl` has the log joint density of both, in nats, the greatest of a
table's labellings, and the seconds of processor time that fit and climb took.

Few components of many rows have a higher density than many components, of which there are far more
partitions, and where components overlap a posterior may have all its mass on the latter. A chain
that is put at the truth then leaves it. So the line also has the mean log joint density of the
draws themselves: of the fit, and of the last half of the chain from the truth, with the standard
deviation between the means of the fit's chains. Where that of the fit is lower by several of these,
its chains have not arrived. Where only the climbed partition is less probable, another summary of
the same draws may be wanted, and no longer chains.
"""

import copy
import sys
import time
from pathlib import Path

import numpy as np

from skanneal import AnnealedDPMixture
from skanneal.schedules import SequentialGibbs

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from fits.models import fitted, restart, run_on
from harness.suite import Suite, files, some_rows

MOST_ROWS = 6000
DRAWS, THIN = 8, 10  # 80 sweeps


def default(seed):
    return AnnealedDPMixture(n_jobs=1, random_state=seed)


def climbed(model, X, labels):
    """The log joint density of a labelling, climbed, that of the draws after it, and the number of
    components; rows labelled 0, noise, begin in the components that the fit has put them in."""
    chain = copy.deepcopy(model).set_params(
        schedule=SequentialGibbs(n_sweeps=1), n_chains=1, warm_start=True
    )
    chain._states = chain._states[:1]
    start = np.where(labels > 0, labels, labels.max() + 1 + model.component_labels_)
    restart(chain, X, None, [np.unique(start, return_inverse=True)[1]])
    run_on(chain, X, DRAWS, THIN)
    draws = np.mean([draw.log_joint for draw in chain.draws_[0][DRAWS // 2 :]])
    return float(chain._point.log_joint), float(draws), chain.n_components_


def measure(path, method, seed):
    """Log joint densities of the fit and of the climbed truth."""
    with np.load(path) as file:
        X = file["X"].astype(float)
        labellings = [file[name] for name in sorted(file.files) if name.startswith("labels")]
    rows = some_rows(len(X), MOST_ROWS, seed)
    X = X[rows]
    began = time.process_time()
    model = fitted(method(seed), X)
    fit = time.process_time()
    found = [climbed(model, X, labels[rows]) for labels in labellings]
    truth, draws, n_components = max(found)
    own = float(model._point.log_joint)
    of_chains = [np.mean([draw.log_joint for draw in chain]) for chain in model.draws_]
    return {
        "own": round(own, 2),
        "truth": round(truth, 2),
        "lead": round(own - truth, 2),
        "draws": [round(float(np.mean(of_chains)), 1), round(draws, 1)],
        "spread": round(float(np.std(of_chains, ddof=1)), 1),
        "components": [model.n_components_, n_components],
        "cpu": [round(fit - began, 1), round(time.process_time() - fit, 1)],
    }


if __name__ == "__main__":
    Suite("truth", files, {"skanneal": {"default": default}}, measure).run(__doc__)
