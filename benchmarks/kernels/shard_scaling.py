"""Shards side by side: how much faster a fit of AcceleratedDPMixture is on more threads.

    python benchmarks/kernels/shard_scaling.py FOLDER                 # mnist.npz is in it
    python benchmarks/kernels/shard_scaling.py FOLDER --jobs 1 2 4 8  # default: 1, 2, 4 ... cores
    python benchmarks/kernels/shard_scaling.py FOLDER --rows 10000 --sub-iterations 20

The rows are MNIST's 60,000 training images, counts // 32, sparse. The result of a fit depends on
the number of shards but not on the number of threads, so a curve is for a fixed number of shards,
here 16 and 2, and every fit of a curve must end in the same labels; that is checked. The fits take
turns, so that all see the machine in the same moods, and the fastest of ``--repeats`` counts.

Two times per fit: its sampling segments (what runs side by side: the time inside
``ShardPool.run``) and the whole of ``fit`` (with encoding, synchronisations, the point estimate).
Printed, and written to ``--out`` as csv and as a figure.
"""

import argparse
import csv
import os
import time
from contextlib import contextmanager
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_array

from skanneal import AcceleratedDPMixture
from skanneal.schedules import AcceleratedSchedule
from skanneal.sharded._shards import ShardPool

N_FEATURES = 100  # at the start, so that segments are as long as in the middle of a long fit


def counts(folder, n_rows):
    """The images of MNIST's training set, grey values // 32."""
    with np.load(Path(folder) / "mnist.npz") as file:
        images = file["X_train"][:n_rows]
    return csr_array(images.reshape(len(images), -1) // 32, dtype=np.int64)


@contextmanager
def segment_clock():
    """Seconds spent in segments, in a list of one number."""
    run, seconds = ShardPool.run, [0.0]

    def timed(self, function, tasks):
        start = time.perf_counter()
        try:
            return run(self, function, tasks)
        finally:
            seconds[0] += time.perf_counter() - start

    ShardPool.run = timed
    try:
        yield seconds
    finally:
        ShardPool.run = run


def fit(X, n_shards, n_jobs, n_sub_iterations):
    """Seconds in segments, seconds in all, labels."""
    half = n_sub_iterations // 2
    model = AcceleratedDPMixture(
        likelihood="multinomial",
        init=N_FEATURES,
        schedule=AcceleratedSchedule(n_accelerated=half, n_exact=n_sub_iterations - half),
        n_shards=n_shards,
        n_jobs=n_jobs,
        random_state=0,
    )
    with segment_clock() as in_segments:
        start = time.perf_counter()
        model.fit(X)
        seconds = time.perf_counter() - start
    return in_segments[0], seconds, model.labels_


def measure(X, n_shards, jobs, n_sub_iterations, n_repeats):
    """A row per number of threads: the fastest times and their ratios to one thread's."""
    times, labels = {}, None
    for _ in range(n_repeats):
        for n_jobs in jobs:
            *seconds, found = fit(X, n_shards, n_jobs, n_sub_iterations)
            times.setdefault(n_jobs, []).append(seconds)
            if labels is not None and not np.array_equal(found, labels):
                raise AssertionError(f"{n_jobs} threads end in other labels")
            labels = found
    fastest = {n_jobs: np.min(seconds, axis=0) for n_jobs, seconds in times.items()}
    one = fastest[jobs[0]]
    rows = []
    for n_jobs in jobs:
        speedup = one / fastest[n_jobs]
        rows.append(
            {
                "n_shards": n_shards,
                "n_jobs": n_jobs,
                "segment_seconds": fastest[n_jobs][0],
                "fit_seconds": fastest[n_jobs][1],
                "segment_speedup": speedup[0],
                "fit_speedup": speedup[1],
            }
        )
        print(
            f"{n_shards:3d} shards, {n_jobs:3d} threads: segments {fastest[n_jobs][0]:7.2f} s"
            f" ({speedup[0]:5.2f} x), fit {fastest[n_jobs][1]:7.2f} s ({speedup[1]:5.2f} x)",
            flush=True,
        )
    return rows


def draw(rows, path):
    """Speed-up against threads, a curve per number of shards; the line of equals is thin."""
    fig, axes = plt.subplots(1, 2, figsize=(8, 4), sharey=True, layout="constrained")
    for ax, what in zip(axes, ("segment", "fit")):
        for n_shards in sorted({row["n_shards"] for row in rows}, reverse=True):
            curve = [row for row in rows if row["n_shards"] == n_shards]
            jobs = [row["n_jobs"] for row in curve]
            ax.plot(
                jobs, [row[f"{what}_speedup"] for row in curve], "o-", label=f"{n_shards} shards"
            )
        jobs = sorted({row["n_jobs"] for row in rows})
        ax.plot(jobs, jobs, color="0.6", linewidth=0.8)
        ax.set_xticks(jobs)
        ax.set_xlabel("threads")
    axes[0].set_title("sampling segments")
    axes[1].set_title("whole fit")
    axes[0].set_ylabel("times as fast as one thread")
    axes[0].legend(frameon=False)
    fig.savefig(path, dpi=150)


def powers_of_two(n):
    """1, 2, 4 ... and n."""
    return sorted({2**i for i in range(n.bit_length())} | {n})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", help="folder of mnist.npz")
    parser.add_argument("--jobs", type=int, nargs="+")
    parser.add_argument("--shards", type=int, nargs="+", default=[16, 2])
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--sub-iterations", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--out", default="shard_scaling")
    arguments = parser.parse_args()
    jobs = sorted(arguments.jobs or powers_of_two(len(os.sched_getaffinity(0))))
    X = counts(arguments.folder, arguments.rows)
    print(f"{X.shape[0]} rows, {X.nnz / X.shape[0]:.0f} counts above 0 each, threads {jobs}")
    rows = []
    for n_shards in arguments.shards:  # more threads than shards would idle
        useful = [n for n in jobs if n <= n_shards]
        if useful:
            rows += measure(X, n_shards, useful, arguments.sub_iterations, arguments.repeats)
    out = Path(arguments.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    with open(out.with_suffix(".csv"), "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    draw(rows, out.with_suffix(".png"))


if __name__ == "__main__":
    main()
