"""CrossCatPY under several schedules at equal time: the subsample-annealing paper's Figure 3.

    python benchmarks/papers/crosscat_schedules.py DATA_FOLDER         # 40 minutes on 2 cores
    python benchmarks/papers/crosscat_schedules.py DATA_FOLDER --full  # the whole grid, 4 hours
    python benchmarks/papers/crosscat_schedules.py DATA_FOLDER --parts schedules --data-sets acs

The paper's protocol: a chain trains on a random 7/8 of the rows and scores the others (at most
20,000 of them), mean log density in nats per row. One core per chain; the split and the seed are
the chain's own and the same for all schedules. Data: Dartmouth (307 x 63), ACS (10,000 and 170,254
x 35), KDD (10,000, 100,000 and 494,021 x 39, prepared as in `kdd_data.py`).

- *schedules*: the default, linear annealing, prior + Gibbs and sequential + Gibbs, each stretched
  or compressed to the same wall-clock budgets (``max_time``; the minimum a schedule needs, one pass
  over the rows, may exceed the least of them). Scores differ most between splits, so beside the
  mean score and its standard deviation over the chains stands the gap to the best run on the same
  split, with its own. Consistency: variation of information in nats between the partitions of the
  columns into views, the mean over all pairs of chains. Tables, csv and figures;
- *acceptance*: of the proposal of new feature sets (Metropolis-Hastings), on default fits of
  subsets of growing size;
- *census*: the default fit of 10^6 x 68 simulated census-like rows (100,000 without ``--full``) in
  a fresh process: seconds, peak memory, held-out score beside the true one, views found.

What does not fit ``--minutes`` is cut, and the cut printed: seconds per run, below half of them
rows too, below an eighth chains too. Results are written as they come; a rerun with the same
options and output skips what is there, so remove the output folder after a change to the package.
"""

import argparse
import os
import string
import sys
import time
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from skanneal.families import Table
from skanneal.schedules import SCHEDULES, resolve_schedule
from skanneal.states import Subsample, state_from_arrays
from skanneal.summary import expected_vi, relabel

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from harness import crosscat_data
from harness.crosscat_runs import estimator, fitted, in_fresh_process, mean_vi, spread, view_labels
from harness.kdd_data import frame, split
from harness.ledger import LEAST_TIME, Ledger, overhead, run_all, settings, write

DEFAULT = "anneal"
NAMES = (DEFAULT, "linear_anneal", "prior_gibbs", "sequential_gibbs")
BUDGETS = (1 / 9, 1 / 3, 1.0)  # of a data set's seconds
SHARES = {"schedules": 0.8, "acceptance": 0.1}  # of --minutes; the rest is the census's
SIZES = (10, 30, 100, 300, 1000, 3000, 10_000)  # rows, for the acceptance
ACCEPTANCE_DATA = ("dartmouth", "acs_10000", "kdd_10000")
CENSUS_ROWS, CENSUS_CUT, CENSUS_TEST = 1_000_000, 100_000, 20_000
LETTERS = string.ascii_letters + string.digits + "+-"


class Data(NamedTuple):
    """A data set, its rows and the seconds of the longest runs."""

    name: str
    load: object
    n_rows: int
    seconds: float


DATA = {
    data.name: data
    for data in (
        Data("dartmouth", crosscat_data.dartmouth, 307, 6.0),
        Data("acs_10000", crosscat_data.acs, 10_000, 12.0),
        Data("acs_170254", crosscat_data.acs, 170_254, 90.0),
        Data("kdd_10000", crosscat_data.kdd, 10_000, 12.0),
        Data("kdd_100000", crosscat_data.kdd, 100_000, 60.0),
        Data("kdd_494021", crosscat_data.kdd, 494_021, 300.0),
    )
}


def columns_of(table):
    """Columns as arrays, which workers can share: floats, or codes and levels."""
    return {
        name: (column.cat.codes.to_numpy(), np.asarray(column.cat.categories))
        if column.dtype == "category"
        else column.to_numpy()
        for name, column in table.items()
    }


def n_rows_of(columns):
    first = next(iter(columns.values()))
    return len(first[0] if isinstance(first, tuple) else first)


def as_text(partition):
    """A partition of a few columns as a word: "AABA"."""
    return "".join(LETTERS[label] for label in relabel(partition))


