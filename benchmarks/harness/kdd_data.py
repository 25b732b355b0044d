"""KDD Cup 1999: the prepared table, and its split into train and test rows.

The table is ``kddcup99_10_percent.npz`` of a folder of data sets. Constant columns are dropped, and
columns that are not categorical are log1p plus normal noise. Only NumPy and pandas are needed.
"""

from pathlib import Path

import numpy as np
import pandas as pd

KDD_CATEGORICAL = (
    "protocol_type",
    "service",
    "flag",
    "land",
    "logged_in",
    "root_shell",
    "num_shells",
    "is_guest_login",
)
FILE = "kddcup99_10_percent.npz"
NOISE = 0.01
MOST_TEST_ROWS = 20_000
N_ALL = 494_021


def load(folder, n_rows=None):
    """Prepared columns (codes with their levels, or floats), the rows' classes, their sizes.

    Returns
    -------
    columns : dict of str to ndarray or (ndarray, ndarray)
        Floats, or codes and levels.
    classes : ndarray of shape (n_rows,)
        Codes of the classes.
    names, sizes : ndarray of shape (n_classes,)
        The classes, and their numbers of rows in the whole table.
    """
    rng = np.random.default_rng(0)
    columns = {}
    with np.load(Path(folder) / FILE) as file:
        classes, names = file["label"], file["levels__label"]
        sizes = np.bincount(classes, minlength=len(names))
        rows = slice(None)
        if n_rows is not None and n_rows < len(classes):
            rows = np.sort(rng.permutation(len(classes))[:n_rows])
        for name in file["columns"]:
            values = file[name]
            if name == "label" or (values == values[0]).all():
                continue
            values = values[rows]
            if name in KDD_CATEGORICAL:
                columns[name] = codes_of(values, file.get(f"levels__{name}"))
            else:
                columns[name] = np.log1p(values.astype(float))
                columns[name] += rng.normal(0, NOISE, len(values))
    return columns, classes[rows], names, sizes


def codes_of(values, levels):
    if levels is not None:
        return values, levels
    levels, codes = np.unique(values, return_inverse=True)
    return codes.astype(np.uint8), levels


def frame(columns, rows=slice(None)):
    """The rows as a data frame."""
    return pd.DataFrame(
        {
            name: pd.Categorical.from_codes(column[0][rows], categories=column[1])
            if isinstance(column, tuple)
            else column[rows]
            for name, column in columns.items()
        }
    )


def split(n_rows, seed):
    """Train and test rows: 7/8 and at most 20,000 of 1/8."""
    order = np.random.default_rng([seed, 1]).permutation(n_rows)
    n_test = max(1, n_rows // 8)
    return np.sort(order[n_test:]), np.sort(order[: min(n_test, MOST_TEST_ROWS)])
