"""The base of what reads a table and clusters its rows: encoding, labels, and queries."""

# SPDX-License-Identifier: BSD-3-Clause

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin, DensityMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._native._types import TableLike
from ..encoding import RowKeys, grids_in_units, n_distinct, open_table, with_bounds
from ..families import Table
from ..parallel import OfFit, say
from ..partition_priors import PARTITION_PRIORS
from ..predictive._clusters import Clusters
from ..predictive._draws import Draw
from ..predictive._how_many import n_components_proba, number_proba
from ..predictive._point import mixture_arrays
from ..predictive._queries import MixtureQueries
from ..predictive._reach import reach_of
from ..summary import LOSSES, POINT_ESTIMATES, counted_chains, valley_sureness
from ._cut import cut_again, too_few
from ._family_evidence import decide, report, set_collinear_apart, with_logarithms
from ._reports import Reports
from ._weighted_draws import weighted_draws

ENOUGH_DRAWS = 20  # of all chains together; a mean over fewer partitions says little

CLUSTERS = {  # constraints of the parameters of what makes clusters of components
    "point_estimate": [StrOptions({"clusters", *POINT_ESTIMATES})],
    "separation": [Interval(Real, 0, 1, closed="left")],
    "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
    "noise": [Interval(Real, 0, 1, closed="both"), None],
}


