"""What a fit reports of its clusters, rows and cells: frames with names, and trees of ArviZ."""

# SPDX-License-Identifier: BSD-3-Clause

from typing import Any

from sklearn.utils.validation import check_is_fitted

from .._native._types import TableLike
from ..encoding import open_table, training_cells
from ..parallel import OfFit, seed_below, spawn_seeds
from ._arviz import groups_of_table, mixture_to_arviz
from ._descriptions import describe
from ._explanations import explain


class Reports:
    """Public reports of an estimator that reads a table; a base of `BaseTable`."""

    def _training_table(self, X, columns=None):
        """The Table of the fit if X is what it was given, else None; `columns`, if X is encoded."""
        encoder, columns = self._encoder, self._encoded(X) if columns is None else columns
        table = encoder.table(training_cells(encoder, columns, X).noisy)
        return table if encoder.fingerprint(table) == self._rows else None

    def describe_clusters(
        self, X: TableLike, n_features: int = 5, *, level: str = "clusters", form: str = "short"
    ) -> Any:
        """Describe the clusters: their sizes, what sets them apart, and a typical row of each.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            The training data.
        n_features : int, default=5
            How many features to name per cluster at most, in the short form.
        level : {"clusters", "components"}, default="clusters"
            Whether to describe the clusters of `labels_` or the components of `component_labels_`,
            of which they are made. If `point_estimate` is not "clusters", the two are the same.
        form : {"short", "long"}, default="short"
            "short": a row per cluster, to be read. "long": a row per cluster and feature, to be
            sorted and filtered.

        Returns
        -------
        description : pandas.DataFrame
            In the short form: "size": a cluster's size in `labels_`. "low" and "high": 95 % of the
            draws have a size between these. "apart": the features in which it differs most from all
            rows, measured in their standard deviations; for each its mean or share in the cluster,
            and that of all rows, in the units of X. A feature is a column of numbers, or a level of
            a column that has levels in `families_`; of two levels the one that is more frequent in
            the cluster is named. A cluster that has all rows is apart from nothing: this says how
            many components it has. "typical_row": the position of the row that is most surely in
            it, missing if `noise` has taken all of its rows.

            In the long form: "cluster" (or "component"), "column", and "level", missing for a
            number; of two levels that which is last by name stands for both. "value" and "overall":
            the mean, or the share of the level, in the cluster and in all rows. "difference": by
            how much it is higher in the cluster, in standard deviations of all rows. "probability":
            the posterior probability that the cluster's mean or share differs from that of all rows
            in this direction. Averaged over draws of the partition, it is that of a comparison of
            the rows inside and outside, by Student's t of numbers and Beta laws of levels, under
            reference priors: where there is no difference, it exceeds 0.95 in one case of ten. It
            is missing where there is nothing inside, or outside.
        """
        return describe(self, X, n_features, level, form)

    def sample(
        self,
        n_samples: int = 1,
        given: Any = None,
        *,
        n_replicates: int | None = None,
        random_state: Any = None,
    ) -> Any:
        """Draw new rows from the posterior predictive.

        Of amounts and counts, which may have no finite mean under it, these are the rows that lie
        within reach of the observed ones; the page on families says how far that is.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        given : mapping of columns to values or None, default=None
            Cells that all rows have, by name or position of the column. The other cells are drawn
            given these.
        n_replicates : int or None, default=None
            How many tables of n_samples rows to draw for posterior predictive checks, each from one
            draw of a chain; these take turns. Without it each row is from a draw of its own. Rows
            of a table share its components' weights and parameters, which are drawn once: the
            spread of a statistic between tables says how uncertain these are, too.
        random_state : int, None, RandomState, Generator or SeedSequence, default=None
            Randomness of the rows. None is the estimator's `random_state`: if that is an int, every
            call gives the same rows.

        Returns
        -------
        rows : ndarray, frame or list, or a list of n_replicates of these
            A container of the type that `fit` was given, with its columns and, where possible, its
            dtypes.
        """
        queries = self._queries()
        seed = self._query_seed(OfFit.SAMPLE, random_state)
        return queries.sample(n_samples, given, seed, n_replicates)

    def _query_seed(self, purpose, random_state=None):
        """Return the seed of a query: the given one, or the estimator's, after those of the chains
        that the fit has, whatever `n_chains` is by now."""
        if random_state is None:
            return seed_below(self.random_state, len(self._states) + purpose)
        (seed,) = spawn_seeds(random_state, 1)
        return seed

    def surprisal(self, X: TableLike) -> Any:
        """How unexpected each cell is given the rest of its row.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Missing cells do not count.

        Returns
        -------
        surprisal : ndarray or frame of shape (n_rows, n_columns)
            -log p(cell | the row's other cells) in nats; nan for missing cells. For a column that
            is constant in fit it is 0, or inf if the row has another value; such a value does not
            affect the surprisal of other cells. If X is a frame, so is this, with its names.
        """
        surprisal = self._queries().surprisal(self._encoded(X))
        return open_table(X, "X", sparse=True).beside(surprisal)

    def explain_outliers(
        self, X: TableLike, n: int = 10, *, n_cells: int = 1, reference: Any = None
    ) -> Any:
        """The oddest rows, and which of their cells are to blame.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Any cell may be missing.
        n : int, default=10
            How many rows to explain.
        n_cells : int, default=1
            How many cells to name per row at most.
        reference : array-like, frame or None, default=None
            Ordinary rows, such as the training data, with which cells are compared. None takes X,
            which must then have two rows or more.

        Returns
        -------
        explanation : pandas.DataFrame
            A line per cell, the oddest row and in it the oddest cell first. The index is the row's
            label in X, or its position if rows have no labels. "score": how odd the row is, as
            `outlier_scores_` says if X is the training data, else `score_outliers`. "column": the
            column of the cell; None if no cell of the row is to blame, but that rows like it are
            few. "value": the cell. "expected": what `impute` would put there, given the rest of the
            row; None in a family of whole rows. "excess": the cell's `surprisal` less the median
            over the reference in that column, in nats; only cells above it are to blame. Here a
            periodic date counts with its parts, such as the day of the week, and in a column of
            `CrossCatPY`'s `missing_indicator` it counts whether the cell is missing.

        Raises
        ------
        ImportError
            Without pandas.
        """
        return explain(self, X, n, n_cells, reference)

    def to_arviz(
        self,
        X: TableLike | None = None,
        *,
        posterior_predictive: bool = True,
        random_state: Any = None,
    ) -> Any:
        """Return the draws in the form of ArviZ; this needs the package arviz-base.

        Only quantities that do not depend on how clusters are numbered are exported. If chains have
        unequal lengths, as after an interrupt, each is cut to the length of the shortest.

        Parameters
        ----------
        X : array-like, frame or None, default=None
            The training data, for the groups that concern rows. They need a conjugate likelihood
            and rows that were in memory.
        posterior_predictive : bool, default=True
            Whether to draw tables, where X is given.
        random_state : int, None, RandomState, Generator or SeedSequence, default=None
            Randomness of these; None is the estimator's.

        Returns
        -------
        tree : xarray.DataTree
            The group ``posterior`` has, by chain and draw, "n_components", "concentration" and
            "discount" (with several views their sum and means), "n_views", "view_concentration" and
            "view_discount" if there are views, and hyperparameters by column, with names such as
            "normal_mu0". The group ``sample_stats`` has the log joint density, "lp".

            With X: ``observed_data`` has its modelled columns as numbers, levels by their codes,
            dates in days, nan where a cell is missing. ``log_likelihood`` has "rows", the log
            density of each row given all other rows and the draw, in nats and the units of X, for
            ``arviz_stats.loo``; its `p_loo` means nothing, as no density has seen its row.
            ``posterior_predictive`` has a table from each draw, of the shape of X and with its
            gaps, as `sample` draws them. All chains count alike.

        Raises
        ------
        ValueError
            If X is not the training data, if a group is not available, or if the tables would take
            more than 1 GiB.
        """
        check_is_fitted(self)
        names = list(map(str, getattr(self, "feature_names_in_", range(self.n_features_in_))))
        groups = None
        if X is not None:
            if getattr(self, "_rows", None) is None:
                raise ValueError(
                    "observed_data, log_likelihood and posterior_predictive need a conjugate "
                    "likelihood and rows in memory: call to_arviz without X."
                )
            table = self._training_table(X)
            if table is None:
                raise ValueError("X must be the training data: its cells are not those of the fit.")
            seed = self._query_seed(OfFit.TABLES, random_state)
            groups = groups_of_table(self, X, table, names, posterior_predictive, seed)
        return mixture_to_arviz(self.draws_, getattr(self, "families_", {}), names, groups)
