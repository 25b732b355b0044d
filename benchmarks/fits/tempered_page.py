"""The tables of what tempered mixtures are worth, from the lines of `tempered_mixtures.py`."""

import statistics

from harness.lines import RESULTS
from harness.markdown import NONE, markdown
from harness.suite import records

ALIKE = 1.1  # R-hat above which a rate says little
OF = "log_joint", "components"
WORDS = {"plain": "no tempering", "rows": "fewer rows", "half": "to half", "powers": "powers"}


def table(folder=RESULTS):
    """A row per table and way: means over seeds, the least acceptance, the largest R-hat."""
    found, rows = by_method(folder), []
    for name in found["plain"]:
        for method, words in WORDS.items():
            rows.append([name.replace("_", " "), words, *_ladder(found[method][name])])
    headings = [
        *("table", "tempering", "rungs", "cost", "swaps accepted", "ways up, down"),
        *("R-hat", "draws of log joint", "of components"),
    ]
    return markdown(headings, rows)


def ratios(folder=RESULTS):
    """A row per table: how often a swap with one neighbour of this ratio is accepted."""
    found = by_method(folder)
    pairs = [method for method in found if " " in method]
    rows = [
        [name.replace("_", " "), *(f"{_accepted(found[pair][name]):.2f}" for pair in pairs)]
        for name in found["plain"]
    ]
    return markdown(["table", *pairs], rows)


def by_method(folder):
    """Method to table to the records of its seeds, of tables where all methods were run."""
    found = {method: of for (_, method), of in records("tempered_mixtures", folder).items()}
    whole = set.intersection(*map(set, found.values()))
    return {
        method: {name: of[name] for name in of if name in whole} for method, of in found.items()
    }


def _ladder(its_records):
    """The cells of a way's records on a table."""
    rungs, cost = its_records[0]["rungs"], its_records[0]["cost"]
    swaps = ways = NONE
    if rungs > 1:
        least = min(record["accepted"][1] for record in its_records)
        swaps = f"{_accepted(its_records):.2f} ({least:.2f})"
        ways = ", ".join(str(sum(record["ways"][i] for record in its_records)) for i in (0, 1))
    r_hats = [max(record[of]["r_hat"] for of in OF) for record in its_records]
    rates = []
    for of in OF:
        star = "*" if any(record[of]["r_hat"] > ALIKE for record in its_records) else ""
        rates.append(f"{_mean([record[of]['rate'] for record in its_records]):.1f}{star}")
    return [str(rungs), f"{cost:.1f}", swaps, ways, f"{max(r_hats):.2f}", *rates]


def _accepted(its_records):
    return _mean([record["accepted"][0] for record in its_records])


def _mean(numbers):
    return statistics.fmean(numbers)
