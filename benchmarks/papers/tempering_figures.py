"""Van de Meent, Paige and Wood (2014), section 4: Tables 1 and 2, Figures 1 to 3.

"paper" cells have the paper's fixed steps, its starting points and no update of the target's level
between passes; of their draws the first half is left out. "tuned" cells find step sizes in a
warm-up, for the same acceptance with every method. A cell stops when R-hat is below 1.05 and the
bulk effective sample size above 200 for every parameter, or at its budget.
"""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import NullFormatter, NullLocator

from harness.markdown import NONE, markdown
from papers import styles
from papers import tempering_pays as pays
from papers.cells import behind, judged, of_figure, shown, whole_decades
from papers.tempering_cells import (
    COST_PARAMETERS,
    COST_ROWS,
    FIGURE2,
    PAPER,
    ROWS,
    data_of,
    row_of,
    ways_of,
)
from papers.tempering_cells import cells as cells
from papers.tempering_cells import cost as cost
from papers.tempering_cells import measure as measure
from papers.tempering_chains import agrees, rate
from papers.tempering_cost import predicted
from papers.tempering_regression import N_SPLITS
from papers.tempering_subsets import SUBSETS
from papers.verdicts import is_positive, mean, paired

NAME = "tempering"
PAPERS_COST = {
    "gaussian": {"spt": 3.51, "stt": 5.65, "pt": 7.48, "tt": 12.94},
    "gp": {"spt": 1.73, "stt": 2.35, "pt": 6.03, "tt": 9.19},
}
MODELS = {"gaussian": "normal mean", "gp": "process"}  # in pictures


def title_of(model, inner, n_parameters, *more):
    """Of a panel."""
    return ", ".join([MODELS[model], f"{n_parameters} parameters", inner.upper(), *more])


# -- rates -----------------------------------------------------------------------------------------


def by_row(records):
    """Records of the sampling cells: row, then (setting, way), then seed."""
    found = {}
    for cell, record in of_figure(records, "sampling").items():
        at = found.setdefault(row_of(cell.data), {})
        at.setdefault(tuple(cell.method.split(": ")), {})[cell.seed] = record
    return found


def mean_rate(records, estimator):
    """Geometric mean over seeds."""
    return float(np.exp(np.mean([np.log(rate(r, estimator)) for r in records.values()])))


def rate_text(records, estimator):
    """The mean rate; a star where R-hat is above 1.1, a ring where the budget ended."""
    if not records:
        return ""
    r_hat = "paper_r_hat" if estimator == "paper_ess" else "r_hat"
    star = "\\*" if any((r[r_hat] or np.inf) > 1.1 for r in records.values()) else ""
    ring = "" if all(r["stopped"] for r in records.values()) else "°"
    return f"{mean_rate(records, estimator):.3g}{star}{ring}"


def rates_table(records, rows, setting, estimator):
    """Rows by methods."""
    found, lines = by_row(records), []
    for row in rows:
        of_row = found.get(row, {})
        texts = [rate_text(of_row.get((setting, way), {}), estimator) for way in ways_of(setting)]
        if any(texts):
            seeds = max(len(seeds) for seeds in of_row.values())
            model, inner, n_parameters, n_rows = row
            about = inner.upper(), str(n_parameters), str(n_rows), str(seeds)
            lines.append((*about, *(text or NONE for text in texts)))
    headings = "inner", "parameters", "rows", "seeds", *ways_of(setting)
    return markdown(headings, lines)


def both_settings(records, *tables):
    """The paper's steps and estimator, then tuned steps and the smallest bulk sample size."""
    rows = [row for table in tables for row in ROWS[table]]
    return "\n\n".join(
        [
            "The paper's steps; median over parameters of its effective sample size (eq. 8):",
            rates_table(records, rows, "paper", "paper_ess"),
            "The paper's steps; smallest bulk effective sample size of all parameters:",
            rates_table(records, rows, "paper", "bulk"),
            "Tuned steps; smallest bulk effective sample size of all parameters:",
            rates_table(records, rows, "tuned", "bulk"),
            behind(records, "sampling"),
        ]
    )


def log_ratios(records, rows, setting, one, other):
    """Row to the mean over seeds of the log ratio of two methods' rates.

    Where neither method's chains agree, their rates say nothing, and the seed is left out. Where
    one's do not, it has a few effective draws, and the ratio is on the safe side.
    """
    found = {}
    for row, ways in by_row(records).items():
        ones, others = (ways.get((setting, way), {}) for way in (one, other))
        shared = [s for s in ones if s in others and (agrees(ones[s]) or agrees(others[s]))]
        if row in rows and shared:
            logs = [np.log(rate(ones[s], "bulk") / rate(others[s], "bulk")) for s in shared]
            found[row] = float(np.mean(logs))
    return found


