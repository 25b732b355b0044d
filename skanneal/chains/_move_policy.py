"""Which structure moves follow a churn of the subsample, and how often each is made.

Two policies share the interface of `MovePolicy`. Turns: while the subsample grows, one move follows
each churn; at full data all of rows do, and some of columns in a fixed cycle, so that what is kept
comes from one fixed kernel. Even work: every move follows each churn, until it has worked as much
as the churn.
"""

# SPDX-License-Identifier: BSD-3-Clause

import math

import numpy as np

from ..moves import SMALL_TABLE

FEW_ROWS = 300  # in S, below which most churns of a large table in views have no moves
REST_PERIOD = 3  # they then follow one churn in this many
IDLE_AFTER = 8  # turns without an acceptance, after which a move misses most of its turns
IDLE_PERIOD = 8  # an idle move takes one turn in this many
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
    """

    REMEMBERED = ()

    def __init__(self, moves, clock):
        self.moves, self.clock, self.tuning = moves, clock, None
        self.credit = [0] * len(moves)

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

    def rests(self, state):
        """Note a churn, and return whether no moves follow it."""
        return False

    def _sweep(self, i, state, bit_generator, segment):
        began = self.clock.now()
        info = self.moves[i].sweep(state, bit_generator, beta=segment.beta)
        self.clock.note(i, began, state.subsample.size)
        return info


class Turns(MovePolicy):
    """One move per churn while the subsample grows, in proportion to the moves' weights.

    A move that has accepted nothing for long misses most of its turns. In a table of views that has
    many rows no moves follow most churns of few: they cost many times as much as such a churn, and
    what they find out of so few rows is mostly found again later. At full data every move of
    rows follows each churn; of the moves of columns, each of which costs as much as several sweeps
    of rows, a share of SMALL_TABLE / n and at least one follow, whatever they have accepted.
    """

    REMEMBERED = ("idle", "credit", "rested")

    def __init__(self, moves, clock):
        super().__init__(moves, clock)
        self.idle, self.rested = [0] * len(moves), [0]
        self.in_views = any(move.acts_on == "columns" for move in moves)

    def rests(self, state):
        if not self.in_views or state.table.n_rows <= SMALL_TABLE:
            return False
        self.rested[0] = (self.rested[0] + 1) % REST_PERIOD
        return state.subsample.size < FEW_ROWS and self.rested[0] > 0

    def make(self, state, bit_generator, segment, burn_in, stop):
        began, turns = self.clock.now(), self._turns(state)
        for i in turns:
            info = self._sweep(i, state, bit_generator, segment)
            if info.proposed:
                self.idle[i] = 0 if info.accepted else self.idle[i] + 1
        made = self.clock.now() - began
        return made, 0.0 if _is_full(state) else max(0.0, self._of_full_data(state) - made)

    def expected(self, state, segment):
        always, sharing, n_turns = self._kinds(state, _is_full(state))
        # Any of those that share turns may be next: expect the longest.
        longest = max((self._seconds(i, state, np.inf) for i in sharing), default=0.0)
        return sum((self._seconds(i, state, np.inf) for i in always), n_turns * longest)

    def _of_full_data(self, state):
        """The seconds that the moves which follow a churn of all rows would take of those in S."""
        always, sharing, n_turns = self._kinds(state, True)
        of_sharing = sum(self._seconds(i, state, 0.0) for i in sharing) / max(len(sharing), 1)
        return sum((self._seconds(i, state, 0.0) for i in always), n_turns * of_sharing)

    def _seconds(self, i, state, unknown):
        return self.clock.expected(i, state.subsample.size, unknown)

    def _kinds(self, state, full):
        """Return the indices of the moves that follow each churn and of those that share turns, and
        how many turns they have."""
        indices = list(range(len(self.moves)))
        if not full:
            return [], indices, min(1, len(indices))
        share = SMALL_TABLE / state.table.n_rows
        sharing = [i for i in indices if share < 1.0 and self.moves[i].acts_on == "columns"]
        always = [i for i in indices if i not in sharing]
        return always, sharing, math.ceil(len(sharing) * share)

    def _turns(self, state):
        """Return the indices of the moves to be made now."""
        full = _is_full(state)
        made, sharing, n_turns = self._kinds(state, full)
        for _ in range(n_turns):
            # Each move earns its weight and the richest pays for all: turns are spread evenly.
            for i in sharing:
                self.credit[i] += self.moves[i].weight
            chosen = max(sharing, key=self.credit.__getitem__)
            self.credit[chosen] -= sum(self.moves[i].weight for i in sharing)
            if full or not self._misses(chosen):
                made = [*made, chosen]
        return made

    def _misses(self, i):
        """Whether a move has accepted nothing for long, and misses this turn."""
        if self.idle[i] < IDLE_AFTER or self.idle[i] % IDLE_PERIOD == 0:
            return False
        self.idle[i] += 1
        return True


class EvenWork(MovePolicy):
    """Every move after each churn, until it has worked as much as the churn (see MoveInfo).

    Once burn-in is over, the work of the churn and the costs of the moves stay what they were: a
    number of sweeps that depended on the state would favour the states in which it is small.
    `tuning` is the work of one of the churn's assignments: its tiles, and its own cluster.
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
