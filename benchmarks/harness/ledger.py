"""Results that are kept in a csv as they come, so that a run that was cut goes on; and tables."""

import csv
import time

import joblib

LEAST_TIME = 1 / 8  # of the plan's seconds per run; below that, seeds are cut
UNSHOWN = ("rows", "settings", "fit_seconds", "test_rows")  # in a run's printed line


def settings(schedule):
    """The schedule with all its parameters, as text."""
    values = {
        name: getattr(value, "__qualname__", value)
        for name, value in sorted(schedule.get_params(deep=False).items())
    }
    return f"{type(schedule).__name__}({', '.join(f'{k}={v}' for k, v in values.items())})"


class Ledger:
    """A csv of results that grows as they come, each found again by its key."""

    def __init__(self, path, key, values):
        self.path, self.key, self.fields = path, key, [*key, *values]
        self.rows = []
        if path.exists():
            with open(path, newline="") as file:
                self.rows = [row for row in csv.DictReader(file) if None not in row.values()]
        self._rewrite()  # without the half-written line of an interrupted run

    def _rewrite(self):
        with open(self.path, "w", newline="") as file:
            writer = csv.DictWriter(file, self.fields)
            writer.writeheader()
            writer.writerows(self.rows)

    def find(self, **wanted):
        """The stored row that agrees in every key, numbers as floats, or None."""
        for row in self.rows:
            if all(row[name] == str(wanted[name]) for name in self.key):
                return {name: number(value) for name, value in row.items()}
        return None

    def add(self, row):
        row = {name: str(row[name]) for name in self.fields}
        self.rows.append(row)
        with open(self.path, "a", newline="") as file:
            csv.DictWriter(file, self.fields).writerow(row)


def number(text):
    try:
        return float(text)
    except ValueError:
        return text


def run_all(task, todo, ledger, n_jobs):
    """Run the tasks that have no result yet; return the results of all."""
    left = [key for key, _ in todo if ledger.find(**key) is None]
    if len(left) < len(todo):
        print(f"{len(todo) - len(left)} of {len(todo)} runs found in {ledger.path.name}")
    # Columns as memory maps: the workers share them.
    pool = joblib.Parallel(n_jobs, return_as="generator_unordered", max_nbytes="50K")
    jobs = [joblib.delayed(task)(key, *arguments) for key, arguments in todo if key in left]
    start = time.perf_counter()
    for i, (key, record) in enumerate(pool(jobs), 1):
        ledger.add(key | record)
        show = {k: v for k, v in (key | record).items() if k not in UNSHOWN and v == v}  # no nan
        text = "  ".join(
            f"{k} {v:.5g}" if isinstance(v, float) else f"{k} {v}" for k, v in show.items()
        )
        print(f"[{time.perf_counter() - start:6.0f} s, {i} of {len(left)}] {text}", flush=True)
    return [ledger.find(**key) for key, _ in todo]


def write(rows, path):
    """Print the rows as an aligned table and write them as csv."""
    show = [[f"{v:.5g}" if isinstance(v, float) else str(v) for v in row.values()] for row in rows]
    names = list(rows[0])
    widths = [max(len(line[i]) for line in [names, *show]) for i in range(len(names))]
    for line in [names, *show]:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)


def overhead(n_rows):
    """Seconds of a run outside its chain, roughly: data frames, encoding, scoring."""
    return 1.0 + 2e-5 * n_rows
