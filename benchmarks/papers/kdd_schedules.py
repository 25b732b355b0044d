"""KDD Cup 1999: the default fit at full size, schedules at equal time, selections of rows.

    python benchmarks/papers/kdd_schedules.py DATA_FOLDER             # 35 minutes on 2 cores
    python benchmarks/papers/kdd_schedules.py DATA_FOLDER --full      # all rows, about 100 minutes
    python benchmarks/papers/kdd_schedules.py DATA_FOLDER --parts schedules --budgets 1 3

The table is ``kddcup99_10_percent.npz`` in DATA_FOLDER, 494,021 rows. Constant columns are dropped
(39 stay) and columns that are not categorical are log1p plus normal noise of standard deviation
0.01 (raw repeats would make the density unbounded). One chain per fit. Held-out scores are mean log
densities in nats per row of a random 1/8 of the rows (at most 20,000 of them), after training on
the other 7/8; the split and the seed are the chain's own and the same for all schedules.

- *fit*: the default schedule on all rows, and on 7/8 of them, each in a fresh process on one core:
  seconds, clusters, held-out score, peak memory of the whole process, loading included;
- *schedules*: every named schedule stretched or compressed to the same wall-clock budgets
  (``max_time``); the minimum a schedule needs, one pass over the rows, may exceed the least of
  them. Table, csv and a figure;
- *selection*: random, window and stratified selection with the default schedule: held-out score,
  and recall of the attack classes that have less than 0.1 % of all 494,021 rows, the share of a
  class's rows that lie in clusters of which it makes up more than half, after training on all rows
  used.

What does not fit ``--minutes`` is cut, and the cut printed: seconds per run, below half of them
rows too, below an eighth seeds too. Results are written as they come; a rerun with the same options
and output skips what is there, so remove the output folder after a change to the package. The
schedules' part takes a random 60,000 rows unless ``--full`` or ``--rows`` says otherwise.
"""

import argparse
import multiprocessing
import os
import resource
import sys
import time
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skanneal import AnnealedDPMixture
from skanneal.schedules import SCHEDULES

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from harness.kdd_data import FILE, N_ALL, frame, load, split
from harness.ledger import LEAST_TIME, Ledger, overhead, run_all, settings, write

RARE = 0.001
CUT_ROWS = 60_000  # the schedules' part without --full
SELECTIONS = ("random", "window", "stratified")
# Shares of --minutes; the rest is for the default fit at full size, which is not cut.
SHARES = {"schedules": 0.45, "selection": 0.45}


# -- data ------------------------------------------------------------------------------------------


# -- one fit ---------------------------------------------------------------------------------------


def fitted(schedule, X, seed):
    """A model of one chain, and what is told of every fit."""
    # numbers that repeat stay as they are, in all fits that are compared
    model = AnnealedDPMixture(schedule=schedule, rounding=None, n_chains=1, random_state=seed)
    start = time.perf_counter()
    with warnings.catch_warnings():
        # Short budgets do not converge: that is what is shown.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    record = {
        "fit_seconds": time.perf_counter() - start,
        "seconds": float(np.nanmax(model.trace_["seconds"])),
        "sweeps": model.n_sweeps_,
        "clusters": model.n_clusters_,
    }
    return model, record


def held_out(columns, schedule, seed):
    """Fit 7/8 of the rows, score the others."""
    train, test = split(len(next(c for c in columns.values() if isinstance(c, np.ndarray))), seed)
    model, record = fitted(schedule, frame(columns, train), seed)
    return record | {"score": model.score(frame(columns, test)), "test_rows": len(test)}


def recalls(labels, classes, n_classes):
    """Share of each class's rows in clusters of which it makes up more than half; nan if none."""
    counts = np.zeros((labels.max() + 1, n_classes), dtype=np.int64)
    np.add.at(counts, (labels, classes), 1)
    found = np.where(2 * counts > counts.sum(axis=1, keepdims=True), counts, 0).sum(axis=0)
    n_rows = counts.sum(axis=0)
    return np.divide(found, n_rows, out=np.full(n_classes, np.nan), where=n_rows > 0)


# -- results on disk -------------------------------------------------------------------------------


# -- what fits the time ----------------------------------------------------------------------------