def as_partition(text):
    return np.unique(list(text), return_inverse=True)[1]


def views_of(model, n_columns):
    """Views of the columns in the last draw; one view for a single mixture."""
    draw = model.draws_[0][-1]
    return view_labels(draw) if hasattr(draw, "view_labels") else np.zeros(n_columns, dtype=int)


# -- what fits the time ----------------------------------------------------------------------------


class Plan(NamedTuple):
    """What is run of a data set."""

    data: Data
    n_rows: int
    budgets: tuple
    n_chains: int

    @property
    def cost(self):
        """Seconds of one core."""
        seconds = sum(budget + overhead(self.n_rows) for budget in self.budgets)
        return len(NAMES) * self.n_chains * seconds


def whole_plan(data, options):
    budgets = options.budgets or [share * data.seconds for share in BUDGETS]
    n_rows = min(data.n_rows, options.rows or data.n_rows)
    return Plan(data, n_rows, tuple(round(budget, 2) for budget in budgets), options.chains)


def cut(plan, available):
    """The plan with fewer seconds, then rows, then chains, so that it takes what is available."""
    runs = len(NAMES) * len(plan.budgets) * plan.n_chains
    seconds = (available / runs - overhead(plan.n_rows)) / np.mean(plan.budgets)
    share = float(np.clip(seconds, LEAST_TIME, 1))
    n_rows = int(min(1, 2 * share) * plan.n_rows)
    budgets = tuple(round(share * budget, 2) for budget in plan.budgets)
    less = plan._replace(n_rows=n_rows, budgets=budgets)
    n_chains = min(plan.n_chains, max(2, int(plan.n_chains * available / less.cost)))
    print(
        f"{plan.data.name}: cut to fit: {share:.0%} of the planned seconds per run, {n_rows} of "
        f"{plan.n_rows} rows, {n_chains} of {plan.n_chains} chains"
    )
    return less._replace(n_chains=n_chains)


def plans(options):
    """A plan for each data set; those that need less than their share leave it to the others."""
    wanted = sorted(
        (whole_plan(DATA[name], options) for name in options.data_sets), key=lambda p: p.cost
    )
    if options.minutes is None:
        return wanted
    left, out = SHARES["schedules"] * 60 * options.minutes * options.jobs, []
    for i, plan in enumerate(wanted):
        available = left / (len(wanted) - i)
        out.append(plan if plan.cost <= available else cut(plan, available))
        left -= out[-1].cost
    return out


# -- schedules at equal time -----------------------------------------------------------------------


def score_task(key, columns, schedule, name):
    """Fit 7/8 of the rows in one chain, score the others."""
    train, test = split(n_rows_of(columns), key["seed"])
    model = estimator(name, schedule=schedule, n_chains=1, n_jobs=1, random_state=key["seed"])
    record = fitted(model, frame(columns, train))
    return key, {
        "score": model.score(frame(columns, test)),
        "test_rows": len(test),
        "seconds": float(np.nanmax(model.trace_["seconds"])),
        "fit_seconds": record["seconds"],
        "sweeps": record["sweeps"],
        "views": record["views"],
        "view_of": as_text(views_of(model, len(columns))),
    }


def run_schedules(options, ledgers):
    """Held-out scores and view partitions of the schedules at equal wall-clock budgets."""
    print(f"\nSchedules at equal time; the default is {settings(SCHEDULES[DEFAULT])}")
    results, rows = [], []
    for plan in plans(options):
        columns = columns_of(plan.data.load(options.data, plan.n_rows))
        print(
            f"\n{plan.data.name}: {plan.n_rows} rows, {plan.n_chains} chains, budgets "
            f"{list(plan.budgets)} s",
            flush=True,
        )
        todo = []
        for chain in range(plan.n_chains):  # outermost: an interrupted run has some of everything
            for budget in plan.budgets:
                for name in NAMES:
                    schedule = resolve_schedule(name).set_params(max_time=budget)
                    key = {"data": plan.data.name, "rows": plan.n_rows, "schedule": name}
                    key |= {"budget": budget, "seed": options.seed + chain}
                    key |= {"estimator": options.estimator, "settings": settings(schedule)}
                    todo.append((key, (columns, schedule, options.estimator)))
        done = run_all(score_task, todo, ledgers["schedules"], options.jobs)
        results.append((plan, done))
        rows += [summary(done, name, budget) for budget in plan.budgets for name in NAMES]
    print(
        "\nHeld-out mean log density per row; gap to the best run on the same split; difference to "
        "the default; variation of information between chains' views"
    )
    write(rows, options.output / "crosscat_schedules_table.csv")
    for plan, _ in results:
        for budget in plan.budgets:
            say_who_wins(plan.data.name, budget, rows)
    plot_scores(results, options.output / "crosscat_schedules.png")
    plot_consistency(results, rows, options.output / "crosscat_consistency.png")


