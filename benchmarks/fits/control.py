"""How soon an interrupted fit ends, and how well a fit keeps to `max_time`: every estimator.

    python benchmarks/fits/control.py
    python benchmarks/fits/control.py --estimators CrossCatPY --minutes 2

A cell is one fit with 1 or 4 chains and 1 or 2 jobs, in threads or in loky's processes, which have
been started before. Either SIGINT interrupts it while its chains run, or it has a `max_time`.
Results are lines of `benchmarks/results/control.jsonl`: "late" has the seconds from the signal, or
from `max_time`, to the end of the fit; "kept" the chains that the result has, of "begun" ones. A
finished cell of the same commit of the package is not run again. The table that is printed at the
end has the median and the worst "late" of each estimator and of each way to run it.
"""

import argparse
import os
import signal
import statistics
import sys
import threading
import time
import warnings
from pathlib import Path

import joblib
import numpy as np

import skanneal
from skanneal.schedules import AcceleratedSchedule, LinearAnneal

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from harness.lines import RESULTS, Clock, Lines, package_commit

KEYS = (
    *("version", "what", "estimator", "backend", "jobs", "chains"),
    *("seconds", "rows", "repetition"),
)
RUNS = (("sequential", 1), ("threading", 2), ("loky", 2))
ENDLESS = 10**6
# The cost of a draw of a Gaussian process grows with the cube of the number of rows.
MOST_ROWS = {"TemperedGPRegressor": 100}


def rows(n_rows):
    """Ten clusters in ten columns."""
    generator = np.random.default_rng(0)
    centres = 4 * generator.normal(size=(10, 10))
    return centres[generator.integers(10, size=n_rows)] + generator.normal(size=(n_rows, 10))


def endless(name, n_chains, n_jobs):
    """An estimator whose fit does not end by itself."""
    make = getattr(skanneal, name)
    parameters = make().get_params(deep=False)
    if "estimator" in parameters:
        return make(endless("CrossCatPY", n_chains, n_jobs))
    given = {"n_chains": n_chains, "n_jobs": n_jobs, "random_state": 0}
    if name == "AcceleratedDPMixture":
        given["schedule"] = AcceleratedSchedule(n_exact=ENDLESS)
    elif name.startswith("Tempered"):
        given |= {"n_draws": ENDLESS, "n_warmup": 20}
    else:
        given["schedule"] = LinearAnneal(n_sweeps=ENDLESS)
    return make(**given)


def interrupted(model, X, y, seconds):
    """Seconds from a signal, so long after the beginning of fit, to its end."""
    sent = []

    def send():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(seconds, send)
    timer.start()
    try:
        model.fit(X, y)
    except KeyboardInterrupt:  # no chain had a state
        pass
    ended = time.perf_counter()
    timer.join()
    return ended - sent[0]


def limited(model, X, y, seconds):
    """Seconds that fit takes beyond its limit; before it, they are negative."""
    began = time.perf_counter()
    model.set_params(max_time=seconds).fit(X, y)
    return time.perf_counter() - began - seconds


MEASURES = {"interrupt": interrupted, "max_time": limited}


def measure(what, name, backend, n_jobs, n_chains, seconds, n_rows):
    """The record of a cell without its keys."""
    X = rows(n_rows)
    model = endless(name, n_chains, n_jobs)
    with joblib.parallel_config(backend), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if backend == "loky":  # its workers have imported the package
            joblib.Parallel(n_jobs)(joblib.delayed(warm)(0.3) for _ in range(2 * n_jobs))
        late = MEASURES[what](model, X, X[:, 0], seconds)
    fitted = getattr(model, "estimator_", model)
    all_at_once = name == "AcceleratedDPMixture" or what == "max_time"
    begun = n_chains if all_at_once else min(n_chains, n_jobs)
    kept = len(getattr(fitted, "draws_", ()))
    return {
        "late": round(late, 3),
        "kept": kept,
        "begun": begun,
        "load": round(os.getloadavg()[0], 1),
    }


def warm(seconds):
    """A task that keeps a worker busy, so that all of them get one."""
    time.sleep(seconds)
    return skanneal.__name__


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--estimators", nargs="+", default=skanneal.__all__)
    parser.add_argument("--seconds", type=float, default=3.0, help="of a fit")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--repetitions", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=40, help="begin nothing afterwards")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the lines")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    version, clock = package_commit(), Clock(options.minutes)
    lines = Lines(options.results / "control.jsonl", KEYS)
    cells = [
        (version, what, name, *run, n_chains, options.seconds, n_rows, repetition)
        for repetition in range(options.repetitions)
        for what in MEASURES
        for name in options.estimators
        for n_rows in (min(options.rows, MOST_ROWS.get(name, options.rows)),)
        for run in RUNS
        for n_chains in (1, 4)
    ]
    for cell in cells:
        if lines.get(*cell) is None and clock.left() > 0:
            record = measure(*cell[1:-1])
            lines.add(dict(zip(KEYS, cell)) | record)
            print(*cell[1:], record, flush=True)
    print_table([record for cell in cells if (record := lines.get(*cell))])
    if any(lines.get(*cell) is None for cell in cells):
        raise SystemExit("The time is over; the same command goes on from here.")


def print_table(records):
    """Median and worst "late" by estimator, then by backend, jobs and chains."""
    print("seconds late: median, worst, fits; chains kept of those begun")
    for keys in (("estimator",), ("backend", "jobs", "chains")):
        groups = {}
        for record in records:
            key = record["what"], *(record[key] for key in keys)
            groups.setdefault(key, []).append(record)
        for key, group in groups.items():
            late = [record["late"] for record in group]
            kept, begun = (sum(record[name] for record in group) for name in ("kept", "begun"))
            print(
                f"{' '.join(map(str, key)):36} {statistics.median(late):7.3f} {max(late):7.3f} "
                f"{len(late):4}  {kept} of {begun}"
            )


if __name__ == "__main__":
    main()
