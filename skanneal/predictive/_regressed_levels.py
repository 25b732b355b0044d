r"""Levels that are filled by a mixture and, on top of it, by a regression on all other columns.

A CrossCat takes two columns for independent unless the rows say otherwise. Where a level depends
weakly on another column, it is then filled from its margin. That makes hardly any cell wrong, but
if it is missing by the other column, all its cells err to the same side: the proportion of the
level in the filled table is biased, and nothing says so. Hence a regression corrects what the
mixture says of a level l, q(l | rest of the row):

    log p(l) / p(later levels) = log q(l) / q(later levels) + z' b_l

for level after level, the frequent ones first (a continuation-ratio model: each b_l has a posterior
of its own, given the rows that have l or a later level). z is a one, the numbers, and indicators of
the levels in the other columns. Where the mixture knows what they tell, b is nearly 0; and what it
finds beyond lines stays.

The prior of b is normal. It cannot exclude any dependence: the part of z' b that is of the columns
has the variance VARIANCE in a row of the fit, to which each column adds as much as any other, and
so has the coefficient of the one. It is soon outweighed, as it is worth one row: VARIANCE is the
inverse of what a row tells of log odds of 0.

Only levels that at least SHARE of the rows have get an indicator and a step of their own; those
which are rarer share what is left as the mixture says. Bias of a proportion by these is below
SHARE, and columns of very many levels cost no more than 1 / SHARE of them do.

Where a row of the fit has gaps, z has the expected numbers and the probabilities of levels, given
the rest of the row. Draws would not do in their place: they know nothing of the level that is
regressed, and would flatten the slopes.
"""

# SPDX-License-Identifier: BSD-3-Clause

from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logsumexp

from ..parallel import OfTurn, seed_below
from ._links import choose
from ._logistic_draws import LogisticPosterior
from ._predictor import Predictor

VARIANCE = 4.0  # 1 / (1/2 (1 - 1/2))
SHARE = 0.05


class KnownLevels(NamedTuple):
    """What is known of the levels of rows.

    Attributes
    ----------
    cells : list of ndarray of shape (n_rows,)
        Those of the Table.
    of_gaps : dict of int to (ndarray of shape (n_rows,), ndarray of shape (n_missing, n_levels))
        By place in the Table where cells are missing, and the probabilities of their levels; of the
        columns that are filled.
    """

    cells: list
    of_gaps: dict


class DrawnRegressions(NamedTuple):
    """One draw of the regressions.

    Attributes
    ----------
    predictor : Predictor
        That of the draw which they correct.
    coefficients : dict of int to list of ndarray
        Of each step of the columns that have gaps.
    of_fit : KnownLevels
        Of the rows of the fit.
    """

    predictor: Predictor
    coefficients: dict
    of_fit: KnownLevels


