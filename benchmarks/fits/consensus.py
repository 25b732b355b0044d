"""What a consensus partition of many rows and draws costs, and whether it is worth it.

    python benchmarks/fits/consensus.py
    python benchmarks/fits/consensus.py --rows 10000 --draws 400

Draws are made of a mixture of Gaussians in the plane whose components overlap little, much, or
nearly altogether: in each draw every row is dealt to a component by its probabilities, after the
centres were jittered. Printed are processor seconds and the growth of the process's largest memory,
the expected loss of the partition, and that of the best draw: of all of them, one by one.
"""

import argparse
import multiprocessing
import resource
import time

import numpy as np

from skanneal.summary import _losses, point_estimate, relabel

OVERLAPS = {"little": (20, 1.0), "much": (20, 4.0), "nearly all": (50, 8.0)}
MOST_SECONDS, MOST_BYTES = 10.0, 2**30


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


def measure(overlap, loss, n_rows, n_draws, queue):
    """Put what a consensus partition costs and is worth; in a process of its own."""
    draws = draws_of(n_rows, n_draws, *OVERLAPS[overlap])
    before = peak()
    began = time.process_time()
    labels = point_estimate(draws, np.zeros(n_draws), loss)
    seconds = time.process_time() - began
    memory = peak() - before
    gathered, loss = _losses._gather(draws), _losses.LOSSES[loss]
    own, *of_draws = (
        _losses._value(gathered, loss, _losses._table(gathered, codes, codes.max() + 1))
        for codes in map(relabel, [labels_of_atoms(labels, gathered), *gathered.codes])
    )
    best = min(of_draws)
    queue.put((seconds, memory, int(labels.max()) + 1, own, best))


def labels_of_atoms(labels, gathered):
    """The labels of rows that no draw parts, one for each such set."""
    out = np.empty(gathered.codes.shape[1], dtype=np.int64)
    out[gathered.atom_of] = labels
    return out


def peak():
    """The most memory that this process has had, in bytes."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--overlaps", nargs="+", default=list(OVERLAPS))
    parser.add_argument("--losses", nargs="+", default=sorted(_losses.LOSSES))
    options = parser.parse_args()
    context, failed = multiprocessing.get_context("spawn"), []
    print("overlap     loss    seconds  MB   clusters  expected loss  best draw's")
    for overlap in options.overlaps:
        for loss in options.losses:
            queue = context.Queue()
            arguments = overlap, loss, options.rows, options.draws, queue
            process = context.Process(target=measure, args=arguments)
            process.start()
            seconds, memory, n_clusters, own, best = queue.get()
            process.join()
            print(
                f"{overlap:11} {loss:7} {seconds:7.1f}  {memory / 2**20:4.0f} {n_clusters:7}  "
                f"{own:13.6g}  {best:11.6g}",
                flush=True,
            )
            if own > best or seconds > MOST_SECONDS or memory > MOST_BYTES:
                failed.append((overlap, loss))
    if failed:
        raise SystemExit(f"worse than the best draw, or more than 10 s or 1 GiB: {failed}")


if __name__ == "__main__":
    main()
