"""Liang, Jordan and Taskar (ICML 2007), section 5: Figures 2 and 3.

Panels a-j: log joint against processor seconds of one chain. For the first half of a run
permutation moves climb. "uniform pairs" has Dahl's pair law in split-merge moves, which the paper
used; "split-merge" is the package's, which proposes as many splits as merges. "annealed" is the
default schedule with all moves. Panels k, l: autocorrelation after burn-in, over counted sweeps.
"""

import matplotlib.pyplot as plt
import numpy as np

from papers import permutation_beam as beam
from papers.cells import judged, of_figure, shown
from papers.permutation_cells import HYBRIDS, MEAN, N_LAGS, PANELS
from papers.permutation_cells import cells as cells
from papers.permutation_cells import cost as cost
from papers.permutation_cells import measure as measure
from papers.verdicts import all_of, deviation, is_about, is_positive, mean, paired

NAME = "permutation"
PERMUTING = ("gibbs, permutation", "gibbs, uniform pairs, permutation")
PAIRS = {"uniform pairs": "gibbs, uniform pairs", "even pairs": "gibbs, split-merge"}
PAPERS_SIZES, PAPERS_SHARE = 5, 0.97  # Figure 2
NEAR = 1e-3  # share of the best log joint that may lack: what counts as having got there
FIRST_SECONDS = 0.03  # of the pictures
STATISTICS = {"clusters": "number of clusters", "largest": "largest cluster's size"}
LETTERS = dict(zip(STATISTICS, "kl", strict=True))
STYLES = dict(
    zip(
        HYBRIDS,
        (
            ("0.75", "-"),
            ("tab:blue", "--"),
            ("tab:blue", "-"),
            ("tab:orange", "-."),
            ("tab:red", (0, (1, 1))),
            ("tab:red", (0, (4, 1, 1, 1, 1, 1))),
            ("black", (0, (1, 3))),
        ),
        strict=True,
    )
)


# -- panels ----------------------------------------------------------------------------------------


def runs_of(records, panel):
    """Method, then seed, to the record."""
    found = {}
    for cell, record in of_figure(records, "panels").items():
        if cell.data == panel:
            found.setdefault(cell.method, {})[cell.seed] = record
    return {name: found[name] for name in HYBRIDS if name in found}


def ends(runs, method):
    """Seed to the log joint at the end."""
    return {seed: record["end"] for seed, record in runs.get(method, {}).items()}


def best_of(runs):
    """The highest log joint that a run of the panel ends with."""
    return max(record["end"] for seeds in runs.values() for record in seeds.values())


def near_after(runs, method, budget):
    """Seed to the seconds until a run is near the panel's best; its budget if it never is."""
    best, found = best_of(runs), {}
    for seed, record in runs.get(method, {}).items():
        near = np.array(record["log_joint"]) >= best - NEAR * abs(best)
        found[seed] = record["seconds_at"][int(near.argmax())] if near.any() else budget
    return found


def panels_table(records):
    """Log joint at the end: mean and deviation over seeds; and seconds until near the best."""
    rows = []
    for panel, (title, _, _, budget) in PANELS.items():
        runs = runs_of(records, panel)
        for method, seeds in runs.items():
            values = list(ends(runs, method).values())
            near = near_after(runs, method, budget)
            n_near = sum(value < budget for value in near.values())
            numbers = f"{np.mean(values):,.1f}", f"{deviation(values):,.1f}"
            reached = f"{np.mean(list(near.values())):.2f}", f"{n_near} of {len(seeds)}"
            rows.append((f"({panel}) {title}", method, *numbers, *reached))
    headings = "panel", "moves", "log joint", "sd", "seconds until near", "got there"
    return shown(headings, rows, records, "panels")