def cut(part, options, n_runs, seconds, n_rows, n_seeds):
    """Share of the seconds per run, rows and seeds that fit the part's share of the minutes."""
    if options.minutes is None:
        return 1.0, n_rows, n_seeds
    available = SHARES[part] * 60 * options.minutes * options.jobs
    share = float(np.clip((available / n_runs - overhead(n_rows)) / seconds, LEAST_TIME, 1))
    rows = int(min(1, 2 * share) * n_rows)
    need = n_runs * (share * seconds + overhead(rows))
    seeds = min(n_seeds, max(2, int(n_seeds * available / need)))
    if share < 1:
        print(
            f"Cut to fit {options.minutes:g} minutes: {share:.0%} of the planned seconds per run, "
            f"{rows} of {n_rows} rows, {seeds} of {n_seeds} seeds"
        )
    return share, rows, seeds


# -- the default fit at full size ------------------------------------------------------------------


def measure_in_process(folder, n_rows, what, seed, pipe):
    """Body of a fresh process: one default fit; sends its record through the pipe."""
    columns = load(folder, n_rows)[0]
    if what == "7/8":
        record = held_out(columns, "anneal", seed)
    else:
        X = frame(columns)
        del columns
        record = fitted("anneal", X, seed)[1] | {"score": np.nan, "test_rows": 0}
    usage = resource.getrusage(resource.RUSAGE_SELF)
    pipe.send(record | {"peak_mb": usage.ru_maxrss / 1024, "cpu_seconds": usage.ru_utime})


def run_fit(options, ledgers):
    """Seconds, memory, clusters and held-out score of the default on all rows."""
    n_rows = options.rows or N_ALL
    default = settings(SCHEDULES["anneal"])
    print(f"\nThe default, {default}: {n_rows} rows, one chain, one core", flush=True)
    context, rows = multiprocessing.get_context("spawn"), []
    for what in ("all", "7/8"):
        key = {"rows": n_rows, "settings": default, "trained_on": what, "seed": options.seed}
        if ledgers["fit"].find(**key) is None:
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(
                target=measure_in_process,
                args=(options.data, options.rows, what, options.seed, theirs),
            )
            process.start()
            theirs.close()  # so that a process that dies ends the wait
            record = ours.recv()
            process.join()
            ledgers["fit"].add(key | record)
        found = ledgers["fit"].find(**key)
        rows.append({name: found[name] for name in found if name != "settings"})
    write(rows, options.output / "kdd_fit_table.csv")


# -- schedules at equal time -----------------------------------------------------------------------


def score_task(key, columns, schedule):
    return key, held_out(columns, schedule, key["seed"])


def distinct_schedules():
    """Names of the schedules that differ, and the name under which the default is run."""
    names, default = {}, None
    for name in sorted(SCHEDULES, key=lambda name: name == "anneal"):
        if settings(SCHEDULES[name]) not in names:
            names[settings(SCHEDULES[name])] = name
        if name == "anneal":
            default = names[settings(SCHEDULES[name])]
    return list(names.values()), default


def run_schedules(options, ledgers):
    """Held-out scores of all schedules at equal wall-clock budgets."""
    names, default = distinct_schedules()
    n_rows = options.rows or (N_ALL if options.full else CUT_ROWS)
    budgets = options.budgets or ((15.0, 45.0, 90.0) if options.full else (2.0, 6.0, 18.0))
    print(f"\nSchedules at equal time; the default is {default} {settings(SCHEDULES['anneal'])}")
    n_runs = len(names) * len(budgets) * options.chains
    share, n_rows, n_chains = cut(
        *("schedules", options, n_runs, float(np.mean(budgets)), n_rows, options.chains)
    )
    budgets = [round(share * budget, 2) for budget in budgets]
    columns = load(options.data, n_rows)[0]
    print(f"{n_rows} rows, {n_chains} chains, budgets {budgets} s", flush=True)
    todo = []
    for chain in range(n_chains):  # outermost: an interrupted run has a few chains of everything
        for budget in budgets:
            for name in names:
                schedule = clone(SCHEDULES[name]).set_params(max_time=budget)
                key = {"rows": n_rows, "schedule": name, "budget": budget}
                key |= {"seed": options.seed + chain, "settings": settings(schedule)}
                todo.append((key, (columns, schedule)))
    results = run_all(score_task, todo, ledgers["schedules"], options.jobs)
    rows = [summary(results, name, budget, default) for budget in budgets for name in names]
    print("\nHeld-out mean log density per row; difference to the default over the same splits")
    write(rows, options.output / "kdd_schedules_table.csv")
    for budget in budgets:
        best = max((row for row in rows if row["budget"] == budget), key=lambda row: row["mean"])
        print(f"Best at {budget:g} s: {best['schedule']}, {best['mean']:.3f}")
    plot(results, names, default, options.output / "kdd_schedules.png")


def of(results, name, budget):
    """A schedule's results at a budget, by seed."""
    return {r["seed"]: r for r in results if r["schedule"] == name and r["budget"] == budget}


