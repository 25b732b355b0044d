"""The row step of collapsed Gibbs sampling beside a bare C loop that does the same work.

    python benchmarks/kernels/row_step.py             # all tables, a few minutes, 2 GB
    python benchmarks/kernels/row_step.py --quick     # fewer repetitions, at most 1e6 rows
    python benchmarks/kernels/row_step.py --data FOLDER   # documents from FOLDER/ap_news.npz
    python benchmarks/kernels/row_step.py --families negative_binomial log_normal   # of these alone
    python benchmarks/kernels/row_step.py --check     # the bare loop is right: statistics and draws

A row step removes a row, scores it against all clusters and a new one, draws a label and inserts
the row. Both sides run it at full data, rows in shuffled order, labels started at the true and well
separated clusters (so that the number of clusters stays what it is), hyperparameters fixed,
concentration 1. The bare loop (``bare_row_step.c``) is compiled here, for several instruction sets
with -O3 -ffast-math, and the fastest build that this processor runs is taken. The two sides take
turns; a figure is the best of the repetitions, in nanoseconds of the thread's processor time.

The second table is of rows of counts: documents, by default simulated ones of the shape of the
Associated Press corpus of Blei, Ng and Jordan (2003), whose labels are those of a short run.

A third table is of rows with one gap each beside whole rows, both of skanneal, once fills have
settled.

The last table is the growth of the cost with the number of rows, where each step's row is a cache
miss that only prefetching hides.
"""

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import betaln, gammaln, logsumexp
from scipy.stats import chisquare, multivariate_t, norm

SOURCE = Path(__file__).with_name("bare_row_step.c")
FLAGS = ("-O3", "-ffast-math", "-fPIC")
# gcc 12 takes some processors with AVX-512 for older ones under "native"; "baseline" is the
# compiler's default and only counts where none of the others can be built and run.
MARCHES = ("x86-64-v4", "x86-64-v3", "native")
N_LEVELS = 4
PSEUDO_COUNT = 0.5
CORPUS = (2246, 10_473, 194)  # documents, words, words per document
NORMAL_HYPER = (0.0, 0.1, 3.0, 0.3)  # mu0, kappa0, nu0, sigma2_0
ROW_KAPPA0, ROW_SCALE0 = 0.1, 0.9  # of multivariate_normal; nu0 is the number of columns plus 2
ATOM_SHARE = 0.3  # of the cells of columns with atoms
BETA_HYPER = (np.geomspace(0.1, 1e4, 21)[5], 1.0, 1.0)  # size, of the family's grid, a, b
DEGREES = 4.0  # of freedom, of multivariate_t
KNOWN_SPREAD = 4.0  # prior variance of known_normal's means, whose rows have unit variances
CONCENTRATION = 1.0
BLOCK = 16