def panels_picture(records):
    """Log joint less the best at a run's end: seeds thin, their mean thick."""
    names = [panel for panel in PANELS if runs_of(records, panel)]
    mixing = list(STATISTICS) if of_figure(records, "mixing") else []
    n_lines = -(-(len(names) + len(mixing)) // 3)
    figure, axes = plt.subplots(n_lines, 3, figsize=(13, 3.1 * n_lines + 0.6), squeeze=False)
    figure.set_layout_engine("constrained")
    for panel, ax in zip(names, axes.flat, strict=False):
        draw_panel(ax, panel, runs_of(records, panel))
    for name, ax in zip(mixing, axes.flat[len(names) :], strict=False):
        draw_mixing(ax, name, records)
    for ax in axes.flat[len(names) + len(mixing) :]:
        ax.set_axis_off()
    shown = {}
    for ax in axes.flat:
        shown |= {label: line for line, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(shown.values(), shown, loc="outside lower center", ncols=4, fontsize=9)
    return figure


def draw_panel(ax, panel, runs):
    """One of a-j."""
    title, _, _, budget = PANELS[panel]
    best, times = best_of(runs), np.geomspace(FIRST_SECONDS, budget, 301)
    lowest = highest = 0.0
    for method, seeds in runs.items():
        color, line = STYLES[method]
        curves = []
        for record in seeds.values():
            at, values = np.array(record["seconds_at"]), np.array(record["log_joint"]) - best
            place = np.searchsorted(at, times, side="right") - 1
            curves.append(np.where(place >= 0, values[np.maximum(place, 0)], np.nan))
            lowest, highest = min(lowest, values.min()), max(highest, values.max())
            ax.plot(times, curves[-1], linestyle=line, color=color, linewidth=0.4, alpha=0.6)
        mean_curve = np.mean(curves, axis=0)
        ax.plot(times, mean_curve, linestyle=line, color=color, linewidth=1.8, label=method)
    linear = max(1.0, 10.0 ** np.floor(np.log10(NEAR * abs(best))))
    ax.set_yscale("symlog", linthresh=linear, linscale=0.7)
    ax.set_ylim(1.2 * lowest, max(0.3 * linear, 1.2 * highest))
    least, most = np.log10(linear), np.log10(-lowest)
    above = 10.0 ** np.arange(least, np.log10(max(highest, linear)))  # burn-in may climb too far
    ax.set_yticks([*-(10.0 ** np.arange(least, most)[::-1]), 0.0, *above])
    ax.set_xscale("log")
    ax.set_xlim(FIRST_SECONDS, budget)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_title(f"({panel}) {title}; best end {best:,.0f}", fontsize=9)
    ax.set_xlabel("processor seconds", fontsize=8)
    ax.set_ylabel("log joint less the best end, nats", fontsize=8)
    ax.tick_params(labelsize=7)
    ax.grid(alpha=0.3)


# -- mixing ----------------------------------------------------------------------------------------


def integrated(correlations):
    """1 + 2 sum of the autocorrelations, up to the first that is below 0.02."""
    correlations = np.asarray(correlations)
    small = np.flatnonzero(correlations < 0.02)
    stop = small[0] if len(small) else len(correlations)
    return float(1 + 2 * correlations[1:stop].sum())


def mixing_times(records, name):
    """Method to seed to the integrated autocorrelation time of a statistic."""
    found = {}
    for cell, record in of_figure(records, "mixing").items():
        found.setdefault(cell.method, {})[cell.seed] = integrated(record[name])
    return found


def draw_mixing(ax, name, records):
    """One of k, l."""
    found = {}
    for cell, record in of_figure(records, "mixing").items():
        found.setdefault(cell.method, []).append(record[name])
    for method, lines in found.items():
        if method == MEAN:
            continue  # it would hide the other
        color, line = STYLES[method]
        curve = np.mean(lines, axis=0)
        ax.plot(curve, linestyle=line, color=color, linewidth=1.8, label=method)
    ax.set_title(f"({LETTERS[name]}) MNIST, 1,000 digits: {STATISTICS[name]}", fontsize=9)
    ax.set_xlabel("lag in sweeps", fontsize=8)
    ax.set_ylabel("autocorrelation", fontsize=8)
    ax.set(xlim=(0, N_LAGS), ylim=(-0.1, 1))
    ax.tick_params(labelsize=7)
    ax.grid(alpha=0.3)


def mixing_table(records):
    """Autocorrelation times."""
    times = {name: mixing_times(records, name) for name in STATISTICS}
    rows = [
        (method, *(mean(times[name][method].values()).text(1) for name in STATISTICS))
        for method in times["clusters"]
    ]
    headings = "moves", *STATISTICS.values()
    return shown(headings, rows, records, "mixing")


# -- Figure 2 --------------------------------------------------------------------------------------


def beam_runs(records):
    """(dimensions, order) to the records of all seeds."""
    found = {}
    for cell, record in of_figure(records, "beam").items():
        found.setdefault((int(cell.data.split()[0]), cell.method), []).append(record)
    return found


def kept_of(runs):
    """Number of points by how many sizes they keep, over runs."""
    total = np.zeros(max(len(run["kept"]) for run in runs))
    for run in runs:
        total[: len(run["kept"])] += run["kept"]
    return total


def beam_table(records):
    """Sizes kept and the beam's share of the sum."""
    rows = []
    for (n_dims, order), runs in beam_runs(records).items():
        kept, shares = kept_of(runs), [run["share"] for run in runs]
        average = kept @ np.arange(len(kept)) / kept.sum()
        numbers = f"{average:.1f}", f"{np.median(shares):.3f}", f"{min(shares):.3f}"
        rows.append((order, str(n_dims), *numbers))
    headings = "order", "dimensions", "sizes kept", "share of g(n), median", "least"
    return shown(headings, rows, records, "beam")


def beam_picture(records):
    """The profiles of the sums, as in the paper, and the numbers of kept sizes."""
    figure, axes = plt.subplots(1, 3, figsize=(14, 3.6), layout="constrained")
    order = beam.ORDERS[0]
    runs = beam_runs(records)
    profiles = runs[beam.PROFILE_DIMS, order][0]["profiles"]
    for i, (sizes, weights) in enumerate(profiles):
        color = plt.cm.viridis(i / (len(profiles) - 1))
        weights = np.array(weights)
        label = f"r = {beam.PROFILES[i]}" if i in (0, len(profiles) - 1) else None
        axes[0].plot(sizes, weights, color=color, linewidth=1, label=label)
        share = np.exp(weights - weights.max())
        axes[1].plot(sizes, share / share.sum(), color=color, linewidth=1)
    axes[0].set_ylabel("log contribution to g(r), nats")
    axes[0].legend(fontsize=8)
    axes[1].set_ylabel("probability of choosing m")
    for ax, title in zip(axes, ("terms of g(r)", "the same, normalised"), strict=False):
        ax.set_title(f"{title}, {beam.PROFILE_DIMS} dimensions, order: {order}", fontsize=8)
        ax.set_xlabel("segment size m")
    for n_dims, line in zip(
        beam.DIMS, ("-", "--", "-.", ":", (0, (4, 1, 1, 1, 1, 1))), strict=True
    ):
        kept = kept_of(runs[n_dims, order])[1:]
        share = np.cumsum(kept) / kept.sum()
        label = f"{n_dims} dimensions"
        axes[2].step(np.arange(1, len(share) + 1), share, where="post", linestyle=line, label=label)
    axes[2].set_xscale("log")
    axes[2].set(xlabel="sizes kept at a point", ylabel="share of points with at most so many")
    axes[2].set_title(f"the beam, order: {order}", fontsize=8)
    axes[2].legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1.0))
    for ax in axes:
        ax.grid(alpha=0.3)
    return figure


