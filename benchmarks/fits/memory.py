"""How much memory a fit of many rows takes, and how much of it for what comes after the chains.

    python benchmarks/fits/memory.py                       # 100,000, 1,000,000 and 5,000,000 rows
    python benchmarks/fits/memory.py --rows 100000 --columns 40

A table has 300 well separated normal clusters in ten columns, so that the rows times the components
are many times the table. Each size is fitted in a process of its own, the default but for its
schedule: a sequential pass and two sweeps find the components, and memory does not depend on the
sweeps. Peaks are those of the resident set, the program itself not counted: of the table, as the
user has it; up to the end of the chains; of the whole fit. A line of
`benchmarks/results/memory.jsonl` has them in bytes, and the bytes of the table as it is encoded.
"""

import argparse
import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np

from skanneal import AnnealedDPMixture
from skanneal.schedules import SequentialGibbs

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from harness.lines import RESULTS, Lines, package_commit

SIZES = 100_000, 1_000_000, 5_000_000
N_CLUSTERS, APART = 300, 40.0  # standard deviations of a cluster over which the centres spread
HYPERPARAMETERS = {"mu0": APART / 2, "kappa0": 0.01, "nu0": 10.0, "sigma2_0": 1.0}
KEYS = "version", "rows", "columns"
STAGES = "table", "chains", "fit"


def peak():
    """The most bytes that this process has held so far."""
    status = Path("/proc/self/status").read_text()
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if "VmHWM" in line)


def table(n_rows, n_columns):
    """Rows of the clusters, made in place."""
    rng = np.random.default_rng(0)
    centres = rng.uniform(0.0, APART, (N_CLUSTERS, n_columns))
    X = np.empty((n_rows, n_columns))
    for start in range(0, n_rows, 10_000):
        part = X[start : start + 10_000]
        part[:] = rng.normal(size=part.shape) + centres[rng.integers(N_CLUSTERS, size=len(part))]
    return X


class Watched(AnnealedDPMixture):
    """A fit that notes its peak when the chains have ended."""

    def _results(self, encoder, plan, *rest, **options):
        self.encoded_, self.chains_ = plan.table.nbytes, peak()
        return super()._results(encoder, plan, *rest, **options)


def measure(n_rows, n_columns):
    """The record of one fit, without its keys."""
    began = peak()
    X = table(n_rows, n_columns)
    of_table = peak()
    model = Watched(
        families="normal",
        rounding=None,
        hyperparameters={"normal": HYPERPARAMETERS},
        schedule=SequentialGibbs(n_sweeps=2),
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of chains that two sweeps do not bring together
        model.fit(X)
    peaks = dict(zip(STAGES, (of_table, model.chains_, peak())))
    return {
        "components": model.n_components_,
        "clusters": model.n_clusters_,
        "encoded": model.encoded_,
        **{stage: held - began for stage, held in peaks.items()},
    }


def main():
    """Measure the sizes that have no line, and print all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=SIZES)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the lines")
    parser.add_argument("--only", action="store_true", help="measure here and print the record")
    options = parser.parse_args()
    if options.only:
        print(json.dumps(measure(options.rows[0], options.columns)))
        return
    lines = Lines(options.results / "memory.jsonl", KEYS)
    print("rows, columns, components; MB of the table, to the chains' end, of the fit; bytes a row")
    for n_rows in options.rows:
        cell = package_commit(), n_rows, options.columns
        if (record := lines.get(*cell)) is None:
            command = [sys.executable, __file__, "--only", "--rows", str(n_rows)]
            command += ["--columns", str(options.columns)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            record = dict(zip(KEYS, cell)) | json.loads(done.stdout.splitlines()[-1])
            lines.add(record)
        held = [f"{record[stage] / 1e6:9.1f}" for stage in STAGES]
        per_row = record["fit"] / n_rows
        print(n_rows, options.columns, record["components"], *held, f"{per_row:9.0f}", flush=True)


if __name__ == "__main__":
    main()
