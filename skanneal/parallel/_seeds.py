"""Independent seeds from any `random_state`, named by what they are for."""

# SPDX-License-Identifier: BSD-3-Clause

import numbers
from enum import IntEnum

import numpy as np
from sklearn.utils import check_random_state

_ENTROPY_WORDS = 4  # of 32 bits: SeedSequence draws as many from the operating system


# What the seeds below another are for, by their places: one enumeration for each sort of seed.


class OfFit(IntEnum):
    """Below a `random_state`, after the seeds of the chains.

    START is for what comes before the first sweep: strata, first labels.
    """

    START = 0
    SAMPLE = 1
    INFORMATION = 2
    POINT = 3
    IMPUTATIONS = 4
    TABLES = 6
    MEMBERS = 7
    CORE = 8
    REGRESSION = 9


class OfStart(IntEnum):
    """Below the seed of what comes before the first sweep. Chains whose draws' views are linked
    have those from LINKS on.
    """

    LINKS = 2


class OfChain(IntEnum):
    """Below a chain's seed.

    An island, which has no rivals and whose views are not mended, has one seed of its own, and its
    particles those from PARTICLES on. A mixture that begins again in pieces has one. Rivals have
    those from RIVALS on.
    """

    MENDING = ISLAND = PIECES = 1
    RIVALS = PARTICLES = 2


class OfFamilies(IntEnum):
    """Below the seed of the choice of families, which is the same in every fit."""

    ORDER = 0
    CHAINS = 1
    LOGARITHMS = 2


class OfLogarithms(IntEnum):
    """Below the seed of the choice of logarithms, which may take two contests."""

    ROWS = 0
    ORDER = 1
    CHAINS = 2
    ORDER_AGAIN = 3
    CHAINS_AGAIN = 4


class OfTurns(IntEnum):
    """Below the seed of a query that takes draws in turns: each has one of those from TURNS on."""

    FIRST = 0
    TURNS = 1


class OfTurn(IntEnum):
    """Below a turn's seed, which itself is for the cells."""

    PARAMETERS = 0
    LEVELS = 1
    NUMBERS = 2
    COEFFICIENTS = 3
    BEFORE = 4


class OfMembers(IntEnum):
    """Below the seed of an outlier detector's members, who have those from MEMBERS on."""

    ROWS = 0
    MEMBERS = 1


def spawn_seeds(random_state, n):
    """Seeds for n independent streams of random numbers.

    Parameters
    ----------
    random_state : int, None, RandomState, Generator or SeedSequence
        An int or a SeedSequence gives the same seeds at every call. A RandomState or a Generator
        advances, so that every call gives others; None stands for NumPy's global RandomState, as
        everywhere in scikit-learn.
    n : int
        Number of seeds.

    Returns
    -------
    seeds : list of SeedSequence

    Raises
    ------
    ValueError
        If `random_state` is none of these, or a negative int.

    Examples
    --------
    >>> from skanneal.parallel import spawn_seeds
    >>> first, second = spawn_seeds(0, 2)
    >>> first.spawn_key, second.spawn_key
    ((0,), (1,))
    """
    return _root(random_state).spawn(n)


def seed_below(seed, purpose):
    """Return the seed for one purpose below another seed, whose own numbers stay as they are.

    Parameters
    ----------
    seed : SeedSequence or random_state
    purpose : IntEnum
        A member of the enumeration of the seeds below this one.
    """
    return seeds_below(seed, purpose, 1)[0]


def seeds_below(seed, purpose, n):
    """Return n seeds below another one, the first of which has this purpose.

    Parameters
    ----------
    seed : SeedSequence or random_state
    purpose : IntEnum
        The last member of its enumeration, unless n is 1.
    n : int

    Returns
    -------
    seeds : list of SeedSequence
    """
    return spawn_seeds(seed, purpose + n)[purpose:]


def _root(random_state):
    """Return a SeedSequence of our own: `spawn` changes its parent, which may be the caller's."""
    if isinstance(random_state, np.random.SeedSequence):
        return np.random.SeedSequence(
            random_state.entropy,
            spawn_key=random_state.spawn_key,
            pool_size=random_state.pool_size,
        )
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ValueError(f"random_state must not be negative, got {random_state}.")
        return np.random.SeedSequence(int(random_state))
    if isinstance(random_state, np.random.Generator):
        # Raw output: NumPy guarantees the streams of bit generators, not those of a Generator.
        words = random_state.bit_generator.random_raw(_ENTROPY_WORDS)
    elif random_state is None or isinstance(random_state, np.random.RandomState):
        words = check_random_state(random_state).randint(
            2**32, size=_ENTROPY_WORDS, dtype=np.uint32
        )
    else:
        raise ValueError(
            "random_state must be an int, None, a RandomState, a Generator or a SeedSequence, got"
            f" {random_state!r}."
        )
    return np.random.SeedSequence(words.tolist())
