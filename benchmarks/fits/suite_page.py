"""The tables of the suites of peers, made from the lines in `benchmarks/results`.

python benchmarks/fits/suite_page.py      # print them; the documentation includes the same text
"""

import sys
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from harness.lines import RESULTS, Lines
from harness.markdown import NONE, markdown
from harness.suite import KEYS, records

OURS = "skanneal"
# Splits of the peers of CrossCatPY, with the density and seconds recorded of Loom's longest run.
LOOM = {
    "synthetic10k": ("synthetic, 10,000 x 40", "-53.40", "6.4"),
    "satellites": ("satellites", "-47.3", "18"),
    "dart": ("Dartmouth, 4 chains", "-213.5", "12.1"),
    "acs10k": ("ACS, 10,000 x 35", "-34.55", "20.5"),
    "kdd10k": ("KDD, 10,000 x 36", "77.02", "10.0"),
}
# Of the binary tables, by method its heading.
BINARY = {
    "chow_liu": "tree",
    "mixture": "`AnnealedDPMixture`",
    "forests": "with forests",
    "crosscat": "`CrossCatPY`",
    "crosscat_forests": "with forests, 8 chains of 200 draws",
}


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
        source = _source(version)
        seeds = "–".join(map(str, sorted({min(n_seeds), max(n_seeds)})))
        rows.append([method.replace("_", " "), source, seeds, *map(_text, numbers)])
    headings = ["method", "from", "seeds", *measures.values(), *groups]
    return markdown(headings, rows) + f"\n\nMeans over {len(sets)} tables."


def ranks(folder=RESULTS):
    """Mean ranks of the imputation methods by the share of gaps, and the coverage of intervals."""
    found = records("imputation", folder)
    errors = {}  # by cell and measure, the error of each method
    for of_method, by_set in found.items():
        for set_name, its_records in by_set.items():
            for seed, record in enumerate(its_records):
                for measure in ("error", "falsely_classified"):
                    if record[measure] is not None:
                        cell = errors.setdefault((set_name, seed, measure), {})
                        cell[of_method] = record[measure]
    whole = {key: cell for key, cell in errors.items() if cell.keys() == found.keys()}
    rows = []
    for of_method, by_set in found.items():
        numbers = [
            mean_rank([cell for key, cell in whole.items() if key[0].endswith(share)], of_method)
            for share in (" 10", " 30")
        ]
        records_of = [record for its_records in by_set.values() for record in its_records]
        asked = sum(record.get("intervals", 0) for record in records_of)
        inside = sum(record.get("covered", 0) for record in records_of)
        numbers.append(inside / asked if asked else None)
        version, method = of_method
        source = _source(version)
        rows.append([method.replace("_", " "), source, *map(_text, numbers)])
    headings = ["method", "from", "rank, 10 %", "rank, 30 %", "coverage of 90 % intervals"]
    cells = len({key[:2] for key in whole})
    return markdown(headings, rows) + f"\n\nMean ranks over {cells} tables with gaps."


def pooled(folder=RESULTS):
    """How often pooled intervals hold the right value, and the ratio of variances, by set and
    method; of each the last version that was run."""
    of_version = {}  # by set, method and version, in the order of the file
    for (version, name, method, _), record in Lines(folder / "pooled.jsonl", KEYS).records.items():
        by_method = of_version.setdefault(name, {}).setdefault(method, {})
        by_method.setdefault(version, []).append(record)
    rows = []
    for name, by_method in of_version.items():
        for method in OF_METHODS:
            if method not in by_method:
                continue
            version, its_records = list(by_method[method].items())[-1]
            sums = {key: np.sum([record[key] for record in its_records], axis=0) for key in SUMS}
            n = sums["n_tables"]
            if method == "default":
                whole = _texts(sums["covered_whole"] / n)
                rows.append([name, "no gaps", "", str(n), *whole, "", "", ""])
            shares, ratios = sums["covered"] / n, sums["between"] / sums["squares"]
            numbers = [*_texts(shares), *_texts(ratios)]
            rows.append([name, method, _source(version), str(n), *numbers])
    results = "mean", "slope", "proportion"
    headings = [f"{of}: {what}" for what in ("covered", "ratio") for of in results]
    return markdown(["set", "method", "from", "tables", *headings], rows)


def _texts(numbers):
    return [f"{number:.2f}" for number in numbers]


OF_METHODS = "default", "miceforest", "iterative"
SUMS = "n_tables", "between", "squares", "covered", "covered_whole"


def decisions(folder=RESULTS):
    """What "auto" decided about each table."""
    ((_, by_set),) = records("decisions", folder).items()
    rows = []
    for name, (first, *_) in by_set.items():
        families = ", ".join(f"{len(of)} {family}" for family, of in first["families"].items())
        shares = sorted(atom["share"] for atom in first["atoms"].values())
        ends = dict.fromkeys(f"{share:.0%}" for share in shares[:1] + shares[-1:])
        atoms = " to ".join(ends) or NONE
        steps = f"{len(first['rounding'])} of {first['shape'][1]}"
        rows.append([name, "{} x {}".format(*first["shape"]), families, atoms, steps])
        rows[-1] += [_verdict(first), _text(first["log_interval"])]
    headings = ["table", "rows x columns", "families", "atoms hold", "rounded", "competition"]
    return markdown([*headings, "log interval"], rows)


