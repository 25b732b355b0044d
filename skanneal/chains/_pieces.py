"""A second start, in small pieces, of a chain whose table has few rows.

Narrow clusters that are bent, as the arms of a spiral are, take many narrow components, and a chain
sees these only once all rows are in: of few rows wide components say as much. By then its
components are wide, and the laws from which new components come suit wide ones: a single narrow
component is improbable, although many would not be, since the laws would then be narrow, too. Row
by row, and split by split, it takes a chain some thousand sweeps to get there, and several chains
agree with each other until then.

So when all rows are in, a copy of the chain begins again in pieces of PIECE rows at most, or of as
many as a family asks for, if there are enough rows for FEWEST of these. All rows are divided in
two, and each part again, by the proposals of splits; then the hyperparameters are drawn given the
pieces; and all of this PASSES times, since the first pieces are made by laws of wide components and
are themselves too wide. Where components should be wide, the pieces are soon one again. After
N_SWEEPS sweeps the chain goes on in the state of its copy if this makes its rows more probable for
sure, each row left out of what is known (see Lead), and if its log joint density is the higher one.

This chooses where a chain begins; it is not a move, and leaves no law invariant.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..moves import FeatureHyperparameters, PartitionHyperparameters
from ..moves._split_sides import divide
from ..parallel import OfChain, seed_below
from ..states import logs_without
from ..summary._lead import Lead

MOST_ROWS = 1000  # of more, pieces would take long to become one again
FEWEST = 10  # pieces: fewer are not small
PIECE, PASSES, N_SWEEPS = 10, 2, 25
N_DRAWS = 10  # of the hyperparameters, after each pass
MOST_STEPS = 3  # for each row of a part that is divided


def try_pieces(chain, seed, stop):
    """Let a chain come to the end of its schedule, and go on in pieces if that is better.

    Parameters
    ----------
    chain : Chain
        Of one mixture; changed.
    seed : numpy.random.SeedSequence
        The chain's.
    stop : StopFlag
        Raised to end early: then the chain stays as it is.
    """
    fewest_rows, n_rows = FEWEST * most_rows(chain.plan), chain.plan.table.n_rows
    if not chain.run(stop) or not fewest_rows <= n_rows <= MOST_ROWS:
        return
    rival = chain.copy(chain.plan, np.random.PCG64(seed_below(seed, OfChain.PIECES)))
    for _ in range(PASSES):
        divide_all(rival)
    rival.pacer.extend(N_SWEEPS)
    whole = rival.run(stop)
    chain.clock.seconds += rival.clock.seconds
    if whole and is_better(rival.state, chain.state):
        chain.state = rival.state


def most_rows(plan):
    """How many rows a piece has at most."""
    return max(PIECE, plan.asked_rows)


def divide_all(chain):
    """Divide all rows into pieces, and draw hyperparameters given these."""
    state, plan = chain.state, chain.plan
    most = most_rows(plan)
    generator = np.random.Generator(chain.bit_generator)
    labels, n_pieces = np.empty(plan.table.n_rows, dtype=np.int64), 0
    parts = [np.arange(len(labels))]
    while parts:
        rows = generator.permutation(parts.pop())
        if len(rows) > most:
            side, _ = divide(state, rows, chain.bit_generator, MOST_STEPS * len(rows))
            parts += [rows[side == 0], rows[side == 1]]
        else:
            labels[rows], n_pieces = n_pieces, n_pieces + 1
    rows = np.arange(len(labels))
    state.set_prior(state.prior.holding(n_pieces))
    state.replace(rows, labels)
    state.draw_fills(rows, chain.bit_generator)
    features = FeatureHyperparameters(plan.grids, together=False)
    for _ in range(N_DRAWS):
        for draw in (PartitionHyperparameters(plan.prior_grid), features):
            draw.sweep(state, chain.bit_generator)


def is_better(state, usual):
    """Whether a mixture of all rows is surely better than the usual one."""
    if state.log_joint() <= usual.log_joint():
        return False
    rows = np.arange(state.table.n_rows)
    return Lead.of(logs_without(state, rows) - logs_without(usual, rows)).is_sure()
