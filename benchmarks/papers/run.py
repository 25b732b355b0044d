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
import sys
from pathlib import Path

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are

from harness.lines import Clock
from papers.cells import run
from papers.families import FAMILIES
from papers.repeats import measure_again


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
            asked = {"wanted": wanted_by(options), "most": options.most}
            measure_again(FAMILIES[name], options.again, **asked)
        else:
            run(FAMILIES[name], clock, wanted=wanted_by(options), anew=options.anew)


if __name__ == "__main__":
    main()
