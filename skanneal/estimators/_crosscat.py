"""CrossCatPY: columns partitioned into views, rows clustered anew in each view."""

# SPDX-License-Identifier: BSD-3-Clause

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import TransformerMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from .._native._types import Hyperparameters, Seed, TableLike
from ..chains._linked import link_draws
from ..families import FAMILIES
from ..moves import COLUMN_MOVES, MOVES
from ..parallel import OfStart, run_tasks, seeds_below
from ..partition_priors import PARTITION_PRIORS
from ..predictive._crosscat import CrossCatQueries
from ..predictive._draws import CrossCatDraw, largest_view, shown_views
from ..predictive._point import crosscat_arrays, point_partitions
from ._annealed import BaseAnnealed
from ._base_table import CLUSTERS
from ._fit_context import validated
from ._rounds import SweepCost
from ._row_and_column_questions import RowAndColumnQuestions


class CrossCatPY(RowAndColumnQuestions, TransformerMixin, BaseAnnealed):
    """Pitman-Yor Cross-Categorization: which columns depend on which, and the clusters behind it.

    The columns of a table of numbers, categories and counts, with gaps, are partitioned into views
    by a Pitman-Yor process; in each view another Pitman-Yor process partitions the rows, and within
    a view's cluster columns are independent [2]_. Columns of one view depend on each other, unless
    its rows form a single cluster. Views whose clusters go together are linked; columns of views
    that are not are independent. All is inferred by a chain that grows from an empty subsample to
    all rows (subsample annealing, [1]_); without a time limit it races a rival whose columns are in
    one view, until it is sure which of them will be ahead.

    Parameters
    ----------
    families : "auto", str or mapping, default="auto"
        What the columns are. "auto": booleans are "bernoulli", text, categories and numbers of few
        repeated values (20 if whole, else 8) "categorical", numbers that often repeat values beyond
        rounding "semi_continuous". Other numbers and dates are "normal" or "multivariate_normal",
        whichever makes rows not yet seen more probable (`family_evidence_`). Where numbers are
        never negative and are better described by their logarithms, "log_normal" takes the place of
        "normal", "semi_continuous_log_normal" that of both where there are zeros, and
        "multivariate_log_normal" competes, too (see `AnnealedDPMixture`). Identifiers are left out,
        with a warning. Otherwise the name of a family, or a mapping of families to columns (names,
        positions or a mask): any family of single columns in the user guide, "multivariate_normal"
        and "multivariate_log_normal". The numbers of the latter two, or their logarithms, are
        jointly normal within a cluster of a view; which of them are in one view is inferred.
    rounding : "auto", None or mapping, default="auto"
        Which columns of numbers are rounded, as in `AnnealedDPMixture`.
    dates : {"elapsed", "periodic"}, default="elapsed"
        How dates are read. "elapsed": as the time elapsed since 1970. "periodic": the hour of the
        day, the day of the week and the month are added as levels, where the dates span enough of
        them. These parts count in the clustering and when a date is used to predict other cells;
        densities of dates and of whole rows leave them out.
    margins : {"model", "data"}, default="model"
        Whether the law of a column of numbers by itself is the mixture's, or a smooth one of the
        training values, and levels are bound within components, as in `AnnealedDPMixture`.
    schedule : str or schedule, default="anneal"
        How the subsample grows: a name ("anneal", "prior_gibbs", "sequential_gibbs",
        "linear_anneal", "accelerating_anneal", "energy_anneal", "smc") or an object of
        `skanneal.schedules`. Blocks of sweeps follow as in `AnnealedDPMixture`.
    partition_prior : {"pitman_yor", "finite"}, default="pitman_yor"
        As in `AnnealedDPMixture`, for the rows and for the columns.
    concentration : "infer" or float, default="infer"
        Concentration of the process of the rows in every view, above ``-discount``: the larger, the
        more readily new components open. For "finite" see `AnnealedDPMixture`.
    discount : "infer" or float, default="infer"
        Discount of the process of the rows in every view, in [0, 1); 0 is the Dirichlet process.
    view_concentration : "infer", float or None, default=None
        Concentration of the process that partitions the columns: the larger, the more readily new
        views open. None copies `concentration`.
    view_discount : "infer", float or None, default=None
        Discount of the process that partitions the columns. None copies `discount`.
    expected_clusters : (float, float) or None, default=None
        As in `AnnealedDPMixture`, how many components to expect in a view. In addition, a view has
        a single component with prior probability 0.5; its columns are then independent.
    expected_views : (float, float) or None, default=None
        The same for the number of views, if `view_concentration` is inferred; `high` is at most the
        number of columns.
    hyperparameters : "infer" or mapping, default="infer"
        "infer": Gibbs draws on grids that are scaled to the data. Otherwise a mapping of families
        to fixed values in the user's units, by the names in the user guide's table of families:
        each value is a number, or one value per column of the family (pseudo-counts: per level).
        Hyperparameters that are left out are inferred.
    linked_views : bool, default=True
        Whether views of a draw are linked where their clusters go together. Then a row's cells in
        one view tell of its clusters in the others, and all answers but `outlier_scores_`, which
        judge each view by itself, are those of all views together. Before a draw is kept, its rows
        make two sweeps by the links, which add up from draw to draw. Draws for which `max_time`
        leaves no time are not kept, but for one of each chain; those of an interrupted fit have no
        links. False: views are independent, as in [2]_.
    missing_indicator : columns, default=()
        Names, positions or a mask of the columns whose gaps may be informative. For each of them a
        hidden boolean column says which cells are present. It takes part in fit and in queries,
        where it is read from the query itself. `score_samples` then gives the density of the cells
        and of the pattern of gaps; `impute` fills a gap given that it is a gap, `surprisal` is that
        of a cell given that it is present, and `sample` leaves gaps as often as the model expects
        them.
    moves : "auto" or tuple of str, default="auto"
        The moves other than those of hyperparameters. Of rows: "gibbs" and "split_merge". Of
        columns and views: "column_block" and "column_gibbs" (columns change views, together or one
        by one), "column_sets" (a new set of columns is proposed), "view_split_merge" (columns leave
        for a view of their own, or a view dissolves into another), "view_reallocation" (one view
        becomes two or two become one, and their rows are clustered anew; it is made only until all
        rows are in) and "view_annealing" (the same, with sweeps while the rows enter; a proposal
        costs as much as dozens of sweeps and is made once in about 120, but may be accepted on many
        rows). "auto" is all but "column_gibbs" and "view_annealing".
        Columns of "multivariate_normal" change views one by one in "column_block" too, and do not
        go with "view_annealing".
    point_estimate : {"clusters", "map", "vi", "binder"}, default="clusters"
        What the fitted labels are. "map": the views and rows of the draw of highest log joint
        density. "vi" and "binder": `view_labels_` is the partition of the columns of least expected
        variation of information or Binder loss over the draws. For each of its views `row_labels_`
        is the partition of the rows of least expected loss; each draw is represented by the view
        that shares most columns with it (by the Jaccard index). These two need 20 draws or more in
        all. "clusters": as "map", but in `labels_` components are joined to clusters, of which it
        is sure that they are several.
    separation, n_clusters, noise : float, int or None, float or None
        How components are joined, as in `AnnealedDPMixture`. The defaults are 0.9, None and None.
        Rows that agree in the view of `labels_` count as one: there are no more clusters than that.
    n_chains : int, default=4
        Independent chains.
    n_draws : int or "auto", default="auto"
        Draws kept per chain, as in `AnnealedDPMixture`.
    thin : int, default=1
        Sweeps between draws. If the schedule has blocks, the least number of sweeps between them.
    output : {"codes", "onehot", "proba"}, default="codes"
        What `transform` gives for each view. "codes": the most probable cluster as a number.
        "onehot": the same as one column per cluster with a single 1. "proba": the probabilities of
        the clusters.
    max_time : float or None, default=None
        Seconds of wall clock that the whole fit may take, as in `AnnealedDPMixture`.
    n_jobs : int or None, default=None
        How many chains run at a time, through joblib. By default they run in threads, which release
        the GIL.
    random_state : int, None, RandomState, Generator or SeedSequence, default=None
        An int gives the same fit every time, for any `n_jobs` and backend.
    warm_start : bool, default=False
        Whether a second `fit`, on the same rows, continues the first, as in `AnnealedDPMixture`.
    verbose : int, default=0
        If above 0, a line is printed for each stage of each chain.

    Attributes
    ----------
    view_labels_ : ndarray of shape (n_columns,), int64
        The view of each column in the point estimate, numbered from 0 in the order of the columns;
        -1 for a column that is constant in fit. A view whose rows form one cluster counts like the
        others, here and in `n_views_`, although its columns do not depend on each other.
        Columns of two views may depend on each other, too: see `dependence_probability`.
    row_labels_ : list of ndarray of shape (n_rows,), int64
        For each view the component of each training row, numbered from 0.
    labels_ : ndarray of shape (n_rows,), int64
        Clusters of the rows in the view with the most columns. `fit_predict`, `predict` and
        `predict_proba` use these clusters.
    n_views_ : int
        Number of views.
    view_links_ : ndarray of shape (n_links, 2), int64
        The views that are linked in the point estimate.
    n_clusters_ : int
        Number of clusters in `labels_`, those that `noise` has emptied included.
    component_labels_, n_components_ : ndarray of shape (n_rows,), int
        The components in that view, of which the clusters are made, and their number.
    probabilities_, cluster_tree_, valley_sureness_ : ndarray
        As in `AnnealedDPMixture`, for that view.
    n_clusters_proba_, n_components_proba_ : ndarray
        As in `AnnealedDPMixture`, for that view.
    draws_ : list of list of CrossCatDraw
        ``draws_[chain][draw]`` with ``view_labels``, ``view_links``, ``row_labels``,
        ``concentration`` and ``discount`` (one per view), ``view_concentration``,
        ``view_discount``, ``hyperparameters``, ``log_joint`` and the clusters' statistics.
    trace_ : dict of ndarray of shape (n_chains, n_records)
        "seconds", "sweeps", "n_assigned", "n_views", "n_components" (of all views), "log_joint",
        "concentration" and "discount" (means over views), "view_concentration", "view_discount";
        padded with nan.
    converged_, convergence_ : bool, dict
        Whether the chains agree, and the figures that say so, as in `AnnealedDPMixture`.
    r_hat_, ess_ : dict of float
        R-hat and the effective sample size of the scalars in `trace_`, over the last block or the
        final full-data stage; nan where this is too short.
    chain_weights_ : ndarray of shape (n_chains,)
        How much each chain counts in queries and for labels, as in `AnnealedDPMixture`.
    outlier_scores_ : ndarray of shape (n_rows,)
        How odd each training row is, when it is left out of the model that scores it; see
        `AnnealedDPMixture`.
    families_ : dict of str to ndarray
        The positions of each family's columns. Columns that are set apart are listed as "constant"
        (they have one value) and "identifier" (names of the rows, or text).
    family_evidence_ : dict or None
        Which columns of amounts are described by their logarithms, under "logarithms", as in
        `AnnealedDPMixture`; None if no column might be.
    logarithms_ : ndarray of int
        The positions of the columns that are described by their logarithms.
    atoms_ : dict of int to ndarray
        For each column, by position, the values that it repeats beyond rounding; see the user
        guide.
    rounding_ : dict
        The step of each rounded column, by its name, or by its position if there are no names.
    date_parts_ : list of str
        The parts of dates in the model, such as "admitted: weekday".
    hyperparameter_grids_ : dict
        The grids of the inferred hyperparameters, in the user's units, by family and name: an array
        for each of the family's columns. What is fixed, by you or by the family (`mu0` of
        "multivariate_normal" is the columns' means), is left out.
    schedule_ : schedule
        The schedule that was run. With a time limit it is what the first chain did, as a custom
        schedule without a limit: with the same data and seed it gives that chain's bits again.
    log_evidence_, log_evidence_se_ : float
        With ``schedule="smc"``, the log evidence and its standard error, as in `AnnealedDPMixture`.
    n_sweeps_ : float
        The number of sweeps that were run, including those between draws.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Names of the columns of X, if it had names.

    See Also
    --------
    AnnealedDPMixture : One view: all columns share one partition of the rows.
    CrossCatImputer : Fills gaps, as a step of a pipeline.

    References
    ----------
    .. [1] F. Obermeyer, J. Glidden, E. Jonas (2014). "Scaling Nonparametric Bayesian Inference via
       Subsample-Annealing". AISTATS.
    .. [2] V. Mansinghka, P. Shafto, E. Jonas, C. Petschulat, M. Gasner, J. B. Tenenbaum (2016).
       "CrossCat: A Fully Bayesian Nonparametric Method for Analyzing Heterogeneous, High
       Dimensional Data". Journal of Machine Learning Research 17.

    Examples
    --------
    Two columns that share their clusters, and two that share others.

    >>> import numpy as np
    >>> from skanneal import CrossCatPY
    >>> rng = np.random.default_rng(0)
    >>> first, second = rng.choice([-4.0, 4.0], size=(2, 200))
    >>> X = np.column_stack([first, first, second, second]) + rng.normal(size=(200, 4))
    >>> model = CrossCatPY(n_chains=2, random_state=0).fit(X)
    >>> model.view_labels_
    array([0, 0, 1, 1])
    >>> model.dependence_probability()
    array([[1., 1., 0., 0.],
           [1., 1., 0., 0.],
           [0., 0., 1., 1.],
           [0., 0., 1., 1.]])
    """

    _parameter_constraints: dict = {
        **BaseAnnealed._parameter_constraints,
        **CLUSTERS,
        "view_concentration": [StrOptions({"infer"}), Real, None],
        "view_discount": [StrOptions({"infer"}), Real, None],
        "expected_views": [tuple, list, None],
        "linked_views": ["boolean"],
        "missing_indicator": [str, int, tuple, list, np.ndarray],
        "output": [StrOptions({"codes", "onehot", "proba"})],
    }
    _move_registries = (MOVES, COLUMN_MOVES)
    _auto_moves = (
        *BaseAnnealed._auto_moves,
        "column_block",
        "column_sets",
        "view_split_merge",
        "view_reallocation",
    )
    _draw_type, _queries_type = CrossCatDraw, CrossCatQueries
    # A third more than measured with 10,000 rows or more of numbers; on small tables the moves of
    # columns cost more than that.
    _has_views, _sweep_cost = True, SweepCost(0.75, 40)

    def __init__(
        self,
        *,
        families: str | Mapping[str, Any] = "auto",
        rounding: str | Mapping[Any, float] | None = "auto",
        dates: str = "elapsed",
        margins: str = "model",
        schedule: Any = "anneal",
        partition_prior: str = "pitman_yor",
        concentration: str | float = "infer",
        discount: str | float = "infer",
        view_concentration: Any = None,
        view_discount: Any = None,
        expected_clusters: tuple[float, float] | None = None,
        expected_views: tuple[float, float] | None = None,
        hyperparameters: Hyperparameters = "infer",
        linked_views: bool = True,
        missing_indicator: Any = (),
        moves: str | Sequence[str] = "auto",
        point_estimate: str = "clusters",
        separation: float = 0.9,
        n_clusters: int | None = None,
        noise: float | None = None,
        n_chains: int = 4,
        n_draws: int | str = "auto",
        thin: int = 1,
        output: Any = "codes",
        max_time: float | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.families = families
        self.rounding = rounding
        self.dates = dates
        self.margins = margins
        self.schedule = schedule
        self.partition_prior = partition_prior
        self.concentration = concentration
        self.discount = discount
        self.view_concentration = view_concentration
        self.view_discount = view_discount
        self.expected_clusters = expected_clusters
        self.expected_views = expected_views
        self.hyperparameters = hyperparameters
        self.linked_views = linked_views
        self.missing_indicator = missing_indicator
        self.moves = moves
        self.point_estimate = point_estimate
        self.separation = separation
        self.n_clusters = n_clusters
        self.noise = noise
        self.n_chains = n_chains
        self.n_draws = n_draws
        self.thin = thin
        self.output = output
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    @validated
    def fit(self, X: TableLike, y: Any = None, strata: ArrayLike | None = None) -> Self:
        """Run the chains.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Numbers, categories and counts; NaN, None and NA are missing cells. Never changed.
        y : None
            Not used.
        strata : array-like of shape (n_rows,), default=None
            Labels over which a schedule with ``selection="stratified"`` keeps the subsample
            balanced; by default a quick sketch of X.

        Returns
        -------
        self : CrossCatPY

        Raises
        ------
        ValueError, TypeError
            Naming the column or parameter at fault, before any work starts.
        """
        return self._keep(*self._fit(X, strata))

    def transform(self, X: TableLike) -> Any:
        """Each row's cluster in each view.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Any cell may be missing.

        Returns
        -------
        clusters : ndarray
            With ``output="codes"``, int64 of shape (n_rows, n_views): the most probable existing
            cluster of `row_labels_`. With "onehot" and "proba" one column per view and cluster,
            views side by side: 1.0 for the most probable one, or probabilities.
        """
        out = []
        for probabilities in self._queries().view_probabilities(self._encoded(X)):
            if self.output == "proba":
                out.append(probabilities)
                continue
            codes = probabilities.argmax(axis=1)
            onehot = self.output == "onehot"
            out.append(np.eye(probabilities.shape[1])[codes] if onehot else codes[:, None])
        return np.hstack(out)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns that `transform` gives.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Not used, but checked against the columns of the fit.

        Returns
        -------
        names : ndarray of str objects
            "view0" and so on, or "view0_cluster0" and so on.
        """
        check_is_fitted(self)
        _check_feature_names_in(self, input_features, generate_names=False)
        names = [f"view{v}" for v in range(self.n_views_)]
        if self.output != "codes":
            names = [
                f"{name}_cluster{c}"
                for name, labels in zip(names, self.row_labels_)
                for c in range(labels.max() + 1)
            ]
        return np.array(names, dtype=object)

    # ---- parts of fit ---------------------------------------------------------------------------

    def _prior_grids(self, n_rows=0, n_columns=0):
        row_grid = self._row_grid(n_rows, null=True)
        view = [
            plain if of_views is None else of_views
            for of_views, plain in (
                (self.view_concentration, self.concentration),
                (self.view_discount, self.discount),
            )
        ]
        view_grid = PARTITION_PRIORS[self.partition_prior].grid(
            n_columns, *view, self.expected_views, of="view_"
        )
        return {"concentration": row_grid, "view_concentration": view_grid}

    def _finished(self, results, plan, of_start, limit):
        if not self.linked_views:
            return results, False
        seeds = seeds_below(of_start, OfStart.LINKS, self.n_chains)
        tasks = [(plan.table, of["draws"], seeds[of["number"]], limit) for of in results]
        draws, interrupted = run_tasks(link_draws, tasks, n_jobs=self.n_jobs)
        if interrupted:  # draws with and without links would contradict each other
            return results, True
        return [of | {"draws": own} for of, own in zip(results, draws)], False

    def _other_starts(self, plan, schedule):
        """Columns that begin apart hardly come together where they are jointly normal, since each
        has clusters of its own by then; those that begin together hardly part where one cluster
        describes them. So of such chains some begin in one way, some in the other."""
        joint = any(FAMILIES[name].division is not None for name in plan.families)
        ways = ("apart", "together") if joint else ("apart",)
        return [(plan._replace(columns=columns), schedule) for columns in ways]

    def _indicators(self):
        return self.missing_indicator

    def _summary(self, draws, encoder, table, least, keys):
        partitions = point_partitions(draws, self._component_estimate, least, encoder.apart)
        view_labels = shown_views(partitions[0], encoder.apart)
        split = largest_view(view_labels), least, keys
        arrays = crosscat_arrays(*partitions, encoder.table_families, table, split)
        point = CrossCatDraw(arrays, encoder)
        return {"view_labels_": view_labels, **self._of_point(point)}

    @staticmethod
    def _of_point(point):
        row_labels = [labels.astype(np.int64) for labels in point.row_labels]
        own = {"row_labels_": row_labels, "n_views_": point.n_views}
        own["view_links_"] = point.view_links
        return BaseAnnealed._of_point(point) | own

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags
