"""Obermeyer, Glidden and Jonas (AISTATS 2014), section 4: Figure 3 and what stands beside it.

The paper's protocol: a chain is fitted to a random 7/8 of the rows and scores the others (at most
20,000 of them), mean log density in nats per row. The split and the seed are the chain's own and
the same for all schedules. ACS, the American Community Survey, stands in for the Census of 1990;
KDD is the tenth of the log that its authors issued, numbers as ``kdd_data.py`` says. The sampler of
"figure3" is the package's, that of "papers_kernel" and "papers_sweeps" the paper's, as
``schedules_kernel.py`` says. A call of a move from Python costs as much as hundreds of rows, which
the paper's program need not have spent: so "papers_sweeps" compares at equal assignments.
"""

import contextlib
import functools
import itertools
import os
from itertools import product

import matplotlib.pyplot as plt
import numpy as np

from harness import crosscat_data, kdd_data
from harness.crosscat_runs import estimator, fitted, view_labels
from harness.kdd_data import split
from papers.cells import Cell, judged, of_figure, shown
from papers.processor_time import processor_clock
from papers.schedules_kernel import MOVES, papers_kernel
from papers.verdicts import Estimate, deviation, is_positive, mean, paired, z_scores
from skanneal.moves import ColumnSets
from skanneal.schedules import resolve_schedule
from skanneal.states import Subsample, state_from_arrays
from skanneal.summary import expected_vi, relabel

NAME = "schedules"
CHAINS = 8
KERNEL = ("papers_kernel", "papers_sweeps")  # figures with the paper's kernel
CROSSCATS = ("figure3", *KERNEL)  # figures of CrossCatPY by this protocol
PAPERS = ("linear_anneal", "prior_gibbs", "sequential_gibbs")
METHODS = ("anneal", *PAPERS)
OTHERS = (*METHODS, "accelerating_anneal", "energy_anneal")  # of one mixture
# Panel: how it is loaded, rows, processor seconds of the longest runs.
PANELS = {
    "Dartmouth, 307 x 63": (crosscat_data.dartmouth, 307, 6.0),
    "ACS, 10,000 x 35": (crosscat_data.acs, 10_000, 12.0),
    "KDD, 10,000 x 39": (crosscat_data.kdd, 10_000, 12.0),
    "KDD, 100,000 x 39": (crosscat_data.kdd, 100_000, 60.0),
    "ACS, 170,254 x 35": (crosscat_data.acs, 170_254, 60.0),
    "KDD, 494,021 x 39": (crosscat_data.kdd, 494_021, 90.0),
}
MIXTURE = "KDD, 60,000 x 39, one mixture"
MIXTURE_ROWS, MIXTURE_SECONDS = 60_000, 9.0
KDD = list(PANELS)[-1]
NAMED = "stratified, by class"  # strata are KDD's classes; else a sketch of the rows finds them
SELECTIONS, SELECTION_SECONDS, RARE = ("random", "window", "stratified", NAMED), 30.0, 0.001
CENSUS_ROWS, CENSUS_TEST = (100_000, 1_000_000), 20_000
SHARES = (1 / 9, 1 / 3, 1)  # of a panel's seconds
SWEEPS, MOST_SWEPT = (5, 20), 10_000  # budgets of "papers_sweeps", rows of its largest panels
SIZES = (10, 30, 100, 300, 1000, 3000, 10_000)  # rows, for the acceptance of sets of columns
PROPOSALS = 1000
STYLES = {
    "anneal": ("black", "o", "-"),
    "linear_anneal": ("tab:orange", "s", "--"),
    "prior_gibbs": ("tab:blue", "^", ":"),
    "sequential_gibbs": ("tab:green", "v", "-."),
    "accelerating_anneal": ("0.5", "D", "--"),
    "energy_anneal": ("tab:red", "x", ":"),
}
OURS = "anneal, the package's kernel"
STYLES[OURS] = STYLES["anneal"]


def cells():
    """Small tables first; chains outermost, so that a cut run has some of everything."""
    for names in (list(PANELS)[:1], list(PANELS)[1:3]):
        yield from cells_of_panels(names)
    for name, chain, size in product(list(PANELS)[:3], range(4), SIZES):
        if size <= PANELS[name][1]:
            yield Cell("column_sets", name, f"{size} rows", chain)
    for chain, share, method in product(range(CHAINS), SHARES, OTHERS):
        yield Cell("mixture", MIXTURE, method, chain, round(share * MIXTURE_SECONDS, 2))
    for chain, selection in product(range(CHAINS), SELECTIONS):
        yield Cell("selection", KDD, selection, chain, SELECTION_SECONDS)
    yield from (Cell("census", f"{n:,} x 68, simulated", "anneal") for n in CENSUS_ROWS)
    yield from cells_of_panels(list(PANELS)[3:])