class Config(NamedTuple):
    """One line of the first table."""

    family: str
    n_features: int
    n_clusters: int

    @property
    def n_slots(self):
        """Clusters and the open one, padded to whole blocks."""
        return -(-(self.n_clusters + 1) // BLOCK) * BLOCK

    def __str__(self):
        return f"{self.n_features} {self.family}, {self.n_clusters} clusters"


CONFIGS = (
    Config("categorical", 40, 8),
    Config("categorical", 68, 24),
    Config("normal", 40, 8),
    Config("normal", 40, 24),
    Config("multivariate_normal", 8, 20),
    Config("multivariate_normal", 32, 20),
    Config("known_normal", 40, 40),
    Config("known_normal", 50, 40),
    Config("log_normal", 40, 8),
    Config("semi_continuous", 40, 8),
    Config("semi_continuous", 40, 24),
    Config("semi_continuous_log_normal", 40, 8),
    Config("negative_binomial", 40, 8),
    Config("negative_binomial", 40, 24),
    Config("multivariate_t", 8, 20),
    Config("multivariate_t", 32, 20),
)
GAPPY = tuple(
    Config(family, n_features, n_clusters)
    for family in ("multivariate_normal", "known_normal", "multivariate_t")
    for n_features in (5, 20, 40)
    for n_clusters in (5, 30)
)
WITH_ATOMS = "semi_continuous", "semi_continuous_log_normal"


def make_rows(config, n_rows, seed=0, spread=2.0, sharpness=0.5):
    """Rows (n_rows, n_features), uint8 codes, uint32 counts or float32, and their true clusters,
    int32 (n_rows,).

    Means are N(0, spread^2) under unit variances, level probabilities Dirichlet(sharpness). With
    atoms a cell is 0 with the same probability everywhere. Rows of multivariate_t are divided by
    the roots of their weights. Counts have gamma rates of mean 8 in the clusters.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(config.n_clusters, size=n_rows, dtype=np.int32)
    shape = (config.n_clusters, config.n_features)
    if config.family == "negative_binomial":
        size = BETA_HYPER[0]
        means = 8.0 * rng.gamma(1.0, size=shape)
        rows = np.empty((n_rows, config.n_features), dtype=np.uint32)
        for start in range(0, n_rows, 65_536):
            part = slice(start, start + 65_536)
            rows[part] = rng.negative_binomial(size, size / (size + means[labels[part]]))
        return rows, labels
    if config.family != "categorical":
        rows = np.empty((n_rows, config.n_features), dtype=np.float32)
        means = spread * rng.standard_normal(shape, dtype=np.float32)
    else:
        rows = np.empty((n_rows, config.n_features), dtype=np.uint8)
        levels = rng.dirichlet(np.full(N_LEVELS, sharpness), size=shape)
        bounds = np.cumsum(levels, axis=-1)[..., :-1].astype(np.float32)
    for start in range(0, n_rows, 65_536):
        part = slice(start, start + 65_536)
        if config.family != "categorical":
            rows[part] = rng.standard_normal(rows[part].shape, dtype=np.float32)
            if config.family == "multivariate_t":
                rows[part] /= np.sqrt(rng.chisquare(DEGREES, (len(rows[part]), 1)) / DEGREES)
            rows[part] += means[labels[part]]
            if config.family in WITH_ATOMS:
                rows[part][rng.random(rows[part].shape, dtype=np.float32) < ATOM_SHARE] = 0.0
        else:
            uniform = rng.random(rows[part].shape, dtype=np.float32)
            rows[part] = (uniform[..., None] > bounds[labels[part]]).sum(axis=-1, dtype=np.uint8)
    return rows, labels


def make_documents(n_rows, n_features, mean_total, n_clusters, seed=0):
    """Rows of counts as csr_array of uint32, and their true clusters.

    Words' frequencies fall as their rank; in each cluster they are multiplied by Gamma variates.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_clusters, size=n_rows, dtype=np.int32)
    words = rng.gamma(0.1, size=(n_clusters, n_features)) / (10.0 + np.arange(n_features))
    words /= words.sum(axis=1, keepdims=True)
    totals = 1 + rng.poisson(rng.gamma(3.0, mean_total / 3.0, n_rows))
    rows = [rng.multinomial(n, words[k]) for n, k in zip(totals, labels)]
    parts = [np.flatnonzero(row) for row in rows]
    starts = np.cumsum([0, *map(len, parts)])
    counts = np.concatenate([row[at] for row, at in zip(rows, parts)]).astype(np.uint32)
    return csr_array((counts, np.concatenate(parts), starts), (n_rows, n_features)), labels


def read_documents(folder):
    """The corpus and the labels of a few sweeps from random ones."""
    with np.load(Path(folder) / "ap_news.npz") as file:
        parts = file["data"].astype(np.uint32), file["indices"].astype(np.int64), file["indptr"]
        rows = csr_array(parts, tuple(file["shape"]))
    labels = np.random.default_rng(0).integers(40, size=rows.shape[0], dtype=np.int32)
    mixture, churn = skanneal_documents(rows, labels)
    churn(10 * rows.shape[0])
    return rows, np.unique(mixture.get_labels(), return_inverse=True)[1].astype(np.int32)


def compile_bare(march, folder, source=None):
    """Path of the bare loop's shared library, or None if the compiler refuses."""
    source = source or SOURCE
    stem = f"{source.stem}-{march}"
    objects, library = folder / f"{stem}.o", folder / f"{stem}.so"
    compiler = os.environ.get("CC", "cc")
    machine = [] if march == "baseline" else [f"-march={march}"]
    # Linked without -ffast-math, which would switch off subnormal numbers for the whole process.
    for command in (
        [compiler, *FLAGS, *machine, "-c", str(source), "-o", str(objects)],
        [compiler, "-shared", str(objects), "-o", str(library), "-lm"],
    ):
        if subprocess.run(command, capture_output=True).returncode != 0:
            return None
    return library


def runs_here(library):
    """Whether this processor has the library's instructions (tried in a process of its own)."""
    command = [sys.executable, __file__, "--probe", str(library)]
    return subprocess.run(command, capture_output=True).returncode == 0


def build_all(folder):
    """Loaded libraries by name of the instruction set, those that run here."""
    folder = Path(folder)
    for marches in (MARCHES, ("baseline",)):
        paths = {march: compile_bare(march, folder) for march in marches}
        usable = {march: load(path) for march, path in paths.items() if path and runs_here(path)}
        if usable:
            return usable
    raise RuntimeError("the bare loop could not be built: is there a C compiler?")


def load(path):
    """The shared library with its functions' types."""
    library = ctypes.CDLL(str(path))
    pointer, number, whole = ctypes.c_void_p, ctypes.c_double, ctypes.c_int
    long, seed = ctypes.c_int64, ctypes.c_uint64
    start = [long, whole, whole, pointer, pointer]
    signatures = {
        "bare_categorical": (pointer, [*start, number, number, seed]),
        "bare_normal": (pointer, [*start, pointer, number, seed]),
        "bare_multinomial": (pointer, [*start, pointer, number, number, seed]),
        "bare_atoms": (pointer, [*start, pointer, number, seed]),
        "bare_negative": (pointer, [*start, pointer, number, seed]),
        "bare_rows": (pointer, [*start, pointer, number, seed]),
        "bare_scores": (pointer, [pointer, long]),
        "bare_steps": (whole, [pointer, pointer, long]),
        "bare_tally": (whole, [pointer, long, long, pointer]),
        "bare_open": (whole, [pointer]),
        "bare_free": (None, [pointer]),
    }
    for name in ("bare_counts", "bare_mean", "bare_m2", "bare_cache", "bare_weights"):
        signatures[name] = (pointer, [pointer])
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Bare:
    """The bare loop's state; changes `labels` in place, `rows` must outlive it."""

    def __init__(self, library, config, rows, labels, order, seed=1):
        self.library, self.config, self.rows, self.labels = library, config, rows, labels
        self.order = np.ascontiguousarray(order, dtype=np.int32)
        shape = (rows.shape[0], config.n_features, config.n_slots)
        if config.family == "multinomial":
            self.pairs = np.column_stack([rows.indices, rows.data]).astype(np.uint32)
            self.start = rows.indptr.astype(np.int64)
            addresses = [x.ctypes.data for x in (self.pairs, self.start, labels)]
            self.state = library.bare_multinomial(
                *shape, *addresses, PSEUDO_COUNT, CONCENTRATION, seed
            )
        elif config.family != "categorical":
            make, hyper = {
                "normal": (library.bare_normal, NORMAL_HYPER),
                "log_normal": (library.bare_normal, NORMAL_HYPER),  # cells are logarithms
                "semi_continuous": (library.bare_atoms, (*NORMAL_HYPER, PSEUDO_COUNT)),
                "semi_continuous_log_normal": (library.bare_atoms, (*NORMAL_HYPER, PSEUDO_COUNT)),
                "negative_binomial": (library.bare_negative, BETA_HYPER),
            }.get(config.family) or (library.bare_rows, row_hyper(config))
            hyper = (ctypes.c_double * len(hyper))(*hyper)
            self.state = make(
                *shape, rows.ctypes.data, labels.ctypes.data, hyper, CONCENTRATION, seed
            )
        else:
            self.state = library.bare_categorical(
                *shape, rows.ctypes.data, labels.ctypes.data, PSEUDO_COUNT, CONCENTRATION, seed
            )
        if not self.state:
            raise ValueError(f"the bare loop has no such shape: {config}")

    def __del__(self):
        if getattr(self, "state", None):
            self.library.bare_free(self.state)

    def row_step(self, n_steps):
        """Run n_steps row steps, whole passes over the order; seconds per row."""
        start = time.thread_time()
        done = 0
        while done < n_steps:
            part = min(len(self.order), n_steps - done)
            if self.library.bare_steps(self.state, self.order.ctypes.data, part):
                raise RuntimeError("more clusters than the bare loop has slots")
            done += part
        return (time.thread_time() - start) / n_steps

    def tally(self, row, n_draws):
        """How often each slot is drawn for a row, int64 (n_slots,)."""
        counts = np.zeros(self.config.n_slots, dtype=np.int64)
        if self.library.bare_tally(self.state, row, n_draws, counts.ctypes.data):
            raise RuntimeError("more clusters than the bare loop has slots")
        return counts

    def scores(self, row):
        """Log weight of each slot for a row that is in its slot, float32 (n_slots,)."""
        address = self.library.bare_scores(self.state, row)
        pointer = ctypes.cast(address, ctypes.POINTER(ctypes.c_float))
        return np.ctypeslib.as_array(pointer, (self.config.n_slots,)).copy()

    def array(self, name, ctype, shape):
        """A view of one of the state's arrays."""
        address = getattr(self.library, f"bare_{name}")(self.state)
        return np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctype)), shape)


