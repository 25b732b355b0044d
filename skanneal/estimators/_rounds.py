"""Rounds of full-data sweeps, each twice as long as the last, until the chains of a fit agree, or
one chain by itself has settled. One chain, of which nothing is compared but the halves of a block,
repeats its first block before blocks double. Rounds also end where no more than half of the chains
agree in two blocks in a row and views are what they differ in: more sweeps seldom mend that.

The first round runs the schedule and a block of sweeps; every further one goes on from there. Only
the last block's draws are kept, so that what is judged is what is kept, and that the beginning
counts for nothing. Work is counted, never timed: a fit is the same wherever it runs.
"""

# SPDX-License-Identifier: BSD-3-Clause

import math
from typing import NamedTuple

import numpy as np

from ..predictive._draws import partitions
from ..summary._convergence import FAR
from ._verdict import failed, judged

BLOCK = 25  # sweeps of the first block
MOST_SWEEPS = 400  # of all blocks together
# So many sweeps of a table of so many rows and columns take as long as its blocks may. The time of
# other tables grows with the square root of their cells.
REFERENCE_SWEEPS, REFERENCE_ROWS, REFERENCE_COLUMNS = 750, 10_000, 20
ONE_CHAIN = 1 / 3  # of this time one chain may take: it cannot tell whether it has arrived
OVERHEAD_ROWS = 1000  # a sweep costs as much as if there were so many more
TILE = 16  # components are scored so many at a time
CELL_TILES = 1.3  # scoring it in so many tiles takes as long as the rest of a cell's step


class SweepCost(NamedTuple):
    """What a sweep of all rows costs, moves included.

    Attributes
    ----------
    factor : float
        Of a cell, that of a mixture without views being 1.
    columns : float
        How many more columns would cost as much as what does not depend on their number, in each
        view.
    cell : float
        Of a cell of the table's families, a normal cell being 1.
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
        ``run(states, thin, lead)`` returns what `run_chain` does of every chain, and whether there
        was an interrupt. Without states it begins, or goes on with an earlier fit.
    table : Table
    n_draws : int
        Draws that are kept of each chain, spread evenly over the last block.
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
    every = max(thin, math.ceil(max(BLOCK, 2 * earlier) / n_draws))
    results, interrupted = run(None, every, every)
    done, most, number, apart = every * n_draws, None, 0, 0
    while not interrupted:
        traces, draws = ([result[key] for result in results] for key in ("trace", "draws"))
        verdict = judged(traces, draws, table.n_rows, every * n_draws)
        stopped = after is not None and after(number, every * n_draws, verdict)
        most = most_sweeps(table, draws, cost) if most is None else most
        settled = verdict["converged_"] or (
            len(results) < 2 and not failed(verdict["convergence_"])
        )
        apart = apart + 1 if in_other_views(verdict) else 0
        repeats = len(results) < 2 and number == 0 and not earlier
        following = every if repeats else 2 * every
        enough = settled or apart == 2 or done + following * n_draws > most
        if enough or stopped:
            return results, not enough, verdict, every * n_draws
        every, before, number = following, results, number + 1
        results, interrupted = run([result["state"] for result in before], every, 0)
        if interrupted:
            results = [_joined(*pair, n_draws) for pair in zip(before, results)]
        done += every * n_draws
    return results, True, None, every * n_draws


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
    time = share * REFERENCE_SWEEPS * math.sqrt(size)
    sweep = cost.of(n_rows, n_columns, np.mean(n_tiles), np.mean(n_views))
    return min(MOST_SWEEPS, time * SweepCost().of(REFERENCE_ROWS, REFERENCE_COLUMNS) / sweep)


def _joined(before, after, n_draws):
    """What an interrupt leaves of a round: the last draws, of that round and of the one before."""
    if after["trace"]["sweeps"][-1] == before["trace"]["sweeps"][-1]:
        return before  # it had not begun
    return after | {"draws": [*before["draws"], *after["draws"]][-n_draws:]}
