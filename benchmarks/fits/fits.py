"""Default fits, fits cut short and other schedules, each against the reference of its problem.

    python benchmarks/fits/fits.py                            # 40 minutes, then cut
    python benchmarks/fits/fits.py --kinds rare --seeds 3 --ways default cut

`references.py` comes first: a problem without a finished reference is passed over. The ways to fit
a problem:

- default: the estimator's defaults;
- cut: a tenth of the sweeps that the default fit of the same seed made;
- more: four times as many, with as many draws, spread over the second half;
- any schedule's name: that schedule with as many sweeps as the default fit made, and as many draws.

The gap is the mean difference of the held-out rows' log densities, reference less fit, with its
standard error over rows; a reference's density is that of as many draws as a default fit has.
Results are lines of `benchmarks/results/problems.jsonl`; a cell that is there is not run again.
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score

from skanneal.schedules import resolve_schedule

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from fits.models import estimator, fitted, labels_compared, n_components
from fits.problems import KINDS
from fits.references import KEYS as REFERENCE_KEYS
from fits.references import MODEL, chosen, command_line, from_steps
from harness.lines import Clock, Lines, Stopwatch, package_commit

KEYS = "commit", *REFERENCE_KEYS, "way"
CUT, MORE = 0.1, 4.0
WAYS = ("default", "cut", "more", "sequential_gibbs", "linear_anneal")


def of_fit(problem, seed, way, reference, default):
    """The record of one fit.

    Parameters
    ----------
    problem : Problem
    seed : int
    way : str
        In WAYS.
    reference : dict
        The problem's.
    default : dict or None
        The record of the default fit; not used by way "default".
    """
    model = estimator(problem, seed)
    if way != "default":
        model.set_params(**of_work(model, way, default["sweeps"], default["draws"]))
    with Stopwatch() as watch:
        fitted(model, problem.train)
    density = model.score_samples(problem.fresh)
    difference = from_steps(reference["log_density"]) - density
    n_fitted = float(np.median(n_components(model)))
    low, high = reference["components"]
    converged = getattr(model, "converged_", None)
    record = {
        "gap": round(float(difference.mean()), 5),
        "error": round(float(difference.std(ddof=1) / np.sqrt(len(difference))), 5),
        "components": n_fitted,
        "inside": low <= n_fitted <= high,
        "converged": None if converged is None else bool(converged),
        "sweeps": round(model.n_sweeps_, 1),
        "draws": len(model.draws_[0]),
        "seconds": watch.seconds,
        "load": watch.load,
    }
    if problem.bayes is not None:
        ari = adjusted_rand_score(problem.bayes, labels_compared(model))
        record["ari"] = round(float(ari), 4)
    if problem.log_density is not None:
        record["to_truth"] = round(float((problem.log_density - density).mean()), 5)
    return record


def of_work(model, way, sweeps, draws):
    """Parameters of a fit of less or more work, or of another schedule with the default fit's.

    Draws after the first take `thin` sweeps each, which count; a fit keeps fewer draws where they
    would take more than half of its sweeps.
    """
    factor = {"cut": CUT, "more": MORE}.get(way)
    total = sweeps * (factor or 1.0)
    thin = round(total / 2 / draws) if way == "more" else model.thin
    n_draws = min(draws, max(1, round(total / 2 / thin)))
    schedule = resolve_schedule(model.schedule if factor else way)
    least = 1 + getattr(schedule, "final_sweeps", 0)
    first = max(total - (n_draws - 1) * thin, least)
    return {"schedule": schedule.set_params(n_sweeps=first), "n_draws": n_draws, "thin": thin}


def main():
    parser = command_line(__doc__.splitlines()[0])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    options = parser.parse_args()
    clock, commit = Clock(options.minutes), package_commit()
    references = Lines(options.results / "references.jsonl", REFERENCE_KEYS)
    lines = Lines(options.results / "problems.jsonl", KEYS)
    for name, seed in chosen(options):
        reference, cell = references.get(MODEL, name, seed), (commit, MODEL, name, seed)
        ways = [way for way in options.ways if lines.get(*cell, way) is None]
        if reference is None or "needs" in reference or not ways:
            continue
        problem = KINDS[name](seed)
        for way in ways:
            if clock.left() <= 0:
                raise SystemExit("The time is over; the same command goes on from here.")
            default = lines.get(*cell, "default")
            if default is None and way != "default":
                raise SystemExit("The other ways are measured by the default fit: name it first.")
            record = of_fit(problem, seed, way, reference, default)
            lines.add(dict(zip(KEYS, (*cell, way))) | record)
            print(
                f"{name} {seed} {way}: gap {record['gap']:.4f}, {record['components']:g} "
                f"components, {record['seconds']:.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