def row_hyper(config):
    """kappa0, nu0, scale0 of the bare loop, and half the degrees of freedom or 0; with nu0 = 0
    scale0 is the means' prior variance."""
    if config.family == "known_normal":
        return 0.0, 0.0, KNOWN_SPREAD, 0.0
    half = 0.5 * DEGREES if config.family == "multivariate_t" else 0.0
    return ROW_KAPPA0, config.n_features + 2.0, ROW_SCALE0, half


def flat_hyper(config):
    """The same as skanneal's flat vector."""
    d = config.n_features
    unit = np.eye(d)[np.tril_indices(d)]
    if config.family == "known_normal":
        return np.concatenate([unit, np.zeros(d), KNOWN_SPREAD * unit])
    degrees = [DEGREES] if config.family == "multivariate_t" else []
    return np.concatenate([np.zeros(d), [ROW_KAPPA0, d + 2.0], ROW_SCALE0 * unit, degrees])


def skanneal_row_step(config, rows, labels, seed=1):
    """skanneal's row step on the same rows and labels.

    Returns
    -------
    callable
        n_steps -> seconds per row; each call goes on where the last one ended.
    """
    from skanneal.families import FAMILIES, Table
    from skanneal.moves import churn
    from skanneal.partition_priors import PitmanYor
    from skanneal.states import Mixture, Subsample

    n_rows, n_features = rows.shape
    if config.family == "negative_binomial":
        table = Table(["u4"] * n_features, [0] * n_features)
        hyper = [np.array(BETA_HYPER)] * n_features
    elif config.family in WITH_ATOMS:
        atoms = [np.zeros(1, dtype=np.float32)] * n_features
        table = Table(["f4"] * n_features, [0] * n_features, atoms=atoms)
        hyper = [np.array([*NORMAL_HYPER, PSEUDO_COUNT, PSEUDO_COUNT])] * n_features
    elif config.family in ("normal", "log_normal"):
        table = Table(["f4"] * n_features, [0] * n_features)
        hyper = [np.array(NORMAL_HYPER)] * n_features
    elif config.family != "categorical":
        table = Table(["f4"] * n_features, [0] * n_features)
        hyper = [flat_hyper(config)]
    else:
        table = Table(["u1"] * n_features, [N_LEVELS] * n_features)
        hyper = [np.full(N_LEVELS, PSEUDO_COUNT)] * n_features
    table.append(list(rows.T))
    bit_generator = np.random.PCG64(seed)
    subsample = Subsample(n_rows, "window", bit_generator)
    subsample.fill()
    block = FAMILIES[config.family](table, range(n_features), hyper)
    mixture = Mixture(table, [block], PitmanYor(CONCENTRATION), subsample)
    mixture.replace(np.arange(n_rows), labels)

    def row_step(n_steps):
        knots = np.array([[0, n_rows], [n_steps, n_rows]], dtype=np.int64)
        start = time.thread_time()
        churn([mixture], subsample, bit_generator, knots, 0, n_steps)
        return (time.thread_time() - start) / n_steps

    return row_step