# -- costs -----------------------------------------------------------------------------------------


def costs(records):
    """Seconds per draw: model and rows to method to seconds."""
    found = {}
    for cell, record in of_figure(records, "cost").items():
        model, _, _, n_rows = row_of(cell.data)
        found.setdefault((model, n_rows), {})[cell.method] = record["per_draw"]
    return found


def cost_table(records):
    """Cost of a draw relative to the inner sampler's."""
    rows = []
    for (model, n_rows), seconds in costs(records).items():
        formula = predicted(model)
        for way in PAPER[1:]:
            if {way, "none"} <= set(seconds):
                measured = seconds[way] / seconds["none"]
                numbers = formula[way], measured, PAPERS_COST[model][way]
                rows.append((model, str(n_rows), way, *(f"{x:.2f}" for x in numbers)))
    headings = "model", "rows", "method", "predicted", "measured", "the paper's"
    return shown(headings, rows, records, "cost")


def figure1_picture(records):
    """Seconds per draw over the rows."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    found = costs(records)
    for ax, model in zip(axes, COST_ROWS, strict=True):
        for way in PAPER:
            color, marker, line = styles.WAYS[way]
            sizes = [n for n in COST_ROWS[model] if way in found.get((model, n), {})]
            ax.loglog(
                sizes,
                [found[model, n][way] for n in sizes],
                line,
                color=color,
                marker=marker,
                label=way,
            )
        ax.set_title(title_of(model, "hmc", COST_PARAMETERS[model]), fontsize=10, loc="left")
        ax.set(xlabel="rows", ylabel="processor seconds per draw")
        ax.set_xticks(COST_ROWS[model], COST_ROWS[model])
        ax.minorticks_off()
        ax.grid(alpha=0.3)
    axes[1].legend(fontsize=8)
    return figure


# -- regression ------------------------------------------------------------------------------------


def regression_table(records):
    """Our regressor beside scikit-learn's."""
    runs, rows = {}, []
    for cell, record in of_figure(records, "regression").items():
        runs.setdefault(cell.data, []).append(record)
    for name in (name for name in N_SPLITS if name in runs):
        splits = runs[name]
        gain = mean(r["ours"]["log_density"] - r["theirs"]["log_density"] for r in splits)
        numbers = [
            f"{np.mean([record[who][of] for record in splits]):.{digits}f}"
            for of, digits in (("log_density", 3), ("inside", 3), ("fit_seconds", 1))
            for who in ("theirs", "ours")
        ]
        size = f"{name}, {splits[0]['rows']} x {splits[0]['columns']}"
        rows.append((size, str(len(splits)), *numbers[:2], gain.text(3), *numbers[2:]))
    headings = (
        *("", "splits", "log density, scikit-learn", "ours", "difference"),
        *("within 90 %, scikit-learn", "ours", "seconds, scikit-learn", "ours"),
    )
    return shown(headings, rows, records, "regression")


# -- subsets ---------------------------------------------------------------------------------------


def subset_runs(records):
    """Row and way to the records of both kinds of subsets, by seed."""
    found = {}
    for cell, record in of_figure(records, "subsets").items():
        way, subsets = cell.method.split(": ")
        at = found.setdefault((cell.data, way), {name: {} for name in SUBSETS})
        at[subsets][cell.seed] = record
    return found


def subsets_table(records):
    """Acceptances and effective draws with nested and with independent subsets."""
    rows = []
    for (data, way), kinds in subset_runs(records).items():
        for subsets, seeds in kinds.items():
            if not seeds:
                continue
            swaps = np.mean([record["swaps"] for record in seeds.values()], axis=0)
            passes = [record["passes"] for record in seeds.values()]
            rows.append(
                (
                    data,
                    way,
                    subsets,
                    str(len(seeds)),
                    *(f"{x:.3f}" for x in (swaps.mean(), swaps[0], swaps.min())),
                    NONE if None in passes else f"{np.mean(passes):.4f}",
                    f"{np.mean([record['per_1000'] for record in seeds.values()]):.0f}",
                )
            )
    headings = (
        *("model", "method", "subsets", "seeds", "crossings accepted", "to the target", "least"),
        *("passes accepted", "effective draws of 1,000"),
    )
    return shown(headings, rows, records, "subsets")


