"""Whether one default chain of CrossCatPY finds the views of simulated tables.

    python benchmarks/fits/views.py --sets 500_v2_c10_numbers 500_v8_c3_levels
    python benchmarks/fits/views.py --seeds 20 --sets like_synthetic10k

A set is named by its rows, views, columns of each view and what they are: numbers or four levels,
in four to eight clusters per view. The last set has the shape of the table synthetic10k: 10,000
rows, four views of ten columns of six levels, eight clusters each. A seed draws a table anew. A
chain is right if its most probable draw has the true views, or a log joint density above the
truth's: that of the true views and the components that the rows were drawn from, the greatest of
some sweeps of the moves of hyperparameters alone.

Where components overlap, that density says little: there are very many partitions of the rows
about as good as the true one, and few of a state with fewer components, which is therefore the
single most probable one. So a second chain begins at the truth and makes as many sweeps: "behind"
is by how much the held-out rows are more probable under its draws, in nats per row, and
"true_share" the share of the first chain's draws that have the true views.

Lines of `benchmarks/results/views.jsonl` also have the components of each view and the gap to the
true log density. `--sets` with no name runs all sets; large ones take minutes each. The table that
is printed at the end has the number of right chains, and the median and the worst of the rest.
"""

import statistics
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.metrics import adjusted_rand_score

from skanneal.encoding import prepare
from skanneal.moves import EachView, FeatureHyperparameters, PartitionHyperparameters
from skanneal.schedules import SequentialGibbs

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from fits.models import estimator, fitted, restart, run_on, state_of
from fits.problems import generator, in_views
from harness.lines import Stopwatch
from harness.suite import Suite, records

SETTLING = 20  # sweeps of the hyperparameters at the truth
ROWS, VIEWS, WIDTHS = (500, 2000, 10_000, 50_000), (1, 2, 8), (3, 10, 25)


class Table(NamedTuple):
    """What a set's tables have in common."""

    n_rows: int
    n_views: int
    width: int
    cells: str
    law: dict = {}

    def problem(self, seed):
        """The table of a seed."""
        rng = generator("_".join(map(str, self[:4])), seed)
        n_numbers = self.width * (self.cells == "numbers")
        return in_views(rng, *self[:3], n_numbers, **self.law)


TABLES = {
    f"{n_rows}_v{n_views}_c{width}_{cells}": Table(n_rows, n_views, width, cells)
    for n_rows in ROWS
    for n_views in VIEWS
    for width in WIDTHS
    for cells in ("numbers", "levels")
} | {
    "like_synthetic10k": Table(
        *(10_000, 4, 10, "levels"), {"n_clusters": (8, 8), "n_levels": 6, "evenness": 2.0}
    )
}


def default(problem, seed):
    """A fit of one chain."""
    return fitted(estimator(problem, seed, n_chains=1), problem.train)


def measure(table, method, seed):
    """The record of one fit."""
    problem = table.problem(seed)
    with Stopwatch() as watch:
        model = method(problem, seed)
    draws = model.draws_[0]
    best = max(draws, key=lambda draw: draw.log_joint)
    found = [adjusted_rand_score(problem.view_of, draw.view_labels) == 1.0 for draw in draws]
    from_truth = at_truth(problem, seed)
    above = best.log_joint - greatest_log_joint(from_truth, problem, seed)
    sweeps = max(1, round(model.n_sweeps_) - len(draws))
    run_on(from_truth, problem.train, 1, sweeps)
    run_on(from_truth, problem.train, len(draws), 1)
    score = model.score(problem.fresh)
    return {
        "right": bool(found[draws.index(best)] or above > 0),
        "true_views": bool(found[draws.index(best)]),
        "true_share": round(float(np.mean(found)), 2),
        "views": int(best.view_labels.max()) + 1,
        "components": [int(labels.max()) + 1 for labels in best.row_labels],
        "true_components": [len(np.unique(labels)) for labels in problem.starts],
        "above_truth": round(above, 1),
        "gap": round(float(problem.log_density.mean() - score), 4),
        "behind": round(float(from_truth.score(problem.fresh) - score), 4),
        "fit_seconds": watch.seconds,
        "sweeps": round(model.n_sweeps_, 1),
    }


def at_truth(problem, seed):
    """A fit of one chain, put where the table comes from."""
    schedule = SequentialGibbs(n_sweeps=1)
    model = estimator(problem, seed, schedule=schedule, n_chains=1, n_draws=1)
    restart(fitted(model, problem.train), problem.train, problem.view_of, problem.starts)
    return model


def greatest_log_joint(model, problem, seed):
    """The greatest log joint density at a fit's partitions, over draws of the hyperparameters."""
    state = state_of(model, problem.train)
    grids = prepare("infer", model._encoder, state.table)[1]
    priors = model._prior_grids(*problem.train.shape)
    moves = [
        EachView(PartitionHyperparameters(priors["concentration"])),
        PartitionHyperparameters(priors["view_concentration"]),
        EachView(FeatureHyperparameters(grids)),
    ]
    bit_generator, found = np.random.PCG64(seed), []
    for _ in range(SETTLING):
        for move in moves:
            move.sweep(state, bit_generator)
        found.append(state.log_joint())
    return max(found)


def print_shares():
    """A row per set, of the last commit that was measured."""
    measures = "above_truth", "gap", "behind", "fit_seconds"
    print("set, chains, right, true views;", *measures, "(median, worst)")
    ((_, of_method),) = records("views").items() or [(None, {})]
    for name, of_set in of_method.items():
        numbers = [sum(record[key] for record in of_set) for key in ("right", "true_views")]
        print(f"{name:20}", *(f"{number:3}" for number in (len(of_set), *numbers)), end="")
        for measure in measures:
            values = [record[measure] for record in of_set]
            worst = (min if measure == "above_truth" else max)(values)
            print(f" {statistics.median(values):8.6g} {worst:8.6g}", end="")
        print()


SUITE = Suite("views", lambda folder: TABLES, {"skanneal": {"default": default}}, measure)

if __name__ == "__main__":
    try:
        SUITE.run(__doc__.splitlines()[0])
    finally:
        print_shares()
