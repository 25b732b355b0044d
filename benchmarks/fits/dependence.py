"""Whether columns depend on each other as often as `dependence_probability` says.

    python benchmarks/fits/dependence.py                       # 40 minutes, then cut
    python benchmarks/fits/dependence.py --sets "t 1000" "xor 5000" --seeds 3

- independent tables: ten columns of normal numbers, skewed ones (gamma laws), Student's t of 3
  degrees, or levels (2, 4 or 12), of 200, 1,000 or 5,000 rows; `said` is the mean of the 45
  probabilities;
- "xor n": two triples of two levels each, the third of which is the exclusive or of the others;
- "pairs n": ten columns in five pairs, each of which is dependent with probability one half, so
  that one pair in eighteen is: a line or a curve of any strength, a level that shifts a number, two
  levels that agree, or two clusters.

A fit is the default. Of dependent and of independent pairs each, a line has the mean and the most
that was said, how often each pair shares a view, the area under the curve that ranks pairs, and for
each tenth of the probabilities how many there were, their sum, and how many came true. At the end
the tenths of the pairs are added up, with the calibration error: the mean difference between what
was said and what came true. Results are lines of `benchmarks/results/dependence.jsonl`.
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from skanneal import CrossCatPY

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from harness.lines import Lines
from harness.suite import KEYS, Suite

N_COLUMNS, TENTHS = 10, 10
LEVELS = {"binary": 2, "four levels": 4, "twelve levels": 12}
NUMBERS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "skewed": lambda rng, shape: rng.gamma(2.0, size=shape),
    "t": lambda rng, shape: rng.standard_t(3, size=shape),
}


def independent(kind, n, rng):
    """A table, and which pairs of its columns depend on each other."""
    shape, none = (n, N_COLUMNS), np.zeros((N_COLUMNS, N_COLUMNS), dtype=bool)
    if kind in NUMBERS:
        return NUMBERS[kind](rng, shape), none
    return rng.integers(LEVELS[kind], size=shape).astype("U2"), none


def exclusive_or(n, rng):
    bits = rng.integers(2, size=(n, 2, 2))
    triples = np.dstack([bits, bits.sum(axis=2) % 2]).reshape(n, 6)
    of = np.arange(6) // 3
    return triples.astype("U1"), of[:, None] == of


def line(rng, n):
    x, strength = rng.normal(size=n), rng.uniform(0.2, 0.95)
    return x, strength * x + np.sqrt(1.0 - strength**2) * rng.normal(size=n)


def curve(rng, n):
    x = rng.normal(size=n)
    return x, x**2 + rng.uniform(0.3, 2.0) * rng.normal(size=n)


def shifted(rng, n):
    level = rng.integers(3, size=n)
    return level.astype(str), rng.uniform(0.3, 2.0) * level + rng.normal(size=n)


def agreeing(rng, n):
    level, share = rng.integers(4, size=n), rng.uniform(0.1, 0.9)
    return level.astype(str), np.where(
        rng.random(n) < share, level, rng.integers(4, size=n)
    ).astype(str)


def clusters(rng, n):
    side, distance = rng.integers(2, size=n), rng.uniform(1.5, 5.0)
    return tuple(distance * side + rng.normal(size=n) for _ in range(2))


STRUCTURES = line, curve, shifted, agreeing, clusters


def pairs(n, rng):
    """A pair that is not dependent has one of its columns shuffled."""
    columns, depend = [], np.zeros((N_COLUMNS, N_COLUMNS), dtype=bool)
    for i, structure in enumerate(STRUCTURES):
        x, y = structure(rng, n)
        if rng.random() < 0.5:
            depend[2 * i, 2 * i + 1] = depend[2 * i + 1, 2 * i] = True
        else:
            y = rng.permutation(y)
        columns += [x, y]
    return pd.DataFrame(dict(enumerate(columns))), depend


def sets(folder):
    tables = {
        f"{kind} {n}": partial(independent, kind, n)
        for n in (200, 1000, 5000)
        for kind in (*NUMBERS, *LEVELS)
    }
    tables |= {f"xor {n}": partial(exclusive_or, n) for n in (1000, 5000)}
    return tables | {f"pairs {n}": partial(pairs, n) for n in (200, 500, 1000)}


def default(seed):
    return CrossCatPY(n_jobs=1, random_state=seed)


def measure(table, method, seed):
    """What is said of dependent and of independent pairs."""
    X, depend = table(np.random.default_rng([seed, 17]))
    model = method(seed).fit(X)
    at = np.triu_indices(len(depend), 1)
    said, true = np.asarray(model.dependence_probability())[at], depend[at]
    views = np.array([draw.view_labels for chain in model.draws_ for draw in chain])
    shared = (views[:, :, None] == views[:, None, :]).mean(axis=0)[at]
    record = {"converged": bool(model.converged_)}
    for name, of in (("independent", ~true), ("dependent", true)):
        if of.any():
            record[name] = {
                "said": round(float(said[of].mean()), 4),
                "most": round(float(said[of].max()), 4),
                "least": round(float(said[of].min()), 4),
                "shared": round(float(shared[of].mean()), 4),
            }
    if true.any() and not true.all():
        record["auc"] = round(float(roc_auc_score(true, said)), 4)
    tenth = np.minimum((said * TENTHS).astype(int), TENTHS - 1)
    record["count"] = np.bincount(tenth, minlength=TENTHS).tolist()
    record["sum"] = np.bincount(tenth, said, TENTHS).round(4).tolist()
    record["came_true"] = np.bincount(tenth, true, TENTHS).astype(int).tolist()
    return record


def table(path):
    """Print what the lines of the last version say."""
    lines = list(Lines(path, KEYS).records.items())
    last, by_set = lines[-1][0][0], {}
    for (version, name, _, _), record in lines:
        if version == last:
            by_set.setdefault(name, []).append(record)
    for name, records in by_set.items():
        for kind in ("independent", "dependent"):
            said = [record[kind]["said"] for record in records if kind in record]
            if said:
                print(f"{name}, {kind}: mean {np.mean(said):.3f}, all {said}")
        if areas := [record["auc"] for record in records if "auc" in record]:
            print(f"{name}: area under the curve {np.mean(areas):.3f}, least {min(areas):.3f}")
    of_pairs = [r for name, records in by_set.items() if name.startswith("pairs") for r in records]
    if of_pairs:
        count, said, true = (np.sum([r[key] for r in of_pairs], axis=0) for key in BINS)
        print("probabilities  mean said  came true")
        for numbers in zip(count, said / np.maximum(count, 1), true / np.maximum(count, 1)):
            print("{:13d}  {:9.3f}  {:9.3f}".format(*numbers))
        print(f"expected calibration error {np.abs(said - true).sum() / count.sum():.4f}")


BINS = "count", "sum", "came_true"

if __name__ == "__main__":
    table(Suite("dependence", sets, {"skanneal": {"default": default}}, measure).run(__doc__))
