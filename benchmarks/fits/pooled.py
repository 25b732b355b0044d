"""Whether several imputations are proper: their variance, and the coverage of pooled intervals.

    python benchmarks/fits/pooled.py --minutes 30 --seeds 20
    python benchmarks/fits/pooled.py --methods default --sets "normal MAR" --seeds 8
    python benchmarks/fits/pooled.py --seeds 0      # print what the lines say

A cell is 25 simulated tables of 100 rows: a number x without gaps, a number or a count y, and a
column c of two levels, both of which go with x; y and c have 40 % of gaps each. These are
completely at random (MCAR), or the more probable the larger x is (MAR). Each table is filled 20
times, and three results are pooled by Rubin's rules: the mean of y, the slope of the regression of
y on x, and the proportion of one level in c.

As the tables are simulated, the result of the whole table is known as well. Imputations are proper
(Rubin 1987) if their mean differs from it by as much as they differ from each other: `ratio` is the
variance between the imputations over the mean square of that difference, which is 1 with an error
of sqrt(2 / tables) or more. `covered` is the share of the tables in which the 95 % interval has the
right value in it. The same is kept of the intervals of the whole tables, which show what is owed to
the analysis itself. Results are lines of `benchmarks/results/pooled.jsonl`.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from skanneal import AnnealedDPMixture, CrossCatImputer, CrossCatPY
from skanneal.summary import pool

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from harness.lines import Lines
from harness.suite import KEYS, Suite, settings

N_TABLES, N_ROWS, N_IMPUTATIONS = 25, 100, 20
LEVEL = 0.95


def noise_of(kind, rng):
    """What y has beside its line."""
    return rng.standard_t(5, size=N_ROWS) if kind == "heavy" else rng.normal(size=N_ROWS)


def line(kind, side, x):
    """What y is expected to be, given x and the side of the row."""
    if kind == "counts":
        return 4.0 + 1.5 * np.tanh(x)
    if kind == "groups":
        return np.where(side, 4.0 - 0.5 * x, 0.5 * x)
    return 0.7 * x


def centres(kind):
    """Of x on both sides: each row is on the second with the probability SHARE."""
    return np.array([0.0, 3.0 if kind == "groups" else 0.0])


def chance_of_yes(x):
    return 1.0 / (1.0 + np.exp(1.0 - 0.8 * x))


KINDS = "normal", "heavy", "groups", "counts"
SHARE = 0.4


def whole(kind, rng):
    """A table without gaps: both y and c go with x."""
    side = (rng.random(N_ROWS) < SHARE).astype(int)
    x = centres(kind)[side] + rng.normal(size=N_ROWS)
    y = line(kind, side, x)
    y = rng.poisson(y).astype(float) if kind == "counts" else y + noise_of(kind, rng)
    c = np.where(rng.random(N_ROWS) < chance_of_yes(x), "yes", "no")
    return pd.DataFrame({"x": x, "y": y, "c": c})


def right(kind):
    """The three results in infinitely many rows, by quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    side = np.array([[0], [1]])
    x = centres(kind)[:, None] + nodes
    weights = np.array([[1.0 - SHARE], [SHARE]]) * weights / weights.sum()
    y = line(kind, side, x)
    mean = (weights * y).sum()
    off = x - (weights * x).sum()
    slope = (weights * off * y).sum() / (weights * off**2).sum()
    return np.array([mean, slope, (weights * chance_of_yes(x)).sum()])


def with_gaps(frame, at_random, rng):
    """40 % of y and c: completely at random, or by x."""
    x = frame["x"].to_numpy()
    chance = stats.norm.cdf(-0.3 + (x - x.mean()) / x.std()) if at_random else 0.4
    out = frame.copy()
    for name in ("y", "c"):
        out.loc[rng.random(N_ROWS) < chance, name] = None
    return out


def analysis(frame):
    """The three results of a whole table, and their variances."""
    x, y = (frame[name].to_numpy(float) for name in "xy")
    c, off = (frame["c"] == "yes").to_numpy(float), x - x.mean()
    slope = off @ y / (off @ off)
    rest = ((y - y.mean() - slope * off) ** 2).sum() / (N_ROWS - 2)
    variances = [y.var(ddof=1) / N_ROWS, rest / (off @ off), c.var(ddof=1) / N_ROWS]
    return np.array([y.mean(), slope, c.mean()]), np.array(variances)


def default(seed):
    return CrossCatImputer(random_state=seed)


def mixture(seed):
    return CrossCatImputer(AnnealedDPMixture(n_chains=1, random_state=seed), random_state=seed)


def crosscat(seed):
    return CrossCatImputer(CrossCatPY(n_chains=1, random_state=seed), random_state=seed)


METHODS = {"skanneal": {of.__name__: of for of in (default, mixture, crosscat)}}


def sets(folder):
    return {f"{kind} {gaps}": (kind, gaps == "MAR") for kind in KINDS for gaps in ("MCAR", "MAR")}


def measure(problem, method, seed):
    """Of each result: the variances, the squared differences and the coverage, over tables."""
    kind, at_random = problem
    truth = right(kind)
    between, squares, covered, covered_whole = [], [], [], []
    for i in range(N_TABLES):
        rng = np.random.default_rng([seed, i, *map(ord, kind), at_random])
        frame = whole(kind, rng)
        estimate, variance = analysis(frame)
        model = method(int(rng.integers(1 << 31)))
        gappy = with_gaps(frame, at_random, rng)
        pairs = [analysis(filled) for filled in model.fit(gappy).imputations(gappy, N_IMPUTATIONS)]
        estimates, variances = map(np.array, zip(*pairs))
        pooled = pool(estimates, variances, df_complete=N_ROWS - 2, level=LEVEL)
        between.append((1.0 + 1.0 / N_IMPUTATIONS) * estimates.var(axis=0, ddof=1))
        squares.append((pooled.estimate - estimate) ** 2)
        low, high = pooled.interval.T
        covered.append((low < truth) & (truth < high))
        reach = stats.t.ppf(0.5 + 0.5 * LEVEL, N_ROWS - 2) * np.sqrt(variance)
        covered_whole.append(abs(estimate - truth) < reach)
    return {
        "settings": settings(method(0)),
        "n_tables": N_TABLES,
        "between": np.sum(between, axis=0).tolist(),
        "squares": np.sum(squares, axis=0).tolist(),
        "covered": np.sum(covered, axis=0).tolist(),
        "covered_whole": np.sum(covered_whole, axis=0).tolist(),
    }


def table(path):
    """Print what the lines of the last version say: of each method and set, by result."""
    lines = list(Lines(path, KEYS).records.items())
    last, sums = lines[-1][0][0], {}
    for (version, name, method, _), record in lines:
        if version == last:
            of = sums.setdefault((method, name), dict.fromkeys(SUMS, 0.0))
            for key in SUMS:
                of[key] = of[key] + np.array(record[key])
    print("method set tables: ratio of variances, covered, covered without gaps, by result")
    for (method, name), of in sums.items():
        n = int(of["n_tables"])
        numbers = of["between"] / of["squares"], of["covered"] / n, of["covered_whole"] / n
        print(method, name, f"{n}:", *(np.round(number, 3).tolist() for number in numbers))


SUMS = "n_tables", "between", "squares", "covered", "covered_whole"

if __name__ == "__main__":
    table(Suite("pooled", sets, METHODS, measure).run(__doc__))
