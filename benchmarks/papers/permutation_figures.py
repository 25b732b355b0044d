"""Figures 2 and 3 of the paper on the permutation-augmented sampler, by PermutationDPMixture.

    python benchmarks/papers/permutation_figures.py DATA_FOLDER         # 40 minutes, one core
    python benchmarks/papers/permutation_figures.py DATA_FOLDER --full  # four times the seconds
    python benchmarks/papers/permutation_figures.py DATA_FOLDER --parts beam mixing a b c --seeds 2

Liang, Jordan and Taskar (2007), "A Permutation-Augmented Sampler for DP Mixture Models".
DATA_FOLDER holds ``mnist.npz`` and ``ap_news.npz``. Parts:

- *beam* (Figure 2): 500 points, beam tolerance 1e-32: segment sizes kept per point, the beam's g(n)
  over that of all segments, and the profiles of the sums, in several dimensions and sorts of order
  (the paper does not say which);
- *a-c*: 10,000 points in 40 dimensions from 40 clusters, started with 1, 40 and 300 clusters;
- *d-f*: 20, 80 and 160 clusters; *g*, *h*: 10 and 80 dimensions; from here on to *j* every run
  starts by sequential prediction;
- *i*: 10,000 MNIST digits, every pixel standardised (which gives the paper's range of log joint),
  50 principal components, covariance 16 I; *j*: AP news, word counts of 2246 documents;
- *mixing* (k, l): autocorrelation of the number of clusters and of the largest cluster's size over
  sweeps, 1000 digits in 2 dimensions, orders drawn uniformly.

Synthetic means are N(0, 2 I) and N(0, 100 I) in the model, covariances I. The concentration is
inferred. Every run is one chain on one core, one after another, with the same seconds in a panel;
for its first half permutation moves climb (`PriorGibbs(max_time=...)`). "annealed" is the default
schedule with all three moves. Log joints are in the units of the data; in panel j without the
multinomial coefficients, which are the same for all partitions.

What does not fit ``--minutes`` is cut, and the cut printed: seconds per run, below half of them
rows too, below an eighth seeds too. Tables go to ``--figures`` as csv, beside the figures.
"""

import argparse
import csv
import os
import time
import warnings
from pathlib import Path

# one core per run, set before NumPy is loaded
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import gammaln
from sklearn.exceptions import ConvergenceWarning

from skanneal import PermutationDPMixture
from skanneal.families import FAMILIES, Table
from skanneal.families._forms import flatten
from skanneal.moves import Permutation
from skanneal.moves._order_programs import OrderProgram
from skanneal.partition_priors import PitmanYor
from skanneal.schedules import SCHEDULES, PriorGibbs
from skanneal.states import Mixture, Subsample

HYBRIDS = {
    "Gibbs": ("gibbs",),
    "Gibbs+SplitMerge": ("gibbs", "split_merge"),
    "Gibbs+Perm": ("gibbs", "permutation"),
    "Gibbs+SplitMerge+Perm": ("gibbs", "permutation", "split_merge"),
}
PERMUTING = ("Gibbs+Perm", "Gibbs+SplitMerge+Perm")
ANNEALED = "annealed"
COLORS = dict(zip([*HYBRIDS, ANNEALED], ("C7", "C0", "C1", "C3", "C2"), strict=True))
MEAN_VARIANCE, PRIOR_VARIANCE = 2.0, 100.0  # of the synthetic clusters' means, and in the model
MNIST_VARIANCE = 16.0
TOLERANCE = 1e-32
N_LAGS = 90
NEAR = 0.1  # per cent of the best log joint: what counts as having got there
LEAST_TIME = 1 / 8  # of the plan's seconds per run; below that, seeds are cut
FULL = 4  # --full: so many times the seconds

# panel: title, data, init, planned seconds per run
PANELS = {
    "a": ("start: 1 cluster", ("synthetic", 40, 40), 1, 8.0),
    "b": ("start: 40 clusters", ("synthetic", 40, 40), 40, 8.0),
    "c": ("start: 300 clusters", ("synthetic", 40, 40), 300, 8.0),
    "d": ("20 clusters, 40 dimensions", ("synthetic", 20, 40), "sequential", 6.0),
    "e": ("80 clusters, 40 dimensions", ("synthetic", 80, 40), "sequential", 10.0),
    "f": ("160 clusters, 40 dimensions", ("synthetic", 160, 40), "sequential", 14.0),
    "g": ("40 clusters, 10 dimensions", ("synthetic", 40, 10), "sequential", 5.0),
    "h": ("40 clusters, 80 dimensions", ("synthetic", 40, 80), "sequential", 8.0),
    "i": ("MNIST", ("mnist", 50), "sequential", 10.0),
    "j": ("AP", ("ap",), "sequential", 12.0),
}
PARTS = ("beam", *PANELS, "mixing")