def cells_of_panels(names):
    """Each with the package's kernel and with the paper's."""
    for chain, name in product(range(CHAINS), names):
        for share, (figure, methods) in product(
            SHARES, (("figure3", METHODS), (KERNEL[0], PAPERS))
        ):
            for method in methods:
                yield Cell(figure, name, method, chain, budget_of(name, share))
        sweeps = SWEEPS if PANELS[name][1] <= MOST_SWEPT else ()
        for n_sweeps, method in product(sweeps, PAPERS):
            yield Cell(KERNEL[1], name, method, chain, n_sweeps)


def budget_of(panel, share):
    """Processor seconds."""
    return round(share * PANELS[panel][2], 2)


def cost(cell, typical):
    """Processor seconds of a cell that was not measured, loading and scoring included."""
    if cell.figure == KERNEL[1]:
        return typical
    return cell.budget + 2 if cell.budget else typical


# -- measuring -------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1)
def table_of(panel):
    """The rows of a panel."""
    load, n_rows, _ = PANELS.get(panel, (crosscat_data.kdd, MIXTURE_ROWS, None))
    return load(os.environ["SKANNEAL_DATA"], n_rows)


def measure(cell):
    """By the figure."""
    if cell.figure == "column_sets":
        return measure_column_sets(cell.data, int(cell.method.split()[0]), cell.seed)
    if cell.figure == "census":
        return measure_census(int(cell.data.split()[0].replace(",", "")), cell.seed)
    table = table_of(cell.data)
    train, test = split(len(table), cell.seed)
    name = "CrossCatPY" if cell.figure in CROSSCATS else "AnnealedDPMixture"
    is_papers = cell.figure in KERNEL
    is_selection = cell.figure == "selection"
    schedule = resolve_schedule("anneal" if is_selection else cell.method)
    schedule.set_params(**{"n_sweeps" if cell.figure == KERNEL[1] else "max_time": cell.budget})
    strata = {"strata": classes_of(train)} if cell.method == NAMED else {}
    if is_selection:
        schedule.set_params(selection=cell.method.split(",")[0])
    model = estimator(name, schedule=schedule, n_chains=1, n_jobs=1, random_state=cell.seed)
    if is_papers:
        model.set_params(moves=MOVES)
    with processor_clock(), papers_kernel(schedule) if is_papers else contextlib.nullcontext():
        record = fitted(model, table.iloc[train], **strata)
    found = {
        "score": float(model.score(table.iloc[test])),
        "chain_seconds": float(np.nanmax(model.trace_["seconds"])),
        "sweeps": float(record["sweeps"]),
    }
    if is_selection:
        return found | {"rare_recall": rare_recall(model.component_labels_, train)}
    return found | {"views": views_of(model, table.shape[1])}


def views_of(model, n_columns):
    """Each column's view in the last draw; one view for a single mixture."""
    draw = model.draws_[0][-1]
    views = view_labels(draw) if hasattr(draw, "view_labels") else np.zeros(n_columns, dtype=int)
    return relabel(views).tolist()


def classes_of(rows):
    """The classes of rows of KDD's whole table."""
    return kdd_data.load(os.environ["SKANNEAL_DATA"])[1][rows]


def rare_recall(components, rows):
    """Mean over KDD's classes of less than 0.1 % of the rows: the share of a class's rows that lie
    in components of which it makes up more than half."""
    _, classes, names, sizes = kdd_data.load(os.environ["SKANNEAL_DATA"])
    counts = np.zeros((components.max() + 1, len(names)), dtype=np.int64)
    np.add.at(counts, (components, classes[rows]), 1)
    found = np.where(2 * counts > counts.sum(axis=1, keepdims=True), counts, 0).sum(axis=0)
    shown = (sizes < RARE * sizes.sum()) & (counts.sum(axis=0) > 0)
    return float((found[shown] / counts.sum(axis=0)[shown]).mean())


