"""A race of two chains that begin differently, while rows are few and chains cost little.

While few rows are in, the columns of a table often split into more views than the full data
support: a view of many columns needs many clusters, and these need rows. Views that split early
hardly ever merge again, since the rows of a merged view need another partition. So a rival, all of
whose columns are in one view, grows beside the chain of the usual start.

At sizes n = N / 2^k both score rows that neither has seen. With d_k the mean
difference of their log densities, the straight line in log n through the last two,

    d_k + m (d_k - d_{k-1}),    m = log2(N / n),

forecasts the difference at all N rows: a chain that is behind on few rows may be catching up (van
Erven, Grünwald and de Rooij 2012). A line says too much, since one view whose clusters are the
products of several views' comes ever nearer to them without overtaking. So a rival that is forecast
to stay behind loses at once, but wins only where it is ahead already, and will be. The race ends at
N / 2 at the latest. It chooses where a chain begins; it is not a move, and leaves no law invariant.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.special import logsumexp

from ..moves import COLUMN_MOVES
from ..parallel import spawn_seeds
from ._chain import Chain

LEAST_ROWS = 250  # in the subsample at the first comparison
MOST_UNSEEN, LEAST_UNSEEN = 2000, 50  # rows that compare them
SURE = 3.0  # standard errors of what ends the race early
AHEAD = 2.0  # standard errors by which the rival must be ahead in the end to win


def run_race(plan, schedule, seed, further_sweeps, stop, progress):
    """Run two chains side by side and return the one that goes on.

    Parameters
    ----------
    plan : ChainPlan
        Of the usual start.
    schedule : BaseSchedule
        Validated, without a time limit.
    seed : numpy.random.SeedSequence
        Of the usual start, whose chain is what it would be alone; the rival's is below it.
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
    # The first seed below a chain's is that of the choice of families.
    below = spawn_seeds(seed, 2)[1]
    kept = tuple(name for name in plan.moves if name not in COLUMN_MOVES)
    usual = Chain.begin(plan, schedule, seed, further_sweeps)
    rival = Chain.begin(
        plan._replace(columns="together", moves=kept), schedule, below, further_sweeps
    )
    usual.progress, ahead, before = progress, False, None
    for size in sizes(plan.table.n_rows):
        if not (usual.run(stop, size) and rival.run(stop, size)):
            return usual
        differences = unseen_differences(plan.table, usual.state, rival.state)
        if len(differences) < LEAST_UNSEEN:
            break
        now = differences.mean(), differences.std(ddof=1) / np.sqrt(len(differences))
        if before is not None:
            doublings = np.log2(plan.table.n_rows / rival.state.subsample.size)
            forecast = line(before, now, doublings)
            lead = min(errors_above(now), errors_above(forecast))
            ahead = lead > AHEAD
            if lead > SURE or errors_above(forecast) < -SURE:
                break
        before = now
    winner = rival.with_plan(plan) if ahead else usual
    winner.progress = progress
    winner.clock.seconds = usual.clock.seconds + rival.clock.seconds
    return winner


def sizes(n_rows):
    """Return at how many rows the chains are compared: half of all, a quarter, and so on.

    A forecast takes two comparisons: where there is only one, there is no race.

    Examples
    --------
    >>> from skanneal.chains._race import sizes
    >>> sizes(2000), sizes(900)
    ([250, 500, 1000], [])
    """
    found = []
    while (n_rows := n_rows // 2) >= LEAST_ROWS:
        found.insert(0, n_rows)
    return found if len(found) > 1 else []


def unseen_differences(table, usual, rival):
    """Return log densities of rows that neither state has, the rival's less the usual one's.

    Returns
    -------
    differences : ndarray of shape (n_unseen,)
    """
    unseen = np.ones(table.n_rows, dtype=bool)
    for state in (usual, rival):
        unseen[state.subsample.rows()] = False
    rows = np.flatnonzero(unseen)
    n = min(len(rows), MOST_UNSEEN)
    rows = table.take(rows[np.arange(n) * len(rows) // max(n, 1)])
    return log_densities(rival, rows) - log_densities(usual, rows)


def log_densities(state, rows):
    """Log density of each row of a table, given a CrossCat: ndarray of shape (n_rows,)."""
    total = np.zeros(rows.n_rows)
    for view in state.views:
        scores, log_weights = view.score_rows(rows)
        total += logsumexp(scores + log_weights, axis=1)
    return total


def line(before, now, doublings):
    """Return a straight line's forecast after this many doublings, and its standard error.

    Parameters
    ----------
    before, now : (float, float)
        Mean and its standard error, a doubling apart.
    doublings : float
        From now on.

    Examples
    --------
    >>> from skanneal.chains._race import line
    >>> line((-3.0, 0.0), (-1.0, 0.5), 2)
    (3.0, 1.5)
    """
    forecast = now[0] + doublings * (now[0] - before[0])
    return float(forecast), float(np.hypot((1.0 + doublings) * now[1], doublings * before[1]))


def errors_above(point):
    """Return by how many standard errors a mean is above 0; a negative number if it is below."""
    mean, error = point
    if error > 0.0:
        return mean / error
    return np.copysign(np.inf, mean) if mean else 0.0
