"""Independent seeds from any `random_state`."""

# SPDX-License-Identifier: BSD-3-Clause

import numbers
from enum import IntEnum

import numpy as np
from sklearn.utils import check_random_state

_ENTROPY_WORDS = 4  # of 32 bits: SeedSequence draws as many from the operating system


class Purpose(IntEnum):
    """What the seeds below a chain's are for, by their places.

    The first chain's seed also begins the choice of families. Rivals of a chain have the seeds from
    RIVALS on. An island, which has no rivals and whose views are not mended, has one seed of its
    own, and its particles those from PARTICLES on.
    """

    FAMILIES = 0
    MENDING = ISLAND = 1
    RIVALS = PARTICLES = 2


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
    """Return the seed for one purpose below a chain's, which the chain's own numbers leave alone.

    Parameters
    ----------
    seed : SeedSequence
        A chain's.
    purpose : Purpose
    """
    return spawn_seeds(seed, purpose + 1)[purpose]


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