def of(results, name, budget):
    """A schedule's results at a budget, by seed."""
    return {r["seed"]: r for r in results if r["schedule"] == name and r["budget"] == budget}


def best_by_seed(results):
    """The best score of any run on each seed's split."""
    best = {}
    for r in results:
        best[r["seed"]] = max(r["score"], best.get(r["seed"], -np.inf))
    return best


def summary(results, name, budget):
    """One row of the table: a schedule at a budget over the chains of a data set."""
    runs, other = of(results, name, budget), of(results, DEFAULT, budget)
    best = best_by_seed(results)
    scores = [run["score"] for run in runs.values()]
    gaps = [best[seed] - run["score"] for seed, run in runs.items()]
    differences = [run["score"] - other[seed]["score"] for seed, run in runs.items()]
    vi, vi_sd = mean_vi([as_partition(run["view_of"]) for run in runs.values()])
    first = next(iter(runs.values()))
    return {
        "data": first["data"],
        "rows": int(first["rows"]),
        "budget": budget,
        "schedule": name,
        "chains": len(scores),
        "seconds": float(np.mean([run["seconds"] for run in runs.values()])),
        "sweeps": float(np.mean([run["sweeps"] for run in runs.values()])),
        "views": float(np.mean([run["views"] for run in runs.values()])),
        "mean": float(np.mean(scores)),
        "sd": spread(scores),
        "gap": float(np.mean(gaps)),
        "gap_sd": spread(gaps),
        "less_default": float(np.mean(differences)),
        "error": spread(differences) / len(differences) ** 0.5,
        "vi": vi,
        "vi_sd": vi_sd,
    }


def say_who_wins(data, budget, rows):
    """Print whom the default beats in the mean, in spread and in consistency."""
    rows = {row["schedule"]: row for row in rows if row["data"] == data and row["budget"] == budget}
    ours = rows.pop(DEFAULT)
    parts = []
    for what, measure in (("gap", "mean"), ("gap_sd", "spread"), ("vi", "consistency")):
        beaten = [name for name, row in rows.items() if ours[what] < row[what]]
        parts.append(f"in {measure} {', '.join(beaten) or 'none'}")
    print(f"{data}, {budget:g} s: the default beats {'; '.join(parts)}")


def panels(results):
    """A figure with a panel per data set."""
    n_columns = min(3, len(results))
    n_lines = -(-len(results) // n_columns)
    figure, axes = plt.subplots(
        n_lines,
        n_columns,
        figsize=(4.2 * n_columns, 3.4 * n_lines + 0.4),
        layout="constrained",
        squeeze=False,
    )
    for ax in axes.flat[len(results) :]:
        ax.set_axis_off()
    for ax, (plan, _) in zip(axes.flat, results):
        ax.set_title(f"{plan.data.name}, {plan.n_rows:,} rows", fontsize=11, loc="left")
        ax.set_xscale("log")
        ax.set_xticks(plan.budgets, [f"{budget:g}" for budget in plan.budgets])
        ax.set_xticks([], minor=True)
        ax.set_xlabel("seconds")
        ax.grid(alpha=0.3)
    return figure, axes.flat


def finish(figure, ax, path):
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(NAMES))
    figure.savefig(path, dpi=100)
    plt.close(figure)


def style(i, name):
    return (
        {"color": "black", "linestyle": "-"}
        if name == DEFAULT
        else {
            "color": f"C{i}",
            "linestyle": "--",
        }
    )


