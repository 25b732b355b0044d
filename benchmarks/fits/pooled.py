"""Whether several imputations are proper: their variance, and the coverage of pooled intervals.

    python benchmarks/fits/pooled.py --minutes 30 --seeds 20
    python benchmarks/fits/pooled.py --methods default --sets "normal MAR" --seeds 8
    python benchmarks/fits/pooled.py --seeds 0      # print what the lines say

A cell is 25 simulated tables of 100 rows: a number x without gaps, a number or a count y, and a
column c of two levels, both of which go with x; y and c have 40 % of gaps each. These are
completely at random (MCAR), or the more probable the larger x is (MAR). Each table is filled 20
times, and three results are pooled by Rubin's rules: the mean of y, the slope of the regression of
y on x, and the proportion of one level in c. In `levels`, y goes with c, too, and in the place of
the slope is the difference of the means of y between the levels. In `amounts` x and y are the
exponentials of what they are in `normal`, times EXPONENT.

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
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

from skanneal import AnnealedDPMixture, CrossCatImputer, CrossCatPY
from skanneal.summary import pool

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from harness.chained import Chained, MiceForest
from harness.lines import Lines
from harness.suite import KEYS, Suite, settings

N_TABLES, N_ROWS, N_IMPUTATIONS = 25, 100, 20
LEVEL = 0.95


def noise_of(kind, rng):
    """What y has beside its line and its level."""
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


KINDS = "normal", "heavy", "groups", "counts", "levels", "amounts"
SHARE = 0.4
EXPONENT = 0.7  # of amounts


def of_level(kind):
    """What y is more where c is "yes"."""
    return 1.0 if kind == "levels" else 0.0


def whole(kind, rng):
    """A table without gaps: both y and c go with x."""
    side = (rng.random(N_ROWS) < SHARE).astype(int)
    x = centres(kind)[side] + rng.normal(size=N_ROWS)
    y = line(kind, side, x)
    y = rng.poisson(y).astype(float) if kind == "counts" else y + noise_of(kind, rng)
    c = np.where(rng.random(N_ROWS) < chance_of_yes(x), "yes", "no")
    y = y + of_level(kind) * (c == "yes")
    if kind == "amounts":
        x, y = np.exp(EXPONENT * x), np.exp(EXPONENT * y)
    return pd.DataFrame({"x": x, "y": y, "c": c})


def right(kind):
    """The three results in infinitely many rows, by quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    side = np.array([[0], [1]])
    x = centres(kind)[:, None] + nodes
    weights = np.array([[1.0 - SHARE], [SHARE]]) * weights / weights.sum()
    yes = chance_of_yes(x)
    without = line(kind, side, x)
    y = without + of_level(kind) * yes
    if kind == "amounts":
        x, y = np.exp(EXPONENT * x), np.exp(EXPONENT * y + 0.5 * EXPONENT**2)
    mean, share = (weights * y).sum(), (weights * yes).sum()
    if kind == "levels":
        of_yes = (weights * yes * without).sum() / share + of_level(kind)
        of_no = (weights * (1.0 - yes) * without).sum() / (1.0 - share)
        return np.array([mean, of_yes - of_no, share])
    off = x - (weights * x).sum()
    slope = (weights * off * y).sum() / (weights * off**2).sum()
    return np.array([mean, slope, share])


def with_gaps(frame, at_random, rng):
    """40 % of y and c: completely at random, or by x."""
    x = frame["x"].to_numpy()
    chance = stats.norm.cdf(-0.3 + (x - x.mean()) / x.std()) if at_random else 0.4
    out = frame.copy()
    for name in ("y", "c"):
        out.loc[rng.random(N_ROWS) < chance, name] = None
    return out


def analysis(frame, kind):
    """The three results of a whole table, and their variances."""
    x, y = (frame[name].to_numpy(float) for name in "xy")
    c = (frame["c"] == "yes").to_numpy(float)
    x = c if kind == "levels" else x
    off = x - x.mean()
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


class Iterative(Chained):
    """Bayesian ridge regressions with draws; c as 0 and 1, drawn as a number and rounded."""

    def imputations(self, frame, n):
        table = frame.assign(c=frame["c"].map({"yes": 1.0, "no": 0.0}))
        several = []
        for seed in np.random.default_rng(self.seed).integers(1 << 31, size=n).tolist():
            imputer = IterativeImputer(sample_posterior=True, max_iter=10, random_state=seed)
            filled = pd.DataFrame(imputer.fit_transform(table), columns=list(table))
            several.append(filled.assign(c=np.where(filled["c"] > 0.5, "yes", "no")))
        return several


METHODS = {
    "skanneal": {of.__name__: of for of in (default, mixture, crosscat)},
    "miceforest": {"miceforest": MiceForest},
    "scikit-learn": {"iterative": Iterative},
}


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
        estimate, variance = analysis(frame, kind)
        model = method(int(rng.integers(1 << 31)))
        gappy = with_gaps(frame, at_random, rng)
        tables = model.fit(gappy).imputations(gappy, N_IMPUTATIONS)
        pairs = [analysis(filled, kind) for filled in tables]
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
    """Print what the last lines of each method say: of each set, by result."""
    lines = list(Lines(path, KEYS).records.items())
    last, sums = {method: version for (version, _, method, _), _ in lines}, {}
    for (version, name, method, _), record in lines:
        if version == last[method]:
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
