"""Lace on one of the peers' splits: the other side of `crosscat_peers.py`, which runs this.

    python -m venv .venv-lace && .venv-lace/bin/pip install pylace
    .venv-lace/bin/python benchmarks/peers/crosscat_lace.py DATA_FOLDER dart --states 4

Prints one JSON object: iterations, fit seconds, processor seconds, mean log density per test row,
views. The default types and hyperpriors of Lace's codebook, with the levels of train and test
declared; transitions "sams"; one thread. It needs neither skanneal nor its environment.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from harness.crosscat_data import load_split

ONE_THREAD = {"RAYON_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}


def as_lace(table, levels):
    """The frame with levels as text, an index named ID; real columns as they are."""
    table = table.copy()
    for column in levels:
        text = table[column].astype(object)
        table[column] = text.where(text.isna(), text.astype(str)).astype(object)
    table.index = [f"row {i}" for i in range(len(table))]
    return table.rename_axis("ID")


def codebook(lace, train, levels):
    """Lace's own codebook with every level declared."""
    book = lace.Codebook.from_df("split", train)
    for column, values in levels.items():
        book.column_metadata[column] = lace.ColumnMetadata.categorical(
            column, len(values), value_map=lace.ValueMap.string(values)
        )
    return book


def mean_log_density(engine, test):
    """Mean log density of the test rows, missing cells left out."""
    total = 0.0
    present = test.notna()
    for pattern, rows in test.groupby([present[column] for column in test], sort=False):
        columns = [column for column, there in zip(test, pattern, strict=True) if there]
        log_densities = engine.logp(rows[columns].reset_index(drop=True))
        total += float(log_densities if len(rows) == 1 else sum(log_densities))
    return total / len(test)


def run(options):
    """Fit and score; a dict of the figures."""
    import lace  # after the number of threads is set

    train, test = load_split(options.data, options.split)
    levels = {
        column: [str(level) for level in train[column].cat.categories]
        for column in train
        if train[column].dtype == "category"
    }
    train, test = as_lace(train, levels), as_lace(test, levels)
    book = codebook(lace, train, levels)
    wall, cpu = time.perf_counter(), time.process_time()
    engine = lace.Engine.from_df(
        train, codebook=book, n_states=options.states, rng_seed=options.seed
    )
    engine.update(options.iterations, transitions="sams", quiet=True)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    views = [max(engine.column_assignment(i)) + 1 for i in range(options.states)]
    return {
        "version": lace.__version__,
        "iterations": options.iterations,
        "seconds": wall,
        "cpu_seconds": cpu,
        "score": mean_log_density(engine, test),
        "views": sum(views) / len(views),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="folder with splits/")
    parser.add_argument("split")
    parser.add_argument("--states", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    os.environ |= ONE_THREAD
    print(json.dumps(run(options)))


if __name__ == "__main__":
    main()
