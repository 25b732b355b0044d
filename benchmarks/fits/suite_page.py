"""The tables of the suites of peers, made from the lines in `benchmarks/results`.

python benchmarks/fits/suite_page.py      # print them; the documentation includes the same text
"""

import numpy as np

from lines import RESULTS, Lines
from page import NONE, markdown
from suite import KEYS

OURS = "skanneal"


def records(suite, folder=RESULTS):
    """(version, method) to set to the records of its seeds; of our commits the last one only."""
    lines = Lines(folder / f"{suite}.jsonl", KEYS).records
    peers = {key[0] for key in lines if " " in key[0]}
    last = {key[2]: key[0] for key in lines if key[0] not in peers}  # by method, in file order
    out = {}
    for (version, set_name, method, _), record in lines.items():
        if version in peers or last[method] == version:
            out.setdefault((version, method), {}).setdefault(set_name, []).append(record)
    return out


def means(of_method, measures, sets):
    """Mean of each measure over seeds, then over these sets; None where one was not run."""
    if any(name not in of_method for name in sets):
        return [None] * len(measures)
    return [
        float(np.mean([np.mean([r[measure] for r in of_method[name]]) for name in sets]))
        for measure in measures
    ]


def table(suite, measures, folder=RESULTS, groups=()):
    """A row per method: the means over all sets, then the first measure's over groups of sets.

    Parameters
    ----------
    suite : str
    measures : dict of str to str
        By the name in the records, the heading.
    groups : tuple of str
        Beginnings of the names of sets.
    """
    found = records(suite, folder)
    sets = sorted({name for of_method in found.values() for name in of_method})
    first = next(iter(measures))
    rows = []
    for (version, method), of_method in found.items():
        numbers = means(of_method, measures, sets)
        for group in groups:
            own = [name for name in sets if name.startswith(group)]
            numbers += means(of_method, (first,), own)
        n_seeds = {len(records) for records in of_method.values()}
        source = version if " " in version else f"{OURS} {version}"
        seeds = "–".join(map(str, sorted({min(n_seeds), max(n_seeds)})))
        rows.append([method.replace("_", " "), source, seeds, *map(_text, numbers)])
    headings = ["method", "from", "seeds", *measures.values(), *groups]
    return markdown(headings, rows) + f"\n\nMeans over {len(sets)} tables."


def _text(number):
    return NONE if number is None else f"{number:.3f}"


TABLES = {
    "clustering": lambda: table(
        "clustering", {"ari": "ARI", "ami": "AMI"}, groups=("fcps", "graves", "sipu")
    ),
    "outliers": lambda: table("outliers", {"auc": "AUC", "average_precision": "AP"}),
}

if __name__ == "__main__":
    for name, text in TABLES.items():
        print(f"{name}\n\n{text()}\n")
