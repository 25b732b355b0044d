"""Cells that were measured twice: do they agree within their errors?

A repeated cell has the data, the seed and the budget of the first. Where no clock is read it must
be the same; elsewhere processor seconds end it at another step, or the package is a later one. Its
error is the standard deviation over the seeds of the cells that differ from it in nothing else.
"""

import math
import random

from scipy.stats import t as student

from harness.lines import RESULTS, Lines
from harness.markdown import NONE, markdown
from papers.cells import Cell, commits_of, line, lines_of
from papers.tempering_chains import rate
from papers.verdicts import deviation

SAME = 1e-6  # relative: what another order of single-precision sums may do
KEYS = ("family", *Cell._fields)
# What is compared: the first of these that a record has.
SINGLE = ("score", "end", "full", "late", "features", "log_evidence", "per_draw", "per_1000")
SINGLE += ("accepted", "share")
NESTED = {
    "full_at": "full predictive, last",
    "clusters": "autocorrelation, last lag",
    "times": "assignments, last",
    "anneal": "time, last",
    "counts": "end states in the last bin",
    "states": "error of a simulated diffusion",
}


def lines_again(folder=RESULTS):
    """The lines of repeated cells, of all families."""
    return Lines(folder / "papers_again.jsonl", KEYS)


def measure_again(family, n, *, wanted, most=math.inf, folder=RESULTS):
    """Measure random cells that took at most so many seconds once more; none a third time."""
    records, repeated = lines_of(family, folder).records, lines_again(folder)
    cells = [Cell(*key) for key, record in records.items() if record["seconds"] <= most]
    cells = [c for c in cells if wanted(c) and repeated.get(family.NAME, *c) is None]
    for cell in random.sample(cells, min(n, len(cells))):
        repeated.add({"family": family.NAME} | line(family, cell, commits_of(family)))
        print(*cell, f"{repeated.get(family.NAME, *cell)['seconds']} s", flush=True)


def compared(record):
    """The one number of a record that is compared, and its name."""
    for name in SINGLE:
        if name in record:
            return name, record[name]
    if "bulk" in record:
        return "log effective draws a second", math.log(rate(record, "bulk"))
    if "ours" in record:
        return "log density", record["ours"]["log_density"]
    for name, words in NESTED.items():
        if name in record:
            return words, last_number(record[name])
    name = next(name for name in record if name.startswith("stratified"))
    return f"total variation, {name}", record[name]


def last_number(value):
    """Of nested lists and dicts."""
    while isinstance(value, list | dict):
        value = list(value.values())[-1] if isinstance(value, dict) else value[-1]
    return value


def again_table(family, records, folder=RESULTS):
    """Both numbers of every repeated cell, and whether they differ by more than seeds do."""
    rows = []
    for key, second in lines_again(folder).records.items():
        name, cell = key[0], Cell(*key[1:])
        if name != family.NAME or cell not in records:
            continue
        about, one = compared(records[cell])
        other = compared(second)[1]
        spread, n = spread_over_seeds(records, cell)
        words = f"`{cell.figure}`, {cell.data}, {cell.method}, seed {cell.seed}"
        words += f", {cell.budget:g}" if cell.budget else ""
        verdict = agreement(one, other, spread, n)
        rows.append((words, about, *map(text_of, (one, other, spread)), verdict))
    if not rows:
        return "No cell is measured twice yet."
    headings = "cell", "number", "first", "again", "deviation over seeds", "agree"
    judged = [row[-1] for row in rows if row[-1] != NONE]
    n_agree = len(judged) - judged.count("no")
    return f"{markdown(headings, rows)}\n\n{n_agree} of {len(judged)} agree."


def text_of(number):
    """A dash for none, as for the spread of one seed."""
    if math.isnan(number):
        return NONE
    return f"{number:,.1f}" if abs(number) >= 1000 else f"{number:.4g}"


def spread_over_seeds(records, cell):
    """Standard deviation over seeds, and how many there are."""
    values = [
        compared(record)[1]
        for key, record in records.items()
        if Cell(*key)._replace(seed=cell.seed) == cell
    ]
    return deviation(values), len(values)


def agreement(one, other, spread, n):
    """Whether two numbers of one law may differ so much, at 95 %."""
    if math.isclose(one, other, rel_tol=SAME):
        return "the same"
    if n < 2:
        return NONE
    limit = float(student.ppf(0.975, n - 1)) * math.sqrt(2) * spread
    return "yes" if abs(other - one) <= limit else "no"
