"""Draw every picture and table of the papers' pages from the lines in `benchmarks/results`.

    python benchmarks/papers/figures.py    # or: make figures

No sampler runs. Pictures go to `doc/_static`, tables to `doc/generated`, where the pages find them.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are

import matplotlib

matplotlib.use("Agg")

from harness.lines import ROOT
from papers.cells import lines_of, progress
from papers.families import FAMILIES
from papers.repeats import again_table

STATIC, GENERATED = ROOT / "doc" / "_static", ROOT / "doc" / "generated"


def write_tables(folder=GENERATED):
    """`table_FAMILY_NAME.md` for each table, and of each family which cells are measured, and which
    twice."""
    folder.mkdir(exist_ok=True)
    for name, family in FAMILIES.items():
        records = lines_of(family).records
        own = {"cells": progress(family, records), "again": again_table(family, records)}
        for table, text in (family.tables(records) | own).items():
            Path(folder, f"table_{name}_{table}.md").write_text(text + "\n", encoding="utf-8")


def write_pictures(folder=STATIC):
    """`FAMILY_NAME.png` for each picture."""
    for name, family in FAMILIES.items():
        for picture, figure in family.pictures(lines_of(family).records).items():
            figure.savefig(folder / f"{name}_{picture}.png", dpi=100, metadata={"Software": None})


if __name__ == "__main__":
    write_tables()
    write_pictures()
