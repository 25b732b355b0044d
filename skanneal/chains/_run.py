"""Run one chain: arrays in, draws, trace and state out."""

# SPDX-License-Identifier: BSD-3-Clause

import time

import numpy as np

from ..parallel import LEAST, Progress, StopFlag
from ..schedules import CustomAnneal
from ._chain import Chain
from ._island import run_island
from ._starts import begin_chain

# By how much a chain may exceed its limit without a warning: a share of it, and seconds.
LATE_SHARE, LATE_SECONDS = 0.05, 0.1


# What begins a chain, by a schedule's `runner`: each returns the chain that goes on.
RUNNERS = {"chain": begin_chain, "island": run_island}


def run_chain(
    plan,
    schedule,
    seed,
    n_draws=1,
    thin=1,
    state=None,
    progress=None,
    stop=None,
    max_time=None,
):
    """Run one chain from its beginning, or on from a state.

    The result is a pure function of (plan, schedule, seed), or of (plan, schedule, state), unless
    there is a time limit.

    Parameters
    ----------
    plan : ChainPlan
        Data, prior and moves.
    schedule : BaseSchedule
        Validated.
    seed : numpy.random.SeedSequence
        Of this chain alone; not used with `state`.
    n_draws, thin : int
        The first draw is the schedule's end state; each further one comes `thin` sweeps after the
        one before.
        With `state`, every draw comes `thin` sweeps after the one before.
    state : dict of arrays, optional
        A chain's to_arrays().
    progress : Progress, optional
        Told how far the chain has come.
    stop : StopFlag, optional
        Raised to end early, with the state as it then is.
    max_time : float or None, default=None
        Seconds from here on that the chain may take; None is the schedule's own `max_time`, if it
        has one.

    Returns
    -------
    dict
        "draws" (list of flat dicts of arrays), "trace" (dict of float arrays), "state" (flat dict
        of arrays), "schedule" (what was run, as a schedule without a time limit), "complete",
        "log_evidence" (nan unless the schedule estimates it), "in_time" (whether the chain had made
        a sweep of all rows before its time was over, or soon after).
    """
    began, stop = time.perf_counter(), StopFlag() if stop is None else stop
    progress = Progress() if progress is None else progress
    max_time = schedule.max_time if max_time is None else max_time
    if state is not None:
        chain = Chain.from_arrays(state, plan)
        chain.pacer.extend(thin)
    else:
        further = (n_draws - 1) * thin
        begin = RUNNERS[schedule.runner]
        chain = begin(plan, schedule, seed, further, max_time, stop, progress)
    if max_time is not None:
        chain.limit(stop, max(max_time - (time.perf_counter() - began), LEAST))
    chain.progress = progress
    try:
        draws, complete = _drawn(chain, n_draws, thin, stop)
    finally:
        chain.clock.cancel()
    chain.end_stage()
    if chain.progress.end():
        stop.set()
    timed, in_time = max_time is not None and state is None, True
    if timed:
        late = (chain.reached or np.inf) - chain.clock.end
        in_time = late <= LATE_SHARE * max_time + LATE_SECONDS
        schedule = CustomAnneal.from_path(chain.pacer.realised(), selection=schedule.selection)
    return {
        "draws": draws,
        "trace": chain.trace.to_arrays(),
        "state": chain.to_arrays(),
        "schedule": schedule,
        "complete": complete,
        "log_evidence": chain.log_evidence,
        "in_time": in_time,
    }


def _drawn(chain, n_draws, thin, stop):
    """Return the complete draws, and whether nothing stopped them."""
    draws, complete = [], True
    n_further = thin * chain.state.table.n_rows
    chain.to_come = (n_draws - 1) * n_further
    while complete and len(draws) < n_draws:
        if draws:
            if chain.clock.seconds >= chain.clock.end:
                break
            chain.pacer.extend(thin)
            chain.to_come -= n_further
        complete = chain.run(stop)
        if complete:
            chain.draw_fills()
        if complete or not draws:
            draws.append(chain.draw())
    if not chain.trace or stop.is_set():
        chain.record()
    return draws, complete or not stop.is_set()