def skanneal_documents(rows, labels, seed=1):
    """A mixture of these rows of counts, and skanneal's row step on it as above."""
    from skanneal.families import FAMILIES, Table
    from skanneal.moves import churn
    from skanneal.partition_priors import PitmanYor
    from skanneal.states import Mixture, Subsample

    n_rows, n_features = rows.shape
    others = n_features - 1
    table = Table(["entries"] + ["none"] * others, [0] * n_features)
    table.append([rows] + [None] * others)
    bit_generator = np.random.PCG64(seed)
    subsample = Subsample(n_rows, "window", bit_generator)
    subsample.fill()
    block = FAMILIES["multinomial"](table, range(n_features), [np.array([PSEUDO_COUNT])])
    mixture = Mixture(table, [block], PitmanYor(CONCENTRATION), subsample)
    mixture.replace(np.arange(n_rows), labels)

    def row_step(n_steps):
        knots = np.array([[0, n_rows], [n_steps, n_rows]], dtype=np.int64)
        start = time.thread_time()
        churn([mixture], subsample, bit_generator, knots, 0, n_steps)
        return (time.thread_time() - start) / n_steps

    return mixture, row_step


def compare(config, libraries, n_rows, n_steps, n_repeats):
    """Best seconds per row of each build of the bare loop (a dict) and of skanneal, in turns."""
    rows, labels = make_rows(config, n_rows)
    skanneal = skanneal_row_step(config, rows, labels)
    return take_turns(config, libraries, rows, labels, skanneal, n_steps, n_repeats)


