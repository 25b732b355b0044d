"""Neal's algorithm 8, with auxiliary atoms from the prior or from the data.

Existing atoms weigh (n_k - d) f, each of m empty ones (alpha + d K)/m f, K without the row. The
empty ones persist: one that is taken is replaced at once by a draw from H; the theta of a row that
was alone takes the place of one chosen at random; all are drawn anew for every sweep.

"importance" draws a row's empty atoms from its own proposal q_i instead and weighs each
(alpha + d K)/m f H/q_i; a row's own theta, if it was alone, takes one of the places by the same
formula. With a conjugate likelihood q_i is the posterior given the row, and f H/q_i is the row's
marginal likelihood whatever theta is: theta is then drawn only for a place that is taken.

One shard holds all rows, which move one after another. The scores under the atoms that a sweep
begins with are still computed a block of rows at a time.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..families._slots import tiles
from ..moves._random import draw_index
from ._assign import auxiliary_rows, block, tiled
from ._segments import (
    BLOCK_CELLS,
    FEWEST_ROWS,
    MOST_ROWS,
    Stage,
    bit_generator,
    report,
    unreachable,
    words,
)

# Spare columns for new atoms; when they are used up, all columns are laid out anew.
MIN_SPARE_COLUMNS = 48
SPARE_SHARE = 0.25  # of the number of atoms


class Auxiliary(Stage):
    """Algorithm 8."""

    name = "auxiliary"

    def plan(self, state, n_steps, generator):
        """(function, arguments of each shard) of the next segment; there is one shard."""
        (labels,) = state.labels
        theta = state.theta
        if theta is None:
            theta = state.likelihood.draw(state.statistics, None, generator)
        sent = labels, theta, state.likelihood, state.prior, self.n_auxiliary
        return self.segment, [(*sent, n_steps, words(generator))]

    @staticmethod
    def segment(rows, labels, theta, likelihood, prior, n_auxiliary, n_steps, seed, stop):
        """Sweeps with empty atoms from the prior."""
        rng = bit_generator(seed)
        places = Places(likelihood, theta, labels, prior, n_auxiliary, rng)
        for _ in range(n_steps):
            if not sweep_places(places, rows, stop):
                break
        return places.report(rows)


class Importance(Auxiliary):
    """Algorithm 8 with empty atoms proposed by the row, weighted exactly."""

    name = "importance"

    @staticmethod
    def segment(rows, labels, theta, likelihood, prior, n_auxiliary, n_steps, seed, stop):
        """Sweeps with empty atoms from q_i."""
        rng = bit_generator(seed)
        if likelihood.conjugate:
            places = Places(likelihood, theta, labels, prior, 0, rng)
            log_new = likelihood.log_marginal_rows(rows)
            for _ in range(n_steps):
                if not sweep_places(places, rows, stop, log_new):
                    break
        else:
            places = Places(likelihood, theta, labels, prior, n_auxiliary, rng)
            for _ in range(n_steps):
                if not sweep_proposed(places, rows, stop):
                    break
        return places.report(rows)


class Places:
    """Atoms in columns of a block of scores: those that were there when the columns were laid
    out, then room for new ones.

    Parameters
    ----------
    likelihood : Likelihood
    theta : array of shape (K, ...)
    labels : int32 array of shape (n,)
        0 .. K - 1, or -1 for rows of other atoms.
    prior : PartitionPrior
    n_auxiliary : int
        m; 0 if the empty atoms do not persist.
    rng : numpy.random.PCG64

    Attributes
    ----------
    labels : int32 array of shape (n,)
        Column of each row's atom, or -1.
    theta : array of shape (n_columns, ...)
    members : int64 array of shape (n_columns,)
    log_weight : float32 array of shape (n_columns,)
    places : int32 array of shape (m,)
        Columns of the empty atoms; -1 where one was taken.
    numbers : int64 array of shape (2,)
        Clusters, rows in them.
    """

    def __init__(self, likelihood, theta, labels, prior, n_auxiliary, rng):
        self.likelihood, self.theta, self.prior = likelihood, theta, prior
        self.labels, self.n_auxiliary = labels.copy(), n_auxiliary
        self.rng, self.generator = rng, np.random.Generator(rng)
        self.n_first = len(theta)
        self.members = np.bincount(labels[labels >= 0], minlength=len(theta))

    def lay_out(self, empty):
        """Columns for the atoms that have members, and then for empty ones."""
        used = np.flatnonzero(self.members)
        column = np.full(len(self.members) + 1, -1, np.int32)  # the last for rows elsewhere
        column[used] = np.arange(len(used))
        self.labels = column[self.labels]
        self.n_main, self.width = len(used), tiles(len(used))
        n_spare = max(MIN_SPARE_COLUMNS, int(SPARE_SHARE * len(used)))
        n_columns = self.width + tiles(n_spare + self.n_auxiliary)
        theta = np.zeros((n_columns, *self.theta.shape[1:]))
        theta[: len(used)] = self.theta[used]
        members = np.zeros(n_columns, np.int64)
        members[: len(used)] = self.members[used]
        self.theta, self.members = theta, members
        self.numbers = np.array([len(used), members.sum()])
        with np.errstate(divide="ignore", invalid="ignore"):
            log_weight = np.log(members - self.prior.reduction)
        self.log_weight = tiled(np.where(members > 0, log_weight, -np.inf))
        self.prepared = self.likelihood.prepare(theta[: len(used)])
        self.places = np.full(len(empty), -1, np.int32)
        self.places[:] = self.put(empty)

    def free(self):
        """Columns for new atoms."""
        columns = np.arange(self.width, len(self.theta))
        return columns[(self.members[columns] == 0) & ~np.isin(columns, self.places)]

    def has_room(self):
        """Whether one more atom has a column."""
        return len(self.free()) > 0

    def put(self, theta):
        """Columns of new atoms, which have no weight yet."""
        columns = self.free()[: len(theta)]
        self.theta[columns] = theta
        return columns

    def took(self, rows, labels, i, column, scores):
        """Let row i of a block take the empty atom in `column`, and replace that by another one.

        With column -1 the new atom was integrated out; it gets its theta given the row.
        """
        likelihood = self.likelihood
        if column < 0:
            of_row = likelihood.statistics(rows[i : i + 1], np.zeros(1, np.int32), 1)
            (new,) = self.put(likelihood.draw(of_row, None, self.generator))
            self.join(labels, i, new, counted=True)
        else:
            (new,) = self.put(likelihood.prior_draw(1, self.generator))
            self.places[self.places < 0] = new
        rest = scores[i + 1 :, new : new + 1]
        self.rescore(rows[i + 1 :], rest, self.theta[new : new + 1])

    def leave(self, k):
        """Take a row out of column k; return whether it was alone there."""
        self.members[k] -= 1
        self.numbers -= (self.members[k] == 0), 1
        self._weigh(k)
        return self.members[k] == 0

    def join(self, labels, i, k, counted=False):
        """Put row i of a block into column k; with `counted`, `numbers` count it already."""
        labels[i] = k
        self.members[k] += 1
        if not counted:
            self.numbers += (self.members[k] == 1), 1
        self._weigh(k)

    def _weigh(self, k):
        n = self.members[k]
        self.log_weight[k] = np.log(n - self.prior.reduction) if n else -np.inf

    def empty(self):
        """theta of the empty atoms."""
        return self.theta[self.places[self.places >= 0]]

    def score(self, rows, scores):
        """Scores of a block under all columns in use."""
        self.likelihood.score(rows, self.prepared, self.n_main, scores[:, : self.width])
        scores[:, self.width :] = 0.0
        extra = np.setdiff1d(np.arange(self.width, len(self.theta)), self.free())
        if len(extra):
            out = block(len(rows), len(extra))
            self.rescore(rows, out, self.theta[extra])
            scores[:, extra] = out[:, : len(extra)]

    def rescore(self, rows, out, theta):
        """Scores under some atoms."""
        self.likelihood.score(rows, self.likelihood.prepare(theta), len(theta), out)

    def block(self, n_rows):
        """Room for the scores of at most n_rows rows."""
        n_columns = len(self.theta)
        n = min(max(BLOCK_CELLS // n_columns, FEWEST_ROWS), MOST_ROWS, n_rows)
        return block(n, n_columns)

    def report(self, rows):
        """The shard's report: every atom is a new one, numbered after the n_first old ones."""
        used = np.flatnonzero(self.members)
        number = np.full(len(self.members), -1, np.int32)
        number[used] = self.n_first + np.arange(len(used))
        new = None if self.likelihood.conjugate else self.theta[used]
        return report(self.likelihood, rows, number[self.labels], self.n_first + len(used), new)


