"""What the suites of peers share: cells that are run once each, and the command line.

A cell is one method on one data set with one seed. Its version says what a result depends on: the
commit of the package for ours, the release of its library for a peer.
"""

import argparse
import importlib.util
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np

from harness.lines import RESULTS, Clock, Lines, Stopwatch, package_commit

KEYS = "version", "set", "method", "seed"


class Suite:
    """Data sets, methods and what a method's result on a data set is worth.

    Parameters
    ----------
    name : str
        Of the file of results.
    sets : callable
        Takes the folder of data sets; gives a dict of set names to what `measure` takes.
    methods : dict of str to dict of str to object
        By the distribution that a method comes from, and its name.
    measure : callable
        Takes a set, a method and a seed; gives the record of the cell without its keys.
    """

    def __init__(self, name, sets, methods, measure):
        self.name, self.sets, self.methods, self.measure = name, sets, methods, measure

    def run(self, description):
        """Run what the command line asks for and is not there yet; return the file of results."""
        options = self._command_line(description)
        sets, clock = self.sets(options.data), Clock(options.minutes)
        known = {name for of in self.methods.values() for name in of}
        for kind, named, there in (
            ("set", options.sets, set(sets)),
            ("method", options.methods, known),
        ):
            if unknown := set(named) - there:
                raise SystemExit(f"no such {kind}: {sorted(unknown)}; there are {sorted(there)}")
        lines = Lines(options.results / f"{self.name}.jsonl", KEYS)
        methods = []
        for distribution, of in self.methods.items():
            asked = {name: of[name] for name in of if name in (options.methods or known)}
            if asked and importlib.util.find_spec(distribution.replace("scikit-learn", "sklearn")):
                methods += [(release(distribution), *pair) for pair in asked.items()]
            elif asked:
                print(f"passed over, as {distribution} is not installed:", *asked, flush=True)
        for seed in range(options.first, options.first + options.seeds):
            for set_name in options.sets or sets:
                for its_version, name, method in methods:
                    cell = its_version, set_name, name, seed
                    if lines.get(*cell) is not None:
                        continue
                    if clock.left() <= 0:
                        raise SystemExit("The time is over; the same command goes on from here.")
                    with Stopwatch() as watch, warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        record = self.measure(sets[set_name], method, seed)
                    record |= {"seconds": watch.seconds, "load": watch.load}
                    lines.add(dict(zip(KEYS, cell)) | record)
                    print(*cell, record, flush=True)
        return lines.path

    def _command_line(self, description):
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument("data", type=Path, nargs="?", help="the folder of data sets, if any")
        parser.add_argument("--sets", nargs="+", default=[], help="all of them by default")
        parser.add_argument("--methods", nargs="+", default=[], help="all of them by default")
        parser.add_argument("--seeds", type=int, default=5)
        parser.add_argument("--first", type=int, default=0, help="the first seed")
        parser.add_argument("--minutes", type=float, default=40, help="begin nothing afterwards")
        parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the lines")
        return parser.parse_args()


def release(distribution):
    """What the results of a distribution's methods depend on."""
    if distribution == "skanneal":
        return package_commit()
    return f"{distribution} {version(distribution)}"


def files(folder, pattern="*.npz"):
    """The files of a folder by their stems, in order."""
    return {path.stem: path for path in sorted(Path(folder).glob(pattern))}


def some_rows(n_rows, most, seed):
    """Which rows are used where there are more than `most`, ascending."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, most, replace=False))


def settings(model):
    """An estimator's parameters that are not its defaults, on one line."""
    return " ".join(repr(model).split())


def records(suite, folder=RESULTS):
    """(version, method) to set to the records of its seeds; of our commits the last one only."""
    lines = Lines(folder / f"{suite}.jsonl", KEYS).records
    peers = {key[0] for key in lines if " " in key[0]}
    last = {key[2]: key[0] for key in lines if key[0] not in peers}  # by method, in file order
    out = {}
    for (its_version, set_name, method, _), record in lines.items():
        if its_version in peers or last[method] == its_version:
            out.setdefault((its_version, method), {}).setdefault(set_name, []).append(record)
    return out
