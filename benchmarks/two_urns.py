"""The two-urn model of the subsample-annealing paper: Figure 2, Theorems 2 and 4.

    python benchmarks/two_urns.py                   # 1e5 samples per strategy
    python benchmarks/two_urns.py --full            # 1e6 samples, as in the paper
    python benchmarks/two_urns.py --parts figure    # or theorem2, theorem4

8000 red and 12000 blue balls; each lies in the left urn with probability 0.45; an urn's share of
red balls is Beta(1/2, 1/2) and integrated out. Each strategy draws independent end states (red
left, blue left), 10 N assignments each, from compiled samplers (``two_urns.c``, built here with the
system's C compiler):

- *prior*: no data seen (no assignments);
- *sequential*: balls assigned one after another, given those before (N assignments only);
- *sequential + gibbs*: then 9 N steps of full-data Gibbs;
- *anneal energy*: full data from a draw from the prior, likelihood^beta, beta rising linearly;
- *anneal stepsize*: full data from a draw from the prior; step t offers to move round(1/beta)
  balls of one colour out of one urn, beta = t/(10 N); the posterior is invariant for each size.
  One block counts as one step here (then about 100 N balls are moved);
- *anneal stepsize, per ball*: the same, a block of m balls counting m of the 10 N assignments;
- *anneal subsample*: after each added ball 9 pairs of removing one and assigning another.

Printed and written as csv: total variation to the exact posterior on 100 x 100 and 20 x 20 bins,
beside its noise floor, the total variation expected of as many exact samples. A strategy that is
not done in its share of ``--minutes`` is cut, and the cut is printed.
"""

import argparse
import csv
import ctypes
import os
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import two_urns_theorems as theorems
from scipy.special import gammaln, xlog1py, xlogy
from two_urns_theorems import Urns, total_variation

SOURCE = Path(__file__).with_suffix(".c")
URNS = Urns(8000, 12000)
SWEEPS = 10
# As in two_urns.c: the sampler's number, and whether the start is a draw from the prior.
SAMPLERS = {
    "sequential": (0, 1, False),
    "sequential + gibbs": (0, SWEEPS, False),
    "anneal subsample": (1, SWEEPS, False),
    "anneal energy": (2, SWEEPS, True),
    "anneal stepsize": (3, SWEEPS, True),
    "anneal stepsize, per ball": (4, SWEEPS, True),
}
# The paper's panels go by decreasing total variation; its caption names them in this order (it does
# not describe the panel of subsample annealing, the last one).
PAPER_ORDER = (
    "prior",
    "sequential",
    "sequential + gibbs",
    "anneal energy",
    "anneal stepsize",
    "anneal subsample",
)
BATCH = 512


def build(folder):
    """Compile two_urns.c into ``folder`` and load it."""
    target = Path(folder) / "two_urns.so"
    flags = ["-O3", "-fno-trapping-math", "-fno-math-errno", "-ffp-contract=off", "-shared", "-fPIC"]
    for machine in (["-march=native"], []):
        command = [os.environ.get("CC", "cc"), *flags, *machine, str(SOURCE), "-o", str(target), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return declare(ctypes.CDLL(str(target)))
    raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")


def declare(library):
    """Give the functions of the library their argument types."""
    pointer, number, real, long = ctypes.c_void_p, ctypes.c_int32, ctypes.c_double, ctypes.c_int64
    urns = [number, number, real, real]
    library.sample_strategy.argtypes = [
        *(ctypes.c_int, long, long, ctypes.c_uint64),
        *(*urns, long, pointer, pointer),
    ]
    library.block_move.argtypes = [*urns, number, number, number, pointer]
    library.step_probabilities.argtypes = [*urns, number, *[pointer] * 4]
    library.gibbs_law.argtypes = [pointer, *urns, number, long, pointer]
    library.anneal_law.argtypes = [*urns, number, real, pointer]
    library.random_selection_law.argtypes = [*urns, number, real, pointer]
    library.exp_array.argtypes = [long, pointer, pointer]
    return library
