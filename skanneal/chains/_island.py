"""An island: particles that see one row after another, and the evidence from their weights.

With x_1, .., x_N the rows in the island's order and s the state without its rows' data (partitions
of rows and columns, concentrations, hyperparameters), the targets are

    p_n(s) = p(s) p(x_1, .., x_n | s),   n = 0 .. N.

A particle begins as a draw from p_0, the prior. When a row enters, it multiplies the particle's
weight by

    w = p(x_n | s, x_1, .., x_{n-1})
      = prod_v sum_k (n_vk - d_v) / (n - 1 + alpha_v) p(x_n | x_vk)  +  the term of a new cluster

over the views v, the normaliser of the row's Gibbs draw of its clusters, which follows. Moves that
leave p_n invariant come in between. So the expected product of the means of the weights between two
resamplings is p(x_1, .., x_N), whatever the number of particles and the moves (Chopin 2002; Del
Moral, Doucet and Jasra 2006). This requires that nothing is tuned or left out depending on
what a particle has seen, and that the prior is that of the full data from the first row on.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..moves import make_steps
from ..moves._random import draw_index
from ..parallel import OfChain, seed_below, seeds_below
from ..partition_priors import PriorGrid
from ..states import Subsample, state_from_arrays
from ._chain import Chain
from ._clock import ChainClock
from ._first_state import state_from_prior
from ._moves import ChainMoves


def run_island(plan, schedule, seed, further_sweeps, max_time, stop, progress):
    """Run an island and return the chain of its survivor.

    Parameters
    ----------
    plan : ChainPlan
        Data, prior and moves, none of which adapts.
    schedule : SequentialMonteCarlo
        Validated.
    seed : numpy.random.SeedSequence
        Of this island alone; each of its particles has a stream of its own.
    further_sweeps, max_time
        Not used: an island follows its schedule alone.
    stop : StopFlag
        Raised to end early.
    progress : Progress
        Told how far the island has come.

    Returns
    -------
    chain : Chain
        At the schedule's end, with a particle drawn by weight and `log_evidence`. Or, stopped
        early, somewhere on the schedule's path, along which it anneals if it is run on; the
        evidence is then nan.
    """
    island = Island(plan, schedule, seed)
    chain = Chain(plan, None, schedule.pacer(plan.table.n_rows), None, ChainClock())
    chain.progress = progress
    for size, assignments in schedule.stages(plan.table.n_rows):
        whole = island.run(size, assignments, stop)
        chain.position = island.made
        best = int(np.argmax(island.log_weights))
        chain.state = island.states[best]
        chain.clock.tick()
        if not whole:
            break
        chain.record()
        if progress(chain.share):
            stop.set()
    else:
        chain.log_evidence = island.log_evidence
    chain.state, chain.bit_generator = island.states[best], island.bit_generators[best]
    chain.pacer.jump(chain.position)
    return chain


class Island:
    """Weighted particles over the same rows.

    Parameters
    ----------
    plan : ChainPlan
    schedule : SequentialMonteCarlo
    seed : numpy.random.SeedSequence

    Attributes
    ----------
    states : list of Mixture or CrossCat
        The particles. They share one subsample, whose rows are in the island's order.
    bit_generators : list of numpy.random.BitGenerator
        One per place: a copied particle continues with the stream of its new place.
    log_weights : ndarray of shape (n_states,)
        Of the particles, cumulative since the last resampling.
    log_evidence : float
        Of the rows so far.
    made : int
        Assignments of each particle.
    """

    def __init__(self, plan, schedule, seed):
        plan = plan._replace(prior_grid=_whole(plan.prior_grid), view_grid=_whole(plan.view_grid))
        seeds = seeds_below(seed, OfChain.PARTICLES, schedule.particles(1))
        self.table, self.min_ess = plan.table, schedule.min_ess
        self.n_particles = schedule.particles
        self.bit_generator = np.random.PCG64(seed_below(seed, OfChain.ISLAND))
        self.bit_generators = [np.random.PCG64(own) for own in seeds]
        self.subsample = Subsample(
            plan.table.n_rows, schedule.selection, self.bit_generator, plan.strata
        )
        self.states = [
            state_from_prior(plan, self.subsample, stream) for stream in self.bit_generators
        ]
        self.moves = ChainMoves(plan, ChainClock())
        self.log_weights, self._log_before = np.zeros(len(self.states)), 0.0
        self.rows, self.made, self.turn = [], 0, 0

    @property
    def log_evidence(self):
        """Log of the estimate of the density of the rows so far."""
        return self._log_before + _log_sum(self.log_weights) - np.log(len(self.states))

    def run(self, size, assignments, stop):
        """Let rows enter until there are `size`, then make so many assignments in place; return
        False if it was stopped before.

        With the last row the evidence is known: only the survivor, one particle drawn by weight, is
        moved on.
        """
        if not self.take_in(size, stop):
            return False
        if size == self.table.n_rows:
            self.keep_survivor()
        return self.sweep(assignments, stop)

    def take_in(self, size, stop):
        """Let rows enter until there are `size`; return False if it was stopped before.

        Then there are as many particles as the schedule has for so many rows.
        """
        while self.subsample.size < size:
            if stop.is_set():
                return False
            row = self.subsample.enter_row(self.bit_generator)
            self.rows.append(row)
            for i, (state, stream) in enumerate(zip(self.states, self.bit_generators)):
                self.log_weights[i] += self.enter(state, row, stream)
            self.made += 1
            if effective_size(self.log_weights) < self.min_ess * len(self.states):
                self.resample()
        n_particles = self.n_particles(size)
        if n_particles < len(self.states):
            self.resample(n_particles)
        return True

    def enter(self, state, row, bit_generator):
        """Let a row enter a particle; return the log of the particle's weight for it.

        In each view the row's cluster is drawn from the very terms whose sum is the weight. A row
        step would not do: of some families it draws from proposals that only approximate them.
        """
        log_weight, generator = 0.0, np.random.Generator(bit_generator)
        for view in state.views:
            log_terms = log_terms_of_row(view, row)
            log_weight += _log_sum(log_terms)
            slots = np.append(np.flatnonzero(view.sizes()), view.open_slot)
            view.insert_row(row, slots[draw_index(log_terms, generator)])
            view.draw_fills([row], bit_generator)
        return log_weight

    def sweep(self, assignments, stop):
        """Make so many assignments in place, and the moves after each sweep; return False if it was
        stopped before all of them."""
        rows = np.array(self.rows)
        while assignments > 0:
            taken = rows[:assignments]
            steps = np.column_stack([~taken, taken]).ravel()
            for state, stream in zip(self.states, self.bit_generators):
                if stop.is_set():
                    return False
                make_steps(state.views, steps, stream)
                state.compact()
                self.moves.make_in_turn(state, stream, self.turn)
            self.turn += 1
            self.made += len(taken)
            assignments -= len(taken)
        return True

    def resample(self, n=None):
        """Keep `n` copies of particles, by default as many as there are, chosen by their weights,
        which all are 1 afterwards: systematic resampling."""
        self._log_before = self.log_evidence
        n = len(self.states) if n is None else n
        uniform = np.random.Generator(self.bit_generator).random()
        counts = systematic(self.log_weights, uniform, n)
        self.copy(np.repeat(np.arange(len(counts)), counts))
        self.log_weights = np.zeros(n)

    def copy(self, sources):
        """Let the particles be copies of those in the places `sources`, in this order."""
        states, own = [], set()
        for source in sources:
            state = self.states[source]
            if source in own:
                state = state_from_arrays(
                    state.to_arrays(), self.table, self.subsample, trusted=True
                )
            own.add(source)
            states.append(state)
        self.states = states

    def keep_survivor(self):
        """Keep one particle, drawn by weight, with the stream of its place."""
        place = draw_index(self.log_weights, np.random.Generator(self.bit_generator))
        self._log_before, self.log_weights = self.log_evidence, np.zeros(1)
        self.states, self.bit_generators = [self.states[place]], [self.bit_generators[place]]


def log_terms_of_row(view, row):
    """Log weight times density of a row that is not in a view, in each cluster and in a new one:
    in float64, the user's units."""
    scores, log_weights = view.score_rows(view.table, row, row + 1)
    return scores[0] + log_weights


def systematic(log_weights, uniform, n):
    """Return the number of copies of each particle, n in all: int64 (n_particles,).

    Systematic resampling: the expected number is n times the particle's share of the weights.
    """
    shares = np.exp(log_weights - _log_sum(log_weights))
    ends = np.floor(np.cumsum(shares) * n - uniform).astype(np.int64) + 1
    ends[-1] = n  # despite rounding
    return np.diff(np.maximum(ends, 0), prepend=0)


def effective_size(log_weights):
    """Effective sample size of weighted particles: squared sum over sum of squares."""
    return np.exp(2.0 * _log_sum(log_weights) - _log_sum(2.0 * log_weights))


def _log_sum(logs):
    return np.logaddexp.reduce(logs)  # for few particles ten times as fast as SciPy's logsumexp


def _whole(grid):
    """Return the same grid, all of whose points are open to subsamples of any size."""
    if grid is None:
        return None
    grid = PriorGrid.of(grid)
    return PriorGrid(grid.points, grid.log_weights, least_rows=0)