def claims_of_subsets(records):
    """The paper's remark on independent subsets, by model; paired by seed."""
    for (data, way), kinds in subset_runs(records).items():
        nested, independent = (
            {seed: float(np.log(np.mean(record["swaps"]))) for seed, record in kinds[name].items()}
            for name in SUBSETS
        )
        gain = paired(nested, independent)
        text = f"Section 3, {data}, {way}, tuned steps: nested subsets are crossed more often than"
        low, high = np.exp(gain.interval())
        measured = f"{np.exp(gain.mean):.3g} times ({low:.2g} to {high:.2g}), {gain.n} seeds"
        yield f"{text} independent ones", measured, is_positive(gain)


# -- Figures 2 and 3 -------------------------------------------------------------------------------


def paths(records):
    """Of Figure 2's cells with the paper's steps: draws, seconds, median R-hat."""
    ways = by_row(records).get(FIGURE2, {})
    found = {way: ways.get(("paper", way), {}).get(0) for way in PAPER}
    return {way: np.array(record["path"]).T for way, record in found.items() if record}


def until_agreed(path):
    """Draws and seconds from which on the median R-hat stays below 1.1; none if never."""
    above = np.flatnonzero(path[2] >= 1.1)
    first = above[-1] + 1 if len(above) else 0
    return path[:2, first] if first < path.shape[1] else None


def figure2_picture(records):
    """R-hat over draws and seconds."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    for way, path in paths(records).items():
        color, marker, line = styles.WAYS[way]
        for ax, x in zip(axes, path[:2], strict=True):
            ax.loglog(x, path[2], line, color=color, marker=marker, markersize=3, label=way)
    labels = {"draws per chain": (30, 100, 300), "processor seconds per chain": (1, 3, 10)}
    for ax, (label, ticks) in zip(axes, labels.items(), strict=True):
        ax.axhline(1.1, color="0.6", linestyle="-.", label="1.1: agreed")
        ax.set_xlabel(label)
        ax.set_xticks(ticks, ticks)
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("R-hat, median over parameters")
    axes[0].set_ylim(0.95, 20)
    model, inner, n_parameters, n_rows = FIGURE2
    title = title_of(model, inner, n_parameters, f"{n_rows} rows")
    axes[0].set_title(title, fontsize=10, loc="left")
    axes[1].legend(fontsize=8)
    return figure


def figure3_picture(records):
    """Effective draws per second over the rows; hollow where R-hat is above 1.1."""
    names = [name for name in ROWS if name.startswith("figure3")]
    figure, axes = plt.subplots(2, len(names), figsize=(11, 6.5), layout="constrained")
    found = by_row(records)
    for (i, setting), (j, name) in product(enumerate(("paper", "tuned")), enumerate(names)):
        ax, rows = axes[i, j], [row for row in ROWS[name] if row in found]
        for way in PAPER:
            color, marker, line = styles.WAYS[way]
            cells_of = [(row[3], found[row].get((setting, way))) for row in rows]
            points = [(n, seeds) for n, seeds in cells_of if seeds]
            rates = [
                np.exp(np.mean([np.log(rate(r, "bulk")) for r in s.values()])) for _, s in points
            ]
            ax.loglog([n for n, _ in points], rates, line, color=color)
            ax.plot([], [], line, marker=marker, color=color, label=way)
            for (n, seeds), value in zip(points, rates, strict=True):
                agree = all(map(agrees, seeds.values()))
                ax.plot(n, value, marker, color=color, fillstyle="full" if agree else "none")
        model, inner, n_parameters, _ = ROWS[name][0]
        steps = "the paper's steps" if setting == "paper" else "tuned steps"
        ax.set_title(title_of(model, inner, n_parameters, steps), fontsize=8, loc="left")
        ax.set_xlabel("rows")
        ax.set_xticks([row[3] for row in rows], [row[3] for row in rows])
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_ylim(*whole_decades(ax.get_ylim()))
        ax.grid(alpha=0.3)
    for ax in axes[:, 0]:
        ax.set_ylabel("effective draws per processor second", fontsize=9)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(PAPER), fontsize=9)
    return figure


# -- verdicts --------------------------------------------------------------------------------------


def factor_text(estimate):
    """A mean log ratio, as a factor with its 95 % interval."""
    low, high = np.exp(estimate.interval())
    return f"{np.exp(estimate.mean):.3g} times ({low:.2g} to {high:.2g}), {estimate.n} rows"


def slope(ratios, which):
    """Slope of log ratios on the log of a row's entry, with its standard error."""
    x = np.log([row[which] for row in ratios])
    y = np.array(list(ratios.values()))
    if len(y) < 3:
        return None
    (value, _), covariance = np.polyfit(x, y, 1, cov="unscaled")
    residual = y - np.polyval(np.polyfit(x, y, 1), x)
    error = np.sqrt(covariance[0, 0] * (residual**2).sum() / (len(y) - 2))
    return mean([value])._replace(error=float(error), n=len(y) - 1)


