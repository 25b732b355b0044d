r"""Numbers that are filled by components of normal rows, and by a regression on the levels.

The mixture of a few components that fills numbers hardly learns from levels: a level tells it of a
number only if it goes with a component. So the rows of a component are given a mean that depends on
the levels, with slopes that all components share (_normal_regressions.py). As in the mixture, a
component also has a weight and a distribution of each column of levels.

The mixture gives the components and the hyperparameters, from the last draw of each chain. From
there a Gibbs sampler draws all parameters, the components of the rows, and what is missing in them:
numbers given levels, and levels from what the regression of levels says of them given the numbers
(_regressed_levels.py).

The priors are worth one row. That of the slopes is such that what all levels add to a number has,
in a row of the fit, the variance of the number itself, as the regressions of levels have it; the
pseudo-counts of the levels of a column add up to 1 over all components.
"""

# SPDX-License-Identifier: BSD-3-Clause

from typing import NamedTuple

import numpy as np

from ..families._multivariate_log_normal import MultivariateLogNormal
from ..families._multivariate_normal import MultivariateNormal
from ..parallel import OfTurn, seed_below
from ._links import choose
from ._normal_regressions import Components, Prior
from ._parameters import log_dirichlet
from ._reach import far_rows

N_BEFORE = 20  # steps of the sampler before the first draw of a chain
N_AFTER = 5  # for each imputation, after the step of its draw


class Law(NamedTuple):
    """Parameters of K components.

    Attributes
    ----------
    components : Components
    log_weights : float64 array of shape (K,)
    log_levels : dict of int to float64 array of shape (n_levels + 1, K)
        By place of the columns of levels; the last row, of a level that is not known, is 0.
    """

    components: Components
    log_weights: np.ndarray
    log_levels: dict


def _family_of(draw):
    """The name of the family of normal rows that a draw has, or None."""
    names = MultivariateNormal.family, MultivariateLogNormal.family
    return next((name for name in names if f"{name}/columns" in draw.arrays), None)


class RegressedNumbers:
    """The rows of the fit, and a draw of the parameters for each draw of the mixture.

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
    laws : dict of int to Law
        By the place of a draw of the mixture.
    """

    @staticmethod
    def apply(queries, levels):
        """Whether a mixture has such numbers, and there are levels to regress them on."""
        return _family_of(queries.point) is not None and levels.n_shown[1]

    def __init__(self, queries, levels, gappy, whole, chains, seed):
        self.levels = levels
        self.places = queries.point.arrays[f"{_family_of(queries.point)}/columns"]
        self._cells = self._numbers(queries, gappy)
        self.laws, self._priors = {}, {}
        generator, rows = np.random.Generator(np.random.PCG64(seed)), self._numbers(queries, whole)
        for chain in chains:
            start = queries.draws[chain[-1]]
            prior, labels = self._prior(start, rows), start.labels
            known = levels.completed(levels.of_fit, generator)
            z = levels.indicators(known)
            now = Components.near(prior, rows, z, labels)
            law = self._law(now, prior, rows, known, z, labels, generator)
            for at, n_steps in zip(chain, [N_BEFORE] + [1] * len(chain)):
                law = self._later(law, prior, n_steps, levels.of_fit, generator)
                self.laws[at], self._priors[at] = law, prior

    def _later(self, law, prior, n_steps, of_fit, generator):
        """The law some steps of the sampler later; `of_fit` is what is known of the levels."""
        for _ in range(n_steps):
            known = self.levels.completed(of_fit, generator)
            z = self.levels.indicators(known)
            rows, labels = self._drawn(law, self._cells, known, z, generator)
            law = self._law(law.components, prior, rows, known, z, labels, generator)
        return law

    def _law(self, components, prior, rows, known, z, labels, generator):
        """A law given whole rows and their components, drawn; the normal part from the one before
        it. `z` are the indicators of `known`."""
        n_components, log_levels = len(components.means), {}
        for j in self.levels.filled:
            n_levels = self.levels.n_levels[j]
            counts = np.zeros((n_levels, n_components))
            inside = known.cells[j] < n_levels
            np.add.at(counts, (known.cells[j][inside], labels[inside]), 1.0)
            logs = log_dirichlet(counts + 1.0 / counts.size, generator)
            log_levels[j] = np.vstack([logs, np.zeros(n_components)])
        counts = np.bincount(labels, minlength=n_components).astype(np.float64)
        log_weights = log_dirichlet(counts, generator)
        components = components.drawn(prior, rows, z, labels, generator)
        return Law(components, log_weights, log_levels)

    def _shares(self, law, cells, known, z):
        """The probability of each component, given what is known of the rows: (n_rows, K)."""
        logs = np.tile(law.log_weights, (len(cells), 1))
        for j, of_levels in law.log_levels.items():
            own = of_levels[np.minimum(known.cells[j], len(of_levels) - 1)]
            if j in known.of_gaps:
                gap, chances = known.of_gaps[j]
                own[gap] = np.log(chances @ np.exp(of_levels[:-1]))
            logs += own
        return law.components.shares(cells, z, logs)

    def _drawn(self, law, cells, known, z, generator):
        """Rows with drawn values for their gaps, and their drawn components."""
        shares = np.cumsum(self._shares(law, cells, known, z), axis=1)
        labels = choose(shares, generator.random(len(cells)))
        return law.components.filled(cells, z, labels, generator), labels

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
        cells, z = self._numbers(queries, columns), self.levels.indicators(known)
        total, surest = np.zeros_like(cells), np.zeros((len(cells), 1))
        for at, law in self.laws.items():
            shares = self._shares(law, cells, known, z)
            if not mode:
                total += queries.draw_weights[at] * law.components.expected(cells, z, shares)
                continue
            found = law.components.filled(cells, z, shares.argmax(axis=1))
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
        law = self._later(self.laws[at], self._priors[at], N_AFTER, of_fit, generator)
        cells, z = self._numbers(queries, columns), self.levels.indicators(known)
        whole, _ = self._drawn(law, cells, known, z, generator)
        atoms = queries.encoder.table_schema.atoms
        own = dict(zip(self.places.tolist(), cells.T))
        near = ~far_rows(queries.reach, own, len(cells), atoms)
        for i, place in enumerate(self.places):
            if place in queries.reach:
                whole[near, i] = np.clip(whole[near, i], *queries.reach[place])
        return self._answer(queries, columns, whole, rounded=True)

    def _prior(self, draw, whole):
        """The hyperparameters of a draw, and the precisions of the slopes."""
        of = {
            name: draw.arrays[f"{_family_of(draw)}/{name}"]
            for name in MultivariateNormal.coordinate_names
        }
        n_columns, n_regressors = self.levels.n_shown
        variances = whole.var(axis=0)  # 0 if a single cell is known
        precisions = n_columns / np.where(variances > 0.0, variances, 1.0)
        precisions = np.tile(precisions, (n_regressors, 1))
        return Prior(of["mu0"], float(of["kappa0"]), float(of["nu0"]), of["scale0"], precisions)

    def _numbers(self, queries, columns):
        """The cells of the numbers: float64 array of shape (n_rows, d)."""
        stored = queries.encoder.apart.stored(columns)
        return np.column_stack([stored[place] for place in self.places]).astype(np.float64)

    def _answer(self, queries, columns, whole, rounded):
        """Values and masks by the user's columns."""
        return queries.answer(columns, dict(zip(self.places.tolist(), whole.T)), rounded)
