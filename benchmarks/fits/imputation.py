"""Gaps filled, beside scikit-learn's imputers: errors, and the coverage of intervals.

    python benchmarks/fits/imputation.py DATA_FOLDER            # 40 minutes, then cut
    python benchmarks/fits/imputation.py DATA_FOLDER --methods default --seeds 2 --sets "iris 10"

The tables are scikit-learn's own, statsmodels' where it is installed, and of the folder of outlier
tables (npz files with `X`) six. At most 1,000 rows of a table are used; 10 or 30 % of the cells,
drawn by the seed, are blanked. Errors are root mean squares in standard deviations of the column,
averaged over columns; of a column of at most 5 values the share of gaps that are given another
value than the nearest right one. Intervals are the 5 and 95 % quantiles of 50 imputations, for the
other columns. Results are lines of `benchmarks/results/imputation.jsonl`.
"""

import importlib.util
import sys
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import BayesianRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skanneal import AnnealedDPMixture, CrossCatImputer

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from harness.suite import Suite, files, settings, some_rows

MOST_ROWS = 1000
SHARES = 10, 30  # per cent
FEW = 5  # values, of a column of levels
N_IMPUTATIONS = 50
FROM_SCIKIT_LEARN = "iris", "wine", "breast_cancer", "diabetes", "linnerud"
FROM_STATSMODELS = "fair", "ccard", "engel", "longley", "stackloss", "spector", "scotland", "cancer"
FROM_FOLDER = "14_glass", "40_vowels", "44_Wilt", "39_vertebral", "6_cardio", "4_breastw"


def default(seed):
    return CrossCatImputer(random_state=seed)


def mixture(seed):
    return CrossCatImputer(AnnealedDPMixture(n_jobs=1, random_state=seed), random_state=seed)


def mean(seed):
    return SimpleImputer()


def knn(seed):
    return make_pipeline(StandardScaler(), KNNImputer())


def bayesian_ridge(seed):
    imputer = IterativeImputer(BayesianRidge(), random_state=seed)
    return make_pipeline(StandardScaler(), imputer)


def extra_trees(seed):
    trees = ExtraTreesRegressor(n_estimators=30, random_state=seed)
    return make_pipeline(StandardScaler(), IterativeImputer(trees, max_iter=5, random_state=seed))


PEERS = mean, knn, bayesian_ridge, extra_trees
METHODS = {
    "scikit-learn": {method.__name__: method for method in PEERS},
    "skanneal": {method.__name__: method for method in (default, mixture)},
}


def sets(folder):
    """(table, share of gaps in per cent) by names such as "iris 10"."""
    tables = {
        name: getattr(datasets, f"load_{name}")(return_X_y=True)[0] for name in FROM_SCIKIT_LEARN
    }
    if importlib.util.find_spec("statsmodels"):
        import statsmodels.datasets

        for name in FROM_STATSMODELS:
            data = getattr(statsmodels.datasets, name).load_pandas().data
            tables[f"statsmodels_{name}"] = data.select_dtypes("number").dropna().to_numpy()
    for name, path in files(folder).items():
        if name in FROM_FOLDER:
            with np.load(path) as file:
                tables[name] = file["X"]
    return {
        f"{name} {share}": (varying(X.astype(float)), share)
        for name, X in tables.items()
        for share in SHARES
    }


def varying(X):
    """The columns that are not constant."""
    return X[:, X.min(axis=0) < X.max(axis=0)]


def measure(problem, method, seed):
    """Errors of the filled cells, and of ours the coverage of intervals."""
    X, share = problem
    X = varying(X[some_rows(len(X), MOST_ROWS, seed)])
    gaps = blanked(X, share, seed)
    holed = np.where(gaps, np.nan, X)
    model = method(seed)
    text = settings(model)
    filled = np.asarray(model.fit_transform(holed), dtype=float)
    if hasattr(model, "named_steps"):
        filled = model[0].inverse_transform(filled)
    levels = [np.unique(column) for column in X.T]
    few = np.array([len(values) <= FEW for values in levels])
    record = {"settings": text, "n_gaps": int(gaps.sum())}
    numbers = [
        np.sqrt(np.mean((filled[gaps[:, j], j] - X[gaps[:, j], j]) ** 2)) / X[:, j].std()
        for j in np.flatnonzero(~few)
    ]
    wrong = [
        np.mean(nearest(levels[j], filled[gaps[:, j], j]) != X[gaps[:, j], j])
        for j in np.flatnonzero(few)
    ]
    record["error"] = round(float(np.mean(numbers)), 4) if numbers else None
    record["falsely_classified"] = round(float(np.mean(wrong)), 4) if wrong else None
    if hasattr(model, "imputations") and numbers:
        several = np.array([np.asarray(f, float) for f in model.imputations(holed, N_IMPUTATIONS)])
        low, high = np.quantile(several, (0.05, 0.95), axis=0)
        asked = gaps & ~few
        record["covered"] = int(((low <= X) & (X <= high))[asked].sum())
        record["intervals"] = int(asked.sum())
    return record


def blanked(X, share, seed):
    """Which cells are blanked: at least one of each column, and never the whole row."""
    rng = np.random.default_rng(seed)
    gaps = rng.random(X.shape) < share / 100
    gaps[rng.integers(len(X), size=X.shape[1]), np.arange(X.shape[1])] = True
    rows = np.flatnonzero(gaps.all(axis=1))
    gaps[rows, rng.integers(X.shape[1], size=len(rows))] = False
    return gaps


def nearest(values, cells):
    """The value that is nearest to each cell."""
    return values[np.abs(cells[:, None] - values).argmin(axis=1)]


SUITE = Suite("imputation", sets, METHODS, measure)

if __name__ == "__main__":
    SUITE.run(__doc__.splitlines()[0])