def claims(records):
    """The paper's claims by setting, on ratios of smallest bulk sample sizes per second."""
    ways = ("stt", "spt", "stt re-centred")
    for setting, inner, way in product(("paper", "tuned"), ("hmc", "mh"), ways):
        rows = [r for t in ("table1", "table1_smaller") for r in ROWS[t] if r[1] == inner]
        found = log_ratios(records, rows, setting, way, "none")
        if found:
            gain = mean(found.values())
            text = f"Table 1, {setting} steps, {inner.upper()}: {way} beats its inner sampler"
            yield text, factor_text(gain), is_positive(gain)
    for setting, (one, other) in product(("paper", "tuned"), (("stt", "tt"), ("spt", "pt"))):
        rows = [row for rows in ROWS.values() for row in rows if row[0] == "gp"]
        found = log_ratios(records, rows, setting, one, other)
        if not found:
            continue
        gain = mean(found.values())
        text = f"Process, {setting} steps: {one} beats {other}, its form by powers"
        yield text, factor_text(gain), is_positive(gain)
    for setting, name in product(("paper", "tuned"), ("gaussian", "mh", "hmc")):
        rows = ROWS[f"figure3_{name}"]
        trend = slope(log_ratios(records, rows, setting, "stt", "none"), 3)
        if trend:
            text = f"Figure 3, {data_of(rows[0]).split(' rows')[0].rsplit(' ', 1)[0]}, {setting}"
            text += " steps: the gain of stt grows with the rows"
            yield text, f"exponent of N {trend.text(2)}", is_positive(trend)
    for setting, inner in product(("paper", "tuned"), ("hmc", "mh")):
        rows = [row for row in ROWS["table2"] if row[1] == inner]
        trend = slope(log_ratios(records, rows, setting, "stt", "none"), 2)
        if trend:
            text = (
                f"Table 2, {setting} steps, {inner.upper()}: tempering pays more in more dimensions"
            )
            yield text, f"exponent of the parameters {trend.text(2)}", is_positive(trend)
    yield from claims_of_figure2(records)
    yield from claims_of_subsets(records)
    found = costs(records)
    for model, (one, other) in product(COST_ROWS, (("stt", "tt"), ("spt", "pt"))):
        pairs = [found[model, n] for n in COST_ROWS[model] if (model, n) in found]
        logs = [np.log(cost[other] / cost[one]) for cost in pairs if {one, other} <= cost.keys()]
        if logs:
            text = f"Figure 1, {model}: a draw of {other} costs more than one of {one}"
            yield text, factor_text(mean(logs)), is_positive(mean(logs))


def claims_of_figure2(records):
    """Who agrees first; it is one run each, which decides nothing."""
    found = {way: until_agreed(path) for way, path in paths(records).items()}
    if "none" not in found:
        return
    texts = []
    for way, reached in found.items():
        end = "not in its budget" if reached is None else f"{reached[0]:.0f} ({reached[1]:.1f} s)"
        texts.append(f"{way} {end}")
    yield (
        "Figure 2: stt and tt agree ten times as fast as HMC",
        "draws until the median R-hat is below 1.1: " + ", ".join(texts),
        "undecided",
    )


def tables(records):
    """All tables of the page, by name."""
    return {
        "verdicts": judged(claims(records), records, "sampling", "subsets", "cost"),
        "cost": cost_table(records),
        "subsets": subsets_table(records),
        "regression": regression_table(records),
        "table1": both_settings(records, "table1_smaller", "table1"),
        "table2": both_settings(records, "table2"),
        "figure3": both_settings(records, "figure3_gaussian", "figure3_mh", "figure3_hmc"),
        "pays": pays.pays_table(records),
    }


def pictures(records):
    """All pictures of the page, by name."""
    return {
        "figure1": figure1_picture(records),
        "figure2": figure2_picture(records),
        "figure3": figure3_picture(records),
        "pays": pays.pays_picture(records),
    }
