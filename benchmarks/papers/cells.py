"""Cells of the papers' figures and tables: what has a line is not measured again.

A *family* is a module with the figures and tables of one paper. It has

``NAME``
    its lines are in ``benchmarks/results/papers_NAME.jsonl``;
``cells()``
    all its cells in the order of work, also those that nobody had the time to measure;
``measure(cell)``
    what is measured, a dict that JSON can hold;
``tables(records)``, ``pictures(records, folder)``
    text and pictures of the documentation, from the lines alone.

Budgets are processor seconds of one single-threaded chain. Cells may be measured side by side, one
on each core. With several on a core they share its caches, and a second is worth less: up to three
times less was seen, with nine processes on two cores.
"""

import math
import platform
from importlib.metadata import version
from typing import NamedTuple

from harness.lines import RESULTS, Lines, Stopwatch, last_commit, package_commit
from harness.markdown import NONE, markdown

VERSIONS = f"python {platform.python_version()}, " + ", ".join(
    f"{name} {version(name)}" for name in ("numpy", "scipy")
)


class Cell(NamedTuple):
    """What a line belongs to.

    ``budget`` is in processor seconds per chain, or sweeps where a figure's module says so; 0 where
    the work is given by the data.
    """

    figure: str
    data: str
    method: str
    seed: int = 0
    budget: float = 0.0


def lines_of(family, folder=RESULTS):
    """The family's lines; of a cell that was measured twice, the later one counts."""
    return Lines(folder / f"papers_{family.NAME}.jsonl", Cell._fields)


def run(family, clock, *, wanted=None, anew=False, folder=RESULTS):
    """Measure the cells that have no line, until the clock's time is over.

    Parameters
    ----------
    family : module
    clock : Clock
    wanted : callable, optional
        Whether a cell is asked for.
    anew : bool, default=False
        Also those whose line is of another commit of the package or of the family's script.
    folder : path
    """
    lines, commits = lines_of(family, folder), commits_of(family)
    for cell in family.cells():
        record = lines.get(*cell)
        done = record is not None and not (anew and record | commits != record)
        if done or (wanted and not wanted(cell)):
            continue
        if clock.left() < 0:
            return
        lines.add(line(family, cell, commits))
        print(*cell, f"{lines.get(*cell)['seconds']} s", flush=True)


def commits_of(family):
    """Last commits that changed the package and the family's script."""
    return {"version": package_commit(), "script": last_commit(family.__file__)}


def line(family, cell, commits):
    """A cell's record."""
    with Stopwatch() as watch:
        measured = family.measure(cell)
    about = {"versions": VERSIONS, "seconds": watch.seconds, "load": watch.load}
    return cell._asdict() | commits | about | measured


def of_figure(records, figure):
    """The cells of a figure that have a line, with their records."""
    cells = {Cell(*key): record for key, record in records.items()}
    return {cell: record for cell, record in cells.items() if cell.figure == figure}


def shown(headings, rows, records, *figures):
    """A table with the cells behind it; where there are none yet, only that sentence."""
    sentence = behind(records, *figures)
    return f"{markdown(headings, rows)}\n\n{sentence}" if rows else sentence


def judged(claims, records, *figures):
    """A table of claims with what was measured and the verdict, and the cells behind it."""
    return shown(("claim", "measured", "verdict"), list(claims), records, *figures)


def behind(records, *figures):
    """Names the cells behind a picture or table, in a sentence."""
    found = [r for figure in figures for r in of_figure(records, figure).values()]
    *others, last = (f"`{figure}`" for figure in figures)
    names = f"{', '.join(others)} and {last}" if others else last
    if not found:
        return f"No cell of {names} is measured yet."
    hours = sum(record["seconds"] for record in found) / 3600
    commits = ", ".join(f"`{version}`" for version in dict.fromkeys(r["version"] for r in found))
    return f"Cells: {len(found)} of {names}, {hours:.2f} processor hours, package of {commits}."


def whole_decades(limits):
    """Limits of a logarithmic axis from one power of ten to another, so that two have labels."""
    low, high = (math.log10(limit) for limit in limits)
    return 10.0 ** math.floor(low), 10.0 ** math.ceil(high)


def progress(family, records):
    """A table of how many cells have been measured, and what the others would cost.

    A cell without a budget is taken to cost as much as the family's cells of the same figure.
    """
    rows, cells = [], list(family.cells())
    for figure in dict.fromkeys(cell.figure for cell in cells):
        wanted = [cell for cell in cells if cell.figure == figure]
        spent = {c: r["seconds"] for c, r in of_figure(records, figure).items() if c in wanted}
        typical = sum(spent.values()) / len(spent) if spent else None
        left = [family.cost(cell, typical) for cell in wanted if cell not in spent]
        known = None not in left
        rows.append(
            (
                f"`{figure}`",
                f"{len(spent)} of {len(wanted)}",
                f"{sum(spent.values()) / 3600:.2f}",
                f"{sum(left) / 3600:.2f}" if known else NONE,
            )
        )
    headings = ("figure", "cells measured", "processor hours", "hours for the others, about")
    return markdown(headings, rows)
