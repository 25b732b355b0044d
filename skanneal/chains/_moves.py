"""What follows each churn of a chain: structure moves, then draws of priors and hyperparameters."""

# SPDX-License-Identifier: BSD-3-Clause

from ..moves import (
    COLUMN_MOVES,
    MOVES,
    EachView,
    FeatureHyperparameters,
    PartitionHyperparameters,
    SharedHyperparameters,
)
from ..partition_priors import PARTITION_PRIORS
from ._budget import Budget


class ChainMoves:
    """The moves of a plan, made for one chain.

    Parameters
    ----------
    plan : ChainPlan
    clock : ChainClock
        The chain's; the moves poll it.

    Attributes
    ----------
    budget : Budget
        It says how often structure moves are made, and the columns' hyperparameters drawn.
    structure : list of str
        The names of the structure moves, in the order in which they are made.
    features : FeatureHyperparameters
        The draw of the columns' hyperparameters, one of the budget's moves.
    priors : list of moves
        Draws of what is not a column's own, after every churn: they cost little.
    adaptive : list of moves
        Those that adapt during burn-in: they have attributes `burn_in` and `tuning`.
    settled_rows : int
        Rows in the subsample from which on moves follow a churn: the plan's.
    took : dict
        Seconds of the last moves, as `Pacer.next` asks for them.
    """

    def __init__(self, plan, clock):
        structure = [
            COLUMN_MOVES[name](plan.prior_grid, **_column_options(plan, name))
            if name in COLUMN_MOVES
            else EachView(MOVES[name](**_options(plan, name)))
            for name in plan.moves
            if name != "gibbs"
        ]
        inner = [getattr(move, "move", move) for move in structure]
        self.adaptive = [move for move in inner if hasattr(move, "burn_in")]
        self.structure = [move.name for move in structure]
        self.features = FeatureHyperparameters(plan.grids)
        self.budget = Budget([*structure, EachView(self.features)], clock)
        self.priors = [EachView(PartitionHyperparameters(plan.prior_grid))]
        if plan.view_grid is not None:
            self.priors.append(PartitionHyperparameters(plan.view_grid))
        if plan.shared_grids:
            self.priors.append(SharedHyperparameters(plan.shared_grids))
        for move in (*self.budget.moves.values(), *self.priors):
            move.poll = clock.poll
        self.clock, self.settled_rows = clock, plan.settled_rows
        self.skip()

    def skip(self):
        """Note that no moves follow a segment."""
        self.took = {"moves": 0.0}

    def make(self, state, bit_generator, segment, burn_in, stop):
        """Make the moves that follow a segment."""
        given = state, bit_generator, segment, burn_in, stop
        self.features.together = state.subsample.size == state.table.n_rows
        self.budget.look(state, burn_in)
        self.budget.make(self.structure, *given)
        began = self.clock.now()
        self._draw_priors(state, bit_generator, segment.beta)
        self.clock.note("priors", began, state.subsample.size)
        self.budget.make([self.features.name], *given)
        self.took = {"moves": self.clock.now() - began}

    def make_in_turn(self, state, bit_generator, turn):
        """Make the structure move whose turn it is, then the rest: a fixed rotation."""
        self.features.together = state.subsample.size == state.table.n_rows
        due = self.budget.due(state, self.structure)
        for name in due[turn % len(due) :][:1] if due else []:
            self.budget.moves[name].sweep(state, bit_generator)
        self._draw_priors(state, bit_generator, 1.0)
        self.budget.moves[self.features.name].sweep(state, bit_generator)

    def _draw_priors(self, state, bit_generator, beta):
        for move in self.priors:
            move.sweep(state, bit_generator, beta=beta)

    def expected(self, state, segment):
        """Return the seconds that `make` will take; infinity if a due move was never made."""
        priors = self.clock.expected("priors", state.subsample.size)
        return self.budget.expected(state, segment) + priors

    def memory(self):
        """Return what the moves have adapted so far, in a form that JSON can hold."""
        return self.budget.memory() | {"tuning": [move.tuning for move in self.adaptive]}

    def recall(self, memory):
        """Take back what `memory` returned; other entries are ignored."""
        self.budget.recall(memory)
        for move, tuning in zip(self.adaptive, memory["tuning"]):
            move.tuning = tuning


def _column_options(plan, name):
    """Return the parameters of a move of columns: the grids, if it draws hyperparameters."""
    given = {"grids": plan.grids, "view_grid": plan.view_grid}
    return {key: grid for key, grid in given.items() if hasattr(COLUMN_MOVES[name], f"takes_{key}")}


def _options(plan, name):
    """Return the parameters of a move of rows.

    Where a point of the grid bounds the number of clusters, moves that can integrate the points out
    do so.
    """
    options = plan.options.get(name, {})
    bounded = PARTITION_PRIORS[plan.partition_prior].bounded
    if bounded and getattr(MOVES[name], "integrates", False):
        return options | {"grid": plan.prior_grid}
    return options
