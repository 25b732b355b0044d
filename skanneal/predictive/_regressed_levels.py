r"""Levels that are filled by a mixture and, on top of it, by a regression on all other columns.

A CrossCat takes two columns for independent unless the rows say otherwise. Where a level depends
weakly on another column, its fills are then drawn from the margin. That is hardly ever a wrong
guess of one cell, but all cells err to the same side if they are missing by the other column: the
proportion of the level in the filled table is biased, and does not say so. So what the mixture says
of a level l, q(l | rest of the row), is a start that a regression corrects,

    p(l | rest) / p(l or a later level | rest) = logistic(log q(l | .) / q(later | .) + z' b_l),

level after level, the frequent ones first (a continuation-ratio model: each b_l has a posterior of
its own, with the rows that have l or a later level). The regressors z are a one, numbers and counts
in standard units, and an indicator of each level of the other columns. Where the mixture knows all
that they tell, b is nearly 0; what the mixture finds beyond lines stays.

The prior is b ~ Normal(0, .) such that z'b without the one has the variance VARIANCE, to which each
of the columns adds as much as any other, and the coefficient of the one has it as well. It cannot
exclude any dependence, and is soon outweighed: VARIANCE is what one row tells of log odds near 0.

Gaps. The rows of the fit have the expected numbers and the probabilities of levels in place of
their gaps, given the rest of the row. Draws would not do: they know nothing of the level that is
regressed, and would flatten the slopes.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.special import expit, logsumexp

from ._logistic_draws import LogisticPosterior

VARIANCE = 4.0  # 1 / (1/2 * 1/2)


class RegressedLevels:
    """The training rows of the regressions, and what these say of missing levels.

    Parameters
    ----------
    queries : MixtureQueries
        Of the model of the levels.
    gappy : list of ndarray of shape (n_rows,)
        The encoded rows of the fit.
    whole : list of ndarray of shape (n_rows,)
        The same, with expected numbers in place of the gaps.
    """

    def __init__(self, queries, gappy, whole):
        predictor, apart = queries.predictor, queries.encoder.apart
        self.n_levels = queries.encoder.table_schema.n_levels
        cells = apart.stored(gappy)
        self.cells = [np.array(of) for of in cells]
        table = predictor.table(cells)
        levels = np.flatnonzero(self.n_levels).tolist()
        mixed = predictor.level_probabilities(table, levels)
        probable = {j: (table.missing(j), mixed[j][table.missing(j)]) for j in levels}
        self.regressors = _Regressors(self.n_levels, apart.stored(whole), probable)
        self.rows = self.regressors.of(apart.stored(whole), probable)
        self.steps = {}  # by column: its levels, the frequent ones first
        for j in levels:
            codes = cells[j][cells[j] < self.n_levels[j]]
            counts = np.bincount(codes, minlength=self.n_levels[j])
            self.steps[j] = np.argsort(-counts, kind="stable")
        self.modes = {j: self._coefficients(j, mixed[j], None) for j in levels}

    def most_probable(self, queries, gappy, whole):
        """The most probable level of each missing cell, on average over the draws.

        Parameters
        ----------
        queries : MixtureQueries
        gappy, whole : list of ndarray of shape (n_rows,)
            Encoded rows, and with numbers in their gaps.

        Returns
        -------
        values, missing : list of ndarray
            As of `MixtureQueries.fill`; no values of columns of numbers.
        """
        cells = queries.encoder.apart.stored(gappy)
        table = queries.predictor.table(cells)
        wanted = [j for j in self.steps if table.missing(j).any()]
        mixed = queries.predictor.level_probabilities(table, wanted)
        gaps = {j: table.missing(j) for j in wanted}
        probable = {j: (gap, mixed[j][gap]) for j, gap in gaps.items()}
        rows = self.regressors.of(queries.encoder.apart.stored(whole), probable)
        return self._values(
            queries,
            {
                j: self._corrected(j, mixed[j][gap], rows, gap, self.modes[j]).argmax(axis=1)
                for j, gap in gaps.items()
            },
            gaps,
        )

    def drawn(self, queries, predictor, seed, gappy, whole):
        """A draw of each missing level, given the other cells of its row, all filled.

        Parameters
        ----------
        queries : MixtureQueries
        predictor, seed : Predictor, SeedSequence
            One of the `turns` of the queries, that which the gaps were filled by.
        gappy, whole : list of ndarray of shape (n_rows,)
            Encoded rows, and with all their gaps filled.

        Returns
        -------
        values, missing : list of ndarray
            As of `most_probable`.
        """
        generator = np.random.Generator(np.random.PCG64(seed.spawn(1)[0]))
        apart = queries.encoder.apart
        table, cells = predictor.table(apart.stored(gappy)), apart.stored(whole)
        gaps = {j: gap for j in self.steps if (gap := table.missing(j)).any()}
        known = predictor.level_probabilities(predictor.table(self.cells), list(gaps))
        values = {}
        for j, gap in gaps.items():
            coefficients = self._coefficients(j, known[j], generator)
            table = predictor.table(cells).take(np.flatnonzero(gap))
            mixed = predictor.level_probabilities(table, [j])[j]
            rows = self.regressors.of(cells, {})
            shares = np.cumsum(self._corrected(j, mixed, rows, gap, coefficients), axis=1)
            points = generator.random(len(shares)) * shares[:, -1]
            values[j] = np.count_nonzero(shares[:, :-1] <= points[:, None], axis=1)
            cells[j] = np.array(cells[j])
            cells[j][gap] = values[j]
        return self._values(queries, values, gaps)

    def _coefficients(self, j, mixed, generator):
        """Of each step of a column, drawn, or the most probable ones."""
        z, codes = self._z(self.rows, j, slice(None)), self.cells[j]
        slopes = np.full(z.shape[1] - 1, self.regressors.n_used(j) / VARIANCE)
        precisions = np.r_[1.0 / VARIANCE, slopes]
        known, out = codes < self.n_levels[j], []
        for level, offsets in self._offsets(j, mixed):
            answers = codes[known] == level
            posterior = LogisticPosterior(z[known], answers, offsets[known], precisions)
            out.append(posterior.mode if generator is None else posterior.draw(generator))
            known = known & (codes != level)
        return out

    def _corrected(self, j, mixed, rows, gap, coefficients):
        """Probabilities of the levels in rows with a gap: (n_gaps, n_levels)."""
        z, out, left = self._z(rows, j, gap), np.zeros_like(mixed), np.ones(len(mixed))
        for (level, offsets), of_step in zip(self._offsets(j, mixed), coefficients):
            chance = expit(offsets + z @ of_step)
            out[:, level], left = left * chance, left * (1.0 - chance)
        out[:, self.steps[j][-1]] = left
        return out

    def _offsets(self, j, mixed):
        """Yield each level but the last, and its log odds against the later ones."""
        logs, order = np.log(mixed), self.steps[j]
        for s, level in enumerate(order[:-1]):
            yield level, logs[:, level] - logsumexp(logs[:, order[s + 1 :]], axis=1)

    def _z(self, rows, j, which):
        """The regressors of column j: a one, and those of the others."""
        others = [block[which] for k, block in enumerate(rows) if k != j]
        return np.column_stack([np.ones(len(rows[j][which])), *others])

    def _values(self, queries, values, gaps):
        """Values and masks by the columns of the user; only gaps in levels count."""
        n = len(next(iter(gaps.values()))) if gaps else 0
        none = [np.empty(0, np.int64)] * queries.encoder.n_columns
        masks = [np.zeros(n, bool)] * queries.encoder.n_columns
        for j in gaps:
            at = queries.encoder.apart.kept[j]
            none[at], masks[at] = values[j], gaps[j]
        return none, masks


class _Regressors:
    """Cells as regressors: those of each column have the mean 0 and the total variance 1 in the
    rows of the fit."""

    def __init__(self, n_levels, cells, probable):
        self.n_levels = n_levels
        self.centres, self.units = [0.0] * len(cells), [1.0] * len(cells)
        blocks = self.of(cells, probable)
        self.centres = [block.mean(axis=0) for block in blocks]
        spreads = [np.sqrt(block.var(axis=0).sum()) for block in blocks]
        self.units = [spread if spread > 0.0 else 1.0 for spread in spreads]

    def n_used(self, j):
        return len(self.units) - 1

    def of(self, cells, probable):
        """A block of each column; `probable` has missing cells and probabilities of levels."""
        blocks = []
        for j, (of, n) in enumerate(zip(cells, self.n_levels)):
            block = np.equal.outer(of, np.arange(n)) if n else np.reshape(of, (-1, 1))
            block = block.astype(np.float64)
            if j in probable:
                gap, probabilities = probable[j]
                block[gap] = probabilities
            blocks.append((block - self.centres[j]) / self.units[j])
        return blocks
