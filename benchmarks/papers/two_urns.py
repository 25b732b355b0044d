"""The two-urn model of the subsample-annealing paper: Figure 2, Theorems 2 and 4.

    python benchmarks/papers/two_urns.py                   # 1e5 samples per strategy
    python benchmarks/papers/two_urns.py --full            # 1e6 samples, as in the paper
    python benchmarks/papers/two_urns.py --parts figure    # or theorem2, theorem4

8000 red and 12000 blue balls; each lies in the left urn with probability 0.45; an urn's share of
red balls is Beta(1/2, 1/2) and integrated out. Each strategy draws independent end states (red
left, blue left), 10 N assignments each, from compiled samplers (``two_urns.c``, built here with the
system's C compiler):

- *prior*: no data seen (no assignments);
- *sequential*: balls assigned one after another, given those before (N assignments only);
- *sequential + gibbs*: then 9 N steps of full-data Gibbs;
- *anneal energy*: full data from a draw from the prior, likelihood^beta, beta rising linearly;
- *anneal stepsize*: full data from a draw from the prior; step t of 10 N reassigns a handful of
  round(1/beta) balls of one colour out of one urn, beta = t/(10 N), as one ball of a model with
  that much less data (exact Gibbs in the last third, where a handful is one ball). A handful is one
  step, as in the paper, so some 10 N log N balls are reassigned;
- *anneal subsample*: after each added ball 9 pairs of removing one and assigning another.

Printed and written as csv: total variation to the exact posterior on 100 x 100 and 20 x 20 bins,
beside its noise floor, the total variation expected of as many exact samples. A strategy that is
not done in its share of ``--minutes`` is cut, and the cut is printed.
"""

import argparse
import csv
import ctypes
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm
from scipy.special import gammaln, xlog1py, xlogy

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from papers import two_urns_theorems as theorems
from papers.two_urns_theorems import Urns, total_variation

SOURCE = Path(__file__).with_suffix(".c")
URNS = Urns(8000, 12000)
SWEEPS = 10
# As in two_urns.c: the sampler's number, and whether the start is a draw from the prior.
SAMPLERS = {
    "sequential": (0, 1, False),
    "sequential + gibbs": (0, SWEEPS, False),
    "anneal subsample": (1, SWEEPS, False),
    "anneal energy": (2, SWEEPS, True),
    "anneal stepsize": (3, SWEEPS, True),
}
# The paper says that its panels go by decreasing total variation; its text lists neither panels nor
# values. This is the order in which the caption names the strategies, with the prior, where nothing
# is inferred, first and the method proposed last.
PAPER_ORDER = (
    "prior",
    "sequential",
    "sequential + gibbs",
    "anneal energy",
    "anneal stepsize",
    "anneal subsample",
)
BINS = 100
BATCH = 512  # samples per task: about ten seconds of the slowest sampler


