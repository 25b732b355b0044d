"""Which structure moves follow a churn of the subsample, and how often each is made.

Two policies share the interface of `MovePolicy`. Turns: while the subsample grows, one move follows
each churn; at full data all do, so that what is kept comes from one fixed kernel. Even work: every
move follows each churn, until it has worked as much as the churn.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

FIRST_COST = 1.0  # work per row that a move is taken to cost before it has been made
COST_MEMORY = 0.2  # weight of a move's last sweep in its mean cost per row


class MovePolicy:
    """Base of the two policies.

    A subclass writes `make` and `expected`, and names in `REMEMBERED` the lists that `memory` and
    `recall` save and restore.

    Parameters
    ----------
    moves : list of moves
        The structure moves.
    clock : ChainClock
        The chain's; it times the moves by their index.

    Attributes
    ----------
    tuning : number or None
        What the policy adapts during burn-in, if anything.
    at_full_data : list of int
        The indices of the moves that are made once all rows are in.
    """

    REMEMBERED = ()

    def __init__(self, moves, clock):
        self.moves, self.clock, self.tuning = moves, clock, None
        self.credit = [0] * len(moves)
        self.at_full_data = [
            i for i, move in enumerate(moves) if not getattr(move, "only_while_growing", False)
        ]

    def memory(self):
        """Return what the policy remembers of earlier churns, as lists that JSON can hold."""
        return {name: getattr(self, name).copy() for name in self.REMEMBERED}

    def recall(self, memory):
        """Take back what `memory` returned; other entries are ignored."""
        for name in self.REMEMBERED:
            setattr(self, name, memory[name])

    def make(self, state, bit_generator, segment, burn_in, stop):
        """Make the moves that are due after a segment.

        Returns
        -------
        made : float
            Seconds that the moves took, as far as they do not grow with the segment's length.
        missing : float
            Seconds that the moves which were not due would have taken.
        """
        raise NotImplementedError

    def expected(self, state, segment):
        """Return the seconds that `make` will take; infinity if a due move was never made."""
        raise NotImplementedError

    def _sweep(self, i, state, bit_generator, segment):
        began = self.clock.now()
        info = self.moves[i].sweep(state, bit_generator, beta=segment.beta)
        self.clock.note(i, began, state.subsample.size)
        return info


class Turns(MovePolicy):
    """One move per churn while the subsample grows, in proportion to the moves' weights; at full
    data every move but those that are only made while it grows.

    The order of the moves does not depend on what they find.
    """

    REMEMBERED = ("credit",)

    def make(self, state, bit_generator, segment, burn_in, stop):
        began = self.clock.now()
        for i in self.at_full_data if _is_full(state) else self._turn():
            self._sweep(i, state, bit_generator, segment)
        made = self.clock.now() - began
        return made, 0.0 if _is_full(state) else max(0.0, self._of_full_data(state, 0.0) - made)

    def expected(self, state, segment):
        if _is_full(state):
            return self._of_full_data(state, np.inf)
        # Any move may be next: expect the longest.
        return max((self._seconds(i, state, np.inf) for i in range(len(self.moves))), default=0.0)

    def _of_full_data(self, state, unknown):
        """The seconds that the moves which follow a churn of all rows would take of those in S."""
        return sum(self._seconds(i, state, unknown) for i in self.at_full_data)

    def _seconds(self, i, state, unknown):
        return self.clock.expected(i, state.subsample.size, unknown)

    def _turn(self):
        """Return the index of the move whose turn it is, in a list; empty if there are no moves."""
        if not self.moves:
            return []
        # Each move earns its weight and the richest pays for all: turns are spread evenly.
        for i, move in enumerate(self.moves):
            self.credit[i] += move.weight
        chosen = max(range(len(self.moves)), key=self.credit.__getitem__)
        self.credit[chosen] -= sum(move.weight for move in self.moves)
        return [chosen]


class EvenWork(MovePolicy):
    """Every move after each churn, until it has worked as much as the churn (see MoveInfo).

    After burn-in the work of the churn and the costs of the moves are frozen: a number of sweeps
    that depended on the state would favour the states in which it is small. `tuning` is the work of
    one of the churn's assignments: its tiles, and its own cluster.
    """

    REMEMBERED = ("credit", "costs")

    def __init__(self, moves, clock):
        super().__init__(moves, clock)
        self.costs = [None] * len(moves)  # mean work of a sweep per row of the subsample

    def make(self, state, bit_generator, segment, burn_in, stop):
        n_rows = state.subsample.size
        if burn_in or self.tuning is None:
            self.tuning = state.n_tiles + 1
        work = self._work(state, segment)
        for i in range(len(self.moves)):
            self.credit[i] += work
            cost = self._cost(i)
            while self.credit[i] >= cost * n_rows and not stop.is_set():
                self.clock.poll()
                info = self._sweep(i, state, bit_generator, segment)
                if burn_in:
                    memory = 1.0 if self.costs[i] is None else COST_MEMORY
                    self.costs[i] = cost = cost + memory * (info.work / n_rows - cost)
                self.credit[i] -= max(1.0, info.work if burn_in else cost * n_rows)
        return 0.0, 0.0

    def expected(self, state, segment):
        n_rows, work = state.subsample.size, self._work(state, segment)
        due = [
            int((credit + work) / (n_rows * self._cost(i))) for i, credit in enumerate(self.credit)
        ]
        return sum([*(n * self.clock.expected(i, n_rows) for i, n in enumerate(due) if n), 0.0])

    def _work(self, state, segment):
        """Return what a segment's assignments are worth to each move."""
        return (segment.stop - segment.start) * (self.tuning or state.n_tiles + 1)

    def _cost(self, i):
        return FIRST_COST if self.costs[i] is None else self.costs[i]


def _is_full(state):
    return state.subsample.size == state.table.n_rows
