"""Draws for the gaps of mixed tables, beside chained regressions: their energy score and coverage.

    python benchmarks/fits/drawn_fills.py                       # 40 minutes, then cut
    python benchmarks/fits/drawn_fills.py --methods default --sets "shifts MAR" --seeds 2
    python benchmarks/fits/drawn_fills.py --seeds 0             # print what the lines say

A set is a law of tables and what their gaps depend on; the seed draws the law's constants and 300
rows of five numbers and three columns of levels. In `shifts` two factors tell the numbers, and each
level adds something to each of them; in `classes` the rows are of four classes, and all columns
depend on these alone; in `curves` numbers are bent along one of them, which the levels go with,
too; in `amounts` the numbers of `shifts` are exponents. A quarter of the cells is missing in all
columns but the first number: completely at random (MCAR), or the more often the larger that is
(MAR).

Each method draws 20 tables. Of a row's missing cells together, numbers in standard deviations and
levels as indicators over the root of 2, the energy score is the mean distance of the draws from
what is right less half of the mean distance between the draws (Gneiting and Raftery 2007); the
smaller the better. `covered` is the share of missing numbers within the 5 and 95 % quantiles of
their draws, `error` the root mean square of their means, `wrong` the share of missing levels that
the most frequent draw misses. Results are lines of `benchmarks/results/drawn_fills.jsonl`.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

from skanneal import CrossCatImputer

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from harness.chained import Chained, MiceForest
from harness.lines import Lines
from harness.suite import KEYS, Suite, settings

N_ROWS, N_NUMBERS, N_DRAWS = 300, 5, 20
N_LEVELS = 2, 3, 4
GAPS = 0.25
ENDS = 0.05, 0.95  # of intervals: such that of so few draws 90 % of values like them lie within
SCORES = "energy", "error", "wrong"


def shifts(rng):
    codes = [rng.choice(n, N_ROWS, p=rng.dirichlet(np.full(n, 4.0))) for n in N_LEVELS]
    X = rng.normal(size=(N_ROWS, 2)) @ rng.normal(size=(2, N_NUMBERS))
    X += 0.7 * rng.normal(size=X.shape)
    return X + sum(rng.normal(size=(n, N_NUMBERS))[of] for n, of in zip(N_LEVELS, codes)), codes


def classes(rng):
    of = rng.integers(4, size=N_ROWS)
    X = 2.0 * rng.normal(size=(4, N_NUMBERS))[of] + rng.normal(size=(N_ROWS, N_NUMBERS))
    shares = [np.cumsum(rng.dirichlet(np.ones(n), size=4), axis=1)[of] for n in N_LEVELS]
    return X, [np.count_nonzero(own[:, :-1] < rng.random((N_ROWS, 1)), axis=1) for own in shares]


def curves(rng):
    t = rng.uniform(-2.0, 2.0, size=N_ROWS)
    bent = np.column_stack([t, t**2 - 1.5, np.sin(2.0 * t), np.abs(t), -t])
    X = bent + 0.4 * rng.normal(size=bent.shape)
    centres = [np.sort(rng.uniform(-2.0, 2.0, size=n)) for n in N_LEVELS]
    odds = [-4.0 * (t[:, None] - own) ** 2 + rng.gumbel(size=(N_ROWS, len(own))) for own in centres]
    return X, [own.argmax(axis=1) for own in odds]


def amounts(rng):
    X, codes = shifts(rng)
    return np.exp(0.7 * X), codes


def table(X, codes):
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(N_NUMBERS)])
    for k, own in enumerate(codes):
        frame[f"c{k}"] = np.array(list("abcd"))[own]
    return frame


def blanked(frame, at_random, rng):
    """Which cells are missing: none of the first number."""
    place = stats.rankdata(frame["x0"]) / (len(frame) + 1)
    chance = np.full(len(frame), GAPS) if at_random else 2.0 * GAPS * place
    gaps = rng.random(frame.shape) < chance[:, None]
    gaps[:, 0] = False
    return gaps


def default(seed):
    return CrossCatImputer(random_state=seed)


class Iterative(Chained):
    """Bayesian ridge regressions with draws; a level is that of the largest of its indicators."""

    def imputations(self, frame, n):
        levels = list(frame.select_dtypes(exclude="number"))
        wide = pd.get_dummies(frame, columns=levels, dtype=float, prefix_sep="=")
        for name in levels:
            own = [column for column in wide if column.startswith(f"{name}=")]
            wide.loc[frame[name].isna(), own] = np.nan
        several = []
        for seed in np.random.default_rng(self.seed).integers(1 << 31, size=n).tolist():
            imputer = IterativeImputer(sample_posterior=True, max_iter=10, random_state=seed)
            filled = pd.DataFrame(imputer.fit_transform(wide), columns=wide.columns)
            out = filled[[name for name in frame if name not in levels]].copy()
            for name in levels:
                own = filled[[column for column in wide if column.startswith(f"{name}=")]]
                out[name] = own.idxmax(axis=1).str.removeprefix(f"{name}=")
            several.append(out)
        return several


METHODS = {
    "skanneal": {"default": default},
    "miceforest": {"miceforest": MiceForest},
    "scikit-learn": {"iterative": Iterative},
}
LAWS = shifts, classes, curves, amounts


def sets(folder):
    return {f"{law.__name__} {gaps}": (law, gaps) for law in LAWS for gaps in ("MCAR", "MAR")}


def measure(problem, method, seed):
    """Scores of the draws for one table's gaps."""
    law, gaps_of = problem
    rng = np.random.default_rng([seed, *map(ord, law.__name__ + gaps_of)])
    frame = table(*law(rng))
    gaps = blanked(frame, gaps_of == "MCAR", rng)
    holed = frame.mask(pd.DataFrame(gaps, columns=frame.columns))
    model = method(seed)
    text = settings(model)
    tables = model.fit(holed).imputations(holed, N_DRAWS)
    return {"settings": text} | scores(frame, gaps, tables)


