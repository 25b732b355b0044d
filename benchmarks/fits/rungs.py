"""Parallel tempering of mixtures: rungs of fewer rows, or of lower powers of the likelihood.

A rung has a partition of its first n rows, hyperparameters and a concentration of its own, and with
the power b of the likelihood the target

    h(s) = p(s) p(x_1, .., x_n | s)^b,

with the same hyperprior on every rung. Rungs of fewer rows have b = 1. Let s be the state of a rung
of n rows, and S that of its neighbour of m > n rows. A swap gives S, restricted to the n rows, to
the small rung; and s, with whose clusters and hyperparameters the m - n rows in between are
allocated one after another in an order that is drawn for the swap, to the large one. Each of these
rows is drawn from its terms w_k p(x | x_k), which add up to (t + alpha) Z_t when t rows are in. The
probability q of the whole allocation is the product of the terms drawn over all (t + alpha) Z_t,
and the product of the terms over (t + alpha) is what the partition's prior and the likelihood
grow by, so that

    h(S') = h(s) q(S' | s) Z,   Z = product of the Z_t.

The reverse swap allocates the same rows to S's restriction, of all outcomes S, with its own Z. The
swap is accepted with probability min(1, Z(s) / Z(restriction of S)). With `n_steps` above 0 Gibbs
steps of random rows follow each row that enters, and precede each that leaves; then the small rung
is given the end of that backward path in place of the restriction, and the ratio is the same (see
skanneal/moves/_view_annealing.py).

Rungs of all rows and of other powers swap their states, with the ratio
(p(x | s) / p(x | S))^(B - b).
"""

import numpy as np

from skanneal.chains._clock import ChainClock
from skanneal.chains._first_state import first_state
from skanneal.chains._moves import ChainMoves
from skanneal.moves import churn
from skanneal.moves._allocate import enter_rows, leave_rows
from skanneal.parallel import StopFlag
from skanneal.partition_priors import PriorGrid
from skanneal.schedules._path import Segment
from skanneal.states import Subsample


class Rung:
    """The first rows of a table, a power of the likelihood, and a state of its own, which begins
    with all rows in one cluster. Families of whole rows must have no gaps, and no weights.

    Parameters
    ----------
    plan : ChainPlan
        Of all rows, in the order in which the ladder takes them.
    n_rows : int
    beta : float
    bit_generator : numpy.random.BitGenerator

    Attributes
    ----------
    state : Mixture
    burn_in : bool
        Whether the moves may adapt how often they are made.
    """

    def __init__(self, plan, n_rows, beta, bit_generator):
        grid = PriorGrid.of(plan.prior_grid)
        grid = PriorGrid(grid.points, grid.log_weights, least_rows=0)
        self.plan = plan._replace(table=plan.table.take(np.arange(n_rows)), prior_grid=grid)
        self.n_rows, self.beta, self.bit_generator = n_rows, beta, bit_generator
        self.subsample = Subsample(n_rows, "window", bit_generator)
        self.moves = ChainMoves(self.plan, ChainClock())
        self.state = first_state(self.plan, self.subsample, "empty", bit_generator)
        self.subsample.fill()
        self.stop = StopFlag()
        self.burn_in = True
        self.start(np.zeros(n_rows))

    def start(self, labels):
        """Put the rows into these clusters."""
        labels = np.unique(labels, return_inverse=True)[1]
        self.state.set_prior(self.state.prior.holding(int(labels.max()) + 1))
        self.state.replace(np.arange(self.n_rows), labels)

    def sweep(self):
        """Gibbs steps of all rows and the moves that follow them."""
        n = self.n_rows
        knots = np.array([[0, n], [n, n]])
        churn([self.state], self.subsample, self.bit_generator, knots, 0, n, self.beta)
        self.state.compact()
        segment = Segment(0, n, knots, self.beta)
        self.moves.make(self.state, self.bit_generator, segment, self.burn_in, self.stop)

    def saved(self):
        """What a swap exchanges."""
        labels = self.state.labels_of(np.arange(self.n_rows))
        blocks = [[block.get_hyper(f) for f in range(block.n_features)] for block in self.blocks]
        return labels, self.state.prior, blocks

    @property
    def blocks(self):
        """The state's blocks, one for each family."""
        return self.state.blocks

    def put(self, labels, prior, hyper):
        """Take over a partition of the first rows, a prior and hyperparameters."""
        for block, of_block in zip(self.blocks, hyper):
            for f, vector in enumerate(of_block):
                for h, value in enumerate(vector):
                    block.set_hyper(f, h, value)
        labels = np.unique(labels, return_inverse=True)[1]
        self.state.replace(np.arange(len(labels)), labels)
        for block in self.blocks:
            block.refresh_all()
        self.state.set_prior(prior)