def compare_gaps(config, n_rows, n_steps, n_repeats):
    """Best seconds per row of skanneal without gaps, and with one gap in every row, in turns."""
    rows, labels = make_rows(config, n_rows)
    gappy = rows.copy()
    gappy[np.arange(n_rows), np.random.default_rng(3).integers(config.n_features, size=n_rows)] = (
        np.nan
    )
    steps = [skanneal_row_step(config, of, labels) for of in (rows, gappy)]
    for step in steps:
        step(3 * n_rows)  # fills begin at 0
    seconds = [[step(n_steps) for step in steps] for _ in range(n_repeats)]
    return tuple(np.min(seconds, axis=0))


def compare_documents(libraries, rows, labels, n_repeats):
    """The same for rows of counts."""
    config = Config("multinomial", rows.shape[1], int(labels.max()) + 1)
    _, skanneal = skanneal_documents(rows, labels)
    n_steps = 10 * rows.shape[0]
    return config, take_turns(config, libraries, rows, labels, skanneal, n_steps, n_repeats)


def take_turns(config, libraries, rows, labels, skanneal, n_steps, n_repeats):
    """Best seconds per row, see compare."""
    order = np.random.default_rng(2).permutation(rows.shape[0])
    bare = {
        march: Bare(library, config, rows, labels.copy(), order)
        for march, library in libraries.items()
    }
    seconds = {march: [] for march in bare}
    ours = []
    for _ in range(n_repeats):
        for march, loop in bare.items():
            seconds[march].append(loop.row_step(n_steps))
        ours.append(skanneal(n_steps))
    return {march: min(values) for march, values in seconds.items()}, min(ours)


def print_comparison(name, bare, ours):
    """One line of a table; the name of the fastest build."""
    march = min(bare, key=bare.get)
    figures = f"{1e9 * bare[march]:9.0f} {1e9 * ours:9.0f} {ours / bare[march]:7.2f}"
    print(f"{name:30s} {figures}   {march}", flush=True)
    return march


def chosen(configs, families):
    """Those of some families, or all."""
    return [config for config in configs if not families or config.family in families]


