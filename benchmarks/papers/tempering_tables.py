"""Tables 1 and 2, Figures 2 and 3 of "Tempering by subsampling": effective draws per second.

    python benchmarks/papers/tempering_tables.py          # 40 minutes
    python benchmarks/papers/tempering_tables.py --full   # 5 seeds, ten times the seconds: hours
    python benchmarks/papers/tempering_tables.py --quick  # a minute: small sizes, to try it out
    python benchmarks/papers/tempering_tables.py --parts gp_hmc figure2 --seeds 2
    python benchmarks/papers/tempering_tables.py --parts gp_hmc --methods none stt --seeds 1

Van de Meent, Paige and Wood (2014). Parts:

- *gp_hmc*, *gp_mh* (Table 1): Gaussian process of 512 rows, 5 to 25 (MH: 20) parameters;
- *gaussian_hmc*, *gaussian_mh* (Table 2): normal mean, 5 to 100 parameters, 1024 rows with HMC
  and 256 with MH;
- *rows_gaussian*, *rows_gp_mh*, *rows_gp_hmc* (Figure 3): 50, 20 and 15 parameters over the rows;
- *figure2*: R-hat over samples and seconds, Gaussian process of 512 rows and 20 parameters.

Each cell gets the same seconds per chain, half of them warm-up, 4 chains. "tuned": step sizes and
units found in warm-up, for the same acceptance in every method. "paper": the paper's fixed steps
(0.1 beta^-1/2; 0.01 with 10 and 5 leapfrog steps), its starting points and no level-0 update
between passes. Beyond the paper, tuned: "none x4" trajectories four times as long, "spt e/o" even
and odd swaps in turns, "spt res." subsets resampled, "stt ad." and "spt ad." ladders adapted to
equal rejection, "stt rec." one re-centred level of an eighth of the rows, whose updates cost so
little that they are twice as long (random walk: twenty steps in place of one); "stt rec. 0" the
same without updates of the target's level between the passes.

A figure is the smallest bulk effective sample size over parameters per second of drawing, the
seconds of all chains added up; in brackets the paper's estimator, median over parameters. The mean
over seeds of the logarithms is taken. A star: R-hat above 1.1 for some parameter in some seed. "STT
wins" compares STT with its inner sampler; then the best variant, with the better of "none" and
"none x4".

A Gaussian process of 512 rows gets four times the seconds of one of 256 or fewer, one of 1024 rows
sixteen times, a normal mean half of them. What does not fit ``--minutes`` is cut, and the cut
printed: seconds per chain first; then rows of the Gaussian process's tables; below half a second
seeds too. Chains of few seconds say nothing of 10 parameters and more, where a star stands: run one
part alone. Cells go to ``--figures`` as csv, beside Figures 2 and 3.
"""

import argparse
import csv
import os
import sys
import time
import warnings
from pathlib import Path
from typing import NamedTuple

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from skanneal.schedules import GeometricLadder
from skanneal.summary import r_hat
from skanneal.tempering import sample

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from papers.tempering_models import paper_sampler, paper_starts, target, tuned_sampler

N_CHAINS = 4
FULL_SECONDS, FULL_SEEDS = 8.0, 5  # per chain of 256 rows
LEAST_SECONDS = 0.5
ADAPTED = GeometricLadder(adapt=True)
RECENTRED = GeometricLadder(n_levels=2, recentre=True)
LONGER = {"none x4": {"hmc": 4, "mh": 4}}
LONGER |= dict.fromkeys(("stt rec.", "stt rec. 0"), {"hmc": 2, "mh": 20})
VARIANTS = {
    "none": {"method": "none"},
    "none x4": {"method": "none"},
    "stt": {"method": "stt"},
    "tt": {"method": "tt"},
    "spt": {"method": "spt"},
    "pt": {"method": "pt"},
    "spt e/o": {"method": "spt", "swaps": "even_odd"},
    "spt res.": {"method": "spt", "resample": True},
    "spt ad.": {"method": "spt", "schedule": ADAPTED},
    "stt ad.": {"method": "stt", "schedule": ADAPTED},
    "stt rec.": {"method": "stt", "schedule": RECENTRED},
    "stt rec. 0": {"method": "stt", "schedule": RECENTRED, "n_base_moves": 0},
}
PAPER_VARIANTS = ("none", "stt", "tt", "spt", "pt")


