"""Simulated tables with outliers of known kinds, and how well detectors rank them.

    python benchmarks/fits/odd_rows.py                          # 40 minutes, then cut
    python benchmarks/fits/odd_rows.py --methods detector --seeds 1 --sets numbers_local

Ordinary rows are of one group or of several, of unequal widths, with columns that depend on each
other or not. In a table the groups are normal, or heavy (Student's with 3 degrees of freedom), or
uniform, or bent along a parabola; in a third of the tables half of the columns are noise that knows
nothing of groups or outliers. Outliers are of seven kinds:

- diffuse: uniform over the range of the others, in all columns;
- few_columns: so in some columns only;
- cluster: a narrow group of their own;
- class: a group of their own, as wide as others or wider, near one of them;
- rare: a normal group of their own, narrow or wide, anywhere among the others;
- local: of a group, but twice as far from its centre;
- broken: each cell is of another ordinary row, so that only what binds columns is lost.

They are seen through columns of six kinds: numbers, skewed amounts, numbers that are rounded,
amounts of which many are 0, ordered levels, and a third each of numbers, ordered levels and levels
without an order. Rows (300 to 5,000), columns (2 to 50) and the share of outliers (.01 to .2)
follow from the seed. A method is fitted to all rows, outliers among them, and scores new ones, in
which each outlier counts so much that their share is the same. Results are lines of
`benchmarks/results/odd_rows.jsonl`: area under the ROC curve, average precision and, of the
detector, what share of the new rows have shares below 0.1, 0.05 and 0.01. At the end there are
means over the tables of each kind.
"""

import collections
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from fits.outliers import METHODS, of_scores
from harness.suite import Suite, settings

ORDINARY, ODD = 1000, 300  # new rows


# ---- rows ----------------------------------------------------------------------------------------


class Groups:
    """Groups of unequal widths, in each of which a factor may bind the columns; in some tables they
    are not normal, and some columns know nothing of groups or outliers."""

    def __init__(self, rng, d):
        self.form = FORMS[rng.integers(len(FORMS))]
        self.k = int(rng.choice([1, 3, 6, 12]))
        self.centres = rng.normal(size=(self.k, d)) * rng.uniform(1.5, 4.0)
        self.widths = np.exp(rng.uniform(-1.0, 0.5, size=(self.k, 1)))
        self.factors = rng.normal(size=(self.k, d)) * rng.choice([0.0, 0.5, 1.0])
        self.bends = rng.normal(size=(self.k, d)) * (self.form == "curved")
        self.noise = rng.uniform(0.3, 1.0, size=d)
        self.shares = rng.dirichlet(np.full(self.k, 3.0))
        self.irrelevant = rng.random(d) < rng.choice([0.0, 0.0, 0.5])
        self.irrelevant[:2] = False

    def draw(self, rng, n, far=1.0):
        which = rng.choice(self.k, n, p=self.shares)
        return self.centres[which] + far * self.widths[which] * self.offsets(rng, which)

    def offsets(self, rng, which):
        """Of rows of these groups from their centres, before widths."""
        shape = len(which), self.centres.shape[1]
        rows = rng.uniform(-1.7, 1.7, shape) if self.form == "uniform" else rng.normal(size=shape)
        factor = rng.normal(size=(len(which), 1))
        rows = self.noise * rows + factor * self.factors[which]
        rows += (factor**2 - 1.0) * self.bends[which]
        if self.form == "heavy":  # Student's, of 3 degrees of freedom
            rows *= np.sqrt(3.0 / rng.chisquare(3.0, size=(len(which), 1)))
        return rows


FORMS = "normal", "heavy", "uniform", "curved"


def diffuse(rng, groups, n, d):
    rows = groups.draw(rng, 1000)
    return rng.uniform(rows.min(axis=0), rows.max(axis=0), size=(n, d))