def swap_rows(small, large, n_steps, bit_generator):
    """Swap neighbours of fewer and more rows; return the log ratio and whether it was accepted."""
    generator = np.random.Generator(bit_generator)
    n, m = small.n_rows, large.n_rows
    order = np.concatenate([np.arange(n), n + generator.permutation(m - n)])
    before, path = large.saved(), (order, n, m, n_steps, 1.0, bit_generator)
    log_back = leave_rows(large.state, *path)
    end = large.state.labels_of(np.arange(n)), *before[1:]
    large.put(*small.saved())
    log_ratio = enter_rows(large.state, *path) - log_back
    accepted = np.log1p(-generator.random()) < log_ratio
    if accepted:
        small.put(*end)
    else:
        large.put(*before)
    return log_ratio, accepted


def swap_powers(low, high, bit_generator):
    """Swap neighbours of a lower and a higher power of the likelihood of the same rows."""
    generator = np.random.Generator(bit_generator)
    log_likelihoods = low.state.log_likelihood(), high.state.log_likelihood()
    log_ratio = (high.beta - low.beta) * (log_likelihoods[0] - log_likelihoods[1])
    accepted = np.log1p(-generator.random()) < log_ratio
    if accepted:
        for name in ("state", "subsample"):
            mine, other = getattr(low, name), getattr(high, name)
            setattr(low, name, other)
            setattr(high, name, mine)
    return log_ratio, accepted


class Ladder:
    """Rungs from the hottest to the target, whose states are swapped with their neighbours'.

    Parameters
    ----------
    rungs : list of Rung
    bit_generator : numpy.random.BitGenerator
    n_steps : int, default=0
        As of `swap_rows`.

    Attributes
    ----------
    tried, probability : ndarray of shape (n_rungs - 1,)
        Swaps of each pair, and the sum of the probabilities with which they were to be accepted.
    ways : list of int
        How often a state has come from the hottest rung to the target, and from there back.
    """

    def __init__(self, rungs, bit_generator, n_steps=0):
        self.rungs, self.bit_generator, self.n_steps = rungs, bit_generator, n_steps
        self.by_rows = rungs[0].n_rows < rungs[-1].n_rows
        self.turn = 0
        self.replica = np.arange(len(rungs))  # which state is at each rung
        self.seen_last = np.zeros(len(rungs))  # of each state, the end where it was: -1, 1 or none
        self.forget()

    def forget(self):
        """Begin to count anew, and let moves adapt no more."""
        self.tried, self.probability = np.zeros((2, len(self.rungs) - 1))
        self.ways = [0, 0]
        for rung in self.rungs:
            rung.burn_in = self.turn == 0

    def iterate(self):
        """Sweep every rung, then swap even or odd pairs in turn."""
        for rung in self.rungs:
            rung.sweep()
        self.swap()

    def swap(self):
        """Swap the even pairs or the odd ones."""
        for k in range(self.turn % 2, len(self.rungs) - 1, 2):
            pair = self.rungs[k], self.rungs[k + 1]
            if self.by_rows:
                log_ratio, accepted = swap_rows(*pair, self.n_steps, self.bit_generator)
            else:
                log_ratio, accepted = swap_powers(*pair, self.bit_generator)
            self.tried[k] += 1
            self.probability[k] += np.exp(min(log_ratio, 0.0))
            if accepted:
                self.replica[[k, k + 1]] = self.replica[[k + 1, k]]
        self.turn += 1
        if len(self.rungs) > 1:
            self._note_ends()

    def _note_ends(self):
        for i, (rung, end) in enumerate(((-1, 1), (0, -1))):
            state = self.replica[rung]
            self.ways[i] += self.seen_last[state] == -end
            self.seen_last[state] = end
