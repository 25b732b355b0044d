"""The assignment pass of the uncollapsed samplers beside the sparse product that it contains.

    python benchmarks/kernels/assignment_pass.py                 # simulated images, 3 GB, a minute
    python benchmarks/kernels/assignment_pass.py --data FOLDER   # MNIST from FOLDER/mnist.npz
    python benchmarks/kernels/assignment_pass.py --quick         # 20,000 rows, fewer repetitions

In one pass every row of counts is scored under all features, a sparse product with the logarithms
of their probabilities, and a label is drawn from its scores and the features' weights. Beside it:

    bare C    the product alone (``bare_product.c``), compiled here for several instruction sets
              with -O3 -ffast-math, for groups of 16, 32 and 64 features and several blocks of rows;
              the fastest build and shape is taken
    SciPy     csr_array @ dense, float32
    NumPy     the dense product in one thread, float32

Images are counts // 32, features posterior draws of random clusters. All sides take turns; a figure
is the best of the repetitions, in milliseconds of the thread's processor time; the ratio is that of
the rates, bare product : whole pass, so 1 would be a pass that costs the product alone.
"""

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from kernels.row_step import MARCHES, compile_bare

SOURCE = Path(__file__).with_name("bare_product.c")
WIDTHS, BLOCKS = (16, 32, 64), (64, 256, 1024)
N_ROWS, N_COLUMNS, DENSITY = 60_000, 784, 0.19


def read_images(folder):
    """MNIST's training images // 32: int array of shape (60000, 784)."""
    with np.load(Path(folder) / "mnist.npz") as file:
        return file["X_train"].reshape(-1, N_COLUMNS) // 32