def few_columns(rng, groups, n, d):
    own = rng.random((n, d)).argsort(axis=1) < max(1, d // 4)
    return np.where(own, diffuse(rng, groups, n, d), groups.draw(rng, n))


def cluster(rng, groups, n, d):
    return groups.draw(rng, 1, far=3.0) + 0.2 * rng.normal(size=(n, d))


def another_class(rng, groups, n, d):
    width = rng.uniform(1.0, 2.0)
    return groups.draw(rng, 1, far=2.0) + width * rng.normal(size=(n, d))


def rare(rng, groups, n, d):
    width = np.exp(rng.uniform(-1.0, 1.0)) * groups.noise
    return groups.centres.std() * rng.normal(size=d) + width * rng.normal(size=(n, d))


def local(rng, groups, n, d):
    return groups.draw(rng, n, far=2.0)


def broken(rng, groups, n, d):
    return np.column_stack([groups.draw(rng, n)[:, j] for j in range(d)])


KINDS = {
    "diffuse": diffuse,
    "few_columns": few_columns,
    "cluster": cluster,
    "class": another_class,
    "rare": rare,
    "local": local,
    "broken": broken,
}


# ---- columns -------------------------------------------------------------------------------------


def numbers(rng, Z):
    return Z


def skewed(rng, Z):
    return np.exp(Z / Z.std(axis=0))


def zeros(rng, Z):
    cut = np.quantile(Z, 0.5, axis=0)
    some = rng.random(Z.shape[1]) < 0.5
    return np.where(some & (cut > Z), 0.0, np.where(some, Z - cut, Z))


def rounded(rng, Z):
    return np.rint(Z * 2.0 ** rng.integers(0, 4, size=Z.shape[1]))


def levels(rng, Z):
    out = np.empty(Z.shape)
    for j, column in enumerate(Z.T):
        ends = np.quantile(column, [0.02, 0.98])
        out[:, j] = np.searchsorted(np.linspace(*ends, int(rng.integers(2, 7))), column)
    return out


def mixed(rng, Z):
    of_levels, columns = levels(rng, Z), {}
    for j, column in enumerate(Z.T):
        columns[f"x{j}"] = (column, of_levels[:, j])[j % 3 > 0]
        if j % 3 == 2:
            names = rng.permutation(list("abcdefgh"))
            columns[f"x{j}"] = pd.Categorical(names[of_levels[:, j].astype(int)])
    return pd.DataFrame(columns)


LOOKS = {
    "numbers": numbers,
    "skewed": skewed,
    "rounded": rounded,
    "zeros": zeros,
    "levels": levels,
    "mixed": mixed,
}


def table(look, kind, seed):
    """Rows to fit, new rows, which of these are outliers, and how much each of them counts."""
    rng = np.random.default_rng([seed, *map(ord, look + kind)])
    n, d = (round(np.exp(rng.uniform(*np.log(ends)))) for ends in ((300, 5000), (2, 50)))
    share = np.exp(rng.uniform(*np.log([0.01, 0.2])))
    groups, n_odd = Groups(rng, d), max(2, round(share * n))
    ordinary = groups.draw(rng, n - n_odd + ORDINARY)
    Z = np.r_[ordinary, KINDS[kind](rng, groups, n_odd + ODD, d)]
    Z[:, groups.irrelevant] = rng.normal(size=(len(Z), groups.irrelevant.sum()))
    X, odd = LOOKS[look](rng, Z), np.arange(len(Z)) >= len(ordinary)
    fresh = np.zeros(len(Z), dtype=bool)
    fresh[:ORDINARY], fresh[-ODD:] = True, True
    weights = np.where(odd, share / ODD, (1.0 - share) / ORDINARY)
    return X[~fresh], X[fresh], odd[fresh], weights[fresh]


def tables(folder):
    """What makes a table, by name."""
    return {f"{look}_{kind}": (look, kind) for kind in KINDS for look in LOOKS}


def as_numbers(X):
    """For methods that read numbers: the code of each level."""
    if not isinstance(X, pd.DataFrame):
        return X
    return X.apply(lambda of: of.cat.codes if of.dtype == "category" else of).to_numpy(float)


def measure(made, method, seed):
    """How well the scores of new rows tell the outliers."""
    train, fresh, odd, weights = table(*made, seed)
    make, score = method
    model = make(seed)
    text = settings(model)
    if not type(model).__module__.startswith("skanneal"):
        train, fresh = as_numbers(train), as_numbers(fresh)
    scores = np.nan_to_num(score(model.fit(train), fresh))  # nan, of a method that failed: no order
    shape = {"n": train.shape[0], "d": train.shape[1], "share": round(float(weights[odd].sum()), 4)}
    return {"settings": text} | shape | of_scores(model, scores, odd, weights)


def count(path):
    """Print means over the tables of each kind, look and method."""
    of_sort = collections.defaultdict(list)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    last = {line["method"]: line["version"] for line in lines}
    for line in lines:
        if line["version"] == last[line["method"]]:
            look, _, kind = line["set"].partition("_")
            for sort in (kind, look, "all"):
                found = line["auc"], line["average_precision"]
                of_sort[line["method"], sort].append(found)
    print("method, kind, tables, area under the ROC curve, average precision")
    for (method, sort), found in sorted(of_sort.items()):
        print(f"{method:28s} {sort:12s} {len(found):3d}", *np.mean(found, axis=0).round(3))


if __name__ == "__main__":
    count(Suite("odd_rows", tables, METHODS, measure).run(__doc__.splitlines()[0]))
