"""A race of two chains that begin differently, while rows are few and chains cost little.

While few rows are in, the columns of a table often split into more views than the full data
support: a view of many columns needs many clusters, and these need rows. Views that split early
hardly ever merge again, since the rows of a merged view need another partition. So a rival that has
all columns in one view runs beside the chain of the usual start. It begins at the first of the
sizes n = N / 2^k, with the same rows and a view grown from nothing.

At each of these sizes both chains score rows that neither has seen. A straight line in log n
through the last two mean differences of their log densities forecasts the difference at all N rows
(see Lead). The line flatters the rival: one view whose clusters are the products of the clusters of
several views comes ever nearer to those views without overtaking them. So a rival loses at once if
it is surely forecast to stay behind, but wins only if it surely is ahead already and is surely
forecast to stay ahead. The race ends at N / 2 at the latest. It takes two comparisons, so tables of
few rows have no race. The race chooses where a chain begins; it is not a move, and leaves no law
invariant. At the same sizes the views of the usual chain, or of the winner, are mended
(`mend_views`).
"""

# SPDX-License-Identifier: BSD-3-Clause

import time

import numpy as np

from ..moves import COLUMN_MOVES
from ..parallel import Purpose, seed_below
from ..summary._lead import Lead
from ._chain import Chain
from ._mend import LEAST_UNSEEN, grown, log_densities, mend_views, unseen_rows

LEAST_ROWS = 250  # in the subsample at the first comparison


def run_race(plan, schedule, seed, further_sweeps, stop, progress):
    """Run two chains side by side and return the one that goes on.

    Parameters
    ----------
    plan : ChainPlan
        Of the usual start.
    schedule : BaseSchedule
        Validated, without a time limit. If it begins with all rows, there is no race.
    seed : numpy.random.SeedSequence
        Of the usual start; unless its views are mended, its chain is what it would be alone. The
        rival's seed is below it.
    further_sweeps : float
        Full-data sweeps that will follow for further draws.
    stop : StopFlag
        Raised to end early.
    progress : Progress
        Told how far the usual start has come.

    Returns
    -------
    chain : Chain
        On its schedule's path; the one of the usual start, if the race was stopped.
    """
    chain, rival = Chain.begin(plan, schedule, seed, further_sweeps), None
    chain.progress, before = progress, None
    bit_generator = np.random.PCG64(seed_below(seed, Purpose.MENDING))
    found, behind = sizes(plan.table.n_rows), set()
    for size in found:
        if not chain.run(stop, size):
            return chain
        began = time.perf_counter()
        if size == found[0] < found[-1] and not chain.is_full:
            rival = begin_rival(chain, seed_below(seed, Purpose.RIVAL))
        mend_views(plan, chain.state, bit_generator, stop, behind)
        chain.clock.seconds += time.perf_counter() - began
        if rival is None:
            continue
        if not rival.run(stop, size):
            return chain
        differences = unseen_differences(plan.table, chain.state, rival.state)
        wins = False  # unless there are rows enough to tell
        if len(differences) >= LEAST_UNSEEN:
            now = Lead.of(differences)
            doublings = np.log2(plan.table.n_rows / rival.state.subsample.size)
            wins = None if before is None else is_ahead(before, now, doublings, size == found[-1])
            before = now
        if wins is not None:
            winner = rival.with_plan(plan) if wins else chain
            winner.clock.seconds = chain.clock.seconds + rival.clock.seconds
            winner.progress, chain, rival = progress, winner, None
    return chain


def begin_rival(chain, seed):
    """Return a chain at the same place, with all columns in a view grown from nothing, that leaves
    them there."""
    kept = tuple(name for name in chain.plan.moves if name not in COLUMN_MOVES)
    rival = chain.copy(chain.plan._replace(moves=kept), np.random.PCG64(seed))
    columns = np.arange(chain.plan.table.n_columns)
    whole = grown(rival.plan, rival.state, columns, rival.bit_generator)
    rival.state.reassign(np.full(len(columns), rival.state.n_views), [whole])
    return rival


def is_ahead(before, now, doublings, last):
    """Return whether the rival wins; None if that is not decided yet.

    Parameters
    ----------
    before, now : Lead
        Of the rival, a doubling apart.
    doublings : float
        From now on.
    last : bool
        Whether this comparison is the last.
    """
    forecast = now.forecast(before, doublings)
    if now.is_sure() and forecast.is_sure():
        return True
    return False if last or forecast.is_hopeless() else None


def sizes(n_rows):
    """Return at how many rows chains are compared and mended: half of all, a quarter, and so on.

    Examples
    --------
    >>> from skanneal.chains._race import sizes
    >>> sizes(2000), sizes(900), sizes(400)
    ([250, 500, 1000], [450], [])
    """
    found = []
    while (n_rows := n_rows // 2) >= LEAST_ROWS:
        found.insert(0, n_rows)
    return found


def unseen_differences(table, usual, rival):
    """Return log densities of rows that neither state has, the rival's less the usual one's.

    Returns
    -------
    differences : ndarray of shape (n_unseen,)
    """
    rows = table.take(unseen_rows(table, [usual, rival]))
    return log_densities(rival.views, rows) - log_densities(usual.views, rows)
