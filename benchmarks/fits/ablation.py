"""What each rule of the search is worth: fits without it, beside fits with all of them.

    python benchmarks/fits/ablation.py                  # simulated tables, 40 minutes, then cut
    python benchmarks/fits/ablation.py DATA_FOLDER --sets satellites dart --methods today no_races

A method is the default estimator without one rule, or with another one in its place; "today" is the
default. With one seed every method has the same table and the same seed, so that differences are
paired. Simulated tables are drawn with seeds from FIRST_SEED on, which nothing else uses. The
data folder, if given, has the training and test rows of the five splits of `crosscat_peers.py`, and
of binary tables. Columns in views are fitted by one chain.

A line of `benchmarks/results/ablation.jsonl` has the mean log density of held-out rows in nats, the
greatest log joint density of the draws, and processor seconds. The table that is printed at the end
is that of the documentation (`ablation_page.py`). Rules that it calls gone were in the package at
the commit of their lines.
"""

import contextlib
import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np

from skanneal import CrossCatPY
from skanneal.chains import _budget, _starts
from skanneal.chains import _plan as plans
from skanneal.estimators import _rounds
from skanneal.moves import COLUMN_MOVES, _allocating_move

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from fits.ablation_page import table
from fits.models import estimator, fitted
from fits.problems import KINDS
from fits.views import TABLES
from harness.crosscat_data import load_split
from harness.lines import Stopwatch
from harness.suite import Suite, files

FIRST_SEED = 7000
VIEWS = (
    "500_v2_c10_numbers",
    "500_v8_c3_levels",
    "2000_v2_c3_numbers",
    "2000_v8_c3_levels",
    "2000_v1_c25_levels",
    "2000_v8_c10_numbers",
    "10000_v2_c10_levels",
    "10000_v8_c3_numbers",
)
SPLITS = ("synthetic10k", "satellites", "dart", "acs10k", "kdd10k")


def constants(module, **values):
    """A module's constants have other values."""
    return patch.multiple(module, **values)


def never(*_, **__):
    """Stand for a step that is left out."""


def shares(**values):
    """Moves have other shares of the churn's work."""
    return patch.dict(_budget.SHARES, values)


RULES = {
    "today": contextlib.nullcontext,
    "no_waiting": lambda: constants(plans, MOST_SETTLED=2, LEAST_SETTLED=2),
    "no_races": lambda: constants(_starts, begin_rivals=lambda *_: []),
    "no_mending": lambda: constants(_starts, mend_views=never),
    "no_null_share": lambda: constants(_allocating_move, NULL_SHARE=0.5),
    "double_shares": lambda: shares(**{k: 2 * v for k, v in _budget.SHARES.items()}),
    "half_shares": lambda: shares(**{k: v / 2 for k, v in _budget.SHARES.items()}),
    "equal_shares": lambda: shares(**dict.fromkeys(_budget.SHARES, 0.5)),
    "twice_the_splits": lambda: shares(split_merge=2 * _budget.SHARES["split_merge"]),
    "half_the_splits": lambda: shares(split_merge=_budget.SHARES["split_merge"] / 2),
    "half_the_moves_of_columns": lambda: shares(
        **{name: _budget.SHARES[name] / 2 for name in COLUMN_MOVES}
    ),
    "half_the_column_blocks": lambda: shares(column_block=_budget.SHARES["column_block"] / 2),
    "fewer_column_blocks": lambda: shares(column_block=1 / 4),
    "hyperparameters_always": lambda: shares(hyperparameters=1e6),
    "at_most_400_sweeps": lambda: constants(_rounds, MOST_SWEEPS=400),
    "own_work_of_one_call": lambda: constants(_budget, OWN_CALLS=1),
    "one_chain_unlimited": lambda: constants(_rounds, ONE_CHAIN=1.0),
}


def without(move):
    """Fits of CrossCatPY without one of its moves."""
    moves = tuple(name for name in CrossCatPY._auto_moves if name != move)
    return lambda: patch.object(CrossCatPY, "_auto_moves", moves)


for _move in CrossCatPY._auto_moves:
    if _move != "gibbs":
        RULES[f"no_{_move}"] = without(_move)


def fit(rule, problem, seed):
    """A default fit under a rule; of one chain where columns are in views."""
    with RULES[rule]():
        views = problem.estimator == "CrossCatPY"
        return fitted(estimator(problem, seed, **({"n_chains": 1} if views else {})), problem.train)


class Split:
    """Train and test rows of the peers' splits, as a problem."""

    estimator, families = "CrossCatPY", "auto"

    def __init__(self, folder, name):
        self.train, self.fresh = load_split(folder, name)


class Binary:
    """Training and test rows of a binary table, as a problem."""

    estimator, families = "CrossCatPY", "bernoulli"

    def __init__(self, path):
        with np.load(path) as file:
            self.train, self.fresh = (
                np.unpackbits(file[part], axis=1, count=int(file["n_columns"])).astype(bool)
                for part in ("train", "test")
            )


def sets(folder):
    found = dict(KINDS)
    found |= {name: TABLES[name].problem for name in VIEWS}
    if folder is not None:
        found |= {name: (lambda seed, name=name: Split(folder, name)) for name in SPLITS}
        binary = files(folder / "binary")
        found |= {name: (lambda seed, path=path: Binary(path)) for name, path in binary.items()}
    return found


def measure(problem_of, rule, seed):
    problem = problem_of(FIRST_SEED + seed)
    with Stopwatch() as watch:
        model = fit(rule, problem, seed)
    joints = [draw.log_joint for chain in model.draws_ for draw in chain]
    return {
        "score": round(float(model.score(problem.fresh)), 5),
        "log_joint": round(float(max(joints)), 2),
        "converged": bool(model.converged_),
        "fit_seconds": watch.seconds,
    }


SUITE = Suite("ablation", sets, {"skanneal": {name: name for name in RULES}}, measure)


if __name__ == "__main__":
    SUITE.run(__doc__.splitlines()[0])
    print(table())
