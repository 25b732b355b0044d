"""Results kept as lines of JSON, so that a run that was cut goes on where it ended."""

import json
import os
import subprocess
import time
from pathlib import Path

import skanneal

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"


class Lines:
    """A file of records, one JSON object a line; those with the same keys are one cell.

    Parameters
    ----------
    path : path
        Need not exist.
    keys : tuple of str
        The entries that say which cell a record is.
    """

    def __init__(self, path, keys):
        self.path, self.keys = Path(path), keys
        text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        self.records = {self._cell(record): record for record in map(json.loads, text.splitlines())}

    def _cell(self, record):
        return tuple(record[key] for key in self.keys)

    def get(self, *cell):
        """The record of a cell, or None."""
        return self.records.get(cell)

    def add(self, record):
        """Append a record to the file."""
        self.records[self._cell(record)] = record
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def package_commit():
    """The last commit that changed the package that is imported; "+" if it was changed since.

    Only what changes the package changes the results, so a commit to the documentation leaves
    finished cells as they are.
    """
    package = Path(skanneal.__file__).parent
    if not _git(package, "log", "-1", "--format=%h", "--", "."):  # installed from this checkout
        package = ROOT / "skanneal"
    return last_commit(package)


def last_commit(path):
    """The last commit that changed a file or folder; "+" if it was changed since."""
    path = Path(path)
    place = (path, ".") if path.is_dir() else (path.parent, path.name)
    commit = _git(place[0], "log", "-1", "--format=%h", "--", place[1])
    return commit + ("+" if _git(place[0], "status", "--porcelain", "--", place[1]) else "")


def _git(folder, *arguments):
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True)
    return done.stdout.strip()


class Clock:
    """How much of a run's time is left, and what a piece of work took.

    Parameters
    ----------
    minutes : float
        Of wall-clock time, for the whole run.
    """

    def __init__(self, minutes):
        self.end = time.monotonic() + 60 * minutes

    def left(self):
        """Seconds."""
        return self.end - time.monotonic()


class Stopwatch:
    """Processor seconds of a block; how busy the machine was beside it."""

    def __enter__(self):
        self.began = time.process_time()
        return self

    def __exit__(self, *_):
        self.seconds = round(time.process_time() - self.began, 2)
        self.load = round(os.getloadavg()[0], 1)
