"""A fit on shards: chains that begin or go on, the stages of their schedule, and their draws."""

# SPDX-License-Identifier: BSD-3-Clause

import copy
from typing import NamedTuple

from ..parallel import spawn_seeds
from ..schedules import AcceleratedSchedule
from ._chain import ACCELERATED_SHARE, STAGES, AcceleratedChain
from ._data import first_labels


class Sampling(NamedTuple):
    """What the chains of a fit do.

    Attributes
    ----------
    algorithm : str
        A key of STAGES.
    schedule : AcceleratedSchedule
    n_auxiliary : int
    n_draws, thin : int
    """

    algorithm: str
    schedule: AcceleratedSchedule
    n_auxiliary: int
    n_draws: int
    thin: int


def chains_of(data, grid, states, seeds, of_start, init):
    """A chain per state: where the state is, or, if it is None, at the labels that `init` names.

    seeds : one per chain.
    of_start : SeedSequence
        Below it is one for the first labels of each chain.
    """
    chains = []
    for state, seed, start in zip(states, seeds, spawn_seeds(of_start, len(seeds))):
        likelihood = copy.deepcopy(data.likelihood)
        if state is None:
            labels = first_labels(init, data, start)
            chains.append(AcceleratedChain(data.shards, likelihood, grid, labels, seed))
        else:
            chains.append(AcceleratedChain.from_arrays(state, data.shards, likelihood, grid))
    return chains


def draw_on_shards(run, sampling, limit, goes_on):
    """Run the schedule, unless the chains go on from an earlier fit, and draw.

    Returns
    -------
    lengths : list of list of int
        Of the segments of each stage that was run.
    draws : list of tuple of dict
        The arrays of each draw, by chain.

    Raises
    ------
    KeyboardInterrupt
        If there is no state but those to begin with.
    """
    lengths, draws = [], []
    further = (sampling.n_draws - (not goes_on)) * sampling.thin
    if goes_on:
        end = run.end(limit)
        run.expect(further, end)
    else:
        begun = run.first()
        end = run.end(limit)
        run.expect(sampling.schedule.n_accelerated + sampling.schedule.n_exact + further, end)
        lengths = _run_stages(run, sampling, end) if begun else []
        if run.interrupted and not any(lengths):
            raise KeyboardInterrupt
        draws.append([chain.draw() for chain in run.chains])
    stage = STAGES[sampling.algorithm][-1][1](sampling.n_auxiliary)
    between = AcceleratedSchedule(n_accelerated=0, n_exact=sampling.thin).segments("exact")
    while len(draws) < sampling.n_draws:
        done = sum(run.stage(stage, between, end))
        if run.interrupted and not draws and not done:
            raise KeyboardInterrupt
        if done == sampling.thin or not draws:
            draws.append([chain.draw() for chain in run.chains])
        if done < sampling.thin:
            break
    if further:
        run.say("draws")
    return lengths, list(zip(*draws))


def _run_stages(run, sampling, max_time):
    """Lengths of the segments of each stage."""
    lengths, stages = [], STAGES[sampling.algorithm]
    for key, make in stages:
        last = key == stages[-1][0]
        deadline = max_time and max_time * (1.0 if last else ACCELERATED_SHARE)
        further = (sampling.n_draws - 1) * sampling.thin if last else 0
        segments = sampling.schedule.segments(key)
        stage = make(sampling.n_auxiliary)
        lengths.append(run.stage(stage, segments, deadline, max_time, further))
        run.say("schedule" if len(stages) == 1 else f"{key} stage")
    return lengths


def unreached(algorithm, lengths):
    """The keys of the stages of which no segment was run."""
    return [key for (key, _), done in zip(STAGES[algorithm], lengths) if not done]


def too_short(limit, algorithm, stages=""):
    """What to say of a time that was over before every row had had a turn."""
    return (
        f"max_time={limit.seconds:g} is too short for algorithm={algorithm!r} to give every "
        f"row a turn{stages}: the other rows stay where they were before. It was over after "
        f"{limit.taken:.3g} seconds. Give more time, or fewer rows."
    )


def realised(lengths):
    """What was run, as a schedule without a time limit."""
    first, last = lengths if len(lengths) == 2 else ([], lengths[0])
    return AcceleratedSchedule(
        n_accelerated=sum(first), n_exact=sum(last), sync_every=[*first, *last] or [1]
    )
