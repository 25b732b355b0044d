"""How many components the finite prior finds among 15 overlapping Gaussians, from three starts.

    python benchmarks/fits/overlap.py DATA_FOLDER                 # 40 minutes, then cut

The problem `s4_like`. A chain of plain Gibbs sweeps and split-merge moves begins at the true
components, in 40 random ones, or in one; a third of its sweeps is burn-in. A line of
`benchmarks/results/overlap.jsonl` has the mean number of components of the later draws, their
range, and the held-out log density.
"""

import sys
from pathlib import Path

import numpy as np

from skanneal.schedules import SequentialGibbs

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from fits.models import draw_log_densities, estimator, fitted, n_components, restart, run_on
from fits.real_tables import s4_like
from fits.references import log_mean
from harness.suite import Suite

SWEEPS, DRAWS, BURN_IN = 6000, 200, 1 / 3


def start_at(rows, problem, seed):
    """A partition of the rows by the name of a start."""
    n_rows = len(problem.train)
    if rows == "truth":
        return problem.starts[0]
    return np.random.default_rng(seed).integers(int(rows), size=n_rows)


def measure(folder, start, seed):
    """Components and density of a chain from a start."""
    problem = s4_like(seed, folder)
    model = estimator(
        problem,
        seed,
        partition_prior="finite",
        schedule=SequentialGibbs(n_sweeps=1),
        n_chains=1,
        n_draws=1,
    )
    fitted(model, problem.train)
    restart(model, problem.train, problem.view_of, [start_at(start, problem, seed)])
    burn_in = round(BURN_IN * SWEEPS)
    run_on(model, problem.train, 1, burn_in)
    run_on(model, problem.train, DRAWS, (SWEEPS - burn_in) // DRAWS)
    numbers = n_components(model)
    density = log_mean(draw_log_densities(model, problem.fresh))
    return {
        "components": round(float(numbers.mean()), 2),
        "range": [int(numbers.min()), int(numbers.max())],
        "score": round(float(density.mean()), 5),
        "truth": round(float(problem.log_density.mean()), 5),
    }


if __name__ == "__main__":
    starts = {start: start for start in ("truth", "40", "1")}
    Suite("overlap", lambda folder: {"s4_like": folder}, {"skanneal": starts}, measure).run(__doc__)
