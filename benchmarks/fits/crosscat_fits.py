"""Whole default fits of CrossCatPY at full size: seconds, memory, held-out score.

    python benchmarks/fits/crosscat_fits.py DATA_FOLDER                 # some 15 minutes
    python benchmarks/fits/crosscat_fits.py DATA_FOLDER --rows 20000    # a random subset

KDD (494,021 rows x 39, prepared as in `kdd_data.py`) and ACS (170,254 x 35), one chain, one
core, default parameters, each fit in a fresh process: once on all rows, for the seconds and the
memory, and once on 7/8 of them, for the mean log density in nats per row of at most 20,000 of the
others. Peak memory is the whole process's, loading and preparing the table included; beside it
stands what the modules take before. Asked: KDD within 5 minutes and 3 GB, ACS within 90 s.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from harness import crosscat_data
from harness.crosscat_runs import estimator, fitted, in_fresh_process, show, verdict
from harness.kdd_data import split


class Fit(NamedTuple):
    """A table and what is asked of the fit of all its rows."""

    load: object
    seconds: float
    peak_mb: float = np.inf


FITS = {"kdd": Fit(crosscat_data.kdd, 300.0, 3000.0), "acs": Fit(crosscat_data.acs, 90.0)}


def fit_all(name, options):
    """Fit all rows."""
    table = FITS[name].load(options.data, options.rows)
    model = estimator(options.estimator, n_chains=1, n_jobs=1, random_state=options.seed)
    return fitted(model, table) | {"rows": len(table), "score": np.nan}


def fit_most(name, options):
    """Fit 7/8 of the rows, score some of the others."""
    table = FITS[name].load(options.data, options.rows)
    train, test = split(len(table), options.seed)
    model = estimator(options.estimator, n_chains=1, n_jobs=1, random_state=options.seed)
    record = fitted(model, table.iloc[train])
    return record | {"rows": len(train), "score": model.score(table.iloc[test])}


def line(name, what, record):
    """One row of the table."""
    fit = FITS[name]
    asked = what == "all"
    limit = f"{fit.seconds:g} s" + (f", {fit.peak_mb:g} MB" if np.isfinite(fit.peak_mb) else "")
    return {
        "table": name,
        "trained_on": what,
        "rows": record["rows"],
        "seconds": f"{record['seconds']:.1f}",
        "processor": f"{record['cpu_seconds']:.1f}",
        "sweeps": record["sweeps"],
        "views": record["views"],
        "peak_mb": f"{record['peak_mb']:.0f}",
        "of_modules": f"{record['start_mb']:.0f}",
        "score": record["score"],
        "asked": limit if asked else "",
        "verdict": verdict(record["seconds"] <= fit.seconds, record["peak_mb"] <= fit.peak_mb)
        if asked
        else "",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with the data sets")
    parser.add_argument("--tables", nargs="+", choices=FITS, default=list(FITS))
    parser.add_argument("--rows", type=int, help="a random subset of so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--estimator", default="CrossCatPY", help="or AnnealedDPMixture")
    options = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    rows = []
    for name in options.tables:
        for what, task in (("all", fit_all), ("7/8", fit_most)):
            rows.append(line(name, what, in_fresh_process(task, name, options)))
            print(f"{name}, {what}: {rows[-1]['seconds']} s", flush=True)
    show(rows)
    if options.rows:
        print(f"Cut: {options.rows} rows at most; the limits are for all")


if __name__ == "__main__":
    main()
