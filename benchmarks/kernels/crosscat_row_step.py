"""CrossCat's row step and structure pass beside bare C loops that do the same work.

    python benchmarks/kernels/crosscat_row_step.py          # both tables, a few minutes, 1 GB
    python benchmarks/kernels/crosscat_row_step.py --quick  # fewer rows and repetitions, 30 s
    python benchmarks/kernels/crosscat_row_step.py --check  # the bare loops are right

*Row step*: a row leaves its cluster in every view, is scored against all clusters of the view and a
new one, draws a label and is inserted; nanoseconds per row, all views together. As in
`row_step.py`: full data, rows in shuffled order, labels started at the true and well separated
clusters, hyperparameters fixed. At most 2 times the bare loop is asked.

*Structure pass*: the log marginal likelihood of every feature under the partitions of the rows of
every view, n rows x D features x V views cells; the bare loop only adds each cell to its cluster's
statistics (counts of levels, or sums and squares). Nanoseconds per cell; at most 3 times is asked.

``bare_crosscat.c`` is compiled here, for several instruction sets with -O3 -ffast-math, and run
with several numbers of rows per turn of a view; the fastest is taken. The two sides take turns; a
figure is the best of the repetitions, in the thread's processor time.
"""

import argparse
import ctypes
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from kernels import row_step
from kernels.row_step import (
    BLOCK,
    CONCENTRATION,
    N_LEVELS,
    NORMAL_HYPER,
    PSEUDO_COUNT,
    Bare,
    make_rows,
)

SOURCE = Path(__file__).with_name("bare_crosscat.c")
CHUNKS = (32, 256, 2048)
MOST_STEP, MOST_PASS = 2.0, 3.0


