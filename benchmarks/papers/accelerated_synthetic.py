"""Figure 1 of the paper on the accelerated sampler: do all algorithms end at the same predictive?

    python benchmarks/papers/accelerated_synthetic.py                       # 6 minutes, two cores
    python benchmarks/papers/accelerated_synthetic.py --seconds 30 --seeds 8

Zhang, Williamson and Perez-Cruz (2022), section 4.1: rows of 100 counts over 10 columns, 1,000 for
training and 100 for testing, from a mixture of 20 multinomials of equal weight (the paper does not
say how many) whose features are Dirichlet(1); data seed 0. Pseudo-counts are fixed at 1, the
concentration is inferred, all rows begin in one cluster.

Printed for each algorithm: mean over the seconds' last half of each draw's mean log density per
test row (full predictive, multinomial coefficient included), its standard error from the spread
over seeds, how far that is from the median of the algorithms, and the time to get there: the first
from which the running mean stays within ``MARGIN`` of that median. Whether all means are one is
judged by the test of Alexander and Govern, which allows for errors of different sizes.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import alexandergovern
from sklearn.exceptions import ConvergenceWarning

from skanneal import AcceleratedDPMixture
from skanneal.schedules import AcceleratedSchedule

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from papers.accelerated_figures import COLORS, markdown
from papers.accelerated_images import records_of_collapsed_chains
from papers.accelerated_references import Indicators, full, predictive_log_weights

ALGORITHMS = ("accelerated", "hybrid", "auxiliary", "importance", "slice", "collapsed")
N_COMPONENTS, N_COLUMNS, TOTAL, N_TRAIN, N_TEST = 20, 10, 100, 1000, 100
MARGIN = 0.1  # nats per test row
SMOOTH = 0.1  # of the records so far, in the running mean
N_RECORDS = 400  # kept of a run, more densely at first
LEVEL = 0.001  # of the test that all means are one


def synthetic(seed):
    """Training and test rows."""
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.ones(N_COLUMNS), N_COMPONENTS)
    labels = rng.integers(N_COMPONENTS, size=N_TRAIN + N_TEST)
    X = np.array([rng.multinomial(TOTAL, theta[k]) for k in labels])
    return X[:N_TRAIN], X[N_TRAIN:]


class Records:
    """Draws of a running fit, at most so many, with seconds."""

    def __init__(self, seconds):
        self.kept, self.step = [], seconds / N_RECORDS

    def __call__(self, _, chain):
        last = self.kept[-1][0] if self.kept else 0.0
        if chain.seconds >= min(1.05 * last, last + self.step):
            self.kept.append((chain.seconds, chain.draw()))


def run(algorithm, train, indicators, seconds, seed):
    """Seconds, predictive and clusters of the kept draws."""
    model = AcceleratedDPMixture(
        likelihood="multinomial",
        hyperparameters={"multinomial": {"pseudo_counts": 1.0}},
        algorithm=algorithm,
        schedule=AcceleratedSchedule(n_exact=10**7, max_time=seconds),
        point_estimate="vi",  # of one draw that draw
        n_jobs=2,
        random_state=seed,
    )
    model._on_record = records = Records(seconds)
    with warnings.catch_warnings(), records_of_collapsed_chains(records):
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(train)
    curve = []
    for at, draw in records.kept:
        sizes = draw["multinomial/size"]
        weights = predictive_log_weights(sizes, float(draw["concentration"]))
        counts = np.concatenate([draw["multinomial/count"].T, np.zeros((1, N_COLUMNS))])
        curve.append((at, full(indicators, counts, weights, 1.0).mean(), len(sizes)))
    return np.array(curve).T


def stationary(curve, seconds):
    return float(curve[1][curve[0] >= seconds / 2].mean())


def smoothed(values):
    """Mean over the last records before each, `SMOOTH` of them."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    stop = np.arange(1, len(values) + 1)
    start = stop - np.maximum(1, (SMOOTH * stop).astype(int))
    return (sums[stop] - sums[start]) / (stop - start)


def reached(curve, middle):
    """Seconds from which the running mean stays within the margin; inf if it never does."""
    outside = np.flatnonzero(np.abs(smoothed(curve[1]) - middle) > MARGIN)
    first = 0 if not len(outside) else outside[-1] + 1
    return float(curve[0][first]) if first < len(curve[0]) else np.inf


def draw(curves, middle, path):
    """As Figure 1: the seeds, running means, and the margin around the median."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for algorithm, of_seeds in curves.items():
        for i, (at, predictive, clusters) in enumerate(of_seeds):
            options = {"color": COLORS[algorithm], "linewidth": 1.0, "alpha": 0.8}
            options["label"] = algorithm if i == 0 else "_seed"
            axes[0].plot(at, smoothed(predictive), **options)
            axes[1].plot(at, smoothed(clusters), **options)
    axes[0].axhspan(middle - MARGIN, middle + MARGIN, color="0.9", zorder=0)
    axes[0].set_ylabel("mean log density per test row")
    axes[1].set_ylabel("features")
    axes[1].legend(frameon=False, fontsize="small")
    for ax in axes:
        ax.set(xscale="log", xlabel="seconds")
        ax.grid(alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--algorithms", nargs="+", choices=ALGORITHMS, default=list(ALGORITHMS))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=15.0, help="per run")
    parser.add_argument("--figures", type=Path, default=Path("build/accelerated"))
    options = parser.parse_args()
    options.figures.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    train, test = synthetic(0)
    indicators, seconds = Indicators.of(test), options.seconds
    curves = {
        algorithm: [run(algorithm, train, indicators, seconds, s) for s in range(options.seeds)]
        for algorithm in options.algorithms
    }
    ends = {name: [stationary(c, seconds) for c in of] for name, of in curves.items()}
    middle = float(np.median([np.mean(of_seeds) for of_seeds in ends.values()]))
    rows = []
    for name, of_seeds in curves.items():
        times = [reached(curve, middle) for curve in of_seeds]
        late = [curve[2][curve[0] >= seconds / 2].mean() for curve in of_seeds]
        rows.append(
            {
                "algorithm": name,
                "predictive": f"{np.mean(ends[name]):.4f}",
                "error": f"{np.std(ends[name], ddof=1) / len(times) ** 0.5:.4f}",
                "off": f"{np.mean(ends[name]) - middle:+.4f}",
                "features": f"{np.mean(late):.1f}",
                "reached": f"{np.isfinite(times).sum()}/{len(times)}",
                "after_s": f"{np.median(times):.3f}",
                "draws": str(sum(len(curve[0]) for curve in of_seeds)),
            }
        )
    print(markdown(rows))
    (options.figures / "accelerated_synthetic.md").write_text(markdown(rows))
    p = alexandergovern(*ends.values()).pvalue
    told = "agree" if p > LEVEL else "differ"
    print(f"Means of {options.seeds} seeds {told} at level {LEVEL}: p = {p:.3g}")
    draw(curves, middle, options.figures / "accelerated_synthetic.png")
    print(f"{(time.perf_counter() - start) / 60:.1f} minutes. Table, figure: {options.figures}")


if __name__ == "__main__":
    main()
