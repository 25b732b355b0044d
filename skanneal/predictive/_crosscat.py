"""The questions that only a CrossCat answers: how columns and rows hang together."""

# SPDX-License-Identifier: BSD-3-Clause

from numbers import Integral

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._information import mutual_information
from ._queries import INFORMATION
from ._similarity import Memberships

MOST_BYTES = 1 << 30  # of a matrix of similarities
BLOCK_NUMBERS = 1 << 24  # similarities held at a time
TIE = 1e-15  # by which earlier rows go before later ones of equal similarity


class CrossCatQueryMixin:
    """Queries about columns and rows of a fitted CrossCat."""

    def dependence_probability(self, columns=None):
        """How probable it is that columns depend on each other.

        Parameters
        ----------
        columns : columns or None, default=None
            Names, positions or a mask of the columns to compare; None compares all.

        Returns
        -------
        probabilities : ndarray of shape (n_compared, n_compared)
            Share of the draws, of all chains, in which two columns are in one view: 0 of a column
            that is constant in fit, and of each with itself 1.
        """
        check_is_fitted(self)
        positions = self._positions(columns, "columns")
        views = np.array([draw.view_labels[positions] for chain in self.draws_ for draw in chain])
        together = (views[:, :, None] == views[:, None, :]) & (views[:, :, None] >= 0)
        probabilities = np.mean(together, axis=0)
        probabilities[np.equal.outer(positions, positions)] = 1.0
        return probabilities

    def mutual_information(
        self, columns=None, *, normalized=False, n_samples=1000, return_std=False
    ):
        """How much columns tell about each other.

        The mutual information of each pair under each draw's predictive density, averaged over
        chains and draws: zero where a draw has the two in different views.

        Parameters
        ----------
        columns : columns or None, default=None
            Names, positions or a mask of the columns to compare; None compares all.
        normalized : bool, default=False
            Whether to give ``sqrt(1 - exp(-2 I))`` for I nats [1]_: from 0 to 1, and for two
            jointly normal numbers the absolute value of their correlation.
        n_samples : int, default=1000
            Rows simulated per draw and view for pairs of which one column is a number, or a count
            that takes more than 1024 values. Of the other pairs the information is exact (of
            counts, to 1e-4: the largest, of probability 1e-6, are taken together).
        return_std : bool, default=False
            Whether to return the standard error of the simulation.

        Returns
        -------
        information : ndarray of shape (n_compared, n_compared)
            In nats, unless normalized; estimates below zero are set to zero. On the diagonal what a
            column says of itself: its entropy, infinite for a number, 0 of one that is constant in
            fit.
        error : ndarray of shape (n_compared, n_compared)
            If asked for; 0 where the information is exact. It does not cover how draws differ.

        References
        ----------
        .. [1] E. H. Linfoot (1957). "An Informational Measure of Correlation". Information and
           Control 1.
        """
        if not isinstance(n_samples, Integral) or n_samples < 2:
            raise ValueError(f"n_samples must be an integer above 1, got {n_samples!r}")
        predictor, positions = self._predictor(), self._positions(columns, "columns")
        at, places = self._encoder.apart.places(positions)
        information, error = np.zeros((2, len(positions), len(positions)))
        information[np.ix_(at, at)], error[np.ix_(at, at)] = mutual_information(
            predictor, places.tolist(), int(n_samples), self._seed(INFORMATION)
        )
        if normalized:
            left = np.exp(-2 * information)
            information = np.sqrt(1 - left)
            error = np.divide(error * left, information, out=error, where=information > 0)
        return (information, error) if return_std else information

    def row_similarity(self, rows=None, others=None, *, columns=None):
        """How often rows share their clusters.

        Of two training rows the share of views in which they are in one cluster, averaged over
        chains and draws; of a new row the probability that it is in the other's cluster.

        Parameters
        ----------
        rows : rows or None, default=None
            Positions or a mask of training rows, or new rows as a table; None takes all training
            rows.
        others : rows or None, default=None
            What to compare them with, likewise.
        columns : columns or None, default=None
            Names, positions or a mask of columns: only the views that hold one of them count. By
            default all views of a draw count alike.

        Returns
        -------
        similarity : ndarray of shape (n_compared, n_others)
            From 0 to 1.

        Raises
        ------
        ValueError
            If the result would take more than 1 GiB; name fewer rows, or see `most_similar_rows`.
        """
        one, two = self._memberships(rows, "rows"), self._memberships(others, "others")
        if 8 * one.n_rows * two.n_rows > MOST_BYTES:
            raise ValueError(
                f"The similarities of {one.n_rows} x {two.n_rows} rows would take "
                f"{8 * one.n_rows * two.n_rows / 2**30:.1f} GiB: name fewer rows, or ask "
                "most_similar_rows"
            )
        return one.similarity(two, self._positions(columns, "columns"))

    def most_similar_rows(self, rows, n_neighbors=5, *, columns=None):
        """The training rows that are most similar to some rows, as `row_similarity` has it.

        Parameters
        ----------
        rows : rows
            Positions or a mask of training rows, or new rows as a table.
        n_neighbors : int, default=5
            How many to return for each. A training row is not its own neighbour.
        columns : columns or None, default=None
            As in `row_similarity`.

        Returns
        -------
        similarity : ndarray of shape (n_compared, n_neighbors)
            In falling order.
        positions : ndarray of shape (n_compared, n_neighbors), int64
            Of the training rows; of equally similar ones the first come first.
        """
        one, two = self._memberships(rows, "rows"), self._memberships(None, "others")
        most = two.n_rows - (one.positions is not None)
        if not isinstance(n_neighbors, Integral) or not 1 <= n_neighbors <= most:
            raise ValueError(f"n_neighbors must be from 1 to {most}, got {n_neighbors!r}")
        used = self._positions(columns, "columns")
        similarity = np.empty((one.n_rows, n_neighbors))
        positions = np.empty((one.n_rows, n_neighbors), dtype=np.int64)
        step = max(1, BLOCK_NUMBERS // two.n_rows)
        for start in range(0, one.n_rows, step):
            block = one.part(slice(start, start + step))
            found = block.similarity(two, used)
            order = found - TIE * np.arange(two.n_rows)
            if block.positions is not None:
                order[np.arange(block.n_rows), block.positions] = -np.inf
            near = np.argpartition(-order, n_neighbors - 1, axis=1)[:, :n_neighbors]
            rank = np.argsort(-np.take_along_axis(order, near, axis=1), axis=1, kind="stable")
            near = np.take_along_axis(near, rank, axis=1)
            positions[start : start + step] = near
            similarity[start : start + step] = np.take_along_axis(found, near, axis=1)
        return similarity, positions

    def _memberships(self, rows, what):
        """Training rows or new ones, by what the user named."""
        check_is_fitted(self)
        draws = [draw for chain in self.draws_ for draw in chain]
        if _is_table(rows):
            predictor = self._predictor()
            return Memberships.of_table(draws, predictor, self._query(predictor, rows))
        n_rows = len(self.labels_)
        if rows is None:
            return Memberships.of_training_rows(draws, np.arange(n_rows))
        rows = np.asarray(rows)
        if rows.dtype == bool and rows.shape == (n_rows,):
            rows = np.flatnonzero(rows)
        if (
            rows.dtype.kind not in "iu"
            or rows.ndim > 1
            or np.any((rows < -n_rows) | (rows >= n_rows))
        ):
            raise ValueError(
                f"{what} must be positions or a mask of the {n_rows} training rows, or a table"
            )
        return Memberships.of_training_rows(draws, np.atleast_1d(rows) % n_rows)


def _is_table(rows):
    return hasattr(rows, "columns") or np.ndim(rows) == 2
