"""Figure 1 and section 4.3 of Zhang, Williamson and Perez-Cruz (2022): do all algorithms end at one
predictive, with the multinomial and with the logistic-normal?

Section 4.1: rows of 100 counts over 10 columns, 1,000 for training and 100 for testing, from a
mixture of 20 multinomials of equal weight (the paper does not say how many) whose features are
Dirichlet(1). The multinomial's pseudo-counts are fixed at 1, the concentration is inferred, all
rows begin in one cluster. A run's predictive is the mean over the second half of its seconds of
each draw's mean log density per test row (full, multinomial coefficient included).
"""

import warnings
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import alexandergovern
from sklearn.exceptions import ConvergenceWarning

from papers.accelerated_images import (
    ALGORITHMS,
    MANY,
    drawn,
    predict,
    records_of_collapsed_chains,
    sizes_of,
)
from papers.accelerated_references import Indicators
from papers.cells import Cell, of_figure, shown
from papers.processor_time import processor_clock
from papers.verdicts import REFUTED, REPRODUCED, UNDECIDED, mean
from skanneal import AcceleratedDPMixture
from skanneal.schedules import AcceleratedSchedule

SEEDS = 4
# Figure: the likelihood, its algorithms, and processor seconds of a run.
FIGURES = {
    "synthetic": ("multinomial", ALGORITHMS, 8.0),
    "logistic": ("logistic_normal", tuple(a for a in ALGORITHMS if a != "collapsed"), 10.0),
}
WORDS = {"synthetic": "Figure 1", "logistic": "Section 4.3, logistic-normal"}
N_COMPONENTS, N_COLUMNS, TOTAL, N_TRAIN, N_TEST = 20, 10, 100, 1000, 100
DATA = f"{N_TRAIN:,} x {N_COLUMNS}, {N_COMPONENTS} multinomials"
MARGIN = 0.1  # nats per test row: within it of the algorithms' median a run has arrived
SMOOTH = 0.1  # of the records so far, in the running mean
N_RECORDS = 400  # kept of a run, more densely at first
N_SHOWN = 60  # of them, in the lines
LEVEL = 0.001  # of the test that all means are one
STYLES = dict(
    zip(
        ALGORITHMS,
        (
            ("black", "-"),
            ("tab:blue", "--"),
            ("tab:red", ":"),
            ("tab:purple", (0, (8, 2, 1, 2, 1, 2))),
            ("0.6", "-"),
            ("tab:orange", "-."),
        ),
        strict=True,
    )
)


def cells():
    """Side by side by seed."""
    for figure, (_, algorithms, seconds) in FIGURES.items():
        for seed, algorithm in product(range(SEEDS), algorithms):
            yield Cell(figure, DATA, algorithm, seed, seconds)


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
            self.kept.append((chain.seconds, drawn(chain)))


def measure_synthetic(algorithm, seconds, seed, n_shards=2, likelihood="multinomial"):
    """The way of a run, and means over its second half."""
    train, test = synthetic(0)
    fixed = {"multinomial": {"pseudo_counts": 1.0}}
    model = AcceleratedDPMixture(
        likelihood=likelihood,
        hyperparameters=fixed if likelihood in fixed else "infer",
        algorithm=algorithm,
        schedule=AcceleratedSchedule(n_exact=MANY, max_time=seconds),
        n_shards=n_shards,
        point_estimate="vi",  # of one draw that draw
        n_jobs=1,
        random_state=seed,
    )
    model._on_record = records = Records(seconds)
    with processor_clock(), warnings.catch_warnings(), records_of_collapsed_chains(records):
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(train)
    indicators, curve = Indicators.of(test), []
    for at, draw in records.kept:
        curve.append((at, predict(draw, test, indicators)[1], len(sizes_of(draw))))
    at, predictive, clusters = np.array(curve).T
    late = at >= at[-1] / 2
    kept = np.unique(np.geomspace(1, len(at), N_SHOWN).astype(int)) - 1
    return {
        "late": float(predictive[late].mean()),
        "clusters": float(clusters[late].mean()),
        "seconds_at": at[kept].round(4).tolist(),
        "full_at": smoothed(predictive)[kept].round(4).tolist(),
        "clusters_at": smoothed(clusters)[kept].round(2).tolist(),
    }