def plot_scores(results, path):
    """Held-out scores against seconds, a dot per chain and a line through the means."""
    figure, axes = panels(results)
    for ax, (plan, done) in zip(axes, results):
        best = best_by_seed(done)
        for i, name in enumerate(NAMES):
            look = style(i, name)
            aside = 1.03 ** (i - (len(NAMES) - 1) / 2)  # so that dots do not hide each other
            x, y = [], []
            for budget in plan.budgets:
                runs = of(done, name, budget)
                at = [aside * run["seconds"] for run in runs.values()]
                gaps = [run["score"] - best[seed] for seed, run in runs.items()]
                ax.plot(at, gaps, "o", color=look["color"], markersize=4, alpha=0.5, mew=0)
                x.append(np.mean(at))
                y.append(np.mean(gaps))
            ax.plot(x, y, label=name + (" (default)" if name == DEFAULT else ""), **look)
        ax.set_yscale("symlog", linthresh=0.1)
        ax.yaxis.set_major_formatter("{x:g}")
    axes[0].set_ylabel("held-out nats per row,\nless the split's best run")
    finish(figure, axes[0], path)


def plot_consistency(results, rows, path):
    """Variation of information between the chains' views against seconds."""
    figure, axes = panels(results)
    for ax, (plan, _) in zip(axes, results):
        for i, name in enumerate(NAMES):
            own = [r for r in rows if r["data"] == plan.data.name and r["schedule"] == name]
            ax.errorbar(
                [r["seconds"] for r in own],
                [r["vi"] for r in own],
                [r["vi_sd"] for r in own],
                label=name + (" (default)" if name == DEFAULT else ""),
                capsize=3,
                **style(i, name),
            )
    axes[0].set_ylabel("variation of information\nbetween chains' views, nats")
    finish(figure, axes[0], path)


# -- acceptance of new feature sets ----------------------------------------------------------------


def acceptance_task(key, columns, n_proposals):
    """Share of proposals accepted, from a default fit of key["size"] rows on."""
    from skanneal.moves import ColumnSets

    rng = np.random.default_rng([key["seed"], 2])
    rows = np.sort(rng.permutation(n_rows_of(columns))[: key["size"]])
    X = frame(columns, rows)
    model = estimator("CrossCatPY", n_chains=1, n_jobs=1, random_state=key["seed"])
    fitted(model, X)
    table = Table(*model._encoder.table_schema)
    table.append(model._encoder.encode(model, X))
    bit_generator = np.random.PCG64(key["seed"])
    subsample = Subsample(len(rows), "window", bit_generator)
    subsample.fill()
    state = state_from_arrays(model.draws_[0][-1].arrays, table, subsample)
    grids = model.hyperparameter_grids_
    pairs = np.meshgrid(grids["concentration"], grids["discount"], indexing="ij")
    move = ColumnSets(np.stack([values.ravel() for values in pairs], axis=1))
    proposed = accepted = 0
    start = time.perf_counter()
    while proposed < n_proposals:
        info = move.sweep(state, bit_generator)
        proposed += info.proposed
        accepted += info.accepted
    seconds = time.perf_counter() - start
    return key, {
        "proposed": proposed,
        "accepted": accepted,
        "ms": 1e3 * seconds / proposed,
        "views": state.n_views,
    }


def run_acceptance(options, ledgers):
    """Acceptance of the feature-set proposal against the number of rows."""
    n_proposals, n_seeds = (10_000, 8) if options.full else (1000, 4)
    print(f"\nAcceptance of new feature sets, {n_proposals} proposals x {n_seeds} fits per size")
    if not options.full:
        print("Cut: 1000 of 10000 proposals, 4 of 8 fits per size")
    todo = []
    for name in options.data_sets:
        if name not in ACCEPTANCE_DATA:
            continue
        columns = columns_of(DATA[name].load(options.data, DATA[name].n_rows))
        for size in (size for size in SIZES if size <= n_rows_of(columns)):
            for seed in range(options.seed, options.seed + n_seeds):
                key = {"data": name, "size": size, "seed": seed, "proposals": n_proposals}
                todo.append((key, (columns, n_proposals)))
    results = run_all(acceptance_task, todo, ledgers["acceptance"], options.jobs)
    rows = []
    for name, size in dict.fromkeys((r["data"], int(r["size"])) for r in results):
        runs = [r for r in results if r["data"] == name and r["size"] == size]
        shares = [r["accepted"] / r["proposed"] for r in runs]
        rows.append(
            {
                "data": name,
                "rows": size,
                "fits": len(runs),
                "accepted": float(np.mean(shares)),
                "least": min(shares),
                "most": max(shares),
                "ms_per_proposal": float(np.mean([r["ms"] for r in runs])),
                "views": float(np.mean([r["views"] for r in runs])),
            }
        )
    if rows:
        print("\nShare of proposals that changed the views")
        write(rows, options.output / "crosscat_acceptance_table.csv")


