"""The kernel and the starts of Obermeyer, Glidden and Jonas (2014), on the package's parts.

In `papers_kernel` a chain makes Gibbs steps of single columns, one proposal of a new set of columns
and one draw of all hyperparameters after every churn, however few rows are in and whatever these
moves cost; a time limit stretches or compresses the schedule, but leaves no moves out. Everything
is drawn from its prior at first. The sequential start assigns all rows before any such move is
made, given the hyperparameters that were drawn.
"""

import contextlib
from unittest import mock

import numpy as np

from skanneal.chains import _chain, _first_state, _moves
from skanneal.chains._budget import Budget
from skanneal.chains._moves import ChainMoves
from skanneal.chains._plan import ChainPlan
from skanneal.partition_priors import PriorGrid
from skanneal.schedules import Pacer, SequentialGibbs

MOVES = ("gibbs", "column_gibbs", "column_sets")


class OncePerChurn(Budget):
    """Every move is made once after each churn."""

    def make(self, names, state, bit_generator, segment, burn_in, stop):
        """Make each of the named moves once."""
        for name in names:
            self.clock.poll()
            began = self.clock.now()
            self.moves[name].sweep(state, bit_generator, beta=segment.beta)
            self.clock.note(name, began, state.subsample.size)


def drawn_state(plan, subsample, start, bit_generator):
    """As the package's `first_state`, but with hyperparameters drawn from their priors."""
    state = _first_state.state_from_prior(plan, subsample, bit_generator)
    with mock.patch.object(_first_state, "_empty_state", return_value=state):
        return _first_state.first_state(plan, subsample, start, bit_generator)


def every_point(grid, n):
    """Subsamples of any size choose from all points of a prior's grid."""
    return np.arange(len(grid))


@contextlib.contextmanager
def papers_kernel(schedule):
    """In this context chains of the schedule begin and move as the paper's."""
    is_sequential = isinstance(schedule, SequentialGibbs)
    settled = property(lambda plan: plan.table.n_rows if is_sequential else 1)
    with (
        mock.patch.object(_chain, "first_state", drawn_state),
        mock.patch.object(_moves, "Budget", OncePerChurn),
        mock.patch.object(ChainMoves, "expected", return_value=0.0),
        mock.patch.object(Pacer, "rest_seconds", 0.0),
        mock.patch.object(ChainPlan, "settled_rows", settled),
        mock.patch.object(PriorGrid, "within", every_point),
    ):
        yield
