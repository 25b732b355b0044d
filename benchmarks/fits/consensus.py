"""What a consensus partition of many rows and draws costs, and whether it beats the best draw.

    python benchmarks/fits/consensus.py
    python benchmarks/fits/consensus.py --rows 10000 --draws 400

Draws are made of a mixture of Gaussians in the plane whose components overlap little, much, or
nearly altogether: in each draw every row is dealt to a component by its probabilities, after the
centres were jittered. Results are lines of `benchmarks/results/consensus.jsonl`, one for each
overlap and loss; a finished one of the same commit of the package is not measured again. A line has
the processor seconds, by how much the largest memory of the process grew, the expected loss of the
partition, and the lowest expected loss among all the draws.
"""

import argparse
import multiprocessing
import os
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from skanneal.summary import _losses, point_estimate, relabel

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from harness.lines import RESULTS, Lines, package_commit

KEYS = "version", "overlap", "loss", "rows", "draws"
OVERLAPS = {"little": (20, 1.0), "much": (20, 4.0), "nearly all": (50, 8.0)}
MOST_SECONDS, MOST_MEBIBYTES = 10.0, 1024.0


def draws_of(n_rows, n_draws, n_components, spread):
    """Partitions as int32 arrays of shape (n_rows,)."""
    generator = np.random.default_rng(0)
    centres = 10 * generator.normal(size=(n_components, 2))
    X = centres[generator.integers(n_components, size=n_rows)]
    X = X + spread * generator.normal(size=(n_rows, 2))
    draws = []
    for _ in range(n_draws):
        moved = centres + 0.05 * spread * generator.normal(size=centres.shape)
        scores = -0.5 * ((X[:, None] - moved) ** 2).sum(axis=-1) / spread**2
        scores += generator.gumbel(size=scores.shape)
        draws.append(scores.argmax(axis=1).astype(np.int32))
    return draws


def measure(overlap, loss, n_rows, n_draws):
    """The record of a cell without its keys, in a process that has done nothing else."""
    draws = draws_of(n_rows, n_draws, *OVERLAPS[overlap])
    before = peak()
    began = time.process_time()
    labels = point_estimate(draws, np.zeros(n_draws), loss)
    seconds = time.process_time() - began
    mebibytes = peak() - before
    gathered, loss = _losses._gather(draws), _losses.LOSSES[loss]
    own, *of_draws = (
        _losses._value(gathered, loss, _losses._table(gathered, codes, codes.max() + 1))
        for codes in map(relabel, [labels_of_atoms(labels, gathered), *gathered.codes])
    )
    return {
        "seconds": round(seconds, 2),
        "mebibytes": round(mebibytes, 1),
        "clusters": int(labels.max()) + 1,
        "expected_loss": float(own),
        "best_draws_loss": float(min(of_draws)),
        "load": round(os.getloadavg()[0], 1),
    }


def labels_of_atoms(labels, gathered):
    """The labels of rows that no draw parts, one for each such set."""
    out = np.empty(gathered.codes.shape[1], dtype=np.int64)
    out[gathered.atom_of] = labels
    return out


def peak():
    """The most memory that this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def is_good(record):
    """Is the partition no worse than the best draw, within the time and the memory?"""
    cheap = record["seconds"] <= MOST_SECONDS and record["mebibytes"] <= MOST_MEBIBYTES
    return cheap and record["expected_loss"] <= record["best_draws_loss"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--overlaps", nargs="+", default=list(OVERLAPS))
    parser.add_argument("--losses", nargs="+", default=sorted(_losses.LOSSES))
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the lines")
    options = parser.parse_args()
    lines, failed = Lines(options.results / "consensus.jsonl", KEYS), []
    version, spawn = package_commit(), multiprocessing.get_context("spawn")
    print("overlap     loss    seconds  MiB  clusters  expected loss  best draw's")
    for overlap in options.overlaps:
        for loss in options.losses:
            cell = overlap, loss, options.rows, options.draws
            record = lines.get(version, *cell)
            if record is None:
                with ProcessPoolExecutor(1, mp_context=spawn) as process:
                    record = process.submit(measure, *cell).result()
                lines.add(dict(zip(KEYS, (version, *cell))) | record)
            print(
                f"{overlap:11} {loss:7} {record['seconds']:7.1f}  {record['mebibytes']:4.0f} "
                f"{record['clusters']:7}  {record['expected_loss']:13.6g}  "
                f"{record['best_draws_loss']:11.6g}",
                flush=True,
            )
            if not is_good(record):
                failed.append((overlap, loss))
    if failed:
        raise SystemExit(f"worse than the best draw, or more than 10 s or 1 GiB: {failed}")


if __name__ == "__main__":
    main()
