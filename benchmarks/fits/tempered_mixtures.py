"""Whether tempering a mixture, by fewer rows or by powers of the likelihood, is worth its work.

    python benchmarks/fits/tempered_mixtures.py                 # simulated tables, then cut

A method is run from two opposite starts, all rows together and each row alone, in so many processor
seconds each; the first half is burn-in. "plain" is a chain of Gibbs and split-merge moves and of
hyperparameters, at all rows; "rows" and "powers" are ladders of such chains (`rungs.py`) that have
about the same rows in total: sizes, or powers, of equal ratios, down to the table's `size` or to
POWER. "half" is the ladder's part down to about half of the rows. "rows 1.2" is the target and one
neighbour with so many times fewer rows, "powers 1.05" one with that lower a power; "with steps",
swaps make three Gibbs steps after each row that enters.

A line of `benchmarks/results/tempered_mixtures.jsonl` has the number of rungs, what all of them
cost in sweeps of all rows, how likely a swap of neighbours is to be accepted (mean, and the least
of a pair), how often a state has come from the hottest rung to the target and from there to the
hottest, and of the target's log joint density and number of components: their means, R-hat of the
two starts, and the effective draws of both per processor second, which mean little where R-hat is
above 1.1.
"""

import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from skanneal import AnnealedDPMixture
from skanneal.chains import ChainPlan
from skanneal.schedules import SequentialGibbs
from skanneal.summary import ess, r_hat

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from fits.laws import Gaussians
from fits.models import fitted
from fits.problems import covariances, equal, error_of_bayes
from fits.rungs import Ladder, Rung
from harness.suite import Suite

BUDGET, SHORT = 6.0, 2.0  # processor seconds of a start: of a ladder, of a pair
POWER = 0.5


class Table(NamedTuple):
    """Gaussians of equal weights in random directions; who knows them all errs in a share `error`
    of the rows. The ladder of rows has sizes of this ratio down to `size`."""

    n_rows: int
    n_columns: int
    n_components: int
    error: float
    ratio: float
    size: int

    def rows(self, seed):
        """Rows in random order."""
        rng = np.random.default_rng([seed, *self[:3]])
        places = rng.random((self.n_components, self.n_columns))
        shapes = covariances(rng, self.n_components, self.n_columns, 1.5)

        def law(side):
            return Gaussians(equal(self.n_components), side * places, shapes)

        def excess(side):
            return error_of_bayes(law(side), np.random.default_rng(seed)) - self.error

        found = law(brentq(excess, 1.0, 1000.0, xtol=0.01))
        return found.sample(rng, found.labels(rng, self.n_rows))


TABLES = {
    "apart": Table(3000, 2, 15, 0.02, 1.6, 60),
    "few": Table(300, 2, 4, 0.15, 1.25, 40),
    "overlapping": Table(1000, 2, 8, 0.15, 1.12, 125),
    "five_columns": Table(1000, 5, 8, 0.15, 1.06, 200),
    "ten_columns": Table(1000, 10, 10, 0.1, 1.05, 200),
}


def plan_of(X, seed):
    """What the chains of a default fit of normal rows share."""
    first = SequentialGibbs(n_sweeps=1)
    model = AnnealedDPMixture(
        families="multivariate_normal", schedule=first, n_chains=1, n_draws=1, random_state=seed
    )
    fitted(model, X)
    encoder, moves = model._encoder, model._resolve_moves()
    table = encoder.table(model._read(X)[1].noisy)
    hyper, grids, _ = model._prepared(encoder, table, False)
    grid = model._prior_grids(table.n_rows, table.n_columns)["concentration"]
    return ChainPlan(table, encoder.table_families, hyper, grids, grid, moves)


def sizes(table, least=None):
    """Rows of the rungs, ascending."""
    found, least = [table.n_rows], least or table.size
    while found[-1] / table.ratio > least:
        found.append(min(found[-1] - 1, round(found[-1] / table.ratio)))
    return found[::-1]


