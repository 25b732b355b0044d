"""Cost of a tempered sample relative to the inner sampler's: predicted beside measured.

    python benchmarks/papers/tempering_cost.py             # about 18 minutes, one core
    python benchmarks/papers/tempering_cost.py --quick     # two sizes of each model
    python benchmarks/papers/tempering_cost.py --full      # three times the repetitions

Figure 1 of van de Meent, Paige and Wood (2014): run time per sample over the rows, normal mean of
50 parameters and Gaussian process of 20, Hamiltonian inner sampler (10 and 5 leapfrog steps),
ladder 2^(-m/2), m = 0 .. 6. Random-walk Metropolis stands beside it. Steps are small and fixed,
so that nearly all moves are accepted and every method does the same work per update.

Predicted, with s(a) = sum_m beta_m^a and a cost of an evaluation that grows as rows^a:

    subsampled parallel tempering     s(a)                eq. (15)
    subsampled tempered transitions   2 s(a) - 2 + 1      eq. (16) corrected: levels 1 .. M twice,
                                                          and one update at level 0 per pass
    parallel tempering                M + 1               eq. (17) corrected
    tempered transitions              2 M + 1             eq. (18) corrected, the same update added

"a = 1" (or 3) is the paper's exponent. "levels" takes each level's share from the measured time of
the inner sampler on as many rows, which is what the formula says without an exponent. What is left
over: the evaluations that swaps and passes add (1 - beta_*^a of an evaluation), and one gradient
per update where a level of other rows is entered; the inner sampler alone keeps its gradient.

The paper measured 3.51, 5.65, 7.48 and 12.94 (normal mean), 1.73, 2.35, 6.03 and 9.19 (process).
"""

import argparse
import os
import sys
import time
from pathlib import Path

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import numpy as np

from skanneal.schedules import GeometricLadder
from skanneal.tempering import HMC, RandomWalk, sample

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from papers.tempering_models import ALPHA, LEAPFROG, prior_mean, target

METHODS = ("spt", "stt", "pt", "tt")
PAPER = {
    "gaussian": {"spt": 3.51, "stt": 5.65, "pt": 7.48, "tt": 12.94},
    "gp": {"spt": 1.73, "stt": 2.35, "pt": 6.03, "tt": 9.19},
}
DIMENSION = {"gaussian": 50, "gp": 20}
ROWS = {"gaussian": (64, 128, 256, 512, 1024, 2048), "gp": (64, 128, 256, 512, 1024)}
QUICK_ROWS = {"gaussian": (256, 1024), "gp": (64, 128)}
LADDER = GeometricLadder()


def inner_sampler(model, inner):
    """Fixed steps so small that nearly everything is accepted."""
    if inner == "mh":
        return RandomWalk(step_size=1e-3, adapt=False)
    return HMC(step_size=1e-4, n_leapfrog=LEAPFROG[model], random_length=False, adapt=False)


def seconds_per_sample(model, inner, method, problem, budget):
    """Of one chain, after a few iterations to find how many fit the budget."""
    options = {
        "method": method,
        "schedule": LADDER,
        "inner": inner_sampler(model, inner),
        "metric": "unit",
        "n_chains": 1,
        "n_warmup": 0,
        "init": prior_mean(model, problem.n_parameters),
        "random_state": 0,
    }
    first = sample(problem, n_draws=3, **options).seconds[0] / 3
    n = int(np.clip(budget / first, 3, 50_000))
    return sample(problem, n_draws=n, **options).seconds[0] / n


def measure(model, inner, n_rows, budget, repeats):
    """Least seconds per sample of each method, and of the inner sampler at each level's size."""
    problem = target(model, DIMENSION[model], n_rows)
    sizes = LADDER.levels(n_rows)[1]
    levels = [target(model, DIMENSION[model], int(n)) for n in sizes[1:]]
    best = dict.fromkeys(("none", *METHODS), np.inf)
    best_levels = np.full(len(sizes), np.inf)
    for _ in range(repeats):  # in turns, so that a busy moment hits no method alone
        for name in best:
            best[name] = min(best[name], seconds_per_sample(model, inner, name, problem, budget))
        for i, level in enumerate(levels, start=1):
            spent = seconds_per_sample(model, inner, "none", level, budget / 4)
            best_levels[i] = min(best_levels[i], spent)
    best_levels[0] = best["none"]
    return best, best_levels / best["none"]


def predictions(shares):
    """Relative cost of each method from the levels' shares of the inner sampler's time."""
    total, top = shares.sum(), len(shares) - 1
    return {"spt": total, "stt": 2 * total - 1, "pt": top + 1.0, "tt": 2.0 * top + 1}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="two sizes of each model")
    parser.add_argument("--full", action="store_true", help="three times the repetitions")
    options = parser.parse_args()
    budget, repeats = (0.2, 2) if options.quick else (0.7, 9 if options.full else 3)
    if not options.full:
        print(f"Cut: {repeats} repetitions of {budget} s per method (--full: 9 of 0.7 s).")
    betas = LADDER.inverse_temperatures()
    began = time.perf_counter()
    for model in ("gaussian", "gp"):
        for inner in ("hmc", "mh"):
            for n_rows in (QUICK_ROWS if options.quick else ROWS)[model]:
                best, shares = measure(model, inner, n_rows, budget, repeats)
                asymptotic = predictions(betas ** ALPHA[model])
                by_levels = predictions(shares)
                print(
                    f"\n{model} {inner}, {DIMENSION[model]} parameters, {n_rows} rows: "
                    f"{1e6 * best['none']:.1f} us per sample of the inner sampler"
                )
                print(
                    f"  {'':8}{'a = ' + str(ALPHA[model]):>8}{'levels':>8}{'measured':>10}", end=""
                )
                print(f"{'paper':>8}" if inner == "hmc" else "")
                for name in METHODS:
                    line = f"  {name:8}{asymptotic[name]:8.2f}{by_levels[name]:8.2f}"
                    line += f"{best[name] / best['none']:10.2f}"
                    print(
                        line + (f"{PAPER[model][name]:8.2f}" if inner == "hmc" else ""), flush=True
                    )
    print(f"\n{time.perf_counter() - began:.0f} s in all")


if __name__ == "__main__":
    main()