def measure_census(n_rows, seed):
    """A default fit of simulated rows like those of the Census of 1990, beside the truth."""
    table, truth = crosscat_data.census_like(n_rows + CENSUS_TEST, seed)
    train, test = table.iloc[:n_rows], table.iloc[n_rows:]
    model = estimator("CrossCatPY", n_chains=1, n_jobs=1, random_state=seed)
    with processor_clock():
        record = fitted(model, train)
    return {
        "score": float(model.score(test)),
        "truth": float(truth.log_density(test).mean()),
        "fit_seconds": float(record["cpu_seconds"]),
        "vi_to_truth": float(expected_vi(np.array(views_of(model, 68)), [truth.view_of])),
    }


def measure_column_sets(panel, n_rows, seed):
    """How many proposals of new sets of columns are accepted after a default fit of some rows."""
    table = table_of(panel)
    rows = np.sort(np.random.default_rng([seed, 2]).permutation(len(table))[:n_rows])
    X = table.iloc[rows]
    model = estimator("CrossCatPY", n_chains=1, n_jobs=1, random_state=seed)
    fitted(model, X)
    return propose_column_sets(model, X, seed, PROPOSALS)


def propose_column_sets(model, X, seed, n_proposals):
    """Proposals of new sets of columns given the last draw of a fit to X, and those accepted."""
    encoded = model._encoder.table(model._encoder.encode(model, X))
    bit_generator = np.random.PCG64(seed)
    subsample = Subsample(len(X), "window", bit_generator)
    subsample.fill()
    state = state_from_arrays(model.draws_[0][-1].arrays, encoded, subsample)
    grids = model.hyperparameter_grids_
    pairs = np.meshgrid(grids["concentration"], grids["discount"], indexing="ij")
    move = ColumnSets(np.stack([values.ravel() for values in pairs], axis=1))
    proposed = accepted = 0
    while proposed < n_proposals:
        info = move.sweep(state, bit_generator)
        proposed += info.proposed
        accepted += info.accepted
    return {"proposed": int(proposed), "accepted": int(accepted)}


# -- scores ----------------------------------------------------------------------------------------


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


# -- verdicts --------------------------------------------------------------------------------------


def over_budgets(values):
    """Mean over budgets, of numbers or of dicts of seed to number: budgets share their splits."""
    values = list(values)
    if not isinstance(values[0], dict):
        return float(np.mean(values))
    shared = set.intersection(*(set(of) for of in values))
    return {seed: float(np.mean([of[seed] for of in values])) for seed in shared}


def claims(records):
    """The paper's claims, panel by panel; those on spreads have panels as their units."""
    spreads, gaps, found = [], [], disagreements(records)
    for panel, budgets in runs_of(records).items():
        budget, methods = list(budgets.items())[-1]
        for ours, other in product(("linear_anneal", "anneal"), PAPERS[1:]):
            if {ours, other} <= methods.keys():
                gain = paired(scores(methods[ours]), scores(methods[other]))
                text = f"{panel}, {budget:g} s: `{ours}` beats `{other}`"
                yield text, f"{gain.text(3)} nats per row", is_positive(gain)
        whole = {
            budget: methods
            for budget, methods in budgets.items()
            if all(len(methods.get(method, {})) > 2 for method in PAPERS)
        }
        if not whole:
            continue
        prior, sequential = (
            over_budgets(scores(methods[name]) for methods in whole.values()) for name in PAPERS[1:]
        )
        lead = paired(prior, sequential)
        text = (
            f"{panel}, mean over budgets: sequential initialisation is no better than the prior's"
        )
        yield text, f"worse by {lead.text(3)} nats per row", is_positive(lead)
        sds = [[deviation(scores(m[name]).values()) for name in PAPERS[:2]] for m in whole.values()]
        spreads.append(over_budgets(np.log(prior / ours) for ours, prior in sds))
        views = [[found[panel, budget, name].mean for name in PAPERS[:2]] for budget in whole]
        gaps.append(over_budgets(prior - ours for ours, prior in views))
    if spreads:
        less, closer = mean(spreads), mean(gaps)
        text = "`linear_anneal` has a lower spread of scores than `prior_gibbs`"
        measured = f"`prior_gibbs` {np.exp(less.mean):.2f} times as much, {less.n} panels"
        yield text, measured, is_positive(less)
        text = "`linear_anneal`'s chains agree more on the views than `prior_gibbs`'s"
        measured = f"variation of information lower by {closer.text(2)} nats, {closer.n} panels"
        yield text, measured, is_positive(closer)
    for panel, sizes in acceptances(records).items():
        few, many = min(sizes), max(sizes)
        fall = paired(dict(enumerate(sizes[few])), dict(enumerate(sizes[many])))
        text = f"{panel}: fewer sets of columns are accepted of {many:,} rows than of {few}"
        yield text, f"{100 * fall.mean:.1f} ± {100 * fall.error:.1f} per cent", is_positive(fall)