def build(folder):
    """Compile two_urns.c into ``folder`` and load it."""
    target = Path(folder) / "two_urns.so"
    flags = "-O3 -fno-trapping-math -fno-math-errno -ffp-contract=off -shared -fPIC".split()
    compiler = os.environ.get("CC", "cc")
    for machine in (["-march=native"], []):
        command = [compiler, *flags, *machine, str(SOURCE), "-o", str(target), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return declare(ctypes.CDLL(str(target)))
    raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")


def declare(library):
    """Give the functions of the library their argument types."""
    pointer, number, real, long = ctypes.c_void_p, ctypes.c_int32, ctypes.c_double, ctypes.c_int64
    urns = [number, number, real, real]
    library.sample_strategy.argtypes = [
        *(ctypes.c_int, long, long, ctypes.c_uint64),
        *(*urns, long, pointer, pointer),
    ]
    library.step_probabilities.argtypes = [*urns, number, *[pointer] * 4]
    library.gibbs_law.argtypes = [pointer, *urns, number, long, pointer]
    library.anneal_law.argtypes = [*urns, number, real, pointer]
    library.random_selection_law.argtypes = [*urns, number, real, pointer]
    library.exp_array.argtypes = [long, pointer, pointer]
    return library


# -- the strategies --------------------------------------------------------------------------------


def prior_draws(urns, n_samples, entropy):
    rng = np.random.default_rng(entropy)
    draws = rng.binomial([urns.n_red, urns.n_blue], urns.p, size=(n_samples, 2))
    return np.ascontiguousarray(draws, dtype=np.int32)


def draw(library, name, n_samples, seed, urns=URNS, deadline=np.inf, n_threads=1):
    """End states (red left, blue left), (n_samples, 2), or fewer where the deadline cuts them.

    Sample i depends on the seed and i alone, so that a cut run is the start of the full one.
    """
    if name == "prior":
        return prior_draws(urns, n_samples, [seed, 99])
    number, sweeps, from_prior = SAMPLERS[name]
    start = prior_draws(urns, n_samples, [seed, number]) if from_prior else None
    out = np.empty((n_samples, 2), dtype=np.int32)

    def batch(first):
        if first and time.monotonic() > deadline:
            return 0
        n = min(BATCH, n_samples - first)
        init = start[first:].ctypes.data if from_prior else None
        end_states = out[first:].ctypes.data
        library.sample_strategy(number, n, first, seed, *urns[:4], sweeps, init, end_states)
        return n

    with ThreadPoolExecutor(n_threads) as pool:
        done = list(pool.map(batch, range(0, n_samples, BATCH)))
    first_skipped = done.index(0) if 0 in done else len(done)
    return out[: sum(done[:first_skipped])]


# -- binned comparison -----------------------------------------------------------------------------


def binned_posterior(urns=URNS, n_bins=BINS):
    """Exact posterior mass, (n_bins, n_bins): count r lies in bin floor(n_bins r / (R + 1))."""
    red, blue = np.arange(urns.n_red + 1), np.arange(urns.n_blue + 1)
    edges = np.searchsorted(blue * n_bins // (urns.n_blue + 1), np.arange(n_bins))
    some_red = red[:: max(1, len(red) // 99)]
    highest = max(theorems.log_posterior(urns, r, blue).max() for r in some_red)
    mass = np.zeros((n_bins, n_bins))
    for r in red:
        weights = np.exp(theorems.log_posterior(urns, r, blue) - highest)
        mass[r * n_bins // len(red)] += np.add.reduceat(weights, edges)
    return mass / mass.sum()


def histogram(states, urns=URNS, n_bins=BINS):
    red = states[:, 0].astype(np.int64) * n_bins // (urns.n_red + 1)
    blue = states[:, 1].astype(np.int64) * n_bins // (urns.n_blue + 1)
    counts = np.bincount(red * n_bins + blue, minlength=n_bins**2)
    return counts.reshape(n_bins, n_bins) / len(states)


def coarsen(mass, n_bins):
    factor = len(mass) // n_bins
    return mass.reshape(n_bins, factor, n_bins, factor).sum(axis=(1, 3))


def noise_floor(target, n_samples):
    """Expected total variation of n exact samples: half the sum of the bins' mean deviations.

    De Moivre: E|X - n q| = 2 q^(m+1) (1-q)^(n-m) n!/(m! (n-m-1)!) for X ~ Binomial(n, q) and
    m = floor(n q).
    """
    q = target[(target > 0) & (target < 1)]
    m = np.floor(n_samples * q)
    log_choose = gammaln(n_samples + 1) - gammaln(m + 1) - gammaln(n_samples - m)
    log_mean = np.log(2) + log_choose + xlogy(m + 1, q) + xlog1py(n_samples - m, -q)
    return 0.5 * np.exp(log_mean).sum() / n_samples


def measure(name, states, target, rng):
    """One row of the table: total variation on two binnings beside the floors."""
    mass = histogram(states)
    resampled = rng.multinomial(len(states), mass.ravel(), size=20) / len(states)
    row = {"strategy": name, "samples": len(states)}
    for n_bins in (BINS, 20):
        exact = coarsen(target, n_bins)
        row[f"tv_{n_bins}"] = total_variation(coarsen(mass, n_bins), exact)
        row[f"floor_{n_bins}"] = noise_floor(exact, len(states))
        again = [coarsen(r.reshape(BINS, BINS), n_bins) for r in resampled]
        row[f"sd_{n_bins}"] = float(np.std([total_variation(r, exact) for r in again]))
    return row, mass


def order_report(rows):
    """Sentences on the paper's order of total variation and on what was measured."""
    tv = {row["strategy"]: (row["tv_100"], row["sd_100"]) for row in rows}
    measured = sorted(tv, key=lambda name: -tv[name][0])
    lines = [
        "Paper's order (as its caption names them):  " + " > ".join(PAPER_ORDER),
        "Measured order (100 x 100 bins):            " + " > ".join(measured),
    ]
    wrong = []
    for i, worse in enumerate(PAPER_ORDER):
        for better in PAPER_ORDER[i + 1 :]:
            if tv[worse][0] < tv[better][0] - 3 * np.hypot(tv[worse][1], tv[better][1]):
                wrong.append(f"{better} is farther from the posterior than {worse}")
    lines.append("Reproduced." if not wrong else "Not reproduced: " + "; ".join(wrong) + ".")
    return lines


def plot(masses, rows, path):
    """The panels of Figure 2, in the paper's order, the exact posterior last."""
    notes = {row["strategy"]: f"{row['tv_100']:.3f}" for row in rows}
    figure, axes = plt.subplots(2, 4, figsize=(11, 5.8), layout="constrained")
    for ax, (name, mass) in zip(axes.flat, masses.items()):
        image = ax.imshow(
            np.ma.masked_less(mass * mass.size, 0.1).T,  # a tenth of an even spread
            origin="lower",
            extent=(0, 1, 0, 1),
            cmap="magma_r",
            norm=LogNorm(0.1, 500),
        )
        ax.set_title(name, fontsize=11, loc="left")
        note = f"total variation {notes[name]}" if name in notes else "exact"
        ax.text(0.95, 0.93, note, transform=ax.transAxes, ha="right", va="top", fontsize=10)
        ax.set(xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
        ax.set(xlabel="share of red on the left", ylabel="share of blue on the left")
        ax.label_outer()
    axes.flat[-1].set_axis_off()
    scale = axes.flat[-1].inset_axes([0.1, 0.0, 0.08, 1.0])
    figure.colorbar(image, cax=scale, label="density")
    figure.savefig(path, dpi=100)
    plt.close(figure)


# -- the parts -------------------------------------------------------------------------------------


def write(rows, path):
    """Print the rows as an aligned table and write them as csv."""
    show = [[f"{v:.4g}" if isinstance(v, float) else str(v) for v in row.values()] for row in rows]
    names = list(rows[0])
    widths = [max(len(line[i]) for line in [names, *show]) for i in range(len(names))]
    for line in [names, *show]:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)


def run_figure(library, options):
    """Figure 2: samples of each strategy, table, csv, png."""
    print(f"\nFigure 2: {URNS.n_red} red, {URNS.n_blue} blue, p = {URNS.p}, seed {options.seed}")
    target = binned_posterior()
    rng = np.random.default_rng([options.seed, 100])
    rows, masses = [], {}
    end = time.monotonic() + 60.0 * options.minutes
    for i, name in enumerate(PAPER_ORDER):
        now = time.monotonic()
        deadline = now + (end - now) / (len(PAPER_ORDER) - i)
        states = draw(
            *(library, name, options.samples, options.seed),
            deadline=deadline,
            n_threads=options.threads,
        )
        if len(states) < options.samples:
            print(f"{name}: cut to {len(states)} of {options.samples} samples (--minutes)")
        row, masses[name] = measure(name, states, target, rng)
        rows.append(row)
    masses["posterior"] = target
    write(rows, options.output / "two_urns.csv")
    print("\n".join(order_report(rows)))
    plot(masses, rows, options.output / "two_urns.png")


def run_theorem_2(library, options):
    """Exact times to a total variation against N, cold and annealed."""
    epsilons = (0.1, 0.05, 0.02)
    print("\nTheorem 2: assignments / N until the total variation is epsilon, p = 0.45, 40 % red")

    def times(n):
        urns = Urns(2 * n // 5, n - 2 * n // 5)
        cold = theorems.cold_times(library, urns, epsilons)
        return cold, theorems.anneal_times(library, urns, epsilons)

    with ThreadPoolExecutor(options.threads) as pool:
        found = list(pool.map(times, theorems.SIZES[::-1]))[::-1]
    rows = [
        {"epsilon": epsilon, "strategy": strategy}
        | {f"N={n}": found[i][j][k] / n for i, n in enumerate(theorems.SIZES)}
        | dict(zip(("exponent", "last_doubling"), exponents(found, j, k), strict=True))
        for k, epsilon in enumerate(epsilons)
        for j, strategy in enumerate(("cold", "anneal"))
    ]
    write(rows, options.output / "two_urns_theorem2.csv")
    print("\nAnneal with random selection beside selection stratified by colour: total variation")
    rows = []
    for n in (50, 100, 200):
        urns = Urns(2 * n // 5, n - 2 * n // 5)
        target = theorems.posterior(urns)
        for rate in (5.0, 10.0):
            row = {"N": n, "sweeps": rate}
            for selection, law in theorems.SELECTIONS.items():
                row[selection] = float(total_variation(law(library, urns, rate), target))
            rows.append(row)
    write(rows, options.output / "two_urns_selection.csv")


def exponents(found, strategy, epsilon):
    return theorems.power_exponents(theorems.SIZES, [pair[strategy][epsilon] for pair in found])


def print_exponents(times):
    slope, last = theorems.power_exponents(theorems.SIZES, times)
    print(f"anneal time: exponent of N {slope:.3f}, over the last doubling {last:.3f}")


def run_theorem_4(library, options):
    """Cold exponential, anneal linear: the paper's equation and two-feature urns."""
    epsilon, delta, gamma = 0.1, 0.1, 0.2
    print(f"\nTheorem 4, the equation: delta = {delta}, gamma = {gamma}, epsilon = {epsilon}")
    pairs = [theorems.two_mode_times(n, delta, gamma, epsilon) for n in theorems.SIZES]
    cold, anneal = zip(*pairs, strict=True)
    rows = [
        {"N": n, "cold": c, "anneal": a, "anneal_per_ball": a / n}
        for n, c, a in zip(theorems.SIZES, cold, anneal, strict=True)
    ]
    write(rows, options.output / "two_urns_theorem4_equation.csv")
    print(f"log cold time against N: slope {theorems.exponential_rate(theorems.SIZES, cold):.4f}")
    print_exponents(anneal)

    print(f"\nTheorem 4, two-feature urns: p = 0.25, 30 % red, epsilon = {epsilon}")
    rows, small = [], (20, 40, 60, 80, 100)
    for n in sorted({*small, *theorems.SIZES}):
        urns = theorems.barrier_urns(n)
        gap, cold = theorems.barrier_cold(library, urns, epsilon) if n in small else (None, None)
        (anneal,) = theorems.anneal_times(library, urns, [epsilon])
        row = {"N": n, "gap": gap, "cold": cold, "anneal": anneal, "anneal_per_ball": anneal / n}
        rows.append(row)
    write(rows, options.output / "two_urns_theorem4_urns.csv")
    cold = [row["cold"] for row in rows if row["cold"]]
    anneal = [row["anneal"] for row in rows if row["N"] in theorems.SIZES]
    print(f"log cold time against N: slope {theorems.exponential_rate(small, cold):.4f}")
    print_exponents(anneal)


PARTS = {"figure": run_figure, "theorem2": run_theorem_2, "theorem4": run_theorem_4}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=100_000, help="per strategy")
    parser.add_argument("--full", action="store_true", help="1e6 samples per strategy")
    parser.add_argument("--minutes", type=float, help="for the samples (default 30; --full 400)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--output", type=Path, default=Path("build/two_urns"))
    options = parser.parse_args()
    if options.full:
        options.samples = 1_000_000
    if options.minutes is None:
        options.minutes = 400.0 if options.full else 30.0
    options.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        library = build(folder)
        for part in options.parts:
            PARTS[part](library, options)
    print(f"\nTables and figure: {options.output}")


if __name__ == "__main__":
    main()