class Row(NamedTuple):
    model: str
    inner: str
    n_parameters: int
    n_rows: int


PARTS = {
    "gp_hmc": [Row("gp", "hmc", d, 512) for d in (5, 10, 15, 20, 25)],
    "gp_mh": [Row("gp", "mh", d, 512) for d in (5, 10, 15, 20)],
    "gaussian_hmc": [Row("gaussian", "hmc", d, 1024) for d in (5, 10, 50, 100)],
    "gaussian_mh": [Row("gaussian", "mh", d, 256) for d in (5, 10, 50, 100)],
    "rows_gaussian": [Row("gaussian", "hmc", 50, n) for n in (64, 128, 256, 512, 1024, 2048)],
    "rows_gp_mh": [Row("gp", "mh", 20, n) for n in (64, 128, 256, 512, 1024)],
    "rows_gp_hmc": [Row("gp", "hmc", 15, n) for n in (64, 128, 256, 512, 1024)],
}
QUICK = {
    "gp_hmc": [Row("gp", "hmc", 5, 64)],
    "gaussian_mh": [Row("gaussian", "mh", 5, 256)],
    "rows_gaussian": [Row("gaussian", "hmc", 50, n) for n in (64, 256)],
}


FIGURE2 = Row("gp", "hmc", 20, 512)


def kept(part, row):
    """Whether a row is run where time is cut."""
    if row.model != "gp":
        return True
    return row.n_rows <= 512 and (not part.startswith("gp_") or row.n_parameters in (5, 20))


def share(row):
    """Of the seconds per chain: what an evaluation costs grows with the rows."""
    return max(1.0, (row.n_rows / 256) ** 2) if row.model == "gp" else 0.5


def options_of(row, setting, name):
    """What `sample` is called with, but for seconds and seed."""
    out = dict(VARIANTS[name])
    if setting == "tuned":
        longer = LONGER.get(name, {}).get(row.inner, 1)
        return out | {"inner": tuned_sampler(row.model, row.inner, longer)}
    return out | {
        "inner": paper_sampler(row.model, row.inner),
        "metric": "unit",
        "n_base_moves": 0,
        "init": paper_starts(row.model, row.n_parameters, N_CHAINS),
    }


def run(row, setting, name, seconds, seed, jobs, warm_up=True):
    """The result of one cell and seed."""
    most = 20_000 if row.n_parameters >= 50 else 50_000  # diagnostics take time too
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return sample(
            target(row.model, row.n_parameters, row.n_rows),
            **options_of(row, setting, name),
            n_chains=N_CHAINS,
            n_draws=most,
            n_warmup=most if warm_up else 0,
            max_time=seconds if warm_up else seconds / 2,
            n_jobs=jobs,
            random_state=seed,
        )


def measure(row, setting, name, seconds, seeds, jobs):
    """Effective draws per second by two estimators, and the worst R-hat."""
    bulk, paper, worst, n_draws = [], [], 0.0, []
    for seed in range(seeds):
        try:
            result = run(row, setting, name, seconds, seed, jobs)
        except ValueError as error:  # not one draw in the time given
            if "too short" not in str(error):
                raise
            return {"bulk": np.nan, "paper": np.nan, "r_hat": np.nan, "draws": 0}
        spent = result.seconds.sum()
        bulk.append(np.min(np.nan_to_num(result.ess_bulk, nan=1.0)) / spent)
        paper.append(np.median(np.nan_to_num(result.ess_paper, nan=1.0)) / spent)
        worst = max(worst, np.max(np.nan_to_num(result.r_hat, nan=np.inf)))
        n_draws.append(result.draws.shape[1])
    return {
        "bulk": float(np.exp(np.mean(np.log(bulk)))),
        "paper": float(np.exp(np.mean(np.log(paper)))),
        "r_hat": float(worst),
        "draws": int(np.mean(n_draws)),
    }