# -- verdicts --------------------------------------------------------------------------------------


def log_ratios(records, panel, one, other):
    """Seed to the log of how many times as long one method takes until it is near the best."""
    runs, budget = runs_of(records, panel), PANELS[panel][3]
    if not runs:
        return {}
    ones, others = (near_after(runs, method, budget) for method in (one, other))
    return {seed: float(np.log(ones[seed] / others[seed])) for seed in ones if seed in others}


def factor(estimate):
    """A mean log ratio, as a factor with its 95 % interval."""
    low, high = np.exp(estimate.interval())
    return f"{np.exp(estimate.mean):.2f} times ({low:.2f} to {high:.2f})"


def claims(records):
    """The paper's claims; of split-merge by both pair laws."""
    runs = {panel: runs_of(records, panel) for panel in PANELS}
    if beam_runs(records):
        yield claim_of_beam(records)
    if all(runs[panel] for panel in "abc"):
        yield from claims_of_starts(records, runs)
    if all(runs[panel] for panel in "defgh"):
        yield from claims_of_clusters(records)
    if runs["i"] and runs["j"]:
        yield from claims_of_data(runs)
    if of_figure(records, "mixing"):
        yield from claims_of_mixing(records)


def claim_of_beam(records):
    """Figure 2, by the number of dimensions at which the beam keeps about as many sizes."""
    found = {}
    for (n_dims, order), of in beam_runs(records).items():
        if order == beam.ORDERS[0]:
            kept = kept_of(of)
            found[n_dims] = kept @ np.arange(len(kept)) / kept.sum(), [run["share"] for run in of]
    shown = ", ".join(f"{s:.1f} ({mean(x).text(2)})" for s, x in found.values())
    _, shares = min(found.values(), key=lambda of: abs(np.log(of[0] / PAPERS_SIZES)))
    above = mean(share - PAPERS_SHARE for share in shares)
    text = f"Figure 2: with about {PAPERS_SIZES} sizes kept the beam has {PAPERS_SHARE} of g(n)"
    return text, f"sizes kept (share), by dimensions: {shown}", is_positive(above)


