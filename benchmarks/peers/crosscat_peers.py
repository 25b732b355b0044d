"""CrossCatPY on the splits that Loom's and Lace's figures are for: one core, one thread.

    python benchmarks/peers/crosscat_peers.py DATA_FOLDER                   # some minutes
    python benchmarks/peers/crosscat_peers.py DATA_FOLDER --lace PYTHON     # Lace beside it
    python benchmarks/peers/crosscat_peers.py DATA_FOLDER --splits dart --seeds 3

DATA_FOLDER/splits holds the train and test rows. Types are those the peers were given: real or
categorical, levels declared as the union of train and test. One chain (dart: 4, one after another)
makes the default fit, a short one that ends after 24 sweeps, and one in which the numbers of a view
are jointly normal. PYTHON is an interpreter that can
import Lace (``pip install pylace``; "python" for this one). It runs transitions "sams" in a process
of its own, as `crosscat_lace.py` says, with the iterations after which its recorded figures were
had. Loom's figures, the best of two numbers of passes, are recorded ones: it is no package that can
be installed, and needs an old compiler.

A line of `benchmarks/results/crosscat_peers.jsonl` has the mean log density per test row in nats,
the views, and the processor seconds of the fit; finished lines are not run again.
"""

import argparse
import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from harness.crosscat_data import SPLITS, load_split
from harness.crosscat_runs import estimator, fitted, schedule_of
from harness.lines import RESULTS, Lines, package_commit
from harness.suite import KEYS

LACE_SCRIPT = Path(__file__).with_name("crosscat_lace.py")
SHORT = 24  # sweeps


class Split(NamedTuple):
    """Chains of ours, states and iterations of Lace's."""

    chains: int
    states: int
    iterations: int


FITS = {
    "synthetic10k": Split(1, 1, 100),
    "satellites": Split(1, 4, 200),
    "dart": Split(4, 4, 100),
    "acs10k": Split(1, 1, 50),
    "kdd10k": Split(1, 1, 50),
}


def ours(folder, name, seed, n_sweeps=None, numbers="normal"):
    """A fit of ours, with the family of the numbers."""
    train, test = load_split(folder, name)
    schedule = schedule_of("anneal", n_sweeps)
    model = estimator(
        "CrossCatPY", schedule=schedule, n_chains=FITS[name].chains, n_jobs=1, random_state=seed
    )
    record = fitted(model, train, numbers)
    return {
        "score": model.score(test),
        "views": record["views"],
        "fit_seconds": record["cpu_seconds"],
        "sweeps": record["sweeps"],
    }


def lace(python, folder, name, seed):
    """A fit of Lace's."""
    _, states, iterations = FITS[name]
    command = [python, LACE_SCRIPT, folder, name, "--seed", seed]
    command += ["--states", states, "--iterations", iterations]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"Lace failed:\n{done.stderr}")
    record = json.loads(done.stdout.splitlines()[-1])
    return {
        "score": record["score"],
        "views": record["views"],
        "fit_seconds": record["cpu_seconds"],
        "sweeps": record["iterations"],
    }


def methods(python):
    """By version and name, what fits and scores."""
    commit = package_commit()
    found = {
        (commit, "short"): functools.partial(ours, n_sweeps=SHORT),
        (commit, "default"): ours,
        (commit, "joint"): functools.partial(ours, numbers="multivariate_normal"),
    }
    if python:
        command = [python, "-c", "import lace; print(lace.__version__)"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{python} cannot import lace: pip install pylace")
        found[f"lace {done.stdout.strip()}", "lace"] = functools.partial(lace, python)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with splits/")
    parser.add_argument("--splits", nargs="+", choices=SPLITS, default=list(SPLITS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument(
        "--lace", nargs="?", const=sys.executable, metavar="PYTHON", help="run Lace with it"
    )
    options = parser.parse_args()
    lines = Lines(RESULTS / "crosscat_peers.jsonl", KEYS)
    with threadpool_limits(1):
        for seed in range(options.seeds):
            for name in options.splits:
                for (version, method), run in methods(options.lace).items():
                    cell = version, name, method, seed
                    if lines.get(*cell) is None:
                        load = {"load": round(os.getloadavg()[0], 1)}
                        record = run(options.data, name, seed)
                        lines.add(dict(zip(KEYS, cell, strict=True)) | record | load)
                        print(*cell, record, flush=True)


if __name__ == "__main__":
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    main()