def table(rows, settings, methods, seconds, seeds, jobs, write):
    """Measure and print one table; returns the bulk figures by row and variant."""
    out = {}
    for setting in settings:
        names = methods if setting == "tuned" else PAPER_VARIANTS
        print(f"\n{setting} steps, {rows[0].model}, {rows[0].inner}")
        print(
            f"{'params':>6} {'rows':>5}" + "".join(f"{name:>20}" for name in names) + "  STT wins"
        )
        for row in rows:
            own = seconds * share(row)
            cells = {name: measure(row, setting, name, own, seeds, jobs) for name in names}
            line = f"{row.n_parameters:6d} {row.n_rows:5d}"
            for name in names:
                cell = cells[name]
                out[setting, row, name] = cell["bulk"]
                star = "" if cell["r_hat"] <= 1.1 else "*"
                text = f"{cell['bulk']:.3g}{star} ({cell['paper']:.2g})"
                line += f"{text:>20}"
                write(
                    (setting, *row, name, cell["bulk"], cell["paper"], cell["r_hat"], cell["draws"])
                )
            ratio = cells["stt"]["bulk"] / cells["none"]["bulk"]
            plain = [name for name in names if name.startswith("none")]
            figure = {name: np.nan_to_num(cells[name]["bulk"]) for name in names}
            best = max((name for name in names if name not in plain), key=figure.get)
            gain = figure[best] / max(figure[name] for name in plain)
            print(
                f"{line}  {'yes' if ratio > 1 else 'no'} ({ratio:.2f}x; best {best} {gain:.2f}x)",
                flush=True,
            )
    return out


