"""Reference runs: what the posterior says of a problem, from long chains that agree.

    python benchmarks/fits/references.py                              # 40 minutes, then cut
    python benchmarks/fits/references.py --kinds rare levels --seeds 3 --minutes 120
    python benchmarks/fits/references.py --data DATA_FOLDER           # more real tables
    python benchmarks/fits/references.py --times 20                   # shorter chains

For each problem five chains begin at the true components (a real table's classes), at one
component, at many random ones, after one sequential sweep, and at the end of a default chain.
Together they make 50 times as many assignments as a default fit. A third is burn-in; then 100 draws
are kept of each chain, or more if a fit has more than all of them together.

A reference is resolved if each chain's held-out log density is within 0.003 nats per row of the
chains' mean, and the intervals of the number of components (10 to 90 %) have a number in common.
What is kept is the log density of each held-out row under as many draws as a default fit has,
averaged over groups of so many, each with draws of all chains.

Results are lines of `benchmarks/results/references.jsonl`. A reference says what the posterior is,
whatever reached it: a finished one of the same MODEL is not run again, though samplers may have
changed since. Where the time that is left would not do, the line says how many seconds are needed.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from scipy.special import logsumexp

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from fits.models import (
    all_draws,
    chains,
    draw_log_densities,
    estimator,
    fitted,
    n_components,
    run_on,
)
from fits.problems import KINDS
from fits.real_tables import read_from
from harness.lines import RESULTS, Clock, Lines, Stopwatch, package_commit

KEYS = "model", "kind", "seed"
# Of the posterior that references are of: one more whenever a prior, a family's likelihood or the
# encoding of a problem changes.
MODEL = 3
TIMES = 50  # the work of a default fit
TOLERANCE = 0.003  # nats per row
N_DRAWS = 100  # per chain, at least
BURN_IN = 1 / 3
STEP = 1e-4  # nats to which densities of rows are written
SEED = 1_000_000  # references share no random numbers with the fits, whose seeds are small


def reference(problem, seed, clock, times):
    """The record of a problem's reference, or how many seconds it needs if time is short."""
    with Stopwatch() as watch:
        default = fitted(estimator(problem, SEED + 10 * seed), problem.train)
    needed = times * watch.seconds
    if needed > clock.left():
        return {"needs": round(needed)}
    n_wanted = len(all_draws(default))
    with Stopwatch() as watch:
        models = chains(problem, SEED + 10 * seed, default)
        n_draws = max(N_DRAWS, -(-n_wanted // len(models)))
        n_sweeps = times * default.n_chains * default.n_sweeps_ / len(models)
        burn_in = max(1, round(BURN_IN * n_sweeps))
        thin = max(1, round((1 - BURN_IN) * n_sweeps / n_draws))
        densities, numbers = {}, {}
        for name, model in models.items():
            run_on(model, problem.train, 1, burn_in)
            run_on(model, problem.train, n_draws, thin)
            densities[name] = draw_log_densities(model, problem.fresh)
            numbers[name] = n_components(model)
    return {
        "n_rows": len(problem.train),
        "n_columns": problem.train.shape[1],
        "times": times,
        "n_draws": n_wanted,
        "n_sweeps": burn_in + thin * n_draws,
        **agreement(densities, numbers),
        "log_density": in_steps(of_equal_draws(list(densities.values()), n_wanted)),
        "seconds": watch.seconds,
        "load": watch.load,
    }


def agreement(densities, numbers):
    """What each start says, whether they agree, and the pooled interval of components.

    Parameters
    ----------
    densities : dict of str to array of shape (n_draws, n_fresh)
        By the name of the start.
    numbers : dict of str to int array of shape (n_draws,)
        Components of each draw.
    """
    scores = {name: float(log_mean(values).mean()) for name, values in densities.items()}
    mean = np.mean(list(scores.values()))
    intervals = {name: interval(values, 0.1) for name, values in numbers.items()}
    lows, highs = zip(*intervals.values())
    agree = max(abs(score - mean) for score in scores.values()) <= TOLERANCE
    return {
        "starts": {
            name: {"score": round(scores[name], 5), "components": intervals[name]}
            for name in scores
        },
        "resolved": bool(agree and max(lows) <= min(highs)),
        "components": interval(np.concatenate(list(numbers.values())), 0.025),
    }


def interval(values, tail):
    """Bounds between which all but a share `tail` on either side lies, as drawn values."""
    low = np.quantile(values, tail, method="lower")
    return [int(low), int(np.quantile(values, 1 - tail, method="higher"))]


def log_mean(log_densities):
    """Log of the mean density over draws: (n_fresh,)."""
    return logsumexp(log_densities, axis=0) - np.log(len(log_densities))


def of_equal_draws(densities, n_draws):
    """Log density of each row under `n_draws` draws of all chains, averaged over such groups.

    Parameters
    ----------
    densities : list of array of shape (n_draws_of_chain, n_fresh)
        One per chain.
    n_draws : int
        At most all draws.
    """
    in_turn = np.stack(densities, axis=1).reshape(-1, densities[0].shape[1])
    groups = in_turn[: len(in_turn) // n_draws * n_draws].reshape(-1, n_draws, in_turn.shape[1])
    return np.mean([log_mean(group) for group in groups], axis=0)


def in_steps(values):
    """Whole numbers of STEP, which take few characters."""
    return np.rint(values / STEP).astype(int).tolist()


def from_steps(numbers):
    """What `in_steps` wrote."""
    return np.array(numbers) * STEP


def chosen(options):
    """(kind, seed) of a command line: all kinds of one seed before the next seed."""
    if options.data:
        read_from(options.data)
    unknown = set(options.kinds) - set(KINDS)
    if unknown:
        raise SystemExit(f"no such kind: {sorted(unknown)}; there are {sorted(KINDS)}")
    names = options.kinds or list(KINDS)
    return [(name, seed) for seed in range(options.seeds) for name in names]


def command_line(description):
    """The options that references and fits share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--kinds", nargs="+", default=[], help="all of them by default")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=40, help="begin nothing that takes longer")
    parser.add_argument("--data", type=Path, help="a folder of data sets, for more real tables")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the lines")
    return parser


def main():
    parser = command_line(__doc__.splitlines()[0])
    parser.add_argument("--times", type=float, default=TIMES, help="the work of a default fit")
    options = parser.parse_args()
    clock, lines = Clock(options.minutes), Lines(options.results / "references.jsonl", KEYS)
    for name, seed in chosen(options):
        before = lines.get(MODEL, name, seed)
        if clock.left() <= 0 or (before and before.get("needs", 0) <= 0):
            continue
        if before and before["needs"] > clock.left():
            continue
        record = reference(KINDS[name](seed), seed, clock, options.times)
        cell = {"model": MODEL, "commit": package_commit(), "kind": name, "seed": seed}
        lines.add(cell | record)
        if "needs" in record:
            print(f"{name} {seed}: left out, needs {record['needs']} s", flush=True)
        else:
            verdict = "resolved" if record["resolved"] else "unresolved"
            print(f"{name} {seed}: {verdict} in {record['seconds']:.0f} s", flush=True)


if __name__ == "__main__":
    main()