class BaseTable(Reports, ClusterMixin, DensityMixin, BaseEstimator):
    """Base of the estimators that cluster a table's rows; stands before `BaseChains`.

    The public queries are here; `_queries` makes the object that answers them.
    """

    _parameter_constraints: dict = {
        "concentration": [StrOptions({"infer"}), Real],
        "discount": [StrOptions({"infer"}), Real],
        "expected_clusters": [tuple, list, None],
        "hyperparameters": [StrOptions({"infer"}), Mapping],
        "point_estimate": [StrOptions(set(POINT_ESTIMATES))],
    }
    _draw_type, _queries_type, _has_views = Draw, MixtureQueries, False
    _of_logarithms = ()  # columns of rows of numbers, see `with_logarithms`
    _clusters_type, _clusters = Clusters, None  # which are None where labels are components
    _margins = None  # of columns whose margins are those of the data

    def fit_predict(self, X: TableLike, y: Any = None, **fit_params: Any) -> np.ndarray:
        """Fit and return `labels_`.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            As in `fit`.
        y : None
            Not used.
        **fit_params : dict
            Handed to `fit`.

        Returns
        -------
        labels : ndarray of shape (n_rows,), int64
            The point-estimate partition.
        """
        return self.fit(X, **fit_params).labels_

    @property
    def n_iter_(self) -> int:
        """Sweeps run, rounded up: scikit-learn's name for `n_sweeps_`."""
        check_is_fitted(self, "n_sweeps_")
        return int(np.ceil(self.n_sweeps_))

    # ---- parts of fit ---------------------------------------------------------------------------

    def _decided(self, encoder, X, cells, plan_of, hyperparameters, limit, names=None):
        """Return the encoder, its cells and the evidence; see `decide`. The encoder has the
        families of the best evidence, or of the fit that this one goes on, without the columns that
        these cannot describe."""
        earlier = getattr(self, "family_evidence_", None) if self._goes_on else None
        task = encoder, X, cells, plan_of, hyperparameters, self.n_jobs, limit
        left = encoder.open_numbers
        encoder, cells, evidence = decide(*task, names, self._rivals(), earlier)
        encoder, cells = with_logarithms(encoder, X, cells, self._of_logarithms)
        if evidence is not None and self.verbose:
            for line in report(evidence, encoder.names.label):
                say(line)
        encoder = set_collinear_apart(encoder, cells.exact, with_bounds(hyperparameters), left)
        return encoder, cells, evidence

    def _rivals(self):
        """Families that compete for columns of numbers; None is all that name these as theirs."""
        return None

    def _prior_grids(self, n_rows=0, n_columns=0):
        """The grids of the partition priors, by the name of the concentration."""
        return {"concentration": self._row_grid(n_rows)}

    _partition_prior = "pitman_yor"  # of an estimator that has no parameter for it

    def _row_grid(self, n_rows, null=False):
        """The grid of the prior over partitions of the rows."""
        return PARTITION_PRIORS[self._partition_prior].grid(
            n_rows, self._concentration, self.discount, self.expected_clusters, null
        )

    @property
    def _concentration(self):
        """`concentration` as the partition prior takes it."""
        return self.concentration

    @staticmethod
    def _of_table(encoder, plan):
        """Fitted attributes: what the columns are, and the grids in their units."""
        return {
            "families_": encoder.families_,
            "atoms_": encoder.atoms_,
            "hyperparameter_grids_": grids_in_units(plan, encoder.shown_families),
            "_encoder": encoder,
            "_reach": reach_of(plan.table, encoder.table_families),
            "_rows": encoder.fingerprint(plan.table) if isinstance(plan.table, Table) else None,
        }

    @staticmethod
    def _of_point(point):
        """Fitted attributes: the point estimate, whose components are the clusters unless others
        are made of them."""
        labels = point.labels.astype(np.int64)
        return {
            "labels_": labels,
            "n_clusters_": int(labels.max()) + 1,
            "component_labels_": labels,
            "n_components_": int(labels.max()) + 1,
            "_point": point,
        }

    def _results(self, encoder, plan, results, verdict=None, limit=None, asked=None):
        """Fitted attributes of chains that `_run_chains` has run; see `_of_chains`.

        limit, asked : as in `_clustered`.
        """
        draws = [[self._draw_type(arrays, encoder) for arrays in r["draws"]] for r in results]
        traces, states = [result["trace"] for result in results], [None] * self.n_chains
        for result in results:
            states[result["number"]] = result["state"]
        fitted = {
            "schedule_": results[0]["schedule"],
            **self._of_chains(draws, traces, states, plan.table.n_rows, verdict),
            **self._of_table(encoder, plan),
        }
        fitted |= self._weigh(fitted, plan.table)
        keys = RowKeys(encoder, plan.table)
        least = self._least(keys, plan.table.n_rows)
        fitted |= self._summary(self._draws_for_labels(fitted), encoder, plan.table, least, keys)
        return fitted | self._clustered(fitted, encoder, plan.table, least, limit, asked=asked)

    def _weigh(self, fitted, table):
        """Fitted attributes: how much each chain counts, where chains do not count alike."""
        return {}

    def _least(self, keys, n_rows):
        """How many components the point estimate must have: as many as clusters are asked for, but
        no more than rows that differ.

        keys : callable
            ``keys(rows)`` tells rows apart.
        """
        asked = getattr(self, "n_clusters", None)
        return 1 if asked is None else n_distinct(keys, n_rows, asked)

    def _summary(self, draws, encoder, table, least, keys):
        """Fitted attributes: the point estimate, of at least so many components; `keys` tells rows
        apart."""
        arrays = mixture_arrays(draws, self._component_estimate, table, least, keys)
        return self._of_point(Draw(arrays, encoder))

    @property
    def _joins_components(self):
        """Whether labels_ are clusters: by the point estimate, or because a number is asked for."""
        return self.point_estimate == "clusters" or getattr(self, "n_clusters", None) is not None

    @property
    def _component_estimate(self):
        """The point estimate of the components: clusters are made of those of "map"."""
        return "map" if self.point_estimate == "clusters" else self.point_estimate

    def _clustered(self, fitted, encoder, table, least, limit=None, joins=None, asked=None):
        """Fitted attributes: the clusters, if they are asked for.

        least : int
            How many there shall be, if a number is asked for.
        limit : TimeLimit or None
            What is left of it decides how many draws the clusters are averaged over.
        joins : Joins or None
            How the components join, if it is known.
        asked : Table or None
            The rows as `predict` sees them, if that differs.
        """
        if not self._joins_components:
            return {}
        draws, weights = weighted_draws(fitted)
        n_clusters = None if self.n_clusters is None else min(least, fitted["n_components_"])
        found = self._clusters_type.of(
            draws, weights, fitted["_point"], encoder, table, self, limit, n_clusters, joins, asked
        )
        return self._of_point(found.point) | {
            "labels_": found.labels,
            "n_clusters_": found.n_clusters,
            "probabilities_": found.confidence,
            "valley_sureness_": valley_sureness(found.tree),
            "n_clusters_proba_": number_proba(
                found, self.separation, self.n_clusters, table.n_rows
            ),
            "n_components_proba_": n_components_proba(draws, weights, found.point),
            "cluster_tree_": found.tree,
            "_clusters": found,
        }

    def _complaints(self, fitted, n_rows, **grids):
        """What to say of the chains, and of a mean over few partitions."""
        complaints = super()._complaints(fitted, n_rows, **grids)
        complaints += too_few(getattr(self, "n_clusters", None), fitted["n_clusters_"])
        if np.isnan(fitted.get("probabilities_", 0.0)).any():
            complaints.append(
                "max_time, or an interrupt, left no time to score the clusters of all rows: each "
                "row is in that of its component in `component_labels_`, and `probabilities_` are "
                "nan. Give more time."
            )
        if np.isnan(fitted.get("outlier_scores_", 0.0)).any():
            complaints.append(
                "max_time was over before all rows could be scored: `outlier_scores_` are nan. "
                "Give more time, or ask `score_outliers` for the scores of some rows."
            )
        n_draws = len(self._draws_for_labels(fitted))
        if self.point_estimate in LOSSES and n_draws < ENOUGH_DRAWS:
            complaints.append(
                f"point_estimate={self.point_estimate!r} averages over {n_draws} draws: of so few "
                f"the best partition may have more clusters than any of them. Raise n_draws, so "
                f"that the chains that agree have {ENOUGH_DRAWS} or more."
            )
        return complaints

    def _draws_for_labels(self, fitted):
        """The draws that the point estimate is made of: of chains whose weight is not negligible.

        For a mean over partitions these are the chains that agree, if there are any: a mean of
        chains that disagree is like none of them.
        """
        chains = fitted["draws_"]
        chosen = counted_chains(fitted.get("chain_weights_", np.ones(len(chains))))
        if self.point_estimate in LOSSES:
            agreeing = np.intersect1d(chosen, np.flatnonzero(fitted["convergence_"]["agreeing"]))
            chosen = agreeing if len(agreeing) else chosen
        return [draw for c in chosen for draw in chains[c]]

    # ---- queries --------------------------------------------------------------------------------

    def _queries(self):
        """What answers queries."""
        check_is_fitted(self)
        draws, weights = self._weighted_draws
        of_fit = self._point, self._encoder, weights, self._margins, self._reach
        return self._queries_type(draws, *of_fit)

    @property
    def _weighted_draws(self):
        """The draws of the chains that count, and the weight of each, 1 where it is largest."""
        return weighted_draws(vars(self))

    def _encoded(self, X):
        """Encoded columns of a query."""
        return self._encoder.encode(self, X)

    def predict(self, X: TableLike) -> np.ndarray:
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
        queries, columns = self._queries(), self._encoded(X)
        if self._clusters is None:
            return queries.cluster_probabilities(columns).argmax(axis=1)
        return self._clusters.predict(queries.table(columns))

    def predict_proba(self, X: TableLike) -> np.ndarray:
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
        queries, columns = self._queries(), self._encoded(X)
        if self._clusters is None:
            return queries.cluster_probabilities(columns)
        return self._clusters.predict_proba(queries.table(columns))

    def cut(
        self, X: TableLike, n_clusters: int | None = None, separation: float | None = None
    ) -> Self:
        """Make other clusters of the same components, without another fit.

        The tree of components is cut at another place. What the fit says of clusters is replaced:
        `labels_`, `n_clusters_` and how probable each number is, `probabilities_`, `cluster_tree_`,
        what `predict` and `predict_proba` say, and what `convergence_` says of clusters. So are the
        parameters `n_clusters` and `separation`, so that a fit that goes on (``warm_start``) keeps
        to the cut. Components, draws and densities stay.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            The training data, which a fit does not keep.
        n_clusters : int or None, default=None
            How many clusters there shall be, from 1 to `n_components_`. Where components tell fewer
            rows apart, there are fewer, with a warning. None leaves the number to `separation`.
        separation : float or None, default=None
            How probable it must be that two clusters are two, in [0, 1). None leaves the parameter
            as it is.

        Returns
        -------
        self : estimator
            Cut, so that ``model.cut(X, n_clusters=3).labels_`` are three clusters.

        Raises
        ------
        ValueError
            If X is not the training data, if labels are components (`point_estimate`) so that there
            is no tree, or if `n_clusters` is more than `n_components_`.

        Examples
        --------
        >>> import numpy as np
        >>> from skanneal import AnnealedDPMixture
        >>> centres = np.repeat([0, 9, 27], 30)[:, None]
        >>> X = np.random.default_rng(0).normal(size=(90, 2)) + centres
        >>> model = AnnealedDPMixture(n_chains=1, random_state=0).fit(X)
        >>> model.n_clusters_, model.cut(X, n_clusters=2).n_clusters_
        (3, 2)
        """
        check_is_fitted(self)
        cut_again(self, X, n_clusters, separation)
        return self

    def new_cluster_proba(self, X: TableLike) -> np.ndarray:
        """Probability that each row belongs to none of the clusters seen so far.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Any cell may be missing.

        Returns
        -------
        probabilities : ndarray of shape (n_rows,)
            Averaged over chains and draws. If a draw has several views, it is represented by the
            view with the most columns.
        """
        return self._queries().new_cluster_probability(self._encoded(X))

    def score_samples(self, X: TableLike, given: Any = None) -> np.ndarray:
        """Log predictive density of each row, or of some of its cells given the others.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Missing cells are integrated out.
        given : columns or None, default=None
            Names, positions or a mask of the columns whose cells are known: the density is then
            that of the other columns' cells given these. A column that is set apart because others
            determine it can be given only with these.

        Returns
        -------
        log_density : ndarray of shape (n_rows,)
            In nats and the units of X. Densities are averaged over chains and draws, and include a
            new cluster. A column of numbers that is constant in fit adds 0, or -inf if the row has
            another value, since its density is a point mass; one of levels, or left to "auto" and
            whole, adds log 1 / (n + 2) for another value, after n cells. With ``margins="data"`` a
            negative number in a column that was never negative gives -inf, too; if the column is
            rounded, one of more than half a step.
        """
        return self._queries().log_density(self._encoded(X), given)

    def score(self, X: TableLike, y: Any = None) -> float:
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

    def score_outliers(self, X: TableLike) -> np.ndarray:
        """How odd each row is: how improbable it is that a row is at least as odd.

        A row is odd if it lies at the rim of its component, or if its component is small or diffuse
        (see the page on outliers). Unlike a density, the score has no units and no spikes, and rows
        with different gaps can be compared. `surprisal` tells which cells make a row odd.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Any cell may be missing. Training rows are scored as if they were new; for scores
            without the row itself see `outlier_scores_`.

        Returns
        -------
        scores : ndarray of shape (n_rows,)
            Minus the logarithm of a probability, in nats: the higher, the odder. If a column is
            constant in fit to n rows, another value in it adds log(n + 2).
        """
        return self._queries().outlier_scores(self._encoded(X))

    def impute(
        self, X: TableLike, return_std: bool = False, n_imputations: int | None = None
    ) -> Any:
        """Fill missing cells: numbers by their posterior mean, levels by the most probable one.

        Of amounts it is the mean of the logarithms, and so rather the median.

        With `n_imputations`, fill them several times by draws from the posterior instead, for
        multiple imputation and for intervals.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Not changed.
        return_std : bool, default=False
            Whether to return the uncertainty too.
        n_imputations : int or None, default=None
            How many times to fill by draws. Each table is made from one draw of a chain, and these
            take turns; the weights and parameters of its components are drawn once. Then each row
            draws a component given its observed cells, and its missing cells from this component.
            So the spread of a cell between the tables is its posterior predictive spread, and the
            spread of a statistic between the tables says how uncertain it is because of the gaps
            (`skanneal.summary.pool`). Quantiles over 50 tables or more are intervals.

        Returns
        -------
        filled : of the type of X, or a list of n_imputations of these
            Observed cells are unchanged. Gaps in a column of which fit saw no cell stay, with a
            warning, unless `families` names a family for it that has no levels.
        uncertainty : ndarray or frame of shape (n_rows, n_columns)
            Only if `return_std`. For a filled number it is the posterior predictive standard
            deviation, in the number's units; distributions whose variance may not exist (Student's
            t with fewer than 3 degrees of freedom, Lomax with a shape below 3) are treated as if
            they had 3. That of a column which others determine, where several of these are missing,
            is estimated from 100 draws. For a filled level it is one minus its probability. It is 0
            for observed cells. If X is a frame, so is this, with its names.
        """
        queries, encoder = self._queries(), self._encoder
        columns, table = encoder.encode(self, X), open_table(X, "X", sparse=True)
        if n_imputations is not None:
            seed = self._query_seed(OfFit.IMPUTATIONS)
            draws, missing = queries.imputations(columns, n_imputations, seed)
            filled = [table.fill(encoder.replacements(values, missing)) for values in draws]
            if not return_std:
                return filled
        values, spreads, missing = queries.fill(columns)
        if n_imputations is None:
            filled = table.fill(encoder.replacements(values, missing))
        if not return_std:
            return filled
        return filled, table.beside(queries.uncertainty(spreads, missing))