def sweep_places(places, rows, stop, log_new=None, rest=None):
    """One sweep over the rows; False if the stop flag cut it short.

    Parameters
    ----------
    places : Places
    rows : encoded rows
    stop : StopFlag
    log_new : float64 array of shape (n,), optional
        Log marginal likelihoods; new atoms are then integrated out.
    rest : tuple, optional
        The atoms of I beside a tail: see auxiliary_rows.
    """
    log_new = np.empty(0) if log_new is None else log_new
    places.lay_out(places.likelihood.prior_draw(places.n_auxiliary, places.generator))
    start = 0
    while start < len(rows):
        if stop.is_set():
            return False
        room = places.block(len(rows) - start)
        span = slice(start, start + len(room))
        part, labels = rows[span], places.labels[span]
        places.score(part, room)
        i = -1
        while i + 1 < len(room) and places.has_room():
            i, column = auxiliary_rows(
                i + 1,
                room,
                labels,
                places.members,
                places.log_weight,
                places.places,
                places.numbers,
                places.prior,
                log_new[span],
                _of_block(rest, span),
                places.rng,
            )
            if i < len(room):
                if column < 0 and places.n_auxiliary:
                    raise unreachable(places.likelihood, start + i)
                places.took(part, labels, i, column, room)
        start += min(i + 1, len(room))
        if not places.has_room():
            places.lay_out(places.empty())
    return True


