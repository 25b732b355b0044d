"""Measure the cells of the papers' figures and tables that have no line yet.

    python benchmarks/papers/run.py --data DATA_FOLDER                # all of them: many hours
    python benchmarks/papers/run.py two_urns --figures figure2 --minutes 30
    python benchmarks/papers/run.py schedules --data-sets KDD ACS --most 4 --data DATA_FOLDER
    python benchmarks/papers/run.py tempering --anew      # also lines of other commits
    python benchmarks/papers/run.py two_urns --again 3    # three random cells, once more

A run that was cut goes on where it ended. `make figures` draws what there is.
"""

import argparse
import os
import random
import sys
from pathlib import Path

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are

from harness.lines import Clock
from papers.cells import Cell, commits_of, line, lines_of, run
from papers.families import FAMILIES


def again(family, n, wanted):
    """Print what is measured of random cells beside their lines."""
    records = lines_of(family).records
    keys = [key for key in records if wanted(Cell(*key))]
    for key in random.sample(keys, min(n, len(keys))):
        found = line(family, Cell(*key), commits_of(family))
        for name, value in found.items():
            is_short = isinstance(value, float | int) or isinstance(value, list) and len(value) < 7
            if is_short and name not in (*Cell._fields, "load"):
                print(*key, name, records[key].get(name), "again", value, flush=True)


def wanted_by(options):
    """Which cells are asked for."""
    data_sets, methods = (tuple(names or ("",)) for names in (options.data_sets, options.methods))

    def wanted(cell):
        of_figure = not options.figures or cell.figure in options.figures
        is_named = cell.data.startswith(data_sets) and cell.method.startswith(methods)
        return of_figure and is_named and cell.budget <= options.most

    return wanted


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", choices=[[], *FAMILIES], default=[])
    parser.add_argument("--data", help="folder with mnist.npz and ap_news.npz")
    parser.add_argument("--figures", nargs="+", help="only these")
    parser.add_argument("--data-sets", nargs="+", help="only those whose names begin so")
    parser.add_argument("--methods", nargs="+", help="only those whose names begin so")
    parser.add_argument("--most", type=float, default=float("inf"), help="seconds of a cell")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--anew", action="store_true", help="also cells of other commits")
    parser.add_argument("--again", type=int, help="random finished cells to measure once more")
    options = parser.parse_args()
    if options.data:
        os.environ["SKANNEAL_DATA"] = options.data
    clock = Clock(options.minutes)
    for name in options.families or FAMILIES:
        if options.again:
            again(FAMILIES[name], options.again, wanted_by(options))
        else:
            run(FAMILIES[name], clock, wanted=wanted_by(options), anew=options.anew)


if __name__ == "__main__":
    main()
