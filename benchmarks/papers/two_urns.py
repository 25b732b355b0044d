"""The strategies of the two-urn model: compiled samplers, and their draws on a grid of bins.

8000 red and 12000 blue balls; each lies in the left urn with probability 0.45; an urn's share of
red balls is Beta(1/2, 1/2) and integrated out. Each strategy draws independent end states (red
left, blue left), 10 N assignments each, by ``two_urns.c``, built here with the system's C compiler:

- *prior*: no data seen (no assignments);
- *sequential*: balls assigned one after another, given those before (N assignments only);
- *sequential + gibbs*: then 9 N steps of full-data Gibbs;
- *anneal energy*: full data from a draw from the prior, likelihood^beta, beta rising linearly;
- *anneal stepsize*: full data from a draw from the prior; step t of 10 N reassigns a handful of
  round(1/beta) balls of one colour out of one urn, beta = t/(10 N), as one ball of a model with
  that much less data (exact Gibbs in the last third, where a handful is one ball). A handful is one
  step, so some 10 N log N balls are reassigned;
- *anneal stepsize, by balls*: the same with as many steps as there are balls in their handfuls:
  10 N balls are reassigned, in 5 N handfuls, and beta is linear in the balls;
- *anneal subsample*: after each added ball 9 pairs of removing one and assigning another.
"""

import ctypes
import functools
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from scipy.special import gammaln, xlog1py, xlogy

from papers import two_urns_theorems as theorems
from papers.two_urns_theorems import Urns

SOURCE = Path(__file__).with_suffix(".c")
URNS = Urns(8000, 12000)
SWEEPS = 10
# As in two_urns.c: the sampler's number, and whether the start is a draw from the prior.
SAMPLERS = {
    "sequential": (0, 1, False),
    "sequential + gibbs": (0, SWEEPS, False),
    "anneal energy": (2, SWEEPS, True),
    "anneal stepsize": (3, SWEEPS, True),
    "anneal stepsize, by balls": (4, SWEEPS, True),
    "anneal subsample": (1, SWEEPS, False),
}
BINS = 100


def build(folder):
    """Compile two_urns.c into ``folder`` and load it."""
    target = Path(folder) / "two_urns.so"
    flags = "-O3 -fno-trapping-math -fno-math-errno -ffp-contract=off -shared -fPIC".split()
    compiler = os.environ.get("CC", "cc")
    for machine in (["-march=native"], []):
        command = [compiler, *flags, *machine, str(SOURCE), "-o", str(target), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return declare(ctypes.CDLL(str(target)))
    raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")


@functools.cache
def compiled():
    """The library, built once in a process."""
    with tempfile.TemporaryDirectory() as folder:
        return build(folder)


def declare(library):
    """Give the functions of the library their argument types."""
    pointer, number, real, long = ctypes.c_void_p, ctypes.c_int32, ctypes.c_double, ctypes.c_int64
    urns = [number, number, real, real]
    library.sample_strategy.argtypes = [
        *(ctypes.c_int, long, long, ctypes.c_uint64),
        *(*urns, long, pointer, pointer),
    ]
    library.step_probabilities.argtypes = [*urns, number, *[pointer] * 4]
    library.gibbs_law.argtypes = [pointer, *urns, number, long, pointer]
    library.anneal_law.argtypes = [*urns, number, real, pointer]
    library.random_selection_law.argtypes = [*urns, number, real, pointer]
    library.exp_array.argtypes = [long, pointer, pointer]
    return library


# -- draws -----------------------------------------------------------------------------------------


def prior_draws(urns, n_samples, entropy):
    """End states without data."""
    rng = np.random.default_rng(entropy)
    draws = rng.binomial([urns.n_red, urns.n_blue], urns.p, size=(n_samples, 2))
    return np.ascontiguousarray(draws, dtype=np.int32)


def draw(library, name, n_samples, seed, urns=URNS):
    """End states (red left, blue left) of a strategy, (n_samples, 2).

    Sample i depends on the seed and i alone, so that fewer samples are the start of more.
    """
    number, sweeps, from_prior = SAMPLERS[name]
    start = prior_draws(urns, n_samples, [seed, number]) if from_prior else None
    out = np.empty((n_samples, 2), dtype=np.int32)
    init = start.ctypes.data if from_prior else None
    library.sample_strategy(number, n_samples, 0, seed, *urns[:4], sweeps, init, out.ctypes.data)
    return out


# -- bins ------------------------------------------------------------------------------------------


def edges(n, n_bins):
    """First count of each bin: count r lies in bin floor(n_bins r / (n + 1))."""
    return np.searchsorted(np.arange(n + 1) * n_bins // (n + 1), np.arange(n_bins))


@functools.cache
def binned_posterior(urns=URNS, n_bins=BINS):
    """Exact posterior mass, (n_bins, n_bins); the log posterior is of r, of b, and of r + b."""
    red, blue = np.arange(urns.n_red + 1), np.arange(urns.n_blue + 1)
    left = np.arange(urns.n_balls + 1)
    of_red, of_blue = (
        theorems.log_prior(urns, *counts)
        + urns.n_features * (gammaln(urns.a + k) + gammaln(urns.a + k[::-1]))
        for counts, k in (((red, 0), red), ((0, blue), blue))
    )
    of_both = urns.n_features * (gammaln(2 * urns.a + left) + gammaln(2 * urns.a + left[::-1]))
    some = np.arange(0, len(red), max(1, len(red) // 99))[:, np.newaxis]
    highest = (of_red[some] + of_blue - of_both[some + blue]).max()
    columns, mass = edges(urns.n_blue, n_bins), np.zeros((n_bins, n_bins))
    for r in red:
        weights = np.exp(of_red[r] + of_blue - of_both[r + blue] - highest)
        mass[r * n_bins // len(red)] += np.add.reduceat(weights, columns)
    return mass / mass.sum()


@functools.cache
def binned_prior(urns=URNS, n_bins=BINS):
    """Exact prior mass, (n_bins, n_bins)."""
    red, blue = np.arange(urns.n_red + 1), np.arange(urns.n_blue + 1)
    of_red, of_blue = (
        np.add.reduceat(np.exp(log - log.max()), edges(n, n_bins))
        for log, n in (
            (theorems.log_prior(urns, red, 0), urns.n_red),
            (theorems.log_prior(urns, 0, blue), urns.n_blue),
        )
    )
    mass = np.outer(of_red, of_blue)
    return mass / mass.sum()


def bin_of(states, urns=URNS, n_bins=BINS):
    """Each state's bin, a number below n_bins^2."""
    red = states[:, 0].astype(np.int64) * n_bins // (urns.n_red + 1)
    blue = states[:, 1].astype(np.int64) * n_bins // (urns.n_blue + 1)
    return red * n_bins + blue


def noise_floor(target, n_samples):
    """Expected total variation of n exact samples: half the sum of the bins' mean deviations.

    De Moivre: E|X - n q| = 2 q^(m+1) (1-q)^(n-m) n!/(m! (n-m-1)!) for X ~ Binomial(n, q) and
    m = floor(n q).
    """
    q = target[(target > 0) & (target < 1)]
    m = np.floor(n_samples * q)
    log_choose = gammaln(n_samples + 1) - gammaln(m + 1) - gammaln(n_samples - m)
    log_mean = np.log(2) + log_choose + xlogy(m + 1, q) + xlog1py(n_samples - m, -q)
    return 0.5 * np.exp(log_mean).sum() / n_samples
