r"""Numbers that are filled by components of normal rows, and by a regression on the levels.

The mixture of a few components that fills numbers hardly learns from levels: a level tells it of a
number only if it goes with a component. So the rows of a component are given a mean that depends on
the levels, with slopes that all components share (_normal_regressions.py). Of the last draw of each
chain of the mixture this takes the components, the hyperparameters, and what the levels say of the
component of a row. From there a Gibbs sampler draws the parameters, the components of the rows, and
what is missing in them: numbers given levels, and levels from what the mixture and the regression
of levels say of them given the numbers (_regressed_levels.py).

The prior of the slopes is worth one row, as that of the regressions of levels is: what all levels
add to a number has, in a row of the fit, the variance of the number itself.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..families._multivariate_normal import MultivariateNormal
from ..parallel import OfTurn, seed_below
from ._links import choose
from ._normal_regressions import Components, Prior
from ._predictor import Predictor

N_BEFORE = 20  # steps of the sampler before the first draw of a chain
N_AFTER = 5  # for each imputation, after the step of its draw


class RegressedNumbers:
    """The rows of the fit, and one draw of the components' parameters for each draw of the mixture.

    Parameters
    ----------
    queries : MixtureQueries
        Of the mixture.
    levels : RegressedLevels
    gappy, whole : list of ndarray of shape (n_rows,)
        The rows of the fit as the mixture encodes them, and the same with expected numbers in place
        of their gaps.
    chains : list of list of int
        Places of the draws of each chain among those of the queries.
    seed : SeedSequence

    Attributes
    ----------
    places : int array of shape (d,)
        The numbers that are filled, by their places in the Table.
    """

    @staticmethod
    def apply(queries, levels):
        """Whether a mixture has such numbers, and there are levels to regress them on."""
        return f"{MultivariateNormal.family}/columns" in queries.point.arrays and levels.n_shown[1]

    def __init__(self, queries, levels, gappy, whole, chains, seed):
        self.levels = levels
        self.places = queries.point.arrays[f"{MultivariateNormal.family}/columns"]
        self._gappy, self._cells = gappy, self._numbers(queries, gappy)
        self.components, self._starts = {}, {}
        generator = np.random.Generator(np.random.PCG64(seed))
        for chain in chains:
            start, rows = queries.draws[chain[-1]], self._numbers(queries, whole)
            prior = self._prior(start, rows)
            z = levels.indicators(levels.of_fit, generator)
            now = Components.near(prior, rows, z, start.labels)
            now = now.drawn(prior, rows, z, start.labels, generator)
            for at, n_steps in zip(chain, [N_BEFORE] + [1] * len(chain)):
                now = self._later(queries, now, start, prior, n_steps, levels.of_fit, generator)
                self.components[at], self._starts[at] = now, (start, prior)

    def _later(self, queries, now, start, prior, n_steps, known, generator):
        """Parameters some steps later; `known` is what is known of the levels of the fit."""
        log_shares = self._of_levels(queries, start, self._gappy)
        for _ in range(n_steps):
            z = self.levels.indicators(known, generator)
            rows, labels = _drawn(now, self._cells, z, log_shares, generator)
            now = now.drawn(prior, rows, z, labels, generator)
        return now

    def most_probable(self, queries, columns, known, mode=False):
        """The expected numbers in missing cells, on average over the draws.

        Parameters
        ----------
        queries : MixtureQueries
        columns : list of ndarray of shape (n_rows,)
            Encoded.
        known : KnownLevels
            Of the same rows.
        mode : bool, default=False
            In each row those of its most probable component, of the draw that is surest of it.

        Returns
        -------
        values, missing : list of ndarray
            As those of `MixtureQueries.fill`; of other columns than those of these numbers 0.
        """
        cells, indicators = self._numbers(queries, columns), self.levels.indicators(known)
        total, surest = np.zeros_like(cells), np.zeros((len(cells), 1))
        for at, components in self.components.items():
            log_shares = self._of_levels(queries, self._starts[at][0], columns)
            shares = components.shares(cells, indicators, log_shares)
            if not mode:
                expected = components.expected(cells, indicators, shares)
                total += queries.draw_weights[at] * expected
                continue
            found = components.filled(cells, indicators, shares.argmax(axis=1))
            sure = shares.max(axis=1, keepdims=True)
            total, surest = np.where(sure > surest, found, total), np.maximum(sure, surest)
        whole = total if mode else total / queries.draw_weights.sum()
        return self._answer(queries, columns, whole, rounded=False)

    def drawn(self, queries, at, seed, columns, known, of_fit):
        """A draw of the numbers in missing cells, of draw `at`, by parameters that are drawn.

        Parameters
        ----------
        queries : MixtureQueries
        at, seed : int, SeedSequence
            One of `queries.draws_in_turn`.
        columns, known
            As for `most_probable`.
        of_fit : KnownLevels
            Of the rows of the fit.

        Returns
        -------
        values, missing : list of ndarray
            As those of `most_probable`.
        """
        generator = np.random.Generator(np.random.PCG64(seed_below(seed, OfTurn.NUMBERS)))
        start, prior = self._starts[at]
        now = self._later(queries, self.components[at], start, prior, N_AFTER, of_fit, generator)
        log_shares = self._of_levels(queries, start, columns)
        cells = self._numbers(queries, columns)
        z = self.levels.indicators(known, generator)
        whole, _ = _drawn(now, cells, z, log_shares, generator)
        return self._answer(queries, columns, whole, rounded=True)

    def _prior(self, draw, whole):
        """The hyperparameters of a draw, and the precisions of the slopes."""
        of = {
            name: draw.arrays[f"{MultivariateNormal.family}/{name}"]
            for name in MultivariateNormal.coordinate_names
        }
        n_columns, n_regressors = self.levels.n_shown
        precisions = np.tile(n_columns / whole.var(axis=0), (n_regressors, 1))
        return Prior(of["mu0"], float(of["kappa0"]), float(of["nu0"]), of["scale0"], precisions)

    def _numbers(self, queries, columns):
        """The cells of the numbers: float64 array of shape (n_rows, d)."""
        stored = queries.encoder.apart.stored(columns)
        return np.column_stack([stored[place] for place in self.places]).astype(np.float64)

    def _of_levels(self, queries, draw, columns):
        """Log probabilities of a draw's components, given what is not one of the numbers."""
        without = queries.encoder.apart.stored(columns)
        missing = queries.encoder.table_schema.missing_cells(len(without[0]))
        for place in self.places:
            without[place] = missing[place]
        predictor = Predictor([draw], queries.encoder.table_schema)
        with np.errstate(divide="ignore"):
            return np.log(predictor.memberships(predictor.table(without), 0)[0])

    def _answer(self, queries, columns, whole, rounded):
        """Values and masks by the user's columns."""
        return queries.answer(columns, dict(zip(self.places.tolist(), whole.T)), rounded)


def _drawn(components, cells, regressors, log_shares, generator):
    """Rows with drawn values for their gaps, and their drawn components."""
    shares = np.cumsum(components.shares(cells, regressors, log_shares), axis=1)
    labels = choose(shares, generator.random(len(cells)))
    return components.filled(cells, regressors, labels, generator), labels