# -- simulated census ------------------------------------------------------------------------------


def census_fit(n_rows, seed, name):
    """One default fit of census-like rows; what is told of it."""
    table, truth = crosscat_data.census_like(n_rows + CENSUS_TEST, seed)
    train, test = table.iloc[:n_rows], table.iloc[n_rows:]
    model = estimator(name, n_chains=1, n_jobs=1, random_state=seed)
    record = fitted(model, train)
    found = views_of(model, table.shape[1])
    return {
        "seconds": record["seconds"],
        "cpu_seconds": record["cpu_seconds"],
        "sweeps": record["sweeps"],
        "score": model.score(test),
        "truth": float(truth.log_density(test).mean()),
        "views": record["views"],
        "vi_to_truth": expected_vi(found, [truth.view_of]),
        "data_mb": float(table.memory_usage().sum() / 1e6),
    }


def run_census(options, ledgers):
    """Time and memory of a large fit, and how near it comes to the truth."""
    n_rows = options.rows or (CENSUS_ROWS if options.full else CENSUS_CUT)
    print(f"\nCensus-like, {n_rows} x 68, 8 views, one chain, one core, a fresh process")
    if n_rows < CENSUS_ROWS:
        print(f"Cut: {n_rows} of {CENSUS_ROWS} rows")
    rows = []
    for seed in range(options.seed, options.seed + options.census_seeds):
        key = {"rows": n_rows, "seed": seed, "estimator": options.estimator}
        key["settings"] = settings(SCHEDULES[DEFAULT])
        if ledgers["census"].find(**key) is None:
            record = in_fresh_process(census_fit, n_rows, seed, options.estimator)
            ledgers["census"].add(key | record)
        found = ledgers["census"].find(**key)
        rows.append({name: found[name] for name in found if name not in ("settings", "estimator")})
    write(rows, options.output / "crosscat_census_table.csv")


PARTS = {"census": run_census, "schedules": run_schedules, "acceptance": run_acceptance}


def ledgers_in(folder):
    """The csv files of the results, which grow as they come."""
    return {
        "schedules": Ledger(
            folder / "crosscat_schedules.csv",
            ("data", "rows", "schedule", "budget", "seed", "estimator", "settings"),
            ("score", "test_rows", "seconds", "fit_seconds", "sweeps", "views", "view_of"),
        ),
        "acceptance": Ledger(
            folder / "crosscat_acceptance.csv",
            ("data", "size", "seed", "proposals"),
            ("proposed", "accepted", "ms", "views"),
        ),
        "census": Ledger(
            folder / "crosscat_census.csv",
            ("rows", "seed", "estimator", "settings"),
            (
                *("seconds", "cpu_seconds", "sweeps", "score", "truth", "views", "vi_to_truth"),
                *("data_mb", "start_mb", "peak_mb"),
            ),
        ),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with the data sets")
    parser.add_argument("--output", type=Path, default=Path("build/crosscat"))
    parser.add_argument("--full", action="store_true", help="all rows, seconds and chains")
    parser.add_argument("--minutes", type=float, help="for everything (40; with --full no limit)")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--data-sets", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--rows", type=int, help="at most so many, in every part")
    parser.add_argument("--budgets", type=float, nargs="+", help="seconds, for the schedules")
    parser.add_argument("--chains", type=int, default=8, help="per schedule and budget")
    parser.add_argument("--census-seeds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--estimator", default="CrossCatPY", help="or AnnealedDPMixture")
    options = parser.parse_args()
    if options.minutes is None and not options.full:
        options.minutes = 40.0
    options.output.mkdir(parents=True, exist_ok=True)
    # One core per run, in the processes started from here.
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    ledgers = ledgers_in(options.output)
    start = time.perf_counter()
    for part in PARTS:  # the census first: a child's peak memory counts from its parent's
        if part in options.parts:
            PARTS[part](options, ledgers)
    print(f"\n{(time.perf_counter() - start) / 60:.1f} minutes. Tables, figures: {options.output}")


if __name__ == "__main__":
    main()
