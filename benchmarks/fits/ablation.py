"""What each rule of the search is worth: fits without it, beside fits with all of them.

    python benchmarks/fits/ablation.py                  # simulated tables, 40 minutes, then cut
    python benchmarks/fits/ablation.py DATA_FOLDER --sets satellites dart --methods today no_races

A method is the default estimator without one rule, or with another one in its place; "today" is the
default. With one seed every method has the same table and the same seed, so that differences are
paired. Simulated tables are drawn with seeds from FIRST_SEED on, which nothing else uses. The
data folder, if given, has the train and test rows of the five splits of `crosscat_peers.py`.

A line of `benchmarks/results/ablation.jsonl` has the mean log density of held-out rows in nats, the
greatest log joint density of the draws, and processor seconds. The table that is printed at the end
says of each rule by how many nats per row a fit with it is better, the standard error over tables
and seeds, the worst kind of table, and by what factor it is slower.
"""

import contextlib
import math
import statistics
import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np

from skanneal import CrossCatPY
from skanneal.chains import _mend, _move_policy, _moves, _race
from skanneal.chains import _plan as plans
from skanneal.estimators import _rounds
from skanneal.moves import (
    COLUMN_MOVES,
    MOVES,
    _allocating_move,
    _hyperparameters,
    _split_merge,
    _view_annealing,
    _view_reallocation,
)
from skanneal.states import CrossCat

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from fits.models import estimator, fitted
from fits.problems import KINDS
from fits.views import TABLES
from harness.crosscat_data import load_split
from harness.lines import Stopwatch
from harness.suite import Suite, files, records

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


@contextlib.contextmanager
def equal_weights():
    """Moves take turns equally often."""
    with contextlib.ExitStack() as stack:
        for move in {*MOVES.values(), *COLUMN_MOVES.values()}:
            if hasattr(move, "weight"):
                stack.enter_context(patch.object(move, "weight", 1))
        yield


@contextlib.contextmanager
def all_moves_at_full_data():
    """All moves of columns follow each churn of all rows, on tables of any size."""
    kinds = _move_policy.Turns._kinds

    def of(self, state, full):
        always, sharing, n_turns = kinds(self, state, full)
        return (always + sharing, [], 0) if full else (always, sharing, n_turns)

    with patch.object(_move_policy.Turns, "_kinds", of):
        yield


@contextlib.contextmanager
def even_work():
    """Every move works as much as the churn, in place of turns."""
    tiles = property(lambda state: sum(view.n_tiles + 1 for view in state.views) - 1)
    with (
        constants(_moves, Turns=_move_policy.EvenWork),
        patch.object(CrossCat, "n_tiles", tiles, create=True),
    ):
        yield


RULES = {
    "today": contextlib.nullcontext,
    "no_idling": lambda: constants(_move_policy, IDLE_AFTER=10**9),
    "no_rests": lambda: constants(_move_policy, FEW_ROWS=0),
    "equal_weights": equal_weights,
    "all_moves_at_full_data": all_moves_at_full_data,
    "even_work": even_work,
    "no_waiting": lambda: constants(plans, MOST_SETTLED=2, LEAST_SETTLED=2),
    "no_races": lambda: constants(_race, begin_rival=never),
    "no_mending": lambda: constants(_race, mend_views=never),
    "surer_mending": lambda: constants(_mend, SURE=3.0),
    "no_shared_splits": lambda: constants(_hyperparameters, SMALL_TABLE=10**9),
    "no_extra_splits": lambda: constants(_split_merge, FEW_ROWS=0),
    "fewer_extra_splits": lambda: constants(_split_merge, FEW_ROWS=1000),
    "every_allocation": lambda: constants(_allocating_move, ALL_ROWS=10**9),
    "no_null_share": lambda: constants(_allocating_move, NULL_SHARE=0.5),
    "reallocation_at_full_data": lambda: constants(_view_reallocation, SETTLED=1.0),
    "no_reallocation_at_full_data": lambda: constants(_view_reallocation, SETTLED=0.0),
    "every_size_alike": lambda: patch.object(
        _view_reallocation.ViewReallocation, "_is_made", lambda *_: True
    ),
    "annealing_of_few_rows": lambda: constants(_view_annealing, FEW_ROWS=0),
    "one_chain_unlimited": lambda: constants(_rounds, ONE_CHAIN=1.0),
}


def together(*names):
    """A rule that is several of them."""

    @contextlib.contextmanager
    def of():
        with contextlib.ExitStack() as stack:
            for name in names:
                stack.enter_context(RULES[name]())
            yield

    return of


def without(move):
    """Fits of CrossCatPY without one of its moves."""
    moves = tuple(name for name in CrossCatPY._auto_moves if name != move)
    return lambda: patch.object(CrossCatPY, "_auto_moves", moves)


for _move in CrossCatPY._auto_moves:
    if _move != "gibbs":
        RULES[f"no_{_move}"] = without(_move)
ROTATION = "no_idling", "no_rests", "equal_weights", "all_moves_at_full_data"
LEAN = (
    "no_idling",
    "no_rests",
    "no_races",
    "all_moves_at_full_data",
    "no_reallocation_at_full_data",
    "surer_mending",
)
FEWER = (*(rule for rule in LEAN if rule != "no_races"), "no_shared_splits")
RULES["fewer_rules"] = together(*FEWER)
RULES["lean"] = together(*LEAN)
RULES["lean_no_shared_splits"] = together(*LEAN, "no_shared_splits")
RULES["rotation"] = together(*ROTATION)
RULES["rotation_no_races"] = together(*ROTATION, "no_races")
RULES["simple"] = together(*ROTATION, "no_races", "no_reallocation_at_full_data")


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


def gains():
    """Of each rule the differences that it makes, table by table: "today" less the fit without it.

    Returns
    -------
    gains : dict of str to dict of str to (list of float, list of float)
        By rule and set, of each seed the nats per row, and the log of the ratio of the seconds.
    """
    of_method = {name: of for (_, name), of in records("ablation").items()}
    found = {}
    for rule, of_set in of_method.items():
        for name, of in of_set.items() if rule != "today" else ():
            base = {record["seed"]: record for record in of_method["today"].get(name, [])}
            pairs = [(base[record["seed"]], record) for record in of if record["seed"] in base]
            score = [one["score"] - other["score"] for one, other in pairs]
            seconds = [math.log(one["fit_seconds"] / other["fit_seconds"]) for one, other in pairs]
            found.setdefault(rule, {})[name] = score, seconds
    return found


def print_gains():
    """A row per rule: nats per row, their standard error, the worst two kinds of table."""
    print("rule, tables, gain, error, factor of seconds; sets of the greatest gain and loss")
    for rule, of_set in gains().items():
        score = [gain for of, _ in of_set.values() for gain in of]
        seconds = [gain for _, of in of_set.values() for gain in of]
        error = statistics.stdev(score) / math.sqrt(len(score)) if len(score) > 1 else math.nan
        factor = math.exp(statistics.fmean(seconds))
        mean = {name: statistics.fmean(of) for name, (of, _) in of_set.items() if of}
        order = sorted(mean, key=mean.get)
        ends = ", ".join(f"{name} {mean[name]:+.4f}" for name in (*order[:2], *order[-2:]))
        print(f"{rule:28} {len(score):4} {np.mean(score):+.4f} {error:.4f} {factor:.2f}  {ends}")


if __name__ == "__main__":
    SUITE.run(__doc__.splitlines()[0])
    print_gains()
