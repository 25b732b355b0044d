"""What chains of different schedules score, and how far their views agree: tables and pictures."""

import matplotlib.pyplot as plt
import numpy as np

from papers import styles
from papers.cells import of_figure, shown
from papers.schedules_cells import METHODS, MIXTURE, PANELS, PAPERS, SIZES
from papers.verdicts import Estimate, deviation, mean, paired, z_scores
from skanneal.summary import expected_vi

OURS = "anneal, the package's kernel"
STYLES = styles.SCHEDULES | {OURS: styles.SCHEDULES["anneal"]}


def runs_of(records, figure="figure3"):
    """Panel to budget to method to seed to record."""
    found = {}
    for cell, record in of_figure(records, figure).items():
        of_panel = found.setdefault(cell.data, {})
        of_panel.setdefault(cell.budget, {}).setdefault(cell.method, {})[cell.seed] = record
    return {name: dict(sorted(found[name].items())) for name in (*PANELS, MIXTURE) if name in found}


def scores(seeds, name="score"):
    """Seed to the score."""
    return {seed: record[name] for seed, record in seeds.items()}


def scores_table(records, figure, ours="anneal", unit="seconds"):
    """Raw scores, z-scores over a panel's runs, and what `ours` gains on the same splits."""
    rows = []
    for panel, budgets in runs_of(records, figure).items():
        z = z_of(budgets)
        for budget, methods in budgets.items():
            for method in (name for name in STYLES if name in methods):
                seeds = methods[method]
                values = list(scores(seeds).values())
                standard = mean(z[budget, method, seed] for seed in seeds)
                gain = paired(scores(methods.get(ours, {})), scores(seeds))
                sweeps = np.mean([record["sweeps"] for record in seeds.values()])
                rows.append(
                    (
                        panel,
                        f"{budget:g}",
                        f"`{method}`",
                        str(len(seeds)),
                        f"{np.mean(values):.3f}",
                        f"{deviation(values):.3f}",
                        standard.text(2),
                        f"{sweeps:.0f}",
                        "" if method == ours else gain.text(3),
                    )
                )
    headings = (
        *("data", unit, "schedule", "chains", "score", "sd", "z-score", "sweeps made"),
        f"`{ours}` gains",
    )
    return shown(headings, rows, records, figure)


def z_of(budgets):
    """(budget, method, seed) to the z-score over all runs of a panel."""
    return z_scores(
        {
            (budget, method, seed): record["score"]
            for budget, methods in budgets.items()
            for method, seeds in methods.items()
            for seed, record in seeds.items()
        }
    )


def with_ours(records):
    """The runs with the paper's kernel, and those of the default on the same splits."""
    found, ours = runs_of(records, "papers_kernel"), runs_of(records)
    for panel, budgets in found.items():
        for budget, methods in budgets.items():
            default = ours.get(panel, {}).get(budget, {}).get("anneal")
            if default:
                methods[OURS] = default
    return found


def scores_picture(panels):
    """Scores of chains as dots, their means as lines: raw, as in the paper but not shifted."""
    n_lines = -(-max(1, len(panels)) // 3)
    size = 4.2 * min(3, max(1, len(panels))), 3.5 * n_lines + 0.5
    drawn, axes = plt.subplots(n_lines, min(3, max(1, len(panels))), figsize=size, squeeze=False)
    drawn.set_layout_engine("constrained")
    for ax in axes.flat[len(panels) :]:
        ax.set_axis_off()
    for ax, (panel, budgets) in zip(axes.flat, panels.items(), strict=False):
        names = [name for name in STYLES if any(name in of for of in budgets.values())]
        for i, method in enumerate(names):
            color, marker, line = STYLES[method]
            at = {b: scores(methods[method]) for b, methods in budgets.items() if method in methods}
            aside = 1.04 ** (i - (len(names) - 1) / 2)  # dots do not hide each other
            for budget, values in at.items():
                where = [aside * budget] * len(values)
                ax.plot(where, list(values.values()), marker, color=color, markersize=4, alpha=0.5)
            means = [np.mean(list(values.values())) for values in at.values()]
            ax.plot([aside * b for b in at], means, line, color=color)
            ax.plot([], [], line, marker=marker, color=color, label=method)
        ax.set_title(panel, fontsize=10, loc="left")
        ax.set_xscale("log")
        ax.set_xticks(list(budgets), [f"{budget:g}" for budget in budgets])
        ax.set_xticks([], minor=True)
        ax.set_xlabel("processor seconds")
        ax.set_ylabel("held-out log density, nats per row", fontsize=9)
        ax.grid(alpha=0.3)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=2)
    return drawn