def _verdict(record):
    """How the families of numbers competed, in words."""
    if record.get("decided_by") != "evidence":
        return record.get("decided_by", "no numbers are open")
    ahead = f"{record['margin']:.2f} ± {record['standard_error']:.2f}"
    return f"{record['winner']} by {ahead} nats a row, after {record['n_rows'][-1]} rows"


def binary(folder=RESULTS):
    """Held-out log densities of binary tables, with standard deviations over seeds."""
    found = records("binary", folder)
    by_method = {method: by_set for (_, method), by_set in found.items()}
    names = [method for method in BINARY if method in by_method]
    rows = []
    for name in sorted(set.union(*(set(by_method[method]) for method in names))):
        scores = {m: [record["score"] for record in by_method[m].get(name, [])] for m in names}
        best = max(np.mean(values) for values in scores.values() if values)
        cells = []
        for values in scores.values():
            if not values:
                cells.append(NONE)
                continue
            text = f"{np.mean(values):.2f}"
            text = f"**{text}**" if np.mean(values) > best - 0.005 else text  # to what is shown
            spread = f" ± {np.std(values, ddof=1):.2f}" if len(values) > 1 else ""
            cells.append(f"{text}{spread} ({len(values)})")
        rows.append([name, *cells])
    versions = ", ".join(dict.fromkeys(_source(version) for version, _ in found))
    return markdown(["table", *(BINARY[m] for m in names)], rows) + f"\n\nFrom {versions}."


def crosscat_peers(folder=RESULTS):
    """Held-out log densities and processor seconds of other programs' splits."""
    found = records("crosscat_peers", folder)
    by_method = {method: by_set for (_, method), by_set in found.items()}
    rows = []
    for split, (name, density, seconds) in LOOM.items():
        row = [name]
        for method in ("short", "default", "joint", "lace"):
            its_records = by_method.get(method, {}).get(split, [])
            row.append(_with_spread([record["score"] for record in its_records], 2))
            spent = [record["fit_seconds"] for record in its_records]
            row.append(f"{np.mean(spent):.1f}" if spent else NONE)
        rows.append([*row, density, seconds])
    sources = ", ".join(dict.fromkeys(_source(version) for version, _ in found))
    methods = "24 sweeps", "default", "joint", "Lace", "Loom"
    headings = [heading for method in methods for heading in (method, "seconds")]
    return markdown(["split", *headings], rows) + f"\n\nFrom {sources}; Loom's are recorded."


def crosscat_imputation(folder=RESULTS):
    """Errors of filled cells, with standard deviations over random blanks."""
    found = records("crosscat_imputation", folder)
    sets = sorted({name for by_set in found.values() for name in by_set}, reverse=True)
    rows = []
    for (version, method), by_set in found.items():
        errors = ([record["error"] for record in by_set.get(name, [])] for name in sets)
        rows.append([method, _source(version), *(_with_spread(of_set, 3) for of_set in errors)])
    return markdown(["method", "from", *sets], rows)


def _with_spread(values, digits):
    """Mean and standard deviation of values, and how many they are."""
    if not values:
        return NONE
    spread = f" ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{spread} ({len(values)})"


def _source(version):
    """A package with its version, or our commit."""
    return version if " " in version else f"{OURS} {version}"


def mean_rank(cells, of_method):
    """Mean rank of a method's errors among all methods', 1 for the smallest."""
    if not cells:
        return None
    ranks_of = [dict(zip(cell, rankdata(list(cell.values())))) for cell in cells]
    return float(np.mean([ranks_of_cell[of_method] for ranks_of_cell in ranks_of]))


def _text(number):
    return NONE if number is None else f"{number:.3f}"


RANKING = {"auc": "AUC", "average_precision": "AP"}  # of outliers
TABLES = {
    "clustering": lambda: table(
        "clustering", {"ari": "ARI", "ami": "AMI"}, groups=("fcps", "graves", "sipu")
    ),
    "outliers": lambda: table("outliers", RANKING),
    "rare_classes": lambda: table("rare_classes", RANKING),
    "imputation": ranks,
    "pooled": pooled,
    "drawn_fills": lambda: table(
        "drawn_fills",
        {
            "energy": "energy score",
            "error": "error",
            "wrong": "wrong levels",
            "covered": "coverage",
        },
        groups=("shifts", "classes", "curves", "amounts"),
    ),
    "densities": lambda: table(
        "densities", {"log_density": "mean"}, groups=("iris", "wine", "breast cancer")
    ),
    "decisions": decisions,
    "binary": binary,
    "crosscat_peers": crosscat_peers,
    "crosscat_imputation": crosscat_imputation,
}

if __name__ == "__main__":
    for name, text in TABLES.items():
        print(f"{name}\n\n{text()}\n")