# -- data ------------------------------------------------------------------------------------------


def synthetic(rng, n_rows, n_clusters, n_dims):
    """Points, and the clusters they come from."""
    means = rng.normal(0, MEAN_VARIANCE**0.5, (n_clusters, n_dims))
    labels = rng.integers(n_clusters, size=n_rows)
    return means[labels] + rng.normal(size=(n_rows, n_dims)), labels


def mnist(folder, rng, n_rows, n_dims):
    """Leading principal components of standardised pixels of random digits."""
    with np.load(Path(folder) / "mnist.npz") as file:
        X = file["X_train"]
    X = X[np.sort(rng.permutation(len(X))[:n_rows])].astype(float)
    X = X[:, X.std(axis=0) > 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    _, vectors = np.linalg.eigh(X.T @ X)
    return X @ vectors[:, ::-1][:, :n_dims]


def ap_news(folder, rng, n_rows):
    """Word counts, and the sum of the documents' log multinomial coefficients."""
    with np.load(Path(folder) / "ap_news.npz") as file:
        arrays = file["data"].astype(np.int64), file["indices"], file["indptr"]
        X = csr_matrix(arrays, shape=tuple(file["shape"]))
    X = X[np.sort(rng.permutation(X.shape[0])[:n_rows])]
    X = X[:, np.flatnonzero(X.sum(axis=0))]
    log_coefficients = gammaln(X.sum(axis=1) + 1.0).sum() - gammaln(X.data + 1.0).sum()
    return X, float(log_coefficients)


def normal_options(variance):
    return {
        "families": "known_normal",
        "hyperparameters": {
            "known_normal": {
                "covariance": variance,
                "prior_mean": 0.0,
                "prior_covariance": PRIOR_VARIANCE,
            }
        },
    }


def problem(folder, source, share_rows):
    """Data of a panel, the estimator's options, what to subtract from the log joint."""
    kind, *sizes = source
    rng = np.random.default_rng([list("sma").index(kind[0]), *sizes])
    if kind == "synthetic":
        X, _ = synthetic(rng, int(share_rows * 10_000), *sizes)
        return X, normal_options(1.0), 0.0
    if kind == "mnist":
        return mnist(folder, rng, int(share_rows * 10_000), *sizes), normal_options(16.0), 0.0
    X, log_coefficients = ap_news(folder, rng, int(share_rows * 2246))
    return X, {"families": "multinomial"}, log_coefficients


# -- one run ---------------------------------------------------------------------------------------


def fit(X, seed, **options):
    model = PermutationDPMixture(n_chains=1, n_jobs=1, random_state=seed, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # what is shown is how it gets there
        return model.fit(X)


def run(X, options, subtract, hybrid, init, seconds, seed):
    """A curve, records of full data only, and what the table says of it."""
    if hybrid == ANNEALED:
        schedule, init, moves = SCHEDULES["anneal"], None, HYBRIDS["Gibbs+SplitMerge+Perm"]
    else:
        schedule, moves = PriorGibbs(), HYBRIDS[hybrid]
    schedule = type(schedule)(**schedule.get_params() | {"max_time": seconds})
    model = fit(X, seed, schedule=schedule, init=init, moves=moves, **options)
    trace = {name: values[0] for name, values in model.trace_.items()}
    full = trace["n_assigned"] == X.shape[0]
    log_joint, at = trace["log_joint"][full] - subtract, trace["seconds"][full]
    sweeps = trace["sweeps"][full]
    climbing = trace["burn_in"][full] == 1 if "burn_in" in trace else sweeps <= sweeps[-1] / 2
    return {
        "hybrid": hybrid,
        "seed": seed,
        "seconds": at,
        "log_joint": log_joint,
        "burned_in": log_joint[max(0, int(climbing.sum()) - 1)],
        "clusters": trace["n_components"][full][-1],
        "sweeps": sweeps[-1],
    }


def at_times(curve, times):
    """Log joint at so many seconds: that of the last record; nan before the first."""
    place = np.searchsorted(curve["seconds"], times, side="right") - 1
    return np.where(place >= 0, curve["log_joint"][np.maximum(place, 0)], np.nan)


def settled(curve):
    """Mean log joint over the last tenth of the seconds: what the run ends with, less noise."""
    return float(curve["log_joint"][curve["seconds"] >= 0.9 * curve["seconds"][-1]].mean())


def spread(values):
    """Standard deviation, or nan of a single value."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else np.nan


# -- tables ----------------------------------------------------------------------------------------


def text_of(value):
    if isinstance(value, float):
        return f"{value:.1f}" if abs(value) >= 1e3 else f"{value:.4g}"
    return str(value)


def write(rows, path):
    """Print the rows as an aligned table and write them as csv."""
    names = list(rows[0])
    show = [[text_of(row[name]) for name in names] for row in rows]
    widths = [max(len(line[i]) for line in [names, *show]) for i in range(len(names))]
    for line in [names, *show]:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)


class Panel:
    """The runs of one panel and what is told of them."""

    def __init__(self, name, seconds, n_rows):
        self.name, self.seconds, self.n_rows = name, seconds, n_rows
        self.curves = []

    def of(self, hybrid):
        return [curve for curve in self.curves if curve["hybrid"] == hybrid]

    @property
    def hybrids(self):
        return list(dict.fromkeys(curve["hybrid"] for curve in self.curves))

    @property
    def best(self):
        """The highest log joint that a run ends with."""
        return max(settled(curve) for curve in self.curves)

    def end(self, hybrid):
        """Log joint at the end, mean over seeds."""
        return float(np.mean([settled(curve) for curve in self.of(hybrid)]))

    def burned_in(self, hybrid):
        """Log joint at the end of burn-in, mean over seeds."""
        return float(np.mean([curve["burned_in"] for curve in self.of(hybrid)]))

    def ends_sd(self, hybrid):
        return spread([settled(curve) for curve in self.of(hybrid)])

    def behind(self, hybrid, best=None):
        """Per cent of the best log joint that the end lacks."""
        best = self.best if best is None else best
        return 100 * (best - self.end(hybrid)) / abs(best)

    def behind_on_average(self, hybrid, best=None):
        """The same of the mean over the whole time, from a twentieth of it on; nan where the rows
        are not all there from the beginning."""
        if hybrid == ANNEALED:
            return np.nan
        best = self.best if best is None else best
        times = np.linspace(0.05, 1, 96) * self.seconds
        values = np.array([at_times(curve, times) for curve in self.of(hybrid)])
        mean = float(values[~np.isnan(values)].mean()) if not np.isnan(values).all() else np.nan
        return 100 * (best - mean) / abs(best)

    def reached(self, hybrid):
        """Seconds until a run is near the best, one per seed; inf where it never is."""
        limit, times = self.best - NEAR / 100 * abs(self.best), []
        for curve in self.of(hybrid):
            near = curve["seconds"][curve["log_joint"] >= limit]
            times.append(near[0] if len(near) else np.inf)
        return np.array(times)

    def near_after(self, hybrid):
        """Mean of these; runs that never got there count with all their seconds."""
        return float(np.minimum(self.reached(hybrid), self.seconds).mean())

    def told(self, hybrid):
        """The same in words."""
        times = self.reached(hybrid)
        n_near = int(np.isfinite(times).sum())
        more = "" if n_near == len(times) else f" at least, {n_near} of {len(times)} got there"
        return f"{hybrid} {self.near_after(hybrid):.2f} s{more}"

    def rows(self):
        return [
            {
                "panel": self.name,
                "hybrid": hybrid,
                "log_joint": self.end(hybrid),
                "sd": self.ends_sd(hybrid),
                "burned_in": self.burned_in(hybrid),
                "behind_%": self.behind(hybrid),
                "behind_avg_%": self.behind_on_average(hybrid),
                "near": f"{np.isfinite(self.reached(hybrid)).sum()}/{len(self.of(hybrid))}",
                "near_after_s": self.near_after(hybrid),
                "clusters": float(np.mean([c["clusters"] for c in self.of(hybrid)])),
                "sweeps": float(np.mean([c["sweeps"] for c in self.of(hybrid)])),
            }
            for hybrid in self.hybrids
        ]


# -- panels a-j ------------------------------------------------------------------------------------


def run_panel(name, options, share_time, share_rows, n_seeds):
    title, source, init, planned = PANELS[name]
    seconds = options.seconds or planned * share_time * (FULL if options.full else 1)
    X, model, subtract = problem(options.data, source, share_rows)
    if isinstance(init, int):
        init = min(init, X.shape[0])
    lines = [*HYBRIDS, *([ANNEALED] if init == "sequential" else [])]
    print(
        f"\n({name}) {title}: {X.shape[0]} x {X.shape[1]}, {seconds:.3g} s per run, "
        f"{n_seeds} seeds",
        flush=True,
    )
    panel = Panel(name, seconds, X.shape[0])
    for seed in range(n_seeds):
        for hybrid in lines:
            panel.curves.append(run(X, model, subtract, hybrid, init, seconds, seed))
    write(panel.rows(), options.figures / f"permutation_{name}.csv")
    return panel


def plot_panel(axes, panel):
    """Log joint less the best one, seeds thin, mean thick."""
    best = panel.best
    for hybrid in panel.hybrids:
        color = COLORS[hybrid]
        times = np.linspace(0, 1, 201) * panel.seconds
        values = np.array([at_times(curve, times) for curve in panel.of(hybrid)])
        for line in values:
            axes.plot(times, line - best, color=color, linewidth=0.5, alpha=0.6)
        axes.plot(times, values.mean(axis=0) - best, color=color, linewidth=1.8, label=hybrid)
    linear = max(1.0, 10.0 ** np.floor(np.log10(2e-4 * abs(best))))
    axes.set_yscale("symlog", linthresh=linear, linscale=0.7)
    low = min(float(curve["log_joint"].min()) for curve in panel.curves) - best
    high = max(float(curve["log_joint"].max()) for curve in panel.curves) - best
    axes.set_ylim(1.2 * low, max(1.5 * high, 0.3 * linear))
    axes.set_title(f"({panel.name}) {PANELS[panel.name][0]}; best {best:,.0f}", fontsize=9)
    axes.set_xlim(0, panel.seconds)


def plot(panels, mixing, path):
    names = [*panels, *(["k", "l"] if mixing else [])]
    n_columns = min(3, len(names))
    n_lines = -(-len(names) // n_columns)
    size = 4.3 * n_columns, 3.1 * n_lines + 0.5
    figure, axes = plt.subplots(n_lines, n_columns, figsize=size, squeeze=False)
    figure.set_layout_engine("constrained")
    for name, ax in zip(names, axes.flat, strict=False):
        if name in panels:
            plot_panel(ax, panels[name])
            ax.set_xlabel("seconds", fontsize=8)
        else:
            plot_mixing(ax, name, mixing)
            ax.set_xlabel("lag in sweeps", fontsize=8)
        ax.tick_params(labelsize=7)
        ax.grid(alpha=0.3)
    for ax in axes.flat[len(names) :]:
        ax.set_axis_off()
    for i, (name, ax) in enumerate(zip(names, axes.flat, strict=False)):
        if name not in panels:
            ax.set_ylabel("autocorrelation", fontsize=8)
        elif i % n_columns == 0:
            ax.set_ylabel("log joint less the best", fontsize=8)
    shown = {}
    for ax in axes.flat[: len(names)]:
        shown |= {label: line for line, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(shown.values(), shown, loc="outside lower center", ncols=len(shown), fontsize=9)
    figure.savefig(path, dpi=100)
    plt.close(figure)


# -- panels k, l -----------------------------------------------------------------------------------

STATISTICS = {"k": ("clusters", "number of clusters"), "l": ("largest", "largest cluster's size")}


def autocorrelation(values, mean, variance):
    """At lags 0 .. N_LAGS, with the mean and variance of all the hybrid's chains."""
    x = np.asarray(values, dtype=float) - mean
    n = len(x)
    return np.array([x[: n - lag] @ x[lag:] / (n - lag) / variance for lag in range(N_LAGS + 1)])


def integrated(correlations):
    """1 + 2 sum of the autocorrelations, up to the first that is below 0.02."""
    small = np.flatnonzero(correlations < 0.02)
    stop = small[0] if len(small) else len(correlations)
    return float(1 + 2 * correlations[1:stop].sum())


def run_mixing(options, n_seeds):
    """Autocorrelations after burn-in, from counted sweeps."""
    n_burn_in, n_kept = (2000, 20_000) if options.full else (500, 4000)
    X = mnist(options.data, np.random.default_rng(0), 1000, 2)
    print(
        f"\n(k, l) MNIST, 1000 digits in 2 dimensions: {n_burn_in} sweeps, then {n_kept}, "
        f"{n_seeds} seeds",
        flush=True,
    )
    chains = {}
    for hybrid, moves in HYBRIDS.items():
        for seed in range(n_seeds):
            began = time.perf_counter()
            model = fit(
                X,
                seed,
                schedule=PriorGibbs(n_sweeps=n_burn_in),
                init="sequential",
                moves=moves,
                permutation="uniform",
                n_draws=n_kept,
                **normal_options(MNIST_VARIANCE),
            )
            sizes = [np.bincount(draw.labels) for draw in model.draws_[0]]
            chains.setdefault(hybrid, []).append(
                {
                    "clusters": np.array([len(size) for size in sizes]),
                    "largest": np.array([size.max() for size in sizes]),
                    "seconds": (time.perf_counter() - began) / (n_burn_in + n_kept),
                }
            )
    out, rows = {}, []
    for hybrid, runs in chains.items():
        row = {"hybrid": hybrid}
        for name, _ in STATISTICS.values():
            everything = np.concatenate([run[name] for run in runs])
            lines = [autocorrelation(r[name], everything.mean(), everything.var()) for r in runs]
            out[name, hybrid] = np.array(lines)
            times = [integrated(line) for line in lines]
            row |= {
                f"{name}": float(np.mean([run[name].mean() for run in runs])),
                f"{name}_act": float(np.mean(times)),
                f"{name}_act_sd": spread(times),
            }
        rows.append(row | {"ms_per_sweep": 1e3 * float(np.mean([run["seconds"] for run in runs]))})
    print("Mean, and integrated autocorrelation time in sweeps, of each statistic")
    write(rows, options.figures / "permutation_mixing.csv")
    return out, rows


def plot_mixing(axes, name, mixing):
    statistic, title = STATISTICS[name]
    for hybrid in HYBRIDS:
        lines = mixing[0][statistic, hybrid]
        axes.plot(lines.T, color=COLORS[hybrid], linewidth=0.5, alpha=0.6)
        axes.plot(lines.mean(axis=0), color=COLORS[hybrid], linewidth=1.8, label=hybrid)
    axes.set_title(f"({name}) MNIST: {title}", fontsize=9)
    axes.set_xlim(0, N_LAGS)
    axes.set_ylim(-0.1, 1)


# -- Figure 2 --------------------------------------------------------------------------------------

BEAM_POINTS, BEAM_CLUSTERS = 500, 40
BEAM_DIMS = (2, 5, 10, 40, 80)
PROFILES, PROFILE_DIMS = range(400, 415), 10


def known_mixture(X, labels):
    """A mixture's state over points of covariance I, with these labels."""
    n_rows, n_dims = X.shape
    table = Table(["f4"] * n_dims, [0] * n_dims)
    table.append(list(X.T.astype(np.float32)))
    family = FAMILIES["known_normal"]
    values = [np.eye(n_dims), np.zeros(n_dims), PRIOR_VARIANCE * np.eye(n_dims)]
    block = family(table, np.arange(n_dims), [flatten(family.forms, values, n_dims)])
    subsample = Subsample(n_rows)
    subsample.fill()
    mixture = Mixture(table, [block], PitmanYor(5.0, 0.0), subsample)
    mixture.replace(np.arange(n_rows), labels)
    return mixture


def ordered_by(labels, keys, rng):
    """Clusters in random order, rows within each by their keys."""
    return np.lexsort((keys, rng.random(labels.max() + 1)[labels]))


def forward(mixture, order, law, tolerance):
    """The program's segments: number kept at each point, log g, (sizes, log contributions)."""
    move, n = Permutation(law, "beam", tolerance), len(order)
    move.tuning = mixture.n_clusters
    log_tau = move._log_tau(move._log_number(mixture, n, law))
    segments = OrderProgram(mixture)
    segments.follow(mixture)
    segments.forward(mixture, order, move._log_size(mixture, n, law) + log_tau, 1.0, tolerance)
    log_g = segments.log_sums()
    first, log_b = segments.kept()
    return (
        np.array([len(f) for f in first]),
        log_g[-1],
        [(r + 1 - f, b + log_g[f]) for r, (f, b) in enumerate(zip(first, log_b, strict=True))],
    )


def run_beam(options):
    """Kept sizes and g of the beam against all segments, over orders and data sets."""
    print(
        f"\nFigure 2: {BEAM_POINTS} points of {BEAM_CLUSTERS} clusters, tolerance {TOLERANCE:g}; "
        f"all sizes would be {(BEAM_POINTS + 1) / 2:g} on average",
        flush=True,
    )
    n_runs, found, shown = 20 if options.full else 5, {}, {}
    for n_dims in BEAM_DIMS:
        for seed in range(n_runs):
            rng = np.random.default_rng([2, seed])
            X, labels = synthetic(rng, BEAM_POINTS, BEAM_CLUSTERS, n_dims)
            labels = np.unique(labels, return_inverse=True)[1]
            shuffled = rng.integers(BEAM_CLUSTERS, size=BEAM_POINTS)
            shuffled = np.unique(shuffled, return_inverse=True)[1]
            direction = rng.normal(size=n_dims)
            orders = {
                "uniform, true clusters": (labels, rng.random(BEAM_POINTS), "uniform"),
                "projection, true clusters": (labels, X @ direction, "projection"),
                "projection, random clusters": (shuffled, X @ direction, "projection"),
            }
            for name, (clustering, keys, law) in orders.items():
                mixture = known_mixture(X, clustering)
                order = ordered_by(clustering, keys, rng)
                kept, log_beam, _ = forward(mixture, order, law, TOLERANCE)
                _, log_all, profiles = forward(mixture, order, law, 0.0)
                found.setdefault((n_dims, name), []).append((kept, np.exp(log_beam - log_all)))
                shown.setdefault((n_dims, name), [profiles[r - 1] for r in PROFILES])
    rows = []
    for (n_dims, name), runs in found.items():
        kept, ratios = np.concatenate([k for k, _ in runs]), [float(ratio) for _, ratio in runs]
        rows.append(
            {
                "order": name,
                "dims": n_dims,
                "runs": n_runs,
                "kept": float(kept.mean()),
                "kept_median": float(np.median(kept)),
                "kept_90%": float(np.quantile(kept, 0.9)),
                "kept_most": int(kept.max()),
                "g_ratio_mean": float(np.mean(ratios)),
                "g_ratio_median": float(np.median(ratios)),
                "g_ratio_least": min(ratios),
            }
        )
    write(rows, options.figures / "permutation_beam.csv")
    plot_beam(found, shown, options.figures / "permutation_beam.png")
    return rows


def plot_beam(found, shown, path):
    """The profiles of the sums as in the paper, and the numbers of kept sizes."""
    figure, axes = plt.subplots(1, 3, figsize=(14, 3.6), layout="constrained")
    order, longest = "uniform, true clusters", 40
    profiles = shown[PROFILE_DIMS, order]
    for i, (sizes, weights) in enumerate(profiles):
        color = plt.cm.viridis(i / (len(profiles) - 1))
        sizes, weights = sizes[-longest:][::-1], weights[-longest:][::-1]  # shortest first
        axes[0].plot(sizes, weights, color=color, linewidth=1, label=f"r = {PROFILES[i]}")
        share = np.exp(weights - weights.max())
        axes[1].plot(sizes, share / share.sum(), color=color, linewidth=1)
    axes[0].set_ylabel("log contribution to g(r)")
    axes[1].set_ylabel("probability of choosing m")
    axes[0].set_title(f"terms of g(r), {PROFILE_DIMS} dimensions, {order}", fontsize=9)
    axes[1].set_title("the same, normalised", fontsize=9)
    for ax in axes[:2]:
        ax.set_xlabel("segment size m")
    axes[0].legend(
        [axes[0].lines[0], axes[0].lines[-1]],
        [f"r = {PROFILES[0]}", f"r = {PROFILES[-1]}"],
        fontsize=8,
    )
    for i, n_dims in enumerate(BEAM_DIMS):
        color = plt.cm.plasma(0.85 * i / (len(BEAM_DIMS) - 1))
        kept = np.concatenate([k for k, _ in found[n_dims, order]])
        share = np.cumsum(np.bincount(kept)[1:]) / len(kept)
        label = f"{n_dims} dimensions, mean {kept.mean():.1f}"
        axes[2].step(np.arange(1, len(share) + 1), share, where="post", color=color, label=label)
    axes[2].set_xscale("log")
    axes[2].set_xticks(
        [1, 2, 5, 10, 20, 50, 100, 200], ["1", "2", "5", "10", "20", "50", "100", "200"]
    )
    axes[2].set_xticks([], minor=True)
    axes[2].set_xlabel("sizes kept at a point")
    axes[2].set_ylabel("share of points with at most so many")
    axes[2].set_title(f"the beam, {order}", fontsize=9)
    axes[2].legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    for ax in axes:
        ax.grid(alpha=0.3)
    figure.savefig(path, dpi=100)
    plt.close(figure)


# -- the paper's claims ----------------------------------------------------------------------------


def starts_table(panels, options):
    """For panels a-c: per cent by which starts differ after burn-in and at the end, by hybrid."""
    rows = []
    for hybrid in HYBRIDS:
        row = {"hybrid": hybrid}
        for when in ("burned_in", "end"):
            values = [
                panels[name].end(hybrid) if when == "end" else panels[name].burned_in(hybrid)
                for name in "abc"
            ]
            row |= {
                f"{when}_{PANELS[name][2]}": value
                for name, value in zip("abc", values, strict=True)
            }
            row[f"{when}_spread_%"] = 100 * (max(values) - min(values)) / abs(max(values))
        rows.append(row)
    print("\n(a-c) Log joint after burn-in and at the end by clusters at the start; spreads")
    write(rows, options.figures / "permutation_starts.csv")
    return {row["hybrid"]: (row["burned_in_spread_%"], row["end_spread_%"]) for row in rows}


def percents(values):
    return ", ".join(f"{value:.3g} %" for value in values)


def judge(panels, mixing, beam, options):
    """The paper's claims, what was measured, whether it agrees."""
    split, both, perm = "Gibbs+SplitMerge", "Gibbs+SplitMerge+Perm", "Gibbs+Perm"
    claims = []

    def claim(title, holds, measured):
        claims.append(f"{title}: {'reproduced' if holds else 'not reproduced'}. {measured}.")

    if beam:
        rows = [row for row in beam if row["order"] == "uniform, true clusters"]
        claim(
            "Figure 2, with about 5 sizes kept the beam has 0.97 of g or more",
            any(2.5 <= row["kept"] <= 10 and row["g_ratio_median"] >= 0.97 for row in rows),
            "sizes kept, median share of g, in uniform orders of the true clusters: "
            + "; ".join(
                f"{row['dims']} dimensions {row['kept']:.1f}, {row['g_ratio_median']:.3f}"
                for row in rows
            ),
        )
    if all(name in panels for name in "abc"):
        spreads = starts_table(panels, options)
        claim(
            f"1. With permutation moves the log joint after burn-in does not depend on the start "
            f"(within {NEAR} %)",
            all(max(spreads[hybrid]) <= NEAR for hybrid in PERMUTING),
            "spread over the starts after burn-in and at the end: "
            + "; ".join(f"{hybrid} {percents(values)}" for hybrid, values in spreads.items()),
        )
        a = panels["a"]
        claim(
            "2. Gibbs alone is stuck from one cluster",
            a.behind("Gibbs") > 1,
            f"it ends {a.behind('Gibbs'):.3g} % behind the best with "
            f"{np.mean([c['clusters'] for c in a.of('Gibbs')]):.1f} clusters",
        )
        times = [panels[name].near_after(split) for name in "abc"]
        claim(
            "3. Gibbs+SplitMerge is worse the more clusters it starts with",
            times[0] < times[2] and times[1] < times[2],
            f"near the best (within {NEAR} %) from 1, 40, 300 clusters: "
            + "; ".join(panels[name].told(split) for name in "abc"),
        )
    if all(name in panels for name in "def"):
        split_times, other = (
            np.array([min(panels[name].near_after(h) for h in hybrids) for name in "def"])
            for hybrids in ((split,), PERMUTING)
        )
        ratios = split_times / other
        claim(
            "4. More true clusters worsen split-merge and not permutations",
            ratios[0] < ratios[2] and ratios[2] > 1,
            f"seconds until near the best, Gibbs+SplitMerge over the better permutation hybrid, "
            f"with 20, 80, 160: {', '.join(f'{ratio:.2f}' for ratio in ratios)} ("
            + " | ".join(
                "; ".join(panels[name].told(h) for h in (split, *PERMUTING)) for name in "def"
            )
            + ")",
        )
    if "g" in panels and "h" in panels:
        gains = [
            min(panels[name].near_after(h) for h in ("Gibbs", split))
            / min(panels[name].near_after(h) for h in PERMUTING)
            for name in "gh"
        ]
        claim(
            "5. The gain by permutations grows with the dimensions",
            gains[1] > gains[0] and gains[1] > 1,
            f"seconds until near the best, without over with permutations: {gains[0]:.2f} in 10 "
            f"dimensions, {gains[1]:.2f} in 80",
        )
    for name, text in (("i", "6. Permutations improve on MNIST"), ("j", "7. AP")):
        if name not in panels:
            continue
        panel = panels[name]
        ends = {hybrid: panel.end(hybrid) for hybrid in panel.hybrids}
        noise = {hybrid: np.nan_to_num(panel.ends_sd(hybrid)) for hybrid in panel.hybrids}
        shown = ", ".join(f"{h} {end:.0f} ({noise[h]:.0f})" for h, end in ends.items())
        if name == "i":
            best = max(ends["Gibbs"], ends[split])
            claim(text, max(ends[h] for h in PERMUTING) > best, shown)
            continue
        margin = max(noise[split], noise[both], NEAR / 100 * abs(ends[split]))
        claim(
            f"{text}: Gibbs+Perm is behind Gibbs+SplitMerge, both together are competitive "
            f"(within {NEAR} % or a standard deviation)",
            ends[perm] < ends[split] and ends[both] >= ends[split] - margin,
            shown,
        )
    if mixing:
        times = {
            name: {row["hybrid"]: row[f"{name}_act"] for row in mixing[1]}
            for name, _ in STATISTICS.values()
        }
        number, largest = times["clusters"], times["largest"]
        claim(
            "8. Mixing: little difference for the number of clusters (within 2 times), split-merge "
            "hybrids faster for the largest cluster",
            max(number.values()) <= 2 * min(number.values())
            and max(largest[split], largest[both]) < min(largest["Gibbs"], largest[perm]),
            "autocorrelation times in sweeps, number of clusters "
            + ", ".join(f"{h} {t:.1f}" for h, t in number.items())
            + "; largest "
            + ", ".join(f"{h} {t:.1f}" for h, t in largest.items()),
        )
    print("\nThe paper's claims")
    for line in claims:
        print(f"- {line}")


# -- what fits the time ----------------------------------------------------------------------------


def cut(options):
    """Share of the seconds per run, share of the rows, seeds."""
    names = [name for name in PANELS if name in options.parts]
    if options.minutes is None or options.seconds is not None or not names:
        return 1.0, 1.0, options.seeds
    lines = [len(HYBRIDS) + (PANELS[name][2] == "sequential") for name in names]
    n_runs = sum(lines)
    seconds = sum(n * PANELS[name][3] for n, name in zip(lines, names, strict=True))
    seconds *= FULL if options.full else 1
    # 1 s a run: loading, encoding; the other parts and the figures: 4 minutes
    available = 60 * max(1.0, options.minutes - 4) / options.seeds - 1.0 * n_runs
    share = float(np.clip(available / seconds, LEAST_TIME, 1))
    rows = min(1.0, 2 * share)
    n_seeds = options.seeds
    if share == LEAST_TIME:
        need = share * seconds + n_runs
        n_seeds = max(1, min(n_seeds, int(60 * options.minutes / need)))
    if share < 1:
        print(
            f"Cut to fit {options.minutes:g} minutes: {share:.0%} of the planned seconds per run, "
            f"{rows:.0%} of the rows, {n_seeds} of {options.seeds} seeds"
        )
    return share, rows, n_seeds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with mnist.npz and ap_news.npz")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seconds", type=float, help="per run, in every panel; nothing is cut")
    parser.add_argument("--rows", type=float, default=1.0, help="share of the rows, in a-j (1)")
    parser.add_argument("--minutes", type=float, help="for everything (38; with --full no limit)")
    parser.add_argument("--full", action="store_true", help=f"{FULL} times the seconds")
    parser.add_argument("--figures", type=Path, default=Path("build/permutation"))
    options = parser.parse_args()
    if options.minutes is None and not options.full:
        options.minutes = 38.0
    options.figures.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    share_time, share_rows, n_seeds = cut(options)
    panels, mixing = {}, None
    beam = run_beam(options) if "beam" in options.parts else None
    if "mixing" in options.parts:
        mixing = run_mixing(options, n_seeds)
    for name in PANELS:
        if name in options.parts:
            panels[name] = run_panel(name, options, share_time, options.rows * share_rows, n_seeds)
        if panels or mixing:
            plot(panels, mixing, options.figures / "permutation_figures.png")
    judge(panels, mixing, beam, options)
    print(f"\n{(time.perf_counter() - start) / 60:.1f} minutes. Tables, figures: {options.figures}")


if __name__ == "__main__":
    main()