def gains_picture(records):
    """What the default gains over each cold start, by the sweeps for which that start had time."""
    runs, by_rows = runs_of(records), sorted(PANELS, key=lambda name: -PANELS[name][1])
    drawn, axes = plt.subplots(1, 2, figsize=(9.5, 3.8), sharey=True, layout="constrained")
    for ax, other in zip(axes, PAPERS[1:], strict=True):
        for (panel, budgets), marker in zip(runs.items(), "osD^v*", strict=False):
            points = [
                (
                    np.mean([record["sweeps"] for record in methods[other].values()]),
                    paired(scores(methods["anneal"]), scores(methods[other])),
                )
                for methods in budgets.values()
                if {"anneal", other} <= methods.keys()
            ]
            if not points:
                continue
            sweeps = [sweeps for sweeps, _ in points]
            heights, errors = [gain.mean for _, gain in points], [gain.error for _, gain in points]
            shade = f"{0.75 * by_rows.index(panel) / (len(PANELS) - 1):.2f}"
            ax.errorbar(
                sweeps, heights, errors, fmt=f"{marker}-", color=shade, label=panel, linewidth=1
            )
        ax.axhline(0, color="black", linewidth=0.8)
        ax.set_xscale("log")
        ax.set_yscale("symlog", linthresh=0.3)
        ax.set_yticks([-3, -1, 0, 1, 3, 10], ["-3", "-1", "0", "1", "3", "10"])
        ax.set_xlabel(f"sweeps that {other} made in the time")
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("annealing gains, nats per row")
    drawn.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return drawn


# -- consistency of views --------------------------------------------------------------------------


def disagreement(partitions):
    """Mean variation of information over pairs of chains, its error by leaving chains out."""

    def average(chosen):
        pairs = [(a, b) for i, a in enumerate(chosen) for b in chosen[i + 1 :]]
        return float(np.mean([expected_vi(np.array(a), [np.array(b)]) for a, b in pairs]))

    n = len(partitions)
    if n < 3:
        return Estimate(average(partitions), np.nan, 1) if n == 2 else None
    left_out = [average(partitions[:i] + partitions[i + 1 :]) for i in range(n)]
    error = np.sqrt((n - 1) / n * np.sum((left_out - np.mean(left_out)) ** 2))
    return Estimate(average(partitions), float(error), n)


def disagreements(records):
    """Panel, budget, method to the disagreement of its chains."""
    return {
        (panel, budget, method): disagreement([record["views"] for record in seeds.values()])
        for panel, budgets in runs_of(records).items()
        for budget, methods in budgets.items()
        for method, seeds in methods.items()
    }


def consistency_table(records):
    """Variation of information, in nats."""
    found, rows = disagreements(records), []
    for panel, budget in dict.fromkeys((panel, budget) for panel, budget, _ in found):
        of_methods = [found.get((panel, budget, method)) for method in METHODS]
        rows.append((panel, f"{budget:g}", *(e.text(2) if e else "" for e in of_methods)))
    headings = "data", "seconds", *(f"`{method}`" for method in METHODS)
    return shown(headings, rows, records, "figure3")


# -- sets of columns -------------------------------------------------------------------------------


def acceptances(records):
    """Panel to rows to the shares of accepted proposals, one per fit."""
    found = {}
    for cell, record in of_figure(records, "column_sets").items():
        of_panel = found.setdefault(cell.data, {})
        shares = of_panel.setdefault(int(cell.method.split()[0]), [])
        shares.append(record["accepted"] / record["proposed"])
    return found


def selection_table(records):
    """Held-out scores and recall of rare classes, by which rows enter."""
    found = {}
    for cell, record in of_figure(records, "selection").items():
        found.setdefault(cell.method, []).append(record)
    rows = [
        (
            f"`{selection}`",
            str(len(runs)),
            mean(run["score"] for run in runs).text(3),
            mean(run["rare_recall"] for run in runs).text(3),
        )
        for selection, runs in found.items()
    ]
    headings = "selection", "chains", "held-out", "recall of rare classes"
    return shown(headings, rows, records, "selection")


def census_table(records):
    """Large simulated tables."""
    rows = [
        (
            cell.data,
            *(f"{record[name]:.3f}" for name in ("score", "truth", "vi_to_truth")),
            f"{record['fit_seconds']:.0f}",
        )
        for cell, record in of_figure(records, "census").items()
    ]
    headings = "rows", "held-out", "truth", "variation of information to the true views", "seconds"
    return shown(headings, rows, records, "census")


def column_sets_table(records):
    """Acceptance by the size of the subsample."""
    rows = [
        (panel, *(f"{100 * np.mean(sizes[n]):.2f}" if n in sizes else "" for n in SIZES))
        for panel, sizes in acceptances(records).items()
    ]
    headings = "accepted, per cent", *(f"{n:,} rows" for n in SIZES)
    return shown(headings, rows, records, "column_sets")