class RegressedLevels:
    """The rows of the fit as regressors, and what they say of missing levels.

    Parameters
    ----------
    queries : MixtureQueries
        Of the model of the levels.
    gappy : list of ndarray of shape (n_rows,)
        The encoded rows of the fit.
    whole : list of ndarray of shape (n_rows,)
        The same, with expected numbers in place of their gaps; what is in place of missing levels
        does not matter.
    columns : sequence of int, default=None
        The user's columns that are to be filled, if they hold levels; by default all that do.

    Attributes
    ----------
    steps : dict of int to int array
        By place in the Table, of columns of levels: these, the frequent ones first.
    filled : list of int
        The places of those that are to be filled.
    modes : dict of int to list of ndarray
        The most probable coefficients of each step, on average over the draws.
    of_fit : KnownLevels
        Of the rows of the fit.
    """

    def __init__(self, queries, gappy, whole, columns=None):
        apart, self.n_levels = queries.encoder.apart, queries.encoder.table_schema.n_levels
        self.cells = [np.array(cells) for cells in apart.stored(gappy)]
        self.steps, self._n_steps = {}, {}
        for j in np.flatnonzero(self.n_levels).tolist():
            counts = np.bincount(self.cells[j], minlength=self.n_levels[j])[: self.n_levels[j]]
            self.steps[j] = np.argsort(-counts, kind="stable")
            n_frequent = np.count_nonzero(counts >= max(SHARE * counts.sum(), 1.0))
            self._n_steps[j] = min(n_frequent, self.n_levels[j] - 1)
        asked = self.steps if columns is None else apart.places(columns)[1]
        self.filled = [j for j in self.steps if j in asked]
        table = queries.predictor.table(self.cells)
        mixed = queries.predictor.level_probabilities(table, self.steps)
        blocks = self._blocks(apart.stored(whole), _of_gaps(table, mixed))
        self._centres = [block.mean(axis=0) for block in blocks]
        spreads = (np.sqrt(block.var(axis=0).sum()) for block in blocks)
        self._units = [spread if spread > 0.0 else 1.0 for spread in spreads]
        self._rows = self._standard(blocks)
        self.modes = {j: self._coefficients(j, mixed[j]) for j in self.filled}
        self.of_fit = self._known(self.cells, self._gaps(table), mixed, self._rows, self.modes)

    def known(self, queries, gappy, whole):
        """What is known of the levels of rows, given the other cells, on average over the draws.

        Parameters
        ----------
        queries : MixtureQueries
        gappy, whole : list of ndarray of shape (n_rows,)
            Encoded rows, as for the rows of the fit.

        Returns
        -------
        known : KnownLevels
        """
        cells = queries.encoder.apart.stored(gappy)
        table = queries.predictor.table(cells)
        mixed = queries.predictor.level_probabilities(table, self.steps)
        blocks = self._blocks(queries.encoder.apart.stored(whole), _of_gaps(table, mixed))
        return self._known(cells, self._gaps(table), mixed, self._standard(blocks), self.modes)

    def _known(self, cells, gaps, mixed, rows, coefficients):
        of_gaps = {}
        for j, gap in gaps.items():
            own = [block[gap] for block in rows]
            of_gaps[j] = gap, self._corrected(j, mixed[j][gap], own, coefficients[j])
        return KnownLevels(cells, of_gaps)

    def draw(self, queries, predictor, seed, gappy):
        """Coefficients that are drawn once, for a draw of the missing levels of some rows.

        Parameters
        ----------
        queries : MixtureQueries
        predictor, seed : Predictor, SeedSequence
            One of the `turns` of the queries.
        gappy : list of ndarray of shape (n_rows,)
            Encoded rows.

        Returns
        -------
        draw : DrawnRegressions
        """
        generator = np.random.Generator(np.random.PCG64(seed_below(seed, OfTurn.COEFFICIENTS)))
        of_fit = predictor.table(self.cells)
        gaps = self._gaps(of_fit)
        asked = (
            gaps.keys() | self._gaps(predictor.table(queries.encoder.apart.stored(gappy))).keys()
        )
        mixed = predictor.level_probabilities(of_fit, asked)
        coefficients = {j: self._coefficients(j, mixed[j], generator) for j in sorted(asked)}
        known = self._known(self.cells, gaps, mixed, self._rows, coefficients)
        return DrawnRegressions(predictor, coefficients, known)

    def most_probable(self, queries, known):
        """The most probable level of each missing cell.

        Returns
        -------
        values, missing : list of ndarray
            As those of `MixtureQueries.fill`; columns of numbers have none.
        """
        values = {j: chances.argmax(axis=1) for j, (_, chances) in known.of_gaps.items()}
        gaps = {j: gap for j, (gap, _) in known.of_gaps.items()}
        return self._by_column(queries.encoder, values, gaps)

    @property
    def n_shown(self):
        """Number of columns that have `indicators`, and number of these."""
        return len(self.filled), sum(self._n_steps[j] for j in self.filled)

    def indicators(self, known):
        """Of the levels of the columns that are filled, as in the regressions: (n_rows, n). Where
        levels are missing, they are what is expected."""
        blocks = [
            (self._block(j, known.cells[j], known.of_gaps) - self._centres[j]) / self._units[j]
            for j in self.filled
        ]
        return np.column_stack(blocks)

    @staticmethod
    def completed(known, generator):
        """KnownLevels whose missing levels are drawn, each by itself."""
        cells = list(known.cells)
        for j, (gap, chances) in known.of_gaps.items():
            cells[j] = np.array(cells[j])
            edges = np.cumsum(chances, axis=1)
            cells[j][gap] = choose(edges, generator.random(len(edges)))
        return KnownLevels(cells, {})

    @staticmethod
    def complete(queries, whole):
        """KnownLevels of encoded rows without gaps."""
        return KnownLevels(queries.encoder.apart.stored(whole), {})

    def drawn(self, queries, draw, seed, gappy, whole):
        """A draw of each missing level, column after column, given the other cells of the row, of
        which all gaps have been filled.

        Parameters
        ----------
        queries : MixtureQueries
        draw : DrawnRegressions
            For the same rows.
        seed : SeedSequence
        gappy, whole : list of ndarray of shape (n_rows,)
            Encoded rows, and the same with all gaps filled.

        Returns
        -------
        values, missing : list of ndarray
            As those of `most_probable`.
        """
        generator = np.random.Generator(np.random.PCG64(seed_below(seed, OfTurn.LEVELS)))
        apart, predictor = queries.encoder.apart, draw.predictor
        cells = [np.array(of) for of in apart.stored(whole)]
        gaps, values = self._gaps(predictor.table(apart.stored(gappy))), {}
        for j, gap in gaps.items():
            own = [of[gap] for of in cells]
            mixed = predictor.level_probabilities(predictor.table(own), [j])[j]
            rows = self._standard(self._blocks(own))
            edges = np.cumsum(self._corrected(j, mixed, rows, draw.coefficients[j]), axis=1)
            values[j] = choose(edges, generator.random(len(edges)))
            cells[j][gap] = values[j]
        return self._by_column(queries.encoder, values, gaps)

    def _coefficients(self, j, mixed, generator=None):
        """Those of each step of a column, drawn, or else the most probable ones."""
        z, codes, out = self._regressors(self._rows, j), self.cells[j], []
        slopes = np.full(z.shape[1] - 1, (len(self.cells) - 1) / VARIANCE)
        precisions = np.r_[1.0 / VARIANCE, slopes]
        left = codes < self.n_levels[j]
        for level, offsets in self._offsets(j, mixed):
            answers = codes[left] == level
            posterior = LogisticPosterior(z[left], answers, offsets[left], precisions)
            out.append(posterior.mode if generator is None else posterior.draw(generator))
            left = left & (codes != level)
        return out

    def _corrected(self, j, mixed, rows, coefficients):
        """What the mixture says of the levels, corrected: (n_rows, n_levels)."""
        z, out, left = self._regressors(rows, j), np.array(mixed), np.ones(len(mixed))
        for (level, offsets), of_step in zip(self._offsets(j, mixed), coefficients):
            chances = expit(offsets + z @ of_step)
            out[:, level], left = left * chances, left * (1.0 - chances)
        later = self.steps[j][self._n_steps[j] :]
        out[:, later] *= (left / out[:, later].sum(axis=1))[:, None]
        return out

    def _offsets(self, j, mixed):
        """Yield the level of each step, and its log odds against the later ones: (n_rows,)."""
        logs, order = np.log(mixed), self.steps[j]
        for s, level in enumerate(order[: self._n_steps[j]]):
            yield level, logs[:, level] - logsumexp(logs[:, order[s + 1 :]], axis=1)

    def _blocks(self, cells, of_gaps=MappingProxyType({})):
        """The cells of each column as numbers: themselves, or an indicator for each level."""
        return [self._block(j, own, of_gaps) for j, own in enumerate(cells)]

    def _block(self, j, cells, of_gaps):
        """The cells of one column: (n_rows, n)."""
        if not self.n_levels[j]:
            return np.reshape(cells, (-1, 1)).astype(np.float64)
        shown = self.steps[j][: self._n_steps[j]]
        block = np.equal.outer(cells, shown).astype(np.float64)
        if j in of_gaps:
            gap, probabilities = of_gaps[j]
            block[gap] = probabilities[:, shown]
        return block

    def _standard(self, blocks):
        """The blocks with the mean 0 and the total variance 1 in the rows of the fit."""
        return [
            (block - centre) / unit
            for block, centre, unit in zip(blocks, self._centres, self._units)
        ]

    @staticmethod
    def _regressors(blocks, j):
        """z of each row, for column j."""
        others = [block for k, block in enumerate(blocks) if k != j]
        return np.column_stack([np.ones(len(blocks[j])), *others])

    def _gaps(self, table):
        """Where levels are to be filled, by the columns of the Table that have such gaps."""
        masks = {j: table.missing(j) for j in self.filled}
        return {j: mask for j, mask in masks.items() if mask.any()}

    @staticmethod
    def _by_column(encoder, values, gaps):
        """Values and masks by the user's columns."""
        none = np.zeros(0, dtype=np.int64)
        of_place = dict(zip(encoder.apart.kept.tolist(), range(len(encoder.apart.kept))))
        places = [of_place.get(j) for j in range(encoder.n_columns)]
        nowhere = np.zeros(0, dtype=bool)
        return [values.get(p, none) for p in places], [gaps.get(p, nowhere) for p in places]


def _of_gaps(table, mixed):
    """By column, its gaps in a Table, and the probabilities of the levels there."""
    return {j: (table.missing(j), of[table.missing(j)]) for j, of in mixed.items()}