def spread(values):
    """Standard deviation, or nan of a single value."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else np.nan


def summary(results, name, budget, default):
    """One row of the table: mean and spread of a schedule at a budget over the chains."""
    runs, other = of(results, name, budget), of(results, default, budget)
    scores = [run["score"] for run in runs.values()]
    differences = [run["score"] - other[seed]["score"] for seed, run in runs.items()]
    return {
        "budget": budget,
        "schedule": name,
        "chains": len(scores),
        "seconds": float(np.mean([run["seconds"] for run in runs.values()])),
        "sweeps": float(np.mean([run["sweeps"] for run in runs.values()])),
        "clusters": float(np.mean([run["clusters"] for run in runs.values()])),
        "mean": float(np.mean(scores)),
        "sd": spread(scores),
        "least": min(scores),
        "most": max(scores),
        "less_default": float(np.mean(differences)),
        "error": spread(differences) / len(differences) ** 0.5,
    }


def plot(results, names, default, path):
    """Scores against seconds, as in Figure 3 of the paper: everything, and the best part."""
    budgets = sorted({r["budget"] for r in results})
    means = {
        name: [
            [np.mean([r[field] for r in of(results, name, budget).values()]) for budget in budgets]
            for field in ("seconds", "score")
        ]
        for name in names
    }
    scores = np.array([r["score"] for r in results])
    best = max(max(y) for _, y in means.values())
    # The best part: the better half of the schedules' means, from the least to the most.
    middle = np.median(np.concatenate([y for _, y in means.values()]))
    near = scores[scores >= middle]
    margin = 0.1 * (np.ptp(near) + 1e-3)
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    for ax, reference in zip(axes, (best, 0.0), strict=True):
        for i, name in enumerate(names):
            runs = [r for r in results if r["schedule"] == name]
            line, color = ("-", "black") if name == default else ("--", f"C{i}")
            label = name + (" (default)" if name == default else "")
            aside = 1.02 ** (i - (len(names) - 1) / 2)  # so that dots do not hide each other
            x = [aside * r["seconds"] for r in runs]
            ax.plot(
                x,
                [r["score"] - reference for r in runs],
                "o",
                color=color,
                markersize=4,
                alpha=0.5,
                markeredgewidth=0,
            )
            x, y = means[name]
            ax.plot(aside * np.array(x), np.array(y) - reference, line, color=color, label=label)
        ax.set_xscale("log")
        ax.set_xticks(budgets, [f"{budget:g}" for budget in budgets])
        ax.set_xticks([], minor=True)
        ax.set_xlabel("seconds")
        ax.grid(alpha=0.3)
    axes[0].set_yscale("symlog", linthresh=1.0)
    axes[0].yaxis.set_major_formatter("{x:g}")
    axes[0].axhspan(near.min() - margin - best, near.max() + margin - best, color="0.92", zorder=0)
    axes[0].set_ylabel(f"nats per row above the best mean, {best:.2f}")
    axes[0].set_title(
        "all runs, logarithmic beyond 1 nat; shaded: the right panel", fontsize=11, loc="left"
    )
    axes[1].set_ylim(near.min() - margin, near.max() + margin)
    axes[1].set_ylabel("held-out mean log density per row")
    axes[1].set_title("the best part", fontsize=11, loc="left")
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(names)
    )
    figure.savefig(path, dpi=100)
    plt.close(figure)


# -- selection -------------------------------------------------------------------------------------


def selection_task(key, columns, classes, rare, schedule):
    """Held-out score, or recall of the rare classes after training on all rows."""
    if key["trained_on"] == "7/8":
        return key, held_out(columns, schedule, key["seed"]) | dict.fromkeys(rare, np.nan)
    model, record = fitted(schedule, frame(columns), key["seed"])
    by_class = recalls(model.labels_, classes, 1 + max(*rare.values(), classes.max()))
    record |= {name: float(by_class[code]) for name, code in rare.items()}
    return key, record | {"score": np.nan, "test_rows": 0}


def default_seconds(ledger, n_rows):
    """Seconds of the default on so many rows, from the first part if it was run."""
    found = [
        float(row["fit_seconds"]) / float(row["rows"])
        for row in ledger.rows
        if row["settings"] == settings(SCHEDULES["anneal"]) and row["trained_on"] == "all"
    ]
    # Two at a time are a little slower than one; 90 s is the most the default may take.
    return 1.15 * n_rows * (found[-1] if found else 90 / N_ALL)


def run_selection(options, ledgers):
    """Random, window and stratified selection with the default schedule."""
    print("\nSelection of rows, default schedule")
    n_rows = options.rows or N_ALL
    seconds = default_seconds(ledgers["fit"], n_rows)
    n_runs = 2 * len(SELECTIONS) * options.seeds
    share, n_rows, n_seeds = cut("selection", options, n_runs, seconds, n_rows, options.seeds)
    columns, classes, names, sizes = load(options.data, n_rows)
    rare = {str(names[c]): int(c) for c in np.flatnonzero(sizes < RARE * sizes.sum())}
    present = [name for name, code in rare.items() if (classes == code).any()]
    max_time = round(share * seconds, 1) if share < 1 else None
    limit = "no time limit" if max_time is None else f"{max_time} s each"
    print(f"{n_rows} rows, {n_seeds} seeds, {limit}; {len(present)} of {len(rare)} rare classes")
    ledger = Ledger(
        options.output / "kdd_selection.csv",
        ("rows", "selection", "trained_on", "seed", "settings"),
        (*RECORD, *rare),
    )
    todo = []
    for seed in range(options.seed, options.seed + n_seeds):
        for what in ("all", "7/8"):
            for selection in SELECTIONS:
                schedule = clone(SCHEDULES["anneal"])
                schedule.set_params(selection=selection, max_time=max_time)
                key = {"rows": n_rows, "selection": selection, "trained_on": what}
                key |= {"seed": seed, "settings": settings(schedule)}
                todo.append((key, (columns, classes, rare, schedule)))
    results = run_all(selection_task, todo, ledger, options.jobs)
    print("\nHeld-out mean log density per row, recall of the rare classes (mean over classes)")
    write(
        [selection_summary(results, s, present) for s in SELECTIONS],
        options.output / "kdd_selection_table.csv",
    )
    print("\nRecall by class, mean over seeds")
    rows = [
        {"class": name, "rows": int((classes == rare[name]).sum())}
        | {s: float(np.mean([r[name] for r in chosen(results, s, "all")])) for s in SELECTIONS}
        for name in present
    ]
    if rows:
        write(rows, options.output / "kdd_selection_classes.csv")


def chosen(results, selection, what):
    return [r for r in results if r["selection"] == selection and r["trained_on"] == what]


def selection_summary(results, selection, present):
    """One row of the table: a selection's scores and recalls over the seeds."""
    scores = [r["score"] for r in chosen(results, selection, "7/8")]
    runs = chosen(results, selection, "all")
    recall = [
        float(np.mean([run[name] for name in present])) if present else np.nan for run in runs
    ]
    return {
        "selection": selection,
        "seeds": len(runs),
        "seconds": float(np.mean([run["fit_seconds"] for run in runs])),
        "clusters": float(np.mean([run["clusters"] for run in runs])),
        "score": float(np.mean(scores)),
        "score_sd": spread(scores),
        "recall": float(np.mean(recall)),
        "recall_sd": spread(recall),
        "recall_least": min(recall),
        "recall_most": max(recall),
    }