class Config(NamedTuple):
    """One line of a table: columns shared out among views, as evenly as may be."""

    family: str
    n_features: int
    n_views: int
    n_clusters: int

    @property
    def sizes(self):
        """Features of each view."""
        return np.bincount(np.arange(self.n_features) % self.n_views)

    @property
    def n_slots(self):
        """Clusters and the open one, padded to whole blocks."""
        return -(-(self.n_clusters + 1) // BLOCK) * BLOCK

    def view(self, n_features):
        """The mixture of one view."""
        return row_step.Config(self.family, int(n_features), self.n_clusters)

    def __str__(self):
        views = f"{self.n_views} views x {self.n_clusters} clusters"
        return f"{self.n_features} {self.family}, {views}"


STEPS = (
    Config("categorical", 40, 4, 8),
    Config("categorical", 68, 8, 8),
    Config("categorical", 68, 8, 24),
    Config("normal", 40, 4, 8),
    Config("normal", 40, 4, 24),
)
# Views of the state and as many fresh ones; their clusters.
PASSES = (
    Config("categorical", 40, 12, 8),
    Config("categorical", 68, 16, 24),
    Config("normal", 40, 12, 8),
    Config("normal", 40, 12, 24),
)


def make_views(config, n_rows):
    """Rows (n_rows, n_features) and labels, int32 (n_rows, n_views); columns of a view adjoin."""
    parts = [
        make_rows(config.view(n), n_rows, seed=v, spread=3.0, sharpness=0.2)
        for v, n in enumerate(config.sizes)
    ]
    rows = np.concatenate([rows for rows, _ in parts], axis=1)
    return rows, np.stack([labels for _, labels in parts], axis=1)


def bind(library):
    """Types of the functions that bare_crosscat.c adds."""
    pointer, whole, long = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
    scatter = [pointer, pointer, long, whole, pointer, whole, whole, long, pointer]
    signatures = {
        "bare_join": (None, [pointer, pointer, whole, pointer]),
        "bare_views": (whole, [pointer, whole, long, pointer, long, long]),
        "bare_scatter_codes": (None, scatter),
        "bare_scatter_numbers": (None, scatter),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def build_all(folder):
    """Loaded libraries by name of the instruction set, those that run here."""
    row_step.SOURCE = SOURCE  # which includes row_step's own
    return {march: bind(library) for march, library in row_step.build_all(folder).items()}


# ---- the row step --------------------------------------------------------------------------------


class BareViews:
    """The bare loop's views; changes `labels` (n_rows, n_views) in place, `rows` must stay."""

    def __init__(self, library, config, rows, labels, order):
        self.library, self.config, self.rows, self.labels = library, config, rows, labels
        self.order = np.ascontiguousarray(order, dtype=np.int32)
        starts = np.cumsum(config.sizes) - config.sizes
        self.views = []
        for v, (start, size) in enumerate(zip(starts, config.sizes)):
            own = np.ascontiguousarray(rows[:, start : start + size])
            own_labels = labels[:, v].copy()
            view = Bare(library, config.view(size), own, own_labels, order, seed=v + 1)
            address = labels.ctypes.data + 4 * v
            library.bare_join(view.state, rows.ctypes.data, int(start), address)
            view.rows, view.labels = rows[:, start : start + size], labels[:, v]
            self.views.append(view)
        self.states = (ctypes.c_void_p * len(self.views))(*(view.state for view in self.views))

    def row_step(self, n_steps, chunk):
        """Run n_steps row steps, whole passes over the order; seconds per row."""
        start, done = time.thread_time(), 0
        while done < n_steps:
            part = min(len(self.order), n_steps - done)
            arguments = (len(self.views), self.config.n_features, self.order.ctypes.data)
            if self.library.bare_views(self.states, *arguments, part, chunk):
                raise RuntimeError("more clusters than the bare loop has slots")
            done += part
        return (time.thread_time() - start) / n_steps


def make_table(config, rows):
    """skanneal's table of the rows, and each column's hyperparameters."""
    from skanneal.families import Table

    if config.family == "normal":
        table = Table(["f4"] * config.n_features, [0] * config.n_features)
        hyper = [np.array(NORMAL_HYPER)] * config.n_features
    else:
        table = Table(["u1"] * config.n_features, [N_LEVELS] * config.n_features)
        hyper = [np.full(N_LEVELS, PSEUDO_COUNT)] * config.n_features
    table.append(list(rows.T))
    return table, hyper


def skanneal_row_step(config, rows, labels, seed=1):
    """skanneal's row step on the same rows and labels.

    Returns
    -------
    callable
        n_steps -> seconds per row; each call goes on where the last one ended.
    """
    from skanneal.moves import churn
    from skanneal.partition_priors import PitmanYor
    from skanneal.states import CrossCat, Subsample

    n_rows = len(rows)
    table, hyper = make_table(config, rows)
    bit_generator = np.random.PCG64(seed)
    subsample = Subsample(n_rows, "window", bit_generator)
    subsample.fill()
    state = CrossCat.start(
        table,
        {config.family: np.arange(config.n_features)},
        dict(enumerate(hyper)),
        np.repeat(np.arange(config.n_views), config.sizes),
        PitmanYor(CONCENTRATION),
        PitmanYor(CONCENTRATION),
        subsample,
    )
    state.replace(np.arange(n_rows), labels.T)

    def row_step(n_steps):
        knots = np.array([[0, n_rows], [n_steps, n_rows]], dtype=np.int64)
        start = time.thread_time()
        churn(state.views, subsample, bit_generator, knots, 0, n_steps)
        return (time.thread_time() - start) / n_steps

    return row_step


def compare_steps(config, libraries, n_rows, n_repeats):
    """Best seconds per row of each build and chunk of the bare loop (a dict), and of skanneal."""
    rows, labels = make_views(config, n_rows)
    order = np.random.default_rng(2).permutation(n_rows)
    bare = {
        march: BareViews(library, config, rows, labels.copy(), order)
        for march, library in libraries.items()
    }
    skanneal = skanneal_row_step(config, rows, labels)
    seconds, ours = {}, []
    for _ in range(n_repeats):
        for march, loop in bare.items():
            for chunk in CHUNKS:
                seconds.setdefault((march, chunk), []).append(loop.row_step(n_rows, chunk))
        ours.append(skanneal(n_rows))
    return {name: min(values) for name, values in seconds.items()}, min(ours)


# ---- the structure pass --------------------------------------------------------------------------


def bare_scatter(library, config, rows, order, labels, chunk):
    """Statistics of the features under partitions labels (n_views, n_rows), and the seconds.

    Returns
    -------
    statistics : ndarray
        Counts (n_views, n_slots, n_features, n_levels) or sums (n_views, n_slots, 2, n_features).
    seconds : float
    """
    shape, normal = (config.n_views, config.n_slots), config.family == "normal"
    last = (2, config.n_features) if normal else (config.n_features, N_LEVELS)
    out = np.zeros((*shape, *last), dtype=np.float64 if normal else np.uint32)
    scatter = library.bare_scatter_numbers if normal else library.bare_scatter_codes
    addresses = [array.ctypes.data for array in (rows, order, labels, out)]
    start = time.thread_time()
    scatter(
        *(addresses[0], addresses[1], len(order), config.n_features),
        *(addresses[2], *shape, chunk, addresses[3]),
    )
    return out, time.thread_time() - start


def compare_passes(config, libraries, n_rows, n_repeats):
    """As `compare_steps`; seconds per cell of a structure pass."""
    from skanneal.families import FAMILIES

    rows, labels = make_views(config, n_rows)
    order = np.random.default_rng(2).permutation(n_rows)
    by_view = np.ascontiguousarray(labels[order].T)
    bare_order = order.astype(np.int32)
    table, hyper = make_table(config, rows)
    columns, n_slots = np.arange(config.n_features), np.full(config.n_views, config.n_clusters)
    column_scores = FAMILIES[config.family].column_scores
    seconds, ours = {}, []
    for _ in range(n_repeats):
        for march, library in libraries.items():
            for chunk in CHUNKS:
                passed = bare_scatter(library, config, rows, bare_order, by_view, chunk)[1]
                seconds.setdefault((march, chunk), []).append(passed)
        start = time.thread_time()
        column_scores(table, columns, hyper, order, by_view, n_slots)
        ours.append(time.thread_time() - start)
    cells = n_rows * config.n_features * config.n_views
    return {name: min(values) / cells for name, values in seconds.items()}, min(ours) / cells


# ---- tables --------------------------------------------------------------------------------------


def print_comparison(name, bare, ours, most, digits):
    """One line of a table."""
    march, chunk = min(bare, key=bare.get)
    least = bare[march, chunk]
    verdict = "pass" if ours <= most * least else "FAIL"
    figures = f"{1e9 * least:9.{digits}f} {1e9 * ours:9.{digits}f} {ours / least:7.2f}  {verdict}"
    print(f"{name:44s} {figures}   {march}, {chunk} rows", flush=True)


def benchmark(quick):
    """Print both tables."""
    n_rows, n_repeats = (20_000, 2) if quick else (100_000, 8)
    header = f"{'bare':>9s} {'skanneal':>9s} {'ratio':>7s}        build and turn of the bare loop"
    with tempfile.TemporaryDirectory() as folder:
        libraries = build_all(folder)
        print(f"Nanoseconds per row step of all views, {n_rows:,} rows, best of {n_repeats}")
        print(f"{'':44s} {header}")
        for config in STEPS:
            result = compare_steps(config, libraries, n_rows, n_repeats)
            print_comparison(str(config), *result, MOST_STEP, 0)
        print("\nNanoseconds per cell (row, feature, view) of a structure pass")
        print(f"{'':44s} {header}")
        for config in PASSES:
            result = compare_passes(config, libraries, n_rows, n_repeats)
            print_comparison(str(config), *result, MOST_PASS, 3)


# ---- the check of the bare loops -----------------------------------------------------------------


def check_scatter(library, config, rows, order, labels):
    """Statistics of the scatter-add against NumPy's."""
    by_view = np.ascontiguousarray(labels[order].T)
    for chunk in CHUNKS:
        out, _ = bare_scatter(library, config, rows, order.astype(np.int32), by_view, chunk)
        for v in range(config.n_views):
            for k in range(config.n_slots):
                members = rows[labels[:, v] == k].astype(np.float64)
                if config.family == "normal":
                    expected = [members.sum(axis=0), (members**2).sum(axis=0)]
                    np.testing.assert_allclose(out[v, k], expected, rtol=1e-9, atol=1e-9)
                else:
                    counts = (members[..., None] == np.arange(N_LEVELS)).sum(axis=0)
                    np.testing.assert_array_equal(out[v, k], counts)


def check():
    """Check every build that runs here: statistics of all views after many steps."""
    with tempfile.TemporaryDirectory() as folder:
        for march, library in build_all(folder).items():
            for config in (Config("categorical", 19, 3, 5), Config("normal", 17, 3, 18)):
                rows, labels = make_views(config, 400)
                order = np.random.default_rng(2).permutation(len(rows))
                check_scatter(library, config, rows, order, labels)
                loop = BareViews(library, config, rows, labels.copy(), order)
                for chunk in CHUNKS:
                    loop.row_step(20_000, chunk)
                    for view in loop.views:
                        row_step.check_statistics(view.config, view)
                same = (loop.labels == labels).mean()
                print(f"{march:10s} {config!s:44s} {same:.1%} of the labels as they were")
                if not 0.8 < same < 1:
                    raise AssertionError("the draws do not follow the scores")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer repetitions and rows")
    parser.add_argument("--check", action="store_true", help="check the bare loops instead")
    arguments = parser.parse_args()
    if arguments.check:
        check()
    else:
        benchmark(arguments.quick)


if __name__ == "__main__":
    main()
