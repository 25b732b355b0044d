"""What "auto" decides about the columns of tables, why, and what density it leads to.

    python benchmarks/fits/decisions.py DATA_FOLDER             # 40 minutes, then cut
    python benchmarks/fits/decisions.py DATA_FOLDER --sets 4_breastw

The folder has one npz file a table, with `X` (ADBench). At most 2,000 rows of a table are used,
drawn by the seed, half of them to fit; the chains are short, for nothing here hangs on them. A line
of `benchmarks/results/decisions.jsonl` has the family of each column and the reason, atoms and
their share, steps of rounding, columns set apart, and how families competed.

A number that is written down stands for an interval: of a rounded column one step; of another,
where at least five rows share it, what is nearer to it than to the column's next values. An
interval's probability is at most 1, and the density of the cell, given the rest of its row, at most
one over its width. `log_interval` is the greatest log(density times width) of all such cells, in
rows that were not fitted. A normal distribution fitted to numbers that are uniform within one
interval has sqrt(6 / pi), hence 0.32; beyond that a density says more than the data can.
"""

import sys
from pathlib import Path

import numpy as np

from skanneal import AnnealedDPMixture
from skanneal.families import candidates
from skanneal.schedules import LinearAnneal

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from harness.suite import Suite, files, some_rows

MOST_ROWS = 2000
NUMBERS = candidates("float")
SHARED = 5  # rows


def default(seed):
    schedule = LinearAnneal(n_sweeps=5)
    return AnnealedDPMixture(schedule=schedule, n_chains=1, n_draws=3, n_jobs=1, random_state=seed)


def sets(folder):
    return files(folder)


def measure(path, method, seed):
    """The decisions of a fit, and the greatest log probability of an interval."""
    with np.load(path) as file:
        X = file["X"].astype(float)
    X = X[some_rows(len(X), MOST_ROWS, seed)]
    order = np.random.default_rng(seed).permutation(len(X))
    fitted, held_out = X[order[::2]], X[order[1::2]]
    model = method(seed).fit(fitted)
    evidence = model.family_evidence_
    surprisal = model.surprisal(held_out)
    logs = [
        np.log(widths(X[:, j], model.rounding_.get(j), held_out[:, j])) - surprisal[:, j]
        for name, columns in model.families_.items()
        for j in columns
        if name in NUMBERS
    ]
    atoms = {
        str(j): {
            "values": values.tolist(),
            "share": round(float(np.isin(fitted[:, j], values).mean()), 3),
        }
        for j, values in model.atoms_.items()
    }
    record = {
        "shape": list(fitted.shape),
        "families": {name: columns.tolist() for name, columns in model.families_.items()},
        "why": why(model, fitted),
        "atoms": atoms,
        "rounding": {str(j): float(step) for j, step in sorted(model.rounding_.items())},
        "log_interval": round(float(np.nanmax(logs)), 3) if np.any(np.isfinite(logs)) else None,
        "n_components": int(model.n_components_),
        "score": round(float(model.score(held_out)), 3),
    }
    if evidence is not None:
        record |= {
            "decided_by": evidence["decided_by"],
            "winner": evidence["winner"],
            "margin": _number(evidence["margin"]),
            "standard_error": _number(evidence["standard_error"]),
            "n_rows": evidence["n_rows"].tolist(),
        }
    return record


def widths(values, step, cells):
    """The width of the interval that each cell stands for; nan where nothing tells it."""
    if step is not None:
        return np.full(len(cells), step)
    places, counts = np.unique(values, return_counts=True)
    gaps = np.diff(places)
    lengths = 0.5 * (np.r_[gaps[0], gaps] + np.r_[gaps, gaps[-1]])  # at the ends as on one side
    lengths[counts < SHARED] = np.nan
    return lengths[np.searchsorted(places, cells)]


def why(model, X):
    """The reason for each column's family, by its position."""
    competed = [] if model.family_evidence_ is None else model.family_evidence_["columns"]
    reasons = {}
    for name, columns in model.families_.items():
        for j in map(int, columns):
            n_values = len(np.unique(X[:, j]))
            reasons[str(j)] = {
                "constant": "one value",
                "identifier": "no two whole numbers are equal",
                "collinear": "others determine it",
                "categorical": f"{n_values} values",
                "semi_continuous": f"atoms among {n_values} values",
                "semi_continuous_log_normal": f"atoms among {n_values} skewed values",
            }.get(name, "the evidence" if j in competed else f"{n_values} numbers")
    return reasons


def _number(x):
    return None if np.isnan(x) else round(float(x), 3)


SUITE = Suite("decisions", sets, {"skanneal": {"default": default}}, measure)

if __name__ == "__main__":
    SUITE.run(__doc__.splitlines()[0])