def figure2(seconds, jobs, folder):
    """Median R-hat of the second half, over samples and over seconds, from the paper's starts."""
    row = FIGURE2
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), sharey=True, layout="constrained")
    print("\nFigure 2: seconds (samples) until the median R-hat of the later half is below 1.1")
    for name in PAPER_VARIANTS:
        result = run(row, "paper", name, seconds, 0, jobs, warm_up=False)
        n = result.draws.shape[1]
        stops = np.unique(np.geomspace(8, n, 30).astype(int)) if n >= 8 else np.array([n])
        medians = np.array(
            [
                np.median(
                    [r_hat(column) for column in np.moveaxis(result.draws[:, k // 2 : k], -1, 0)]
                )
                for k in stops
            ]
        )
        per_draw = result.seconds.mean() / n
        axes[0].loglog(stops, medians, label=name)
        axes[1].loglog(stops * per_draw, medians, label=name)
        reached = stops[medians < 1.1]
        text = f"{reached[0] * per_draw:.2f} ({reached[0]})" if len(reached) else "not in the time"
        print(f"  {name:5} {text}", flush=True)
    for axis, label in zip(axes, ("samples", "seconds")):
        axis.axhline(1.1, color="0.6", linestyle="--")
        axis.set_xlabel(label)
        axis.tick_params(axis="x", which="minor", labelbottom=False)  # they overlap
    axes[0].set_ylabel("median R-hat")
    axes[1].legend()
    figure.savefig(folder / "tempering_figure2.png", dpi=150)


def figure3(measured, parts, folder):
    """Effective draws per second over the rows."""
    parts = [part for part in parts if part.startswith("rows_")]
    if not parts:
        return
    figure, axes = plt.subplots(1, len(parts), figsize=(4 * len(parts), 3.5), layout="constrained")
    for axis, part in zip(np.atleast_1d(axes), parts):
        cells = measured[part]
        rows = sorted({row for setting, row, name in cells}, key=lambda row: row.n_rows)
        for name in [name for name in PAPER_VARIANTS if ("tuned", rows[0], name) in cells]:
            values = [cells["tuned", row, name] for row in rows]
            axis.loglog([row.n_rows for row in rows], values, marker="o", label=name)
        axis.set_title(f"{rows[0].model}, {rows[0].inner}, {rows[0].n_parameters} parameters")
        axis.set_xlabel("rows")
        axis.set_xticks([row.n_rows for row in rows], [row.n_rows for row in rows])
        axis.minorticks_off()
    np.atleast_1d(axes)[0].set_ylabel("minimum bulk ESS per second")
    np.atleast_1d(axes)[0].legend()
    figure.savefig(folder / "tempering_figure3.png", dpi=150)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", choices=[*PARTS, "figure2"])
    parser.add_argument("--minutes", type=float, default=40.0)
    parser.add_argument("--seeds", type=int, default=FULL_SEEDS)
    parser.add_argument("--methods", nargs="+", choices=VARIANTS, help="tuned ones only")
    parser.add_argument("--parameters", nargs="+", type=int, help="of the tables' rows, kept all")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--figures", type=Path, default=Path("."))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--full", action="store_true")
    options = parser.parse_args()
    if options.methods and not {"none", "stt"} <= set(options.methods):
        parser.error("--methods needs 'none' and 'stt', which are compared")
    began = time.perf_counter()
    rows_of = QUICK if options.quick else PARTS
    parts = options.parts or [*rows_of, *(() if options.quick else ("figure2",))]
    methods = options.methods or list(VARIANTS)
    settings = ("tuned",) if options.methods else ("tuned", "paper")
    seconds, seeds = FULL_SECONDS, options.seeds
    if options.parameters:
        wanted = set(options.parameters)
        rows_of = {
            part: [row for row in rows if row.n_parameters in wanted]
            for part, rows in rows_of.items()
        }
    if not options.full:
        minutes = 1.0 if options.quick else options.minutes
        if not options.parameters:
            rows_of = {part: [r for r in rows if kept(part, r)] for part, rows in rows_of.items()}
        rows = [row for part in parts for row in rows_of.get(part, ())]
        n_methods = len(methods) + len(PAPER_VARIANTS) * ("paper" in settings)
        shares = sum(share(row) for row in rows) * n_methods
        shares += 2 * share(FIGURE2) * len(PAPER_VARIANTS) * ("figure2" in parts)
        rounds = -(-N_CHAINS // options.jobs)  # chains one after another
        fits = 0.8 * 60 * minutes / (shares * rounds)  # a fifth for data and diagnostics
        seeds = int(np.clip(fits / LEAST_SECONDS, 1, options.seeds))
        seconds = min(FULL_SECONDS, fits / seeds)
        print(
            f"Cut to {minutes:g} minutes: {seconds:.2f} s per chain of 256 rows in place of "
            f"{FULL_SECONDS:g}, of the Gaussian process of 512 rows "
            f"{options.parameters or '5 and 20'} parameters, none of 1024 rows, {seeds} of "
            f"{options.seeds} seeds (--full for all)."
        )
    options.figures.mkdir(parents=True, exist_ok=True)
    measured = {}
    with open(options.figures / "tempering_tables.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            ("steps", *Row._fields, "method", "bulk_per_s", "paper_per_s", "r_hat", "draws")
        )
        for part in parts:
            if part in rows_of:
                measured[part] = table(
                    rows_of[part],
                    settings,
                    methods,
                    seconds,
                    seeds,
                    options.jobs,
                    writer.writerow,
                )
                file.flush()
    if "figure2" in parts:
        figure2(2 * seconds * share(FIGURE2) * seeds, options.jobs, options.figures)
    figure3(measured, parts, options.figures)
    print(f"\n{time.perf_counter() - began:.0f} s in all")


if __name__ == "__main__":
    main()
