"""One forward pass of the permutation move's beam beside bare C of the same arithmetic.

    python benchmarks/kernels/permutation_step.py          # 10,000 and 100,000 rows, 2 minutes
    python benchmarks/kernels/permutation_step.py --quick  # 10,000 rows alone

Rows are drawn as in Liang, Jordan and Taskar (2007): clusters of identity covariance about means
from N(0, 2 I). An order is consistent with the true clusters: by their projections on a random
direction, or uniform. The beam drops 1e-32 of the sum at each row.

The bare loop (``bare_permutation_step.c``) is told which segments the beam kept, and for each of
them computes the row's log predictive, the log marginal, the statistics and the log-sum-exp; it
prunes nothing and draws nothing. It is compiled as row_step.py compiles its own, and the fastest
build is taken. The sides take turns; a figure is the best of the repetitions, in nanoseconds of
the thread's processor time per row. That both compute the same is seen from log g(n).

Memory is what Python allocates while a pass runs, beside what the table and the mixture hold.
"""

import argparse
import ctypes
import heapq
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import NamedTuple

import numpy as np

from skanneal.families import FAMILIES, Table
from skanneal.moves import Permutation
from skanneal.moves._order_programs import OrderProgram
from skanneal.moves._permutation import _by_projection, _uniform_order
from skanneal.partition_priors import PitmanYor
from skanneal.states import Mixture, Subsample

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from kernels.row_step import build_all, compile_bare

SOURCE = Path(__file__).with_name("bare_permutation_step.c")
TOLERANCE = 1e-32
SPREAD = 2.0  # variance of the true means
PRIOR_VARIANCE = 100.0  # of known_normal's means
KAPPA0, SCALE0 = 0.1, 0.9  # of multivariate_normal; nu0 is the number of columns plus 2
LAWS = ("projection", "uniform")
MAX_KEPT = 4096


class Config(NamedTuple):
    """Rows of one family."""

    family: str
    n_features: int
    n_clusters: int
    bare: tuple  # the loops to stand beside, the first the yardstick

    def hyper(self):
        """skanneal's flat vector."""
        d = self.n_features
        unit = np.eye(d)[np.tril_indices(d)]
        if self.family == "known_normal":
            return np.concatenate([unit, np.zeros(d), PRIOR_VARIANCE * unit])
        return np.concatenate([np.zeros(d), [KAPPA0, d + 2.0], SCALE0 * unit])


CONFIGS = (
    Config("known_normal", 40, 40, ("known_double", "known_float")),
    Config("multivariate_normal", 8, 20, ("multivariate",)),
)


