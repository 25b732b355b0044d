"""The tables of the page of problems, made from the lines in `benchmarks/results`.

python benchmarks/fits/page.py            # print them; the documentation includes the same text
"""

import inspect
import sys
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from fits.fits import KEYS
from fits.problems import KINDS
from fits.real_tables import FROM_FOLDER
from fits.references import KEYS as REFERENCE_KEYS
from fits.references import MODEL, TOLERANCE
from harness.lines import RESULTS, Lines
from harness.markdown import NONE, markdown

HEADINGS = (
    "problem",
    "fits",
    "gap, median",
    "gap, worst",
    "± worst",
    "components inside",
    "ARI, median",
    "claim",
    "of these right",
    "cut fits that do not claim",
)


def kinds_in_words():
    """A list of the kinds, each with the first paragraph of its docstring."""
    return "\n".join(
        f"- **{name}.** {' '.join(inspect.getdoc(function).split())}"
        for name, function in (KINDS | FROM_FOLDER).items()
    )


def tables(folder=RESULTS):
    """Markdown of the fits of today's model, the commit measured last first; then what its
    references leave open."""
    references = Lines(folder / "references.jsonl", REFERENCE_KEYS).records
    references = {key[1:]: record for key, record in references.items() if key[0] == MODEL}
    cells = Lines(folder / "problems.jsonl", KEYS).records
    cells = {(key[0], *key[2:]): record for key, record in cells.items() if key[1] == MODEL}
    parts = [
        of_commit(
            commit,
            references,
            {key[1:]: record for key, record in cells.items() if key[0] == commit},
        )
        for commit in reversed(dict.fromkeys(key[0] for key in cells))
    ]
    return "\n\n".join(parts + open_questions(references))


def of_commit(commit, references, cells):
    """The tables of one commit.

    Parameters
    ----------
    commit : str
    references : dict of (kind, seed) to record
    cells : dict of (kind, seed, way) to record
    """
    resolved = {key for key, record in references.items() if record.get("resolved")}
    good = {key: record for key, record in cells.items() if key[:2] in resolved}
    names = list(dict.fromkeys(name for name, _, _ in good))
    rows = [row(name, {k: r for k, r in good.items() if k[0] == name}) for name in names]
    times = sorted({record["times"] for record in references.values() if "times" in record})
    work = " and ".join(f"{n:g}" for n in times)
    parts = [f"**Package of commit `{commit}`** (references of {work} times the work)"]
    if names:
        parts.append(markdown(HEADINGS, [*rows, row("all", good)]))
    schedules = list(dict.fromkeys(way for *_, way in good if way not in ("default", "cut")))
    if schedules:
        gaps = [
            [name, *(number(median_gap(good, name, way)) for way in ("default", *schedules))]
            for name in names
        ]
        parts.append("Median gap of schedules with as many sweeps as the default fit:")
        parts.append(markdown(("problem", "default", *schedules), gaps))
    return "\n\n".join(parts)


def row(name, cells):
    """A row of the main table."""
    default = [record for key, record in cells.items() if key[2] == "default"]
    cut = [record for key, record in cells.items() if key[2] == "cut"]
    worst = max(default, key=lambda record: record["gap"], default=None)
    aris = [record["ari"] for record in default if "ari" in record]
    claims = [record for record in default if record["converged"]]
    told = [record for record in default if record["converged"] is not None]
    cut_told = [record for record in cut if record["converged"] is not None]
    return [
        name,
        str(len(default)),
        number(median(record["gap"] for record in default) if default else None),
        number(worst and worst["gap"]),
        number(worst and worst["error"]),
        share([record["inside"] for record in default]),
        number(median(aris) if aris else None, 2),
        share([record["converged"] for record in told]),
        share([record["gap"] <= TOLERANCE for record in claims]),
        share([not record["converged"] for record in cut_told]),
    ]


def median_gap(cells, name, way):
    """Median gap of a kind's fits of one way, or None."""
    gaps = [record["gap"] for key, record in cells.items() if key[0] == name and key[2] == way]
    return median(gaps) if gaps else None


def open_questions(references):
    """What the references leave open: lists of unresolved problems and of those left out."""
    unresolved, left_out = [], []
    for (name, seed), record in references.items():
        if "needs" in record:
            left_out.append(f"- {name}, seed {seed}: about {record['needs'] / 60:.0f} minutes")
        elif not record["resolved"]:
            scores = [start["score"] for start in record["starts"].values()]
            components = ", ".join(
                f"{start} {low} to {high}"
                for start, (low, high) in (
                    (start, said["components"]) for start, said in record["starts"].items()
                )
            )
            unresolved.append(
                f"- {name}, seed {seed}: the starts' scores differ by "
                f"{max(scores) - min(scores):.4f}; components from {components}"
            )
    parts = []
    if unresolved:
        parts += ["Unresolved, and not in the tables:", "\n".join(unresolved)]
    if left_out:
        parts += ["Left out, since a reference would take longer:", "\n".join(left_out)]
    return parts


def number(value, digits=4):
    """A number's text, or a dash for None."""
    return NONE if value is None else f"{round(value, digits) + 0.0:.{digits}f}"  # no -0.0


def share(said):
    """How many of a list are true, as "3 of 5"; a dash where the list is empty."""
    return f"{sum(said)} of {len(said)}" if said else NONE


if __name__ == "__main__":
    print(tables())
