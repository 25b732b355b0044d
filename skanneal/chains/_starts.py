"""Where a chain starts: the usual start, its views mended, and rivals, judged on unseen rows.

While few rows are in, the columns of a table often split into more views than the full data
support: a view of many columns needs many clusters, and these need rows. Views that split early
hardly ever merge again, since the rows of a merged view need another partition. So rivals that
begin otherwise run beside the chain of the usual start, while rows are few and chains cost little.
STARTS names them. They begin at the first of the sizes n = N / 2^k, with the same rows.

At each of these sizes both chains score rows that neither has seen. A straight line in log n
through the last two mean differences of their log densities forecasts the difference at all N rows
(see Lead). The line flatters a rival whose columns are together: one view whose clusters are the
products of the clusters of several views comes ever nearer to those views without overtaking them.
So a rival loses at once if it is surely forecast to stay behind, but wins only if it surely is
ahead already and is surely forecast to stay ahead. The race ends at N / 2 at the latest. It takes
two comparisons, so tables of few rows have no race. At the same sizes the views of the usual chain,
or of the winner, are mended (`mend_views`).

All this chooses where a chain begins; it is not a move, and leaves no law invariant.
"""

# SPDX-License-Identifier: BSD-3-Clause

import time

import numpy as np

from ..moves import COLUMN_MOVES
from ..parallel import OfChain, seed_below, seeds_below
from ..summary._lead import Lead
from ._chain import Chain
from ._mend import grown, mend_views
from ._pieces import try_pieces
from ._unseen import LEAST_UNSEEN, unseen_differences

LEAST_ROWS = 250  # in the subsample at the first comparison


def all_together(plan, state, bit_generator):
    """Put all columns in one view, grown from nothing."""
    columns = np.arange(plan.table.n_columns)
    whole = grown(plan, state, columns, bit_generator)
    state.reassign(np.full(len(columns), state.n_views), [whole])


# The rivals by name: each changes the state that it is given, in place.
STARTS = {"together": all_together}


def begin_chain(plan, schedule, seed, further_sweeps, max_time, stop, progress):
    """Begin a chain; with the plan's `starts`, run it beside these rivals and return the one that
    goes on.

    Parameters
    ----------
    plan : ChainPlan
        Of the usual start.
    schedule : BaseSchedule
        Validated. If it begins with all rows, there is no race.
    seed : numpy.random.SeedSequence
        Of the usual start; unless its views are mended, its chain is what it would be alone. The
        rivals' seeds are below it.
    further_sweeps : float
        Full-data sweeps that will follow for further draws.
    max_time : float or None
        Seconds that the chain may take; only for a plan without `starts` and `pieces`.
    stop : StopFlag
        Raised to end early.
    progress : Progress
        Told how far the usual start has come.

    Returns
    -------
    chain : Chain
        On its schedule's path; the one of the usual start, if the race was stopped.
    """
    chain = Chain.begin(plan, schedule, seed, further_sweeps, max_time)
    if plan.pieces:
        chain.progress = progress
        try_pieces(chain, seed, stop)
    if not plan.starts:
        return chain
    chain.progress, rivals, behind = progress, [], set()
    bit_generator = np.random.PCG64(seed_below(seed, OfChain.MENDING))
    found = sizes(plan.table.n_rows)
    for size in found:
        if not chain.run(stop, size):
            return chain
        began = time.perf_counter()
        if size == found[0] < found[-1] and not chain.is_full:
            rivals = begin_rivals(chain, seed)
        mend_views(plan, chain.state, bit_generator, stop, behind)
        chain.clock.seconds += time.perf_counter() - began
        for rival in rivals.copy():
            if not rival.chain.run(stop, size):
                return chain
            wins = rival.compare(chain, size == found[-1], len(plan.starts))
            if wins is None:
                continue
            winner = rival.chain.taking_over(chain) if wins else chain
            winner.clock.seconds = chain.clock.seconds + rival.chain.clock.seconds
            winner.progress, chain = progress, winner
            rivals.remove(rival)
            for other in rivals if wins else []:
                other.before = None  # it now runs beside another chain
    return chain


class Rival:
    """A chain that began otherwise, and its lead when it was last compared.

    Parameters
    ----------
    chain : Chain
    """

    def __init__(self, chain):
        self.chain, self.before = chain, None

    def compare(self, usual, last, n_rivals):
        """Return whether the rival wins over the chain `usual`; None if that is not decided yet.

        Parameters
        ----------
        usual : Chain
            At the same place.
        last : bool
            Whether this comparison is the last.
        n_rivals : int
            How many rivals there were at first.
        """
        table = usual.plan.table
        differences = unseen_differences(table, usual.state, self.chain.state)
        if len(differences) < LEAST_UNSEEN:
            return False
        now, before = Lead.of(differences), self.before
        self.before = now
        if before is None:
            return None
        doublings = np.log2(table.n_rows / self.chain.state.subsample.size)
        forecast = now.forecast(before, doublings)
        if now.is_sure(n_rivals=n_rivals) and forecast.is_sure(n_rivals=n_rivals):
            return True
        return False if last or forecast.is_hopeless(n_rivals=n_rivals) else None


def begin_rivals(chain, seed):
    """Return the rivals of a chain, at its place, with its rows; they leave their columns in the
    views where they begin.

    Parameters
    ----------
    chain : Chain
    seed : numpy.random.SeedSequence
        The chain's.
    """
    plan, rivals = chain.plan, []
    kept = tuple(name for name in plan.moves if name not in COLUMN_MOVES)
    seeds = seeds_below(seed, OfChain.RIVALS, len(plan.starts))
    for name, own in zip(plan.starts, seeds):
        rival = chain.copy(plan._replace(moves=kept), np.random.PCG64(own))
        STARTS[name](rival.plan, rival.state, rival.bit_generator)
        rivals.append(Rival(rival))
    return rivals


def sizes(n_rows):
    """Return at how many rows chains are compared and mended: half of all, a quarter, and so on.

    Examples
    --------
    >>> from skanneal.chains._starts import sizes
    >>> sizes(2000), sizes(900), sizes(400)
    ([250, 500, 1000], [450], [])
    """
    found = []
    while (n_rows := n_rows // 2) >= LEAST_ROWS:
        found.insert(0, n_rows)
    return found
