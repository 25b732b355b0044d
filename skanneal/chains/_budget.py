"""Which moves follow a churn, and how often: each has a share of the churn's work.

A move earns its share of each churn, and is made when it has earned what its sweeps cost on
average, as often as it has; the first sweep is made at once and paid for afterwards, so that short
chains have moves, too. What a sweep costs is counted (see MoveInfo), not timed, so that a seed
gives the same chain on every machine, and is compared with a churn of the same rows. While burn-in
lasts, the average cost of a move follows what its sweeps have taken. Then it is frozen, with the
cost of a churn: a number of sweeps that depended on the state would favour the states in which it
is small. No number depends on what moves find. Hyperparameters are drawn once after a churn at
most, since a second draw from the same clusters says little.
"""

# SPDX-License-Identifier: BSD-3-Clause

from ..moves import CALL, n_columns_of, row_work

# Of a churn's work, by the names of the moves.
SHARES = {
    "split_merge": 1 / 2,
    "permutation": 1.0,
    "column_block": 1.0,  # with 1/4 chains differ in how many views independent columns are in
    "column_gibbs": 1 / 4,
    "column_sets": 1 / 16,
    "view_split_merge": 1 / 8,
    "view_reallocation": 1 / 8,
    "view_annealing": 1 / 8,
    "hyperparameters": 1 / 2,
}
ONCE = {"hyperparameters"}  # made once after a churn at most
WHILE_GROWING = {"view_reallocation"}  # at full data hardly any is accepted: 1 of 22,000
# A churn is taken to cost as many calls beside its rows. That is a floor for moves on small tables:
# with one call fits are worse (doc/ablation.md).
OWN_CALLS = 8
LEAST_COST = 0.01  # of a sweep, in churns; a sweep of a single row costs nothing


class Budget:
    """The moves of one chain that follow a churn, and what each has earned.

    Parameters
    ----------
    moves : list of moves
        In the order in which they are made.
    clock : ChainClock
        The chain's; it times the moves by their names.

    Attributes
    ----------
    credit : dict of str to float
        What each move has earned and not spent, in churns.
    costs : dict of str to float
        What a sweep of each move costs, in churns of the same rows: a mean over the sweeps of
        burn-in, the n-th of which has weight n, since costs change while rows enter. Of those in
        ONCE, whose work hardly varies, it is what the last one has cost.
    n_averaged : dict of str to int
        Of how many sweeps these are means.
    churn : list of float
        What a churn costs: as such, and per assignment.
    """

    def __init__(self, moves, clock):
        self.moves, self.clock = {move.name: move for move in moves}, clock
        self.credit, self.churn = dict.fromkeys(self.moves, 0.0), []
        self.costs, self.n_averaged = {}, dict.fromkeys(self.moves, 0)

    def memory(self):
        """Return what the budget remembers of earlier churns, in a form that JSON can hold."""
        return {
            "credit": self.credit.copy(),
            "costs": self.costs.copy(),
            "n_averaged": self.n_averaged.copy(),
            "churn": self.churn,
        }

    def recall(self, memory):
        """Take back what `memory` returned; other entries are ignored."""
        self.credit = {name: float(memory["credit"][name]) for name in self.moves}
        self.costs = {str(name): float(cost) for name, cost in memory["costs"].items()}
        self.n_averaged = {name: int(memory["n_averaged"][name]) for name in self.moves}
        self.churn = [float(part) for part in memory["churn"]]

    def look(self, state, burn_in):
        """Look what a churn costs now; after burn-in only if that is not known yet."""
        if burn_in or not self.churn:
            self.churn = churn_cost(state)

    def make(self, names, state, bit_generator, segment, burn_in, stop):
        """Make those of the named moves that can be paid after a segment."""
        for name in self.due(state, names):
            self.credit[name] += self._earned(name, state, segment)
            while self.credit[name] >= self._cost(name) and not stop.is_set():
                self.clock.poll()
                self._sweep(name, state, bit_generator, segment, burn_in)
                if name in ONCE:
                    self.credit[name] = min(self.credit[name], self._cost(name))
                    break

    def due(self, state, names):
        """Return which of the named moves have a share while these rows are in."""
        full = state.subsample.size == state.table.n_rows
        return [name for name in names if not (full and name in WHILE_GROWING)]

    def expected(self, state, segment):
        """Return the seconds that `make` will take; infinity if a due move was never made."""
        n_rows, seconds = state.subsample.size, 0.0
        for name in self.due(state, self.moves):
            earned = self.credit[name] + self._earned(name, state, segment)
            n_sweeps = int(earned / self._cost(name))
            n_sweeps = min(n_sweeps, 1) if name in ONCE else n_sweeps
            seconds += n_sweeps * self.clock.expected(name, n_rows) if n_sweeps else 0.0
        return seconds

    def _sweep(self, name, state, bit_generator, segment, burn_in):
        n_rows, began = state.subsample.size, self.clock.now()
        info = self.moves[name].sweep(state, bit_generator, beta=segment.beta)
        self.clock.note(name, began, n_rows)
        if burn_in or name not in self.costs:
            now, n = info.work / self._work(n_rows), self.n_averaged[name] + 1
            before = now if name in ONCE else self.costs.get(name, now)
            self.costs[name] = before + 2 * (now - before) / (n + 1)
            self.n_averaged[name] = n
        self.credit[name] -= self._cost(name)

    def _earned(self, name, state, segment):
        """Return what a move earns by a segment: its share of a churn."""
        of_churn = self._work(segment.stop - segment.start) / self._work(state.subsample.size)
        return SHARES[name] * of_churn

    def _cost(self, name):
        """Return what a sweep costs; hardly anything before the first one, which tells."""
        return max(self.costs.get(name, 0.0), LEAST_COST)

    def _work(self, n_assignments):
        """Return the work of a number of assignments."""
        fixed, each = self.churn or (OWN_CALLS * CALL, 0.0)
        return fixed + each * n_assignments


def churn_cost(state):
    """Return what a churn costs as such, and per assignment: in each view a row is scored and added
    to a cluster."""
    each = sum((view.n_tiles + 1) * row_work(n_columns_of(view)) for view in state.views)
    return [float(OWN_CALLS * CALL), float(each)]