def simulate_images(seed=0):
    """Rows whose nonzero counts crowd where an image's would: in the middle columns."""
    rng = np.random.default_rng(seed)
    at = np.linspace(-1, 1, 28)
    bump = np.exp(-2.0 * (at[:, None] ** 2 + at**2)).ravel()
    present = np.empty((N_ROWS, N_COLUMNS), dtype=np.uint8)
    for start in range(0, N_ROWS, 4096):
        part = present[start : start + 4096]
        part[:] = rng.random(part.shape, dtype=np.float32) < bump * DENSITY / bump.mean()
        part *= rng.integers(1, 8, part.shape, dtype=np.uint8)
    present[:, N_COLUMNS // 2] |= 1
    return present


def builds(folder):
    """The bare loop for the instruction sets that run here."""
    for marches in (MARCHES, ("baseline",)):
        paths = [compile_bare(march, folder, SOURCE) for march in marches]
        usable = [ctypes.CDLL(str(path)) for path in paths if path and runs_here(path)]
        if usable:
            return usable
    raise RuntimeError("the bare loop could not be built: is there a C compiler?")


def runs_here(path):
    """Whether this processor has the library's instructions (tried in a process of its own)."""
    command = [sys.executable, __file__, "--probe", str(path)]
    return subprocess.run(command, capture_output=True).returncode == 0


def probe(path):
    """Run a build once, so that a processor without its instructions ends this process."""
    counts = csr_array(np.arange(300).reshape(20, 15) % 3)
    for width in WIDTHS:
        product(ctypes.CDLL(path), width, 8, counts, np.ones((15, 5), np.float32))()


def product(library, width, block, counts, weights):
    """A function that runs the bare product over all rows, or the first of them, and returns the
    last block's numbers."""
    (n_rows, n_columns), n_features = counts.shape, weights.shape[1]
    n_groups = -(-n_features // width)
    padded = aligned((n_columns, n_groups * width))
    padded[:, :n_features] = weights
    grouped = aligned((n_groups, n_columns, width))
    grouped[:] = padded.reshape(n_columns, n_groups, width).transpose(1, 0, 2)
    out = aligned((block, n_groups * width))
    arrays = [
        counts.indptr.astype(np.int64),
        counts.indices.astype(np.uint32),
        counts.data.astype(np.float32),
        grouped,
    ]
    function = getattr(library, f"bare_product_{width}")
    pointer, long = ctypes.c_void_p, ctypes.c_int64
    function.argtypes = [long] * 3 + [pointer] * 4 + [long, pointer]

    def run(n=n_rows):
        addresses = [array.ctypes.data for array in arrays]
        function(n, n_columns, n_groups, *addresses, block, out.ctypes.data)
        return out

    return run


def fastest(folder, counts, weights):
    """(the bare product in its fastest build and shape, its width, its block of rows)."""
    tried = [
        (product(library, width, block, counts, weights), width, block)
        for library in builds(folder)
        for width in WIDTHS
        for block in BLOCKS
    ]
    times = [min(timed(run) for _ in range(3)) for run, *_ in tried]
    return tried[int(np.argmin(times))]


def aligned(shape):
    """float32 zeros that start at a multiple of 64 bytes."""
    n_bytes = 4 * int(np.prod(shape))
    buffer = np.zeros(n_bytes + 64, np.uint8)
    start = -buffer.ctypes.data % 64
    return buffer[start : start + n_bytes].view(np.float32).reshape(shape)


def timed(function):
    start = time.thread_time()
    function()
    return time.thread_time() - start


def compare(images, n_features, folder, repetitions):
    """Seconds of each side, and the bare loop's width and block of rows."""
    from skanneal.likelihoods import LIKELIHOODS
    from skanneal.sharded._assign import draw_rows, tiled
    from skanneal.sharded._segments import scored_blocks

    likelihood = LIKELIHOODS["multinomial"].of(images, [[0.1]])
    rows = likelihood.encode(images)
    rng = np.random.default_rng(1)
    labels = rng.integers(n_features, size=len(rows), dtype=np.int32)
    theta = likelihood.draw(likelihood.statistics(rows, labels, n_features), None, rng)
    weights = np.ascontiguousarray(theta.T.astype(np.float32))
    counts = csr_array(images.astype(np.float32))
    bare, *shape = fastest(folder, counts, weights)
    log_weight = tiled(np.full(n_features, -np.log(n_features)))
    drawn, log_mass = np.empty(len(rows), np.int32), np.empty(len(rows))
    few = slice(0, 4096)
    dense = counts[few].toarray()

    def scores():
        for _ in scored_blocks(likelihood, rows, theta):
            pass

    def whole_pass():
        for start, part in scored_blocks(likelihood, rows, theta):
            at = slice(start, start + len(part))
            draw_rows(part, log_weight, drawn[at], log_mass[at], rng.bit_generator)

    expected = dense[: BLOCKS[0]].astype(float) @ theta.T  # both sides are right
    shown = bare(BLOCKS[0])[: BLOCKS[0], :n_features]
    assert np.abs(shown - expected).max() < 0.02
    for _, part in scored_blocks(likelihood, rows[: BLOCKS[0]], theta):
        shift = part[:, :n_features] - expected[: len(part)]  # the rows' coefficients
        assert np.abs(shift - shift[:, :1]).max() < 0.02
        break

    sides = {"bare": bare, "scores": scores, "pass": whole_pass}
    sides["scipy"] = lambda: counts[few] @ weights
    sides["numpy"] = lambda: dense @ weights
    best = dict.fromkeys(sides, np.inf)
    for _ in range(repetitions):
        for name, function in sides.items():
            best[name] = min(best[name], timed(function))
    for name in ("scipy", "numpy"):  # as long as all rows take
        best[name] *= len(rows) / len(dense)
    return best, shape


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", help="folder with mnist.npz")
    parser.add_argument("--features", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--probe", metavar="LIBRARY", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.probe:
        probe(options.probe)
        return
    images = read_images(options.data) if options.data else simulate_images()
    images = images[:20_000] if options.quick else images
    per_row = np.count_nonzero(images) / len(images)
    print(f"{len(images)} rows of {images.shape[1]} columns, {per_row:.0f} above 0 in a row")
    print(f"{'features':>8} {'bare C':>8} {'scores':>8} {'pass':>8} {'SciPy':>8} {'NumPy':>8}"
          f" {'scores':>7} {'pass':>6}")  # fmt: skip
    print(f"{'':>8} {'ms':>8} {'ms':>8} {'ms':>8} {'ms':>8} {'ms':>8} {'ratio':>7} {'ratio':>6}")
    with threadpool_limits(1), tempfile.TemporaryDirectory() as folder:
        for n_features in options.features:
            repetitions = 3 if options.quick else 7
            best, (width, block) = compare(images, n_features, Path(folder), repetitions)
            times = "".join(f" {1e3 * t:8.1f}" for t in best.values())
            ratios = best["bare"] / best["scores"], best["bare"] / best["pass"]
            rate = per_row * len(images) * n_features / best["scores"] / 1e9
            print(f"{n_features:8d}{times} {ratios[0]:7.2f} {ratios[1]:6.2f}"
                  f"   {rate:.1f}e9 products/s; bare: {width} features, {block} rows"
                  f" at a time")  # fmt: skip


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
