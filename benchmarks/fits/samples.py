"""Samples beside rivals: can a classifier tell them from real rows, and are they copies?

    python benchmarks/fits/samples.py ../shared/data/tables --seeds 3
    python benchmarks/fits/samples.py ../shared/data/tables --methods mixture --sets housing
    python benchmarks/fits/samples.py ../shared/data/tables --seeds 0      # print what lines say

Of each table's rows without gaps 4,000 are drawn for training, and two times as many others: those
that are held out, and a second set that stands for perfect samples (`real`). A method gets the
training rows and makes as many new ones. A cell has

- `detection`: the classifier two-sample score, 1 - (2 max(AUC, 0.5) - 1), where AUC is how well
  gradient boosting, in three folds, tells samples from held-out rows: 1 if not at all, 0 surely;
- `margins`: the mean over columns of Kolmogorov's and Smirnov's distance, of levels of the total
  variation, from the held-out rows;
- `pairs`: the mean total variation of pairs of columns, numbers in ten classes of equal frequency;
- `use`: trained on samples, tested on held-out rows: R^2 of a number, AUC of a column of two
  levels, by gradient boosting;
- `nearer`: the share of the samples that are nearer to a training row than to each held-out one,
  ties counting half: 0.5 if nothing is remembered. Distances are Euclidean, of ranks from 0 to 1
  and of levels, which differ by 1;
- `copies`, `copies_held_out`: the share of the samples, and of the held-out rows, that equal a
  training row in all columns.

Rivals: a Gaussian copula with the training rows' own margins, and trees in sequence, as synthpop
has them: each column is drawn from a leaf, of 5 rows or more, of a tree on the columns before it.
Results are lines of `benchmarks/results/samples.jsonl`.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import NearestNeighbors
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skanneal import AnnealedDPMixture, CrossCatPY

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from harness.lines import RESULTS
from harness.suite import Suite, files, records, settings

N_ROWS = 4000
TARGETS = {"beijing": "pm2.5", "housing": "median_house_value", "shoppers": "Revenue"}
MOST_LEVELS = 20  # distinct numbers that are taken for levels where pairs are compared
N_CLASSES = 10
LEAF = 5


# ---- methods: callables (train, others, seed) -> rows ------------------------------------------


def of_fit(model):
    """A method: samples of a fitted model."""

    def method(train, others, seed):
        fit = model(n_chains=2, random_state=seed).fit(train)
        return fit.sample(len(train)), settings(fit)

    return method


def mixture(**parameters):
    return AnnealedDPMixture(margins="data", **parameters)


def crosscat(**parameters):
    return CrossCatPY(margins="data", **parameters)


def real(train, others, seed):
    """Other rows of the table."""
    return others, ""


def copula(train, others, seed):
    """A Gaussian copula, numbers and levels by their ranks, ties broken at random."""
    rng = np.random.default_rng(seed)
    codes = numbers_of(train)
    n = len(train)
    order = np.stack([rng.permutation(n) for _ in codes.T], axis=1)
    ranks = np.empty_like(order)
    for j, of_column in enumerate(codes.T):
        ranks[np.lexsort((order[:, j], of_column)), j] = np.arange(n)
    scores = stats.norm.ppf((ranks + 0.5) / n)
    drawn = rng.multivariate_normal(np.zeros(codes.shape[1]), np.corrcoef(scores.T), size=n)
    at = np.minimum((stats.norm.cdf(drawn) * n).astype(int), n - 1)
    inverse = np.argsort(ranks, axis=0)
    columns = [train.iloc[inverse[at[:, j], j], j].to_numpy() for j in range(codes.shape[1])]
    return as_like(train, columns), ""


def trees(train, others, seed):
    """Each column from the leaves of a tree on those before it; the first one with replacement."""
    rng = np.random.default_rng(seed)
    n, codes = len(train), numbers_of(train)
    at = rng.integers(n, size=n)
    drawn, rows = codes[at, :1], [at]
    for j in range(1, codes.shape[1]):
        is_number = is_numeric(train.iloc[:, j])
        tree = (DecisionTreeRegressor if is_number else DecisionTreeClassifier)(
            min_samples_leaf=LEAF, random_state=seed
        ).fit(codes[:, :j], codes[:, j])
        homes, leaves = tree.apply(codes[:, :j]), tree.apply(drawn)
        order = np.argsort(homes, kind="stable")
        first = np.searchsorted(homes[order], leaves)
        last = np.searchsorted(homes[order], leaves, side="right")
        donors = order[first + (rng.random(n) * (last - first)).astype(int)]
        rows.append(donors)
        drawn = np.column_stack([drawn, codes[donors, j]])
    return as_like(train, [train.iloc[of, j].to_numpy() for j, of in enumerate(rows)]), ""


# ---- tables -------------------------------------------------------------------------------------


def is_numeric(column):
    return column.dtype.kind in "iuf"


def numbers_of(frame, levels=None):
    """Columns as numbers: levels by their places among those of another frame, or their own."""
    levels = frame if levels is None else levels
    columns = [
        frame[name].to_numpy(float)
        if is_numeric(levels[name])
        else pd.Categorical(frame[name], np.unique(levels[name])).codes.astype(float)
        for name in frame
    ]
    return np.column_stack(columns)


def as_like(frame, columns):
    return pd.DataFrame(dict(zip(frame.columns, columns))).astype(frame.dtypes)


def parts(path, seed):
    """Training rows, held-out rows and others."""
    whole = pd.read_csv(path).dropna()
    order = np.random.default_rng(seed).permutation(len(whole))
    return [
        whole.iloc[order[i * N_ROWS : (i + 1) * N_ROWS]].reset_index(drop=True) for i in range(3)
    ]


# ---- figures ------------------------------------------------------------------------------------


def detection(held_out, samples, levels, seed):
    X = np.vstack([numbers_of(held_out, levels), numbers_of(samples, levels)])
    y = np.repeat([0, 1], [len(held_out), len(samples)])
    folds = StratifiedKFold(3, shuffle=True, random_state=seed)
    model = HistGradientBoostingClassifier(random_state=seed)
    found = cross_val_predict(model, X, y, cv=folds, method="predict_proba")[:, 1]
    return 1.0 - (2.0 * max(roc_auc_score(y, found), 0.5) - 1.0)


def variation(one, two, n):
    """The total variation of two columns of codes below n."""
    shares = [np.bincount(codes, minlength=n) / len(codes) for codes in (one, two)]
    return 0.5 * np.abs(shares[0] - shares[1]).sum()


def margins(held_out, samples):
    distances = []
    for name in held_out:
        one, two = held_out[name], samples[name]
        if is_numeric(one):
            distances.append(stats.ks_2samp(one, two.astype(float), method="asymp").statistic)
        else:
            seen = pd.concat([one, two]).astype(str).unique()
            codes = [pd.Categorical(of.astype(str), seen).codes for of in (one, two)]
            distances.append(variation(*codes, len(seen)))
    return float(np.mean(distances))


def classes(column, like):
    """Levels, or numbers in classes of equal frequency in another column."""
    values, known = (numbers_of(of.to_frame(), like.to_frame())[:, 0] for of in (column, like))
    if not is_numeric(like) or len(np.unique(known)) <= MOST_LEVELS:
        return np.searchsorted(np.unique(known), values)
    edges = np.unique(np.quantile(known, np.linspace(0, 1, N_CLASSES + 1)[1:-1]))
    return np.searchsorted(edges, values, side="right")


def pairs(held_out, samples):
    codes = [[classes(of[name], held_out[name]) for name in held_out] for of in (held_out, samples)]
    distances = []
    for i in range(len(codes[0])):
        for j in range(i):
            n = 1 + max(of[j].max() for of in codes)
            both = [of[i] * n + of[j] for of in codes]
            distances.append(variation(*both, 1 + max(of.max() for of in both)))
    return float(np.mean(distances))


def use(train, held_out, samples, target, seed):
    others, levels = [name for name in train if name != target], train.drop(columns=target)
    X, Y = (numbers_of(of[others], levels) for of in (samples, held_out))
    known, right = samples[target], held_out[target]
    if is_numeric(train[target]):
        model = HistGradientBoostingRegressor(random_state=seed).fit(X, known.astype(float))
        return float(r2_score(right, model.predict(Y)))
    model = HistGradientBoostingClassifier(random_state=seed).fit(X, known.astype(str))
    return float(roc_auc_score(right.astype(str), model.predict_proba(Y)[:, 1]))


def places(frame, train):
    """Rows as points: ranks of numbers among those of training, and levels that differ by 1."""
    columns = []
    for name in frame:
        if is_numeric(train[name]):
            known = np.sort(train[name].to_numpy(float))
            values = frame[name].to_numpy(float)
            sides = (np.searchsorted(known, values, side=side) for side in ("left", "right"))
            columns.append(sum(sides) / (2.0 * len(known)))
        else:
            for level in np.unique(train[name]):
                columns.append((frame[name] == level).to_numpy(float) / np.sqrt(2.0))
    return np.column_stack(columns)


def nearer(train, held_out, samples):
    points = places(samples, train)
    near = [
        NearestNeighbors(n_neighbors=1).fit(places(of, train)).kneighbors(points)[0][:, 0]
        for of in (train, held_out)
    ]
    return float(np.mean(near[0] < near[1]) + 0.5 * np.mean(near[0] == near[1]))


def copies(rows, train):
    known = set(map(tuple, numbers_of(train).tolist()))
    return float(np.mean([row in known for row in map(tuple, numbers_of(rows, train).tolist())]))


def measure(path, method, seed):
    train, held_out, others = parts(path, seed)
    samples, setting = method(train, others, seed)
    samples = samples[list(train)]
    target = TARGETS[path.name.split(".")[0]]
    return {
        "detection": detection(held_out, samples, train, seed),
        "margins": margins(held_out, samples),
        "pairs": pairs(held_out, samples),
        "use": use(train, held_out, samples, target, seed),
        "nearer": nearer(train, held_out, samples),
        "copies": copies(samples, train),
        "copies_held_out": copies(held_out, train),
        "settings": setting,
    }


FIGURES = "detection", "margins", "pairs", "use", "nearer", "copies", "copies_held_out"


def sets(folder):
    return {
        name.split(".")[0]: path
        for name, path in files(folder or ".", "*.csv.gz").items()
        if name.split(".")[0] in TARGETS
    }


SUITE = Suite(
    "samples",
    sets,
    {
        "skanneal": {
            "mixture": of_fit(mixture),
            "crosscat": of_fit(crosscat),
            "mixture_own_margins": of_fit(AnnealedDPMixture),
            "crosscat_own_margins": of_fit(CrossCatPY),
        },
        "scikit-learn": {"copula": copula, "trees": trees, "real": real},
    },
    measure,
)


def summary(folder=RESULTS):
    """Lines of means over seeds, by method and table."""
    lines = []
    for (_, method), tables in records(SUITE.name, folder).items():
        for table, of in sorted(tables.items()):
            means = [f"{name} {np.mean([r[name] for r in of]):.3f}" for name in FIGURES]
            worst = min(r["detection"] for r in of)
            lines.append(f"{method:>22} {table:>9} ({len(of)}): {', '.join(means)}; {worst:.3f}")
    return lines


if __name__ == "__main__":
    SUITE.run(__doc__.split("\n")[0])
    print(*summary(), sep="\n")