RECORD = ("score", "test_rows", "seconds", "fit_seconds", "sweeps", "clusters")
PARTS = {"fit": run_fit, "schedules": run_schedules, "selection": run_selection}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help=f"folder with {FILE}")
    parser.add_argument("--output", type=Path, default=Path("build/kdd"))
    parser.add_argument("--full", action="store_true", help="all rows, budgets 15, 45, 90 s")
    parser.add_argument("--minutes", type=float, help="for everything (35; with --full no limit)")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--rows", type=int, help="a random subset of so many, in every part")
    parser.add_argument("--budgets", type=float, nargs="+", help="seconds, for the schedules")
    parser.add_argument("--chains", type=int, default=8, help="per schedule and budget")
    parser.add_argument("--seeds", type=int, default=4, help="per selection")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.minutes is None and not options.full:
        options.minutes = 35.0
    options.output.mkdir(parents=True, exist_ok=True)
    # One core per run, in the processes started from here.
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    ledgers = {
        "fit": Ledger(
            options.output / "kdd_fit.csv",
            ("rows", "settings", "trained_on", "seed"),
            (*RECORD, "cpu_seconds", "peak_mb"),
        ),
        "schedules": Ledger(
            options.output / "kdd_schedules.csv",
            ("rows", "schedule", "budget", "seed", "settings"),
            RECORD,
        ),
    }
    start = time.perf_counter()
    for part in PARTS:  # the fit first: a child's peak memory counts from its parent's
        if part in options.parts:
            PARTS[part](options, ledgers)
    print(f"\n{(time.perf_counter() - start) / 60:.1f} minutes. Tables, figure: {options.output}")


if __name__ == "__main__":
    main()
