"""Questions that only an estimator of several views answers: how columns and rows hang together."""

# SPDX-License-Identifier: BSD-3-Clause

from typing import Any

import numpy as np

from .._native._types import Columns
from ..encoding import square_table
from ..parallel import OfFit


class RowAndColumnQuestions:
    """Public queries of an estimator whose `_queries` makes a `CrossCatQueries`."""

    def _compared(self, queries, rows, what):
        """Training rows or new ones, by what the user named."""
        if hasattr(rows, "columns") or np.ndim(rows) == 2:
            return queries.new_rows(self._encoded(rows))
        return queries.training_rows(rows, what)

    def _named(self, columns, values):
        """Numbers of pairs of columns with the columns' names, if they have some."""
        encoder = self._encoder
        return square_table(encoder.layout, self._queries().positions(columns, "columns"), values)

    def dependence_probability(self, columns: Columns | None = None) -> Any:
        """How probable it is that columns depend on each other.

        Parameters
        ----------
        columns : columns or None, default=None
            Names, positions or a mask of the columns to compare; None compares all.

        Returns
        -------
        probabilities : ndarray or frame of shape (n_compared, n_compared)
            Averaged over the draws of all chains. Two columns in one view of a draw depend on each
            other if both have to do with the view's components and these make them dependent, by
            themselves or given the view's other columns; each of these has even odds before the
            data. Two columns in two views that are linked, or in one tree of links, depend on each
            other by the same rule, but by themselves alone. Two numbers of "multivariate_normal" in
            one view may depend on each other by their covariances, too. It is 0 for a column that
            is constant in fit, and 1 for a column and itself. If fit was given a frame, this is
            one, with the columns' names.
        """
        return self._named(columns, self._queries().dependence_probability(columns))

    def mutual_information(
        self,
        columns: Columns | None = None,
        *,
        normalized: Any = False,
        n_samples: int = 1000,
        return_std: bool = False,
    ) -> Any:
        """How much columns tell about each other.

        The mutual information of each pair under each draw's predictive density, averaged over
        chains and draws. Two columns in different views of a draw have some if the views are
        linked, and else none. In a view of one
        cluster it comes only of the chance that a row opens another cluster, except for two columns
        of "multivariate_normal", whose covariance counts.

        Parameters
        ----------
        columns : columns or None, default=None
            Names, positions or a mask of the columns to compare; None compares all.
        normalized : bool, default=False
            Whether to give ``sqrt(1 - exp(-2 I))`` for I nats [1]_: from 0 to 1, and for two
            jointly normal numbers the absolute value of their correlation.
        n_samples : int, default=1000
            Rows simulated per draw and view for pairs of which one column is a number, or a count
            that takes more than 1024 values. For the other pairs the information is exact (for
            counts to 1e-4, as the largest, of probability 1e-6, are taken together).
        return_std : bool, default=False
            Whether to return the standard error of the simulation.

        Returns
        -------
        information : ndarray or frame of shape (n_compared, n_compared)
            In nats, unless normalized; estimates below zero are set to zero. On the diagonal is the
            entropy of each column: infinite for a number, 0 if it is constant in fit. If fit was
            given a frame, this is one, with the columns' names.
        error : ndarray or frame of shape (n_compared, n_compared)
            With `return_std`, of the same type. It is 0 where the information is exact, and does
            not include the differences between draws.

        References
        ----------
        .. [1] E. H. Linfoot (1957). "An Informational Measure of Correlation". Information and
           Control 1.
        """
        information, error = self._queries().mutual_information(
            columns, normalized, n_samples, self._query_seed(OfFit.INFORMATION)
        )
        information, error = (self._named(columns, values) for values in (information, error))
        return (information, error) if return_std else information

    def row_similarity(
        self, rows: Any = None, others: Any = None, *, columns: Columns | None = None
    ) -> Any:
        """How often rows share their clusters.

        For two training rows this is the share of views in which they are in one cluster, averaged
        over chains and draws; for a new row, the probability that it is in the other row's cluster.
        A view of one cluster counts as the others do, and makes all rows alike.

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
            From 0 to 1. An array also for frames: the names of training rows are not kept.

        Raises
        ------
        ValueError
            If the result would take more than 1 GiB; name fewer rows, or see `most_similar_rows`.
        """
        queries = self._queries()
        one, two = self._compared(queries, rows, "rows"), self._compared(queries, others, "others")
        return queries.row_similarity(one, two, columns)

    def most_similar_rows(
        self, rows: Any, n_neighbors: int = 5, *, columns: Columns | None = None
    ) -> Any:
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
            Of the training rows; among equally similar ones the first come first.
        """
        queries = self._queries()
        return queries.most_similar_rows(
            self._compared(queries, rows, "rows"), n_neighbors, columns
        )
