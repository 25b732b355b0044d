"""Rounds of full-data sweeps, each twice as long as the last, until the chains of a fit agree, or
one chain by itself has settled. A single chain runs its first block twice before blocks double;
only the halves of a block are compared. Rounds also end if in two blocks in a row no more than half
of the chains agree and they differ in their views: more sweeps seldom mend that. Chains of which no
two are at odds, but which do not agree yet, mix slowly, and that more sweeps do mend: they may do
PATIENCE times the work.

The first round runs the schedule, every further one a block of sweeps from there on. A fit keeps
only the draws of the last block, which are those that it judges; the beginning counts for nothing.
Work is counted, never timed: a fit is the same wherever it runs. Where sweeps cost so much that the
limit of work has no room for two blocks, the first one is as short as the figures allow.
"""

# SPDX-License-Identifier: BSD-3-Clause

import math
from typing import NamedTuple

import numpy as np

from ..predictive._draws import partitions
from ..summary._convergence import FAR, FEW_RECORDS
from ._verdict import failed, judged

BLOCK = 25  # sweeps of the first block
MOST_SWEEPS = 800  # of all blocks together
PATIENCE = 2.0  # times the limit of work, where no two chains are at odds: one more block
# Limit of work: 750 sweeps of a 10,000 x 20 table. It grows with the square root of the cells up to
# there, and with their fourth root beyond.
REFERENCE_SWEEPS, REFERENCE_ROWS, REFERENCE_COLUMNS = 750, 10_000, 20
ONE_CHAIN = 1 / 3  # share of the limit for one chain, which cannot tell whether it has arrived
OVERHEAD_ROWS = 1000  # what a sweep costs beside its rows, in rows
TILE = 16  # components that are scored at a time
CELL_TILES = 1.3  # cost of a cell's step beside the scores, in tiles in which it is scored


class SweepCost(NamedTuple):
    """What a sweep of all rows costs, moves included.

    Attributes
    ----------
    factor : float
        Cost of a cell; in a mixture without views it is 1.
    columns : float
        What a view costs whatever the number of its columns, in columns.
    cell : float
        Cost of a cell of the table's families; that of a normal cell is 1.
    """

    factor: float = 1.0
    columns: float = 4.0
    cell: float = 1.0

    def of(self, n_rows, n_columns, n_tiles=1.0, n_views=1.0):
        """Return the cost for a table of this size, a cell of which is scored in so many tiles."""
        of_cell = self.cell * (CELL_TILES + n_tiles) / (CELL_TILES + 1.0)
        of_row = n_columns * of_cell + self.columns * n_views
        return self.factor * (n_rows + OVERHEAD_ROWS) * of_row


def run_rounds(run, table, n_draws, thin, cost, earlier=0, after=None):
    """Run chains until they agree or their work is done.

    Parameters
    ----------
    run : callable
        ``run(states, n_draws, thin)`` returns what `run_chain` does of every chain, and whether
        there was an interrupt. Without states it begins, or goes on with an earlier fit.
    table : Table
    n_draws : (int, int)
        The fewest and the most draws that are kept of each chain, spread evenly over the last
        block.
    thin : int
        Least number of sweeps between two of them.
    cost : SweepCost
    earlier : int
        Sweeps of the last block of the earlier fit, if there is one.
    after : callable, optional
        ``after(number, block, verdict)`` is called after each round, and returns whether there was
        an interrupt.

    Returns
    -------
    results : list of dict
    interrupted : bool
    verdict : dict or None
        As `judged` returns it; None after an interrupt.
    block : int
        Sweeps of the last block.
    """
    before, most, first = None, None, max(BLOCK, 2 * earlier)
    if not earlier:
        before, interrupted = run(None, 1, thin)
        if interrupted:
            return before, True, None, 0
        most = most_sweeps(table, [result["draws"] for result in before], cost)
        first = max(min(most / 2, BLOCK), FEW_RECORDS)
    fewest, most_draws = n_draws
    every, done, number, apart = max(thin, math.ceil(first / most_draws)), 0, 0, 0
    n_draws = max(fewest, int(first / every))
    while True:
        states = None if before is None else [result["state"] for result in before]
        results, interrupted = run(states, n_draws, every)
        block, number = every * n_draws, number + 1
        if interrupted:
            if before is not None:
                results = [_joined(*pair, n_draws) for pair in zip(before, results)]
            return results, True, None, block
        done += block
        traces, draws = ([result[key] for result in results] for key in ("trace", "draws"))
        verdict = judged(traces, draws, table.n_rows, block)
        stopped = after is not None and after(number, block, verdict)
        most = most_sweeps(table, draws, cost) if most is None else most
        settled = verdict["converged_"] or (
            len(results) < 2 and not failed(verdict["convergence_"])
        )
        apart = apart + 1 if in_other_views(verdict) else 0
        repeats = len(results) < 2 and number == 1 and not earlier
        every = every if repeats else 2 * every
        patience = PATIENCE if slow(verdict) else 1.0
        enough = settled or apart == 2 or done + every * n_draws > patience * most
        if enough or stopped:
            return results, not enough, verdict, block
        before = results


def slow(verdict):
    """Whether there are several chains, no two of them at odds."""
    agreeing = verdict["convergence_"]["agreeing"]
    return len(agreeing) > 1 and bool(agreeing.all())


def in_other_views(verdict):
    """Whether no more than half of the chains agree, and views are among what they differ in."""
    if verdict["converged_"]:
        return False
    agreeing = verdict["convergence_"]["agreeing"]
    columns = verdict["convergence_"]["figures"].get("distance of columns")
    return columns is not None and columns["value"] > FAR and 2 * agreeing.sum() <= len(agreeing)


def most_sweeps(table, draws, cost):
    """Return how many sweeps of all rows may follow the schedule.

    Parameters
    ----------
    table : Table
    draws : list of list of dict of arrays
        Of each chain, those of the first round; the components of the last ones enter.
    cost : SweepCost
    """
    n_rows, n_columns, every_row = table.n_rows, table.n_columns, slice(None)
    n_tiles, n_views = [], []
    for of_chain in draws:
        view_of, labels = partitions(of_chain[-1], every_row)
        n_views.append(len(labels))
        n_tiles.append(np.mean([np.ceil(len(np.unique(labels[v])) / TILE) for v in view_of]))
    share = ONE_CHAIN if len(draws) == 1 else 1.0
    size = n_rows * n_columns / (REFERENCE_ROWS * REFERENCE_COLUMNS)
    time = share * REFERENCE_SWEEPS * min(math.sqrt(size), size**0.25)
    sweep = cost.of(n_rows, n_columns, np.mean(n_tiles), np.mean(n_views))
    return min(MOST_SWEEPS, time * SweepCost().of(REFERENCE_ROWS, REFERENCE_COLUMNS) / sweep)


def _joined(before, after, n_draws):
    """What an interrupt leaves of a round: the last draws, of that round and of the one before."""
    if after["trace"]["sweeps"][-1] == before["trace"]["sweeps"][-1]:
        return before  # it had not begun
    return after | {"draws": [*before["draws"], *after["draws"]][-n_draws:]}
