"""Tables of the crosscat benchmarks: the peers' splits, the paper's data, simulated ones.

A table is a data frame: real columns floats, categorical ones pandas categoricals with every level
declared. Only NumPy and pandas are needed, so that peers in an environment of their own load the
same tables.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from harness import kdd_data
from harness.kdd_data import KDD_CATEGORICAL

SATELLITES_CATEGORICAL = (
    "Country_of_Operator",
    "Users",
    "Purpose",
    "Class_of_Orbit",
    "Type_of_Orbit",
    "Country_of_Contractor",
    "Launch_Site",
    "Launch_Vehicle",
    "Source_Used_for_Orbital_Data",
)
ALL = "all"


# -- the splits that the peers' figures are for ----------------------------------------------------


class Split(NamedTuple):
    """A split of `splits/` and its categorical columns, names or ALL."""

    name: str
    categorical: tuple | str


SPLITS = {
    split.name: split
    for split in (
        Split("synthetic10k", ALL),
        Split("satellites", SATELLITES_CATEGORICAL),
        Split("dart", ()),
        Split("acs10k", ALL),
        Split("kdd10k", KDD_CATEGORICAL),
    )
}


def load_split(folder, name):
    """Train and test rows; the levels of a column are those of both.

    Returns
    -------
    train, test : DataFrame
        Floats, and categoricals with one list of levels for both.
    """
    parts = [
        pd.read_csv(Path(folder) / "splits" / f"{name}_{part}.csv.gz") for part in ("train", "test")
    ]
    both = pd.concat(parts, keys=("train", "test"))
    categorical = SPLITS[name].categorical
    columns = {}
    for column in both.columns:
        if categorical == ALL or column in categorical:
            columns[column] = pd.Categorical(both[column])
        else:
            columns[column] = both[column].to_numpy(dtype=float, na_value=np.nan)
    both = pd.DataFrame(columns, index=both.index)
    return both.loc["train"], both.loc["test"]


# -- the paper's data ------------------------------------------------------------------------------


def chosen_rows(n_all, n_rows, seed=0):
    """Random rows in their order; all of them if there are not more."""
    if n_rows is None or n_rows >= n_all:
        return np.arange(n_all)
    return np.sort(np.random.default_rng(seed).permutation(n_all)[:n_rows])


def dartmouth(folder, n_rows=None):
    """Dartmouth Atlas: 307 hospitals, 63 numbers."""
    table = pd.read_csv(Path(folder) / "dartmouth_atlas.csv.gz").drop(columns="NAME")
    return table.astype(float).iloc[chosen_rows(len(table), n_rows)].reset_index(drop=True)


def acs(folder, n_rows=None):
    """American Community Survey: 170,254 persons, 35 categorical columns, levels as declared."""
    with np.load(Path(folder) / "acs_temporal_match2.npz") as file:
        cells, columns, n_levels = file["X"], file["columns"], file["n_levels"]
    cells = cells[chosen_rows(len(cells), n_rows)]
    return pd.DataFrame(
        {
            str(column): coded(cells[:, j], np.arange(n_levels[j]))
            for j, column in enumerate(columns)
        }
    )


def coded(codes, levels):
    return pd.Categorical.from_codes(codes, categories=levels)


def kdd(folder, n_rows=None):
    """KDD Cup 1999: 494,021 connections, 39 columns, prepared as `kdd_data.py` says."""
    return kdd_data.frame(kdd_data.load(folder, n_rows)[0])


# -- simulated -------------------------------------------------------------------------------------


class Truth(NamedTuple):
    """What a simulated table was drawn from."""

    view_of: np.ndarray  # (n_columns,) view of each column
    log_weights: list  # per view, (n_clusters,)
    parameters: list  # per column, log probabilities (n_clusters, n_levels) or means (n_clusters,)

    def log_density(self, table):
        """True log density of each row of a frame without missing cells: (n_rows,)."""
        total = np.zeros(len(table))
        for view, log_weights in enumerate(self.log_weights):
            joint = np.tile(log_weights, (len(table), 1))
            for j in np.flatnonzero(self.view_of == view):
                column, parameters = table.iloc[:, j], self.parameters[j]
                if parameters.ndim == 2:
                    joint += parameters[:, column.cat.codes.to_numpy()].T
                else:
                    distance = column.to_numpy()[:, None] - parameters
                    joint -= 0.5 * distance**2 + 0.5 * np.log(2 * np.pi)
            largest = joint.max(axis=1)
            total += largest + np.log(np.exp(joint - largest[:, None]).sum(axis=1))
        return total


def simulate(n_rows, view_of, n_clusters, n_levels, seed=0, sharpness=0.5, spread=2.0):
    """Rows of a crosscat: independent views, in each a mixture of independent columns.

    Parameters
    ----------
    n_rows : int
        Rows.
    view_of : int array of shape (n_columns,)
        View of each column.
    n_clusters : int or int array of shape (n_views,)
        Clusters of each view; their weights are Dirichlet(2).
    n_levels : int array of shape (n_columns,)
        Levels of each column, probabilities Dirichlet(`sharpness`); 0 is a number, normal with
        variance 1 and means N(0, `spread`^2).

    Returns
    -------
    table : DataFrame
    truth : Truth
    """
    rng = np.random.default_rng(seed)
    view_of, n_levels = np.asarray(view_of), np.asarray(n_levels)
    n_clusters = np.broadcast_to(n_clusters, view_of.max() + 1)
    weights = [rng.dirichlet(np.full(k, 2.0)) for k in n_clusters]
    labels = [rng.choice(k, size=n_rows, p=w).astype(np.int32) for k, w in zip(n_clusters, weights)]
    columns, parameters = {}, []
    for j, (view, levels) in enumerate(zip(view_of, n_levels)):
        label = labels[view]
        if levels == 0:
            means = spread * rng.standard_normal(n_clusters[view])
            columns[f"x{j}"] = means[label] + rng.standard_normal(n_rows)
            parameters.append(means)
            continue
        shares = rng.dirichlet(np.full(levels, sharpness), size=n_clusters[view]) + 1e-6
        shares /= shares.sum(axis=1, keepdims=True)
        bounds = np.cumsum(shares, axis=1)[:, :-1]
        codes = np.zeros(n_rows, dtype=np.uint8)
        uniform = rng.random(n_rows)
        for level in range(levels - 1):
            codes += uniform > bounds[label, level]
        columns[f"c{j}"] = coded(codes, np.arange(levels))
        parameters.append(np.log(shares))
    return pd.DataFrame(columns), Truth(view_of, [np.log(w) for w in weights], parameters)


def census_like(n_rows, seed=0):
    """68 categorical columns of 2 to 17 levels in 8 views of 6 to 30 clusters."""
    rng = np.random.default_rng([seed, 1])
    view_of = rng.permutation(np.arange(68) % 8)
    return simulate(n_rows, view_of, rng.integers(6, 31, 8), rng.integers(2, 18, 68), seed)


def forty_columns(n_rows, n_numbers=0, seed=0):
    """40 columns in 4 views of 8 clusters; `n_numbers` of them numbers, the others of 6 levels."""
    n_levels = np.where(np.arange(40) < n_numbers, 0, 6)
    return simulate(n_rows, np.arange(40) % 4, 8, n_levels, seed)