def claims_of_papers_kernel(records):
    """With the paper's kernel: one schedule against another, panel by panel and in all."""
    for figure, equal in zip(KERNEL, ("seconds", "sweeps"), strict=True):
        runs = runs_of(records, figure)
        for ours, other in itertools.combinations(PAPERS, 2):
            found = {panel: z_gain(budgets, ours, other) for panel, budgets in runs.items()}
            found = {panel: gain for panel, gain in found.items() if gain}
            if len(found) > 1:
                found[f"all {len(found)} data sets"] = over_panels(found.values())
            for panel, gain in found.items():
                text = f"equal {equal}, {panel}: `{ours}` beats `{other}`"
                yield text, f"z-score higher by {gain.text(2)}", is_positive(gain)
    yield from claims_of_set_lengths(records)
    for panel, budgets in with_ours(records).items():
        budget, methods = list(budgets.items())[-1]
        if {OURS, PAPERS[0]} <= methods.keys():
            gain = paired(scores(methods[OURS]), scores(methods[PAPERS[0]]))
            text = f"{panel}, {budget:g} seconds: the package's `anneal` beats the paper's"
            yield text, f"{gain.text(2)} nats per row", is_positive(gain)


def claims_of_set_lengths(records):
    """Annealing of a set length against cold chains with a time limit: the budgets of sweeps whose
    chains take about as long."""
    limited = runs_of(records, KERNEL[0])
    for panel, budgets in runs_of(records, KERNEL[1]).items():
        for (n_sweeps, methods), other in product(budgets.items(), PAPERS[1:]):
            annealed = methods.get(PAPERS[0], {})
            took = mean(scores(annealed, "chain_seconds").values())
            for of in limited.get(panel, {}).values():
                cold = of.get(other, {})
                seconds = mean(scores(cold, "chain_seconds").values())
                if cold and took.mean / 2 < seconds.mean < 2 * took.mean:
                    gain = paired(scores(annealed), scores(cold))
                    text = f"{panel}: {n_sweeps:g} sweeps of `{PAPERS[0]}` in {took.text(1)} s "
                    text += f"beat `{other}` in {seconds.mean:.1f} s"
                    yield text, f"{gain.text(2)} nats per row", is_positive(gain)


def z_gain(budgets, *both):
    """What one schedule gains over another in z-scores, mean over budgets; None if not known."""
    z = z_of(budgets)
    of_budgets = [
        {method: {seed: z[budget, method, seed] for seed in methods[method]} for method in both}
        for budget, methods in budgets.items()
        if set(both) <= methods.keys()
    ]
    if not of_budgets:
        return None
    return paired(*(over_budgets(of[method] for of in of_budgets) for method in both))


def over_panels(estimates):
    """Mean over data sets, whose errors are independent: of these data sets, not of others."""
    estimates = list(estimates)
    average = float(np.mean([estimate.mean for estimate in estimates]))
    error = float(np.sqrt(np.sum([e.error**2 for e in estimates])) / len(estimates))
    return Estimate(average, error, min(e.n for e in estimates))


def tables(records):
    """All tables of the pages, by name."""
    return {
        "verdicts": judged(claims(records), records, "figure3", "column_sets"),
        "figure3": scores_table(records, "figure3"),
        "papers_kernel": scores_table(records, KERNEL[0], PAPERS[0]),
        "papers_sweeps": scores_table(records, KERNEL[1], PAPERS[0], "sweeps"),
        "papers_verdicts": judged(claims_of_papers_kernel(records), records, *KERNEL, "figure3"),
        "mixture": scores_table(records, "mixture"),
        "consistency": consistency_table(records),
        "column_sets": column_sets_table(records),
        "selection": selection_table(records),
        "census": census_table(records),
    }


def pictures(records):
    """All pictures of the pages, by name."""
    found = {"figure3": runs_of(records), "papers_kernel": with_ours(records)}
    drawn = {name: scores_picture(panels) for name, panels in found.items() if panels}
    return drawn | ({"gains": gains_picture(records)} if found["figure3"] else {})