def benchmark(quick, data=None, families=()):
    """Print all tables, or those lines of the first and the third that are of some families."""
    n_rows, n_repeats = (20_000, 3) if quick else (100_000, 12)
    header = f"{'bare':>9s} {'skanneal':>9s} {'ratio':>7s}   build of the bare loop"
    with tempfile.TemporaryDirectory() as folder:
        libraries = build_all(folder)
        print(f"Nanoseconds per row step, {n_rows:,} rows, best of {n_repeats}\n{'':30s} {header}")
        marches = {}
        for config in chosen(CONFIGS, families):
            result = compare(config, libraries, n_rows, max(n_rows, 100_000), n_repeats)
            marches[config] = print_comparison(str(config), *result)
        columns = f"{'whole':>9s} {'one gap':>9s} {'ratio':>7s}"
        print(f"\nRows with a gap, nanoseconds per row step\n{'':30s} {columns}")
        for config in chosen(GAPPY, families):
            whole, gappy = compare_gaps(config, n_rows, n_rows, n_repeats)
            figures = f"{1e9 * whole:9.0f} {1e9 * gappy:9.0f} {gappy / whole:7.2f}"
            print(f"{config!s:30s} {figures}", flush=True)
        if not families or "multinomial" in families:
            rows, labels = read_documents(data) if data else make_documents(*CORPUS, n_clusters=40)
            source = "from " + str(data) if data else "simulated"
            of_words = f"{rows.shape[0]:,} rows of {rows.nnz / rows.shape[0]:.0f} words"
            print(f"\nDocuments, {source}: {of_words}\n{'':30s} {header}")
            config, result = compare_documents(libraries, rows, labels, n_repeats)
            print_comparison(str(config), *result)
        if families:
            return
        config = CONFIGS[0]
        fastest = {marches[config]: libraries[marches[config]]}
        print(f"\nGrowth with the number of rows: {config}\n{'rows':30s} {header}")
        for n_rows in (10**4, 10**5, 10**6) if quick else (10**4, 10**5, 10**6, 10**7):
            n_steps = max(n_rows, 200_000)
            n_repeats = min(8, max(2, 4_000_000 // n_steps)) if not quick else 2
            result = compare(config, fastest, n_rows, n_steps, n_repeats)
            print_comparison(f"{n_rows:,}", *result)


# ---- the check of the bare loop ------------------------------------------------------------------


def slot_log_weights(config, rows, row, labels, n_slots, open_slot, weights=None):
    """Log weight of each slot for a row by formula, given the labels of the others (-1: none), and
    the weights of rows of multivariate_t."""
    out = np.full(n_slots, -np.inf)
    rows = rows.toarray() if config.family == "multinomial" else rows
    for k in range(n_slots):
        members = rows[labels == k].astype(np.float64)
        n = len(members)
        if n == 0 and k != open_slot:
            continue
        out[k] = np.log(n if n else CONCENTRATION)
        x = rows[row].astype(np.float64)
        if config.family in ("normal", "log_normal"):
            out[k] += student_log_density(x, members).sum()
        elif config.family in WITH_ATOMS:
            out[k] += log_density_with_atoms(x, members)
        elif config.family == "negative_binomial":
            out[k] += log_count_predictive(x, members)
        elif config.family == "multivariate_t":
            out[k] += heavy_log_density(x, members, weights[labels == k])
        elif config.family == "multivariate_normal":
            out[k] += multivariate_log_density(x, members)
        elif config.family == "known_normal":
            out[k] += known_log_density(x, members)
        elif config.family == "multinomial":
            weights = PSEUDO_COUNT + members.sum(axis=0)
            out[k] += (gammaln(weights + x) - gammaln(weights)).sum()
            out[k] -= gammaln(weights.sum() + x.sum()) - gammaln(weights.sum())
        else:
            counts = (members == rows[row]).sum(axis=0)
            out[k] += np.log((counts + PSEUDO_COUNT) / (n + N_LEVELS * PSEUDO_COUNT)).sum()
    return out


def student_log_density(x, members):
    """Log posterior predictive of each cell under the normal-inverse-chi-squared prior."""
    mu0, kappa0, nu0, sigma2_0 = NORMAL_HYPER
    n = len(members)
    mean = members.mean(axis=0) if n else np.zeros_like(x)
    squares = ((members - mean) ** 2).sum(axis=0)
    kappa, nu = kappa0 + n, nu0 + n
    centre = (kappa0 * mu0 + n * mean) / kappa
    sigma2 = (nu0 * sigma2_0 + squares + kappa0 * n / kappa * (mean - mu0) ** 2) / nu
    scale2 = sigma2 * (1 + 1 / kappa)
    return (
        gammaln((nu + 1) / 2)
        - gammaln(nu / 2)
        - 0.5 * np.log(nu * np.pi * scale2)
        - (nu + 1) / 2 * np.log1p((x - centre) ** 2 / (nu * scale2))
    )


def multivariate_log_density(x, members):
    """Log posterior predictive of a row under the normal-inverse-Wishart prior."""
    d, n = len(x), len(members)
    mean = members.mean(axis=0) if n else np.zeros(d)
    kappa, nu = ROW_KAPPA0 + n, d + 2.0 + n
    psi = ROW_SCALE0 * np.eye(d) + (members - mean).T @ (members - mean)
    psi += ROW_KAPPA0 * n / kappa * np.outer(mean, mean)
    shape = psi * (kappa + 1) / (kappa * (nu - d + 1))
    return multivariate_t(n / kappa * mean, shape, nu - d + 1).logpdf(x)


def log_density_with_atoms(x, members):
    """Log predictive of a row of numbers, those of 0 being atoms."""
    out, n = 0.0, len(members)
    for f in range(len(x)):
        elsewhere = members[members[:, f] != 0, f]
        same = n - len(elsewhere) if x[f] == 0 else len(elsewhere)
        out += np.log((same + PSEUDO_COUNT) / (n + 2 * PSEUDO_COUNT))
        if x[f] != 0:
            out += student_log_density(x[f : f + 1], elsewhere[:, None])[0]
    return out


def log_count_predictive(x, members):
    """Log predictive of a row of counts, without what depends on the row alone."""
    size, a, b = BETA_HYPER
    a, b = a + len(members) * size, b + members.sum(axis=0)
    return (betaln(a + size, b + x) - betaln(a, b)).sum()


def heavy_log_density(x, members, weights):
    """Log predictive of a row, its weight integrated out, given the others' weights."""
    d, n, half = len(x), len(members), 0.5 * DEGREES
    total = weights.sum()
    mean = weights @ members / total if n else np.zeros(d)
    kappa, nu = ROW_KAPPA0 + total, d + 2.0 + n
    psi = ROW_SCALE0 * np.eye(d) + (weights * (members - mean).T) @ (members - mean)
    psi += ROW_KAPPA0 * total / kappa * np.outer(mean, mean)
    at = np.linspace(-25, 12, 20_001)  # log weights
    square = (x - total / kappa * mean) @ np.linalg.solve(psi, x - total / kappa * mean)
    rate = 1 / (np.exp(-at) + 1 / kappa)
    logs = 0.5 * d * np.log(rate) - 0.5 * (nu + 1) * np.log1p(rate * square)
    logs += half * (np.log(half) + at - np.exp(at)) - gammaln(half)
    logs += gammaln(0.5 * (nu + 1)) - gammaln(0.5 * (nu + 1 - d)) - 0.5 * d * np.log(np.pi)
    return logsumexp(logs) + np.log(at[1] - at[0]) - 0.5 * np.linalg.slogdet(psi)[1]


def known_log_density(x, members):
    """Log posterior predictive of a row of unit variances."""
    n = len(members)
    share = KNOWN_SPREAD / (1 + n * KNOWN_SPREAD)
    return norm.logpdf(x, share * members.sum(axis=0), np.sqrt(1 + share)).sum()


def draw_p_value(tally, log_weights):
    """p-value of a chi-square test of drawn slots, those expected fewer than 5 times pooled."""
    expected = np.exp(log_weights - log_weights.max())
    expected *= tally.sum() / expected.sum()
    if tally[expected == 0].any():
        return 0.0
    rare = expected < 5
    observed = np.r_[tally[~rare], tally[rare].sum()]
    expected = np.r_[expected[~rare], expected[rare].sum()]
    observed, expected = observed[expected > 0], expected[expected > 0]
    return chisquare(observed, expected).pvalue if len(expected) > 1 else 1.0


def check_draws(config, loop, n_rows_checked=6, n_draws=200_000):
    """p-values of the drawn labels of some rows, and of a control that forgets the removal."""
    p_values, controls = [], []
    for row in range(n_rows_checked):
        tally = loop.tally(row, n_draws)
        for result, own in ((p_values, -1), (controls, loop.labels[row])):
            labels = loop.labels.copy()
            labels[row] = own
            open_slot = loop.library.bare_open(loop.state)
            of_rows = row_weights(config, loop)
            weights = slot_log_weights(
                config, loop.rows, row, labels, config.n_slots, open_slot, of_rows
            )
            result.append(draw_p_value(tally, weights))
    return min(p_values), min(controls)


def row_weights(config, loop):
    """The weights of the rows of multivariate_t; None of other families."""
    if config.family != "multivariate_t":
        return None
    return loop.array("weights", ctypes.c_float, (len(loop.rows),)).astype(np.float64)


def check_statistics(config, loop):
    """Statistics and score caches against recomputation from the rows and labels."""
    n_slots, n_features = config.n_slots, config.n_features
    if config.family == "multinomial":
        counts = np.stack([loop.rows[loop.labels == k].sum(axis=0) for k in range(n_slots)])
        np.testing.assert_array_equal(loop.array("counts", ctypes.c_uint32, counts.shape), counts)
        cache = loop.array("cache", ctypes.c_float, (n_features, n_slots))
        np.testing.assert_allclose(cache, counts.T + PSEUDO_COUNT, rtol=1e-6)
        return
    slots = [loop.rows[loop.labels == k].astype(np.float64) for k in range(n_slots)]
    if config.family == "categorical":
        counts = np.stack([(x[..., None] == np.arange(N_LEVELS)).sum(axis=0) for x in slots])
        np.testing.assert_array_equal(loop.array("counts", ctypes.c_uint32, counts.shape), counts)
        cache = loop.array("cache", ctypes.c_float, (n_features, N_LEVELS, n_slots))
        expected = np.log(counts + PSEUDO_COUNT).transpose(1, 2, 0)
        np.testing.assert_allclose(cache, expected, rtol=1e-6, atol=1e-6)
        return
    if config.family not in ("normal", "log_normal"):
        open_slot = loop.library.bare_open(loop.state)
        weights = row_weights(config, loop)
        for row in range(5):
            expected = slot_log_weights(
                config, loop.rows, row, loop.labels, n_slots, open_slot, weights
            )
            used = np.isfinite(expected)
            np.testing.assert_allclose(loop.scores(row)[used], expected[used], rtol=1e-4, atol=1e-3)
        return
    used = [k for k in range(n_slots) if len(slots[k])]
    mean = np.stack([slots[k].mean(axis=0) for k in used])
    m2 = np.stack([((slots[k] - slots[k].mean(axis=0)) ** 2).sum(axis=0) for k in used])
    for name, expected in (("mean", mean), ("m2", m2)):
        held = loop.array(name, ctypes.c_double, (n_slots, 128))[used, :n_features]
        np.testing.assert_allclose(held, expected, rtol=1e-9, atol=1e-9)
    location, precision, exponent, constant = np.moveaxis(
        loop.array("cache", ctypes.c_float, (n_features, 4, n_slots)).astype(np.float64), 1, 0
    )
    x = loop.rows[0].astype(np.float64)
    density = constant - exponent * np.log1p((x[:, None] - location) ** 2 * precision)
    expected = np.stack([student_log_density(x, members) for members in slots], axis=1)
    np.testing.assert_allclose(density, expected, rtol=1e-4, atol=1e-4)


def check():
    """Check every build of the bare loop that runs here."""
    # One try each; 60 p-values per build: a false alarm with probability 6e-4.
    smallest = 1e-5
    with tempfile.TemporaryDirectory() as folder:
        for march, library in build_all(folder).items():
            for config in (
                Config("categorical", 12, 5),
                Config("categorical", 13, 18),
                Config("normal", 10, 5),
                Config("normal", 11, 18),
                Config("multinomial", 40, 5),
                Config("multinomial", 41, 40),
                Config("multivariate_normal", 3, 5),
                Config("multivariate_normal", 5, 18),
                Config("known_normal", 10, 5),
                Config("known_normal", 11, 34),
                Config("log_normal", 10, 5),
                Config("semi_continuous", 10, 5),
                Config("semi_continuous", 11, 18),
                Config("negative_binomial", 10, 5),
                Config("negative_binomial", 11, 18),
                Config("multivariate_t", 3, 5),
                Config("multivariate_t", 5, 18),
            ):
                if config.family == "multinomial":
                    rows, labels = make_documents(400, config.n_features, 9, config.n_clusters)
                else:
                    rows, labels = make_rows(config, 400, spread=1.0, sharpness=0.5)
                order = np.random.default_rng(2).permutation(rows.shape[0])
                loop = Bare(library, config, rows, labels, order)
                check_statistics(config, loop)
                loop.row_step(1000)
                if config.family == "multivariate_t":  # proposals, which are not the law
                    loop.row_step(100_000)
                    check_statistics(config, loop)
                    print(f"{march:10s} {config!s:28s} scores agree")
                    continue
                p_value, control = check_draws(config, loop)
                loop.row_step(1_000_000)
                check_statistics(config, loop)
                print(f"{march:10s} {config!s:28s} draws p {p_value:.2g}, control p {control:.2g}")
                if p_value < smallest or control > smallest:
                    raise AssertionError("the draws do not follow the formula, or neither does")


def probe(path):
    """Run a build once, so that a processor without its instructions ends this process."""
    library = load(path)
    for family in {config.family for config in CONFIGS}:
        config = Config(family, 4, 20)
        rows, labels = make_rows(config, 200)
        Bare(library, config, rows, labels, np.arange(200)).row_step(1000)
    rows, labels = make_documents(200, 50, 9, 20)
    Bare(library, Config("multinomial", 50, 20), rows, labels, np.arange(200)).row_step(1000)


def main():
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer repetitions and rows")
    parser.add_argument("--check", action="store_true", help="check the bare loop instead")
    parser.add_argument("--families", nargs="+", default=(), help="all by default")
    parser.add_argument("--data", metavar="FOLDER", help="where ap_news.npz is")
    parser.add_argument("--probe", metavar="LIBRARY", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.probe:
        probe(arguments.probe)
    elif arguments.check:
        check()
    else:
        benchmark(arguments.quick, arguments.data, arguments.families)


if __name__ == "__main__":
    main()