class Problem(ctypes.Structure):
    """As in the C file."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("n_rows", "n_features", "n_slots")),
        *((name, ctypes.c_void_p) for name in ("cells", "order", "start", "first", "slot")),
        ("log_size", ctypes.c_void_p),
        *((name, ctypes.c_double) for name in ("kappa0", "nu0", "scale")),
        ("log_g", ctypes.c_void_p),
    ]


def slots_of(kept):
    """A slot for every kept segment, the lowest that is free when it begins; how many in all."""
    held, free, n_slots = {}, [], 0
    slots = []
    for first in kept:
        first = first.tolist()
        for gone in held.keys() - set(first):
            heapq.heappush(free, held.pop(gone))
        for s in first:
            if s not in held:
                if not free:
                    heapq.heappush(free, n_slots)
                    n_slots += 1
                held[s] = heapq.heappop(free)
            slots.append(held[s])
    return np.array(slots, dtype=np.int32), n_slots


def bare_passes(config, libraries, rows, order, log_size, kept):
    """Callables by (loop, build), each seconds per row of one pass, and the log g they write."""
    counts = np.array([len(first) for first in kept])
    assert counts.max() <= MAX_KEPT
    slots, n_slots = slots_of(kept)
    log_g = np.zeros(len(rows) + 1)
    keep = (
        np.ascontiguousarray(rows),
        np.ascontiguousarray(order, dtype=np.int64),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        np.concatenate(kept).astype(np.int32),
        slots,
        np.ascontiguousarray(log_size),
    )
    known = config.family == "known_normal"
    hyper = (0.0, 0.0, PRIOR_VARIANCE) if known else (KAPPA0, config.n_features + 2.0, SCALE0)
    addresses = [array.ctypes.data for array in keep]
    problem = Problem(*rows.shape, n_slots, *addresses, *hyper, log_g.ctypes.data)

    def make(function):
        def run():
            assert keep  # alive as long as the callable
            start = time.thread_time()
            function(ctypes.byref(problem))
            return (time.thread_time() - start) / len(rows)

        return run

    passes = {
        (loop, march): make(getattr(library, loop))
        for loop in config.bare
        for march, library in libraries.items()
    }
    return passes, log_g


def make_mixture(config, n_rows, seed=0):
    """A mixture of true clusters, its rows and their labels."""
    rng = np.random.default_rng(seed)
    d = config.n_features
    labels = rng.integers(config.n_clusters, size=n_rows)
    means = np.sqrt(SPREAD) * rng.standard_normal((config.n_clusters, d))
    rows = (means[labels] + rng.standard_normal((n_rows, d))).astype(np.float32)
    table = Table(["f4"] * d, [0] * d)
    table.append(list(rows.T))
    bit_generator = np.random.PCG64(seed)
    subsample = Subsample(n_rows, "window", bit_generator)
    subsample.fill()
    block = FAMILIES[config.family](table, range(d), [config.hyper()])
    mixture = Mixture(table, [block], PitmanYor(1.0), subsample)
    mixture.replace(np.arange(n_rows), labels.astype(np.int32))
    return mixture, rows, labels


def compare(config, libraries, n_rows, n_repeats):
    """Print a line for each order."""
    mixture, rows, labels = make_mixture(config, n_rows)
    rng = np.random.default_rng(1)
    at = rows.astype(np.float64) @ rng.standard_normal(config.n_features)
    orders = {
        "projection": _by_projection(labels, at, np.arange(n_rows)),
        "uniform": _uniform_order(labels, rng),
    }
    for law in LAWS:
        order = orders[law].astype(np.int64)
        made = Permutation(law)
        made.tuning = config.n_clusters
        log_size = made._log_size(mixture, n_rows, law)
        log_size += made._log_tau(made._log_number(mixture, n_rows, law))

        call = (mixture, order, log_size, 1.0, TOLERANCE)
        tracemalloc.start()
        segments = OrderProgram(mixture)
        segments.forward(*call)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        kept = segments.kept()[0]
        per_row = np.mean([len(first) for first in kept])
        passes, log_g = bare_passes(config, libraries, rows, order, log_size, kept)
        bare = dict.fromkeys(passes, np.inf)
        best = np.inf
        for _ in range(n_repeats):
            for key, run in passes.items():
                bare[key] = min(bare[key], run())
            start = time.thread_time()
            segments.forward(*call)
            best = min(best, (time.thread_time() - start) / n_rows)
        for run in passes.values():  # the same sums, but for skanneal's float scores
            run()
            np.testing.assert_allclose(log_g[-1], segments.log_sums()[-1], rtol=1e-5)
        name = f"{config.n_features} {config.family}, {n_rows:,} rows, {law}"
        for loop in config.bare:
            march = min(libraries, key=lambda march: bare[loop, march])
            yardstick = bare[loop, march]
            print(
                f"{name:46s} {per_row:5.1f} {16 * per_row:6.0f} {peak / 2**20:7.1f} "
                f"{peak / n_rows:6.0f} {1e9 * yardstick:7.0f} {1e9 * best:8.0f} "
                f"{best / yardstick:6.2f}   {loop}, {march}",
                flush=True,
            )


def main():
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer repetitions and rows")
    quick = parser.parse_args().quick
    with tempfile.TemporaryDirectory() as folder:
        marches = build_all(folder)
        paths = {march: compile_bare(march, Path(folder), SOURCE) for march in marches}
        libraries = {march: ctypes.CDLL(str(path)) for march, path in paths.items() if path}
        for loop in ("known_double", "known_float", "multivariate"):
            for library in libraries.values():
                getattr(library, loop).restype = None
        print(
            "kept: segments after a row, and their bytes; memory: MiB at most during a pass, bytes "
            f"per row;\nthen ns per row\n{'':46s}  kept  bytes     MiB  /row    bare skanneal  "
            "ratio   bare loop and its build"
        )
        for config in CONFIGS:
            for n_rows in (10_000,) if quick else (10_000, 100_000):
                compare(config, libraries, n_rows, 5 if quick else 15)


if __name__ == "__main__":
    main()