def _of_block(rest, span):
    if rest is None:
        return None
    log_mass, drawn, *others = rest
    return log_mass[span], drawn[span], *others


def sweep_proposed(places, rows, stop):
    """One sweep in which every row proposes its own empty atoms; False if cut short."""
    likelihood, generator, prior = places.likelihood, places.generator, places.prior
    places.lay_out(places.theta[:0])
    m, start = places.n_auxiliary, 0
    while start < len(rows):
        if stop.is_set():
            return False
        room = places.block(len(rows) - start)
        part, labels = rows[start : start + len(room)], places.labels[start : start + len(room)]
        places.score(part, room)
        for i in range(len(room)):
            if not places.has_room():
                break
            z, row = labels[i], part[i : i + 1]
            alone = places.leave(z)
            theta = likelihood.proposal_draw(part[np.full(m - alone, i)], generator)
            if alone:
                theta = np.concatenate([places.theta[z : z + 1], theta])
            out = block(1, m)
            places.rescore(row, out, theta)
            log_ratio = likelihood.log_prior(theta) - likelihood.proposal_logpdf(theta, row)
            opening = _log_open(prior, places.numbers[0]) - np.log(m)
            weights = np.r_[room[i] + places.log_weight, opening + out[0, :m] + log_ratio]
            if not np.isfinite(weights.max()):
                raise unreachable(likelihood, start + i)
            k = draw_index(weights, generator)
            if k >= len(places.theta):
                (k,) = places.put(theta[k - len(places.theta)][None])
                places.rescore(part[i + 1 :], room[i + 1 :, k : k + 1], places.theta[k : k + 1])
            places.join(labels, i, k)
        else:
            i = len(room)
        start += i
        if not places.has_room():
            places.lay_out(places.theta[:0])
    return True


def _log_open(prior, n_clusters):
    """Log weight of a new cluster beside n_clusters; the first row always opens one."""
    return np.log(prior.open_weight(n_clusters)) if n_clusters else 0.0
