"""What a row and a call cost beside the score of a cell: the units in which moves count work.

    python benchmarks/kernels/work_units.py        # a few seconds

Gibbs steps of rows of few and of many columns give the time of a cell and of a row. Sweeps of
split-merge and draws of concentrations over six rows, which have hardly any cells to score, give
that of a call. Scores of columns under partitions of few and of many clusters, whose sizes differ,
give that of a column's marginal likelihood in one cluster. Draws of hyperparameters over few rows
are told in cells, too. All are processor times, the least of several. What the package takes for
them is printed beside (`skanneal/moves/_info.py`).
"""

import time

import numpy as np

from skanneal.families import FAMILIES, Table
from skanneal.moves import (
    CALL,
    FeatureHyperparameters,
    Gibbs,
    PartitionHyperparameters,
    SplitMerge,
)
from skanneal.moves._info import MARGINAL, ROW
from skanneal.partition_priors import PitmanYor
from skanneal.states import Mixture, Subsample

FEW, MANY = 3, 30  # columns


def mixture_of(n_rows, n_columns, family="normal"):
    """Rows of numbers, or of six levels, in three clusters."""
    rng = np.random.default_rng(0)
    if family == "categorical":
        table = Table(["u1"] * n_columns, [6] * n_columns)
        table.append(list(rng.integers(6, size=(n_columns, n_rows)).astype(np.uint8)))
    else:
        table = Table(["f4"] * n_columns, [0] * n_columns)
        table.append(list(rng.normal(size=(n_columns, n_rows)).astype(np.float32)))
    subsample = Subsample(n_rows, "random", np.random.PCG64(0))
    subsample.fill()
    block = FAMILIES[family](table, np.arange(n_columns))
    mixture = Mixture(table, [block], PitmanYor(1.0, 0.0), subsample)
    mixture.replace(np.arange(n_rows), np.arange(n_rows) % 3)
    return mixture


def hyperparameters(mixture):
    """The draws of all hyperparameters of a mixture of one family, on its own grids."""
    block, table = mixture.blocks[0], mixture.table
    columns = np.arange(table.n_columns)
    if block.joint:
        return FeatureHyperparameters({0: type(block).grids(table, columns)})
    return FeatureHyperparameters({j: type(block).grids(table.column(j), 0) for j in columns})


def marginals(n_clusters, family, n_rows=2000, n_columns=10, n_partitions=5):
    """Processor time of columns' scores under partitions into so many clusters of all sizes."""
    rng = np.random.default_rng(0)
    mixture = mixture_of(n_rows, n_columns, family)
    block, columns, rows = mixture.blocks[0], np.arange(n_columns), np.arange(n_rows)
    hyper = [block.get_hyper(f) for f in range(n_columns)]
    labels = (n_clusters * rng.random((n_partitions, n_rows)) ** 2).astype(np.int32)
    task = mixture.table, columns, hyper, rows, labels, [n_clusters] * n_partitions
    return least_mean(lambda: type(block).column_scores(*task), 20)


def seconds(move, mixture, n_sweeps):
    """Processor time of a sweep."""
    bit_generator = np.random.PCG64(0)
    return least_mean(lambda: move.sweep(mixture, bit_generator), n_sweeps)


def least_mean(call, n_calls):
    """Least mean processor time of a call, of five."""
    means = []
    for _ in range(5):
        began = time.process_time()
        for _ in range(n_calls):
            call()
        means.append((time.process_time() - began) / n_calls)
    return min(means)


def main():
    n_rows = 2000
    few, many = (
        seconds(Gibbs(), mixture_of(n_rows, n), 20) / (2 * n_rows) for n in (FEW, MANY)
    )  # a step scores the row in one tile and adds it to a cluster
    cell = (many - few) / (MANY - FEW)
    row = few - FEW * cell
    pairs = np.column_stack([np.geomspace(0.1, 10.0, 30), np.zeros(30)])
    tiny = mixture_of(6, FEW)
    splits = seconds(SplitMerge(), tiny, 500)
    draws = seconds(PartitionHyperparameters(pairs), tiny, 500)
    print(f"a cell: {1e9 * cell:.1f} ns")
    print(f"a row: {row / cell:.0f} cells (taken: {ROW})")
    for family in ("normal", "categorical"):
        marginal = (marginals(320, family) - marginals(20, family)) / (300 * 10 * 5)
        print(f"a marginal likelihood, {family}: {marginal / cell:.0f} cells (taken: {MARGINAL})")
    for family, n_columns in (("normal", 13), ("normal", 63), ("multivariate_normal", 13)):
        mixture = mixture_of(30, n_columns, family)
        move = hyperparameters(mixture)
        own, counted = seconds(move, mixture, 100), move.sweep(mixture, np.random.PCG64(0)).work
        print(
            f"hyperparameters of {n_columns} columns, {family}: {own / cell:,.0f} cells "
            f"(taken: {counted:,})"
        )
    print(f"a call: {splits / cell:,.0f} and {draws / cell:,.0f} cells (taken: {CALL:,})")


if __name__ == "__main__":
    main()
