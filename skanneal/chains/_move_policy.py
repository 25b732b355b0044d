"""Which structure moves follow a churn of the subsample, and how often each is made.

Two policies share the interface of `MovePolicy`. Turns: while the subsample grows, one move follows
each churn; at full data those of rows do and one of columns, in a fixed cycle, so that what is kept
comes from one fixed kernel. Even work: every move follows each churn, until it has worked as much
as the churn.
"""

# SPDX-License-Identifier: BSD-3-Clause

IDLE_AFTER = 8  # turns without an acceptance, after which a move misses most of its turns
IDLE_PERIOD = 8  # an idle move takes one turn in this many
FIRST_COST = 1.0  # work per row that a move is taken to cost before it has been made
COST_MEMORY = 0.2  # weight of a move's last sweep in its mean cost per row


class MovePolicy:
    """Base of the two policies.

    A subclass writes `make` and `expected`, and names in `REMEMBERED` the lists, with one element
    per move, that `memory` and `recall` save and restore.

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

    def _sweep(self, i, state, bit_generator, segment):
        began = self.clock.now()
        info = self.moves[i].sweep(state, bit_generator, beta=segment.beta)
        self.clock.note(i, began, state.subsample.size)
        return info


class Turns(MovePolicy):
    """One move per churn while the subsample grows, in proportion to the moves' weights.

    A move that has accepted nothing for long misses most of its turns. At full data every move of
    rows follows each churn, and the moves of columns take turns by their weights, whatever they
    have accepted: each costs as much as several sweeps of rows, and few are accepted there.
    """

    REMEMBERED = ("idle", "credit")

    def __init__(self, moves, clock):
        super().__init__(moves, clock)
        self.idle = [0] * len(moves)

    def make(self, state, bit_generator, segment, burn_in, stop):
        began, turns = self.clock.now(), self._turns(_is_full(state))
        for i in turns:
            info = self._sweep(i, state, bit_generator, segment)
            if info.proposed:
                self.idle[i] = 0 if info.accepted else self.idle[i] + 1
        others = (i for i in range(len(self.moves)) if i not in turns)
        missing = sum(self.clock.expected(i, state.subsample.size, 0.0) for i in others)
        return self.clock.now() - began, missing

    def expected(self, state, segment):
        n_rows = state.subsample.size
        always, sharing = self._kinds(_is_full(state))
        # Any one of those that share turns may be next: expect the longest.
        longest = max([self.clock.expected(i, n_rows) for i in sharing], default=0.0)
        return sum((self.clock.expected(i, n_rows) for i in always), longest)

    def _kinds(self, full):
        """Return the indices of the moves that are always made, and of those that share turns."""
        indices = range(len(self.moves))
        always = [i for i in indices if full and self.moves[i].acts_on == "rows"]
        return always, [i for i in indices if i not in always]

    def _turns(self, full):
        """Return the indices of the moves to be made now."""
        always, sharing = self._kinds(full)
        if not sharing:
            return always
        # Each move earns its weight and the richest pays for all: this spreads the turns evenly.
        for i in sharing:
            self.credit[i] += self.moves[i].weight
        chosen = max(sharing, key=self.credit.__getitem__)
        self.credit[chosen] -= sum(self.moves[i].weight for i in sharing)
        if not full and self.idle[chosen] >= IDLE_AFTER and self.idle[chosen] % IDLE_PERIOD:
            self.idle[chosen] += 1
            return always
        return [*always, chosen]


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
