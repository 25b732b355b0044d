"""The questions that every fitted mixture answers."""

# SPDX-License-Identifier: BSD-3-Clause

from functools import reduce
from numbers import Integral

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..encoding import check_whole_rows, encode_given, open_table, put_given
from ..parallel import spawn_seeds
from ._predictor import Predictor

# Seeds beside those of the chains: the one after them is of the fit's sketch of strata.
SAMPLE, INFORMATION = 1, 2


class QueryMixin:
    """Queries of a fitted estimator: what it has in `draws_`, `_point` and `_encoder`."""

    def _predictor(self, draws=None):
        check_is_fitted(self)
        draws = [draw for chain in self.draws_ for draw in chain] if draws is None else draws
        return Predictor(draws, self._encoder.table_schema)

    def _encoded(self, X):
        """Encoded columns of a query."""
        return self._encoder.encode(self, X)

    def _query(self, predictor, X):
        return predictor.table(self._encoder.apart.stored(self._encoded(X)))

    def _seed(self, purpose):
        """A seed that is none of the fit's."""
        return spawn_seeds(self.random_state, self.n_chains + 1 + purpose)[-1]

    def _positions(self, columns, what):
        """Positions of the columns a user names; None names all."""
        if columns is None:
            return list(range(self._encoder.n_columns))
        return self._encoder.names.positions(columns, what)

    def predict(self, X):
        """Most probable existing cluster of each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Any cell may be missing.

        Returns
        -------
        labels : ndarray of shape (n_rows,), int64
            Clusters of `labels_`.
        """
        return self.predict_proba(X).argmax(axis=1)

    def predict_proba(self, X):
        """Probability of each existing cluster, given that the row is in one of them.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Any cell may be missing.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_clusters)
            Clusters of `labels_`; rows sum to 1.
        """
        check_is_fitted(self)
        predictor = self._predictor([self._point])
        return predictor.cluster_probabilities(self._query(predictor, X), self._point.main_view)

    def new_cluster_proba(self, X):
        """Probability that each row belongs to none of the clusters seen so far.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Any cell may be missing.

        Returns
        -------
        probabilities : ndarray of shape (n_rows,)
            Averaged over chains and draws; with several views, of each draw's view with the most
            columns.
        """
        predictor = self._predictor()
        return predictor.new_cluster_probability(self._query(predictor, X))

    def score_samples(self, X, given=None):
        """Log predictive density of each row, or of some of its cells given the others.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Missing cells are integrated out.
        given : columns or None, default=None
            Names, positions or a mask of the columns whose cells are known: the density is then
            that of the other columns' cells given these.

        Returns
        -------
        log_density : ndarray of shape (n_rows,)
            In nats and the units of X; densities are averaged over chains and draws, the term of a
            new cluster included. A column that is constant in fit adds 0, or for another value
            -inf: its density is a point mass.
        """
        predictor = self._predictor()
        columns, apart = self._encoded(X), self._encoder.apart
        log_density = predictor.log_density(predictor.table(apart.stored(columns)))
        if given is None:
            return log_density + apart.log_density(columns)
        positions = self._positions(given, "given")
        check_whole_rows(self._encoder, positions, "given")
        known = self._encoder.missing_columns(len(log_density))
        for j in [*positions, *self._encoder.indicators_of(positions)]:
            known[j] = columns[j]
        log_density -= predictor.log_density(predictor.table(apart.stored(known)))
        return log_density + apart.log_density(columns, positions)

    def score(self, X, y=None):
        """Mean log predictive density per row.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Held-out rows.
        y : None
            Not used.

        Returns
        -------
        score : float
            In nats per row; cross-validation maximises it.
        """
        return float(self.score_samples(X).mean())

    def sample(self, n_samples=1, given=None):
        """Draw new rows from the posterior predictive.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        given : mapping of columns to values or None, default=None
            Cells that all rows have, by name or position of the column; the others are drawn given
            these.

        Returns
        -------
        rows : ndarray, frame or list
            Of the sort, the columns and where possible the dtypes of the X of `fit`.
        """
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(f"n_samples must be a positive integer, got {n_samples!r}")
        if given is not None and not hasattr(given, "items"):
            raise TypeError(f"given must be a mapping of columns to values, got {given!r}")
        encoder, predictor = self._encoder, self._predictor()
        given = {} if given is None else given
        known = encode_given(encoder, given)
        table, seed = predictor.table(encoder.apart.stored(known)), self._seed(SAMPLE)
        columns = predictor.simulate(table, seed, n=int(n_samples))
        constants = encoder.apart.constants
        columns = encoder.apart.spread(columns, lambda j: np.full(n_samples, constants[j]))
        return encoder.decode(put_given(encoder, columns, known, given))

    def surprisal(self, X):
        """How unexpected each cell is given the rest of its row.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Missing cells do not count.

        Returns
        -------
        surprisal : ndarray of shape (n_rows, n_columns)
            -log p(cell | the row's other cells) in nats; nan for missing cells. Of a column that is
            constant in fit 0, or for another value inf, which does not count for the other cells.
        """
        predictor, apart = self._predictor(), self._encoder.apart
        columns = self._encoded(X)
        table = predictor.table(apart.stored(columns))
        surprisals = predictor.cell_surprisals(table, len(apart.kept)).T
        # 0, 1 and nan of the constants become 0, inf and nan
        return np.column_stack(
            apart.spread(surprisals, lambda j: np.where(columns[j] == 1.0, np.inf, columns[j]))
        )

    def impute(self, X, return_std=False):
        """Fill missing cells: numbers by their posterior mean, levels by the most probable one.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Not changed.
        return_std : bool, default=False
            Whether to return the uncertainty.

        Returns
        -------
        filled : of the type of X
            Observed cells untouched. Gaps stay, with a warning, in a categorical column of which
            fit saw no level.
        uncertainty : ndarray of shape (n_rows, n_columns)
            If asked for. Of a filled number the posterior predictive standard deviation, in its
            units, where Student's t distributions of less than three degrees of freedom, whose
            variance may be infinite, count as if they had three; of a filled level one minus its
            probability. 0 for observed cells.
        """
        check_is_fitted(self)
        values, spreads, missing = self._expected(self._encoder.encode(self, X))
        filled = open_table(X, "X", sparse=True).fill(self._encoder.replacements(values, missing))
        if not return_std:
            return filled
        uncertainty = np.zeros((len(missing[0]), len(missing)))
        for j, (mask, spread) in enumerate(zip(missing, spreads)):
            uncertainty[mask, j] = spread
        return filled, uncertainty

    def _expected(self, columns, strategy="mean", seed=None):
        """What to put into missing cells.

        Parameters
        ----------
        columns : list of ndarray of shape (n_rows,)
            Encoded.
        strategy : {"mean", "mode", "sample"}, default="mean"
        seed : SeedSequence, optional
            Of "sample".

        Returns
        -------
        values : list of ndarray of shape (n_missing,)
            For each column its missing cells': numbers in the user's units, codes.
        spreads : list of ndarray of shape (n_missing,)
            Standard deviations, or one minus the level's probability; 0 for "sample".
        missing : list of ndarray of bool of shape (n_rows,)
        """
        predictor, missing = self._predictor(), self._encoder.missing(columns)
        rows = np.flatnonzero(reduce(np.logical_or, missing))
        if not len(rows):
            return [np.empty(0)] * len(missing), [np.empty(0)] * len(missing), missing
        apart = self._encoder.apart
        table = predictor.table(apart.stored(columns)).take(rows)
        gaps = [missing[j][rows] for j in apart.kept]
        if strategy == "sample":
            values = [v[gap] for v, gap in zip(predictor.simulate(table, seed), gaps)]
            spreads = [np.zeros(len(v)) for v in values]
        else:
            values, spreads = predictor.fill(table, gaps, mode=strategy == "mode")
        filled = [np.full(mask.sum(), apart.constants.get(j)) for j, mask in enumerate(missing)]
        values = apart.spread(values, filled.__getitem__)[: len(missing)]
        spreads = apart.spread(spreads, lambda j: np.zeros(len(filled[j])))[: len(missing)]
        return values, spreads, missing