class Way(NamedTuple):
    """Rows and power of each rung, the target last; seconds of each start; steps on the way of a
    swap, after each row that enters."""

    rungs: list
    seconds: float
    n_steps: int = 0


def plain(table):
    """The target alone."""
    return Way([(table.n_rows, 1.0)], BUDGET)


def by_rows(table):
    """A ladder of fewer and fewer rows."""
    return Way([(n, 1.0) for n in sizes(table)], BUDGET)


def to_half(table):
    """Its part of the most rows."""
    return Way([(n, 1.0) for n in sizes(table, table.n_rows / 2.5)], BUDGET)


def by_powers(table):
    """A ladder of powers with as many rows in total as that of fewer rows."""
    n_powers = max(2, round(sum(sizes(table)) / table.n_rows))
    return Way([(table.n_rows, float(b)) for b in np.geomspace(POWER, 1.0, n_powers)], BUDGET)


def pair_by_rows(ratio, n_steps=0):
    """The target and a neighbour with so many times fewer rows."""

    def way(table):
        return Way([(round(table.n_rows / ratio), 1.0), (table.n_rows, 1.0)], SHORT, n_steps)

    return way


def pair_by_powers(ratio):
    """The target and a neighbour with that lower a power."""
    return lambda table: Way([(table.n_rows, 1 / ratio), (table.n_rows, 1.0)], SHORT)


METHODS = {"plain": plain, "rows": by_rows, "half": to_half, "powers": by_powers}
METHODS |= {f"rows {ratio}": pair_by_rows(ratio) for ratio in (1.05, 1.2, 2)}
METHODS["rows 1.2 with steps"] = pair_by_rows(1.2, n_steps=3)
METHODS["powers 1.05"] = pair_by_powers(1.05)


def run(way, plan, start, seed):
    """The ladder at its end, and of the later half of its iterations the target's log joint
    density and number of components, (2, n_iterations)."""
    streams = [np.random.PCG64([seed, start, i]) for i in range(len(way.rungs) + 1)]
    rungs = [Rung(plan, *of_rung, stream) for of_rung, stream in zip(way.rungs, streams)]
    for rung in rungs:
        rung.start(np.arange(rung.n_rows) * start)
    ladder, kept, began = Ladder(rungs, streams[-1], way.n_steps), [], time.process_time()
    while (taken := time.process_time() - began) < way.seconds:
        if taken > way.seconds / 2 and not kept:
            ladder.forget()
        ladder.iterate()
        if taken > way.seconds / 2:
            state = rungs[-1].state
            kept.append((state.log_joint(), state.n_clusters))
    return ladder, np.array(kept).T


def measure(table, method, seed):
    """The record of a method on a table."""
    plan, way = plan_of(table.rows(seed), seed), method(table)
    ladders, kept = zip(*(run(way, plan, start, seed) for start in (0, 1)))
    n_kept = min(values.shape[1] for values in kept)
    of_starts = np.array([values[:, -n_kept:] for values in kept])
    record = {
        "rungs": len(way.rungs),
        "cost": round(sum(n for n, _ in way.rungs) / table.n_rows, 1),
        "iterations": [values.shape[1] for values in kept],
    }
    if len(way.rungs) > 1:
        accepted = np.mean([ladder.probability / ladder.tried for ladder in ladders], axis=0)
        record["accepted"] = [round(float(accepted.mean()), 2), round(float(accepted.min()), 2)]
        record["ways"] = [int(sum(ladder.ways[i] for ladder in ladders)) for i in (0, 1)]
    for i, name in enumerate(("log_joint", "components")):
        values = of_starts[:, i]
        record[name] = {
            "mean": [round(float(mean), 1) for mean in values.mean(axis=1)],
            "r_hat": round(float(r_hat(values)), 2),
            "rate": round(sum(float(ess(of_one[None])) for of_one in values) / way.seconds, 2),
        }
    return record


SUITE = Suite("tempered_mixtures", lambda folder: TABLES, {"skanneal": METHODS}, measure)


if __name__ == "__main__":
    SUITE.run(__doc__.splitlines()[0])
