"""The table of what each rule of the search is worth, made from the lines of `ablation.py`."""

import math
import statistics

from harness.lines import RESULTS, Lines
from harness.markdown import markdown
from harness.suite import KEYS

# Columns of a table, by which its nats per row are divided; of a set in views they are in its name.
WIDTHS = {
    "overlapping": 2,
    "separated": 4,
    "one_gaussian": 5,
    "heavy_tails": 3,
    "uniform": 2,
    "rare": 5,
    "correlated": 4,
    "levels": 12,
    "counts": 6,
    "documents": 200,
    "mixed_with_gaps": 9,
    "tables": 12,
    "synthetic10k": 40,
    "satellites": 20,
    "dart": 63,
    "acs10k": 35,
    "kdd10k": 36,
    "plants": 69,
    "accidents": 111,
    "jester": 100,
    "dna": 180,
    "mushrooms": 112,
    "nltcs": 16,
}
# By the name of the fits without it: the rule, and what became of it.
RULES = {
    "no_waiting": ("moves wait for 50 rows", "kept"),
    "no_split_merge": ("split-merge of components", "kept"),
    "no_column_block": ("moves of blocks of columns", "kept"),
    "no_column_sets": ("moves of sets of columns", "kept"),
    "no_view_split_merge": ("split-merge of views", "kept"),
    "no_view_reallocation": ("reallocation of views", "kept"),
    "no_mending": ("views are mended while rows enter", "kept"),
    "no_races": ("a race of two starts", "kept"),
    "even_work": ("turns, not as much work for each move as for the churn", "replaced"),
    "equal_weights": ("weights of the moves' turns", "replaced"),
    "no_null_share": ("a tenth of the proposed pairs opens no second cluster", "kept"),
    "no_extra_splits": ("more splits while rows are few", "replaced"),
    "fewer_extra_splits": ("4,000 rows of them, not 1,000", "replaced"),
    "every_allocation": ("fewer allocations of more than 2,000 rows", "replaced"),
    "every_size_alike": ("fewer proposals of large views", "replaced"),
    "turns": ("the budget, in place of those that are replaced", "kept"),
    "twice_the_splits": ("splits have half the churn's work, not all of it", "kept"),
    "half_the_splits": ("splits have half the churn's work, not a quarter", "kept"),
    "half_the_moves_of_columns": (
        "shares of 1/4 and 1/8 for moves of columns, not half of them",
        "in part",
    ),
    "half_the_column_blocks": ("blocks of columns have the churn's work, not half of it", "kept"),
    "fewer_column_blocks": ("blocks of columns have the churn's work, not a quarter", "kept"),
    "hyperparameters_always": (
        "draws of hyperparameters have half of a churn's work, not one draw after each",
        "kept",
    ),
    "at_most_400_sweeps": ("at most 800 sweeps at full data, not 400", "kept"),
    "own_work_of_one_call": ("a churn's own work is that of eight calls, not of one", "kept"),
    "one_chain_unlimited": ("one chain has a third of the work", "kept"),
    "no_idling": ("moves that accept nothing miss turns", "gone"),
    "no_rests": ("no moves after most churns of few rows", "gone"),
    "all_moves_at_full_data": ("moves of columns share turns on many rows", "gone"),
    "no_reallocation_at_full_data": ("a quarter of the reallocations at full data", "gone"),
    "no_shared_splits": ("views share the extra splits on many rows", "gone"),
    "surer_mending": ("two standard errors are enough to mend", "gone"),
    "fewer_rules": ("the six above together", "gone"),
}
ELSEWHERE = {"fewer_rules"}  # whose seconds are another machine's
# Fits with the rule are of the same commit; of rules that a later commit has made, they are of the
# n-th commit that has such fits.
SINCE = {"turns": 1}


def width(name):
    """How many columns a set has."""
    if name in WIDTHS:
        return WIDTHS[name]
    _, views, columns, _ = name.split("_")
    return int(views[1:]) * int(columns[1:])


def gains(folder=RESULTS):
    """What each rule gains, set by set: default fits less those without it, equal seeds, of the
    last commit that has fits without it.

    Returns
    -------
    gains : dict of str to (dict of str to float, list of float)
        By rule: of each set the thousandths of a nat per cell, and of each fit the log of by what
        factor it takes longer without the rule.
    """
    fits = {}  # by rule, commit, set and seed
    for record in Lines(folder / "ablation.jsonl", KEYS).records.values():
        at = fits.setdefault(record["method"], {}).setdefault(record["version"], {})
        at[record["set"], record["seed"]] = record
    today, found = fits.pop("today", {}), {}
    for rule, by_commit in fits.items():
        commit, without = by_commit.popitem()
        base = today.get(commit) or list(today.values())[SINCE[rule]]
        pairs = [(base[cell], without[cell]) for cell in base if cell in without]
        of_set = {}
        for one, other in pairs:
            of_set.setdefault(one["set"], []).append(one["score"] - other["score"])
        scores = {
            name: 1000.0 * statistics.fmean(gained) / width(name) for name, gained in of_set.items()
        }
        factors = [math.log(other["fit_seconds"] / one["fit_seconds"]) for one, other in pairs]
        found[rule] = scores, factors
    return found


def table(folder=RESULTS):
    """A row per rule."""
    rows, found = [], gains(folder)
    for name, (words, fate) in RULES.items():
        scores, factors = found.get(name, ({}, []))
        if len(scores) < 2:
            continue
        values = list(scores.values())
        error = statistics.stdev(values) / math.sqrt(len(values))
        most = max(scores, key=scores.get)
        rows.append(
            (
                words,
                f"{statistics.fmean(values):+.2f} ± {error:.2f}",
                f"{scores[most]:+.1f} ({most})",
                "" if name in ELSEWHERE else f"{math.exp(statistics.fmean(factors)):.2f}",
                f"{len(scores)}, {len(factors)}",
                fate,
            )
        )
    headings = ("rule", "gain", "greatest gain", "time without", "tables, fits", "")
    return markdown(headings, rows)