def claims_of_starts(records, runs):
    """Claims 1 to 3, panels a to c."""
    for method in PERMUTING:
        apart = paired(ends(runs["c"], method), ends(runs["a"], method))
        share = apart._replace(
            mean=100 * apart.mean / abs(best_of(runs["a"])),
            error=100 * apart.error / abs(best_of(runs["a"])),
        )
        text = (
            f"1. {method}: the end does not depend on the start (300 clusters or 1, within 0.1 %)"
        )
        yield text, f"log joint differs by {share.text(4)} %", is_about(share, 0.0, 0.1)
    best = best_of(runs["a"])
    behind_ = mean(100 * (best - end) / abs(best) - 1 for end in ends(runs["a"], "gibbs").values())
    text = "2. Gibbs alone is stuck from one cluster (ends more than 1 % behind)"
    yield text, f"{behind_._replace(mean=behind_.mean + 1).text(1)} % behind", is_positive(behind_)
    for name, method in PAIRS.items():
        times = [near_after(runs[p], method, PANELS[p][3]) for p in "ac"]
        logs = [{seed: float(np.log(t)) for seed, t in of.items()} for of in times]
        slower = paired(logs[1], logs[0])
        text = f"3. Split-merge ({name}) is slower from 300 clusters than from one"
        yield text, factor(slower), is_positive(slower)


def claims_of_clusters(records):
    """Claims 4 and 5, panels d to h."""
    permuting = PERMUTING[0]
    for number, (few, many), text in (
        (
            "4",
            "df",
            "160 true clusters in place of 20 slow split-merge ({}) more than permutations",
        ),
        ("5", "gh", "80 dimensions, not 10, slow split-merge ({}) more than permutations"),
    ):
        for name, method in PAIRS.items():
            before, after = (log_ratios(records, panel, method, permuting) for panel in (few, many))
            gain = paired(after, before)
            yield f"{number}. {text.format(name)}", factor(gain), is_positive(gain)
    for panel in "fh":
        for name, method in PAIRS.items():
            ratio = mean(log_ratios(records, panel, method, permuting).values())
            text = f"Panel {panel}: permutations get there before split-merge ({name})"
            yield text, factor(ratio), is_positive(ratio)


def claims_of_data(runs):
    """Claims 6 and 7, panels i and j."""
    for name, method in PAIRS.items():
        both = f"{method}, permutation"
        gain = paired(ends(runs["i"], both), ends(runs["i"], method))
        text = f"6. MNIST: permutations improve on split-merge ({name})"
        yield text, f"log joint higher by {gain.text(1)}", is_positive(gain)
        ones = ends(runs["j"], method)
        lag = paired(ones, ends(runs["j"], "gibbs, permutation"))
        close = paired(ends(runs["j"], both), ones)
        limit = NEAR * abs(best_of(runs["j"]))
        text = f"7. AP: permutations alone are behind split-merge ({name}), together within 0.1 %"
        measured = f"behind by {lag.text(1)}; together, ahead by {close.text(1)}"
        near = is_positive(close._replace(mean=close.mean + limit))
        yield text, measured, all_of([is_positive(lag), near])


def claims_of_mixing(records):
    """Claim 8, panels k and l."""
    number, largest = (mixing_times(records, name) for name in STATISTICS)
    logs = {
        method: {seed: float(np.log(t)) for seed, t in seeds.items()}
        for method, seeds in number.items()
    }
    for method in PAIRS.values():
        apart = paired(logs[method], logs["gibbs"])
        text = f"8. Number of clusters: {method} mixes about as fast as gibbs (within 2 times)"
        yield text, factor(apart), is_about(apart, 0.0, float(np.log(2)))
        ones = {seed: float(np.log(t)) for seed, t in largest[method].items()}
        others = {seed: float(np.log(t)) for seed, t in largest["gibbs"].items()}
        faster = paired(others, ones)
        text = f"8. Largest cluster: {method} mixes faster than gibbs"
        yield text, factor(faster), is_positive(faster)
    if MEAN in logs:
        apart = paired(logs[MEAN], logs["gibbs, permutation"])
        text = (
            "Number of clusters: beta at the mean of burn-in, as in the paper, mixes like beta at"
        )
        yield (
            f"{text} its end (within 2 times)",
            factor(apart),
            is_about(apart, 0.0, float(np.log(2))),
        )


def tables(records):
    """All tables of the page, by name."""
    return {
        "verdicts": judged(claims(records), records, "beam", "panels", "mixing"),
        "panels": panels_table(records),
        "mixing": mixing_table(records),
        "beam": beam_table(records),
    }


def pictures(records):
    """All pictures of the page, by name."""
    found = {}
    if beam_runs(records):
        found["beam"] = beam_picture(records)
    if of_figure(records, "panels"):
        found["panels"] = panels_picture(records)
    return found
