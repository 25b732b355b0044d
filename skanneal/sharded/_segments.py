"""What the segments of the uncollapsed algorithms share.

A segment is what a shard does between two synchronisations: a pure function
(rows, what is sent, stop) -> report, the unit of work that goes to a thread, a process or another
machine. A report is what `Uncollapsed.gather` takes. Once the stop flag is set, a segment soon ends
where it is, and leaves the rows that had no turn as they were. A sweep is made of moves of single
rows, each of which leaves the posterior invariant, and so does any first part of the sweep that a
clock cuts off.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..likelihoods._draws import log_dirichlet
from ._assign import block

BLOCK_CELLS = 1 << 16  # scores held at a time: they stay in the second-level cache
FEWEST_ROWS, MOST_ROWS = 16, 4096  # of a block


class Stage:
    """An algorithm's way from one synchronisation to the next.

    Parameters
    ----------
    n_auxiliary : int
        Empty atoms at a time, where there are any.
    """

    burn_in = False  # True if the stage is approximate
    steps = float("inf")  # sub-iterations between two synchronisations, at most
    n_pairs = 0  # pairs of rows that each synchronisation tries for a split or merge

    def __init__(self, n_auxiliary):
        self.n_auxiliary = n_auxiliary

    def plan(self, state, n_steps, generator):
        """What the shards are to do.

        Parameters
        ----------
        state : Uncollapsed
        n_steps : int
            Sub-iterations.
        generator : numpy.random.Generator

        Returns
        -------
        segment : function
            Pure: segment(rows, *arguments, stop=flag) -> report.
        arguments : list of tuple
            One per shard.
        """
        raise NotImplementedError


def bit_generator(words):
    """The generator of a segment, from numbers that the chain drew for it."""
    return np.random.PCG64(np.random.SeedSequence(words))


def words(generator):
    """Numbers for `bit_generator`."""
    return generator.bit_generator.random_raw(2).tolist()


def draw_weights(parameters, generator):
    """Logarithms of weights ~ Dirichlet(parameters): shape (n,)."""
    parameters = np.ascontiguousarray(parameters, dtype=np.float64)
    none = np.zeros((1, len(parameters)))
    return log_dirichlet(none, parameters, generator.bit_generator)[0]


def scored_blocks(likelihood, rows, theta, stop=None, at=None, dtype=np.float32):
    """Rows' scores under atoms, a block at a time.

    Parameters
    ----------
    likelihood : Likelihood
    rows : encoded rows
    theta : array of shape (K, ...)
    stop : StopFlag, optional
        Once it is set there are no more blocks.
    at : int array, optional
        Only these rows, in this order.
    dtype : dtype, default=float32
        float64 where scores are no steps of a sampler but an answer: of counts they then have all
        digits.

    Yields
    ------
    start : int
        First row of the block, or its place in `at`.
    scores : array of shape (n, width)
        Overwritten by the next block.
    """
    prepared = likelihood.prepare(theta)
    width = block(0, len(theta)).shape[1]
    step = min(max(BLOCK_CELLS // width, FEWEST_ROWS), MOST_ROWS)
    n_rows = len(rows) if at is None else len(at)
    room = block(min(step, n_rows), len(theta), dtype)
    for start in range(0, n_rows, step):
        if stop is not None and stop.is_set():
            return
        span = slice(start, start + step)
        part = rows[span if at is None else at[span]]
        scores = room[: len(part)]
        likelihood.score(part, prepared, len(theta), scores)
        yield start, scores


def all_scores(likelihood, rows, theta, dtype=np.float32):
    """Scores of all rows: (n, width)."""
    out = block(len(rows), len(theta), dtype)
    for start, scores in scored_blocks(likelihood, rows, theta, dtype=dtype):
        out[start : start + len(scores)] = scores
    return out


def report(likelihood, rows, labels, n_atoms, new=None):
    """The labels, with what the other shards have to know.

    Parameters
    ----------
    likelihood, rows, labels
        labels : int32 array of shape (n,)
    n_atoms : int
        New ones included.
    new : array of shape (n_new, ...) or None
        The new atoms, if the likelihood is not conjugate.
    """
    return labels, likelihood.statistics(rows, labels, n_atoms), new


def labelled_log_lik(rows, labels, theta, likelihood, stop=None):
    """The sum of log f(row | theta of its label); all of it, whatever the stop flag says."""
    total = 0.0
    order = np.argsort(labels, kind="stable")
    used, starts = np.unique(labels[order], return_index=True)
    for k, of_k in zip(used, np.split(order, starts[1:])):
        total += float(all_scores(likelihood, rows[of_k], theta[k : k + 1], float)[:, 0].sum())
    return total


def first_report(rows, labels, n_atoms, likelihood, stop):
    """The report of rows whose labels are given."""
    return report(likelihood, rows, labels, n_atoms)


def unreachable(likelihood, row):
    """The error of a row whose likelihood is 0 in every cluster."""
    likelihood = getattr(likelihood, "likelihood", likelihood)  # the user's, behind the checks
    return ValueError(
        f"{type(likelihood).__name__}.log_lik: row {row} of its shard has likelihood 0 in every "
        f"cluster (or one that is no number), so no cluster can be reached"
    )