def smoothed(values):
    """Mean over the last records before each, `SMOOTH` of them."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    stop = np.arange(1, len(values) + 1)
    start = stop - np.maximum(1, (SMOOTH * stop).astype(int))
    return (sums[stop] - sums[start]) / (stop - start)


def runs_of(records, figure="synthetic"):
    """Algorithm to seed to record."""
    found = {}
    for cell, record in of_figure(records, figure).items():
        found.setdefault(cell.method, {})[cell.seed] = record
    return {name: found[name] for name in ALGORITHMS if name in found}


def middle_of(runs):
    """Median of the algorithms' means."""
    return float(np.median([np.mean([r["late"] for r in of.values()]) for of in runs.values()]))


def arrived(record, middle):
    """Seconds from which the running mean stays within the margin; inf if it never does."""
    outside = np.flatnonzero(np.abs(np.array(record["full_at"]) - middle) > MARGIN)
    first = 0 if not len(outside) else outside[-1] + 1
    return record["seconds_at"][first] if first < len(record["full_at"]) else np.inf


def synthetic_table(records, figure="synthetic"):
    """Predictives, features and the time until runs arrive."""
    runs, rows = runs_of(records, figure), []
    for name, seeds in runs.items():
        times = [arrived(record, middle_of(runs)) for record in seeds.values()]
        median = np.median(times)
        rows.append(
            (
                name,
                mean(record["late"] for record in seeds.values()).text(3),
                mean(record["clusters"] for record in seeds.values()).text(1),
                f"{np.isfinite(times).sum()} of {len(times)}",
                f"{median:.2f}" if np.isfinite(median) else "",
            )
        )
    headings = (
        *("algorithm", "predictive, nats per row", "features"),
        *(f"within {MARGIN:g} nats at the end", "seconds until then, median"),
    )
    return shown(headings, rows, records, figure)


def rise(record):
    """What a run's running mean gains in the second half of its seconds."""
    at, values = np.array(record["seconds_at"]), record["full_at"]
    return values[-1] - values[np.searchsorted(at, at[-1] / 2)]


def claims(records):
    """All algorithms have one law, and so one predictive, once they do not climb any more."""
    for figure, about in WORDS.items():
        runs = runs_of(records, figure)
        rises = {name: np.mean([rise(r) for r in seeds.values()]) for name, seeds in runs.items()}
        climbing = [name for name, gain in rises.items() if gain > MARGIN]
        ends = {
            name: [record["late"] for record in seeds.values()]
            for name, seeds in runs.items()
            if name not in climbing
        }
        if len(ends) < 2 or min(map(len, ends.values())) < 2:
            continue
        means = [np.mean(values) for values in ends.values()]
        p = float(alexandergovern(*ends.values()).pvalue)
        apart = max(means) - min(means)
        verdict = REFUTED if p < LEVEL else REPRODUCED if apart < MARGIN else UNDECIDED
        whose = "all algorithms" if not climbing else "the algorithms that have arrived"
        text = f"{about}: the predictives of {whose} are one (means within {MARGIN:g} nats)"
        measured = f"{apart:.3f} nats apart, p = {p:.2g} that they are one"
        yield text, "; ".join([measured, *(f"{name} still climbs" for name in climbing)]), verdict


def synthetic_picture(records):
    """As the paper's Figure 1; below it the same with the logistic-normal."""
    figures = [name for name in FIGURES if of_figure(records, name)]
    shape = {"figsize": (11, 4 * len(figures)), "squeeze": False, "layout": "constrained"}
    figure, axes = plt.subplots(len(figures), 2, **shape)
    for row, name in zip(axes, figures, strict=True):
        draw_runs(row, runs_of(records, name))
        row[0].set_title(FIGURES[name][0].replace("_", "-"), fontsize=10, loc="left")
    return figure


def draw_runs(axes, runs):
    """Predictives and numbers of features of a figure's runs."""
    middle = middle_of(runs)
    for name, seeds in runs.items():
        color, line = STYLES[name]
        for i, record in enumerate(seeds.values()):
            for ax, of in zip(axes, ("full_at", "clusters_at"), strict=True):
                label = None if i else name
                ax.plot(record["seconds_at"], record[of], linestyle=line, color=color, label=label)
    about = f"within {MARGIN:g} nats of the median end"
    axes[0].axhspan(middle - MARGIN, middle + MARGIN, color="0.9", zorder=0, label=about)
    axes[0].set_ylim(middle - 1.5, middle + 0.5)
    axes[0].set_ylabel("full predictive, nats per test row")
    axes[1].set_ylabel("features")
    axes[0].legend(*([own[-1]] for own in axes[0].get_legend_handles_labels()), fontsize=8)
    axes[1].legend(fontsize=8)
    for ax in axes:
        ax.set(xscale="log", xlabel="processor seconds")
        ax.grid(alpha=0.3)
