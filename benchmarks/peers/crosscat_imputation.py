"""Gaps filled by CrossCatPY and by regressions: where few clusters suffice, and where not.

    python benchmarks/peers/crosscat_imputation.py DATA_FOLDER              # some 10 minutes

A tenth of the cells of Dartmouth (307 x 63 numbers) and of 10,000 rows of ACS (35 categorical
columns) are blanked at random; each method is fitted to what is left and fills it. Beside
CrossCatPY, scikit-learn's SimpleImputer (mean, most frequent) and IterativeImputer (Bayesian ridge
regression, its default): on standardised numbers; on codes of the levels, rounded to the nearest
level; and on one-hot columns of levels, the largest taken, each regressed on the 20 most
correlated, 3 rounds. A line of `benchmarks/results/crosscat_imputation.jsonl` has the error over
the blanked cells: root mean squared in standard deviations of the columns, or the share of wrong
levels.
"""

import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from harness import crosscat_data
from harness.crosscat_runs import estimator, fitted
from harness.suite import Suite

SHARE_BLANK = 0.1
N_ROWS = 10_000  # at most


def blank(table, seed):
    """The table with random cells missing, and the mask of those cells."""
    mask = np.random.default_rng([seed, 3]).random(table.shape) < SHARE_BLANK
    return table.mask(pd.DataFrame(mask, index=table.index, columns=table.columns)), mask


def has_levels(table):
    """Whether all columns are categorical; else all are numbers."""
    return bool((table.dtypes == "category").all())


def codes_of(table):
    """Numbers as they are, levels as codes; missing cells nan."""
    if not has_levels(table):
        return table.to_numpy(dtype=float)
    codes = np.column_stack([table[column].cat.codes for column in table]).astype(float)
    return np.where(codes < 0, np.nan, codes)


def by_crosscat(gappy, seed):
    """By a fit of four chains."""
    model = estimator("CrossCatPY", random_state=seed)
    fitted(model, gappy)
    return codes_of(model.impute(gappy))


def by_simple(gappy, seed):
    """By the mean, or the most frequent level."""
    strategy = "most_frequent" if has_levels(gappy) else "mean"
    return SimpleImputer(strategy=strategy).fit_transform(codes_of(gappy))


def iterate(cells, seed, **parameters):
    """IterativeImputer on standardised columns."""
    mean, scale = np.nanmean(cells, axis=0), np.nanstd(cells, axis=0)
    scale[scale == 0] = 1
    imputer = IterativeImputer(random_state=seed, keep_empty_features=True, **parameters)
    return imputer.fit_transform((cells - mean) / scale) * scale + mean


def by_regression(gappy, seed):
    """On numbers or codes."""
    filled = iterate(codes_of(gappy), seed)
    if has_levels(gappy):
        most = [gappy[column].cat.categories.size - 1 for column in gappy]
        filled = np.clip(np.rint(filled), 0, most)
    return filled


def by_one_hot(gappy, seed):
    """On one-hot columns of the levels that occur; numbers as `by_regression`."""
    if not has_levels(gappy):
        return by_regression(gappy, seed)
    cells = codes_of(gappy)
    levels = [np.unique(column[~np.isnan(column)]) for column in cells.T]
    parts = []
    for column, present in zip(cells.T, levels, strict=True):
        part = (column[:, None] == present).astype(float)
        part[np.isnan(column)] = np.nan
        parts.append(part)
    hot = iterate(np.concatenate(parts, axis=1), seed, n_nearest_features=20, max_iter=3)
    stops = np.cumsum([len(present) for present in levels])
    for j, (present, stop) in enumerate(zip(levels, stops, strict=True)):
        cells[:, j] = present[hot[:, stop - len(present) : stop].argmax(axis=1)]
    return cells


def error(table, filled, mask):
    """Root mean squared error in standard deviations, or share of wrong levels."""
    truth = codes_of(table)
    if has_levels(table):
        return float((filled[mask] != truth[mask]).mean())
    scaled = (filled - truth) / truth.std(axis=0)
    return float(np.sqrt((scaled[mask] ** 2).mean()))


def sets(folder):
    """Tables by name."""
    return {
        "Dartmouth": crosscat_data.dartmouth(folder, N_ROWS),
        "ACS": crosscat_data.acs(folder, N_ROWS),
    }


def measure(table, method, seed):
    """A method's error."""
    gappy, mask = blank(table, seed)
    return {"error": round(error(table, method(gappy, seed), mask), 4)}


METHODS = {
    "skanneal": {"crosscat": by_crosscat},
    "scikit-learn": {
        "simple": by_simple,
        "regressions": by_regression,
        "regressions, one-hot": by_one_hot,
    },
}

if __name__ == "__main__":
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    Suite("crosscat_imputation", sets, METHODS, measure).run(__doc__)