def scores(frame, gaps, tables):
    """Of drawn tables, beside the right one."""
    right, draws, of_column, errors, wrong, covered = [], [], [], [], [], []
    for j, name in enumerate(frame):
        gap, several = gaps[:, j], np.array([of[name].astype(object) for of in tables])
        if frame[name].dtype.kind == "f":
            spread = frame[name].std()
            own = frame[name].to_numpy() / spread
            several = several.astype(float) / spread
            low, high = np.quantile(several[:, gap], ENDS, axis=0, method="weibull")
            covered += ((low <= own[gap]) & (own[gap] <= high)).tolist()
            if gap.any():
                errors.append(np.mean((several[:, gap].mean(axis=0) - own[gap]) ** 2))
            right.append(own[:, None])
            draws.append(several[:, :, None])
        else:
            levels = np.unique(frame[name].astype(str))
            right.append(np.equal.outer(frame[name].to_numpy(str), levels) / np.sqrt(2.0))
            draws.append(np.equal.outer(several.astype(str), levels) / np.sqrt(2.0))
            most = levels[draws[-1].sum(axis=0).argmax(axis=1)]
            wrong += (most != frame[name].to_numpy(str))[gap].tolist()
        of_column += [j] * right[-1].shape[1]
    asked = gaps[:, of_column]
    right, draws = np.hstack(right) * asked, np.concatenate(draws, axis=2) * asked
    off = np.sqrt(((draws - right) ** 2).sum(axis=2)).mean(axis=0)
    apart = np.sqrt(((draws[:, None] - draws) ** 2).sum(axis=3)).sum(axis=(0, 1))
    energy = off - 0.5 * apart / (len(draws) * (len(draws) - 1))
    return {
        "energy": round(float(energy[gaps.any(axis=1)].mean()), 4),
        "error": round(float(np.sqrt(np.mean(errors))), 4),
        "wrong": round(float(np.mean(wrong)), 4),
        "covered": round(float(np.mean(covered)), 4),
    }


def said(path):
    """Print the means of the last lines of each method, by set."""
    lines = list(Lines(path, KEYS).records.items())
    last = {method: version for (version, _, method, _), _ in lines}
    found = {}
    for (version, name, method, _), record in lines:
        if version == last[method]:
            found.setdefault((name, method), []).append(record)
    for (name, method), its_records in sorted(found.items()):
        means = {of: np.mean([r[of] for r in its_records]) for of in (*SCORES, "covered")}
        print(name, method, len(its_records), *(f"{of} {mean:.3f}" for of, mean in means.items()))


SUITE = Suite("drawn_fills", sets, METHODS, measure)

if __name__ == "__main__":
    said(SUITE.run(__doc__))
